//! Messages to a remote over RPMsg in memory that both sides map: the host's end, for any kind of memory and of kicks.
//!
//! What the other side writes is not trusted: [`latscope_rpmsg`] checks it.

use super::kicks::{FOREVER, KickWait, Kicks, Next};
use super::{ChannelFailure, ChannelRequest, MessageWakeSource, RemoteChannel, STATUS_TIMEOUT};
use anyhow::{Context, ensure};
use latscope_os::clock::monotonic_ns;
use latscope_os::window::MemoryWindow as Memory;
use latscope_os::window::ends::{ENTRIES, Near};
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::header::{NAME_SERVICE, RpmsgAddress, RpmsgHeader};
use latscope_rpmsg::link::{RpmsgLinkEvent, RpmsgMessage, Unsent};
use latscope_rpmsg::messages::RpmsgStatus;
use latscope_rpmsg::name_service::{Announcement, RpmsgEndpointName};
use latscope_rpmsg::table::status::NEEDS_RESET;
use latscope_rpmsg::table::{NAME_SERVICE as NAMES, ResourceTable};
use latscope_rpmsg::{Fault, Faults, RpmsgLink, RpmsgWindow};
use std::time::Duration;

/// Entries of a ring with long buffers: these and those of the other direction stay in a cache.
const FEW: u16 = 8;

/// Sizes of a buffer, header included, bytes: the size in Linux, and the largest size that a header can state.
const BUFFERS: [u32; 2] = [512, 65_536];

/// The longest payload in usual buffers, bytes.
pub const PAYLOAD: usize = BUFFERS[0] as usize - RpmsgHeader::SIZE;

/// The longest payload in long buffers, bytes.
pub const LONGEST: usize = BUFFERS[1] as usize - RpmsgHeader::SIZE;

/// Returns the division of a memory that this side lays out, for payloads of up to `payload` bytes.
///
/// # Errors
/// The function returns no error for the sizes that are used.
pub(super) fn layout(payload: usize) -> Result<RpmsgWindow, Fault> {
    let (entries, size) = if payload <= PAYLOAD { (ENTRIES as u16, BUFFERS[0]) } else { (FEW, BUFFERS[1]) };
    RpmsgWindow::new(entries, size, size)
}

/// The process or machine at the other side.
pub(super) trait Far {
    /// Returns a description of the end of the other side; `None` while it runs.
    fn describe_end(&mut self) -> Option<String>;

    /// Returns the reason, in a sentence, why the times are not those of the transport alone; usually `None`.
    fn distortion(&self) -> Option<&'static str> {
        None
    }
}

/// Time by which a remote announces a service, and where a long wait is reported.
#[derive(Clone, Copy)]
pub(super) struct ServiceWait<'a> {
    /// Instant of `CLOCK_MONOTONIC`, ns.
    pub until: u64,
    pub notice: &'a dyn Fn(&str),
}

impl ServiceWait<'_> {
    /// A wait that is not reported.
    pub(super) fn until(until: u64) -> ServiceWait<'static> {
        ServiceWait { until, notice: &|_| () }
    }
}

/// Least time for a remote that is there to announce its services.
pub(super) const ANNOUNCED: Duration = Duration::from_millis(500);

/// Time before the first report of a wait, ns.
const SILENCE: u64 = 1_000_000_000;

/// Function that returns the name of an order's endpoint, and the spin time before a sleep, ns.
pub(super) type Follow = fn(&ChannelRequest) -> anyhow::Result<(RpmsgEndpointName, u64)>;

/// The host's end, the virtio driver, connected to a service.
pub(super) struct Rings {
    host: Near,
    /// Table with the status, in which the other side sees that this side is there.
    pub(super) table: ResourceTable,
    memory: Memory,
    kicks: Kicks,
    far: Box<dyn Far>,
    pub(super) endpoints: Endpoints<8>,
    faults: Faults,
    limit: usize,
    window: usize,
    /// Our address and that of the service.
    between: (RpmsgAddress, RpmsgAddress),
    /// Rule by which the connection serves a further order, and the longest wait for its service.
    following: Option<(Follow, Duration)>,
    /// A buffer was taken and not given back.
    holds: bool,
    /// The last sleep ended without a kick.
    unkicked: bool,
    recovered: u64,
    misaddressed: u64,
}

