//! Time that a cache line takes from one core to another and back.

use super::all_pairs::{self, CpuPairPoint};
use super::lines::{PingPongLines, PingPongLoop};
use super::placement;
use super::thread_group::{BatchWork, ThreadGroup};
use crate::available;
use crate::classes::{self, CpuPairClass, CpuTopologyMap};
use crate::prelude::*;

probes! {
    EXPERIMENT, LineTransferSettings, plan_transfers, ..ProbeFacts::BATCHES;
    CORE_TO_CORE "sync.core-to-core", "core to core, round trip of a cache line",
        "the processor's cache coherence protocol",
        "One thread writes a cache line, the other sees it and answers, the first sees the answer; both spin, each on its own CPU."
        { times: Semantics::RoundTrip, sensitive_to: &[Condition::SharedCore], };
}

static EXPERIMENT: Experiment = Experiment::new("sync.core-to-core", Cpus::All, run_transfers)
    .setup_per_point(0.005)
    .setup_once(0.3)
    .fewer_rounds(4, placement::AWAKE);

words! {
    /// Lines that go between the cores.
    enum CoreTransferMode {
        /// A single line that both change by compare and exchange.
        Cas = "cas",
        /// A line for each direction.
        TwoLines = "two-lines",
    }
}

settings! {
    /// CPUs, and lines between them.
    struct LineTransferSettings, requested as LineTransferRequest {
        /// The two CPUs.
        pair: String, axis;
        /// One line that both change by compare-and-exchange, or a line for each direction.
        mode: CoreTransferMode;
        /// All pairs of CPUs, as many at the same time as there are CPUs for. Some of each class are measured again,
        /// alone and at once in turn; if that surely differs by more than 5 %, all of the class are measured alone.
        all_pairs("all-pairs"): Option<AllPairs>;
        /// The CPU of the pair on whose node the lines are, where asked for: they are on a fresh page that it touches
        /// first. Without it they are on the node of the first CPU.
        home: Option<LineHome>;
        /// Nearest thing that the two CPUs share.
        class: Option<String>;
        /// How the pair was measured in the end: `at-once` with others, or `alone`.
        taken: Option<String>;
    }
}

words! {
    /// CPU of a pair on whose node the lines are.
    enum LineHome {
        /// The one that asks.
        First = "first",
        /// The one that answers.
        Second = "second",
    }
}

words! {
    /// Measurement of all pairs.
    enum AllPairs {
        /// Many pairs at the same time.
        Yes = "yes",
    }
}

/// Pairs in a survey: all pairs of eight CPUs.
pub(super) const SURVEYED: usize = 28;

/// CPUs up to which a run of its own measures all pairs, one after the other; of more it measures some of each class.
const MOST_CPUS: usize = 64;

/// Pairs of a run of its own with more CPUs.
const SAMPLED: usize = 256;

/// Two CPUs and what they share.
pub(super) type CpuPairTopology = (u32, u32, Option<CpuPairClass>);

fn plan_transfers(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    if LineTransferRequest::of(input).all_pairs.given() {
        return all_pairs_of(input, machine);
    }
    let cpus = &machine.allowed.0;
    let total = cpus.len() * cpus.len().saturating_sub(1) / 2;
    let quick = input.survey && input.profile == SurveyProfile::Quick;
    let pairs = match cpus.as_slice() {
        // Reported as unsupported rather than left out.
        [only] => vec![(*only, *only, None)],
        _ if quick && total > SURVEYED => sample_pairs(machine, SURVEYED / 3),
        _ if input.survey => sample_pairs(machine, SURVEYED),
        _ if cpus.len() > MOST_CPUS => sample_pairs(machine, SAMPLED),
        _ => sample_pairs(machine, total),
    };
    let left_out = match total {
        total if total > pairs.len() => format!(" ({} of {total} pairs measured)", pairs.len()),
        _ => String::new(),
    };
    let mut classes: Vec<Option<CpuPairClass>> = Vec::new();
    let mut points = Vec::new();
    let asked = LineTransferRequest::of(input);
    let homes =
        if asked.home.given() { asked.home.or(&[]).into_iter().map(Some).collect() } else { vec![None] };
    let modes = asked.mode.or(CoreTransferMode::ALL);
    for (mode, home) in modes.iter().flat_map(|mode| homes.iter().map(move |home| (*mode, *home))) {
        for (a, b, class) in &pairs {
            // The first pair of each class is a row, and beside others it is named after the class.
            let first = !classes.contains(class);
            if first {
                classes.push(*class);
            }
            let place = match class {
                Some(class) if first => format!(", {}", class.word()),
                None if a == b => String::new(),
                _ => format!(" {a}-{b}"),
            };
            let lines = home.map_or(String::new(), |home| format!(", line of the {} CPU", home.word()));
            let title = format!("core to core{place}, {}{lines}{left_out}", mode.word().replace('-', " "));
            points.push({
                let pair = format!("{a}-{b}");
                let travel =
                    LineTransferSettings { pair, mode, all_pairs: None, home, class: None, taken: None };
                probe.make_point(travel, title, first)
            });
        }
        classes.clear();
    }
    points
}

