//! Events above a threshold: what is asked to become of them.

use super::options::some_time;
use anyhow::{Result, bail, ensure};
use clap::{Args, value_parser};
use latscope_core::plan::{Action, OnThreshold, Traced};
use latscope_core::units::parse_size;
use latscope_trace::tracefs::has_event;
use latscope_trace::tracer::check_buffer;
use std::path::PathBuf;

// Options about outliers; the help of the threshold says what one is.
#[derive(Debug, Args)]
pub struct OutlierArguments {
    /// An activation later than this is an outlier: traced, explained, acted upon
    #[arg(long, short = 'b', value_name = "T", value_parser = some_time)]
    pub threshold: Option<u64>,
    /// stop, continue, save-trace, exec:CMD (output discarded) or signal:PID (SIGUSR1); may be repeated [default:
    /// continue]
    #[arg(long, value_name = "WHAT", value_parser = action)]
    on_threshold: Vec<Action>,
    /// Trace, and explain the N worst events (without --threshold)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", value_parser = value_parser!(u32).range(1..=512))]
    blame: Option<u32>,
    /// Do not trace, also with --threshold
    #[arg(long, conflicts_with = "blame")]
    no_blame: bool,
    /// Trace a further kernel event, and show it in the line of each late event; may be repeated
    #[arg(long = "event", value_name = "SYSTEM:NAME", value_parser = parse_event_name)]
    events: Vec<String>,
    /// Record the kernel stack of the thread that ran before each late one; costs up to 15 µs at each preemption
    #[arg(long)]
    stacks: bool,
    /// Size of each CPU's trace buffer [default: 8 MiB, more where the rate of events asks for it]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    buffer: Option<u64>,
    /// Save the trace of the first outlier (with --blame of the longest) here: .dat for trace-cmd, else text for
    /// Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl OutlierArguments {
    /// Returns true if the first outlier ends the run.
    pub fn stops(&self) -> bool {
        self.on_threshold.contains(&Action::Stop)
    }

    /// Returns the treatment of outliers.
    ///
    /// # Errors
    /// An action without a threshold, or a trace of nothing.
    pub fn rules(&self) -> Result<Option<OnThreshold>> {
        let worst = self.blame.filter(|_| self.threshold.is_none());
        let traced = Traced { events: self.events.clone(), stacks: self.stacks, buffer: self.buffer };
        if !traced.is_usual() && (self.no_blame || self.threshold.is_none() && worst.is_none()) {
            bail!("--event, --stacks and --buffer require --threshold T or --blame");
        }
        self.events.iter().try_for_each(|event| check_event(event))?;
        if let Some(Err(refusal)) = self.buffer.map(check_buffer) {
            bail!("--buffer: {refusal}");
        }
        if self.threshold.is_none() {
            for (option, given) in
                [("on-threshold", !self.on_threshold.is_empty()), ("no-blame", self.no_blame)]
            {
                ensure!(!given, "--{option} requires --threshold T");
            }
            if worst.is_none() {
                return match self.trace {
                    Some(_) => bail!("--trace requires --threshold T or --blame"),
                    None => Ok(None),
                };
            }
        }
        let mut actions = self.on_threshold.clone();
        let saves = actions.contains(&Action::SaveTrace);
        // A file for the trace asks for the trace; `stop` saves it, too.
        if self.trace.is_some() && !saves && !self.stops() {
            actions.push(Action::SaveTrace);
        }
        let trace_file = self.trace.clone().or_else(|| saves.then(|| "latscope-trace.dat".into()));
        Ok(Some(OnThreshold { blame: !self.no_blame, worst, actions, trace_file, traced }))
    }
}

/// Reads the name of an event, `SYSTEM:NAME`.
fn parse_event_name(text: &str) -> Result<String, String> {
    let plain = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match text.split_once(':') {
        Some((system, name)) if plain(system) && plain(name) => Ok(text.to_owned()),
        _ => Err("it is SYSTEM:NAME, such as sched:sched_migrate_task".to_owned()),
    }
}

/// Checks that the kernel has an event, as far as this process may see.
fn check_event(event: &str) -> Result<()> {
    match has_event(event) {
        Some(false) => bail!("this kernel has no event {event}: see available_events in tracefs"),
        _ => Ok(()),
    }
}

/// Reads an action at the threshold: `stop`, `exec:CMD`, …
///
/// # Errors
/// The text is no action.
fn action(text: &str) -> Result<Action, String> {
    match text.split_once(':') {
        None if text == "stop" => Ok(Action::Stop),
        None if text == "continue" => Ok(Action::Continue),
        None if text == "save-trace" => Ok(Action::SaveTrace),
        Some(("exec", command)) if !command.is_empty() => Ok(Action::Exec(command.to_owned())),
        Some(("signal", process)) => match process.parse::<i32>() {
            Ok(process) if process > 1 => Ok(Action::Signal(process.unsigned_abs())),
            _ => Err("signal: wants the id of a process, as in signal:1234".to_owned()),
        },
        _ => Err("it is one of stop, continue, save-trace, exec:CMD, signal:PID".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    fn read(words: &str) -> OutlierArguments {
        let command = OutlierArguments::augment_args(Command::new("x"));
        let matches = command.try_get_matches_from(format!("x {words}").split_whitespace()).unwrap();
        OutlierArguments::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn actions_need_a_threshold_and_a_blame_does_not() {
        let of = |words: &str| read(words).rules();
        for alone in ["--on-threshold stop", "--trace x.dat", "--no-blame", "--blame --on-threshold stop"] {
            assert!(of(alone).is_err(), "{alone}");
        }
        for size in ["0", "63KiB", "100000G"] {
            let refusal = of(&format!("--blame --buffer {size}")).unwrap_err().to_string();
            assert!(
                refusal.starts_with("--buffer: ") && refusal.contains("KiB") | refusal.contains("at most"),
                "{refusal}"
            );
        }
        for alone in ["--event a:b", "--stacks", "--buffer 1MiB", "-b 1us --no-blame --stacks"] {
            assert!(of(alone).is_err(), "{alone}");
        }
        let traced = of("--blame --stacks --buffer 16MiB").unwrap().unwrap().traced;
        assert_eq!((traced.stacks, traced.buffer), (true, Some(16 << 20)));
        assert_eq!(parse_event_name("sched:sched_stat_wait"), Ok("sched:sched_stat_wait".to_owned()));
        for none in ["sched", ":x", "x:", "../x:y", "a:b/c"] {
            assert!(parse_event_name(none).is_err(), "{none}");
        }
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("--blame").unwrap().unwrap().worst, Some(10));
        let full = of("-b 50us --on-threshold stop --on-threshold save-trace").unwrap().unwrap();
        assert_eq!((full.worst, full.trace_file), (None, Some("latscope-trace.dat".into())));
        for (words, actions) in [
            ("-b 50us --trace x.dat", [Action::SaveTrace].as_slice()),
            ("--blame --trace x.dat", &[Action::SaveTrace]),
            ("-b 50us --trace x.dat --on-threshold continue", &[Action::Continue, Action::SaveTrace]),
            ("-b 50us --trace x.dat --on-threshold stop", &[Action::Stop]),
        ] {
            assert_eq!(of(words).unwrap().unwrap().actions, actions, "{words}");
        }
        assert!(read("-b 50us --on-threshold stop").stops() && !read("-b 50us").stops());
        for none in ["signal:0", "signal:-1", "signal:4294967295", "exec:", "dance"] {
            assert!(action(none).is_err(), "{none}");
        }
        assert_eq!(action("signal:1234"), Ok(Action::Signal(1234)));
    }
}
