//! Presence of binder on a machine, and its users. All is read from files under a root, so that a directory can stand
//! for any machine.

use std::path::Path;
use std::{fmt, fs};

/// Presence of the driver in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinderModuleState {
    /// The module is loaded.
    Loaded,
    /// The driver is part of the kernel.
    BuiltIn,
    /// The kernel has the driver as a module that is not loaded.
    Loadable,
    /// The kernel has no driver.
    Absent,
}

/// Name of the module, mainline and on Debian.
const MODULE: &str = "binder_linux";

/// Command that loads the module with the devices of Android, for kernels without binderfs.
pub(crate) const MODPROBE: &str = "modprobe binder_linux devices=binder,hwbinder,vndbinder";

impl BinderModuleState {
    /// Remedy that provides devices.
    pub fn remedy(self) -> String {
        match self {
            BinderModuleState::Loadable => MODPROBE.to_owned(),
            BinderModuleState::Loaded => format!("sudo rmmod {MODULE}; sudo {MODPROBE}"),
            BinderModuleState::BuiltIn => {
                "boot with binder.devices=binder,hwbinder,vndbinder, or mount binderfs".to_owned()
            }
            BinderModuleState::Absent => "a kernel with CONFIG_ANDROID_BINDER_IPC".to_owned(),
        }
    }
}

fn read_text(root: &Path, path: &str) -> String {
    let bytes = fs::read(root.join(path.trim_start_matches('/'))).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Presence of the driver in the kernel.
pub fn module(root: &Path) -> BinderModuleState {
    if read_text(root, "/proc/modules").lines().any(|line| line.split_whitespace().next() == Some(MODULE)) {
        return BinderModuleState::Loaded;
    }
    let misc = read_text(root, "/proc/misc");
    let has_device = misc.lines().any(|line| line.split_whitespace().any(|word| word.ends_with("binder")));
    if has_device || binderfs(root) {
        return BinderModuleState::BuiltIn;
    }
    let release = read_text(root, "/proc/sys/kernel/osrelease");
    let listed = read_text(root, &format!("/lib/modules/{}/modules.dep", release.trim()));
    let loadable =
        listed.lines().any(|line| line.split(':').next().is_some_and(|file| file.contains(MODULE)));
    if loadable { BinderModuleState::Loadable } else { BinderModuleState::Absent }
}

/// Returns true if the kernel has binderfs.
pub fn binderfs(root: &Path) -> bool {
    read_text(root, "/proc/filesystems").lines().any(|line| line.split_whitespace().last() == Some("binder"))
}

/// Paths of devices: those of Android, of Anbox's module, and any others in a mounted binderfs.
pub fn devices(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for directory in ["/dev", "/dev/binderfs"] {
        let Ok(entries) = fs::read_dir(root.join(directory.trim_start_matches('/'))) else { continue };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.retain(|name| name.ends_with("binder"));
        found.extend(names.iter().map(|name| format!("{directory}/{name}")));
    }
    found
}

/// Context manager of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The context manager according to debugfs.
    Manager(BinderProcess),
    /// The processes that have the device open, one of which is the context manager.
    OneOf(Vec<BinderProcess>),
    /// A process that is not known.
    Unknown,
}

/// A process with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinderProcess {
    /// Id of the process.
    pub pid: u32,
    /// Name of the process, if it can be read.
    pub name: String,
}

impl fmt::Display for BinderProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "process {}", self.pid),
            name => write!(f, "{name} (process {})", self.pid),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Manager(process) => write!(f, "{process}"),
            Holder::OneOf(processes) if processes.len() == 1 => write!(f, "{}", processes[0]),
            Holder::OneOf(processes) => {
                let processes: Vec<String> = processes.iter().map(ToString::to_string).collect();
                write!(f, "one of {}", processes.join(", "))
            }
            Holder::Unknown => f.write_str("a process that only root can name"),
        }
    }
}

/// Context manager of a device, from debugfs, else from the processes that have the device open.
pub fn manager_of(root: &Path, device: &str) -> Holder {
    let name = device.rsplit('/').next().unwrap_or_default();
    let named = |pid: u32| BinderProcess {
        pid,
        name: read_text(root, &format!("/proc/{pid}/comm")).trim().to_owned(),
    };
    if let Some(pid) = manager_in(&read_text(root, "/sys/kernel/debug/binder/state"), name) {
        return Holder::Manager(named(pid));
    }
    let openers: Vec<BinderProcess> = openers(root, device).into_iter().map(named).collect();
    if openers.is_empty() { Holder::Unknown } else { Holder::OneOf(openers) }
}

/// Processes that have a device open, as far as this user may see.
pub(crate) fn openers(root: &Path, device: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let mut found: Vec<u32> = (entries.flatten())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id() && has_open(root, *pid, device))
        .collect();
    found.sort_unstable();
    found
}

fn has_open(root: &Path, pid: u32, device: &str) -> bool {
    let Ok(entries) = fs::read_dir(root.join(format!("proc/{pid}/fd"))) else { return false };
    entries.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link == Path::new(device)))
}

