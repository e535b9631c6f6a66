//! Side that replies: the program of a remote processor for the benchmarks.
//!
//! [`RpmsgEcho::poll`] does one step and never waits, so that the same code runs in a process, in firmware without an
//! operating system, and behind a virtual machine. The caller decides how to wait between steps.

use crate::header::{FIRST_DYNAMIC, NAME_SERVICE, RpmsgAddress, RpmsgHeader};
use crate::link::{RpmsgLink, RpmsgLinkEvent, RpmsgMessage, Unsent};
pub use crate::messages::RpmsgServiceCounts;
use crate::messages::block::Receipt;
use crate::messages::{LongPing, PingWordSize, RpmsgStatus, ShortPing};
use crate::name_service::{Announcement, RpmsgEndpointName};
use crate::{Fault, Faults};

/// An endpoint that replies. Their addresses are [`FIRST_DYNAMIC`] on, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpmsgService {
    /// Echoes short pings that are sound.
    Ping,
    /// Echoes packets of long pings that are sound.
    LongPing,
    /// Echoes any message (the pseudo terminal's service).
    Pty,
    /// Echoes any message: the sender verifies its blocks.
    Bandwidth,
    /// Verifies blocks and echoes none. An empty message asks for the [`Receipt`], and begins a new one.
    Sink,
    /// Answers every message with the [`RpmsgStatus`].
    Status,
    /// Echoes anything, by the name for which Linux makes `/dev/rpmsgN` by itself.
    Raw,
    /// Echoes anything, by the name for which Linux makes `/dev/ttyRPMSGN` by itself.
    Tty,
}

impl RpmsgService {
    /// The benchmark's services, in the order of their addresses.
    pub const ALL: [RpmsgService; 6] = [
        RpmsgService::Ping,
        RpmsgService::LongPing,
        RpmsgService::Pty,
        RpmsgService::Bandwidth,
        RpmsgService::Sink,
        RpmsgService::Status,
    ];

    /// Services of [`RpmsgService::ALL`], and those that Linux has a driver for.
    pub const LINUX: [RpmsgService; 8] = [
        RpmsgService::Ping,
        RpmsgService::LongPing,
        RpmsgService::Pty,
        RpmsgService::Bandwidth,
        RpmsgService::Sink,
        RpmsgService::Status,
        RpmsgService::Raw,
        RpmsgService::Tty,
    ];

    /// The name it is announced by.
    pub const fn endpoint_name(self) -> RpmsgEndpointName {
        const fn name(text: &str) -> RpmsgEndpointName {
            RpmsgEndpointName::new(text).expect("a short name")
        }
        match self {
            RpmsgService::Ping => const { name("rpc-ping") },
            RpmsgService::LongPing => const { name("rpc-long-ping") },
            RpmsgService::Pty => const { name("pty-ping") },
            RpmsgService::Bandwidth => const { name("bandwidth") },
            RpmsgService::Sink => const { name("bandwidth-sink") },
            RpmsgService::Status => const { name("latscope-status") },
            RpmsgService::Raw => const { name("rpmsg-raw") },
            RpmsgService::Tty => const { name("rpmsg-tty") },
        }
    }

    /// Returns the address of the service.
    pub const fn address(self) -> RpmsgAddress {
        FIRST_DYNAMIC + self as RpmsgAddress
    }
}

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoStepOutcome {
    /// The echo has nothing to do.
    Idle,
    /// The echo has something to send and no buffer to send it in.
    Stalled,
    /// The peer broke the protocol. The next step may find the same.
    Fault(Fault),
    /// A name was announced.
    Announced,
    /// A message was replied to.
    Replied,
    /// A message was taken that needs no reply, or deserves none.
    Consumed,
}

impl EchoStepOutcome {
    /// Returns true if the next step is better taken after a kick.
    pub fn is_waiting(self) -> bool {
        matches!(self, EchoStepOutcome::Idle | EchoStepOutcome::Stalled | EchoStepOutcome::Fault(_))
    }
}

/// A step, and the kicks that the peer wants for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoProgress {
    /// Outcome of the step.
    pub step: EchoStepOutcome,
    /// A message was sent: the ring that this side sends by is to be kicked.
    pub kick_transmit: bool,
    /// A buffer became free: the ring that this side receives by is to be kicked.
    pub kick_receive: bool,
}

