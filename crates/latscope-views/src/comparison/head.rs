//! Text before and after the tables: the sides, their differences, how far the verdicts can be trusted, and the
//! points that are not compared.

use super::figures::format_verdict;
use crate::rows::family;
use latscope_core::quality::QualityLevel;
use latscope_core::units::{count_with_noun, format_share};
use latscope_judge::compare::environment::EnvironmentDifference;
use latscope_judge::compare::{
    ASSUMED_BETWEEN_RUNS, ComparisonPoint, ComparisonResult, ComparisonSide, ComparisonVerdict, Undecided,
    WouldTell,
};
use std::collections::BTreeMap;

/// Verdicts in the order of the text.
const VERDICTS: [ComparisonVerdict; 5] = [
    ComparisonVerdict::Slower,
    ComparisonVerdict::Faster,
    ComparisonVerdict::Differs,
    ComparisonVerdict::Same,
    ComparisonVerdict::CannotTell,
];

/// Returns a side in words: `9 runs of 8 rounds, 2026-11-22 14:38 to 14:45`.
pub(super) fn side(side: &ComparisonSide) -> String {
    let time = |text: &String| text.replace('T', " ").chars().take(16).collect::<String>();
    let [first, last] = side.started.each_ref().map(time);
    runs(side.runs, side.rounds, [&first, &last])
}

/// Returns runs in words, with their rounds and the times of the first and the last.
pub(crate) fn runs(runs: usize, rounds: [u32; 2], [first, last]: [&str; 2]) -> String {
    let rounds = match rounds {
        [one, other] if one == other => count_with_noun(one.into(), "round"),
        [fewest, most] => format!("{fewest} to {most} rounds"),
    };
    let until = if last.is_empty() || first == last { String::new() } else { format!(" to {last}") };
    let first = if first.is_empty() { "at an unknown time" } else { first };
    format!("{} of {rounds}, {first}{until}", count_with_noun(runs as u64, "run"))
}

/// Returns the side with its machines and programs.
pub(super) fn side_and_machine(one: &ComparisonSide) -> String {
    let machines = one.machines.iter().take(NAMED).chain(one.tools.iter().take(NAMED)).cloned();
    std::iter::once(side(one)).chain(machines).collect::<Vec<_>>().join(" · ")
}

/// Maximum number of values of a fact that are named.
const NAMED: usize = 4;

/// Returns the differences of the sides, a line each; the doctor's checks share a line.
pub(super) fn difference_lines(comparison: &ComparisonResult) -> Vec<String> {
    comparison.differences.iter().map(difference).collect()
}

/// Returns a fact in which sides differ: `kernel: 6.1 | 6.12`.
pub(crate) fn difference(one: &EnvironmentDifference) -> String {
    format!("{}: {} | {}", one.what, first_few(&one.a), first_few(&one.b))
}

fn first_few(values: &[String]) -> String {
    match values.len() {
        0 => "–".to_owned(),
        all if all > NAMED => format!("{} and {} more", values[..NAMED].join(", "), all - NAMED),
        _ => values.join(", "),
    }
}

/// Returns the number of points of each verdict, and how far the verdicts can be trusted.
pub(super) fn verdict_count_lines(comparison: &ComparisonResult) -> Vec<String> {
    let counts = &comparison.counts;
    let of = |verdict: ComparisonVerdict| counts.verdicts.get(&verdict).copied().unwrap_or(0);
    let said: Vec<String> =
        VERDICTS.iter().map(|verdict| format!("{} {}", of(*verdict), plural(*verdict))).collect();
    if counts.compared == 0 {
        let is_apart = comparison.points.is_empty() && comparison.refused.is_empty();
        let why = if is_apart {
            "the two sides have no point in common"
        } else {
            "no point that both sides have can be judged"
        };
        return vec![format!("Nothing was compared: {why}.")];
    }
    let wider = comparison.points.iter().map(|point| point.margin).fold(0.0, f64::max);
    let steps = match wider > comparison.margin {
        true => format!(", or the step of coarse figures (up to ±{})", format_share(wider)),
        false => String::new(),
    };
    let mut lines = vec![format!(
        "{} compared: {}. Same is within ±{}{steps}, with 95 % confidence.",
        count_with_noun(counts.compared as u64, "point"),
        said.join(", "),
        format_share(comparison.margin)
    )];
    let found = of(ComparisonVerdict::Slower) + of(ComparisonVerdict::Faster);
    if found > 0 {
        lines.push(format!(
            "Of the {found} slower or faster at most {} {} expected to be false (Benjamini-Hochberg over {} tests).",
            format_expected(counts.expected_false),
            if counts.expected_false > 1.0 { "are" } else { "is" },
            counts.tested
        ));
    }
    if of(ComparisonVerdict::Same) > 0 && comparison.a.runs.max(comparison.b.runs) == 1 {
        lines.push(format!(
            "With one run a side 'same' assumes that runs differ by {} more than their rounds show; that was not measured.",
            format_share(ASSUMED_BETWEEN_RUNS)
        ));
    }
    if of(ComparisonVerdict::Differs) > 0 && comparison.unlike.is_none() {
        lines.push(format!(
            "'Differs' says that these runs differ: with so few runs up to {} of the {} compared do by chance.",
            format_expected(0.05 * counts.compared as f64),
            counts.compared
        ));
    }
    lines
}

fn format_expected(number: f64) -> String {
    if number < 1.0 {
        format!("{number:.2}")
    } else if number < 10.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

fn plural(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Differs => "differ",
        other => format_verdict(other, false),
    }
}

