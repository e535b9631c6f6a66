//! From the options of `latscope ipc` to what is measured.

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use latscope_core::machine::Machine;
use latscope_core::plan::{Action, OnThreshold, Step};
use latscope_core::units::{CpuList, format_size};
use latscope_exchange::transaction::Transport;
use latscope_probes::ipc::point::{Caller, Mode, Placement};
use latscope_probes::ipc::setup::{self, Setup};
use latscope_probes::ipc::{self, transports};
use latscope_probes::wake::timer::PRIORITY;
use std::path::PathBuf;
use std::time::Duration;

/// What is asked of the transports, and why it is not another one.
pub struct Chosen {
    /// The transports, in order.
    pub transports: Vec<&'static Transport>,
    /// What is left out of what is usual.
    pub notes: Vec<String>,
    /// Those that were not asked for by name and are not available here: they are listed,
    /// and not judged.
    pub absent: Vec<&'static str>,
}

/// The usual limit of a run, ns.
const LIMIT: u64 = 10_000_000_000;

/// The usual number of calls: enough for a 99.9th percentile.
const COUNT: u64 = 10_000;

/// The usual time for a payload of a sweep, ns.
const SWEEP: u64 = 250_000_000;

/// Payloads of a sweep: 4 bytes to 64 KiB, by doubling.
fn sweep() -> Vec<u64> {
    (2..=16).map(|power| 1 << power).collect()
}

/// The transports that were asked for.
///
/// # Errors
/// A name that none has.
pub fn chosen(matches: &ArgMatches) -> Result<Chosen> {
    let names: Vec<&String> = matches.get_many("transport").into_iter().flatten().collect();
    if matches.contains_id("service") {
        let binder = ipc::transport("binder").context("this binary has no binder")?;
        return Ok(Chosen { transports: vec![binder], notes: Vec::new(), absent: Vec::new() });
    }
    if names.is_empty() {
        return usual();
    }
    if names.iter().any(|name| *name == "all") {
        let lacks = |transport: &&Transport| transport.endpoint_pair(ipc::message::STAMPED).is_err();
        let absent = transports().filter(lacks).map(|transport| transport.name).collect();
        return Ok(Chosen { transports: transports().collect(), notes: Vec::new(), absent });
    }
    let mut chosen: Vec<&'static Transport> = Vec::new();
    for name in names {
        let transport = ipc::transport(name).with_context(|| format!("there is no transport {name:?}"))?;
        if !chosen.iter().any(|known| std::ptr::eq(*known, transport)) {
            chosen.push(transport);
        }
    }
    Ok(Chosen { transports: chosen, notes: Vec::new(), absent: Vec::new() })
}

/// Binder, where it can be opened.
fn usual() -> Result<Chosen> {
    let other = ipc::transport("unix-stream").context("this binary has no transport unix-stream")?;
    let binder = ipc::transport("binder");
    match binder.map(|binder| (binder, binder.endpoint_pair(ipc::message::STAMPED))) {
        Some((binder, Ok(_))) => {
            Ok(Chosen { transports: vec![binder], notes: Vec::new(), absent: Vec::new() })
        }
        Some((_, Err(unavailable))) => {
            let note = format!("measured over unix-stream, for there is no binder: {}", unavailable.reason);
            Ok(Chosen { transports: vec![other], notes: vec![note], absent: Vec::new() })
        }
        None => Ok(Chosen { transports: vec![other], notes: Vec::new(), absent: Vec::new() }),
    }
}

/// The steps that measure it, one for each transport.
///
/// # Errors
/// Numbers that cannot be.
pub fn steps(matches: &ArgMatches, chosen: &Chosen, machine: &Machine) -> Result<Vec<Step>> {
    let setups: Result<Vec<Setup>> =
        chosen.transports.iter().map(|transport| setup(matches, transport, machine)).collect();
    let alone = chosen.transports.len() == 1;
    let setups = setups?;
    for setup in setups.iter().filter(|_| alone) {
        check_payload(setup)?;
    }
    Ok(setups.iter().map(Setup::step).collect())
}

/// The steps of the experiment with locks: the locks themselves, and the
/// transports that are asked for, or that have a means of inheritance.
///
/// # Errors
/// A name that no transport has.
pub fn inversion(matches: &ArgMatches, machine: &Machine) -> Result<Vec<Step>> {
    let locks = locks(matches, machine);
    let transports = if matches.contains_id("transport") {
        chosen(matches)?.transports
    } else {
        let inherits =
            |transport: &&Transport| transport.inheritance.is_some() && transport.endpoint_pair(4).is_ok();
        ipc::carriers().filter(inherits).collect()
    };
    let waits = transports.iter().filter(|transport| !transport.spins);
    let of_transports = waits.map(|transport| ipc::inversion::of_transport(transport, &locks));
    let of_transports: Vec<Step> = of_transports.collect();
    Ok([locks].into_iter().chain(of_transports).collect())
}

