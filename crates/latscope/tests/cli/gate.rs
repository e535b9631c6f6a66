//! `latscope gate` and `bisect-check`, from the files to the exit code.

use crate::process::{Mark, send};
use crate::support::{
    BINARY, Place, end, has_program, json, latscope, names, parsed, program, run, skipped, start, wait,
};
use latscope_core::fixture;
use latscope_core::report::Report;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const BUDGET: &str = r#"
[[limit]] # wake-ups of all CPUs together
probe = "wake.timer"
where = { cpu = "all", interval = "1ms" }
max = "1ms"
p99 = "1ms"
p99_9999 = "1s"
"#;

fn wake(place: &Place, name: &str, change: impl FnOnce(&mut Report)) -> String {
    let mut report = fixture::wake();
    report.run_id = name.to_owned();
    change(&mut report);
    place.file(name, report.to_json())
}

fn budget(place: &Place, limits: &str) -> String {
    place.file("budget.toml", format!("[[limit]]\nprobe = \"wake.timer\"\n{limits}\n"))
}

/// Printed text without its line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_three_verdicts_have_their_exit_codes() {
    let place = Place::new();
    let result = wake(&place, "wake.json", |_| {});
    let code = |limits: &str| {
        let budget = budget(&place, limits);
        let ran = run(&["gate", &result, "--budget", &budget]);
        ran.no_panic();
        (ran.code, flat(&ran.out))
    };
    let (pass, said) = code("max = '1h'");
    assert!(pass == Some(0) && said.contains("Gate: pass. 3 checks in 1 run"), "{said}");
    let (exceeded, said) = code("max = '1ms'");
    assert!(
        exceeded == Some(2) && said.contains("✘ exceeded") && said.contains("the longest took"),
        "{said}"
    );
    let (unknown, said) = code("p99_9999 = '1s'");
    assert!(unknown == Some(3) && said.contains("too few to judge"), "{said}");
    assert_eq!(code("max = '1h'\np99_9999 = '1s'").0, Some(3));
    assert_eq!(code("max = '1ms'\np99_9999 = '1s'").0, Some(2));
    let (nothing, said) = code("where = { cpu = 9 }\nmax = '1h'");
    assert!(nothing == Some(3) && said.contains("cpu is 0, 1, all"), "{said}");
}

#[test]
fn every_result_has_to_hold() {
    let place = Place::new();
    let (one, other) =
        (wake(&place, "a.json", |_| {}), wake(&place, "b.json", |report| report.finished = None));
    let budget = budget(&place, "max = '1h'");
    assert_eq!(run(&["gate", &one, "--budget", &budget]).code, Some(0));
    let both = run(&["gate", &one, &other, "--budget", &budget]);
    assert_eq!(both.code, Some(3));
    let said = flat(&both.out);
    assert!(said.contains("6 checks in 2 runs: 0 exceeded, 3 inconclusive, 3 pass"), "{said}");
    assert!(said.contains("the run ended before it was done"), "{said}");
}

#[test]
fn every_form_says_the_same() {
    let place = Place::new();
    let result = wake(&place, "wake.json", |report| {
        report
            .measurements
            .iter_mut()
            .for_each(|m| m.title = format!("<a & \"b\" |\u{1b}[31m\u{1}> {}", m.title));
    });
    let budget = place.file("b.toml", BUDGET);
    let [file, junit, markdown] = ["g.json", "g.xml", "g.md"].map(|name| place.at(name));
    let words =
        ["gate", &result, "--budget", &budget, "--json", &file, "--junit", &junit, "--markdown", &markdown];
    let ran = run(&[&words[..], &["--github", "--all"]].concat());
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.lines().filter(|line| !line.starts_with("::")).all(|line| line.chars().count() <= 100));
    let found = json(&file);
    assert_eq!((&found["schema"], &found["status"]), (&"latscope-gate/1".into(), &"exceeded".into()));
    assert_eq!(found["counts"], serde_json::json!({ "pass": 1, "exceeded": 1, "inconclusive": 1 }));
    let ids: Vec<&str> =
        found["checks"].as_array().unwrap().iter().filter_map(|c| c["id"].as_str()).collect();
    let point =
        "wake.timer[clock=monotonic,cpu=all,interval=1000000,method=nanosleep,policy=fifo,priority=95]";
    assert_eq!(ids, ["max", "p99", "p99_9999"].map(|metric| format!("{point} {metric}")));
    let annotations: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("::")).collect();
    assert!(annotations.len() == 2 && annotations[0].starts_with("::error title="), "{annotations:?}");
    assert!(
        annotations[1].starts_with("::warning title=") && annotations[1].contains("%25"),
        "{annotations:?}"
    );
    let markdown = fs::read_to_string(markdown).unwrap();
    assert!(
        markdown.contains("## latscope gate: exceeded") && markdown.contains("&lt;a &amp;"),
        "{markdown}"
    );
    assert!(fs::read_to_string(&junit).unwrap().contains("failures=\"1\" errors=\"1\""));
    read_by_a_parser(&junit, &ids);
}

