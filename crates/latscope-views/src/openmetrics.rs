//! A report as OpenMetrics text, which the textfile collector of node_exporter and Prometheus read, too.

use latscope_core::param;
use latscope_core::report::{Account, Better, Measurement, Report, Sampling};
use latscope_judge::verdict::is_cut_short;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Binary logarithms of the bounds of the buckets, ns: the same for every series, so that series add up.
const BOUNDS: std::ops::RangeInclusive<u32> = 7..=25;

/// Returns the points that were measured, the run, and the verdicts as OpenMetrics text.
pub fn openmetrics(report: &Report) -> String {
    let mut seen = BTreeSet::new();
    let points: Vec<(String, &Measurement)> = report
        .measurements
        .iter()
        .map(|m| (point_labels(m), m))
        .filter(|(of, _)| seen.insert(of.clone()))
        .collect();
    let mut text = String::new();
    let mut points_of = |name: &str, help: &str, value: &dyn Fn(&Measurement) -> Option<f64>| {
        gauge(&mut text, name, help, points.iter().map(|(of, m)| (of.as_str(), value(m))));
    };
    let seconds = |ns: Option<f64>| ns.map(|ns| ns / 1e9);
    points_of("latscope_latency_p50_seconds", "Median of a point", &|m| seconds(m.summary.p50));
    let p99 = |m: &Measurement| seconds(m.summary.p99);
    points_of("latscope_latency_p99_seconds", "99th percentile of a point with at least 1000 samples", &p99);
    let with_missed = |m: &Measurement| seconds(m.corrected.as_ref()?.tail_quantile(0.99));
    let help = "99th percentile with the missed activations, of a point that missed some";
    points_of("latscope_latency_with_missed_p99_seconds", help, &with_missed);
    points_of("latscope_latency_max_seconds", "Largest sample of a point", &|m| seconds(m.summary.max));
    let level = "How far to trust a point: 0 ok, 1 unstable, 2 degraded, 3 not measured";
    points_of("latscope_quality_level", level, &|m| Some(f64::from(m.quality.level as u8)));
    let incomplete = "1 if the run ended before it had measured a point in full";
    points_of("latscope_point_incomplete", incomplete, &|m| Some(f64::from(u8::from(m.incomplete))));
    let status = |m: &Measurement| m.verdict.as_ref().map(|verdict| f64::from(verdict.status as u8));
    points_of("latscope_verdict_status", "Criteria of a point: 0 met, 1 inconclusive, 2 exceeded", &status);
    add_bad_events(&mut text, &points);
    histograms(&mut text, &points);
    add_run(&mut text, report);
    text + "# EOF\n"
}

/// Labels that name a point.
fn point_labels(m: &Measurement) -> String {
    let params: Vec<String> = m.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let sampling = if m.sampling == Sampling::Event { "event" } else { "batch" };
    join_labels(&[
        ("probe", &m.probe),
        ("revision", &m.revision.to_string()),
        ("params", &params.join(",")),
        ("title", &m.title),
        ("sampling", sampling),
    ])
}

fn join_labels(labels: &[(&str, &str)]) -> String {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape_label(value))).collect();
    labels.join(",")
}

/// Returns a text as the value of a label. Characters that a terminal would obey are replaced.
fn escape_label(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out += "\\\\",
            '"' => out += "\\\"",
            '\n' => out += "\\n",
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn write_metadata(text: &mut String, name: &str, kind: &str, help: &str) {
    *text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    if name.ends_with("_seconds") {
        *text += &format!("# UNIT {name} seconds\n");
    }
}

/// Adds a gauge, unless it has no value at all.
fn gauge<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a str, Option<f64>)>,
) {
    let known: Vec<(&str, f64)> = values.filter_map(|(labels, value)| Some((labels, value?))).collect();
    if known.is_empty() {
        return;
    }
    write_metadata(text, name, "gauge", help);
    for (labels, value) in known {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(text, "{name}{labels} {value:e}").expect("memory can be written to");
    }
}

