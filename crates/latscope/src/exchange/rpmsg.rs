//! Messages to a remote over RPMsg in shared memory: how both sides wait for
//! each other, and the host's end.
//!
//! What the other side writes is not trusted: [`latscope_rpmsg`] checks it, and
//! a wait ends when its time is over.

use latscope_rpmsg::echo::{Echo, Service};
use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::header::{Address, Header};
use latscope_rpmsg::link::{Event, Received, Unsent};
use latscope_rpmsg::{Fault, Faults, Host, Link, Remote, Window};
use latscope_sys::clock::monotonic_ns;
use latscope_sys::window::Window as Memory;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::hint::spin_loop;
use std::io;

/// Entries of a ring, and buffers of a direction.
const ENTRIES: usize = 256;

/// Bytes of a buffer, header included: what Linux has.
const BUFFER: u32 = 512;

/// The longest payload, bytes.
pub const PAYLOAD: usize = BUFFER as usize - Header::SIZE;

/// Looks at the ring between two looks at the clock.
const LOOKS: u32 = 1 << 10;

/// How a side waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It looks until something is there.
    Spin,
    /// It sleeps until it is kicked by an eventfd.
    Eventfd,
}

impl Wait {
    /// Every way, by its name on the command line.
    pub const NAMES: &[&str] = &["spin", "eventfd"];

