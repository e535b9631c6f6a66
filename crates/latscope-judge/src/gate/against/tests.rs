use crate::gate::tests::{read, run, side};
use crate::gate::*;
use crate::imports::read_run;
use latscope_core::machine::{CheckState, DoctorCheck as Setting};
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::Report;
use serde_json::json;

type NamedRunList = Vec<(String, RunResult)>;

/// Runs with their reports changed.
fn changed(runs: NamedRunList, mut change: impl FnMut(usize, &mut Report)) -> NamedRunList {
    let each = runs.into_iter().enumerate().map(|(at, (_, mut run))| {
        change(at, &mut run.report);
        self::run(run.report)
    });
    each.collect()
}

fn judged(baseline: &NamedRunList, runs: &NamedRunList) -> GateResult {
    against(baseline, runs, Accepted::default())
}

/// The checks that do not pass, as sentences.
fn failed(gate: &GateResult) -> Vec<String> {
    gate.checks.iter().filter(|check| check.status != VerdictStatus::Pass).map(GateCheck::sentence).collect()
}

#[test]
fn five_runs_a_side_show_what_is_slower_and_by_how_much_it_has_to_be() {
    let same = judged(&side(5, 1.0), &side(5, 1.001));
    assert_eq!((same.status, failed(&same)), (VerdictStatus::Pass, Vec::new()));
    // A maximum has to be twice as large, and a median beyond eight deviations.
    for check in &same.checks {
        let least = if check.metric == "max" { 2.0..f64::MAX } else { 1.1..1.3 };
        assert!(check.is_alone && least.contains(&check.allowed), "{check:?}");
    }
    let slower = judged(&side(5, 1.0), &side(5, 1.4));
    assert_eq!(slower.status, VerdictStatus::Exceeded);
    let medians = || slower.checks.iter().filter(|check| check.metric == "p50");
    assert!(medians().count() > 3 && medians().all(|check| check.status == VerdictStatus::Exceeded));
    // Nothing is said of what is faster.
    assert_eq!(judged(&side(5, 1.0), &side(5, 0.6)).status, VerdictStatus::Pass);
    // A slowdown that is smaller than the margin and eight deviations is none.
    assert_eq!(judged(&side(9, 1.0), &side(9, 1.08)).status, VerdictStatus::Pass);
}

#[test]
fn fewer_runs_cannot_tell_and_say_how_many_are_missing() {
    let gate = judged(&side(4, 1.0), &side(3, 1.4));
    let said = "baseline: cannot tell: 5 runs a side are needed, and 1 run of the baseline and 2 runs to be judged are \
                missing";
    assert_eq!((gate.status, failed(&gate)), (VerdictStatus::Inconclusive, vec![said.to_owned()]));
    assert_eq!(gate.checks.len(), 1);
    let one = failed(&judged(&side(5, 1.0), &side(4, 1.4))).remove(0);
    assert!(one.ends_with("needed, and 1 run to be judged is missing"), "{one}");
}

#[test]
fn another_machine_is_not_judged_unless_it_is_accepted() {
    let named = |id: &str, host: &str| {
        changed(side(5, 1.0), |_, report| {
            (report.machine.id, report.machine.name) = (Some(id.to_owned()), host.to_owned());
        })
    };
    let (here, there) = (named("1a", "board"), named("2b", "board"));
    let gate = judged(&here, &there);
    assert_eq!((gate.status, gate.checks.len()), (VerdictStatus::Inconclusive, 1));
    assert!(failed(&gate)[0].contains("the baseline is of another machine (machine differs)"), "{gate:?}");
    let accepted = Accepted { machine: true, ..Accepted::default() };
    let there = changed(there, |at, report| report.run_id = format!("there-{at}"));
    assert_eq!(against(&here, &there, accepted).status, VerdictStatus::Pass);
    // Another name of the same machine is the same machine.
    assert_eq!(judged(&here, &named("1a", "renamed")).status, VerdictStatus::Pass);
}

#[test]
fn what_vanishes_or_degrades_in_every_run_has_a_line_of_its_own() {
    let is_lost = |gate: &GateResult, what: &str, said: &str| {
        let check =
            gate.checks.iter().find(|check| check.metric == what).unwrap_or_else(|| panic!("{gate:?}"));
        assert_eq!(
            (gate.status, check.status, check.points.len()),
            (VerdictStatus::Inconclusive, VerdictStatus::Inconclusive, 1)
        );
        assert!(check.text.starts_with(said), "{}", check.text);
    };
    let without = changed(side(5, 1.0), |_, report| report.measurements.retain(|m| m.probe != "sync.mutex"));
    is_lost(&judged(&side(5, 1.0), &without), "vanished", "1 point vanished: measured in fewer than 5");
    let degraded = |runs: usize| {
        changed(side(5, 1.0), |at, report| {
            for m in report.measurements.iter_mut().filter(|m| at < runs && m.probe == "sync.mutex") {
                m.quality.add_reason(Reason::new(
                    QualityLevel::Degraded,
                    "no-huge-pages",
                    "none are given",
                    "",
                ));
            }
        })
    };
    let said = "1 point degraded: in every run, and in none of the baseline (no-huge-pages)";
    is_lost(&judged(&side(5, 1.0), &degraded(5)), "degraded", said);
    // What comes and goes is chance.
    assert_eq!(judged(&side(5, 1.0), &degraded(2)).status, VerdictStatus::Pass);
    let chance = judged(&side(5, 1.0), &degraded(4));
    let titles =
        |gate: &GateResult| gate.unjudged.iter().map(|point| point.title.clone()).collect::<Vec<_>>();
    let before = titles(&judged(&side(5, 1.0), &side(5, 1.0)));
    let more: Vec<String> = titles(&chance).into_iter().filter(|title| !before.contains(title)).collect();
    assert_eq!((chance.status, more.len()), (VerdictStatus::Pass, 1), "{chance:?}");
    let other = changed(side(5, 1.0), |_, report| {
        report.measurements.iter_mut().filter(|m| m.probe == "sync.mutex").for_each(|m| m.revision = 9);
    });
    is_lost(&judged(&side(5, 1.0), &other), "changed", "1 point changed: not the same work: revision");
}