/// Adds the counts that speak against a point, such as lost messages.
fn add_bad_events(text: &mut String, points: &[(String, &Measurement)]) {
    let mut found = Vec::new();
    for (of, m) in points {
        if m.sampling == Sampling::Event && m.params.contains_key(param::INTERVAL) {
            found.push((format!("{of},count=\"missed\""), m.summary.missed as f64));
        }
        for (name, value) in &m.values {
            if value.unit == "count" && value.better == Better::Less {
                found.push((format!("{of},count=\"{}\"", escape_label(name)), value.value));
            }
        }
    }
    let found = found.iter().map(|(labels, count)| (labels.as_str(), Some(*count)));
    let help = "Counted events that speak against a point: missed activations, losses, mismatches, ...";
    gauge(text, "latscope_bad_events", help, found);
}

/// Adds the distributions of single events. A bound is the last value of a bucket of the result, so that counts are
/// exact.
fn histograms(text: &mut String, points: &[(String, &Measurement)]) {
    const NAME: &str = "latscope_latency_seconds";
    let events: Vec<_> =
        points.iter().filter(|(_, m)| m.sampling == Sampling::Event && m.summary.count > 0).collect();
    if events.is_empty() {
        return;
    }
    write_metadata(text, NAME, "histogram", "Single events of a point");
    for (of, m) in events {
        let mut add = |le: &str, count: u64| *text += &format!("{NAME}_bucket{{{of},le=\"{le}\"}} {count}\n");
        for bound in BOUNDS.map(|bits| ((1u64 << bits) - 1) as f64) {
            let is_all = m.histogram.largest().is_some_and(|largest| largest.high <= bound);
            let below = m.histogram.spans().take_while(|(span, _)| span.high <= bound);
            let count = if is_all { m.histogram.count() } else { below.map(|(_, count)| count).sum() };
            add(&format!("{:e}", bound / 1e9), count);
        }
        let count = m.histogram.count();
        add("+Inf", count);
        let sum = m.histogram.mean().unwrap_or(0.0) * count as f64 / 1e9;
        *text += &format!("{NAME}_sum{{{of}}} {sum:e}\n{NAME}_count{{{of}}} {count}\n");
    }
}