/// Points of all pairs, measured many at the same time.
fn all_pairs_of(input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let pairs = CpuTopologyMap::of_machine(machine).pair_classes(&machine.allowed.0);
    let mut points = Vec::new();
    for mode in LineTransferRequest::of(input).mode.or(&[CoreTransferMode::Cas]) {
        for (a, b, class) in &pairs {
            let pair = format!("{a}-{b}");
            let title = format!("core to core {pair}, {}", mode.word().replace('-', " "));
            let class = Some(class.word().to_owned());
            let travel = LineTransferSettings {
                pair,
                mode,
                all_pairs: Some(AllPairs::Yes),
                home: None,
                class,
                taken: None,
            };
            points.push(CORE_TO_CORE.make_point(travel, title, false));
        }
    }
    points
}

/// At most `most` pairs, as many of each class as of the others, those of a class evenly spaced. A class is named if
/// there are several.
pub(super) fn sample_pairs(machine: &Machine, most: usize) -> Vec<CpuPairTopology> {
    let all = CpuTopologyMap::of_machine(machine).pair_classes(&machine.allowed.0);
    let mut classes: Vec<Vec<CpuPairTopology>> = Vec::new();
    for class in CpuPairClass::ALL {
        let members = all.iter().filter(|pair| pair.2 == *class);
        classes.push(members.map(|(a, b, class)| (*a, *b, Some(*class))).collect());
    }
    classes.retain(|members| !members.is_empty());
    let several = classes.len() > 1;
    let mut pairs = classes::sample(classes, most);
    pairs.sort_by_key(|(a, b, _)| (*a, *b));
    if !several {
        pairs.iter_mut().for_each(|pair| pair.2 = None);
    }
    pairs
}

fn run_transfers(bench: &mut Bench) -> Result<()> {
    if bench.cpus().len() > 1 {
        placement::warm_up_cpus(bench);
    }
    let points = bench.points();
    run_all_pairs(bench, &points)?;
    let one_by_one = points.iter().enumerate().filter(|(_, point)| !point.params.contains_key("all-pairs"));
    for (index, point) in one_by_one {
        let measured = measure_pair(bench, index, point);
        close_failed(bench, &[index], measured, "");
    }
    Ok(())
}

/// Measures the points of all pairs, if there are any.
fn run_all_pairs(bench: &mut Bench, points: &[MeasurementPoint]) -> Result<()> {
    for mode in CoreTransferMode::ALL {
        let mut pairs = Vec::new();
        for (index, point) in points.iter().enumerate().filter(|(_, p)| p.params.contains_key("all-pairs")) {
            let travel = LineTransferSettings::read(point)?;
            if travel.mode == *mode {
                let class = travel.class.unwrap_or_default();
                pairs.push(CpuPairPoint { point: index, cpus: cpus_of(&travel.pair)?, class });
            }
        }
        if pairs.is_empty() {
            continue;
        }
        let all: Vec<usize> = pairs.iter().map(|pair| pair.point).collect();
        let measured = all_pairs::measure_pairs(bench, &pairs, (asking_loop(*mode), answering_loop(*mode)));
        close_failed(bench, &all, measured, "allow the CPUs and more threads");
    }
    Ok(())
}

/// The two CPUs of `a-b`.
pub(super) fn cpus_of(pair: &str) -> Result<(u32, u32)> {
    let (here, there) = pair.split_once('-').context("a pair is two CPUs, a-b")?;
    Ok((here.parse()?, there.parse()?))
}

