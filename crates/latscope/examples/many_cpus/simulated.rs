//! Plans and results of machines of many CPUs. Nothing is measured: the CPUs are those of a fixture, the time is the
//! estimate that a run shows before it begins, and the samples are drawn.

use latscope_core::catalogue::{ProbeSampleKind, ids};
use latscope_core::fixture;
use latscope_core::fixture::machines::many;
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{MeasurementPoint, Plan, Stop};
use latscope_core::report::{Account, Contention, Measurement, Report, SampleBlock, Sampling};
use latscope_core::statistics::SplitMix;
use latscope_engine::planner::{RunRequest, plan_probes};
use latscope_engine::{collect, remaining};
use latscope_judge::verdict::tested;
use latscope_probes::{
    PlanInput, Probe, REGISTRY, SurveyProfile, all_probes, catalogue, find_probe, setup_s,
};
use latscope_views::figure;

/// Numbers of CPUs of the table.
pub const CPUS: [u32; 4] = [16, 64, 256, 1024];

/// Command whose plan depends on the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `latscope survey --quick`.
    Quick,
    /// `latscope survey`.
    Survey,
    /// `latscope sync core-to-core --all-pairs`.
    AllPairs,
}

impl Command {
    /// Plan of the command on a machine of so many CPUs.
    pub fn plan(self, cpus: u32) -> Plan {
        let profile = if self == Command::Quick { SurveyProfile::Quick } else { SurveyProfile::Normal };
        let mut input = PlanInput { profile, survey: self != Command::AllPairs, ..PlanInput::default() };
        let (job, rounds) = match self {
            Command::Quick => ("survey", 3),
            Command::Survey => ("survey", 8),
            Command::AllPairs => ("sync", 3),
        };
        let mut probes: Vec<&'static Probe> = all_probes().filter(|probe| !probe.by_name_only).collect();
        if self == Command::AllPairs {
            input.values.insert("all-pairs".to_owned(), vec!["yes".into()]);
            probes.retain(|probe| probe.id == ids::CORE_TO_CORE);
        }
        plan_probes(&REGISTRY, &probes, &RunRequest { rounds, ..RunRequest::new(job, input) }, &many(cpus))
    }
}

/// Time and size of a command.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Planned time, s.
    pub seconds: f64,
    /// Number of points.
    pub points: usize,
    /// Size of the result as JSON.
    pub bytes: usize,
}

impl Figures {
    /// Figures of the result of a plan.
    pub fn of(report: &Report) -> Figures {
        let plan = &report.plan;
        Figures {
            seconds: remaining::expected(plan, setup_s).expect("each step has a limit").as_secs_f64(),
            points: plan.steps.iter().map(|step| step.points.len()).sum(),
            bytes: report.to_json().len(),
        }
    }

    /// Cell of the table.
    fn cell(&self) -> String {
        format!(" {:.1} s, {} points, {:.1} MB |", self.seconds, self.points, self.bytes as f64 / 1e6)
    }
}

/// Result of a command on a machine of so many CPUs, all of whose samples are drawn.
pub fn result(command: Command, cpus: u32) -> Report {
    let (plan, machine) = (command.plan(cpus), many(cpus));
    let mut random = SplitMix::new(1);
    let mut measurements = Vec::new();
    for step in &plan.steps {
        let stops: Vec<Stop> = (0..step.rounds).map(|round| step.stop_in_round(round)).collect();
        let first = measurements.len();
        for point in &step.points {
            measurements.push(measured(&stops, point, &machine, &mut random));
        }
        let merged = collect::merge_points(&REGISTRY, &measurements[first..]);
        measurements.extend(merged);
    }
    let mut report =
        Report { plan, machine, measurements, findings: vec![], warnings: vec![], ..fixture::report() };
    tested::record_evidence(&mut report);
    report
}

fn measured(
    stops: &[Stop],
    point: &MeasurementPoint,
    machine: &Machine,
    random: &mut SplitMix,
) -> Measurement {
    let mut whole = drawn(&stops[0], point, machine, random);
    for stop in &stops[1..] {
        whole.add_round(drawn(stop, point, machine, random));
    }
    whole.derive_results();
    whole
}

/// Most blocks of a round, for batches and for events.
const BLOCKS: [u64; 2] = [16, 256];

