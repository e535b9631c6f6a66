//! Sections of a report of transactions beside its rows: the transports beside each other, bytes by payload,
//! and the hops of the first calls.

use super::super::column::ColumnBuilder;
use super::super::document::{DocumentBlock, INDENTED, ListMarker, ViewDocument};
use super::super::style::WARNING;
use super::super::styled::Text;
use crate::figure;
use latscope_core::catalogue::RUN_ELAPSED;
use latscope_core::merged::is_merged;
use latscope_core::param;
use latscope_core::report::{Measurement, Report, Summary, TransactionHop};
use latscope_core::units::{format_count, format_rate, format_size, format_time};
use latscope_judge::transactions::{InheritanceVerdict, TransportMeasurements, label, mode, transports};

/// Number of transports from which on only their comparison is shown.
pub(super) const MANY: usize = 3;

/// The transports beside each other, where there are several.
pub(super) fn comparison(report: &Report) -> Option<ViewDocument> {
    let mut transports = transports(report);
    if transports.len() < 2 {
        return None;
    }
    let median = |transport: &TransportMeasurements| {
        transport.representative_point().and_then(|m| m.summary.p50).unwrap_or(f64::MAX)
    };
    transports.sort_by(|a, b| median(a).total_cmp(&median(b)));
    let rows = ColumnBuilder(&transports);
    let usual = |heading: &str, cell: fn(&Measurement) -> Option<String>| {
        rows.optional_column(heading, move |transport: &TransportMeasurements| {
            transport.representative_point().and_then(cell)
        })
    };
    let fifo = |heading: &str, of: fn(&Summary) -> Option<f64>| {
        let both =
            |t: &TransportMeasurements| t.fifo.filter(|_| t.other.is_some()).and_then(|m| of(&m.summary));
        rows.optional_column(heading, move |transport: &TransportMeasurements| {
            both(transport).map(format_time)
        })
    };
    let columns = vec![
        rows.left_aligned("transport", |t| Text::plain(t.name).append_text(degraded_mark(t))),
        usual("p50", |m| m.summary.p50.map(format_time)),
        usual("p99", |m| m.summary.p99.map(format_time)),
        usual("max", |m| m.summary.max.map(format_time)),
        usual("CPU", |m| m.values.get("cpu-time").map(|value| format_time(value.value))),
        usual("copies", |m| m.numeric_param(param::COPIES).map(|copies| copies.to_string())),
        rows.left_aligned("inherits", inheritance_text),
        fifo("fifo p50", |s| s.p50),
        fifo("fifo p99", |s| s.p99),
        fifo("fifo max", |s| s.max),
        rows.left_aligned("where, how", |t| t.representative_point().and_then(placement).unwrap_or_default()),
    ];
    let one_way = transports
        .iter()
        .filter_map(TransportMeasurements::representative_point)
        .any(|m| mode(m) == Some("one-way"));
    let times = if one_way { "From the caller's stamp to the server's" } else { "There and back" };
    let mut about = format!(
        "{times}, called by SCHED_OTHER, or by SCHED_FIFO where it says fifo. CPU: time of both processes for one \
         transaction. Copies: of the payload, one way. Inherits: the caller's real-time priority (RT), its nice value."
    );
    let free = |m: &Measurement| m.has_param_value(param::PLACEMENT, "free");
    if transports.iter().filter_map(TransportMeasurements::representative_point).any(free) {
        about += " Placement is free: where the scheduler puts the two weighs as much as what carries it; like is compared \
                  with like under --placement same-core or two-cores.";
    }
    if transports.iter().any(|transport| transport.refused.is_some()) {
        about += " SCHED_FIFO was refused: what ran as SCHED_OTHER instead is in no column of fifo.";
    }
    if transports.iter().any(is_degraded) {
        about += " !: degraded or unstable.";
    }
    Some(ViewDocument::of_table("Transports beside each other", columns, about))
}

fn placement(m: &Measurement) -> Option<String> {
    Some(format!("{}, {}", m.text_param(param::PLACEMENT)?, m.text_param(param::WAIT)?))
}

fn is_degraded(transport: &TransportMeasurements) -> bool {
    let shown = [transport.fifo, transport.representative_point()];
    shown.into_iter().flatten().any(|m| m.quality.level.is_doubtful())
}

fn degraded_mark(transport: &TransportMeasurements) -> Text {
    if is_degraded(transport) { Text::in_style(WARNING, " !") } else { Text::default() }
}

fn inheritance_text(transport: &TransportMeasurements) -> String {
    let judged = [("RT", transport.real_time()), ("nice", transport.nice())];
    if judged.iter().all(|(_, judged)| *judged == InheritanceVerdict::NotTried) {
        return "not tried".to_owned();
    }
    let passed: Vec<&str> = judged
        .iter()
        .filter(|(_, judged)| *judged == InheritanceVerdict::Pass)
        .map(|(what, _)| *what)
        .collect();
    if passed.is_empty() { "no".to_owned() } else { passed.join(", ") }
}

