//! Small outputs of other programs, made by hand: each has one fault, or one property that is easily misread.

use latscope_core::plan::ParamValue;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{BEYOND, Measurement, Report};
use latscope_judge::imports::{IMPLAUSIBLE_TIME, read_report, read_run, warn_if_doubtful};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

fn text(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(text: &str) -> Report {
    read_report(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(text: &str) -> String {
    match read_report(text.as_bytes()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is read:\n{text}"),
    }
}

/// The text of a file with one text in the place of another.
fn replaced(name: &str, from: &str, to: &str) -> String {
    let text = text(name);
    assert!(text.contains(from), "{name}: {from}");
    text.replacen(from, to, 1)
}

/// Checks that each text is refused with these words.
fn are_refused(cases: &[(String, &str)]) {
    for (text, words) in cases {
        let error = refusal(text);
        assert!(error.contains(words), "{words}\n{error}\n{text}");
    }
}

fn titles(report: &Report) -> Vec<&str> {
    report.measurements.iter().map(|m| m.title.as_str()).collect()
}

fn mean_us(m: &Measurement) -> f64 {
    m.summary.mean.unwrap() / 1e3
}

#[test]
fn means_keep_their_digits_and_impossible_ones_are_refused() {
    assert_eq!(mean_us(&read(&text("mean-osnoise-cutoff.txt")).measurements[0]), 1.5);
    let osnoise = |mean: &str| replaced("mean-osnoise-cutoff.txt", "1.50", mean);
    let timerlat = |mean: &str| replaced("mean-timerlat-impossible.txt", "avg:          5", mean);
    let cyclictest = |mean: &str| replaced("mean-cyclictest-json.json", "41.75", mean);
    are_refused(&[
        (osnoise("1.60"), "its mean, 1.6, is impossible"),
        (osnoise("500"), "is impossible"),
        (text("mean-timerlat-impossible.txt"), "its mean, 5, is impossible for its 2,000 values"),
        (timerlat("avg: 72"), "is impossible"),
        (text("mean-cyclictest-json.json"), "its mean, 41.75, is impossible"),
        (cyclictest("3.70"), "is impossible"),
    ]);
    let cut_off = read(&osnoise("1"));
    assert_eq!(mean_us(&cut_off.measurements[0]), 1.5, "older releases cut it off, the bins have it");
    assert_eq!(mean_us(&read(&timerlat("avg: 37")).measurements[0]), 37.0);
    assert_eq!(mean_us(&read(&cyclictest("3.59")).measurements[0]), 3.59);
}

#[test]
fn a_run_without_noise_is_a_result() {
    for name in ["empty-osnoise-quiet.txt", "empty-osnoise-zeros.txt"] {
        let report = read(&text(name));
        let [m] = &report.measurements[..] else { panic!("{name}: {:?}", titles(&report)) };
        assert_eq!((m.summary.count, m.quality.level), (0, QualityLevel::Ok), "{name}");
        assert!(m.quality.reasons.iter().any(|reason| reason.id == "uneventful"), "{name}");
        assert_eq!(m.values["watched"].value, 120.0);
    }
    let table = |below: &str| text("empty-osnoise-quiet.txt").replace("count:\n", below);
    are_refused(&[
        (table("count: 4\n"), "line 6"),
        (table(""), "cut off"),
        (text("empty-osnoise-quiet.txt").replace("osnoise", "timerlat"), "no thread was woken"),
    ]);
}

#[test]
fn columns_without_samples_are_named() {
    let report = read(&text("empty-timerlat-cpu-lost.txt"));
    let counts: Vec<u64> = report.measurements.iter().map(|m| m.summary.count).collect();
    assert_eq!(counts, [8_000, 8_000, 0, 3_000, 0, 0], "{:?}", titles(&report));
    for m in report.measurements.iter().filter(|m| m.summary.count == 0) {
        assert_eq!(m.quality.level, QualityLevel::Unsupported);
        assert!(m.quality.reasons.iter().any(|reason| reason.id == "nothing-measured"), "{}", m.title);
    }
}

#[test]
fn threads_that_never_ran_are_rows_without_a_figure() {
    let text = text("commandline-own-option.json");
    let idle = r#","1": {"histogram": {}, "cycles": 0, "min": 1000000, "max": 0, "avg": 0.0, "cpu": 2}"#;
    let end = text.rfind("\n }\n}").unwrap();
    let two = format!("{}{idle}{}", &text[..end], &text[end..]);
    let two = two.replace("\"num_threads\": 1", "\"num_threads\": 2").replace("   0\n  ]", "   0, 0\n  ]");
    let two = two.replace("-t1 -a 1 ", "-t2 -a 1-2 ");
    let report = read(&two);
    let levels: Vec<QualityLevel> = report.measurements.iter().map(|m| m.quality.level).collect();
    assert_eq!(levels, [QualityLevel::Ok, QualityLevel::Unsupported]);
    assert!(report.measurements[1].joined_reasons().unwrap().contains("no sample was counted"));
}

#[test]
fn damaged_tables_of_rtla_are_refused_with_their_line() {
    let all = |from: &str, to: &str| replaced("accept-rtla-all-wrong.txt", from, to);
    let right = all("count:      950", "count: 900").replace("min:          4        10", "min: 4 11");
    let right = right.replace("max:         99        11", "max: 4 11");
    assert_eq!(read(&right).measurements.len(), 4);
    let plain = text("bom-rtla.txt");
    are_refused(&[
        (text("accept-rtla-all-wrong.txt"), "line 13"),
        (right.replace("max: 4 11", "max: 5 11"), "line 16"),
        (right.replace("min: 4 11", "min: 4 10"), "line 14"),
        (right.replace("avg:          4        11\nmax: 4 11", "avg: 4 12\nmax: 4 11"), "line 15"),
        (text("accept-rtla-all-cut.txt"), "line 13"),
        (right.replace("max: 4 11\n", ""), "section ALL is cut off"),
        (text("accept-rtla-trailing.txt"), "line 12"),
        (plain.clone() + "12 40 40\n", "line 12"),
        (plain.clone() + "something else\n", "line 12"),
        (plain.replace("IRQ-000   Thr-000", "IRQ-000   IRQ-000"), "IRQ-000 is there twice"),
        (plain.replace("min:          4        11", "over: 0 0"), "line 9"),
        (plain.replace("11            0       500", "11            0       5x0"), "line 6"),
    ]);
    let stopped =
        read(&(plain + "rtla timerlat hit stop tracing\n## CPU 0 hit stop tracing, analyzing it ##\n"));
    assert!(stopped.plan.notes.iter().any(|note| note.contains("threshold")), "{:?}", stopped.plan.notes);
}

#[test]
fn figures_of_hyperfine_that_contradict_each_other_are_refused() {
    let of = |from: &str, to: &str| replaced("bom-hyperfine.json", from, to);
    are_refused(&[
        (text("accept-hyperfine-contradicts.json"), "is damaged"),
        (of("\"mean\": 0.02", "\"mean\": 0.0207"), "its mean"),
        (of("\"median\": 0.02", "\"median\": 0.021"), "its median"),
        (of("\"min\": 0.019", "\"min\": 0.018"), "smallest"),
        (of("\"max\": 0.021", "\"max\": 0.022"), "largest"),
        (of("        0,\r\n", ""), "2 exit codes"),
    ]);
    let unknown = |name: &str| read(&text(name)).imported.unwrap().unknown.join(", ");
    assert!(unknown("unknown-hyperfine-no-exit-codes.json").contains("exit codes"));
    assert!(!unknown("bom-hyperfine.json").contains("exit codes"));
}

#[test]
fn the_same_name_twice_is_numbered() {
    let report = read(&text("twice-hyperfine.json"));
    let numbers: Vec<&ParamValue> = report.measurements.iter().map(|m| &m.params["number"]).collect();
    assert_eq!(numbers, [&0u64.into(), &1u64.into()]);
    assert_eq!(titles(&report), ["./run 0", "./run 1"]);
    let google = |second: &str| {
        format!(
            r#"{{"context": {{}}, "benchmarks": [
{{"name": "a", "run_name": "a", "run_type": "iteration", "family_index": 0, "repetition_index": 0, "iterations": 9, "real_time": 5.0, "time_unit": "ns"}},
{{"name": "a", "run_name": "a", "run_type": "iteration", {second}, "iterations": 9, "real_time": 9.0, "time_unit": "ns"}}]}}"#
        )
    };
    let two = read(&google("\"family_index\": 1, \"repetition_index\": 0"));
    assert_eq!(titles(&two), ["a 0", "a 1"]);
    assert_eq!(titles(&read(&google("\"family_index\": 0, \"repetition_index\": 1"))), ["a"]);
    let lost = google("\"family_index\": 0, \"repetitions\": 3, \"repetition_index\": 1");
    are_refused(&[(lost, "it has 2 of its 3 repetitions")]);
    are_refused(&[(google("\"family_index\": 0, \"repetition_index\": 0"), "repetition 0 is there twice")]);
}

