//! The record of `latscope run`: its files, its rows and its end. Its figures beside a real stall: the tests `starved`.

use crate::support::{Place, end, json, latscope};
use std::fs;

#[test]
fn the_answer_of_a_record_says_what_was_skipped() {
    let place = Place::new();
    let skipped = "needs = \"false\"\notherwise = \"it takes two machines\"";
    let plan = format!(
        "[[measurement]]\nname = \"wake\"\nrun = \"wake --count 20 --max 10s\"\n\
         [[measurement]]\nname = \"skipme\"\nrun = \"wake --count 20 --max 10s\"\n{skipped}\n"
    );
    let plan = place.file("plan.toml", plan);
    let arguments = ["run", &plan, "--dir", "results", "--markdown", "record.md", "--html", "record.html"];
    let ran = end(latscope(arguments).current_dir(place.path()));
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(json(place.at("results/trial.json"))["acceptance"]["status"], "inconclusive");
    let shown = end(&mut latscope(["show", &place.at("results")]));
    assert_eq!(shown.code, Some(3), "{shown:#?}");
    let read = |name: &str| fs::read_to_string(place.at(name)).unwrap();
    for text in [&ran.out, &shown.out, &read("record.md"), &read("record.html")] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["1 of 2 measurements was skipped: not judged.", " Exit code 3."] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert!(shown.out.contains("skipped: it takes two machines"), "{shown:#?}");
    assert!(!shown.out.contains("no run of it is complete"), "{shown:#?}");
}

#[test]
fn rows_of_calls_are_told_apart_in_a_record() {
    let place = Place::new();
    let run = "ipc --transport pipe,unix-stream --duration 200ms --max 10s --deadline 1ns --missed 0";
    let plan = place.file("plan.toml", format!("[[measurement]]\nname = \"calls\"\nrun = \"{run}\"\n"));
    let arguments = ["run", &plan, "--dir", "results", "--markdown", "record.md"];
    let ran = end(latscope(arguments).current_dir(place.path()));
    ran.no_panic();
    let markdown = fs::read_to_string(place.at("record.md")).unwrap();
    for part in ["calls: pipe, other caller", "calls: Unix stream socket, other caller", "they are events"] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    assert!(!markdown.contains("in no figure") && !markdown.contains("all activations"), "{markdown}");
    let outcome = json(place.at("results/trial.json"));
    for row in outcome["acceptance"]["cells"].as_array().unwrap() {
        assert!(row["missed"].as_u64().unwrap() > 0 && row["missed"] == row["events"], "{row:#}");
        let expected =
            if row["title"].as_str().unwrap().contains("fifo") { "SCHED_FIFO " } else { "SCHED_OTHER" };
        assert!(row["policy"].as_str().unwrap().starts_with(expected), "{row:#}");
    }
}
