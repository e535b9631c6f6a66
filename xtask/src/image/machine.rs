//! QEMU with the image in it, and the mapping of its window in this process.

use anyhow::{Context, Result, bail};
use latscope_os::ivshmem::{Doorbell, IvshmemServer};
use latscope_os::window::MemoryWindow;
use latscope_rpmsg::control::{ControlCommand, ControlOpcode, RpmsgControlBlock};
use latscope_rpmsg::image::{ARGUMENTS, Backend, ChardevSocket, DOORBELL, EMULATED, PLAIN, QEMU, WINDOW};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{self, Child, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Time after which a wait is given up: far more than anything takes, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Number of looks between two readings of the clock.
const LOOKS: u32 = 4096;

/// Running machine, which ends when this value is dropped.
pub struct ImageMachine {
    qemu: Child,
    window: MemoryWindow,
    /// Kicks of the machine; `None` if both sides poll.
    doorbell: Option<Rc<Doorbell>>,
}

impl ImageMachine {
    /// Starts QEMU with the image and a fresh window; both sides poll.
    pub fn boot(image: &Path) -> Result<ImageMachine> {
        let window = MemoryWindow::create_zeroed(WINDOW)?;
        // QEMU opens it by our descriptor: there is no name that could be left behind.
        let path = format!("/proc/{}/fd/{}", process::id(), window.descriptor().as_raw_fd());
        let object = Backend { path: &path }.to_string();
        let qemu = start_qemu(image, &[PLAIN.as_slice(), &["-object", &object]].concat())?;
        Ok(ImageMachine { qemu, window, doorbell: None })
    }

    /// Starts QEMU with the image and a fresh window; both sides sleep until they are kicked.
    pub fn boot_with_doorbell(image: &Path) -> Result<ImageMachine> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("doorbell");
        let server = IvshmemServer::bind(&path)?;
        let socket = ChardevSocket { path: &path.to_string_lossy() }.to_string();
        let qemu = start_qemu(image, &[["-chardev", &socket], DOORBELL].concat())?;
        let mut machine = ImageMachine { qemu, window: MemoryWindow::create_zeroed(WINDOW)?, doorbell: None };
        machine.doorbell = Some(Rc::new(server.accept(&machine.window, TIMEOUT)?));
        Ok(machine)
    }

    /// Starts QEMU with the image and without a window.
    pub fn boot_without_window(image: &Path) -> Result<ImageMachine> {
        Ok(ImageMachine {
            qemu: start_qemu(image, &[])?,
            window: MemoryWindow::create_zeroed(WINDOW)?,
            doorbell: None,
        })
    }

    /// Returns the kicks, if both sides sleep.
    pub fn doorbell(&self) -> Option<Rc<Doorbell>> {
        self.doorbell.clone()
    }

    /// Order that makes the image serve a link, as this machine can.
    pub fn serving(&self) -> ControlOpcode {
        if self.doorbell.is_some() { ControlOpcode::Doorbell } else { ControlOpcode::Link }
    }

    /// Kicks the image if it sleeps.
    pub fn kick(&self) -> Result<()> {
        Ok(self.doorbell.as_ref().map_or(Ok(()), |doorbell| doorbell.kick())?)
    }

    /// Window that the image and this process share.
    pub fn window(&self) -> MemoryWindow {
        self.window.clone()
    }

    /// Words in the window that direct the image.
    pub fn control(&self) -> Result<RpmsgControlBlock<MemoryWindow>> {
        Ok(RpmsgControlBlock::new(self.window())?)
    }

    /// Gives the image an order.
    pub fn issue(&self, order: ControlOpcode) -> Result<ControlCommand> {
        let command = self.control()?.issue(order)?;
        self.kick()?;
        Ok(command)
    }

    /// Gives the image an order, and waits until the image obeys it.
    pub fn order(&mut self, order: ControlOpcode) -> Result<()> {
        let control = self.control()?;
        let command = self.issue(order)?;
        let accepted = || Ok(control.is_accepted(command)?.then_some(()));
        self.poll_until("the image does not obey", accepted)
    }

    /// Calls `look` without a pause until it finds something, at most for [`TIMEOUT`] and while the machine runs.
    pub fn poll_until<T>(&mut self, what: &str, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            for _ in 0..LOOKS {
                if let Some(found) = look()? {
                    return Ok(found);
                }
            }
            if self.qemu.try_wait()?.is_some() {
                bail!("{what}: QEMU ended, {}", self.read_serial_text());
            }
            std::thread::yield_now();
        }
        bail!("{what} for {TIMEOUT:?}")
    }

    /// Waits until QEMU ends. Returns its status, and the output of the image.
    pub fn wait_for_end(&mut self) -> Result<(ExitStatus, String)> {
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            if let Some(status) = self.qemu.try_wait()? {
                return Ok((status, self.read_serial_text()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("QEMU does not end for {TIMEOUT:?}")
    }

    /// Text of the serial line, after QEMU has ended.
    fn read_serial_text(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut output) = self.qemu.stdout.take() {
            // What is no text is of no use in a message.
            let _ = output.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for ImageMachine {
    fn drop(&mut self) {
        // It may have ended, which is as well.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// Starts QEMU with the image and a device.
fn start_qemu(image: &Path, device: &[&str]) -> Result<Child> {
    let mut qemu = process::Command::new(QEMU);
    qemu.args(ARGUMENTS).args(device).args(["-accel", EMULATED]).arg("-kernel").arg(image);
    let started = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    started.with_context(|| format!("cannot start {QEMU}"))
}
