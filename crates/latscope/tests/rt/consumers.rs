//! Parsers that users' scripts apply to the output, written after descriptions of these scripts.

use crate::{done, root};
use std::collections::BTreeMap;

/// Parser of LAVA. It takes the lines after the last escape that begin with `T:`, and splits words at blanks and
/// colons. The value is the word after its name.
fn lava(text: &str) -> Vec<BTreeMap<String, u64>> {
    let tail = &text[text.rfind('\x1b').expect("there is an escape")..];
    let threads = tail.lines().filter(|line| line.starts_with("T:"));
    let read = |line: &str| {
        let words: Vec<String> =
            line.split([' ', ':']).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        let value = |name: &str| {
            let at =
                words.iter().position(|word| word == name).unwrap_or_else(|| panic!("no {name}: {line}"));
            (name.to_owned(), words[at + 1].parse::<u64>().unwrap())
        };
        ["t", "min", "avg", "max"].map(value).into()
    };
    threads.map(read).collect()
}

/// Parser of OSADL for maxima. It takes the largest number in the line of maxima, without leading zeros.
fn osadl_max(text: &str) -> u64 {
    let line = text.lines().find(|line| line.contains("Max Latencies")).expect("a line of maxima");
    let mut words: Vec<&str> = line.split(' ').collect();
    words.sort_by_key(|word| word.parse::<u64>().unwrap_or(0));
    words.last().unwrap().trim_start_matches('0').parse().unwrap()
}

/// Parser of OSADL for histograms. It takes the lines that are neither comments nor empty, with blanks as TABs. The
/// first column is the latency, followed by a column for each thread.
fn osadl_column(text: &str, column: usize) -> Vec<(u64, u64)> {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| {
        let line = line.replace(' ', "\t");
        let cells: Vec<&str> = line.split('\t').collect();
        (cells[0].parse().unwrap(), cells[column].parse().unwrap())
    };
    rows.map(row).collect()
}

/// Parser of rteval. It knows some comments, and takes all other lines as a bucket and a count for each CPU.
#[derive(Default)]
struct Rteval {
    maxima: Vec<u64>,
    break_value: Option<u64>,
    samples: Vec<u64>,
}

fn rteval(text: &str) -> Rteval {
    let mut read = Rteval::default();
    let numbers =
        |text: &str| text.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<u64>>();
    for line in text.lines() {
        if let Some(maxima) = line.strip_prefix("# Max Latencies: ") {
            read.maxima = numbers(maxima);
        } else if let Some(value) = line.strip_prefix("# Break value: ") {
            read.break_value = Some(value.parse().unwrap());
        } else if !line.starts_with('#') && !line.trim().is_empty() {
            let row = numbers(line);
            read.samples.resize(row.len() - 1, 0);
            read.samples.iter_mut().zip(&row[1..]).for_each(|(sum, count)| *sum += count);
        }
    }
    read
}

/// Parser of SEAPATH. The TABs in line 7 give the number of cores, and the rows end at `# Total`.
fn seapath(text: &str) -> (usize, usize) {
    let cores = text.lines().nth(6).unwrap().matches('\t').count() + 1;
    let rows = text.lines().skip_while(|line| !line.starts_with("# Histogram")).skip(1);
    (cores, rows.take_while(|line| !line.starts_with("# Total")).count())
}

#[test]
fn lava_finds_the_final_figures_after_the_last_escape() {
    let threads = lava(&done("cyclictest", "-t2 -l 100 -m"));
    assert_eq!(threads.len(), 2);
    for (index, thread) in threads.iter().enumerate() {
        assert_eq!(thread["t"], index as u64);
        assert!(thread["min"] <= thread["avg"] && thread["avg"] <= thread["max"], "{thread:?}");
    }
}

#[test]
fn osadl_plots_the_histogram() {
    if !root("osadl_plots_the_histogram") {
        return;
    }
    let text = done("cyclictest", "-l100 -m -Sp90 -i200 -h400 -q");
    let rows = osadl_column(&text, 1);
    assert_eq!(rows.len(), 400);
    assert!(rows.iter().zip(0..).all(|((bucket, _), index)| *bucket == index));
    let within: Vec<u64> = rows.iter().filter(|(_, count)| *count > 0).map(|(bucket, _)| *bucket).collect();
    let max = osadl_max(&text);
    assert!(within.iter().all(|bucket| *bucket <= max), "{max} {within:?}");
    assert_eq!(
        done("cyclictest", "-l 1 -q -h 3").lines().filter(|line| line.starts_with("# Max")).count(),
        1
    );
}

#[test]
fn rteval_finds_samples_maxima_and_the_break() {
    let text = done("cyclictest", "-q -l 100 -h 3500 -i 1000 -t2 -b 900000");
    let read = rteval(&text);
    assert_eq!((read.maxima.len(), read.samples.len(), read.break_value), (2, 2, None));
    let overflows = text.lines().find_map(|line| line.strip_prefix("# Histogram Overflows: ")).unwrap();
    let overflows: Vec<u64> = overflows.split(' ').map(|word| word.parse().unwrap()).collect();
    let cycles: Vec<u64> =
        read.samples.iter().zip(overflows).map(|(within, beyond)| within + beyond).collect();
    assert!(cycles.contains(&100) && cycles.iter().all(|count| *count <= 100), "{cycles:?}");
    let broken = rteval(&done("cyclictest", "-q -l 1000 -h 5 -b 1"));
    assert_eq!(broken.break_value, broken.maxima.first().copied());
}

#[test]
fn seapath_counts_cores_and_rows() {
    let text = done("cyclictest", "-q -l 20 -h 30 -t2 --default-system");
    assert_eq!(seapath(&text), (2, 30));
}

#[test]
fn json_can_be_read_and_agrees_with_the_text() {
    let text = done("cyclictest", "-q -l 50 -t2 -H 100000 --json=- --default-system");
    let end = text.find("\n}\n").unwrap() + 3;
    let json: serde_json::Value = serde_json::from_str(&text[..end]).unwrap();
    assert_eq!((&json["num_threads"], &json["rt_test_version:"]), (&2.into(), &"2.40".into()));
    assert!(json["cmdline:"].as_str().unwrap().starts_with("cyclictest -q -l 50"));
    let maxima: Vec<u64> = ["0", "1"].map(|thread| json["thread"][thread]["max"].as_u64().unwrap()).into();
    assert_eq!(maxima.iter().max(), Some(&osadl_max(&text[end..])));
    for thread in ["0", "1"] {
        let one = &json["thread"][thread];
        let counts: u64 =
            one["histogram"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert!(counts <= one["cycles"].as_u64().unwrap(), "{one}");
    }
}

#[test]
fn crucible_takes_the_last_maximum() {
    let text = done("cyclictest", "-q -l 20 -H 30 -t2 --default-system");
    let line = text.lines().find(|line| line.starts_with("# Max Latencies:")).unwrap();
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers.len(), 3);
    assert_eq!(numbers[2], numbers[0].max(numbers[1]));
}
