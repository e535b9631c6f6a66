//! A comparison as an HTML page.

use super::figures::{Figure, figures, interval, is_telling, often, quantity, ratio, word};
use super::head;
use crate::figure::{drawing, overlay_figure, shift_figure};
use crate::grid::Side;
use crate::html::{cell, details, document, list, ratio_legend, ratio_strip, table};
use crate::markup::{Element, element};
use latscope_core::quality::Level;
use latscope_core::units::format_share;
use latscope_judge::compare::{Comparison, Point, Verdict};

/// Returns the page: the sides, their differences, how far the verdicts can be trusted, the points that differ,
/// then every point.
pub fn html(comparison: &Comparison) -> String {
    let header = element("header").child(element("h1").text("latscope compare")).children(sides(comparison));
    document("latscope compare", [header, element("main").children(body(comparison))])
}

/// The runs of both sides.
pub(crate) fn sides(comparison: &Comparison) -> Option<Element> {
    let sides = [("A", &comparison.a), ("B", &comparison.b)];
    let sides = sides.map(|(name, side)| format!("{name}: {}", head::side_and_machine(side)));
    list(sides).map(|list| list.with("class", "facts"))
}

/// All sections of a comparison.
pub(crate) fn body(comparison: &Comparison) -> Vec<Element> {
    let paragraph = |text: String| element("p").text(text);
    let against = head::differences(comparison).into_iter().map(|line| format!("The sides differ in {line}"));
    let against = list(against.chain(comparison.remarks.iter().cloned()));
    let trust = element("section")
        .child(element("h2").text("How far to trust it"))
        .children(against.map(|list| list.with("class", "bad")))
        .children(head::verdicts(comparison).into_iter().map(paragraph))
        .children(list(head::would_tell(comparison).into_iter().chain(head::apart(comparison))));
    let found: Vec<&Point> = comparison.points.iter().filter(|point| is_finding(point)).collect();
    let differs = element("section").child(element("h2").text("What differs"));
    let differs = match found.is_empty() {
        true => differs.child(paragraph("No point is slower, faster or differs.".to_owned())),
        false => differs.child(medians(&found)).child(ratio_legend("B/A", &format_share(comparison.margin))),
    };
    let all: Vec<&Point> = comparison.points.iter().collect();
    let every = element("section")
        .child(element("h2").text("Every point"))
        .child(details(&format!("Medians of all {} points", all.len()), medians(&all)))
        .children(tails(comparison))
        .children(beside(&all));
    [Some(trust), Some(differs), pictures(comparison), Some(every)].into_iter().flatten().collect()
}

fn pictures(comparison: &Comparison) -> Option<Element> {
    let figures = by_percentile(comparison);
    let heading = element("h2").text("Single events, by percentile");
    let drawn = figures.iter().map(|figure| element("figure").child(drawing(figure)));
    (!figures.is_empty()).then(|| element("section").child(heading).children(drawn))
}

/// Returns both sides at each percentile, and their ratio there, for single events; the points that differ come
/// first.
pub(crate) fn by_percentile(comparison: &Comparison) -> Vec<crate::figure::Figure> {
    let figures = comparison.quantiles.iter().filter_map(|quantiles| {
        let point = comparison.points.iter().find(|point| point.id == quantiles.id)?;
        let title = format!("{}: {}", point.title, word(point.verdict, point.p50.as_ref()));
        let sides = [("A", &comparison.a), ("B", &comparison.b)];
        let sides = sides.map(|(name, side)| format!("{name}: {}", head::side_and_machine(side)));
        let marked = (point.level != Level::Ok).then(|| format!("DOUBTFUL: {}", point.reasons.join("; ")));
        let notes: Vec<String> = sides.into_iter().chain(marked).collect();
        Some([
            overlay_figure(quantiles, &title, &notes),
            shift_figure(quantiles, &title, &notes, point.margin),
        ])
    });
    figures.flatten().collect()
}

fn is_finding(point: &Point) -> bool {
    point.level == Level::Ok && !matches!(point.verdict, Verdict::Same | Verdict::CannotTell)
}

const MEDIANS: [(&str, Side); 7] = [
    ("median of", Side::Left),
    ("A", Side::Right),
    ("B", Side::Right),
    ("B/A", Side::Right),
    ("95 %", Side::Left),
    ("½× … 2×", Side::Left),
    ("verdict", Side::Left),
];

fn medians(points: &[&Point]) -> Element {
    table(&MEDIANS, points.iter().map(|point| median(point)))
}

fn median(point: &Point) -> Element {
    let p50 = point.p50.as_ref();
    let strip = p50.map(|p50| {
        let range = p50.interval.map(|range| (range.low, range.high));
        ratio_strip(p50.ratio, range, point.margin)
    });
    let class = match point.verdict {
        Verdict::Slower => "bad",
        Verdict::Faster => "good",
        Verdict::Differs => "doubt",
        Verdict::Same | Verdict::CannotTell => "asked",
    };
    let marked = match point.level {
        Level::Ok => String::new(),
        _ => format!(" (not to be trusted: {})", point.reasons.join("; ")),
    };
    element("tr")
        .child(cell(&point.title, Side::Left))
        .child(cell(quantity(p50.map(|p50| p50.a), "ns"), Side::Right))
        .child(cell(quantity(p50.map(|p50| p50.b), "ns"), Side::Right))
        .child(cell(ratio(p50), Side::Right))
        .child(cell(interval(p50), Side::Left))
        .child(element("td").children(strip))
        .child(
            element("td")
                .child(element("span").with("class", class).text(word(point.verdict, p50)))
                .text(marked),
        )
}

const FIGURES: [(&str, Side); 6] = [
    ("figure of", Side::Left),
    ("", Side::Left),
    ("A", Side::Right),
    ("B", Side::Right),
    ("B/A", Side::Right),
    ("95 %", Side::Left),
];

fn row(point: &Point, figure: &Figure) -> Element {
    let verdict = figure.verdict.zip(figure.contrast).filter(|_| figure.unit == "share");
    let verdict = verdict.map(|(verdict, contrast)| format!(" {}", often(verdict, contrast)));
    element("tr")
        .child(cell(&point.title, Side::Left))
        .child(cell(
            format!("{}{}", figure.name, verdict.map(|word| format!(":{word}")).unwrap_or_default()),
            Side::Left,
        ))
        .child(cell(quantity(figure.a, figure.unit), Side::Right))
        .child(cell(quantity(figure.b, figure.unit), Side::Right))
        .child(cell(ratio(figure.contrast), Side::Right))
        .child(cell(interval(figure.contrast), Side::Left))
}

/// Returns how often runs reach the tails; empty if it was not counted.
fn tails(comparison: &Comparison) -> Vec<Element> {
    if comparison.counts.tails == 0 {
        return Vec::new();
    }
    let rows = comparison.points.iter().flat_map(|point| {
        let of = figures(point).into_iter().filter(|figure| figure.unit == "share");
        of.map(move |figure| row(point, &figure))
    });
    let text = element("p").text(head::tails(comparison));
    vec![text, details("All tails", table(&FIGURES, rows))]
}

/// Returns the figures beside the median that matter in each family.
fn beside(points: &[&Point]) -> Option<Element> {
    let rows: Vec<Element> = points
        .iter()
        .flat_map(|point| figures(point).into_iter().filter(is_telling).map(|figure| row(point, &figure)))
        .collect();
    (!rows.is_empty()).then(|| details("Other figures, not tested", table(&FIGURES, rows)))
}
