//! A terminal that is taken over for a while: keys as they are typed, the
//! alternate screen, no cursor. However the run ends it is left as it was.
//!
//! Sources: termios(3), console_codes(4), xterm's control sequences (private
//! modes 25 and 1049).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// To the alternate screen, cursor hidden.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Colours off, cursor shown, back to the normal screen and to where the cursor was.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";
/// The cursor's place becomes the one to come back to.
const SAVE_CURSOR: &[u8] = b"\x1b7";

/// What is changed of the modes of a terminal, and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyModes {
    input: u32,
    local: u32,
    suspend: u8,
    least: u8,
    time: u8,
}

impl KeyModes {
    /// As they are.
    ///
    /// # Errors
    /// It is no terminal.
    pub fn of(terminal: impl AsFd) -> io::Result<KeyModes> {
        let modes = termios::tcgetattr(terminal)?;
        Ok(KeyModes {
            input: modes.input_modes.bits(),
            local: modes.local_modes.bits(),
            suspend: modes.special_codes[SpecialCodeIndex::VSUSP],
            least: modes.special_codes[SpecialCodeIndex::VMIN],
            time: modes.special_codes[SpecialCodeIndex::VTIME],
        })
    }

    /// With keys as they are typed and not shown. Ctrl-C stays a signal; to
    /// hold the output (Ctrl-S) or to stop (Ctrl-Z) would leave the screen in
    /// disorder, and the coordinator with it.
    fn for_keys(self) -> KeyModes {
        let line = LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        KeyModes {
            input: self.input & !InputModes::IXON.bits(),
            local: self.local & !line.bits(),
            suspend: 0,
            least: 0,
            time: 0,
        }
    }

    fn set(&self, terminal: impl AsFd) -> io::Result<()> {
        let mut modes: Termios = termios::tcgetattr(&terminal)?;
        modes.input_modes = InputModes::from_bits_retain(self.input);
        modes.local_modes = LocalModes::from_bits_retain(self.local);
        modes.special_codes[SpecialCodeIndex::VSUSP] = self.suspend;
        modes.special_codes[SpecialCodeIndex::VMIN] = self.least;
        modes.special_codes[SpecialCodeIndex::VTIME] = self.time;
        // What was typed blindly is not for the shell.
        Ok(termios::tcsetattr(terminal, OptionalActions::Flush, &modes)?)
    }

    /// Leaves the alternate screen of this terminal and puts the modes back;
    /// does no harm where both has been done.
    pub fn leave(&self, mut terminal: impl AsFd + Write) {
        // One that is gone needs neither.
        let _ = terminal.write_all(LEAVE).and_then(|()| terminal.flush());
        // A shell may have been faster, and has modes of its own by now.
        if KeyModes::of(&terminal).is_ok_and(|modes| modes == self.for_keys()) {
            let _ = self.set(&terminal);
        }
    }
}

/// Whether the terminal says that it can only show text, line by line.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// The columns of a line on stderr that is rewritten, now: users resize terminals. `None` where none can be rewritten:
/// stderr is no terminal, or a dumb one. Without a size it is 80.
pub fn status_width() -> Option<usize> {
    let stderr = io::stderr();
    if is_dumb() || !stderr.is_terminal() {
        return None;
    }
    let columns = termios::tcgetwinsize(&stderr).map_or(0, |size| usize::from(size.ws_col));
    Some(if columns > 0 { columns } else { 80 })
}

/// A terminal that can be taken over. Dropped, it is as before.
#[derive(Debug)]
pub struct Terminal(Arc<Held>);

#[derive(Debug)]
struct Held {
    file: File,
    before: KeyModes,
    taken: AtomicBool,
}

impl Terminal {
    /// The terminal of a descriptor that can be read and written.
    ///
    /// # Errors
    /// It is no terminal, or is not open in both directions.
    pub fn of(fd: OwnedFd) -> io::Result<Terminal> {
        let before = KeyModes::of(&fd)?;
        if !rustix::fs::fcntl_getfl(&fd)?.contains(OFlags::RDWR) {
            return Err(io::Error::other("the terminal is not open for reading and writing"));
        }
        Ok(Terminal(Arc::new(Held { file: File::from(fd), before, taken: AtomicBool::new(false) })))
    }

    /// The modes it has when it is not taken.
    pub fn before(&self) -> KeyModes {
        self.0.before
    }

    /// Whether it is the terminal of the foreground job: a job in the
    /// background must not touch it.
    pub fn in_foreground(&self) -> bool {
        // Not the terminal of our session: no jobs are controlled there.
        termios::tcgetpgrp(&self.0.file).map_or(true, |group| group == rustix::process::getpgrp())
    }

    /// Takes it over.
    ///
    /// # Errors
    /// It is gone.
    pub fn take(&self) -> io::Result<()> {
        self.0.taken.store(true, Relaxed);
        self.0.before.for_keys().set(&self.0.file)?;
        (&self.0.file).write_all(ENTER)?;
        self.0.leave_before_a_panic_speaks();
        Ok(())
    }

    /// Whether it is taken over.
    pub fn is_taken(&self) -> bool {
        self.0.taken.load(Relaxed)
    }