fn measure_pair(bench: &mut Bench, index: usize, point: &MeasurementPoint) -> Result<()> {
    let LineTransferSettings { pair, mode, home, .. } = LineTransferSettings::read(point)?;
    let (here, there) = cpus_of(&pair)?;
    if here == there {
        available::lacks_a_cpu(bench, index);
        return Ok(());
    }
    // Fresh pages for each pair, first touched on the CPU whose node they shall be of.
    threads::pin(if home == Some(LineHome::Second) { there } else { here })?;
    let lines = SharedCell::<PingPongLines>::create_zeroed(SharingScope::Threads)?;
    threads::pin(here)?;
    let answer = answering_loop(mode);
    let theirs = lines.clone();
    let mut turn = 0;
    let share: BatchWork = Box::new(move |iterations, _| {
        answer(&theirs, turn, iterations);
        turn += iterations;
        iterations
    });
    let thread_group = ThreadGroup::start_helpers(bench.timebase(), vec![(there, share)])?;
    let input = asking_loop(mode);
    let mut turn = 0;
    thread_group.measure_batches(bench, index, 1, |iterations| {
        input(&lines, turn, iterations);
        turn += iterations;
    });
    thread_group.stop_helpers();
    if let Some(median) = bench.median(index) {
        bench.add_value(index, "one-way", median / 2.0, "ns", Better::Less);
    }
    Ok(())
}

fn asking_loop(mode: CoreTransferMode) -> PingPongLoop {
    if mode == CoreTransferMode::Cas { |lines, _, count| swap(lines, 0, 1, count) } else { ask_by_two_lines }
}

fn answering_loop(mode: CoreTransferMode) -> PingPongLoop {
    if mode == CoreTransferMode::Cas {
        |lines, _, count| swap(lines, 1, 0, count)
    } else {
        answer_by_two_lines
    }
}

/// Waits for `from` and makes it `to`, `count` times. Each attempt wants the
/// line for itself, as a lock does that many wait for.
fn swap(lines: &PingPongLines, from: u64, to: u64, count: u64) {
    for _ in 0..count {
        while lines[0].signal.compare_exchange_weak(from, to, Ordering::AcqRel, Ordering::Relaxed).is_err() {}
    }
}

fn ask_by_two_lines(lines: &PingPongLines, turn: u64, count: u64) {
    for number in turn + 1..=turn + count {
        lines[0].signal.store(number, Ordering::Release);
        while lines[1].signal.load(Ordering::Acquire) != number {}
    }
}

