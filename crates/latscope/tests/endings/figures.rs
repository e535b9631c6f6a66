//! Checks that the figures of a run are the same wherever they appear.

use crate::Ending;
use crate::subjects::{Form, Subject};
use crate::support::{Place, Ran, json, measurements};
use latscope_core::units::{format_count, format_time};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;

type Checked = Result<(), String>;

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(wrong()) }
}

/// Checks latscope's own commands: stdout, JSON and CSV, the end, and the verdict.
pub fn ours(subject: &Subject, ran: &Ran, place: &Place, ending: Option<Ending>) -> Checked {
    let result = json(place.at("result.json"));
    let mut rows =
        csv(&fs::read_to_string(place.at("result.csv")).map_err(|error| error.to_string())?).into_iter();
    let mut measured = 0;
    for m in measurements(&result) {
        let row = rows.next().ok_or("a row is missing in the CSV")?;
        same(m, &row)?;
        let count = m["summary"]["count"].as_u64().unwrap_or(0);
        if count == 0 {
            continue;
        }
        measured += 1;
        ensure(m["summary"]["max"].as_f64() > Some(0.0), || format!("there is no maximum: {m:#}"))?;
        if subject.form == Form::Events && !sum_of_one(&result, m) {
            let wanted = [format_count(count), format_time(m["summary"]["max"].as_f64().unwrap())];
            let told = ran.out.lines().any(|line| wanted.iter().all(|figure| line.contains(figure.as_str())));
            ensure(told, || format!("no line has {wanted:?}"))?;
        }
    }
    ensure(rows.next().is_none(), || "there are more rows in the CSV".to_owned())?;
    ensure(measured > 0, || format!("nothing was measured: {result:#}"))?;
    end(&result, ran, ending)?;
    verdict(&result, ran)
}

/// Checks the statements of the result and of stdout about the end.
fn end(result: &Value, ran: &Ran, ending: Option<Ending>) -> Checked {
    let by = ending.and_then(Ending::name);
    ensure(result["finished"].is_null() == by.is_some(), || format!("finished is {}", result["finished"]))?;
    ensure(result["interrupted"]["by"].as_str() == by, || format!("interrupted: {}", result["interrupted"]))?;
    if let Some(by) = by {
        ensure(ran.out.contains(&format!("INCOMPLETE  interrupted by {by}")), || {
            "the end is not told".to_owned()
        })?;
        let points = &result["interrupted"]["points"];
        ensure(points["done"].as_u64() < points["of"].as_u64(), || format!("{}", result["interrupted"]))?;
    }
    let cut = measurements(result).iter().any(|m| m["incomplete"] == true);
    ensure(cut == ending.is_some(), || format!("incomplete: {cut}"))
}

/// Checks that a verdict that was asked for is shown, with the worst verdict in the heading.
fn verdict(result: &Value, ran: &Ran) -> Checked {
    let verdicts: Vec<&str> =
        measurements(result).iter().filter_map(|m| m["verdict"]["status"].as_str()).collect();
    let worst = ["exceeded", "inconclusive", "pass"].into_iter().find(|word| verdicts.contains(word));
    let told = ran.out.lines().find_map(|line| line.strip_prefix("Verdict: "));
    ensure(told == worst, || format!("{verdicts:?}, but {told:?} is shown"))
}

/// Returns true for a sum of a single point, which has no line of its own.
fn sum_of_one(result: &Value, all: &Value) -> bool {
    let parts = |axis: &str| {
        let of = |m: &&Value| m["probe"] == all["probe"] && m["params"][axis].is_number();
        all["params"][axis] == "all" && measurements(result).iter().filter(of).count() == 1
    };
    ["cpu", "pair"].into_iter().any(parts) || all["params"]["pair"] == "all"
}

fn same(m: &Value, row: &HashMap<String, String>) -> Checked {
    for (column, value) in [
        ("count", &m["summary"]["count"]),
        ("min_ns", &m["summary"]["min"]),
        ("max_ns", &m["summary"]["max"]),
        ("p50_ns", &m["summary"]["p50"]),
    ] {
        let text = row.get(column).ok_or_else(|| format!("the CSV has no column {column}"))?;
        ensure(text.parse::<f64>().ok() == value.as_f64(), || format!("{column} is {text}, and {value}"))?;
    }
    Ok(())
}

/// Rows of a CSV by their headings. No field of these has a line break.
fn csv(text: &str) -> Vec<HashMap<String, String>> {
    let mut lines = text.lines().map(fields);
    let heading = lines.next().unwrap_or_default();
    lines.map(|fields| heading.iter().cloned().zip(fields).collect()).collect()
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for char in line.chars() {
        match char {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            char => fields.last_mut().expect("there is a first").push(char),
        }
    }
    fields
}

/// Checks the programs of rt-tests: the last line of each thread, the JSON of the program, and latscope's result.
pub fn lines(subject: &Subject, ran: &Ran, place: &Place, ending: Option<Ending>) -> Checked {
    let file = json(place.at("lines.json"));
    let threads = file["thread"].as_object().ok_or_else(|| format!("{file:#}"))?;
    ensure(!threads.is_empty(), || format!("{file:#}"))?;
    for (number, thread) in threads {
        let of = if subject.name == "pmqtest" { &thread["receiver"] } else { thread };
        let [cycles, min, max] = ["cycles", "min", "max"].map(|key| of[key].as_u64());
        let cycles = cycles.or(thread["sender"]["samples"].as_u64());
        ensure(cycles > Some(0) && max > Some(0) && min <= max, || format!("{number}: {thread:#}"))?;
        let line = ran.out.lines().rev().find(|line| {
            let starts = if subject.name == "pmqtest" {
                line.starts_with("#1 -> #0, ")
            } else {
                line.starts_with(&format!("T:{number:>2} ("))
            };
            starts && line.contains("Max")
        });
        let line = line.ok_or_else(|| format!("no line of thread {number}"))?;
        ensure(after(line, "Min") == min && after(line, "Max") == max, || format!("{line}: {thread:#}"))?;
        if subject.has_worker {
            ensure(after(line, "C:") == cycles, || format!("{line}: {cycles:?}"))?;
        }
    }
    if !subject.has_worker {
        return Ok(());
    }
    let result = json(place.at("result.json"));
    for (number, m) in measurements(&result).iter().filter(|m| m["params"]["cpu"] != "all").enumerate() {
        let thread = &threads[&number.to_string()];
        let max = m["summary"]["max"].as_f64().map(|ns| (ns / 1000.0) as u64);
        ensure(m["summary"]["count"] == thread["cycles"] && max == thread["max"].as_u64(), || {
            format!("{m:#}")
        })?;
    }
    let by = ending.and_then(Ending::name);
    ensure(result["interrupted"]["by"].as_str() == by, || format!("interrupted: {}", result["interrupted"]))
}

/// Number after a word: `Max:     12`.
fn after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start_matches([':', ' ']);
    rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}
