//! Sections of a report of transactions beside its rows: the transports beside each other, bytes by payload,
//! and the hops of the first calls.

use super::super::Options;
use super::super::grid::{Column, Side, Text, grid, wrap};
use super::super::style::{BOLD, DIM, HEADING, WARNING};
use super::section;
use crate::figure;
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::merged::is_merged;
use latscope_core::report::{Hop, Measurement, Report};
use latscope_core::units::{format_count, format_rate, format_size, format_time};
use latscope_judge::transactions::{Judged, Transport, mode, number, text, transports};

/// Number of transports from which on only their comparison is shown.
pub(super) const MANY: usize = 3;

/// A plot wider than this is no easier to read.
const PLOT_WIDTH: usize = 110;
const PLOT_HEIGHT: u16 = 18;

/// Table with its heading and the notes on it.
pub(in super::super) struct Table {
    pub heading: String,
    pub columns: Vec<Column>,
    pub about: String,
}

impl Table {
    /// The table on a terminal.
    pub fn text(&self, options: &Options) -> String {
        let mut out = section(&self.heading, options);
        out += &grid(&self.columns, 2, options.width, options.color);
        out + &wrap(&Text::default(), &self.about, DIM, options.width, options.color)
    }
}

/// The transports beside each other, where there are several.
pub(super) fn comparison(report: &Report) -> Option<Table> {
    let mut transports = transports(report);
    if transports.len() < 2 {
        return None;
    }
    let median = |transport: &Transport| transport.usual().and_then(|m| m.summary.p50).unwrap_or(f64::MAX);
    transports.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let usual = |cell: &dyn Fn(&Measurement) -> Option<String>| -> Vec<Text> {
        let cell = |transport: &Transport| transport.usual().and_then(cell).unwrap_or_default();
        transports.iter().map(cell).map(Text::plain).collect()
    };
    let fifo = |of: fn(&Measurement) -> Option<f64>| -> Vec<Text> {
        let cell = |t: &Transport| t.fifo.filter(|_| t.other.is_some()).and_then(of).map(format_time);
        transports.iter().map(cell).map(|cell| Text::plain(cell.unwrap_or_default())).collect()
    };
    let time = |of: fn(&Measurement) -> Option<f64>| usual(&|m| of(m).map(format_time));
    let name = |t: &Transport| Text::plain(t.name).and(mark(t));
    let right = |heading: &str, cells| Column::new(Text::styled(HEADING, heading), Side::Right, cells);
    let left = |heading: &str, cells| Column::new(Text::styled(HEADING, heading), Side::Left, cells);
    let placement = usual(&|m| Some(format!("{}, {}", text(m, "placement")?, text(m, "wait")?)));
    let columns = vec![
        left("transport", transports.iter().map(name).collect()),
        right("p50", time(|m| m.summary.p50)),
        right("p99", time(|m| m.summary.p99)),
        right("max", time(|m| m.summary.max)),
        right("CPU", usual(&|m| m.values.get("cpu-time").map(|value| format_time(value.value)))),
        right("copies", usual(&|m| number(m, "copies").map(|copies| copies.to_string()))),
        left("inherits", transports.iter().map(inherits).collect()),
        right("fifo p50", fifo(|m| m.summary.p50)),
        right("fifo p99", fifo(|m| m.summary.p99)),
        right("fifo max", fifo(|m| m.summary.max)),
        left("where, how", placement),
    ];
    let columns: Vec<Column> = columns.into_iter().filter(|column| !column.is_empty()).collect();
    let one_way = transports.iter().filter_map(Transport::usual).any(|m| mode(m) == Some("one-way"));
    let times = if one_way { "From the caller's stamp to the server's" } else { "There and back" };
    let mut about = format!(
        "{times}, called by SCHED_OTHER, or by SCHED_FIFO where it says fifo. CPU: time of both processes for one \
         transaction. Copies: of the payload, one way. Inherits: the caller's real-time priority (RT), its nice value."
    );
    let free = |m: &Measurement| text(m, "placement") == Some("free");
    if transports.iter().filter_map(Transport::usual).any(free) {
        about += " Placement is free: where the scheduler puts the two weighs as much as what carries it; like is compared \
                  with like under --placement same-core or two-cores.";
    }
    if transports.iter().any(is_degraded) {
        about += " !: degraded or unstable.";
    }
    Some(Table { heading: "Transports beside each other".to_owned(), columns, about })
}

fn is_degraded(transport: &Transport) -> bool {
    [transport.fifo, transport.other].into_iter().flatten().any(|m| m.quality.level.is_doubtful())
}

fn mark(transport: &Transport) -> Text {
    if is_degraded(transport) { Text::styled(WARNING, " !") } else { Text::default() }
}

fn inherits(transport: &Transport) -> Text {
    let judged = [("RT", transport.real_time()), ("nice", transport.nice())];
    if judged.iter().all(|(_, judged)| *judged == Judged::NotTried) {
        return Text::plain("not tried");
    }
    let passed: Vec<&str> =
        judged.iter().filter(|(_, judged)| *judged == Judged::Pass).map(|(what, _)| *what).collect();
    Text::plain(if passed.is_empty() { "no".to_owned() } else { passed.join(", ") })
}

