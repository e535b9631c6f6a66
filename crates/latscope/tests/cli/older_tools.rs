//! Calls of older tools: what a script that reads their output gets, also on a busy machine.

use crate::support::{BINARY, Place, end, latscope, program, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command};

/// Load of two busy loops, which ends with the value.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start() -> BusyLoops {
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        BusyLoops(vec![spin(), spin()])
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn older_tools_are_played_by_argument_and_by_name() {
    let ran = run(&["as", "lat_syscall", "null"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
    let words: Vec<&str> = ran.err.split_whitespace().collect();
    let ["Simple", "syscall:", number, "microseconds"] = words[..] else { panic!("{ran:?}") };
    assert!(number.parse::<f64>().unwrap() > 0.0);

    let place = Place::new();
    let tool = place.at("lat_mem_rd");
    symlink(BINARY, &tool).unwrap();
    let ran = end(&mut program([&tool, "1", "64"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut lines = ran.err.lines();
    assert_eq!(lines.next(), Some("\"stride=64"), "{ran:?}");
    let curve: Vec<(f64, f64)> = lines
        .filter_map(|line| line.split_once(' '))
        .map(|(size, ns)| (size.parse().unwrap(), ns.parse().unwrap()))
        .collect();
    assert!(curve.len() > 20 && curve.iter().all(|(_, ns)| *ns > 0.0), "{ran:?}");
    assert!(curve.windows(2).all(|pair| pair[0].0 < pair[1].0), "{ran:?}");
    assert_eq!(curve.last().unwrap().0, 1.0);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

/// Returns true for a line of LMbench: `Label: 0.2135 microseconds`, two numbers, or the quoted head of a list.
fn is_of_lmbench(line: &str) -> bool {
    let is_number = |word: &str| word.parse::<f64>().is_ok_and(f64::is_finite);
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [] => line.is_empty(),
        _ if line.starts_with('"') => true,
        [first, second] => is_number(first) && is_number(second),
        [.., value, unit] => line.contains(':') && is_number(value) && !is_number(unit),
        _ => false,
    }
}

/// Each call has a note: `-W` has no effect. The load adds that others used the CPUs.
#[test]
fn notes_on_a_busy_machine_are_in_no_stream_with_figures() {
    let _load = BusyLoops::start();
    for words in [
        "lat_syscall -W 99999 null",
        "lat_sig -W 99999 install",
        "lat_pipe -W 99999",
        "lat_mem_rd -W 99999 1 64",
        "bw_mem -W 99999 1m rd",
        "lat_ctx -W 99999 -s 0 2",
        "lat_ops -W 99999",
    ] {
        let ran = end(&mut latscope(["as"].into_iter().chain(words.split(' '))));
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        assert!(!ran.err.is_empty() && ran.err.lines().all(is_of_lmbench), "{words}: {ran:?}");
        let name = words.split(' ').next().unwrap();
        let note = format!("latscope: {name}: note: ");
        assert!(ran.out.contains("-W 99999 has no effect"), "{words}: {ran:?}");
        assert!(ran.out.lines().all(|line| line.starts_with(&note)), "{words}: {ran:?}");
    }
}

#[test]
fn notes_go_where_the_environment_says() {
    let place = Place::new();
    let file = place.at("notes");
    let call = |notes: &str| {
        end(latscope(["as", "lat_syscall", "-W", "99999", "null"]).env("LATSCOPE_NOTES", notes))
    };
    let is_note = |line: &str| line.starts_with("latscope: lat_syscall: note: ");

    let ran = call("none");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(0), "", 1), "{ran:?}");
    let ran = call("stderr");
    assert!(ran.out.is_empty() && ran.err.lines().skip(1).all(is_note), "{ran:?}");
    assert!(ran.err.lines().count() > 1 && is_of_lmbench(ran.err.lines().next().unwrap()), "{ran:?}");
    let ran = call(&file);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(0), "", 1), "{ran:?}");
    let notes = fs::read_to_string(&file).unwrap();
    assert!(!notes.is_empty() && notes.lines().all(is_note), "{notes}");
    let refused = call(&place.at("missing/notes"));
    assert!(refused.code == Some(1) && refused.err.contains("LATSCOPE_NOTES"), "{refused:?}");
}

/// A line with each number as `9` and each space as one.
fn shape(line: &str) -> String {
    let numbers = |word: &str| {
        let mut shape = String::new();
        for c in word.chars() {
            match c {
                '0'..='9' if shape.ends_with('9') => {}
                '0'..='9' => shape.push('9'),
                '.' if shape.ends_with('9') => {}
                other => shape.push(other),
            }
        }
        shape
    };
    let words: Vec<String> = line.split_whitespace().map(numbers).collect();
    words.join(" ").replace("( ", "(").replace("P: ", "P:").replace("ID: ", "ID:")
}

/// Calls, and the shapes of the lines that the original prints for them, all in one stream.
const SHAPES: &[(&str, &[&str])] = &[
    (
        "cyclictest -q -l 200 -h 4",
        &[
            "# /dev/cpu_dma_latency set to 9us",
            "# Histogram",
            "9 9",
            "# Total: 9",
            "# Min Latencies: 9",
            "# Avg Latencies: 9",
            "# Max Latencies: 9",
            "# Histogram Overflows: 9",
            "# Histogram Overflow at cycle number:",
            "",
        ],
    ),
    (
        "cyclictest -q -l 200 -p 80 -m",
        &["# /dev/cpu_dma_latency set to 9us", "T: 9 (9) P:9 I:9 C: 9 Min: 9 Act: 9 Avg: 9 Max: 9"],
    ),
    (
        "hackbench -g 1 -l 50",
        &[
            "Running in process mode with 9 groups using 9 file descriptors each (== 9 tasks)",
            "Each sender will pass 9 messages of 9 bytes",
            "Time: 9",
        ],
    ),
    ("signaltest -q -l 100", &["T: 9 (9) P:9 C: 9 Min: 9 Act: 9 Avg: 9 Max: 9"]),
    (
        "ptsematest -q -l 100",
        &["#9: ID9, P9, CPU9, I9; #9: ID9, P9, CPU9, Cycles 9", "#9 -> #9, Min 9, Cur 9, Avg 9, Max 9"],
    ),
    (
        "svsematest -q -l 100",
        &["#9: ID9, P9, CPU9, I9; #9: ID9, P9, CPU9, Cycles 9", "#9 -> #9, Min 9, Cur 9, Avg 9, Max 9"],
    ),
    (
        "sigwaittest -q -l 100",
        &["#9: ID9, P9, CPU9, I9; #9: ID9, P9, CPU9, Cycles 9", "#9 -> #9, Min 9, Cur 9, Avg 9, Max 9"],
    ),
    (
        "pmqtest -q -l 100",
        &["#9: ID9, P9, CPU9, I9; #9: ID9, P9, CPU9, TO 9, Cycles 9", "#9 -> #9, Min 9, Cur 9, Avg 9, Max 9"],
    ),
    (
        "schbench -m 1 -t 1 -r 1",
        &[
            "Wakeup Latencies percentiles (usec) runtime 9 (s) (9 total samples)",
            "Request Latencies percentiles (usec) runtime 9 (s) (9 total samples)",
            "RPS percentiles (requests) runtime 9 (s) (9 total samples)",
            "9th: 9 (9 samples)",
            "* 9th: 9 (9 samples)",
            "min=9, max=9",
            "average rps: 9",
            "sched delay: message 9 (usec) worker 9 (usec)",
        ],
    ),
];

#[test]
fn figures_of_a_busy_machine_are_lines_of_the_original() {
    let _load = BusyLoops::start();
    for (words, shapes) in SHAPES {
        let ran = end(&mut latscope(["as"].into_iter().chain(words.split(' '))));
        let name = words.split(' ').next().unwrap();
        let [figures, notes] = if name == "schbench" { [&ran.err, &ran.out] } else { [&ran.out, &ran.err] };
        let is_known = |line: &str| {
            let shape = shape(line);
            shapes.contains(&shape.as_str()) || shape.starts_with("# Thread 9: 9")
        };
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        let odd: Vec<&str> = figures.lines().filter(|line| !is_known(line)).collect();
        assert!(!figures.is_empty() && odd.is_empty(), "{words}: {odd:?}: {ran:?}");
        let is_note = |line: &str| line.starts_with(&format!("latscope: {name}: note: "));
        assert!(notes.lines().all(is_note), "{words}: {ran:?}");
    }
}
