//! A thread that takes a CPU away from everybody else at known instants, for
//! known times: the truth that `latscope selftest wake` looks for.

use anyhow::{Context, Result, bail};
use latscope_os::clock::monotonic_ns;
use latscope_os::sched::{self, Policy};
use latscope_os::worker::{self, Lifetime, inherited};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Duration;

/// What it calls itself, as the kernel's trace shows it.
pub const NAME: &str = "thief";

/// What the thief is to do.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Orders {
    /// The CPU.
    pub cpu: u32,
    /// How often.
    pub thefts: u32,
    /// Time before each, ns.
    pub pause: u64,
    /// Length of each, ns.
    pub length: u64,
}

/// A theft as the thief itself stamped it, ns of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Theft {
    /// Its begin.
    pub from: u64,
    /// Its end: later than planned where the hypervisor stretched it.
    pub until: u64,
}

/// A running thief.
#[derive(Debug)]
pub struct Thief {
    child: Child,
    socket: BufReader<UnixStream>,
}

/// Sends a thief out.
///
/// # Errors
/// No process can be started.
pub fn start(orders: Orders) -> Result<Thief> {
    let (ours, theirs) = UnixStream::pair().context("no sockets to the thief")?;
    let mut thief = Thief {
        child: worker::spawn(&["__thief"], &[&theirs.into()], Lifetime::WithParent)
            .context("the thief does not start")?,
        socket: BufReader::new(ours),
    };
    let line = serde_json::to_string(&orders)? + "\n";
    thief.socket.get_mut().write_all(line.as_bytes())?;
    Ok(thief)
}

impl Thief {
    /// Id of its process, which has one thread.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is through, and hears what it took.
    ///
    /// # Errors
    /// It was not allowed to: the text says what to do.
    pub fn confess(mut self) -> Result<Vec<Theft>> {
        let mut line = String::new();
        self.socket.read_line(&mut line)?;
        let told: Result<Vec<Theft>, String> = serde_json::from_str(&line).context("the thief was caught")?;
        told.map_err(anyhow::Error::msg)
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The thief's own process.
///
/// # Errors
/// It was not started by [`start`].
pub fn main() -> Result<()> {
    let mut socket = UnixStream::from(inherited(0)?);
    let mut line = String::new();
    BufReader::new(socket.try_clone()?).read_line(&mut line)?;
    let told = steal(serde_json::from_str(&line)?).map_err(|error| format!("{error:#}"));
    socket.write_all((serde_json::to_string(&told)? + "\n").as_bytes())?;
    Ok(())
}

fn steal(orders: Orders) -> Result<Vec<Theft>> {
    rustix::thread::set_name(&std::ffi::CString::new(NAME)?)?;
    sched::pin(&[orders.cpu])?;
    sched::set_policy(Policy::Fifo(99)).context("SCHED_FIFO 99 is refused: run as root")?;
    if sched::policy()? != Policy::Fifo(99) {
        bail!("SCHED_FIFO 99 was not granted: run as root");
    }
    let mut thefts = Vec::with_capacity(orders.thefts as usize);
    for _ in 0..orders.thefts {
        std::thread::sleep(Duration::from_nanos(orders.pause));
        let from = monotonic_ns();
        let mut until = from;
        while until < from + orders.length {
            until = monotonic_ns();
        }
        thefts.push(Theft { from, until });
    }
    Ok(thefts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thefts_are_as_long_as_ordered_or_longer() {
        std::thread::spawn(|| {
            let cpu = sched::allowed_cpus().unwrap()[0];
            match steal(Orders { cpu, thefts: 3, pause: 1_000_000, length: 200_000 }) {
                Ok(thefts) => {
                    assert_eq!(thefts.len(), 3);
                    assert!(thefts.iter().all(|theft| theft.until - theft.from >= 200_000));
                    assert!(thefts.windows(2).all(|pair| pair[0].until < pair[1].from));
                }
                Err(error) => assert!(format!("{error:#}").contains("SCHED_FIFO 99")),
            }
        })
        .join()
        .unwrap();
    }
}
