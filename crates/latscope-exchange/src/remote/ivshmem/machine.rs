//! QEMU with the image in it: started, placed on its CPU, directed, and ended.

use anyhow::{Context, Result, bail};
use latscope_os::ivshmem::Doorbell;
use latscope_os::window::MemoryWindow;
use latscope_os::{sched, worker};
use latscope_process::files;
use latscope_process::role::KilledOnDrop;
use latscope_rpmsg::control::{ControlOpcode, RpmsgControlBlock};
use latscope_rpmsg::image::{ARGUMENTS, Backend, DOORBELL, EMULATED, PLAIN, WINDOW};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The image that latscope carries; empty if it could not be built with it.
static CARRIED: &[u8] = include_bytes!(env!("LATSCOPE_IMAGE"));

/// Time for QEMU to start and for the image to obey.
const TIMEOUT: Duration = Duration::from_secs(30);

const MILLISECOND: Duration = Duration::from_millis(1);

/// Settings of a machine.
pub(super) struct IvshmemMachineSetup<'a> {
    /// Program that is run as QEMU.
    pub qemu: &'a str,
    /// File of the image; empty for the image built into this program.
    pub image: &'a str,
    /// Accelerator of QEMU: `tcg` or `kvm`.
    pub accelerator: &'a str,
    /// True if both sides sleep until they are kicked.
    pub doorbell: bool,
    /// CPU of this side, and CPU of the virtual CPU.
    pub cpus: [u32; 2],
}

/// The running machine; it ends with this value, or with the thread that made it.
pub(super) struct IvshmemMachine {
    qemu: KilledOnDrop,
    window: MemoryWindow,
    doorbell: Option<Rc<Doorbell>>,
    /// Output of QEMU and the image.
    said: File,
}

impl IvshmemMachine {
    /// Starts QEMU with the image and a fresh window.
    ///
    /// # Errors
    /// There is no image, or QEMU does not start.
    pub(super) fn boot(setup: &IvshmemMachineSetup) -> Result<IvshmemMachine> {
        let window = MemoryWindow::create_zeroed(WINDOW)?;
        let said = File::from(create_memfd("latscope-said")?);
        let image = image(setup.image)?;
        let shared = window.descriptor().try_clone_to_owned()?;
        let mut qemu = Command::new(setup.qemu);
        qemu.args(ARGUMENTS)
            .args(["-name", "latscope,debug-threads=on"])
            .args(["-accel", accelerator(setup)?]);
        qemu.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?);
        // Descriptors instead of names: nothing can be left behind.
        qemu.args(["-kernel", &inherited(0)]);
        let (doorbell, other) = if setup.doorbell {
            let (doorbell, socket) = Doorbell::connected_pair(&window)?;
            let place = worker::FIRST_DESCRIPTOR + 1;
            qemu.args(["-chardev", &format!("socket,id=doorbell,fd={place}")]).args(DOORBELL);
            (Some(Rc::new(doorbell)), socket)
        } else {
            qemu.args(["-object", &Backend { path: &inherited(1) }.to_string()]).args(PLAIN);
            (None, shared)
        };
        let started = worker::accompany(qemu, &[&image, &other]);
        let qemu = match started {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "{} is not there: install it (Debian: qemu-system-x86), or name another with --qemu",
                setup.qemu
            ),
            other => other.with_context(|| format!("cannot start {}", setup.qemu))?,
        };
        let mut machine = IvshmemMachine { qemu: KilledOnDrop(qemu), window, doorbell, said };
        machine.pin_virtual_cpu(setup.cpus)?;
        Ok(machine)
    }

    /// Moves the thread of the virtual CPU to its CPU. The other threads stay on the CPU of this side, where they were
    /// started: they have nothing to do while this side is awake.
    fn pin_virtual_cpu(&mut self, [_, there]: [u32; 2]) -> Result<()> {
        let tasks = format!("/proc/{}/task", self.qemu.0.id());
        let thread = self.poll_until("QEMU starts no virtual CPU", |_| {
            let mut of_cpu = std::fs::read_dir(&tasks).ok()?.flatten().filter(|task| {
                let name = std::fs::read_to_string(task.path().join("comm"));
                name.is_ok_and(|name| name.starts_with("CPU 0/"))
            });
            of_cpu.find_map(|task| task.file_name().to_str()?.parse().ok())
        })?;
        sched::pin_thread(thread, &[there]).with_context(|| format!("CPU {there} cannot be used"))
    }

    /// Gives an order, and waits until the image obeys.
    pub(super) fn order(&mut self, order: ControlOpcode) -> Result<()> {
        let control = self.control()?;
        let command = control.issue(order)?;
        if let Some(doorbell) = &self.doorbell {
            doorbell.kick()?;
        }
        self.poll_until("the image does not start", |_| {
            control.is_accepted(command).unwrap_or(false).then_some(())
        })
    }

    /// Waits until there is something.
    fn poll_until<T>(&mut self, what: &str, look: impl Fn(&IvshmemMachine) -> Option<T>) -> Result<T> {
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            if let Some(found) = look(self) {
                return Ok(found);
            }
            if let Some(end) = self.exit_description() {
                bail!("{end}");
            }
            std::thread::sleep(MILLISECOND);
        }
        bail!("{what} within {} s", TIMEOUT.as_secs())
    }

    /// Returns the exit status of QEMU and the last line of its output; `None` while it runs.
    pub(super) fn exit_description(&mut self) -> Option<String> {
        let status = self.qemu.0.try_wait().ok().flatten()?;
        let mut bytes = vec![0; 4096];
        let length = self.said.read_at(&mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..length]);
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
        Some(if last.is_empty() {
            format!("QEMU ended: {status}")
        } else {
            format!("QEMU ended: {status}: {last}")
        })
    }

    pub(super) fn window(&self) -> MemoryWindow {
        self.window.clone()
    }

    /// The kicks, if both sides sleep.
    pub(super) fn doorbell(&self) -> Option<Rc<Doorbell>> {
        self.doorbell.clone()
    }

    /// The words that direct the image.
    pub(super) fn control(&self) -> Result<RpmsgControlBlock<MemoryWindow>> {
        Ok(RpmsgControlBlock::new(self.window())?)
    }
}

/// The value of QEMU's option for the accelerator.
fn accelerator<'a>(setup: &IvshmemMachineSetup<'a>) -> Result<&'a str> {
    match setup.accelerator {
        "kvm" => Ok("kvm"),
        "tcg" => Ok(EMULATED),
        other => bail!("no accelerator is called {other}: tcg or kvm"),
    }
}

/// The name by which a program opens a descriptor that it inherited.
fn inherited(index: i32) -> String {
    format!("/proc/self/fd/{}", worker::FIRST_DESCRIPTOR + index)
}

/// The image, to be inherited.
fn image(file: &str) -> Result<OwnedFd> {
    if !file.is_empty() {
        let image = files::open_regular(Path::new(file))
            .with_context(|| format!("the image {file} cannot be opened"))?;
        return Ok(image.into());
    }
    if let Some(reason) = option_env!("LATSCOPE_NO_IMAGE") {
        bail!("this latscope was built without its image ({reason}): give one with --image");
    }
    let mut image = File::from(create_memfd("latscope-image")?);
    image.write_all(CARRIED)?;
    Ok(image.into())
}

/// A file without a name.
fn create_memfd(name: &str) -> Result<OwnedFd> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?)
}
