//! A set of periodic threads as a step of a plan, by pure functions.

use super::thread::WakeThreadSettings;
use super::{RESPONSE, TIMER};
use latscope_core::plan::{Conditions, Periodic, PlanStep, Stop};
use latscope_core::units::format_time;

/// Periodic threads and the rules they run by.
#[derive(Debug, Clone, PartialEq)]
pub struct WakeStepSetup {
    /// The threads, a point each.
    pub threads: Vec<WakeThreadSettings>,
    /// Rules of the run.
    pub periodic: Periodic,
    /// Activations of each thread; `u64::MAX` for no limit.
    pub count: u64,
    /// Time of the run, ns; `u64::MAX` for no limit.
    pub duration: u64,
    /// Conditions of the machine during the run.
    pub conditions: Conditions,
    /// Seed of random phases.
    pub seed: u64,
}

impl WakeStepSetup {
    /// The step that measures this setup. The worker's main thread only waits; it is of the normal class and on
    /// any of the CPUs.
    pub fn plan_step(&self) -> PlanStep {
        let title = |thread: &WakeThreadSettings, what: &str| {
            let place = thread.cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
            format!("{what} every {}, {place}", format_time(thread.interval as f64))
        };
        let wake_ups = self.threads.iter().map(|t| TIMER.make_point(t.clone(), title(t, "wake-up"), false));
        let working = self.threads.iter().filter(|thread| thread.work > 0 || thread.touch > 0);
        let responses = working.map(|t| RESPONSE.make_point(t.clone(), title(t, "response"), false));
        let points = wake_ups.chain(responses).collect();
        let mut cpus: Vec<u32> = self.threads.iter().filter_map(|thread| thread.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let stop = Stop::after_events(self.count, self.duration);
        PlanStep {
            conditions: self.conditions.clone(),
            periodic: Some(self.periodic.clone()),
            seed: self.seed,
            ..PlanStep::new(TIMER.experiment.name, points, cpus, stop)
        }
    }
}
