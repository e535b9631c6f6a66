//! Results of other programs, from the file to the exit code, and invalid files in every command that reads results.

use crate::support::{Place, end, json, latscope, parsed, run, wait};
use latscope_core::fixture;
use latscope_core::histogram::{Histogram, Totals, bucket_of};
use latscope_core::report::Report;
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// Path of a real output of another program.
pub fn real(name: &str) -> String {
    format!("{}/../latscope-judge/tests/imports/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn an_output_is_shown_and_compared_as_it_is_and_as_a_result() {
    let place = Place::new();
    let (file, result) = (real("cyclictest.json"), place.at("result.json"));
    let said = run(&["import", &file, "--json", &result]).done();
    assert!(
        said.contains("cyclictest 2.40, 2 points") && said.contains("not known: missed activations"),
        "{said}"
    );
    assert_eq!(run(&["show", &file]).done(), run(&["show", &result]).done());
    let shown = run(&["show", &file]).done();
    let known = [
        "cyclictest 2.40, imported",
        "every 1.00 ms",
        "SCHED_FIFO 80",
        "not known: ",
        "CPU 0, with the missed",
    ];
    for words in known {
        assert!(shown.contains(words), "{words}:\n{shown}");
    }
    for invented in ["unknown processor", "hypervisor", "load average", "clock ,", "INCOMPLETE"] {
        assert!(!shown.contains(invented), "{invented}:\n{shown}");
    }
    let written = json(&result);
    assert_eq!(written["imported"]["program"], "cyclictest");
    assert!(
        written["machine"]["load_average"].is_null()
            && written["measurements"][0]["summary"]["missed"].is_null()
    );
    // The same run in two forms is one run.
    assert!(run(&["compare", &file, &result]).refused().contains("nothing to compare"));
    let csv = run(&["show", &result, "--csv", "-"]).done();
    assert!(csv.lines().nth(1).unwrap().contains("wake.timer,wake,"), "{csv}");
    assert!(run(&["show", &file, "--markdown", "-"]).done().starts_with("## cyclictest 2.40, imported\n"));
}

#[test]
fn what_another_program_does_not_say_is_named_by_a_comparison() {
    let place = Place::new();
    let ours = place.file("wake.json", fixture::wake().to_json());
    let shown = run(&["compare", &real("jitterdebugger.json"), &ours]).done();
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "1 run of A measured by jitterdebugger, not known of it: interval, scheduling policy",
        "A does not say clock, interval, method, policy, priority, thread of 2 points: compared as if they were alike",
        "2 points compared",
    ] {
        assert!(flat.contains(words), "{words}:\n{shown}");
    }
    // Another priority is another point, and no guess is made.
    let other = run(&["compare", &real("cyclictest.json"), &ours]).done();
    assert!(other.contains("Nothing was compared"), "{other}");
}

#[test]
fn several_outputs_are_written_to_a_directory() {
    let place = Place::new();
    let directory = place.directory("results");
    let files = ["fio.json", "hyperfine.json", "lat_mem_rd.txt"].map(real);
    let mut words = vec!["import"];
    words.extend(files.iter().map(String::as_str));
    run(&[&words[..], &["--json", &directory]].concat()).done();
    let mut written: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(written, ["fio.json", "hyperfine.json", "lat_mem_rd.json"]);
    assert!(run(&[&words[..], &["--json", &directory]].concat()).refused().contains("exists already"));
    let file = place.at("file.json");
    assert!(run(&[&words[..], &["--json", &file]].concat()).refused().contains("need a directory"));
    // If one cannot be read, nothing is written.
    let (new, one) = (format!("{}/", place.at("new")), format!("{}/", place.at("one/deep")));
    run(&[&words[..], &["--json", &new]].concat()).done();
    run(&["import", &real("cyclictest.json"), "--json", &one]).done();
    assert_eq!(fs::read_dir(&new).unwrap().count(), written.len());
    assert!(fs::exists(format!("{one}cyclictest.json")).unwrap());
    let empty = place.directory("empty");
    let bad = real("fio-without-bins.json");
    assert!(run(&["import", &files[1], &bad, "--json", &empty]).refused().contains("--output-format=json+"));
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn an_output_may_come_from_stdin_and_go_to_stdout() {
    let mut child = latscope(["import", "-", "--json", "-"]);
    let mut child =
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(real("fio.json")).unwrap()).unwrap();
    assert_eq!(parsed(&wait(child).done())["imported"]["program"], "fio");
    assert!(end(&mut latscope(["import", "-", "-"])).refused().contains("standard input"));
}

#[test]
fn a_result_of_ours_is_nothing_to_import_and_no_input_is_overwritten() {
    let place = Place::new();
    let ours = place.file("ours.json", fixture::wake().to_json());
    assert!(run(&["import", &ours]).refused().contains("a result of latscope already"));
    let copy = place.file("fio.json", fs::read(real("fio.json")).unwrap());
    assert!(run(&["import", &copy, "--json", &copy]).refused().contains("is the input itself"));
    assert_eq!(fs::read(&copy).unwrap(), fs::read(real("fio.json")).unwrap());
}