#[test]
fn a_thread_or_a_cpu_twice_is_refused() {
    let twice = |name: &str, key: &str| {
        let text = text(name);
        let at = text.find(key).unwrap();
        format!("{}{key}: null, {}", &text[..at], &text[at..])
    };
    let cyclictest =
        replaced("commandline-own-option.json", "\"0\": {\n   \"histogram\"", "\"0\": {\n   \"histogram\"");
    let thread =
        cyclictest.split("\"thread\": {").nth(1).unwrap().trim_end().strip_suffix("}\n}").unwrap().trim();
    let doubled =
        cyclictest.replace(thread, &format!("{thread},\n{}", thread.replacen("\"0\"", "\"00\"", 1)));
    are_refused(&[
        (doubled, "0 is there twice"),
        (twice("commandline-own-option.json", "\"num_threads\""), "duplicate field"),
    ]);
}

#[test]
fn byte_order_marks_utf_16_and_carriage_returns_are_read() {
    for name in ["bom-hyperfine.json", "bom-rtla.txt", "lmbench-two-orders.txt"] {
        let plain = text(name).replace('\u{feff}', "");
        let expected = read(&plain).measurements;
        let marked = format!("\u{feff}{plain}");
        let wide = |text: &str, to: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to).collect::<Vec<u8>>();
        let forms = [
            marked.clone().into_bytes(),
            wide(&marked, u16::to_le_bytes),
            wide(&marked, u16::to_be_bytes),
            wide(&plain, u16::to_le_bytes),
            wide(&plain, u16::to_be_bytes),
            plain.replace('\n', "\r\n").into_bytes(),
            plain.replace('\n', "\r").into_bytes(),
        ];
        for (at, form) in forms.iter().enumerate() {
            let report = read_report(form).unwrap_or_else(|error| panic!("{name}, form {at}: {error}"));
            assert_eq!(report.measurements, expected, "{name}, form {at}");
            assert_eq!(read_run(form).unwrap().report.measurements.len(), expected.len());
        }
    }
    let ours = latscope_core::fixture::report().to_json();
    let marked: Vec<u8> = format!("\u{feff}{ours}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read_report(&marked).unwrap().measurements, read(&ours).measurements);
}

