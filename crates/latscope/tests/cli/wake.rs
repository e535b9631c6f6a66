//! `latscope wake` and `latscope noise`, end to end: their options, figures and verdicts, and the traces that they
//! leave.

use crate::process::{Mark, signal};
use crate::support::{
    BINARY, Place, Ran, end, eventually, has_reason, json, latscope, measured, names, of_probe, program,
    public_binary, root, run, start, traceable, wait, with_mounts,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;

const TRACEFS: &str = "/sys/kernel/tracing";

/// Runs `latscope wake` for some activations, with further options and a result.
fn wake(words: &[&str]) -> (Ran, Value) {
    let place = Place::new();
    let result = place.at("result.json");
    let ran = end(latscope(["wake", "--count", "100", "--quiet", "--json", &result]).args(words));
    ran.no_panic();
    (ran, json(&result))
}

/// Runs `latscope wake` until each thread has had its activations, however long that takes.
fn wake_counted(words: &[&str]) -> (Ran, Value) {
    let place = Place::new();
    let result = place.at("result.json");
    let ran = end(latscope(["wake", "--count", "20", "--quiet", "--json", &result]).args(words));
    ran.no_panic();
    (ran, json(&result))
}

/// Points of single threads.
fn threads(result: &Value) -> Vec<&Value> {
    of_probe(result, "wake.timer").into_iter().filter(|m| !params_all(m)).collect()
}

fn params_all(m: &Value) -> bool {
    m["params"]["cpu"] == "all"
}

fn warnings<'a>(result: &'a Value, id: &str) -> Vec<&'a Value> {
    result["warnings"].as_array().unwrap().iter().filter(|warning| warning["id"] == id).collect()
}

#[test]
fn the_line_that_scripts_rely_on_works() {
    let place = Place::new();
    let result = place.at("result.json");
    let cpu = latscope_os::sched::allowed_cpus().unwrap().last().unwrap().to_string();
    let words = ["wake", "--cpus", &cpu, "--priority", "80", "--interval", "1ms", "--duration", "500ms"];
    let more = ["--threshold", "10s", "--on-threshold", "continue", "--json", &result, "--quiet"];
    let ran = end(latscope(words).args(more));
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    ran.no_panic();
    let found = json(&result);
    measured(&found, "wake.timer");
    let all = of_probe(&found, "wake.timer");
    // One thread, and the sum over CPUs.
    assert_eq!(all.len(), 2);
    let params = &all[0]["params"];
    assert_eq!(params["cpu"].to_string(), cpu);
    let given = (&params["interval"], &params["policy"], &params["priority"], &params["method"]);
    assert_eq!(given, (&1_000_000.into(), &"fifo".into(), &80.into(), &"nanosleep".into()));
    for m in all {
        assert!(m["times"] == "one-way" && m["sampling"] == "event", "{m:#}");
        assert!(m["summary"]["missed"].is_u64(), "{m:#}");
        for name in ["faults", "early", "involuntary", "migrations"] {
            assert!(m["values"][name]["value"].is_number(), "{name}: {:#}", m["values"]);
        }
        assert_eq!(m["values"]["early"]["value"], 0.0);
        let judged = m["verdict"]["checks"][0]["metric"] == "threshold";
        assert!(judged, "the sum over CPUs is judged, and the only CPU is it: {m:#}");
    }
    let rules = &found["plan"]["steps"][0]["periodic"];
    assert_eq!((&rules["threshold"], &rules["warm_up"]), (&10_000_000_000_u64.into(), &100.into()));
    assert_eq!(found["plan"]["on_threshold"]["actions"], serde_json::json!(["continue"]));
    if root("the exit code of the line that scripts rely on") {
        assert_eq!(ran.code, Some(0));
    }
}

