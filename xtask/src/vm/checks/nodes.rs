//! Checks on a machine of 16 CPUs in two packages and four NUMA nodes, one of them without a CPU, whose firmware states
//! distances (SLIT) and latencies (HMAT).

use super::{VmCheck, VmKernel};
use crate::vm::boot::VirtualMachine;
use anyhow::{Result, ensure};
use latscope_core::param;
use latscope_core::report::Measurement;
use std::collections::BTreeSet;

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new(
        "memory is on the node that it was bound to, page by page",
        &[VmKernel::Std],
        PLACED,
        |ran| {
            let report = ran.parse_report()?;
            let pairs: BTreeSet<_> = report.measurements.iter().map(Measurement::nodes).collect();
            ensure!(pairs.len() == NODES_WITH_CPUS * NODES, "pairs of nodes: {pairs:?}");
            // Idle and single loads, on small and huge pages.
            ensure!(report.measurements.len() == 4 * pairs.len(), "{} points", report.measurements.len());
            ensure!(
                report.machine.nodes.iter().filter(|node| node.cpus.0.is_empty()).count() == 1,
                "{:?}",
                report.machine.nodes
            );
            ensure!(report.machine.claimed_latency(0, 3) == Some(190), "{:?}", report.machine.nodes);
            report.measurements.iter().try_for_each(check_placement)
        },
    )
    .with_time_limit(300),
    VmCheck::new("the matrix of nodes is one screen", &[VmKernel::Std], SCREEN, |ran| {
        // The columns are as wide as their cells.
        let head = ran.stdout.lines().find(|line| line.contains("CPUs of node")).unwrap_or_default();
        let found: Vec<&str> = head.split_whitespace().collect();
        let columns = "CPUs of node memory 0 memory 1 memory 2 memory 3";
        ensure!(found.join(" ") == columns, "{head:?} in: {}", ran.stdout);
        ran.check_stdout("behind · what firmware states")?;
        ensure!(ran.stdout.lines().count() <= 50, "{}", ran.stdout);
        Ok(())
    })
    .with_time_limit(300),
    VmCheck::new("each class of pairs of CPUs has its row", &[VmKernel::Std], PAIRS, |ran| {
        let report = ran.parse_report()?;
        for class in ["other node", "other package"] {
            let title = format!("core to core, {class}, cas");
            ensure!(
                report.measurements.iter().any(|m| m.row && m.title.starts_with(&title)),
                "no {title:?} in {:?}",
                report.measurements.iter().map(|m| &m.title).collect::<Vec<_>>()
            );
        }
        Ok(())
    })
    .with_time_limit(300),
];

const NODES: usize = 4;
const NODES_WITH_CPUS: usize = 3;

const PLACED: &str = "latscope memory latency --nodes all --size 8MiB --quick --rounds 1 --quiet --json -";
const SCREEN: &str = "latscope memory latency --nodes all --pages 4KiB --size 8MiB --quick --rounds 1";
const PAIRS: &str = "latscope survey --quick --rounds 1 --only sync.core-to-core --quiet --json -";

/// Checks that all pages of a point are on its node, by what move_pages(2) said.
fn check_placement(m: &Measurement) -> Result<()> {
    let pages = |name| m.values.get(name).map_or(-1.0, |value| value.value);
    let (there, elsewhere) = (pages("pages-on-node"), pages("pages-elsewhere"));
    ensure!(there >= 2048.0 && elsewhere == 0.0, "{}: {there} pages there, {elsewhere} elsewhere", m.title);
    let bound = m.text_param(param::BOUND);
    let wanted = m.nodes().map(|(_, node)| format!("bind {node}"));
    ensure!(bound == wanted.as_deref(), "{}: {bound:?}", m.title);
    Ok(())
}

/// Makes a machine one of these nodes.
pub fn shape(machine: &mut VirtualMachine) {
    (machine.cpus, machine.memory) = (16, 2 << 30);
    machine.topology = arguments();
}

/// Distance and latency (ns) that firmware states from a node with CPUs to each node.
const STATED: [[(u32, u32); NODES]; NODES_WITH_CPUS] = [
    [(10, 80), (16, 120), (28, 150), (32, 190)],
    [(16, 120), (10, 80), (28, 150), (36, 210)],
    [(28, 150), (28, 150), (10, 80), (40, 230)],
];

/// The emulator's arguments: four nodes of the same size on the CPUs of two packages.
fn arguments() -> Vec<String> {
    let mut words = vec!["-machine pc,hmat=on".to_owned(), "-smp 16,sockets=2,cores=8,threads=1".to_owned()];
    let cpus = ["cpus=0-3,", "cpus=4-7,", "cpus=8-15,", ""];
    let initiators = [0, 1, 2, 0];
    for node in 0..NODES {
        words.push(format!("-object memory-backend-ram,id=m{node},size=512M"));
        let (cpus, initiator) = (cpus[node], initiators[node]);
        words.push(format!("-numa node,nodeid={node},{cpus}memdev=m{node},initiator={initiator}"));
    }
    for (from, row) in STATED.iter().enumerate() {
        for (to, (distance, latency)) in row.iter().enumerate() {
            if to > from {
                words.push(format!("-numa dist,src={from},dst={to},val={distance}"));
            }
            let place = format!("-numa hmat-lb,initiator={from},target={to},hierarchy=memory,data-type");
            words.push(format!("{place}=access-latency,latency={latency}"));
            words.push(format!("{place}=access-bandwidth,bandwidth={}M", 1_600_000 / latency));
        }
    }
    words.iter().flat_map(|words| words.split(' ')).map(str::to_owned).collect()
}
