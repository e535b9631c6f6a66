//! `latscope trial` and `latscope run`: runs in turns, whose changes are undone however they end.

use crate::process::{Mark, signal};
use crate::support::{Place, Ran, end, eventually, json, latscope, names, root, run, start, wait};
use rustix::process::Signal;
use std::fs;

const QUICK: [&str; 7] = ["cpu", "cycle", "--rounds", "2", "--count", "4", "--quiet"];

/// Trial in a place of its own, in which each command of the shell adds a word to the file `knob`.
fn trial(place: &Place, more: &[&str], command: &[&str]) -> std::process::Command {
    let words = ["trial", "--without", "echo off >> knob", "--with", "echo on >> knob", "--dir", "results"];
    // The trial itself adds --quiet.
    let command = command.iter().filter(|word| **word != "--quiet");
    let mut latscope = latscope(words.iter().chain(more).chain(&["--"]).chain(command));
    latscope.current_dir(place.path());
    latscope
}

/// Page of a trial.
pub fn page(place: &Place) -> String {
    let path = place.at("trial.html");
    end(&mut trial(place, &["--runs", "2", "--html", &path], &QUICK)).done();
    path
}

/// Page of a plan.
pub fn page_of_plan(place: &Place) -> String {
    let plan = "[[measurement]]\nname = \"cycle\"\nrun = \"cpu cycle --rounds 2 --count 4\"\n";
    let (path, plan) = (place.at("plan.html"), place.file("plan.toml", plan));
    run(&["run", &plan, "--dir", &place.at("planned"), "--html", &path]).done();
    path
}

fn knob(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.at("knob")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn both_arms_run_in_turns_and_the_knob_is_put_back() {
    let place = Place::new();
    let (markdown, html) = (place.at("t.md"), place.at("t.html"));
    let views = ["--runs", "3", "--markdown", &markdown, "--html", &html];
    let ran = end(&mut trial(&place, &views, &QUICK));
    assert!(ran.err.starts_with("results: results/: 6 runs"), "{ran:#?}");
    assert!(ran.err.contains("run 5 of 6") && ran.err.contains(" left"), "{ran:#?}");
    let shown = ran.done();
    assert!(shown.starts_with("A  without: echo off >> knob\nB  with: echo on >> knob\n"), "{shown}");
    let last = shown.trim_end().lines().last().unwrap();
    let answers = ["Yes: ", "No: ", "No difference: ", "Better and worse: ", "Cannot tell: "];
    assert!(answers.iter().any(|answer| last.starts_with(answer)), "{shown}");
    let words = knob(&place);
    assert_eq!((words.len(), words.last().map(String::as_str)), (7, Some("off")));
    for block in words[..6].chunks(2) {
        assert!(block.contains(&"on".to_owned()) && block.contains(&"off".to_owned()), "{words:?}");
    }
    let files = names(place.at("results"));
    assert_eq!(files.len(), 7, "{files:?}");
    let found = json(place.at("results/trial.json"));
    assert_eq!((&found["schema"], &found["restored"]), (&"latscope-trial/1".into(), &true.into()));
    let order: Vec<&str> =
        found["runs"].as_array().unwrap().iter().map(|r| r["arm"].as_str().unwrap()).collect();
    let of_arm = |word: &String| if word == "on" { "with" } else { "without" };
    assert_eq!(order, words[..6].iter().map(of_arm).collect::<Vec<_>>());
    assert_eq!(found["comparisons"][0]["comparison"]["schema"], "latscope-compare/1");
    assert!(found["comparisons"][0]["answer"]["answer"].is_string());
    assert_eq!(json(place.at("results").clone() + "/" + &files[0])["labels"]["arm"], order[0]);
    assert!(fs::read_to_string(markdown).unwrap().contains("## latscope compare"));
    let page = fs::read_to_string(html).unwrap();
    for part in ["<h2>Verdict</h2>", "latscope cpu cycle", "A  without: echo off &gt;&gt; knob", "Medians of"]
    {
        assert!(page.contains(part), "{part:?}");
    }
    // The usual command reads the same results.
    let of = |arm: &str| -> Vec<String> {
        let own = files.iter().filter(|name| name.contains(&format!("-{arm}-")));
        own.map(|name| place.at("results") + "/" + name).collect()
    };
    let (a, b) = (of("without"), of("with"));
    let compared = latscope([vec!["compare".to_owned()], a, vec!["--".to_owned()], b].concat());
    assert!(end(&mut { compared }).done().contains("3 runs"));
}

#[test]
fn a_criterion_of_the_runs_and_few_points_are_said() {
    let place = Place::new();
    let words = ["wake", "--duration", "100ms", "--policy", "other", "--cpus", "0", "--max", "1ns"];
    let ran = end(&mut trial(&place, &["--runs", "1"], &words));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let said = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("exceeded a criterion of wake: A: 1 of 1 run; B: 1 of 1 run (exit code 2)"),
        "{said}"
    );
    assert!(said.contains("p50 A B B/A"), "{said}");
}

