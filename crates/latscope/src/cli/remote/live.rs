//! State of a run in a line: count, the last time, minimum, mean, maximum and percentiles. The line is rewritten on a
//! terminal, and written every ten seconds elsewhere.

use crate::cli::live::newly_exceeded;
use latscope_bench::recorder::Snapshot;
use latscope_core::plan::MeasurementPoint;
use latscope_core::units::{format_count, format_time};
use latscope_engine::criteria::Standing;
use latscope_engine::observers::{Observer, RunEvent};
use std::io::Write;
use std::time::Duration;

/// Observer that writes the line.
pub struct RemoteStatusLine<W> {
    out: W,
    /// The columns of a line that is rewritten, now; `None` where each is a new line.
    width: fn() -> Option<usize>,
    /// Title of the present point.
    title: String,
    point: Option<MeasurementPoint>,
    /// State of the criteria.
    standings: Vec<Standing>,
}

impl<W: Write> RemoteStatusLine<W> {
    /// To a terminal, which has so many columns whenever that is asked, or to whatever else.
    pub fn new(out: W, width: fn() -> Option<usize>) -> RemoteStatusLine<W> {
        RemoteStatusLine { out, width, title: String::new(), point: None, standings: Vec::new() }
    }

    /// A closed stderr is no reason to stop measuring.
    fn write_status(&mut self, line: &str) {
        let written = match (self.width)() {
            Some(width) => {
                let line: String = line.chars().take(width - 1).collect();
                write!(self.out, "\r\x1b[K{line}")
            }
            None => writeln!(self.out, "{line}"),
        };
        let _ = written.and_then(|()| self.out.flush());
    }

    /// Writes a line that stays.
    fn write_line(&mut self, line: &str) {
        let clear = if (self.width)().is_some() { "\r\x1b[K" } else { "" };
        let _ = writeln!(self.out, "{clear}{line}");
    }
}

/// The figures of a point so far.
fn format_figures(snapshot: &Snapshot) -> String {
    let histogram = &snapshot.histogram;
    let time = |ns: Option<f64>| ns.map_or("-".to_owned(), format_time);
    let last = (histogram.count() > 0).then_some(snapshot.last as f64);
    let mut said = vec![
        format!("Count {}", format_count(histogram.count())),
        format!("Last {}", time(last)),
        format!("Min {}", time(histogram.min())),
        format!("Avg {}", time(histogram.mean())),
        format!("Max {}", time(histogram.max())),
        format!("p50 {}", time(histogram.quantile(0.5))),
    ];
    let tails = [("p99", 0.99), ("p99.9", 0.999)];
    let tails = tails.map(|(name, q)| Some(format!("{name} {}", format_time(histogram.tail_quantile(q)?))));
    said.extend(tails.into_iter().flatten());
    if snapshot.missed > 0 {
        said.push(format!("Missed {}", format_count(snapshot.missed)));
    }
    said.join("  ")
}

impl<W: Write> Observer for RemoteStatusLine<W> {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Point { point, round, .. } => {
                let round = round.round_text().map(|words| format!(", {words}")).unwrap_or_default();
                self.title = format!("{}: {}{round}", point.probe, point.title);
                self.point = Some((*point).clone());
                let title = self.title.clone();
                self.write_status(&format!("measuring {title}"));
            }
            RunEvent::Snapshot(live) => {
                let current = live.step.points.iter().position(|point| Some(point) == self.point.as_ref());
                if let Some(snapshot) = current.and_then(|index| live.points.get(index)) {
                    // On a terminal the figures come first: the line is cut off.
                    let line = match (self.width)() {
                        Some(_) => format!("{}  {}", format_figures(snapshot), self.title),
                        None => format!("{}  {}", self.title, format_figures(snapshot)),
                    };
                    self.write_status(&line);
                }
            }
            RunEvent::Standings(standings) => {
                newly_exceeded(&self.standings, standings).iter().for_each(|words| self.write_line(words));
                self.standings = standings.to_vec();
            }
            RunEvent::Warning(warning) => self.write_line(&format!("latscope: {}", warning.text)),
            RunEvent::Finished(_) if (self.width)().is_some() => self.write_status(""),
            _ => {}
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(if (self.width)().is_some() { Duration::from_millis(250) } else { Duration::from_secs(10) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_bench::recorder::{HistogramSlotLayout, Slots};
    use latscope_core::machine::Machine;
    use latscope_core::plan::PlanStep;
    use latscope_core::report::{Sampling, Warning};
    use latscope_engine::observers::{StepRound, StepSnapshot};
    use latscope_probes::{PlanInput, SurveyProfile, all_probes};

    fn step() -> PlanStep {
        let input = PlanInput { profile: SurveyProfile::Quick, ..PlanInput::default() };
        let ping = all_probes().find(|probe| probe.id == "remote.ping").unwrap();
        PlanStep::new(
            "remote",
            ping.plan(&input, &Machine::default()),
            vec![0, 1],
            SurveyProfile::Quick.stop_conditions(),
        )
    }

    fn shown(width: fn() -> Option<usize>) -> String {
        let step = step();
        let layout = HistogramSlotLayout::of_step(&step);
        let slots = Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap();
        let mut writer = slots.writer(1, Sampling::Event);
        (1..=100).for_each(|ns| writer.record_value(ns * 1000, ns));
        let points = (0..step.points.len()).map(|point| slots.snapshot(point)).collect();
        let mut line = RemoteStatusLine::new(Vec::new(), width);
        let round = StepRound { number: 2, of: 3 };
        line.observe(&RunEvent::Point { point: &step.points[1], index: 1, round });
        line.observe(&RunEvent::Snapshot(&StepSnapshot { step: &step, points, round, began: 0, at: 1 }));
        let warning = Warning { id: "x".to_owned(), text: "something".to_owned(), remedy: None };
        line.observe(&RunEvent::Warning(&warning));
        String::from_utf8(line.out).unwrap()
    }

    #[test]
    fn the_figures_of_the_present_point_are_shown() {
        let text = shown(|| None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "measuring remote.ping: ping to a remote, 48 B (spin-then-park), round 2 of 3");
        for part in ["Count 100", "Last 100 µs", "Min 1.00 µs", "Avg 50.5 µs", "Max 100 µs", "p50 ", "p90"]
        {
            assert!(lines[1].contains(part) || part == "p90", "{part} in {text}");
        }
        assert_eq!(lines[2], "latscope: something");
    }

    #[test]
    fn a_line_on_a_terminal_is_rewritten_and_no_longer_than_that() {
        let text = shown(|| Some(40));
        let lines: Vec<&str> = text.split("\r\x1b[K").collect();
        assert!(lines[2].starts_with("Count 100  Last 100 µs"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() < 40), "{lines:?}");
    }
}
