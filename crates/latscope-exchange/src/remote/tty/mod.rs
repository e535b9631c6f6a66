//! `tty`: a terminal that leads to a remote that echoes: a pseudo terminal,
//! `/dev/ttyRPMSG0`, a serial line.
//!
//! A terminal carries bytes and no messages, so that the lengths of the sent messages determine where the replies end.
//! `tty-line` is the same with lines: the form that a terminal gives to bytes unless that is switched off.

use super::{
    ChannelFailure, ChannelRequest, MessageWakeSource, RemoteChannel, RemoteOption, RemoteTransport,
};
use crate::notify::poll;
use anyhow::{Context, Result, ensure};
use latscope_os::clock::monotonic_ns;
use latscope_process::leftover::{Leftover, Leftovers};
use latscope_process::modes::{self, Modes};
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::link::Unsent;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, read, write};
use rustix::termios::{QueueSelector, ioctl_tiocexcl, tcflush};
use std::io;
use std::path::Path;
use std::time::Duration;

mod access;
mod blocks;
mod replies;
mod witness;

use access::not_a_terminal;
use blocks::{TtyBlockMatch, TtyBlockTracker};
use replies::Replies;
use witness::Witness;

/// Transport `tty` over a terminal in raw mode.
pub static TTY: RemoteTransport = RemoteTransport {
    name: "tty",
    waits: &["poll"],
    ours: false,
    options: &[PATH, FORCE],
    open: |order| {
        let numbered = order.service == RpmsgService::Bandwidth;
        open(order, if numbered { Framing::Blocks } else { Framing::Lengths })
    },
};

/// Transport `tty-line` over a terminal in line mode.
pub(crate) static LINES: RemoteTransport = RemoteTransport {
    name: "tty-line",
    waits: &["poll"],
    ours: false,
    options: &[PATH, FORCE],
    open: |order| open(order, Framing::Lines),
};

const PATH: RemoteOption =
    RemoteOption::new("path", "PATH", "The terminal: /dev/pts/N, /dev/ttyRPMSG0, a serial line", "");

/// Option that allows a terminal in which somebody works.
pub const FORCE: RemoteOption = RemoteOption::flag("force", "Use the terminal also if it controls a session");

/// Size of the longest message, bytes: a read from a terminal returns no more.
const LIMIT: usize = 4096;

/// Size of the buffer for bytes read ahead, bytes.
const ROOM: usize = 2 * LIMIT;

/// A terminal that was silent for so long has nothing more that is late, ms.
const QUIET: u64 = 50;

/// Time to fall silent.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

const MILLISECOND: u64 = 1_000_000;

/// Longest wait before the next read, ns: with a minimum that another program set (`VMIN`), poll(2) tells nothing.
const LOOK: u64 = 100 * MILLISECOND;

/// Description of the end of a terminal.
const CLOSED: &str = "its other end was closed";

/// Rule that determines where a message ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// The length of the message that it answers.
    Lengths,
    /// The number with which a block begins, and its length: bytes that belong to no block are skipped.
    Blocks,
    /// A newline, which is added.
    Lines,
}

fn open(order: &ChannelRequest, framing: Framing) -> Result<Box<dyn RemoteChannel>> {
    ensure!(
        order.service != RpmsgService::Sink,
        "a terminal leads to an echo: there is only --direction echoed"
    );
    let path = order.text_param(PATH.name);
    ensure!(!path.is_empty(), "a terminal is needed: --path /dev/pts/N, from `latscope remote serve --pty`");
    let mut terminal = Tty::open(Path::new(path), framing, order)?;
    // What another run left on its way belongs to none of ours. An end that is closed is told by the first message.
    let _ = terminal.give_up();
    Ok(Box::new(terminal))
}

