//! Wording of a run, its threads and its outliers in a line.

use latscope_core::catalogue::{ParamValueKind, kind_of};
use latscope_core::events::format_param;
use latscope_core::param::{
    CALLER, CLOCK, COPIES, CPU, DIRECTION, FORM, HOPS, INHERITANCE, INTERVAL, METHOD, MODE, PAIR, PAYLOAD,
    POLICY, PRIORITY, SIZE, THREAD, TIMEOUT, TRANSPORT, VIA, WAIT,
};
use latscope_core::plan::{MeasurementPoint, ParamValue, Params, PlanStep};
use latscope_core::report::{Cause, Outlier, Warning};
use latscope_core::units::{CpuList, format_share, format_size, format_time, three_digits};
use latscope_process::clean::is_command;

/// Parameters that come first, in this order.
const FIRST: [&str; 4] = [POLICY, METHOD, CLOCK, VIA];

/// Parameters that distinguish threads, and those that are worded elsewhere.
const NOT_SAID: [&str; 10] =
    [CPU, THREAD, PAIR, PRIORITY, INTERVAL, INHERITANCE, COPIES, HOPS, WAIT, TIMEOUT];

/// Description of a step's measurement: `every 1 ms, fifo 95, nanosleep, monotonic, CPUs 0-3`.
pub(super) fn what_runs(step: &PlanStep) -> String {
    let mut said = Vec::new();
    let intervals: Vec<u64> =
        step.points.iter().filter_map(|point| point.params.get(INTERVAL)?.as_number()).collect();
    if let (Some(least), Some(most)) = (intervals.iter().min(), intervals.iter().max()) {
        let most = if most > least { format!(" to {}", format_short_time(*most)) } else { String::new() };
        said.push(format!("every {}{most}", format_short_time(*least)));
    }
    let Some(first) = step.points.first() else { return String::new() };
    let rest = first
        .params
        .keys()
        .map(String::as_str)
        .filter(|name| !FIRST.contains(name) && !NOT_SAID.contains(name));
    for name in FIRST.into_iter().chain(rest) {
        let Some(value) = first.params.get(name) else { continue };
        if step.points.iter().all(|point| point.params.get(name) == Some(value)) {
            said.push(parameter(name, value, &first.params));
        }
    }
    if !step.cpus.is_empty() {
        let plural = if step.cpus.len() > 1 { "s" } else { "" };
        let mut cpus = step.cpus.clone();
        cpus.sort_unstable();
        said.push(format!("CPU{plural} {}", CpuList(cpus)));
    }
    said.join(", ")
}

fn parameter(name: &str, value: &ParamValue, all: &Params) -> String {
    match (name, value) {
        (POLICY, policy) => match all.get(PRIORITY) {
            Some(priority) => format!("{policy} {priority}"),
            None => policy.to_string(),
        },
        (_, ParamValue::Number(ns)) if kind_of(name) == Some(ParamValueKind::Time) => {
            format!("{name} {}", format_short_time(*ns))
        }
        (VIA, via) => format!("via {via}"),
        (_, ParamValue::Text(text)) => text.clone(),
        (_, number) => format_param(name, number, all),
    }
}