/// Largest numbers of runs or rounds of the points that are counted together.
const UP_TO: [usize; 3] = [9, 20, 100];

/// Returns what could decide the undecided points: `60 with 9 runs a side`. The largest number is that of the answer of
/// a trial.
pub(super) fn would_tell(comparison: &ComparisonResult) -> Option<String> {
    let of = |wanted: fn(ComparisonVerdict) -> bool| {
        let points = comparison.points.iter().filter(move |point| point.level == QualityLevel::Ok);
        points.filter(move |point| wanted(point.verdict)).collect::<Vec<&ComparisonPoint>>()
    };
    if comparison.unlike.is_some() {
        let unknown = of(|verdict| verdict == ComparisonVerdict::CannotTell).len();
        let all = count_with_noun(comparison.counts.compared as u64, "point");
        return (unknown > 0)
            .then(|| format!("Undecided, because of what other processes used: {unknown} of {all}."));
    }
    let open = of(ComparisonVerdict::is_open);
    let verb = match open.len() {
        0 => return None,
        1 => "is undecided; what would decide it",
        _ => "are undecided; what would decide them",
    };
    let parts = advice(&open);
    Some(format!("{} of {} {verb}: {}.", open.len(), comparison.counts.compared, parts.join(", ")))
}

/// Returns the numbers of points with their advice, the most frequent first. Points that need about as many runs or
/// rounds are counted together, with the number of the one that needs the most.
fn advice(open: &[&ComparisonPoint]) -> Vec<String> {
    let mut groups: BTreeMap<(&str, usize), (usize, usize)> = BTreeMap::new();
    for point in open {
        let (text, number) = match point.would_tell {
            Some(WouldTell::Runs(runs)) => ("with {} runs a side", runs),
            Some(WouldTell::Rounds(rounds)) => ("with --rounds {}", rounds),
            None if point.beyond.is_some() => ("have a median beyond the last bin", 0),
            None if point.p50.is_none() => ("have a figure of 0", 0),
            None => match point.p50.as_ref().and_then(|p50| Undecided::from_contrast(p50, point.margin)) {
                Some(Undecided::TooWide) => ("scatter too far", 0),
                _ => ("are too near to the margin", 0),
            },
        };
        let group = UP_TO.into_iter().find(|most| number <= *most).unwrap_or(number);
        let (points, most) = groups.entry((text, group)).or_default();
        (*points, *most) = (*points + 1, number.max(*most));
    }
    let mut groups: Vec<(&str, usize, usize)> =
        groups.into_iter().map(|((text, _), (points, most))| (text, points, most)).collect();
    groups.sort_by_key(|(_, points, _)| std::cmp::Reverse(*points));
    let part = |(text, points, most): (&str, usize, usize)| {
        format!("{points} {}", conjugate_advice(&text.replace("{}", &most.to_string()), points))
    };
    groups.into_iter().map(part).collect()
}

fn conjugate_advice(advice: &str, points: usize) -> String {
    match advice.split_once(' ').filter(|_| points == 1) {
        Some(("are", rest)) => format!("is {rest}"),
        Some(("have", rest)) => format!("has {rest}"),
        Some(("scatter", rest)) => format!("scatters {rest}"),
        _ => advice.to_owned(),
    }
}

/// Returns the points that are judged apart or not compared at all, a line each.
pub(super) fn point_remarks(comparison: &ComparisonResult) -> Vec<String> {
    let mut lines = Vec::new();
    let marked: Vec<&ComparisonPoint> =
        comparison.points.iter().filter(|point| point.level > QualityLevel::Ok).collect();
    if !marked.is_empty() {
        let differ = marked.iter().filter(|point| {
            !matches!(point.verdict, ComparisonVerdict::Same | ComparisonVerdict::CannotTell)
        });
        lines.push(format!(
            "{} degraded or unstable in half of the runs of a side or more, and no finding; {} of these differ",
            count_with_noun(marked.len() as u64, "point"),
            differ.count()
        ));
    }
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    comparison.refused.iter().for_each(|one| *refused.entry(&one.why).or_insert(0) += 1);
    for (why, points) in refused {
        lines.push(format!("{} not compared: {why}", count_with_noun(points as u64, "point")));
    }
    for (name, lacking) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        if !lacking.is_empty() {
            lines.push(format!(
                "{} only in {name}: {}",
                count_with_noun(lacking.len() as u64, "point"),
                format_family_counts(lacking)
            ));
        }
    }
    lines
}

/// Returns the number of points of each family: `memory 10, file 2`.
fn format_family_counts(ids: &[String]) -> String {
    let mut by_family: BTreeMap<&str, usize> = BTreeMap::new();
    ids.iter().for_each(|id| *by_family.entry(family(id)).or_insert(0) += 1);
    let parts: Vec<String> = by_family.iter().map(|(family, points)| format!("{family} {points}")).collect();
    parts.join(", ")
}

/// Returns the sentence on the verdicts of the tails.
pub(super) fn tails(comparison: &ComparisonResult) -> String {
    let counts = &comparison.counts;
    let of = |verdict: ComparisonVerdict| counts.tail_verdicts.get(&verdict).copied().unwrap_or(0);
    format!(
        "{} compared by how often a run goes beyond the quantile of all samples: {} more often, {} less often, {} \
         differ, {} same within ±{}, {} cannot tell.",
        count_with_noun(counts.tails as u64, "tail"),
        of(ComparisonVerdict::Slower),
        of(ComparisonVerdict::Faster),
        of(ComparisonVerdict::Differs),
        of(ComparisonVerdict::Same),
        format_share(comparison.tail_margin),
        of(ComparisonVerdict::CannotTell)
    )
}
