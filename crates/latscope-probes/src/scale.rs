//! Plans of simulated machines of 2 to 1,024 CPUs: their time by the estimate of a run, their points, and the size of a
//! result. No machine of this size was there: the CPUs are those of a fixture, and the samples are drawn.

use crate::{PlanInput, Probe, Profile, REGISTRY, all, find, setup_s};
use latscope_core::catalogue::Samples;
use latscope_core::fixture;
use latscope_core::fixture::machines::many;
use latscope_core::histogram::Histogram;
use latscope_core::machine::Machine;
use latscope_core::plan::{Plan, Point, Step};
use latscope_core::report::{Block, Measurement, Report, Sampling};
use latscope_core::statistics::SplitMix;
use latscope_engine::planner::{Request, plan};
use latscope_engine::remaining;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const CPUS: [u32; 5] = [2, 16, 64, 256, 1024];

/// Rows of a plan on machines of so many CPUs: name, seconds, points, bytes.
type Row = (&'static str, Vec<(f64, usize, usize)>);

/// A command whose plan depends on the CPUs.
struct Command {
    name: &'static str,
    survey: bool,
    profile: Profile,
    rounds: u32,
    only: Option<&'static str>,
}

const COMMANDS: [Command; 3] = [
    Command { name: "survey --quick", survey: true, profile: Profile::Quick, rounds: 3, only: None },
    Command { name: "survey", survey: true, profile: Profile::Normal, rounds: 8, only: None },
    Command {
        name: "sync core-to-core",
        survey: false,
        profile: Profile::Normal,
        rounds: 8,
        only: Some("sync.core-to-core"),
    },
];

fn planned(command: &Command, machine: &Machine) -> Plan {
    let input = PlanInput {
        profile: command.profile,
        survey: command.survey,
        values: Default::default(),
        directories: vec![],
    };
    let wanted = |probe: &&Probe| command.only.map_or(!probe.by_name_only, |only| probe.id == only);
    let probes: Vec<&'static Probe> = all().filter(wanted).collect();
    let job = if command.survey { "survey" } else { "sync" };
    plan(&REGISTRY, &probes, &Request { rounds: command.rounds, ..Request::new(job, input) }, machine)
}

/// Measurement of a point with as many samples as one round has, drawn within 5 % of 1 µs.
fn drawn(step: &Step, point: &Point, random: &mut SplitMix) -> Measurement {
    let probe = find(&point.probe).unwrap();
    let batches = probe.samples == Samples::Batches;
    let count = if batches { step.stop.samples } else { step.stop.events }.min(2_000);
    let mut histogram = Histogram::new(1000);
    for _ in 0..count {
        histogram.record(950 + random.below(100));
    }
    let sampling = if batches { Sampling::Batch { ops: 1000 } } else { Sampling::Event };
    let block = Block { from: random.below(1 << 35), count, sum: 1000 * count, max: 1049, median: 1000 };
    Measurement { blocks: vec![block], ..Measurement::of(point.clone(), sampling, probe.times, histogram) }
}

/// The result of a plan, all of whose samples are drawn.
fn simulated(plan: Plan, machine: &Machine) -> Report {
    let mut random = SplitMix::new(1);
    let mut measurements = Vec::new();
    for step in &plan.steps {
        for point in &step.points {
            let mut all = drawn(&step.in_round(0), point, &mut random);
            for round in 1..step.rounds {
                all.add_round(drawn(&step.in_round(round), point, &mut random));
            }
            all.settle();
            measurements.push(all);
        }
    }
    Report {
        plan,
        machine: machine.clone(),
        measurements,
        findings: vec![],
        warnings: vec![],
        ..fixture::report()
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for command in &COMMANDS {
        let mut row = Vec::new();
        for cpus in CPUS {
            let machine = many(cpus);
            let plan = planned(command, &machine);
            let seconds = remaining::expected(&plan, setup_s).unwrap().as_secs_f64();
            let points = plan.steps.iter().map(|step| step.points.len()).sum();
            row.push((seconds, points, simulated(plan, &machine).to_json().len()));
        }
        rows.push((command.name, row));
    }
    rows
}

/// The table of the page. Sizes are rounded, so that it changes with the plans alone.
fn table(rows: &[Row]) -> String {
    let mut text = String::from("| CPUs |");
    for (name, _) in rows {
        let _ = write!(text, " `{name}` |");
    }
    text += "\n|---|";
    text += &"---|".repeat(rows.len());
    for (at, cpus) in CPUS.iter().enumerate() {
        let _ = write!(text, "\n| {cpus} |");
        for (_, row) in rows {
            let (seconds, points, bytes) = row[at];
            let _ = write!(text, " {seconds:.0} s, {points} points, {:.1} MB |", bytes as f64 / 1e6);
        }
    }
    text + "\n"
}

/// Colours of the curves.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// Place of so many CPUs and seconds in the picture.
fn place(cpus: f64, seconds: f64) -> (f64, f64) {
    (60.0 + 44.0 * cpus.log2(), 220.0 - 90.0 * seconds.log10())
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{words}</text>");
}

/// Planned time by CPUs, both axes logarithmic.
fn picture(rows: &[Row]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"270\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
    );
    text(&mut svg, (60.0, 18.0), "start", "Planned time by number of CPUs: simulated, nothing was measured");
    for seconds in [1.0, 10.0, 100.0] {
        let (x, y) = place(2.0, seconds);
        let end = place(1024.0, seconds).0;
        let _ = writeln!(svg, "<path d=\"M{x:.0} {y:.0}H{end:.0}\" stroke=\"#e1e1e1\"/>");
        text(&mut svg, (x - 8.0, y + 4.0), "end", &format!("{seconds} s"));
    }
    for cpus in CPUS {
        text(&mut svg, (place(f64::from(cpus), 1.0).0, 240.0), "middle", &cpus.to_string());
    }
    text(&mut svg, (280.0, 260.0), "middle", "CPUs");
    for ((name, row), colour) in rows.iter().zip(COLOURS) {
        let places: Vec<(f64, f64)> =
            CPUS.iter().zip(row).map(|(cpus, (seconds, ..))| place(f64::from(*cpus), *seconds)).collect();
        let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.0},{y:.0}")).collect();
        let points = points.join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        let (x, y) = places[places.len() - 1];
        text(&mut svg, (x + 8.0, y + 4.0), "start", name);
    }
    svg + "</svg>\n"
}

const BEGIN: &str = "<!-- simulated -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn plans_of_many_cpus_are_those_on_the_page() {
    let rows = rows();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (page, file) = (docs.join("nodes.md"), docs.join("pictures/many-cpus.svg"));
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{}{END}{after}", table(&rows));
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        fs::write(&page, &made).unwrap();
        fs::write(&file, picture(&rows)).unwrap();
    }
    let again = "`LATSCOPE_RECORD=1 cargo test -p latscope-probes --lib scale` records it again";
    assert_eq!(made, fs::read_to_string(page).unwrap(), "{again}");
    assert!(picture(&rows) == fs::read_to_string(file).unwrap(), "docs/pictures/many-cpus.svg: {again}");
}

#[test]
fn all_pairs_of_many_cpus_are_planned_once_each() {
    let mut input = PlanInput {
        profile: Profile::Normal,
        survey: false,
        values: Default::default(),
        directories: vec![],
    };
    input.values.insert("all-pairs".to_owned(), vec!["yes".into()]);
    let probes = [find("sync.core-to-core").unwrap()];
    let plan = plan(&REGISTRY, &probes, &Request::new("sync", input), &many(256));
    assert_eq!(plan.steps[0].points.len(), 256 * 255 / 2);
}
