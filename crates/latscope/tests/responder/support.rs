//! Functions that compile and start the responder, and are the host that it replies to.

use crate::skipped::skipped_in_part;
use latscope_os::window::MemoryWindow as Mapped;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::link::{RpmsgLinkEvent, Unsent};
use latscope_rpmsg::{RpmsgHost, RpmsgLink, RpmsgMemory, RpmsgWindow};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::process::{Pid, Signal};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait, far above the time of any test. Only a program that hangs reaches it.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Address of the host in all messages.
pub const OURS: u32 = 0x500;

/// Compiler flags for the sources.
const STRICT: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../responders/c")
}

/// Runs the compiler in the directory of the sources. Returns its messages if it failed.
#[track_caller]
pub fn compile<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Result<(), String> {
    let output = Command::new("cc").current_dir(sources()).args(STRICT).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("cc: {error}: install the package gcc"));
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Path for a file that is compiled.
pub fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn build(name: &str, extra: &[&str]) -> Result<PathBuf, String> {
    let program = made(name);
    let words = ["linux.c", "latscope_responder.c", "-o"].map(OsString::from);
    compile(words.into_iter().chain([program.clone().into()]).chain(extra.iter().map(OsString::from)))?;
    Ok(program)
}

/// Program as users build it.
pub fn plain() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("responder", &[]).unwrap())
}

/// Program that ends at an access or an operation that C does not define.
fn watched() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let sanitizers = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        build("responder-watched", &sanitizers).unwrap_or_else(|error| {
            skipped_in_part(
                "hostile, with the sanitizers of the C compiler",
                error.lines().next().unwrap_or("refused"),
            );
            plain().to_owned()
        })
    })
}

/// Host's end of the kicks between the two sides.
#[derive(Debug)]
enum Kicks {
    None,
    Events { to: OwnedFd, from: OwnedFd },
    Socket(UnixStream),
}

impl Kicks {
    fn send(&self) {
        // Full counters and sockets hold kicks that were not read.
        let _ = match self {
            Kicks::None => Ok(0),
            Kicks::Events { to, .. } => rustix::io::write(to, &1_u64.to_ne_bytes()),
            Kicks::Socket(socket) => rustix::io::write(socket, &[0]),
        };
    }

    /// Waits for a kick, or for a while.
    fn wait(&self) {
        let from = match self {
            Kicks::None => return thread::yield_now(),
            Kicks::Events { from, .. } => from.as_fd(),
            Kicks::Socket(socket) => socket.as_fd(),
        };
        let while_ = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        if rustix::event::poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&while_)) == Ok(1) {
            let _ = rustix::io::read(from, &mut [0_u8; 64]);
        }
    }
}

/// Kind of kicks to use.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    Poll,
    Events,
    Socket,
}

/// Lines that a program prints.
pub type Lines = Receiver<String>;

