//! Golden files of what is drawn, as text: figures of every kind, each with its axes, curves and notes.

use super::ticks::{ACROSS, BESIDE, UP, visible_ticks};
use super::*;
use crate::comparison::{by_percentile, tests::single_events};
use crate::golden::{catalogue, check_golden};
use crate::history::tests::found;
use crate::skipped::has_program;
use latscope_core::fixture;
use latscope_judge::verdict::{MetricCriterion, judge_report};
use std::fmt::Write;

/// The pictures of each fixture, by the name of its golden file.
fn all() -> Vec<(&'static str, Vec<NamedDrawing>)> {
    let mut wake = fixture::wake();
    judge_report(&mut wake, &[MetricCriterion::new("max", 50_000.0).unwrap()]);
    let named = |family: &str, kinds: &[&str], figures: Vec<CurvePlot>| -> Vec<NamedDrawing> {
        let kinds = kinds.iter().cycle();
        figures
            .into_iter()
            .zip(kinds)
            .map(|(f, kind)| NamedDrawing::new(family, kind, Drawing::Curves(f)))
            .collect()
    };
    let compared =
        |slower| named("compare", &["percentiles", "ratio"], by_percentile(&single_events(slower)));
    let history = found(40);
    let machine = &history.machines[0];
    let changed = machine.changes[0].moved.iter();
    let point = |id: &str| machine.points.iter().find(|point| point.id == id).unwrap();
    let timelines = changed.map(|moved| timeline_figure(machine, point(&moved.id))).collect();
    vec![
        // Of the single events of families with batches one probe says how they are drawn.
        ("survey", pictures(&fixture::server(), catalogue()).into_iter().filter(is_wanted).collect()),
        ("wake", pictures(&wake, catalogue())),
        ("ipc", pictures(&fixture::ipc::payloads(), catalogue())),
        ("remote", pictures(&fixture::remote(), catalogue())),
        ("comparison", compared(2)),
        ("history", named("history", &["over-runs"], timelines)),
        ("trial", compared(1)),
    ]
}

fn is_wanted(picture: &NamedDrawing) -> bool {
    !picture.id.ends_with("-distribution")
        || ["file-fsync", "wake-"].iter().any(|id| picture.id.starts_with(id))
}

#[test]
fn what_is_drawn_of_each_fixture() {
    for (name, pictures) in all() {
        let texts: Vec<String> = pictures.iter().map(text_of).collect();
        check_golden(&format!("figures-{name}.txt"), &texts.join("\n"));
    }
}

#[test]
fn every_kind_of_picture_is_in_a_golden_file() {
    let drawn: Vec<String> = all().into_iter().flat_map(|(_, pictures)| pictures).map(|p| p.id).collect();
    let others = [
        "memory-latency",
        "ipc-time-by-payload",
        "ipc-deadline",
        "sync-core-to-core",
        "file-fsync-distribution",
        "wake-timer-distribution",
        "wake-timer-percentiles",
        "wake-timer-over-time",
        "wake-timer-causes",
        "compare-percentiles",
        "compare-ratio",
        "history-over-runs",
    ];
    let curves = catalogue().families.iter().flat_map(|family| family.curves).map(|curves| curves.id);
    let bars = catalogue().families.iter().flat_map(|family| family.bars).map(|bars| bars.id);
    for kind in curves.chain(bars).chain(others) {
        assert!(drawn.iter().any(|id| id.starts_with(kind)), "{kind} is not in {drawn:?}");
    }
}

#[test]
fn every_picture_has_ticks_units_samples_machine_date_and_version() {
    for (name, pictures) in all() {
        for picture in pictures {
            let id = format!("{name}: {}", picture.id);
            let (notes, axes) = match &picture.drawing {
                Drawing::Curves(figure) => {
                    let [x, y] = figure.axis_ranges().unwrap();
                    let axes = vec![
                        (&figure.x, visible_ticks(&figure.x, x, ACROSS)),
                        (&figure.y, visible_ticks(&figure.y, y, UP)),
                    ];
                    (&figure.notes, axes)
                }
                Drawing::Rows(rows) => {
                    (&rows.notes, vec![(&rows.x, visible_ticks(&rows.x, rows.axis_ends().unwrap(), BESIDE))])
                }
                Drawing::Cells(cells) => (&cells.notes, Vec::new()),
            };
            for (axis, ticks) in axes {
                assert!(ticks.len() >= 3 && !axis.label.is_empty(), "{id}: {ticks:?} along {}", axis.label);
                let counts = [FigureAxisUnit::Number, FigureAxisUnit::Count].contains(&axis.unit);
                assert!(
                    counts || ticks.iter().all(|(_, text)| text.contains(' ')),
                    "{id}: no unit in {ticks:?}"
                );
            }
            let notes = notes.join("\n");
            let counted = ["sample", "event", "run"].iter().any(|word| notes.contains(word));
            assert!(counted && notes.contains("bench"), "{id}: {notes}");
            assert!(notes.contains("2026-11-2") && notes.contains("latscope 0.1.0"), "{id}: {notes}");
        }
    }
}

