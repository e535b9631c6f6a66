//! The experiment: runs of processes, and their results as named values.

use super::orders::{InheritanceTrial, IpcCallTally, IpcClientResult, IpcServerResult};
use super::point::{Caller, DurationStart, IpcCallerPoint, IpcMeasureMode, IpcPairPlacement};
use super::session::{self, IpcPairOutcome, IpcPointGroup};
use super::{passthrough, transport};
use crate::prelude::*;
use latscope_bench::hold::{Shortfall, real_time_remedy};
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::quality::POLICY_REFUSED;
use latscope_core::report::{Contention, TransactionHop};
use latscope_exchange::transaction::{IpcTransport, TransportSetupError};

/// Measures the points of a step, run by run. Points that a transport cannot measure are closed with the
/// reason.
///
/// # Errors
/// A point has invalid parameters.
pub fn measure_points(bench: &mut Bench) -> Result<()> {
    let mut groups: Vec<IpcPointGroup> = Vec::new();
    for (point, planned) in bench.points().iter().enumerate() {
        let row = IpcCallerPoint::from_point(planned)?;
        match groups.iter_mut().find(|group| group[0].1.runs_with(&row)) {
            Some(group) => group.push((point, row)),
            None => groups.push(vec![(point, row)]),
        }
    }
    for group in groups {
        if bench.is_stopping() {
            break;
        }
        measure_group(bench, &group);
    }
    Ok(())
}

fn measure_group(bench: &mut Bench, group: &IpcPointGroup) {
    let points: Vec<usize> = group.iter().map(|(point, _)| *point).collect();
    for (point, row) in group {
        match row.mode {
            IpcMeasureMode::OneWay => bench.set_times(*point, Semantics::OneWay),
            _ if row.transport == passthrough::NAME => bench.set_times(*point, Semantics::Operation),
            _ => {}
        }
        bench.started(*point);
    }
    let refuse = |bench: &mut Bench, TransportSetupError { reason, remedy }: TransportSetupError| {
        points.iter().for_each(|point| bench.unsupported(*point, reason.as_str(), remedy.as_str()));
    };
    let Some(transport) = transport(&group[0].1.transport) else {
        let reason = format!("this binary has no transport {:?}", group[0].1.transport);
        return refuse(bench, TransportSetupError { reason, remedy: String::new() });
    };
    if let Some(refusal) = unsuitable(bench, transport, group) {
        return refuse(bench, refusal);
    }
    match session::run_group(bench, transport, group, || ()) {
        Ok(outcomes) => {
            let run = total_elapsed_ns(&outcomes);
            outcomes.into_iter().for_each(|outcome| report_pair(bench, group, outcome, run));
        }
        Err(error) => {
            let other = |error| TransportSetupError { reason: format!("{error:#}"), remedy: String::new() };
            refuse(bench, error.downcast().unwrap_or_else(other));
        }
    }
}

/// Returns the reason why this transport cannot be measured in this way, if there is one.
fn unsuitable(bench: &Bench, transport: &IpcTransport, group: &IpcPointGroup) -> Option<TransportSetupError> {
    let row = &group[0].1;
    let refuse =
        |reason: String, remedy: &str| Some(TransportSetupError { reason, remedy: remedy.to_owned() });
    let least = match row.mode {
        IpcMeasureMode::OneWay => super::message::STAMPED,
        IpcMeasureMode::Ping => 0,
        IpcMeasureMode::Latency | IpcMeasureMode::Throughput | IpcMeasureMode::Inversion => 4,
    };
    if row.payload as usize > transport.max_payload {
        let limit = format_size(transport.max_payload as u64);
        let text =
            format!("a payload of {} is above the transport's limit, {limit}", format_size(row.payload));
        return refuse(text, &format!("choose at most --payload {limit}"));
    }
    if (row.payload as usize) < least {
        let text = format!("a payload of {} has no room for what is verified", format_size(row.payload));
        return refuse(text, &format!("choose at least --payload {least}"));
    }
    let cpus = bench.cpus().len();
    if cpus < 2 && (transport.spins || row.placement == IpcPairPlacement::TwoCores) {
        // Who spins keeps the other from its one CPU, wherever they are placed.
        let remedy = match transport.spins {
            true => "allow a second CPU, or choose a transport that sleeps, such as --transport futex",
            false => "allow a second CPU, or --placement same-core",
        };
        return refuse("there is only one CPU to run on".to_owned(), remedy);
    }
    let endpoints = 2 * group.iter().map(|(_, row)| row.pair + 1).max().unwrap_or(1) as usize;
    if transport.spins && (row.placement != IpcPairPlacement::TwoCores || endpoints > cpus) {
        let text = "both processes spin: on one CPU each takes the time that the other needs, without end \
                    under SCHED_FIFO";
        return refuse(text.to_owned(), "give each a CPU of its own: --placement two-cores, --pairs 1");
    }
    if transport.name == passthrough::NAME && row.mode == IpcMeasureMode::OneWay {
        return refuse("a call within the process has no way to go".to_owned(), "");
    }
    None
}

