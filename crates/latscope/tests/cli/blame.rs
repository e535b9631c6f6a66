//! Explanations of late wake-ups, and traces that fail without costing a figure.

use crate::support::{
    BINARY, NOBODY, Place, end, eventually, has_program, json, latscope, measured, of_probe, on_a_full_disk,
    program, public_binary, run, skipped, skipped_in_part, start, traceable, with_mounts,
};
use serde_json::Value;
use std::os::unix::process::CommandExt;

/// Arguments by which every wake-up is late, by more than 1 ns. `--trace` implies that the trace is saved.
const WORDS: [&str; 6] = ["wake", "--duration", "400ms", "--threshold", "1ns", "--json"];

/// Texts of the warnings with an id.
fn warnings(result: &Value, id: &str) -> Vec<String> {
    let all = result["warnings"].as_array().unwrap().iter();
    all.filter(|warning| warning["id"] == id).map(|warning| warning.to_string()).collect()
}

#[test]
fn outliers_have_causes_that_add_up_and_the_trace_opens_in_its_tool() {
    let name = "outliers_have_causes_that_add_up_and_the_trace_opens_in_its_tool";
    if !traceable(name) || !has_program(name, "trace-cmd") {
        return;
    }
    let place = Place::new();
    let (result, trace) = (place.at("result.json"), place.at("trace.dat"));
    let ran = end(latscope(WORDS).args([&result, "--trace", &trace]));
    ran.no_panic();
    assert_eq!(ran.code, Some(2), "the threshold is a criterion: {ran:?}");
    let found = json(&result);
    measured(&found, "wake.timer");
    let outliers: Vec<&Value> = of_probe(&found, "wake.timer")
        .into_iter()
        .flat_map(|m| m["outliers"].as_array().into_iter().flatten())
        .collect();
    let explained: Vec<_> =
        outliers.iter().filter(|outlier| outlier["cause"][0]["kind"].is_string()).collect();
    assert!(!explained.is_empty());
    for outlier in explained {
        let causes = outlier["cause"].as_array().unwrap().iter();
        let sum: u64 = causes.map(|cause| cause["ns"].as_u64().unwrap()).sum();
        assert_eq!(outlier["value"], sum, "{outlier:#}");
    }
    // Hundreds in a second: each of the longest is explained.
    assert!(outliers.iter().all(|outlier| outlier["cause"][0]["kind"].is_string()), "{outliers:#?}");
    let report = end(&mut program(["trace-cmd", "report", &trace])).done();
    assert!(report.contains("latscope: late by") && report.contains("sched_switch"), "{report}");
}

#[test]
fn where_tracefs_is_not_mounted_it_is_for_the_run_alone() {
    let name = "where_tracefs_is_not_mounted_it_is_for_the_run_alone";
    if !traceable(name) {
        return;
    }
    // Whatever is mounted here is gone in the script's namespace.
    let script = "umount -a -t tracefs,debugfs || true; if grep -q tracefs /proc/mounts; then exit 9; fi; \
                  \"$@\" || test $? = 2; grep -c tracefs /proc/mounts || true";
    let place = Place::new();
    let result = place.at("result.json");
    let mut words = WORDS.to_vec();
    words.extend([result.as_str(), "--quiet", "--trace"]);
    let trace = place.at("trace.dat");
    words.push(&trace);
    let ran = end(&mut with_mounts(script, &words));
    assert_eq!(ran.done().trim(), "0");
    let found = json(&result);
    let explained = |m: &&Value| m["outliers"][0]["cause"][0]["kind"].is_string();
    assert!(of_probe(&found, "wake.timer").iter().any(explained), "{found:#}");
    // The time line of a stand-in, too.
    let file = place.at("timeline.json");
    let timeline = format!("--timeline={file}");
    let words = ["as", "cyclictest", "-q", "-l", "20", "--default-system", timeline.as_str()];
    let out = end(&mut with_mounts(script, &words)).done();
    assert!(out.trim_end().ends_with("\n0"), "{out}");
    assert!(std::fs::metadata(file).unwrap().len() > 0);
}

