//! Pure functions, combined as in a run, compared with the golden files.

use crate::cases::{CASES, Case};
use crate::goldens::golden;
use crate::mask::masked;
use latscope_compat::rt::cyclictest::options::CyclictestOptions;
use latscope_compat::rt::cyclictest::page::{self, CyclictestOutcome, Spikes};
use latscope_compat::rt::cyclictest::samples::CyclictestSamples;
use latscope_compat::rt::cyclictest::status::{self, Fixed};
use latscope_compat::rt::cyclictest::{CYCLICTEST, json, setup};
use latscope_compat::rt::json::RtTestsJsonHeader;
use latscope_compat::rt::paced::PacedEndpointStatistics;
use latscope_compat::rt::pairs::text::{self, PacedEndpointPair};
use latscope_compat::rt::pairs::{self, options::PairsOptions};
use latscope_compat::rt::row::RtThreadRow;
use latscope_compat::{PersonalityContext, PersonalityProgram};
use latscope_core::machine::Machine;
use latscope_core::plan::Linear;
use latscope_core::report::{Exceedance, LinearRecord};
use std::ffi::OsString;
use std::time::{Duration, SystemTime};

fn machine() -> Machine {
    let cpus = || "0-1".parse().unwrap();
    Machine { online: cpus(), allowed: cpus(), ..Machine::default() }
}

/// Imaginary figures: every sample took 12.9 µs, or 17 µs.
fn row(thread: u32, cycles: u64) -> RtThreadRow {
    RtThreadRow { thread, cycles, min: Some(12_900), last: 17_000, mean: 13_000.0, max: 17_000 }
}

fn record(linear: Linear, cycles: u64) -> LinearRecord {
    let values = (0..cycles).map(|turn| if turn % 5 == 0 { 17_000 } else { 12_900 } / linear.tick_ns);
    let mut record =
        LinearRecord { buckets: linear.buckets, tick_ns: linear.tick_ns, ..LinearRecord::default() };
    record.counts = vec![0; linear.buckets.min(1 << 20) as usize];
    for (turn, value) in (0..).zip(values) {
        match record.counts.get_mut(value as usize) {
            Some(count) => *count += 1,
            None => record.overflow_turns.push(turn),
        }
    }
    record.overflow = record.overflow_turns.len() as u64;
    record.overflow_turns.truncate(linear.buckets as usize);
    record
}

/// Text that a run prints on stdout, from imaginary figures.
fn transcript(words: &str) -> String {
    let arguments: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    let options = CYCLICTEST.read_call(&PersonalityContext::new(arguments.clone())).unwrap();
    let plan = setup::plan_run(&options, &machine(), None).unwrap();
    let step = &plan.steps[0];
    let fixed: Vec<Fixed> = step.points.iter().map(Fixed::of_point).collect();
    let broken = options.common.break_above == Some(1);
    let cycles = if broken { 1 } else { options.loops.unwrap() };
    let linear = step.periodic.as_ref().unwrap().linear;
    let rows: Vec<RtThreadRow> = (0..fixed.len() as u32).map(|thread| row(4000 + thread, cycles)).collect();
    let records = linear.map(|linear| vec![record(linear, cycles); fixed.len()]).unwrap_or_default();
    let mut samples = CyclictestSamples::new(&options, fixed.len());
    let stream: Vec<Exceedance> = (0..cycles)
        .map(|turn| Exceedance { turn, at: turn * 1_000_000 + 12_440_239_221_000, value: 12_900 })
        .collect();
    let lines = samples.process_samples(0, &stream, 0);
    let spikes = if options.spike.is_some() { samples.spikes(0) } else { Spikes::default() };
    let outcome =
        CyclictestOutcome { rows, records, spikes, broken: broken.then_some((0, 12_900)), smi: None };
    let [cpus, intervals] = page::preamble(&options, &fixed, 2, 2);
    let held = if options.leave_system {
        String::new()
    } else {
        format!("# /dev/cpu_dma_latency set to {}us\n", options.latency)
    };
    let frames = frames(&options, &fixed, &outcome.rows);
    let json = options.common.json.as_ref().map_or(String::new(), |_| {
        let head = RtTestsJsonHeader::for_finished_run(
            "cyclictest",
            &arguments,
            options.common.release.printed(),
            SystemTime::UNIX_EPOCH,
        );
        let missed = vec![0; fixed.len()];
        let threads = (&fixed[..], &outcome.rows[..], &missed[..]);
        head.format_file(&json::format_threads(
            (options.common.release, options.unit),
            &machine(),
            threads,
            &outcome.records,
        ))
    });
    cpus + &held + &intervals + &lines + &frames + &json + &page::format_end(&options, &fixed, &outcome)
}

