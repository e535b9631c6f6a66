//! A terminal that is taken over for a while: keys as they are typed, the alternate screen, no cursor. It is restored
//! at any end of the run.
//!
//! Sources: termios(3), console_codes(4), xterm's control sequences (private modes 25 and 1049).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{panic, thread};

/// Switches to the alternate screen, cursor hidden.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Switches colours off, shows the cursor, returns to the normal screen and to the saved place of the cursor.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// Saves the place of the cursor.
const SAVE_CURSOR: &[u8] = b"\x1b7";

/// Changed part of the modes of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyModes {
    input: u32,
    local: u32,
    suspend: u8,
    least: u8,
    time: u8,
}

impl KeyModes {
    /// Reads the modes of a terminal.
    ///
    /// # Errors
    /// The descriptor is no terminal.
    pub fn of_terminal(terminal: impl AsFd) -> io::Result<KeyModes> {
        let modes = termios::tcgetattr(terminal)?;
        Ok(KeyModes {
            input: modes.input_modes.bits(),
            local: modes.local_modes.bits(),
            suspend: modes.special_codes[SpecialCodeIndex::VSUSP],
            least: modes.special_codes[SpecialCodeIndex::VMIN],
            time: modes.special_codes[SpecialCodeIndex::VTIME],
        })
    }

    /// Returns the modes for reading keys as they are typed, without echo. Ctrl-C stays a signal; holding the output
    /// (Ctrl-S) or stopping (Ctrl-Z) would leave the screen in disorder, and the coordinator with it.
    fn for_keys(self) -> KeyModes {
        let line = LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        let (input, local) = (self.input & !InputModes::IXON.bits(), self.local & !line.bits());
        KeyModes { input, local, suspend: 0, least: 0, time: 0 }
    }

    fn set_modes(&self, terminal: impl AsFd) -> io::Result<()> {
        let mut modes: Termios = termios::tcgetattr(&terminal)?;
        modes.input_modes = InputModes::from_bits_retain(self.input);
        modes.local_modes = LocalModes::from_bits_retain(self.local);
        modes.special_codes[SpecialCodeIndex::VSUSP] = self.suspend;
        modes.special_codes[SpecialCodeIndex::VMIN] = self.least;
        modes.special_codes[SpecialCodeIndex::VTIME] = self.time;
        // What was typed blindly is not for the shell.
        Ok(termios::tcsetattr(terminal, OptionalActions::Flush, &modes)?)
    }

    /// Leaves the alternate screen of this terminal and restores the modes; has no effect if both are done.
    pub fn leave_screen(&self, mut terminal: impl AsFd + Write) {
        // One that is gone needs neither.
        let _ = terminal.write_all(LEAVE).and_then(|()| terminal.flush());
        // A shell may have been faster, and has modes of its own by now.
        if KeyModes::of_terminal(&terminal).is_ok_and(|modes| modes == self.for_keys()) {
            let _ = self.set_modes(&terminal);
        }
    }
}

/// Returns true if the terminal can only show text, line by line, according to `TERM`.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// The present number of columns of a rewritten line on stderr, as users resize terminals; 80 if the size is not known.
/// `None` if no line can be rewritten, because stderr is no terminal or a dumb one.
pub fn status_width() -> Option<usize> {
    let stderr = io::stderr();
    if is_dumb() || !stderr.is_terminal() {
        return None;
    }
    let columns = termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
    Some(if columns > 0 { columns } else { 80 })
}

/// A terminal that can be taken over. It is restored when this is dropped.
#[derive(Debug)]
pub struct InteractiveTerminal(Arc<TerminalState>);

#[derive(Debug)]
struct TerminalState {
    file: File,
    before: KeyModes,
    taken: AtomicBool,
}

