//! Documents against their schemas in docs/schema, beside those that other tests read.

use crate::schema::{assert_as_named, assert_is};
use crate::support::{parsed, run};
use latscope_core::fixture;
use serde_json::Value;
use std::fs;

#[test]
fn every_made_up_result_has_the_form_of_the_schema() {
    let reports = [
        fixture::report(),
        fixture::other(),
        fixture::wake(),
        fixture::ipc::latency(),
        fixture::ipc::payloads(),
        fixture::ipc::throughput(),
        fixture::server(),
        fixture::remote(),
    ];
    for report in reports {
        assert_is("result", &parsed(&report.to_json()));
        assert_is("plan", &serde_json::to_value(&report.plan).unwrap());
    }
}

#[test]
fn results_of_other_programs_have_the_form_of_the_schema() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../latscope-judge/tests/imports");
    let mut imported = 0;
    for entry in fs::read_dir(samples).unwrap() {
        let file = entry.unwrap().path();
        let ran = run(&["import", file.to_str().unwrap(), "--json", "-"]);
        if ran.code == Some(0) {
            let result = parsed(&ran.out);
            assert_eq!(result["schema"], "latscope/1", "{}", file.display());
            imported += 1;
        }
    }
    assert!(imported >= 15, "{imported} files were imported");
}

#[test]
fn plans_and_machines_have_the_form_of_their_schemas() {
    for words in
        [&["survey", "--quick"][..], &["wake", "--duration", "1s", "--threshold", "50us"], &["noise"]]
    {
        let plan = run(&[words, &["--dry-run", "--json", "-"]].concat()).done();
        assert_is("plan", &parsed(&plan));
    }
    assert_is("machine", &parsed(&run(&["doctor", "--json", "-"]).done()));
}

#[test]
fn a_schema_forbids_what_is_not_so() {
    let mut result = parsed(&fixture::report().to_json());
    result["measurements"][0]["summary"]["p50"] = "fast".into();
    let broken = |result: Value| std::panic::catch_unwind(move || assert_as_named(&result)).is_err();
    assert!(broken(result.clone()));
    result["measurements"][0]["summary"]["p50"] = Value::Null;
    assert!(!broken(result));
}

#[test]
fn the_list_of_schemas_names_each_and_no_other_is_known() {
    let list = run(&["generate", "schema"]).done();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, crate::schema::NAMES);
    assert!(run(&["generate", "schema", "results"]).refused().contains("generate schema"));
    assert!(run(&["generate", "man", "result"]).refused().contains("NAME is for"));
}
