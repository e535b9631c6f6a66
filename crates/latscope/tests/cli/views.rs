//! Views of a result, which show the same numbers everywhere, on the stream where they belong.

use crate::process::Mark;
use crate::result::survey;
use crate::support::{
    BINARY, Place, end, json, latscope, measurements, names, of_probe, program, reason, run, start, wait,
};
use latscope_core::units::format_time;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const ESCAPE: char = '\x1b';

#[test]
fn a_saved_result_shows_what_the_run_showed() {
    let survey = survey();
    assert_eq!(run(&["show", &survey.path]).done(), survey.ran.out);
}

#[test]
fn a_result_is_read_from_standard_input_too() {
    let survey = survey();
    let mut command = latscope(["show", "-"]);
    command.stdin(fs::File::open(&survey.path).unwrap());
    let shown = end(&mut command).done();
    // Without the name of a file only the last lines differ: where the rest is.
    let body = |text: &str| {
        text.lines().take_while(|line| !line.starts_with("All rows: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(body(&shown), body(&survey.ran.out));
    assert!(shown.contains("All rows: --table"), "{shown}");
}

#[test]
fn the_first_screen_has_ten_numbers_and_says_where_the_rest_is() {
    let survey = survey();
    let text = &survey.ran.out;
    for part in ["L1 hit", "fsync", "Of 1", "bars: logarithmic, ", "The machine was "] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    // On a busy machine the memory may not be told from the last cache; another row is in its place then.
    assert!(text.contains("memory read") || text.contains("core cycle"), "{text}");
    let show = format!("All rows: latscope show {} --table", survey.path);
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&show), "{text}");
    let rows = text.lines().skip_while(|line| !line.starts_with("───")).skip(1);
    let rows = rows.take_while(|line| !line.starts_with("RT ")).count();
    // On a busy machine a level of the caches may not be found; then that is said.
    let missing = text.lines().filter(|line| line.starts_with("not measured  ")).count();
    assert!((10..=12).contains(&(rows + missing)), "{rows} rows:\n{text}");
    let table = run(&["show", &survey.path, "--table"]).done();
    assert!(table.lines().count() > 2 * text.lines().count(), "{table}");
}

#[test]
fn rows_stand_by_value_or_by_family_and_only_in_a_table() {
    let survey = survey();
    let families = |order: &str| {
        let text =
            end(latscope(["show", &survey.path, "--table", "--sort", order]).env("COLUMNS", "250")).done();
        let rows: Vec<String> =
            text.lines().skip_while(|line| !line.starts_with("───")).skip(1).map(str::to_owned).collect();
        let heading = text.lines().find(|line| line.starts_with("operation")).unwrap();
        let at = heading.chars().take_while(|c| *c != 'f').count();
        let family = |line: &String| line.chars().skip(at).take_while(|c| *c != ' ').collect::<String>();
        let mut all: Vec<String> =
            rows.iter().take_while(|line| !line.starts_with("RT ")).map(family).collect();
        all.dedup();
        all.len()
    };
    assert!(families("family") < 15 && families("value") > 30);
    let refused = run(&["show", &survey.path, "--sort", "family"]).refused();
    assert!(refused.contains("--sort") && refused.contains("add --table"), "{refused}");
    for options in [["--table", "--quiet"], ["--table", "--all"]] {
        let refused = run(&[&["show", survey.path.as_str()][..], &options[..]].concat()).refused();
        assert!(refused.contains("--table"), "{refused}");
    }
}

#[test]
fn points_that_are_no_rows_are_shown_where_there_is_no_row() {
    let out = run(&["survey", "--quick", "--only", "memory.tlb", "--count", "3"]).done();
    assert!(out.contains("memory.tlb") && !out.contains("No row has a number"), "{out}");
}

#[test]
fn every_row_of_the_table_is_in_the_result() {
    let survey = survey();
    let table = &end(latscope(["show", &survey.path, "--table"]).env("COLUMNS", "200")).done();
    for probe in ["cpu.cycle", "sync.mutex", "syscall.getppid", "process.vfork", "thread.std", "file.rename"]
    {
        let rows = of_probe(&survey.found, probe)
            .into_iter()
            .filter(|m| m["row"] == true && m["quality"]["level"] != "unsupported");
        for m in rows {
            let start: String = m["title"].as_str().unwrap().chars().take(8).collect();
            let figure = format_time(m["summary"]["p50"].as_f64().unwrap());
            let row = table.lines().find(|line| line.starts_with(&start) && line.contains(&figure));
            assert!(row.is_some(), "no row {start:?} with {figure}:\n{table}");
        }
    }
    for m in measurements(&survey.found)
        .iter()
        .filter(|m| m["quality"]["level"] == "unsupported" && m["row"] == true)
    {
        // Long texts are broken into lines.
        let reason: String = reason(m).chars().take(20).collect();
        let flat: String = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&reason), "{reason}:\n{table}");
    }
    for finding in survey.found["findings"].as_array().unwrap() {
        let flat: String = table.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = finding["text"].as_str().unwrap();
        assert!(flat.contains(text), "{text}:\n{table}");
    }
}

