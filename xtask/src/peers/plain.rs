//! Plain loops as a user would write them to time a hand-off or a thread, with nothing between one event and the next.
//! They
//! are the peers of `cargo xtask peers survey`.

use super::tools::{LatscopeBinary, PlaceholderValues};
use super::{SEED, limit_verdict, side};
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use latscope_core::report::Measurement;
use latscope_core::statistics::{ConfidenceInterval, median, ratio_of_medians};
use latscope_os::futex::Tokens;
use latscope_os::monitor::CondvarCounter;
use latscope_os::sched;
use latscope_os::semaphore::Semaphore;
use latscope_os::shared_cell::{Shareable, SharedCell, SharingScope};
use latscope_os::thread::{self, PosixThreadAttributes};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Work that a loop repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PlainLoopKind {
    /// sem_post and sem_wait with another thread on the same CPU, both ways
    Semaphore,
    /// An atomic add with FUTEX_WAKE, and FUTEX_WAIT, both ways
    Futex,
    /// A count under a pthread mutex with its condition, both ways
    Condvar,
    /// Byte through a pipe to another thread, and one back
    Pipe,
    /// The same through a pair of sockets
    UnixStream,
    /// Byte through a pipe to a process, `cat`, and one back
    Switch,
    /// pthread_create and pthread_join
    Life,
    /// std::thread::spawn and join
    Thread,
}

impl PlainLoopKind {
    /// Arguments with which latscope measures the same; they leave one point.
    fn latscope_arguments(self) -> &'static str {
        match self {
            PlainLoopKind::Semaphore => "sync semaphore --placement same-core --cpus {cpu}",
            PlainLoopKind::Futex => "sync futex --placement same-core --cpus {cpu}",
            PlainLoopKind::Condvar => "sync condvar --placement same-core --cpus {cpu}",
            PlainLoopKind::Pipe => "sync pipe --placement same-core --cpus {cpu}",
            PlainLoopKind::UnixStream => "sync unix-stream --placement same-core --cpus {cpu}",
            PlainLoopKind::Switch => "sync context-switch --mode processes --cpus {cpu}",
            PlainLoopKind::Life => "thread total --mode warm --cpus {cpu}",
            PlainLoopKind::Thread => "thread std --cpus {cpu}",
        }
    }

    /// Median of a turn as latscope measured it.
    fn turn_median(self, point: &Measurement) -> Option<f64> {
        match self {
            // The rest of its figures have the cost of the pipe taken off.
            PlainLoopKind::Switch => point.values.get("round-trip").map(|value| value.value),
            _ => point.typical(),
        }
    }
}

/// Largest ratio of latscope's median to that of a plain loop.
const LIMIT: f64 = 1.05;

/// Compares each loop with latscope's figure, in turns. Returns true if every limit holds.
///
/// # Errors
/// latscope cannot be built, or a side measures nothing.
pub fn compare_loops(pairs: usize) -> Result<bool> {
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    println!("latscope / a plain loop, medians of single turns, in turn, [95 % interval]; at most {LIMIT}.");
    let mut all = true;
    for kind in PlainLoopKind::value_variants() {
        let mut both = Vec::new();
        for turn in 1..=pairs {
            eprint!("\r{kind:?} {turn}/{pairs} ");
            let plain = std::thread::scope(|scope| scope.spawn(|| run_loop(*kind, here.cpu())).join());
            let plain = plain.map_err(|_| anyhow!("the plain loop failed"))??;
            let point = latscope.measure_point(&here.fill_words(kind.latscope_arguments())?)?;
            both.push((kind.turn_median(&point).with_context(|| format!("{kind:?}: no figure"))?, plain));
        }
        let (ratio, interval) = ratio_of_medians(&both, SEED).context("no pair has two figures")?;
        let allowed = ConfidenceInterval { low: 0.0, high: LIMIT };
        let (ours, theirs): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        eprint!("\r{:40}\r", "");
        println!(
            "{:<12} {ratio:.3} [{:.3}, {:.3}]  latscope {}  loop {}  {}",
            format!("{kind:?}"),
            interval.low,
            interval.high,
            side(&ours),
            side(&theirs),
            limit_verdict(ratio, interval, allowed)
        );
        all &= !interval.is_apart_from(&allowed);
    }
    Ok(all)
}

/// Time for which a loop runs.
const DURATION: Duration = Duration::from_millis(400);