    /// The way of this name.
    pub fn named(name: &str) -> Option<Wait> {
        [Wait::Spin, Wait::Eventfd].into_iter().find(|wait| wait.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Wait::NAMES[self as usize]
    }
}

/// How a side is kicked, and kicks.
#[derive(Debug)]
pub struct Kicks {
    /// How it waits.
    pub wait: Wait,
    /// What the other side writes to.
    pub ours: OwnedFd,
    /// What this side writes to.
    pub theirs: OwnedFd,
}

impl Kicks {
    /// Tells the other side to look. One that spins looks anyway.
    #[inline]
    fn kick(&self) -> io::Result<()> {
        match self.wait {
            Wait::Spin => Ok(()),
            // A full counter is a kick, too.
            Wait::Eventfd => match rustix::io::write(&self.theirs, &1u64.to_ne_bytes()) {
                Ok(_) | Err(Errno::AGAIN) => Ok(()),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Sleeps until a kick came or time is over. A kick is a hint: it may come early or twice.
    fn sleep(&self, ns: u64) -> io::Result<()> {
        let time = Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
        let mut watched = [PollFd::new(&self.ours, PollFlags::IN)];
        match poll(&mut watched, Some(&time)) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => match rustix::io::read(&self.ours, &mut [0u8; 8]) {
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}

/// How the memory is divided.
///
/// # Errors
/// None for the sizes that are used.
pub fn layout() -> Result<Window, Fault> {
    Window::new(ENTRIES as u16, BUFFER, BUFFER)
}

/// Why there is no message.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Time is over.
    #[error("no message came in time")]
    Timeout,
    /// The message was not sent.
    #[error("{0}")]
    Unsent(Unsent),
    /// A kick failed.
    #[error("{0}")]
    Kick(#[from] io::Error),
}

/// The host's end: the virtio driver.
#[derive(Debug)]
pub struct Near {
    host: Host<Memory, ENTRIES>,
    kicks: Kicks,
    endpoints: Endpoints<8>,
    faults: Faults,
}

impl Near {
    /// Makes the memory ready, whatever is in it, and begins.
    ///
    /// # Errors
    /// The memory is too small.
    pub fn begin(memory: Memory, kicks: Kicks) -> Result<Near, Fault> {
        let window = layout()?;
        window.reset(&memory)?;
        let host = window.host(memory)?;
        Ok(Near { host, kicks, endpoints: Endpoints::default(), faults: Faults::default() })
    }

    /// What the other side did wrong so far.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Waits until the other side announced a service, and opens an endpoint for
    /// it: our address and its.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn connect(&mut self, service: Service, until: u64) -> Result<(Address, Address), Failure> {
        self.kicks.kick()?;
        let ours = self.endpoints.open(service.name()).ok_or(Failure::Unsent(Unsent::NoBuffer))?;
        let mut payload = [0; PAYLOAD];
        loop {
            if let Some(theirs) = self.endpoints.peer(ours) {
                return Ok((ours, theirs));
            }
            self.receive(&mut payload, until)?;
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Failure`].
    #[inline]
    pub fn send(&mut self, from: Address, to: Address, payload: &[u8]) -> Result<(), Failure> {
        match self.host.send(from, to, payload) {
            Ok(true) => Ok(self.kicks.kick()?),
            Ok(false) => Ok(()),
            Err(unsent) => Err(Failure::Unsent(unsent)),
        }
    }

    /// Waits for the next message until an instant of `CLOCK_MONOTONIC`.
    /// Announcements are heard as well. What is no message is counted.
    ///
    /// # Errors
    /// [`Failure`].
    #[inline]
    pub fn receive(&mut self, into: &mut [u8], until: u64) -> Result<Received, Failure> {
        let mut looks = 0;
        loop {
            match self.host.receive(into) {
                Ok(Some(received)) => return self.received(received, into),
                Ok(None) => {}
                Err(fault) => self.faults.count(fault),
            }
            looks += 1;
            match self.kicks.wait {
                Wait::Spin if looks % LOOKS != 0 => spin_loop(),
                _ => self.rest(until)?,
            }
        }
    }

    #[inline]
    fn received(&mut self, received: Received, payload: &[u8]) -> Result<Received, Failure> {
        if received.kick {
            self.kicks.kick()?;
        }
        if let Some(Err(fault)) = self.endpoints.receive(&received.header, &payload[..received.length]) {
            self.faults.count(fault);
        }
        Ok(received)
    }

    fn rest(&mut self, until: u64) -> Result<(), Failure> {
        let left = until.saturating_sub(monotonic_ns());
        if left == 0 {
            return Err(Failure::Timeout);
        }
        if self.kicks.wait == Wait::Spin {
            return Ok(());
        }
        match self.host.listen(Event::Message) {
            Ok(true) => Ok(()),
            Ok(false) => Ok(self.kicks.sleep(left)?),
            Err(fault) => {
                self.faults.count(fault);
                Ok(self.kicks.sleep(left.min(MILLISECOND))?)
            }
        }
    }
}

const MILLISECOND: u64 = 1_000_000;

/// The other end: answers until its process is ended.
///
/// # Errors
/// The memory is too small, or a kick failed.
pub fn answer(memory: &Memory, kicks: &Kicks) -> anyhow::Result<()> {
    let window = layout()?;
    loop {
        match window.remote(memory) {
            Ok(Some(remote)) => serve(Echo::new(remote), kicks)?,
            // The host has not begun, or clears what an earlier one left.
            Ok(None) | Err(Fault::Stale) => kicks.sleep(MILLISECOND)?,
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Answers one host.
fn serve(mut echo: Echo<Remote<&Memory>, PAYLOAD>, kicks: &Kicks) -> io::Result<()> {
    loop {
        let progress = echo.poll();
        if progress.kick_transmit || progress.kick_receive {
            kicks.kick()?;
        }
        if !progress.step.is_waiting() {
            continue;
        }
        match kicks.wait {
            Wait::Spin => spin_loop(),
            Wait::Eventfd => {
                if !echo.listen().unwrap_or(false) {
                    kicks.sleep(SECOND)?;
                }
            }
        }
    }
}

const SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn pair(wait: Wait) -> (Kicks, Kicks) {
        let new = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (here, there) = (new(), new());
        let copy = |fd: &OwnedFd| fd.try_clone().unwrap();
        let ours = Kicks { wait, ours: copy(&here), theirs: copy(&there) };
        (ours, Kicks { wait, ours: there, theirs: here })
    }

    #[test]
    fn a_remote_answers_however_both_wait() {
        for name in Wait::NAMES {
            let wait = Wait::named(name).unwrap();
            assert_eq!(wait.name(), *name);
            let memory = Memory::create(layout().unwrap().size).unwrap();
            let (ours, theirs) = pair(wait);
            let there = memory.clone();
            // Ends with the process.
            std::thread::spawn(move || answer(&there, &theirs).unwrap());
            let mut near = Near::begin(memory, ours).unwrap();
            let until = monotonic_ns() + 20 * SECOND;
            let (from, to) = near.connect(Service::Pty, until).unwrap();
            let mut payload = [0; PAYLOAD];
            for message in [&b"a"[..], &[7; PAYLOAD], b"last"] {
                near.send(from, to, message).unwrap();
                let received = loop {
                    let received = near.receive(&mut payload, until).unwrap();
                    if received.header.destination == from {
                        break received;
                    }
                };
                assert_eq!((&payload[..received.length], received.header.source), (message, to), "{name}");
            }
            assert_eq!(near.faults().total(), 0);
            let long = near.send(from, to, &[0; PAYLOAD + 1]);
            assert!(matches!(long, Err(Failure::Unsent(Unsent::TooLong))));
        }
    }

    #[test]
    fn nobody_there_is_a_timeout() {
        for wait in [Wait::Spin, Wait::Eventfd] {
            let memory = Memory::create(layout().unwrap().size).unwrap();
            let (ours, _theirs) = pair(wait);
            let mut near = Near::begin(memory, ours).unwrap();
            let found = near.connect(Service::Ping, monotonic_ns() + 20 * MILLISECOND);
            assert!(matches!(found, Err(Failure::Timeout)), "{found:?}");
        }
    }
}
