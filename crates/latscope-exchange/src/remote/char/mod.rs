//! `char`: Linux's own character devices, `/dev/rpmsg_ctrlN` and `/dev/rpmsgM`, over any transport: virtio, GLINK, SMD,
//! an SCP.

mod sysfs;

use super::{ChannelFailure, ChannelRequest, RemoteAbsent, RemoteChannel, RemoteOption, RemoteTransport};
use crate::notify::readable;
use anyhow::{Context, Result, bail, ensure};
use latscope_core::param;
use latscope_os::clock::monotonic_ns;
use latscope_os::rpmsg_char::{self, ANY};
use latscope_rpmsg::link::Unsent;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open as open_file};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use sysfs::{Announced, Sysfs, parse_address};

pub(super) static CHAR: RemoteTransport =
    RemoteTransport { name: "char", waits: &["poll"], ours: false, options: OPTIONS, open: open_channel };

const OPTIONS: &[RemoteOption] = &[
    RemoteOption::new(
        "ctrl",
        "DEVICE",
        "The control device by which an endpoint is made",
        "/dev/rpmsg_ctrl0",
    ),
    RemoteOption::new(
        "endpoint",
        "NAME",
        "Its name; without it, the name under which the remote announces the service",
        "",
    ),
    RemoteOption::new(
        "dst",
        "ADDRESS",
        "The remote's address, such as 0x400; without it, that which the remote announces",
        "",
    ),
    RemoteOption::new(
        param::VIA,
        "HOW",
        "How the device comes to be: `ioctl` makes an endpoint, `bind` gives the announced channel to rpmsg_chrdev",
        "ioctl",
    ),
    RemoteOption::new(
        "remoteproc",
        "N",
        "Starts remote processor N first unless it runs, and stops it then",
        "",
    ),
    RemoteOption::new("firmware", "FILE", "What it runs, in /lib/firmware", ""),
];

/// The longest message on virtio, bytes: a buffer of 512 without its header.
const PAYLOAD: usize = 496;

/// Time for a remote to announce its services, and for devices to appear.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(10);

fn open_channel(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let sysfs = Sysfs(PathBuf::from("/sys"));
    let processor =
        Processor::start_requested(&sysfs, order.text_param("remoteproc"), order.text_param("firmware"))?;
    let service = order.service.endpoint_name().to_string();
    let name = if order.text_param("endpoint").is_empty() { &service } else { order.text_param("endpoint") };
    let asked = order.text_param("dst");
    let asked =
        if asked.is_empty() { None } else { Some(parse_address(asked).context("--dst is no address")?) };
    let announced = |address| wait_for_channel(&sysfs, name, address, order.patience.min(DEVICE_TIMEOUT));
    let endpoint = match order.text_param(param::VIA) {
        "bind" => bind_device(&sysfs, announced(asked)?, name)?,
        "ioctl" => {
            let address = asked.map_or_else(|| Ok(announced(None)?.address), anyhow::Ok)?;
            create_device(&sysfs, Path::new(order.text_param("ctrl")), name, address)?
        }
        other => bail!("--via is ioctl or bind, not {other}"),
    };
    Ok(Box::new(EndpointFile { endpoint, _processor: processor }))
}

/// The channel, once the remote has announced it, which is waited for so long.
fn wait_for_channel(sysfs: &Sysfs, name: &str, address: Option<u32>, time: Duration) -> Result<Announced> {
    ensure!(
        sysfs.0.join("bus/rpmsg").exists(),
        "this kernel has no RPMsg: modprobe virtio_rpmsg_bus, or start the remote processor"
    );
    poll_until(time, || sysfs.find_channel(name, address)).ok_or_else(|| {
        let text = format!("no remote announces {name}: see /sys/bus/rpmsg/devices, or give --dst");
        RemoteAbsent(text).into()
    })
}

/// A device made by the control device.
fn create_device(sysfs: &Sysfs, control: &Path, name: &str, address: u32) -> Result<RpmsgCharDevice> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let opened = open_file(control, flags, Mode::empty())
        .with_context(|| format!("cannot open {} (modprobe rpmsg_ctrl, root)", control.display()))?;
    let before = sysfs.endpoints(name, address);
    rpmsg_char::create_endpoint(&opened, name, ANY, address)
        .with_context(|| format!("{} makes no endpoint", control.display()))?;
    RpmsgCharDevice::open_new_device(sysfs, &before, name, address, RpmsgDeviceRemoval::Destroy)
}

