//! The commit that the build names: of real repositories.

#[allow(dead_code, reason = "its main is for cargo")]
#[path = "../build.rs"]
mod build;

use std::path::Path;
use std::process::Command;

fn git(at: &Path, arguments: &[&str]) -> String {
    let settings = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"];
    let ran =
        Command::new("git").arg("-C").arg(at).args(settings).args(arguments).output().expect("git runs");
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

#[test]
fn a_work_tree_has_its_commit_and_says_that_it_was_changed() {
    let place = tempfile::tempdir().expect("a directory");
    let at = place.path();
    assert_eq!(build::commit(at), None, "not in a repository");
    git(at, &["init", "-q"]);
    assert_eq!(build::commit(at), None, "no commit yet");
    std::fs::write(at.join("a"), "1").expect("written");
    git(at, &["add", "a"]);
    git(at, &["commit", "-q", "-m", "first"]);
    git(at, &["tag", "-a", "v1", "-m", "a name"]);
    let first = git(at, &["rev-parse", "HEAD"]);
    assert_eq!(build::commit(at), Some(first.clone()), "a tag does not replace it");
    std::fs::write(at.join("a"), "2").expect("written");
    assert_eq!(build::commit(at), Some(format!("{first}-dirty")));
    let unpacked = at.join("archive");
    std::fs::create_dir(&unpacked).expect("made");
    assert_eq!(build::commit(&unpacked), None, "an archive within the repository of another project");
}

#[test]
fn what_is_watched_exists_and_changes_with_each_commit() {
    let place = tempfile::tempdir().expect("a directory");
    let at = place.path();
    git(at, &["init", "-q"]);
    std::fs::create_dir_all(at.join("crates/one/src")).expect("made");
    std::fs::create_dir_all(at.join("crates/two")).expect("made");
    git(at, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let watched = build::watched(at);
    assert!(watched.contains(&at.join("crates/one/src")) && watched.iter().all(|path| path.exists()));
    let read = || watched.iter().filter_map(|path| std::fs::read(path).ok()).collect::<Vec<_>>();
    let before = read();
    git(at, &["commit", "-q", "--allow-empty", "-m", "second"]);
    assert_ne!(read(), before);
}
