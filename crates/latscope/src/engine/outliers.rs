//! What becomes of events above the threshold: they are taken from the
//! measuring threads, explained as far as they can be, and acted upon.

use super::recorder::{Cursor, Slots};
use anyhow::Result;
use latscope_core::plan::{Action, OnThreshold, ParamValue, Step};
use latscope_core::report::{Exceedance, Outlier, Warning};
use std::path::PathBuf;
use std::time::Duration;

/// Outliers of a point that are kept: the worst ones.
const KEPT: usize = 64;

/// Watches the exceedances of one step.
pub struct Outliers {
    plan: OnThreshold,
    /// Stamp of `CLOCK_MONOTONIC` at the epoch of the run.
    epoch_ns: u64,
    points: Vec<Watched>,
    /// What went wrong on the way.
    pub warnings: Vec<Warning>,
}

/// A point that is watched.
struct Watched {
    cpu: u32,
    cursor: Cursor,
    first: Vec<Exceedance>,
    worst: Vec<Outlier>,
    lost: u64,
}

/// The files of a trace instance that measuring threads write to.
pub struct TraceFiles {
    /// `trace_marker`.
    pub marker: PathBuf,
    /// `tracing_on`, to be switched off at the first exceedance, if that ends the run.
    pub switch: Option<PathBuf>,
}

impl Outliers {
    /// Prepares for a step.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn start(step: &Step, plan: &OnThreshold, epoch_ns: u64) -> Result<Outliers> {
        let cpu = |point: &latscope_core::plan::Point| match point.params.get("cpu") {
            Some(ParamValue::Number(cpu)) => *cpu as u32,
            _ => step.cpus.first().copied().unwrap_or(0),
        };
        let watched = |point| Watched {
            cpu: cpu(point),
            cursor: Cursor::default(),
            first: Vec::new(),
            worst: Vec::new(),
            lost: 0,
        };
        Ok(Outliers {
            plan: plan.clone(),
            epoch_ns,
            points: step.points.iter().map(watched).collect(),
            warnings: Vec::new(),
        })
    }

    /// What the measuring threads write to, where there is a trace.
    pub fn trace_files(&self) -> Option<TraceFiles> {
        None
    }

    /// How often to look without being called.
    pub fn period(&self) -> Option<Duration> {
        self.plan.worst.map(|_| Duration::from_secs(1))
    }

    /// Takes what there is since the last time, explained and acted upon.
    pub fn take(&mut self, slots: &Slots) -> Vec<Outlier> {
        let mut taken = Vec::new();
        for point in 0..self.points.len() {
            let mut fresh = Vec::new();
            let watched = &mut self.points[point];
            watched.lost += slots.exceedances(point, &mut watched.cursor, |sample| fresh.push(sample));
            for sample in fresh {
                let outlier = self.explain(point, sample);
                self.act(&outlier);
                self.keep(point, sample, outlier.clone());
                taken.push(outlier);
            }
        }
        taken
    }

    fn explain(&self, point: usize, sample: Exceedance) -> Outlier {
        let cpu = self.points[point].cpu;
        let at = sample.at.saturating_sub(self.epoch_ns);
        Outlier { at, cpu, value: sample.value, cause: Vec::new() }
    }

    fn act(&self, outlier: &Outlier) {
        for action in &self.plan.actions {
            match action {
                Action::Stop | Action::Continue | Action::SaveTrace => {}
                Action::Exec(command) => execute(command, outlier),
                Action::Signal(process) => signal(*process),
            }
        }
    }

    fn keep(&mut self, point: usize, sample: Exceedance, outlier: Outlier) {
        let watched = &mut self.points[point];
        if watched.first.len() < KEPT {
            watched.first.push(sample);
        }
        watched.worst.push(outlier);
        if watched.worst.len() > KEPT {
            let least = (0..watched.worst.len()).min_by_key(|index| watched.worst[*index].value);
            least.map(|index| watched.worst.remove(index));
        }
    }

    /// The outliers of a point in order of time, and its first exceedances.
    pub fn of_point(&mut self, point: usize) -> (Vec<Outlier>, Vec<Exceedance>) {
        let watched = &mut self.points[point];
        (std::mem::take(&mut watched.worst), std::mem::take(&mut watched.first))
    }
}

fn execute(command: &str, outlier: &Outlier) {
    let causes: Vec<String> =
        outlier.cause.iter().map(|c| format!("{} {} {}", c.kind, c.name, c.ns)).collect();
    // What becomes of it is its own business: the measurement goes on.
    let _ = std::process::Command::new("sh")
        .args(["-c", command])
        .env("LATSCOPE_CPU", outlier.cpu.to_string())
        .env("LATSCOPE_NS", outlier.value.to_string())
        .env("LATSCOPE_CAUSE", causes.join("; "))
        .stdin(std::process::Stdio::null())
        .spawn();
}

fn signal(process: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(process as i32) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::USR1);
    }
}
