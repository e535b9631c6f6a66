//! Files of the kernel that arms of a plan set: `/sys/kernel/mm/transparent_hugepage/enabled`. What they held is
//! journalled with the guardian before the first of them is written to.

use super::plan_file::Arm;
use anyhow::{Context, Result, ensure};
use latscope_process::guardian::{self, Guardian, Ticket, UndoAction};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Directories of files of the kernel.
const ROOTS: [&str; 2] = ["/sys/", "/proc/"];

/// The files that arms set, and what each holds with no arm and in each arm.
#[derive(Debug, Default)]
pub struct ArmSettings {
    before: BTreeMap<PathBuf, String>,
    of_arms: Vec<BTreeMap<PathBuf, String>>,
    tickets: Vec<Ticket>,
}

impl ArmSettings {
    /// Finds the files. For an arm that lacks a file, it returns the reason why the arm cannot be set.
    ///
    /// # Errors
    /// A file is not in `/sys` or `/proc`, or its path contains `..`.
    pub fn find_files(arms: &[Arm]) -> Result<(ArmSettings, Vec<Option<String>>)> {
        let mut settings = ArmSettings::default();
        let mut lacking = Vec::new();
        for arm in arms {
            let mut own = BTreeMap::new();
            let mut why = None;
            for (pattern, value) in &arm.set {
                ensure!(
                    ROOTS.iter().any(|root| pattern.starts_with(root)) && !pattern.contains(".."),
                    "arm {}: set is for files in /sys and /proc, and not for {pattern}",
                    arm.name
                );
                let files = expand(pattern);
                for file in &files {
                    // `/proc/self/root` leads to every file.
                    let real =
                        file.canonicalize().with_context(|| format!("cannot look at {}", file.display()))?;
                    ensure!(
                        ROOTS.iter().any(|root| real.starts_with(root)),
                        "arm {}: set is for files in /sys and /proc, and {} leads to {}",
                        arm.name,
                        file.display(),
                        real.display()
                    );
                }
                ensure!(files.len() <= MOST, "arm {}: {pattern} is more than {MOST} files", arm.name);
                if files.is_empty() {
                    why.get_or_insert_with(|| format!("this machine has no {pattern}"));
                }
                own.extend(files.into_iter().map(|file| (file, value.clone())));
            }
            for file in own.keys() {
                match read_value(file) {
                    Ok(text) => drop(settings.before.insert(file.clone(), text)),
                    Err(error) => drop(why.get_or_insert_with(|| format!("{error:#}"))),
                }
            }
            settings.of_arms.push(own);
            lacking.push(why);
        }
        Ok((settings, lacking))
    }

    /// Journals what the files hold, and writes what each arm wants once; of an arm whose values are refused, why.
    ///
    /// # Errors
    /// There is no guardian, or a file cannot be put back.
    pub fn guard(&mut self, guardian: &Guardian) -> Result<Vec<Option<String>>> {
        for (file, text) in &self.before {
            self.tickets.push(guardian.journal(UndoAction::Write(file.clone(), text.clone()))?);
        }
        let mut refused = Vec::new();
        for arm in 0..self.of_arms.len() {
            refused.push(self.apply_arm(arm).err().map(|error| format!("{error:#}")));
            if refused[arm].is_some() {
                self.restore()?;
            }
        }
        self.restore()?;
        Ok(refused)
    }

    /// Writes what an arm wants, and to the files of other arms what they held before.
    ///
    /// # Errors
    /// The kernel refuses a value, or this is not root; the text names the file.
    pub fn apply_arm(&self, arm: usize) -> Result<()> {
        let of_arm = &self.of_arms[arm];
        self.before
            .iter()
            .try_for_each(|(file, before)| write_value(file, of_arm.get(file).unwrap_or(before)))
    }

    /// Writes to all files what they held before.
    ///
    /// # Errors
    /// A file does not hold its value afterwards; all files are tried.
    pub fn restore(&self) -> Result<()> {
        self.before.iter().map(|(file, before)| write_value(file, before)).fold(Ok(()), Result::and)
    }

    /// Takes the files out of the journal, once they are restored.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn forget(&mut self, guardian: &Guardian) -> Result<()> {
        self.tickets.drain(..).try_for_each(|ticket| guardian.forget(ticket))
    }
}

/// The most bytes of a setting: the kernel gives a page at most.
const LONGEST: u64 = 4096;

/// The most files of a pattern.
const MOST: usize = 1 << 14;