#[test]
fn exit_codes_tell_whether_criteria_hold() {
    if !root("exit_codes_tell_whether_criteria_hold") {
        return;
    }
    let codes = [
        (&[][..], 0, "none"),
        (&["--max", "10s"], 0, "pass"),
        (&["--missed", "1000000"], 0, "pass"),
        (&["--max", "1ns"], 2, "exceeded"),
        (&["--threshold", "1ns"], 2, "exceeded"),
        (&["--p50", "1ns"], 2, "exceeded"),
        (&["--p99_9999", "10s"], 3, "inconclusive"),
    ];
    for (words, code, status) in codes {
        let (ran, found) = wake(words);
        assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
        let judged = of_probe(&found, "wake.timer").into_iter().filter(|m| m["verdict"].is_object());
        let verdicts: Vec<&str> = judged.map(|m| m["verdict"]["status"].as_str().unwrap()).collect();
        let expected = if words.is_empty() { vec![] } else { vec![status] };
        assert_eq!(verdicts, expected, "{words:?}");
    }
}

#[test]
fn a_reader_that_goes_away_does_not_change_the_verdict() {
    let (_, closed) = std::io::pipe().map(|(reader, writer)| (drop(reader), writer)).unwrap();
    let mut command = latscope(["wake", "--count", "20", "--max", "1ns"]);
    assert_eq!(command.stdout(closed).status().unwrap().code(), Some(2));
}

#[test]
fn what_cannot_be_is_one_line_and_nothing_is_measured() {
    let outside = ["wake", "--cpus", "4095"];
    for (words, part) in [
        (&["wake", "--priority", "0"][..], "1 to 99"),
        (&["wake", "--priority", "100"], "1 to 99"),
        (&["wake", "--duration", "1x"], "\"1x\" is not a duration"),
        (&["wake", "--interval", "0s"], "--interval 0"),
        (&["wake", "--max", "soon"], "the limit of max"),
        (&["wake", "--missed", "few"], "not a number from 0 up"),
        (&["wake", "--on-threshold", "stop"], "--threshold"),
        (&["wake", "--policy", "other", "--priority", "5"], "no priority"),
        (&["noise", "--on-threshold", "stop"], "--threshold"),
        (&["noise", "--missed", "0"], "--missed"),
        (&outside, "is not online"),
    ] {
        let ran = run(words);
        let line = ran.refused();
        assert!(line.contains(part) && ran.out.is_empty(), "{words:?}: {line}");
    }
    let cpus = latscope_os::sched::allowed_cpus().unwrap();
    if let [first, .., last] = cpus[..] {
        let words = ["wake", "--cpus", &last.to_string()];
        let ran = end(program(["taskset", "-c", &first.to_string(), BINARY]).args(words));
        assert!(ran.refused().contains(&format!("taskset -c {last}")), "{ran:?}");
    }
}

#[test]
fn an_interval_below_the_floor_is_refused_with_the_floor() {
    let ran = run(&["wake", "--interval", "1ns", "--duration", "100ms", "--quiet"]);
    let line = ran.refused();
    assert!(
        line.contains("the fastest sleep and wake-up of this machine") && line.contains("ask for at least"),
        "{line}"
    );
}

#[test]
fn deadlines_that_are_not_admitted_are_told() {
    if !root("deadlines_that_are_not_admitted_are_told") {
        return;
    }
    let words = ["wake", "--policy", "deadline", "--runtime", "999us", "--duration", "100ms", "--quiet"];
    let line = run(&words).refused();
    assert!(line.contains("SCHED_DEADLINE") && line.contains("is not granted"), "{line}");
    let cpus = latscope_os::sched::allowed_cpus().unwrap();
    if cpus.len() > 1 {
        let ran =
            end(program(["taskset", "-c", &cpus[0].to_string(), BINARY]).args(&words[..3]).arg("--quiet"));
        assert!(ran.refused().contains("all CPUs"), "{ran:?}");
    }
}