/// Replies to the benchmarks' messages of up to `SIZE` bytes of payload.
///
/// A reply that finds no buffer is held, and no other message is received until
/// it is sent: nothing is lost, and the peer's own buffers are its window.
#[derive(Debug)]
pub struct RpmsgEcho<L, const SIZE: usize> {
    link: L,
    services: &'static [RpmsgService],
    /// Number of services that were announced.
    announced: usize,
    held: Option<EchoReply>,
    payload: [u8; SIZE],
    receipt: Receipt,
    counts: RpmsgServiceCounts,
    faults: Faults,
    /// Names of the core and of the firmware.
    about: [&'static str; 2],
}

/// A reply: the first `length` bytes of the payload.
#[derive(Debug, Clone, Copy)]
struct EchoReply {
    source: RpmsgAddress,
    destination: RpmsgAddress,
    length: usize,
}

impl<L: RpmsgLink, const SIZE: usize> RpmsgEcho<L, SIZE> {
    /// Begins by announcing the benchmark's services.
    ///
    /// `SIZE` is at least [`Receipt::SIZE`], which is checked when it is built.
    pub fn new(link: L) -> Self {
        RpmsgEcho::with_services(link, &RpmsgService::ALL)
    }

    /// Makes an echo like `new`, with these services. A host that did not accept the name service gets no announcement,
    /// and can still send to their addresses.
    pub fn with_services(link: L, services: &'static [RpmsgService]) -> Self {
        const { assert!(SIZE >= Receipt::SIZE) };
        RpmsgEcho {
            announced: if link.takes_announcements() { 0 } else { services.len() },
            link,
            services,
            held: None,
            payload: [0; SIZE],
            receipt: Receipt::default(),
            counts: RpmsgServiceCounts::default(),
            faults: Faults::default(),
            about: [""; 2],
        }
    }

    /// States what the remote is: its core, and its firmware with the version.
    pub fn set_description(&mut self, core: &'static str, firmware: &'static str) {
        self.about = [core, firmware];
    }

    /// The link, to look at.
    pub fn link(&self) -> &L {
        &self.link
    }

    /// Returns the totals of the work done so far.
    pub fn counts(&self) -> RpmsgServiceCounts {
        self.counts
    }

    /// Returns the counts of the peer's faults so far.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Announces all services again, in the next steps, to a host that takes announcements.
    pub fn announce(&mut self) {
        self.announced = if self.link.takes_announcements() { 0 } else { self.services.len() };
    }

    /// Asks the peer for a kick at the event that the next step needs: a buffer or a message. Returns true if it is
    /// there already.
    ///
    /// # Errors
    /// The errors of [`RpmsgLink::request_kick`].
    pub fn request_kick(&mut self) -> Result<bool, Fault> {
        self.link.request_kick(self.needed())
    }

    /// Asks the peer for no kicks.
    ///
    /// # Errors
    /// The errors of [`RpmsgLink::suppress_kicks`].
    pub fn suppress_kicks(&mut self) -> Result<(), Fault> {
        self.link.suppress_kicks(RpmsgLinkEvent::Message)?;
        self.link.suppress_kicks(RpmsgLinkEvent::Buffer)
    }

    fn needed(&self) -> RpmsgLinkEvent {
        let to_send = self.held.is_some() || self.announced < self.services.len();
        if to_send { RpmsgLinkEvent::Buffer } else { RpmsgLinkEvent::Message }
    }

    /// Does one step: sends the reply that is held, or announces a service, or
    /// takes a message and replies.
    pub fn poll(&mut self) -> EchoProgress {
        let mut progress =
            EchoProgress { step: EchoStepOutcome::Idle, kick_transmit: false, kick_receive: false };
        let step = match (self.held, self.services.get(self.announced)) {
            (Some(reply), _) => self.reply_again(reply, &mut progress),
            (None, Some(service)) => self.announce_one(*service, &mut progress),
            (None, None) => self.receive_and_reply(&mut progress),
        };
        progress.step = step.unwrap_or_else(|fault| {
            self.faults.count(fault);
            EchoStepOutcome::Fault(fault)
        });
        progress
    }

    fn announce_one(
        &mut self,
        service: RpmsgService,
        progress: &mut EchoProgress,
    ) -> Result<EchoStepOutcome, Fault> {
        let announcement =
            Announcement { name: service.endpoint_name(), address: service.address(), destroyed: false };
        match self.link.send_message(service.address(), NAME_SERVICE, &announcement.encode_bytes()) {
            Err(Unsent::NoBuffer) => return Ok(EchoStepOutcome::Stalled),
            Err(Unsent::Fault(fault)) => return Err(fault),
            // Buffers too short for names are for peers that know the addresses.
            Err(Unsent::TooLong) => self.counts.too_long += 1,
            Ok(kick) => progress.kick_transmit = kick,
        }
        self.announced += 1;
        Ok(EchoStepOutcome::Announced)
    }