impl Rings {
    /// Makes the memory ready, with any earlier contents, and begins; waits until the other side announced the service.
    ///
    /// # Errors
    /// The memory is too small, or the service was not announced in time.
    pub(super) fn connect(
        window: &RpmsgWindow,
        memory: Memory,
        kicks: Kicks,
        far: Box<dyn Far>,
        service: RpmsgService,
        until: u64,
    ) -> anyhow::Result<Rings> {
        window.reset(&memory)?;
        Rings::connect_existing(
            window,
            memory,
            kicks,
            far,
            service.endpoint_name(),
            ServiceWait::until(until),
        )
    }

    /// Connects like [`connect`](Rings::connect), in memory whose table is there already, or that needs none.
    ///
    /// # Errors
    /// The errors of `connect`.
    pub(super) fn connect_existing(
        window: &RpmsgWindow,
        memory: Memory,
        kicks: Kicks,
        far: Box<dyn Far>,
        service: RpmsgEndpointName,
        wait: ServiceWait,
    ) -> anyhow::Result<Rings> {
        ensure!(
            window.table.features & NAMES != 0,
            "the remote does not offer to announce names (feature bit 0)"
        );
        let mut host = Near::start_host(window, memory.clone(), || ())?;
        host.suppress_kicks(RpmsgLinkEvent::Message)?;
        let mut endpoints = Endpoints::default();
        let ours = endpoints.open_endpoint(service).ok_or(ChannelFailure::Unsent(Unsent::NoBuffer))?;
        let mut rings = Rings {
            host,
            table: window.table,
            memory,
            kicks,
            far,
            endpoints,
            faults: Faults::default(),
            limit: window.pools[1].buffer as usize - RpmsgHeader::SIZE,
            window: usize::from(window.pools[1].count / 2).max(1),
            between: (ours, 0),
            following: None,
            holds: false,
            unkicked: false,
            recovered: 0,
            misaddressed: 0,
        };
        rings.kicks.kick()?;
        rings.wait_for_service(service, wait)?;
        Ok(rings)
    }

    /// Lets the connection serve further orders, by a rule. Each service is waited for at most this time.
    pub(super) fn set_follow_rule(&mut self, rule: Follow, wait: Duration) {
        self.following = Some((rule, wait));
    }

    /// Waits until the other side announced the name of the own endpoint.
    fn wait_for_service(&mut self, service: RpmsgEndpointName, wait: ServiceWait) -> anyhow::Result<()> {
        let mut payload = vec![0; self.limit.max(Announcement::SIZE)];
        let mut until = wait.until.min(monotonic_ns().saturating_add(SILENCE));
        loop {
            if let Some(theirs) = self.endpoints.peer(self.between.0) {
                self.between.1 = theirs;
                return Ok(());
            }
            let failure = match self.any(&mut payload, until) {
                // A flood of other messages has an end, as silence has.
                Ok(_) if self.endpoints.peer(self.between.0).is_some() || monotonic_ns() < until => continue,
                Ok(_) => ChannelFailure::Timeout,
                Err(failure) => failure,
            };
            anyhow::bail!(match (self.far.describe_end(), failure) {
                (Some(end), _) => format!("the remote ended: {end}"),
                (None, ChannelFailure::Timeout) if until < wait.until => {
                    let left = (wait.until - until) as f64 / 1e9;
                    let announced = self.announced();
                    (wait.notice)(&format!("waiting for {service}, at most {left:.0} s more: {announced}"));
                    until = wait.until;
                    continue;
                }
                (None, ChannelFailure::Timeout) => {
                    format!("the remote did not announce {service}: {}", self.announced())
                }
                (None, failure) => failure.to_string(),
            });
        }
    }

    /// Returns the names that the other side announced, as a sentence.
    fn announced(&self) -> String {
        let names: Vec<String> = self.endpoints.theirs().map(|(name, _)| name.to_string()).collect();
        if names.is_empty() {
            "it announced no name".to_owned()
        } else {
            format!("it announced {}", names.join(", "))
        }
    }

