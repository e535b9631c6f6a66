//! The modes of a terminal that carries messages: raw, or lines.
//!
//! Sources: termios(3), and `drivers/tty/n_tty.c` for the cost of a line.

use rustix::fd::AsFd;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    self, ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector,
    SpecialCodeIndex, Termios,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Changed part of the modes of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    input: u32,
    output: u32,
    control: u32,
    local: u32,
    least: u8,
    time: u8,
}

impl Modes {
    /// Reads the modes of a terminal.
    ///
    /// # Errors
    /// The descriptor is no terminal, or the terminal is disconnected.
    pub fn of_terminal(terminal: impl AsFd) -> io::Result<Modes> {
        Ok(Modes::from(&termios::tcgetattr(terminal)?))
    }

    /// Returns the modes that pass each byte through unchanged, at once, without echo.
    #[must_use]
    pub fn raw(self) -> Modes {
        let input = InputModes::IGNBRK
            | InputModes::BRKINT
            | InputModes::PARMRK
            | InputModes::INPCK
            | InputModes::ISTRIP
            | InputModes::INLCR
            | InputModes::IGNCR
            | InputModes::ICRNL
            | InputModes::IUCLC
            | InputModes::IXON
            | InputModes::IXOFF;
        let local = LocalModes::ECHO
            | LocalModes::ECHONL
            | LocalModes::ICANON
            | LocalModes::ISIG
            | LocalModes::IEXTEN;
        let eight = (ControlModes::CS8 | ControlModes::CREAD).bits();
        Modes {
            input: self.input & !input.bits(),
            output: self.output & !OutputModes::OPOST.bits(),
            control: self.control & !(ControlModes::CSIZE | ControlModes::PARENB).bits() | eight,
            local: self.local & !local.bits(),
            least: 1,
            time: 0,
        }
    }

    /// Returns the modes of a terminal in which a shell runs, but without echo: a remote that echoes would echo the
    /// echo again.
    #[must_use]
    pub fn cooked_without_echo(self) -> Modes {
        let input = InputModes::ICRNL | InputModes::IXON;
        let output = OutputModes::OPOST | OutputModes::ONLCR;
        let local = LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
        let raw = self.raw();
        Modes {
            input: raw.input | input.bits(),
            output: raw.output | output.bits(),
            local: raw.local | local.bits(),
            ..raw
        }
    }

    /// Sets the modes, and verifies them, as the kernel reports success if it could make any of the changes.
    ///
    /// # Errors
    /// The terminal is disconnected, or has other modes afterwards.
    pub fn apply_to(&self, terminal: impl AsFd) -> io::Result<()> {
        let mut modes: Termios = termios::tcgetattr(&terminal)?;
        modes.input_modes = InputModes::from_bits_retain(self.input);
        modes.output_modes = OutputModes::from_bits_retain(self.output);
        modes.control_modes = ControlModes::from_bits_retain(self.control);
        modes.local_modes = LocalModes::from_bits_retain(self.local);
        modes.special_codes[SpecialCodeIndex::VMIN] = self.least;
        modes.special_codes[SpecialCodeIndex::VTIME] = self.time;
        // Not after output has drained: that may never be.
        termios::tcsetattr(&terminal, OptionalActions::Now, &modes)?;
        let found = Modes::of_terminal(terminal)?;
        if found == *self {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the terminal does not take the modes: asked {self:x?}, has {found:x?}"
        )))
    }
}

impl From<&Termios> for Modes {
    fn from(modes: &Termios) -> Modes {
        Modes {
            input: modes.input_modes.bits(),
            output: modes.output_modes.bits(),
            control: modes.control_modes.bits(),
            local: modes.local_modes.bits(),
            least: modes.special_codes[SpecialCodeIndex::VMIN],
            time: modes.special_codes[SpecialCodeIndex::VTIME],
        }
    }
}

/// Flags to open a terminal of messages: it must not become the controlling terminal, nor wait for a modem, nor be
/// inherited by children.
pub const OPEN: OFlags = OFlags::RDWR.union(OFlags::NOCTTY).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Ends the exclusive use of a terminal, and drops what was written and has not gone: its last close would wait for
/// that.
pub fn release_terminal(terminal: impl AsFd) {
    let _ = termios::tcflush(&terminal, QueueSelector::OFlush);
    // A terminal that is gone needs neither.
    let _ = termios::ioctl_tiocnxcl(&terminal);
}

/// Restores the modes of a terminal, unless another process changed them since.
///
/// # Errors
/// The terminal exists, but refuses.
pub(crate) fn restore(path: &Path, before: &Modes, ours: &Modes) -> io::Result<()> {
    let restored = fs::open(path, OPEN, Mode::empty()).map_err(io::Error::from).and_then(|terminal| {
        if Modes::of_terminal(&terminal)? == *ours { before.apply_to(&terminal) } else { Ok(()) }
    });
    match restored {
        // It went, and its modes with it.
        Err(error)
            if matches!(Errno::from_io_error(&error), Some(Errno::IO | Errno::NXIO | Errno::NODEV)) =>
        {
            Ok(())
        }
        restored => restored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo_terminal::PseudoTerminal;

    #[test]
    fn modes_are_taken_and_put_back_unless_another_process_was_faster() {
        let terminal = PseudoTerminal::open().unwrap();
        let usual = Modes::of_terminal(&terminal.slave).unwrap().cooked_without_echo();
        usual.apply_to(&terminal.slave).unwrap();
        for ours in [usual.raw(), Modes { input: 0, ..usual }] {
            assert_ne!(ours, usual);
            ours.apply_to(&terminal.slave).unwrap();
            assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), ours);
            restore(&terminal.path, &usual, &ours).unwrap();
            assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), usual);
        }
        let theirs = Modes { time: 7, ..usual };
        theirs.apply_to(&terminal.slave).unwrap();
        restore(&terminal.path, &usual, &usual.raw()).unwrap();
        assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), theirs);
    }

    #[test]
    fn modes_of_a_terminal_that_is_not_there_are_not_put_back() {
        // A number that no terminal has: that of a closed one may soon be another's.
        let path = Path::new("/dev/pts/4294967295");
        let usual = Modes::of_terminal(PseudoTerminal::open().unwrap().slave).unwrap();
        let error = restore(path, &usual, &usual).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn modes_that_a_terminal_does_not_take_are_an_error() {
        let terminal = PseudoTerminal::open().unwrap();
        let raw = Modes::of_terminal(&terminal.slave).unwrap().raw();
        // A pseudo terminal has eight bits, always.
        let seven =
            Modes { control: raw.control & !ControlModes::CSIZE.bits() | ControlModes::CS7.bits(), ..raw };
        assert!(seven.apply_to(&terminal.slave).unwrap_err().to_string().contains("does not take"));
        assert!(Modes::of_terminal(tempfile::tempfile().unwrap()).is_err());
    }
}