#[test]
fn who_may_not_be_real_time_is_told_before_and_after() {
    if !root("who_may_not_be_real_time_is_told_before_and_after") {
        return;
    }
    let (place, binary) = public_binary();
    let script = "exec prlimit --rtprio=0 setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \"$0\" wake --duration 200ms --max 10s --json -";
    let ran = end(program(["sh", "-c", script, binary.to_str().unwrap()]).current_dir("/"));
    ran.no_panic();
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("latscope: degraded: ran as SCHED_OTHER"), "{}", ran.err);
    let found = crate::support::parsed(&ran.out);
    // One distortion does not hide another.
    for word in ["ran as SCHED_OTHER", "/dev/cpu_dma_latency"] {
        has_reason(&of_probe(&found, "wake.timer"), "degraded", word);
    }
    measured(&found, "wake.timer");
    drop(place);
}

#[test]
fn threads_that_use_all_of_the_cpu_are_warned_of_throttling() {
    let place = Place::new();
    let setting = place.file("setting", "950000\n");
    if !root("threads_that_use_all_of_the_cpu_are_warned_of_throttling") {
        return;
    }
    let script = "
        mount --bind \"$2\" /proc/sys/kernel/sched_rt_runtime_us
        exec \"$1\" wake --policy other --work 950us --duration 100ms --json -";
    let found = crate::support::parsed(&end(&mut with_mounts(script, &[&setting])).done());
    let [warning] = warnings(&found, "rt-throttling")[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning["text"].as_str().unwrap().contains("950 ms"), "{warning:#}");
    assert!(warning["remedy"].as_str().unwrap().contains("less --work"), "{warning:#}");
    fs::write(&setting, "-1\n").unwrap();
    let found = crate::support::parsed(&end(&mut with_mounts(script, &[&setting])).done());
    assert!(warnings(&found, "rt-throttling").is_empty());
}

#[test]
fn an_unstable_clock_is_warned_of() {
    if !root("an_unstable_clock_is_warned_of") {
        return;
    }
    let place = Place::new();
    let source = place.file("source", "acpi_pm\n");
    let script = "
        mount --bind \"$2\" /sys/devices/system/clocksource/clocksource0/current_clocksource
        exec \"$1\" wake --duration 100ms --json -";
    let found = crate::support::parsed(&end(&mut with_mounts(script, &[&source])).done());
    let [warning] = warnings(&found, "clock")[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning["text"].as_str().unwrap().contains("acpi_pm"), "{warning:#}");
}

#[test]
fn a_tracefs_that_fails_costs_no_figure() {
    if !traceable("a_tracefs_that_fails_costs_no_figure") {
        return;
    }
    let place = Place::new();
    // Looks like one, and is none.
    let empty = place.directory("tracing");
    let script = "
        mount --bind \"$2\" /sys/kernel/tracing
        mkdir -p \"$2\"/instances
        binary=$1
        shift 2
        exec \"$binary\" wake --duration 200ms \"$@\"";
    let ran = end(&mut with_mounts(script, &[&empty, "--threshold", "10s", "--json", "-"]));
    ran.no_panic();
    let found = crate::support::parsed(&ran.out);
    measured(&found, "wake.timer");
    let [warning] = warnings(&found, "no-blame")[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning["remedy"].is_string(), "{warning:#}");
    assert!(names(format!("{empty}/instances")).is_empty());
    // What was not traced is no cause.
    let ran = end(&mut with_mounts(script, &[&empty, "--blame", "3"]));
    ran.no_panic();
    assert!(ran.out.contains("Longest events") && ran.out.contains("not traced"), "{}", ran.out);
    assert!(!ran.out.contains("What took the time of late events"), "{}", ran.out);
    assert!(ran.err.contains("the 3 longest events are not explained"), "{}", ran.err);
    assert!(!ran.err.contains("above the threshold"), "{}", ran.err);
}