#[test]
fn what_stands_around_an_output_is_named_with_its_line() {
    are_refused(&[
        (text("around-fio-text-after.json"), "line 26"),
        (
            text("around-fio-two-intervals.json"),
            "second begins in line 23: choose a file for each (--status-interval",
        ),
        (replaced("around-fio-text-after.json", "\"N\": 1500", "\"N\": \"x\""), "line 15"),
    ]);
}

#[test]
fn late_wake_ups_say_how_many_are_missing_and_dates_before_the_kernel_are_doubted() {
    let mut report = read(&text("late-cyclictest-9-intervals.json"));
    let said = |report: &Report, id: &str| {
        report.warnings.iter().find(|warning| warning.id == id).map(|warning| warning.text.clone())
    };
    let missed = said(&report, "activations-missed").unwrap();
    assert!(missed.contains("at least 9"), "{missed}");
    warn_if_doubtful(&mut report, UNIX_EPOCH + Duration::from_secs(1_795_800_000));
    let time = said(&report, IMPLAUSIBLE_TIME).unwrap();
    assert!(time.contains("before its kernel was built"), "{time}");
    let mut later =
        read(&text("late-cyclictest-9-intervals.json").replace("Tue, 03 Mar 2026", "Fri, 03 Jul 2026"));
    warn_if_doubtful(&mut later, UNIX_EPOCH + Duration::from_secs(1_795_800_000));
    assert_eq!(said(&later, IMPLAUSIBLE_TIME), None);
    assert_eq!(said(&read(&text("commandline-own-option.json")), "activations-missed"), None);
}