/// A point in one round: samples within 5 % of 1 µs, the blocks and the account of CPU time that a round has.
fn drawn(stop: &Stop, point: &MeasurementPoint, machine: &Machine, random: &mut SplitMix) -> Measurement {
    let probe = find_probe(&point.probe).expect("a planned probe is known");
    let batches = probe.samples == ProbeSampleKind::Batches;
    let (sampling, tick_ps, most) = match batches {
        true => (Sampling::Batch { ops: 1000 }, 1, BLOCKS[0]),
        false => (Sampling::Event, 1000, BLOCKS[1]),
    };
    let count = if batches { stop.samples } else { stop.events }.min(2_000);
    let middle = 1_000_000 / tick_ps;
    let mut histogram = Histogram::new(tick_ps);
    for _ in 0..count {
        histogram.record(middle - middle / 20 + random.below(middle / 10));
    }
    let from = random.below(1 << 35);
    let each = count.div_ceil(most);
    let block = |at: u64| SampleBlock {
        from: from + at * 1_000_000,
        count: each,
        sum: each * middle,
        max: middle,
        median: middle,
    };
    let cpus = machine.allowed.0.len() as u32;
    let account = Account {
        wall_ns: 123_456_789,
        cpus,
        ran_ns: 98_765_432,
        others: 0.012_345_678,
        ..Account::default()
    };
    let contention = Contention {
        wall_ns: 123_456_789,
        run_delay_ns: Some(1_234_567),
        distorts: true,
        ..Contention::default()
    };
    Measurement {
        blocks: (0..count / each).map(block).collect(),
        account: Some(account),
        contention: Some(contention),
        ..Measurement::from_samples(point.clone(), sampling, probe.times, histogram)
    }
}

/// Part of a row of the table that is of surveys, and the figures of the usual one.
pub fn row_of_surveys(cpus: u32) -> (String, [Figures; 2]) {
    let both = [Command::Quick, Command::Survey].map(|command| Figures::of(&result(command, cpus)));
    (format!("| {cpus} |{}{}", both[0].cell(), both[1].cell()), both)
}

/// Part of a row of the table that is of all pairs, and the bytes of their map as SVG.
pub fn row_of_pairs(cpus: u32) -> (String, usize) {
    let report = result(Command::AllPairs, cpus);
    let pictures = figure::pictures(&report, &catalogue());
    let map = pictures.iter().find(|picture| picture.id == "sync-core-to-core-cas").expect("a map is drawn");
    let bytes = figure::document_of(&map.drawing).len();
    (format!("{} {:.0} kB |", Figures::of(&report).cell(), bytes as f64 / 1e3), bytes)
}

/// Colours of the curves, with their names.
const CURVES: [(&str, &str); 3] =
    [("#0072b2", "survey --quick"), ("#d55e00", "survey"), ("#009e73", "sync core-to-core --all-pairs")];

/// Place of so many CPUs and seconds in the picture, whose axes are logarithmic.
fn place(cpus: f64, seconds: f64) -> (f64, f64) {
    (60.0 + 66.0 * (cpus.log2() - 4.0), 220.0 - 60.0 * seconds.log10())
}

fn write(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    *svg += &format!("<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{words}</text>\n");
}

/// Numbers before ` s` in the cells of a row.
fn times(row: &str) -> Vec<f64> {
    let number = |cell: &str| cell.split_once(" s,")?.0.trim().parse().ok();
    row.split('|').filter_map(number).collect()
}

/// Picture of the planned times in rows of the table.
pub fn picture(rows: &[&str]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"270\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
    );
    write(&mut svg, (60.0, 18.0), "start", "Planned time by number of CPUs: simulated, nothing was measured");
    for seconds in [1.0, 10.0, 100.0, 1000.0] {
        let ((x, y), (end, _)) = (place(16.0, seconds), place(1024.0, seconds));
        svg += &format!("<path d=\"M{x:.0} {y:.0}H{end:.0}\" stroke=\"#e1e1e1\"/>\n");
        write(&mut svg, (x - 8.0, y + 4.0), "end", &format!("{seconds} s"));
    }
    for cpus in CPUS {
        write(&mut svg, (place(cpus.into(), 1.0).0, 240.0), "middle", &cpus.to_string());
    }
    write(&mut svg, (258.0, 260.0), "middle", "CPUs");
    for (at, (colour, name)) in CURVES.iter().enumerate() {
        let on_curve = |(cpus, row): (&u32, &&str)| place((*cpus).into(), times(row)[at]);
        let places: Vec<(f64, f64)> = CPUS.iter().zip(rows).map(on_curve).collect();
        let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.0},{y:.0}")).collect();
        let points = points.join(" ");
        svg += &format!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n"
        );
        let (x, y) = places[places.len() - 1];
        write(&mut svg, (x + 8.0, y + 4.0), "start", name);
    }
    svg + "</svg>\n"
}