/// Runs a loop on `cpu`. Returns the median of single turns, in ns.
///
/// # Errors
/// No CPU, thread or pipe is available.
pub fn run_loop(kind: PlainLoopKind, cpu: u32) -> Result<f64> {
    sched::pin(&[cpu]).with_context(|| format!("CPU {cpu}"))?;
    match kind {
        PlainLoopKind::Semaphore => {
            let tokens: [SharedCell<Semaphore>; 2] = [in_memory()?, in_memory()?];
            tokens_handed_over(|to| assert!(tokens[to].post().is_ok()), |by| tokens[by].wait())
        }
        PlainLoopKind::Futex => {
            let tokens: [SharedCell<Tokens>; 2] = [in_memory()?, in_memory()?];
            tokens_handed_over(|to| tokens[to].give_token(), |by| tokens[by].take_token())
        }
        PlainLoopKind::Condvar => {
            let tokens: [SharedCell<CondvarCounter>; 2] = [in_memory()?, in_memory()?];
            tokens_handed_over(|to| tokens[to].give_token(), |by| tokens[by].take_token())
        }
        PlainLoopKind::Pipe => {
            let (input, far_output) = std::io::pipe()?;
            let (far_input, output) = std::io::pipe()?;
            handed_over((input, output), (far_input, far_output))
        }
        PlainLoopKind::UnixStream => {
            let (near, far) = UnixStream::pair()?;
            handed_over((near.try_clone()?, near), (far.try_clone()?, far))
        }
        PlainLoopKind::Switch => {
            let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let (output, input) = cat.stdin.take().zip(cat.stdout.take()).context("cat has no pipes")?;
            let found = time_echo(input, output);
            ensure!(cat.wait()?.success(), "cat failed");
            found
        }
        PlainLoopKind::Life => {
            let attributes = PosixThreadAttributes::new(None)?;
            time_turns(|| Ok(thread::create_thread(&attributes, &|| ())?.join().is_ok()))
        }
        PlainLoopKind::Thread => time_turns(|| Ok(std::thread::Builder::new().spawn(|| ())?.join().is_ok())),
    }
}

fn handed_over<R: Read, W: Write>(
    (input, output): (R, W),
    (mut far_input, mut far_output): (impl Read + Send + 'static, impl Write + Send + 'static),
) -> Result<f64> {
    let echo = std::thread::spawn(move || {
        let mut byte = [0u8];
        while far_input.read(&mut byte).is_ok_and(|n| n == 1) && far_output.write_all(&byte).is_ok() {}
    });
    let found = time_echo(input, output);
    ensure!(echo.join().is_ok(), "the echo failed");
    found
}

/// Times bytes through an echo. Closes both ends afterwards, which ends the echo.
fn time_echo(mut input: impl Read, mut output: impl Write) -> Result<f64> {
    time_turns(|| {
        let mut byte = [1u8];
        output.write_all(&byte)?;
        input.read_exact(&mut byte)?;
        Ok(true)
    })
}

fn in_memory<T: Shareable>() -> Result<SharedCell<T>> {
    Ok(SharedCell::create_zeroed(SharingScope::Threads)?)
}

/// Times a token to the other thread and another back: `give(n)` lets `take(n)` return.
fn tokens_handed_over(give: impl Fn(usize) + Sync, take: impl Fn(usize) + Sync) -> Result<f64> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                take(FAR);
                give(NEAR);
            }
        });
        let found = time_turns(|| {
            give(FAR);
            take(NEAR);
            Ok(true)
        });
        over.store(true, Ordering::Relaxed);
        give(FAR);
        found
    })
}

const NEAR: usize = 0;
const FAR: usize = 1;

/// Times each turn, as latscope does, but with the clock of the standard library. Returns the median, in ns.
fn time_turns(mut turn: impl FnMut() -> Result<bool>) -> Result<f64> {
    let begun = Instant::now();
    let mut times = Vec::with_capacity(1 << 17);
    let mut last = begun;
    while last - begun < DURATION {
        ensure!(turn()?, "a turn failed");
        let now = Instant::now();
        times.push((now - last).as_nanos() as f64);
        last = now;
    }
    median(&times).context("nothing was timed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_runs_and_ends() {
        let cpu = *sched::allowed_cpus().unwrap().last().unwrap();
        for kind in PlainLoopKind::value_variants() {
            let ns = std::thread::scope(|scope| scope.spawn(|| run_loop(*kind, cpu)).join().unwrap());
            assert!(ns.unwrap() > 0.0, "{kind:?}");
        }
    }
}
