//! `cargo xtask peers repeat`, which runs surveys one after the other and checks their statements about each other.

use super::tools::{LatscopeBinary, PlaceholderValues};
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use latscope_core::units::format_time;
use latscope_judge::repeatability::{self, Assessment, RepeatabilityRows};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Limits: the share of figures that lie in the intervals of other surveys, the median width of these intervals, and
/// the share of moving rows that are announced.
const COVERAGE: f64 = 0.9;
const WIDTH: f64 = 1.4;
const TOLD: f64 = 0.9;

/// Runs `surveys` surveys, or reads saved results, and prints how well they predict each other. Writes the medians of
/// all rounds to `rounds`. Returns true if the limits hold.
///
/// # Errors
/// latscope cannot be built or measures nothing, a file cannot be read or written.
pub fn assess_surveys(surveys: usize, results: &[PathBuf], rounds: Option<&Path>) -> Result<bool> {
    let reports = if results.is_empty() { run_surveys(surveys)? } else { read_reports(results)? };
    ensure!(reports.len() > 1, "it takes two surveys at least");
    let rows = repeatability::rows(&reports);
    if let Some(path) = rounds {
        fs::write(path, format_table(&rows))?;
    }
    let assessment = repeatability::assess(&rows).context("no row has an interval: were there rounds?")?;
    print_assessment(&assessment, reports.len());
    for family in families(&rows) {
        let own = rows.iter().filter(|((probe, _), _)| probe.starts_with(&family));
        let own: RepeatabilityRows = own.map(|(row, seen)| (row.clone(), seen.clone())).collect();
        if let Some(of) = repeatability::assess(&own) {
            let (coverage, moving) = (of.coverage * 100.0, of.moving);
            println!("  {family:<9} {:>3} rows  {coverage:>5.1} %  ×{:.2}  {moving} move", of.rows, of.width);
        }
    }
    Ok(is_within_limits(&assessment))
}

fn run_surveys(surveys: usize) -> Result<Vec<Report>> {
    let (latscope, here) = (LatscopeBinary::build()?, PlaceholderValues::new()?);
    let words = here.fill_words("survey")?;
    (1..=surveys)
        .map(|turn| {
            eprintln!("survey {turn}/{surveys}");
            latscope.measure_report(&words)
        })
        .collect()
}

fn read_reports(files: &[PathBuf]) -> Result<Vec<Report>> {
    let read = |file: &PathBuf| -> Result<Report> {
        let text = fs::read(file).with_context(|| file.display().to_string())?;
        Report::from_json(&text).with_context(|| file.display().to_string())
    };
    files.iter().map(read).collect()
}

fn families(rows: &RepeatabilityRows) -> Vec<String> {
    let family = |probe: &str| format!("{}.", probe.split('.').next().unwrap_or(probe));
    let mut families: Vec<String> = rows.keys().map(|(probe, _)| family(probe)).collect();
    families.dedup();
    families
}

fn is_within_limits(assessment: &Assessment) -> bool {
    let Assessment { coverage, width, told, .. } = assessment;
    *coverage >= COVERAGE && *width <= WIDTH && *told >= TOLD
}

fn print_assessment(assessment: &Assessment, surveys: usize) {
    let Assessment { rows, coverage, width, wide, moving, told, untold } = assessment;
    println!("{surveys} surveys, {rows} rows that all have.");
    println!(
        "coverage  {:.1} % of figures lie in another survey's interval (at least {:.0} %)",
        coverage * 100.0,
        COVERAGE * 100.0
    );
    println!("width     ×{width:.2} at the median (at most ×{WIDTH}), nine of ten below ×{wide:.2}");
    println!(
        "moving    {moving} rows by more than 25 %; {:.1} % of their pairs are marked or in an interval (at least {:.0} %)",
        told * 100.0,
        TOLD * 100.0
    );
    for row in untold {
        let ((probe, params), (low, high)) = (&row.row, row.figures);
        println!(
            "  {probe} {params}: {} to {}, {:.0} % told; not covered: the level of {}",
            format_time(low),
            format_time(high),
            row.told * 100.0,
            row.level
        );
    }
}

/// Medians of all rounds, with a line for each row of each survey.
fn format_table(rows: &RepeatabilityRows) -> String {
    let mut text = String::from("# survey, probe, parameters, medians of the rounds in order of time (ns)\n");
    for ((probe, params), seen) in rows {
        for (survey, seen) in seen.iter().enumerate() {
            let rounds: Vec<String> = seen.rounds.iter().map(|ns| format!("{ns:.4}")).collect();
            let _ = writeln!(text, "{}\t{probe}\t{params}\t{}", survey + 1, rounds.join("\t"));
        }
    }
    text
}
