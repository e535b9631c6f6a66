//! Division of a window of shared memory: table, rings, buffers.

use crate::link::{RpmsgHost, RpmsgRemote};
pub use crate::pool::RpmsgBufferPool;
use crate::ring::VirtqueueLayout;
use crate::table::{self, BufferSizes, ResourceTable, VringResource, status};
use crate::{Fault, RpmsgMemory};

/// A window: the table at its beginning, two rings, and the driver's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmsgWindow {
    /// Resource table, with the places of the rings.
    pub table: ResourceTable,
    /// Buffers from remote to host, then from host to remote.
    pub pools: [RpmsgBufferPool; 2],
    /// Bytes of the window.
    pub size: usize,
}

impl RpmsgWindow {
    /// Window of OpenAMP's generic machine on Linux, `/dev/shm/openamp.shm`.
    pub const OPENAMP: RpmsgWindow = RpmsgWindow {
        table: ResourceTable::new(
            table::NAME_SERVICE,
            [
                VringResource { address: 0x4000, align: 0x1000, num: 256, notify: 1 },
                VringResource { address: 0x8000, align: 0x1000, num: 256, notify: 2 },
            ],
        ),
        pools: [
            RpmsgBufferPool { at: 0x1_0000, buffer: 512, count: 256 },
            RpmsgBufferPool { at: 0x3_0000, buffer: 512, count: 256 },
        ],
        size: 0x8_0000,
    };

    /// A window of one's own, without gaps but those that alignment makes: rings of `num`
    /// entries, with as many buffers of `to_host` and `to_remote` bytes, header included.
    ///
    /// All buffers are used in turn. Where they are long, few of them stay in the caches of both sides and
    /// are faster than many.
    ///
    /// # Errors
    /// [`Fault::Ring`] if `num` is no power of two or above 32768, or addresses do not suffice.
    pub fn new(num: u16, to_host: u32, to_remote: u32) -> Result<RpmsgWindow, Fault> {
        const ALIGN: u32 = 64;
        let ring = |address: usize, notify| {
            let address = u32::try_from(address).map_err(|_| Fault::Ring)?;
            Ok(VringResource { address, align: ALIGN, num: num.into(), notify })
        };
        let first = ring(ResourceTable::SIZE.next_multiple_of(ALIGN as usize), 1)?;
        let second = ring(align_to_line(first.layout()?.end_offset())?, 2)?;
        let pool = |at: usize, size: u32| {
            let buffer = size.checked_next_multiple_of(ALIGN).ok_or(Fault::Ring)?;
            let bytes = usize::try_from(u64::from(buffer) * u64::from(num)).map_err(|_| Fault::Ring)?;
            at.checked_add(bytes).ok_or(Fault::Ring)?;
            Ok(RpmsgBufferPool { at, buffer, count: num })
        };
        let receive = pool(align_to_line(second.layout()?.end_offset())?, to_host)?;
        let transmit = pool(receive.end_offset(), to_remote)?;
        let table = ResourceTable::new(table::NAME_SERVICE, [first, second]);
        Ok(RpmsgWindow { table, pools: [receive, transmit], size: transmit.end_offset() })
    }

    /// The window of a table that another side wrote, for a driver with room for buffers from `at` up to `size`: as
    /// long as the table has them, as many of each direction as fit, and no more than a ring has entries.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] if not even one of each fits.
    pub fn of_table(table: ResourceTable, at: usize, size: usize) -> Result<RpmsgWindow, Fault> {
        let BufferSizes { to_host, to_remote } = table.buffers();
        let room = size.checked_sub(at).ok_or(Fault::OutOfWindow)? as u64;
        let fit = room / (u64::from(to_host) + u64::from(to_remote));
        let num = table.rings[0].num.min(table.rings[1].num).min(u16::MAX.into());
        let count = u16::try_from(fit.min(num.into())).map_err(|_| Fault::OutOfWindow)?;
        if count == 0 {
            return Err(Fault::OutOfWindow);
        }
        let receive = RpmsgBufferPool { at, buffer: to_host, count };
        let transmit = RpmsgBufferPool { at: receive.end_offset(), buffer: to_remote, count };
        Ok(RpmsgWindow { table, pools: [receive, transmit], size })
    }

    /// Returns the layouts of the two rings.
    ///
    /// # Errors
    /// [`Fault::Ring`].
    pub fn ring_layouts(&self) -> Result<[VirtqueueLayout; 2], Fault> {
        Ok([self.table.rings[0].layout()?, self.table.rings[1].layout()?])
    }

