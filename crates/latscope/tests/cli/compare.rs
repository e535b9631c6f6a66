//! `latscope compare`: two sides of saved results, from the files to the exit code.

use crate::support::{Place, end, latscope, parsed, run, wait};
use latscope_core::fixture;
use latscope_core::report::Report;
use latscope_core::rounds::Round;
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// A run of the fixture whose figures scatter by 0.1 % between runs, and whose hand-offs take `factor` times as long.
fn report(name: &str, at: usize, factor: f64) -> Report {
    let mut report = fixture::report();
    report.run_id = format!("{name}-{at}");
    report.plan.rounds = 4;
    for m in &mut report.measurements {
        let by = if m.probe.starts_with("sync.") { factor } else { 1.0 };
        let noise =
            |round: usize| 1.0 + 0.001 * ((at * 7) % 9) as f64 + 0.001 * ((at + round * 3) % 5) as f64;
        let p50 = m.summary.p50;
        let round = |round| Round { count: 9, p50: p50.map(|ns| ns * by * noise(round)), ..Round::default() };
        m.rounds = (0..4).map(round).collect();
        m.settle();
    }
    report
}

/// A directory of so many runs.
fn side(place: &Place, name: &str, runs: usize, factor: f64) -> String {
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
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower"]).code, Some(0));
    assert_eq!(run(&["compare", &a, &b, "--fail-on", "slower", "--only", "sync"]).code, Some(3));
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
    let cases: [(&[&str], &str); 9] = [
        (&[&a], "which of these are A"),
        (&[&a, &a, &b], "which of these are A"),
        (&[&a, &a], "nothing to compare"),
        (&[&a, &empty], "there is no result"),
        (&[&a, &file], "cut.json"),
        (&[&a, "/nonexistent.json"], "/nonexistent.json"),
        (&[&a, &b, "--only", "synk"], "did you mean sync"),
        (&[&a, &b, "--same", "0%"], "no percentage"),
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
