//! rptun over ivshmem, the way of Apache NuttX (`drivers/rptun/rptun_ivshmem.c`): the window of a virtual machine, of
//! which this is the master.
//!
//! The slave fills in a header and a resource table when it boots. The master chooses the rings' places, writes its
//! address of the window, and is the virtio driver. A slave begins once for each boot: a further master has to reset
//! it, which is a command in the table.

mod header;
mod ping;
#[cfg(test)]
mod tests;

use super::kicks::Kicks;
use super::openamp::{files, spin_ns};
use super::rings::{ANNOUNCED, Far, Rings, ServiceWait};
use super::{ChannelRequest, RemoteChannel, RemoteOption, RemoteTransport};
use crate::notify::Notifier;
use anyhow::{Context, Result, bail};
use header::{BASE, RptunHeader};
use latscope_os::clock::monotonic_ns;
use latscope_os::window::MemoryWindow as Memory;
use latscope_rpmsg::RpmsgWindow;
use latscope_rpmsg::name_service::RpmsgEndpointName;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Transport behind `--transport rptun`.
pub static RPTUN: RemoteTransport = RemoteTransport {
    name: "rptun",
    waits: &["spin-then-park", "spin"],
    ours: false,
    options: &[PATH, ENDPOINT],
    open: open_channel,
};

const PATH: RemoteOption = RemoteOption::new("path", "FILE", "The file behind the window", "");

const ENDPOINT: RemoteOption = RemoteOption::new(
    "endpoint",
    "NAME",
    "Another name than the service's: rpmsg-ping is the echo that NuttX has itself, whose header is added",
    "",
);

/// Time for the slave to boot.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

fn open_channel(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let name = match order.text_param(ENDPOINT.name) {
        "" => order.service.endpoint_name(),
        text => RpmsgEndpointName::new(text).with_context(|| format!("{text}: a name has 1 to 31 bytes"))?,
    };
    let path = order.text_param(PATH.name);
    if path.is_empty() {
        bail!("--transport rptun needs --path FILE, the memory behind the slave's ivshmem device");
    }
    let spin_ns = match order.wait_mode() {
        // Not for ever: the slave wants its counter to move, and who never sleeps does not kick.
        "spin" => super::kicks::FOREVER - 1,
        wait => spin_ns(wait),
    };
    let time = order.patience.min(CONNECT_TIMEOUT);
    let rings = connect_slave(Path::new(path), name, spin_ns, time, order.notice)?;
    if name == ping::NAME { Ok(Box::new(ping::Framed::new(rings))) } else { Ok(Box::new(rings)) }
}

/// Becomes the master of the slave in this file, and connects to its endpoint of this name. Waits for both at most this
/// time.
fn connect_slave(
    path: &Path,
    name: RpmsgEndpointName,
    spin_ns: u64,
    time: Duration,
    waiting: &dyn Fn(&str),
) -> Result<Rings> {
    let until = monotonic_ns() + time.as_nanos() as u64;
    let file = files::open_existing(path)?;
    header::check_window(&file, path)?;
    let memory =
        Memory::map_from(file, BASE as usize).with_context(|| format!("cannot map {}", path.display()))?;
    let header = RptunHeader::new(&memory);
    header.wait_for_slave(time, path, waiting)?;
    let window = divide(&header, &memory)?;
    header.announce_master()?;
    let until = until.max(monotonic_ns() + ANNOUNCED.as_nanos() as u64);
    let kicks = Kicks::new(Counters { header: header.clone(), seen: header.sent_by_slave()? }, spin_ns);
    Rings::connect_existing(
        &window,
        memory,
        kicks,
        Box::new(header),
        name,
        ServiceWait { until, notice: waiting },
    )
}

/// Places the rings and buffers in the part of the window that the table has for them.
fn divide(header: &RptunHeader, memory: &Memory) -> Result<RpmsgWindow> {
    let (table, room) = header.read_table()?;
    let mut at = room.start;
    let mut addresses = [0; 2];
    for (ring, address) in table.rings.iter().zip(&mut addresses) {
        at = at.next_multiple_of(64);
        *address = u32::try_from(at)?;
        at = latscope_rpmsg::table::VringResource { address: *address, ..*ring }.layout()?.end_offset();
    }
    let at = at.next_multiple_of(64);
    if at > room.end {
        bail!("the slave's table has no room for its own rings");
    }
    let table = table.place_rings(memory, addresses, BASE)?;
    Ok(RpmsgWindow::of_table(table, at, room.end)?)
}

/// Interval between looks of a sleeping side at the other side's counter: the same as NuttX's.
const LOOK: Duration = Duration::from_micros(100);

/// Counters in the header, one of each side, which the other looks at.
struct Counters {
    header: RptunHeader,
    seen: u32,
}

impl Notifier for Counters {
    fn notify(&mut self) -> io::Result<()> {
        self.header.count_up().map_err(io::Error::other)
    }

    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let start = Instant::now();
        loop {
            let now = self.header.sent_by_slave().map_err(io::Error::other)?;
            if std::mem::replace(&mut self.seen, now) != now {
                return Ok(true);
            }
            let left = timeout.unwrap_or(Duration::MAX).saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

impl Far for RptunHeader {
    fn describe_end(&mut self) -> Option<String> {
        self.has_panicked().then(|| "it reports a panic".to_owned())
    }
}
