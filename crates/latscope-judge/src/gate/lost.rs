//! What the baseline has and the judged runs lack: points, sound points, good settings of the machine.

use super::{GateCheck, Unjudged};
use crate::compare::ComparisonResult;
use crate::runs::{RunResult, point_id};
use crate::titles::title_or_id;
use latscope_core::machine::CheckState;
use latscope_core::quality::QualityLevel;
use latscope_core::report::Measurement;
use latscope_core::units::count_with_noun;
use std::collections::{BTreeMap, BTreeSet};

/// Fewest runs of each side.
pub const FEWEST: usize = 5;

/// An inconclusive check of the two sides as a whole.
pub(super) fn of_sides(what: &str, text: String) -> GateCheck {
    GateCheck {
        id: format!("baseline {what}"),
        title: "baseline".to_owned(),
        metric: what.to_owned(),
        text,
        ..GateCheck::default()
    }
}

/// Losses, each a check, and the points that only the judged runs have.
pub(super) struct BaselineLosses {
    pub checks: Vec<GateCheck>,
    pub unjudged: Vec<Unjudged>,
}

/// Returns what the runs B lost against A. A loss is in every run: what comes and goes is chance.
pub(super) fn find_losses(a: &[&RunResult], b: &[&RunResult], compared: &ComparisonResult) -> BaselineLosses {
    let (of_a, of_b) = (points_by_id(a), points_by_id(b));
    // A result of several runs has a point once.
    let [all_a, all_b] = [a, b].map(|side| side.len().min(FEWEST));
    let vanished = of_a
        .iter()
        .filter(|(id, seen)| seen.len() >= all_a && of_b.get(*id).is_none_or(|seen| seen.len() < all_b));
    let mut checks = Vec::new();
    let text = format!("measured in fewer than {FEWEST} of these runs, and in all of the baseline");
    checks.extend(of_many("vanished", vanished.map(|(id, seen)| (id.clone(), seen[0])).collect(), &text));
    let changed = compared
        .refused
        .iter()
        .filter_map(|refused| Some((refused.id.clone(), *of_a.get(&refused.id)?.first()?)));
    let why: BTreeSet<&str> = compared.refused.iter().map(|refused| refused.why.as_str()).collect();
    let text = format!("not the same work: {}", why.into_iter().collect::<Vec<_>>().join("; "));
    checks.extend(of_many("changed", changed.collect(), &text));
    let degraded = of_a.iter().filter_map(|(id, seen)| {
        let now = of_b.get(id).filter(|now| now.len() >= all_b && seen.len() >= all_a)?;
        let is_lost = seen.iter().all(|m| is_sound(m)) && !now.iter().any(|m| is_sound(m));
        is_lost.then(|| (id.clone(), now[0]))
    });
    let degraded: Vec<(String, &Measurement)> = degraded.collect();
    let reasons: BTreeSet<&str> =
        degraded.iter().flat_map(|(_, m)| &m.quality.reasons).map(|reason| reason.id.as_str()).collect();
    let reasons = reasons.into_iter().collect::<Vec<_>>().join(", ");
    checks.extend(of_many(
        "degraded",
        degraded,
        &format!("in every run, and in none of the baseline ({reasons})"),
    ));
    checks.extend(settings(a, b));
    let new = of_b.iter().filter(|(id, _)| !of_a.contains_key(*id)).map(|(id, seen)| Unjudged {
        id: id.clone(),
        title: title_or_id(seen[0]),
        why: "not in the baseline".to_owned(),
    });
    BaselineLosses { checks, unjudged: new.collect() }
}

fn is_sound(m: &Measurement) -> bool {
    m.quality.level == QualityLevel::Ok && m.summary.count > 0
}

/// The measurements of each point, by its id.
pub(super) fn points_by_id<'a>(runs: &[&'a RunResult]) -> BTreeMap<String, Vec<&'a Measurement>> {
    let mut found: BTreeMap<String, Vec<&Measurement>> = BTreeMap::new();
    for m in runs.iter().flat_map(|run| &run.report.measurements) {
        found.entry(point_id(&m.probe, &m.params)).or_default().push(m);
    }
    found
}

/// Number of points that a check names.
const NAMED: usize = 3;

/// An inconclusive check of several points with one fate; `None` of no point.
fn of_many(what: &str, points: Vec<(String, &Measurement)>, text: &str) -> Option<GateCheck> {
    let titles: Vec<String> = points.iter().take(NAMED).map(|(_, m)| title_or_id(m)).collect();
    let more = points.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let text = format!(
        "{} {what}: {text}: {}{more}",
        count_with_noun(points.len() as u64, "point"),
        titles.join("; ")
    );
    let check =
        || GateCheck { points: points.iter().map(|(id, _)| id.clone()).collect(), ..of_sides(what, text) };
    (!points.is_empty()).then(check)
}

/// A check for each setting of the machine that is worse in every judged run than in any run of the baseline.
fn settings(a: &[&RunResult], b: &[&RunResult]) -> Vec<GateCheck> {
    let [of_a, of_b] = [a, b].map(|runs| {
        let mut found: BTreeMap<&str, Vec<(CheckState, &str)>> = BTreeMap::new();
        for check in runs.iter().flat_map(|run| &run.report.machine.checks) {
            found.entry(&check.id).or_default().push((check.state, &check.found));
        }
        found
    });
    let worse = of_b.into_iter().filter_map(|(id, now)| {
        let before = of_a.get(id).filter(|before| before.len() == a.len() && now.len() == b.len())?;
        let worst = before
            .iter()
            .map(|(state, _)| severity(*state))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max()?;
        let best =
            now.iter().map(|(state, _)| severity(*state)).collect::<Option<Vec<_>>>()?.into_iter().min()?;
        let text =
            format!("the doctor's check {id} is worse in every run: {}, and was {}", now[0].1, before[0].1);
        (best > worst).then(|| of_sides(&format!("doctor {id}"), text))
    });
    worse.collect()
}

/// Order of the states that are known.
fn severity(state: CheckState) -> Option<u8> {
    match state {
        CheckState::Good => Some(0),
        CheckState::Note => Some(1),
        CheckState::Bad => Some(2),
        CheckState::Unknown => None,
    }
}
