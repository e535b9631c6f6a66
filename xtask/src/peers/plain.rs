//! Plain loops: what a user would write to time a hand-off or a thread, with
//! nothing between one event and the next. The peers of `cargo xtask peers survey`.

use super::tools::{Here, Latscope};
use super::{SEED, side, verdict};
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use latscope_core::statistics::{Interval, median, ratio_of_medians};
use latscope_sys::sched;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What a loop does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Loop {
    /// One byte through a pipe to another thread on the same CPU, and one back
    Pipe,
    /// The same through a pair of sockets
    UnixStream,
    /// std::thread::spawn and join
    Thread,
}

impl Loop {
    /// What latscope measures it with; it leaves one point.
    fn ours(self) -> &'static str {
        match self {
            Loop::Pipe => "sync pipe --placement same-core --cpus {cpu}",
            Loop::UnixStream => "sync unix-stream --placement same-core --cpus {cpu}",
            Loop::Thread => "thread std --cpus {cpu}",
        }
    }
}

/// latscope's median may be this many times that of a plain loop.
const LIMIT: f64 = 1.05;

/// Compares each loop with latscope's figure, in turn; whether every limit holds.
///
/// # Errors
/// latscope cannot be built, or a side measures nothing.
pub fn compare(pairs: usize) -> Result<bool> {
    let (latscope, here) = (Latscope::build()?, Here::new()?);
    println!("latscope / a plain loop, medians in turn, [95 % interval]; at most {LIMIT}.");
    let mut all = true;
    for kind in Loop::value_variants() {
        let mut both = Vec::new();
        for turn in 1..=pairs {
            eprint!("\r{kind:?} {turn}/{pairs} ");
            let plain = std::thread::scope(|scope| scope.spawn(|| run(*kind, here.cpu())).join());
            let plain = plain.map_err(|_| anyhow!("the plain loop failed"))??;
            both.push((latscope.median(&here.words(kind.ours())?)?, plain));
        }
        let (ratio, interval) = ratio_of_medians(&both, SEED).context("no pair has two figures")?;
        let allowed = Interval { low: 0.0, high: LIMIT };
        let (ours, theirs): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        eprint!("\r{:40}\r", "");
        println!(
            "{:<12} {ratio:.3} [{:.3}, {:.3}]  latscope {}  loop {}  {}",
            format!("{kind:?}"),
            interval.low,
            interval.high,
            side(&ours),
            side(&theirs),
            verdict(ratio, interval, allowed)
        );
        all &= !interval.is_apart_from(&allowed);
    }
    Ok(all)
}

/// Turns timed together: their mean is one value.
const TURNS: u32 = 300;

/// How long it goes on.
const DURATION: Duration = Duration::from_millis(400);

/// The median of the means of [`TURNS`] turns, ns, on `cpu`.
///
/// # Errors
/// No CPU, thread or pipe can be had.
pub fn run(kind: Loop, cpu: u32) -> Result<f64> {
    sched::pin(&[cpu]).with_context(|| format!("CPU {cpu}"))?;
    match kind {
        Loop::Pipe => {
            let (input, far_output) = std::io::pipe()?;
            let (far_input, output) = std::io::pipe()?;
            handed_over((input, output), (far_input, far_output))
        }
        Loop::UnixStream => {
            let (near, far) = UnixStream::pair()?;
            handed_over((near.try_clone()?, near), (far.try_clone()?, far))
        }
        Loop::Thread => timed(|| Ok(std::thread::Builder::new().spawn(|| ())?.join().is_ok())),
    }
}

fn handed_over<R: Read, W: Write>(
    (mut input, mut output): (R, W),
    (mut far_input, mut far_output): (impl Read + Send + 'static, impl Write + Send + 'static),
) -> Result<f64> {
    let echo = std::thread::spawn(move || {
        let mut byte = [0u8];
        while far_input.read(&mut byte).is_ok_and(|n| n == 1) && far_output.write_all(&byte).is_ok() {}
    });
    let found = timed(|| {
        let mut byte = [1u8];
        output.write_all(&byte)?;
        input.read_exact(&mut byte)?;
        Ok(true)
    });
    drop((input, output));
    ensure!(echo.join().is_ok(), "the echo failed");
    found
}

fn timed(mut turn: impl FnMut() -> Result<bool>) -> Result<f64> {
    let begun = Instant::now();
    let mut means = Vec::new();
    while begun.elapsed() < DURATION {
        let start = Instant::now();
        for _ in 0..TURNS {
            ensure!(turn()?, "a turn failed");
        }
        means.push(start.elapsed().as_nanos() as f64 / f64::from(TURNS));
    }
    median(&means).context("nothing was timed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_runs_and_ends() {
        let cpu = *sched::allowed_cpus().unwrap().last().unwrap();
        for kind in Loop::value_variants() {
            let ns = std::thread::scope(|scope| scope.spawn(|| run(*kind, cpu)).join().unwrap());
            assert!(ns.unwrap() > 0.0, "{kind:?}");
        }
    }
}
