use super::super::{Axis, AxisMark, FigureAxisScale, FigureAxisUnit, latency_figure};
use super::*;
use latscope_core::testing::{chase, report};
use proptest::prelude::*;

/// Compares the text of a figure with the golden text; on a difference shows both.
fn assert_golden(text: &str, golden: &str) {
    assert!(text == golden, "the figure is now\n{text}\nand was\n{golden}");
}

fn one_curve() -> CurvePlot {
    latency_figure(&report(chase("random", "2MiB", 8, 32 << 20, 0.0))).expect("a figure")
}

fn four_curves() -> CurvePlot {
    let curves = [
        chase("random", "2MiB", 8, 32 << 20, 0.0),
        chase("random", "4KiB", 2, 32 << 20, 80.0),
        chase("window", "4KiB", 2, 32 << 20, 5.0),
        chase("page", "4KiB", 2, 4 << 20, 20.0),
    ];
    latency_figure(&report(curves.concat())).expect("a figure")
}

#[test]
fn one_curve_in_eighty_columns() {
    assert_golden(&format_figure(&one_curve(), 80, 22), include_str!("one_curve.txt"));
}

#[test]
fn four_curves_in_eighty_columns() {
    assert_golden(&format_figure(&four_curves(), 80, 22), include_str!("four_curves.txt"));
}

#[test]
fn four_curves_in_a_small_window() {
    assert_golden(&format_figure(&four_curves(), 40, 12), include_str!("small.txt"));
}

#[test]
fn without_room_or_points_there_is_the_title() {
    assert_eq!(format_figure(&one_curve(), 29, 30), "Memory latency by working-set\n");
    assert_eq!(format_figure(&one_curve(), 80, 9), "Memory latency by working-set size\n");
    let empty = CurvePlot { series: Vec::new(), ..one_curve() };
    assert_eq!(format_figure(&empty, 80, 22), "Memory latency by working-set size\n");
}

#[test]
fn labels_that_do_not_fit_are_pushed_together_or_left_out() {
    let area = Rect::new(0, 0, 20, 1);
    let mut buffer = Buffer::empty(area);
    put_apart(&mut buffer, area, 0, &[(1, "first"), (17, "second"), (19, "third")]);
    assert_eq!(text_of(&buffer), "first  second  third\n");
    let mut buffer = Buffer::empty(area);
    put_apart(&mut buffer, area, 0, &[(1, "too long by far"), (19, "last one")]);
    assert_eq!(text_of(&buffer), "            last one\n");
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![0.1f64..1e6, any::<f64>()]
}

proptest! {
    #[test]
    fn no_figure_breaks_its_frame(points in proptest::collection::vec((any_value(), any_value()), 0..40),
                                  marks in proptest::collection::vec((any::<bool>(), any_value()), 0..6),
                                  series in 0usize..8, scales in (0usize..3, 0usize..3), frame in (0u16..120, 0u16..40)) {
        let axis = |scale: usize| Axis {
            label: "a rather long label".to_owned(),
            scale: [FigureAxisScale::Linear, FigureAxisScale::Log2, FigureAxisScale::Log10][scale],
            unit: [FigureAxisUnit::Number, FigureAxisUnit::Bytes, FigureAxisUnit::Nanoseconds][scale],
            ends: None,
        };
        let mark = |(on_x, at): (bool, f64)| AxisMark {
            axis: if on_x { MarkAxis::X } else { MarkAxis::Y },
            at,
            label: "mark".to_owned(),
        };
        let figure = CurvePlot {
            title: "title".to_owned(),
            notes: Vec::new(),
            x: axis(scales.0),
            y: axis(scales.1),
            series: vec![PlotSeries { name: "curve".to_owned(), points, ..PlotSeries::default() }; series],
            marks: marks.into_iter().map(mark).collect(),
        };
        let text = format_figure(&figure, frame.0, frame.1);
        prop_assert!(text.ends_with('\n'));
        prop_assert!(text.lines().count() <= usize::from(frame.1.max(1)));
        for line in text.lines() {
            prop_assert!(line.chars().count() <= usize::from(frame.0), "{}", text);
        }
    }
}
