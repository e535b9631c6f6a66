//! `shm`: a process of our own stands for the remote, in memory that both map.

use super::kicks::{Eventfd, Kicks, Spin};
use super::rings::{self, Far, Rings};
use super::{Channel, Order, Transport, echo};
use anyhow::{Context, Result, bail};
use latscope_sys::clock::monotonic_ns;
use latscope_sys::sched;
use latscope_sys::window::Window;
use latscope_sys::worker::{self, Lifetime, inherited};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::process::Child;

/// The transport.
pub static SHM: Transport = Transport { name: "shm", waits: WAITS, options: &[], open };

const WAITS: &[&str] = &["spin", "eventfd"];

/// Time for the remote to begin, ns.
const PATIENCE: u64 = 10_000_000_000;

fn open(order: &Order) -> Result<Box<dyn Channel>> {
    let wait = order.text("wait");
    let there = match order.cpus {
        [_, there, ..] => *there,
        [only] if wait != "spin" => *only,
        _ => bail!("two parties that spin need two CPUs"),
    };
    let window = rings::layout()?;
    let memory = Window::create(window.size).context("no shared memory")?;
    let (process, kicks) = Process::start(&memory, there, wait)?;
    let until = monotonic_ns() + PATIENCE;
    let rings = Rings::connect(&window, memory, kicks, Box::new(process), order.service, until)?;
    Ok(Box::new(rings))
}

/// How a side of this wait kicks, by descriptors it has.
fn kicks(wait: &str, ours: OwnedFd, theirs: OwnedFd) -> Option<Box<dyn Kicks>> {
    match wait {
        "spin" => Some(Box::new(Spin)),
        "eventfd" => Some(Box::new(Eventfd { ours, theirs })),
        _ => None,
    }
}

/// The process, ended when dropped.
struct Process(Child);

impl Process {
    /// Starts it on a CPU, with the memory; returns how this side kicks it.
    fn start(memory: &Window, cpu: u32, wait: &str) -> Result<(Process, Box<dyn Kicks>)> {
        let memory = memory.descriptor().try_clone_to_owned()?;
        let kick = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (ours, theirs) = (kick()?, kick()?);
        let words = ["__remote", wait, &cpu.to_string()];
        let child = worker::spawn(&words, &[&memory, &theirs, &ours], Lifetime::WithParent)
            .context("the process that answers does not start")?;
        let kicks = kicks(wait, ours, theirs).with_context(|| format!("no way to wait is called {wait}"))?;
        Ok((Process(child), kicks))
    }
}

impl Far for Process {
    fn ended(&mut self) -> Option<String> {
        self.0.try_wait().ok().flatten().map(|status| format!("the process that answers ended: {status}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process itself.
///
/// # Errors
/// It was not started by latscope, or has not what it needs.
pub fn main(arguments: &[String]) -> Result<()> {
    let [wait, cpu] = arguments else { bail!("this is started by latscope itself: run `latscope remote`") };
    let _ = rustix::thread::set_name(c"remote/echo");
    sched::pin(&[cpu.parse()?]).with_context(|| format!("CPU {cpu} cannot be used"))?;
    let descriptor = |index| -> Result<OwnedFd> { Ok(inherited(index)?) };
    let memory = Window::map(descriptor(0)?)?;
    let kicks = kicks(wait, descriptor(1)?, descriptor(2)?).context("no such way to wait")?;
    echo::answer(&rings::layout()?, &memory, &*kicks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::remote::Failure;
    use latscope_rpmsg::echo::Service;
    use latscope_rpmsg::link::Unsent;

    const SECOND: u64 = 1_000_000_000;

    fn pair() -> ([OwnedFd; 2], [OwnedFd; 2]) {
        let new = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (here, there) = (new(), new());
        ([here.try_clone().unwrap(), there.try_clone().unwrap()], [there, here])
    }

    /// Somebody who never ends.
    struct Nobody;

    impl Far for Nobody {
        fn ended(&mut self) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_remote_answers_however_both_wait() {
        for wait in WAITS {
            let window = rings::layout().unwrap();
            let memory = Window::create(window.size).unwrap();
            let ([a, b], theirs) = pair();
            let there = memory.clone();
            // Ends with the process.
            std::thread::spawn(move || {
                let [a, b] = theirs;
                echo::answer(&rings::layout().unwrap(), &there, &*kicks(wait, a, b).unwrap()).unwrap()
            });
            let kicks = kicks(wait, a, b).unwrap();
            let until = monotonic_ns() + 20 * SECOND;
            let mut rings =
                Rings::connect(&window, memory, kicks, Box::new(Nobody), Service::Pty, until).unwrap();
            let mut payload = [0; rings::PAYLOAD];
            for message in [&b"a"[..], &[7; rings::PAYLOAD], b"last"] {
                rings.send(message).unwrap();
                let length = rings.receive(&mut payload, until).unwrap();
                assert_eq!(&payload[..length], message, "{wait}");
            }
            assert!(matches!(rings.receive(&mut payload, 0), Err(Failure::Timeout)), "one look, and no more");
            assert_eq!(rings.faults(), 0);
            let long = rings.send(&[0; rings::PAYLOAD + 1]);
            assert!(matches!(long, Err(Failure::Unsent(Unsent::TooLong))));
        }
    }

    #[test]
    fn nobody_there_is_a_timeout() {
        for wait in WAITS {
            let window = rings::layout().unwrap();
            let memory = Window::create(window.size).unwrap();
            let ([a, b], _theirs) = pair();
            let kicks = kicks(wait, a, b).unwrap();
            let until = monotonic_ns() + 20_000_000;
            let found = Rings::connect(&window, memory, kicks, Box::new(Nobody), Service::Ping, until);
            assert!(found.err().unwrap().to_string().contains("rpc-ping"), "{wait}");
        }
    }
}