impl InteractiveTerminal {
    /// The terminal of a descriptor that can be read and written.
    ///
    /// # Errors
    /// The descriptor is no terminal, or is not open in both directions.
    pub fn from_fd(fd: OwnedFd) -> io::Result<InteractiveTerminal> {
        let before = KeyModes::of_terminal(&fd)?;
        if !rustix::fs::fcntl_getfl(&fd)?.contains(OFlags::RDWR) {
            return Err(io::Error::other("the terminal is not open for reading and writing"));
        }
        Ok(InteractiveTerminal(Arc::new(TerminalState {
            file: File::from(fd),
            before,
            taken: AtomicBool::new(false),
        })))
    }

    /// The modes of the terminal while it is not taken over.
    pub fn before(&self) -> KeyModes {
        self.0.before
    }

    /// Returns true if this process is in the foreground job of the terminal: a background job must not touch it.
    pub fn in_foreground(&self) -> bool {
        // Not the terminal of our session: no jobs are controlled there.
        termios::tcgetpgrp(&self.0.file).map_or(true, |group| group == rustix::process::getpgrp())
    }

    /// Takes the terminal over.
    ///
    /// # Errors
    /// The terminal is disconnected.
    pub fn take_over(&self) -> io::Result<()> {
        self.0.taken.store(true, Relaxed);
        self.0.before.for_keys().set_modes(&self.0.file)?;
        (&self.0.file).write_all(ENTER)?;
        self.0.leave_before_a_panic_speaks();
        Ok(())
    }

    /// Returns true if the terminal is taken over.
    pub fn is_taken(&self) -> bool {
        self.0.taken.load(Relaxed)
    }

    /// Restores the terminal, if it is taken over.
    pub fn restore_terminal(&self) {
        self.0.restore_if_taken();
    }

    /// Columns and rows of the terminal; `None` if they are not known.
    pub fn window_size(&self) -> Option<(u16, u16)> {
        let Winsize { ws_col, ws_row, .. } = termios::tcgetwinsize(&self.0.file).ok()?;
        (ws_col > 0 && ws_row > 0).then_some((ws_col, ws_row))
    }

    /// Writes to the terminal. Returns `false`, and writes nothing, if the terminal is not taken over, or is slow.
    ///
    /// # Errors
    /// The terminal is disconnected.
    pub fn write_bytes(&self, bytes: &[u8]) -> io::Result<bool> {
        let ready = self.is_taken() && self.poll_now(PollFlags::OUT)?.contains(PollFlags::OUT);
        if ready {
            (&self.0.file).write_all(bytes)?;
        }
        Ok(ready)
    }

    /// The keys typed since the last call.
    ///
    /// # Errors
    /// The terminal is disconnected.
    pub fn keys(&self) -> io::Result<Vec<u8>> {
        let ready = self.poll_now(PollFlags::IN)?;
        let mut keys = [0; 256];
        let length =
            if ready.contains(PollFlags::IN) { rustix::io::read(&self.0.file, &mut keys)? } else { 0 };
        if length == 0 && !ready.difference(PollFlags::IN).is_empty() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(keys[..length].to_vec())
    }

    fn poll_now(&self, flags: PollFlags) -> io::Result<PollFlags> {
        let mut fds = [PollFd::new(&self.0.file, flags)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(fds[0].revents())
    }
}

impl AsFd for InteractiveTerminal {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl Drop for InteractiveTerminal {
    fn drop(&mut self) {
        self.restore_terminal();
    }
}

impl TerminalState {
    /// Restores the terminal; returns true if it was taken over.
    fn restore_if_taken(&self) -> bool {
        let taken = self.taken.swap(false, Relaxed);
        if taken {
            self.before.leave_screen(&self.file);
        }
        taken
    }

