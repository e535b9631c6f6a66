//! What the image tells: lines on the first serial port.

use crate::ports;
use core::fmt;

const DATA: u16 = 0x3F8;
const LINE_STATUS: u16 = DATA + 5;
/// In the line status: the next byte can be written.
const EMPTY: u8 = 0x20;
/// A line without a reader must not hold up the image.
const MOST_POLLS: usize = 100_000;

/// The serial line. It is used as it is found: QEMU's needs no set-up.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            let _ = (0..MOST_POLLS).find(|_| ports::read_u8(LINE_STATUS) & EMPTY != 0);
            ports::write_u8(DATA, byte);
        }
        Ok(())
    }
}

/// Writes a line.
macro_rules! say {
    ($($argument:tt)*) => {{
        use core::fmt::Write;
        // The serial line takes everything.
        let _ = writeln!($crate::serial::Serial, $($argument)*);
    }};
}
pub(crate) use say;