#[test]
fn the_settings_of_cyclictest_are_known_also_with_options_of_latscope() {
    let policy = |text: &str| {
        let m = read(text).measurements.remove(0);
        (m.numeric_param("interval"), m.text_param("policy").map(str::to_owned), m.numeric_param("priority"))
    };
    let fifo = |priority| (Some(400_000), Some("fifo".to_owned()), Some(priority));
    assert_eq!(policy(&text("commandline-own-option.json")), fifo(85));
    let asked = |words: &str| replaced("commandline-own-option.json", "-t1 -a 1 -p 85", words);
    assert_eq!(policy(&asked("-t1 --policy=fifo")), fifo(2), "one more than there are threads");
    assert_eq!(policy(&asked("-p85 --compat 2.4 --strict-exit --timeline=x")), fifo(85));
}

#[test]
fn values_beyond_a_histogram_are_beyond_its_length() {
    let json =
        |from: &str, to: &str| replaced("mean-cyclictest-json.json", "41.75", "3.59").replace(from, to);
    are_refused(&[
        // A lost bin is not a value beyond 60 µs, the length of the histogram.
        (json("\"4\": 1090, ", ""), "beyond its histogram"),
        (json("\"return_code\": 0", "\"return_code\": \"x\""), "line 7"),
    ]);
    let ended = read(&json("\"return_code\": 0", "\"return_code\": 1"));
    assert!(ended.measurements.iter().all(|m| m.quality.level == QualityLevel::Degraded));
    let stopped = read(&json("-h 60", "-h 60 -b 10"));
    assert!(stopped.plan.notes.iter().any(|note| note.contains("threshold")), "{:?}", stopped.plan.notes);
    let beyond = read(&text("beyond-rtla-E20.txt"));
    assert_eq!(beyond.measurements[1].values[BEYOND].value, 5_998.0);
}

#[test]
fn lists_of_lmbench_are_told_apart_by_their_order() {
    let report = read(&text("lmbench-two-orders.txt"));
    let orders: Vec<&str> = report.measurements.iter().filter_map(|m| m.text_param("order")).collect();
    assert_eq!(orders, ["forward", "forward", "forward", "random", "random", "random"]);
    let heading = |to: &str| replaced("lmbench-two-orders.txt", "Simple syscall:", to);
    let whole = heading("\"size=0k ovr=0.5\n2 0.69\n\n\"read bandwidth\n0.000512 1034.9\n\nSimple syscall:");
    assert_eq!(read(&whole).measurements, report.measurements, "other lists are passed over");
    are_refused(&[(heading("\n2 0.69\nSimple syscall:"), "line 4")]);
    assert_eq!((report.machine.name.as_str(), report.machine.kernel.as_str()), ("host-q", "6.12.9"));
    let of = |from: &str, to: &str| replaced("lmbench-two-orders.txt", from, to);
    are_refused(&[
        (of("Random load latency", "Memory load latency"), "is there twice"),
        (of("Memory load latency\n\"stride=64\n", "Memory load latency\n"), "line 6"),
        (of("1.00000 9.000\n", "1.00000 9.000 1\n"), "line 9"),
    ]);
}

#[test]
fn a_benchmark_that_is_skipped_without_a_word_is_not_measured() {
    for message in ["", "\"skip_message\": \" \", "] {
        let report = read(&format!(
            r#"{{"context": {{}}, "benchmarks": [{{"name": "a", "run_type": "iteration", {message}"skipped": true}}]}}"#
        ));
        let m = &report.measurements[0];
        assert_eq!(m.quality.level, QualityLevel::Unsupported);
        assert!(m.joined_reasons().unwrap().contains("does not say why"), "{:?}", m.joined_reasons());
    }
}

#[test]
fn google_benchmark_before_1_5_is_read_without_aggregates() {
    let line = |name: &str| {
        format!(
            r#"{{"name": "{name}", "iterations": 9, "real_time": 5.0, "cpu_time": 4.0, "time_unit": "ns"}}"#
        )
    };
    let file = |names: &[&str]| {
        let lines: Vec<String> = names.iter().map(|name| line(name)).collect();
        format!(r#"{{"context": {{}}, "benchmarks": [{}]}}"#, lines.join(",\n"))
    };
    assert_eq!(titles(&read(&file(&["a", "b/8"]))), ["a", "b/8"]);
    are_refused(&[(file(&["a", "a", "a_mean", "a_median", "a_stddev"]), "before 1.5")]);
}
