//! Work on a result whose lists are twice as long is about twice as much. It is counted in allocations, since time
//! depends on the machine. A list that is searched for each of its items, or a table with a cell for each pair of them,
//! would take four times as much.
#![forbid(unsafe_code)]

use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::fixture;
use latscope_core::histogram::Histogram;
use latscope_core::plan::ParamValue;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Measurement, Report, Warning};
use latscope_core::rounds::RoundSummary;
use latscope_core::value::{Better, MeasuredQuantity};
use latscope_judge::compare::{self, compare_runs};
use latscope_judge::findings::collect_findings;
use latscope_judge::imports::read_report;
use latscope_judge::merge::merge;
use latscope_judge::runs::RunResult;
use latscope_os::allocation::{CountingAllocator, measure_allocations};
use latscope_views::{self as views, DisplayOptions};
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Makes a list of a report this long.
type Longer = fn(&mut Report, usize);

fn points(report: &mut Report, length: usize, change: impl Fn(&mut Measurement, usize)) {
    // A few values, so that lists and not histograms are the work.
    let mut histogram = Histogram::new(1);
    (0..20).for_each(|at| histogram.record(5_000 + at % 3));
    let point = Measurement { blocks: Vec::new(), histogram, ..report.measurements[0].clone() };
    report.measurements = (0..length)
        .map(|at| {
            let mut m = point.clone();
            m.params.insert("seed".to_owned(), ParamValue::Number(at as u64));
            change(&mut m, at);
            m.derive_results();
            m
        })
        .collect();
}

fn reason(at: usize, text: &str) -> Reason {
    Reason::new(
        QualityLevel::Degraded,
        &format!("{text}{at}"),
        format!("{text} {at}"),
        format!("{text} remedy {at}"),
    )
}

/// The lists of a result, all of whose items differ.
const LISTS: &[(&str, Longer)] = &[
    ("points", |report, length| points(report, length, |_, _| {})),
    ("points of other probes", |report, length| {
        points(report, length, |m, at| m.probe = format!("cpu.probe{at}"));
    }),
    ("points of other families", |report, length| {
        points(report, length, |m, at| m.probe = format!("family{at}.probe"));
    }),
    ("points with reasons", |report, length| {
        points(report, length, |m, at| m.quality.add_reason(reason(at, "text")));
    }),
    ("points without figures", |report, length| {
        points(report, length, |m, at| {
            m.rounds.clear();
            m.quality.add_reason(Reason { level: QualityLevel::Unsupported, ..reason(at, "text") });
        });
    }),
    ("points with reasons of CPUs", |report, length| {
        points(report, length, |m, at| m.quality.add_reason(reason(0, &format!("CPU {at} waited"))));
    }),
    ("points of two parameters", |report, length| {
        points(report, length, |m, at| {
            m.params.insert("size".to_owned(), ParamValue::Number(64 * at as u64));
            m.params.insert("touched".to_owned(), ParamValue::Text(format!("t{at}")));
        });
    }),
    ("points of pairs", |report, length| {
        points(report, length, |m, at| {
            m.params.insert("pair".to_owned(), ParamValue::Text(format!("{}-{}", 2 * at, 2 * at + 1)));
        });
    }),
    ("points of nodes", |report, length| {
        points(report, length, |m, at| {
            m.params.insert("nodes".to_owned(), ParamValue::Text(format!("{at}")));
            m.params.insert("cpu-nodes".to_owned(), ParamValue::Text(format!("{at}")));
        });
    }),
    ("rounds", |report, length| {
        let round = RoundSummary {
            count: 1,
            min: Some(5.0),
            p50: Some(5.0),
            max: Some(5.0),
            ..RoundSummary::default()
        };
        report.measurements[0].rounds = vec![round; length];
    }),
    ("reasons of a point", |report, length| {
        report.measurements[0].quality.reasons = (0..length).map(|at| reason(at, "text")).collect();
    }),
    ("values of a point", |report, length| {
        let value = MeasuredQuantity { value: 1.0, unit: "ns".to_owned(), better: Better::Less };
        report.measurements[0].values = (0..length).map(|at| (format!("value{at}"), value.clone())).collect();
    }),
    ("parameters of a point", |report, length| {
        let param = |at: usize| (format!("param{at}"), ParamValue::Number(1));
        report.measurements[0].params.extend((0..length).map(param));
    }),
    ("warnings", |report, length| {
        let warning = |at: usize| Warning { id: format!("w{at}"), text: format!("text {at}"), remedy: None };
        report.warnings = (0..length).map(warning).collect();
    }),
    ("labels", |report, length| {
        report.labels = (0..length).map(|at| (format!("label{at}"), "x".to_owned())).collect();
    }),
];

