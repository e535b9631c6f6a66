use super::*;
use crate::DisplayOptions;
use crate::golden::catalogue;
use latscope_core::fixture;
use latscope_core::quality::Reason;
use latscope_core::report::{Account, Interrupted, ProgressAmount, Sampling};
use latscope_core::rounds::Prediction;
use latscope_judge::levels::Edge;

#[test]
fn rows_go_from_fastest_to_slowest_and_have_a_cell_for_each_reference() {
    let (report, other) = (fixture::report(), fixture::other());
    let rows = survey_rows(&report, &[&other], catalogue());
    assert!(rows.is_sorted_by(|a, b| a.ns <= b.ns));
    let names = reference_names(&report, &[&other]);
    assert!(rows.iter().all(|row| row.references.len() == names.len()));
    assert_eq!(names[4].0, "thinker");
}

#[test]
fn a_result_of_the_same_machine_is_named_by_its_time() {
    let report = fixture::report();
    let names = reference_names(&report, &[&report]);
    assert_eq!(names[4].0, "2026-11-21 10:00");
}

#[test]
fn a_level_is_named_by_its_declared_size_unless_less_is_effective() {
    let level = |name: &str, capacity: Option<u64>, declared, agreement| {
        let name = name.to_owned();
        let (cycles, p10, p90, quality) = (None, None, None, Default::default());
        let edge = capacity.map(|from| Edge { from, to: from + from / 8 });
        level_label(&LevelRow {
            name,
            within: None,
            ns: 1.0,
            cycles,
            p10,
            p90,
            next: None,
            sizes: (1, 1),
            pages: String::new(),
            rounds: 3,
            declared,
            edge,
            agreement,
            quality,
        })
    };
    assert_eq!(level("L1", Some(48 << 10), Some(48 << 10), Agreement::Agrees), "L1 hit, 48 KiB");
    let less = level("L3", Some(6 << 20), Some(105 << 20), Agreement::Smaller);
    assert_eq!(less, "L3 hit, to 6 MiB of 105 MiB");
    assert_eq!(level("L2", Some(1 << 20), None, Agreement::Undeclared), "L2 hit, to 1 MiB");
    assert_eq!(level("memory", None, None, Agreement::Memory), "memory read");
}

#[test]
fn what_has_no_number_has_no_row() {
    let report = fixture::report();
    assert!(survey_rows(&report, &[], catalogue()).iter().all(|row| row.level != QualityLevel::Unsupported));
}

#[test]
fn a_semaphore_round_trip_is_halved_for_the_phones() {
    let report = fixture::report();
    let rows = survey_rows(&report, &[], catalogue());
    let row = rows.iter().find(|row| row.label.starts_with("semaphore, same core")).unwrap();
    let phone = row.references[3].as_ref().unwrap();
    assert_eq!((phone.ns, phone.part), (3.2e3, 0.5));
    assert!((phone.ratio - 3.2e3 / (row.ns / 2.0)).abs() < 1e-9);
    assert!(!row.references[0].as_ref().unwrap().same);
}

#[test]
fn a_result_in_doubt_is_marked_in_its_column_and_in_the_legend() {
    let report = fixture::report();
    let shown = |other: &Report| {
        let options = DisplayOptions { width: 400, ..DisplayOptions::default() };
        let markdown = crate::markdown::format_report(&report, &[other], true, &options);
        assert!(markdown.contains("= thinker, 2026"), "{markdown}");
        crate::table::format_table(&report, &[other], &options)
    };
    let mut other = fixture::other();
    assert!(!shown(&other).contains("thinker~"));
    let time = ProgressAmount { done: 1_890_000_000, of: Some(10_000_000_000) };
    let points = ProgressAmount { done: 0, of: Some(2) };
    other.finished = None;
    other.interrupted = Some(Interrupted { by: "SIGINT".to_owned(), points, events: None, time: Some(time) });
    other.measurements.iter_mut().for_each(|m| m.incomplete = true);
    let text = shown(&other);
    for part in ["thinker~ = thinker, ", "; INCOMPLETE: ", "after 1.89 s of 10.0 s", "~ ended early"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let mut other = fixture::other();
    other.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.97, ..Account::default() });
    let text = shown(&other);
    assert!(text.contains("thinker! = ") && text.contains("; busy: other processes used 97 %"), "{text}");
    for (level, word) in [(QualityLevel::Unstable, "unstable"), (QualityLevel::Degraded, "degraded")] {
        let mut other = fixture::other();
        other.measurements.iter_mut().for_each(|m| m.lower(Reason::new(level, "x", "shaken", "")));
        let rows = survey_rows(&report, &[&other], catalogue());
        let row = rows.iter().find(|row| row.label.starts_with("add i64")).unwrap();
        let cell = row.references[4].as_ref().unwrap();
        assert_eq!((cell.sign, cell.note.as_deref()), ("!", Some(&*format!("{word} there: shaken"))));
    }
}

