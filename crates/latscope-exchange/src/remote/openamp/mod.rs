//! `openamp`: RPMsg between two processes in memory that has a name, and kicks
//! over a socket, as OpenAMP's own programs for Linux have it (their machine
//! `generic`). Either side can be OpenAMP.
//!
//! The process 0 of OpenAMP is the device: it makes the memory, writes the table
//! and listens ([`device`]). The process 1 is the driver: it connects, and begins.

pub mod device;
pub(super) mod files;
mod socket;
#[cfg(test)]
mod tests;

use super::kicks::Kicks;
use super::rings::{ANNOUNCED, Rings, ServiceWait};
use super::shm::PARK_AFTER;
use super::{ChannelRequest, RemoteChannel, RemoteOption, RemoteTransport};
use anyhow::{Context, Result, bail};
use latscope_os::clock::monotonic_ns;
use latscope_os::window::ends::ENTRIES;
use latscope_rpmsg::name_service::RpmsgEndpointName;
use latscope_rpmsg::ring::VirtqueueLayout;
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{RpmsgMemory, RpmsgWindow};
use socket::OpenampKickSocket;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

/// The transport: this side is the driver.
pub static OPENAMP: RemoteTransport = RemoteTransport {
    name: "openamp",
    waits: WAITS,
    ours: false,
    options: &[SHM, SOCKET, ENDPOINT],
    open: open_channel,
};

/// The ways to wait; the other side may have another.
pub const WAITS: &[&str] = &["socket", "spin-then-park"];

/// Returns the spin time before a sleep, ns.
pub fn spin_ns(wait: &str) -> u64 {
    if wait == "spin-then-park" { PARK_AFTER } else { 0 }
}

/// Options for the places where both sides meet; the serving side has them too.
pub static PLACES: &[RemoteOption] = &[SHM, SOCKET];

const SHM: RemoteOption =
    RemoteOption::new("openamp-shm", "FILE", "The memory that both sides map", "/dev/shm/openamp.shm");

const SOCKET: RemoteOption = RemoteOption::new(
    "openamp-socket",
    "SOCKET",
    "The socket by which they kick each other",
    "/tmp/openamp.event.0",
);

const ENDPOINT: RemoteOption = RemoteOption::new(
    "endpoint",
    "NAME",
    "Another name than the service's: that of OpenAMP's echo is rpmsg-openamp-demo-channel",
    "",
);

/// Division of the window; the table may place the rings elsewhere.
const LAYOUT: RpmsgWindow = RpmsgWindow::OPENAMP;

/// Name by which OpenAMP announces its echo.
const DEMO: RpmsgEndpointName = RpmsgEndpointName::new("rpmsg-openamp-demo-channel").expect("a short name");

/// Time for the other side to come.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the name of the endpoint that an order is for, and the spin time before a sleep, ns.
fn requested_endpoint(order: &ChannelRequest) -> Result<(RpmsgEndpointName, u64)> {
    let name = match order.text_param(ENDPOINT.name) {
        "" => order.service.endpoint_name(),
        text => RpmsgEndpointName::new(text).with_context(|| format!("{text}: a name has 1 to 31 bytes"))?,
    };
    Ok((name, spin_ns(order.wait_mode())))
}

fn open_channel(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let (name, spin_ns) = requested_endpoint(order)?;
    let (memory, socket) = (Path::new(order.text_param(SHM.name)), Path::new(order.text_param(SOCKET.name)));
    let time = order.patience.min(CONNECT_TIMEOUT);
    let mut rings = drive(memory, socket, name, spin_ns, time, order.notice)?;
    // OpenAMP's own programs end after one driver: a run is one, however many rows it has.
    rings.set_follow_rule(requested_endpoint, CONNECT_TIMEOUT);
    Ok(Box::new(rings))
}

/// Connects to a device and to its endpoint of this name, for which it waits at most this time, to look for `spin_ns`
/// ns before each sleep.
fn drive(
    memory: &Path,
    socket: &Path,
    name: RpmsgEndpointName,
    spin_ns: u64,
    time: Duration,
    waiting: &dyn Fn(&str),
) -> Result<Rings> {
    let until = monotonic_ns() + time.as_nanos() as u64;
    let stream = socket::connect(socket, time, waiting)?;
    // One that came late still gets the time to begin.
    let until = until.max(monotonic_ns() + ANNOUNCED.as_nanos() as u64);
    let memory = files::existing(memory)?;
    // A device writes the table before it listens.
    let table = ResourceTable::parse(&memory).context("the shared memory has no resource table of RPMsg")?;
    if table.status(&memory)? != 0 {
        bail!("another driver is at work in the shared memory: end it first");
    }
    let window = window(table, memory.size())?;
    let far = OpenampKickSocket::new(stream.try_clone()?)?;
    Rings::connect_existing(
        &window,
        memory,
        Kicks::new(OpenampKickSocket::new(stream)?, spin_ns),
        Box::new(far),
        name,
        ServiceWait { until, notice: waiting },
    )
}

/// Permitted sizes of a window, bytes: at least room for 32 buffers of each direction, at most the range of 32-bit
/// addresses.
pub const SIZES: RangeInclusive<u64> = 96 << 10..=(1 << 32) - PAGE;

/// The size of a window is a multiple of this, bytes.
pub const PAGE: u64 = 4096;

/// Makes a window with its table in a new file, for a device that makes none.
///
/// # Errors
/// The file exists or cannot be made, or there is no room for so many bytes.
pub fn create_window(path: &Path, size: usize) -> Result<RpmsgWindow> {
    let layout = window(LAYOUT.table, size)?;
    layout.reset(&files::new(path, size)?)?;
    Ok(layout)
}

/// Returns the window of a table made by the other side: buffers are where OpenAMP has them, behind the rings.
fn window(table: ResourceTable, size: usize) -> Result<RpmsgWindow> {
    let first = LAYOUT.pools[0].at;
    let fits = |ring: &VirtqueueLayout| ring.end_offset() <= first && usize::from(ring.num()) <= ENTRIES;
    let window = RpmsgWindow::of_table(table, first, size).with_context(|| {
        format!("the shared memory has {size} bytes, too few for buffers as long as its table has them")
    })?;
    match window.ring_layouts() {
        Ok(rings) if rings.iter().all(fits) => Ok(window),
        _ => bail!("the table of the other side is not that of OpenAMP's machine for Linux"),
    }
}
