//! `latscope compare` with two sides of saved results, from the files to the exit code.

use crate::support::{Place, end, latscope, parsed, run, wait};
use latscope_core::fixture;
use latscope_core::quality::{EVERY_SAMPLE_DISTURBED, QualityLevel, Reason};
use latscope_core::report::{Better, MeasuredQuantity, Report};
use latscope_core::rounds::RoundSummary;
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// Run of the fixture whose figures scatter by 0.1 % between runs, and whose hand-offs take `factor` times as long.
fn report(name: &str, at: usize, factor: f64) -> Report {
    let mut report = fixture::report();
    report.run_id = format!("{name}-{at}");
    report.plan.rounds = 4;
    for m in &mut report.measurements {
        let by = if m.probe.starts_with("sync.") { factor } else { 1.0 };
        let noise =
            |round: usize| 1.0 + 0.001 * ((at * 7) % 9) as f64 + 0.001 * ((at + round * 3) % 5) as f64;
        let p50 = m.summary.p50;
        let round = |round| RoundSummary {
            count: 9,
            p50: p50.map(|ns| ns * by * noise(round)),
            ..RoundSummary::default()
        };
        m.rounds = (0..4).map(round).collect();
        m.derive_results();
    }
    report
}

/// Creates a directory of so many runs.
pub fn side(place: &Place, name: &str, runs: usize, factor: f64) -> String {
    let directory = place.directory(name);
    for at in 0..runs {
        fs::write(format!("{directory}/{at}.json"), report(name, at, factor).to_json()).unwrap();
    }
    directory
}

#[test]
fn what_is_slower_is_found_in_every_form_and_fails_where_it_shall() {
    let place = Place::new();
    let (a, b, again) = (side(&place, "a", 9, 1.0), side(&place, "b", 9, 1.2), side(&place, "c", 9, 1.01));
    let shown = run(&["compare", &a, &b]).done();
    assert!(shown.contains("slower") && shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let json = parsed(&run(&["compare", &a, &b, "--json", "-"]).done());
    assert_eq!(json["schema"], "latscope-compare/1");
    let verdict = |probe: &str| {
        let mut points = json["points"].as_array().unwrap().iter();
        points.find(|point| point["probe"] == probe && point["level"] == "ok").unwrap()["verdict"].clone()
    };
    assert_eq!((verdict("sync.mutex"), verdict("cpu.add")), ("slower".into(), "same".into()));
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower"]).code, Some(2));
    assert_eq!(run(&["compare", &b, &a, "--fail-on", "slower"]).code, Some(0));
    assert_eq!(run(&["compare", &a, &again, "--fail-on", "slower", "--only", "sync.mutex"]).code, Some(0));
    assert!(
        run(&["compare", &a, "--", &b, "--fail-on", "slower"]).refused().contains("options stand before --")
    );
    let lenient = ["compare", &a, &b, "--fail-on", "slower", "--only", "sync.mutex", "--same", "30%"];
    assert_eq!(run(&lenient).code, Some(0));
    let (csv, markdown) = (place.at("c.csv"), place.at("c.md"));
    run(&["compare", &a, &b, "--csv", &csv, "--markdown", &markdown]).done();
    assert!(fs::read_to_string(csv).unwrap().starts_with("id,probe,title,figure,"));
    assert!(fs::read_to_string(markdown).unwrap().contains("| p50 |"));
}

#[test]
fn two_runs_say_at_most_that_they_differ() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 1, 1.0), side(&place, "b", 1, 1.5));
    let shown = run(&["compare", &a, "--", &b]).done();
    assert!(shown.contains("differs, up") && shown.contains("0 slower"), "{shown}");
    // Six times as long in one run a side cannot be called slower: that is no pass.
    let few = run(&["compare", &a, &b, "--fail-on", "slower"]);
    assert!(few.code == Some(3) && few.err.contains("too few to say slower"), "{few:?}");
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower", "--only", "sync"]).code, Some(3));
    let same = run(&["compare", &a, &b, "--fail-on", "slower", "--only", "cpu.add"]);
    assert!(same.code == Some(3) && same.err.contains("too few runs"), "{same:?}");
}

