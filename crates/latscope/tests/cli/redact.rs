//! `--redact`, in every command that has it.

use crate::support::{Place, end, json, latscope, run};
use std::fs;

/// Host name of this machine, its machine id as results have it, and its command line.
fn secrets() -> Vec<String> {
    let machine = crate::support::parsed(&run(&["doctor", "--json", "-"]).done());
    let text = |name: &str| machine[name].as_str().unwrap_or_default().to_owned();
    let all = [text("id"), text("command_line"), "a-secret".to_owned()];
    all.into_iter().filter(|text| !text.is_empty()).collect()
}

#[track_caller]
fn assert_redacted(text: &str, place: &Place, secrets: &[String]) {
    let path = place.path().to_str().unwrap().to_owned();
    for secret in secrets.iter().chain([&path]) {
        assert!(!text.contains(secret.as_str()), "{secret:?} is in {text}");
    }
}

#[test]
fn nothing_of_the_machine_and_its_user_is_left() {
    let place = Place::new();
    let secrets = secrets();
    let (plain, result, page) = (place.at("plain.json"), place.at("r.json"), place.at("r.html"));
    let home = place.directory("a-secret");
    let measure = ["file", "stat", "--count", "2", "--dir", &home, "--label", "owner=a-secret"];
    end(latscope(measure).args(["--json", &plain])).done();
    assert!(fs::read_to_string(&plain).unwrap().contains("a-secret"));
    let shown = end(latscope(measure).args(["--redact", "--json", &result, "--html", &page])).done();
    let (text, page) = (fs::read_to_string(&result).unwrap(), fs::read_to_string(&page).unwrap());
    [&shown, &text, &page].into_iter().for_each(|text| assert_redacted(text, &place, &secrets));
    assert_eq!(json(&result)["machine"]["name"], "machine-1");
    let directory = &json(&result)["measurements"][0]["params"]["directory"];
    assert!(directory.as_str().unwrap().starts_with("path-"), "{directory}");

    for command in [
        vec!["show", &plain, "--redact", "--json", "-"],
        vec!["show", &plain, "--redact", "--all"],
        vec!["compare", &plain, &plain, "--redact", "--json", "-"],
        vec!["gate", &plain, "--baseline", &result, "--redact", "--json", "-"],
        vec!["history", place.path().to_str().unwrap(), "--redact", "--json", "-"],
        vec!["doctor", "--redact", "--json", "-"],
    ] {
        let ran = run(&command);
        ran.no_panic();
        assert_redacted(&ran.out, &place, &secrets);
        assert!(!ran.out.is_empty() || command[0] == "compare", "{command:?}: {ran:?}");
    }
}

#[test]
fn what_is_not_redacted_is_refused() {
    let line = run(&["sync", "mutex", "--redact", "--timeline", "t.json"]).refused();
    assert!(line.contains("--redact does not cover --timeline"), "{line}");
}
