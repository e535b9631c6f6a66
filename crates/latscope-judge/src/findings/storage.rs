//! Files: the page cache beside the device.

use super::evidence::{Figure, Told, compare};
use super::select::measured;
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::quality::Level;
use latscope_core::report::{Finding, Measurement, Report};
use latscope_core::units::format_size;

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    [cached_and_direct, written_and_durable].iter().filter_map(|conclusion| conclusion(report)).collect()
}

/// A file system that has no device: nothing there is more durable than
/// memory.
fn in_memory(m: &Measurement) -> bool {
    m.is(param::FILESYSTEM, "tmpfs") || m.is(param::FILESYSTEM, "ramfs")
}

/// The point of a probe in the same directory, nearest to 4 KiB in size.
fn beside<'a>(report: &'a Report, probe: &'a str, other: &Measurement) -> Option<&'a Measurement> {
    let place =
        |m: &Measurement| [param::DIRECTORY, param::FILESYSTEM].map(|name| m.text(name).map(str::to_owned));
    measured(report, probe)
        .filter(|m| place(m) == place(other) && !m.is(param::MODE, "open-close"))
        .filter(|m| m.number(param::SIZE).is_none_or(|size| (1024..=16384).contains(&size)))
        .min_by_key(|m| m.number(param::SIZE).map_or(0, |size| size.abs_diff(4096)))
}

/// ` on ext4`, where the file system is known.
fn on_filesystem(m: &Measurement) -> String {
    m.text(param::FILESYSTEM).map_or(String::new(), |name| format!(" on {name}"))
}

fn cached_and_direct(report: &Report) -> Option<Finding> {
    // Degraded, it was answered from the page cache.
    let direct = measured(report, ids::FILE_READ_DIRECT)
        .filter(|m| !in_memory(m) && m.quality.level == Level::Ok)
        .min_by_key(|m| m.number(param::SIZE).map_or(0, |size| size.abs_diff(4096)))?;
    let cached = beside(report, ids::FILE_READ, direct)?;
    let (memory, device) = (Figure::p50(cached)?, Figure::p50(direct)?);
    let ratio = compare(&device, &memory)?;
    // Only a size that differs needs to be said.
    let other_size =
        direct.number(param::SIZE).filter(|size| cached.number(param::SIZE) != Some(*size) && *size > 0);
    let other_size = other_size.map_or(String::new(), |size| format!(", {}", format_size(size)));
    let told = Told::claim("page-cache").figure("cached_ns", &memory).figure("direct_ns", &device);
    Some(told.ratio("ratio", &ratio).say(format!(
        "Reading {}{} takes {} from the page cache, {} from the device (O_DIRECT{}): {}. A file read in \
         microseconds reads memory; only the second figure compares with a disk.",
        format_size(cached.number(param::SIZE).unwrap_or(4096)),
        on_filesystem(direct),
        memory.time(),
        device.time(),
        other_size,
        ratio.at_least(),
    )))
}

fn written_and_durable(report: &Report) -> Option<Finding> {
    let sync = [ids::FSYNC, ids::FDATASYNC]
        .into_iter()
        .find_map(|probe| measured(report, probe).find(|m| !in_memory(m)))?;
    let write = beside(report, ids::FILE_WRITE, sync)?;
    let (writing, durable) = (Figure::p50(write)?, Figure::p50(sync)?);
    let ratio = compare(&durable, &writing)?;
    let call = sync.probe.split_once('.').map_or(&*sync.probe, |(_, call)| call);
    let mut text = format!(
        "Writing {}{} returns after {}, but only {call} makes it durable, which takes {} ({})",
        format_size(write.number(param::SIZE).unwrap_or(4096)),
        on_filesystem(sync),
        writing.time(),
        durable.time(),
        ratio.at_least(),
    );
    let mut told = Told::claim("durable-write").figure("write_ns", &writing).figure("sync_ns", &durable);
    if let Some(tail) = Figure::p99(sync) {
        text += &format!(", and one in a hundred takes {} or more", tail.time());
        told = told.figure("sync_p99_ns", &tail);
    }
    Some(told.ratio("ratio", &ratio).say(text + "."))
}
