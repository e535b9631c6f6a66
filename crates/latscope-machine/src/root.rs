//! Location of the kernel's files.

use latscope_core::units::CpuList;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Size that most of the kernel's files do not exceed, in bytes.
const PAGE: usize = 4096;

/// A prefix put before every path of the kernel: `/` for this machine, any directory for a machine kept as a tree of
/// files.
///
/// The readers return `None` (or nothing) for files that are missing, unreadable or of an unexpected form: on some
/// machine each of them is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemRoot {
    prefix: PathBuf,
}

impl SystemRoot {
    /// Root of this machine.
    pub fn real() -> SystemRoot {
        SystemRoot::at("/")
    }

    /// The machine whose files lie under a directory.
    pub fn at(directory: impl Into<PathBuf>) -> SystemRoot {
        SystemRoot { prefix: directory.into() }
    }

    /// Returns true if this is the machine on which the program runs, so that system calls and processor instructions
    /// apply to it, too.
    pub(crate) fn is_real(&self) -> bool {
        self.prefix == Path::new("/")
    }

    /// Path of a file of the kernel under the root: `/proc/stat` and `proc/stat` alike.
    pub fn path(&self, path: &str) -> PathBuf {
        self.prefix.join(path.trim_start_matches('/'))
    }

    /// Returns true if there is such a file or directory.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A file's text without white space (and the NUL bytes of device trees)
    /// around it.
    pub fn read_text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::with_capacity(PAGE);
        // The kernel states no size of such a file: `take` spares the question.
        File::open(self.path(path)).ok()?.take(u64::MAX).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
    }

    /// A file that holds one number.
    pub fn read_number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.read_text(path)?.parse().ok()
    }

    /// A file that holds a CPU list such as `0-3,6`; an empty file is an empty
    /// list.
    pub fn cpu_list(&self, path: &str) -> Option<CpuList> {
        self.read_number(path)
    }

    /// The names in a directory, in natural order: `index2` before `index10`.
    pub fn list_names(&self, directory: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        names
    }

    /// The paths in a directory whose names are a prefix and a number, by
    /// number: `numbered("/sys/devices/system/node", "node")`.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<(u32, String)> {
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        let mut found: Vec<(u32, String)> = self
            .list_names(directory)
            .iter()
            .filter_map(|name| Some((number(name)?, format!("{directory}/{name}"))))
            .collect();
        found.sort_unstable();
        found
    }

    /// The value of a `name: value` line, as in `/proc/meminfo` and similar files.
    pub fn field(&self, path: &str, name: &str) -> Option<String> {
        field(&self.read_text(path)?, name).map(str::to_owned)
    }

    /// The choice in brackets of a file such as `always [madvise] never`, or
    /// `(full)` in debugfs; the whole text if nothing is in brackets.
    pub fn choice(&self, path: &str) -> Option<String> {
        let text = self.read_text(path)?;
        let chosen = text.split_whitespace().find_map(|word| {
            let inner = |open, close| word.strip_prefix(open)?.strip_suffix(close);
            inner('[', ']').or_else(|| inner('(', ')'))
        });
        Some(chosen.unwrap_or(&text).to_owned())
    }
}

/// The value of the first line `name: value` of a text.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    fields(text).find_map(|(key, value)| (key == name).then_some(value))
}

/// All lines `name: value` of a text, trimmed.
pub(super) fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(key, value)| (key.trim(), value.trim()))
}

/// A machine of a few files, which lasts as long as its directory.
#[cfg(test)]
pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, SystemRoot) {
    let directory = tempfile::tempdir().unwrap();
    let root = SystemRoot::at(directory.path());
    for (path, text) in files {
        let path = root.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (directory, root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_take_what_is_sound() {
        let (_directory, root) = tree(&[
            ("/a/number", " 42\n"),
            ("/a/cpus", "0-3,6\n"),
            ("/a/none", "\n"),
            ("/a/model", "Board B\0"),
            ("/a/enabled", "always [madvise] never\n"),
            ("/a/preempt", "none voluntary (full)"),
            ("/a/plain", "performance\n"),
            ("/a/meminfo", "MemTotal:  12 kB\nMemFree: 3 kB\n"),
        ]);
        assert_eq!(root.read_number("/a/number"), Some(42));
        assert_eq!(root.read_number::<u64>("a/cpus"), None);
        assert_eq!(root.cpu_list("/a/cpus").unwrap().0, [0, 1, 2, 3, 6]);
        assert_eq!(root.cpu_list("/a/none").unwrap().0, [0u32; 0]);
        assert_eq!(root.read_text("/a/model").as_deref(), Some("Board B"));
        assert_eq!(root.choice("/a/enabled").as_deref(), Some("madvise"));
        assert_eq!(root.choice("/a/preempt").as_deref(), Some("full"));
        assert_eq!(root.choice("/a/plain").as_deref(), Some("performance"));
        assert_eq!(root.field("/a/meminfo", "MemFree").as_deref(), Some("3 kB"));
    }

    #[test]
    fn what_is_missing_is_none() {
        let (_directory, root) = tree(&[]);
        assert_eq!(root.read_text("/proc/stat"), None);
        assert_eq!(root.read_number::<i64>("/proc/stat"), None);
        assert_eq!(root.cpu_list("/proc/stat"), None);
        assert!(root.list_names("/sys").is_empty());
        assert!(!root.exists("/sys") && !root.is_real());
    }

    #[test]
    fn numbered_entries_are_in_order() {
        let (_directory, root) =
            tree(&[("/n/node10/x", ""), ("/n/node2/x", ""), ("/n/nodes", ""), ("/n/power", "")]);
        let expected = [(2, "/n/node2".to_owned()), (10, "/n/node10".to_owned())];
        assert_eq!(root.numbered("/n", "node"), expected);
        assert_eq!(root.list_names("/n"), ["node2", "nodes", "power", "node10"]);
    }
}
