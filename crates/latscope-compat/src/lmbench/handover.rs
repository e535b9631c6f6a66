//! LMbench's programs for communication between processes: `lat_pipe`, `lat_fifo`, `lat_unix`, `lat_tcp`, `lat_udp`,
//! `lat_sem`, `lat_ctx`, `bw_pipe`, `bw_unix`, `bw_tcp`.

use super::job::{LmbenchJob, PointQuery};
use super::options::{LmbenchCall, USUAL_REPETITIONS, parse_leading_digits, refuse, usage_refusal};
use super::page::{megabytes_per_second, microseconds};
use crate::getopt::CommandLineRefusal;
use latscope_core::param::{CALLER, PAYLOAD, PLACEMENT, PROCESSES, SIZE};

/// Placement of the two endpoints. The scheduler decides, as in LMbench, unless `LMBENCH_SCHED` asks for a placement.
fn placement(call: &LmbenchCall) -> Result<&'static str, CommandLineRefusal> {
    match call.options.scheduling.as_deref().unwrap_or("DEFAULT") {
        "" | "DEFAULT" => Ok("free"),
        "SINGLE" | "BALANCED" | "BALANCED_SPREAD" => Ok("same-core"),
        "UNIQUE" | "UNIQUE_SPREAD" => Ok("two-cores"),
        other => refuse(format!(
            "LMBENCH_SCHED={other} is not covered: use DEFAULT (the scheduler decides), SINGLE (both on one CPU), \
             UNIQUE (one CPU each), or `latscope sync --cpus LIST`"
        )),
    }
}

/// Number of repetitions without `-N` if the scheduler places the ends. The scheduler moves them in the first tenth of
/// a second, and LMbench times them for longer than that.
const SETTLED: u64 = 10 * USUAL_REPETITIONS;

/// Lengthens a measurement to the time in which the scheduler settles, if the scheduler places the ends.
fn lengthen_if_free(mut job: LmbenchJob) -> LmbenchJob {
    let free = |query: &PointQuery| query.params.get(PLACEMENT) == Some(&"free".into());
    if job.queries.iter().any(free) {
        job.repetitions.get_or_insert(SETTLED);
    }
    job
}

/// `lat_pipe`: a message there and back through two pipes.
///
/// # Errors
/// There are operands, or `-P` is above 1.
pub fn lat_pipe(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    between_processes(&call, "ipc.pipe", "Pipe latency".to_owned(), 1)
}

/// `lat_unix [-m size]`: a message there and back through a Unix stream socket.
///
/// # Errors
/// There are operands, or `-P` is above 1.
pub fn lat_unix(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    let size = call.options.size_bytes('m', 1)?;
    between_processes(&call, "ipc.unix-stream", "AF_UNIX sock stream latency".to_owned(), size)
}

/// `lat_fifo`: a message there and back through two named pipes.
///
/// # Errors
/// There are operands, or `-P` is above 1.
pub fn lat_fifo(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    between_processes(&call, "ipc.fifo", "Fifo latency".to_owned(), 1)
}

/// `lat_tcp [-m size] localhost`, and the calls that start and stop its server.
///
/// # Errors
/// Another host is named, a size is invalid, or `-P` is above 1.
pub fn lat_tcp(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let Some(host) = host(&call)? else { return Ok(no_server(&call)) };
    let size = call.options.size_bytes('m', 1)?;
    between_processes(&call, "ipc.tcp", format!("TCP latency using {host}"), size)
}

/// `lat_udp [-m size] localhost`, and the calls that start and stop its server.
///
/// # Errors
/// Another host is named, the message has less than 4 bytes, or `-P` is above 1.
pub fn lat_udp(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let Some(host) = host(&call)? else { return Ok(no_server(&call)) };
    let size = call.options.size_bytes('m', LEAST)?;
    if size < LEAST {
        return Err(usage_refusal());
    }
    between_processes(&call, "ipc.udp", format!("UDP latency using {host}"), size)
}

/// Size of the smallest message between processes, in bytes. It holds the number by which a reply is verified.
const LEAST: u64 = 4;

/// Measures a round trip between two processes.
fn between_processes(
    call: &LmbenchCall,
    probe: &'static str,
    label: String,
    size: u64,
) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller(probe)?;
    let params =
        [(CALLER, "other".into()), (PLACEMENT, placement(call)?.into()), (PAYLOAD, size.max(LEAST).into())];
    let query = PointQuery::new(probe, params);
    let mut job = LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        page.add_line(figures.round_trip_ns(&query).map(|ns| microseconds(&label, ns)));
    });
    if call.options.option_value('m').is_some() && size < LEAST {
        job.notes.push(format!("messages have {LEAST} bytes, so that each reply can be verified"));
    }
    Ok(lengthen_if_free(job))
}

/// Host that a call names, which is this machine; `None` for calls that start or stop a server.
///
/// # Errors
/// Another host is named, or there are other operands.
fn host(call: &LmbenchCall) -> Result<Option<&str>, CommandLineRefusal> {
    if call.options.flag('s') || call.options.flag('S') {
        return Ok(None);
    }
    match call.exactly()? {
        [host @ ("localhost" | "127.0.0.1" | "::1")] => Ok(Some(host)),
        [host] => refuse(format!("{host} is not covered: loopback is measured; give localhost")),
    }
}

