//! This machine among published ones: a strip for each row with published figures.

use crate::cells::times_as_long;
use crate::markup::{Element, element};
use latscope_core::report::Report;
use latscope_core::units::format_time;
use latscope_judge::references::{Likeness, Reference, ReferenceComparison, ReferenceRowGroup, standings};

/// Size of a strip, pixels.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 24.0;

/// Number of published figures from which on a row has a strip.
const FEW: usize = 3;

/// Returns the section with the strips; `None` if no row has enough published figures.
pub(super) fn section(report: &Report, references: &[Reference]) -> Option<Element> {
    let groups: Vec<ReferenceRowGroup> = ReferenceRowGroup::for_report(report, references)
        .into_iter()
        .filter(|one| one.all.len() >= FEW)
        .collect();
    let heading = element("h2").with_text("Among published machines");
    let sentences = standings(&groups);
    let places = sentences.into_iter().map(|text| element("p").with_text(text));
    let rows = groups
        .iter()
        .flat_map(|group| [element("dt").with_text(&group.row), element("dd").child(strip(group))]);
    let legend = element("p").with_attr("class", "legend").with_text(LEGEND);
    let section = element("section").child(heading).children(places);
    (!groups.is_empty()).then(|| section.child(element("dl").children(rows)).child(legend))
}

const LEGEND: &str = "A strip for each row: the wide mark is this machine, each line a published figure, long where it is of the \
                      same operation, short and grey where its definition is another one (≠). Log scale of the ratio to \
                      this machine's figure of the same kind; faster machines are on the left.";

fn strip(group: &ReferenceRowGroup) -> Element {
    let octaves = group.all.iter().map(|one| one.ratio().log2().abs()).fold(1.0, f64::max);
    let at = |one: &ReferenceComparison| WIDTH / 2.0 + one.ratio().log2() / octaves * (WIDTH / 2.0 - 4.0);
    let middle = element("path").with_attr("d", format!("M{:.0} 0v{HEIGHT:.0}", WIDTH / 2.0));
    let middle = middle.with_attr("stroke", "#d55e00").with_attr("stroke-width", 5);
    let ticks = group.all.iter().map(|one| {
        let (line, colour) = match one.likeness {
            Likeness::Differs(_) => ("9v6", "#888"),
            _ => ("3v18", "#0072b2"),
        };
        let path =
            element("path").with_attr("d", format!("M{:.1} {line}", at(one))).with_attr("stroke", colour);
        element("g")
            .child(element("title").with_text(describe_reference(one)))
            .child(path.with_attr("stroke-width", 1.5))
    });
    element("svg")
        .with_attr("width", WIDTH)
        .with_attr("height", HEIGHT)
        .with_attr("viewBox", format!("0 0 {WIDTH} {HEIGHT}"))
        .with_attr("role", "img")
        .with_attr("aria-label", read_aloud(group))
        .child(element("title").with_text(read_aloud(group)))
        .child(middle)
        .children(ticks)
}

/// Returns a published figure in words.
fn describe_reference(one: &ReferenceComparison) -> String {
    let published = format_time(one.reference.ns);
    let end = match &one.likeness {
        Likeness::Differs(how) => format!("≠ {how}"),
        _ => format!("{} as long as here", times_as_long(one.ratio())),
    };
    format!("{}: {published}, {}; {end}", one.reference.machine, one.reference.format_definition())
}

/// Returns what a strip shows, for readers who do not see it.
fn read_aloud(group: &ReferenceRowGroup) -> String {
    let same: Vec<&ReferenceComparison> =
        group.all.iter().filter(|one| !matches!(one.likeness, Likeness::Differs(_))).collect();
    let faster = same.iter().filter(|one| one.ratio() < 1.0).count();
    let ends = match (same.first(), same.last()) {
        (Some(first), Some(last)) => format!(
            ", from {} ({}) to {} ({}); {faster} are faster than this machine",
            format_time(first.reference.ns),
            first.reference.machine,
            format_time(last.reference.ns),
            last.reference.machine
        ),
        _ => String::new(),
    };
    let others = group.all.len() - same.len();
    let others = if others == 0 { String::new() } else { format!("; {others} of another definition") };
    let here = same.first().or(group.all.first().as_ref()).map_or(String::new(), |one| format_time(one.here));
    format!(
        "{}: this machine {here}; {} published figures of the same operation{ends}{others}",
        group.row,
        same.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_judge::references::built_in;

    #[test]
    fn every_published_figure_is_a_tick_with_words() {
        let report = fixture::report();
        let text = section(&report, built_in()).unwrap().to_markup();
        let ticks: usize = ReferenceRowGroup::for_report(&report, built_in())
            .iter()
            .map(|one| one.all.len())
            .filter(|n| *n >= FEW)
            .sum();
        assert_eq!(text.matches("<g>").count(), ticks);
        assert!(text.contains("aria-label=\"core to core: this machine 7"), "{text}");
        assert!(text.contains("of 34 published machines") && text.contains("iPhone X"), "{text}");
        assert_eq!(section(&report, &[]), None);
    }

    #[test]
    fn a_strip_is_no_wider_than_a_narrow_screen() {
        let text = section(&fixture::report(), built_in()).unwrap().to_markup();
        let strips = text.matches("<svg ").count();
        assert_eq!(text.matches("viewBox=\"0 0 360 24\"").count(), strips, "it is scaled, not cut off");
        let style = include_str!("style.css");
        assert!(style.contains("dd svg { min-width: 0; }") && style.contains("svg { max-width: 100%;"));
    }
}