/// A terminal in raw modes or in lines.
#[derive(Debug)]
struct Tty {
    /// Puts its modes back. First of the fields, so that no other program can be
    /// there in between.
    _modes: Leftovers,
    terminal: OwnedFd,
    /// Modes that it was given.
    modes: Modes,
    path: String,
    /// Other programs that had it open at the beginning.
    openers: Option<String>,
    framing: Framing,
    replies: Replies,
    /// Bytes for which the terminal had no room.
    unsent: Vec<u8>,
    input: TtyInputBuffer,
    blocks: TtyBlockTracker,
    witness: Witness,
    /// Number of times that bytes arrived which answer nothing.
    strays: u64,
    /// Number of replies that came again.
    duplicates: u64,
    ended: Option<String>,
}

impl Tty {
    fn open(path: &Path, framing: Framing, order: &ChannelRequest) -> Result<Tty> {
        let name = path.display().to_string();
        // By another name it might be another one later.
        let path = path.canonicalize().with_context(|| name.clone())?;
        let terminal = access::open_terminal(&path, &name)?;
        let before = Modes::of_terminal(&terminal).map_err(|error| not_a_terminal(&name, &error))?;
        access::check_is_free(&terminal, &name, order.has_flag(&FORCE))?;
        let modes = match framing {
            Framing::Lengths | Framing::Blocks => before.raw(),
            Framing::Lines => before.cooked_without_echo(),
        };
        let openers = access::openers(&terminal);
        if let Some(openers) = &openers {
            (order.notice)(&access::also_open(openers, &name));
        }
        let leftover = Leftover::Modes(path, before, modes);
        (order.journal)(&leftover)?;
        let leftovers = Leftovers::from([leftover]);
        ioctl_tiocexcl(&terminal).with_context(|| name.clone())?;
        let tty = Tty {
            _modes: leftovers,
            terminal,
            modes,
            path: name,
            openers,
            framing,
            replies: Replies::default(),
            unsent: Vec::new(),
            input: TtyInputBuffer::new(),
            blocks: TtyBlockTracker::default(),
            witness: Witness::default(),
            strays: 0,
            duplicates: 0,
            ended: None,
        };
        modes.apply_to(&tty.terminal).with_context(|| tty.path.clone())?;
        tcflush(&tty.terminal, QueueSelector::IOFlush).with_context(|| tty.path.clone())?;
        Ok(tty)
    }

    /// Writes the bytes for which the terminal had no room; returns true if all of them are written.
    fn flush_unsent(&mut self) -> Result<bool, ChannelFailure> {
        if !self.unsent.is_empty() {
            let written = write(&self.terminal, &self.unsent);
            let length = self.no_wait(written)?;
            self.unsent.drain(..length);
        }
        Ok(self.unsent.is_empty())
    }

    /// Reads the available bytes; returns their number.
    fn fetch(&mut self) -> Result<usize, ChannelFailure> {
        let length = match read(&self.terminal, self.input.free_space()) {
            // The end of a file: Ctrl-D of a line, or the other end is closed.
            Ok(0) if self.hung_up()? => return Err(self.gone(CLOSED)),
            found => self.no_wait(found)?,
        };
        self.witness.record_received(&self.input.bytes[self.input.to..self.input.to + length]);
        self.input.to += length;
        Ok(length)
    }