/// Function that works on a report.
type Work = fn(&Report);

/// Facts on all probes, which are made before anything is counted.
static CATALOGUE: LazyLock<ProbeCatalogue> = LazyLock::new(latscope_probes::catalogue);

fn with_options(work: impl FnOnce(&DisplayOptions)) {
    work(&DisplayOptions { catalogue: &CATALOGUE, ..DisplayOptions::default() });
}

/// What commands do with a result.
const WORKS: &[(&str, Work)] = &[
    ("read", |report| drop(read_report(report.to_json().as_bytes()))),
    ("merge", |report| drop(merge(vec![("a".to_owned(), report.clone()), ("b".to_owned(), report.clone())]))),
    ("compare", |report| {
        let (a, b) = (RunResult::from_report(report.clone()), RunResult::from_report(report.clone()));
        drop(compare_runs(&[&a, &a], &[&b, &b], &compare::ComparisonOptions::default()));
    }),
    ("findings", |report| drop(collect_findings(report, &CATALOGUE))),
    ("all", |report| with_options(|options| drop(views::text::format_families(report, options)))),
    ("table", |report| with_options(|options| drop(views::table::format_table(report, &[], options)))),
    ("survey", |report| with_options(|options| drop(views::survey::survey(report, &[], options)))),
    ("events", |report| with_options(|options| drop(views::groups::format_events(report, options)))),
    ("overview", |report| with_options(|options| drop(views::overview::overview(report, &[], &[], options)))),
    ("CSV", |report| drop((views::csv::report_csv(report), views::csv::long(report)))),
    ("Markdown", |report| {
        with_options(|options| drop(views::markdown::format_report(report, &[], true, options)))
    }),
    ("HTML", |report| drop(views::html::report_page(report, &[], &CATALOGUE))),
    ("OpenMetrics", |report| drop(views::openmetrics::openmetrics(report))),
    ("pictures", |report| drop(views::figure::pictures(report, &CATALOGUE))),
];

/// Length of the shorter list.
const LENGTH: usize = 64;

/// The calls and bytes that a work allocates for a list of some length.
fn cost(longer: Longer, work: Work, length: usize) -> [u64; 2] {
    let mut report = fixture::wake();
    longer(&mut report, length);
    let (calls, bytes) = measure_allocations(|| work(&report));
    [calls, bytes]
}

/// Returns true if costs of a length, of twice and of four times that length grow more than in proportion. What is
/// constant is gone in their differences, of which the second is twice the first in linear work, and four times the
/// first in quadratic work. A buffer that doubles costs up to three times as much at once.
fn grows_faster([once, twice, four]: [u64; 3]) -> bool {
    let (first, second) = (twice.saturating_sub(once), four.saturating_sub(twice));
    // A long list can have a shorter view, after which only the whole says how it grows.
    second > 13 * first / 4 + 64 && four > 11 * twice / 5
}

#[test]
fn linear_and_quadratic_costs_are_distinguished() {
    let costs = |cost: fn(u64) -> u64| [100, 200, 400].map(cost);
    assert!(
        !grows_faster(costs(|n| 5_000 + 30 * n)) && !grows_faster(costs(|n| 40 * n * u64::from(n.ilog2())))
    );
    assert!(grows_faster(costs(|n| 5_000 + 30 * n + n * n)));
    assert!(!grows_faster([9_000, 5_000, 9_000]));
}

#[test]
fn twice_as_long_a_list_takes_about_twice_the_work() {
    LazyLock::force(&CATALOGUE);
    let mut wrong = Vec::new();
    for (list, longer) in LISTS {
        for (name, work) in WORKS {
            let [once, twice, four] = [1, 2, 4].map(|factor| cost(*longer, *work, factor * LENGTH));
            for (at, unit) in ["calls", "bytes"].into_iter().enumerate() {
                if grows_faster([once[at], twice[at], four[at]]) {
                    wrong.push(format!("{name} of {list}: {} {} {} {unit}", once[at], twice[at], four[at]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