/// Changes the runs of a directory: every point but the first was measured under conditions that distort it.
fn degraded(directory: &str) {
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let mut report = Report::from_json(&fs::read(&path).unwrap()).unwrap();
        for m in report.measurements.iter_mut().filter(|m| m.summary.count > 0).skip(1) {
            let reason = "something else ran during every sample";
            m.lower(Reason::new(QualityLevel::Degraded, EVERY_SAMPLE_DISTURBED, reason, ""));
        }
        fs::write(path, report.to_json()).unwrap();
    }
}

#[test]
fn sides_of_which_most_points_are_degraded_cannot_pass() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 9, 1.0), side(&place, "b", 9, 1.0));
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower"]).code, Some(0));
    degraded(&b);
    let ran = run(&["compare", &a, &b, "--fail-on", "slower"]);
    assert!(ran.code == Some(3) && ran.err.contains("are unstable or degraded"), "{ran:?}");
}

/// Changes the runs of a directory: other programs used so much of the CPUs.
fn beside(directory: &str, others: f64) {
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let mut report: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        report["activity"] =
            serde_json::json!({ "wall_ns": 1_000_000_000u64, "cpus": 2, "ran_ns": 0, "others": others });
        fs::write(path, report.to_string()).unwrap();
    }
}

#[test]
fn sides_beside_which_others_used_the_cpus_differently_differ_at_most() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 9, 1.0), side(&place, "b", 9, 1.5));
    beside(&a, 0.02);
    beside(&b, 0.62);
    let ran = run(&["compare", &a, &b, "--fail-on", "slower"]);
    assert!(ran.code == Some(3) && ran.err.contains("other processes used"), "{ran:?}");
    assert!(ran.out.contains(" 0 slower") && ran.out.contains("--accept-busy"), "{}", ran.out);
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower", "--accept-busy"]).code, Some(2));
    let gate = ["gate", "--baseline", &a, &b];
    assert_eq!(run(&gate).code, Some(3));
    assert_eq!(run(&[&gate[..], &["--accept-busy"]].concat()).code, Some(2));
    // A load that was asked for is declared: what others used is alike.
    beside(&b, 0.02);
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower"]).code, Some(2));
}

#[test]
fn sides_on_a_saturated_machine_differ_at_most() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 9, 1.0), side(&place, "b", 9, 1.5));
    beside(&a, 0.89);
    beside(&b, 0.95);
    let ran = run(&["compare", &a, &b, "--fail-on", "slower"]);
    assert!(ran.code == Some(3) && ran.err.contains("competition for CPUs"), "{ran:?}");
    assert!(ran.out.contains(" 0 slower") && ran.out.contains("--accept-busy"), "{}", ran.out);
    let gate = ["gate", "--baseline", &a, &b];
    assert_eq!(run(&gate).code, Some(3));
    assert_eq!(run(&[&gate[..], &["--accept-busy"]].concat()).code, Some(2));
}

#[test]
fn the_same_seed_gives_the_same_comparison() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 3, 1.0), side(&place, "b", 3, 1.1));
    let of = |seed: &str| run(&["compare", &a, &b, "--csv", "-", "--seed", seed]).done();
    assert_eq!(of("5"), of("5"));
    assert_ne!(of("5"), of("6"));
}

#[test]
fn what_is_not_to_be_compared_is_named() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 2, 1.0), side(&place, "b", 2, 1.0));
    fs::create_dir(format!("{a}/more")).unwrap();
    fs::write(format!("{a}/notes.txt"), "quiet machine").unwrap();
    fs::write(format!("{a}/newer.json"), r#"{"schema": "latscope/2"}"#).unwrap();
    fs::copy(format!("{a}/0.json"), format!("{a}/copy.json")).unwrap();
    let mut other = report("other", 7, 1.0);
    (other.machine.name, other.machine.id) = ("elsewhere".to_owned(), Some("elsewhere".to_owned()));
    other.measurements.iter_mut().filter(|m| m.probe == "sync.futex").for_each(|m| m.revision = 9);
    other.measurements.retain(|m| !m.probe.starts_with("cpu."));
    fs::write(format!("{b}/other.json"), other.to_json()).unwrap();
    let only_a = report("other", 8, 1.0);
    fs::write(format!("{a}/only.json"), Report { measurements: Vec::new(), ..only_a }.to_json()).unwrap();
    let shown = run(&["compare", &a, &b]).done();
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = [
        "notes.txt",
        "more is no plain file",
        "latscope/2",
        "copy.json is the same run as",
        "B mixes 2 machines",
        "revision of the probe: 1 in A, 1 and 9 in B",
    ];
    for words in named {
        assert!(flat.contains(words), "{words:?} is not said:\n{shown}");
    }
}

