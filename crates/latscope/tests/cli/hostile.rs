//! Files and directories of other users: text that a terminal, a spreadsheet or a workflow would obey, paths that are
//! no files, and names that lead elsewhere.

use crate::import::real;
use crate::process::signal;
use crate::support::{NOBODY, Place, Ran, end, eventually, json, latscope, program, root, run, start, wait};
use latscope_core::fixture;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

/// Asserts that the printed text has nothing that a terminal would obey.
#[track_caller]
fn is_clean(ran: &Ran, words: &[&str]) {
    for text in [&ran.out, &ran.err] {
        let obeyed = |c: char| {
            c.is_control() && !"\n\t".contains(c) || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{2066}'
        };
        assert!(!text.contains(obeyed), "{words:?}: {text:?}");
    }
}

const HOSTILE: &str = "\\u001b]0;PWNED\\u0007\\u001b[31m\\u202e\\u009b2J\\u2066";

#[test]
fn names_in_outputs_of_others_are_shown_without_what_a_terminal_obeys() {
    let place = Place::new();
    let fio = fs::read_to_string(real("fio.json")).unwrap();
    let hostile =
        fio.replace("\"rr\"", &format!("\"rr{HOSTILE}\"")).replace("fio-3.33", &format!("fio-3.33{HOSTILE}"));
    assert_ne!(hostile, fio);
    let file = place.file("fio.json", &hostile);
    let damaged = place.file("damaged.json", hostile.replace("\"bins\"", "\"bins\": 7, \"odd\""));
    let directory = place.directory("all");
    fs::write(format!("{directory}/1.json"), &hostile).unwrap();
    fs::write(format!("{directory}/2\u{1b}[31m.json"), "{\"schema\":\"latscope/2\"}").unwrap();
    let saved = place.at("result.json");
    let calls: [&[&str]; 8] = [
        &["import", &file, "--json", &saved],
        &["show", &file, "--table"],
        &["show", &file, "--all"],
        &["show", &file, "--markdown", "-"],
        &["show", &file, "--csv", "-"],
        &["show", &damaged],
        &["compare", &file, "--all", &real("fio.json")],
        &["history", &directory, "--all"],
    ];
    for words in calls {
        let ran = run(words);
        ran.no_panic();
        is_clean(&ran, words);
        assert!(!ran.out.is_empty() || !ran.err.is_empty(), "{words:?}");
    }
    assert!(run(&["show", &file, "--all"]).out.contains("rr\u{fffd}"));
    // Colours of ours stay, and theirs do not become ours.
    let mut coloured = latscope(["show", file.as_str(), "--table"]);
    let ran = end(coloured.env("CLICOLOR_FORCE", "1"));
    assert!(!ran.out.contains("\u{1b}]") && !ran.out.contains("PWNED\u{7}"), "{}", ran.out);
    is_clean(&run(&["show", "/nonexistent/\u{1b}[2J"]), &["a name of a file"]);
}