#[test]
fn few_runs_are_no_proof_that_an_arm_is_not_worse() {
    let place = Place::new();
    let ran = end(&mut trial(&place, &["--runs", "1", "--fail-on", "worse"], &QUICK));
    assert!(ran.code == Some(3) && ran.err.contains("--fail-on worse: inconclusive"), "{ran:#?}");
}

#[test]
fn a_command_of_the_shell_that_does_not_end_is_ended() {
    let place = Place::new();
    let words =
        ["trial", "--without", "true", "--with", "sleep 600", "--dir", "results", "--hook-timeout", "200ms"];
    let ran = end(latscope(words.iter().chain(&["--"]).chain(&QUICK[..6])).current_dir(place.path()));
    assert!(ran.code == Some(1) && ran.err.contains("longer than 200ms"), "{ran:#?}");
}

#[test]
fn the_results_of_another_trial_are_not_overwritten() {
    let place = Place::new();
    place.directory("results");
    place.file("results/notes.txt", "keep");
    let refused = end(&mut trial(&place, &[], &QUICK)).refused();
    assert!(refused.contains("--dir results") && refused.contains("not empty"), "{refused}");
    assert!(knob(&place).is_empty());
}

#[test]
fn a_command_that_fails_is_shown_and_the_other_arm_restored() {
    let place = Place::new();
    let words = [
        "trial",
        "--without",
        "echo off >> knob",
        "--with",
        "echo cannot reach the knob; exit 7",
        "--dir",
        "results",
        "--",
        "cpu",
        "cycle",
        "--rounds",
        "1",
        "--count",
        "1",
    ];
    let ran = end(latscope(words).current_dir(place.path()));
    ran.no_panic();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    for said in ["exit status: 7", "\ncannot reach the knob\n", "put back", "results are in results"] {
        assert!(ran.err.contains(said), "{said:?}: {ran:#?}");
    }
    assert_eq!(knob(&place).last().map(String::as_str), Some("off"));
    assert_eq!(json(place.at("results/trial.json"))["restored"], true);
    // Where the command that puts back is the first to fail, nothing is to be put back.
    let words = ["trial", "--without", "false", "--with", "true", "--dir", "nothing", "--seed", "1", "--"];
    let ran = end(latscope(words).args(["cpu", "cycle", "--rounds", "1"]).current_dir(place.path()));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("it had changed nothing"), "{ran:#?}");
    // What cannot be put back is said, too.
    let words = [
        "trial",
        "--without",
        "true",
        "--with",
        "true",
        "--restore",
        "echo it is stuck; false",
        "--runs",
        "1",
        "--dir",
        "other",
        "--",
        "cpu",
        "cycle",
        "--rounds",
        "1",
        "--count",
        "1",
    ];
    let ran = end(latscope(words).current_dir(place.path()));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("do it by hand") && ran.err.contains("it is stuck"), "{ran:#?}");
    assert_eq!(json(place.at("other/trial.json"))["restored"], false);
}

