//! Creation, writing, closing and unlinking of a small file, each timed on its own.

use super::read::SMALLER_FILE;
use super::scratch::{Scratch, too_large};
use super::{FileProbeDirectory, in_each_directory};
use crate::activity::ActivityPart;
use crate::prelude::*;
use rustix::io::Result;

static LIFECYCLE: Experiment = Experiment::new("file.lifecycle", Cpus::One, run_lifecycles).in_scratch();

settings! {
    /// Settings of a file that is written.
    struct FileLifecycleSettings, requested as FileLifecycleRequest {
        /// Bytes written to the file
        size: u64 as Size, axis;
        ..place: FileProbeDirectory;
    }
}

probes! {
    LIFECYCLE, FileLifecycleSettings, plan_lifecycles, ..ProbeFacts { may_be_zero: &["size"], by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    CREATE "file.create", "create", "open(2), O_CREAT",
        "One open that creates a file in an empty directory, by a name used and removed before. An ext4 also \
        looks at every inode freed in the last minute.";
    WRITE "file.write", "write", "write(2)",
        "One write of that many bytes to the new, empty file: into the page cache, not to the device.";
    CLOSE "file.close", "close", "close(2)",
        "One close of the file just written.";
    UNLINK "file.unlink", "unlink", "unlink(2)",
        "One unlink of the closed file, with its pages in the page cache.";
}

const KIB: u64 = 1 << 10;

fn plan_lifecycles(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let sizes: &[u64] = match input.profile {
        SurveyProfile::Quick => &[0, 4 * KIB],
        SurveyProfile::Normal | SurveyProfile::Full => &[0, 4 * KIB, 64 * KIB, 1024 * KIB],
    };
    in_each_directory(probe, input, |place| {
        let point = |size: u64| {
            let title = format!("{} a file of {}", probe.title, format_size(size));
            let wide = ["file.write", "file.unlink"].contains(&probe.id) && size == 1024 * KIB;
            (FileLifecycleSettings { size, place: place.clone() }, title, size == 4 * KIB || wide)
        };
        let sizes = FileLifecycleRequest::of(input).size.or(sizes).into_iter();
        // An empty file is not written.
        sizes.filter(|size| *size > 0 || probe.id != "file.write").map(point).collect()
    })
}

fn run_lifecycles(bench: &mut Bench) -> anyhow::Result<()> {
    let scratch = Scratch::open_for_step(bench)?;
    let points = bench.points();
    let whole = bench.stop();
    bench.set_stop(fewer_files(whole));
    let files = bench.settings::<FileLifecycleSettings>()?.into_iter().map(|file| file.size);
    let wanted: Vec<(&str, u64)> = points.iter().map(|point| point.probe.as_str()).zip(files).collect();
    for size in wanted.iter().map(|(_, size)| *size).collect::<BTreeSet<u64>>() {
        lives(bench, &scratch, &wanted, size);
    }
    Ok(())
}

/// Returns the stop with fewer events, unless a number of events was requested. An ext4 does not reuse inodes
/// that were freed in the last minute, but looks at each of them: thousands of files would make the creation of
/// a file slower and slower.
fn fewer_files(stop: Stop) -> Stop {
    let counted = stop.budget_ns == u64::MAX;
    Stop { events: if counted { stop.events } else { stop.events.div_ceil(8) }, ..stop }
}

const NAME: &CStr = c"file";

/// The operations on a file, each timed if a point asks for it.
struct Life {
    create: ActivityPart,
    write: ActivityPart,
    close: ActivityPart,
    unlink: ActivityPart,
}

fn lives(bench: &mut Bench, scratch: &Scratch, wanted: &[(&str, u64)], size: u64) {
    let mut parts = ActivityParts::default();
    let mut part = |probe: &Probe| parts.add_part(wanted, |point| *point == (probe.id, size));
    let life =
        Life { create: part(&CREATE), write: part(&WRITE), close: part(&CLOSE), unlink: part(&UNLINK) };
    if size > scratch.usable_bytes() {
        let (reason, _) = too_large(size, scratch.usable_bytes());
        parts
            .point_indices()
            .iter()
            .for_each(|point| bench.unsupported(*point, reason.as_str(), SMALLER_FILE));
        return;
    }
    let content = vec![1u8; size as usize];
    let mut first = FirstError::default();
    let once = |splits: &mut Splits| -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = life.create.time_operation(splits, || scratch.file(NAME, flags))?;
        if size > 0 {
            life.write.time_operation(splits, || write_all(&file, &content))?;
        }
        life.close.time_operation(splits, || drop(file));
        life.unlink.time_operation(splits, || scratch.remove(NAME))
    };
    let work = OperationWork { ops: 1, bytes_touched: size, bytes_moved: 2 * size };
    let writes = wanted.iter().position(|point| *point == (WRITE.id, size));
    writes.into_iter().for_each(|index| bench.set_work(index, work));
    bench.splits(parts.point_indices(), SampleGate::Open, |splits| {
        // After an error there is nothing to learn: the loop only runs out.
        if !first.has_error() {
            first.check_result(once(splits));
        }
    });
    if first.has_error() {
        // It may be there, or not, according to what failed.
        let _ = scratch.remove(NAME);
    }
    first.ok_or_close(bench, parts.point_indices(), "create, write and remove a file");
}

/// Writes all of `content`, in one call unless the kernel takes it in several.
#[inline(always)]
fn write_all(file: &OwnedFd, mut content: &[u8]) -> Result<()> {
    while !content.is_empty() {
        match rustix::io::write(file, content)? {
            0 => return Err(Errno::NOSPC),
            written => content = &content[written..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_files_are_made_unless_their_number_was_asked_for() {
        let stop = SurveyProfile::Normal.stop_conditions();
        assert!(fewer_files(stop).events < stop.events);
        let counted = Stop { budget_ns: u64::MAX, events: 77, ..stop };
        assert_eq!(fewer_files(counted).events, 77);
    }
}
