//! Groups the changes of many figures at one place in time into one change, with the facts that changed there.

use super::archive::{Archive, ArchiveWork};
use super::found::{
    Change, ChangedFact, Drift, HistoryFigureKind, HistoryRun, MachineHistory, Moved, NamedArchiveRun, Odd,
    PointHistory, Smaller, name_of,
};
use super::series::{ChangePointAnalysis, FigureSeries, PointSeries};
use super::steps::{Steps, plausible_range, stretches};
use super::{ComparisonOptions, SHORTEST};
use crate::compare::contrast::contrast_with_test;
use crate::compare::environment::{EnvironmentDifference, OTHERS, TOOL, unlike_shares};
use latscope_core::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

/// The history of a machine from its series.
pub(super) fn assemble_history(
    archive: &Archive,
    runs: &[NamedArchiveRun],
    series: &[PointSeries],
    judged: ChangePointAnalysis,
    options: &ComparisonOptions,
) -> MachineHistory {
    let shown: Vec<HistoryRun> = runs.iter().map(history_run).collect();
    let id = runs.first().map(|run| run.entry.machine.clone()).unwrap_or_default();
    let work = |line: &FigureSeries| &archive.works[series[line.series].work];
    let mut moved = Vec::new();
    let mut smaller = Vec::new();
    for (line, steps) in &judged.lines {
        smaller.extend(steps.small.iter().map(|(at, size)| unreported(line, *at, size.exp(), work(line))));
        for placed in sizes(line, &steps.steps, work(line), options) {
            match placed {
                Ok(placed) => moved.push(placed),
                Err(unsure) => smaller.push(unsure),
            }
        }
    }
    smaller.sort_by_key(|one| one.run);
    let mut changes: Vec<Change> = Vec::new();
    for (place, figures) in group_changes(moved) {
        let within = common_range(place, &figures);
        changes.push(Change {
            id: name_of(&shown[place], &id),
            run: place,
            last: shown[place - 1].clone(),
            first: shown[place].clone(),
            moved: figures.into_iter().map(|figure| figure.moved).collect(),
            within,
            with: changed_with(archive, runs, place, within),
            unlike: if options.accept_busy { None } else { unlike(archive, runs, place) },
        });
    }
    let too_few = judged.lines.iter().filter(|(line, _)| line.values.len() < SHORTEST).count();
    MachineHistory {
        hosts: runs.iter().map(|run| run.entry.host.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
        tools: tools(archive, runs),
        drifts: judged.lines.iter().flat_map(|(line, steps)| drifts(line, steps, work(line))).collect(),
        odd: odd(&judged, work),
        points: points(archive, series, &judged, &changes),
        judged: judged.lines.len() - too_few,
        judged_points: points_judged(&judged),
        too_few,
        tests: judged.tests,
        small: smaller.len(),
        smaller,
        marked: series.iter().flat_map(|one| &one.figures).filter(|(_, figures)| !figures.trusted).count(),
        id,
        runs: shown,
        changes,
    }
}

/// Number of points of which a figure is judged.
fn points_judged(judged: &ChangePointAnalysis) -> usize {
    let lines = judged.lines.iter().filter(|(line, _)| line.values.len() >= SHORTEST);
    lines.map(|(line, _)| line.series).collect::<BTreeSet<usize>>().len()
}

/// Programs that measured the runs, each once.
fn tools(archive: &Archive, runs: &[NamedArchiveRun]) -> Vec<String> {
    let facts = runs.iter().flat_map(|run| &run.entry.facts).filter_map(|at| archive.facts.get(*at as usize));
    let tools: BTreeSet<&String> = facts.filter(|(name, _)| name == TOOL).map(|(_, tool)| tool).collect();
    tools.into_iter().cloned().collect()
}

fn history_run(run: &NamedArchiveRun) -> HistoryRun {
    HistoryRun {
        name: run.name.to_owned(),
        run_id: run.entry.run_id.clone(),
        started: run.entry.started.clone(),
        complete: run.entry.complete,
    }
}

/// Largest number of nearest runs of each side for a size.
const NEAREST: usize = 32;

/// A change that is not reported: `at` is its place in the line.
fn unreported(line: &FigureSeries, at: usize, ratio: f64, work: &ArchiveWork) -> Smaller {
    let (id, title) = (work.id.clone(), work.title.clone());
    Smaller { id, title, figure: line.figure, run: line.places[at], ratio }
}

/// The sizes of the steps of a line; of those that may be of either direction only the ratio.
fn sizes(
    line: &FigureSeries,
    steps: &[usize],
    work: &ArchiveWork,
    options: &ComparisonOptions,
) -> Vec<Result<Placed, Smaller>> {
    let stretches = stretches(steps, line.values.len());
    let moved = stretches.windows(2).filter_map(|pair| {
        let ((from, at), (_, end)) = (pair[0], pair[1]);
        let [before, after] = [from.max(at.saturating_sub(NEAREST))..at, at..end.min(at + NEAREST)]
            .map(|places| line.values[places].iter().map(|value| vec![value.exp()]).collect());
        let size = contrast_with_test(&before, &after, 0.0, options.seed, |_, _| None)?;
        let sure = size.interval.is_some_and(|range| range.low > 1.0 || range.high < 1.0);
        let (first, last) = plausible_range(&line.values[from..end], at - from);
        let moved = Moved {
            id: work.id.clone(),
            probe: work.probe.clone(),
            title: work.title.clone(),
            figure: line.figure,
            beyond: line.beyond,
            run: line.places[at],
            size,
        };
        Some(if sure {
            Ok(Placed { moved, at: [line.places[from + first], line.places[from + last]] })
        } else {
            Err(unreported(line, at, moved.size.ratio, work))
        })
    });
    moved.collect()
}

/// A figure that changed, with the first and last run at which it may have.
struct Placed {
    moved: Moved,
    at: [usize; 2],
}

impl Placed {
    /// Returns true if the change may be that at `place`: it is at most one run apart, or fits nearly as well there.
    fn may_be_at(&self, place: usize) -> bool {
        self.moved.run.abs_diff(place) <= 1 || (self.at[0]..=self.at[1]).contains(&place)
    }
}

/// The figures that changed, by place: each is at the place of most figures at which it may have changed.
fn group_changes(mut moved: Vec<Placed>) -> BTreeMap<usize, Vec<Placed>> {
    let mut figures_at: BTreeMap<usize, usize> = BTreeMap::new();
    for figure in &moved {
        *figures_at.entry(figure.moved.run).or_insert(0) += 1;
    }
    // The place of most figures is the best known one; the earlier of two alike.
    let mut places: Vec<(usize, usize)> = figures_at.into_iter().collect();
    places.sort_by_key(|(place, figures)| (std::cmp::Reverse(*figures), *place));
    moved.sort_by(|a, b| {
        let [a, b] = [a, b].map(|figure| figure.moved.size.ratio.ln().abs());
        b.total_cmp(&a)
    });
    let mut groups: BTreeMap<usize, Vec<Placed>> = BTreeMap::new();
    for (place, _) in places {
        // Those that are left at this place were not taken by one with more figures.
        if moved.iter().any(|figure| figure.moved.run == place) {
            let (here, others): (Vec<Placed>, _) =
                moved.into_iter().partition(|figure| figure.may_be_at(place));
            moved = others;
            groups.insert(place, here);
        }
    }
    groups
}

/// The runs at which each of these figures may have changed, around the place of most of them.
fn common_range(place: usize, figures: &[Placed]) -> [usize; 2] {
    let first = figures.iter().map(|figure| figure.at[0].min(place)).max();
    let last = figures.iter().map(|figure| figure.at[1].max(place)).min();
    [first.unwrap_or(place), last.unwrap_or(place)]
}

/// Number of runs of each side whose facts are compared.
const FACTS_OF: usize = 8;

/// Facts that name the machine.
const SAME: [&str; 2] = ["machine", "host"];

/// The facts in which most of the nearest runs before and after a place differ, and that changed within these runs.
fn changed_with(
    archive: &Archive,
    runs: &[NamedArchiveRun],
    place: usize,
    within: [usize; 2],
) -> Vec<ChangedFact> {
    let before = usual_values(archive, &runs[place.saturating_sub(FACTS_OF)..place]);
    let after = usual_values(archive, &runs[place..runs.len().min(place + FACTS_OF)]);
    let names: BTreeSet<&(usize, &str)> = before.keys().chain(after.keys()).collect();
    let differences = names.into_iter().filter(|name| !SAME.contains(&name.1)).filter_map(|name| {
        let [a, b] = [&before, &after].map(|side| side.get(name).map(|value| (*value).to_owned()));
        EnvironmentDifference::between(name.1, a.into_iter().collect(), b.into_iter().collect())
    });
    let mut changed = Vec::new();
    for difference in differences {
        let run = place_of(archive, runs, &difference, place);
        if (within[0]..=within[1]).contains(&run) {
            changed.push(ChangedFact { difference, run });
        }
    }
    changed
}

/// The first run with the new value of a fact: the place nearest to `near` that leaves the fewest runs on the wrong
/// side.
fn place_of(archive: &Archive, runs: &[NamedArchiveRun], fact: &EnvironmentDifference, near: usize) -> usize {
    let [from, end] = [near.saturating_sub(FACTS_OF), runs.len().min(near + FACTS_OF)];
    let value = |run: &NamedArchiveRun| {
        let mut facts = run.entry.facts.iter().filter_map(|at| archive.facts.get(*at as usize));
        facts.find(|(name, _)| *name == fact.what).map(|(_, value)| value)
    };
    let [mut is_old, mut is_new] = [Vec::new(), Vec::new()];
    for run in &runs[from..end] {
        is_old.push(value(run) == fact.a.first());
        is_new.push(value(run) == fact.b.first());
    }
    let wrong = |at: usize| {
        let (before, after) = (&is_new[..at - from], &is_old[at - from..]);
        before.iter().chain(after).filter(|wrong| **wrong).count()
    };
    (from + 1..end).min_by_key(|at| (wrong(*at), at.abs_diff(near))).unwrap_or(near)
}

/// Returns a reason if other processes used far more of the CPUs on one side of a place, by the facts of the nearest
/// runs.
fn unlike(archive: &Archive, runs: &[NamedArchiveRun], place: usize) -> Option<String> {
    let sides = [place.saturating_sub(FACTS_OF)..place, place..runs.len().min(place + FACTS_OF)];
    let [before, after] = sides.map(|places| {
        median(&runs[places].iter().filter_map(|run| share_of_others(archive, run)).collect::<Vec<f64>>())
    });
    unlike_shares(before?, after?, ["the runs before", "the runs after"])
}

/// Share of the CPUs that other processes used, by the facts of a run.
fn share_of_others(archive: &Archive, run: &NamedArchiveRun) -> Option<f64> {
    let mut facts = run.entry.facts.iter().filter_map(|at| archive.facts.get(*at as usize));
    let (_, text) = facts.find(|(name, _)| name == OTHERS)?;
    // `about 60 % of the CPUs`; what is less than 5 % is none.
    let number = text.strip_prefix("about ").and_then(|rest| rest.split(' ').next());
    Some(number.and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 100.0)
}

/// Usual value of each fact, by weight and name: the value of more than half of the runs that have the fact.
fn usual_values<'a>(archive: &'a Archive, runs: &[NamedArchiveRun]) -> BTreeMap<(usize, &'a str), &'a str> {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let all = runs.iter().flat_map(|run| &run.entry.facts);
    for (name, value) in all.filter_map(|at| archive.facts.get(*at as usize)) {
        *counts.entry(name).or_default().entry(value).or_insert(0) += 1;
    }
    let usual = counts.into_iter().filter_map(|(name, values)| {
        let all: usize = values.values().sum();
        let (value, _) = values.into_iter().find(|(_, runs)| 2 * runs > all)?;
        Some(((weight(name), name), value))
    });
    usual.collect()
}

/// Order in which facts are printed: settings, then labels of the user, then checks.
fn weight(name: &str) -> usize {
    const FIRST: [&str; 5] = ["kernel", "microcode", "command line", "tool", "load"];
    let rest = if name.starts_with("doctor") { FIRST.len() + 1 } else { FIRST.len() };
    FIRST.iter().position(|first| *first == name).unwrap_or(rest)
}

fn drifts(line: &FigureSeries, steps: &Steps, work: &ArchiveWork) -> Vec<Drift> {
    let drifts = steps.drifts.iter().map(|(first, last)| {
        let values = &line.values[*first..=*last];
        let quarter = values.len().div_ceil(4);
        let [from, to] = [&values[..quarter], &values[values.len() - quarter..]]
            .map(|values| median(values).unwrap_or(0.0).exp());
        Drift {
            id: work.id.clone(),
            title: work.title.clone(),
            figure: line.figure,
            runs: [line.places[*first], line.places[*last]],
            from,
            to,
        }
    });
    drifts.collect()
}

/// Number of deviations from which on a run is odd, by the number of its odd medians beside the other runs.
const ODD: f64 = 6.0;

/// Runs that have more odd medians than the others, those with most first. Among many medians of every run some are
/// far from those around.
fn odd<'a>(judged: &ChangePointAnalysis, work: impl Fn(&FigureSeries) -> &'a ArchiveWork) -> Vec<Odd> {
    let mut runs: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut of: BTreeMap<usize, usize> = BTreeMap::new();
    for (line, steps) in judged.lines.iter().filter(|(line, _)| line.figure == HistoryFigureKind::P50) {
        for run in &line.places {
            *of.entry(*run).or_insert(0) += 1;
        }
        for at in &steps.odd {
            runs.entry(line.places[*at]).or_default().push(work(line).id.clone());
        }
    }
    let all: usize = runs.values().map(Vec::len).sum();
    let mut odd = Vec::new();
    for (run, points) in runs {
        let of_others = (all - points.len()) as f64 / of.len().saturating_sub(1).max(1) as f64;
        if points.len() as f64 > of_others + ODD * of_others.sqrt() {
            odd.push(Odd { run, points, of: of.get(&run).copied().unwrap_or(0) });
        }
    }
    odd.sort_by_key(|odd| (std::cmp::Reverse(odd.points.len()), odd.run));
    odd
}