#[test]
fn the_first_outlier_ends_the_run_and_its_trace_is_saved() {
    if !traceable("the_first_outlier_ends_the_run_and_its_trace_is_saved") {
        return;
    }
    let place = Place::new();
    let (result, trace) = (place.at("result.json"), place.at("trace.txt"));
    // A run that no test waits out.
    let words = ["wake", "--duration", "600s", "--threshold", "1ns", "--on-threshold", "stop"];
    let ran = end(latscope(words).args(["--quiet", "--json", &result, "--trace", &trace]));
    ran.no_panic();
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let found = json(&result);
    assert!(found["finished"].is_string(), "it ended as it was asked to");
    assert!(fs::read_to_string(&trace).unwrap().contains("latscope: late by"));
    let outliers =
        || threads(&found).into_iter().flat_map(|m| m["outliers"].as_array().into_iter().flatten());
    assert!(outliers().next().is_some());
    let recorded = threads(&found).into_iter().any(|m| m["recordings"]["exceedances"][0]["value"].is_u64());
    assert!(recorded);
}

#[test]
fn commands_and_signals_are_carried_out_and_write_to_no_screen() {
    let place = Place::new();
    let (told, caught) = (place.at("told"), place.at("caught"));
    // Loops until the signal that it waits for.
    let catcher = format!(
        "trap 'echo caught > {caught}; exit' USR1; echo ready > {told}.ready; while :; do sleep 0.05; done"
    );
    let mut target = start(&mut program(["sh", "-c", &catcher]));
    eventually("it is ready", || Path::new(&format!("{told}.ready")).exists().then_some(()));
    let command =
        format!("exec:echo to stdout; echo to stderr >&2; echo $LATSCOPE_CPU $LATSCOPE_NS >> {told}");
    let mut latscope =
        latscope(["wake", "--duration", "300ms", "--threshold", "1ns", "--no-blame", "--quiet"]);
    let signalled = format!("signal:{}", target.id());
    let ran = end(latscope.args(["--on-threshold", &command, "--on-threshold", &signalled]));
    ran.no_panic();
    assert!(ran.out.is_empty() && !ran.err.contains("to std"), "{ran:?}");
    eventually("the signal is caught", || Path::new(&caught).exists().then_some(()));
    assert!(target.wait().unwrap().success());
    let line = eventually("the command has run", || {
        fs::read_to_string(&told).ok()?.lines().next().map(str::to_owned)
    });
    let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(numbers.len() == 2 && numbers[1] > 1, "{line}");
}

#[test]
fn an_action_that_fails_is_reported() {
    let place = Place::new();
    let result = place.at("result.json");
    let command = ["wake", "--duration", "200ms", "--threshold", "1ns", "--no-blame", "--json", &result];
    for (action, said) in [
        ("exec:/nonexistent/program", "\"/nonexistent/program\" failed: exit status: 127"),
        ("exec:exit 3", "\"exit 3\" failed: exit status: 3"),
        // Above the largest number that a process can have.
        ("signal:2147483647", "no signal was sent to process 2147483647"),
    ] {
        let ran = end(latscope(command).args(["--on-threshold", action]));
        ran.no_panic();
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(said), "{ran:?}");
        let found = json(&result);
        let warnings = found["warnings"].as_array().unwrap().iter();
        let told =
            warnings.filter(|warning| warning["text"].as_str().is_some_and(|text| text.contains(said)));
        assert_eq!(told.map(|warning| &warning["id"]).collect::<Vec<_>>(), ["action-failed"]);
    }
}

#[test]
fn every_kind_of_thread_is_measured() {
    let other = ["--policy", "other"];
    for words in [
        &["--as-is"][..],
        &["--phase", "aligned"],
        &["--phase", "random", "--seed", "7"],
        &["--phase", "staggered", "--threads", "3", "--distance", "100us"],
        &["--via", "thread"],
        &["--via", "eventfd"],
        &["--via", "pipe"],
        &["--method", "timerfd"],
        &["--method", "posix-timer"],
        &["--method", "relative"],
        &["--method", "system"],
        &["--clock", "realtime"],
    ] {
        // By count: beside other tests a thread of the normal class may have to wait for its turn.
        let words: Vec<&str> = other.iter().chain(words).copied().collect();
        let (ran, found) = wake_counted(&words);
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
        measured(&found, "wake.timer");
        assert_eq!(threads(&found)[0]["params"]["policy"], "other");
        assert_eq!(
            found["plan"]["steps"][0]["conditions"]["lock_memory"],
            !words.contains(&"--as-is"),
            "{words:?}"
        );
    }
}

