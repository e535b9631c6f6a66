//! Published figures of other machines: every row they name exists, none stands beside a row of another definition
//! without a sign, and what `--contribute` writes can be read again.
#![forbid(unsafe_code)]

use latscope_core::fixture;
use latscope_core::report::Semantics;
use latscope_judge::references::{Reference, ReferenceStatistic, Times, built_in};
use std::fs;
use std::process::{Command, Output};

fn latscope(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_latscope")).args(words).env("COLUMNS", "100").output().unwrap()
}

fn printed(words: &[&str]) -> String {
    let output = latscope(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns true if the row of a figure is the same thing by the figure's factor.
fn is_converted(reference: &Reference, row: Semantics) -> bool {
    let factor = reference.definition.factor;
    match (reference.definition.times, row) {
        (Times::RoundTrip, Semantics::RoundTrip)
        | (Times::OneWay, Semantics::OneWay)
        | (Times::Operation, Semantics::Operation) => factor == 1.0,
        (Times::HalfRoundTrip, Semantics::RoundTrip) => factor == 2.0,
        _ => false,
    }
}

#[test]
fn no_figure_stands_beside_a_row_of_another_definition() {
    for one in built_in() {
        let definition = &one.definition;
        let what = format!("{}, {}", one.machine, one.figure);
        let row = match &definition.row.probe {
            None => Semantics::Operation,
            Some(id) => {
                let probe =
                    latscope_probes::find_probe(id).unwrap_or_else(|| panic!("{what}: no probe {id}"));
                for name in definition.row.params.keys() {
                    assert!(
                        probe.params.iter().any(|param| param.name == name),
                        "{what}: {id} has no {name}"
                    );
                }
                probe.times
            }
        };
        let of_events = matches!(
            definition.statistic,
            ReferenceStatistic::Minimum | ReferenceStatistic::Maximum | ReferenceStatistic::P99
        );
        let is_same = is_converted(one, row) && !of_events;
        assert!(is_same || !definition.differs.is_empty(), "{what}: another definition, and nothing says so");
    }
}

#[test]
fn the_list_is_filtered_by_words() {
    let all = printed(&["references"]);
    assert!(all.contains("iPhone X") && all.contains("figures of"), "{all}");
    let some = printed(&["references", "core-to-core", "7950x", "--json", "-"]);
    let some: serde_json::Value = serde_json::from_str(&some).unwrap();
    let machines = some.as_array().unwrap();
    assert!(!machines.is_empty() && machines.iter().all(|one| one["machine"] == "AMD Ryzen 9 7950X"));
    assert!(!latscope(&["references", "no such machine"]).status.success());
}

#[test]
fn machines_stand_beside_a_result_and_a_contribution_is_read_again() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (result, own) = (path("result.json"), path("own"));
    fs::create_dir(&own).unwrap();
    let report = fixture::report();
    fs::write(&result, report.to_json()).unwrap();
    let text = printed(&["show", &result, "--beside", "iPhone X", "--beside", "7950X"]);
    assert!(text.contains("Published beside this machine") && text.contains("AMD Ryzen 9 7950X"), "{text}");
    assert!(text.contains('½') && !text.contains("AWS Graviton3"), "{text}");
    let nearest = printed(&["show", &result, "--beside", "published"]);
    assert!(nearest.contains("AMD EPYC") || nearest.contains("AMD Ryzen"), "{nearest}");
    let first = printed(&["show", &result]);
    assert!(first.contains("of 34 published"), "{first}");

    let contribution = format!("{own}/this.toml");
    printed(&["show", &result, "--contribute", &contribution, "--quiet"]);
    let written = fs::read_to_string(&contribution).unwrap();
    assert!(!written.contains(&report.machine.name), "{written}");
    let with_own = printed(&["show", &result, "--references", &own, "--beside", "published"]);
    assert!(with_own.contains("1.0×"), "{with_own}");
    fs::write(&contribution, written.replace("unit", "units")).unwrap();
    let refused = latscope(&["references", "--references", &own]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("this.toml, figure 1") && error.contains("units"),
        "{error}"
    );
    let unknown = latscope(&["show", &result, "--beside", "Commodore"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("latscope references"));
}