/// Returns a job without measurements, for calls that start or stop a server.
fn no_server(call: &LmbenchCall) -> LmbenchJob {
    let mut job = LmbenchJob::new(&call.options, Vec::new(), |_, _| {});
    job.notes.push("no server is needed: both ends are part of the measurement".to_owned());
    job
}

/// Probe that answers `lat_sem`.
const SYSTEM_V: &str = "ipc.sysv-semaphore";

/// `lat_sem`: a System V semaphore passed on between processes, one way.
///
/// # Errors
/// There are operands, or `-P` is above 1.
pub fn lat_sem(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    call.options.one_caller(SYSTEM_V)?;
    let params = [(CALLER, "other".into()), (PLACEMENT, placement(&call)?.into())];
    let query = PointQuery::new(SYSTEM_V, params);
    Ok(lengthen_if_free(LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        page.add_line(figures.one_way_ns(&query).map(|ns| microseconds("Semaphore latency", ns)));
    })))
}

/// `lat_ctx [-s KB] processes...`: a token round a ring of processes, each with its working set. The figure is the time
/// of a switch in µs.
///
/// # Errors
/// The numbers of processes are missing or outside of 2 to 2048, or `-P` is above 1.
pub fn lat_ctx(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller("sync.ring")?;
    let kib =
        call.options.option_value('s').map_or(Some(0), parse_leading_digits).ok_or_else(usage_refusal)?;
    let counts: Vec<u64> = call
        .operands
        .iter()
        .map(|text| {
            parse_leading_digits(text).filter(|count| (2..=2048).contains(count)).ok_or_else(usage_refusal)
        })
        .collect::<Result<_, _>>()?;
    if counts.is_empty() {
        return Err(usage_refusal());
    }
    let placed: &[&str] = match placement(&call)? {
        "free" => &["free"],
        "same-core" => &[],
        _ => {
            return refuse(
                "a ring is on one CPU (LMBENCH_SCHED=SINGLE) or where the scheduler puts it (DEFAULT)",
            );
        }
    };
    let query = move |processes: u64| {
        let mut query =
            PointQuery::new("sync.ring", [(PROCESSES, processes.into()), (SIZE, (kib << 10).into())]);
        query.params.extend(placed.iter().map(|place| (PLACEMENT.to_owned(), (*place).into())));
        query
    };
    let queries = counts.iter().map(|count| query(*count)).collect();
    Ok(LmbenchJob::new(&call.options, queries, move |figures, page| {
        let overhead = counts.iter().find_map(|count| {
            let measurement = figures.find_measurement(&query(*count)).ok()?;
            measurement.values.get("self").map(|overhead| overhead.value)
        });
        let overhead = overhead.map_or("-".to_owned(), |ns| format!("{:.2}", ns / 1e3));
        page.add_text(&format!("\n\"size={kib}k ovr={overhead}\n"));
        for count in &counts {
            page.add_line(figures.mean_ns(&query(*count)).map(|ns| format!("{count} {:.2}", ns / 1e3)));
        }
    }))
}

/// `bw_pipe [-m size] [-M total]`: bandwidth of a pipe.
///
/// # Errors
/// There are operands, a size is invalid, or `-P` is above 1.
pub fn bw_pipe(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    local_bandwidth(&call, "sync.pipe-bandwidth", "Pipe bandwidth")
}

/// `bw_unix [-m size] [-M total]`: bandwidth of a Unix stream socket.
///
/// # Errors
/// There are operands, a size is invalid, or `-P` is above 1.
pub fn bw_unix(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    local_bandwidth(&call, "sync.unix-bandwidth", "AF_UNIX sock stream bandwidth")
}

fn local_bandwidth(
    call: &LmbenchCall,
    probe: &'static str,
    label: &'static str,
) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    call.options.one_caller(probe)?;
    let size = call.options.size_bytes('m', 64 << 10)?;
    let query = PointQuery::new(probe, [(SIZE, size.into()), (PLACEMENT, placement(call)?.into())]);
    let mut job = LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        page.add_line(figures.bytes_per_second(&query).map(|rate| megabytes_per_second(label, rate)));
    });
    if call.options.option_value('M').is_some() {
        job.notes.push(TOTAL_HAS_NO_EFFECT.to_owned());
    }
    Ok(lengthen_if_free(job))
}

const TOTAL_HAS_NO_EFFECT: &str = "-M has no effect: as much is sent as the stop rule takes";

/// `bw_tcp [-m size] [-M total] localhost`, and the calls that start and stop its server, which is not needed here.
///
/// # Errors
/// Another host is named, a size is invalid, or `-P` is above 1.
pub fn bw_tcp(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let Some(_) = host(&call)? else { return Ok(no_server(&call)) };
    call.options.one_caller("sync.tcp-bandwidth")?;
    // As there: the message is as long as all that is moved, unless told.
    let size = call.options.size_bytes('m', call.options.size_bytes('M', 10 << 20)?)?;
    let params = [(SIZE, size.into()), (PLACEMENT, placement(&call)?.into())];
    let query = PointQuery::new("sync.tcp-bandwidth", params);
    let mut job = LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        let rate = figures.bytes_per_second(&query);
        page.add_line(rate.map(|rate| format!("{:.6} {:.2} MB/sec", size as f64 / 1e6, rate / 1e6)));
    });
    if call.options.option_value('m').is_some() && call.options.option_value('M').is_some() {
        job.notes.push(TOTAL_HAS_NO_EFFECT.to_owned());
    }
    Ok(job)
}