#[test]
fn a_trace_that_cannot_be_saved_costs_no_figure() {
    if !traceable("a_trace_that_cannot_be_saved_costs_no_figure") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    let ran = end(&mut on_a_full_disk(&[&WORDS[..], &[&result, "--trace"]].concat(), &place));
    ran.no_panic();
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let found = json(&result);
    measured(&found, "wake.timer");
    let [warning] = &warnings(&found, "trace-lost")[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning.contains("disk/file"), "{warning}");
}

#[test]
fn the_worst_are_explained_without_a_threshold() {
    if !traceable("the_worst_are_explained_without_a_threshold") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    run(&["wake", "--duration", "3s", "--blame", "3", "--json", &result]).done();
    let found = json(&result);
    let each: Vec<&Value> = of_probe(&found, "wake.timer");
    let each = each.into_iter().filter(|m| m["params"]["cpu"].is_number());
    let outliers: usize = each.map(|m| m["outliers"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(outliers, 3);
    // The longest of all is among them, whenever it came.
    for m in of_probe(&found, "wake.timer").into_iter().filter(|m| m["params"]["cpu"] == "all") {
        let values =
            m["outliers"].as_array().unwrap().iter().map(|outlier| outlier["value"].as_u64().unwrap());
        assert_eq!(values.max().unwrap() as f64, m["summary"]["max"].as_f64().unwrap(), "{m:#}");
    }
}

#[test]
fn events_that_were_asked_for_stand_in_the_line() {
    if !traceable("events_that_were_asked_for_stand_in_the_line") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["wake", "--count", "100", "--blame", "5", "--stacks", "--buffer", "4MiB"];
    let ran = end(latscope(words).args(["--event", "sched:sched_waking", "--json", &result]));
    ran.no_panic();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let found = json(&result);
    let traced = &found["plan"]["on_threshold"]["traced"];
    assert_eq!(traced["events"], serde_json::json!(["sched:sched_waking"]));
    let all = of_probe(&found, "wake.timer")
        .into_iter()
        .flat_map(|m| m["outliers"].as_array().into_iter().flatten());
    // Each wake-up has at least its own; a trace that was cut has none.
    let whole =
        |outlier: &&Value| outlier["cause"].as_array().unwrap().iter().all(|c| c["kind"] != "not-traced");
    for outlier in all.filter(whole) {
        assert_eq!(outlier["events"][0]["name"], "sched_waking", "{outlier:#}");
        assert!(outlier["events"][0]["text"].as_str().unwrap().contains("target_cpu="), "{outlier:#}");
    }
    // The line may be folded anywhere.
    let flat = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(" · sched_waking"), "{}", ran.out);
    let unknown = run(&["wake", "--blame", "--event", "sched:no_such_event"]).refused();
    assert!(unknown.contains("no event sched:no_such_event"), "{unknown}");
}

#[test]
fn without_permission_to_trace_a_line_says_so_and_the_run_goes_on() {
    if !traceable("without_permission_to_trace_a_line_says_so_and_the_run_goes_on") {
        return;
    }
    let (place, binary) = public_binary();
    let words = ["wake", "--duration", "300ms", "--threshold", "10s", "--on-threshold", "continue"];
    let binary = binary.to_str().unwrap();
    let ran = end(program([binary]).args(words).current_dir("/").uid(NOBODY).gid(NOBODY));
    ran.no_panic();
    let line = ran.err.lines().find(|line| line.contains("not explained: no trace"));
    assert!(
        line.is_some_and(|line| line.contains("/sys/kernel/tracing") && line.contains("run as root")),
        "{ran:?}"
    );
    drop(place);
}

/// Directory of the CPU controller of the first version of control groups.
const CPU_GROUPS: &str = "/sys/fs/cgroup/cpu";

#[test]
fn a_quota_is_named_where_it_held_the_thread_back() {
    let name = "a_quota_is_named_where_it_held_the_thread_back";
    if !traceable(name) {
        return;
    }
    let group = format!("{CPU_GROUPS}/latscope-blame-{}", std::process::id());
    if std::fs::create_dir(&group).is_err()
        || std::fs::write(format!("{group}/cpu.cfs_quota_us"), "20000").is_err()
    {
        return skipped(name, &format!("no control group can be made in {CPU_GROUPS}"));
    }
    let place = Place::new();
    let result = place.at("result.json");
    let script = "echo $$ >\"$0\"/cgroup.procs; exec \"$@\"";
    let words = [
        "--policy", "other", "--work", "600us", "--threshold", "20ms", "--duration", "3s", "--quiet",
        "--json",
    ];
    let ran = end(program(["sh", "-c", script, &group, BINARY, "wake"]).args(words).arg(&result));
    let stat = std::fs::read_to_string(format!("{group}/cpu.stat")).unwrap();
    eventually("the group is empty", || std::fs::remove_dir(&group).ok());
    ran.no_panic();
    let found = json(&result);
    let all = of_probe(&found, "wake.timer")
        .into_iter()
        .flat_map(|m| m["outliers"].as_array().into_iter().flatten());
    let causes: Vec<&Value> = all.flat_map(|outlier| outlier["cause"].as_array().unwrap()).collect();
    if causes.is_empty() || stat.contains("nr_throttled 0\n") {
        return skipped_in_part(name, "the quota held no thread back for 20 ms");
    }
    let quota =
        causes.iter().find(|cause| cause["kind"] == "quota").unwrap_or_else(|| panic!("{stat}\n{causes:#?}"));
    assert!(quota["name"].as_str().unwrap().contains(&group), "{quota:#}");
    let [warning] = &warnings(&found, "quota")[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning.contains("cpu.max"), "{warning}");
}

/// Directory of the freezer of the first version of control groups.
const FREEZER_GROUPS: &str = "/sys/fs/cgroup/freezer";

/// Freezes a whole run, as `docker pause` does, once its measuring thread is there, and thaws it.
#[test]
fn a_run_that_its_control_group_froze_is_degraded_with_a_trace_and_without() {
    let name = "a_run_that_its_control_group_froze_is_degraded_with_a_trace_and_without";
    if !traceable(name) {
        return;
    }
    let group = format!("{FREEZER_GROUPS}/latscope-blame-{}", std::process::id());
    if std::fs::create_dir(&group).is_err() || !std::path::Path::new(&group).join("freezer.state").exists() {
        return skipped(name, &format!("no control group can be made in {FREEZER_GROUPS}"));
    }
    let place = Place::new();
    let script = "echo $$ >\"$0\"/cgroup.procs; exec \"$@\"";
    for trace in ["--blame=5", "--no-blame"] {
        let result = place.at("result.json");
        let words = ["wake", "--duration", "2s", "--threshold", "10s", trace, "--quiet", "--json", &result];
        let mut run = start(program(["sh", "-c", script, &group, BINARY]).args(words));
        eventually("a thread measures", || {
            let threads = std::fs::read_to_string(format!("{group}/tasks")).ok()?;
            let name =
                |thread: &str| std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
            threads.lines().any(|thread| name(thread).starts_with("wake/")).then_some(())
        });
        for state in ["FROZEN", "THAWED"] {
            std::fs::write(format!("{group}/freezer.state"), state).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        run.wait().unwrap();
        let found = json(&result);
        for m in of_probe(&found, "wake.timer") {
            let reasons = m["quality"]["reasons"].as_array().unwrap();
            assert!(reasons.iter().any(|reason| reason["id"] == "halted"), "{trace}: {m:#}");
        }
    }
    eventually("the group is empty", || std::fs::remove_dir(&group).ok());
}