    /// Installs a panic hook that restores the terminal first: a message on the alternate screen would be lost with it.
    fn leave_before_a_panic_speaks(self: &Arc<Self>) {
        let held = Arc::clone(self);
        let usual = panic::take_hook();
        let owner = thread::current().id();
        panic::set_hook(Box::new(move |info| {
            let taken = thread::current().id() == owner && held.restore_if_taken();
            usual(info);
            if taken {
                // The guardian, which leaves once more, shall come back to below the message.
                let _ = (&held.file).write_all(SAVE_CURSOR);
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    use std::io::Read;

    /// The two ends of a pseudo-terminal: the user's and that of the program.
    fn pair() -> (File, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let ours = ioctl_tiocgptpeer(&master, flags).unwrap();
        (File::from(master), ours)
    }

    /// Reads the output of the terminal, and asserts that it is this.
    #[track_caller]
    fn saw(master: &mut File, expected: &[&[u8]]) {
        let expected = expected.concat();
        let mut bytes = vec![0; expected.len()];
        master.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected));
    }

    #[test]
    fn what_was_taken_is_left_as_it_was() {
        let (mut master, ours) = pair();
        let before = KeyModes::of_terminal(&ours).unwrap();
        let terminal = InteractiveTerminal::from_fd(ours).unwrap();
        assert_eq!((terminal.before(), terminal.is_taken()), (before, false));
        assert!(!terminal.write_bytes(b"not yet").unwrap());
        terminal.take_over().unwrap();
        assert_eq!(KeyModes::of_terminal(&terminal).unwrap(), before.for_keys());
        assert_ne!(before, before.for_keys());
        assert!(terminal.write_bytes(b"now").unwrap());
        saw(&mut master, &[ENTER, b"now"]);
        // No line to wait for.
        master.write_all(b"q\x1b[A").unwrap();
        assert_eq!(terminal.keys().unwrap(), b"q\x1b[A");
        assert_eq!(terminal.keys().unwrap(), b"");
        terminal.restore_terminal();
        assert_eq!(KeyModes::of_terminal(&terminal).unwrap(), before);
        saw(&mut master, &[LEAVE]);
        // Only once: what is on the screen by then is not ours.
        terminal.restore_terminal();
        assert!(!terminal.write_bytes(b"too late").unwrap());
        terminal.0.before.leave_screen(&terminal.0.file);
        saw(&mut master, &[LEAVE]);
    }

    #[test]
    fn modes_survive_the_journal() {
        let (_master, ours) = pair();
        let before = KeyModes::of_terminal(&ours).unwrap();
        let text = serde_json::to_string(&before).unwrap();
        let restored: KeyModes = serde_json::from_str(&text).unwrap();
        before.for_keys().set_modes(&ours).unwrap();
        let terminal = File::from(ours);
        restored.leave_screen(&terminal);
        assert_eq!(KeyModes::of_terminal(&terminal).unwrap(), before);
        // Those of a shell that was faster stay.
        let shell = KeyModes { local: before.for_keys().local, ..before };
        shell.set_modes(&terminal).unwrap();
        restored.leave_screen(&terminal);
        assert_eq!(KeyModes::of_terminal(&terminal).unwrap(), shell);
    }

    #[test]
    fn a_panic_speaks_on_the_normal_screen() {
        let (mut master, ours) = pair();
        let before = KeyModes::of_terminal(&ours).unwrap();
        let check = ours.try_clone().unwrap();
        let panicked = thread::spawn(move || {
            let terminal = InteractiveTerminal::from_fd(ours).unwrap();
            terminal.take_over().unwrap();
            panic!("to be expected here");
        });
        assert!(panicked.join().is_err());
        assert_eq!(KeyModes::of_terminal(&check).unwrap(), before);
        saw(&mut master, &[ENTER, LEAVE, SAVE_CURSOR]);
    }

    #[test]
    fn what_is_no_terminal_or_is_gone_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(InteractiveTerminal::from_fd(file.into()).is_err());
        let (master, ours) = pair();
        let terminal = InteractiveTerminal::from_fd(ours).unwrap();
        terminal.take_over().unwrap();
        drop(master);
        // A process that another test forks has the other end until it executes its program.
        poll(&mut [PollFd::new(&terminal.0.file, PollFlags::empty())], None).unwrap();
        assert!(terminal.keys().is_err());
        assert!(terminal.write_bytes(b"x").is_err());
    }
}
