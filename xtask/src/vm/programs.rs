//! Programs of this machine that are taken along into the VM, with their libraries.

use crate::shell;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts a program of the path, or a file, into `/bin` of a root. Its libraries go to where the program looks for them.
///
/// # Errors
/// There is no such program, or the disk is full.
pub fn install_program(program: &str, root: &Path) -> Result<()> {
    let file =
        find_program(program).with_context(|| format!("{program} is not on the path of this machine"))?;
    let name = file.file_name().context("a program has a name")?;
    fs::copy(&file, root.join("bin").join(name))?;
    // ldd fails for a static program, which needs nothing.
    let output = Command::new("ldd").arg(&file).output().context("cannot start ldd (libc-bin)")?;
    for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
        let to = root.join(library.strip_prefix("/")?);
        fs::create_dir_all(to.parent().context("a library is in a directory")?)?;
        fs::copy(&library, &to).with_context(|| format!("cannot copy {}", library.display()))?;
    }
    // What was linked in /usr/lib is found where the loader looks.
    if !root.join("lib64").exists() && !root.join("usr").exists() {
        symlink(".", root.join("usr"))?;
    }
    Ok(())
}

fn find_program(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.is_file() {
        return Some(path.to_owned());
    }
    let found = shell::output(Command::new("sh").args(["-c", "command -v \"$1\"", "sh", program])).ok()?;
    Some(PathBuf::from(found.trim()))
}

/// Paths of the files that ldd names: libraries, and the loader itself.
fn libraries(listed: &str) -> Vec<PathBuf> {
    let words = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let said = "\tlinux-vdso.so.1 (0x7f)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x7f)\n\t/lib64/ld-linux.so.2 (0x7f)\n";
        assert_eq!(libraries(said), [Path::new("/lib/x/libc.so.6"), Path::new("/lib64/ld-linux.so.2")]);
        assert!(libraries("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn a_program_comes_with_its_loader() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        install_program("sh", root.path()).unwrap();
        assert!(root.path().join("bin/sh").is_file() || root.path().join("bin/dash").is_file());
        assert!(root.path().join("lib64").is_dir() || root.path().join("lib").is_dir());
        assert!(install_program("no-such-program", root.path()).is_err());
    }
}