/// Time from the first recorded call of any pair to the end of the last of all,
/// ns; `None` for one pair alone.
fn total_elapsed_ns(outcomes: &[IpcPairOutcome]) -> Option<u64> {
    let called = || outcomes.iter().filter_map(|outcome| outcome.called.as_ref().ok());
    let from = called().map(|called| called.from).min()?;
    let until = called().map(|called| called.until).max()?;
    (outcomes.len() > 1).then(|| until - from)
}

fn report_pair(bench: &mut Bench, group: &IpcPointGroup, outcome: IpcPairOutcome, run: Option<u64>) {
    let IpcPairOutcome { pair, called, served, other_device, halted } = outcome;
    let rows: Vec<&(usize, IpcCallerPoint)> = group.iter().filter(|(_, row)| row.pair == pair).collect();
    let called = match called {
        Ok(called) => called,
        Err(reason) => {
            rows.iter().for_each(|(point, _)| bench.cut_short(*point, reason.as_str()));
            return;
        }
    };
    let fifo_first = rows.iter().any(|(_, row)| row.caller != Caller::Other);
    // The two processes as they began stand before the first calls.
    let mut began: Vec<TransactionHop> = served.iter().filter_map(|served| served.began.clone()).collect();
    began.extend(called.began.clone());
    for (point, row) in rows {
        let tally = &called.tallies[usize::from(fifo_first && row.caller == Caller::Other)];
        report_values(bench, *point, row, tally, &called, served.as_ref());
        if row.hops > 0 {
            bench.set_hops(*point, began.drain(..).chain(tally.hops.iter().cloned()).collect());
        }
        if let Some(run) = run.filter(|_| row.mode != IpcMeasureMode::Inversion) {
            bench.add_value(*point, RUN_ELAPSED, run as f64, "ns", Better::Neither);
        }
        report_run_delays(bench, *point, row, tally, &called);
        report_doubts(bench, *point, tally, &called, served.as_ref());
        let halted = halted.then(Shortfall::run_stopped);
        for Shortfall { id, reason, remedy } in misplaced(row.placement, tally).into_iter().chain(halted) {
            bench.degrade(*point, id, reason, remedy);
        }
        if let Some(device) = &other_device {
            bench.set_param(*point, "device", device.as_str().into());
            let reason = format!("measured on {device}: no device named {} could be had", row.transport);
            bench.degrade(*point, "not-as-asked", reason, "free the device, or create it: latscope doctor");
        }
    }
}

/// Reports the time for which caller and server waited for a CPU because of others. A caller under SCHED_OTHER
/// can lose its CPU to any process. On a common CPU each also waits for the other, but then one of them runs.
fn report_run_delays(
    bench: &mut Bench,
    point: usize,
    row: &IpcCallerPoint,
    tally: &IpcCallTally,
    called: &IpcClientResult,
) {
    let distorts = row.caller == Caller::Other && row.mode != IpcMeasureMode::Inversion;
    let wall_ns = called.until - called.from;
    let none_ran = match row.placement {
        IpcPairPlacement::TwoCores => u64::MAX,
        IpcPairPlacement::SameCore | IpcPairPlacement::Free => {
            wall_ns.saturating_sub(called.client_cpu + called.server_cpu)
        }
    };
    let run_delay_ns =
        tally.run_delay.zip(called.server_delay).map(|(caller, server)| none_ran.min(caller + server));
    let contention = Contention { wall_ns, run_delay_ns, distorts, ..Contention::default() };
    if let Some(waited) = contention.waited() {
        bench.add_value(point, "waited", 100.0 * waited, "%", Better::Less);
    }
    bench.set_contention(point, contention);
}