/// Time and bytes by payload, and a plot of it.
pub(super) fn throughput(report: &Report, options: &Options) -> String {
    let Some(table) = throughput_table(report) else { return String::new() };
    let mut out = table.text(options);
    if let Some(figure) = figure::throughput_figure(report) {
        out.push('\n');
        out += &figure::terminal(&figure, options.width.min(PLOT_WIDTH) as u16, PLOT_HEIGHT);
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Time and bytes by payload.
pub(super) fn throughput_table(report: &Report) -> Option<Table> {
    let rows: Vec<&Measurement> = report
        .measurements
        .iter()
        .filter(|m| mode(m) == Some("throughput") && is_merged(m) && m.summary.count > 0)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let column = |heading: &str, side, cell: &dyn Fn(&Measurement) -> Option<String>| {
        let cells = rows.iter().map(|m| Text::plain(cell(m).unwrap_or_default())).collect();
        Column::new(Text::styled(HEADING, heading), side, cells)
    };
    let value = |m: &Measurement, name: &str| m.values.get(name).map(|value| value.value);
    let caller = |m: &Measurement| match text(m, "caller") {
        Some("fifo") => text(m, "transport").map(|name| format!("{name}, fifo")),
        _ => text(m, "transport").map(str::to_owned),
    };
    let columns = vec![
        column("transport", Side::Left, &caller),
        column("payload", Side::Right, &|m| number(m, "payload").map(format_size)),
        column("time", Side::Right, &|m| m.summary.mean.map(format_time)),
        column("CPU", Side::Right, &|m| value(m, "cpu-time").map(format_time)),
        column("iterations", Side::Right, &|m| Some(format_count(m.summary.count))),
        column("throughput", Side::Right, &|m| value(m, "throughput").map(format_rate)),
        column("p50", Side::Right, &|m| m.summary.p50.map(format_time)),
        column("p99", Side::Right, &|m| m.summary.p99.map(format_time)),
    ];
    let several = rows.iter().any(|m| m.values.contains_key(RUN_ELAPSED));
    let time = if several { "time in which all pairs ran" } else { "sum of their times" };
    let about = format!(
        "Time: mean of a round trip by the clock; CPU: of both processes. Throughput = payload × iterations ÷ the \
         {time}: bytes of one direction a second; as many come back, verified."
    );
    Some(Table { heading: "Throughput".to_owned(), columns, about })
}

/// Returns the participants in the first calls, hop by hop.
pub(super) fn hops(report: &Report, options: &Options) -> String {
    let mut out = String::new();
    for m in report.measurements.iter().filter(|m| !m.hops.is_empty()) {
        let whose = format!("{}, {}, pair {}", m.probe, text(m, "caller").unwrap_or_default(), pair(m));
        out += &wrap(&Text::plain("  "), &whose, BOLD, options.width, options.color);
        for hop in &m.hops {
            out += &wrap(&Text::plain("    "), &told(hop), Default::default(), options.width, options.color);
        }
    }
    if out.is_empty() { out } else { section("First calls, hop by hop", options) + &out }
}

fn pair(m: &Measurement) -> String {
    m.params.get("pair").map(ToString::to_string).unwrap_or_default()
}

/// `server pid 8674 tid 8676 CPU 0 SCHED_OTHER 0 nice 0`.
pub(in super::super) fn told(hop: &Hop) -> String {
    let policy = match hop.policy {
        0 => "SCHED_OTHER".to_owned(),
        1 => "SCHED_FIFO".to_owned(),
        2 => "SCHED_RR".to_owned(),
        3 => "SCHED_BATCH".to_owned(),
        5 => "SCHED_IDLE".to_owned(),
        6 => "SCHED_DEADLINE".to_owned(),
        other => format!("policy {other}"),
    };
    let Hop { role, pid, tid, cpu, priority, nice, .. } = hop;
    format!("{role} pid {pid} tid {tid} CPU {cpu} {policy} {priority} nice {nice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture::ipc;

    fn options(width: usize) -> Options<'static> {
        Options { width, ..Options::default() }
    }

    #[test]
    fn transports_are_compared_from_fast_to_slow() {
        let text = comparison(&ipc::latency()).unwrap().text(&options(140));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].contains("copies") && lines[2].contains("inherits"), "{text}");
        assert!(lines[4].starts_with("binder") && lines[4].contains("nice"), "{text}");
        assert!(lines[5].starts_with("unix-stream") && lines[5].contains("no"), "{text}");
    }

    #[test]
    fn bytes_stand_by_payload_with_their_formula() {
        let text = throughput(&ipc::throughput(), &options(100));
        assert!(text.contains("64 KiB") && text.contains("payload × iterations"), "{text}");
        assert!(text.contains("Time of a transaction by payload"), "{text}");
    }

    #[test]
    fn hops_are_told_in_full() {
        let text = hops(&ipc::latency(), &options(100));
        assert!(text.contains("fifo-caller pid 12 tid 13 CPU 1 SCHED_FIFO 95 nice 0"), "{text}");
        assert!(text.contains("server pid 11 tid 12 CPU 1 SCHED_OTHER 0 nice 0"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [40, 60, 80, 120] {
            let options = options(width);
            let all = comparison(&ipc::latency()).unwrap().text(&options)
                + &throughput(&ipc::throughput(), &options)
                + &hops(&ipc::latency(), &options);
            for line in all.lines() {
                assert!(Text::plain(line).width() <= width, "{width}: {line}");
            }
        }
    }
}
