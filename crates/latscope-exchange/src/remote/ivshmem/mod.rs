//! `ivshmem`: latscope's image on another virtual CPU. QEMU runs the
//! image (`responders/image`), and the window is the memory of an ivshmem device.

mod machine;
mod words;

use super::kicks::Kicks;
use super::rings::{Far, Rings, ServiceWait};
use super::{ChannelRequest, RemoteChannel, RemoteOption, RemoteTransport};
use crate::notify::{self, Notifier};
use anyhow::{Result, bail};
use latscope_os::clock::monotonic_ns;
use latscope_os::ivshmem::Doorbell;
use latscope_rpmsg::control::ControlOpcode as Control;
use latscope_rpmsg::image::LAYOUT;
use machine::{IvshmemMachine, IvshmemMachineSetup};
use std::io;
use std::rc::Rc;
use std::time::Duration;

pub(super) static IVSHMEM: RemoteTransport = RemoteTransport {
    name: "ivshmem",
    waits: &["spin", "doorbell"],
    ours: true,
    options: &[QEMU, ACCEL, IMAGE],
    open: open_channel,
};

const QEMU: RemoteOption =
    RemoteOption::new("qemu", "PROGRAM", "The QEMU that runs the image", latscope_rpmsg::image::QEMU);

const ACCEL: RemoteOption = RemoteOption::new(
    "accel",
    "ACCEL",
    "What runs the guest: tcg emulates it, which every machine can; kvm is the processor itself",
    TCG,
);

const IMAGE: RemoteOption =
    RemoteOption::new("image", "FILE", "Another image than the one that latscope carries", "");

const TCG: &str = "tcg";

/// Time for the image to announce its names.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Boots a machine that obeys one kind of order.
fn boot_machine(order: &ChannelRequest) -> Result<IvshmemMachine> {
    let &[here, there, ..] = order.cpus else { bail!("a host and a virtual CPU need two CPUs") };
    let accelerator = order.text_param(ACCEL.name);
    IvshmemMachine::boot(&IvshmemMachineSetup {
        qemu: order.text_param(QEMU.name),
        image: order.text_param(IMAGE.name),
        accelerator,
        doorbell: order.wait_mode() == "doorbell",
        cpus: [here, there],
    })
}

fn open_channel(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let mut machine = boot_machine(order)?;
    let (window, doorbell) = (machine.window(), machine.doorbell());
    LAYOUT.reset(&window)?;
    machine.order(if doorbell.is_some() { Control::Doorbell } else { Control::Link })?;
    let kicks = doorbell.map_or(Kicks::SPIN, |doorbell| Kicks::new(Bell(doorbell), 0));
    let guest = Guest { machine, emulated: order.text_param(ACCEL.name) != "kvm" };
    let until = monotonic_ns() + CONNECT_TIMEOUT.as_nanos() as u64;
    let rings = Rings::connect_existing(
        &LAYOUT,
        window,
        kicks,
        Box::new(guest),
        order.service.endpoint_name(),
        ServiceWait::until(until),
    )?;
    Ok(Box::new(rings))
}

/// Opens a channel for a single word, which the same image answers.
///
/// # Errors
/// The errors of the transport; the wait is `doorbell`, for which there are no single words.
pub(super) fn mailbox(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    if order.wait_mode() == "doorbell" {
        bail!("the image answers single words only when it polls: use --wait spin");
    }
    let mut machine = boot_machine(order)?;
    machine.order(Control::Word)?;
    let (control, emulated) = (machine.control()?, order.text_param(ACCEL.name) != "kvm");
    Ok(Box::new(words::IvshmemWordChannel::new(control, Guest { machine, emulated })))
}

/// The machine from the view of the side that talks to the image.
struct Guest {
    machine: IvshmemMachine,
    emulated: bool,
}

impl Far for Guest {
    fn describe_end(&mut self) -> Option<String> {
        self.machine.exit_description()
    }

    fn distortion(&self) -> Option<&'static str> {
        self.emulated.then_some("the remote is emulated: its instructions take longer than a processor's")
    }
}

/// Kicks by the device's doorbell.
struct Bell(Rc<Doorbell>);

impl Notifier for Bell {
    fn notify(&mut self) -> io::Result<()> {
        self.0.kick()
    }

    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        self.0.wait_for_kick(timeout.unwrap_or(notify::FOREVER))
    }
}
