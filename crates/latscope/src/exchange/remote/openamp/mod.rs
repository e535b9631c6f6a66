//! `openamp`: RPMsg between two processes in memory that has a name, and kicks
//! over a socket, as OpenAMP's own programs for Linux have it (their machine
//! `generic`). Either side can be OpenAMP.
//!
//! The process 0 of OpenAMP is the device: it makes the memory, writes the table
//! and listens ([`device`]). The process 1 is the driver: it connects, and begins.

pub mod device;
mod files;
mod socket;
#[cfg(test)]
mod tests;

use super::rings::Rings;
use super::shm::PARK_AFTER;
use super::{Channel, Opt, Order, Transport};
use anyhow::{Context, Result, bail};
use latscope_rpmsg::name_service::Name;
use latscope_rpmsg::table::Table;
use latscope_rpmsg::{Fault, Window};
use latscope_sys::clock::monotonic_ns;
use socket::Socket;
use std::path::Path;
use std::time::Duration;

/// The transport: this side is the driver.
pub static OPENAMP: Transport =
    Transport { name: "openamp", waits: WAITS, options: &[SHM, SOCKET, ENDPOINT], open };

/// The ways to wait; the other side may have another.
pub const WAITS: &[&str] = &["socket", "spin-then-park"];

/// How long one looks before one sleeps, ns.
pub fn patience(wait: &str) -> u64 {
    if wait == "spin-then-park" { PARK_AFTER } else { 0 }
}

/// Where both sides meet: what who serves is to be told, too.
pub static PLACES: &[Opt] = &[SHM, SOCKET];

const SHM: Opt = Opt {
    name: "openamp-shm",
    value: "FILE",
    help: "The memory that both sides map",
    default: "/dev/shm/openamp.shm",
};

const SOCKET: Opt = Opt {
    name: "openamp-socket",
    value: "SOCKET",
    help: "The socket by which they kick each other",
    default: "/tmp/openamp.event.0",
};

const ENDPOINT: Opt = Opt {
    name: "endpoint",
    value: "NAME",
    help: "Another name than the service's: that of OpenAMP's echo is rpmsg-openamp-demo-channel",
    default: "",
};

/// How the window is divided; the table may place the rings elsewhere.
const LAYOUT: Window = Window::OPENAMP;

/// What OpenAMP's echo is announced by.
const DEMO: Name = Name::new("rpmsg-openamp-demo-channel").expect("a short name");

/// Time for the other side to come.
const PATIENCE: Duration = Duration::from_secs(10);

fn open(order: &Order) -> Result<Box<dyn Channel>> {
    let name = match order.text(ENDPOINT.name) {
        "" => order.service.name(),
        text => Name::new(text).with_context(|| format!("{text}: a name has 1 to 31 bytes"))?,
    };
    let (memory, socket) = (Path::new(order.text(SHM.name)), Path::new(order.text(SOCKET.name)));
    Ok(Box::new(drive(memory, socket, name, patience(order.text("wait")), PATIENCE)?))
}

/// Connects to a device and its endpoint of this name, to look for `patience` ns before each sleep.
fn drive(memory: &Path, socket: &Path, name: Name, patience: u64, time: Duration) -> Result<Rings> {
    let until = monotonic_ns() + time.as_nanos() as u64;
    let stream = socket::connect(socket, time)?;
    let memory = files::existing(memory, LAYOUT.size)?;
    // A device writes the table before it listens.
    let table = Table::parse(&memory).context("the shared memory has no resource table of RPMsg")?;
    if table.status(&memory)? != 0 {
        bail!("another driver is at work in the shared memory: end it first");
    }
    let window = Window { table, ..LAYOUT };
    apart(&window)?;
    let far = Socket::new(stream.try_clone()?, patience)?;
    Rings::join(&window, memory, Box::new(Socket::new(stream, patience)?), Box::new(far), name, until)
}

/// That the rings of a table that is not ours leave room for the buffers.
fn apart(window: &Window) -> Result<()> {
    let first = window.pools[0].at;
    for ring in window.rings()? {
        if ring.end() > first || usize::from(ring.num()) > window.pools[0].count.into() {
            return Err(Fault::Ring)
                .context("the table of the other side is not that of OpenAMP's machine for Linux");
        }
    }
    Ok(())
}