fn add_run(text: &mut String, report: &Report) {
    let machine = &report.machine;
    let about: [(&str, &str); 6] = [
        ("run_id", &*report.run_id),
        ("job_name", &report.plan.job),
        ("machine", &machine.name),
        ("kernel", &machine.kernel),
        ("cpu_model", &machine.cpu_model),
        ("version", &report.tool.version),
    ];
    // What is not known, such as the one id of merged runs, is no label.
    let about = join_labels(&about.into_iter().filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>());
    let at = |time: &str| {
        let time = humantime::parse_rfc3339_weak(time).ok()?;
        Some(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs_f64())
    };
    let mut one = |name: &str, help: &str, labels: &str, value: Option<f64>| {
        gauge(text, name, help, std::iter::once((labels, value)));
    };
    let runs = report.merged.as_ref().map_or(1, |merged| merged.runs.len());
    one("latscope_run_info", "The run and its machine", &about, Some(1.0));
    one("latscope_runs", "Runs in the result", "", Some(runs as f64));
    one("latscope_run_start_timestamp_seconds", "Start of the run", "", at(&report.started));
    let early = f64::from(u8::from(is_cut_short(report)));
    one("latscope_run_ended_early", "1 if the run ended before it had measured all points", "", Some(early));
    let finished = report.finished.as_deref().and_then(at);
    one("latscope_run_end_timestamp_seconds", "End of the run", "", finished);
    let others = report.activity.as_ref().and_then(Account::known_others);
    one("latscope_run_others_ratio", "Share of the CPUs that other processes used", "", others);
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::testing::with_value;

    #[test]
    fn every_event_is_counted_in_at_most_twenty_buckets() {
        let report = fixture::wake();
        let text = openmetrics(&report);
        for m in &report.measurements {
            let of = point_labels(m);
            let line = |part: &str| format!("latscope_latency_seconds_{part}{{{of}");
            let buckets: Vec<u64> = text
                .lines()
                .filter(|l| l.starts_with(&line("bucket")))
                .map(|l| l.rsplit(' ').next().unwrap().parse().unwrap())
                .collect();
            assert!(buckets.len() == 20 && buckets.is_sorted(), "{buckets:?}");
            assert_eq!(buckets.last(), Some(&m.summary.count));
            let first = buckets.iter().position(|count| *count == m.summary.count).unwrap();
            let bounds: Vec<f64> = BOUNDS.map(|bits| ((1u64 << bits) - 1) as f64).collect();
            let largest = m.summary.max.unwrap();
            assert!(bounds.get(first).is_none_or(|bound| *bound >= largest));
            assert!(first == 0 || bounds[first - 1] < largest * 1.01, "{first}: {largest} ns");
            assert!(text.contains(&format!("{}}} {}", line("count"), m.summary.count)));
        }
        assert!(text.ends_with("# EOF\n") && text.contains("# UNIT latscope_latency_p50_seconds seconds\n"));
    }

    #[test]
    fn missed_activations_are_counted_and_have_their_quantile() {
        let mut report = fixture::wake();
        let m = &mut report.measurements[0];
        m.summary.missed = 421;
        let mut corrected = m.histogram.clone();
        (0..421).for_each(|_| corrected.record(60_000_000));
        m.corrected = Some(corrected);
        let text = openmetrics(&report);
        let of = point_labels(&report.measurements[0]);
        assert!(text.contains(&format!("latscope_bad_events{{{of},count=\"missed\"}} 4.21e2\n")), "{text}");
        assert!(text.contains(&format!("latscope_latency_with_missed_p99_seconds{{{of}}}")), "{text}");
    }

    #[test]
    fn a_run_that_ended_early_says_so_of_itself_and_of_its_points() {
        let values = |report: &Report, name: &str| -> Vec<String> {
            let text = openmetrics(report);
            let lines = text.lines().filter(|line| {
                line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} "))
            });
            lines.map(|line| line.rsplit_once(' ').unwrap().1.to_owned()).collect()
        };
        let mut report = fixture::wake();
        report.measurements.truncate(2);
        let [of_run, of_point] = ["latscope_run_ended_early", "latscope_point_incomplete"];
        assert_eq!(
            (values(&report, of_run), values(&report, of_point)),
            (vec!["0e0".into()], vec!["0e0".into(); 2])
        );
        report.finished = None;
        report.measurements[1].incomplete = true;
        let of_points = vec!["0e0".to_owned(), "1e0".to_owned()];
        assert_eq!((values(&report, of_run), values(&report, of_point)), (vec!["1e0".into()], of_points));
    }

    #[test]
    fn labels_are_escaped_and_no_series_is_there_twice() {
        let mut report = fixture::wake();
        report.measurements[0].title = "a\"b\\c\nd\u{1b}[2J".to_owned();
        report.measurements.push(report.measurements[0].clone());
        let text = openmetrics(&report);
        assert!(text.contains("title=\"a\\\"b\\\\c\\nd\u{fffd}[2J\""), "{text}");
        let names: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.rsplit_once(' ').unwrap().0)
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn what_is_not_known_of_the_run_is_no_label() {
        let mut report = fixture::wake();
        (report.run_id, report.machine.kernel) = (String::new(), String::new());
        let text = openmetrics(&report);
        let line = text.lines().find(|line| line.starts_with("latscope_run_info{")).unwrap();
        assert!(line.contains("job_name=\"wake\"") && !line.contains("=\"\""), "{line}");
        report.run_id = "r-1".to_owned();
        assert!(openmetrics(&report).contains("latscope_run_info{run_id=\"r-1\","));
    }

    #[test]
    fn lost_messages_are_a_series() {
        let mut report = fixture::report();
        let m = &mut report.measurements[0];
        *m = with_value(m.clone(), "losses", 12.0);
        let text = openmetrics(&report);
        let line = text.lines().find(|line| line.contains("count=\"losses\"")).unwrap();
        assert!(line.starts_with("latscope_bad_events{probe=") && line.ends_with(" 1.2e1"), "{line}");
    }

    #[test]
    fn batches_have_no_distribution_of_events() {
        let text = openmetrics(&fixture::report());
        assert!(text.contains("latscope_latency_p50_seconds{probe=\"cpu.add\""));
        assert!(!text.contains("latscope_latency_seconds_bucket{probe=\"cpu.add\""));
    }
}