#[test]
fn titles_are_no_commands_of_a_workflow_and_no_formulas() {
    let place = Place::new();
    let mut report = fixture::wake();
    for m in &mut report.measurements {
        m.title = "::stop-commands::x".to_owned();
        m.params.insert("name".to_owned(), "=1+1".into());
    }
    let file = place.file("wake.json", report.to_json());
    let budget = place.file("b.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1ns'");
    let ran = run(&["gate", &file, "--budget", &budget, "--github", "--all"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let commands: Vec<&str> = ran.out.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    assert!(
        !commands.is_empty() && commands.iter().all(|line| line.starts_with("::error title=")),
        "{ran:#?}"
    );
    for view in ["--all", "--table"] {
        let shown = run(&["show", &file, view]).out;
        assert!(!shown.lines().any(|line| line.trim_start().starts_with("::")), "{shown}");
    }
    assert!(run(&["show", &file, "--csv", "-"]).out.contains(": :stop-commands::x"));
}

/// A log keeps what a step prints, whatever the form. LAVA's own form has its signals, and none of others.
#[test]
fn no_view_on_stdout_has_commands_of_others() {
    let place = Place::new();
    let mut report = fixture::wake();
    let texts = ["##vso[task.x]1", "##[error]2", "##teamcity[x]3", "<LAVA_SIGNAL_TESTCASE 4>"];
    for (m, text) in report.measurements.iter_mut().zip(texts.iter().cycle()) {
        m.title = format!("a {text}");
        m.params.insert("name".to_owned(), (*text).into());
    }
    report.machine.kernel = texts.concat();
    let file = place.file("wake.json", report.to_json());
    let budget = place.file("b.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1ns'");
    let views = [
        "json", "csv", "csv-long", "openmetrics", "lava", "markdown", "html", "contribute", "svg",
        "svg-percentiles",
    ];
    let mut calls: Vec<Vec<String>> = views
        .iter()
        .map(|view| ["show", &file, &format!("--{view}=-")].map(str::to_owned).to_vec())
        .collect();
    calls.push(["gate", &file, "--budget", &budget, "--junit", "-"].map(str::to_owned).to_vec());
    for words in &calls {
        let ran = end(&mut latscope(words));
        assert!(!ran.out.is_empty(), "{words:?}: {ran:#?}");
        for text in texts {
            assert!(!ran.out.contains(text), "{words:?}: {text}");
        }
    }
}

#[test]
fn only_plain_files_of_a_limited_size_are_read() {
    let place = Place::new();
    let pipe = place.at("pipe");
    end(&mut program(["mkfifo", &pipe])).done();
    let large = place.at("large.json");
    fs::File::create(&large).unwrap().set_len((1 << 30) + 1).unwrap();
    let budget = place.file("b.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1h'");
    let result = place.file("wake.json", fixture::wake().to_json());
    for (file, said) in [("/dev/zero", "no plain file"), (&pipe, "no plain file"), (&large, "--any-size")] {
        let calls: [&[&str]; 6] = [
            &["show", file],
            &["import", file],
            &["compare", file, &result],
            &["gate", file, "--budget", &budget],
            &["gate", &result, "--budget", file],
            &["show", &result, "--beside", file],
        ];
        for words in calls {
            let line = run(words).refused();
            assert!(line.contains(said) && line.contains(file), "{words:?}: {line}");
        }
    }
    // What a shell gives for `<(…)` is read.
    let script = format!("exec \"$0\" show <(cat '{result}')");
    end(&mut program(["bash", "-c", &script, crate::support::BINARY])).done();
}

#[test]
fn a_trial_of_others_names_only_files_of_its_directory() {
    let place = Place::new();
    let plan = "[[measurement]]\nname = \"cycle\"\nrun = \"cpu cycle --rounds 2 --count 4\"\n";
    let plan = place.file("plan.toml", plan);
    let directory = place.at("results");
    run(&["run", &plan, "--dir", &directory]).done();
    let file = format!("{directory}/trial.json");
    let before = json(&file);
    run(&["show", &directory]).done();
    for name in ["../wake.json", "/dev/zero", "a/../../wake.json", ".."] {
        for list in ["runs", "order"] {
            let mut forged = before.clone();
            forged[list][0]["file"] = name.into();
            fs::write(&file, forged.to_string()).unwrap();
            let line = run(&["show", &directory]).refused();
            assert!(line.contains("no file of its directory"), "{name}: {line}");
        }
    }
}

#[test]
fn root_writes_results_of_a_trial_only_where_no_other_user_can() {
    let name = "root_writes_results_of_a_trial_only_where_no_other_user_can";
    if !root(name) {
        return;
    }
    let place = Place::new();
    let plan = "[[measurement]]\nname = \"cycle\"\nrun = \"cpu cycle --rounds 2 --count 4\"\n";
    let plan = place.file("plan.toml", plan);
    let (theirs, open) = (place.directory("theirs"), place.directory("open"));
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    let link = place.at("link");
    symlink(&theirs, &link).unwrap();
    for directory in [&theirs, &open, &link] {
        let line = run(&["run", &plan, "--dir", directory]).refused();
        assert!(line.contains("another user can write to it"), "{line}");
    }
    // The directory of its own name is new, and root's alone; in one of another user he could replace it.
    let said = end(latscope(["run", &plan]).current_dir(&theirs)).refused();
    assert!(said.contains("another user can replace what is in ."), "{said}");
    // A link of root's own to a new directory is followed, at each run.
    let (real, way) = (place.directory("real"), place.at("way"));
    symlink(&real, &way).unwrap();
    run(&["run", &plan, "--dir", &way]).done();
    let own = place.directory("own");
    let ran = end(latscope(["run", &plan]).current_dir(&own));
    ran.no_panic();
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let made: Vec<_> = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().metadata().unwrap()).collect();
    assert_eq!(
        made.iter().map(|about| (about.uid(), about.mode() & 0o777)).collect::<Vec<_>>(),
        [(0, 0o700)]
    );
}

/// Views that are written to a file, by their options.
const WRITTEN: [&str; 6] = ["--json", "--csv", "--html", "--markdown", "--openmetrics", "--csv-long"];

#[test]
fn no_view_is_written_to_what_a_link_of_another_user_leads_to() {
    if !root("no_view_is_written_to_what_a_link_of_another_user_leads_to") {
        return;
    }
    let place = Place::new();
    let (directory, result) = (place.directory("theirs"), real("hyperfine.json"));
    chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    let secret = place.file("secret", "kept");
    for option in WRITTEN {
        for target in [secret.as_str(), "/dev/full"] {
            let planted = format!("{directory}/view{option}");
            symlink(target, &planted).unwrap();
            std::os::unix::fs::lchown(&planted, Some(NOBODY), Some(NOBODY)).unwrap();
            run(&["show", &result, option, &planted]).done();
            assert!(fs::symlink_metadata(&planted).unwrap().is_file(), "{option} {target}");
            assert_eq!(fs::read_to_string(&secret).unwrap(), "kept", "{option}");
            fs::remove_file(&planted).unwrap();
        }
    }
}

#[test]
fn a_pipe_that_becomes_a_link_while_it_is_waited_for_leads_nowhere() {
    if !root("a_pipe_that_becomes_a_link_while_it_is_waited_for_leads_nowhere") {
        return;
    }
    let place = Place::new();
    let (pipe, link) = (place.at("result.json"), place.at("link"));
    let secret = place.file("secret", "kept");
    assert!(program(["mkfifo", &pipe]).status().unwrap().success());
    symlink(&secret, &link).unwrap();
    let child = start(&mut latscope(["show", &real("hyperfine.json"), "--json", &pipe]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    fs::rename(&link, &pipe).unwrap();
    let ran = wait(child);
    assert!(ran.refused().contains("no process reads this pipe"), "{ran:?}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
}

#[test]
fn a_dry_run_runs_no_command_of_a_plan() {
    let place = Place::new();
    let (ran, prefix) = (place.at("ran"), place.at("prefix"));
    let plan = format!(
        "title = \"x\"\n[[measurement]]\nname = \"a\"\nrun = \"syscall getppid\"\nneeds = \"touch {ran}\"\n\
         [[measurement]]\nname = \"b\"\nrun = \"syscall getppid\"\n\
         [[arm]]\nname = \"one\"\nprefix = \"touch {prefix}\"\n"
    );
    let plan = place.file("plan.toml", plan);
    let shown = run(&["run", &plan, "--dry-run", "--dir", &place.at("results")]).done();
    assert!(shown.contains(&format!("if this succeeds: touch {ran}")), "{shown}");
    assert!(!fs::exists(&ran).unwrap() && !fs::exists(&prefix).unwrap(), "a command of the plan ran");
}

#[test]
fn a_directory_for_files_is_this_users_also_under_an_open_umask() {
    let place = Place::new();
    let directory = place.directory("files");
    let binary = env!("CARGO_BIN_EXE_latscope");
    let script = format!("umask 000; exec {binary} file create --dir {directory} --rounds 100 --quiet");
    let child = start(&mut program(["sh", "-c", &script]));
    let mode = eventually("it has a directory", || {
        let mut all = fs::read_dir(&directory).ok()?.flatten();
        let made = all.find(|entry| entry.file_name().to_string_lossy().starts_with(".latscope-"))?;
        Some(made.metadata().ok()?.permissions().mode() & 0o777)
    });
    signal(&child, Signal::INT);
    wait(child).no_panic();
    assert_eq!(mode, 0o700);
}

#[test]
fn a_stack_that_is_too_small_is_said() {
    let command = format!("ulimit -s 64; exec {} cpu", env!("CARGO_BIN_EXE_latscope"));
    let said = end(&mut program(["sh", "-c", &command])).refused();
    assert!(said.contains("ulimit -s 8192"), "{said}");
}

#[test]
fn too_few_open_files_are_said() {
    let command = format!("ulimit -n 16; exec {} cpu cycle", env!("CARGO_BIN_EXE_latscope"));
    let said = end(&mut program(["sh", "-c", &command])).refused();
    assert!(said.contains("ulimit -n 64"), "{said}");
}