/// Returns time and bytes by payload, and a plot of it.
pub(super) fn throughput_document(report: &Report) -> Option<ViewDocument> {
    let rows: Vec<&Measurement> = report
        .measurements
        .iter()
        .filter(|m| mode(m) == Some("throughput") && is_merged(m) && m.summary.count > 0)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let several = rows.iter().any(|m| m.values.contains_key(RUN_ELAPSED));
    let rows = ColumnBuilder(&rows);
    let value = |m: &Measurement, name: &str| m.values.get(name).map(|value| value.value);
    let columns = vec![
        rows.left_aligned("transport", |m| label(m)),
        rows.optional_column("payload", |m| m.numeric_param(param::PAYLOAD).map(format_size)),
        rows.optional_column("time", |m| m.summary.mean.map(format_time)),
        rows.optional_column("CPU", |m| value(m, "cpu-time").map(format_time)),
        rows.right("iterations", |m| format_count(m.summary.count)),
        rows.optional_column("throughput", |m| value(m, "throughput").map(format_rate)),
        rows.optional_column("p50", |m| m.summary.p50.map(format_time)),
        rows.optional_column("p99", |m| m.summary.p99.map(format_time)),
    ];
    let time = if several { "time in which all pairs ran" } else { "sum of their times" };
    let about = format!(
        "Time: mean of a round trip by the clock; CPU: of both processes. Throughput = payload × iterations ÷ the \
         {time}: bytes of one direction a second; as many come back, verified."
    );
    let mut document = ViewDocument::of_table("Throughput", columns, about);
    if let Some(figure) = figure::throughput_figure(report) {
        document.add_block(DocumentBlock::Figure(figure));
    }
    Some(document)
}

/// Returns the participants in the first calls, hop by hop.
pub(super) fn hops(report: &Report) -> ViewDocument {
    let mut document = ViewDocument::default();
    for m in report.measurements.iter().filter(|m| !m.hops.is_empty()) {
        if document.is_empty() {
            document.add_heading(2, "First calls, hop by hop");
        }
        let whose = format!(
            "{}, {}, pair {}",
            m.probe,
            m.text_param(param::CALLER).unwrap_or_default(),
            pair_name(m)
        );
        document.items(INDENTED, [whose]);
        document.items(ListMarker { sign: "    ", ..INDENTED }, m.hops.iter().map(describe_hop));
    }
    document
}

fn pair_name(m: &Measurement) -> String {
    m.params.get(param::PAIR).map(ToString::to_string).unwrap_or_default()
}

/// `server pid 8674 tid 8676 CPU 0 SCHED_OTHER 0 nice 0`.
pub(in super::super) fn describe_hop(hop: &TransactionHop) -> String {
    let policy = match hop.policy {
        0 => "SCHED_OTHER".to_owned(),
        1 => "SCHED_FIFO".to_owned(),
        2 => "SCHED_RR".to_owned(),
        3 => "SCHED_BATCH".to_owned(),
        5 => "SCHED_IDLE".to_owned(),
        6 => "SCHED_DEADLINE".to_owned(),
        other => format!("policy {other}"),
    };
    let TransactionHop { role, pid, tid, cpu, priority, nice, .. } = hop;
    format!("{role} pid {pid} tid {tid} CPU {cpu} {policy} {priority} nice {nice}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DisplayOptions;
    use latscope_core::fixture::ipc;
    use latscope_core::quality::{POLICY_REFUSED, QualityLevel, Reason};

    fn options(width: usize) -> DisplayOptions<'static> {
        DisplayOptions { width, ..DisplayOptions::default() }
    }

    #[test]
    fn transports_are_compared_from_fast_to_slow() {
        let text = comparison(&ipc::latency()).unwrap().to_text(&options(140));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("copies") && lines[1].contains("inherits"), "{text}");
        assert!(lines[3].starts_with("binder") && lines[3].contains("nice"), "{text}");
        assert!(lines[4].starts_with("unix-stream") && lines[4].contains("no"), "{text}");
    }

    #[test]
    fn rows_that_were_refused_their_policy_are_in_no_column_of_it_and_mark_no_other() {
        let mut report = ipc::latency();
        assert!(comparison(&report).unwrap().to_text(&options(140)).contains("fifo p50"));
        for m in report.measurements.iter_mut().filter(|m| m.has_param_value(param::CALLER, "fifo")) {
            m.lower(Reason::new(QualityLevel::Degraded, POLICY_REFUSED, "ran as SCHED_OTHER", ""));
        }
        let text = comparison(&report).unwrap().to_text(&options(140));
        assert!(!text.contains("fifo p50") && !text.contains('!'), "{text}");
        assert!(text.contains("SCHED_FIFO was refused"), "{text}");
    }

    #[test]
    fn bytes_stand_by_payload_with_their_formula() {
        let text = throughput_document(&ipc::throughput()).unwrap().to_text(&options(100));
        assert!(text.contains("64 KiB") && text.contains("payload × iterations"), "{text}");
        assert!(text.contains("Time of a transaction by payload"), "{text}");
    }

    #[test]
    fn hops_are_told_in_full() {
        let text = hops(&ipc::latency()).to_text(&options(100));
        assert!(text.contains("fifo-caller pid 12 tid 13 CPU 1 SCHED_FIFO 95 nice 0"), "{text}");
        assert!(text.contains("server pid 11 tid 12 CPU 1 SCHED_OTHER 0 nice 0"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [40, 60, 80, 120] {
            let options = options(width);
            let all = comparison(&ipc::latency()).unwrap().to_text(&options)
                + &throughput_document(&ipc::throughput()).unwrap().to_text(&options)
                + &hops(&ipc::latency()).to_text(&options);
            for line in all.lines() {
                assert!(Text::plain(line).display_width() <= width, "{width}: {line}");
            }
        }
    }
}