/// A round time without the zeros of its three digits.
pub(super) fn format_short_time(ns: u64) -> String {
    let text = format_time(ns as f64);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Labels of the points of a step: the CPU or pair where that distinguishes them, else with the parameters in which
/// they differ, and with their number where nothing differs.
pub(super) fn point_labels(step: &PlanStep) -> Vec<String> {
    let place = |params: &Params| {
        let cpu = params.get(CPU).map(ToString::to_string);
        let caller = params.get(CALLER).map(|caller| format!(" {caller}")).unwrap_or_default();
        let pair = params.get(PAIR).map(|pair| format!("pair {pair}{caller}"));
        cpu.or(pair)
    };
    let unique = |labels: &[String]| {
        labels.iter().all(|label| labels.iter().filter(|other| *other == label).count() == 1)
    };
    let places: Vec<Option<String>> = step.points.iter().map(|point| place(&point.params)).collect();
    let named = |place: &Option<String>| place.clone().unwrap_or_else(|| "-".to_owned());
    let plain: Vec<String> = places.iter().map(named).collect();
    let is_cpu = |place: &Option<String>| {
        place.as_ref().is_some_and(|place| place.starts_with(|c: char| c.is_ascii_digit()))
    };
    let differing = differing(step);
    let told = step.points.iter().zip(&places).map(|(point, place)| {
        let parts = differing.iter().filter(|name| distinguishes(step, point, name));
        let parts = parts.filter_map(|name| match (*name, point.params.get(*name)) {
            (PROBE, _) => {
                Some(point.probe.split_once('.').map_or(&*point.probe, |(_, name)| name).to_owned())
            }
            // The unit says what it is.
            (name, Some(ParamValue::Number(bytes))) if kind_of(name) == Some(ParamValueKind::Size) => {
                Some(format_size(*bytes))
            }
            (name, value) => Some(parameter(name, value?, &point.params)),
        });
        // Where all have the same place, that distinguishes nothing.
        let place = place.iter().filter(|_| places.iter().any(|other| other != &places[0]));
        place.cloned().chain(parts).collect::<Vec<_>>().join(" ")
    });
    let told: Vec<String> = told.collect();
    if unique(&plain) && places.iter().all(Option::is_some) {
        return plain;
    }
    let of_cpus = places.iter().all(is_cpu);
    if !of_cpus && unique(&told) && told.iter().all(|label| !label.is_empty()) {
        return told;
    }
    if let [only] = &step.points[..] {
        return vec![only.probe.clone()];
    }
    plain.iter().enumerate().map(|(index, place)| format!("#{index} {place}")).collect()
}

/// Stands for the probe among the names of parameters.
const PROBE: &str = "";

/// Parameters that are not in labels: each follows from the place, or is in the head.
const NOT_IN_LABELS: [&str; 8] = [CPU, THREAD, PAIR, CALLER, PRIORITY, POLICY, INTERVAL, INHERITANCE];

/// In what the points of a step differ, other than in the place and the thread.
fn differing(step: &PlanStep) -> Vec<&str> {
    let Some((first, rest)) = step.points.split_first() else { return Vec::new() };
    let of_probe = rest.iter().any(|point| point.probe != first.probe).then_some(PROBE);
    let mut names: Vec<&str> =
        step.points.iter().flat_map(|point| point.params.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&str| rest.iter().any(|point| point.params.get(*name) != first.params.get(*name));
    let names = names.into_iter().filter(|name| !NOT_IN_LABELS.contains(name)).filter(differs);
    of_probe.into_iter().chain(names).collect()
}

/// Returns true if a parameter distinguishes a point from others of its probe. The probe itself distinguishes it from
/// all others.
fn distinguishes(step: &PlanStep, point: &MeasurementPoint, name: &str) -> bool {
    let differs = |other: &MeasurementPoint| {
        other.probe == point.probe && other.params.get(name) != point.params.get(name)
    };
    name == PROBE || step.points.iter().any(differs)
}

/// Returns true if the points of a step are of several kinds whose sum means nothing: other payloads, other ways to
/// wait.
pub(super) fn is_of_kinds(step: &PlanStep) -> bool {
    let kinds = [PROBE, PAYLOAD, WAIT, TRANSPORT, MODE, FORM, DIRECTION, SIZE];
    differing(step).iter().any(|name| kinds.contains(name))
}

/// Name of a row by its label: `CPU 1`, `thread 8 on CPU 0`, `pair 2 fifo`.
pub(super) fn row_name(label: &str) -> String {
    let numbered = label.strip_prefix('#').and_then(|rest| rest.split_once(' '));
    match numbered {
        Some((index, "-")) => format!("thread {index}"),
        Some((index, place)) => format!("thread {index} on {}", row_name(place)),
        None if label.chars().all(|c| c.is_ascii_digit()) => format!("CPU {label}"),
        None => label.to_owned(),
    }
}

/// A warning with its remedy.
pub(super) fn warning(warning: &Warning) -> String {
    let remedy = warning.remedy.iter().map(|remedy| format!(" ({remedy})"));
    clean(&format!("{}{}", warning.text, remedy.collect::<String>()))
}

/// An outlier with its cause: `CPU 1  412 µs  83 % thread stress (4711), 12 % irq eth0`.
pub(super) fn format_outlier(outlier: &Outlier) -> String {
    let cause: Vec<String> = outlier.cause.iter().map(|cause| format_cause(cause, outlier.value)).collect();
    let cause = if outlier.is_traced() { format!("  {}", cause.join(", ")) } else { String::new() };
    clean(&format!("CPU {:<3} {:>8}{cause}", outlier.cpu, format_time(outlier.value as f64)))
}

fn format_cause(cause: &Cause, whole: u64) -> String {
    let share = format_share(cause.ns as f64 / whole.max(1) as f64);
    let name = if cause.name.is_empty() { String::new() } else { format!(" {}", cause.name) };
    let pid = if cause.pid == 0 { String::new() } else { format!(" ({})", cause.pid) };
    format!("{share} {}{name}{pid}", cause.kind.replace('-', " "))
}

/// Names of threads are any text: none of it is for the terminal.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_command(c) { '?' } else { c }).collect()
}

/// A time span as a clock shows it: `0:07`, `12:03`, `1:00:00`, `3d 01:00`.
pub(super) fn format_clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{:02}", seconds % 60),
        (0, _) => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
        _ => format!("{days}d {hours:02}:{minutes:02}"),
    }
}