fn points(
    archive: &Archive,
    series: &[PointSeries],
    judged: &ChangePointAnalysis,
    changes: &[Change],
) -> Vec<PointHistory> {
    let mut places: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let reported: BTreeSet<(&str, usize)> = changes
        .iter()
        .flat_map(|change| &change.moved)
        .filter(|moved| moved.figure == HistoryFigureKind::P50)
        .map(|moved| (moved.id.as_str(), moved.run))
        .collect();
    for (line, steps) in judged.lines.iter().filter(|(line, _)| line.figure == HistoryFigureKind::P50) {
        let id = archive.works[series[line.series].work].id.as_str();
        let runs = steps.steps.iter().map(|at| line.places[*at]).filter(|run| reported.contains(&(id, *run)));
        places.insert(line.series, runs.collect());
    }
    let points = series.iter().enumerate().map(|(at, series)| {
        let work = &archive.works[series.work];
        let p99 = series.figures.iter().map(|(_, figures)| figures.p99);
        PointHistory {
            id: work.id.clone(),
            probe: work.probe.clone(),
            title: work.title.clone(),
            revision: work.revision,
            runs: series.figures.iter().map(|(run, _)| *run).collect(),
            p50: series.figures.iter().map(|(_, figures)| figures.p50).collect(),
            p99: if work.events { p99.collect() } else { Vec::new() },
            trusted: series.figures.iter().map(|(_, figures)| figures.trusted).collect(),
            changes: places.remove(&at).unwrap_or_default(),
        }
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The odd runs of 40 where line after line is odd in the runs that are given for it.
    fn odd_runs(lines: &[&[usize]]) -> Vec<usize> {
        let work = ArchiveWork {
            id: "cpu.add".to_owned(),
            probe: "cpu.add".to_owned(),
            title: String::new(),
            revision: 1,
            timed: latscope_core::report::Semantics::Operation,
            batch_ns: None,
            events: false,
            pairs: None,
        };
        let line = |odd: &&[usize]| {
            let (places, values) = ((0..40).collect(), vec![0.0; 40]);
            let line = FigureSeries {
                series: 0,
                figure: HistoryFigureKind::P50,
                beyond: None,
                places,
                values,
                margin: 0.05,
            };
            (line, Steps { odd: odd.to_vec(), ..Steps::default() })
        };
        let judged = ChangePointAnalysis { lines: lines.iter().map(line).collect(), tests: 0 };
        odd(&judged, |_| &work).iter().map(|odd| odd.run).collect()
    }

    #[test]
    fn a_run_is_odd_that_has_more_odd_medians_than_the_others() {
        assert_eq!(odd_runs(&[&[11]]), [11]);
        assert_eq!(odd_runs(&[&[11], &[11, 30], &[30]]), [11, 30]);
        // Every run has odd medians among many: that is no news.
        let usual: Vec<[usize; 2]> = (0..100).map(|at| [at % 40, (at * 7 + 3) % 40]).collect();
        let usual: Vec<&[usize]> = usual.iter().map(|odd| &odd[..]).collect();
        assert_eq!(odd_runs(&usual), [0usize; 0]);
        let more = [&usual[..], &[&[17usize][..]; 20]].concat();
        assert_eq!(odd_runs(&more), [17]);
        assert_eq!(odd_runs(&[]), [0usize; 0]);
    }
}