    /// Returns true if the window is as [`RpmsgWindow::reset`] leaves it: no driver is there, and no index moved. If
    /// not, a program uses the window or an earlier run left it so; only a caller that knows the processes can
    /// distinguish the two.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] or [`Fault::Ring`] if the window is not like this.
    pub fn is_fresh(&self, memory: &impl RpmsgMemory) -> Result<bool, Fault> {
        let [receive, transmit] = self.ring_layouts()?;
        let status = self.table.status(memory)?;
        Ok(status == 0 && receive.is_fresh(memory)? && transmit.is_fresh(memory)?)
    }

    /// Makes a window ready for both sides, whatever its contents: the owner of the window does that before either side
    /// starts. A side that is still at work meets [`Fault::Index`] or a status of 0.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] or [`Fault::Ring`] if the window does not fit.
    pub fn reset(&self, memory: &impl RpmsgMemory) -> Result<(), Fault> {
        self.table.write_table(memory)?;
        self.ring_layouts()?.iter().try_for_each(|ring| ring.clear(memory))
    }

    /// Starts the driver's side: clears the rings, offers the buffers, accepts the features that it knows of those
    /// that the table offers, and sets the status to ready.
    /// `N` is at least the number of entries of a ring.
    ///
    /// Where a remote of an earlier run may still be at work, [`RpmsgWindow::host_after`] is to be called.
    ///
    /// # Errors
    /// The errors of [`RpmsgWindow::host_after`].
    pub fn host<M: RpmsgMemory + Clone, const N: usize>(&self, memory: M) -> Result<RpmsgHost<M, N>, Fault> {
        self.host_after(memory, || ())
    }

    /// Begins like [`RpmsgWindow::host`], in a window where a remote may still be at work for an earlier driver.
    ///
    /// `grace` is called after the status shows that no driver is ready, and before the rings are cleared. It must wait
    /// until the remote has read the status, which takes at most as long as the answer to one message: some
    /// milliseconds for a remote that runs.
    ///
    /// The words of Linux and OpenAMP permit no better method, and the method is not sound for every remote: there is
    /// no word by which a remote shows that it has stopped using the rings. A remote that pauses for longer than the
    /// grace, before its last store, may still put one entry into the new rings. The driver then meets [`Fault::Index`]
    /// or [`Fault::NotInFlight`], or one message too many. If the driver starts once more, that remote has by then seen
    /// that it must start again, too. A [`RpmsgRemote`] checks its index right before it stores, so that only a pause
    /// between these two instructions has this effect. With [`control`](crate::control) words, the remote shows when it
    /// has stopped using the rings, and nothing of this can happen.
    ///
    /// # Errors
    /// [`Fault::Stale`] if the remote stored into the rings after they were cleared: the caller is to try again, with a
    /// longer grace. [`Fault::OutOfWindow`] or [`Fault::Ring`] if the window does not fit.
    pub fn host_after<M: RpmsgMemory + Clone, const N: usize>(
        &self,
        memory: M,
        grace: impl FnOnce(),
    ) -> Result<RpmsgHost<M, N>, Fault> {
        // A device of an earlier run must not look at rings that are being cleared.
        self.table.set_status(&memory, 0)?;
        grace();
        self.table.set_status(&memory, status::ACKNOWLEDGE | status::DRIVER)?;
        let rings = self.ring_layouts()?;
        let host = RpmsgHost::new(memory.clone(), rings, self.pools)?;
        for ring in rings {
            if !ring.is_unused(&memory)? {
                self.table.set_status(&memory, 0)?;
                return Err(Fault::Stale);
            }
        }
        self.table.accept(&memory)?;
        self.table.set_status(&memory, status::ACKNOWLEDGE | status::DRIVER | status::DRIVER_OK)?;
        Ok(host)
    }

    /// Starts the device's side if the driver is ready; `None` if it is not yet. Once the driver ends or
    /// begins again, its calls are answered with [`Fault::Reset`]: it is to be started anew then.
    ///
    /// # Errors
    /// [`Fault::Stale`] if the rings were used before (the driver left its ready status behind);
    /// [`Fault::OutOfWindow`] or [`Fault::Ring`] if the window does not fit.
    pub fn remote<M: RpmsgMemory + Clone>(&self, memory: M) -> Result<Option<RpmsgRemote<M>>, Fault> {
        if !self.table.is_ready(&memory)? {
            return Ok(None);
        }
        RpmsgRemote::new(memory, self.ring_layouts()?)?.watch_status(self.table).map(Some)
    }
}

/// Returns the next offset where a cache line begins.
fn align_to_line(at: usize) -> Result<usize, Fault> {
    at.checked_next_multiple_of(64).ok_or(Fault::Ring)
}

#[cfg(test)]
mod tests;