    fn hung_up(&self) -> io::Result<bool> {
        let mut terminal = [PollFd::new(&self.terminal, PollFlags::IN)];
        poll(&mut terminal, Duration::ZERO)?;
        Ok(terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Returns the byte count of a call that does not wait; 0 where the call would have to wait.
    fn no_wait(&mut self, done: rustix::io::Result<usize>) -> Result<usize, ChannelFailure> {
        match done {
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(Errno::IO | Errno::NXIO | Errno::NODEV | Errno::PIPE) => Err(self.gone(CLOSED)),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    fn gone(&mut self, how: &str) -> ChannelFailure {
        let how = self.ended.get_or_insert_with(|| format!("{}: {how}", self.path));
        ChannelFailure::Gone(how.clone())
    }

    /// Copies the next whole message, if it is there, to `into`, as far as there is room.
    fn take_message(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.framing == Framing::Blocks { self.take_block(into) } else { self.take_reply(into) }
    }

    /// Returns the next reply, sound or not. One that comes again is skipped and counted.
    fn take_reply(&mut self, into: &mut [u8]) -> Option<usize> {
        let newline = usize::from(self.framing == Framing::Lines);
        loop {
            match self.replies.match_input(self.input.unread_bytes()) {
                replies::TtyReplyMatch::Incomplete => return None,
                replies::TtyReplyMatch::Again(length) => {
                    self.input.consume(length);
                    self.duplicates += 1;
                }
                replies::TtyReplyMatch::Reply(length, place) => {
                    let taken = copy(&self.input.unread_bytes()[..length - newline], into);
                    self.input.consume(length);
                    self.replies.mark_answered(place);
                    return Some(taken);
                }
                replies::TtyReplyMatch::Other => {
                    let ahead = self.replies.bytes_before_reply(self.input.unread_bytes());
                    if let Some(length) = ahead.filter(|_| self.framing == Framing::Lengths) {
                        self.input.consume(length);
                        self.blocks.foreign += length as u64;
                        continue;
                    }
                    let length = match self.framing {
                        Framing::Lines => self.input.unread_bytes().iter().position(|byte| *byte == b'\n')?,
                        _ => self.replies.expected(),
                    };
                    let taken = copy(self.input.unread_bytes().get(..length)?, into);
                    self.input.consume(length + newline);
                    if taken > 0 {
                        self.replies.spoil();
                        return Some(taken);
                    }
                    // One newline was sent and two came: CR and NL are both made one.
                    self.strays += 1;
                }
            }
        }
    }

    /// Clears the input of what answers nothing, before the next message: replies that come again, and strays.
    fn clear_input(&mut self) {
        while let replies::TtyReplyMatch::Again(length) = self.replies.match_input(self.input.unread_bytes())
        {
            self.input.consume(length);
            self.duplicates += 1;
        }
        let awaited =
            self.replies.match_input(self.input.unread_bytes()) == replies::TtyReplyMatch::Incomplete;
        if !awaited && !self.input.unread_bytes().is_empty() {
            self.strays += 1;
            self.input.clear();
        }
    }

    /// Returns the next block, sound or not; bytes in front of it are skipped and counted.
    fn take_block(&mut self, into: &mut [u8]) -> Option<usize> {
        loop {
            match self.blocks.match_input(self.input.unread_bytes()) {
                TtyBlockMatch::Incomplete | TtyBlockMatch::Foreign(0) => return None,
                TtyBlockMatch::Foreign(length) => {
                    self.input.consume(length);
                    self.blocks.foreign += length as u64;
                }
                TtyBlockMatch::Block(length) => {
                    let taken = copy(&self.input.unread_bytes()[..length], into);
                    self.input.consume(length);
                    return Some(taken);
                }
            }
        }
    }

    /// Sleeps until something can be read, or written if something is to be.
    fn wait_until_ready(&self, ns: u64) -> Result<(), ChannelFailure> {
        let flags = if self.unsent.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        poll(&mut [PollFd::new(&self.terminal, flags)], Duration::from_nanos(ns))?;
        Ok(())
    }
}

impl RemoteChannel for Tty {
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        if message.len() > LIMIT {
            return Err(ChannelFailure::Unsent(Unsent::TooLong));
        }
        if self.framing != Framing::Blocks && self.replies.is_idle() {
            self.clear_input();
        }
        if !self.flush_unsent()? {
            return Err(ChannelFailure::Unsent(Unsent::NoBuffer));
        }
        let line: Vec<u8>;
        let bytes = match self.framing {
            Framing::Lengths | Framing::Blocks => message,
            Framing::Lines => {
                line = [message, b"\n"].concat();
                &line
            }
        };
        let written = write(&self.terminal, bytes);
        let length = self.no_wait(written)?;
        if length == 0 && !bytes.is_empty() {
            return Err(match self.framing {
                Framing::Lengths | Framing::Blocks => ChannelFailure::Unsent(Unsent::NoBuffer),
                Framing::Lines => {
                    self.gone("it takes no more: in line mode a byte 0x13 that came back stops it")
                }
            });
        }
        self.witness.record_sent(bytes);
        self.unsent.extend(&bytes[length..]);
        match self.framing {
            Framing::Blocks => self.blocks.record_sent(message),
            Framing::Lengths | Framing::Lines => self.replies.record_sent(bytes),
        }
        Ok(())
    }

    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        loop {
            if let Some(length) = self.take_message(into) {
                return Ok(length);
            }
            if self.input.is_full() {
                // A line without an end.
                self.strays += 1;
                self.input.clear();
            }
            let left = until.saturating_sub(monotonic_ns());
            if self.fetch()? > 0 {
                continue;
            }
            self.flush_unsent()?;
            match left {
                0 => return Err(ChannelFailure::Timeout),
                left => self.wait_until_ready(left.min(LOOK))?,
            }
        }
    }

    fn wake_source(&mut self) -> Result<MessageWakeSource<'_>, ChannelFailure> {
        Ok(if self.flush_unsent()? {
            MessageWakeSource::Readable(self.terminal.as_fd())
        } else {
            MessageWakeSource::Unknown
        })
    }

    fn give_up(&mut self) -> Result<(), ChannelFailure> {
        self.replies.give_up();
        self.unsent.clear();
        let end = monotonic_ns() + REPLY_TIMEOUT.as_nanos() as u64;
        loop {
            self.input.clear();
            self.wait_until_ready(QUIET * MILLISECOND)?;
            if self.fetch()? == 0 || monotonic_ns() > end {
                self.input.clear();
                return Ok(());
            }
        }
    }

    fn limit(&self) -> usize {
        LIMIT
    }

    fn faults(&self) -> u64 {
        self.strays
    }

    fn duplicates(&self) -> u64 {
        self.duplicates
    }

    fn foreign(&self) -> u64 {
        self.blocks.foreign
    }

    fn translation(&self) -> Option<String> {
        self.witness.describe_changes()
    }

    fn interference(&self, failed: bool) -> Option<String> {
        let changed = Modes::of_terminal(&self.terminal).is_ok_and(|modes| modes != self.modes);
        let openers = access::openers(&self.terminal).or_else(|| self.openers.clone());
        match (changed, openers) {
            (true, openers) => Some(access::describe_mode_change(&self.path, openers.as_deref())),
            (false, Some(openers)) if failed => Some(access::also_open(&openers, &self.path)),
            (false, _) => None,
        }
    }

    fn end_description(&mut self) -> Option<String> {
        self.ended.clone()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // Before the modes are put back, which opens the terminal once more.
        modes::release_terminal(&self.terminal);
    }
}

/// Buffer of the bytes that were read.
#[derive(Debug)]
struct TtyInputBuffer {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

impl TtyInputBuffer {
    fn new() -> TtyInputBuffer {
        TtyInputBuffer { bytes: vec![0; ROOM].into(), from: 0, to: 0 }
    }

    fn unread_bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    fn consume(&mut self, length: usize) {
        self.from += length;
        if self.from == self.to {
            self.clear();
        }
    }

    fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    fn is_full(&self) -> bool {
        self.to - self.from == ROOM
    }

    /// Returns the free part of the buffer, where the next bytes go.
    fn free_space(&mut self) -> &mut [u8] {
        if self.to == ROOM {
            self.bytes.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        &mut self.bytes[self.to..]
    }
}

fn copy(message: &[u8], into: &mut [u8]) -> usize {
    let length = message.len().min(into.len());
    into[..length].copy_from_slice(&message[..length]);
    length
}

#[cfg(test)]
mod tests;
