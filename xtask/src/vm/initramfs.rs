//! Initial file system of the VM: everything in memory, made anew for each run.

use super::{copy, modules, programs};
use crate::debian;
use crate::shell::{self, quote_word};
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories that the first process or programs expect.
const DIRECTORIES: [&str; 11] =
    ["bin", "dev", "etc", "lib", "modules", "proc", "result", "root", "run", "sys", "tmp"];

/// Parameters of kernel modules.
const PARAMETERS: [(&str, &str); 1] = [("binder_linux", "devices=binder,hwbinder,vndbinder")];

/// Contents of the file system.
pub struct Contents<'a> {
    /// Path of the busybox that runs in the VM.
    pub busybox: &'a Path,
    /// Path of the static latscope.
    pub latscope: &'a Path,
    /// Paths of kernel modules, in the order to load.
    pub modules: &'a [PathBuf],
    /// Programs of this machine to take along.
    pub programs: &'a [String],
    /// Directory laid over everything else.
    pub overlay: Option<&'a Path>,
    /// Shell script to run.
    pub job: &'a str,
}

impl Contents<'_> {
    /// Writes the archive that the kernel unpacks, using an empty directory to assemble it.
    ///
    /// # Errors
    /// A file is missing, or the disk is full.
    pub fn write_archive(&self, root: &Path, archive: &Path) -> Result<()> {
        let ours = debian::busybox()?;
        for directory in DIRECTORIES {
            fs::create_dir_all(root.join(directory))?;
        }
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
        fs::write(root.join("etc/group"), "root:x:0:\n")?;
        fs::copy(self.busybox, root.join("bin/busybox"))?;
        shell::copy_program(self.latscope, &root.join("bin/latscope")).context("no static latscope")?;
        fs::write(root.join("init"), include_str!("init.sh"))?;
        fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755))?;
        self.modules(&ours, root)?;
        self.programs.iter().try_for_each(|program| programs::install_program(program, root))?;
        if let Some(overlay) = self.overlay {
            copy(overlay, root)?;
        }
        fs::write(root.join("job"), self.job)?;
        let pack = r#"cd "$1" && find . | "$2" cpio -o -H newc 2>/dev/null >"$3""#;
        let mut command = Command::new("sh");
        command.args(["-c", pack, "sh"]).arg(root).arg(ours).arg(std::path::absolute(archive)?);
        shell::output(&mut command).map(drop)
    }

    fn modules(&self, busybox: &Path, root: &Path) -> Result<()> {
        let mut order = String::new();
        for file in self.modules {
            let name = modules::module_name(&file.to_string_lossy());
            let to = root.join("modules").join(format!("{name}.ko"));
            if file.extension().is_some_and(|extension| extension == "xz") {
                let unpacked = Command::new(busybox).arg("xzcat").arg(file).output()?;
                anyhow::ensure!(unpacked.status.success(), "cannot decompress {}", file.display());
                fs::write(to, unpacked.stdout)?;
            } else {
                fs::copy(file, to)?;
            }
            let parameters = PARAMETERS.iter().find(|(module, _)| *module == name);
            writeln!(order, "/modules/{name}.ko {}", parameters.map_or("", |(_, parameters)| parameters))?;
        }
        Ok(fs::write(root.join("modules/order"), order)?)
    }
}

/// Script that runs a command in exactly these words.
pub fn job(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote_word(word)).collect();
    format!("exec {}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_hands_on_every_word_as_it_is() {
        let words = ["printf", "%s\n", "two words", "it's", "$HOME `id` \\ \"", ""].map(str::to_owned);
        let printed = shell::output(Command::new("sh").args(["-c", &job(&words)])).unwrap();
        assert_eq!(printed, "two words\nit's\n$HOME `id` \\ \"\n\n");
    }
}
