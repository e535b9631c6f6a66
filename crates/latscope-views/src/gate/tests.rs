use super::*;
use crate::DisplayOptions;
use latscope_core::plan::params;
use latscope_judge::gate::{
    Basis, GateCheckCounts, GateRunIdentity, Learnt, LearntLimit, LearntPoint, MARGIN, NoLimit, NotLearnt,
    SCHEMA, Spread, learn,
};
use latscope_judge::runs::RunResult;

fn check(metric: &str, status: VerdictStatus, run: Option<usize>) -> GateCheck {
    GateCheck {
        id: format!("wake.timer[cpu=0] {metric}"),
        limit: 1,
        run,
        probe: "wake.timer".to_owned(),
        params: params([("cpu", 0u64.into())]),
        title: "wake-up, \"CPU 0\" <|\u{1b}>".to_owned(),
        metric: metric.to_owned(),
        at_least: false,
        relative: run.is_none(),
        allowed: if run.is_none() { 1.05 } else { 50_000.0 },
        value: Some(if run.is_none() { 1.0734 } else { 61_000.0 }),
        at_most: None,
        interval: None,
        unit: if run.is_none() { "ratio" } else { "ns" }.to_owned(),
        status,
        text: "3 of 60,000 (0.005 %), a, b: c\nand more".to_owned(),
        ..GateCheck::default()
    }
}

fn gate(checks: Vec<GateCheck>) -> GateResult {
    let name = |file: &str| GateRunIdentity {
        file: file.to_owned(),
        run_id: String::new(),
        started: "2026-11-21T10:00:00Z".to_owned(),
        machine: "vm".to_owned(),
    };
    let of = |status| checks.iter().filter(|check| check.status == status).count();
    GateResult {
        schema: SCHEMA,
        status: checks.iter().map(|check| check.status).max().unwrap(),
        counts: GateCheckCounts {
            pass: of(VerdictStatus::Pass),
            exceeded: of(VerdictStatus::Exceeded),
            inconclusive: of(VerdictStatus::Inconclusive),
        },
        runs: vec![name("runs/a.json"), name("runs/b.json")],
        baseline: vec![name("old.json")],
        differences: Vec::new(),
        remarks: vec!["skipped: notes.txt".to_owned()],
        warnings: Vec::new(),
        checks,
        unjudged: Vec::new(),
    }
}

fn three() -> GateResult {
    gate(vec![
        check("p99", VerdictStatus::Pass, Some(0)),
        check("p99_9", VerdictStatus::Exceeded, Some(1)),
        check("p50", VerdictStatus::Inconclusive, None),
    ])
}

