//! Real outputs of other programs, read as results; and the same damaged in many ways. `imports/README.md` says how
//! they were made.

use latscope_core::plan::ParamValue;
use latscope_core::quality::QualityLevel;
use latscope_core::redact::Redactor;
use latscope_core::report::{Account, Measurement, Report, Sampling};
use latscope_judge::compare::{ComparisonOptions, compare_runs};
use latscope_judge::imports::{read_report, read_run};
use latscope_judge::merge::merge;
use latscope_judge::runs::{RunResult, point_id};
use proptest::prelude::*;
use std::path::PathBuf;

fn text(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/imports").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn report(name: &str) -> Report {
    read_report(&text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&text(name)).unwrap()
}

fn point(report: &Report, id: &str) -> Measurement {
    let mut all = report.measurements.iter();
    let found = all.find(|m| point_id(&m.probe, &m.params) == id);
    let known = || report.measurements.iter().map(|m| point_id(&m.probe, &m.params)).collect::<Vec<_>>();
    found.unwrap_or_else(|| panic!("{id} is none of {:?}", known())).clone()
}

/// Every file that is read.
const READ: &[&str] = &[
    "cyclictest.json",
    "cyclictest-nsecs.json",
    "cyclictest-h100.txt",
    "cyclictest-h20.txt",
    "cyclictest-not-quiet.txt",
    "jitterdebugger.json",
    "jitterdebugger-nsec.json",
    "fio.json",
    "fio-two-jobs.json",
    "rtla-timerlat.txt",
    "rtla-timerlat-b5.txt",
    "rtla-osnoise.txt",
    "google-benchmark.json",
    "google-benchmark-repetitions.json",
    "hyperfine.json",
    "hyperfine-failures.json",
    "lat_mem_rd.txt",
];

#[test]
fn every_file_of_the_folder_is_listed_or_refused() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/imports");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert_eq!(read_report(&text(&name)).is_ok(), READ.contains(&name.as_str()), "{name}");
    }
}

/// Texts that may stay in a parameter of an import: words of the format, not of its user.
const WORDS: &[&str] = &[
    "4k", "clat", "fifo", "irq", "lat", "monotonic", "nanosleep", "psync", "randread", "randrw", "read",
    "slat", "sync", "thread", "write",
];

#[test]
fn redacted_imports_keep_no_text_of_a_parameter() {
    for name in READ {
        let redacted = Redactor::default().redact_report(&report(name)).unwrap();
        let params = redacted.measurements.iter().flat_map(|m| &m.params);
        let mut texts = params.filter_map(|(param, value)| match value {
            ParamValue::Text(text) if text.parse::<u64>().is_err() => Some((param, text.as_str())),
            _ => None,
        });
        let stays = texts.find(|(_, text)| !text.starts_with("name-") && !WORDS.contains(text));
        assert_eq!(stays, None, "{name}");
    }
}

#[test]
fn a_result_of_another_program_is_written_and_read_as_one_of_ours() {
    for name in READ {
        let report = report(name);
        let written = report.to_json();
        assert_eq!(Report::from_json(written.as_bytes()).unwrap(), report, "{name}");
        assert_eq!(read_run(&text(name)).unwrap(), RunResult::from_report(report.clone()), "{name}");
        assert!(
            RunResult::from_report(report).is_same(&RunResult::from_json(written.as_bytes()).unwrap()),
            "{name}"
        );
        let value: serde_json::Value = serde_json::from_str(&written).unwrap();
        for fact in ["cpu_model", "memory", "load_average", "root", "clock", "online", "checks"] {
            assert!(value["machine"][fact].is_null(), "{name}: {fact} is {}", value["machine"][fact]);
        }
        for m in value["measurements"].as_array().unwrap() {
            assert!(m["summary"]["missed"].is_null() && m["summary"]["rejected"].is_null(), "{name}");
        }
        assert!(value["imported"]["unknown"].as_array().is_some_and(|all| !all.is_empty()), "{name}");
    }
}

