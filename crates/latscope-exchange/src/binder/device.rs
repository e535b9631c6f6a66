//! A binder device, and why it cannot be used.

use super::super::transaction::TransportSetupError;
use latscope_core::units::format_size;
use latscope_machine::binder_presence::{self as presence, BinderModuleState, Holder};
use latscope_os::binder::{BinderDriver, BinderOpenError, PROTOCOL};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// A binder device by a descriptor that names it (`O_PATH`): it may be one that
/// has no path.
#[derive(Debug)]
pub struct BinderDevice {
    descriptor: OwnedFd,
    path: String,
}

impl BinderDevice {
    /// The device of this path, if there is one.
    pub fn from_path(path: &str) -> Option<BinderDevice> {
        let descriptor = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(BinderDevice { descriptor, path: path.to_owned() })
    }

    /// A device that is no file of this system's, called `path`.
    pub(super) fn from_owned_fd(descriptor: OwnedFd, path: &str) -> BinderDevice {
        BinderDevice { descriptor, path: path.to_owned() }
    }

    /// The device that another process found.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn from_borrowed_fd(descriptor: impl AsFd, path: &str) -> io::Result<BinderDevice> {
        Ok(BinderDevice::from_owned_fd(descriptor.as_fd().try_clone_to_owned()?, path))
    }

    /// Returns the path, which is its name in messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Duplicates the descriptor of the device, for another process.
    pub(super) fn descriptor(&self) -> Result<OwnedFd, TransportSetupError> {
        self.descriptor.try_clone().map_err(|error| TransportSetupError {
            reason: format!("no descriptor for {}: {error}", self.path),
            remedy: "ulimit -n".to_owned(),
        })
    }

    /// Returns the device number, which does not depend on the path.
    pub(super) fn device_number(&self) -> Option<u64> {
        fstat(&self.descriptor).ok().map(|status| status.st_rdev)
    }

    /// Opens the device for this process, with `bytes` mapped.
    ///
    /// # Errors
    /// The device cannot be used, for the returned reason.
    pub fn open_driver(&self, bytes: usize) -> Result<BinderDriver, TransportSetupError> {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        BinderDriver::open_device(Path::new(&path), bytes).map_err(|refused| self.open_error(refused, bytes))
    }

    fn open_error(&self, refused: BinderOpenError, bytes: usize) -> TransportSetupError {
        let path = &self.path;
        let (reason, remedy) = match refused {
            BinderOpenError::Open(Errno::ACCESS | Errno::PERM) => (
                format!("no permission to open {path}{}", owner(path)),
                format!("run as root, or sudo chmod 666 {path}"),
            ),
            BinderOpenError::Open(Errno::NXIO | Errno::NODEV | Errno::NOENT) => (
                format!("{path} is there, but no driver behind it"),
                presence::module(Path::new("/")).remedy(),
            ),
            BinderOpenError::Open(error) => (format!("{path} cannot be opened: {error}"), String::new()),
            BinderOpenError::NoBinder(error) => {
                (format!("{path} is no binder device: {error}"), String::new())
            }
            BinderOpenError::Protocol(version) => (
                format!("{path} speaks version {version} of the binder protocol, this program {PROTOCOL}"),
                "a kernel without CONFIG_ANDROID_BINDER_IPC_32BIT".to_owned(),
            ),
            BinderOpenError::Map(error) => (
                format!("{} of {path} cannot be mapped: {error}", format_size(bytes as u64)),
                if error == Errno::NOMEM { "ulimit -v unlimited".to_owned() } else { String::new() },
            ),
        };
        TransportSetupError { reason, remedy }
    }

    /// Returns the reason why no process can be its context manager now, and a remedy.
    pub(super) fn not_manager(&self, error: Errno) -> TransportSetupError {
        let path = &self.path;
        let (reason, remedy) = match error {
            Errno::BUSY => {
                let holder = presence::manager_of(Path::new("/"), path);
                let remedy = match &holder {
                    Holder::Unknown => {
                        "wait until it ends; find it as root: cat /sys/kernel/debug/binder/state".to_owned()
                    }
                    _ => "wait until it ends, or call what it serves: latscope ipc --service NAME".to_owned(),
                };
                (format!("{path} has a context manager: {holder}"), remedy)
            }
            Errno::PERM => (
                format!("{path} had a context manager of another user, which the driver does not forget"),
                "run as that user, or sudo rmmod binder_linux and load it again".to_owned(),
            ),
            error => (format!("cannot become the context manager of {path}: {error}"), String::new()),
        };
        TransportSetupError { reason, remedy }
    }
}

/// Returns the reason why there is no device at all, and a remedy.
pub(super) fn no_device_error(root: &Path) -> TransportSetupError {
    let module = presence::module(root);
    let reason = match module {
        BinderModuleState::Loaded | BinderModuleState::BuiltIn => {
            "the kernel has binder, but /dev has no binder device"
        }
        BinderModuleState::Loadable => "the binder module is not loaded",
        BinderModuleState::Absent => "this kernel has no binder",
    };
    TransportSetupError { reason: reason.to_owned(), remedy: module.remedy() }
}

/// Returns the owner and mode of a device in words: ` (user 0, group 0, mode 600)`.
fn owner(path: &str) -> String {
    let Ok(status) = std::fs::metadata(path) else { return String::new() };
    let mode = status.permissions().mode() & 0o7777;
    format!(" (user {}, group {}, mode {mode:o})", status.uid(), status.gid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> BinderDevice {
        BinderDevice::from_path("/dev/null").unwrap()
    }

    #[test]
    fn what_is_no_binder_device_is_named() {
        let refused = null().open_driver(4096).unwrap_err();
        assert!(refused.reason.starts_with("/dev/null is no binder device: "), "{refused}");
        assert!(BinderDevice::from_path("/nonexistent/binder").is_none());
    }

    #[test]
    fn every_refusal_names_the_device_and_the_remedy() {
        let told = |refused: BinderOpenError| null().open_error(refused, 1 << 20);
        let version = told(BinderOpenError::Protocol(7));
        assert_eq!(version.reason, "/dev/null speaks version 7 of the binder protocol, this program 8");
        assert!(version.remedy.contains("BINDER_IPC_32BIT"));
        let permission = told(BinderOpenError::Open(Errno::ACCESS));
        assert_eq!(permission.reason, "no permission to open /dev/null (user 0, group 0, mode 666)");
        assert!(permission.remedy.ends_with("chmod 666 /dev/null"));
        let map = told(BinderOpenError::Map(Errno::NOMEM));
        assert!(map.reason.starts_with("1 MiB of /dev/null cannot be mapped: "), "{map}");
        assert_eq!(map.remedy, "ulimit -v unlimited");
    }

    #[test]
    fn a_manager_of_another_user_is_distinguished_from_a_live_one() {
        assert!(null().not_manager(Errno::PERM).reason.contains("of another user"));
        let busy = null().not_manager(Errno::BUSY);
        assert!(busy.reason.contains("has a context manager: ") && busy.remedy.starts_with("wait until"));
    }

    #[test]
    fn a_kernel_without_binder_says_so() {
        let empty = tempfile::tempdir().unwrap();
        let none = no_device_error(empty.path());
        assert_eq!(none.reason, "this kernel has no binder");
        assert!(none.remedy.contains("CONFIG_ANDROID_BINDER_IPC"));
    }
}