fn locks(matches: &ArgMatches, machine: &Machine) -> Step {
    let asked = matches.get_one::<CpuList>("cpus").and_then(|list| list.0.first().copied());
    let cpu = asked.or(machine.allowed.0.last().copied()).unwrap_or(0);
    let seed = matches.get_one("seed").copied().unwrap_or(1);
    let duration = ns(matches, "duration").unwrap_or(u64::MAX);
    ipc::inversion::step(cpu, matches.get_one("count").copied(), duration, seed)
}

fn mode(matches: &ArgMatches) -> Mode {
    if matches.contains_id("service") {
        return Mode::Ping;
    }
    match (matches.get_flag("throughput"), matches.get_flag("one-way")) {
        (true, _) => Mode::Throughput,
        (_, true) => Mode::OneWay,
        _ => Mode::Latency,
    }
}

fn setup(matches: &ArgMatches, transport: &'static Transport, machine: &Machine) -> Result<Setup> {
    let usual = Setup::usual(transport, machine);
    let mode = mode(matches);
    let pairs = matches.get_one("pairs").copied().unwrap_or(1);
    if pairs == 0 || pairs > 1024 {
        bail!("--pairs {pairs}: it must be 1 to 1024");
    }
    let placement = matches.get_one::<String>("placement").and_then(|word| Placement::named(word));
    let cpus = matches.get_one::<CpuList>("cpus").map(|list| list.0.clone());
    let (count, duration) = limits(matches, mode);
    let traced = matches.contains_id("trace");
    let deadline = ns(matches, "deadline").unwrap_or(setup::DEADLINE);
    let rules = latscope_core::plan::Periodic {
        warm_up: matches.get_one("warm-up").copied().unwrap_or(100),
        threshold: traced.then_some(deadline),
        stop_at_threshold: traced,
        ..usual.rules.clone()
    };
    Ok(Setup {
        mode,
        callers: callers(matches, mode)?,
        pairs,
        placement: placement.unwrap_or(usual.placement),
        payloads: payloads(matches, mode)?,
        fresh: matches.get_flag("fresh-thread"),
        rate: matches.get_one("rate").copied(),
        deadline,
        hops: if matches.get_flag("verbose") { HOPS } else { 0 },
        watched: matches.get_flag("each-call"),
        service: matches.get_one("service").cloned(),
        rules,
        count,
        duration,
        cpus: cpus.unwrap_or(usual.cpus.clone()),
        seed: matches.get_one("seed").copied().unwrap_or(1),
        ..usual
    })
}

/// Calls of each caller that `--verbose` tells in full.
const HOPS: u64 = 4;

/// How many calls, and for how long.
fn limits(matches: &ArgMatches, mode: Mode) -> (u64, u64) {
    let count: Option<u64> = matches.get_one("count").copied();
    let duration = ns(matches, "duration");
    match (count, duration, mode) {
        (Some(count), duration, _) => (count, duration.unwrap_or(u64::MAX)),
        (None, Some(duration), _) => (u64::MAX, duration),
        (None, None, Mode::Throughput) => (u64::MAX, SWEEP),
        (None, None, _) => (COUNT, LIMIT),
    }
}

fn callers(matches: &ArgMatches, mode: Mode) -> Result<Vec<Caller>> {
    let priority = matches.get_one("priority").copied().unwrap_or(PRIORITY);
    if !(1..=99).contains(&priority) {
        bail!("--priority {priority}: it must be 1 to 99");
    }
    let words: Vec<&String> = matches.get_many("caller").into_iter().flatten().collect();
    let wanted = |caller: &Caller| match words.is_empty() {
        true => !matches!(mode, Mode::Throughput | Mode::OneWay) || *caller == Caller::Other,
        false => words.iter().any(|word| *word == caller.word()),
    };
    let callers: Vec<Caller> = [Caller::Fifo(priority), Caller::Other].into_iter().filter(wanted).collect();
    if mode == Mode::OneWay && callers.len() > 1 {
        // The server tells their requests apart by nothing: each would be measured with the other's.
        bail!("--one-way measures one caller: choose --caller other or --caller fifo");
    }
    if !callers.contains(&Caller::Fifo(priority)) {
        for option in ["priority", "fresh-thread"] {
            let given = matches.value_source(option) == Some(ValueSource::CommandLine);
            if given {
                bail!("--{option} is about the SCHED_FIFO caller, and there is none: add --caller fifo");
            }
        }
    }
    Ok(callers)
}

fn payloads(matches: &ArgMatches, mode: Mode) -> Result<Vec<u64>> {
    let mut given: Vec<u64> = Vec::new();
    for payload in matches.get_many("payload").into_iter().flatten() {
        if !given.contains(payload) {
            given.push(*payload);
        }
    }
    let told = matches.get_flag("each-call") || matches.get_flag("verbose");
    let least = match mode {
        Mode::Ping => return Ok(vec![0]),
        Mode::Latency if told => ipc::message::LENGTH as u64,
        Mode::OneWay => ipc::message::STAMPED as u64,
        Mode::Latency | Mode::Throughput | Mode::Inversion => 4,
    };
    if let Some(small) = given.iter().find(|payload| **payload < least) {
        bail!("--payload {small} has no room for what is verified: choose at least {least} bytes");
    }
    if !given.is_empty() {
        return Ok(given);
    }
    Ok(match mode {
        Mode::Throughput => sweep(),
        Mode::OneWay => vec![least],
        _ => vec![setup::PAYLOAD],
    })
}