/// The program of this test has the names of all formats in it, and texts may quote outputs.
#[test]
fn what_only_mentions_a_format_is_of_no_program() {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    for text in [&program[..], b"\n{ in the file \"context\", then \"benchmarks\" and \"fio version\" }\n"] {
        let error = read_report(text).unwrap_err().to_string();
        assert!(error.contains("not a latscope result"), "{error}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_what_to_do() {
    let cases = [
        ("cyclictest-without-histogram.json", "run cyclictest with -h 1000"),
        ("cyclictest-histofall.txt", "use --histogram"),
        ("cyclictest-status.txt", "run cyclictest with -h 1000"),
        ("cyclictest-nsecs.txt", "it may be ns (--nsecs) or µs"),
        ("oslat.json", "of rt-tests only cyclictest is read"),
        ("fio-without-bins.json", "run fio with --output-format=json+"),
        ("google-benchmark-aggregates.json", "without --benchmark_report_aggregates_only"),
    ];
    for (name, said) in cases {
        let error = read_report(&text(name)).unwrap_err().to_string();
        assert!(error.contains(said) && error.starts_with("it is of "), "{name}: {error}");
    }
}

/// A file with one text in the place of another.
fn replaced(name: &str, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(text(name)).unwrap();
    assert!(text.contains(from), "{name}: {from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn counts_and_dates_that_cannot_be_are_refused() {
    let cases = [
        (
            "cyclictest.json",
            "\"cycles\": 2000",
            "\"cycles\": 20000",
            "its mean, 40.46, is impossible for its 20,000 values",
        ),
        ("cyclictest.json", "\"max\": 33600", "\"max\": 89", "its largest value, 89, is below 100"),
        ("cyclictest.json", "\"num_threads\": 2", "\"num_threads\": 3", "it has 2 of its 3 threads"),
        ("cyclictest.json", "23 Nov 2026 00:05:43", "23 Nov 2026 25:05:43", "does not exist"),
        ("cyclictest.json", "23 Nov 2026 00:05:45", "31 Nov 2026 00:05:45", "does not exist"),
        ("google-benchmark.json", "2026-11-23T", "2026-13-23T", "does not exist"),
        ("hyperfine.json", "\"stddev\": 0.", "\"stddev\": 1.", "its stddev is not that of its times"),
    ];
    for (name, from, to, said) in cases {
        let error = read_report(&replaced(name, from, to)).unwrap_err().to_string();
        assert!(error.contains(said), "{name}, {to}: {error}");
    }
}

#[test]
fn a_date_that_is_hardly_right_is_a_warning() {
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_795_800_000);
    let warned = |year: &str| {
        let mut report = read_report(&replaced("google-benchmark.json", "2026", year)).unwrap();
        latscope_judge::imports::warn_if_doubtful(&mut report, now);
        report.warnings.iter().any(|one| one.id == latscope_judge::imports::IMPLAUSIBLE_TIME)
    };
    assert_eq!(["1970", "2026", "2099"].map(warned), [true, false, true]);
}

#[test]
fn a_result_that_states_what_cannot_be_is_read_with_a_warning() {
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_795_800_000);
    let warned = |change: fn(&mut Report)| {
        let mut report = latscope_core::fixture::report();
        change(&mut report);
        latscope_judge::imports::warn_if_doubtful(&mut report, now);
        report
            .warnings
            .iter()
            .map(|one| one.id.clone())
            .filter(|id| id.starts_with("implausible"))
            .collect::<Vec<_>>()
    };
    assert!(warned(|_| {}).is_empty());
    assert_eq!(warned(|report| report.started = "2025-13-45T00:00:00Z".to_owned()), ["implausible-time"]);
    assert_eq!(
        warned(|report| report.finished = Some("1999-01-01T00:00:00Z".to_owned())),
        ["implausible-time"]
    );
    assert_eq!(
        warned(|report| report.activity = Some(Account { others: 17.0, ..Account::default() })),
        ["implausible-share"]
    );
}

/// Puts outputs one after the other.
fn together(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|name| text(name)).collect()
}

#[test]
fn several_outputs_in_a_file_are_refused() {
    let cases = [
        (&["cyclictest-h100.txt", "lat_mem_rd.txt"][..], "the outputs of cyclictest -h and lat_mem_rd"),
        (&["cyclictest-h100.txt", "cyclictest-h20.txt"], "several histograms"),
        (&["rtla-timerlat.txt", "rtla-timerlat.txt"], "several tables"),
        (&["lat_mem_rd.txt", "lat_mem_rd.txt"], "there twice"),
        (&["fio.json", "fio.json"], "the second begins in line 450"),
        (&["fio.json", "hyperfine.json"], "and hyperfine"),
    ];
    for (names, said) in cases {
        let error = read_report(&together(names)).unwrap_err().to_string();
        assert!(error.contains(said), "{names:?}: {error}");
    }
}

