//! `mcs`: a client OS that openEuler's MCS starts on a CPU of the same board, through
//! its device `/dev/mcs`. Replayed against a fake device in tests; no board was at hand.

mod image;
#[cfg(test)]
mod tests;

use super::kicks::Kicks;
use super::rings::{Far, Rings, ServiceWait};
use super::{ChannelRequest, RemoteChannel, RemoteOption, RemoteTransport};
use crate::notify::{self, Notifier};
use anyhow::{Context, Result, bail, ensure};
use latscope_os::clock::monotonic_ns;
use latscope_os::mcs::{McsBoard, McsDevice, Reserved};
use latscope_process::files;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::table::{self, ResourceTable, VringResource};
use latscope_rpmsg::{RpmsgMemory, RpmsgWindow, window::RpmsgBufferPool};
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

pub(super) static MCS: RemoteTransport = RemoteTransport {
    name: "mcs",
    waits: &["ipi"],
    ours: false,
    options: &[CPU, IMAGE, ADDRESS, ENTRY, SHARED, DEVICE],
    open: open_channel,
};

const CPU: RemoteOption =
    RemoteOption::new("mcs-cpu", "N", "The CPU of the client OS, which Linux does not use (MCS: -c)", "");
const IMAGE: RemoteOption =
    RemoteOption::new("mcs-image", "FILE", "The client OS, an ELF file or plain bytes (MCS: -t)", "");
const ADDRESS: RemoteOption =
    RemoteOption::new("mcs-address", "HEX", "Where it is loaded, in reserved memory (MCS: -a)", "");
const ENTRY: RemoteOption = RemoteOption::new(
    "mcs-entry",
    "HEX",
    "Where it begins, if not where the file says or it is loaded (MCS: -e)",
    "",
);
const SHARED: RemoteOption =
    RemoteOption::new("mcs-shared", "HEX", "Where the shared memory is that it was built for", "70000000");
const DEVICE: RemoteOption =
    RemoteOption::new("mcs-device", "FILE", "The device; untested on a board", "/dev/mcs");

/// Bytes of the shared memory.
const SIZE: usize = 0x3_0000;

/// Space for the status, and for each ring, bytes.
const STEP: usize = 0x4000;

/// Time for the client to boot and to announce its names.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The shared memory as both sides of MCS were built for it, without a resource table: the
/// status, the buffers, and at the end the ring to the client and that to the host.
/// Offsets are physical addresses, and so are those in descriptors.
fn layout(base: usize) -> RpmsgWindow {
    let ring = |at: usize, notify| VringResource { address: at as u32, align: 4, num: 16, notify };
    let rings = [ring(base + SIZE - STEP, 0), ring(base + SIZE - 2 * STEP, 1)];
    let pool = |at| RpmsgBufferPool { at, buffer: 512, count: 16 };
    RpmsgWindow {
        table: ResourceTable::without_memory(table::NAME_SERVICE, rings, base),
        pools: [pool(base + STEP), pool(base + STEP + 16 * 512)],
        size: base + SIZE,
    }
}

/// Image to be started, and its CPU and addresses.
struct McsClientSetup<'a> {
    cpu: u32,
    image: &'a Path,
    address: usize,
    entry: Option<u64>,
    shared: usize,
}

fn open_channel(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let [cpu, image, device] = [CPU, IMAGE, DEVICE].map(|option| order.text_param(option.name));
    if cpu.is_empty() || image.is_empty() || order.text_param(ADDRESS.name).is_empty() {
        bail!("a client OS takes --mcs-cpu, --mcs-image and --mcs-address");
    }
    let setup = McsClientSetup {
        cpu: cpu.parse().with_context(|| format!("--mcs-cpu {cpu}: a CPU has a number"))?,
        image: Path::new(image),
        address: address(order, &ADDRESS)?,
        entry: match order.text_param(ENTRY.name) {
            "" => None,
            _ => Some(address(order, &ENTRY)? as u64),
        },
        shared: address(order, &SHARED)?,
    };
    let board = McsDevice::open(Path::new(device)).with_context(|| {
        format!("{device} cannot be opened: it takes openEuler's module mcs_km, and root")
    })?;
    let mut rings = connect(Rc::new(board), &setup, order.service, CONNECT_TIMEOUT, order.notice)?;
    rings.set_follow_rule(|order| Ok((order.service.endpoint_name(), 0)), CONNECT_TIMEOUT);
    Ok(Box::new(rings))
}