#[test]
fn the_table_goes_from_the_fastest_row_to_the_slowest() {
    let medians = |found: &Value| -> Vec<f64> {
        let mut medians: Vec<f64> = measurements(found)
            .iter()
            .filter(|m| m["row"] == true)
            .filter_map(|m| m["summary"]["p50"].as_f64())
            .collect();
        medians.sort_by(f64::total_cmp);
        medians
    };
    let place = Place::new();
    let result = place.at("result.json");
    let only = "cpu.add,sync.mutex,syscall.getppid,process.vfork";
    let table = run(&["survey", "--quick", "--count", "3", "--only", only, "--json", &result]).done();
    let mut rest = table.as_str();
    for median in medians(&json(&result)) {
        let figure = format_time(median);
        let at = rest.find(&figure).unwrap_or_else(|| panic!("{figure} is not where it belongs:\n{table}"));
        rest = &rest[at..];
    }
}

#[test]
fn csv_has_a_line_for_each_point() {
    let survey = survey();
    let text = run(&["show", &survey.path, "--csv", "-"]).done();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("probe,family,title,params,"), "{header}");
    let lines: Vec<&str> = lines.collect();
    // The levels of memory come last, which are read off a curve.
    let (levels, lines): (Vec<&str>, Vec<&str>) =
        lines.into_iter().partition(|line| line.starts_with("memory.level,"));
    assert!(levels.iter().any(|line| line.contains("L1 hit")), "{levels:?}");
    assert_eq!(lines.len(), measurements(&survey.found).len());
    for (line, m) in lines.iter().zip(measurements(&survey.found)) {
        assert!(line.starts_with(&format!("{},", m["probe"].as_str().unwrap())), "{line}");
        let p50 = m["summary"]["p50"].to_string();
        assert!(m["summary"]["p50"].is_null() || line.contains(p50.trim_end_matches(".0")), "{line} {p50}");
    }
}