#[test]
fn the_worst_is_first_and_what_does_not_pass_is_explained() {
    let text = format_text(&three(), false, &DisplayOptions::default());
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(
        at("Gate: exceeded. 3 checks in 2 runs (B), against 1 run of the baseline (A)") < at("✘ exceeded")
    );
    assert!(at("✘ exceeded") < at("? inconclusive") && at("? inconclusive") < at("✔ pass"));
    assert!(at("p99.9 ≤ 50.0 µs") < at("p50 ≤ +5 %") && at("+7.3 %") > 0 && at("skipped: notes.txt") > 0);
    assert_eq!(text.matches("3 of 60,000").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80) && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_narrow_terminal_keeps_the_verdict() {
    for width in 40..=80 {
        let text = format_text(&three(), true, &DisplayOptions { width, ..DisplayOptions::default() });
        for verdict in ["✘ exceeded", "? inconclusive", "✔ pass"] {
            assert!(text.lines().any(|line| line.ends_with(verdict)), "{width}:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
    }
}

#[test]
fn runs_are_told_apart_and_a_lost_file_is_no_pass() {
    let mut gate = gate(vec![
        GateCheck { value: None, ..check("p99", VerdictStatus::Exceeded, Some(0)) },
        check("p99", VerdictStatus::Pass, Some(1)),
    ]);
    gate.runs[1].file = "other/a.json".to_owned();
    gate.add_unreadable("runs/c.json".to_owned(), "it is cut off".to_owned());
    let said = format_text(&gate, true, &DisplayOptions::default());
    assert!(said.contains("runs/c.json: nothing of it was read") && !said.contains("readable:"), "{said}");
    for words in ["runs/a.json", "other/a.json", "> 50.0 µs", "? inconclusive", "it is cut off"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let file = junit(&gate);
    assert!(file.contains("p99 (other/a.json)\"") && file.contains("errors=\"1\""), "{file}");
    assert!(file.contains("<testsuite name=\"files\"") && file.contains("runs/c.json readable"), "{file}");
}

#[test]
fn another_machine_is_said_in_every_view() {
    let text = "another CPU model: these results are of X, the budget was learnt on Y";
    let gate = GateResult { warnings: vec![text.to_owned()], ..three() };
    let options = DisplayOptions { width: 200, ..DisplayOptions::default() };
    for view in
        [super::format_text(&gate, false, &options), format_markdown(&gate), junit(&gate), annotations(&gate)]
    {
        assert!(view.replace("%3A", ":").replace("%2C", ",").contains(text), "{view}");
    }
}

#[test]
fn many_checks_are_cut_unless_all_are_wanted() {
    let one = |at: usize| GateCheck {
        id: format!("wake.timer[cpu={at}] max"),
        ..check("max", VerdictStatus::Pass, Some(0))
    };
    let many = gate((0..50).map(one).collect());
    let lines = |all| format_text(&many, all, &DisplayOptions::default()).matches("✔ pass").count();
    assert_eq!((lines(false), lines(true)), (30, 50));
    assert!(
        format_text(&many, false, &DisplayOptions::default()).contains("… and 20 more: --all shows them")
    );
    assert_eq!(super::format_markdown(&many).matches("✔ pass").count(), 50);
}

#[test]
fn the_junit_file_has_a_test_for_each_check_and_none_that_did_not_pass_as_passed() {
    let text = junit(&three());
    let count = |words: &str| text.matches(words).count();
    assert_eq!([count("<testcase "), count("<failure "), count("<error "), count("<skipped")], [3, 1, 1, 0]);
    assert!(
        text.contains("<testsuites name=\"latscope gate\" tests=\"3\" failures=\"1\" errors=\"1\""),
        "{text}"
    );
    assert!(text.contains("name=\"wake.timer[cpu=0] p99_9 (b.json)\""), "{text}");
    assert!(text.contains("&quot;CPU 0&quot; &lt;|&gt;") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("type=\"inconclusive\" message=\"inconclusive: 3 of 60,000"), "{text}");
}

#[test]
fn annotations_are_one_line_each_in_githubs_escapes() {
    let text = annotations(&three());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("::error title=wake-up%2C \"CPU 0\""), "{text}");
    assert!(
        lines[0].ends_with("::runs/b.json: exceeded: 3 of 60,000 (0.005 %25), a, b: c%0Aand more"),
        "{text}"
    );
    assert!(lines[1].starts_with("::warning "), "{text}");
}

#[test]
fn a_learnt_budget_says_what_its_limits_rest_on() {
    let limit =
        |metric, limit, spread| LearntLimit { metric, limit, seen: [3_000.0, 4_000.0], margin: 1.25, spread };
    let left_out = |title: &str| NotLearnt {
        probe: "wake.timer".to_owned(),
        params: params([]),
        title: title.to_owned(),
        why: "unstable".to_owned(),
    };
    let point = LearntPoint {
        probe: "wake.timer".to_owned(),
        revision: 2,
        params: params([
            ("cpu", "all".into()),
            ("odd name", "a\"b\\\n".into()),
            ("interval", 1_000_000u64.into()),
        ]),
        title: "wake-up\nof all".to_owned(),
        runs: 5,
        samples: 60_000,
        limits: vec![limit("p50", 0.271, Spread::Runs(5)), limit("max", 4_210.0, Spread::Assumed)],
        without: vec![
            ("p99", NoLimit::Scatter([1_000.0, 90_000.0])),
            ("p95", NoLimit::Scatter([2_000.0, 2_000.0])),
            ("p90", NoLimit::FewRuns(2, [1_000.0, 2_000.0])),
            ("p99_9", NoLimit::NotStated),
        ],
    };
    let learnt = Learnt {
        basis: Basis {
            runs: 5,
            rounds: [8, 8],
            started: ["2026-11-21T10:00:00Z".to_owned(), "2026-11-21T11:00:00Z".to_owned()],
            machines: vec!["vm, Linux 6.1".to_owned()],
            names: vec!["vm".to_owned()],
            cpu_models: vec!["a \"b\" CPU".to_owned()],
        },
        points: vec![point],
        left_out: ["a", "b", "c", "d"].map(left_out).to_vec(),
        least: 0.25,
    };
    let text = budget(&learnt, "0.1.0");
    let expected = "\
# wake-up of all: 60,000 samples
[[limit]]
probe = \"wake.timer\"
revision = 2
where = { cpu = \"all\", interval = 1000000, \"odd name\" = \"a\\\"b\\\\\\u000A\" }
runs = \"most\"
p50 = \"0.271ns\" # 3.00 µs to 4.00 µs, × 1.25 from 5 runs
max = \"4.21us\" # 3.00 µs to 4.00 µs, × 1.25 assumed: how far it scatters is not known
learnt = { p50 = \"4us\", max = \"4us\" }
# no limit of p99: the figures scatter too much (1.00 µs to 90.0 µs)
# no limit of p95: a single figure (2.00 µs) does not tell how much they scatter
# no limit of p90: 2 runs (1.00 µs to 2.00 µs) are too few to tell how much they scatter
# no limit of p99_9: a run has too few samples to state it, or did not record it

# Without a limit:
# a; b; c and 1 more: unstable
";
    assert!(text.ends_with(expected), "{text}");
    assert!(text.contains("\nmachine = [\"vm\"]\ncpu_model = [\"a \\\"b\\\" CPU\"]\n"), "{text}");
    assert!(
        text.contains("# From 5 runs of 8 rounds, 2026-11-21T10:00:00Z to 2026-11-21T11:00:00Z."),
        "{text}"
    );
}

#[test]
fn a_budget_from_few_runs_warns() {
    let run = RunResult::from_report(latscope_core::fixture::report());
    assert!(
        budget(&learn(&[&run], MARGIN), "0.1.0")
            .contains("# Warning: learnt from 1 run of a measurement: further runs will exceed some limits")
    );
}

#[test]
fn a_limit_is_one_row_and_of_most_results_the_middle_one_is_shown() {
    let of = |run, value| GateCheck {
        value: Some(value),
        is_of_most: true,
        learnt: Some(40_000.0),
        ..check("p50", VerdictStatus::Pass, Some(run))
    };
    let gate = gate(vec![of(0, 10_000.0), of(1, 147_000.0), of(2, 30_000.0)]);
    let text = format_text(&gate, false, &DisplayOptions { width: 120, ..DisplayOptions::default() });
    let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("✔ pass")).collect();
    assert!(rows.len() == 1 && !text.contains("147"), "{text}");
    for words in ["30.0 µs", "≤ 50.0 µs", "0.60", "40.0 µs", "2 of 3"] {
        assert!(rows[0].contains(words), "{words}: {text}");
    }
}