/// A device made of the channel itself.
fn bind_device(sysfs: &Sysfs, channel: Announced, name: &str) -> Result<RpmsgCharDevice> {
    let before = sysfs.endpoints(name, channel.address);
    sysfs.bind(&channel.device)?;
    let undo = RpmsgDeviceRemoval::Unbind(channel.device);
    RpmsgCharDevice::open_new_device(sysfs, &before, name, channel.address, undo)
}

/// Asks until there is an answer, or the time is up.
fn poll_until<T>(time: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + time;
    loop {
        match ask() {
            None if Instant::now() < end => sleep(Duration::from_millis(10)),
            answer => return answer,
        }
    }
}

/// Method of removing a device.
enum RpmsgDeviceRemoval {
    Destroy,
    Unbind(String),
}

/// An open `/dev/rpmsgM`, removed when dropped.
struct RpmsgCharDevice {
    file: OwnedFd,
    name: String,
    undo: RpmsgDeviceRemoval,
    sysfs: Sysfs,
}

impl RpmsgCharDevice {
    /// Opens the device that was not there before. The kernel does not return its number, and there may be an older
    /// device of the same name.
    fn open_new_device(
        sysfs: &Sysfs,
        before: &BTreeSet<String>,
        name: &str,
        address: u32,
        undo: RpmsgDeviceRemoval,
    ) -> Result<RpmsgCharDevice> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut refused = None;
        let opened = poll_until(DEVICE_TIMEOUT, || {
            let new = sysfs.endpoints(name, address).difference(before).next()?.clone();
            match open_file(Path::new("/dev").join(&new), flags, Mode::empty()) {
                Ok(file) => Some((file, new)),
                Err(error) => {
                    refused = Some((new, error));
                    None
                }
            }
        });
        match (opened, refused) {
            (Some((file, name)), _) => Ok(RpmsgCharDevice { file, name, undo, sysfs: sysfs.clone() }),
            (None, Some((name, error))) => bail!("cannot open /dev/{name}: {error}"),
            (None, None) => bail!("no device appeared for {name} at {address:#x}"),
        }
    }
}

impl Drop for RpmsgCharDevice {
    fn drop(&mut self) {
        // Of a remote that is gone nothing is left to remove.
        match &self.undo {
            RpmsgDeviceRemoval::Destroy => drop(rpmsg_char::destroy(&self.file)),
            RpmsgDeviceRemoval::Unbind(device) => drop(self.sysfs.unbind(device)),
        }
    }
}

/// A remote processor that this program started, stopped when dropped.
struct Processor {
    sysfs: Sysfs,
    number: String,
}

impl Processor {
    fn start_requested(sysfs: &Sysfs, number: &str, firmware: &str) -> Result<Option<Processor>> {
        if number.is_empty() {
            ensure!(firmware.is_empty(), "--firmware is for a processor: give --remoteproc, too");
            return Ok(None);
        }
        let started = sysfs.start_processor(number, firmware)?;
        Ok(started.then(|| Processor { sysfs: sysfs.clone(), number: number.to_owned() }))
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        let _ = self.sysfs.stop_processor(&self.number);
    }
}

/// The channel; the endpoint goes before its processor.
struct EndpointFile {
    endpoint: RpmsgCharDevice,
    _processor: Option<Processor>,
}

impl RemoteChannel for EndpointFile {
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        match rustix::io::write(&self.endpoint.file, message) {
            Ok(written) if written == message.len() => Ok(()),
            Ok(_) => Err(ChannelFailure::Unsent(Unsent::TooLong)),
            Err(Errno::AGAIN | Errno::NOMEM) => Err(ChannelFailure::Unsent(Unsent::NoBuffer)),
            Err(Errno::MSGSIZE) => Err(ChannelFailure::Unsent(Unsent::TooLong)),
            Err(error) => Err(failure(error)),
        }
    }

    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        loop {
            match rustix::io::read(&self.endpoint.file, &mut *into) {
                // One message; what is longer than the buffer is discarded, and so is no echo.
                Ok(length) => return Ok(length),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(failure(error)),
            }
            let left = until.saturating_sub(monotonic_ns());
            if left == 0 {
                return Err(ChannelFailure::Timeout);
            }
            readable(&self.endpoint.file, Duration::from_nanos(left))?;
        }
    }

    fn limit(&self) -> usize {
        PAYLOAD
    }

    fn end_description(&mut self) -> Option<String> {
        let RpmsgCharDevice { name, sysfs, .. } = &self.endpoint;
        (!sysfs.has_endpoint(name)).then(|| format!("the remote is gone: so is /dev/{name}"))
    }
}

fn failure(error: Errno) -> ChannelFailure {
    match error {
        Errno::PIPE | Errno::NODEV | Errno::NXIO => ChannelFailure::Gone(error.to_string()),
        error => ChannelFailure::Io(error.into()),
    }
}