#[test]
fn markdown_is_a_table_of_the_same_rows() {
    let survey = survey();
    let text = run(&["show", &survey.path, "--markdown", "-"]).done();
    assert!(text.starts_with("## latscope survey"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    let columns = |line: &str| line.matches(" | ").count();
    assert!(rows.len() > 60, "{text}");
    assert!(text.contains("|:--|"));
    let cycle = &of_probe(&survey.found, "cpu.cycle")[0]["summary"]["p50"];
    let figure = format_time(cycle.as_f64().unwrap());
    assert!(rows.iter().any(|row| row.contains("core cycle") && row.contains(&figure)), "{text}");
    assert!(columns(rows[0]) >= 8, "{}", rows[0]);
}

#[test]
fn other_results_are_columns() {
    let survey = survey();
    let beside = run(&["show", &survey.path, "--beside", &survey.path]).done();
    let heading = |text: &str| text.lines().find(|line| line.starts_with("operation")).unwrap().to_owned();
    let (alone, both) = (heading(&run(&["show", &survey.path, "--table"]).done()), heading(&beside));
    let day = &survey.found["started"].as_str().unwrap()[..10];
    assert!(both.contains(day) && !alone.contains(day), "{both}");
    assert!(beside.contains("1.0×"), "{beside}");
    let twice = run(&["show", &survey.path, "--beside", &survey.path, "--beside", &survey.path]).done();
    assert!(heading(&twice).matches(day).count() == 2, "{}", heading(&twice));
}

#[test]
fn families_can_be_compared_too() {
    let place = Place::new();
    let result = place.at("result.json");
    run(&["sync", "mutex", "--count", "2", "--json", &result]).done();
    let day = json(&result)["started"].as_str().unwrap()[..10].to_owned();
    let beside = run(&["sync", "mutex", "--count", "2", "--beside", &result]).done();
    assert!(beside.lines().any(|line| line.starts_with("operation") && line.contains(&day)), "{beside}");
}

#[test]
fn a_narrow_terminal_is_respected() {
    let survey = survey();
    for width in ["60", "80", "200"] {
        for view in [&["show", survey.path.as_str()][..], &["show", survey.path.as_str(), "--table"]] {
            let text = end(latscope(view).env("COLUMNS", width)).done();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.parse().unwrap(), "{widest} columns of {width}:\n{text}");
        }
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let survey = survey();
    assert!(!survey.ran.out.contains(ESCAPE) && !survey.ran.err.contains(ESCAPE));
    for words in [["list", "cpu"], ["doctor", "-"], ["show", &survey.path], ["--help", ""]] {
        let words: Vec<&str> = words.into_iter().filter(|word| !["", "-"].contains(word)).collect();
        let ran = run(&words);
        assert!(!ran.out.contains(ESCAPE) && !ran.err.contains(ESCAPE), "{words:?}");
    }
    // On a terminal, which script(1) provides.
    let shown = |environment: &[(&str, &str)]| {
        let line = format!("{BINARY} show {}", survey.path);
        let mut command = program(["script", "--quiet", "--return", "--command", &line, "/dev/null"]);
        end(command.env("TERM", "xterm").envs(environment.iter().copied())).done()
    };
    assert!(shown(&[]).contains(ESCAPE));
    assert!(!shown(&[("NO_COLOR", "1")]).contains(ESCAPE));
}

#[test]
fn results_go_to_stdout_and_words_to_stderr() {
    let ran = run(&["cpu", "cycle", "--count", "2"]);
    assert!(ran.err.contains("measuring cpu") && !ran.err.contains("core cycle"), "{}", ran.err);
    assert!(!ran.out.contains("measuring") && ran.out.contains("core cycle"), "{}", ran.out);

    let ran = run(&["cpu", "cycle", "--count", "2", "--json", "-"]);
    let found = crate::support::parsed(&ran.out);
    assert_eq!(found["schema"], "latscope/1");
    assert!(ran.err.contains("measuring cpu"));

    let quiet = run(&["cpu", "cycle", "--count", "2", "--quiet"]);
    assert_eq!(
        (quiet.code, quiet.out.as_str(), only_distortions(&quiet.err)),
        (Some(0), "", true),
        "{}",
        quiet.err
    );
    let place = Place::new();
    let (result, table) = (place.at("result.json"), place.at("table.csv"));
    let quiet = run(&["cpu", "cycle", "--count", "2", "-q", "--json", &result, "--csv", &table]);
    assert_eq!(
        (quiet.code, quiet.out.as_str(), only_distortions(&quiet.err)),
        (Some(0), "", true),
        "{}",
        quiet.err
    );
    assert_eq!(json(&result)["measurements"].as_array().unwrap().len(), 1);
    assert_eq!(fs::read_to_string(&table).unwrap().lines().count(), 2);
    assert_eq!(names(place.path()), ["result.json", "table.csv"]);
}

/// Returns true if stderr has no more than what distorts a figure: a busy machine may do that.
fn only_distortions(stderr: &str) -> bool {
    stderr.lines().all(|line| line.starts_with("latscope: degraded: cpu.cycle: "))
}

#[test]
fn a_quiet_run_says_what_distorts_its_figures() {
    let load = run(&["cpu", "cycle", "--count", "50", "--quiet", "--load", "true"]);
    assert_eq!((load.code, load.out.as_str()), (Some(0), ""));
    assert!(load.err.contains("latscope: the load ended before the measurement did"), "{}", load.err);
    let slice = run(&["wake", "--policy", "other", "--slice", "1ns", "--count", "2", "--quiet"]);
    assert!(
        slice.err.contains("latscope: degraded: wake.timer") && slice.err.contains("slice"),
        "{}",
        slice.err
    );
    let table = run(&["cpu", "cycle", "--count", "50", "--progress", "none", "--load", "true"]);
    assert!(table.out.contains("the load ended") && !table.err.contains("the load ended"), "{}", table.err);
}

#[test]
fn a_dry_run_measures_nothing_and_leaves_nothing() {
    let place = Place::new();
    let (scratch, result) = (place.directory("scratch"), place.at("result.json"));
    let mut command = latscope(["survey", "--full", "--dry-run", "--dir", &scratch, "--json", &result]);
    let mark = Mark::on(&mut command);
    let child = start(command.current_dir(place.path()));
    let ran = wait(child);
    assert!(mark.processes().is_empty());
    assert!(!ran.err.contains("measuring"));
    let plan = ran.done();
    for id in ["cpu.cycle", "memory.latency", "sync.core-to-core", "file.fsync", "wake.timer"] {
        assert!(plan.contains(id), "{id} is not in the plan:\n{plan}");
    }
    assert!(names(&scratch).is_empty());
    assert_eq!(names(place.path()), ["scratch"]);
}

#[test]
fn only_what_was_asked_for_is_measured() {
    let probes = |words: &[&str]| -> BTreeSet<String> {
        let out = end(latscope(words).args(["--count", "1", "--json", "-"])).done();
        let found = crate::support::parsed(&out);
        measurements(&found).iter().map(|m| m["probe"].as_str().unwrap().to_owned()).collect()
    };
    let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(probes(&["cpu", "cycle", "rdtsc"]), set(&["cpu.cycle", "cpu.rdtsc"]));
    assert_eq!(probes(&["mem", "tlb", "--size", "64KiB"]), set(&["memory.tlb"]));
    let survey = ["survey", "--quick", "--only", "wake,sync.mutex,syscall.yield"];
    assert_eq!(probes(&survey), set(&["sync.mutex", "syscall.yield", "wake.timer"]));
    assert_eq!(probes(&["--quick", "--only", "cpu.call"]), set(&["cpu.call"]));

    let place = Place::new();
    let result = place.at("result.json");
    // What is asked for twice is measured once.
    let (home, twice) = (place.directory("home"), place.at("home/."));
    run(&["file", "stat", "--dir", &home, "--dir", &twice, "--count", "1", "--json", &result]).done();
    assert_eq!(measurements(&json(&result)).len(), 1);
    let sizes = ["memory", "latency", "--size", "4KiB,64KiB,4096", "--order", "random", "--pages", "4KiB"];
    end(latscope(sizes).args(["--count", "2", "--json", &result])).done();
    let points: Vec<String> = measurements(&json(&result)).iter().map(|m| m["params"].to_string()).collect();
    assert_eq!(
        points,
        [
            r#"{"order":"random","pages":"4KiB","size":4096}"#,
            r#"{"order":"random","pages":"4KiB","size":65536}"#
        ]
    );
}

#[test]
fn time_lines_are_written_where_tracing_is_permitted() {
    let place = Place::new();
    let (line, result) = (place.at("timeline.json"), place.at("result.json"));
    let words = ["sync", "mutex", "--duration", "50ms", "--timeline", &line, "--json", &result];
    let ran = run(&words);
    if ran.code == Some(0) {
        assert!(json(&line)["traceEvents"].as_array().unwrap().len() > 3);
        let found = json(&result);
        let values = of_probe(&found, "sync.mutex")[0]["values"].as_object().unwrap().clone();
        assert!(values.keys().any(|name| name.starts_with("timeline-")), "{values:?}");
    } else {
        assert!(ran.refused().contains("no time line can be recorded"), "{ran:?}");
    }
}

#[test]
fn a_page_has_every_row_and_needs_nothing_else() {
    let survey = survey();
    let place = Place::new();
    let page = place.at("page.html");
    assert_eq!(run(&["show", &survey.path, "--quiet", "--html", &page]).done(), "");
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>\n") && text.ends_with("</html>\n"));
    assert!(text.len() < 500_000, "{}", text.len());
    // Families of single events have a row for each thread, named after it.
    let of_events = |m: &&Value| {
        let probe = m["probe"].as_str().unwrap();
        ["wake.", "noise.", "ipc.", "remote."].iter().any(|family| probe.starts_with(family))
    };
    for m in measurements(&survey.found).iter().filter(|m| m["row"] == true && !of_events(m)) {
        let title = m["title"].as_str().unwrap().replace('&', "&amp;").replace('\'', "&#39;");
        assert!(text.contains(&title), "{title}");
    }
    let mutex = latscope_probes::find_probe("sync.mutex").unwrap();
    assert!(text.contains(mutex.timed), "{}", mutex.timed);
}

#[test]
fn a_histogram_has_a_column_for_each_cpu() {
    let place = Place::new();
    let (result, file) = (place.at("r.json"), place.at("histogram.csv"));
    run(&[
        "wake", "--duration", "100ms", "--interval", "1ms", "-q", "--json", &result, "--csv-histogram", &file,
    ])
    .done();
    let text = fs::read_to_string(&file).unwrap();
    let found = json(&result);
    let points = measurements(&found);
    let heading: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert_eq!(heading.len(), 2 + points.len(), "{heading:?}");
    let sum = |column: usize| -> u64 {
        text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse::<u64>().unwrap()).sum()
    };
    for (column, m) in (2..).zip(points) {
        assert_eq!(sum(column), m["summary"]["count"].as_u64().unwrap(), "{}", heading[column]);
    }
}
