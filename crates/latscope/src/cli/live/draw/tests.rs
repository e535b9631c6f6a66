use super::super::testing::{SECOND, snapshot, test_outlier, test_plan, test_step, test_step_snapshot};
use super::*;
use latscope_core::report::Warning;
use proptest::prelude::*;
use ratatui_core::style::Color;

const EPOCH: u64 = 1_790_000_000 * SECOND;

/// 40 seconds of a run on these CPUs.
fn model(cpus: &[u32]) -> LiveModel {
    let step = test_step(cpus);
    let mut model = LiveModel::default();
    model.start_run(&test_plan(&step));
    for second in 1..=40u64 {
        let points = cpus.iter().map(|cpu| {
            let some = second as usize;
            let mut values = vec![(3900 + u64::from(*cpu), 1), (6100, some * 100), (9000, some * 10)];
            values.push((second % 7 * 5000 + 9000, some));
            if *cpu == 1 && second > 22 {
                values.push((412_000, 1));
            }
            snapshot(&values, u64::from(*cpu) * 3, 22 * SECOND)
        });
        model.apply_step_snapshot(&test_step_snapshot(&step, second * SECOND, points.collect()));
    }
    model
}

fn with_events(mut model: LiveModel) -> LiveModel {
    model.add_outlier(&test_outlier(22 * SECOND, 1, 412_000));
    for (text, remedy) in [("memory is not locked", Some("ulimit -l unlimited")), ("the load ended", None)] {
        model.add_warning(&Warning {
            id: String::new(),
            text: text.to_owned(),
            remedy: remedy.map(str::to_owned),
        });
    }
    model
}

fn drawn(model: &LiveModel, view: &LiveViewState, color: bool, width: u16, height: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    draw_model(model, view, Theme { color, epoch: EPOCH }, &mut buffer);
    buffer
}

fn text(model: &LiveModel, view: &LiveViewState, width: u16, height: u16) -> String {
    let buffer = drawn(model, view, false, width, height);
    let line = |cells: &[ratatui_core::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        format!("{}\n", line.trim_end())
    };
    buffer.content.chunks(usize::from(width)).map(line).collect()
}

fn selected(number: usize) -> LiveViewState {
    LiveViewState { selected: number, ..LiveViewState::default() }
}

/// Compares with a file; `LATSCOPE_RECORD` in the environment writes it anew.
#[track_caller]
fn golden(name: &str, shown: &str) {
    let path = format!("{}/src/cli/live/draw/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(shown == expected, "{name}:\n{shown}\nbut {path} is\n{expected}");
}

#[test]
fn screens_of_every_size() {
    let model = with_events(model(&[0, 1]));
    golden("large", &text(&model, &LiveViewState::default(), 110, 40));
    golden("usual", &text(&model, &selected(2), 80, 24));
    golden("small", &text(&model, &selected(1), 60, 15));
}

#[test]
fn help_takes_the_place_of_the_outliers() {
    let view = LiveViewState { help: true, paused: true, ..LiveViewState::default() };
    golden("help", &text(&with_events(model(&[3])), &view, 80, 30));
}

#[test]
fn before_the_first_snapshot_there_is_a_head() {
    let mut model = LiveModel::default();
    model.start_run(&test_plan(&test_step(&[0, 1])));
    golden("begin", &text(&model, &LiveViewState::default(), 80, 24));
}

#[test]
fn of_many_cpus_the_chosen_one_is_seen() {
    let model = model(&(0..64).collect::<Vec<_>>());
    let shown = text(&model, &selected(41), 80, 24);
    let chosen = shown.lines().find(|line| line.starts_with('▸')).expect("it is seen");
    assert!(chosen.starts_with("▸ 40 "), "{shown}");
    assert!(shown.contains("CPU 40: distribution"), "{shown}");
    let all = text(&model, &LiveViewState::default(), 80, 24);
    assert!(all.contains("\n▸ all"), "{all}");
}

#[test]
fn what_is_measured_in_turn_is_in_view_and_named_on_a_narrow_screen() {
    let mut kinds = test_step(&[0; 9]);
    for (point, at) in kinds.points.iter_mut().zip(0u64..) {
        point.probe = "remote.bandwidth".to_owned();
        let wait = if at % 2 == 0 { "eventfd" } else { "futex" };
        point.params = [("payload", (496 + at / 2).into()), ("wait", wait.into())]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
    }
    let mut model = LiveModel::default();
    model.start_run(&test_plan(&kinds));
    model.begin_point(&kinds.points[3]);
    let points = (0..9u64).map(|at| snapshot(&[(1000, if at <= 3 { 20 } else { 0 })], 0, 0)).collect();
    model.apply_step_snapshot(&test_step_snapshot(&kinds, SECOND, points));
    let shown = text(&model, &LiveViewState::default(), 40, 20);
    assert!(shown.contains("497 B futex") && shown.contains("▸ now"), "{shown}");
    assert!(shown.contains(" left") && !shown.contains("500 B"), "{shown}");
    assert!(text(&model, &LiveViewState::default(), 80, 24).contains("row 4 of 9, about "), "{shown}");
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let model = with_events(model(&[0, 1]));
    let colors = |color| {
        let buffer = drawn(&model, &LiveViewState::default(), color, 100, 30);
        let mut colors: Vec<Color> = buffer.content.iter().map(|cell| cell.fg).collect();
        colors.sort_by_key(|color| color.to_string());
        colors.dedup();
        colors
    };
    assert_eq!(colors(false), [Color::Reset]);
    assert_eq!(colors(true), [Color::Cyan, Color::Red, Color::Reset, Color::Yellow]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Drawing never fails, whatever the size and whatever was measured.
    #[test]
    fn any_size_will_do(
        (width, height) in (0u16..130, 0u16..50),
        values in proptest::collection::vec((any::<u64>(), 1usize..4), 0..9),
        (selected, help) in (0usize..5, any::<bool>()),
    ) {
        let step = test_step(&[0, 1, 2]);
        let mut model = LiveModel::default();
        model.start_run(&test_plan(&step));
        let values: Vec<(u64, usize)> = values.iter().map(|(value, n)| (value >> (value % 64), *n)).collect();
        for second in 0..3 {
            let points = (0..3).map(|_| snapshot(&values, u64::MAX / 8, second));
            model.apply_step_snapshot(&test_step_snapshot(&step, second * SECOND, points.collect()));
        }
        let view = LiveViewState { selected, help, ..LiveViewState::default() };
        let buffer = drawn(&with_events(model), &view, true, width, height);
        prop_assert_eq!(buffer.area, Rect::new(0, 0, width, height));
    }
}

#[test]
fn a_small_screen_says_how_many_rows_it_hides() {
    let model = model(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let small = text(&model, &LiveViewState::default(), 60, 12);
    let rows = small
        .lines()
        .filter(|line| line.trim_start_matches(['▸', ' ']).starts_with(char::is_numeric))
        .count();
    let keys = small.lines().last().unwrap();
    assert!(rows < 8 && keys.contains(&format!("tab choose: {} more CPUs", 8 - rows)), "{small}");
    let large = text(&model, &LiveViewState::default(), 100, 40);
    assert!(!large.contains("more CPU"), "{large}");
}
