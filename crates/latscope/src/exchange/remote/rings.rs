//! Messages to a remote over RPMsg in memory that both sides map: the host's
//! end, whatever the memory is and however the two kick each other.
//!
//! What the other side writes is not trusted: [`latscope_rpmsg`] checks it.

use super::kicks::Kicks;
use super::{Channel, Failure};
use latscope_rpmsg::echo::Service;
use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::header::{Address, Header, NAME_SERVICE};
use latscope_rpmsg::link::{Event, Received, Unsent};
use latscope_rpmsg::name_service::{Announcement, Name};
use latscope_rpmsg::{Fault, Faults, Host, Link, Window};
use latscope_sys::clock::monotonic_ns;
use latscope_sys::window::Window as Memory;
use std::hint::spin_loop;

/// Entries of a ring, and buffers of a direction.
const ENTRIES: usize = 256;

/// Bytes of a buffer, header included: what Linux has.
const BUFFER: u32 = 512;

/// The longest payload, bytes.
pub const PAYLOAD: usize = BUFFER as usize - Header::SIZE;

/// Looks at the ring between two looks at the clock.
const LOOKS: u32 = 1 << 8;

/// How long a kick is waited for before one looks again, ns: one may be lost.
const WATCHDOG: u64 = 10_000_000;

/// How the memory is divided, where we decide it.
///
/// # Errors
/// None for the sizes that are used.
pub fn layout() -> Result<Window, Fault> {
    Window::new(ENTRIES as u16, BUFFER, BUFFER)
}

/// The process or machine at the other side.
pub trait Far {
    /// How it ended, if it did.
    fn ended(&mut self) -> Option<String>;
}

/// The host's end, the virtio driver, connected to a service.
pub struct Rings {
    host: Host<Memory, ENTRIES>,
    kicks: Box<dyn Kicks>,
    far: Box<dyn Far>,
    endpoints: Endpoints<8>,
    faults: Faults,
    limit: usize,
    /// Our address and that of the service.
    between: (Address, Address),
}

impl Rings {
    /// Makes the memory ready, whatever is in it, and begins; waits until the
    /// other side announced the service.
    ///
    /// # Errors
    /// The memory is too small, or nobody announced the service in time.
    pub fn connect(
        window: &Window,
        memory: Memory,
        kicks: Box<dyn Kicks>,
        far: Box<dyn Far>,
        service: Service,
        until: u64,
    ) -> anyhow::Result<Rings> {
        window.reset(&memory)?;
        Rings::join(window, memory, kicks, far, service.name(), until)
    }

    /// As [`connect`](Rings::connect) in memory whose table is there already, or that needs none.
    ///
    /// # Errors
    /// As `connect`.
    pub fn join(
        window: &Window,
        memory: Memory,
        kicks: Box<dyn Kicks>,
        far: Box<dyn Far>,
        service: Name,
        until: u64,
    ) -> anyhow::Result<Rings> {
        let host = window.host(memory)?;
        let mut endpoints = Endpoints::default();
        let ours = endpoints.open(service).ok_or(Failure::Unsent(Unsent::NoBuffer))?;
        let limit = window.pools[1].buffer as usize - Header::SIZE;
        let faults = Faults::default();
        let mut rings = Rings { host, kicks, far, endpoints, faults, limit, between: (ours, 0) };
        rings.kicks.kick()?;
        let mut payload = vec![0; window.pools[0].buffer as usize];
        loop {
            if let Some(theirs) = rings.endpoints.peer(ours) {
                rings.between.1 = theirs;
                return Ok(rings);
            }
            if let Err(failure) = rings.any(&mut payload, until) {
                anyhow::bail!(match (rings.far.ended(), failure) {
                    (Some(end), _) => format!("the remote ended: {end}"),
                    (None, Failure::Timeout) => format!("the remote did not announce {service}"),
                    (None, failure) => failure.to_string(),
                });
            }
        }
    }

    /// Tells the other side that our endpoint is no more. OpenAMP's echo ends by this.
    fn leave(&mut self) {
        let (address, _) = self.between;
        let Some(name) = self.endpoints.close(address) else { return };
        let goodbye = Announcement { name, address, destroyed: true };
        // One that is gone does not miss it.
        if self.host.send(address, NAME_SERVICE, &goodbye.bytes()) == Ok(true) {
            let _ = self.kicks.kick();
        }
    }

    /// The next message of anybody. Announcements are heard as well. What is no
    /// message is counted.
    #[inline]
    fn any(&mut self, into: &mut [u8], until: u64) -> Result<Received, Failure> {
        let mut began = None;
        let mut looks = 0u32;
        loop {
            match self.host.receive(into) {
                Ok(Some(received)) => return self.received(received, into),
                Ok(None) => {}
                Err(fault) => self.faults.count(fault),
            }
            looks += 1;
            if !looks.is_multiple_of(LOOKS) && self.kicks.patience() > 0 && until > 0 {
                spin_loop();
            } else {
                self.rest(until, &mut began)?;
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

    /// Waits a while: looking again at once, or asleep.
    fn rest(&mut self, until: u64, began: &mut Option<u64>) -> Result<(), Failure> {
        let now = monotonic_ns();
        let left = until.saturating_sub(now);
        if left == 0 {
            return Err(Failure::Timeout);
        }
        if now - *began.get_or_insert(now) < self.kicks.patience() {
            return Ok(());
        }
        match self.host.listen(Event::Message) {
            Ok(true) => Ok(()),
            Ok(false) => Ok(self.kicks.sleep(left.min(WATCHDOG))?),
            Err(fault) => {
                self.faults.count(fault);
                Ok(self.kicks.sleep(left.min(MILLISECOND))?)
            }
        }
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        self.leave();
    }
}

const MILLISECOND: u64 = 1_000_000;

impl Channel for Rings {
    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), Failure> {
        match self.host.send(self.between.0, self.between.1, message) {
            Ok(true) => Ok(self.kicks.kick()?),
            Ok(false) => Ok(()),
            Err(unsent) => Err(Failure::Unsent(unsent)),
        }
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8], until: u64) -> Result<usize, Failure> {
        loop {
            let received = self.any(into, until)?;
            if (received.header.destination, received.header.source) == self.between {
                return Ok(received.length);
            }
        }
    }

    fn limit(&self) -> usize {
        self.limit
    }

    fn faults(&self) -> u64 {
        self.faults.total()
    }

    fn ended(&mut self) -> Option<String> {
        self.far.ended()
    }
}
