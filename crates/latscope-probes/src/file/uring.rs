//! Reads from the device, several in flight at once: io_uring.

use super::direct::{FILE_BYTES, OTHERS, Offsets, obstacle, on_device, report_device_reads};
use super::scratch::{Filled, Scratch};
use super::{FileProbeDirectory, in_each_directory};
use crate::prelude::*;
use latscope_os::uring::{Taker, UringQueue};

static URING: Experiment = Experiment::new("file.read-uring", Cpus::One, run_queued_reads).in_scratch();

probes! {
    URING, UringReadSettings, plan_queued_reads, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    READ_URING "file.read-uring", "reads from the device, many at once (io_uring)",
        "io_uring(7), IORING_OP_READ, O_DIRECT",
        "One read of 4 KiB past the page cache at a random place in a file of 16 MiB; so many are submitted and \
        awaited by one io_uring_enter, whose time is divided by their number. Of more than one this is the time per \
        read, not the latency of a read."
        { revision: 2, by_name_only: true, most: &[("depth", MOST)], };
}

settings! {
    /// Reads of a submission.
    struct UringReadSettings, requested as UringReadRequest {
        /// Reads that are in flight at once, at most 4096
        depth: u64, axis;
        ..place: FileProbeDirectory;
    }
}

const NAME: &CStr = c"uring";
const BYTES: u64 = 4 << 10;
const MOST: u64 = 4096;

fn plan_queued_reads(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    in_each_directory(probe, input, |place| {
        let depths: &[u64] =
            if input.profile == SurveyProfile::Quick { &[1, 8, 64] } else { &[1, 2, 4, 8, 16, 32, 64] };
        let point = |depth: u64| {
            let of = if depth == 1 { "" } else { ": time per read" };
            let title =
                format!("O_DIRECT random read 4 KiB, {} in flight{of}", count_with_noun(depth, "read"));
            (UringReadSettings { depth, place: place.clone() }, title, true)
        };
        let asked = UringReadRequest::of(input).depth.or(depths).into_iter();
        asked.filter(|depth| (1..=MOST).contains(depth)).map(point).collect()
    })
}

fn run_queued_reads(bench: &mut Bench) -> Result<()> {
    let scratch = Scratch::open_for_step(bench)?;
    let reads: Vec<UringReadSettings> = bench.settings()?;
    let Some(filesystem) = reads.first().map(|reads| reads.place.filesystem.clone()) else { return Ok(()) };
    if let Some((reason, remedy)) = obstacle(&scratch, &filesystem) {
        (0..reads.len()).for_each(|index| bench.unsupported(index, reason.as_str(), remedy));
        return Ok(());
    }
    let filled = scratch.create_filled(NAME, FILE_BYTES)?;
    let there = filled.error.map_or_else(|| on_device(&filled), Err);
    for (index, reads) in reads.iter().enumerate() {
        match there.and_then(|()| queue(&scratch, reads.depth)) {
            Ok(queue) => read_at_once(bench, index, reads, queue, &filled)?,
            Err(Errno::OPNOTSUPP | Errno::INVAL) => {
                let reason = format!("{filesystem} refuses O_DIRECT, or the kernel is older than Linux 5.11");
                bench.unsupported(index, reason, OTHERS);
            }
            Err(error) => refuse(bench, index, "prepare reads by io_uring", error),
        }
    }
    scratch.remove(NAME)?;
    Ok(())
}

fn queue(scratch: &Scratch, depth: u64) -> rustix::io::Result<UringQueue> {
    let file = scratch.file(NAME, OFlags::RDONLY | OFlags::DIRECT)?;
    let mut queue = UringQueue::new((depth as u32).next_power_of_two(), Taker::Caller)?;
    queue.read_from(file, BYTES as usize)?;
    Ok(queue)
}

fn read_at_once(
    bench: &mut Bench,
    index: usize,
    reads: &UringReadSettings,
    mut queue: UringQueue,
    filled: &Filled,
) -> Result<()> {
    let depth = reads.depth;
    let mut random = Offsets { state: bench.seed() | 1, size: BYTES };
    let mut first = FirstError::default();
    bench.set_work(index, OperationWork { ops: 1, bytes_touched: BYTES, bytes_moved: BYTES });
    // Each submission alone: a mean of several would contain the turns of other threads on a busy machine.
    bench.splits(&[index], SampleGate::Open, |splits| {
        let start = splits.now();
        (0..depth).for_each(|_| queue.prepare_read(random.next()));
        let read = queue.submit_and_wait();
        let end = splits.now();
        // All reads are within the file: one that is short failed.
        let whole = |bytes| if bytes == depth * BYTES { Ok(()) } else { Err(Errno::IO) };
        first.check_result(read.and_then(whole));
        splits.set_part(0, 0, (end - start) / depth);
    });
    report_device_reads(bench, index, first, filled, &reads.place)
}
