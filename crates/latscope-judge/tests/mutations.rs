//! Mutations of the outputs of other programs: nothing ends the reader, and what it accepts does not contradict itself.

use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report};
use latscope_judge::imports::read_report;
use latscope_judge::runs::point_id;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Every output of the tests of imports, by name.
fn outputs() -> Vec<(String, Vec<u8>)> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut found = Vec::new();
    for folder in ["imports", "cases"] {
        for entry in std::fs::read_dir(tests.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end != "md") {
                found.push((
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    found.sort();
    found
}

/// The numbers of the generator SplitMix64, which a seed determines.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Pieces that are put into texts: what separates parts of the formats, and numbers at their bounds.
const PIECES: [&str; 28] = [
    "0",
    "1",
    "9",
    "-1",
    "18446744073709551615",
    "9007199254740993",
    "1e308",
    "1e-308",
    "NaN",
    "null",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    "\r\n",
    "\u{feff}",
    "\0",
    "# ",
    "ALL:",
    "count:",
    "Index",
    "# Histogram\n",
    "\"stride=64\n",
    "\"fio version\":\"fio-3\"",
];

/// A text with one to four changes.
fn mutated(text: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(text.len());
        let end = (at + 1 + numbers.below(40)).min(text.len());
        match numbers.below(9) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..end)),
            2 => {
                let part = text[at..end].to_vec();
                text.splice(at..at, part);
            }
            3 => {
                let piece = PIECES[numbers.below(PIECES.len())].bytes();
                drop(text.splice(at..at, piece));
            }
            4 => replace_line(&mut text, numbers),
            5 if !other.is_empty() => {
                let from = numbers.below(other.len());
                let part = other[from..(from + numbers.below(200)).min(other.len())].to_vec();
                text.splice(at..at, part);
            }
            6 => change_case_or_bit(&mut text, at),
            // Most faults are in a number that is nearly right.
            _ => change_number(&mut text, at, numbers),
        }
        if text.is_empty() {
            return text;
        }
    }
    text
}

/// Removes, doubles or moves a line.
fn replace_line(text: &mut Vec<u8>, numbers: &mut Numbers) {
    let mut lines: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (from, to) = (numbers.below(lines.len()), numbers.below(lines.len()));
    match numbers.below(3) {
        0 => drop(lines.remove(from)),
        1 => {
            let line = lines[from].clone();
            lines.insert(from, line);
        }
        _ => lines.swap(from, to),
    }
    *text = lines.concat();
}

fn change_case_or_bit(text: &mut [u8], at: usize) {
    if let Some(byte) = text.get_mut(at) {
        *byte ^= if byte.is_ascii_alphabetic() { 0x20 } else { 0x80 };
    }
}

/// Changes the first number behind a place: by one, tenfold, or to another number.
fn change_number(text: &mut Vec<u8>, at: usize, numbers: &mut Numbers) {
    let Some(start) = text[at.min(text.len())..].iter().position(u8::is_ascii_digit).map(|from| at + from)
    else {
        return;
    };
    let length = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let old: u64 = std::str::from_utf8(&text[start..start + length]).unwrap().parse().unwrap_or(7);
    let new = match numbers.below(5) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old.wrapping_mul(10),
        3 => old / 10,
        _ => numbers.next() >> numbers.below(64),
    };
    drop(text.splice(start..start + length, new.to_string().into_bytes()));
}

/// Returns what contradicts itself in a point; `None` if nothing does.
fn contradiction(m: &Measurement) -> Option<String> {
    let (s, h) = (&m.summary, &m.histogram);
    let in_buckets = h.buckets_ns().map(|(.., n)| u128::from(n)).sum::<u128>();
    if u128::from(s.count) != in_buckets + u128::from(h.overflow()) || s.count != h.count() {
        return Some(format!("{} values, {in_buckets} in bins and {} beyond", s.count, h.overflow()));
    }
    if s.count == 0 {
        return s.mean.or(s.max).map(|figure| format!("{figure} of no value"));
    }
    // A value of a bin stands for its bin, and printed digits for those that were cut off.
    let slack = |ns: f64| h.resolution(ns) + 1e-6 * ns + h.tick_ps() as f64 / 1e3;
    let figures = [s.min, s.p50, s.p90, s.p99, s.p99_9, s.max];
    let known: Vec<f64> = figures.into_iter().flatten().collect();
    if known.iter().chain(&s.mean).any(|figure| !figure.is_finite() || *figure < 0.0) {
        return Some(format!("{figures:?}"));
    }
    if let Some(pair) = known.windows(2).find(|pair| pair[0] > pair[1] + slack(pair[1])) {
        return Some(format!("{pair:?} in {figures:?}"));
    }
    let (Some(min), Some(max), Some(mean)) = (s.min, s.max, s.mean) else {
        return Some("no smallest or largest value, or no mean".to_owned());
    };
    if mean < min - slack(min) || mean > max + slack(max) {
        return Some(format!("a mean of {mean} between {min} and {max}"));
    }
    let (mut least, mut most) = (0.0, 0.0);
    for (span, n) in h.spans() {
        least += span.low.clamp(0.0, max) * n as f64;
        most += span.high.min(max + slack(max)) * n as f64;
    }
    let (beyond, all) = (h.overflow() as f64, s.count as f64);
    least += beyond * h.last_bin().unwrap_or(0.0).min(max);
    most += beyond * max;
    let slack = slack(most / all);
    let is_possible = mean >= least / all - slack && mean <= most / all + slack;
    (!is_possible).then(|| format!("a mean of {mean}, and {} to {} by its bins", least / all, most / all))
}