/// Starts a trial, and waits until it is in the middle of its third run.
fn in_third_run(place: &Place) -> (std::process::Child, Mark) {
    let mut command = trial(place, &["--runs", "4"], &["wake", "--duration", "1s", "--interval", "2ms"]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    eventually("the third run", || (knob(place).len() == 3).then_some(()));
    mark.wait_for("__worker");
    (child, mark)
}

/// A change that the guardian cannot undo is reported, kept, and found by the next run.
#[test]
fn what_the_guardian_cannot_put_back_makes_the_next_run_fail_until_it_is() {
    let place = Place::new();
    let runtime = place.directory("runtime");
    let knob = place.file("allowed", "");
    let without = format!("test -e {knob} || exit 7");
    let arms = ["trial", "--without", &without, "--with", "true", "--dir", "results", "--runs", "4"];
    let mut command = latscope(arms.iter().chain(&["--", "wake", "--duration", "600s"]));
    command.current_dir(place.path()).env("XDG_RUNTIME_DIR", &runtime);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    mark.wait_for("__worker");
    fs::remove_file(&knob).unwrap();
    signal(&child, Signal::KILL);
    let ran = wait(child);
    mark.wait_for_none();
    assert!(ran.err.contains("latscope: not put back: run `test -e "), "{ran:#?}");
    let cycle = || {
        let mut command = latscope(QUICK);
        end(command.env("XDG_RUNTIME_DIR", &runtime))
    };
    let next = cycle();
    assert!(next.code == Some(1) && next.err.contains("an earlier run did not put this back"), "{next:#?}");
    let kept = names(format!("{runtime}/latscope"));
    assert!(kept.len() == 1 && next.err.contains(&kept[0]), "{kept:?}: {next:#?}");
    // What only reads goes on as it did.
    let mut list = latscope(["list"]);
    end(list.env("XDG_RUNTIME_DIR", &runtime)).done();
    fs::remove_file(format!("{runtime}/latscope/{}", kept[0])).unwrap();
    cycle().done();
}

#[test]
fn after_a_kill_the_guardian_puts_the_knob_back() {
    let place = Place::new();
    let (child, mark) = in_third_run(&place);
    signal(&child, Signal::KILL);
    assert_eq!(wait(child).code, None);
    mark.wait_for_none();
    let words = knob(&place);
    assert_eq!((words.len(), words.last().map(String::as_str)), (4, Some("off")), "{words:?}");
    // The directory says what was planned, and what of it there is.
    let found = json(place.at("results/trial.json"));
    assert!(found["finished"].is_null() && found["interrupted"].is_null());
    assert_eq!(found["order"].as_array().unwrap().len(), 8);
    let done: Vec<bool> =
        found["runs"].as_array().unwrap().iter().map(|run| run["counted"].as_bool().unwrap()).collect();
    assert_eq!(done, [true, true]);
    let shown = run(&["show", &place.at("results")]).done();
    for part in
        ["has not ended, or was killed: of 8 runs 2 are complete", "; not begun: ", "A  without: echo off"]
    {
        assert!(
            shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(part.replace("  ", " ").as_str()),
            "{part}: {shown}"
        );
    }
    let refused = run(&["show", &place.at("results"), "--csv-histogram", "-"]).refused();
    assert!(refused.contains("--csv-histogram is for a single result"), "{refused}");
    let plan = place.at("results/trial.json");
    assert!(run(&["show", &place.at("results"), "--json", &plan]).refused().contains("is the input itself"));
    for (option, said) in [("--html", "killed: of 8 runs 2 are"), ("--markdown", "killed: of 8 runs 2 are")] {
        assert!(run(&["show", &place.at("results"), option, "-"]).done().contains(said), "{option}");
    }
    assert!(run(&["show", place.path().to_str().unwrap()]).refused().contains("none of a trial"));
}

#[test]
fn a_finished_trial_is_shown_as_it_ended() {
    let place = Place::new();
    let files = ["--csv", "--markdown", "--html"];
    let paths = files.map(|option| place.at(&option[2..]));
    let mut options = vec!["--runs", "2", "--same", "20%"];
    files.iter().zip(&paths).for_each(|(option, path)| options.extend([option, path.as_str()]));
    let ended = end(&mut trial(&place, &options, &QUICK)).done();
    let found = json(place.at("results/trial.json"));
    assert!(found["finished"].is_string());
    assert_eq!(run(&["show", &place.at("results")]).done(), ended);
    // The files are those that the trial itself wrote.
    let again = |option| run(&["show", &place.at("results"), "--quiet", option, "-"]).done();
    for (option, path) in files.iter().zip(&paths) {
        assert_eq!(again(option), fs::read_to_string(path).unwrap(), "{option}");
    }
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again("--json")).unwrap(), found);
    // A result that is gone is none, whatever the file of the trial says.
    let first = found["runs"][0]["file"].as_str().unwrap();
    fs::remove_file(place.at("results") + "/" + first).unwrap();
    let shown = run(&["show", &place.at("results")]).done();
    assert!(shown.contains("1 run of 4 does not count"), "{shown}");
    // Also what is noted fits a narrow terminal; the answer is one line.
    let narrow = end(latscope(["show", &place.at("results")]).env("COLUMNS", "60")).done();
    let (before, answer) = narrow.trim_end().rsplit_once('\n').unwrap();
    assert!(before.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    assert!(shown.ends_with(&format!("{answer}\n")), "{narrow}");
}

