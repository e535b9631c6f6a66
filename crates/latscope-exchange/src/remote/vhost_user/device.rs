//! Device: the answers to the monitor's requests, and the echo once the guest's driver is there.

use super::memory::Guest;
use super::wire::VhostUserMessage;
use crate::notify::eventfd;
use anyhow::{Context, Result, ensure};
use latscope_rpmsg::RpmsgRemote;
use latscope_rpmsg::echo::{RpmsgEcho, RpmsgService};
use latscope_rpmsg::ring::VirtqueueLayout;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The longest payload of a buffer of Linux, bytes.
const PAYLOAD: usize = 496;

/// Messages between two looks at the monitor: a guest that floods does not hold it up.
const STEPS: u32 = 256;

/// Features of the device: the name service (bit 0), virtio 1 (bit 32), and the right of its monitor to ask for
/// features of the protocol (bit 30).
const FEATURES: u64 = 1 | 1 << 30 | 1 << 32;

/// More than one ring (bit 0), confirmations (bit 3).
const PROTOCOL: u64 = 1 | 1 << 3;

/// The numbers of requests.
mod request {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const RESET_OWNER: u32 = 4;
    pub(super) const SET_MEMORY: u32 = 5;
    pub(super) const SET_NUM: u32 = 8;
    pub(super) const SET_ADDRESSES: u32 = 9;
    pub(super) const SET_BASE: u32 = 10;
    pub(super) const GET_BASE: u32 = 11;
    pub(super) const SET_KICK: u32 = 12;
    pub(super) const SET_CALL: u32 = 13;
    pub(super) const SET_ERROR: u32 = 14;
    pub(super) const GET_PROTOCOL: u32 = 15;
    pub(super) const SET_PROTOCOL: u32 = 16;
    pub(super) const GET_RINGS: u32 = 17;
    pub(super) const SET_ENABLED: u32 = 18;
}

/// A ring as the monitor describes it.
#[derive(Debug, Default)]
struct VhostUserVring {
    num: u32,
    /// The monitor's addresses of descriptors, used and available ring.
    addresses: Option<[u64; 3]>,
    position: u16,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    enabled: bool,
}

impl VhostUserVring {
    fn layout(&self, guest: &Guest) -> Result<VirtqueueLayout> {
        let [descriptors, used, available] = self.addresses.context("no addresses")?;
        let place = |address| guest.translate(address);
        Ok(VirtqueueLayout::parts(place(descriptors)?, place(available)?, place(used)?, self.num)?)
    }

    fn is_ready(&self) -> bool {
        self.enabled && self.num > 0 && self.addresses.is_some() && self.kick.is_some()
    }
}

/// The device of one monitor.
#[derive(Default)]
pub(super) struct RpmsgDevice {
    guest: Option<Guest>,
    /// Queues from the device and to the device.
    queues: [VhostUserVring; 2],
    /// The features that the guest's driver accepted.
    accepted: u64,
    /// True if the guest kicked since the rings began: its driver is ready.
    awake: bool,
    echo: Option<RpmsgEcho<RpmsgRemote<Guest>, PAYLOAD>>,
    replied: u64,
    faults: u64,
}

