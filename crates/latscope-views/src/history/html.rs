//! A history as an HTML page.

use super::words;
use crate::comparison::figures::{interval, quantity, ratio};
use crate::figure::{drawing, timeline_figure};
use crate::grid::Side;
use crate::html::{cell, details, document, list, ratio_legend, ratio_strip, table};
use crate::markup::{Element, element};
use latscope_core::units::format_share;
use latscope_judge::history::{Change, History, Machine, Moved, Point};

/// Number of pictures of a machine that are shown at once; the reader can open further ones.
const SHOWN: usize = 12;

/// Returns each machine with its changes, the facts that changed with them, a picture for each point that
/// changed, slow changes and odd runs. With `all` there is a picture for every point.
pub fn html(history: &History, all: bool) -> String {
    let header = element("header").child(element("h1").text("latscope history"));
    let remarks = list(history.remarks.iter().cloned()).map(|list| list.with("class", "bad"));
    let machines = history.machines.iter().map(|machine| section(history, machine, all));
    document("latscope history", [header.children(remarks), element("main").children(machines)])
}

fn section(history: &History, machine: &Machine, all: bool) -> Element {
    let mut section = element("section")
        .child(element("h2").text(words::machine(machine)))
        .children(list(words::changes(history, machine)));
    for change in &machine.changes {
        section = section.children(one(history, machine, change));
    }
    let [same, tails] = [history.margin, history.tail_margin].map(format_share);
    let same = format!("{same} (of how often tails are reached ±{tails})");
    let legend = (!machine.changes.is_empty()).then(|| ratio_legend("ratio", &same));
    section = section.children(legend);
    for (heading, texts) in [("Drifts", words::drifts(machine)), ("Odd runs", words::odd(machine))] {
        if let Some(list) = list(texts) {
            section = section.child(element("h3").text(heading)).child(list);
        }
    }
    section.children(pictures(machine, all))
}

const COLUMNS: [(&str, Side); 7] = [
    ("changed", Side::Left),
    ("figure", Side::Left),
    ("before", Side::Right),
    ("after", Side::Right),
    ("ratio", Side::Right),
    ("95 %", Side::Left),
    ("½× … 2×", Side::Left),
];

fn one(history: &History, machine: &Machine, change: &Change) -> [Element; 4] {
    let with = words::with(change);
    let with: Vec<String> = match with.is_empty() {
        true => vec![words::NOTHING_KNOWN.to_owned()],
        false => with.into_iter().map(|text| format!("with it: {text}")).collect(),
    };
    [
        element("h3").text(format!("Change {}", change.id)),
        element("p").text(words::place(machine, change)),
        element("ul").with("class", "doubt").children(with.into_iter().map(|text| element("li").text(text))),
        table(&COLUMNS, change.moved.iter().map(|moved| row(history, moved))),
    ]
}

fn row(history: &History, moved: &Moved) -> Element {
    let size = &moved.size;
    let class = if size.ratio > 1.0 { "bad" } else { "good" };
    let unit = words::unit(moved.figure);
    let margin = if unit == "share" { history.tail_margin } else { history.margin };
    let range = size.interval.map(|range| (range.low, range.high));
    let by = element("span").with("class", class).text(ratio(Some(size)));
    element("tr")
        .child(cell(&moved.title, Side::Left))
        .child(cell(words::figure(moved), Side::Left))
        .child(cell(quantity(Some(size.a), unit), Side::Right))
        .child(cell(quantity(Some(size.b), unit), Side::Right))
        .child(element("td").with("class", "n").child(by))
        .child(cell(interval(Some(size)), Side::Left))
        .child(element("td").child(ratio_strip(size.ratio, range, margin)))
}

/// The points that changed, in the order of the changes; with `all` every point.
fn pictures(machine: &Machine, all: bool) -> Vec<Element> {
    let mut points: Vec<&Point> = Vec::new();
    let moved = machine.changes.iter().flat_map(|change| &change.moved);
    let of_change = moved.filter_map(|moved| machine.points.iter().find(|point| point.id == moved.id));
    for point in of_change.chain(machine.points.iter().filter(|_| all)) {
        if !points.iter().any(|known| std::ptr::eq(*known, point)) {
            points.push(point);
        }
    }
    let figure = |point: &&Point| element("figure").child(drawing(&timeline_figure(machine, point)));
    let kept = points.len().min(SHOWN);
    let mut parts = Vec::new();
    if kept > 0 {
        parts.push(element("h3").text("Over the runs"));
    }
    parts.extend(points[..kept].iter().map(figure));
    if points.len() > kept {
        let more = element("div").children(points[kept..].iter().map(figure));
        parts.push(details(&format!("{} more", points.len() - kept), more));
    }
    parts
}
