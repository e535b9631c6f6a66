//! QEMU with the image in it, and our mapping of its window.

use anyhow::{Context, Result, bail};
use latscope_rpmsg::Fault;
use latscope_rpmsg::control::{Control, Order};
use latscope_rpmsg::image::{ARGUMENTS, Backend, EMULATED, QEMU, WINDOW};
use latscope_sys::window::Window;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// When to give up: far more than anything takes, on a busy machine, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks between two at the clock.
const LOOKS: u32 = 4096;

/// The running machine; it ends with this value.
pub struct Machine {
    qemu: Child,
    window: Window,
}

impl Machine {
    /// Starts QEMU with the image, and a fresh window for it.
    pub fn boot(image: &Path) -> Result<Machine> {
        let window = Window::create(WINDOW)?;
        // QEMU opens it by our descriptor: there is no name that could be left behind.
        let path = format!("/proc/{}/fd/{}", std::process::id(), window.descriptor().as_raw_fd());
        let object = Backend { path: &path }.to_string();
        let qemu = start(image, Command::new(QEMU).args(ARGUMENTS).args(["-object", &object]))?;
        Ok(Machine { qemu, window })
    }

    /// Starts QEMU with the image and without a window.
    pub fn boot_without_window(image: &Path) -> Result<Machine> {
        let others = ARGUMENTS.iter().filter(|argument| !argument.starts_with("ivshmem"));
        let others: Vec<_> = others.copied().collect();
        // What is left of the device is the word in front of it, the last.
        let qemu = start(image, Command::new(QEMU).args(&others[..others.len() - 1]))?;
        Ok(Machine { qemu, window: Window::create(WINDOW)? })
    }

    /// The window.
    pub fn window(&self) -> Window {
        self.window.clone()
    }

    /// The words that direct the image.
    pub fn control(&self) -> Result<Control<Window>> {
        Ok(Control::new(self.window())?)
    }

    /// Gives an order and waits until the image obeys it.
    pub fn order(&mut self, order: Order) -> Result<()> {
        let control = self.control()?;
        let command = control.issue(order)?;
        let accepted = || Ok(control.is_accepted(command)?.then_some(()));
        self.until("the image does not obey", accepted)
    }

    /// Looks until there is something, without a pause; not for ever, and not longer than the machine runs.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut() -> Result<Option<T>, Fault>) -> Result<T> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            for _ in 0..LOOKS {
                if let Some(found) = look()? {
                    return Ok(found);
                }
            }
            if self.qemu.try_wait()?.is_some() {
                bail!("{what}: QEMU ended, {}", self.said());
            }
            std::thread::yield_now();
        }
        bail!("{what} for {PATIENCE:?}")
    }

    /// Waits until QEMU ends, and tells its status and what the image said.
    pub fn ended(&mut self) -> Result<(ExitStatus, String)> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.qemu.try_wait()? {
                return Ok((status, self.said()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("QEMU does not end for {PATIENCE:?}")
    }

    /// The serial line, when QEMU has ended.
    fn said(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut output) = self.qemu.stdout.take() {
            // What is no text is of no use in a message.
            let _ = output.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended, which is as well.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

fn start(image: &Path, qemu: &mut Command) -> Result<Child> {
    let qemu = qemu.args(["-accel", EMULATED]).arg("-kernel").arg(image);
    let qemu = qemu.stdin(Stdio::null()).stdout(Stdio::piped());
    qemu.spawn().with_context(|| format!("cannot start {QEMU}"))
}
