//! Golden files: each view of the fixture as it was when a person last checked it. `LATSCOPE_RECORD=1 cargo
//! test -p latscope-views` writes them anew.

use super::{DisplayOptions, Sort, csv, groups, markdown, overview, survey, table, text};
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{
    Certainty, Evidence, Finding, Interrupted, Measurement, ProgressAmount, Report, Summary,
};
use latscope_core::rounds::Prediction;
use latscope_core::units::{format_rate, format_size, format_time, three_digits};
use latscope_judge::verdict::{MetricCriterion, describe_plan, judge_report};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Compares a text with its golden file; `LATSCOPE_RECORD=1` writes the file anew. A change of a page or
/// picture is best seen in a browser.
pub(crate) fn check_golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        golden == text,
        "{name} differs from its golden file (LATSCOPE_RECORD=1 writes it anew); is now:\n{text}"
    );
}

/// Returns the fixture with findings of its own, so that these files do not depend on the texts of real
/// findings.
fn golden_report() -> Report {
    let mut report = fixture::report();
    report.findings = [
        "The L3 cache is declared as 105 MiB, but a random chase leaves it at 6.55 MiB: on this machine it is \
         partitioned, or other guests use it.",
        "Reading in sequence shows no cache steps: the prefetcher hides them.",
    ]
    .map(|text| Finding { text: text.to_owned(), ..Finding::default() })
    .to_vec();
    for m in report.measurements.iter_mut().filter(|m| m.row) {
        m.interval = m.typical().map(|ns| Prediction { low: 0.97 * ns, high: 1.04 * ns, level: 0.95 });
    }
    report
}

/// Returns the facts on the probes of this version.
pub(crate) fn catalogue() -> &'static ProbeCatalogue {
    static CATALOGUE: LazyLock<ProbeCatalogue> = LazyLock::new(latscope_probes::catalogue);
    &CATALOGUE
}

/// Returns options with the facts on the probes of this version.
pub(crate) fn wide(width: usize) -> DisplayOptions<'static> {
    DisplayOptions { width, catalogue: catalogue(), ..DisplayOptions::default() }
}

#[test]
fn tables() {
    let report = golden_report();
    for width in [80, 120, 200] {
        let text = table::format_table(&report, &[], &wide(width));
        check_golden(&format!("table-{width}.txt"), &text);
    }
    let other = fixture::other();
    check_golden("table-beside-120.txt", &table::format_table(&report, &[&other], &wide(120)));
}

#[test]
fn bandwidth_has_its_rate_at_every_width() {
    let mut report = golden_report();
    for m in report.measurements.iter_mut().filter(|m| m.probe == "memory.bandwidth") {
        m.title = format!("{}, every fourth byte, by two threads", m.title);
    }
    for width in [80, 100, 120] {
        let text = table::format_table(&report, &[], &wide(width));
        let rates = text.lines().filter(|line| line.contains("GB/s")).count();
        assert!(rates >= report.of_probe("memory.bandwidth").filter(|m| m.row).count(), "{width}: {text}");
    }
}

#[test]
fn whole_survey() {
    check_golden("survey-100.txt", &survey::survey(&golden_report(), &[], &wide(100)));
    let options = DisplayOptions { sort: Sort::Family, ..wide(100) };
    check_golden("table-family-100.txt", &table::format_table(&golden_report(), &[], &options));
}

#[test]
fn first_screen() {
    let mut report = golden_report();
    report.findings[1].certainty = Certainty::Doubt;
    report.findings[1].doubt = Some("the rounds do not agree".to_owned());
    report.findings[1].id = "prefetch".to_owned();
    let rests_on = |m: &Measurement| Evidence {
        probe: m.probe.clone(),
        params: m.params.clone(),
        figure: "p50".to_owned(),
        value: m.summary.p50.unwrap(),
        interval: m.interval,
        rounds: 1,
    };
    report.findings[0].evidence =
        report.measurements.iter().filter(|m| m.row).take(3).map(rests_on).collect();
    let rest = ["All rows: latscope show a.json --table".to_owned()];
    assert!(overview::is_wanted(&report, catalogue()));
    for width in [80, 120] {
        check_golden(
            &format!("overview-{width}.txt"),
            &overview::overview(&report, &[], &rest, &wide(width)),
        );
    }
    let mutex = report.measurements.iter_mut().find(|m| m.probe == "sync.mutex").unwrap();
    mutex.lower(Reason::new(QualityLevel::Degraded, "emulated", "emulated", ""));
    for width in [40, 60, 79, 200] {
        let text = overview::overview(&report, &[], &rest, &wide(width));
        assert!(text.contains("ns !¹"), "a doubt stays with its figure:\n{text}");
        for line in text.lines() {
            assert!(super::styled::Text::plain(line).display_width() <= width, "{width}: {line}");
        }
    }
    report.measurements.truncate(12);
    assert!(!overview::is_wanted(&report, catalogue()), "few rows are a screen themselves");
}

