use super::time_lines::spark;
use super::{format_csv, format_markdown, format_text, html};
use crate::DisplayOptions;
use crate::figure::timeline_figure;
use latscope_core::fixture;
use latscope_judge::history::{
    ArchiveRun, ArchiveWriter, ComparisonOptions as How, History, HistoryFigureKind, PointHistory, Smaller,
    history,
};
use latscope_judge::runs::RunResult;
use unicode_width::UnicodeWidthStr;

/// Runs of the fixture, of which those from 20 on take longer, another one is odd, and another drifts.
pub(crate) fn found(runs: usize) -> History {
    found_with(runs, 20, 0.0)
}

#[test]
fn figures_tests_and_points_are_counted_apart_and_nothing_judged_is_said_so() {
    let flat = |found: &History, all| {
        let shown =
            format_text(found, all, false, &DisplayOptions { width: 400, ..DisplayOptions::default() });
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut history = found(40);
    let machine = &mut history.machines[0];
    let lines = machine.judged;
    assert!(machine.judged_points > 0 && machine.judged_points <= lines && lines <= machine.tests);
    let judged = machine.judged_points;
    let shown = flat(&history, false);
    assert!(
        shown.contains(&format!("1 change found among {lines} judged figures of {judged} points")),
        "{shown}"
    );
    let few = flat(&found(5), false);
    assert!(few.contains("Nothing was judged.") && !few.contains("0 changes"), "{few}");
}

#[test]
fn all_lists_smaller_changes_odd_medians_and_revisions() {
    let shown = |history: &History, all| {
        format_text(history, all, false, &DisplayOptions { width: 400, ..DisplayOptions::default() })
    };
    let mut history = found(40);
    let machine = &mut history.machines[0];
    let (id, title) = (machine.points[3].id.clone(), machine.points[3].title.clone());
    let small = Smaller { id, title: title.clone(), figure: HistoryFigureKind::P50, run: 20, ratio: 1.03 };
    (machine.small, machine.smaller) = (1, vec![small]);
    let odd = machine.points.iter().find(|point| point.id == machine.odd[0].points[0]).unwrap().title.clone();
    let mut other = machine.points[3].clone();
    (other.revision, other.runs) = (machine.points[3].revision + 1, vec![12, 13]);
    let revisions = format!("{title}, revision {} in runs 1 to 40, revision", machine.points[3].revision);
    machine.points.push(other);
    let (some, all) = (shown(&history, false), shown(&history, true));
    assert!(some.contains("1 smaller change or of unsure direction: not shown (--all lists them)"), "{some}");
    assert!(
        all.contains(&format!("smaller: {title} p50, ratio 1.030 at run 21 (2026-11-22 00:20)")),
        "{all}"
    );
    assert!(some.contains(&format!("medians: {odd}")), "{some}");
    assert!(some.contains(&revisions) && some.contains("in runs 13 to 14"), "{some}");
}

/// Such runs with another kernel from that run on, and with figures that scatter by so much more.
fn found_with(runs: usize, kernel: usize, scatter: f32) -> History {
    let mut writer = ArchiveWriter::default();
    let entries: Vec<ArchiveRun> = (0..runs)
        .map(|at| {
            let mut report = fixture::report();
            report.run_id = format!("{at:032}");
            report.started = format!("2026-11-22T00:{at:02}:00Z");
            report.labels.insert("kernel".to_owned(), if at < kernel { "old" } else { "new" }.to_owned());
            let mut entry = writer.encode_run(&RunResult::from_report(report));
            for (place, point) in entry.points.iter_mut().enumerate() {
                point.trusted = true;
                point.p50 *= 1.0 + (0.001 + scatter) * ((at * 7919 + place) % 101) as f32 / 101.0;
                point.p50 *= match place {
                    0 if at >= 20 => 1.3,
                    1 if at == 7 => 3.0,
                    2 => 1.0 + 0.01 * at as f32,
                    _ => 1.0,
                };
            }
            entry
        })
        .collect();
    let names: Vec<String> = (0..runs).map(|at| format!("{at}.json")).collect();
    let named: Vec<(&str, &ArchiveRun)> = names.iter().map(String::as_str).zip(&entries).collect();
    history(&writer.into_archive(), &named, &How::default())
}

#[test]
fn a_change_what_is_odd_and_what_drifts_are_in_every_view_within_its_width() {
    let found = found(40);
    for width in [60, 80, 120] {
        for (all, lines) in [(false, false), (true, true)] {
            let shown =
                format_text(&found, all, lines, &DisplayOptions { width, ..DisplayOptions::default() });
            assert!(shown.lines().all(|line| line.width() <= width), "{shown}");
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in
                ["change 000000000000 ", "run 21 of 40", "label kernel: old → new", "odd: 7.json", "drifts: "]
            {
                assert!(flat.contains(words), "{words:?}\n{shown}");
            }
        }
    }
    assert!(format_markdown(&found).contains("- differs: label kernel: old → new"));
    let table = String::from_utf8(format_csv(&found)).unwrap();
    assert_eq!(table.lines().count(), 2, "{table}");
}

#[test]
fn what_other_programs_do_not_say_is_called_unknown() {
    let mut found = found(40);
    found.machines[0].id = "host ".to_owned();
    let shown = |found: &History| {
        let shown =
            format_text(found, true, true, &DisplayOptions { width: 400, ..DisplayOptions::default() });
        assert!(!shown.contains(", to") && !shown.contains("()") && !shown.contains("  to "), "{shown}");
        shown
    };
    found.machines[0].runs[..3].iter_mut().for_each(|run| run.started.clear());
    let some = shown(&found);
    assert!(some.contains("machine that results do not name: 40 runs of "), "{some}");
    assert!(some.contains(", 2026-11-22 00:03 to 2026-11-22 00:39"), "{some}");
    assert!(
        some.contains("3 runs of another program without a date: before the others, in the order of"),
        "{some}"
    );
    found.machines[0].runs.iter_mut().for_each(|run| run.started.clear());
    found.machines[0].changes.iter_mut().for_each(|change| change.first.started.clear());
    let none = shown(&found);
    assert!(none.contains(" points, at an unknown time\n"), "{none}");
    assert!(none.contains("7.json (at an unknown time)"), "{none}");
}

#[test]
fn the_page_has_a_picture_of_each_point_that_changed_with_its_change_and_odd_runs() {
    let mut found = found(40);
    let page = html(&found, false);
    assert_eq!(page.matches("<figure>").count(), 1);
    for part in ["<h3>Drifts</h3>", "<h3>Odd runs</h3>", "differs: label kernel: old → new"] {
        assert!(page.contains(part), "{part:?}");
    }
    let every = html(&found, true).matches("<figure>").count();
    let machine = &mut found.machines[0];
    assert_eq!(every, machine.points.len());
    let at = |id: &str| machine.points.iter().position(|point| point.id == id).unwrap();
    let (changed, odd) = (at(&machine.changes[0].moved[0].id), at(&machine.odd[0].points[0]));
    machine.points[changed].trusted[3] = false;
    let figure = timeline_figure(machine, &machine.points[changed]);
    assert_eq!(figure.marks[0].at, 20.5);
    let named = |name: &str| figure.series.iter().find(|series| series.name.starts_with(name)).unwrap();
    assert_eq!((named("median").points.len(), named("median, degraded").points[0].0), (39, 4.0));
    let figure = timeline_figure(machine, &machine.points[odd]);
    let crosses = figure.series.iter().find(|series| series.name == "median of an odd run").unwrap();
    assert_eq!(crosses.points[0].0, 8.0);
}

#[test]
fn a_fact_that_changed_elsewhere_is_not_named_or_says_where() {
    let words = |found: &History| {
        let shown = format_text(found, false, false, &DisplayOptions::default());
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let later = words(&found_with(40, 23, 0.0));
    assert!(!later.contains("old → new") && later.contains("nothing that results record changed"), "{later}");
    // The figures scatter so far that the place of the step is not sure.
    let near = words(&found_with(40, 21, 0.25));
    let said = "label kernel: old → new at run 22; the change may be at any of the runs ";
    assert!(near.contains(said), "{near}");
}

#[test]
fn few_runs_are_not_judged_and_said_so() {
    let shown = format_text(&found(5), false, true, &DisplayOptions::default());
    assert!(shown.contains("not judged: fewer than 10 trusted runs"), "{shown}");
}

#[test]
fn a_time_line_shows_the_step_and_what_is_missing() {
    let point = |p50: Vec<f32>, changes: Vec<usize>| PointHistory {
        id: String::new(),
        probe: String::new(),
        title: String::new(),
        revision: 1,
        runs: (0..p50.len()).filter(|at| *at != 2).collect(),
        trusted: vec![true; p50.len() - 1],
        p99: Vec::new(),
        p50: p50.into_iter().skip(1).collect(),
        changes,
    };
    let step = point(vec![1.0, 1.0, 1.0, 1.0, 2.0, 2.0], vec![4]);
    assert_eq!(spark(&step, 6, 40, 0.05), "▁▁·▁│██");
    assert!(spark(&step, 6, 4, 0.05).width() <= 4);
    let flat = point(vec![1.0; 6], Vec::new());
    assert_eq!(spark(&flat, 6, 40, 0.05), "▅▅·▅▅▅");
}
