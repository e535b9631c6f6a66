//! Events above a threshold: what is asked to become of them.

use super::options::{file, flag, some_time};
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use latscope_core::plan::{Action, OnThreshold};
use std::path::PathBuf;
use std::time::Duration;

/// Options about outliers; the help says what one is.
pub fn arguments(what: &'static str) -> Vec<Arg> {
    let heading = |arg: Arg| arg.help_heading("Outliers");
    [
        Arg::new("threshold").long("threshold").short('b').value_name("T").value_parser(some_time).help(what),
        Arg::new("on-threshold")
            .long("on-threshold")
            .value_name("WHAT")
            .action(ArgAction::Append)
            .value_parser(action)
            .help("stop, continue, save-trace, exec:CMD (output discarded) or signal:PID (SIGUSR1); may be repeated [default: continue]"),
        Arg::new("blame")
            .long("blame")
            .value_name("N")
            .num_args(0..=1)
            .default_missing_value("10")
            .value_parser(value_parser!(u32).range(1..=64))
            .help("Trace, and explain the N worst events (without --threshold)"),
        flag("no-blame", "Do not trace, also with --threshold").conflicts_with("blame"),
        file(
            "trace",
            "Save the trace of the first outlier (with --blame of the longest) here: .dat for trace-cmd, else text for Perfetto",
        ),
    ]
    .map(heading)
    .into()
}

/// The threshold that was asked for, ns.
pub fn threshold(matches: &ArgMatches) -> Option<u64> {
    matches.get_one::<Duration>("threshold").map(|time| time.as_nanos() as u64)
}

/// Whether the first outlier ends the run.
pub fn stops(matches: &ArgMatches) -> bool {
    matches.get_many::<Action>("on-threshold").into_iter().flatten().any(|action| *action == Action::Stop)
}

/// What becomes of outliers.
///
/// # Errors
/// An action without a threshold.
pub fn on_threshold(matches: &ArgMatches) -> Result<Option<OnThreshold>> {
    let mut actions: Vec<Action> = matches.get_many("on-threshold").into_iter().flatten().cloned().collect();
    let threshold = threshold(matches);
    let worst = matches.get_one::<u32>("blame").copied().filter(|_| threshold.is_none());
    if threshold.is_none() && !actions.is_empty() {
        bail!("--on-threshold requires --threshold T");
    }
    let trace_file = matches.get_one::<PathBuf>("trace").cloned();
    if threshold.is_none() && worst.is_none() {
        return match trace_file {
            Some(_) => bail!("--trace requires --threshold T or --blame"),
            None => Ok(None),
        };
    }
    let saves = actions.contains(&Action::SaveTrace);
    // A file for the trace asks for the trace; `stop` saves it, too.
    if trace_file.is_some() && !saves && !actions.contains(&Action::Stop) {
        actions.push(Action::SaveTrace);
    }
    let trace_file = trace_file.or_else(|| saves.then(|| PathBuf::from("latscope-trace.dat")));
    Ok(Some(OnThreshold { blame: !matches.get_flag("no-blame"), worst, actions, trace_file }))
}

/// Reads an action at the threshold: `stop`, `exec:CMD`, …
///
/// # Errors
/// It is none.
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
    use clap::Command;

    fn matches(words: &str) -> ArgMatches {
        let command = Command::new("x").args(arguments("late"));
        command.try_get_matches_from(format!("x {words}").split_whitespace()).unwrap()
    }

    #[test]
    fn actions_need_a_threshold_and_a_blame_does_not() {
        let of = |words: &str| on_threshold(&matches(words));
        assert!(of("--on-threshold stop").is_err() && of("--trace x.dat").is_err());
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
        assert!(stops(&matches("-b 50us --on-threshold stop")) && !stops(&matches("-b 50us")));
        for none in ["signal:0", "signal:-1", "signal:4294967295", "exec:", "dance"] {
            assert!(action(none).is_err(), "{none}");
        }
        assert_eq!(action("signal:1234"), Ok(Action::Signal(1234)));
    }
}