/// Files that are no result, with the word that each command's message has.
fn bad_files() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let whole = fixture::wake().to_json();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let with = |field: &str, value: &str| whole.replacen(field, value, 1).into_bytes();
    vec![
        ("empty", Vec::new(), "damaged"),
        ("blank", b"\n\n".to_vec(), "damaged"),
        ("binary", vec![0, 159, 146, 150], "damaged"),
        ("cut", whole.as_bytes()[..whole.len() / 2].to_vec(), "damaged"),
        ("doubled", [whole.as_bytes(), whole.as_bytes()].concat(), "damaged"),
        ("foreign", br#"{"answer": 42}"#.to_vec(), "no \"schema\""),
        ("newer", with("latscope/1", "latscope/2"), "latscope/2"),
        ("comparison", with("latscope/1", "latscope-compare/1"), "it is a comparison, no result"),
        ("nan", with("\"sum\":", "\"sum\":NaN,\"old\":"), "damaged"),
        ("infinite", with("\"sum\":", "\"sum\":1e999,\"old\":"), "damaged"),
        ("too many", with("\"overflow\":0", "\"overflow\":18446744073709551615"), "damaged"),
        ("deep", nested(10_000).into_bytes(), "damaged"),
        ("deep fields", r#"{"schema":"latscope/1","tool":"#.repeat(10_000).into_bytes(), "damaged"),
        ("cut cyclictest", cut("cyclictest.json"), "ends early"),
        ("cut fio", cut("fio.json"), "ends early"),
        ("cut table", cut("cyclictest-h100.txt"), "cut off"),
        ("cut rtla", cut("rtla-timerlat.txt"), "cut off"),
        ("no bins", fs::read(real("fio-without-bins.json")).unwrap(), "--output-format=json+"),
        ("oslat", fs::read(real("oslat.json")).unwrap(), "only cyclictest is read"),
    ]
}

fn cut(name: &str) -> Vec<u8> {
    let text = fs::read(real(name)).unwrap();
    text[..text.len() * 2 / 3].to_vec()
}

#[test]
fn what_is_no_result_is_refused_by_name_and_passed_over_in_a_directory() {
    let place = Place::new();
    let good = place.file("good.json", fixture::wake().to_json());
    let mut other = fixture::wake();
    other.run_id = "other".to_owned();
    let other = other.to_json();
    for (name, text, said) in bad_files() {
        let path = place.file(name, &text);
        for words in [
            &["import", &path][..],
            &["show", &path],
            &["compare", &good, &path],
            &["show", &good, "--beside", &path],
        ] {
            let line = run(words).refused();
            let unknown = words[0] == "import" && line.contains("no output that latscope reads");
            assert!(line.contains(name) && (unknown || line.contains(said)), "{words:?}: {line}");
        }
        let directory = place.directory(&format!("in {name}"));
        fs::write(format!("{directory}/{name}"), &text).unwrap();
        fs::write(format!("{directory}/other.json"), &other).unwrap();
        let shown = run(&["compare", &good, &directory]).done();
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let named = flat.contains("B: skipped:") && flat.contains(said);
        assert!(named != (name == "comparison"), "{name}: {shown}");
    }
}

#[test]
fn counts_of_quadrillions_and_foreign_fields_of_any_depth_are_compared() {
    let place = Place::new();
    let side = |name: &str| {
        let directory = place.directory(name);
        for at in 0..3 {
            let mut report = fixture::wake();
            report.run_id = format!("{name}{at}");
            for m in &mut report.measurements {
                let counts =
                    [5_000u64, 9_000].map(|value| (bucket_of(value).unwrap(), 4_000_000_000_000_000));
                let totals = Totals { overflow: 0, min: 5_000, max: 9_000, sum: u64::MAX };
                (m.histogram, m.corrected) = (Histogram::from_counts(1000, counts, totals), None);
                m.derive_results();
            }
            let mut text = report.to_json().trim_end().to_owned();
            text.pop();
            text += &format!(",\"foreign\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
            fs::write(format!("{directory}/{at}.json"), text).unwrap();
        }
        directory
    };
    let (a, b) = (side("a"), side("b"));
    assert!(run(&["compare", &a, &b]).done().contains("points compared"));
    assert!(run(&["show", &format!("{a}/0.json")]).done().contains("8,000,000,000,000,000"));
}

#[test]
fn the_same_run_twice_and_machines_mixed_in_a_side_are_said() {
    let place = Place::new();
    let (a, b) = (place.directory("a"), place.directory("b"));
    let write = |path: String, name: &str, report: &Report| {
        let mut report = report.clone();
        report.run_id = name.to_owned();
        fs::write(path, report.to_json()).unwrap();
    };
    write(format!("{a}/one.json"), "1", &fixture::wake());
    write(format!("{a}/copy.json"), "1", &fixture::wake());
    write(format!("{a}/mine.json"), "2", &fixture::wake());
    let mut elsewhere = fixture::wake();
    elsewhere.machine.name = "elsewhere".to_owned();
    write(format!("{a}/elsewhere.json"), "3", &elsewhere);
    write(format!("{b}/one.json"), "4", &fixture::wake());
    fs::copy(real("jitterdebugger.json"), format!("{b}/jitterdebugger.json")).unwrap();
    fs::copy(real("jitterdebugger.json"), format!("{b}/again.txt")).unwrap();
    let shown = run(&["compare", &a, &b]).done();
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "one.json is the same run as",
        "A mixes 2 machines",
        "jitterdebugger.json is the same run as",
        "1 run of B measured by jitterdebugger",
    ] {
        assert!(flat.contains(words), "{words}:\n{shown}");
    }
}

#[test]
fn an_import_names_what_has_no_figure_and_what_is_doubtful() {
    let made = |name: &str| format!("{}/../latscope-judge/tests/cases/{name}", env!("CARGO_MANIFEST_DIR"));
    for (name, words) in [
        (
            "empty-timerlat-cpu-lost.txt",
            "without a figure: timer latency, return to user space, CPU 0; timer",
        ),
        ("empty-osnoise-quiet.txt", "note: osnoise on all CPUs that were watched: none was counted"),
        (
            "late-cyclictest-9-intervals.json",
            "warning: wake-up, lateness, thread 0: it was late by more than",
        ),
        ("late-cyclictest-9-intervals.json", "is before its kernel was built, 2026-06-04"),
    ] {
        let said = run(&["import", &made(name)]).done();
        assert!(said.contains(words), "{name}: {said}");
    }
    let shown = run(&["show", &made("empty-osnoise-quiet.txt")]).done();
    assert!(shown.contains("none was counted"), "{shown}");
}

/// Output of Google Benchmark on one day, with two repetitions of about so many ns.
fn benchmark(day: usize, ns: f64) -> String {
    let line = |repetition: usize| {
        format!(
            r#"{{"name": "BM_x", "run_name": "BM_x", "run_type": "iteration", "repetition_index": {repetition},
"iterations": 100, "real_time": {}, "cpu_time": {ns}, "time_unit": "ns"}}"#,
            ns + 0.1 * (day * 7 % 5 + repetition) as f64
        )
    };
    format!(
        r#"{{"context": {{"date": "2026-09-{day:02}T10:00:00+00:00", "host_name": "n7"}}, "benchmarks": [{}, {}]}}"#,
        line(0),
        line(1)
    )
}

