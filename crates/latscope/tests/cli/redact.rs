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

    // A budget of another machine names it, and one learnt from redacted results names none.
    let budget = place.at("budget.toml");
    let limits = "machine = [\"a-secret\"]\n[[limit]]\nprobe = \"file\"\np50 = \"1s\"\n";
    fs::write(&budget, limits).unwrap();
    assert!(!run(&["gate", "--learn", &result]).out.contains("machine-1\"]"));
    let judged = run(&["gate", &plain, "--budget", &budget, "--redact"]).out;
    assert!(judged.contains("whether the budget was learnt on these machines is not said"), "{judged}");

    for command in [
        vec!["gate", &plain, "--budget", &budget, "--redact", "--json", "-"],
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

/// A word that stands in every text of a planted result, and in names, commands and labels of the tests here.
const SECRET: &str = "s3cr3t";

/// Asserts that no file below a directory has the secret in its text, and that there are files.
#[track_caller]
fn assert_none_below(directory: &str) {
    let files = crate::support::names(directory);
    assert!(!files.is_empty(), "{directory} is empty");
    for name in files {
        assert!(!name.contains(SECRET), "{name}");
        let text = fs::read(format!("{directory}/{name}")).unwrap();
        let text = String::from_utf8_lossy(&text);
        let around: Vec<&str> = text.lines().filter(|line| line.contains(SECRET)).collect();
        assert!(around.is_empty(), "{name}: {around:.500?}");
    }
}

/// Asserts that neither output of a command has the secret, and that it did not panic.
#[track_caller]
fn assert_silent(words: &[&str]) -> crate::support::Ran {
    let ran = run(words);
    ran.no_panic();
    assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET), "{words:?}: {ran:#?}");
    ran
}

#[test]
fn a_secret_in_every_text_of_a_result_is_in_no_view_of_it() {
    let place = Place::new();
    let text = latscope_core::redact::planted::planted_report(SECRET).to_json();
    let (planted, made) = (place.file("s3cr3t.json", text), place.directory("made"));
    let file = |name: &str| format!("{made}/{name}");
    for option in ["html", "csv", "csv-long", "csv-histogram", "markdown", "openmetrics", "lava", "svg"] {
        let option = format!("--{option}");
        let ran = assert_silent(&["show", &planted, "--redact", &option, &file(&option[2..])]);
        assert!(ran.err.is_empty() || option.contains("lava") || option.contains("svg"), "{ran:#?}");
    }
    assert_silent(&["show", &planted, "--redact", "--json", &file("json")]).done();
    assert_none_below(&made);
    assert_silent(&["show", &planted, "--redact", "--all"]);
    assert_silent(&["compare", &planted, &planted, "--redact", "--all"]);
    assert_silent(&["history", place.path().to_str().unwrap(), "--redact"]);
    assert!(run(&["show", &planted, "--all"]).out.contains(SECRET), "without the option it is there");
}

#[test]
fn messages_on_stderr_name_no_file_of_the_user() {
    let place = Place::new();
    let damaged = place.file("s3cr3t-damaged.json", "{\"schema\": \"latscope/1\", ");
    let missing = place.at("s3cr3t-missing.json");
    for words in [
        vec!["show", &damaged, "--redact"],
        vec!["show", &missing, "--redact"],
        vec!["show", "s3cr3t-here.json", "--redact"],
        vec!["compare", &damaged, &missing, "--redact"],
        vec!["gate", &damaged, "--baseline", &missing, "--redact"],
        vec!["history", place.path().to_str().unwrap(), "--redact"],
        vec!["cpu", "cycle", "--redact", "--label", "owner=s3cr3t", "--label", "owner=s3cr3t-2"],
        vec!["cpu", "cycle", "--redact", "--json", "/nowhere/s3cr3t/r.json"],
    ] {
        let ran = assert_silent(&words);
        assert!(!ran.err.is_empty(), "{words:?}");
    }
}