#[test]
fn lines_of_a_shell_before_the_json_do_not_matter() {
    let noted =
        [b"note: both iodepth >= 1 and synchronous I/O engine are selected\n".to_vec(), text("fio.json")];
    assert_eq!(read_report(&noted.concat()).unwrap().measurements, report("fio.json").measurements);
}

#[test]
fn cyclictest_says_what_its_command_line_asked_for() {
    let report = report("cyclictest.json");
    let first = "wake.timer[clock=monotonic,cpu=0,interval=1000000,method=nanosleep,policy=fifo,priority=80,thread=0]";
    let m = point(&report, first);
    let file = json("cyclictest.json");
    let thread = &file["thread"]["0"];
    assert_eq!(m.summary.count, thread["cycles"].as_u64().unwrap());
    assert_eq!(m.summary.min.unwrap(), thread["min"].as_f64().unwrap() * 1e3);
    assert_eq!(m.summary.max.unwrap(), thread["max"].as_f64().unwrap() * 1e3);
    let mean = thread["avg"].as_f64().unwrap() * 1e3;
    assert!((m.summary.mean.unwrap() - mean).abs() < 10.0);
    assert_eq!(m.histogram.resolution(13_000.0), 1_000.0);
    assert_eq!((&*report.machine.name, &*report.machine.architecture), ("vm", "x86_64"));
    assert_eq!(report.started, "2026-11-23T00:05:43Z");
    assert_eq!(report.imported.unwrap().name(), "cyclictest 2.40");
    let fine = self::report("cyclictest-nsecs.json");
    assert!(fine.measurements[0].summary.p50.unwrap() < 200_000.0);
}

#[test]
fn latscope_as_cyclictest_is_no_other_program_and_its_missed_activations_are_known() {
    let mut file = json("cyclictest.json");
    let missed: Vec<u64> = (0..file["thread"].as_object().unwrap().len() as u64).map(|at| 7 * at).collect();
    file["latscope"] = serde_json::json!({ "version": "0.1.0", "missed": missed });
    let report = read_report(file.to_string().as_bytes()).unwrap();
    let imported = report.imported.as_ref().unwrap();
    assert_eq!(imported.name(), "latscope as cyclictest 0.1.0");
    assert!(!imported.unknown.iter().any(|fact| fact == "missed activations"), "{:?}", imported.unknown);
    let known =
        |report: &Report| report.measurements.iter().filter_map(Measurement::missed).collect::<Vec<_>>();
    assert_eq!(known(&report), missed);
    assert_eq!(known(&Report::from_json(report.to_json().as_bytes()).unwrap()), missed, "also as written");
    assert!(known(&self::report("cyclictest.json")).is_empty());
    assert!(self::report("cyclictest.json").imported.unwrap().unknown[0].contains("missed"));
    file["latscope"]["missed"] = serde_json::json!([]);
    assert!(read_report(file.to_string().as_bytes()).unwrap_err().to_string().contains("missed"));
}

#[test]
fn the_text_and_the_json_of_one_run_are_the_same_figures() {
    let (text, json) = (report("cyclictest-h100.txt"), report("cyclictest.json"));
    for (a, b) in text.measurements.iter().zip(&json.measurements) {
        let buckets = |m: &Measurement| m.histogram.buckets_ns().collect::<Vec<_>>();
        assert_eq!(buckets(a), buckets(b));
        assert_eq!((a.histogram.overflow(), a.summary.max), (b.histogram.overflow(), b.summary.max));
        assert_eq!(a.params.keys().collect::<Vec<_>>(), ["thread"]);
    }
}

#[test]
fn quantiles_among_values_that_were_only_counted_are_not_known() {
    let report = report("cyclictest-h20.txt");
    let [first, second] = &report.measurements[..] else { panic!("two threads") };
    // 137 of 2000 are beyond 20 µs in the first thread, 16 in the second.
    assert_eq!(
        (first.histogram.overflow(), first.summary.p90, first.summary.p95),
        (137, Some(17_000.0), None)
    );
    assert_eq!(
        (second.histogram.overflow(), second.summary.p99, second.summary.p99_9),
        (16, Some(19_000.0), None)
    );
    assert_eq!((first.summary.min, first.summary.max), (Some(6_000.0), Some(14_096_000.0)));
    assert_eq!(first.summary.mean, Some(26_000.0));
}