fn check_payload(setup: &Setup) -> Result<()> {
    let limit = setup.transport.max_payload as u64;
    match setup.payloads.iter().find(|payload| **payload > limit) {
        None => Ok(()),
        Some(payload) => bail!(
            "--payload {} is more than {} carries: choose at most {}",
            format_size(*payload),
            setup.transport.name,
            format_size(limit)
        ),
    }
}

fn ns(matches: &ArgMatches, name: &str) -> Option<u64> {
    matches.get_one::<Duration>(name).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// What becomes of a miss, where it is to be traced.
pub fn on_threshold(matches: &ArgMatches) -> Option<OnThreshold> {
    let file = matches.get_one::<PathBuf>("trace")?.clone();
    Some(OnThreshold { blame: true, worst: None, actions: vec![Action::Stop], trace_file: Some(file) })
}

#[cfg(test)]
mod tests {
    use super::super::arguments::command;
    use super::*;

    fn matches(words: &str) -> ArgMatches {
        command().try_get_matches_from(std::iter::once("ipc").chain(words.split_whitespace())).unwrap()
    }

    fn machine() -> Machine {
        Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() }
    }

    fn planned(words: &str) -> Result<Vec<Step>> {
        let matches = matches(words);
        steps(&matches, &chosen(&matches)?, &machine())
    }

    #[test]
    fn the_usual_run_is_one_pair_with_both_callers() {
        let steps = planned("-t pipe --count 2000 --placement same-core").unwrap();
        assert_eq!((steps.len(), steps[0].points.len()), (1, 2));
        assert_eq!(steps[0].points[0].text("caller"), "fifo");
        assert_eq!(steps[0].points[1].text("placement"), "same-core");
        assert_eq!((steps[0].stop.events, steps[0].stop.limit_ns), (2000, u64::MAX));
        assert!(planned("-t all").unwrap().len() > 2);
    }

    #[test]
    fn a_sweep_doubles_and_is_called_by_one() {
        let steps = planned("-t pipe --throughput").unwrap();
        let payloads: Vec<u64> = steps[0].points.iter().map(|point| point.number("payload")).collect();
        assert_eq!((payloads.len(), payloads[0], payloads[14]), (15, 4, 65_536));
        assert!(steps[0].points.iter().all(|point| point.text("caller") == "other"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for words in [
            "--pairs 0",
            "--payload 3",
            "--priority 0",
            "--payload 1GiB",
            "--one-way --payload 32",
            "--one-way --caller fifo,other",
            "--each-call --payload 16",
            "--caller other --fresh-thread",
            "--throughput --priority 20",
        ] {
            assert!(planned(&format!("-t pipe {words}")).is_err(), "{words}");
        }
    }

    #[test]
    fn a_payload_that_is_given_twice_is_measured_once() {
        let payloads = |words: &str| -> Vec<u64> {
            let steps = planned(words).unwrap();
            steps[0].points.iter().map(|point| point.number("payload")).collect()
        };
        assert_eq!(payloads("-t pipe --caller other --payload 32,64,32"), [32, 64]);
    }

    #[test]
    fn an_option_without_effect_is_refused() {
        for words in [
            "--inversion --pairs 3",
            "--inversion --trace x.dat",
            "--one-way --trace x.dat",
            "--one-way --each-call",
            "--throughput --rate 10",
            "--throughput --each-call",
        ] {
            let words = ["ipc"].into_iter().chain(words.split(' '));
            assert!(command().try_get_matches_from(words.clone()).is_err(), "{words:?}");
        }
    }

    #[test]
    fn more_pairs_than_cpus_are_warned_of() {
        let ids = |words: &str| -> Vec<String> {
            ipc::warnings(&planned(words).unwrap(), &machine())
                .into_iter()
                .map(|warning| warning.id)
                .collect()
        };
        assert_eq!(ids("-t pipe --pairs 3"), ["pairs", "real-time-threads"]);
        assert_eq!(ids("-t pipe --pairs 3 --caller other"), ["pairs"]);
        assert!(ids("-t pipe --pairs 2").is_empty());
    }

    #[test]
    fn a_trace_ends_at_the_first_miss() {
        let steps = planned("-t pipe --trace x.dat --deadline 1ms").unwrap();
        let rules = steps[0].periodic.as_ref().unwrap();
        assert_eq!((rules.threshold, rules.stop_at_threshold), (Some(1_000_000), true));
        assert_eq!(on_threshold(&matches("")), None);
    }
}
