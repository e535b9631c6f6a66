//! `latscope remote serve --openamp`: the device of OpenAMP's shared memory.

use super::ServeArguments;
use crate::cli::CommandExit;
use anyhow::{Context, Result, ensure};
use latscope_core::plan::ParamValue;
use latscope_core::units::count_with_noun;
use latscope_exchange::notify::readable;
use latscope_exchange::remote::RemoteOption;
use latscope_exchange::remote::openamp::device::{OpenampDevice, OpenampServiceTotals};
use latscope_exchange::remote::openamp::{PLACES, WAITS, spin_ns};
use latscope_os::sched;
use latscope_os::signal::{SignalFd, TERMINATION};
use latscope_process::eprintln;
use latscope_rpmsg::Fault;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks whether the thread that serves has failed.
const LOOK: Duration = Duration::from_millis(200);

/// Summary of what was served, in a line: the kinds of faults that there were, and the number of each.
fn format_totals(served: &OpenampServiceTotals) -> String {
    let OpenampServiceTotals { drivers, counts, faults } = served;
    let of = |fault: &Fault| (faults.of(*fault) > 0).then(|| format!("{fault} ({})", faults.of(*fault)));
    let kinds: Vec<String> =
        Fault::ALL.iter().filter(|fault| **fault != Fault::Reset).filter_map(of).collect();
    let kinds =
        if kinds.is_empty() { "no fault".to_owned() } else { format!("faults: {}", kinds.join(", ")) };
    format!(
        "served {}: {} answered, {} not as the service expects, {} to no endpoint, {} too long for a buffer; {kinds}",
        count_with_noun(*drivers, "driver"),
        count_with_noun(counts.replied, "message"),
        counts.mismatched,
        counts.unknown,
        counts.too_long
    )
}

/// Serves until a signal comes.
///
/// # Errors
/// The memory or the socket cannot be had.
pub fn serve_openamp(asked: &ServeArguments) -> Result<CommandExit> {
    asked.options.check_used("serve --openamp", |option| PLACES.iter().any(|place| place.name == option))?;
    let place = |index: usize| {
        let RemoteOption { name, default, .. } = &PLACES[index];
        match asked.options.0.get(*name) {
            Some(ParamValue::Text(path)) => Path::new(path),
            _ => Path::new(default),
        }
    };
    let (memory, socket) = (place(0), place(1));
    let wait = asked.wait.as_deref().unwrap_or(WAITS[0]);
    ensure!(WAITS.contains(&wait), "--openamp waits by: {}", WAITS.join(", "));
    let signals = SignalFd::block(&TERMINATION).context("signals cannot be waited for")?;
    if let Some(list) = &asked.cpus {
        sched::pin(&list.0).with_context(|| format!("CPUs {list} cannot be used"))?;
    }
    let device = Arc::new(OpenampDevice::new(memory, socket, spin_ns(wait))?);
    latscope_process::stdout::write_text(&format!(
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
            eprintln!("{}", format_totals(&device.served()));
            return Ok(CommandExit::Done);
        }
    }
    thread.join().unwrap_or(Ok(()))?;
    Ok(CommandExit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_by_kind() {
        let mut served = OpenampServiceTotals { drivers: 2, ..OpenampServiceTotals::default() };
        assert!(format_totals(&served).ends_with("; no fault"), "{}", format_totals(&served));
        (served.counts.replied, served.counts.unknown) = (300, 1);
        for fault in [Fault::Index, Fault::Index, Fault::Length, Fault::Reset] {
            served.faults.count(fault);
        }
        let text = format_totals(&served);
        assert!(text.starts_with("served 2 drivers: 300 messages answered, 0 not as"), "{text}");
        assert!(
            text.ends_with("faults: a ring's index jumped (2), a length does not fit its buffer (1)"),
            "{text}"
        );
    }
}
