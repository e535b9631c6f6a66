//! Shell commands that run at an exceedance, beside the measurement.

use latscope_core::report::Outlier;
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Commands that were started. The measurement goes on meanwhile, and the screen stays as it is.
#[derive(Default)]
pub(super) struct OutlierCommands {
    running: usize,
    channel: Option<(Sender<Ended>, Receiver<Ended>)>,
}

/// A command, and what was wrong with its end.
type Ended = (String, Option<String>);

impl OutlierCommands {
    pub fn execute(&mut self, command: &str, outlier: &Outlier) -> std::io::Result<()> {
        let mut child = spawn_command(command, outlier)?;
        let sender = self.channel.get_or_insert_with(channel).0.clone();
        let command = command.to_owned();
        // Only waits: a command that ended must not stay as a zombie.
        std::thread::Builder::new().spawn(move || {
            let how = match child.wait() {
                Ok(status) => (!status.success()).then(|| status.to_string()),
                Err(error) => Some(error.to_string()),
            };
            // A receiver that does not wait any more gets nothing.
            let _ = sender.send((command, how));
        })?;
        self.running += 1;
        Ok(())
    }

    /// Returns the commands that failed since the last call, or fail within `timeout`.
    pub fn wait_for_failures(&mut self, timeout: Duration) -> Vec<(String, String)> {
        let until = Instant::now() + timeout;
        let mut failed = Vec::new();
        let Some((_, receiver)) = &self.channel else { return failed };
        while self.running > 0
            && let Ok((command, how)) = receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.running -= 1;
            failed.extend(how.map(|how| (command, how)));
        }
        failed
    }
}

fn spawn_command(command: &str, outlier: &Outlier) -> std::io::Result<Child> {
    let causes: Vec<String> =
        outlier.cause.iter().map(|c| format!("{} {} {}", c.kind, c.name, c.ns)).collect();
    let environment = [
        ("LATSCOPE_CPU", outlier.cpu.to_string()),
        ("LATSCOPE_NS", outlier.value.to_string()),
        ("LATSCOPE_CAUSE", causes.join("; ")),
    ];
    latscope_os::worker::shell(command, environment)
}