impl RpmsgDevice {
    /// Returns the descriptors whose events wake the device.
    pub(super) fn kick_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queues.iter().filter_map(|queue| queue.kick.as_ref().map(AsFd::as_fd))
    }

    /// Takes the kicks of the guest; `which` is in the order of [`RpmsgDevice::kick_descriptors`].
    pub(super) fn take_kicks(&mut self, which: &[bool]) {
        let kicks = self.queues.iter().filter_map(|queue| queue.kick.as_ref());
        for (kick, _) in kicks.zip(which).filter(|(_, kicked)| **kicked) {
            // Nothing to read is what a kick that came twice looks like.
            let _ = rustix::io::read(kick, &mut [0u8; 8]);
        }
        self.awake = true;
    }

    /// Answers the guest; whether there is more to do at once.
    ///
    /// # Errors
    /// The guest cannot be notified.
    pub(super) fn answer_guest(&mut self) -> Result<bool> {
        let Some(echo) = self.echo.as_mut().filter(|_| self.awake) else { return Ok(false) };
        let calls = self.queues.each_ref().map(|queue| queue.call.as_ref());
        for _ in 0..STEPS {
            let progress = echo.poll();
            let wanted = [progress.kick_transmit, progress.kick_receive];
            calls
                .iter()
                .zip(wanted)
                .filter(|(_, wanted)| *wanted)
                .filter_map(|(call, _)| *call)
                .try_for_each(eventfd::signal)?;
            if progress.step.is_waiting() {
                return Ok(echo.request_kick().unwrap_or(false));
            }
        }
        Ok(true)
    }

    /// Carries out the request of the monitor.
    ///
    /// # Errors
    /// The monitor asks for something that does not exist, or ends.
    pub(super) fn handle(&mut self, mut message: VhostUserMessage, monitor: &mut UnixStream) -> Result<()> {
        let reply = self.execute_request(&mut message)?;
        match reply {
            Some(reply) => message.send_reply(monitor, &reply),
            None if message.confirm => message.send_reply(monitor, &0u64.to_ne_bytes()),
            None => Ok(()),
        }
    }

    fn execute_request(&mut self, message: &mut VhostUserMessage) -> Result<Option<Vec<u8>>> {
        let number = |number: u64| Ok(Some(number.to_ne_bytes().to_vec()));
        match message.request {
            request::GET_FEATURES => return number(FEATURES),
            request::GET_PROTOCOL => return number(PROTOCOL),
            request::GET_RINGS => return number(2),
            request::GET_BASE => return self.position(message).map(Some),
            request::SET_FEATURES => self.accepted = accept(FEATURES, message)?,
            request::SET_PROTOCOL => drop(accept(PROTOCOL, message)?),
            request::SET_OWNER | request::SET_ERROR => {}
            request::RESET_OWNER => self.stop_echo(),
            request::SET_MEMORY => {
                self.stop_echo();
                self.guest = Some(Guest::map_regions(message.regions()?)?);
            }
            request::SET_NUM => {
                let (queue, num) = self.select_ring(message.parse_ring_state()?)?;
                queue.num = num;
            }
            request::SET_BASE => {
                let (queue, position) = self.select_ring(message.parse_ring_state()?)?;
                queue.position = position as u16;
            }
            request::SET_ENABLED => {
                let (queue, enabled) = self.select_ring(message.parse_ring_state()?)?;
                queue.enabled = enabled != 0;
                if enabled == 0 {
                    self.stop_echo();
                }
            }
            request::SET_ADDRESSES => {
                let (queue, addresses) = self.select_ring(message.addresses()?)?;
                queue.addresses = Some(addresses);
            }
            request::SET_KICK => {
                let (queue, kick) = self.select_ring(message.take_descriptor()?)?;
                queue.kick = kick;
            }
            request::SET_CALL => {
                let (queue, call) = self.select_ring(message.take_descriptor()?)?;
                queue.call = call;
            }
            _ => message.reject_unknown()?,
        }
        self.start_echo()?;
        Ok(None)
    }

    /// Returns the ring of this index, and the value that comes with the index.
    fn select_ring<T>(&mut self, (index, said): (usize, T)) -> Result<(&mut VhostUserVring, T)> {
        let queue = self.queues.get_mut(index).with_context(|| format!("RPMsg has no ring {index}"))?;
        Ok((queue, said))
    }

    /// Stops a ring, which stops both; where it is.
    fn position(&mut self, message: &VhostUserMessage) -> Result<Vec<u8>> {
        self.stop_echo();
        let (index, _) = message.parse_ring_state()?;
        let (queue, ()) = self.select_ring((index, ()))?;
        queue.kick = None;
        let state = [index as u32, queue.position.into()];
        Ok(state.map(u32::to_ne_bytes).as_flattened().to_vec())
    }

    /// Begins once all is known.
    fn start_echo(&mut self) -> Result<()> {
        let Some(guest) = &self.guest else { return Ok(()) };
        if self.echo.is_some() || !self.queues.iter().all(VhostUserVring::is_ready) {
            return Ok(());
        }
        let [transmit, receive] = &self.queues;
        let rings = [transmit.layout(guest)?, receive.layout(guest)?];
        let positions = [transmit.position, receive.position];
        // Bits above 31 are about virtio itself.
        let remote =
            RpmsgRemote::resume(guest.clone(), rings, positions)?.with_features(self.accepted as u32);
        self.echo = Some(RpmsgEcho::with_services(remote, &RpmsgService::LINUX));
        self.awake = false;
        Ok(())
    }

    /// Ends the echo, and keeps where it was.
    fn stop_echo(&mut self) {
        let Some(echo) = self.echo.take() else { return };
        for (queue, position) in self.queues.iter_mut().zip(echo.link().positions()) {
            queue.position = position;
        }
        self.replied += echo.counts().replied;
        self.faults += echo.faults().total();
    }

    /// Stops the device and returns its counts in one line.
    pub(super) fn into_summary(mut self) -> String {
        self.stop_echo();
        format!("{} replies, {} faults of the guest", self.replied, self.faults)
    }
}

/// The features that the message accepts of those that were offered.
fn accept(offered: u64, message: &VhostUserMessage) -> Result<u64> {
    let asked = message.parse_number()?;
    ensure!(asked & !offered == 0, "features {asked:#x} were not offered");
    Ok(asked)
}
