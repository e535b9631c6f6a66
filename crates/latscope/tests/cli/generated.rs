//! Files made from the description of the command, and commands that do not measure for a result.

use crate::support::{
    NOBODY, Place, end, has_program, is_installed, latscope, program, public_binary, root, run,
    skipped_in_part,
};
use std::os::unix::process::CommandExt;

const FAMILIES: [&str; 11] =
    ["cpu", "memory", "sync", "thread", "syscall", "process", "file", "wake", "noise", "ipc", "remote"];

#[test]
fn help_is_on_stdout_and_names_everything() {
    let help = run(&["--help"]).done();
    for word in
        FAMILIES.iter().chain(&["survey", "doctor", "list", "show", "selftest", "generate", "as", "--json"])
    {
        assert!(help.contains(word), "{word} is not in the help:\n{help}");
    }
    assert_eq!(run(&["--version"]).done().trim(), format!("latscope {}", env!("CARGO_PKG_VERSION")));
    let memory = run(&["memory", "--help"]).done();
    for word in ["--size", "--order", "--stride", "--pages", "--threads", "latency", "stream"] {
        assert!(memory.contains(word), "{word} is not in the help:\n{memory}");
    }
}

#[test]
fn the_first_line_of_the_help_of_generate_names_all_that_it_makes() {
    let help = run(&["generate", "--help"]).done();
    let first = help.lines().next().unwrap().to_lowercase();
    let values: Vec<&str> =
        help.lines().filter_map(|line| line.trim_start().strip_prefix("- ")?.split(':').next()).collect();
    assert_eq!(values, ["man", "completions", "probes", "schema"]);
    for value in values {
        assert!(first.contains(value), "{value} is not in: {first}");
    }
}

#[test]
fn the_man_page_is_one_that_man_can_show() {
    let page = run(&["generate", "man"]).done();
    assert!(page.contains(".TH latscope 1"), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "LATSCOPE MEMORY", "LATSCOPE SHOW"] {
        let heading =
            page.lines().find(|line| line.starts_with(".SH") && line.replace('"', "").ends_with(section));
        assert!(heading.is_some(), "no section {section}");
    }
}

#[test]
fn groff_finds_no_fault_in_the_man_page() {
    if has_program("groff_finds_no_fault_in_the_man_page", "groff") {
        let page = run(&["generate", "man"]).done();
        let place = Place::new();
        let file = place.file("latscope.1", &page);
        let ran = end(&mut program(["groff", "-Kutf8", "-man", "-Tutf8", "-ww", &file]));
        assert_eq!(ran.err, "");
        let shown = ran.done();
        assert!(shown.contains("latency numbers of this machine"), "{shown}");
    }
}

#[test]
fn completions_are_scripts_of_their_shells() {
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = run(&["generate", "completions", shell]).done();
        for word in ["latscope", "survey", "memory", "only", "placement"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        if !is_installed(shell) {
            skipped_in_part("completions_are_scripts_of_their_shells", &format!("{shell} is not installed"));
        } else {
            let place = Place::new();
            let file = place.file("completions", &script);
            let ran = end(&mut program([shell, check, &file]));
            assert_eq!(ran.err, "", "{shell}");
            ran.done();
        }
    }
    let place = Place::new();
    let file = place.file("completions", run(&["generate", "completions", "bash"]).done());
    let ask = format!(
        ". {file}; COMP_WORDS=(latscope sur); COMP_CWORD=1; _latscope latscope sur latscope; echo \"${{COMPREPLY[@]}}\""
    );
    assert!(end(&mut program(["bash", "-c", &ask])).done().contains("survey"));
}

#[test]
fn the_list_can_be_narrowed_and_checked() {
    let list = run(&["list"]).done();
    for family in FAMILIES {
        assert!(list.lines().any(|line| line.starts_with(&format!("{family}: "))), "{family}");
    }
    let wake = run(&["list", "wake"]).done();
    assert!(wake.contains("wake.timer") && !wake.contains("cpu.cycle"));
    let checked = run(&["list", "wake", "--check"]).done();
    let verdict = |line: &str| {
        let states = ["ok", "unstable: ", "degraded: ", "unsupported: ", "not now: "];
        states.iter().any(|word| line.trim().starts_with(word))
    };
    // `wake.response` has no points of its own.
    for probe in ["wake.timer", "wake.response", "wake.timerlat"] {
        let mut entry = checked.lines().skip_while(|line| !line.starts_with(&format!("  {probe} ")));
        let has = entry.by_ref().skip(1).take_while(|line| line.starts_with("      ")).any(verdict);
        assert!(has, "{probe} in\n{checked}");
    }
}

#[test]
fn lists_fit_the_terminal() {
    for command in ["list", "doctor"] {
        let out = end(latscope([command]).env("COLUMNS", "60")).done();
        // A path is not broken.
        let is_word = |line: &str| !line.trim().contains(' ');
        let long = |line: &&str| line.chars().count() > 60 && !line.starts_with("  fix: ") && !is_word(line);
        assert_eq!(out.lines().find(long), None, "{out}");
    }
}

#[test]
fn the_doctor_runs_with_root_and_without() {
    let out = run(&["doctor"]).done();
    assert!(out.contains("clock-source") && out.contains("governor"), "{out}");
    assert!(out.trim_end().lines().last().unwrap().contains(" good"), "{out}");
    let machine = crate::support::parsed(&run(&["doctor", "--json", "-"]).done());
    for check in machine["checks"].as_array().unwrap() {
        assert!(check["id"].is_string() && check["found"].is_string(), "{check:#}");
    }
    if root("the_doctor_runs_with_root_and_without") {
        let (_copy, binary) = public_binary();
        let out = end(program([&binary]).arg("doctor").current_dir("/").uid(NOBODY).gid(NOBODY)).done();
        assert!(out.contains("SCHED_FIFO"), "{out}");
    }
}

#[test]
fn the_self_test_finds_what_is_there() {
    // Another program on the same CPUs may spoil one of its trials.
    let mut failed = Vec::new();
    let found = (0..3).any(|_| {
        let ran = run(&["selftest", "survey"]);
        ran.no_panic();
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!(lines.len(), 3, "{ran:#?}");
        assert!(
            lines.iter().all(|line| line.starts_with("pass  ") || line.starts_with("FAIL  ")),
            "{ran:#?}"
        );
        let delays = lines.iter().find(|line| line.contains("injected")).unwrap();
        let numbers: Vec<u64> = delays.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert!(numbers[0] > 0 && delays.contains("are found"), "{delays}");
        let passed = lines.iter().all(|line| line.starts_with("pass"));
        assert_eq!(ran.code, Some(if passed { 0 } else { 1 }), "{ran:#?}");
        failed.push(ran.out);
        passed
    });
    assert!(found, "the self-test failed three times: {failed:#?}");
}

#[test]
fn no_argument_is_the_survey() {
    let plan = run(&["--quick", "--dry-run"]).done();
    assert!(plan.starts_with("survey: "), "{plan}");
    let named = run(&["survey", "--quick", "--dry-run"]).done();
    assert_eq!(plan, named);
}