fn frames(options: &CyclictestOptions, fixed: &[Fixed], rows: &[RtThreadRow]) -> String {
    if options.common.quiet || options.verbose {
        return String::new();
    }
    let frame = |rows: &[RtThreadRow]| {
        status::header(options, "0.50 0.60 0.70 1/100 4001")
            + &status::format_thread_lines(options.unit, fixed, rows, None)
    };
    let up = status::up(fixed.len());
    let end = if options.refresh_on_max { up.clone() + &status::down(fixed.len()) } else { String::new() };
    frame(&vec![RtThreadRow::default(); rows.len()]) + &up + &frame(rows) + &end
}

fn oslat(words: &str) -> String {
    use latscope_compat::rt::oslat::{OSLAT, text};
    let options = OSLAT.read_call(&PersonalityContext::new(words.split_whitespace())).unwrap();
    if options.version {
        return "oslat V 2.40\n".to_owned();
    }
    let core = |cpu| {
        let counts = vec![33_220_158, 38, 63, 5, 1, 1, 0, 3];
        text::Core { cpu, counts, min: 1, max: 70, mean: 0.0301, seconds: 1.0 }
    };
    let cores: Vec<text::Core> = vec![core(0)];
    let json = options.common.json.as_ref().map_or(String::new(), |_| {
        let head = RtTestsJsonHeader::for_finished_run("oslat", &[], "2.40", SystemTime::UNIX_EPOCH);
        head.format_file(&text::format_json(&options, 2597, &cores))
    });
    "oslat V 2.40\n".to_owned()
        + &text::format_preamble(&options, cores.len())
        + &text::format_results(&options, 2597, &cores)
        + &json
}

fn cyclicdeadline(words: &str) -> String {
    use latscope_compat::rt::cyclicdeadline::text::{self, Reservation};
    let reserved =
        [Reservation { runtime: 6000, deadline: 10_000 }, Reservation { runtime: 6300, deadline: 10_500 }];
    let (reserved, rows) = (&reserved[..], &[row(4000, 100), row(4001, 95)][..]);
    let lines = text::format_status(reserved, rows);
    let frames = if words.contains("-q") { lines } else { format!("{lines}\x1b[2A{lines}\x1b[2A\x1b[4B") };
    let broken = words.contains("-b").then_some((0, 17_000));
    let json = if words.contains("--json") {
        RtTestsJsonHeader::for_finished_run("cyclicdeadline", &[], "2.40", SystemTime::UNIX_EPOCH)
            .format_file(&text::format_json(rows))
    } else {
        String::new()
    };
    text::format_preamble(true, reserved)
        + &text::introduction(3999, reserved, rows)
        + &frames
        + &text::format_break(rows, broken)
        + &json
}