/// Elapsed time, with the whole time where it is known: `12:03 of 1:00:00`, for a short run `0.2 of 0.5 s`.
pub(super) fn elapsed(ns: u64, whole: Option<u64>) -> String {
    match whole {
        Some(whole) if whole < 10_000_000_000 => {
            format!("{:.1} of {:.1} s", ns as f64 / 1e9, whole as f64 / 1e9)
        }
        Some(whole) => format!("{} of {}", format_clock(ns), format_clock(whole)),
        None => format_clock(ns),
    }
}

/// Shortens a name to at most `width` characters. A longer name keeps its begin and its end, which distinguishes it
/// from others.
pub(super) fn shorten_name(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let begin = width / 2;
    let end = width.saturating_sub(begin + 1);
    name.chars().take(begin).chain(['…']).chain(name.chars().skip(length - end)).collect()
}

/// The time of day of an instant `at` ns after `epoch` ns of Unix time, in UTC as in results.
pub(super) fn time_of_day(epoch: u64, at: u64) -> String {
    let second = (epoch.saturating_add(at)) / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

/// A count in at most seven characters: `999999`, `12.3 M`, `1.07 G`.
pub(super) fn format_short_count(n: u64) -> String {
    match n {
        0..1_000_000 => n.to_string(),
        1_000_000..999_500_000 => format!("{} M", three_digits(n as f64 / 1e6)),
        _ => format!("{} G", three_digits(n as f64 / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::MeasurementPoint;

    fn cause(kind: &str, name: &str, pid: u32, ns: u64) -> Cause {
        Cause { kind: kind.to_owned(), name: name.to_owned(), pid, ns }
    }

    #[test]
    fn a_row_is_on_a_cpu_or_of_a_thread() {
        let words = ["1", "#8 0", "#3 -", "pair 2 fifo", "-"].map(row_name);
        assert_eq!(words, ["CPU 1", "thread 8 on CPU 0", "thread 3", "pair 2 fifo", "-"]);
    }

    #[test]
    fn rows_are_named_by_what_distinguishes_them() {
        let step = |points: &[&[(&str, ParamValue)]]| {
            let mut step = super::super::testing::test_step(&[0]);
            let template = step.points[0].clone();
            step.points = points
                .iter()
                .map(|params| MeasurementPoint {
                    params: params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
                    ..template.clone()
                })
                .collect();
            step
        };
        let text = |word: &str| ParamValue::from(word);
        let number = ParamValue::Number;
        let waits = step(&[
            &[("wait", text("spin")), ("payload", number(48))],
            &[("wait", text("futex")), ("payload", number(48))],
        ]);
        assert_eq!(
            (point_labels(&waits), is_of_kinds(&waits)),
            (vec!["spin".to_owned(), "futex".to_owned()], true)
        );
        let callers = step(&[
            &[("pair", number(0)), ("caller", text("fifo"))],
            &[("pair", number(0)), ("caller", text("other"))],
        ]);
        assert_eq!(point_labels(&callers), ["pair 0 fifo", "pair 0 other"]);
        assert!(!is_of_kinds(&callers));
        let sizes = |bytes| [("pair", number(0)), ("caller", text("other")), ("payload", number(bytes))];
        assert_eq!(point_labels(&step(&[&sizes(4), &sizes(2048)])), ["4 B", "2 KiB"]);
        let mut probes = step(&[
            &[("payload", number(48)), ("wait", text("spin"))],
            &[("payload", number(48)), ("wait", text("futex"))],
            &[("payload", number(4)), ("wait", text("spin"))],
            &[("payload", number(4)), ("wait", text("futex"))],
        ]);
        probes.points[..2].iter_mut().for_each(|point| point.probe = "remote.ping".to_owned());
        probes.points[2..].iter_mut().for_each(|point| point.probe = "remote.mailbox".to_owned());
        let labels_of_probes = ["ping spin", "ping futex", "mailbox spin", "mailbox futex"];
        assert_eq!(point_labels(&probes), labels_of_probes);
        assert_eq!(shorten_name("bandwidth echoed 496 B spin", 22), "bandwidth e…496 B spin");
        assert_eq!(shorten_name("ping spin", 9), "ping spin");
        let same = [("cpu", number(1))];
        assert_eq!(point_labels(&step(&[&same, &same])), ["#0 1", "#1 1"]);
        assert_eq!(point_labels(&step(&[&[]])), ["wake.timer"]);
    }

    #[test]
    fn an_outlier_is_told_with_its_cause() {
        let mut told = Outlier { cpu: 1, value: 412_000, ..Outlier::default() };
        assert_eq!(format_outlier(&told), "CPU 1     412 µs");
        told.cause = vec![
            cause("thread", "stress", 4711, 342_000),
            cause("irq", "", 0, 49_440),
            cause("softirq", "timer", 0, 900),
        ];
        assert_eq!(
            format_outlier(&told),
            "CPU 1     412 µs  83 % thread stress (4711), 12 % irq, 0.22 % softirq timer"
        );
        told.cause = vec![cause("not-traced", "nothing was traced on CPU 1", 0, 412_000)];
        assert_eq!(format_outlier(&told), "CPU 1     412 µs");
    }

    #[test]
    fn a_name_does_not_command_the_terminal() {
        let cause = vec![cause("thread", "\x1b[2J\x07evil\n", 1, 1)];
        let told = format_outlier(&Outlier { value: 1, cause, ..Outlier::default() });
        assert!(told.ends_with("100 % thread ?[2J?evil? (1)"), "{told}");
    }

    #[test]
    fn spans_and_counts_stay_short() {
        let second = 1_000_000_000;
        let spans = [0, 59, 60, 3599, 3600, 86_399, 86_400 * 3 + 3600].map(|s| format_clock(s * second));
        assert_eq!(spans, ["0:00", "0:59", "1:00", "59:59", "1:00:00", "23:59:59", "3d 01:00"]);
        let counts =
            [0, 999_999, 1_000_000, 999_499_999, 999_500_000, 100_000_000_000].map(format_short_count);
        assert_eq!(counts, ["0", "999999", "1.00 M", "999 M", "1.00 G", "100 G"]);
        let far = [(200_000_000, Some(500_000_000)), (39 * second, Some(60 * second)), (7 * second, None)];
        assert_eq!(far.map(|(ns, whole)| elapsed(ns, whole)), ["0.2 of 0.5 s", "0:39 of 1:00", "0:07"]);
        assert_eq!(time_of_day(1_000_000_000 * second, 0), "01:46:40Z");
        assert_eq!(time_of_day(86_399 * second, second), "00:00:00Z");
    }
}
