//! Pairs of processes as a step of a plan, by pure functions.

use super::message;
use super::point::{Caller, DurationStart, IpcCallerPoint, IpcMeasureMode, IpcPairPlacement};
use crate::wake::timer::PRIORITY;
use latscope_core::machine::Machine;
use latscope_core::plan::{Conditions, Periodic, Phase, PlanStep, Stop};
use latscope_exchange::transaction::IpcTransport;

/// The deadline of AOSP's tests: what interactive systems were found to need, ns.
pub const DEADLINE: u64 = 2_500_000;

/// Bytes of the usual request: the message alone.
pub const PAYLOAD: u64 = message::LENGTH as u64;

/// Pairs of processes over one transport, and the rules they run by.
#[derive(Debug, Clone)]
pub struct IpcStepSetup {
    /// Transport of the transactions.
    pub transport: &'static IpcTransport,
    /// Mode of the measurement.
    pub mode: IpcMeasureMode,
    /// Policies of the calling threads.
    pub callers: Vec<Caller>,
    /// Number of pairs of processes.
    pub pairs: u64,
    /// Placement of client and server.
    pub placement: IpcPairPlacement,
    /// Bytes of a request, each measured by itself.
    pub payloads: Vec<u64>,
    /// True if each SCHED_FIFO call is made by a new thread.
    pub fresh: bool,
    /// Turns a second, for those that are paced.
    pub rate: Option<u64>,
    /// A call that takes longer misses, ns.
    pub deadline: u64,
    /// First calls of each caller that are reported in full.
    pub hops: u64,
    /// True if the server looks up its scheduling in each call.
    pub watched: bool,
    /// Service to ping, where others serve.
    pub service: Option<String>,
    /// Path of the binder device; `None` for a device of this program's own, or the first that is free.
    pub device: Option<String>,
    /// Warm-up, threshold, raw stream.
    pub rules: Periodic,
    /// Turns; `u64::MAX` for no limit.
    pub count: u64,
    /// Time of a run, ns; `u64::MAX` for no limit.
    pub duration: u64,
    /// CPUs to run on.
    pub cpus: Vec<u32>,
    /// Conditions of the machine during the run.
    pub conditions: Conditions,
    /// The seed of the run.
    pub seed: u64,
}

/// Usual rules, without those that are for periodic threads only.
pub fn usual_rules() -> Periodic {
    Periodic::new(Phase::Free, 100)
}

impl IpcStepSetup {
    /// Usual setup: one pair, both callers, 2000 turns, and no option.
    pub fn for_transport(transport: &'static IpcTransport, machine: &Machine) -> IpcStepSetup {
        IpcStepSetup {
            transport,
            mode: IpcMeasureMode::Latency,
            callers: vec![Caller::Fifo(PRIORITY), Caller::Other],
            pairs: 1,
            // Of two endpoints that spin none may wait for a CPU.
            placement: if transport.spins { IpcPairPlacement::TwoCores } else { IpcPairPlacement::Free },
            payloads: vec![PAYLOAD],
            fresh: false,
            rate: None,
            deadline: DEADLINE,
            hops: 0,
            watched: false,
            service: None,
            device: None,
            rules: usual_rules(),
            count: 2000,
            duration: u64::MAX,
            cpus: machine.allowed.0.iter().rev().copied().collect(),
            conditions: Conditions::default(),
            seed: 1,
        }
    }

    /// The step that measures this setup.
    pub fn plan_step(&self) -> PlanStep {
        let points = self.caller_points().map(|row| row.to_point(self.transport)).collect();
        let stop = Stop::after_events(self.count, self.duration);
        PlanStep {
            conditions: self.conditions.clone(),
            periodic: Some(self.rules.clone()),
            seed: self.seed,
            ..PlanStep::new(super::EXPERIMENT.name, points, self.cpus.clone(), stop)
        }
    }

    pub(super) fn caller_points(&self) -> impl Iterator<Item = IpcCallerPoint> {
        // The server does not know when a request was due.
        let open =
            self.rate.is_some() && !matches!(self.mode, IpcMeasureMode::OneWay | IpcMeasureMode::Inversion);
        let since: &[DurationStart] =
            if open { &[DurationStart::Call, DurationStart::Due] } else { &[DurationStart::Call] };
        let of_pair = move |payload: u64, pair: u64| {
            self.callers.iter().flat_map(move |caller| {
                since.iter().map(move |since| self.caller_point(payload, pair, *caller, *since))
            })
        };
        self.payloads
            .iter()
            .flat_map(move |payload| (0..self.pairs).flat_map(move |pair| of_pair(*payload, pair)))
    }

    fn caller_point(&self, payload: u64, pair: u64, caller: Caller, since: DurationStart) -> IpcCallerPoint {
        IpcCallerPoint {
            transport: self.transport.name.to_owned(),
            mode: self.mode,
            caller,
            pair,
            placement: self.placement,
            payload,
            deadline: self.deadline,
            fresh: self.fresh && caller != Caller::Other,
            rate: self.rate,
            since,
            hops: self.hops,
            watched: self.watched,
            service: self.service.clone(),
            device: self.device.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::transports;

    #[test]
    fn a_point_for_each_pair_and_caller() {
        let machine = Machine { allowed: "0-3".parse().unwrap(), ..Machine::default() };
        let usual = IpcStepSetup::for_transport(transports().next().unwrap(), &machine);
        let setup = IpcStepSetup { pairs: 3, ..usual };
        let step = setup.plan_step();
        assert_eq!((step.points.len(), step.cpus.as_slice()), (6, &[3, 2, 1, 0][..]));
        let open = IpcStepSetup { rate: Some(1000), ..setup };
        assert_eq!(open.plan_step().points.len(), 12);
    }
}