fn answer_by_two_lines(lines: &PingPongLines, turn: u64, count: u64) {
    for number in turn + 1..=turn + count {
        while lines[0].signal.load(Ordering::Acquire) != number {}
        lines[1].signal.store(number, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;
    use latscope_engine::planner::{self, RunRequest};
    use std::collections::BTreeSet;

    fn planned(cpus: &str, survey: bool) -> Vec<MeasurementPoint> {
        let machine = Machine { allowed: cpus.parse().unwrap(), ..Machine::default() };
        CORE_TO_CORE.plan(&PlanInput { survey, ..harness::input() }, &machine)
    }

    #[test]
    fn every_pair_is_planned_once_for_each_mode() {
        let pairs: Vec<_> = planned("0,2-3", true).iter().map(|p| p.text_param("pair").to_owned()).collect();
        assert_eq!(pairs, ["0-2", "0-3", "2-3", "0-2", "0-3", "2-3"]);
        assert_eq!(planned("5", true)[0].text_param("pair"), "5-5");
        assert_eq!(planned("5", true)[0].title, "core to core, cas");
    }

    #[test]
    fn only_pairs_of_the_chosen_cpus_are_planned() {
        let machine = Machine { allowed: "0-7".parse().unwrap(), ..Machine::default() };
        let pairs = |cpus: &[u32], all_pairs: bool| {
            let mut input = PlanInput { survey: false, ..harness::input() };
            if all_pairs {
                input.values.insert("all-pairs".into(), vec!["yes".into()]);
            }
            let request = RunRequest { cpus: cpus.to_vec(), ..RunRequest::new("sync", input) };
            let plan = planner::plan_probes(&crate::REGISTRY, &[&CORE_TO_CORE], &request, &machine);
            let pairs = plan.steps[0].points.iter().map(|point| point.text_param("pair").to_owned());
            pairs.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(pairs(&[2, 5, 6], false), ["2-5", "2-6", "5-6"]);
        assert_eq!(pairs(&[2, 5, 6], true), ["2-5", "2-6", "5-6"]);
        assert_eq!(pairs(&[3], false), ["3-3"]);
        assert_eq!(pairs(&[], false).len(), 28);
    }

    #[test]
    fn a_survey_has_a_row_and_some_pairs_of_each_class() {
        use latscope_core::fixture::machines;
        let plan_for = |machine: &Machine, profile| {
            CORE_TO_CORE.plan(&PlanInput { survey: true, profile, ..PlanInput::default() }, machine)
        };
        let points = plan_for(&machines::two_packages(), SurveyProfile::Normal);
        assert_eq!(points.len(), 2 * SURVEYED);
        let rows: Vec<&str> = points.iter().filter(|p| p.row).map(|p| p.title.as_str()).take(4).collect();
        let expected = ["same last cache", "same node", "other package", "threads of a core"]
            .map(|class| format!("core to core, {class}, cas (28 of 73536 pairs measured)"));
        let mut rows: Vec<String> = rows.into_iter().map(str::to_owned).collect();
        rows.sort();
        let mut wanted = expected.to_vec();
        wanted.sort();
        assert_eq!(rows, wanted);
        assert_eq!(plan_for(&machines::thousand(), SurveyProfile::Quick).len(), 2 * (SURVEYED / 3));
        let sparse = plan_for(&machines::sparse(), SurveyProfile::Normal);
        assert!(sparse.iter().any(|point| point.text_param("pair").ends_with("-1503")));
    }

    #[test]
    fn a_survey_of_many_cpus_measures_some_pairs_and_says_so() {
        let machine = Machine { allowed: "0-15".parse().unwrap(), ..Machine::default() };
        let some = CORE_TO_CORE.plan(&PlanInput { survey: true, ..PlanInput::default() }, &machine);
        assert_eq!(some.len(), 2 * SURVEYED);
        assert!(some[0].title.ends_with("(28 of 120 pairs measured)"), "{}", some[0].title);
        assert_eq!((some[0].text_param("pair"), some[27].text_param("pair")), ("0-1", "14-15"));
        assert_eq!(planned("0-15", false).len(), 2 * 120);
        let many = planned("0-99", false);
        assert_eq!(many.len(), 2 * SAMPLED);
        assert!(many[0].title.ends_with("(256 of 4950 pairs measured)"));
    }

    #[test]
    fn the_lines_are_of_the_node_of_either_cpu_where_asked_for() {
        let mut input = PlanInput { survey: false, ..harness::input() };
        input.values.insert("home".into(), vec!["first".into(), "second".into()]);
        let points = CORE_TO_CORE.plan(&input, &harness::machine());
        assert_eq!(
            points.iter().filter(|point| point.text_param("home") == "second").count() * 2,
            points.len()
        );
        assert!(points[0].title.contains(", line of the first CPU"), "{}", points[0].title);
        harness::measure(&EXPERIMENT, points).iter().for_each(harness::check);
    }

    #[test]
    fn all_pairs_are_measured_at_once_or_again_alone() {
        let mut input = PlanInput { survey: false, ..harness::input() };
        input.values.insert("all-pairs".into(), vec!["yes".into()]);
        let points = CORE_TO_CORE.plan(&input, &harness::machine());
        let cpus = harness::machine().allowed.0.len();
        assert_eq!(points.len(), cpus * (cpus - 1) / 2);
        for m in harness::measure(&EXPERIMENT, points) {
            harness::check(&m);
            let taken = m.params["taken"].to_string();
            assert!(["alone", "at-once"].contains(&taken.as_str()), "{taken}");
        }
    }

    #[test]
    fn lines_travel_in_both_modes() {
        for m in harness::measure(&EXPERIMENT, harness::points(&CORE_TO_CORE)) {
            harness::check(&m);
            assert_eq!(m.values.contains_key("one-way"), m.quality.level != QualityLevel::Unsupported);
        }
    }
}