fn ends_with_what_there_is(which: Signal, name: &str) -> Ran {
    let place = Place::new();
    let (child, mark) = in_third_run(&place);
    signal(&child, which);
    let ran = wait(child);
    ran.no_panic();
    mark.wait_for_none();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.out.contains(&format!("interrupted by {name}")), "{ran:#?}");
    let end = format!("ended by {name}: what was changed is put back, and results are in results\n");
    assert!(ran.err.contains(&end), "{ran:#?}");
    assert_eq!(knob(&place).last().map(String::as_str), Some("off"));
    let found = json(place.at("results/trial.json"));
    assert_eq!((&found["interrupted"], &found["restored"]), (&name.into(), &true.into()));
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["counted"] == true).collect::<Vec<_>>(), [true, true, false]);
    assert!(runs[2]["why"].as_str().unwrap().contains(name), "{}", runs[2]);
    // The run that was interrupted saved what it had.
    assert_eq!(json(place.at("results/") + runs[2]["file"].as_str().unwrap())["interrupted"]["by"], name);
    ran
}

#[test]
fn a_signal_ends_a_trial_with_what_there_is() {
    ends_with_what_there_is(Signal::INT, "SIGINT");
    let ran = ends_with_what_there_is(Signal::TERM, "SIGTERM");
    assert!(ran.out.contains("1 run of 3 does not count"), "{ran:#?}");
}

#[test]
fn bad_command_lines_are_refused_before_anything_is_changed() {
    let place = Place::new();
    let cases: [(&[&str], &str); 10] = [
        (&["cpu", "cycel"], "cycel"),
        (&["cpu", "--json", "x.json"], "--json is for the trial"),
        (&["cpu", "--json=x.json"], "--json is for the trial"),
        (&["cpu", "--help"], "it measures nothing"),
        (&["doctor"], "doctor does not measure"),
        (&["wake", "--dry-run"], "--dry-run is for the trial"),
        (&["nosuch"], "nosuch"),
        (&["show", "x.json"], "show does not measure"),
        (&["as", "cyclictest"], "latscope as cyclictest"),
        (&["trial"], "trial does not measure"),
    ];
    for (words, said) in cases {
        let ran = end(&mut trial(&place, &[], words));
        assert!(ran.refused().contains(said), "{words:?}: {ran:?}");
        assert!(knob(&place).is_empty() && !fs::exists(place.at("results")).unwrap(), "{words:?}");
    }
    let alone = run(&["trial", "--with", "true", "--", "cpu"]);
    assert!(alone.refused().contains("--without"), "{alone:?}");
    let prefix = run(&["trial", "--a-run", "nosuch-program 3", "--", "cpu"]);
    assert!(prefix.refused().contains("nosuch-program"), "{prefix:?}");
    let load = run(&["trial", "--b-load", "memroy", "--", "cpu"]);
    assert!(load.refused().contains("did you mean memory?"), "{load:?}");
}

