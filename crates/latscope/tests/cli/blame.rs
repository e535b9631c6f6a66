//! Late wake-ups are explained, and a trace that fails costs no figure.

use crate::support::{
    NOBODY, Place, end, json, latscope, measured, of_probe, program, public_binary, root, run, skipped,
};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Everything is late by more than a nanosecond.
const WORDS: [&str; 8] =
    ["wake", "--duration", "400ms", "--threshold", "1ns", "--on-threshold", "save-trace", "--json"];

fn traceable(test: &str) -> bool {
    let tracefs = Path::new("/sys/kernel/tracing/instances").exists();
    if !tracefs {
        skipped(test, "there is no tracefs here");
    }
    tracefs && root(test)
}

/// Texts of the warnings of a name.
fn warnings(result: &Value, id: &str) -> Vec<String> {
    let all = result["warnings"].as_array().unwrap().iter();
    all.filter(|warning| warning["id"] == id).map(|warning| warning.to_string()).collect()
}

#[test]
fn outliers_have_causes_that_add_up_and_the_trace_opens_in_its_tool() {
    if !traceable("outliers_have_causes_that_add_up_and_the_trace_opens_in_its_tool") {
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
    // Hundreds in a second: most are only counted.
    assert_eq!(warnings(&found, "outliers-unattended").len(), 1, "{:#}", found["warnings"]);
    let report = end(&mut program(["trace-cmd", "report", &trace])).done();
    assert!(report.contains("latscope: late by") && report.contains("sched_switch"), "{report}");
}

#[test]
fn a_trace_that_cannot_be_saved_costs_no_figure() {
    if !traceable("a_trace_that_cannot_be_saved_costs_no_figure") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    let ran = end(latscope(WORDS).args([&result, "--trace", "/nonexistent/trace.dat"]));
    ran.no_panic();
    let found = json(&result);
    measured(&found, "wake.timer");
    let [warning] = &warnings(&found, "trace-lost")[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning.contains("/nonexistent/trace.dat"), "{warning}");
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
    assert!(outliers <= 3, "{outliers}");
}

#[test]
fn without_permission_to_trace_a_line_says_so_and_the_run_goes_on() {
    if !root("without_permission_to_trace_a_line_says_so_and_the_run_goes_on") {
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
