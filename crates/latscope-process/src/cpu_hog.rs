//! CPU hog: a thread that preempts all others on a CPU at known instants, for known times. `latscope selftest wake`
//! compares its results with them.

use crate::role::{self, KilledOnDrop, MessageSocket, ProcessRole};
use anyhow::{Context, Result, bail};
use latscope_os::clock::monotonic_ns;
use latscope_os::sched::{self, ThreadSchedPolicy};
use latscope_os::worker::Lifetime;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Name of the hog's thread, as the kernel's trace shows it.
pub const NAME: &str = "cpu_hog";

/// Orders for the hog.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CpuHogOrders {
    /// Number of the CPU.
    pub cpu: u32,
    /// Number of preemptions to make.
    pub preemptions: u32,
    /// Time before each preemption, ns.
    pub pause: u64,
    /// Length of each preemption, ns.
    pub length: u64,
}

/// A preemption with time stamps taken by the hog itself, ns of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preemption {
    /// Begin of the preemption, ns.
    pub from: u64,
    /// End of the preemption, ns: later than planned if the hypervisor stretched it.
    pub until: u64,
}

/// A running CPU hog.
#[derive(Debug)]
pub struct CpuHog {
    child: KilledOnDrop,
    messages: MessageSocket,
    /// Time by which the hog has ended; `None` before it has orders.
    until: Option<Instant>,
}

/// Time for a hog to start and to answer, beside that of its preemptions.
const SPARE: Duration = Duration::from_secs(3);

/// Least time in which an answer is waited for.
const LEAST: Duration = Duration::from_millis(1);

/// Starts a CPU hog, which waits for its orders.
///
/// # Errors
/// No process can be started.
pub fn start_cpu_hog() -> Result<CpuHog> {
    let (child, messages) =
        role::start_process(&[ROLE.name], &[], Lifetime::WithParent).context("the CPU hog does not start")?;
    Ok(CpuHog { child: KilledOnDrop(child), messages, until: None })
}

impl CpuHog {
    /// Lets the hog begin, once.
    ///
    /// # Errors
    /// The hog has ended.
    pub fn send_orders(&mut self, orders: CpuHogOrders) -> Result<()> {
        let ns = u64::from(orders.preemptions).saturating_mul(orders.pause.saturating_add(orders.length));
        self.until = Some(Instant::now() + Duration::from_nanos(ns) + SPARE);
        Ok(self.messages.send_message(&orders)?)
    }

    /// Id of the hog's process, which has one thread.
    pub fn process(&self) -> u32 {
        self.child.0.id()
    }

    /// Waits until the hog has ended; returns the preemptions in order.
    ///
    /// # Errors
    /// The hog did not begin, or was not permitted to preempt; the text names the remedy.
    pub fn preemptions(mut self) -> Result<Vec<Preemption>> {
        let until = self.until.context("the CPU hog did not begin")?;
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of zero would be none.
        self.messages.receive_answer(Some(left.max(LEAST)))?.context("the CPU hog sent no result")
    }
}

/// Role of the hog's process.
pub(crate) const ROLE: ProcessRole = ProcessRole { name: "__cpu_hog", terminates: false, main };

fn main(_: &[String]) -> Result<()> {
    let mut messages = MessageSocket::inherited()?;
    let orders = messages.receive_message()?.context("no orders came")?;
    Ok(messages.send_answer(&preempt(orders))?)
}

fn preempt(orders: CpuHogOrders) -> Result<Vec<Preemption>> {
    rustix::thread::set_name(&std::ffi::CString::new(NAME)?)?;
    sched::pin(&[orders.cpu])?;
    sched::set_policy(ThreadSchedPolicy::Fifo(99)).context("SCHED_FIFO 99 is refused: run as root")?;
    if sched::policy()? != ThreadSchedPolicy::Fifo(99) {
        bail!("SCHED_FIFO 99 was not granted: run as root");
    }
    let mut preemptions = Vec::with_capacity(orders.preemptions as usize);
    for _ in 0..orders.preemptions {
        std::thread::sleep(Duration::from_nanos(orders.pause));
        let from = monotonic_ns();
        let mut until = from;
        while until < from + orders.length {
            until = monotonic_ns();
        }
        preemptions.push(Preemption { from, until });
    }
    // The answer and the end of the process are no preemption.
    sched::set_policy(ThreadSchedPolicy::Other).context("SCHED_OTHER is refused")?;
    Ok(preemptions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preemptions_are_as_long_as_ordered_or_longer() {
        std::thread::spawn(|| {
            let cpu = sched::allowed_cpus().unwrap()[0];
            match preempt(CpuHogOrders { cpu, preemptions: 3, pause: 1_000_000, length: 200_000 }) {
                Ok(preemptions) => {
                    assert_eq!(preemptions.len(), 3);
                    assert!(
                        preemptions.iter().all(|preemption| preemption.until - preemption.from >= 200_000)
                    );
                    assert!(preemptions.windows(2).all(|pair| pair[0].until < pair[1].from));
                }
                Err(error) => assert!(format!("{error:#}").contains("SCHED_FIFO 99")),
            }
        })
        .join()
        .unwrap();
    }
}