/// Returns the lines of a program, whose reading can time out.
pub fn lines(output: ChildStdout) -> Lines {
    let (sender, lines) = channel();
    // It ends with the program.
    thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// Running responder, and the window that it shares with the host.
pub struct Responder {
    child: Child,
    input: Option<ChildStdin>,
    /// Lines of the responder, until it ends.
    output: Lines,
    kicks: Kicks,
    pub layout: RpmsgWindow,
    pub memory: Mapped,
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Responder {
    fn spawn(program: &Path, layout: RpmsgWindow, words: &[OsString], kicks: Kicks) -> Responder {
        let memory = Mapped::create_zeroed(layout.size.next_multiple_of(4096)).unwrap();
        layout.reset(&memory).unwrap();
        Responder::join(program, layout, memory, words, kicks)
    }

    /// Starts the program over a window, whatever is in it.
    fn join(
        program: &Path,
        layout: RpmsgWindow,
        memory: Mapped,
        words: &[OsString],
        kicks: Kicks,
    ) -> Responder {
        let file = format!("/proc/{}/fd/{}", std::process::id(), memory.descriptor().as_raw_fd());
        let mut command = Command::new(program);
        // Nothing is allocated, and where ptrace is forbidden the search for leaks fails.
        command.env("ASAN_OPTIONS", "detect_leaks=0");
        command.args(["--file", &file]).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = lines(child.stdout.take().unwrap());
        Responder { child, input, output, kicks, layout, memory }
    }

    /// Starts a responder that runs by itself.
    pub fn start(layout: RpmsgWindow, way: Way) -> Responder {
        let word = |text: &str| OsString::from(text);
        match way {
            Way::Poll => Responder::spawn(watched(), layout, &[word("--poll")], Kicks::None),
            Way::Events => {
                // The child inherits them: they are not closed when a program is started.
                let [to, from] = [(); 2].map(|()| rustix::event::eventfd(0, EventfdFlags::NONBLOCK).unwrap());
                let numbers = [&to, &from].map(|end| word(&end.as_raw_fd().to_string()));
                let words = [[word("--eventfd")].as_slice(), &numbers].concat();
                Responder::spawn(plain(), layout, &words, Kicks::Events { to, from })
            }
            Way::Socket => {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("kicks");
                let words = [word("--socket"), path.clone().into()];
                let mut responder = Responder::spawn(plain(), layout, &words, Kicks::None);
                let socket = eventually("a socket to connect to", || UnixStream::connect(&path).ok());
                socket.set_nonblocking(true).unwrap();
                responder.kicks = Kicks::Socket(socket);
                responder
            }
        }
    }

    /// Starts a responder that steps when it is asked to.
    pub fn stepwise(layout: RpmsgWindow) -> Responder {
        Responder::spawn(watched(), layout, &["--steps".into()], Kicks::None)
    }

    /// Ends the responder as a crash does, and starts another over the same window.
    pub fn crash_and_start(mut self) -> Responder {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let (layout, memory) = (self.layout, self.memory.clone());
        Responder::join(watched(), layout, memory, &["--steps".into()], Kicks::None)
    }

    /// Lets the responder take a hundred steps. Returns true if it sees a host.
    pub fn step(&mut self) -> bool {
        self.input.as_mut().unwrap().write_all(b"s").expect("the responder runs");
        self.output.recv_timeout(TIMEOUT).expect("the responder still runs") == "online"
    }

    /// Returns a host that begins on the window.
    pub fn host(&self) -> RpmsgHost<Mapped, 256> {
        self.layout.host(self.memory.clone()).unwrap()
    }

    /// Waits until the responder prints this line.
    pub fn expect_line(&mut self, expected: &str) {
        while self.output.recv_timeout(TIMEOUT).expect("it goes on") != expected {}
    }

    /// Sets the status, as a host does when it begins or goes.
    pub fn set_status(&self, status: u8) {
        self.layout.table.set_status(&self.memory, status).unwrap();
    }

    /// Sends a message. Returns false if there is no buffer.
    pub fn send(&self, host: &mut RpmsgHost<Mapped, 256>, service: RpmsgService, payload: &[u8]) -> bool {
        match host.send_message(OURS, service.address(), payload) {
            Ok(kick) => {
                if kick {
                    self.kicks.send();
                }
                true
            }
            Err(Unsent::NoBuffer) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for the next message. Returns its source and its payload.
    pub fn receive(&self, host: &mut RpmsgHost<Mapped, 256>) -> (u32, Vec<u8>) {
        let mut room = [0; 4096];
        eventually("a message", || {
            let received = host.receive_message(&mut room).unwrap();
            if let Some(received) = received {
                if received.kick {
                    self.kicks.send();
                }
                return Some((received.header.source, room[..received.length].to_vec()));
            }
            if !host.request_kick(RpmsgLinkEvent::Message).unwrap() {
                self.kicks.wait();
            }
            None
        })
    }

    /// Sends a message, and waits for its reply.
    pub fn ask(&self, host: &mut RpmsgHost<Mapped, 256>, service: RpmsgService, payload: &[u8]) -> Vec<u8> {
        eventually("a buffer to send in", || self.send(host, service, payload).then_some(()));
        let (source, reply) = self.receive(host);
        assert_eq!(source, service.address());
        reply
    }

    /// Receives the announcements, which come first, and returns them as text.
    pub fn announced(&self, host: &mut RpmsgHost<Mapped, 256>) -> Vec<String> {
        let mut endpoints = Endpoints::<8>::default();
        for _ in RpmsgService::ALL {
            let (source, payload) = self.receive(host);
            let header =
                latscope_rpmsg::header::RpmsgHeader { source, destination: 53, length: 40, flags: 0 };
            endpoints.handle_message(&header, &payload).unwrap().unwrap();
        }
        endpoints.theirs().map(|(name, at)| format!("{name} {at:#x}")).collect()
    }

    /// Starts a responder and a host, and receives the announcements.
    pub fn ready(layout: RpmsgWindow, way: Way) -> (Responder, RpmsgHost<Mapped, 256>) {
        let responder = Responder::start(layout, way);
        let mut host = responder.host();
        responder.announced(&mut host);
        (responder, host)
    }

    /// Ends the responder by a signal, and returns its counts.
    pub fn end(mut self) -> BTreeMap<String, u64> {
        terminate(&self.child);
        // One that waits for a step ends with its input: the signal may come just before it waits.
        drop(self.input.take());
        let status = eventually("its end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
        let count = |line: String| {
            line.split_once('=').map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        };
        self.output.iter().filter_map(count).collect()
    }
}

/// Sends a program the signal to end.
pub fn terminate(child: &Child) {
    rustix::process::kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

/// Repeats an attempt until it returns something.
#[track_caller]
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "waited in vain for {what}");
        thread::yield_now();
    }
}

/// Number of all faults that were counted.
pub fn faults(counts: &BTreeMap<String, u64>) -> u64 {
    counts.iter().filter(|(name, _)| name.starts_with("fault-")).map(|(_, count)| count).sum()
}

/// Overwrites bytes of the window with others.
pub fn scribble(memory: &Mapped, at: usize, bytes: &[u8]) {
    let room = memory.size().saturating_sub(at);
    memory.write_bytes(at, &bytes[..bytes.len().min(room)]).unwrap();
}
