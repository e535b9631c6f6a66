//! Exclusive use and device number of a terminal (ioctl_tty(2)).

use rustix::fd::{AsFd, AsRawFd};

/// Returns true if a process has taken a terminal for itself (`TIOCEXCL`); false of any other descriptor.
pub fn is_exclusive(terminal: impl AsFd) -> bool {
    let mut exclusive: libc::c_int = 0;
    // SAFETY: TIOCGEXCL writes an int, or the kernel refuses the descriptor.
    let asked = unsafe {
        libc::ioctl(terminal.as_fd().as_raw_fd(), TIOCGEXCL as _, std::ptr::from_mut(&mut exclusive))
    };
    asked == 0 && exclusive != 0
}

/// Request that asks for the mark: `_IOR('T', 0x40, int)`, in the form that x86 and ARM share.
const TIOCGEXCL: u32 = 0x8004_5440;

/// Returns the device number of a terminal, as in `/proc/PID/stat`; `None` for any other descriptor. Opened as
/// `/dev/tty` or `/dev/console`, it is the terminal behind that name.
pub fn device_number(terminal: impl AsFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGDEV writes an unsigned int, or the kernel refuses the descriptor.
    let asked =
        unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), TIOCGDEV as _, std::ptr::from_mut(&mut number)) };
    (asked == 0).then_some(number)
}

/// Request that asks for the number: `_IOR('T', 0x32, unsigned int)`, in the form that x86 and ARM share.
const TIOCGDEV: u32 = 0x8004_5432;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, openpt, unlockpt};
    use rustix::termios::{ioctl_tiocexcl, ioctl_tiocnxcl};

    #[test]
    fn a_terminal_is_exclusive_while_it_is_taken() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&master).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
        assert!(!is_exclusive(&terminal));
        ioctl_tiocexcl(&terminal).unwrap();
        assert!(is_exclusive(&terminal) && !is_exclusive(&master));
        ioctl_tiocnxcl(&terminal).unwrap();
        assert!(!is_exclusive(&terminal));
        assert!(!is_exclusive(std::fs::File::open("/").unwrap()));
    }

    #[test]
    fn the_number_of_a_terminal_is_that_of_its_device() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&master).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
        let device = rustix::fs::fstat(&terminal).unwrap().st_rdev;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let number = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
        assert_eq!(device_number(&terminal), Some(number));
        assert_eq!(device_number(std::fs::File::open("/").unwrap()), None);
    }
}
