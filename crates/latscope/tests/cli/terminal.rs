//! Pseudo-terminal with a shell in it that runs the command, and its screen.

use crate::process::{Mark, Process, send};
use crate::support::{BINARY, eventually, program};
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{self, Winsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Script that waits for the command, prints how it ended, and stays until a line is typed. A session leader takes its
/// terminal down when it ends.
const SHELL: &str = "trap : INT; \"$@\"; echo \"left: $?\"; read -r line";

/// Output that came from the terminal so far.
struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

/// Terminal for a run of the command.
pub struct Terminal {
    master: File,
    inside: OwnedFd,
    seen: Arc<Mutex<Seen>>,
    shell: Child,
    mark: Mark,
    reader: Option<JoinHandle<()>>,
    before: String,
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    /// Runs `latscope` with these words in a terminal of 80 columns and 24 rows.
    pub fn run(words: &[&str]) -> Terminal {
        Terminal::run_with(words, &[])
    }

    /// Runs `latscope` like [`Terminal::run`], with variables in the environment.
    pub fn run_with(words: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("pseudo-terminals are there");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let inside = ioctl_tiocgptpeer(&master, flags).expect("it has another end");
        termios::tcsetwinsize(&master, size(80, 24)).expect("it has a size");
        let mut command = program(["setsid", "--ctty", "sh", "-c", SHELL, "sh", BINARY]);
        command.args(words).env("TERM", "xterm-256color").envs(variables.iter().copied());
        let end = || inside.try_clone().expect("descriptors are left");
        command.stdin(end()).stdout(end()).stderr(end());
        let mark = Mark::on(&mut command);
        let before = modes(&inside);
        let shell = command.spawn().expect("util-linux is there");
        let some = |size| NonZero::new(size).expect("not 0");
        let screen = vt100::Parser::new(some(24), some(80), 0);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: Vec::new() }));
        let mut terminal =
            Terminal { master: File::from(master), inside, seen, shell, mark, reader: None, before };
        terminal.reader = Some(terminal.watch());
        terminal
    }

    fn watch(&self) -> JoinHandle<()> {
        let mut master = self.master.try_clone().expect("descriptors are left");
        let seen = Arc::clone(&self.seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The last one inside is gone: EIO.
            while let Ok(length @ 1..) = master.read(&mut bytes) {
                let mut seen = seen.lock().expect("no thread panics with it");
                seen.screen.process(&bytes[..length]);
                seen.bytes.extend(&bytes[..length]);
            }
        })
    }

    /// Calls `look` with the screen, and returns its result.
    pub fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.seen.lock().expect("no thread panics with it").screen.screen())
    }

    /// Text that the screen shows.
    pub fn text(&self) -> String {
        self.look(vt100::Screen::contents)
    }

    /// All text that was ever written to the terminal.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("no thread panics with it").bytes).into_owned()
    }

    /// Waits until the screen shows this text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        eventually(&format!("{text:?} is shown"), || self.text().contains(text).then_some(()));
    }

    /// Waits until the status line of the run counts samples.
    #[track_caller]
    pub fn wait_for_samples(&self) {
        let counts = |text: &str| text.split("Count ").skip(1).any(|rest| !rest.starts_with('0'));
        eventually("samples are counted", || counts(&self.text()).then_some(()));
    }

    /// Waits for the process of the run whose command line has this word.
    #[track_caller]
    pub fn process(&self, word: &str) -> Process {
        self.mark.wait_for(word)
    }

    /// Types keys into the terminal.
    pub fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("it is open");
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        let some = |size| NonZero::new(size).expect("not 0");
        let mut seen = self.seen.lock().expect("no thread panics with it");
        seen.screen.screen_mut().set_size(some(rows), some(columns));
        termios::tcsetwinsize(&self.master, size(columns, rows)).expect("it has a size");
    }

    /// Returns true if the modes of the terminal differ from those at the beginning.
    pub fn is_taken(&self) -> bool {
        modes(&self.inside) != self.before
    }

    /// Process that coordinates the run: the child of the shell. Children of the coordinator have its command line,
    /// too, until they execute another program.
    #[track_caller]
    pub fn coordinator(&self) -> Process {
        let shell = self.shell.id().cast_signed();
        let ours =
            |process: &Process| parent(process.pid) == Some(shell) && process.command.starts_with(BINARY);
        eventually("the command runs", || self.mark.processes().into_iter().find(ours))
    }

    /// Sends a signal to the coordinator.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        send(signal, self.coordinator().pid);
    }

    /// Waits for the end of the command. Asserts this status, that the terminal is as it was before, and that nothing
    /// is left of the run. Returns the text on the screen.
    #[track_caller]
    pub fn ends(&mut self, status: u8) -> String {
        // What the shell says after a kill may be on the screen that is about to go.
        let left = || {
            let written = self.written();
            let (_, status) = written.rsplit_once("left: ")?;
            status.split_once('\r')?.0.parse::<u8>().ok()
        };
        assert_eq!(eventually("it ends", left), status, "{}", self.text());
        assert!(!self.written().contains("panicked"), "{}", self.written());
        let (text, modes) = (self.text(), modes(&self.inside));
        assert_eq!(modes, self.before, "{text}");
        let (alternate, hidden) = self.look(|screen| (screen.alternate_screen(), screen.hide_cursor()));
        assert!(!alternate && !hidden, "{text}");
        self.type_in("\n");
        self.mark.wait_for_none();
        text
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.master.write_all(b"\n");
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Text with all modes of a terminal, for comparisons.
fn modes(terminal: &OwnedFd) -> String {
    format!("{:?}", termios::tcgetattr(terminal).expect("it is a terminal"))
}

/// Id of the parent of a process; `None` when the process is gone.
fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}