    /// Returns the end that the remote itself told of: by the status of the device, or by an announcement.
    fn farewell(&self) -> Option<String> {
        let (ours, theirs) = self.between;
        if self.table.status(&self.memory).is_ok_and(|status| status & NEEDS_RESET != 0) {
            return Some("the remote asks for a reset (status NEEDS_RESET)".to_owned());
        }
        let name = self.endpoints.endpoint_name(ours).filter(|_| theirs != 0)?;
        let has = self.endpoints.theirs().any(|channel| channel == (name, theirs));
        (!has).then(|| format!("the remote destroyed its channel {name}"))
    }

    /// Announces to the other side that the endpoints of this side no longer exist. OpenAMP's echo ends after that.
    fn announce_destroy(&mut self) {
        for goodbye in self.endpoints.ours().collect::<Vec<_>>() {
            let goodbye = Announcement { destroyed: true, ..goodbye };
            // One that is gone does not miss it.
            if self.host.send_message(goodbye.address, NAME_SERVICE, &goodbye.encode_bytes()) == Ok(true) {
                let _ = self.kicks.kick();
            }
        }
    }

    /// Receives messages that are there already, and drops them.
    fn discard(&mut self) {
        let mut room = vec![0; self.limit];
        for _ in 0..ENTRIES {
            if self.any(&mut room, 0).is_err() {
                break;
            }
        }
    }

    /// Receives the next message from any endpoint. Processes announcements too, and counts data that is no message.
    #[inline]
    fn any(&mut self, into: &mut [u8], until: u64) -> Result<RpmsgMessage, ChannelFailure> {
        self.release_buffer()?;
        let mut wait = KickWait::new(self.kicks.spin_ns, until);
        loop {
            match self.host.take_message(into) {
                Ok(Some(message)) => return self.process_message(message, into),
                Ok(None) => {}
                Err(fault) => self.fault(fault)?,
            }
            match wait.next_action() {
                Next::Look => {}
                Next::Sleep(ns) => self.sleep(ns)?,
                Next::Over => return Err(ChannelFailure::Timeout),
            }
        }
    }

    #[inline]
    fn process_message(
        &mut self,
        message: RpmsgMessage,
        payload: &[u8],
    ) -> Result<RpmsgMessage, ChannelFailure> {
        self.holds = true;
        if std::mem::take(&mut self.unkicked) && !self.kicks.wait_for_kick(0)? {
            self.recovered += 1;
        }
        if let Some(Err(fault)) = self.endpoints.handle_message(&message.header, &payload[..message.length]) {
            self.faults.count(fault);
        }
        Ok(message)
    }

    /// Gives the buffer of the last message back. This is not done at once, so that a caller that waits for the message
    /// does not wait for it.
    #[inline]
    fn release_buffer(&mut self) -> Result<(), ChannelFailure> {
        if std::mem::take(&mut self.holds) {
            self.host.release_buffer().map_err(|fault| self.record_fatal_fault(fault))?;
            self.kick_for(RpmsgLinkEvent::Buffer)?;
        }
        Ok(())
    }

    /// Kicks if the other side asked for it. Where no side sleeps no side asks.
    #[inline]
    fn kick_for(&mut self, event: RpmsgLinkEvent) -> Result<(), ChannelFailure> {
        let asked = self.kicks.spin_ns != FOREVER
            && self.host.wants_kick(event).map_err(|fault| self.record_fatal_fault(fault))?;
        if asked {
            self.kicks.kick()?;
        }
        Ok(())
    }

    /// Counts a fault of one entry. A fault of the index ends the channel: the ring has no next entry then.
    #[cold]
    fn fault(&mut self, fault: Fault) -> Result<(), ChannelFailure> {
        self.faults.count(fault);
        if fault == Fault::Index { Err(ChannelFailure::from_fault(fault)) } else { Ok(()) }
    }

    /// Counts a fault that ends the current operation, such as a buffer that came back without having been sent.
    #[cold]
    fn record_fatal_fault(&mut self, fault: Fault) -> ChannelFailure {
        self.faults.count(fault);
        ChannelFailure::from_fault(fault)
    }

    /// Asks for a kick and sleeps, unless something came meanwhile.
    fn sleep(&mut self, ns: u64) -> Result<(), ChannelFailure> {
        match self.host.request_kick(RpmsgLinkEvent::Message) {
            Ok(true) => {}
            Ok(false) => self.unkicked = !self.kicks.wait_for_kick(ns)?,
            Err(fault) => self.fault(fault)?,
        }
        self.host.suppress_kicks(RpmsgLinkEvent::Message).map_err(|fault| self.record_fatal_fault(fault))
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        self.announce_destroy();
        // The device is reset: it may serve the next driver. Memory that cannot be written to has no other side.
        let _ = self.table.set_status(&self.memory, 0);
    }
}

