//! The device of openEuler's MCS: a client OS on a CPU that Linux does not use, in
//! reserved memory. The module is for arm64; no test here has met it.
//!
//! Source: mcs_km of <https://gitee.com/openeuler/mcs>: ioctl of type `A`, mmap by
//! physical address, poll for an interrupt of the client. The module has the first three
//! requests since 2023, the fourth since March 2024.

use crate::syscall::{check_errno, is_readable};
use crate::window::MemoryWindow;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, major, minor, open};
use rustix::ioctl::{Opcode, opcode};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Requests of the device. All are declared as writing an `int`, whatever they take.
const SEND_IPI: Opcode = opcode::write::<i32>(b'A', 0);
const CPU_ON: Opcode = opcode::write::<i32>(b'A', 1);
const AFFINITY_INFO: Opcode = opcode::write::<i32>(b'A', 2);
const QUERY_MEMORY: Opcode = opcode::write::<i32>(b'A', 3);

/// Argument of the first three requests.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct McsCpuArgument {
    cpu: u32,
    /// Physical address where the CPU begins to execute.
    entry: u64,
}

/// Memory that Linux leaves alone.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Physical address of the memory.
    pub address: u64,
    /// Size of the memory, bytes.
    pub size: u64,
}

impl Reserved {
    /// Refuses a range that is not wholly in the reserved memory.
    fn check_contains(&self, address: u64, size: u64) -> io::Result<()> {
        let place = address.checked_sub(self.address);
        let room = place.and_then(|place| self.size.checked_sub(place));
        if room.is_some_and(|room| size <= room) { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

/// Access to a board: its device, or a substitute in tests.
pub trait McsBoard {
    /// Asks the firmware whether a CPU is off (PSCI AFFINITY_INFO).
    ///
    /// # Errors
    /// The CPU is not off, or there is no such CPU: the device does not distinguish the two.
    fn check_off(&self, cpu: u32) -> io::Result<()>;

    /// Returns the first of the memories that are reserved; `None` for a module of before March 2024, which has no such
    /// request.
    ///
    /// # Errors
    /// No memory is reserved.
    fn reserved(&self) -> io::Result<Option<Reserved>>;

    /// Maps reserved memory; offsets in the window are physical addresses.
    ///
    /// # Errors
    /// The memory is not reserved, or does not begin with a page.
    fn map_memory(&self, address: usize, size: usize) -> io::Result<MemoryWindow>;

    /// Switches a CPU on, to begin at a physical address (PSCI CPU_ON).
    ///
    /// # Errors
    /// The address is not reserved, as far as the module says; the firmware refuses.
    fn start_cpu(&self, cpu: u32, entry: u64) -> io::Result<()>;

    /// Interrupts the client on a CPU.
    ///
    /// # Errors
    /// There is no error for a CPU that was started.
    fn notify(&self, cpu: u32) -> io::Result<()>;

    /// Sleeps until the client interrupts, or has interrupted since the last call. Returns true if it did.
    ///
    /// # Errors
    /// The errors of poll(2).
    fn wait_for_client(&self, timeout: Duration) -> io::Result<bool>;
}

/// The device. Nothing but reserved memory is mapped through it, or run: no memory of Linux.
#[derive(Debug)]
pub struct McsDevice(OwnedFd);

impl McsDevice {
    /// Opens the device, usually `/dev/mcs`.
    ///
    /// # Errors
    /// There is no module, it is the device of another one, or this process has not the capability `CAP_SYS_RAWIO`.
    pub fn open(path: &Path) -> io::Result<McsDevice> {
        // Synchronous: what is mapped is not cached.
        let flags = OFlags::RDWR | OFlags::SYNC | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let device = open(path, flags, Mode::empty())?;
        check_kind(&device)?;
        Ok(McsDevice(device))
    }

    fn issue_request<T>(&self, request: Opcode, argument: &mut T) -> io::Result<()> {
        // SAFETY: the requests above read a `Cpu` or write a `Reserved`: the callers give the one of the request.
        check_errno(unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument as *mut T) }).map(drop)
    }

    /// Refuses a range that is not reserved, where the module says what is. It refuses to map such a range itself.
    fn check_reserved(&self, address: u64, size: u64) -> io::Result<()> {
        self.reserved()?.map_or(Ok(()), |reserved| reserved.check_contains(address, size))
    }
}

impl McsBoard for McsDevice {
    fn check_off(&self, cpu: u32) -> io::Result<()> {
        self.issue_request(AFFINITY_INFO, &mut McsCpuArgument { cpu, entry: 0 })
    }