#[test]
fn details() {
    check_golden("details-100.txt", &text::format_families(&golden_report(), &wide(100)));
}

#[test]
fn single_events() {
    let mut report = fixture::wake();
    let criteria = [("p99_9", 60_000.0), ("max", 50_000.0), ("p99_9999", 5e6), ("missed", 3.0)];
    let criteria = criteria.map(|(name, limit)| MetricCriterion::new(name, limit).unwrap());
    judge_report(&mut report, &criteria);
    for width in [80, 140] {
        check_golden(&format!("events-{width}.txt"), &groups::format_events(&report, &wide(width)));
    }
}

#[test]
fn files() {
    let report = golden_report();
    check_golden(
        "survey.md",
        &markdown::format_report(&report, &[&fixture::other()], true, &DisplayOptions::default()),
    );
    check_golden("survey.csv", &String::from_utf8(csv::report_csv(&report)).unwrap());
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    let (report, other) = (golden_report(), fixture::other());
    for width in [30, 44, 61, 79, 80, 99, 120, 149, 150, 201] {
        let options = DisplayOptions { width, ..DisplayOptions::default() };
        for line in survey::survey(&report, &[&other], &options).lines() {
            let used = super::styled::Text::plain(line).display_width();
            assert!(used <= width, "{used} of {width}: {line}");
        }
    }
}

/// Returns every form in which a number of the JSON, or of a measurement as the schema derives it, may be
/// written on the screen.
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
    fn visit_numbers(value: &serde_json::Value, add: &mut dyn FnMut(f64)) {
        match value {
            serde_json::Value::Number(number) => add(number.as_f64().unwrap()),
            serde_json::Value::Array(all) => all.iter().for_each(|value| visit_numbers(value, add)),
            serde_json::Value::Object(all) => all.values().for_each(|value| visit_numbers(value, add)),
            _ => {}
        }
    }
    // Buckets of histograms are on no screen; with them any small number would
    // be in the JSON.
    let mut json = serde_json::to_value(report).unwrap();
    for m in json["measurements"].as_array_mut().unwrap() {
        m.as_object_mut().unwrap().remove("histogram");
    }
    visit_numbers(&json, &mut add);
    for m in report.measurements.iter().filter(|m| m.interval.is_some()) {
        // It is in the unit of the row.
        let (ns, next) = (m.typical().unwrap(), m.interval.unwrap());
        let unit = [1e9, 1e6, 1e3].into_iter().find(|unit| ns >= 0.9995 * unit).unwrap_or(1.0);
        [next.low / unit, next.high / unit].into_iter().for_each(&mut add);
    }
    for m in &report.measurements {
        m.rate_touched().into_iter().chain(m.rate_moved(&report.machine)).for_each(&mut add);
        add(m.rejected_share() * 100.0);
    }
    for level in latscope_judge::findings::level_rows(report) {
        let figures = [Some(level.ns), level.cycles, level.p10, level.p90];
        figures.into_iter().flatten().for_each(&mut add);
    }
    all
}

/// The numbers in a text: digits and points between other characters.
fn numbers_in(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_ascii_digit() || c == '.';
    let parts = text.split(move |c| !inside(c)).map(|part| part.trim_matches('.'));
    parts.filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

/// A text without the commas within its numbers.
fn remove_grouping(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let (mut out, mut last) = (String::new(), ' ');
    while let Some(c) = rest.next() {
        let grouping = c == ',' && last.is_ascii_digit() && rest.peek().is_some_and(char::is_ascii_digit);
        out.extend((!grouping).then_some(c));
        last = c;
    }
    out
}

/// Checks that a view shows only known numbers.
fn all_known(text: &str, known: &HashSet<String>) {
    for number in numbers_in(text) {
        assert!(known.contains(number), "{number} is not in the JSON; it is in\n{text}");
    }
}

/// Returns options with room for the columns of every figure.
fn endless() -> DisplayOptions<'static> {
    wide(100_000)
}