fn pairs(program: &PersonalityProgram<PairsOptions>, name: &str, words: &str) -> String {
    let arguments: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    let options = program.read_call(&PersonalityContext::new(arguments.clone())).unwrap();
    let rules = pairs::rules(&options, &machine()).unwrap();
    let broken = options.common.break_above == Some(1);
    let cycles = if broken { 1 } else { options.loops.unwrap() };
    let one = |thread: u32| PacedEndpointStatistics {
        thread,
        cpu: Some(0),
        cycles,
        samples: cycles,
        last: 17_000,
        min: 12_900,
        max: 17_000,
        mean: 13_000.0,
        ..PacedEndpointStatistics::default()
    };
    let (timeouts, endpoints) = (name == "pmqtest", rules.len());
    let all: Vec<PacedEndpointStatistics> = (4000..4000 + endpoints as u32).map(one).collect();
    let pairs: Vec<PacedEndpointPair> = (0..endpoints / 2)
        .map(|n| PacedEndpointPair { rules: &rules[2 * n], receiver: all[2 * n], sender: all[2 * n + 1] })
        .collect();
    let circle = name == "signaltest";
    let lines =
        if circle { text::circle(options.priority, &all) } else { text::format_pairs(&pairs, timeouts) };
    let (up, down) = (text::up(endpoints), text::down(endpoints + 2));
    let load = "0.50 0.60 0.70 1/100 4001";
    let drawn = match (options.common.quiet, options.verbose, circle) {
        (_, true, _) => (0..cycles).map(|cycle| text::sample(cycle, 17_000)).collect::<String>() + &lines,
        (true, ..) => lines,
        (.., true) => {
            let frame = |figures| text::circle_frame(load, options.priority, figures);
            frame(PacedEndpointStatistics::default()) + &text::up(3) + &frame(all[0]) + &lines
        }
        (.., false) => format!("{lines}{up}{lines}{up}{down}"),
    };
    let json = if circle { text::circle_json(&all) } else { text::pairs_json(&pairs, timeouts) };
    let json = options.common.json.map(|_| {
        RtTestsJsonHeader::for_finished_run(name, &arguments, "2.40", SystemTime::UNIX_EPOCH)
            .format_file(&json)
    });
    let broken = if broken && circle { text::format_break(0) } else { String::new() };
    broken + &drawn + &json.unwrap_or_default()
}

fn hackbench(words: &str) -> String {
    use latscope_compat::rt::hackbench::{HACKBENCH, format_elapsed, format_preamble};
    let options = HACKBENCH.read_call(&PersonalityContext::new(words.split_whitespace())).unwrap();
    format_preamble(&options.message_groups) + &format_elapsed(Duration::from_millis(1040))
}

fn rendered(case: &Case) -> String {
    let program = match case.1 {
        "oslat" => return oslat(case.2),
        "cyclicdeadline" => return cyclicdeadline(case.2),
        "cyclictest" => return transcript(case.2),
        "hackbench" => return hackbench(case.2),
        "pmqtest" => &pairs::PMQTEST,
        "ptsematest" => &pairs::PTSEMATEST,
        "svsematest" => &pairs::SVSEMATEST,
        "sigwaittest" => &pairs::SIGWAITTEST,
        _ => &pairs::SIGNALTEST,
    };
    pairs(program, case.1, case.2)
}

#[test]
fn what_is_rendered_has_the_lines_of_the_golden_files() {
    for case in CASES {
        let text = masked(&rendered(case));
        assert!(text == golden(case), "{}: {text}\n--\n{}", case.2, golden(case));
    }
}

#[test]
fn the_text_of_2_10_omits_zeros_and_totals_and_nothing_else() {
    let old = transcript("-q -l 20 -H 40 -t2 -p 80");
    let new = transcript("-q -l 20 -H 40 -t2 -p 80 --compat=2.10");
    let zeros = |line: &&str| {
        line.get(7..).is_some_and(|counts| counts.replace(['0', '\t'], "").is_empty())
            && !line.starts_with('#')
    };
    let left: Vec<&str> = old.lines().filter(|line| !zeros(line) && !line.starts_with("# Total")).collect();
    let trimmed: Vec<&str> = new.lines().map(str::trim_end).collect();
    assert_eq!(left, trimmed);
    assert!(new.contains("# Thread 0: \n") && old.contains("# Thread 0:\n"));
}
