//! The pictures of the page: those of the files, and what took the time of the longest events.

use crate::figure::{self, Figure, drawing};
use crate::markup::{Element, element};
use latscope_core::events::Group;
use latscope_core::report::Report;

/// The pictures of a family as a whole.
pub(super) fn pictures(report: &Report, family: &str) -> Vec<Element> {
    let figures: Vec<Option<Figure>> = match family {
        "memory" => vec![figure::latency_figure(report), figure::bandwidth_figure(report)],
        "ipc" => vec![figure::throughput_figure(report)],
        _ => Vec::new(),
    };
    figures.iter().flatten().map(framed).collect()
}

/// The pictures of the events of a probe.
pub(super) fn of_events(report: &Report, group: &Group) -> Vec<Element> {
    let figures = [figure::distribution_figure(report, group), figure::percentile_figure(report, group)];
    figures.iter().flatten().map(framed).collect()
}

fn framed(figure: &Figure) -> Element {
    element("figure").child(drawing(figure))
}
