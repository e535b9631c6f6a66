//! A process's opening of a binder device.

use super::abi::*;
use crate::mapping::MemoryMapping;
use crate::syscall::syscall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::mm::{MapFlags, ProtFlags};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reason why a device cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinderOpenError {
    /// The device cannot be opened.
    Open(Errno),
    /// The device does not report a version: it is no binder device.
    NoBinder(Errno),
    /// The device speaks another protocol than [`PROTOCOL`].
    Protocol(i32),
    /// The buffer of the device cannot be mapped.
    Map(Errno),
}

/// An open device with its buffer mapped. It belongs to the process that
/// opened it: a child has to open its own.
#[derive(Debug)]
pub struct BinderDriver {
    device: OwnedFd,
    /// Mapped buffer of the device; read only, as the kernel requires.
    buffer: MemoryMapping,
    id: u64,
}

/// Number of the next opening. It distinguishes the buffers of one opening from those of another.
static OPENED: AtomicU64 = AtomicU64::new(1);

impl BinderDriver {
    /// Opens a device and maps `bytes` (the driver takes at most 4 MiB) for data from other processes; half of them for
    /// one-way transactions.
    ///
    /// # Errors
    /// See [`BinderOpenError`].
    pub fn open_device(device: &Path, bytes: usize) -> std::result::Result<BinderDriver, BinderOpenError> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let device = rustix::fs::open(device, flags, Mode::empty()).map_err(BinderOpenError::Open)?;
        let mut version = 0i32;
        // SAFETY: the driver writes one i32; what is no binder device refuses.
        unsafe { call_ioctl(&device, VERSION, &mut version) }.map_err(BinderOpenError::NoBinder)?;
        speaks(version)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let buffer =
            MemoryMapping::file(&device, 0, bytes, ProtFlags::READ, flags).map_err(BinderOpenError::Map)?;
        Ok(BinderDriver { device, buffer, id: OPENED.fetch_add(1, Ordering::Relaxed) })
    }

    /// Makes the process the context manager of the device, which other processes reach as [`MANAGER`](super::MANAGER);
    /// `flags` are those of a node.
    ///
    /// # Errors
    /// EBUSY: the device has a context manager; EPERM: it once had the context manager of another user.
    pub fn become_manager(&self, flags: u32) -> Result<()> {
        let mut object = FlatObject { kind: TYPE_BINDER, flags, ..FlatObject::default() };
        // SAFETY: the driver reads a flat_binder_object.
        match unsafe { call_ioctl(&self.device, SET_CONTEXT_MGR_EXT, &mut object) } {
            // Kernels before 5.3 know the older form only.
            Err(Errno::INVAL) => {
                // SAFETY: the driver reads nothing, or an i32.
                unsafe { call_ioctl(&self.device, SET_CONTEXT_MGR, &mut 0i32) }
            }
            outcome => outcome,
        }
    }

    /// Sets how many threads the driver may ask for; without this call it asks for none.
    ///
    /// # Errors
    /// The device is no binder; a binder returns no error.
    pub fn set_max_threads(&self, most: u32) -> Result<()> {
        // SAFETY: the driver reads a u32.
        unsafe { call_ioctl(&self.device, SET_MAX_THREADS, &mut { most }) }
    }

    /// Makes the driver forget the calling thread, which it otherwise does only
    /// when the process ends.
    ///
    /// # Errors
    /// The device is no binder; a binder returns no error.
    pub fn thread_exit(&self) -> Result<()> {
        // SAFETY: the driver reads nothing, or an i32.
        unsafe { call_ioctl(&self.device, THREAD_EXIT, &mut 0i32) }
    }

    /// Returns the reason why the last transaction of the calling thread failed, where the kernel reports it (Linux 6.0
    /// on).
    pub fn extended_error(&self) -> Option<ExtendedError> {
        let mut error = ExtendedError::default();
        // SAFETY: the driver writes a binder_extended_error.
        unsafe { call_ioctl(&self.device, GET_EXTENDED_ERROR, &mut error) }.ok()?;
        (error.error != 0).then_some(error)
    }

    /// Freezes or thaws the binder of a process. The driver refuses calls to a frozen process. It waits a second at
    /// most until the calls under way have ended: a client can have its reply before the server has ended the call.
    ///
    /// # Errors
    /// EINVAL: the process has no binder open; EAGAIN: calls were still under way.
    pub fn freeze(&self, pid: u32, frozen: bool) -> Result<()> {
        let mut freeze = Freeze { pid, enable: frozen.into(), timeout_ms: 1000 };
        // SAFETY: the driver reads a binder_freeze_info.
        unsafe { call_ioctl(&self.device, FREEZE, &mut freeze) }
    }

    /// Writes commands and reads returns (`BINDER_WRITE_READ`).
    ///
    /// # Safety
    /// The addresses and sizes of `io` are of live memory, and so are those in
    /// the commands; no buffer that is given back is still borrowed.
    #[inline]
    pub(super) unsafe fn write_read(&self, io: &mut WriteRead) -> Result<()> {
        // SAFETY: a binder_write_read, for which the caller vouches.
        unsafe { call_ioctl(&self.device, WRITE_READ, io) }
    }

    /// Returns the offset of an address in the mapping, if `bytes` from there are in it.
    pub(super) fn mapping_offset(&self, address: u64, bytes: u64) -> Option<usize> {
        let at = usize::try_from(address).ok()?.checked_sub(self.buffer.start.as_ptr() as usize)?;
        (usize::try_from(bytes).ok()? <= self.buffer.length.checked_sub(at)?).then_some(at)
    }

    /// The address of a place in the mapping.
    pub(super) fn address_at(&self, at: usize) -> u64 {
        self.buffer.start.as_ptr() as u64 + at as u64
    }

    /// Bytes of the mapping.
    ///
    /// # Safety
    /// The range is that of a buffer that was received and is not given back,
    /// so that the kernel does not write there.
    #[inline]
    pub(super) unsafe fn slice(&self, at: usize, bytes: usize) -> &[u8] {
        assert!(at <= self.buffer.length && bytes <= self.buffer.length - at);
        // SAFETY: inside of the mapping; not written meanwhile, says the caller.
        unsafe { std::slice::from_raw_parts(self.buffer.start.as_ptr().add(at), bytes) }
    }

    /// Number of this opening, unique in the process.
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl AsFd for BinderDriver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Refuses a protocol that is not spoken here.
fn speaks(version: i32) -> std::result::Result<(), BinderOpenError> {
    if version == PROTOCOL { Ok(()) } else { Err(BinderOpenError::Protocol(version)) }
}

/// Calls ioctl(2) on the device.
///
/// # Safety
/// `argument` is what the request reads and writes.
#[inline]
pub(super) unsafe fn call_ioctl<T>(device: &impl AsFd, request: u32, argument: &mut T) -> Result<()> {
    let device = device.as_fd().as_raw_fd() as usize;
    let argument = ptr::from_mut(argument) as usize;
    // SAFETY: as the caller vouches.
    unsafe { syscall(libc::SYS_ioctl, [device, request as usize, argument, 0, 0, 0]) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_protocol_is_refused_by_its_number() {
        assert_eq!(speaks(8), Ok(()));
        assert_eq!(speaks(7), Err(BinderOpenError::Protocol(7)));
        assert_eq!(speaks(9), Err(BinderOpenError::Protocol(9)));
    }

    #[test]
    fn what_is_no_binder_is_told_apart_from_what_is_not_there() {
        let open = |path: &str| BinderDriver::open_device(Path::new(path), 4096).unwrap_err();
        assert_eq!(open("/nonexistent/binder"), BinderOpenError::Open(Errno::NOENT));
        assert_eq!(open("/dev/null"), BinderOpenError::NoBinder(Errno::NOTTY));
    }
}