/// Reads a text, and returns what is wrong with what was accepted. `None`: it was refused, or is right.
fn fault(text: &[u8]) -> Option<String> {
    let report = read_report(text).ok()?;
    let mut once = BTreeSet::new();
    if report.measurements.is_empty() {
        return Some("it has no point".to_owned());
    }
    for m in &report.measurements {
        let id = point_id(&m.probe, &m.params);
        let wrong = if m.quality.level == QualityLevel::Unsupported && m.summary.count == 0 {
            None
        } else {
            contradiction(m)
        };
        if let Some(wrong) = wrong {
            return Some(format!("{id}: {wrong}"));
        }
        if !once.insert(id.clone()) {
            return Some(format!("{id} is there twice"));
        }
    }
    match Report::from_json(report.to_json().as_bytes()) {
        Ok(written) if written.measurements == report.measurements => None,
        Ok(_) => Some("it is written with other points".to_owned()),
        Err(error) => Some(format!("what is written of it cannot be read: {error}")),
    }
}

/// Words in the names of the outputs of each importer.
const IMPORTERS: [&str; 8] = [
    "cyclictest", "jitterdebugger", "fio", "timerlat", "osnoise", "google-benchmark", "hyperfine",
    "lat_mem_rd",
];

/// The importer of an output, by its name.
fn importer(name: &str) -> &'static str {
    let is_of = |word: &&str| match *word {
        "timerlat" => name.contains("rtla") && !name.contains("osnoise") || name.contains("timerlat"),
        "lat_mem_rd" => name.contains("lat_mem_rd") || name.contains("lmbench"),
        word => name.contains(word),
    };
    IMPORTERS.into_iter().find(is_of).unwrap_or("cyclictest")
}

/// Reads mutations of the outputs of an importer for a time, and returns how many were read, and how many of them
/// accepted.
fn try_for(program: &str, time: Duration, seed: u64) -> (u64, u64) {
    let (outputs, mut numbers) = (outputs(), Numbers(seed));
    let end = Instant::now() + time;
    let (mut tried, mut accepted) = (0, 0);
    while tried == 0 || Instant::now() < end {
        for (name, text) in outputs.iter().filter(|(name, _)| importer(name) == program) {
            let other = &outputs[numbers.below(outputs.len())].1;
            let state = numbers.0;
            let changed = mutated(text, other, &mut numbers);
            let said = || format!("{name}, seed {state:#x}:\n{}", String::from_utf8_lossy(&changed));
            match std::panic::catch_unwind(|| fault(&changed)) {
                Ok(None) => {}
                Ok(Some(wrong)) => panic!("{wrong}\n{}", said()),
                Err(_) => panic!("it panicked\n{}", said()),
            }
            tried += 1;
            accepted += u64::from(read_report(&changed).is_ok());
        }
    }
    (tried, accepted)
}

#[test]
fn outputs_as_they_are_do_not_contradict_themselves() {
    for (name, text) in outputs() {
        assert_eq!(fault(&text), None, "{name}");
    }
}

#[test]
fn what_contradicts_itself_is_found_in_a_point() {
    let mut report = outputs().into_iter().find_map(|(_, text)| read_report(&text).ok()).unwrap();
    let m = &mut report.measurements[0];
    assert_eq!(contradiction(m), None);
    let mean = m.summary.mean;
    m.summary.mean = m.summary.max.map(|max| max * 2.0 + 1e6);
    assert!(contradiction(m).is_some());
    m.summary.mean = mean;
    m.summary.count += 1;
    assert!(contradiction(m).is_some());
}

/// How a stated number is changed.
#[derive(Clone, Copy, PartialEq)]
enum NumberChange {
    /// To ten times and seven more, if it is above 0: what failed has a time of 0, which is no figure.
    Up,
    /// To a tenth.
    Down,
    Both,
}

use NumberChange::{Both, Down, Up};

