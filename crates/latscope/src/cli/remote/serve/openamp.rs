//! `latscope remote serve --openamp`: the device of OpenAMP's shared memory.

use super::Exit;
use crate::exchange::remote::kicks::readable;
use crate::exchange::remote::openamp::device::Device;
use crate::exchange::remote::openamp::{PLACES, WAITS, patience};
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, value_parser};
use latscope_sys::sched;
use latscope_sys::signal::Signals;
use rustix::fd::AsFd;
use rustix::process::Signal;
use std::path::Path;
use std::sync::Arc;

/// Between two looks whether the thread that serves has failed, ns.
const LOOK: u64 = 200_000_000;

/// The places, and where it runs.
pub fn arguments() -> impl Iterator<Item = Arg> {
    let cpu = Arg::new("cpu").long("cpu").value_name("N").help("The CPU that it runs on");
    let cpu = cpu.value_parser(value_parser!(u32)).help_heading("With --openamp");
    let wait =
        Arg::new("wait").long("wait").value_name("WAIT").help("How it waits").value_parser(WAITS.to_vec());
    places().chain([wait.default_value(WAITS[0]).help_heading("With --openamp"), cpu])
}

fn places() -> impl Iterator<Item = Arg> {
    PLACES.iter().map(|option| {
        let heading = "With --openamp";
        let argument = Arg::new(option.name).long(option.name).value_name(option.value);
        argument.help(option.help).default_value(option.default).help_heading(heading)
    })
}

/// Serves until a signal comes.
///
/// # Errors
/// The memory or the socket cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    let text = |name| matches.get_one::<String>(name).map_or("", String::as_str);
    let [memory, socket] = [0, 1].map(|index| Path::new(text(PLACES[index].name)));
    let ends = [Signal::INT, Signal::TERM, Signal::HUP].map(Signal::as_raw);
    let signals = Signals::block(&ends).context("signals cannot be waited for")?;
    if let Some(cpu) = matches.get_one::<u32>("cpu") {
        sched::pin(&[*cpu]).with_context(|| format!("CPU {cpu} cannot be used"))?;
    }
    let device = Arc::new(Device::new(memory, socket, patience(text("wait")))?);
    anstream::println!("serving at {}, in {}; Ctrl-C ends it", socket.display(), memory.display());
    let serving = Arc::clone(&device);
    // A driver may keep it at work for ever: it ends with the process.
    let thread = std::thread::spawn(move || -> Result<()> {
        loop {
            serving.serve_one()?;
        }
    });
    while !thread.is_finished() {
        if readable(signals.as_fd(), LOOK)? {
            device.remove();
            return Ok(Exit::Done);
        }
    }
    thread.join().unwrap_or(Ok(()))?;
    Ok(Exit::Done)
}