#[test]
fn directories_do_not_matter_but_file_systems_do() {
    let report = fixture::report();
    let mut other = fixture::report();
    for m in &mut other.measurements {
        if m.has_param_value("filesystem", "ext4") {
            m.params.insert("filesystem".to_owned(), "btrfs".into());
        }
        if m.params.contains_key("directory") {
            m.params.insert("directory".to_owned(), "/elsewhere".into());
        }
    }
    let rows = survey_rows(&report, &[&other], catalogue());
    let cell = |label: &str| {
        let row = rows.iter().find(|row| row.label == label).unwrap();
        row.references[4].clone().unwrap()
    };
    assert!(cell("read, kept open, 4 KiB, tmpfs").same);
    let on_device = cell("read, kept open, 4 KiB, ext4");
    assert!(!on_device.same);
    assert_eq!(on_device.note.as_deref(), Some("measured on btrfs, not on ext4"));
}

#[test]
fn points_of_two_revisions_are_shown_as_two_things() {
    let report = fixture::report();
    let mut other = fixture::other();
    other.measurements.iter_mut().for_each(|m| m.revision = 2);
    let rows = survey_rows(&report, &[&other], catalogue());
    let cells: Vec<_> = rows.iter().filter_map(|row| row.references[4].as_ref()).collect();
    let told = |cell: &&&ReferenceCell| {
        let note = cell.note.as_deref().unwrap_or_default();
        !cell.same && note.contains("revision 2 of the probe there, 1 here")
    };
    assert!(rows.iter().any(|row| row.label.starts_with("L1")), "a level is among the rows");
    assert!(cells.len() > 20, "{}", cells.len());
    assert_eq!(cells.iter().filter(told).count(), cells.len());
}

#[test]
fn the_target_length_of_a_batch_matters_and_its_operations_do_not() {
    let report = fixture::report();
    let cell = |other: &Report| {
        let rows = survey_rows(&report, &[other], catalogue());
        rows.iter().find(|row| row.label.starts_with("add i64")).unwrap().references[4].clone().unwrap()
    };
    let mut other = fixture::other();
    for m in &mut other.measurements {
        if let Sampling::Batch { ops } = &mut m.sampling {
            *ops *= 7;
        }
    }
    assert!(cell(&other).same);
    other.plan.steps.iter_mut().for_each(|step| step.stop.batch_ns = 200_000);
    let differs = cell(&other);
    assert!(!differs.same);
    assert_eq!(differs.note.as_deref(), Some("batches of 200 µs there, of 500 µs here"));
}

#[test]
fn where_the_next_run_is_expected_is_that_of_the_rounds() {
    let mut report = fixture::report();
    let m = report.measurements.iter_mut().find(|m| m.row).unwrap();
    m.interval = Some(Prediction { low: 1.0, high: 2.0, level: 0.95 });
    let title = m.title.clone();
    let rows = survey_rows(&report, &[], catalogue());
    let told: Vec<&SurveyRow> = rows.iter().filter(|row| row.next.is_some()).collect();
    assert!(told.len() == 1 && told[0].label == title && told[0].next == Some((1.0, 2.0)), "{told:?}");
}

#[test]
fn families_stand_together_from_the_fastest_row_to_the_slowest() {
    let report = fixture::report();
    let rows = sorted_rows(&report, &[], &DisplayOptions { sort: Sort::Family, ..DisplayOptions::default() });
    let mut families: Vec<&str> = rows.iter().map(|row| row.family.as_str()).collect();
    assert!(rows.is_sorted_by(|a, b| a.family != b.family || a.ns <= b.ns));
    families.dedup();
    let distinct: std::collections::BTreeSet<&&str> = families.iter().collect();
    assert!(families.len() > 3 && families.len() == distinct.len(), "{families:?}");
}

#[test]
fn a_cache_that_the_curve_does_not_show_is_named() {
    let report = fixture::report();
    assert!(unseen_levels(&report).is_empty(), "{:?}", unseen_levels(&report));
    let mut without = report.clone();
    without.measurements.retain(|m| m.probe != CHASE || m.numeric_param("size") == Some(4096));
    let names: Vec<String> = unseen_levels(&without).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"L3 hit".to_owned()), "{names:?}");
    without.measurements.retain(|m| m.probe != CHASE);
    assert!(unseen_levels(&without).is_empty(), "what was not asked for is not missing");
}