    /// Takes a message and replies. The message's buffer goes back after the reply, and the check whether the peer
    /// wants kicks comes last, so that a host that waits for the reply does not wait for either of them.
    fn receive_and_reply(&mut self, progress: &mut EchoProgress) -> Result<EchoStepOutcome, Fault> {
        let taken = self.link.take_message(&mut self.payload);
        let step = match taken {
            Ok(None) => return Ok(EchoStepOutcome::Idle),
            Ok(Some(message)) => self.respond(&message),
            Err(fault) => Err(fault),
        };
        self.link.release_buffer()?;
        progress.kick_receive = self.link.wants_kick(RpmsgLinkEvent::Buffer)?;
        progress.kick_transmit =
            step == Ok(EchoStepOutcome::Replied) && self.link.wants_kick(RpmsgLinkEvent::Message)?;
        step
    }

    fn respond(&mut self, message: &RpmsgMessage) -> Result<EchoStepOutcome, Fault> {
        let Some(length) = self.prepare_reply(message) else { return Ok(EchoStepOutcome::Consumed) };
        let RpmsgHeader { source, destination, .. } = message.header;
        let step = self.reply(EchoReply { source: destination, destination: source, length });
        self.counts.stalls += u64::from(step == Ok(EchoStepOutcome::Stalled));
        step
    }

    /// Turns the payload into the reply and returns its length; `None` if there is no reply.
    fn prepare_reply(&mut self, message: &RpmsgMessage) -> Option<usize> {
        let payload = &self.payload[..message.length];
        let whole = message.length == usize::from(message.header.length);
        let address = message.header.destination;
        if address == NAME_SERVICE && message.length == Announcement::SIZE {
            // The host tells of endpoints of its own: what they are called changes nothing here.
            return None;
        }
        let Some(service) = self.services.iter().copied().find(|service| service.address() == address) else {
            self.counts.unknown += 1;
            return None;
        };
        let sound = whole
            && match service {
                RpmsgService::Ping => {
                    PingWordSize::ALL.into_iter().any(|word| ShortPing::parse(word, payload).is_ok())
                }
                RpmsgService::LongPing => LongPing::is_packet(payload),
                _ => true,
            };
        if !sound {
            self.counts.mismatched += 1;
            return None;
        }
        match service {
            RpmsgService::Sink => self.sink(message.length),
            RpmsgService::Status => self.status(),
            _ => Some(message.length),
        }
    }

    /// Makes the payload the status, if it has room for one.
    fn status(&mut self) -> Option<usize> {
        let [core, firmware] = self.about;
        let status = RpmsgStatus::new(self.counts, self.faults.total(), core, firmware);
        let Some(room) = self.payload.first_chunk_mut() else {
            self.counts.too_long += 1;
            return None;
        };
        *room = status.encode_bytes();
        Some(RpmsgStatus::SIZE)
    }

    /// Counts a block, or makes the payload the receipt.
    fn sink(&mut self, length: usize) -> Option<usize> {
        if length > 0 {
            self.receipt.count_block(&self.payload[..length]);
            self.counts.sunk += 1;
            return None;
        }
        let receipt = core::mem::take(&mut self.receipt);
        self.payload[..Receipt::SIZE].copy_from_slice(&receipt.bytes());
        Some(Receipt::SIZE)
    }

    /// Tries to send the reply that is held.
    fn reply_again(
        &mut self,
        reply: EchoReply,
        progress: &mut EchoProgress,
    ) -> Result<EchoStepOutcome, Fault> {
        let step = self.reply(reply)?;
        progress.kick_transmit =
            step == EchoStepOutcome::Replied && self.link.wants_kick(RpmsgLinkEvent::Message)?;
        Ok(step)
    }

    /// Sends a reply, or holds it.
    fn reply(&mut self, reply: EchoReply) -> Result<EchoStepOutcome, Fault> {
        self.held = Some(reply);
        let step = match self.link.post(reply.source, reply.destination, &self.payload[..reply.length]) {
            Err(Unsent::NoBuffer) => return Ok(EchoStepOutcome::Stalled),
            Err(Unsent::Fault(fault)) => return Err(fault),
            Err(Unsent::TooLong) => {
                self.counts.too_long += 1;
                EchoStepOutcome::Consumed
            }
            Ok(()) => {
                // An answer that has the counts is not among them.
                self.counts.replied += u64::from(reply.source != RpmsgService::Status.address());
                EchoStepOutcome::Replied
            }
        };
        self.held = None;
        Ok(step)
    }
}

#[cfg(test)]
mod tests;