    fn start_cpu(&self, cpu: u32, entry: u64) -> io::Result<()> {
        self.check_reserved(entry, 1)?;
        self.issue_request(CPU_ON, &mut McsCpuArgument { cpu, entry })
    }

    fn notify(&self, cpu: u32) -> io::Result<()> {
        self.issue_request(SEND_IPI, &mut McsCpuArgument { cpu, entry: 0 })
    }

    fn reserved(&self) -> io::Result<Option<Reserved>> {
        let mut reserved = Reserved::default();
        if_known(self.issue_request(QUERY_MEMORY, &mut reserved).map(|()| reserved))
    }

    fn map_memory(&self, address: usize, size: usize) -> io::Result<MemoryWindow> {
        self.check_reserved(address as u64, size as u64)?;
        MemoryWindow::device(self.0.try_clone()?, address, size)
    }

    fn wait_for_client(&self, timeout: Duration) -> io::Result<bool> {
        // To poll is to take the interrupt: there is nothing to read.
        match is_readable(&self.0, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            outcome => outcome,
        }
    }
}

/// Returns the answer to a request, or `None` if the module has no such request.
fn if_known<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => Ok(None),
        answer => answer.map(Some),
    }
}

/// Refuses a device of another module, which could take the same requests for its own.
fn check_kind(device: &OwnedFd) -> io::Result<()> {
    let about = fstat(device)?;
    let number = (major(about.st_rdev), minor(about.st_rdev));
    let is_device = FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice;
    let link = std::fs::read_link(format!("/sys/dev/char/{}:{}", number.0, number.1));
    let is_mcs = is_device && link.is_ok_and(|link| link.file_name().is_some_and(|name| name == NAME));
    is_mcs
        .then_some(())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is no device of mcs_km"))
}

/// Name of the device in /sys, independent of the name of its file.
const NAME: &str = "mcs";

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn requests_and_arguments_are_those_of_the_module() {
        assert_eq!(
            [SEND_IPI, CPU_ON, AFFINITY_INFO, QUERY_MEMORY],
            [0x4004_4100, 0x4004_4101, 0x4004_4102, 0x4004_4103]
        );
        assert_eq!(
            (size_of::<McsCpuArgument>(), offset_of!(McsCpuArgument, cpu), offset_of!(McsCpuArgument, entry)),
            (16, 0, 8)
        );
        assert_eq!((size_of::<Reserved>(), offset_of!(Reserved, size)), (16, 8));
    }

    #[test]
    fn only_reserved_memory_is_for_the_client() {
        let reserved = Reserved { address: 0x7000_0000, size: 0x1000 };
        for (address, size) in [(0x7000_0000, 0x1000), (0x7000_0FFF, 1), (0x7000_1000, 0)] {
            assert!(reserved.check_contains(address, size).is_ok(), "{size} bytes at {address:#x}");
        }
        for (address, size) in
            [(0x6FFF_FFFF, 2), (0x7000_0000, 0x1001), (0x7000_1000, 1), (u64::MAX, u64::MAX)]
        {
            assert!(reserved.check_contains(address, size).is_err(), "{size} bytes at {address:#x}");
        }
        assert!(Reserved::default().check_contains(0, 1).is_err());
    }

    #[test]
    fn a_module_without_a_request_is_told_from_one_that_refuses() {
        let answer = |number: i32| if_known::<u8>(Err(io::Error::from_raw_os_error(number)));
        assert!([libc::EINVAL, libc::ENOTTY].into_iter().all(|number| matches!(answer(number), Ok(None))));
        assert!([libc::ENODEV, libc::EFAULT, libc::EPERM].into_iter().all(|number| answer(number).is_err()));
        assert!(matches!(if_known(Ok(7)), Ok(Some(7))));
    }

    #[test]
    fn what_is_no_such_device_refuses() {
        let device = McsDevice(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap());
        assert!(device.check_off(0).is_err() && device.start_cpu(0, 0).is_err() && device.notify(0).is_err());
        assert!(matches!(device.reserved(), Ok(None)), "a device without the request answers ENOTTY");
        assert_eq!(McsDevice::open(Path::new("/nonexistent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_device_of_another_module_is_refused() {
        for path in ["/dev/null", "/dev/zero", "/dev/full"] {
            let error = McsDevice::open(Path::new(path)).unwrap_err();
            assert!(error.to_string().contains("mcs_km"), "{error}");
        }
    }
}
