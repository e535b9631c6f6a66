//! From the options of `latscope ipc` to what is measured.

use super::arguments::{ALL, IpcArguments};
use anyhow::{Context, Result, bail, ensure};
use latscope_core::machine::Machine;
use latscope_core::ordered::unique_items;
use latscope_core::plan::{Periodic, PlanStep};
use latscope_core::units::format_size;
use latscope_exchange::transaction::IpcTransport;
use latscope_probes::ipc::point::{Caller, IpcMeasureMode};
use latscope_probes::ipc::setup::{self, IpcStepSetup};
use latscope_probes::ipc::{self, transports};
use latscope_probes::wake::timer::PRIORITY;

/// The usual limit of a run, ns.
const LIMIT: u64 = 10_000_000_000;

/// The usual number of calls: enough for a 99.9th percentile.
const COUNT: u64 = 10_000;

/// The usual time for a payload of a sweep, ns.
const SWEEP: u64 = 250_000_000;

/// Calls of each caller that `--verbose` reports in full.
const HOPS: u64 = 4;

/// Returns the steps to measure, and notes on what is left out of the usual.
///
/// # Errors
/// Numbers that are out of range, or options that nothing uses.
pub fn steps(asked: &IpcArguments, machine: &Machine) -> Result<(Vec<PlanStep>, Vec<String>)> {
    if asked.what.inversion {
        return Ok((inversion(asked, machine)?, Vec::new()));
    }
    let (transports, notes) = choose_transports(asked)?;
    let setups = transports.iter().map(|transport| step_setup(asked, transport, machine));
    let setups: Vec<IpcStepSetup> = setups.collect::<Result<_>>()?;
    if let [alone] = &setups[..] {
        check_payload(alone)?;
    }
    Ok((setups.iter().map(IpcStepSetup::plan_step).collect(), notes))
}

/// The transports that `--transport all` measures and that are not available here.
pub fn absent_transports(asked: &IpcArguments) -> Vec<&'static str> {
    if asked.what.inversion || !asks_for_all(asked) {
        return Vec::new();
    }
    let lacks = |transport: &&IpcTransport| transport.endpoint_pair(ipc::message::STAMPED).is_err();
    transports().filter(lacks).map(|transport| transport.name).collect()
}

fn asks_for_all(asked: &IpcArguments) -> bool {
    asked.what.transport.iter().any(|name| name == ALL)
}

/// The transports that were asked for, and why they are not others.
fn choose_transports(asked: &IpcArguments) -> Result<(Vec<&'static IpcTransport>, Vec<String>)> {
    if let Some(service) = &asked.what.service {
        return Ok((over_binder(asked, &format!("--service {service}"))?, Vec::new()));
    }
    if let Some(device) = &asked.what.device {
        return Ok((over_binder(asked, &format!("--device {device}"))?, Vec::new()));
    }
    if asked.what.transport.is_empty() {
        return default_transports();
    }
    if asks_for_all(asked) {
        return Ok((transports().collect(), Vec::new()));
    }
    Ok((named_transports(asked), Vec::new()))
}

/// The transports that were asked for by name, each once.
fn named_transports(asked: &IpcArguments) -> Vec<&'static IpcTransport> {
    unique_items(&asked.what.transport).into_iter().filter_map(|name| ipc::transport(name)).collect()
}

/// The transports that use a binder device: binder, unless others are asked for.
fn over_binder(asked: &IpcArguments, option: &str) -> Result<Vec<&'static IpcTransport>> {
    if asked.what.transport.is_empty() {
        return Ok(vec![ipc::transport("binder").context("this binary has no binder")?]);
    }
    let transports = named_transports(asked);
    let is_binder = |transport: &&'static IpcTransport| transport.name.ends_with("binder");
    ensure!(
        !asks_for_all(asked) && transports.iter().all(is_binder),
        "{option}: only the transports binder and hwbinder use a device"
    );
    Ok(transports)
}

