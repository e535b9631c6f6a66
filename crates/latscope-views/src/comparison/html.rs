//! A comparison as an HTML page.

use super::figures::{Figure, figures, interval, is_telling, often, quantity, ratio, word};
use super::head;
use crate::grid::Side;
use crate::html::{cell, details, document, list, ratio_strip, table};
use crate::markup::{Element, element};
use latscope_core::quality::Level;
use latscope_judge::compare::{Comparison, Point, Verdict};

/// The sides, in what they differ, what the verdicts are worth, what differs, then every point.
pub fn html(comparison: &Comparison) -> String {
    let paragraph = |text: String| element("p").text(text);
    let sides = [("A", &comparison.a), ("B", &comparison.b)];
    let sides = sides.map(|(name, side)| format!("{name}: {}", head::side(side)));
    let header = element("header")
        .child(element("h1").text("latscope compare"))
        .children(list(sides).map(|list| list.with("class", "facts")));
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
        false => differs.child(medians(&found)).child(legend(comparison)),
    };
    let all: Vec<&Point> = comparison.points.iter().collect();
    let every = element("section")
        .child(element("h2").text("Every point"))
        .child(details(&format!("Medians of all {} points", all.len()), medians(&all)))
        .children(tails(comparison))
        .children(beside(&all));
    document("latscope compare", [header, element("main").child(trust).child(differs).child(every)])
}

fn is_finding(point: &Point) -> bool {
    point.level == Level::Ok && !matches!(point.verdict, Verdict::Same | Verdict::CannotTell)
}

fn legend(comparison: &Comparison) -> Element {
    let same = latscope_core::units::format_share(comparison.margin);
    element("p").with("class", "legend").text(format!(
        "B/A: the dot is the ratio of the medians, the bar its 95 % interval. Log scale from half as long (left end) to \
         twice as long (right end); the grey band is ±{same}, within which both are the same."
    ))
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

/// How often runs reach the tails, where that was counted.
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

/// What families are about beside the median.
fn beside(points: &[&Point]) -> Option<Element> {
    let rows: Vec<Element> = points
        .iter()
        .flat_map(|point| figures(point).into_iter().filter(is_telling).map(|figure| row(point, &figure)))
        .collect();
    (!rows.is_empty()).then(|| details("Other figures, not tested", table(&FIGURES, rows)))
}
