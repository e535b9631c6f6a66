//! QEMU settings for a remote that is an image by itself: the image of `responders/image`.
//!
//! The window is a file: QEMU shows it to the image as the memory of an ivshmem device, the host maps it. [`control`]
//! has the words by which the host directs the image.

use crate::{RpmsgWindow, control};
use core::fmt;

/// The program that runs the image.
pub const QEMU: &str = "qemu-system-x86_64";

/// Size of the window, bytes: a power of two, as a device's memory must be. The link is at the beginning, laid out
/// according to the table, and the control words are at the end.
pub const WINDOW: usize = 0x10_0000;

/// The layout that fits any host; others are read from the table.
pub const LAYOUT: RpmsgWindow = RpmsgWindow::OPENAMP;

const _: () = assert!(WINDOW.is_power_of_two() && LAYOUT.size + control::SIZE <= WINDOW);

/// Port to which the image writes its outcome at the end.
pub const EXIT_PORT: u16 = 0xF4;
/// Exit status of QEMU when the host ordered the image to stop.
pub const STOPPED: i32 = 33;
/// Exit status of QEMU when the image panicked: the serial line gives the reason.
pub const PANICKED: i32 = 35;

/// Arguments of QEMU in any case: a minimal PC, whose serial line is standard output. To be added are `-accel`,
/// `-kernel`, and the device: [`PLAIN`] or [`DOORBELL`].
pub const ARGUMENTS: [&str; 13] = [
    "-machine",
    "q35",
    "-m",
    "32",
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
    "-display",
    "none",
    "-serial",
    "stdio",
    "-device",
    "isa-debug-exit,iobase=0xf4,iosize=4",
];

/// The device where both sides poll; to be added is `-object`: see [`Backend`].
pub const PLAIN: [&str; 2] = ["-device", "ivshmem-plain,memdev=window"];

/// The device where each side can interrupt the other; to be added is `-chardev`: see [`ChardevSocket`].
pub const DOORBELL: [&str; 2] = ["-device", "ivshmem-doorbell,chardev=doorbell,vectors=1"];

/// Number of the host among the sides that share the memory: the image rings its doorbell.
pub const HOST: u16 = 0;
/// Number of the image among the sides that share the memory.
pub const GUEST: u16 = 1;

/// The accelerator that every machine has; one virtual CPU runs in a thread of its own.
pub const EMULATED: &str = "tcg,thread=multi";

/// The value of `-object`: the window is a file.
#[derive(Debug, Clone, Copy)]
pub struct Backend<'a> {
    /// The file, of [`WINDOW`] bytes.
    pub path: &'a str,
}

impl fmt::Display for Backend<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let path = Value(self.path);
        write!(f, "memory-backend-file,id=window,share=on,size={WINDOW},mem-path={path}")
    }
}

/// The value of `-chardev`: the process that listens at a socket hands out the window and the kicks.
#[derive(Debug, Clone, Copy)]
pub struct ChardevSocket<'a> {
    /// Path of the socket.
    pub path: &'a str,
}

impl fmt::Display for ChardevSocket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "socket,id=doorbell,path={}", Value(self.path))
    }
}

/// The value of an option: a comma ends it, unless there are two.
struct Value<'a>(&'a str);

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut parts = self.0.split(',');
        f.write_str(parts.next().unwrap_or_default())?;
        parts.try_for_each(|part| write!(f, ",,{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_commas() {
        let text = Backend { path: "/a,b" }.to_string();
        assert!(text.ends_with("mem-path=/a,,b"), "{text}");
    }
}
