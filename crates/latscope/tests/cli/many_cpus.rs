//! Machines of many CPUs, which are simulated: what a command comes to there, as the page on nodes says.

#[path = "../../examples/many_cpus/simulated.rs"]
mod simulated;

use crate::support::{Place, run};
use simulated::{CPUS, Command, Figures, picture, result, row_of_pairs, row_of_surveys};
use std::fs;
use std::path::Path;

/// Most CPUs of which all pairs are simulated here.
const MOST_OF_PAIRS: u32 = 64;

#[test]
fn plans_of_many_cpus_are_those_on_the_page_and_within_their_limits() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("nodes.md")).unwrap();
    let again = "`cargo run --release --example many_cpus -- docs` records it again";
    let mut rows = Vec::new();
    for cpus in CPUS {
        let (mut expected, [quick, survey]) = row_of_surveys(cpus);
        assert!(quick.seconds <= 10.0 && survey.seconds <= 60.0, "{cpus} CPUs: {quick:?}, {survey:?}");
        assert!(quick.bytes.max(survey.bytes) <= 10_000_000, "{cpus} CPUs: {quick:?}, {survey:?}");
        if cpus <= MOST_OF_PAIRS {
            let (pairs, bytes) = row_of_pairs(cpus);
            assert!(bytes <= 500_000, "{cpus} CPUs: {bytes} bytes");
            expected += &pairs;
        }
        let on_page = page.lines().find(|line| line.starts_with(&format!("| {cpus} |"))).unwrap_or_default();
        assert!(on_page.starts_with(&expected), "{again}:\n{expected}\n{on_page}");
        rows.push(on_page);
    }
    let drawn = fs::read_to_string(docs.join("pictures/many-cpus.svg")).unwrap();
    assert!(picture(&rows) == drawn, "docs/pictures/many-cpus.svg: {again}");
}

#[test]
fn a_result_of_a_thousand_cpus_is_shown() {
    let place = Place::new();
    let report = result(Command::Survey, 1024);
    let file = place.file("many.json", report.to_json());
    let shown = run(&["show", &file, "--table"]).done();
    assert!(shown.contains("(28 of 523776 pairs"), "{shown}");
    assert!(Figures::of(&report).points < 2_000);
}