/// Numbers that an output states of others, by importer: what stands before them in their line, and the changes that
/// cannot be of the same figures. What a field may be without that is not here: an old status of a thread, or the
/// largest of latencies without bins.
const STATED: &[(&str, &str, NumberChange)] = &[
    ("cyclictest", "# Total:", Both),
    ("cyclictest", "# Min Latencies:", Both),
    ("cyclictest", "# Avg Latencies:", Both),
    ("cyclictest", "# Max Latencies:", Both),
    ("cyclictest", "# Histogram Overflows:", Both),
    ("cyclictest", "00212 # ", Both),
    ("cyclictest", "\"num_threads\":", Both),
    ("cyclictest", "\"resolution_in_ns\":", Both),
    ("cyclictest", "\"cycles\":", Both),
    ("cyclictest", "\"min\":", Both),
    ("cyclictest", "\"max\":", Both),
    ("cyclictest", "\"avg\":", Both),
    ("cyclictest", "\"cpu\":", Both),
    ("jitterdebugger", "\"count\":", Both),
    ("jitterdebugger", "\"min\":", Both),
    ("jitterdebugger", "\"max\":", Both),
    ("jitterdebugger", "\"avg\":", Both),
    ("fio", "\"N\" :", Down),
    ("fio", "\"min\" :", Both),
    ("fio", "\"max\" :", Down),
    ("fio", "\"mean\" :", Down),
    ("fio", "\"iops\" :", Both),
    ("fio", "\"total_ios\" :", Down),
    ("fio", "\"50.000000\" :", Both),
    ("fio", "\"99.000000\" :", Both),
    ("timerlat", "over:", Both),
    ("timerlat", "count:", Both),
    ("timerlat", "min:", Both),
    ("timerlat", "avg:", Both),
    ("timerlat", "max:", Both),
    ("timerlat", "# Duration:", Up),
    ("osnoise", "over:", Both),
    ("osnoise", "count:", Both),
    ("osnoise", "min:", Both),
    ("osnoise", "max:", Both),
    ("google-benchmark", "\"real_time\":", Up),
    ("google-benchmark", "\"cpu_time\":", Up),
    ("google-benchmark", "\"repetitions\":", Both),
    ("google-benchmark", "\"repetition_index\":", Up),
    ("hyperfine", "\"mean\":", Both),
    ("hyperfine", "\"stddev\":", Both),
    ("hyperfine", "\"median\":", Both),
    ("hyperfine", "\"min\":", Both),
    ("hyperfine", "\"max\":", Both),
    ("lat_mem_rd", "\"stride=", Both),
];

/// Places of the numbers behind each occurrence of a text: all in its line, or the one of a name in JSON.
fn places_behind(text: &str, before: &str) -> Vec<std::ops::Range<usize>> {
    let mut places = Vec::new();
    for (found, _) in text.match_indices(before) {
        let start = found + before.len();
        let end = text[start..].find('\n').map_or(text.len(), |end| start + end);
        let mut at = start;
        while let Some(first) = text[at..end].find(|c: char| c.is_ascii_digit()) {
            let length = text[at + first..end].find(|c: char| !c.is_ascii_digit());
            let last = length.map_or(end, |length| at + first + length);
            // The digits after a point do not make a difference of their own, nor the sign of an exponent.
            let is_rest = text[..at + first].ends_with(['.', '+', '-']);
            places.extend((!is_rest).then_some(at + first..last));
            at = if before.starts_with('"') { end } else { last };
        }
    }
    places
}

/// The texts with one of these numbers changed.
fn changed(text: &str, before: &str, change: NumberChange) -> Vec<String> {
    let mut all = Vec::new();
    for place in places_behind(text, before) {
        let Ok(old) = text[place.clone()].parse::<u64>() else { continue };
        let up =
            (change == Both || change == Up && old > 0).then(|| old.saturating_mul(10).saturating_add(7));
        let down = (change != Up).then_some(old / 10);
        for new in [up, down].into_iter().flatten().filter(|new| *new != old) {
            all.push(format!("{}{new}{}", &text[..place.start], &text[place.end..]));
        }
    }
    all
}

#[test]
fn a_stated_number_that_is_changed_is_refused_or_changes_a_figure() {
    for (program, before, change) in STATED {
        let mut tried = 0;
        for (name, text) in outputs().iter().filter(|(name, _)| importer(name) == *program) {
            let Ok(original) = read_report(text) else { continue };
            for other in changed(&String::from_utf8_lossy(text), before, *change) {
                let same = |report: Report| report.measurements == original.measurements;
                let is_missed = read_report(other.as_bytes()).is_ok_and(same);
                assert!(!is_missed, "{name}, {before}: it is read without a difference\n{other}");
                tried += 1;
            }
        }
        assert!(tried > 0, "{program} has no {before}");
    }
}

#[test]
fn mutations_are_refused_or_do_not_contradict_themselves() {
    for program in IMPORTERS {
        let (tried, accepted) = try_for(program, Duration::from_millis(400), 1);
        assert!(tried > 0 && accepted < tried, "{program}: {accepted} of {tried} are accepted");
    }
}

/// Seconds of the long test for each importer, which the environment can change.
const SECONDS: &str = "LATSCOPE_MUTATIONS_SECONDS";

#[test]
#[ignore = "takes 40 seconds, or for each importer those of LATSCOPE_MUTATIONS_SECONDS"]
fn many_mutations_are_refused_or_do_not_contradict_themselves() {
    let seconds = std::env::var(SECONDS).map_or(5, |seconds| seconds.parse().unwrap());
    let seed = std::process::id().into();
    for program in IMPORTERS {
        let (tried, accepted) = try_for(program, Duration::from_secs(seconds), seed);
        println!("{program}, seed {seed}: {accepted} of {tried} mutations were accepted");
    }
}