/// The process with the node of handle 0, whose address and cookie are 0. Its section begins with `proc` and names its
/// device as `context`.
fn manager_in(state: &str, device: &str) -> Option<u32> {
    let (mut pid, mut here) = (None, false);
    for line in state.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["proc", number] => (pid, here) = (number.parse().ok(), false),
            ["context", name] => here = name == device,
            ["node", _, address, cookie, ..] if here && is_zero(address, 'u') && is_zero(cookie, 'c') => {
                return pid;
            }
            _ => {}
        }
    }
    None
}

fn is_zero(word: &str, prefix: char) -> bool {
    word.strip_prefix(prefix)
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit == b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_driver_is_a_module_or_part_of_the_kernel_or_could_be_loaded() {
        let is = |files: &[(&str, &str)]| module(tree(files).path());
        assert_eq!(is(&[("proc/modules", "binder_linux 217088 0 - Live 0x0\n")]), BinderModuleState::Loaded);
        assert_eq!(is(&[("proc/misc", " 58 vndbinder\n 59 binder\n")]), BinderModuleState::BuiltIn);
        assert_eq!(is(&[("proc/filesystems", "nodev\tbinder\n")]), BinderModuleState::BuiltIn);
        let dep = ("lib/modules/6.1.0/modules.dep", "kernel/drivers/android/binder_linux.ko:\n");
        assert_eq!(is(&[("proc/sys/kernel/osrelease", "6.1.0\n"), dep]), BinderModuleState::Loadable);
        assert_eq!(is(&[("proc/sys/kernel/osrelease", "6.2.0\n"), dep]), BinderModuleState::Absent);
        assert_eq!(
            is(&[("proc/modules", "binder 1\n"), ("proc/misc", "1 psaux")]),
            BinderModuleState::Absent
        );
    }

    #[test]
    fn every_state_but_none_has_a_way_to_devices() {
        assert_eq!(BinderModuleState::Loadable.remedy(), MODPROBE);
        assert!(BinderModuleState::Loaded.remedy().starts_with("sudo rmmod binder_linux; "));
        assert!(BinderModuleState::BuiltIn.remedy().contains("binder.devices="));
        assert!(BinderModuleState::Absent.remedy().contains("CONFIG_ANDROID_BINDER_IPC"));
    }

    #[test]
    fn devices_are_found_under_both_roofs() {
        let root = tree(&[
            ("dev/binder", ""),
            ("dev/anbox-hwbinder", ""),
            ("dev/null", ""),
            ("dev/binderfs/binder-control", ""),
            ("dev/binderfs/vndbinder", ""),
        ]);
        let expected = ["/dev/anbox-hwbinder", "/dev/binder", "/dev/binderfs/vndbinder"];
        assert_eq!(devices(root.path()), expected);
    }

    const STATE: &str = "\
binder state:
proc 700
context hwbinder
  node 9: u0000000000000000 c0000000000000000 hs 1 hw 1 ls 1 lw 1 is 0 iw 0 tr 1
proc 512
context binder
  thread 512: l 12 need_return 0 tr 0
  node 4: u0000000000000001 c0000000000000000 hs 1 hw 1 ls 0 lw 0 is 1 iw 1 tr 1 proc 300
proc 300
context binder
  thread 300: l 11 need_return 0 tr 0
  node 1: u0000000000000000 c0000000000000000 hs 1 hw 1 ls 1 lw 1 is 2 iw 2 tr 1 proc 512
  ref 5: desc 1 node 4 s 1 w 1 d 0000000000000000
";

    #[test]
    fn the_manager_is_whose_node_is_zero_on_that_device() {
        assert_eq!(manager_in(STATE, "binder"), Some(300));
        assert_eq!(manager_in(STATE, "hwbinder"), Some(700));
        assert_eq!(manager_in(STATE, "vndbinder"), None);
        assert_eq!(manager_in("proc\ncontext binder\nnode u c", "binder"), None);
    }

    #[test]
    fn who_has_it_is_named_as_well_as_can_be() {
        let state = ("sys/kernel/debug/binder/state", STATE);
        let known = tree(&[state, ("proc/300/comm", "servicemanager\n")]);
        let holder = manager_of(known.path(), "/dev/binder");
        assert_eq!(holder.to_string(), "servicemanager (process 300)");

        let opened =
            tree(&[("proc/41/comm", "waydroid\n"), ("proc/41/fd/.keep", ""), ("proc/x/fd/.keep", "")]);
        symlink("/dev/binder", opened.path().join("proc/41/fd/3")).unwrap();
        assert_eq!(manager_of(opened.path(), "/dev/binder").to_string(), "waydroid (process 41)");
        assert_eq!(manager_of(opened.path(), "/dev/hwbinder"), Holder::Unknown);
        let two = Holder::OneOf(vec![
            BinderProcess { pid: 1, name: "init".to_owned() },
            BinderProcess { pid: 2, name: String::new() },
        ]);
        assert_eq!(two.to_string(), "one of init (process 1), process 2");
    }
}