#[test]
fn impossible_sides_are_refused_in_one_line() {
    let place = Place::new();
    let (a, b, empty) = (side(&place, "a", 1, 1.0), side(&place, "b", 1, 1.0), place.directory("empty"));
    let file = place.file("cut.json", &report("cut", 0, 1.0).to_json()[..9000]);
    let cases: [(&[&str], &str); 12] = [
        (&[&a], "which of these are A"),
        (&[&a, &a, &b], "which of these are A"),
        (&[&a, &a], "nothing to compare"),
        (&[&a, &empty], "there is no result"),
        (&[&a, &file], "cut.json"),
        (&[&a, "/nonexistent.json"], "/nonexistent.json"),
        (&[&a, &b, "--only", "synk"], "did you mean sync"),
        (&[&a, &b, "--same", "0%"], "above 0 % and below 100 %"),
        (&[&a, &b, "--same", "100%"], "above 0 % and below 100 %"),
        (&[&a, &b, "--only", ""], "a family or a probe is missing"),
        (&[&a, &b, "--only", "sync, ,cpu"], "a family or a probe is missing"),
        (&["-", "-"], "standard input"),
    ];
    for (words, said) in cases {
        let ran = run(&[&["compare"], words].concat());
        assert!(ran.refused().contains(said), "{words:?}: {ran:?}");
    }
    assert!(run(&["compare", &a, &b, "--json", "-", "--csv", "-"]).refused().contains("standard output"));
}

#[test]
fn a_side_may_come_from_stdin() {
    let place = Place::new();
    let b = side(&place, "b", 1, 1.0);
    let mut child = latscope(["compare", "-", &b]);
    let mut child =
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(report("stdin", 5, 1.0).to_json().as_bytes()).unwrap();
    drop(stdin);
    assert!(wait(child).done().contains("compared"));
    // A directory is no file, and no terminal is asked.
    assert!(end(&mut latscope(["compare", "-", &b])).refused().contains("standard input"));
}

#[test]
fn blanks_around_names_do_not_count() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 1, 1.0), side(&place, "b", 1, 1.0));
    let of = |only: &str| run(&["compare", &a, &b, "--csv", "-", "--only", only]).done();
    assert_eq!(of("sync.mutex, cpu "), of("sync.mutex,cpu"));
}