#[test]
fn a_setting_that_is_worse_in_every_run_is_a_loss() {
    let with = |runs: usize, state: CheckState| {
        changed(side(5, 1.0), |at, report| {
            let state = if at < runs { state } else { CheckState::Good };
            let (id, found) = ("clock-source".to_owned(), format!("it is {}", state.state_name()));
            report.machine.checks = vec![Setting { id, state, found, affects: Vec::new(), remedy: None }];
        })
    };
    let good = with(5, CheckState::Good);
    let said = failed(&judged(&good, &with(5, CheckState::Bad)));
    assert_eq!(
        said,
        ["baseline: the doctor's check clock-source is worse in every run: it is bad, and was it is good"]
    );
    for other in [with(4, CheckState::Bad), with(5, CheckState::Unknown), with(5, CheckState::Good)] {
        assert_eq!(judged(&good, &other).status, VerdictStatus::Pass);
    }
    assert_eq!(judged(&with(5, CheckState::Bad), &good).status, VerdictStatus::Pass);
}

#[test]
fn the_age_of_the_baseline_and_its_machine_are_said() {
    let at = |day: &str| {
        changed(side(5, 1.0), |at, report| {
            (report.started, report.run_id) = (format!("2026-11-{day}T10:0{at}:00Z"), format!("{day}-{at}"));
        })
    };
    let gate = judged(&at("21"), &at("24"));
    let said = &gate.remarks[0];
    assert!(said.starts_with("baseline: 5 runs of ") && said.ends_with(", 2days 23h old"), "{said}");
    assert!(said.contains("2026-11-21T10:00:00Z to 2026-11-21T10:04:00Z"), "{said}");
    assert!(judged(&at("01"), &at("24")).remarks[0].ends_with(", 22days 23h old"));
    let long = changed(at("24"), |_, report| report.started = report.started.replace("-11-", "-12-"));
    assert!(judged(&at("01"), &long).remarks[0].ends_with(", 52 days old"));
    // A baseline that is younger than the runs has no age.
    assert!(!judged(&at("24"), &at("21")).remarks[0].contains("old"));
}

#[test]
fn a_budget_of_absolute_limits_and_a_baseline_are_judged_together() {
    let with = |most: &str, factor: f64| {
        let (before, now) = (side(5, 1.0), side(5, factor));
        let budget = read(json!([{ "probe": "sync.mutex", "p50": most }]), &now).unwrap();
        judge_runs(&budget, &now, &before)
    };
    let alone = judged(&side(5, 1.0), &side(5, 1.4));
    let both = with("10h", 1.4);
    let relative: Vec<_> = both.checks.iter().filter(|check| check.relative).map(|check| &check.id).collect();
    assert_eq!(relative, alone.checks.iter().map(|check| &check.id).collect::<Vec<_>>());
    assert!(both.checks.iter().all(|check| check.limit == if check.relative { 2 } else { 1 }));
    assert_eq!((both.counts.exceeded, &both.remarks), (alone.counts.exceeded, &alone.remarks));
    // A point is judged by the budget or by the baseline.
    let neither = alone.unjudged.iter().filter(|point| !point.id.starts_with("sync.mutex"));
    assert_eq!(both.unjudged.iter().collect::<Vec<_>>(), neither.collect::<Vec<_>>());
    assert_eq!(with("10h", 1.0).status, VerdictStatus::Pass);
    assert_eq!(with("1ns", 1.0).status, VerdictStatus::Exceeded);
    // A limit that is relative decides what is compared.
    assert_eq!(with("+80%", 1.4).status, VerdictStatus::Pass);
}

#[test]
fn each_time_of_hyperfine_is_a_run() {
    let of = |times: &[f64]| {
        let list: Vec<String> = times.iter().map(f64::to_string).collect();
        let text = format!(
            r#"{{"results": [{{"command": "true", "stddev": null, "user": 0.1, "system": 0.1, "times": [{}]}}]}}"#,
            list.join(", ")
        );
        vec![(String::new(), read_run(text.as_bytes()).unwrap())]
    };
    let before = of(&[0.100, 0.101, 0.102, 0.099, 0.100]);
    assert_eq!(judged(&before, &of(&[0.140, 0.141, 0.142, 0.139, 0.140])).status, VerdictStatus::Exceeded);
    assert_eq!(judged(&before, &of(&[0.101, 0.100, 0.102, 0.099, 0.100])).status, VerdictStatus::Pass);
    let few = failed(&judged(&before, &of(&[0.140, 0.141, 0.142])));
    assert!(few[0].contains("2 runs to be judged are missing"), "{few:?}");
}