/// Reads the value of a file: of a choice, `always [madvise] never`, the word in brackets. What is read-only is not
/// opened: a look at some of these files takes messages from their reader, or memory without a limit.
fn read_value(file: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", file.display());
    let about = fs::metadata(file).with_context(cannot)?;
    ensure!(about.is_file(), "{} is no setting: it is no file", file.display());
    let may_be_written = about.permissions().mode() & 0o222 != 0;
    ensure!(may_be_written, "{} is no setting: it is read-only", file.display());
    let mut text = String::new();
    let opened =
        fs::OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(file);
    opened.and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text)).with_context(cannot)?;
    ensure!(text.len() as u64 <= LONGEST, "{} is no setting: it has more than 4 KiB", file.display());
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Ok(chosen.unwrap_or(text.trim()).to_owned())
}

fn write_value(file: &Path, value: &str) -> Result<()> {
    if read_value(file)? == value {
        return Ok(());
    }
    let cannot = || format!("cannot write {value:?} to {}", file.display());
    guardian::write_kernel_file(file, value).with_context(cannot)?;
    let now = read_value(file)?;
    ensure!(now == value, "{} holds {now:?} after {value:?} was written to it", file.display());
    Ok(())
}

/// The files that a path stands for, in which `*` is any text within a name; one more than [`MOST`] at most.
fn expand(pattern: &str) -> Vec<PathBuf> {
    glob::glob(pattern).into_iter().flatten().flatten().take(MOST + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(file: &str, value: &str) -> Arm {
        Arm { name: "a".to_owned(), set: [(file.to_owned(), value.to_owned())].into(), ..Arm::default() }
    }

    #[test]
    fn files_are_found_by_pattern_and_only_those_of_the_kernel() {
        let all = expand("/proc/self/task/*/stat*");
        assert!(all.iter().any(|path| path.ends_with("status")), "{all:?}");
        assert!(expand("/proc/self/nosuch").is_empty());
        let (settings, lacking) =
            ArmSettings::find_files(&[arm("/proc/self/oom_score_adj", "3"), arm("/sys/nosuch", "1")])
                .unwrap();
        assert_eq!((settings.before.len(), lacking[0].as_ref()), (1, None));
        assert_eq!(lacking[1].as_deref(), Some("this machine has no /sys/nosuch"));
        let beyond =
            ArmSettings::find_files(&[arm("/proc/self/root/etc/passwd", "1")]).unwrap_err().to_string();
        assert!(beyond.ends_with("leads to /etc/passwd"), "{beyond}");
        assert!(
            ArmSettings::find_files(&[arm("/etc/passwd", "1")])
                .unwrap_err()
                .to_string()
                .contains("/etc/passwd")
        );
        assert!(ArmSettings::find_files(&[arm("/proc/../etc/passwd", "1")]).is_err());
    }

    /// `/proc/kmsg` gives each message once, and `/proc/self/pagemap` has no end.
    #[test]
    fn what_is_no_setting_is_not_read() {
        for (file, why) in [
            ("/proc/kmsg", "it is read-only"),
            ("/proc/self/pagemap", "it is read-only"),
            ("/proc/self", "it is no file"),
            ("/proc/self/mem", "cannot read"),
        ] {
            let (settings, lacking) = ArmSettings::find_files(&[arm(file, "2")]).unwrap();
            assert!(settings.before.is_empty() && lacking[0].as_ref().unwrap().contains(why), "{lacking:?}");
        }
    }

    #[test]
    fn each_arm_has_its_own_values_and_the_others_what_was_before() {
        // Its own score may be raised by any process.
        let file = "/proc/self/oom_score_adj";
        let before = read_value(Path::new(file)).unwrap();
        let (settings, _) = ArmSettings::find_files(&[Arm::default(), arm(file, "1000")]).unwrap();
        settings.apply_arm(1).unwrap();
        assert_eq!(read_value(Path::new(file)).unwrap(), "1000");
        let restored = settings.apply_arm(0);
        if rustix::process::geteuid().is_root() {
            restored.unwrap();
            assert_eq!(read_value(Path::new(file)).unwrap(), before);
        }
        let (refusing, _) = ArmSettings::find_files(&[arm(file, "banana")]).unwrap();
        let error = format!("{:#}", refusing.apply_arm(0).unwrap_err());
        assert!(error.contains("cannot write \"banana\" to /proc/self/oom_score_adj"), "{error}");
    }
}