#[test]
fn jitterdebugger_counts_in_the_unit_that_it_names() {
    let micros = report("jitterdebugger.json");
    let m = point(&micros, "wake.timer[cpu=1]");
    assert_eq!((m.summary.count, m.summary.min, m.summary.max), (1994, Some(9_000.0), Some(906_000.0)));
    let nanos = report("jitterdebugger-nsec.json");
    let m = point(&nanos, "wake.timer[cpu=1]");
    assert_eq!((m.summary.count, m.summary.min, m.summary.max), (300, Some(20_738.0), Some(10_793_002.0)));
}

#[test]
fn fio_names_bins_by_their_middle_and_its_percentiles_are_ours() {
    let report = report("fio.json");
    let file = json("fio.json");
    for direction in ["read", "write"] {
        let id =
            format!("imported.fio[bs=4k,direction={direction},ioengine=psync,job=rr,latency=clat,rw=randrw]");
        let m = point(&report, &id);
        let theirs = &file["jobs"][0][direction]["clat_ns"];
        assert_eq!(m.summary.count, theirs["N"].as_u64().unwrap());
        assert_eq!(m.summary.max, theirs["max"].as_f64());
        assert!((m.summary.mean.unwrap() - theirs["mean"].as_f64().unwrap()).abs() < 1.0);
        for (name, ours) in [("50.000000", m.summary.p50), ("90.000000", m.summary.p90)] {
            let (theirs, ours) = (theirs["percentile"][name].as_f64().unwrap(), ours.unwrap());
            assert!((ours / theirs - 1.0).abs() < 0.01, "{direction} p{name}: {ours} {theirs}");
        }
        let p50 = m.summary.p50.unwrap();
        assert!(m.histogram.resolution(p50) >= p50 / 64.0);
    }
    assert!(report.measurements.iter().any(|m| m.params["direction"] == ParamValue::from("sync")));
    assert_eq!(report.imported.unwrap().version.as_deref(), Some("3.33"));
    // Two jobs of one name are two points.
    let two = self::report("fio-two-jobs.json");
    let numbers: Vec<&ParamValue> = two.measurements.iter().map(|m| &m.params["number"]).collect();
    assert_eq!(numbers, [&0u64.into(), &0u64.into(), &1u64.into(), &1u64.into()]);
}

#[test]
fn rtla_has_a_column_for_each_context_and_a_line_for_what_is_beyond() {
    let timerlat = report("rtla-timerlat.txt");
    for id in ["wake.timerlat[context=irq,cpu=0]", "wake.timerlat[context=thread,cpu=0]"] {
        let m = point(&timerlat, id);
        assert!(m.summary.count > 1000 && m.summary.p50.unwrap() > m.summary.min.unwrap(), "{id}");
    }
    let coarse = report("rtla-timerlat-b5.txt");
    assert!(coarse.measurements.iter().all(|m| m.histogram.resolution(1e4) == 5_000.0));
    let osnoise = report("rtla-osnoise.txt");
    assert!(osnoise.measurements.iter().all(|m| m.probe == "noise.osnoise" && m.summary.count > 0));
}

#[test]
fn repetitions_are_rounds_and_what_is_computed_from_them_is_left_out() {
    let report = report("google-benchmark-repetitions.json");
    let file = json("google-benchmark-repetitions.json");
    let lines = file["benchmarks"].as_array().unwrap();
    for name in ["BM_lock", "BM_copy/1024"] {
        let m = point(&report, &format!("imported.google-benchmark[benchmark={name}]"));
        assert!(
            m.rounds.len() == 3
                && m.summary.count == 3
                && matches!(m.sampling, Sampling::Batch { ops } if ops > 0)
        );
        let median = lines.iter().find(|line| line["name"] == format!("{name}_median")).unwrap();
        let unit = if median["time_unit"] == "us" { 1e3 } else { 1.0 };
        let theirs = median["real_time"].as_f64().unwrap() * unit;
        assert!((m.summary.p50.unwrap() - theirs).abs() < 1e-3, "{name}");
        assert_eq!(m.values["cpu-time"].unit, "ns");
    }
    let once = self::report("google-benchmark.json");
    let skipped = point(&once, "imported.google-benchmark[benchmark=BM_skip]");
    assert_eq!(
        (skipped.quality.level, skipped.joined_reasons().as_deref().unwrap().contains("no device")),
        (QualityLevel::Unsupported, true)
    );
    assert_eq!(once.measurements.len(), 5);
    assert_eq!((once.plan.rounds, &*once.started, &*once.machine.name), (1, "2026-11-23T00:43:36Z", "vm"));
    assert!(once.plan.notes.iter().any(|note| note.contains("debug build")));
}

