//! Reasons of exit codes: with `--quiet` each code other than 0 has its reason in a line on stderr.

use crate::support::{Place, Ran, end, latscope, run};
use crate::{compare, history};
use latscope_core::fixture;

/// A wake-up of which a figure is above any limit of 1 ns.
const WAKE: [&str; 7] = ["wake", "--duration", "100ms", "--policy", "other", "--cpus", "0"];

/// Arguments of a command, its exit code, and a part of its reason.
type Case<'a> = (Vec<&'a str>, i32, &'a str);

/// Asserts that a quiet run ends with a code and says why in one line.
#[track_caller]
fn explained(ran: &Ran, (words, code, part): &Case) {
    assert_eq!((ran.code, ran.out.as_str()), (Some(*code), ""), "{words:?}: {ran:#?}");
    let reasons: Vec<&str> =
        ran.err.lines().filter(|line| line.starts_with(&format!("latscope: exit code {code}: "))).collect();
    assert!(matches!(reasons[..], [line] if line.contains(part)), "{words:?}: {ran:#?}");
}

#[test]
fn a_quiet_verdict_has_its_reason_in_a_line_in_every_command() {
    let place = Place::new();
    let budget =
        |name: &str, limit: &str| place.file(name, format!("[[limit]]\nprobe = \"wake.timer\"\n{limit}\n"));
    let (exceeded, unknown) = (budget("max.toml", "max = '1ms'"), budget("p.toml", "p99_9999 = '1s'"));
    let result = place.file("wake.json", fixture::wake().to_json());
    let (a, b) = (compare::side(&place, "a", 9, 1.0), compare::side(&place, "b", 9, 1.5));
    let (few_a, few_b) = (compare::side(&place, "c", 1, 1.0), compare::side(&place, "d", 1, 1.5));
    let stepped = history::stepped(&place);
    let judged = place.at("judged.json");
    let measure = [&WAKE[..], &["--max", "1ns", "--json", &judged]].concat();
    assert_eq!(run(&measure).code, Some(2));
    let plan = place
        .file("plan.toml", format!("[[measurement]]\nname = 'w'\nrun = '{} --max 1ns'\n", WAKE.join(" ")));
    let planned = place.at("planned");
    let slower = |a, b| vec!["compare", a, b, "--fail-on", "slower"];
    let cases: Vec<Case> = vec![
        ([&WAKE[..], &["--max", "1ns"]].concat(), 2, "max ≤ 1.00 ns exceeded: "),
        ([&WAKE[..], &["--p99_9999", "1h"]].concat(), 3, "p99.9999 ≤ "),
        (vec!["show", &judged], 2, "max ≤ 1.00 ns exceeded: "),
        (vec!["gate", &result, "--budget", &exceeded], 2, "the longest took"),
        (vec!["gate", &result, "--budget", &unknown], 3, "too few to judge"),
        (slower(&a, &b), 2, "--fail-on slower: "),
        (slower(&few_a, &few_b), 3, "--fail-on slower: inconclusive: "),
        (vec!["history", &stepped, "--fail-on", "change"], 2, "--fail-on change: 1 change, the first is "),
        (vec!["history", &few_a, "--fail-on", "change"], 3, "--fail-on change: inconclusive: "),
        (vec!["run", &plan, "--dir", &planned], 2, "exceeded a criterion of w"),
        (vec!["show", &planned], 2, "exceeded a criterion of w"),
    ];
    for case in cases {
        let quiet = run(&[&case.0[..], &["--quiet"]].concat());
        explained(&quiet, &case);
    }
}

/// What is behind `--` ends the options of a trial, so `--quiet` stands before.
#[test]
fn a_quiet_trial_says_why_it_fails() {
    let place = Place::new();
    for (more, command, code, part) in [
        (vec![], [&WAKE[..], &["--max", "1ns"]].concat(), 2, "exceeded a criterion of wake"),
        (
            vec!["--fail-on", "worse"],
            vec!["cpu", "cycle", "--rounds", "2", "--count", "4"],
            3,
            "--fail-on worse: ",
        ),
    ] {
        let trial = ["trial", "--without", "true", "--with", "true", "--runs", "1", "--quiet"];
        let words = [&trial[..], &more, &["--"], &command].concat();
        let ran = end(latscope(&words).current_dir(place.path()));
        explained(&ran, &(words, code, part));
    }
}

/// The table has the reason where it is shown, but for `--fail-on`, which it does not know.
#[test]
fn a_verdict_that_is_shown_is_not_said_again() {
    let place = Place::new();
    let result = place.file("wake.json", fixture::wake().to_json());
    let budget = place.file("max.toml", "[[limit]]\nprobe = \"wake.timer\"\nmax = '1ms'\n");
    let ran = run(&["gate", &result, "--budget", &budget]);
    assert!(ran.code == Some(2) && ran.err.is_empty(), "{ran:#?}");
    let stepped = history::stepped(&place);
    let ran = run(&["history", &stepped, "--fail-on", "change"]);
    assert!(
        ran.code == Some(2) && ran.err.starts_with("latscope: exit code 2: --fail-on change: "),
        "{ran:#?}"
    );
}