/// Checks that Markdown has each family's figures, also those of single threads and of corrected distributions.
#[test]
fn every_number_on_the_screen_is_in_the_markdown() {
    let mut judged = fixture::wake();
    judge_report(&mut judged, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
    for report in [judged, fixture::ipc::latency(), fixture::ipc::throughput(), golden_report()] {
        let text = match groups::is_of_events(&report, catalogue()) {
            true => groups::format_events(&report, &endless()),
            false => text::format_families(&report, &endless()),
        };
        let markdown = markdown::format_report(&report, &[], true, &endless()).replace("&#64;", "@");
        let known: HashSet<&str> = numbers_in(&markdown).collect();
        // Axes of plots, and the headings of matrices, are no figures.
        let lines = text.lines().filter(|line| !line.contains(['┤', '┊', '└', '⠤', '┬']) && !is_axis(line));
        let matrix = |line: &str| line.trim_start().starts_with("size ");
        for line in lines.filter(|line| !matrix(line)) {
            for number in numbers_in(line) {
                assert!(known.contains(number), "{number} of {line:?} is not in\n{markdown}");
            }
        }
    }
}

/// Returns true for a line with the labels below an axis: quantities alone.
fn is_axis(line: &str) -> bool {
    let mut words = line.split_whitespace();
    line.starts_with("        ")
        && words.all(|word| word.parse::<f64>().is_ok() || ["KiB", "MiB", "B"].contains(&word))
}

/// The strings of a JSON value, numbers within them included.
fn collect_strings(value: &serde_json::Value, words: &mut String) {
    match value {
        serde_json::Value::String(text) => *words += &format!(" {text}"),
        serde_json::Value::Array(all) => all.iter().for_each(|value| collect_strings(value, words)),
        serde_json::Value::Object(all) => all.values().for_each(|value| collect_strings(value, words)),
        _ => {}
    }
}

#[test]
fn every_number_on_the_screen_is_in_the_json() {
    let report = golden_report();
    let mut known = writable(&report);
    // What is quoted as it stands, and what the references bring along.
    let mut words = String::new();
    collect_strings(&serde_json::from_str(&report.to_json()).unwrap(), &mut words);
    words += " 60 16.7 52.3 p10 p90 p95 p99 p99.9 p99.99 L1 1 s 1 ns ";
    for row in super::rows::survey_rows(&report, &[], catalogue()) {
        words += &format!("{} ", row.label);
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
    let counted = super::unmeasured::missing_and_doubtful(&report, |_| true, |_| true)[0].clone();
    words += &counted.iter().map(|group| group.what.as_str()).collect::<Vec<_>>().join(" ");
    known.extend(numbers_in(&words).map(str::to_owned));
    for options in [wide(80), wide(120), wide(200)] {
        all_known(&table::format_table(&report, &[], &options), &known);
        let markdown = markdown::format_report(&report, &[], true, &options);
        all_known(&remove_grouping(&markdown.replace("&lt;", "").replace("&#64;", "")), &known);
    }
    all_known(text::format_families(&report, &wide(200)).split("\nFindings").next().unwrap(), &known);
    let csv = csv::report_csv(&report);
    for record in ::csv::Reader::from_reader(csv.as_slice()).records().map(Result::unwrap) {
        // How sure a result is follows from its counts, and is a sentence.
        let is_sentence =
            |field: &&str| ["% confidence", "would have been seen"].iter().any(|part| field.contains(part));
        let figures = record.iter().filter(|field| !is_sentence(field));
        figures.for_each(|field| all_known(&remove_grouping(field), &known));
    }
    assert!(!known.contains("77.7"), "a number from nowhere would not be noticed");
}

/// Checks that nothing of which there is a single instance is in the plural: event, CPU, missed event, point.
#[test]
fn one_of_a_thing_is_in_the_singular() {
    let mut report = fixture::wake();
    report.measurements.truncate(1);
    report.plan.steps.truncate(1);
    report.plan.steps[0].points.truncate(1);
    let m = &mut report.measurements[0];
    m.histogram = Histogram::new(1000);
    m.histogram.record(5);
    (m.outliers, m.corrected) = (Vec::new(), None);
    m.summary = Summary::from_histogram(&m.histogram, &Summary { missed: 1, ..Summary::default() });
    let one = ProgressAmount { done: 1, of: Some(1) };
    report.finished = None;
    report.interrupted =
        Some(Interrupted { by: "SIGINT".to_owned(), points: one, events: Some(one), time: None });
    judge_report(
        &mut report,
        &[MetricCriterion::new("p50", 1e9).unwrap(), MetricCriterion::new("missed", 1.0).unwrap()],
    );
    let options = DisplayOptions { width: 400, ..DisplayOptions::default() };
    for text in [
        groups::format_events(&report, &options),
        markdown::format_report(&report, &[], true, &options),
        describe_plan(&report.plan),
    ] {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && !".,'".contains(c)).collect();
        let plural = |pair: &&[&str]| {
            pair[0] == "1" && pair[1].len() > 2 && pair[1].ends_with('s') && !pair[1].ends_with("ss")
        };
        let wrong: Vec<&[&str]> = words.windows(2).filter(plural).collect();
        assert!(wrong.is_empty(), "{wrong:?} in\n{text}");
    }
}