#[test]
fn runs_of_a_command_are_rounds_of_one_event() {
    let report = report("hyperfine.json");
    let file = json("hyperfine.json");
    assert_eq!(report.measurements.len(), file["results"].as_array().unwrap().len());
    for (m, theirs) in report.measurements.iter().zip(file["results"].as_array().unwrap()) {
        assert_eq!((m.rounds.len(), m.summary.count), (12, 12));
        assert!((m.summary.p50.unwrap() / 1e9 - theirs["median"].as_f64().unwrap()).abs() < 1e-9);
        assert!((m.summary.mean.unwrap() / 1e9 - theirs["mean"].as_f64().unwrap()).abs() < 1e-8);
        assert!(m.params.contains_key("parameter-n"));
    }
    let failed = self::report("hyperfine-failures.json").measurements.remove(0);
    assert_eq!(failed.quality.level, QualityLevel::Degraded);
    assert!(failed.joined_reasons().unwrap().contains("5 of 5 runs failed"));
}

#[test]
fn lat_mem_rd_has_one_figure_for_each_size_and_stride() {
    let report = report("lat_mem_rd.txt");
    let sizes: Vec<&ParamValue> = report.measurements.iter().map(|m| &m.params["size"]).take(5).collect();
    assert_eq!(sizes, [512u64, 1024, 2048, 3072, 4096].map(ParamValue::from).iter().collect::<Vec<_>>());
    let last = point(&report, "imported.lat-mem-rd[size=1048576,stride=64]");
    assert_eq!((last.summary.count, last.sampling), (1, Sampling::Batch { ops: 0 }));
    assert!(report.measurements.iter().any(|m| m.params["stride"] == 128u64.into()));
}

#[test]
fn only_what_is_not_known_is_taken_to_be_alike() {
    let run = |text: &[u8]| read_run(text).unwrap();
    let compared = |a: &RunResult, b: &RunResult| compare_runs(&[a], &[b], &ComparisonOptions::default());
    // The text says only which thread it was.
    let (json, plain) = (run(&text("cyclictest.json")), run(&text("cyclictest-h20.txt")));
    let found = compared(&json, &plain);
    assert_eq!((found.points.len(), found.only_a.len(), found.only_b.len()), (2, 0, 0));
    let assumed = "B does not say clock, cpu, interval, method, policy, priority of 2 points";
    assert!(found.remarks.iter().any(|remark| remark.starts_with(assumed)), "{:?}", found.remarks);
    // Another priority is known to be another.
    let other = String::from_utf8(text("cyclictest.json")).unwrap().replace("-p80", "-p81");
    assert!(compared(&json, &run(other.as_bytes())).points.is_empty());
    // An option of fio that is not given is the usual one.
    let direct =
        String::from_utf8(text("fio.json")).unwrap().replace("\"rw\" :", "\"direct\" : \"1\", \"rw\" :");
    let (buffered, direct) = (run(&text("fio.json")), run(direct.as_bytes()));
    assert!(direct.report.measurements[0].params.contains_key("direct"));
    let found = compared(&buffered, &direct);
    assert_eq!((found.points.len(), found.only_a.len(), found.only_b.len()), (0, 3, 3));
}

#[test]
fn tails_beyond_the_last_bin_of_a_side_are_not_compared() {
    let run = |name: &str| read_run(&text(name)).unwrap();
    let found = compare_runs(
        &[&run("cyclictest-h20.txt")],
        &[&run("cyclictest-h100.txt")],
        &ComparisonOptions::default(),
    );
    // In the first thread the p99 of both is among values of which A says only how many they are.
    assert_eq!(found.points.len(), 2);
    let first = found.points.iter().find(|point| point.title.ends_with("thread 0")).unwrap();
    assert!(first.tails.is_empty() && first.p99.is_none(), "{:?}", first.tails);
}

