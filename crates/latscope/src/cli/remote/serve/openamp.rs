//! `latscope remote serve --openamp`: the device of OpenAMP's shared memory.

use super::ServeArguments;
use crate::cli::Exit;
use anyhow::{Context, Result, ensure};
use latscope_core::plan::ParamValue;
use latscope_exchange::notify::readable;
use latscope_exchange::remote::Opt;
use latscope_exchange::remote::openamp::device::OpenampDevice;
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
pub fn run(asked: &ServeArguments) -> Result<Exit> {
    asked.options.check_used("serve --openamp", |option| PLACES.iter().any(|place| place.name == option))?;
    let place = |index: usize| {
        let Opt { name, default, .. } = &PLACES[index];
        match asked.options.0.get(*name) {
            Some(ParamValue::Text(path)) => Path::new(path),
            _ => Path::new(default),
        }
    };
    let (memory, socket) = (place(0), place(1));
    let wait = asked.wait.as_deref().unwrap_or(WAITS[0]);
    ensure!(WAITS.contains(&wait), "--openamp waits by: {}", WAITS.join(", "));
    let signals = Signals::block(&TERMINATION).context("signals cannot be waited for")?;
    if let Some(list) = &asked.cpus {
        sched::pin(&list.0).with_context(|| format!("CPUs {list} cannot be used"))?;
    }
    let device = Arc::new(OpenampDevice::new(memory, socket, spin_ns(wait))?);
    latscope_process::stdout::write(&format!(
        "serving at {}, in {}; Ctrl-C ends it\n",
        socket.display(),
        memory.display()
    ))?;
    let serving = Arc::clone(&device);
    // A driver may keep it at work without end: it ends with the process.
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