#[test]
fn every_picture_is_well_formed() {
    if !has_program("every_picture_is_well_formed", "xmllint") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let numbered = all().into_iter().flat_map(|(_, pictures)| pictures).enumerate();
    let files: Vec<_> = numbered
        .map(|(at, picture)| {
            let file = place.path().join(format!("{at}-{}.svg", picture.id));
            std::fs::write(&file, document_of(&picture.drawing)).unwrap();
            file
        })
        .collect();
    let output = std::process::Command::new("xmllint").arg("--noout").args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A picture as text: what it is, a line for each of its parts.
fn text_of(picture: &NamedDrawing) -> String {
    let (title, notes, parts) = match &picture.drawing {
        Drawing::Curves(figure) => (&figure.title, &figure.notes, of_curves(figure)),
        Drawing::Rows(rows) => (&rows.title, &rows.notes, of_rows(rows)),
        Drawing::Cells(cells) => (&cells.title, &cells.notes, of_cells(cells)),
    };
    let notes: String = notes.iter().map(|note| format!("  note {note}\n")).collect();
    format!("{}\n  title {title}\n{notes}{parts}", picture.id)
}

fn of_curves(figure: &CurvePlot) -> String {
    let [x, y] = figure.axis_ranges().unwrap_or_default();
    let mut text = of_axis("x", &figure.x, x, ACROSS) + &of_axis("y", &figure.y, y, UP);
    for series in &figure.series {
        let place = if series.background { ", in the background" } else { "" };
        let tone = series.tone.map(|(colour, dash)| format!(", colour {colour}, dashes {dash}"));
        writeln!(text, "  curve {}: {:?}{place}{}", series.name, series.shape, tone.unwrap_or_default())
            .unwrap();
        for (x, y) in &series.points {
            let doubtful = if series.doubtful.contains(x) { " doubtful" } else { "" };
            writeln!(text, "    {} {}{doubtful}", number(*x), number(*y)).unwrap();
        }
        for (x, low, high) in &series.band {
            writeln!(text, "    {} band {} to {}", number(*x), number(*low), number(*high)).unwrap();
        }
    }
    text + &of_marks(&figure.marks)
}

fn of_rows(rows: &BarChart) -> String {
    let mut text = of_axis("x", &rows.x, rows.axis_ends().unwrap_or_default(), BESIDE);
    writeln!(text, "  keys {}", rows.keys.join(" | ")).unwrap();
    for row in &rows.rows {
        let doubtful = if row.doubtful { ", doubtful" } else { "" };
        writeln!(text, "  row {}: {}{doubtful}", row.label, row.value).unwrap();
        for BarChartPart { kind, key, from, to, label } in &row.parts {
            writeln!(text, "    {kind:?} {}: {} to {} {label}", rows.keys[*key], number(*from), number(*to))
                .unwrap();
        }
    }
    text + &of_marks(&rows.marks)
}

fn of_cells(cells: &HeatMap) -> String {
    let mut text = format!("  {} in {:?}\n", cells.label, cells.unit);
    writeln!(text, "  {} {}, borders before {:?}", cells.side, cells.names.join(" "), cells.borders).unwrap();
    for HeatMapCell { row, column, value, doubtful } in &cells.cells {
        let doubtful = if *doubtful { " doubtful" } else { "" };
        let [row, column] = [row, column].map(|at| &cells.names[*at]);
        writeln!(text, "    {row} {column}: {}{doubtful}", number(*value)).unwrap();
    }
    text
}

fn of_axis(name: &str, axis: &Axis, range: (f64, f64), most: usize) -> String {
    let ticks: Vec<String> = visible_ticks(axis, range, most).into_iter().map(|(_, text)| text).collect();
    format!("  {name} {}, {:?}: {}\n", axis.label, axis.scale, ticks.join(" | "))
}

fn of_marks(marks: &[AxisMark]) -> String {
    marks.iter().map(|mark| format!("  mark {:?} {}: {}\n", mark.axis, number(mark.at), mark.label)).collect()
}

/// Rounds a number to six digits: errors of floating point are ignored.
fn number(value: f64) -> String {
    format!("{value:.5e}").parse::<f64>().map_or_else(|_| value.to_string(), |short| short.to_string())
}
