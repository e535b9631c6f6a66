//! LMbench's programs for the processor: `lat_ops`, `par_ops`, `mhz`.

use super::job::{LmbenchJob, PointQuery};
use super::options::LmbenchCall;
use super::page::nanoseconds;
use crate::getopt::CommandLineRefusal;
use latscope_core::param::{MODE, TYPE};

/// Number types by LMbench's names, and the operations that LMbench times on them. LMbench's "bit" is an exclusive or.
static TYPES: &[(&str, &str, &[&str])] = &[
    ("integer", "i32", &["bit", "add", "mul", "div", "mod"]),
    ("int64", "i64", &["bit", "add", "mul", "div", "mod"]),
    ("float", "f32", &["add", "mul", "div"]),
    ("double", "f64", &["add", "mul", "div"]),
];

/// Operations on all types: the name in LMbench, the probe and the type of latscope.
fn operations() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    TYPES.iter().flat_map(|(name, kind, operations)| {
        operations.iter().map(move |operation| {
            let probe = match *operation {
                "bit" => "cpu.xor",
                "add" => "cpu.add",
                "mul" => "cpu.mul",
                "div" => "cpu.div",
                _ => "cpu.mod",
            };
            (format!("{name} {operation}"), probe, *kind)
        })
    })
}

fn query(probe: &'static str, kind: &str, mode: &str) -> PointQuery {
    PointQuery::new(probe, [(TYPE, kind.into()), (MODE, mode.into())])
}

/// `lat_ops`: time in ns of an operation that waits for the one before.
///
/// # Errors
/// There are operands, or `-P` is above 1.
pub fn lat_ops(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    call.options.one_caller("cpu.add")?;
    let queries = operations().map(|(_, probe, kind)| query(probe, kind, "latency")).collect();
    Ok(LmbenchJob::new(&call.options, queries, |figures, page| {
        for (label, probe, kind) in operations() {
            let ns = figures.median_ns(&query(probe, kind, "latency"));
            page.add_line(ns.map(|ns| nanoseconds(&label, ns)));
        }
    }))
}

/// `par_ops`: number of independent operations that are under way at once.
///
/// # Errors
/// There are operands, or `-P` is above 1.
pub fn par_ops(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    call.options.one_caller("cpu.add")?;
    let queries = operations()
        .flat_map(|(_, probe, kind)| ["latency", "throughput"].map(|mode| query(probe, kind, mode)))
        .collect();
    Ok(LmbenchJob::new(&call.options, queries, |figures, page| {
        for (label, probe, kind) in operations() {
            let waiting = figures.median_ns(&query(probe, kind, "latency"));
            let free = figures.median_ns(&query(probe, kind, "throughput"));
            let factor = waiting.and_then(|waiting| Ok(waiting / free?));
            page.add_line(factor.map(|factor| format!("{label} parallelism: {factor:.2}")));
        }
    }))
}

/// `mhz [-c]`: the core clock; with `-c` only the length of a cycle. The text goes to standard output, since LMbench's
/// scripts take it by command substitution.
///
/// # Errors
/// There are operands.
pub fn mhz(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    let cycle = PointQuery::new("cpu.cycle", []);
    let only_cycle = call.options.flag('c');
    let mut job = LmbenchJob::new(&call.options, vec![cycle.clone()], move |figures, page| {
        match figures.median_ns(&cycle) {
            Err(missing) => page.add_line(Err(missing)),
            Ok(ns) => {
                let mhz = (1e3 / ns).round();
                page.stdout += &match only_cycle {
                    true => format!("{:.4}\n", 1e3 / mhz),
                    false => format!("{mhz:.0} MHz, {:.4} nanosec clock\n", 1e3 / mhz),
                };
            }
        }
    });
    if call.options.flag('d') {
        job.notes.push("-d has no effect: the samples are in `latscope cpu --json FILE`".to_owned());
    }
    Ok(job)
}
