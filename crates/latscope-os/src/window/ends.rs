//! Both ends of a link over a mapped window.
//!
//! They are those of [`latscope_rpmsg`], for one kind of memory. This crate is compiled for speed in every
//! build, and what is generic is compiled where its types are known: for these, here.

use super::MemoryWindow;
use latscope_rpmsg::echo::{self, EchoProgress, RpmsgServiceCounts};
use latscope_rpmsg::header::RpmsgAddress;
use latscope_rpmsg::link::{RpmsgLink, RpmsgLinkEvent, RpmsgMessage, Unsent};
use latscope_rpmsg::{Fault, Faults, RpmsgHost, RpmsgRemote};

/// The most entries that a ring of a [`Near`] has.
pub const ENTRIES: usize = 256;

/// The longest payload that an [`WindowEcho`] answers, bytes.
pub const PAYLOAD: usize = u16::MAX as usize;

/// The host's end, the virtio driver: [`RpmsgLink`] is how it is used.
#[derive(Debug)]
pub struct Near(RpmsgHost<MemoryWindow, ENTRIES>);

impl Near {
    /// Starts the host's side, as [`latscope_rpmsg::RpmsgWindow::host_after`] does.
    ///
    /// # Errors
    /// The errors of [`latscope_rpmsg::RpmsgWindow::host_after`].
    pub fn start_host(
        layout: &latscope_rpmsg::RpmsgWindow,
        memory: MemoryWindow,
        grace: impl FnOnce(),
    ) -> Result<Near, Fault> {
        layout.host_after(memory, grace).map(Near)
    }
}

impl RpmsgLink for Near {
    #[inline]
    fn post(
        &mut self,
        source: RpmsgAddress,
        destination: RpmsgAddress,
        payload: &[u8],
    ) -> Result<(), Unsent> {
        self.0.post(source, destination, payload)
    }

    #[inline]
    fn take_message(&mut self, into: &mut [u8]) -> Result<Option<RpmsgMessage>, Fault> {
        self.0.take_message(into)
    }

    #[inline]
    fn release_buffer(&mut self) -> Result<(), Fault> {
        self.0.release_buffer()
    }

    #[inline]
    fn wants_kick(&self, event: RpmsgLinkEvent) -> Result<bool, Fault> {
        self.0.wants_kick(event)
    }

    #[inline]
    fn request_kick(&mut self, event: RpmsgLinkEvent) -> Result<bool, Fault> {
        self.0.request_kick(event)
    }

    #[inline]
    fn suppress_kicks(&mut self, event: RpmsgLinkEvent) -> Result<(), Fault> {
        self.0.suppress_kicks(event)
    }
}

/// The remote's end, which replies.
#[derive(Debug)]
pub struct WindowEcho(Box<echo::RpmsgEcho<RpmsgRemote<MemoryWindow>, PAYLOAD>>);

impl WindowEcho {
    /// Begins by announcing its services.
    pub fn new(remote: RpmsgRemote<MemoryWindow>) -> WindowEcho {
        WindowEcho(Box::new(echo::RpmsgEcho::new(remote)))
    }

    /// States what the remote is: [`echo::RpmsgEcho::set_description`].
    pub fn set_remote_description(&mut self, core: &'static str, firmware: &'static str) {
        self.0.set_description(core, firmware);
    }

    /// Does one step: [`echo::RpmsgEcho::poll`].
    #[inline]
    pub fn poll(&mut self) -> EchoProgress {
        self.0.poll()
    }

    /// Asks for a kick, as [`echo::RpmsgEcho::request_kick`] does.
    ///
    /// # Errors
    /// The errors of [`echo::RpmsgEcho::request_kick`].
    #[inline]
    pub fn listen(&mut self) -> Result<bool, Fault> {
        self.0.request_kick()
    }

    /// Asks for no kicks, as [`echo::RpmsgEcho::suppress_kicks`] does.
    ///
    /// # Errors
    /// The errors of [`echo::RpmsgEcho::suppress_kicks`].
    #[inline]
    pub fn mute(&mut self) -> Result<(), Fault> {
        self.0.suppress_kicks()
    }

    /// Returns the counts of the work done so far.
    pub fn service_counts(&self) -> RpmsgServiceCounts {
        self.0.counts()
    }

    /// Returns the counts of the peer's faults so far.
    pub fn faults(&self) -> Faults {
        self.0.faults()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_rpmsg::RpmsgWindow as Layout;
    use latscope_rpmsg::echo::{EchoStepOutcome, RpmsgService};
    use latscope_rpmsg::messages::block;

    /// Every length that a header can name, at its ends and around.
    #[test]
    fn the_echo_answers_messages_of_every_length() {
        let layout = Layout::new(16, 65536 + 16, 65536 + 16).unwrap();
        let memory = MemoryWindow::create_zeroed(layout.size).unwrap();
        layout.reset(&memory).unwrap();
        let mut near = Near::start_host(&layout, memory.clone(), || ()).unwrap();
        let mut echo = WindowEcho::new(layout.remote(memory).unwrap().unwrap());
        let mut message = vec![0; PAYLOAD + 1];
        let mut found = vec![0; PAYLOAD];
        for (sequence, length) in (0..).zip([8, 48, 496, 4096, 65_519, 65_520, PAYLOAD]) {
            block::write_block(sequence, &mut message[..length]);
            near.post(0x500, RpmsgService::Bandwidth.address(), &message[..length]).unwrap();
            while echo.poll().step != EchoStepOutcome::Idle {}
            let reply = loop {
                let message = near.take_message(&mut found).unwrap().expect("a reply");
                if message.header.destination == 0x500 {
                    break &found[..message.length];
                }
            };
            assert_eq!((reply.len(), block::verify_block(reply)), (length, Ok(sequence)));
        }
        assert_eq!(near.post(0x500, RpmsgService::Bandwidth.address(), &message), Err(Unsent::TooLong));
        assert_eq!((echo.service_counts().replied, echo.faults().total()), (7, 0));
    }
}
