//! Small outputs whose numbers contradict one another, or that are true and easily taken for damaged.

use latscope_core::quality::QualityLevel;
use latscope_core::report::Report;
use latscope_judge::imports::read_report;
use serde_json::{Value, json};

fn read(text: &str) -> Report {
    read_report(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(text: &str) -> String {
    match read_report(text.as_bytes()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is read:\n{text}"),
    }
}

/// Checks that a text is read, and that each change of it is refused with these words.
fn are_refused(text: &str, changes: &[(&str, &str, &str)]) {
    read(text);
    for (from, to, words) in changes {
        assert!(text.contains(from), "{from}\n{text}");
        let error = refusal(&text.replacen(from, to, 1));
        assert!(error.contains(words), "{from} as {to}: {words}\n{error}");
    }
}

fn titles(report: &Report) -> Vec<&str> {
    report.measurements.iter().map(|m| m.title.as_str()).collect()
}

const CYCLICTEST: &str = "\
policy: fifo: loadavg: 0.12 0.08 0.02 1/310 4242

T: 0 ( 4243) P:80 I:1000 C:     10 Min:    400 Act:    3 Avg:  500 Max:     900
T: 0 ( 4243) P:80 I:1000 C:   1000 Min:      2 Act:    3 Avg:    2 Max:     250
T: 1 ( 4244) P: 0 I:1500 C:    400 Min:      3 Act:    3 Avg:    3 Max:       4
# Histogram
000002 000500\t000000
000003 000498\t000400
000004 000000\t000100
# Total: 000000998 000000500
# Min Latencies: 00002 00003
# Avg Latencies: 00002 00003
# Max Latencies: 00250 00004
# Histogram Overflows: 00002 00000
# Histogram Overflow at cycle number:
# Thread 0: 00012 # 00001 others
# Thread 1:

# Thread Ids: 04243 04244
# Break thread: 4243
# Break value: 250
";

/// Newer releases have no totals, and no rows of zeros.
#[test]
fn rows_of_cyclictest_that_are_empty_may_lack() {
    let newer =
        CYCLICTEST.replace("# Total: 000000998 000000500\n", "").replace("000003 000498\t000400\n", "");
    let newer = newer.replace("C:   1000", "C:    502").replace("C:    400", "C:    100");
    let newer = newer.replace("Min:      3 Act:    3 Avg:    3", "Min:      4 Act:    4 Avg:    4");
    let newer = newer.replace("00002 00003\n# Avg", "00002 00004\n# Avg");
    let newer = newer.replace("# Avg Latencies: 00002 00003", "# Avg Latencies: 00002 00004");
    let newer = newer.replace("\u{20}10 Min:    400", "\u{20}10 Min:      2");
    let report = read(&newer);
    assert_eq!([0, 1].map(|at| report.measurements[at].summary.count), [502, 100]);
    let table = newer.replace("000004 000000\t000100", "000002 000000\t000100");
    assert!(refusal(&table).contains("is not the next row"));
}

#[test]
fn lines_around_the_histogram_of_cyclictest_are_of_the_same_run() {
    let last = "C:   1000 Min:      2 Act:    3 Avg:    2 Max:     250";
    are_refused(
        CYCLICTEST,
        &[
            (last, "C:   1000 Min:      2 Act:    3 Avg:    2 Max:     777", "line 4: its Max, 777"),
            (last, "C:   1000 Min:      2 Act:    3 Avg:    2 Max:     249", "line 4: its Max, 249"),
            (last, "C:  99999 Min:      2 Act:    3 Avg:    2 Max:     250", "line 4: its count, 99,999"),
            (last, "C:    999 Min:      1 Act:    3 Avg:    2 Max:     250", "line 4: its Min, 1"),
            (last, "C:   1000 Min:      2 Act:    3 Avg:    3 Max:     250", "line 4: its Avg, 3"),
            (last, "C:    900 Min:      2 Act:    3 Avg:   90 Max:     250", "line 4: its Avg, 90"),
            ("T: 1 ", "T: 2 ", "line 5 is of a thread"),
            ("Avg:    3 Max:       4", "Avg: x Max: 4", "line 5, \"T: 1"),
            ("# Break value: 250", "# Break value: 900", "line 21: 900 ended the run"),
            ("00012 # 00001", "00012 # 00002", "line 16: it lists 1 cycles and 2 others"),
            ("00012 # 00001 others", "00012 00345 00500", "line 16: it lists 3 cycles"),
            ("00012", "99999", "line 16: its cycles do not ascend below 1,000"),
            ("00012 # 00001 others", "00345 00012", "line 16: its cycles do not ascend"),
            ("# Thread 1:", "# Thread 1: 00005", "line 17: it lists 1 cycles"),
            ("# Thread 1:", "# Thread 2:", "line 17: thread 2"),
            ("# Total: 000000998", "# Total: 000000997", "line 10: its rows do not add up"),
        ],
    );
    // An older line may have seen less, and a thread above 9 is one as well.
    let older = CYCLICTEST.replace(last, "C:    900 Min:      3 Act:    3 Avg:    2 Max:     180");
    assert_eq!(
        read(&older.replace("Min:      3 Act:    3 Avg:    2", "Min:      2 Act:    3 Avg:    2"))
            .measurements
            .len(),
        2
    );
    assert!(refusal(&CYCLICTEST.replace("T: 1 ", "T:11 ")).contains("line 5 is of a thread"));
}

#[test]
fn the_state_of_a_thread_says_its_interval_and_priority() {
    let report = read(CYCLICTEST);
    let [first, second] = &report.measurements[..] else { panic!("{:?}", titles(&report)) };
    assert_eq!(
        (first.numeric_param("interval"), first.numeric_param("priority")),
        (Some(1_000_000), Some(80))
    );
    assert_eq!((second.numeric_param("interval"), second.numeric_param("priority")), (Some(1_500_000), None));
    assert_eq!(second.text_param("slack"), Some("default"));
    let unknown = |report: &Report| report.imported.clone().unwrap().unknown.join(", ");
    assert!(!unknown(&report).contains("priority") && !unknown(&report).contains("interval"));
    let one = CYCLICTEST.replace("T: 1 ( 4244) P: 0 I:1500", "T: 1 ( 4244)");
    assert!(unknown(&read(&one)).contains("priority"));
}

#[test]
fn what_counted_nothing_has_no_largest_value() {
    let idle = CYCLICTEST.replace(
        "C:    400 Min:      3 Act:    3 Avg:    3 Max:       4",
        "C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0",
    );
    let idle = idle.replace("\t000400", "\t000000").replace("\t000100", "\t000000");
    let idle =
        idle.replace("000000500\n# Min Latencies: 00002 00003", "000000000\n# Min Latencies: 00002 1000000");
    let idle = idle.replace("# Avg Latencies: 00002 00003", "# Avg Latencies: 00002 00000");
    let idle = idle.replace("# Max Latencies: 00250 00004", "# Max Latencies: 00250 00000");
    let report = read(&idle);
    assert_eq!(report.measurements[1].quality.level, QualityLevel::Unsupported);
    let silent = idle.split_once("# Histogram\n").map(|(_, rest)| format!("# Histogram\n{rest}")).unwrap();
    // The program is named once.
    assert_eq!(
        report.measurements[1].joined_reasons().unwrap(),
        "no sample was counted; measured by cyclictest"
    );
    assert!(refusal(&idle.replace("Max:       0", "Max:       9")).contains("line 5: its Max, 9"));
    are_refused(
        &silent,
        &[
            ("# Max Latencies: 00250 00000", "# Max Latencies: 00250 00900", "it counted nothing"),
            ("# Avg Latencies: 00002 00000", "# Avg Latencies: 00002 00044", "it counted nothing"),
            ("# Min Latencies: 00002 1000000", "# Min Latencies: 00002 00005", "it counted nothing"),
        ],
    );
}

/// The JSON of cyclictest with two threads, the second of which was never woken.
fn cyclictest_json(options: &str, idle: [&str; 3]) -> String {
    let [min, max, avg] = idle;
    format!(
        "{{\"file_version\": 1,\n\"cmdline:\": \"cyclictest {options}\",\n\"rt_test_version:\": \"2.70\",
\"start_time\": \"Tue, 03 Nov 2026 08:00:00 +0100\",\n\"num_threads\": 2,\n\"resolution_in_ns\": 0,\n\"thread\": {{
\"0\": {{\"histogram\": {{\"3\": 900, \"4\": 100}}, \"cycles\": 1000, \"min\": 3, \"max\": 4, \"avg\": 3.10, \"cpu\": 2}},
\"1\": {{\"histogram\": {{}}, \"cycles\": 0, \"min\": {min}, \"max\": {max}, \"avg\": {avg}, \"cpu\": 3}}}}}}\n"
    )
}

const IDLE: [&str; 3] = ["1000000", "0", "-nan"];

#[test]
fn a_thread_that_was_never_woken_has_no_mean() {
    for avg in ["-nan", "nan", "0.00"] {
        let report = read(&cyclictest_json("-t2 -h 60", ["1000000", "0", avg]));
        let levels: Vec<QualityLevel> = report.measurements.iter().map(|m| m.quality.level).collect();
        assert_eq!(levels, [QualityLevel::Ok, QualityLevel::Unsupported], "{avg}");
    }
    are_refused(
        &cyclictest_json("-t2 -h 60", IDLE),
        &[("3.10", "-nan", "states no mean"), ("\"max\": 0", "\"max\": 900", "it counted nothing")],
    );
}

#[test]
fn threads_of_cyclictest_are_those_of_its_command_line() {
    let of = |options: &str| cyclictest_json(&format!("{options} -h 60 -q"), IDLE);
    for options in
        ["-t2 -a 2-3 -l 1000", "-t -a", "-S -l2000", "-t 2 -a 2,3", "-t2 -a !1", "--threads=2 --affinity=0-7"]
    {
        assert_eq!(read(&of(options)).measurements.len(), 2, "{options}");
    }
    for (options, words) in [
        ("-t4", "its command line asks for 4 (-t)"),
        ("-p 80", "its command line asks for 1 (-t)"),
        ("-t2 -l 100", "thread 0: it has 1,000 cycles, and -l allows 100"),
        ("-t2 -a 2", "thread 1: it is of CPU 3"),
    ] {
        let error = refusal(&of(options));
        assert!(error.contains(words), "{options}: {error}");
    }
    let gap = of("-t2").replace("\"1\": {\"histogram\": {}", "\"2\": {\"histogram\": {}");
    assert!(refusal(&gap).contains("it has a thread 2, and lacks one before it"));
    let day = |text: &str| read(text).warnings.iter().any(|warning| warning.id == "implausible-time");
    assert_eq!([of("-t2"), of("-t2").replace("Tue,", "Mon,")].map(|text| day(&text)), [false, true]);
}

#[test]
fn jitterdebugger_has_a_mean_of_what_it_counted() {
    let of = |count: u64, max: u64, avg: &str| {
        let bins = if count > 0 { format!("\"3\": {count}") } else { String::new() };
        format!(
            "{{\"version\": 3, \"sysinfo\": {{\"resolution_in_ns\": 1000, \"cpus_online\": 1}}, \"cpu\": {{\"0\":
{{\"histogram\": {{{bins}}}, \"count\": {count}, \"min\": 3, \"max\": {max}, \"avg\": {avg}}}}}}}"
        )
    };
    read(&of(9, 3, "3.0"));
    assert!(refusal(&of(9, 3, "nan")).contains("states no mean"));
    assert!(refusal(&of(0, 900, "nan")).contains("it counted nothing"));
}

const TIMERLAT: &str = "\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:05
Index   IRQ-000   Thr-000
4            500         0
11           100       600
over:          0         0
count:       600       600
min:           4        11
avg:           5        11
max:          11        11
ALL:        IRQ       Thr
count:      600       600
min:          4        11
avg:          5        11
max:         11        11
rtla timerlat hit stop tracing
## CPU 0 hit stop tracing, analyzing it ##
  IRQ latency:                             11.94 us
  Thread latency:                          11.28 us (100%)

Max timerlat IRQ latency from idle: 17.48 us in cpu 4
";

#[test]
fn sections_and_analyses_of_rtla_are_of_its_table() {
    are_refused(
        TIMERLAT,
        &[
            ("ALL:        IRQ       Thr", "ALL:        IRQ       IRQ", "line 12"),
            ("ALL:        IRQ       Thr", "ALL:        IRQ       Foo", "line 12"),
            ("ALL:        IRQ       Thr\ncount:      600       600", "ALL: IRQ\ncount: 600", "line 12"),
            ("count:       600       600", "count:       600       601", "line 13"),
        ],
    );
    let table = TIMERLAT.split("ALL:").next().unwrap();
    are_refused(
        table,
        &[(
            "count:       600       600",
            "count: 600 601",
            "lines 7 to 11, column Thr-000: its counts add up",
        )],
    );
    // The trace may have lost it, and the sample that ends it may come too late for the table.
    let beyond = |from: &str, to: &str| {
        let report = read(&TIMERLAT.replace(from, to));
        let reasons = report.measurements.into_iter().flat_map(|m| m.quality.reasons);
        let reasons = reasons.filter(|reason| reason.id == "contradictory");
        reasons.map(|reason| reason.text).collect::<Vec<_>>()
    };
    let (irq, thread) =
        ("IRQ latency:                             11.94", "Thread latency:                          11.28");
    for (from, to, us) in [(thread, "Thread latency: 512.28", "512.28"), (irq, "IRQ latency: 12.01", "12.01")]
    {
        let text = format!("a latency of {us} µs ended the run, and the histogram lacks it");
        assert_eq!(beyond(from, to), [text]);
    }
    assert!(beyond(irq, "IRQ latency: 12.00").is_empty(), "the analysis is rounded, the table cut off");
    let table = |rows: &str, count: &str, min: &str| {
        let head = TIMERLAT.split("4   ").next().unwrap();
        let figures = ["avg:", "max:"].map(|name| min.replace("min:", name)).join("\n");
        format!("{head}{rows}\nover: 0 0\n{count}\n{min}\n{figures}\n")
    };
    assert_eq!(read(&table("4 5 0\n6 0 5", "count: 5 5", "min: 4 6")).measurements.len(), 2);
    assert!(refusal(&table("4 5 0\n6 0 500", "count: 5 500", "min: 4 6")).contains("has 500 wake-ups"));
    let shorter = refusal(&table("4 0 600\n11 600 0", "count: 600 600", "min: 11 4"));
    assert!(shorter.contains("600 wake-ups of column Thr-000 are shorter"), "{shorter}");
    let nothing = table("4 600 0", "count: 600 0", "min: 4 5");
    assert!(refusal(&nothing).contains("it counted nothing"));
    // Before Linux 6.10 the least value of nothing is the largest number.
    let unset = "over: 0 0\ncount: 600 0\nmin: 4 18446744073709551615\navg: 4 -\nmax: 4 0\n";
    let head = TIMERLAT.split("4   ").next().unwrap();
    assert_eq!(read(&format!("{head}4 600 0\n{unset}")).measurements.len(), 2);
}

type DirectionChange = fn(&mut Value);

/// A direction of fio with 1,500 latencies of 10 µs.
fn direction() -> Value {
    let of = |mean: f64| json!({ "min": 10_048, "max": 10_048, "mean": mean, "N": 1500 });
    let mut clat = of(10_048.0);
    clat["bins"] = json!({ "10048": 1500 });
    clat["percentile"] = json!({ "50.000000": 10_048 });
    json!({ "iops": 1500.0, "runtime": 1000, "total_ios": 1500, "clat_ns": clat, "lat_ns": of(10_048.0) })
}

fn fio(version: &str, jobs: &[(&str, Value)]) -> String {
    let jobs: Vec<Value> = jobs
        .iter()
        .map(|(name, directions)| {
            let mut job = json!({ "jobname": name });
            job.as_object_mut().unwrap().extend(directions.as_object().unwrap().clone());
            job
        })
        .collect();
    json!({ "fio version": version, "jobs": jobs }).to_string()
}

#[test]
fn figures_of_a_direction_of_fio_are_of_the_same_operations() {
    let of = |change: fn(&mut Value)| {
        let mut direction = direction();
        change(&mut direction);
        fio("fio-3.37", &[("m", json!({ "read": direction }))])
    };
    assert_eq!(titles(&read(&of(|_| {}))), ["m: read, clat"]);
    let changes: [(DirectionChange, &str); 6] = [
        (|of| of["total_ios"] = json!(99), "is above 99 operations"),
        (|of| of["iops"] = json!(9.0), "its iops, 9"),
        (|of| of["lat_ns"]["mean"] = json!(99_999.0), "is not between 10048 and 10048"),
        (|of| of["clat_ns"]["percentile"]["50.000000"] = json!(99_999), "its percentile 50.000000"),
        (|of| of["clat_ns"]["bins"] = json!({ "10048": 1000, "10049": 500 }), "are names of one bin"),
        (
            |of| of["slat_ns"] = json!({ "min": 5, "max": 900, "mean": 44.0, "N": 0 }),
            "slat: it counted nothing",
        ),
    ];
    for (change, words) in changes {
        let error = refusal(&of(change));
        assert!(error.contains(words), "{words}: {error}");
    }
    // Some releases state these of sound runs.
    let doubtful: [(DirectionChange, &str); 2] = [
        (
            |of| of["lat_ns"] = json!({ "min": 1, "max": 2, "mean": 1.5, "N": 1500 }),
            "its lat is below its clat",
        ),
        (|of| of["lat_ns"]["N"] = json!(3), "its N of clat is 1500, and of lat 3"),
    ];
    for (change, words) in doubtful {
        let report = read(&of(change));
        let mut reasons = report.measurements[0].quality.reasons.iter();
        assert!(reasons.any(|reason| reason.id == "contradictory" && reason.text.contains(words)), "{words}");
    }
    // Operations that began before the measured time are counted at their end only.
    let ramped = |of: &mut Value| {
        of["total_ios"] = json!(1499);
        of["iops"] = json!(1499.0);
    };
    assert!(refusal(&of(ramped)).contains("is above 1499"));
    let ramped = of(ramped).replace("\"jobname\"", "\"job options\":{\"ramp_time\":\"1s\"},\"jobname\"");
    assert_eq!(read(&ramped).measurements.len(), 1);
    // Syncs of data are in another place until 3.43.
    let sync = json!({ "total_ios": 0, "lat_ns": direction()["clat_ns"] });
    let synced = json!({ "sync": sync, "job options": { "fdatasync": "1" } });
    let synced = fio("fio-3.37", &[("m", synced)]);
    assert_eq!(titles(&read(&synced)), ["m: sync, lat"]);
}

#[test]
fn no_job_and_no_direction_of_fio_vanishes() {
    let mut bare = direction();
    bare["clat_ns"].as_object_mut().unwrap().remove("bins");
    let both = fio(
        "fio-3.37",
        &[
            ("a", json!({ "read": direction(), "write": { "total_ios": 7 } })),
            ("b", json!({ "mixed": direction() })),
            ("c", json!({ "read": bare })),
            ("d", json!({ "error": 5 })),
        ],
    );
    let report = read(&both);
    assert_eq!(titles(&report), ["a: read, clat", "a: write, clat", "b: mixed, clat", "c: read, clat", "d"]);
    let counts: Vec<u64> = report.measurements.iter().map(|m| m.summary.count).collect();
    assert_eq!(counts, [1500, 0, 1500, 0, 0]);
    assert!(report.measurements[3].joined_reasons().unwrap().contains("1,500 operations, and no bins"));
    assert!(report.measurements[4].joined_reasons().unwrap().contains("ended with error 5"));
    let old = fio("fio-2.16", &[("m", json!({ "read": { "clat": { "min": 10, "N": 1500 } } }))]);
    assert!(refusal(&old).contains("version 2.16, whose latencies are in µs"));
    let client = json!({ "fio version": "fio-3.37", "client_stats": [] }).to_string();
    assert!(refusal(&client).contains("`fio --client`"));
}

#[test]
fn the_deviation_of_hyperfine_is_that_of_its_times() {
    let of = |times: &[f64], mean: f64, stddev: Value| {
        let (min, max) = (times[0], times[times.len() - 1]);
        json!({ "results": [{ "command": "a", "mean": mean, "stddev": stddev, "median": mean, "user": 0.0,
            "system": 0.0, "min": min, "max": max, "times": times }] })
        .to_string()
    };
    read(&of(&[0.1, 0.9], 0.5, json!(0.565_685_424_949_238)));
    read(&of(&[0.1], 0.1, Value::Null));
    for text in [
        of(&[0.1, 0.9], 0.5, json!(0.0)),
        of(&[0.1, 0.9], 0.5, json!(-5.0)),
        of(&[0.1, 0.11, 0.12], 0.11, json!(0.1)),
        of(&[0.1], 0.1, json!(0.4)),
    ] {
        assert!(refusal(&text).contains("its stddev is not that of its times"), "{text}");
    }
    let zero = read(&of(&[0.0, 0.0], 0.0, json!(0.0)));
    assert!(zero.plan.notes.iter().any(|note| note.contains("a run took 0 s")), "{:?}", zero.plan.notes);
    assert!(refusal("{\"results\": []}\n").contains("it has no command"));
}

/// Google Benchmark's JSON of three repetitions of 10, 11 and 12 ns, with a computed figure.
fn google(figure: &str, real: f64, cpu: f64) -> String {
    let line = |more: Value| {
        let mut line = json!({ "name": "a", "run_name": "a", "run_type": "iteration", "family_index": 0,
            "per_family_instance_index": 0, "repetitions": 3, "iterations": 1000, "time_unit": "ns" });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let mut lines: Vec<Value> = (0..3)
        .map(|at| line(json!({ "repetition_index": at, "real_time": 10.0 + f64::from(at), "cpu_time": 9.0 })))
        .collect();
    lines.push(line(
        json!({ "run_type": "aggregate", "name": "a_x", "aggregate_name": figure, "real_time": real,
        "cpu_time": cpu, "iterations": 3 }),
    ));
    json!({ "context": {}, "benchmarks": lines }).to_string()
}

#[test]
fn computed_figures_of_google_benchmark_are_of_its_repetitions() {
    for (figure, real, cpu, wrong) in [
        ("mean", 11.0, 9.0, [(12.0, 9.0), (11.0, 99.0)]),
        ("median", 11.0, 9.0, [(12.0, 9.0), (11.0, 99.0)]),
        ("stddev", 1.0, 0.0, [(500.0, 0.0), (1.0, 5.0)]),
        ("cv", 1.0 / 11.0, 0.0, [(7.5, 0.0), (1.0 / 11.0, 1.0)]),
        ("min", 10.0, 9.0, [(1.0, 9.0), (10.0, 8.0)]),
        ("max", 12.0, 9.0, [(99.0, 9.0), (12.0, 10.0)]),
    ] {
        read(&google(figure, real, cpu));
        for (real, cpu) in wrong {
            let error = refusal(&google(figure, real, cpu));
            assert!(error.contains("damaged"), "{figure}, {real}, {cpu}: {error}");
        }
    }
    let right = google("mean", 11.0, 9.0);
    let (begin, aggregate) = right.split_at(right.find("\"aggregate_name\"").unwrap());
    let aggregate = aggregate.replace("\"repetitions\":3", "\"repetitions\":9");
    assert!(refusal(&format!("{begin}{aggregate}")).contains("a_x: no benchmark has as many repetitions"));
    are_refused(
        &right,
        &[
            ("\"repetitions\":3", "\"repetitions\":2", "repetitions"),
            ("\"repetition_index\":1", "\"repetition_index\":7", "it has a repetition 7"),
            ("\"iterations\":1000", "\"iterations\":0", "a time of no iteration"),
        ],
    );
    let failed = json!({ "context": {}, "benchmarks": [
        { "name": "a", "run_type": "iteration", "repetitions": 3, "repetition_index": 0, "iterations": 9,
          "real_time": 5.0, "time_unit": "ns" },
        { "name": "a", "run_type": "iteration", "repetitions": 3, "repetition_index": 2, "error_occurred": true },
    ] });
    assert!(refusal(&failed.to_string()).contains("it has 2 of its 3 repetitions"));
}

/// A rate of no time is no number of JSON, and no reason to refuse the rest.
#[test]
fn what_is_no_number_to_google_benchmark_is_no_figure() {
    let right = google("mean", 11.0, 9.0);
    for none in ["NaN", "-NaN", "Infinity", "-Infinity", "nan", "inf"] {
        let odd = right.replacen("\"iterations\":", &format!("\"rate \\\"NaN\":{none},\"iterations\":"), 2);
        assert_eq!(read(&odd).measurements, read(&right).measurements, "{none}");
    }
    assert!(
        refusal(&right.replacen("\"real_time\":10.0", "\"real_time\":NaN", 1))
            .contains("it has no real_time")
    );
}

#[test]
fn computed_figures_belong_to_the_benchmark_at_their_place() {
    let of = |mean: f64| {
        let line = |family: u64, kind: &str, ns: f64| {
            json!({ "name": "a", "run_name": "a", "run_type": kind, "family_index": family,
                "per_family_instance_index": 0, "repetitions": 1, "iterations": 9, "real_time": ns,
                "time_unit": "ns", "aggregate_name": if kind == "aggregate" { "mean" } else { "" } })
        };
        json!({ "context": {}, "benchmarks": [line(0, "iteration", 10.0), line(1, "iteration", 20.0),
            line(0, "aggregate", mean)] })
        .to_string()
    };
    assert_eq!(titles(&read(&of(10.0))), ["a 0", "a 1"]);
    assert!(refusal(&of(999.0)).contains("its mean, 999"));
    let old = |names: &[&str]| {
        let lines: Vec<Value> = names
            .iter()
            .map(|name| json!({ "name": name, "iterations": 9, "real_time": 5.0, "time_unit": "ns" }))
            .collect();
        json!({ "context": {}, "benchmarks": lines }).to_string()
    };
    assert_eq!(titles(&read(&old(&["geometric_mean", "b"]))), ["geometric_mean", "b"]);
    for names in [&["a", "a_mean"][..], &["a_mean", "a_median", "a_stddev"]] {
        assert!(refusal(&old(names)).contains("before 1.5"), "{names:?}");
    }
}

const WHOLE: &str = "\
[lmbench3.0 results for Linux host-q 6.12.9 #1 SMP x86_64 GNU/Linux]
[Mon Nov  2 09:00:00 UTC 2026]
Simple syscall: 0.1500 microseconds

\"mappings
0.524288 10

Socket bandwidth using localhost
0.000001 1.53 MB/sec

\"libc bcopy unaligned
0.000512 9000.00

Memory bzero bandwidth
0.000512 9000.00
0.001024 9100.00

Memory read bandwidth
0.000512 9000.00

Memory partial read/write bandwidth
0.000512 9000.00

tlb: 64 pages

Memory load parallelism
0.004096 3.57

STREAM copy latency: 1.20 nanoseconds

Memory load latency
\"stride=16
0.00049 1.500
1.00000 2.000

\"stride=1024
0.00098 1.500
1.00000 9.000


Random load latency
\"stride=16
0.00049 1.500

[Mon Nov  2 10:00:00 UTC 2026]
";

#[test]
fn a_whole_result_of_lmbench_is_read_and_two_are_not() {
    let report = read(WHOLE);
    assert_eq!(report.measurements.len(), 5);
    assert!(report.plan.notes.iter().any(|note| note.contains("lines outside of the lists")));
    assert!(refusal(&format!("{WHOLE}\n{WHOLE}")).contains("several results, the second from line 47"));
    are_refused(
        WHOLE,
        &[
            ("\"stride=16\n", "", "line 32, \"0.00049 1.500\", is of a list without a heading"),
            ("Memory bzero bandwidth\n", "", "line 14, \"0.000512 9000.00\", is of a list without"),
            ("\"stride=16", "\"stride=0", "line 32, \"\\\"stride=0\", has no stride"),
            ("0.00098", "0.00049", "line 37: a size of 512 B cannot have loads 1 KiB apart"),
            ("0.00049 1.500", "0.00049 0.000", "line 33: 0 ns is no time of a load"),
        ],
    );
}

#[test]
fn the_list_of_a_call_without_a_stride_has_no_empty_line_at_its_end() {
    let list = "\"stride=64\n0.00049 1.500\n0.06250 4.200\n1.00000 9.000\n";
    let falls = list.replace("0.06250", "2.06250");
    assert!(
        refusal(&format!("{falls}\n"))
            .contains("line 4: load, 1 MiB, stride 64 B is less than the size above")
    );
    assert_eq!(read(list).measurements.len(), 3);
    for cut in [
        list.replace("1.00000 9.000\n", ""),
        list.replace("\"stride=64", "\"stride=256").replace("0.00049 1.500\n", ""),
        format!("\"stride=128\n0.00049 1.500\n\n{list}"),
        format!("{list}1.125"),
    ] {
        assert!(refusal(&cut).contains("it ends early, in line"), "{cut}");
    }
    let empty = read("\"stride=2097152\n\n\"stride=128\n0.00049 1.500\n\n");
    assert!(empty.plan.notes.iter().any(|note| note.starts_with("the list of stride 2097152 is empty")));
    assert!(refusal("\"stride=2097152\n\n").contains("its list of stride 2097152 has no size"));
}

#[test]
fn outputs_that_are_not_read_are_named_with_what_is() {
    for (text, words) in [
        ("     Timer Latency  \n  0 00:00:06   |  IRQ Timer Latency (us)\n", "use rtla timerlat hist"),
        ("     Operating System Noise\nduration:   0 00:01:40\n", "use rtla osnoise hist"),
        ("command,mean,stddev,median,user,system,min,max\na,1,1,1,1,1,1,1\n", "use --export-json"),
        ("name,iterations,real_time,cpu_time,time_unit\n\"a\",1,1,1,ns\n", "use --benchmark_format=json"),
        ("-----\nBenchmark           Time             CPU   Iterations\n", "use --benchmark_format=json"),
        ("oslat V 2.40\nTotal runtime: 10 seconds\n", "of oslat: of rt-tests only cyclictest"),
        ("Running in process mode with 10 groups\nTime: 0.123\n", "of hackbench"),
        ("# Running 'sched/pipe' benchmark:\n", "of perf bench"),
        ("Wakeup Latencies percentiles (usec) runtime 10 (s)\n", "of schbench"),
        ("stress-ng: info:  [123] dispatching hogs: 1 cyclic\n", "of stress-ng"),
        ("#0: ID4243, P80, CPU0, I1000; #1: ID4244\n", "of ptsematest"),
        ("", "it is empty"),
        (" \n\n", "it is empty"),
    ] {
        let error = refusal(text);
        assert!(error.contains(words), "{words}: {error}");
    }
}
