//! Golden files: each view of the fixture as it was last looked at and found
//! good. `LATSCOPE_BLESS=1 cargo test -p latscope-core` writes them anew.

use super::{Options, Scale, csv, human, markdown, survey, table, text};
use crate::fixture;
use crate::report::Report;
use crate::units::{format_rate, format_size, format_time, three_digits};
use std::collections::HashSet;
use std::fs;
use std::path::Path;

fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LATSCOPE_BLESS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(golden == text, "{name} differs from its golden file; is now:\n{text}");
}

fn wide(width: usize) -> Options {
    Options { width, ..Options::default() }
}

#[test]
fn tables() {
    let report = fixture::report();
    for width in [80, 120, 200] {
        let text = table::table(&report, &[], &wide(width));
        check(&format!("table-{width}.txt"), &text);
    }
    let other = fixture::other();
    check("table-beside-120.txt", &table::table(&report, &[&other], &wide(120)));
}

#[test]
fn human_scale() {
    let options = Options { scale: Scale::Human, ..Options::default() };
    check("human-80.txt", &table::table(&fixture::report(), &[], &options));
}

#[test]
fn whole_survey() {
    check("survey-100.txt", &survey::survey(&fixture::report(), &[], &wide(100)));
}

#[test]
fn details() {
    check("details-100.txt", &text::all(&fixture::report(), &wide(100)));
}

#[test]
fn files() {
    let report = fixture::report();
    check("survey.md", &markdown::markdown(&report, &[&fixture::other()], &Options::default()));
    check("survey.csv", &String::from_utf8(csv::csv(&report)).unwrap());
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    let (report, other) = (fixture::report(), fixture::other());
    for width in [30, 44, 61, 79, 80, 99, 120, 149, 150, 201] {
        for scale in [Scale::Time, Scale::Human] {
            let options = Options { width, scale, ..Options::default() };
            for line in survey::survey(&report, &[&other], &options).lines() {
                let used = super::grid::Text::plain(line).width();
                assert!(used <= width, "{used} of {width}: {line}");
            }
        }
    }
}

/// Every way in which a number of the JSON, or one derived from a measurement
/// as the schema says, may be written on the screen.
fn writable(report: &Report) -> HashSet<String> {
    let mut all = HashSet::new();
    let mut add = |value: f64| {
        let texts = [
            format_time(value),
            super::cells::published(value),
            format_rate(value),
            three_digits(value),
            super::cells::cycles(value),
            value.to_string(),
            format!("{value:.0}"),
            format_size(value as u64),
            three_digits(value / 1e9),
        ];
        for text in texts {
            all.extend(numbers_in(&text).map(str::to_owned));
        }
    };
    fn numbers(value: &serde_json::Value, add: &mut dyn FnMut(f64)) {
        match value {
            serde_json::Value::Number(number) => add(number.as_f64().unwrap()),
            serde_json::Value::Array(all) => all.iter().for_each(|value| numbers(value, add)),
            serde_json::Value::Object(all) => all.values().for_each(|value| numbers(value, add)),
            _ => {}
        }
    }
    // Buckets of histograms are on no screen; with them any small number would
    // be in the JSON.
    let mut json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    for m in json["measurements"].as_array_mut().unwrap() {
        m.as_object_mut().unwrap().remove("histogram");
    }
    numbers(&json, &mut add);
    for m in &report.measurements {
        m.rate_touched().into_iter().chain(m.rate_moved()).for_each(&mut add);
        add(super::rows::rejected_share(m) * 100.0);
    }
    for level in crate::findings::level_rows(report) {
        let figures = [Some(level.ns), level.cycles, level.p10, level.p90];
        figures.into_iter().flatten().for_each(&mut add);
    }
    // A spread is in the unit of its row, so a tail may have more digits.
    for m in &report.measurements {
        let s = &m.summary;
        for tail in [s.p99, s.p95, s.p90, s.max, s.p10].into_iter().flatten() {
            all.extend([1.0, 1e3, 1e6, 1e9].map(|unit| three_digits(tail / unit)));
        }
    }
    all
}

/// The numbers in a text: digits and points between other characters.
fn numbers_in(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_ascii_digit() || c == '.';
    let parts = text.split(move |c| !inside(c)).map(|part| part.trim_matches('.'));
    parts.filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

/// The cells of a line that belong to this machine, its name cut off.
fn all_known(text: &str, known: &HashSet<String>, words: &str) {
    for number in numbers_in(text) {
        let said = known.contains(number) || numbers_in(words).any(|word| word == number);
        assert!(said, "{number} is not in the JSON; it is in\n{text}");
    }
}

#[test]
fn every_number_on_the_screen_is_in_the_json() {
    let report = fixture::report();
    let known = writable(&report);
    // What is quoted as it stands, and what the references bring along.
    let json = report.to_json();
    let mut words = json.clone() + " 60 16.7 52.3 p10 p90 p95 p99 p99.9 p99.99 L1 1 s 1 ns ";
    for row in super::rows::rows(&report, &[]) {
        words += &format!("{} ", row.label);
        words += &format!("{} {} ", human::human(row.ns / human::second(&report)), human::per_frame(row.ns));
        for cell in row.references.iter().flatten() {
            let ratio = super::cells::times_as_long(cell.ratio);
            words += &format!(
                "{} {ratio} {} ",
                super::cells::published(cell.ns),
                cell.note.as_deref().unwrap_or("")
            );
        }
    }
    for (short, full) in super::rows::reference_names(&report, &[]) {
        words += &format!("{short} {full} ");
    }
    let counted = super::unmeasured::missing(&report);
    words += &counted.iter().map(|group| group.what.as_str()).collect::<Vec<_>>().join(" ");
    for options in [wide(80), wide(120), wide(200), Options { scale: Scale::Human, ..wide(120) }] {
        all_known(&table::table(&report, &[], &options), &known, &words);
        let markdown = markdown::markdown(&report, &[], &options);
        all_known(&markdown.replace("&lt;", "").replace("&#64;", ""), &known, &words);
    }
    all_known(&text::all(&report, &wide(200)).split("\nFindings").next().unwrap(), &known, &words);
    all_known(&String::from_utf8(csv::csv(&report)).unwrap(), &known, &words);
}