#[test]
fn nothing_compared_is_no_success() {
    let place = Place::new();
    let mut one = report("a", 0, 1.0);
    let mut other = report("b", 0, 1.0);
    one.measurements.retain(|m| m.probe.starts_with("cpu."));
    other.measurements.retain(|m| m.probe.starts_with("sync."));
    let (a, b) = (place.file("a.json", one.to_json()), place.file("b.json", other.to_json()));
    let ran = run(&["compare", &a, &b, "--fail-on", "slower"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.out.contains("Nothing was compared") && ran.out.contains("only in B"), "{ran:?}");
    assert!(!ran.out.contains("0 slower"), "{ran:?}");
    assert!(run(&["compare", &a, &b]).done().contains("Nothing was compared"));
}

#[test]
fn sides_of_a_named_value_are_those_of_its_ratio() {
    let place = Place::new();
    let value = |value: f64| MeasuredQuantity { value, unit: "%".to_owned(), better: Better::Less };
    // The runs' own figures fall, the medians of their rounds rise.
    let with = |name: &str, at: usize, whole: f64, rounds: f64, nothing: bool| {
        let mut report = report(name, at, 1.0);
        for m in &mut report.measurements {
            m.values.insert("lost".to_owned(), value(whole));
            m.values.insert("losses".to_owned(), value(whole));
            for round in &mut m.rounds {
                round.values.insert("lost".to_owned(), rounds);
                round.values.insert("losses".to_owned(), if nothing { 0.0 } else { rounds });
            }
        }
        place.file(&format!("{name}{at}.json"), report.to_json())
    };
    let a: Vec<String> = (0..3).map(|at| with("a", at, 2.4, 1.2, at == 0)).collect();
    let b: Vec<String> = (0..3).map(|at| with("b", at, 2.0, 1.4, false)).collect();
    let [a, b] = [&a, &b].map(|files| files.iter().map(String::as_str).collect::<Vec<&str>>());
    let words = [&["compare", "--json", "-"][..], &a, &["--"], &b].concat();
    let json = parsed(&run(&words).done());
    let points = json["points"].as_array().unwrap();
    assert!(!points.is_empty());
    for value in points.iter().map(|point| &point["values"]) {
        let (lost, ratio) = (&value["lost"], &value["lost"]["ratio"]);
        assert_eq!((&lost["a"], &lost["b"]), (&ratio["a"], &ratio["b"]), "{value}");
        let number = |figure: &serde_json::Value| figure.as_f64().unwrap();
        assert!((number(&ratio["ratio"]) - number(&lost["b"]) / number(&lost["a"])).abs() < 1e-9, "{value}");
        assert!(value["losses"]["ratio"].is_null() && value["losses"]["a"] == 2.4, "{value}");
    }
}

#[test]
fn no_output_replaces_an_input_whatever_it_is_called() {
    let place = Place::new();
    let (side, other) = (side(&place, "runs", 2, 1.0), report("other", 5, 1.0).to_json());
    let (a, b, other) = (format!("{side}/0.json"), format!("{side}/1.json"), place.file("other.json", other));
    let link = place.at("link.json");
    std::os::unix::fs::symlink(&a, &link).unwrap();
    let by_parent = format!("{side}/../runs/0.json");
    let budget = place.file("budget.toml", "[[limit]]\nprobe = \"cpu.add\"\np50 = \"1s\"\n");
    let plan = place.file("plan.toml", "");
    let gate = |more: &[&str]| -> Vec<String> {
        [&["gate", &a, "--budget", &budget], more].concat().iter().map(|&word| word.to_owned()).collect()
    };
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&word| word.to_owned()).collect() };
    let cases = [
        words(&["compare", &a, &b, "--json", &a]),
        words(&["compare", &a, &b, "--csv", &b]),
        words(&["compare", &link, &b, "--json", &a]),
        words(&["compare", &a, &b, "--markdown", &link]),
        words(&["compare", &a, &b, "--json", &by_parent]),
        words(&["compare", &side, &other, "--json", &a]),
        gate(&["--json", &a]),
        gate(&["--junit", &budget]),
        gate(&["--baseline", &b, "--markdown", &b]),
        words(&["show", &a, "--json", &a]),
        words(&["show", &a, "--csv", &link]),
        words(&["show", &a, "--html", &a]),
        words(&["show", &a, "--beside", &b, "--csv", &b]),
        words(&["cpu", "--beside", &b, "--json", &b, "--dry-run"]),
        words(&["history", &side, "--json", &a]),
        words(&["history", &side, "--csv", &link]),
        words(&["history", &side, "--markdown", &by_parent]),
        words(&["run", &plan, "--json", &plan]),
    ];
    let files = || [&a, &b, &other, &budget, &plan, &link].map(|file| fs::read(file).unwrap());
    let before = files();
    for case in cases {
        let ran = run(&case.iter().map(String::as_str).collect::<Vec<&str>>());
        assert!(ran.refused().contains("is the input itself"), "{case:?}: {ran:?}");
    }
    assert!(before == files());
    // What is no result may lie among results, and be written again.
    let json = format!("{side}/compared.json");
    for _ in 0..2 {
        run(&["compare", &side, &other, "--json", &json]).done();
    }
}