fn report_values(
    bench: &mut Bench,
    point: usize,
    row: &IpcCallerPoint,
    tally: &IpcCallTally,
    called: &IpcClientResult,
    served: Option<&IpcServerResult>,
) {
    if row.mode == IpcMeasureMode::Inversion {
        // How long the waiter was blocked is all there is to tell.
        return bench.set_blocks(point, tally.blocks.clone());
    }
    let mut count =
        |name: &str, value: u64, better| bench.add_value(point, name, value as f64, "count", better);
    let one_way = row.mode == IpcMeasureMode::OneWay;
    let misses = match (row.since, served) {
        (DurationStart::Due, _) => tally.due_misses,
        (DurationStart::Call, Some(served)) if one_way => served.misses,
        (DurationStart::Call, _) => tally.misses,
    };
    let calls = if one_way { served.map_or(0, |served| served.recorded) } else { tally.calls };
    count("misses", misses, Better::Less);
    count("failures", tally.failures, Better::Less);
    count("mismatches", tally.mismatches, Better::Less);
    count("faults", called.faults, Better::Less);
    if tally.stayed + tally.migrated > 0 {
        count("sync-of", tally.stayed, Better::Neither);
        count("migrated", tally.migrated, Better::Neither);
    }
    if tally.told > 0 {
        count("uninherited", tally.uninherited, Better::Less);
    }
    trial(bench, point, "rt", &called.real_time);
    trial(bench, point, "nice", &called.nice);
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    if calls > 0 {
        bench.add_value(point, "meet", 100.0 - share(misses, calls), "%", Better::More);
    }
    if tally.stayed > 0 {
        bench.add_value(point, "sync", share(tally.synced, tally.stayed), "%", Better::More);
    }
    // Behind a request without a reply there is a call that is not measured.
    if called.transactions > 0 && row.mode != IpcMeasureMode::OneWay {
        cpu_time(bench, point, called);
    }
    let blocks = match (row.since, served) {
        (DurationStart::Due, _) => tally.due_blocks.clone(),
        (DurationStart::Call, Some(served)) if one_way => served.blocks.clone(),
        (DurationStart::Call, _) => tally.blocks.clone(),
    };
    bench.set_blocks(point, blocks);
    bench.add_value(point, "elapsed", (called.until - called.from) as f64, "ns", Better::Neither);
    if row.mode == IpcMeasureMode::Throughput {
        report_throughput(bench, point, row);
    }
}

/// Reports the CPU time of a call, from two readings around all calls. It includes the work of both sides
/// between calls.
fn cpu_time(bench: &mut Bench, point: usize, called: &IpcClientResult) {
    let each = |ns: u64| ns as f64 / called.transactions as f64;
    bench.add_value(point, "cpu-time", each(called.client_cpu + called.server_cpu), "ns", Better::Less);
    // Callers that take turns share the client's time.
    if called.tallies.len() == 1 {
        bench.add_value(point, "caller-cpu", each(called.client_cpu), "ns", Better::Less);
    }
}

/// Reports the bytes of one direction per time: payload times calls, by the sum of the calls' durations. The
/// throughput of several pairs is by [`RUN_ELAPSED`].
fn report_throughput(bench: &mut Bench, point: usize, row: &IpcCallerPoint) {
    let Some((calls, wall)) = bench.total(point).filter(|(_, wall)| *wall > 0.0) else { return };
    bench.add_value(point, "wall-time", wall, "ns", Better::Neither);
    bench.add_value(point, "throughput", row.payload as f64 * calls as f64 * 1e9 / wall, "B/s", Better::More);
}

fn trial(bench: &mut Bench, point: usize, what: &str, trial: &InheritanceTrial) {
    if trial.calls == 0 {
        return;
    }
    let mut count = |name: &str, value: u64| {
        bench.add_value(point, &format!("{what}-{name}"), value as f64, "count", Better::Neither);
    };
    count("calls", trial.calls);
    count("inherited", trial.inherited);
    count("restored", trial.restored);
}

/// Returns how many calls were not between CPUs as the placement has them: another program moved an end, or its CPU
/// went offline. Calls whose server does not state its CPU are not counted.
fn misplaced(placement: IpcPairPlacement, tally: &IpcCallTally) -> Option<Shortfall> {
    let IpcCallTally { stayed, synced, migrated, .. } = *tally;
    let (misplaced, wanted) = match placement {
        IpcPairPlacement::TwoCores => (synced + migrated, "between the two CPUs of client and server"),
        IpcPairPlacement::SameCore => (stayed - synced + migrated, "between threads of one CPU"),
        IpcPairPlacement::Free => return None,
    };
    let calls = count_with_noun(stayed + migrated, "call");
    (misplaced > 0).then(|| {
        Shortfall::other_cpu(format!("{misplaced} of {calls} were not {wanted}, as the placement has them"))
    })
}

/// Marks a row as degraded or cut short, with the reasons.
fn report_doubts(
    bench: &mut Bench,
    point: usize,
    tally: &IpcCallTally,
    called: &IpcClientResult,
    served: Option<&IpcServerResult>,
) {
    let shortfalls = [tally.shortfall.as_ref(), served.and_then(|served| served.shortfall.as_ref())];
    for reason in shortfalls.into_iter().flatten() {
        bench.degrade(point, POLICY_REFUSED, reason.as_str(), real_time_remedy());
    }
    if let Some(ended) = &called.ended {
        bench.cut_short(
            point,
            format!("ended early, after {}: {ended}", count_with_noun(tally.calls, "call")),
        );
    }
    let lost = tally.failures + tally.mismatches;
    if lost > 0 {
        let first = tally.first_failure.as_deref().unwrap_or("no reason is known");
        let reason = format!("{} failed: in no figure: {first}", count_with_noun(lost, "call"));
        bench.degrade(point, "calls-failed", reason, "");
    }
    let unexpected = served.map_or(0, |served| served.unexpected);
    if unexpected > 0 {
        let reason = format!("the server saw {} out of order", count_with_noun(unexpected, "request"));
        bench.degrade(point, "out-of-order", reason, "");
    }
}