#[test]
fn a_change_of_imports_has_an_id_of_its_own_and_is_left_out_by_it() {
    let place = Place::new();
    let directory = place.directory("runs");
    for day in 1..=16 {
        let text = benchmark(day, if day < 9 { 250.0 } else { 400.0 });
        fs::write(format!("{directory}/{day:02}.json"), text).unwrap();
    }
    let said = run(&["history", &directory]).done();
    let id = said.split("\nchange ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(id.len() == 12 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}\n{said}");
    let hidden = run(&["history", &directory, "--since", id, "--fail-on", "change"]);
    assert_eq!((hidden.code, hidden.out.contains(&format!("1 change up to {id} left out"))), (Some(0), true));
    assert!(run(&["history", &directory, "--since", "google-bench"]).refused().contains(id));
    // Runs whose ids have their first characters in common: the one change is meant, or none of several.
    let old = place.directory("old");
    for at in 0..16u32 {
        let mut report = fixture::wake();
        report.run_id = format!("google-benchmark-{at}");
        report.started = format!("2026-09-{:02}T10:00:00Z", at + 1);
        fs::write(format!("{old}/{at:02}.json"), report.to_json()).unwrap();
    }
    assert!(
        run(&["history", &old, "--since", "google-bench"]).refused().contains("several runs have this id")
    );
}

#[test]
fn what_is_of_nobody_is_answered_with_whose_outputs_are_read() {
    let place = Place::new();
    for (name, text) in [("empty.json", ""), ("other.txt", "hello\n"), ("other.json", "{\"a\": 1}")] {
        let refused = run(&["import", &place.file(name, text)]).refused();
        assert!(
            refused.contains("choose one of cyclictest --json") && refused.contains("lat_mem_rd"),
            "{refused}"
        );
    }
}

#[test]
fn the_help_and_the_documentation_name_every_format() {
    let help = run(&["import", "--help"]).done();
    let (about, _) = help.split_once("Usage:").unwrap();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/import.md")).unwrap();
    for format in latscope_judge::imports::FORMATS {
        for word in format.name.split_whitespace() {
            assert!(about.contains(word), "{}: {word} is not in the help:\n{about}", format.name);
            assert!(page.contains(word), "{}: {word} is not in docs/import.md", format.name);
        }
    }
}
