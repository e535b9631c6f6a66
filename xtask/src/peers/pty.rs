//! Row of `cargo xtask peers remote`: `latscope remote --transport tty` beside the least that a ping over a pseudo
//! terminal
//! can be. The least is `write` and `read`, with an echo of `read` and `write` at the other end. Both clients are
//! processes,
//! and the echo is the same.

use super::tools::LatscopeBinary;
use super::{SEED, limit_verdict, median_or_nan};
use anyhow::{Context, Result, ensure};
use latscope_core::statistics::{ConfidenceInterval, ratio_of_medians};
use latscope_core::units::format_time;
use latscope_os::clock::monotonic_raw_ns;
use latscope_os::sched;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, write};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};

/// Largest ratio of latscope's ping to the least ping.
const MOST: f64 = 1.05;

/// Size of a ping on both sides, in bytes.
const PAYLOAD: usize = 48;

/// Number of pings in a run.
const PINGS: usize = 20_000;

/// Number of pings before those that are timed.
const WARM_UP: usize = 100;

/// CPU on which the clients run.
const CPU: u32 = 0;

/// Runs both sides in turns. Returns true if the limit holds.
///
/// # Errors
/// There are no pseudo terminals, or a side does not run.
pub fn compare_sides(latscope: &LatscopeBinary, pairs: usize) -> Result<bool> {
    let turns = (0..pairs).map(|_| turn(latscope)).collect::<Result<Vec<_>>>()?;
    let (ours, theirs): (Vec<f64>, Vec<f64>) = turns.iter().copied().unzip();
    let (ratio, interval) = ratio_of_medians(&turns, SEED).context("too few pairs")?;
    let allowed = ConfidenceInterval { low: 0.0, high: MOST };
    println!(
        "ping of {PAYLOAD} bytes over a pseudo terminal, p50: latscope {}, the least {}: {ratio:.3} [{:.3}, {:.3}], at most \
         {MOST}: {}",
        format_time(median_or_nan(ours)),
        format_time(median_or_nan(theirs)),
        interval.low,
        interval.high,
        limit_verdict(ratio, interval, allowed)
    );
    Ok(!interval.is_apart_from(&allowed))
}

/// Runs each side once, one after the other. Returns the medians, in ns.
///
/// # Errors
/// A side does not run.
pub fn turn(latscope: &LatscopeBinary) -> Result<(f64, f64)> {
    let echo = PtyEchoThread::start_echo()?;
    let words = format!(
        "remote ping --transport tty --path {} --count {PINGS} --duration 60s --cpus {CPU},{}",
        echo.path,
        CPU + 1
    );
    let ours = latscope.median(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
    let client = Command::new(std::env::current_exe()?).args(["peers", "pty", &echo.path]).output()?;
    ensure!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr).trim());
    let theirs = String::from_utf8_lossy(&client.stdout).trim().parse().context("no figure")?;
    Ok((ours, theirs))
}

/// Runs the least client, which prints its median in ns.
///
/// # Errors
/// The terminal cannot be used.
pub fn client(path: &Path) -> Result<()> {
    sched::pin(&[CPU])?;
    let terminal = open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let mut modes = tcgetattr(&terminal)?;
    modes.make_raw();
    tcsetattr(&terminal, OptionalActions::Flush, &modes)?;
    let mut taken = Vec::with_capacity(PINGS);
    for ping in 0..WARM_UP + PINGS {
        let message = [ping as u8; PAYLOAD];
        let mut reply = [0; PAYLOAD];
        let begun = monotonic_raw_ns();
        write(&terminal, &message)?;
        let mut length = 0;
        while length < PAYLOAD {
            length += read(&terminal, &mut reply[length..])?;
        }
        let ns = monotonic_raw_ns() - begun;
        ensure!(reply == message, "another reply than was sent");
        if ping >= WARM_UP {
            taken.push(ns as f64);
        }
    }
    println!("{}", median_or_nan(taken));
    Ok(())
}

/// Pseudo terminal whose master sends back what it reads, in a thread.
struct PtyEchoThread {
    path: String,
    /// Open slave. It keeps the echo running when a client ends; closing it ends the echo.
    slave: Option<OwnedFd>,
    thread: Option<JoinHandle<rustix::io::Result<()>>>,
}

impl PtyEchoThread {
    fn start_echo() -> Result<PtyEchoThread> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let slave = Some(ioctl_tiocgptpeer(&master, flags)?);
        let path = ptsname(&master, [])?.into_string()?;
        let thread = Some(thread::spawn(move || echo(&master)));
        Ok(PtyEchoThread { path, slave, thread })
    }
}

impl Drop for PtyEchoThread {
    fn drop(&mut self) {
        self.slave = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn echo(master: &OwnedFd) -> rustix::io::Result<()> {
    // Where there is one CPU only, both are there.
    let _ = sched::pin(&[CPU + 1]);
    let mut room = [0; 4096];
    loop {
        let length = match read(master, &mut room) {
            // No process has the other end.
            Err(Errno::IO) => return Ok(()),
            read => read?,
        };
        let mut written = 0;
        while written < length {
            written += write(master, &room[written..length])?;
        }
    }
}