/// Messages to others between two looks at the clock.
const STRANGERS: u32 = 64;

impl RemoteChannel for Rings {
    #[inline]
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        self.host.post(self.between.0, self.between.1, message).map_err(|unsent| {
            if let Unsent::Fault(fault) = unsent {
                self.faults.count(fault);
            }
            ChannelFailure::Unsent(unsent)
        })?;
        self.kick_for(RpmsgLinkEvent::Message)
    }

    #[inline]
    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        let mut strangers = 0u32;
        loop {
            let message = self.any(into, until)?;
            if (message.header.destination, message.header.source) == self.between {
                return Ok(message.length);
            }
            self.misaddressed += u64::from(message.header.destination != NAME_SERVICE);
            strangers += 1;
            // A flood has an end, too.
            if strangers.is_multiple_of(STRANGERS) && monotonic_ns() >= until {
                return Err(ChannelFailure::Timeout);
            }
        }
    }

    fn wake_source(&mut self) -> Result<MessageWakeSource<'_>, ChannelFailure> {
        if self.kicks.spin_ns == FOREVER {
            return Ok(MessageWakeSource::Now);
        }
        // A kick of before is none for what comes.
        self.kicks.wait_for_kick(0)?;
        let ready =
            self.host.request_kick(RpmsgLinkEvent::Message).inspect_err(|fault| self.faults.count(*fault));
        Ok(match (ready, self.kicks.poll_descriptor()) {
            (Ok(true), _) => MessageWakeSource::Now,
            (Ok(false), Some(descriptor)) => MessageWakeSource::Readable(descriptor),
            _ => MessageWakeSource::Unknown,
        })
    }

    fn is_reusable(&self) -> bool {
        self.following.is_some()
    }

    fn turn_to(&mut self, order: &ChannelRequest) -> anyhow::Result<()> {
        let (rule, wait) = self.following.context("each order takes a connection of its own")?;
        let (name, spin_ns) = rule(order)?;
        self.kicks.spin_ns = spin_ns;
        self.between =
            (self.endpoints.open_endpoint(name).ok_or(ChannelFailure::Unsent(Unsent::NoBuffer))?, 0);
        let time = order.patience.min(wait).max(ANNOUNCED);
        let until = monotonic_ns() + time.as_nanos() as u64;
        self.wait_for_service(name, ServiceWait { until, notice: order.notice })?;
        // Replies to an earlier order do not count: the counts are of this one.
        self.discard();
        self.faults = Faults::default();
        (self.recovered, self.misaddressed) = (0, 0);
        Ok(())
    }

    fn status(&mut self) -> Option<RpmsgStatus> {
        if self.limit < RpmsgStatus::SIZE {
            return None;
        }
        self.discard();
        let name = RpmsgService::Status.endpoint_name();
        let theirs = self.endpoints.theirs().find(|(theirs, _)| *theirs == name)?.1;
        let ours = self.endpoints.open_endpoint(name)?;
        let (before, misaddressed) =
            (std::mem::replace(&mut self.between, (ours, theirs)), self.misaddressed);
        let mut answer = vec![0; self.limit];
        let until = monotonic_ns() + STATUS_TIMEOUT.as_nanos() as u64;
        let received = self.send_message(&[]).and_then(|()| self.receive_message(&mut answer, until));
        // Replies that come late are not for this question, nor astray.
        (self.between, self.misaddressed) = (before, misaddressed);
        RpmsgStatus::parse(&answer[..received.ok()?]).ok()
    }

    fn limit(&self) -> usize {
        self.limit
    }

    fn window(&self) -> usize {
        self.window
    }

    fn faults(&self) -> u64 {
        self.faults.total()
    }

    fn misaddressed(&self) -> u64 {
        self.misaddressed
    }

    fn recovered(&self) -> u64 {
        self.recovered
    }

    fn end_description(&mut self) -> Option<String> {
        self.far.describe_end().or_else(|| self.farewell())
    }

    fn distortion(&self) -> Option<&'static str> {
        self.far.distortion()
    }
}