/// Whatever it is, it is read or refused: figures are finite, and counts are those of the histogram.
fn is_sound(text: &[u8]) {
    let Ok(report) = read_report(text) else { return };
    for m in &report.measurements {
        for figure in
            [m.summary.min, m.summary.p50, m.summary.p99, m.summary.max, m.summary.mean].into_iter().flatten()
        {
            assert!(figure.is_finite() && figure >= 0.0, "{figure}");
        }
        assert_eq!(m.summary.count, m.histogram.count());
    }
    assert_eq!(
        Report::from_json(report.to_json().as_bytes()).unwrap().measurements.len(),
        report.measurements.len()
    );
    drop(read_run(text));
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused_or_has_lost_nothing() {
    for name in READ {
        let text = text(name);
        let whole = report(name);
        for end in (0..text.len()).step_by(text.len() / 400 + 1) {
            is_sound(&text[..end]);
            // What is left out at the end may be a comment; a point may not, but for a whole list.
            if let Ok(part) = read_report(&text[..end]) {
                let whole = &whole.measurements;
                let lists = *name == "lat_mem_rd.txt" && whole.starts_with(&part.measurements);
                assert!(lists || part.measurements == *whole, "{name}, {end} of {} bytes", text.len());
            }
        }
    }
}

#[test]
fn numbers_and_nesting_beyond_all_bounds_end_nothing() {
    let deep = |name: &str| {
        let nested = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        String::from_utf8(text(name)).unwrap().replacen('{', &format!("{{\"deep\": {nested},"), 1)
    };
    for name in READ.iter().filter(|name| name.ends_with(".json")) {
        is_sound(deep(name).as_bytes());
        is_sound(format!("{{\"context\": {}", "{\"benchmarks\": ".repeat(10_000)).as_bytes());
    }
    let numbers = [
        "18446744073709551615",
        "1000000000000000000",
        "-1",
        "1e308",
        "NaN",
        "1e999",
        "0",
        "99999999999999999999999",
    ];
    for name in READ {
        let text = String::from_utf8(text(name)).unwrap();
        let places: Vec<(usize, &str)> = text.match_indices(|c: char| c.is_ascii_digit()).collect();
        for (at, _) in places.iter().step_by(places.len() / 60 + 1) {
            let rest = text[*at..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            for number in numbers {
                is_sound(format!("{}{number}{rest}", &text[..*at]).as_bytes());
            }
        }
    }
}

/// A file with some of its bytes changed, moved, doubled or cut off.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..6u8);
    (prop::sample::select(READ), prop::collection::vec(change, 1..8)).prop_map(|(name, changes)| {
        let mut text = text(name);
        for (at, byte, kind) in changes {
            if text.is_empty() {
                break;
            }
            let at = at.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => text[at] = b"0123456789{}[]\",:- \n"[usize::from(byte) % 20],
                2 => text.truncate(at),
                3 => drop(text.drain(at..(at + usize::from(byte)).min(text.len()))),
                4 => {
                    let part = text[at..(at + usize::from(byte)).min(text.len())].to_vec();
                    text.splice(at..at, part);
                }
                _ => drop(text.splice(at..at, b"999999999999999999".iter().copied())),
            }
        }
        text
    })
}

proptest! {
    #[test]
    fn what_is_damaged_is_refused_or_sound(text in damaged()) {
        is_sound(&text);
    }

    #[test]
    fn other_texts_are_refused(text in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read_report(&text).is_err());
    }
}

#[test]
fn what_one_part_does_not_say_is_unknown_in_a_merge() {
    let part = |change: fn(&mut serde_json::Value)| {
        let mut file = json("cyclictest.json");
        file["end_time"] = serde_json::Value::Null;
        change(&mut file);
        ("a file".to_owned(), read_report(file.to_string().as_bytes()).unwrap())
    };
    let first = part(|_| {});
    let second = part(|file| file["sysinfo"]["nodename"] = "".into());
    let third = part(|file| file["rt_test_version:"] = "9.9".into());
    let whole = merge(vec![first.clone(), second, third]).unwrap();
    let imported = whole.imported.as_ref().unwrap();
    assert_eq!((&*imported.program, imported.version.as_deref()), ("cyclictest", None));
    let lacks = |fact: &str| imported.unknown.iter().filter(|unknown| *unknown == fact).count();
    assert_eq!(["missed activations", "host"].map(lacks), [1, 1]);
    let mut ours = first.1.clone();
    (ours.imported, ours.run_id) = (None, "ours".to_owned());
    ours.measurements.iter_mut().for_each(|m| m.quality.retain(|reason| reason.id != "imported"));
    let mixed = merge(vec![first, ("ours".to_owned(), ours)]).unwrap();
    assert_eq!(mixed.imported, None);
    for whole in [whole, mixed] {
        assert!(whole.measurements.iter().all(|m| m.missed().is_none()));
        let written: serde_json::Value = serde_json::from_str(&whole.to_json()).unwrap();
        let summaries = written["measurements"].as_array().unwrap().iter().map(|m| &m["summary"]);
        assert!(summaries.clone().all(|s| s["missed"].is_null() && s["rejected"].is_null()));
        assert_eq!(Report::from_json(whole.to_json().as_bytes()).unwrap(), whole);
    }
}