#[test]
fn deadline_threads_are_measured_on_any_cpu() {
    if !root("deadline_threads_are_measured_on_any_cpu") {
        return;
    }
    let (ran, found) = wake(&["--policy", "deadline", "--method", "yield"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    measured(&found, "wake.timer");
    for m in threads(&found) {
        assert!(m["params"]["policy"] == "deadline" && m["params"]["cpu"] == "any", "{m:#}");
        assert!(m["params"]["runtime"].is_u64() && m["params"]["deadline"].is_u64(), "{m:#}");
    }
}

#[test]
fn the_response_contains_the_work() {
    let (ran, found) = wake(&["--policy", "other", "--work", "50us", "--touch", "64KiB"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    measured(&found, "wake.timer");
    measured(&found, "wake.response");
    for m in of_probe(&found, "wake.response") {
        assert!(m["summary"]["min"].as_f64() >= Some(50_000.0), "{m:#}");
    }
}

#[test]
fn what_missed_activations_felt_is_in_a_second_distribution() {
    // Each activation works longer than most of the interval, and is interrupted: some are missed.
    let (_, found) = wake(&["--policy", "other", "--interval", "200us", "--work", "190us", "--load", "cpu"]);
    let missed: Vec<_> =
        threads(&found).into_iter().filter(|m| m["summary"]["missed"].as_u64() > Some(0)).collect();
    for m in missed {
        let sum = |name: &str| -> u64 {
            let buckets = m[name]["buckets"].as_array().unwrap_or_else(|| panic!("{m:#}"));
            buckets.iter().map(|bucket| bucket[2].as_u64().unwrap()).sum::<u64>()
                + m[name]["overflow"].as_u64().unwrap()
        };
        assert_eq!(sum("corrected"), sum("histogram") + m["summary"]["missed"].as_u64().unwrap(), "{m:#}");
    }
}

#[test]
fn pictures_are_svg_and_show_every_thread() {
    let place = Place::new();
    let (picture, percentiles) = (place.at("a.svg"), place.at("b.svg"));
    let (ran, found) = wake(&["--svg", &picture, "--svg-percentiles", &percentiles]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for path in [&picture, &percentiles] {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.trim_start().starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{path}");
        well_formed(&text);
    }
    let text = fs::read_to_string(&picture).unwrap();
    for m in threads(&found) {
        assert!(text.contains(&format!("CPU {}", m["params"]["cpu"])), "{text}");
    }
    // What a run can write, show writes of its saved result: the same, byte by byte.
    let saved = place.at("saved.json");
    fs::write(&saved, found.to_string()).unwrap();
    let views = ["svg", "svg-percentiles", "csv", "csv-histogram", "markdown"];
    let at = |view: &str| place.at(&format!("again.{view}"));
    let options = views.iter().flat_map(|view| [format!("--{view}"), at(view)]);
    let words: Vec<String> = ["show".to_owned(), saved].into_iter().chain(options).collect();
    run(&words.iter().map(String::as_str).collect::<Vec<_>>()).done();
    assert_eq!(fs::read(at("svg")).unwrap(), fs::read(&picture).unwrap());
    assert_eq!(fs::read(at("svg-percentiles")).unwrap(), fs::read(&percentiles).unwrap());
    let counted: u64 = threads(&found).iter().map(|m| m["summary"]["count"].as_u64().unwrap()).sum();
    let buckets = fs::read_to_string(at("csv-histogram")).unwrap();
    let cells = |line: &str| line.split(',').skip(2).filter_map(|cell| cell.parse::<u64>().ok()).sum::<u64>();
    // Each thread, and the sum of all where there are several.
    let times = if threads(&found).len() > 1 { 2 } else { 1 };
    assert_eq!(buckets.lines().skip(1).map(cells).sum::<u64>(), times * counted, "{buckets}");
    let refused = run(&["wake", "--svg", "/nonexistent/a.svg"]).refused();
    assert!(refused.contains("/nonexistent/a.svg"), "{refused}");
}

/// Asserts that every element is closed in order, and that there is no bare ampersand or quote.
fn well_formed(text: &str) {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').expect("a tag ends");
        assert_eq!(inside.matches('"').count() % 2, 0, "{inside}");
        match inside.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name.trim()), "{inside}"),
            None if inside.ends_with('/') || inside.starts_with(['?', '!']) => {}
            None => open.push(inside.split_whitespace().next().expect("a tag has a name")),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_time_line_of_the_measuring_threads_can_be_had() {
    if !traceable("a_time_line_of_the_measuring_threads_can_be_had") {
        return;
    }
    let place = Place::new();
    let file = place.at("timeline.json");
    let (ran, found) = wake(&["--timeline", &file]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::read_to_string(&file).unwrap().contains("wake/0"));
    assert_eq!(warnings(&found, "timeline").len(), 1);
}

#[test]
fn extrapolation_is_given_or_refused_with_a_reason() {
    let (ran, found) = wake(&["--extrapolate"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let findings = found["findings"].as_array().unwrap();
    let told = findings.iter().any(|finding| finding["text"].as_str().unwrap().contains("activations"));
    assert!(told, "{findings:#?}");
}

#[test]
fn a_dry_run_shows_the_plan_and_measures_nothing() {
    let plan = run(&["wake", "--dry-run", "--json", "-", "--cpus", "0", "--threshold", "50us"]).done();
    let plan = crate::support::parsed(&plan);
    assert_eq!(plan["steps"][0]["periodic"]["threshold"], 50_000);
    assert_eq!(plan["on_threshold"]["blame"], true);
    let text = run(&["wake", "--dry-run", "--profile", "osadl"]).done();
    assert!(text.contains("OSADL"), "{text}");
}

/// Returns true if another thread of the process than its main thread was on a CPU often enough, or long enough, to
/// have figures.
fn has_run(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let others = tasks.filter(|task| task.file_name().to_str() != Some(&pid.to_string()));
    others.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok()).any(|text| {
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [ns, _, slices] if slices > 400 || ns > 50_000_000)
    })
}

#[test]
fn an_interrupt_ends_with_the_summary() {
    for words in [&["wake", "--endless"][..], &["noise", "--duration", "600s"]] {
        let place = Place::new();
        let result = place.at("result.json");
        let mut command = latscope(words);
        let mark = Mark::on(command.args(["--json", &result]));
        let child = start(&mut command);
        let worker = mark.wait_for("__worker");
        eventually("it measures", || has_run(worker.pid).then_some(()));
        signal(&child, Signal::INT);
        let ran = wait(child);
        ran.no_panic();
        let endless = words[0] == "wake";
        assert_eq!(ran.code, Some(if endless { 0 } else { 1 }), "{ran:?}");
        assert!(ran.out.contains("all CPUs"), "{}", ran.out);
        let found = json(&result);
        assert_eq!(found["finished"].is_string(), endless);
        // An endless run has no time to be ended before.
        assert_eq!(found["interrupted"]["by"].as_str(), (!endless).then_some("SIGINT"));
        measured(&found, if words[0] == "wake" { "wake.timer" } else { "noise.busy" });
        mark.wait_for_none();
    }
}

/// Settings of tracing that are the user's.
fn settings() -> Vec<String> {
    let files =
        ["tracing_on", "current_tracer", "trace_clock", "set_event", "tracing_thresh", "buffer_size_kb"];
    files.map(|name| fs::read_to_string(format!("{TRACEFS}/{name}")).unwrap_or_default()).into()
}

#[test]
fn after_a_kill_no_instance_is_left_and_the_users_settings_are_his() {
    if !traceable("after_a_kill_no_instance_is_left_and_the_users_settings_are_his") {
        return;
    }
    let before = settings();
    for which in [Signal::INT, Signal::KILL] {
        let mut command = latscope(["wake", "--endless", "--threshold", "10s", "--quiet"]);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        let id = child.id().to_string();
        let ours = || names(format!("{TRACEFS}/instances")).into_iter().find(|name| name.contains(&id));
        eventually("an instance is made", ours);
        mark.wait_for("__worker");
        assert_eq!(settings(), before, "while it runs");
        signal(&child, which);
        wait(child);
        mark.wait_for_none();
        eventually("the instance is gone", || ours().is_none().then_some(()));
        assert_eq!(settings(), before);
    }
}

#[test]
fn noise_is_judged_like_everything_else() {
    let noise = |words: &[&str]| {
        let place = Place::new();
        let result = place.at("result.json");
        let ran = end(latscope(["noise", "--duration", "200ms", "--quiet", "--json", &result]).args(words));
        ran.no_panic();
        (ran.code, json(&result))
    };
    assert_eq!(noise(&["--max", "1h"]).0, Some(0));
    // No gap is as long: the limit holds if it is not below what was looked for.
    let (code, found) = noise(&["--gap", "1h", "--max", "1h"]);
    assert_eq!(code, Some(0), "{found:#}");
    assert_eq!(noise(&["--gap", "1h", "--max", "1s"]).0, Some(3));
    let (code, found) = noise(&["--threshold", "1h", "--no-blame"]);
    assert_eq!(code, Some(0));
    let all = of_probe(&found, "noise.busy").into_iter().find(|m| params_all(m)).unwrap();
    assert_eq!(all["verdict"]["checks"][0]["limit"], 3_600_000_000_000_f64);
}

/// Run in which each wake-up is later than its limit allows.
fn too_late(result: &str) -> std::process::Command {
    let words = ["wake", "--policy", "other", "--as-is", "--duration", "600s", "--max", "1ns", "--quiet"];
    latscope(words.into_iter().chain(["--json", result]))
}

#[test]
fn a_criterion_that_is_exceeded_ends_the_run_where_that_is_asked_for() {
    let place = Place::new();
    let result = place.at("result.json");
    let ran = end(too_late(&result).arg("--stop-when-exceeded"));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let found = json(&result);
    assert_eq!(found["plan"]["criteria"][0]["metric"], "max", "{found:#}");
    assert!(found["finished"].is_string() && found["interrupted"].is_null(), "{found:#}");
    let warned = found["warnings"].as_array().unwrap().iter().any(|w| w["id"] == "stopped-when-exceeded");
    assert!(warned, "{:#}", found["warnings"]);
    let shown = run(&["show", &result]);
    assert!(shown.code == Some(2) && shown.out.contains("Verdict: exceeded"), "{shown:#?}");
    assert!(run(&["wake", "--stop-when-exceeded"]).refused().contains("requires a criterion"));
}

/// The first exceedance is saved at once, so that a kill at any moment leaves it.
#[test]
fn a_run_that_is_killed_has_exceeded_what_it_had_exceeded() {
    let place = Place::new();
    let result = place.at("result.json");
    let mut killed = start(&mut too_late(&result));
    eventually("the exceedance is saved", || Path::new(&result).exists().then_some(()));
    killed.kill().unwrap();
    wait(killed);
    assert!(json(&result)["finished"].is_null());
    let shown = run(&["show", &result]);
    assert!(shown.code == Some(2) && shown.out.contains("max ≤ 1.00 ns exceeded"), "{shown:#?}");
}
