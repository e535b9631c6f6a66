use super::super::{
    AxisMark, FigureAxisScale, FigureAxisUnit, Picture, distribution_figure, event_pictures, latency_figure,
};
use super::*;
use crate::golden::check_golden;
use latscope_core::events::event_groups;
use latscope_core::fixture;
use latscope_core::testing::{chase, report};
use proptest::prelude::*;

fn wake_figure() -> CurvePlot {
    let report = fixture::wake();
    distribution_figure(&report, &event_groups(&report)[0]).unwrap()
}

#[test]
fn pictures_of_wake_ups() {
    let both = [Picture::Distribution, Picture::Percentiles];
    check_golden("wake.svg", &event_pictures(&fixture::wake(), &both).unwrap());
}

#[test]
fn memory_latency_with_its_levels() {
    let curves = [chase("random", "2MiB", 8, 32 << 20, 0.0), chase("random", "4KiB", 2, 32 << 20, 80.0)];
    let text = svg(&[latency_figure(&report(curves.concat())).unwrap()]);
    for name in ["random, 4 KiB pages", "memory 100 ns", "32 KiB", "200 ns"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn without_points_there_is_the_title() {
    let figure = wake_figure();
    let empty = svg(&[CurvePlot { series: Vec::new(), ..figure }]);
    assert!(empty.contains("wake.timer: max") && !empty.contains("<path"), "{empty}");
    assert!(svg(&[]).starts_with("<svg"));
}

#[test]
fn text_from_a_file_cannot_break_the_picture() {
    let mut report = fixture::wake();
    report.machine.name = "<script>&\"'".to_owned() + &"x".repeat(500);
    let text = event_pictures(&report, &[Picture::Percentiles]).unwrap();
    assert!(!text.contains("<script>") && text.contains("&lt;script&gt;&amp;"), "{text}");
    assert!(text.contains("x…"));
}

#[test]
fn an_envelope_is_a_band_with_a_name() {
    let figure = wake_figure();
    let band = vec![(0.0, 1.0, 5.0), (1e4, 2.0, 9.0), (2e4, 1.0, 1.0)];
    let others = PlotSeries { name: "5 others".to_owned(), band, background: true, ..PlotSeries::default() };
    let series = [figure.series.clone(), vec![others]].concat();
    let text = svg(&[CurvePlot { series, ..figure }]);
    assert!(text.contains("5 others</text>") && text.contains("fill-opacity=\"0.55\""), "{text}");
}

fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![0.1f64..1e6, any::<f64>()]
}

proptest! {
    #[test]
    fn no_figure_is_too_odd(points in proptest::collection::vec((any_value(), any_value()), 0..20),
                            mark in any_value(), steps: bool, scales in (0usize..3, 0usize..3)) {
        let axis = |scale: usize| Axis {
            label: "label".to_owned(),
            scale: [FigureAxisScale::Linear, FigureAxisScale::Log2, FigureAxisScale::Log10][scale],
            unit: [FigureAxisUnit::Percentile, FigureAxisUnit::Count, FigureAxisUnit::Nanoseconds][scale],
            ends: None,
        };
        let shape = if steps { SeriesShape::Steps } else { SeriesShape::Line };
        let figure = CurvePlot {
            title: "title".to_owned(),
            notes: Vec::new(),
            x: axis(scales.0),
            y: axis(scales.1),
            series: vec![PlotSeries { name: "curve".to_owned(), points, shape, background: steps, ..PlotSeries::default() }],
            marks: vec![AxisMark { axis: MarkAxis::X, at: mark, label: "mark".to_owned() }],
        };
        prop_assert!(svg(&[figure]).trim_end().ends_with("</svg>"));
    }
}
