//! Names the commit that an optimised build is made of, for the result file.
//!
//! Builds for tests have none: each commit would build them again.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the variable with the commit, which `cargo xtask dist` may set.
const COMMIT: &str = "LATSCOPE_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    if env::var_os(COMMIT).is_some() || env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return;
    }
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let Some(workspace) = package.ancestors().nth(2) else { return };
    if let Some(commit) = commit(workspace) {
        println!("cargo::rustc-env={COMMIT}={commit}");
        watched(workspace).iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    }
}

/// The commit of a work tree, with `-dirty` if its files differ; `None` where `workspace` is not one: an archive may be
/// unpacked within the repository of another project.
pub fn commit(workspace: &Path) -> Option<String> {
    let top = git(workspace, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != workspace.canonicalize().ok()? {
        return None;
    }
    git(workspace, &["describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"])
}

/// Paths that change with the commit, and the sources. All of them exist: cargo runs a script at each build for one
/// that does not.
pub fn watched(workspace: &Path) -> Vec<PathBuf> {
    let of_git =
        ["logs/HEAD", "HEAD"].iter().filter_map(|name| git(workspace, &["rev-parse", "--git-path", name]));
    let crates = std::fs::read_dir(workspace.join("crates")).into_iter().flatten().flatten();
    let sources = crates.map(|entry| entry.path().join("src"));
    of_git.map(|path| workspace.join(path)).chain(sources).filter(|path| path.exists()).collect()
}

fn git(workspace: &Path, arguments: &[&str]) -> Option<String> {
    let ran = Command::new("git").arg("-C").arg(workspace).args(arguments).output().ok()?;
    let text = String::from_utf8(ran.stdout).ok()?;
    ran.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