/// Binder, where it can be opened.
fn default_transports() -> Result<(Vec<&'static IpcTransport>, Vec<String>)> {
    let other = ipc::transport("unix-stream").context("this binary has no transport unix-stream")?;
    let binder = ipc::transport("binder");
    Ok(match binder.map(|binder| (binder, binder.endpoint_pair(ipc::message::STAMPED))) {
        Some((binder, Ok(_))) => (vec![binder], Vec::new()),
        Some((_, Err(unavailable))) => {
            let note = format!("measured over unix-stream, for there is no binder: {}", unavailable.reason);
            (vec![other], vec![note])
        }
        None => (vec![other], Vec::new()),
    })
}

/// The steps of the experiment with locks: the locks themselves, and the
/// transports that are asked for, or that have a means of inheritance.
fn inversion(asked: &IpcArguments, machine: &Machine) -> Result<Vec<PlanStep>> {
    let first = asked.run.cpus.as_ref().and_then(|list| list.0.first());
    let cpu = first.or(machine.allowed.0.last()).copied().unwrap_or(0);
    let run = &asked.run;
    let locks = ipc::inversion::plan_step(cpu, run.count, run.duration.unwrap_or(u64::MAX), run.seed);
    let transports = if asked.what.transport.is_empty() {
        let inherits =
            |transport: &&IpcTransport| transport.inheritance.is_some() && transport.endpoint_pair(4).is_ok();
        ipc::carriers().filter(inherits).collect()
    } else {
        choose_transports(asked)?.0
    };
    let waits = transports.iter().filter(|transport| !transport.spins);
    let of_transports: Vec<PlanStep> =
        waits.map(|transport| ipc::inversion::of_transport(transport, &locks)).collect();
    Ok([locks].into_iter().chain(of_transports).collect())
}

fn mode(asked: &IpcArguments) -> IpcMeasureMode {
    match &asked.what {
        what if what.service.is_some() => IpcMeasureMode::Ping,
        what if what.throughput => IpcMeasureMode::Throughput,
        what if what.one_way => IpcMeasureMode::OneWay,
        _ => IpcMeasureMode::Latency,
    }
}

fn step_setup(
    asked: &IpcArguments,
    transport: &'static IpcTransport,
    machine: &Machine,
) -> Result<IpcStepSetup> {
    let usual = IpcStepSetup::for_transport(transport, machine);
    let mode = mode(asked);
    let pairs = asked.pairs.pairs;
    ensure!((1..=1024).contains(&pairs), "--pairs {pairs}: it must be 1 to 1024");
    let (count, duration) = limits(asked, mode);
    let traced = asked.trace.is_some();
    let rules = Periodic {
        warm_up: asked.calls.warm_up,
        threshold: traced.then_some(asked.calls.deadline),
        stop_at_threshold: traced,
        ..usual.rules.clone()
    };
    Ok(IpcStepSetup {
        mode,
        callers: callers(asked, mode)?,
        pairs,
        placement: asked.pairs.placement.unwrap_or(usual.placement),
        payloads: payloads(asked, mode)?,
        fresh: asked.pairs.fresh_thread,
        rate: asked.calls.rate,
        deadline: asked.calls.deadline,
        hops: if asked.verbose { HOPS } else { 0 },
        watched: asked.calls.each_call,
        service: asked.what.service.clone(),
        device: asked.what.device.clone(),
        rules,
        count,
        duration,
        cpus: asked.run.cpus.as_ref().map_or(usual.cpus.clone(), |list| list.0.clone()),
        seed: asked.run.seed,
        ..usual
    })
}

/// Limits of a run: number of calls, and duration in ns.
fn limits(asked: &IpcArguments, mode: IpcMeasureMode) -> (u64, u64) {
    match (asked.run.count, asked.run.duration, mode) {
        (Some(count), duration, _) => (count, duration.unwrap_or(u64::MAX)),
        (None, Some(duration), _) => (u64::MAX, duration),
        (None, None, IpcMeasureMode::Throughput) => (u64::MAX, SWEEP),
        (None, None, _) => (COUNT, LIMIT),
    }
}

