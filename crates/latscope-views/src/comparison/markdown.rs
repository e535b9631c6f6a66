//! A comparison as Markdown, for issues and step summaries.

use super::figures::{Figure, figures, interval, is_telling, often, quantity, ratio, word};
use super::head;
use crate::markdown::escape;
use latscope_core::quality::Level;
use latscope_judge::compare::{Comparison, Point, Verdict};

/// Returns sides, differences, verdicts and the table of the points that differ; with `all` the table of every
/// point.
pub fn markdown(comparison: &Comparison, all: bool) -> String {
    let mut out = "## latscope compare\n\n".to_owned();
    let mut item = |text: &str| out += &format!("- {}\n", escape(text));
    item(&format!("A: {}", head::side(&comparison.a)));
    item(&format!("B: {}", head::side(&comparison.b)));
    head::differences(comparison).iter().for_each(|line| item(&format!("differs: {line}")));
    comparison.remarks.iter().for_each(|line| item(&format!("note: {line}")));
    head::verdicts(comparison).iter().for_each(|line| item(line));
    let finding = |point: &&Point| {
        let told = !matches!(point.verdict, Verdict::Same | Verdict::CannotTell);
        all || point.level == Level::Ok && (told || point.tails.iter().any(|tail| is_told(tail.verdict)))
    };
    let shown: Vec<&Point> = comparison.points.iter().filter(finding).collect();
    if !shown.is_empty() {
        out += "\n| point | figure | A | B | B/A | 95 % | verdict |\n|---|---|--:|--:|--:|---|---|\n";
    }
    for point in shown {
        let kept = |figure: &Figure| {
            let tail = figure.unit == "share" && figure.verdict.is_some_and(is_told);
            figure.name == "p50"
                || tail
                || point.p99.is_some() && is_telling(figure)
                || is_telling(figure) && figure.name != "max"
        };
        figures(point).iter().filter(|figure| kept(figure)).for_each(|figure| out += &row(point, figure));
    }
    let after: Vec<String> =
        head::would_tell(comparison).into_iter().chain(head::apart(comparison)).collect();
    if !after.is_empty() {
        out.push('\n');
    }
    after.iter().for_each(|line| out += &format!("- {}\n", escape(line)));
    out
}

fn is_told(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Same | Verdict::CannotTell)
}

fn row(point: &Point, figure: &Figure) -> String {
    let verdict = match (figure.verdict, figure.contrast) {
        (Some(verdict), Some(contrast)) if figure.unit == "share" => often(verdict, contrast),
        (Some(verdict), contrast) => word(verdict, contrast),
        (None, _) => "",
    };
    let mark = if point.level > Level::Ok && figure.verdict.is_some() { " (not to be trusted)" } else { "" };
    format!(
        "| {} | {} | {} | {} | {} | {} | {verdict}{mark} |\n",
        escape(&point.title),
        escape(&figure.name),
        quantity(figure.a, figure.unit),
        quantity(figure.b, figure.unit),
        ratio(figure.contrast),
        interval(figure.contrast)
    )
}