#[test]
fn a_dry_run_shows_the_order_and_runs_nothing() {
    let place = Place::new();
    let words = ["--dry-run", "--runs", "2", "--b-run", "taskset -c 0", "--a-load", "cpu"];
    let shown = end(&mut trial(&place, &words, &["wake", "--duration", "1s"])).done();
    assert!(shown.starts_with("4 runs, about 4s, into results/\n"), "{shown}");
    assert!(shown.contains("taskset -c 0 latscope wake --duration 1s --quiet --label arm=with\n"), "{shown}");
    assert!(shown.contains("arm=without --load cpu\n") && shown.contains("at the end: echo off"), "{shown}");
    assert!(names(place.path()).is_empty());
}

const PLAN: &str = r#"
title = "a test"
repetitions = 2
[[measurement]]
name = "cycle"
run = "cpu cycle --rounds 2 --count 4"
[[measurement]]
name = "wake"
run = ["wake", "--count", "20", "--max", "10s", "--missed", "1000"]
[[measurement]]
name = "nowhere"
run = "wake"
needs = "false"
otherwise = "this machine is none of those"
[[load]]
name = "idle"
load = "none"
[[load]]
name = "cpu"
"#;

#[test]
fn a_plan_that_is_shown_again_is_as_good_as_when_it_was_run() {
    let place = Place::new();
    let limited = PLAN.replace("run = \"wake\"", "run = \"wake --duration 200ms --max 1ns\"");
    let limited = limited.replace("needs = \"false\"", "needs = \"true\"");
    let plan = place.file("plan.toml", &limited);
    let ran = end(latscope(["run", &plan, "--runs", "1", "--dir", "results"]).current_dir(place.path()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let shown = end(&mut latscope(["show", &place.at("results")]));
    assert_eq!(shown.code, Some(2), "{shown:#?}");
}

#[test]
fn a_plan_makes_one_table_and_says_what_it_skips() {
    let place = Place::new();
    let (plan, csv) = (place.file("plan.toml", PLAN), place.at("t.csv"));
    let ran = end(latscope(["run", &plan, "--csv", &csv, "--dir", "results"]).current_dir(place.path()));
    ran.no_panic();
    assert!([Some(0), Some(3)].contains(&ran.code), "{ran:#?}");
    for said in ["core cycle", "idle", "this machine is none of those", "holds"] {
        assert!(ran.out.contains(said) || said == "holds" && ran.code == Some(3), "{said}: {ran:#?}");
    }
    let found = json(place.at("results/trial.json"));
    assert_eq!(found["skipped"][0]["name"], "nowhere");
    let table = found["table"].as_array().unwrap();
    assert_eq!(table.len(), 6);
    let counts: Vec<u64> = table.iter().map(|cell| cell["runs"].as_u64().unwrap()).collect();
    assert_eq!(counts, [2, 2, 2, 2, 0, 0]);
    assert!(fs::read_to_string(csv).unwrap().starts_with("measurement,load,arm,"));
    assert!(names(place.at("results")).contains(&"trial.json".to_owned()));
}

#[test]
fn what_is_asked_of_a_skipped_measurement_is_not_judged() {
    let place = Place::new();
    let text = PLAN.replace("run = \"wake\"", "run = \"wake --max 1s\"");
    let plan = place.file("plan.toml", text);
    let ran = end(latscope(["run", &plan, "--runs", "1"]).current_dir(place.path()));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let exceeded = PLAN.replace("10s", "1ns");
    let plan = place.file("other.toml", exceeded);
    let ran = end(latscope(["run", &plan, "--runs", "1"]).current_dir(place.path()));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.out.contains("exceeded"), "{ran:#?}");
}

#[test]
fn a_file_of_the_kernel_is_set_for_its_arm_and_put_back() {
    if !root("a_file_of_the_kernel_is_set_for_its_arm_and_put_back") {
        return;
    }
    let place = Place::new();
    let slack = r#"
[[measurement]]
name = "cycle"
run = "cpu cycle --rounds 1 --count 1"
[[arm]]
name = "as-is"
[[arm]]
name = "nosuch"
set = { "/sys/nosuch/file" = "1" }
[[arm]]
name = "refused"
set = { "/proc/self/oom_score_adj" = "banana" }
[[arm]]
name = "other"
set = { "/proc/self/oom_score_adj" = "900" }
"#;
    let plan = place.file("plan.toml", slack);
    let ran = end(latscope(["run", &plan, "--dir", "results"]).current_dir(place.path()));
    ran.no_panic();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = json(place.at("results/trial.json"));
    let skipped: Vec<&str> =
        found["skipped"].as_array().unwrap().iter().map(|one| one["why"].as_str().unwrap()).collect();
    assert!(skipped[0].contains("this machine has no /sys/nosuch/file"), "{skipped:?}");
    assert!(skipped[1].contains("cannot write \"banana\""), "{skipped:?}");
    assert_eq!(found["restored"], true);
}

#[test]
fn wrong_plans_are_refused_in_one_line_with_the_nearest_name() {
    let place = Place::new();
    let wrong = place.file("wrong.toml", PLAN.replace("repetitions", "repetition"));
    let refused = run(&["run", &wrong]).refused();
    assert!(refused.contains("line 3") && refused.contains("did you mean repetitions?"), "{refused}");
    let words = place.file("words.toml", PLAN.replace("cpu cycle", "cpu cylce"));
    assert!(run(&["run", &words]).refused().contains("cylce"));
    assert!(run(&["run", "rt-aceptance"]).refused().contains("did you mean rt-acceptance?"));
    assert!(run(&["run"]).refused().contains("PLAN"));
    let duration = place.file("plan.toml", PLAN);
    assert!(run(&["run", &duration, "--duration", "1s"]).refused().contains("--duration"));
}

#[test]
fn the_plans_of_latscope_are_listed_and_shown() {
    let narrow = end(latscope(["run", "--list"]).env("COLUMNS", "60")).done();
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    let list = run(&["run", "--list"]).done();
    for name in ["rt-acceptance", "android-ipc", "amp", "ci-quick", "knobs"] {
        assert!(list.contains(name), "{list}");
        let text = run(&["run", "--show", name]).done();
        assert!(text.contains("[[measurement]]"), "{text}");
        let place = Place::new();
        let ran = end(latscope(["run", name, "--dry-run"]).current_dir(place.path()));
        // Some need what this machine lacks.
        assert!(ran.code == Some(0) || ran.refused().contains("nothing of this plan"), "{name}: {ran:#?}");
    }
}

#[test]
fn more_than_two_arms_are_compared_with_the_first_and_a_load_that_dies_is_reported() {
    let place = Place::new();
    let text = r#"
repetitions = 2
[[measurement]]
name = "cycle"
run = "cpu cycle --rounds 2 --count 4"
[[arm]]
name = "alone"
[[arm]]
name = "pinned"
prefix = "taskset -c 0"
labels = { where = "first" }
[[arm]]
name = "loaded"
load = "exit 3"
"#;
    let plan = place.file("plan.toml", text);
    let ran = end(latscope(["trial", "--plan", &plan, "--dir", "results"]).current_dir(place.path()));
    assert!(ran.out.contains("2 of 6 runs: the load") || ran.out.contains("does not count"), "{ran:#?}");
    let found = json(place.at("results/trial.json"));
    let of_arm = |arm: &str| -> Vec<String> {
        let runs = found["runs"].as_array().unwrap().iter().filter(|run| run["arm"] == arm);
        runs.map(|run| place.at("results/") + run["file"].as_str().unwrap()).collect()
    };
    let pinned = json(&of_arm("pinned")[0]);
    assert_eq!((&pinned["labels"]["where"], &pinned["plan"]["cpus"]), (&"first".into(), &"0".into()));
    let compared = found["comparisons"].as_array().unwrap();
    assert_eq!((&compared[0]["a"], &compared[0]["b"]), (&"alone".into(), &"pinned".into()));
    assert!(ran.out.contains("cycle: A is alone, B is pinned"), "{ran:#?}");
}