/// An address in hexadecimal digits.
fn address(order: &ChannelRequest, option: &RemoteOption) -> Result<usize> {
    let text = order.text_param(option.name);
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let parsed = u32::from_str_radix(digits, 16).ok().and_then(|address| usize::try_from(address).ok());
    parsed.with_context(|| format!("--{} {text}: an address has up to eight hexadecimal digits", option.name))
}

/// Loads the client OS, starts it, and connects to a service of it.
fn connect(
    board: Rc<dyn McsBoard>,
    setup: &McsClientSetup,
    service: RpmsgService,
    timeout: Duration,
    notice: &dyn Fn(&str),
) -> Result<Rings> {
    let &McsClientSetup { cpu, shared, .. } = setup;
    board.check_off(cpu).with_context(|| {
        format!("CPU {cpu} is not off: take it from Linux, or reset the board if a client OS runs there")
    })?;
    let image = files::open_regular(setup.image)
        .and_then(|mut file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        })
        .with_context(|| format!("cannot read {}", setup.image.display()))?;
    let image = image::Image::parse(&image, setup.address)?;
    let entry = setup.entry.unwrap_or(image.entry);
    check_places(
        board.reserved().context("no memory is reserved for MCS")?,
        &image,
        (entry, shared),
        notice,
    )?;
    if image.span.0 < shared + SIZE && shared < image.span.1 {
        bail!("the client OS would be loaded over the shared memory");
    }
    image.load_segments(&*board)?;
    let memory = board.map_memory(shared, SIZE).context("the shared memory cannot be mapped")?;
    memory.clear(shared, SIZE)?;
    let interrupts = Interrupts { board, cpu, entry, started: false };
    let until = monotonic_ns() + timeout.as_nanos() as u64;
    Rings::connect_existing(
        &layout(shared),
        memory,
        Kicks::new(interrupts, 0),
        Box::new(McsClientOs),
        service.endpoint_name(),
        ServiceWait::until(until),
    )
}

/// Checks that client and shared memory lie in reserved memory, as far as the module says what is reserved. One that
/// does not say maps no other memory, and does not check where the client begins.
fn check_places(
    reserved: Option<Reserved>,
    image: &image::Image,
    (entry, shared): (u64, usize),
    notice: &dyn Fn(&str),
) -> Result<()> {
    let Some(reserved) = reserved else {
        notice(&format!(
            "the module mcs_km, older than March 2024, does not say which memory is reserved: the shared memory is taken to be \
             at {shared:#x} (--{})",
            SHARED.name
        ));
        let (from, to) = image.span;
        ensure!(
            (from as u64..to as u64).contains(&entry),
            "the client OS would begin at {entry:#x}, outside of its image at {from:#x} to {to:#x}"
        );
        return Ok(());
    };
    check_range(&reserved, image.span.0, image.span.1, "the client OS")?;
    check_range(&reserved, shared, shared + SIZE, "the shared memory")
}

/// Checks that a range that begins in the first of the reserved memories also ends there: the module does not check
/// that. The module knows of further reserved memories, and refuses a range that begins in none.
fn check_range(reserved: &Reserved, from: usize, to: usize, what: &str) -> Result<()> {
    let end = reserved.address.saturating_add(reserved.size);
    if (reserved.address..end).contains(&(from as u64)) && to as u64 > end {
        bail!("{what} is at {from:#x} to {to:#x}, and reserved is {:#x} to {end:#x}", reserved.address);
    }
    Ok(())
}

/// Interrupts in both directions. The first is the start: no client ran before.
struct Interrupts {
    board: Rc<dyn McsBoard>,
    cpu: u32,
    entry: u64,
    started: bool,
}

impl Notifier for Interrupts {
    fn notify(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.started, true) {
            self.board.notify(self.cpu)
        } else {
            self.board.start_cpu(self.cpu, self.entry)
        }
    }

    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.board.wait_for_client(timeout.unwrap_or(notify::FOREVER))
    }
}

/// The client OS, whose end MCS does not report.
struct McsClientOs;

impl Far for McsClientOs {
    fn describe_end(&mut self) -> Option<String> {
        None
    }
}
