//! State of a run in lines of text, where there is no screen: a line every ten seconds, a line for each outlier, and
//! the warnings.

use super::model::LiveModel;
use super::words;
use latscope_core::report::Outlier;
use latscope_core::units::format_time;
use latscope_engine::criteria::Standing;
use latscope_engine::observers::{Observer, RunEvent, StepSnapshot};
use std::io::Write;
use std::time::Duration;

/// Time between two lines of how it stands.
const PERIOD: Duration = Duration::from_secs(10);

/// Outliers shown in one second; of more there is only the number.
const MOST: u64 = 5;

const SECOND: u64 = 1_000_000_000;

/// Writes the state of a run in lines.
pub struct LiveLineWriter<W> {
    out: W,
    model: LiveModel,
    /// Time of the last line about the state, ns since the epoch of the run.
    said: u64,
    /// A second of the run, the outliers shown in it, and those left out since.
    second: u64,
    shown: u64,
    left_out: u64,
}

impl<W: Write> LiveLineWriter<W> {
    pub fn new(out: W) -> LiveLineWriter<W> {
        LiveLineWriter { out, model: LiveModel::default(), said: 0, second: 0, shown: 0, left_out: 0 }
    }

    /// A closed stderr is no reason to stop measuring.
    fn write_line(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }

    fn apply_snapshot(&mut self, live: &StepSnapshot) {
        self.model.apply_step_snapshot(live);
        if live.at >= self.said + PERIOD.as_nanos() as u64 {
            self.said = live.at;
            self.write_line(&format!("measuring {}", format_state(&self.model)));
            let standings: Vec<String> = self.model.standings.iter().map(Standing::status_line).collect();
            standings.iter().for_each(|words| self.write_line(&format!("  {words}")));
        }
    }

    /// Says at once which criterion is exceeded.
    fn report_exceeded(&mut self, standings: &[Standing]) {
        let fresh = newly_exceeded(&self.model.standings, standings);
        fresh.iter().for_each(|words| self.write_line(words));
        self.model.standings = standings.to_vec();
    }

    fn report_outlier(&mut self, outlier: &Outlier) {
        self.model.add_outlier(outlier);
        if outlier.at / SECOND != self.second {
            (self.second, self.shown) = (outlier.at / SECOND, 0);
        }
        if self.shown == MOST {
            self.left_out += 1;
            return;
        }
        self.shown += 1;
        let left_out = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            left_out => format!("  (and {left_out} before it)"),
        };
        let at = words::format_clock(outlier.at);
        self.write_line(&format!("outlier at {at}  {}{left_out}", words::format_outlier(outlier)));
    }
}

/// The criteria that are exceeded and were not.
pub fn newly_exceeded(before: &[Standing], now: &[Standing]) -> Vec<String> {
    let known = |at: usize| before.get(at).is_some_and(|before| before.exceeded);
    let fresh = now.iter().enumerate().filter(|(at, standing)| standing.exceeded && !known(*at));
    fresh.map(|(_, standing)| standing.status_line()).collect()
}

fn format_state(model: &LiveModel) -> String {
    let mut said: Vec<String> = model.round().into_iter().collect();
    said.push(model.position());
    said.push(format!("n {}", words::format_short_count(model.all.histogram.count())));
    let largest = model.rows.iter().max_by_key(|row| row.histogram.max().map(|ns| ns as u64));
    if let Some((row, max)) = largest.and_then(|row| Some((row, row.histogram.max()?))) {
        let of = words::row_name(&row.label);
        let on = if of.starts_with("CPU") { "on" } else { "of" };
        said.push(format!("max {} {on} {of}", format_time(max)));
    }
    said.extend(model.all.histogram.tail_quantile(0.99).map(|ns| format!("p99 {}", format_time(ns))));
    said.push(format!("missed {}", words::format_short_count(model.all.missed)));
    if let Some(threshold) = model.threshold {
        said.push(format!(
            "{} above {}",
            words::format_short_count(model.outlier_count),
            words::format_short_time(threshold)
        ));
    }
    said.join("  ")
}

impl<W: Write> Observer for LiveLineWriter<W> {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started(plan) => {
                self.model.start_run(plan);
                let head = self.model.head.clone();
                self.write_line(&format!("measuring {}", head.trim_start_matches("latscope ")));
            }
            RunEvent::Snapshot(live) => self.apply_snapshot(live),
            RunEvent::Outlier(outlier) => self.report_outlier(outlier),
            RunEvent::Standings(standings) => self.report_exceeded(standings),
            RunEvent::Warning(warning) => self.write_line(&format!("latscope: {}", words::warning(warning))),
            _ => {}
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }
}

#[cfg(test)]
mod tests;
