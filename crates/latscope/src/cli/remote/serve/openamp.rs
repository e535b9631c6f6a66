//! `latscope remote serve --openamp`: the device of OpenAMP's shared memory.

use crate::cli::Exit;
use crate::cli::remote::options::check_used;
use anyhow::{Context, Result, ensure};
use clap::ArgMatches;
use latscope_core::units::CpuList;
use latscope_exchange::notify::readable;
use latscope_exchange::remote::Opt;
use latscope_exchange::remote::openamp::device::Device;
use latscope_exchange::remote::openamp::{PLACES, WAITS, spin_ns};
use latscope_os::sched;
use latscope_os::signal::{Signals, TERMINATION};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks whether the thread that serves has failed.
const LOOK: Duration = Duration::from_millis(200);

/// Serves until a signal comes.
///
/// # Errors
/// The memory or the socket cannot be had.
pub fn run(matches: &ArgMatches) -> Result<Exit> {
    check_used(matches, "serve --openamp", |option| PLACES.iter().any(|place| place.name == option))?;
    let place = |index: usize| {
        let Opt { name, default, .. } = &PLACES[index];
        Path::new(matches.get_one::<String>(name).map_or(*default, String::as_str))
    };
    let (memory, socket) = (place(0), place(1));
    let wait = matches.get_one("wait").map_or(WAITS[0], String::as_str);
    ensure!(WAITS.contains(&wait), "--openamp waits by: {}", WAITS.join(", "));
    let signals = Signals::block(&TERMINATION).context("signals cannot be waited for")?;
    if let Some(list) = matches.get_one::<CpuList>("cpus") {
        sched::pin(&list.0).with_context(|| format!("CPUs {list} cannot be used"))?;
    }
    let device = Arc::new(Device::new(memory, socket, spin_ns(wait))?);
    latscope_host::stdout::write(&format!(
        "serving at {}, in {}; Ctrl-C ends it\n",
        socket.display(),
        memory.display()
    ))?;
    let serving = Arc::clone(&device);
    // A driver may keep it at work for ever: it ends with the process.
    let thread = std::thread::spawn(move || -> Result<()> {
        loop {
            serving.serve_one()?;
        }
    });
    while !thread.is_finished() {
        if readable(&signals, LOOK)? {
            device.remove();
            return Ok(Exit::Done);
        }
    }
    thread.join().unwrap_or(Ok(()))?;
    Ok(Exit::Done)
}