#[test]
fn a_trial_is_redacted_with_its_plan_its_runs_and_its_files() {
    let place = Place::new();
    let (results, made) = (place.at("results"), place.directory("made"));
    let json = format!("{made}/t.json");
    let html = format!("{made}/t.html");
    let words =
        ["trial", "--redact", "--runs", "2", "--without", "true s3cr3t-off", "--with", "true s3cr3t-on"];
    let files = ["--dir", &results, "--json", &json, "--html", &html, "--", "cpu", "cycle", "--rounds", "2"];
    let measured = ["--count", "4", "--label", "owner=s3cr3t"];
    let all: Vec<&str> = words.iter().chain(&files).chain(&measured).copied().collect();
    let shown = assert_silent(&all).done();
    assert!(shown.contains("command-"), "{shown}");
    assert_none_below(&made);
    assert_none_below(&results);
    assert_silent(&["show", &results]).done();
}

#[test]
fn a_plan_of_the_user_is_redacted_while_it_is_carried_out_and_when_it_is_shown() {
    let place = Place::new();
    let plan = "title = \"s3cr3t title\"\n\
        [[measurement]]\nname = \"s3cr3t-m\"\nrun = \"cpu cycle --rounds 2 --count 4 --label o=s3cr3t\"\n\
        [[arm]]\nname = \"s3cr3t-a\"\nbefore = \"true s3cr3t-a\"\nlabels = { s3cr3t = \"s3cr3t\" }\n\
        [[arm]]\nname = \"s3cr3t-b\"\nprefix = \"env S3CR3T=s3cr3t\"\n";
    let plan = place.file("s3cr3t-plan.toml", plan);
    let (open, redacted, made) = (place.at("open"), place.at("redacted"), place.directory("made"));
    assert_silent(&["run", &plan, "--redact", "--dir", &redacted]).done();
    assert_none_below(&redacted);
    run(&["run", &plan, "--dir", &open]).done();
    let (json, html, csv) = (format!("{made}/t.json"), format!("{made}/t.html"), format!("{made}/t.csv"));
    assert_silent(&["show", &open, "--redact", "--json", &json, "--html", &html, "--csv", &csv]).done();
    assert_none_below(&made);
    assert!(run(&["show", &open]).out.contains(SECRET), "without the option it is there");
}

#[test]
fn a_stand_in_leaves_the_host_and_the_command_out_of_its_files() {
    let place = Place::new();
    let made = place.directory("made");
    let (json, result) = (format!("--json={made}/c.json"), format!("--result={made}/r.json"));
    let words = ["as", "cyclictest", "-q", "-l", "5", &json, &result, "--redact", "--label", "owner=s3cr3t"];
    assert_silent(&words).done();
    assert_none_below(&made);
    let head = crate::support::json(format!("{made}/c.json"));
    assert_eq!(
        (&head["cmdline:"], &head["sysinfo"]["nodename"]),
        (&"cyclictest (redacted)".into(), &"(redacted)".into())
    );
    let saved = crate::support::json(format!("{made}/r.json"));
    assert_eq!(saved["machine"]["name"], "machine-1");
}

#[test]
fn what_is_not_redacted_is_refused() {
    let line = run(&["sync", "mutex", "--redact", "--timeline", "t.json"]).refused();
    assert!(line.contains("--redact does not cover --timeline"), "{line}");
}

#[test]
fn two_redacted_machines_are_not_said_to_be_one() {
    const WORDS: &str = "machine-1: redacted results of several machines can have the same name";
    let place = Place::new();
    let files = ["one", "other"].map(|name| {
        let mut report = latscope_core::fixture::report();
        report.run_id = name.to_owned();
        name.clone_into(&mut report.machine.name);
        let (open, hidden) =
            (place.file(&format!("{name}.json"), report.to_json()), place.at(&format!("{name}-r.json")));
        run(&["show", &open, "--quiet", "--redact", "--json", &hidden]).done();
        (open, hidden)
    });
    let unwrapped = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let [(a, hidden_a), (b, hidden_b)] = &files;
    assert!(unwrapped(run(&["compare", hidden_a, hidden_b]).done()).contains(WORDS));
    assert!(!unwrapped(run(&["compare", a, b]).done()).contains(WORDS));
    let whole = place.at("whole.json");
    assert!(unwrapped(run(&["merge", hidden_a, hidden_b, "--json", &whole]).done()).contains(WORDS));
    assert!(unwrapped(run(&["show", &whole]).done()).contains(WORDS));
    assert!(!unwrapped(run(&["merge", a, b, "--json", &place.at("open.json")]).done()).contains(WORDS));
}