fn callers(asked: &IpcArguments, mode: IpcMeasureMode) -> Result<Vec<Caller>> {
    let priority = asked.pairs.priority.unwrap_or(PRIORITY);
    ensure!((1..=99).contains(&priority), "--priority {priority}: it must be 1 to 99");
    let wanted = |caller: &Caller| match asked.pairs.caller.is_empty() {
        true => {
            !matches!(mode, IpcMeasureMode::Throughput | IpcMeasureMode::OneWay) || *caller == Caller::Other
        }
        false => asked.pairs.caller.iter().any(|asked| asked.policy_name() == caller.policy_name()),
    };
    let callers: Vec<Caller> = [Caller::Fifo(priority), Caller::Other].into_iter().filter(wanted).collect();
    if mode == IpcMeasureMode::OneWay && callers.len() > 1 {
        // The server cannot distinguish their requests: each would be measured with the other's.
        bail!("--one-way measures one caller: choose --caller other or --caller fifo");
    }
    if !callers.contains(&Caller::Fifo(priority)) {
        let why = "is about the SCHED_FIFO caller, and there is none: add --caller fifo";
        asked.given.refuse(&["priority", "fresh_thread"], why)?;
    }
    Ok(callers)
}

fn payloads(asked: &IpcArguments, mode: IpcMeasureMode) -> Result<Vec<u64>> {
    let given = unique_items(asked.calls.payload.iter().copied());
    let reported = asked.calls.each_call || asked.verbose;
    let least = match mode {
        IpcMeasureMode::Ping => return Ok(vec![0]),
        IpcMeasureMode::Latency if reported => ipc::message::LENGTH as u64,
        IpcMeasureMode::OneWay => ipc::message::STAMPED as u64,
        IpcMeasureMode::Latency | IpcMeasureMode::Throughput | IpcMeasureMode::Inversion => 4,
    };
    if let Some(small) = given.iter().find(|payload| **payload < least) {
        bail!("--payload {small} has no room for what is verified: choose at least {least} bytes");
    }
    if !given.is_empty() {
        return Ok(given);
    }
    Ok(match mode {
        // 4 bytes to 64 KiB, by doubling.
        IpcMeasureMode::Throughput => (2..=16).map(|power| 1 << power).collect(),
        IpcMeasureMode::OneWay => vec![least],
        _ => vec![setup::PAYLOAD],
    })
}

fn check_payload(setup: &IpcStepSetup) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};

    fn asked(words: &str) -> Result<IpcArguments, clap::Error> {
        let words = std::iter::once("ipc").chain(words.split_whitespace());
        let matches = IpcArguments::augment_args(Command::new("ipc")).try_get_matches_from(words)?;
        IpcArguments::from_arg_matches(&matches)
    }

    fn machine() -> Machine {
        Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() }
    }

    fn planned(words: &str) -> Result<Vec<PlanStep>> {
        Ok(steps(&asked(words)?, &machine())?.0)
    }

    #[test]
    fn the_usual_run_is_one_pair_with_both_callers() {
        let steps = planned("-t pipe --count 2000 --placement same-core").unwrap();
        assert_eq!((steps.len(), steps[0].points.len()), (1, 2));
        assert_eq!(steps[0].points[0].text_param("caller"), "fifo");
        assert_eq!(steps[0].points[1].text_param("placement"), "same-core");
        assert_eq!((steps[0].stop.events, steps[0].stop.limit_ns), (2000, u64::MAX));
        assert!(planned("-t all").unwrap().len() > 2);
    }

    #[test]
    fn a_sweep_doubles_and_is_called_by_one() {
        let steps = planned("-t pipe --throughput").unwrap();
        let payloads: Vec<u64> = steps[0].points.iter().map(|point| point.numeric_param("payload")).collect();
        assert_eq!((payloads.len(), payloads[0], payloads[14]), (15, 4, 65_536));
        assert!(steps[0].points.iter().all(|point| point.text_param("caller") == "other"));
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
            steps[0].points.iter().map(|point| point.numeric_param("payload")).collect()
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
            assert!(asked(words).is_err(), "{words:?}");
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
    }
}
