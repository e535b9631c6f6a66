//! Private instance of binderfs: it is mounted nowhere, so no other process sees it and nothing of it remains when its
//! last descriptor is closed.
//!
//! Sources: Documentation/admin-guide/binderfs.rst; fsopen(2), fsmount(2).

use super::abi::{BinderfsDevice, CTL_ADD};
use super::driver::call_ioctl;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::{Errno, Result};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// A detached instance of binderfs.
#[derive(Debug)]
pub struct BinderfsInstance(OwnedFd);

impl BinderfsInstance {
    /// Makes a binderfs instance.
    ///
    /// # Errors
    /// ENODEV: the kernel has no binderfs; ENOSYS: it is older than 5.2;
    /// EPERM: only root may.
    pub fn create() -> Result<BinderfsInstance> {
        let context = fsopen(c"binder", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        Ok(BinderfsInstance(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?))
    }

    /// Adds a device, and returns a descriptor that names it (`O_PATH`).
    ///
    /// # Errors
    /// ENAMETOOLONG; EEXIST; ENOSPC: no more devices are allowed.
    pub fn add_device(&self, name: &str) -> Result<OwnedFd> {
        let mut device = named_device(name)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let control_file = openat(&self.0, c"binder-control", flags, Mode::empty())?;
        // SAFETY: the driver reads and writes a binderfs_device.
        unsafe { call_ioctl(&control_file, CTL_ADD, &mut device)? };
        openat(&self.0, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    }
}

fn named_device(name: &str) -> Result<BinderfsDevice> {
    let mut device = BinderfsDevice { name: [0; 256], major: 0, minor: 0 };
    // The last byte ends the name.
    let room = device.name[..255].get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?;
    room.copy_from_slice(name.as_bytes());
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_byte_behind_it_or_is_refused() {
        assert_eq!(named_device("abc").unwrap().name[..4], *b"abc\0");
        assert_eq!(named_device(&"x".repeat(255)).unwrap().name[255], 0);
        assert_eq!(named_device(&"x".repeat(256)).unwrap_err(), Errno::NAMETOOLONG);
    }
}