    /// Leaves it as it was.
    pub fn leave(&self) {
        self.0.leave();
    }

    /// Its size; `None` where it does not say.
    pub fn size(&self) -> Option<(u16, u16)> {
        let Winsize { ws_col, ws_row, .. } = termios::tcgetwinsize(&self.0.file).ok()?;
        (ws_col > 0 && ws_row > 0).then_some((ws_col, ws_row))
    }

    /// Writes to it, unless it is not taken, or is slow: then nothing is
    /// written and the answer is `false`.
    ///
    /// # Errors
    /// It is gone.
    pub fn write(&self, bytes: &[u8]) -> io::Result<bool> {
        let ready = self.is_taken() && self.ready(PollFlags::OUT)?.contains(PollFlags::OUT);
        if ready {
            (&self.0.file).write_all(bytes)?;
        }
        Ok(ready)
    }

    /// The keys typed since the last time.
    ///
    /// # Errors
    /// It is gone.
    pub fn keys(&self) -> io::Result<Vec<u8>> {
        let ready = self.ready(PollFlags::IN)?;
        let mut keys = [0; 256];
        let length =
            if ready.contains(PollFlags::IN) { rustix::io::read(&self.0.file, &mut keys)? } else { 0 };
        if length == 0 && !ready.difference(PollFlags::IN).is_empty() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(keys[..length].to_vec())
    }

    fn ready(&self, flags: PollFlags) -> io::Result<PollFlags> {
        let mut fds = [PollFd::new(&self.0.file, flags)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(fds[0].revents())
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Held {
    /// Whether there was something to leave.
    fn leave(&self) -> bool {
        let taken = self.taken.swap(false, Relaxed);
        if taken {
            self.before.leave(&self.file);
        }
        taken
    }

    /// A message on the alternate screen would be gone with it.
    fn leave_before_a_panic_speaks(self: &Arc<Self>) {
        let held = Arc::clone(self);
        let usual = panic::take_hook();
        let owner = thread::current().id();
        panic::set_hook(Box::new(move |info| {
            let taken = thread::current().id() == owner && held.leave();
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

    /// The two ends of a pseudo-terminal: the user's and ours.
    fn pair() -> (File, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let ours = ioctl_tiocgptpeer(&master, flags).unwrap();
        (File::from(master), ours)
    }

    /// Reads what was written to it, and asserts that it is this.
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
        let before = KeyModes::of(&ours).unwrap();
        let terminal = Terminal::of(ours).unwrap();
        assert_eq!((terminal.before(), terminal.is_taken()), (before, false));
        assert!(!terminal.write(b"not yet").unwrap());
        terminal.take().unwrap();
        assert_eq!(KeyModes::of(&terminal).unwrap(), before.for_keys());
        assert_ne!(before, before.for_keys());
        assert!(terminal.write(b"now").unwrap());
        saw(&mut master, &[ENTER, b"now"]);
        // No line to wait for.
        master.write_all(b"q\x1b[A").unwrap();
        assert_eq!(terminal.keys().unwrap(), b"q\x1b[A");
        assert_eq!(terminal.keys().unwrap(), b"");
        terminal.leave();
        assert_eq!(KeyModes::of(&terminal).unwrap(), before);
        saw(&mut master, &[LEAVE]);
        // Only once: what is on the screen by then is not ours.
        terminal.leave();
        assert!(!terminal.write(b"too late").unwrap());
        terminal.0.before.leave(&terminal.0.file);
        saw(&mut master, &[LEAVE]);
    }

    #[test]
    fn modes_survive_the_journal() {
        let (_master, ours) = pair();
        let before = KeyModes::of(&ours).unwrap();
        let text = serde_json::to_string(&before).unwrap();
        let restored: KeyModes = serde_json::from_str(&text).unwrap();
        before.for_keys().set(&ours).unwrap();
        let terminal = File::from(ours);
        restored.leave(&terminal);
        assert_eq!(KeyModes::of(&terminal).unwrap(), before);
        // Those of a shell that was faster stay.
        let shell = KeyModes { local: before.for_keys().local, ..before };
        shell.set(&terminal).unwrap();
        restored.leave(&terminal);
        assert_eq!(KeyModes::of(&terminal).unwrap(), shell);
    }

    #[test]
    fn a_panic_speaks_on_the_normal_screen() {
        let (mut master, ours) = pair();
        let before = KeyModes::of(&ours).unwrap();
        let check = ours.try_clone().unwrap();
        let panicked = thread::spawn(move || {
            let terminal = Terminal::of(ours).unwrap();
            terminal.take().unwrap();
            panic!("to be expected here");
        });
        assert!(panicked.join().is_err());
        assert_eq!(KeyModes::of(&check).unwrap(), before);
        saw(&mut master, &[ENTER, LEAVE, SAVE_CURSOR]);
    }

    #[test]
    fn what_is_no_terminal_or_is_gone_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(Terminal::of(file.into()).is_err());
        let (master, ours) = pair();
        let terminal = Terminal::of(ours).unwrap();
        terminal.take().unwrap();
        drop(master);
        assert!(terminal.keys().is_err());
        assert!(terminal.write(b"x").is_err());
    }
}
