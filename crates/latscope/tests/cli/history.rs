//! `latscope history` with a directory of results, from the files to the exit code.

use crate::support::{Place, end, latscope, names, parsed, run};
use latscope_core::fixture;
use latscope_core::report::Report;
use latscope_core::rounds::RoundSummary;
use std::fs;
use std::process::Command;

/// Run of the fixture at a minute of the day. Its figures scatter by 0.3 %, and its hand-offs take `factor` times as
/// long.
fn report(name: &str, at: usize, factor: f64) -> Report {
    let mut report = fixture::report();
    report.run_id = format!("{at:08}{name}0123456789abcdef");
    report.started = format!("2026-11-22T{:02}:{:02}:00Z", at / 60, at % 60);
    report.finished = Some(report.started.clone());
    for m in &mut report.measurements {
        let by = if m.probe.starts_with("sync.") { factor } else { 1.0 };
        let p50 = m.summary.p50.map(|ns| ns * by * (1.0 + 0.003 * ((at * 7919) % 101) as f64 / 101.0));
        m.rounds = (0..4).map(|_| RoundSummary { count: 9, p50, ..RoundSummary::default() }).collect();
        m.derive_results();
    }
    report
}

/// Creates a directory with 24 runs, of which the last twelve are slower under another kernel.
pub fn stepped(place: &Place) -> String {
    let directory = place.directory("runs");
    for at in 0..24 {
        let mut report = report("", at, if at < 12 { 1.0 } else { 1.2 });
        report.machine.kernel = if at < 12 { "6.1.0" } else { "6.12.0" }.to_owned();
        fs::write(format!("{directory}/{at}.json"), report.to_json()).unwrap();
    }
    directory
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_change_is_found_in_every_form_with_what_changed_with_it() {
    let place = Place::new();
    let directory = stepped(&place);
    let shown = run(&["history", &directory]).done();
    assert!(shown.contains("change 000000120123") && shown.contains("run 13 of 24"), "{shown}");
    assert!(
        flat(&shown).contains("kernel: 6.1.0") && shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
    let lines = run(&["history", &directory, "--only", "sync.mutex"]).done();
    assert!(lines.contains('│') && lines.contains('▁') && lines.contains('█'), "{lines}");
    let json = parsed(&run(&["history", &directory, "--json", "-"]).done());
    assert_eq!(json["schema"], "latscope-history/1");
    let changes = json["machines"][0]["changes"].as_array().unwrap();
    assert_eq!((changes.len(), &changes[0]["run"]), (1, &12.into()));
    let moved = changes[0]["moved"].as_array().unwrap();
    assert!(moved.iter().all(|one| one["probe"].as_str().unwrap().starts_with("sync.")), "{moved:?}");
    let (csv, markdown, html) = (place.at("h.csv"), place.at("h.md"), place.at("h.html"));
    run(&["history", &directory, "--csv", &csv, "--markdown", &markdown, "--html", &html]).done();
    let page = fs::read_to_string(html).unwrap();
    for part in
        ["<svg", "<h3>change 000000120123</h3>", "differs: kernel: 6.1.0", ">change 000000120123</text>"]
    {
        assert!(page.contains(part), "{part:?}");
    }
    assert!(fs::read_to_string(csv).unwrap().starts_with("machine,change,started,"));
    assert!(fs::read_to_string(markdown).unwrap().contains("| p50 |"));
    assert_eq!(run(&["history", &directory, "--fail-on", "change"]).code, Some(2));
    assert_eq!(run(&["history", &directory, "--fail-on", "change", "--same", "30%"]).code, Some(0));
    assert_eq!(run(&["history", &directory, "--fail-on", "change", "--only", "cpu"]).code, Some(0));
}

#[test]
fn an_id_stays_while_runs_are_added_and_hides_what_came_before() {
    let place = Place::new();
    let directory = stepped(&place);
    let since = ["history", &directory, "--since", "000000120123", "--fail-on", "change"];
    let hidden = run(&since);
    assert_eq!(hidden.code, Some(0));
    assert!(hidden.out.contains("1 change up to 000000120123 left out (--since)"), "{}", hidden.out);
    let whole = report("", 12, 1.2).run_id;
    assert!(whole.len() > 12, "{whole}");
    assert_eq!(run(&["history", &directory, "--since", &whole, "--fail-on", "change"]).code, Some(0));
    for at in 24..40 {
        let report = report("", at, if at < 30 { 1.2 } else { 1.5 });
        fs::write(format!("{directory}/{at}.json"), report.to_json()).unwrap();
    }
    assert_eq!(run(&since).code, Some(2));
    let shown = run(&["history", &directory]).done();
    assert!(shown.contains("change 000000120123") && shown.contains("change 000000300123"), "{shown}");
    assert_eq!(run(&["history", &directory, "--since", "000000300123", "--fail-on", "change"]).code, Some(0));
    assert!(run(&["history", &directory, "--since", "nonsense"]).refused().contains("000000300123"));
}

#[test]
fn what_is_no_run_of_one_machine_is_said() {
    let place = Place::new();
    let directory = stepped(&place);
    fs::write(format!("{directory}/notes.txt"), "quiet machine").unwrap();
    fs::write(format!("{directory}/empty.json"), "").unwrap();
    fs::write(format!("{directory}/newer.json"), r#"{"schema": "latscope/2"}"#).unwrap();
    fs::write(format!("{directory}/nan.json"), r#"{"schema": "latscope/1", "started": NaN}"#).unwrap();
    fs::write(format!("{directory}/cut.json"), &report("", 50, 1.0).to_json()[..9000]).unwrap();
    fs::copy(format!("{directory}/3.json"), format!("{directory}/copy.json")).unwrap();
    std::os::unix::fs::symlink(&directory, format!("{directory}/again")).unwrap();
    fs::create_dir(format!("{directory}/deep")).unwrap();
    let mut many = parsed(&report("", 51, 1.2).to_json());
    many["measurements"][0]["histogram"]["buckets"][0][2] = 4_000_000_000_000_000u64.into();
    // A field of a newer version, deeper than any reader's stack.
    let foreign = format!(r#","foreign":{}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let many = many.to_string();
    let whole = many.strip_suffix('}').unwrap();
    fs::write(format!("{directory}/deep/many.json"), [whole, &foreign].concat()).unwrap();
    let typed = r#"{"schema": "latscope/1", "tool": "#.to_owned() + &r#"{"name": "#.repeat(10_000);
    fs::write(format!("{directory}/deep/typed.json"), typed).unwrap();
    let mut more = parsed(&report("", 53, 1.2).to_json());
    more["measurements"][0]["histogram"]["overflow"] = u64::MAX.into();
    fs::write(format!("{directory}/deep/more.json"), more.to_string()).unwrap();
    let mut other = report("other", 52, 9.0);
    other.machine.id = Some("elsewhere".to_owned());
    fs::write(format!("{directory}/other.json"), other.to_json()).unwrap();
    for _ in 0..2 {
        let shown = flat(&run(&["history", &directory, "--all"]).done());
        let said = [
            "notes.txt",
            "empty.json",
            "latscope/2",
            "nan.json",
            "cut.json",
            "typed.json",
            "more.json",
            "is the same run as",
            "again is no plain file",
            "machine elsewhere",
            ": 25 runs of",
        ];
        for words in said {
            assert!(shown.contains(words), "{words:?} is not said:\n{shown}");
        }
        assert_eq!(shown.matches("change 0").count(), 1, "{shown}");
    }
}

#[test]
fn rows_that_are_not_trusted_make_no_change() {
    let place = Place::new();
    let directory = place.directory("results");
    for at in 0..24 {
        let mut report = report("", at, if at < 12 { 1.0 } else { 1.2 });
        for m in report.measurements.iter_mut().filter(|_| at >= 12) {
            m.incomplete = true;
        }
        fs::write(format!("{directory}/{at}.json"), report.to_json()).unwrap();
    }
    let shown = run(&["history", &directory, "--fail-on", "change"]).done();
    assert!(shown.contains("not judged"), "{shown}");
}

#[test]
fn impossible_directories_are_refused_in_one_line() {
    let place = Place::new();
    let (directory, empty) = (stepped(&place), place.directory("empty"));
    let few = place.directory("few");
    fs::write(format!("{few}/1.json"), report("", 1, 1.0).to_json()).unwrap();
    let one = format!("{few}/1.json");
    let cases: [(&[&str], &str); 7] = [
        (&[&empty], "there is no result"),
        (&[&one], &format!("such as `latscope history {few}`")),
        (&[&one], &format!("`latscope show {one}` shows this one")),
        (&["/nonexistent"], "no directory"),
        (&[&directory, "--only", "synk"], "did you mean sync"),
        (&[&directory, "--same", "0%"], "no percentage"),
        (&[&directory, "--json", "-", "--csv", "-"], "standard output"),
    ];
    for (words, said) in cases {
        let ran = run(&[&["history"], words].concat());
        assert!(ran.refused().contains(said), "{words:?}: {ran:?}");
    }
}

#[test]
fn a_reader_that_goes_away_does_not_hide_a_change() {
    let place = Place::new();
    let directory = stepped(&place);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = latscope(["history", &directory, "--fail-on", "change"]).stdout(writer).status().unwrap();
    assert_eq!(ran.code(), Some(2));
}

#[test]
fn without_room_for_an_index_it_reads_everything_and_says_so() {
    let place = Place::new();
    let directory = stepped(&place);
    let with_cache = |cache: &str| {
        let mut command = latscope(["history", &directory]);
        end(command.env("XDG_CACHE_HOME", cache)).done()
    };
    // Also root cannot write there.
    let shown = with_cache("/proc/nowhere");
    assert!(shown.contains("no index is kept") && shown.contains("change 000000120123"), "{shown}");
    let cache = place.directory("cache");
    assert!(!with_cache(&cache).contains("no index"));
    assert_eq!(fs::read_dir(format!("{cache}/latscope")).unwrap().count(), 1);
    assert!(!names(&directory).iter().any(|name| name.starts_with('.')), "nothing is written beside results");
    // A directory of results may be of another user, and have what they want to be followed or waited for.
    let other = format!("{directory}/other");
    for command in [&["mkfifo", &other][..], &["ln", "-s", "/dev/zero", &other]] {
        assert!(Command::new(command[0]).args(&command[1..]).status().unwrap().success());
        let shown = flat(&run(&["history", &directory, "--all"]).done());
        assert!(shown.contains("other is no plain file"), "{shown}");
        fs::remove_file(&other).unwrap();
    }
}

#[test]
fn two_at_the_same_time_leave_a_whole_index() {
    let place = Place::new();
    let directory = stepped(&place);
    let first = run(&["history", &directory, "--json", "-"]).done();
    for at in 0..5 {
        let cache = place.directory(&format!("cache-{at}"));
        let history = || {
            let mut command = latscope(["history", &directory, "--json", "-"]);
            end(command.env("XDG_CACHE_HOME", &cache)).done()
        };
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(history);
            [history(), other.join().unwrap()]
        });
        assert_eq!(both, [first.clone(), first.clone()]);
        assert_eq!(history(), first);
        assert_eq!(names(format!("{cache}/latscope")).len(), 1);
    }
}