/// Checks with Python's parser of XML that each check appears once, with its verdict.
fn read_by_a_parser(junit: &str, ids: &[&str]) {
    if !has_program("gate::every_form_says_the_same: the JUnit file", "python3") {
        return;
    }
    let script = "import sys, xml.etree.ElementTree as e\n\
        for t in e.parse(sys.argv[1]).getroot().iter('testcase'):\n    \
        print(t.get('classname'), t[0].tag, t[0].get('type') or '-', bool(t[0].text), t.get('name'), sep='|')";
    let read = end(&mut program(["python3", "-c", script, junit])).done();
    let expected = ["failure|exceeded", "system-out|-", "error|inconclusive"];
    let expected: Vec<String> =
        ids.iter().zip(expected).map(|(id, verdict)| format!("wake.timer|{verdict}|True|{id}")).collect();
    assert_eq!(read.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn one_form_may_go_to_stdout() {
    let place = Place::new();
    let result = wake(&place, "wake.json", |_| {});
    let budget = place.file("b.toml", BUDGET);
    let of = |form: &str| run(&["gate", &result, "--budget", &budget, form, "-"]);
    assert_eq!(parsed(&of("--json").out)["status"], "exceeded");
    assert!(of("--junit").out.starts_with("<?xml"));
    assert!(of("--markdown").out.starts_with("## latscope gate"));
    let both = run(&["gate", &result, "--budget", &budget, "--markdown", "-", "--github"]);
    assert!(both.refused().contains("--github is for standard output"), "{both:?}");
}

#[test]
fn a_reader_that_goes_away_does_not_change_the_verdict() {
    let place = Place::new();
    let result = wake(&place, "wake.json", |_| {});
    let budget = place.file("b.toml", BUDGET);
    let closed = || std::io::pipe().map(|(reader, writer)| (drop(reader), writer)).unwrap().1;
    let mut command = latscope(["gate", &result, "--budget", &budget]);
    assert_eq!(command.stdout(closed()).status().unwrap().code(), Some(2));
    // A bisection has only the exit code: what could not be printed is not good, unless nothing reads it.
    let generous = place.file("g.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '10h'");
    let mut command =
        latscope(["bisect-check", "--accept-busy", "--budget", &generous].into_iter().chain(SHORT));
    assert_eq!(command.stdout(closed()).status().unwrap().code(), Some(0));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command =
        latscope(["bisect-check", "--accept-busy", "--budget", &generous].into_iter().chain(SHORT));
    assert_eq!(command.stdout(full).status().unwrap().code(), Some(128));
}

#[test]
fn what_is_misspelt_or_no_budget_is_refused_in_one_line() {
    let place = Place::new();
    let result = wake(&place, "wake.json", |_| {});
    let cases = [
        ("[[limit]]\nprobe = 'wake.timre'\nmax = '1ms'", "did you mean wake.timer?"),
        ("[[limit]]\nprobe = 'wake.timer'\nwhere = { cpuu = 1 }\nmax = '1ms'", "did you mean cpu?"),
        (
            "[[limit]]\nprobe = 'memory.latency'\nwhere = { order = 'randm' }\np50 = '1ms'",
            "did you mean random?",
        ),
        ("[[limit]]\nprobe = 'wake.timer'\nmaax = '1ms'", "did you mean max?"),
        ("[[limit]]\nprobe = 'wake.timer'\np99_8 = '1ms'", "did you mean p99_9?"),
        ("[[limit]]\nprobe = 'ipc.pipe'\nmeeet = '99%'", "did you mean meet?"),
        ("[[limit]]\nprobe = 'wake.timer'\nmax = '50'", "its unit is missing, as in 250us"),
        ("[[limit]]\nprobe = 'wake.timer'\nmissed = inf", "from 0 up"),
        ("[[limit]]\nprobe = 'wake.timer'\np50 = '5%'", "write \"+5%\""),
        ("[[limit]]\nprobe = 'wake.timer'\np50 = '-200%'", "above -100%"),
        ("[[limit]]\nprobe = 'wake.timer'\np50 = '+5%'", "name results with --baseline"),
        ("[[limits]]\nprobe = 'wake.timer'", "did you mean limit?"),
        ("[limit]\nprobe = 'wake.timer'", "[[limit]], with two brackets"),
        ("[[limit]]\nprobe = 'wake.timer'", "it limits nothing"),
        ("[[limit]]\nprobe = 'wake.timer'\nmax = = 1", "line 3"),
        ("", "it has no [[limit]]"),
    ];
    for (text, said) in cases {
        let budget = place.file("bad.toml", text);
        let ran = run(&["gate", &result, "--budget", &budget]);
        assert!(ran.refused().contains(said), "{text}: {ran:?}");
    }
    let binary = place.file("bad.toml", [0xff, 0xfe, 0]);
    assert!(run(&["gate", &result, "--budget", &binary]).refused().contains("bad.toml"));
    let good = place.file("good.toml", BUDGET);
    let words: [(&[&str], &str); 7] = [
        (&[&result], "--budget"),
        (&[&result, &good], &format!("name the budget with --budget {good}")),
        (&[&result, "--budget", &good, "--baseline", &result], "every run of the baseline is judged"),
        (&[&result, "--learn", "--budget", &good], "--learn"),
        (&["-", "--budget", "-"], "standard input can be read once"),
        (&[&result, "--budget", "/nonexistent.toml"], "/nonexistent.toml"),
        (&[&result, "--budget", &good, "--json", &good, "--junit", &good], "both write to"),
    ];
    for (words, said) in words {
        let ran = run(&[&["gate"], words].concat());
        assert!(ran.refused().contains(said), "{words:?}: {ran:?}");
    }
}

#[test]
fn bad_results_are_refused_and_what_lies_beside_them_is_named() {
    let place = Place::new();
    let budget = place.file("b.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1h'");
    let whole = fixture::wake().to_json();
    let bad = [
        ("empty.json", String::new()),
        ("cut.json", whole[..whole.len() / 2].to_owned()),
        ("foreign.json", r#"{"answers": []}"#.to_owned()),
        ("newer.json", whole.replacen("latscope/1", "latscope/2", 1)),
        ("nan.json", whole.replacen("\"count\":", "\"count\":NaN,\"x\":", 1)),
    ];
    let all = place.directory("all");
    for (name, text) in &bad {
        let file = place.file(name, text);
        let refused = run(&["gate", &file, "--budget", &budget]).refused();
        assert!(refused.contains(name), "{refused}");
        fs::write(format!("{all}/{name}"), text).unwrap();
    }
    fs::create_dir(format!("{all}/more")).unwrap();
    fs::write(format!("{all}/good.json"), &whole).unwrap();
    let junit = place.at("j.xml");
    let ran = run(&["gate", &all, "--budget", &budget, "--junit", &junit]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let junit = fs::read_to_string(junit).unwrap();
    for (name, lost) in
        [("empty", true), ("cut", true), ("foreign", false), ("newer", true), ("nan", true), ("good", false)]
    {
        assert_eq!(junit.contains(&format!("{name}.json readable")), lost, "{name}: {junit}");
    }
    let flat = flat(&ran.out);
    for (name, _) in bad {
        assert!(flat.contains(name), "{name} is not named: {flat}");
    }
    assert!(flat.contains("more is no plain file"), "{flat}");
    let mut many: Value = serde_json::from_str(&whole).unwrap();
    many["measurements"][0]["histogram"]["buckets"][0][2] = 4_000_000_000_000_000u64.into();
    let many = place.file("many.json", many.to_string());
    let ran = run(&["gate", &many, "--budget", &budget]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn what_latscope_leaves_beside_results_is_known() {
    let place = Place::new();
    let budget = place.file("b.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1h'");
    let all = place.directory("all");
    let good = wake(&place, "all/good.json", |_| {});
    let others = [
        ("trial.json", r#"{"schema": "latscope-trial/1"}"#),
        ("compared.json", r#"{"schema": "latscope-compare/1", "points": []}"#),
        ("001-with-1.log", "what the command said"),
    ];
    for (name, text) in others {
        fs::write(format!("{all}/{name}"), text).unwrap();
    }
    fs::write(format!("{all}/README"), "nothing to read").unwrap();
    let ran = run(&["gate", &all, "--budget", &budget]);
    assert!(ran.code == Some(0) && ran.out.matches("skipped").count() == 1, "{ran:?}");
    let ran = run(&["history", &all]);
    assert!(!ran.out.contains("trial.json") && !ran.out.contains(".log"), "{ran:?}");
    let named = run(&["compare", &good, &format!("{all}/compared.json")]).refused();
    assert!(named.contains("it is a comparison, no result"), "{named}");
}

#[test]
fn a_budget_that_was_learnt_is_read_and_holds() {
    let place = Place::new();
    for (name, report) in
        [("wake", fixture::wake()), ("survey", fixture::report()), ("ipc", fixture::ipc::latency())]
    {
        let result = place.file(&format!("{name}.json"), report.to_json());
        let text = run(&["gate", "--learn", &result]).done();
        assert!(text.starts_with("# A budget for latscope gate") && text.contains("\n[[limit]]\n"), "{text}");
        let budget = place.file("learnt.toml", &text);
        let ran = run(&["gate", &result, "--budget", &budget]);
        assert_eq!(ran.code, Some(0), "{name}: {}\n{text}", ran.out);
    }
    let cut = wake(&place, "cut.json", |report| report.finished = None);
    assert!(run(&["gate", "--learn", &cut]).refused().contains("nothing can be learnt"));
}

/// Creates a directory of so many runs of the survey, with the figures times `factor`.
fn side(place: &Place, name: &str, runs: usize, factor: f64) -> String {
    let directory = place.directory(name);
    for at in 0..runs {
        let mut report = fixture::report();
        report.run_id = format!("{name}-{at}");
        report.measurements.retain(|m| m.probe == "sync.mutex");
        for m in &mut report.measurements {
            let p50 = m.summary.p50;
            let noise = |round: usize| 1.0 + 0.001 * ((at * 7 + round * 3) % 9) as f64;
            let round = |round| latscope_core::rounds::RoundSummary {
                count: 9,
                p50: p50.map(|ns| ns * factor * noise(round)),
                ..Default::default()
            };
            m.rounds = (0..4).map(round).collect();
            m.derive_results();
        }
        fs::write(format!("{directory}/{at}.json"), report.to_json()).unwrap();
    }
    directory
}

#[test]
fn a_baseline_is_what_limits_are_relative_to() {
    let place = Place::new();
    let (before, slower, same) =
        (side(&place, "a", 9, 1.0), side(&place, "b", 9, 1.2), side(&place, "c", 9, 1.0));
    let few = side(&place, "d", 3, 1.2);
    let of = |now: &str, more: &[&str]| {
        let ran = run(&[&["gate", now, "--baseline", &before], more].concat());
        ran.no_panic();
        (ran.code, flat(&ran.out))
    };
    assert_eq!(of(&slower, &[]).0, Some(2));
    assert_eq!(of(&same, &[]).0, Some(0));
    let (code, said) = of(&few, &[]);
    assert!(code == Some(3) && said.contains("2 runs to be judged are missing"), "{said}");
    let budget = place.file("b.toml", "[[limit]]\nprobe = 'sync'\np50 = '+30%'");
    let (code, said) = of(&slower, &["--budget", &budget, "--all"]);
    assert!(code == Some(0) && said.contains("p50 ≤ +30 %"), "{said}");
    let junit = place.at("j.xml");
    of(&slower, &["--junit", &junit]);
    assert!(fs::read_to_string(junit).unwrap().contains("relative to the baseline"));
}

#[test]
fn absolute_limits_and_a_baseline_make_one_verdict() {
    let place = Place::new();
    let (before, slower, same) =
        (side(&place, "a", 5, 1.0), side(&place, "b", 5, 1.3), side(&place, "c", 5, 1.0));
    let [wide, narrow] = [("wide", "10h"), ("narrow", "1ns")].map(|(name, most)| {
        place.file(&format!("{name}.toml"), format!("[[limit]]\nprobe = 'sync'\np50 = '{most}'"))
    });
    let file = place.at("g.json");
    let of = |now: &str, budget: &str| {
        let ran = run(&["gate", now, "--budget", budget, "--baseline", &before, "--json", &file]);
        ran.no_panic();
        let gate = json(&file);
        let exceeded = |relative: bool| {
            let checks = gate["checks"].as_array().unwrap().iter();
            let of_kind: Vec<&Value> = checks.filter(|check| check["relative"] == relative).collect();
            assert!(!of_kind.is_empty(), "{gate}");
            of_kind.iter().filter(|check| check["status"] == "exceeded").count() > 0
        };
        (ran.code, exceeded(false), exceeded(true))
    };
    assert_eq!(of(&same, &wide), (Some(0), false, false));
    assert_eq!(of(&slower, &wide), (Some(2), false, true));
    assert_eq!(of(&same, &narrow), (Some(2), true, false));
    assert_eq!(of(&slower, &narrow), (Some(2), true, true));
    let few = run(&["gate", &side(&place, "d", 3, 1.0), "--budget", &wide, "--baseline", &before]);
    assert!(few.code == Some(3) && flat(&few.out).contains("2 runs to be judged are missing"), "{few:?}");
}

/// Arguments of a short run, which a limit judges.
const SHORT: [&str; 8] = ["--", "wake", "--duration", "100ms", "--policy", "other", "--cpus", "0"];

fn bisect(place: &Place, limits: &str, more: &[&str]) -> crate::support::Ran {
    let budget = budget(place, limits);
    // Other tests run beside it.
    let words = [&["bisect-check", "--accept-busy", "--budget", &budget], more, &SHORT].concat();
    let ran = end(latscope(words).env("TMPDIR", place.path()));
    ran.no_panic();
    let left: Vec<String> = names(place.path());
    assert!(!left.iter().any(|name| name.starts_with("latscope-bisect")), "{left:?}");
    ran
}

#[test]
fn bisecting_says_good_bad_or_that_it_cannot_tell() {
    let place = Place::new();
    let good = bisect(&place, "max = '10h'", &[]);
    assert_eq!((good.code, good.out.as_str()), (Some(0), "good: 3 good and 0 bad of 3 runs\n"), "{good:?}");
    let confirmed = bisect(&place, "max = '1ns'", &[]);
    assert_eq!(
        (confirmed.code, confirmed.out.as_str()),
        (Some(1), "bad: 0 good and 2 bad of 2 runs\n"),
        "{confirmed:?}"
    );
    let bad = bisect(&place, "p50 = '1ns'", &[]);
    assert_eq!((bad.code, bad.out.as_str()), (Some(1), "bad: 0 good and 3 bad of 3 runs\n"), "{bad:?}");
    let few = bisect(&place, "p50 = '10h'", &["--runs", "2"]);
    assert!(few.code == Some(128) && few.err.contains("3 runs that agree are needed"), "{few:?}");
    for limits in ["p99_9999 = '10h'", "where = { cpu = 4000 }\nmax = '10h'"] {
        let unknown = bisect(&place, limits, &["--runs", "4"]);
        assert!(
            unknown.code == Some(128) && unknown.err.contains("no run of this command can hold"),
            "{unknown:?}"
        );
        assert!(!unknown.err.contains("run 2"), "{unknown:?}");
    }
    // One limit that a run is too short for is enough, and it says how long a run has to be.
    let short = bisect(&place, "max = '10h'\np99_9999 = '10h'", &[]);
    let advice =
        short.err.split("(add --duration ").nth(1).and_then(|rest| rest.split_once("s to the command"));
    let seconds: u64 = advice.unwrap_or_else(|| panic!("{short:?}")).0.parse().unwrap();
    assert!(short.code == Some(128) && seconds > 1000 && !short.err.contains("run 2"), "{short:?}");
}

#[test]
fn what_goes_wrong_while_bisecting_is_never_a_bad_commit() {
    let place = Place::new();
    let budget = budget(&place, "max = '10h'");
    let relative = place.file("r.toml", "[[limit]]\nprobe = 'wake.timer'\np50 = '+5%'");
    let missing = place.at("missing.toml");
    let csv = format!("--csv={budget}");
    let cases: [(&[&str], &str); 14] = [
        (&[], "--budget"),
        (&["--budget", &budget], "COMMAND"),
        (&["--budget", &missing, "--", "wake"], "missing.toml"),
        (&["--budget", &budget, "--", "wkae"], "wkae"),
        (&["--budget", &budget, "--", "doctor"], "doctor"),
        (&["--budget", &budget, "--", "wake", "--dry-run"], "--dry-run"),
        (&["--budget", &budget, "--", "wake", "--help"], "--help"),
        (&["--budget", &budget, "--", "wake", "--json", "x"], "--json"),
        (&["--budget", &budget, "--", "wake", "--markdown", &budget], "would write to the budget"),
        (&["--budget", &budget, "--", "wake", &csv], "would write to the budget"),
        (&["--budget", &budget, "--", "wake", "--cpus", "4000", "--duration", "10ms"], "cannot tell"),
        (&["--budget", &budget, "--", "wake", "--max", "1h", "--duration", "10ms"], "criteria of its own"),
        (&["--budget", &relative, "--", "wake"], "relative to a baseline"),
        (&["--budget", &budget, "--runs", "0", "--", "wake"], "--runs"),
    ];
    for (words, said) in cases {
        let ran = run(&[&["bisect-check"], words].concat());
        ran.no_panic();
        // Only a run that fails may succeed at another commit: any other error ends the bisection.
        let code = if said == "cannot tell" { 125 } else { 128 };
        assert!(ran.code == Some(code) && ran.err.contains(said), "{words:?}: {ran:?}");
    }
}

#[test]
fn a_signal_ends_the_bisection_and_its_run() {
    let place = Place::new();
    let budget = budget(&place, "max = '10h'");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let words =
            ["bisect-check", "--budget", &budget, "--", "wake", "--duration", "60s", "--policy", "other"];
        let mut command = latscope(words);
        command.env("TMPDIR", place.path());
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        mark.wait_for("__worker");
        send(signal, child.id().cast_signed());
        let ran = wait(child);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(mark.processes(), [], "nothing is left running");
        assert_eq!(names(place.path()), ["budget.toml"]);
    }
}

/// Script that makes a repository in which the fourth of six commits changes the measured command.
const HISTORY: &str = r#"
git init -q . && git config user.name t && git config user.email t@example.org
for at in 1 2 3 4 5 6; do
    if [ $at -lt 4 ]; then echo 10h; else echo 1ns; fi > limit
    printf '[[limit]]\nprobe = "wake.timer"\np50 = "%s"\n' "$(cat limit)" > budget.toml
    echo $at > number; git add . && git commit -q -m "commit $at"
done
git bisect start HEAD HEAD~5
git bisect run "$1" bisect-check --accept-busy --budget budget.toml -- wake --duration 100ms --policy other --cpus 0
git show -s --format=first:%s refs/bisect/bad
"#;

#[test]
fn git_finds_the_commit() {
    if !has_program("gate::git_finds_the_commit", "git") {
        return;
    }
    let place = Place::new();
    let mut command = program(["sh", "-ec", HISTORY, "sh", BINARY]);
    command.current_dir(place.path()).env("HOME", place.path()).env("GIT_CONFIG_NOSYSTEM", "1");
    let ran = end(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    if ran.err.contains("operation not permitted") {
        return skipped("gate::git_finds_the_commit", "this machine measures no wake-up");
    }
    assert!(ran.out.contains("first:commit 4"), "{ran:?}");
}
