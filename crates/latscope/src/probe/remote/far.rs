//! The process that stands for the remote: it answers until it is ended.

use crate::exchange::rpmsg::{self, Kicks, Wait};
use anyhow::{Context, Result};
use latscope_sys::sched;
use latscope_sys::window::Window;
use latscope_sys::worker::{self, Lifetime, inherited};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::process::Child;

/// The process, ended when dropped.
pub struct Far {
    child: Child,
}

impl Far {
    /// Starts it on a CPU, with the memory; returns how the two kick each other.
    ///
    /// # Errors
    /// No process or descriptors left.
    pub fn start(memory: &Window, cpu: u32, wait: Wait) -> Result<(Far, Kicks)> {
        let memory = memory.descriptor().try_clone_to_owned()?;
        let kick = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (ours, theirs) = (kick()?, kick()?);
        let words = ["__remote", wait.name(), &cpu.to_string()];
        let child = worker::spawn(&words, &[&memory, &theirs, &ours], Lifetime::WithParent)
            .context("the process that answers does not start")?;
        Ok((Far { child }, Kicks { wait, ours, theirs }))
    }

    /// How it ended, if it did.
    pub fn end(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process itself.
///
/// # Errors
/// It was not started by latscope, or has not what it needs.
pub fn main(arguments: &[String]) -> Result<()> {
    let wait = arguments.first().and_then(|name| Wait::named(name));
    let cpu = arguments.get(1).and_then(|cpu| cpu.parse().ok());
    let (wait, cpu): (Wait, u32) =
        wait.zip(cpu).context("this is started by latscope itself: run `latscope remote`")?;
    let _ = rustix::thread::set_name(c"remote/echo");
    sched::pin(&[cpu]).with_context(|| format!("CPU {cpu} cannot be used"))?;
    let descriptor = |index| -> Result<OwnedFd> { Ok(inherited(index)?) };
    let memory = Window::map(descriptor(0)?)?;
    let kicks = Kicks { wait, ours: descriptor(1)?, theirs: descriptor(2)? };
    rpmsg::answer(&memory, &kicks)
}
