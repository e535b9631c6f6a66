//! Files: the page cache beside the device.

use super::evidence::{EvidenceFigure, FindingBuilder, Ratio, compare_figures};
use super::select::measured_points;
use latscope_core::catalogue::ids;
use latscope_core::param;
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Finding, Measurement, Report};
use latscope_core::units::format_size;

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    [cached_and_direct, written_and_durable, user_buffer]
        .iter()
        .filter_map(|conclusion| conclusion(report))
        .collect()
}

/// A file system that has no device: nothing there is more durable than
/// memory.
fn in_memory(m: &Measurement) -> bool {
    m.has_param_value(param::FILESYSTEM, "tmpfs") || m.has_param_value(param::FILESYSTEM, "ramfs")
}

/// The point of a probe in the same directory, nearest to 4 KiB in size.
fn matching_point<'a>(report: &'a Report, probe: &'a str, other: &Measurement) -> Option<&'a Measurement> {
    let place = |m: &Measurement| {
        [param::DIRECTORY, param::FILESYSTEM].map(|name| m.text_param(name).map(str::to_owned))
    };
    measured_points(report, probe)
        .filter(|m| place(m) == place(other) && !m.has_param_value(param::MODE, "open-close"))
        .filter(|m| !m.params.contains_key(param::BUFFER))
        .filter(|m| m.numeric_param(param::SIZE).is_none_or(|size| (1024..=16384).contains(&size)))
        .min_by_key(|m| m.numeric_param(param::SIZE).map_or(0, |size| size.abs_diff(4096)))
}

/// ` on ext4`, where the file system is known.
fn on_filesystem(m: &Measurement) -> String {
    m.text_param(param::FILESYSTEM).map_or(String::new(), |name| format!(" on {name}"))
}

fn cached_and_direct(report: &Report) -> Option<Finding> {
    // Degraded, it was answered from the page cache.
    let direct = measured_points(report, ids::FILE_READ_DIRECT)
        .filter(|m| !in_memory(m) && m.quality.level == QualityLevel::Ok)
        .min_by_key(|m| m.numeric_param(param::SIZE).map_or(0, |size| size.abs_diff(4096)))?;
    let cached = matching_point(report, ids::FILE_READ, direct)?;
    let (memory, device) = (EvidenceFigure::p50(cached)?, EvidenceFigure::p50(direct)?);
    let ratio = compare_figures(&device, &memory)?;
    // Only a size that differs needs to be said.
    let other_size = direct
        .numeric_param(param::SIZE)
        .filter(|size| cached.numeric_param(param::SIZE) != Some(*size) && *size > 0);
    let other_size = other_size.map_or(String::new(), |size| format!(", {}", format_size(size)));
    let told = FindingBuilder::claim("page-cache").figure("cached_ns", &memory).figure("direct_ns", &device);
    Some(told.ratio("ratio", &ratio).into_finding(format!(
        "Reading {}{} takes {} from the page cache, {} from the device (O_DIRECT{}): {}. A file read in \
         microseconds reads memory; only the second figure compares with a disk.",
        format_size(cached.numeric_param(param::SIZE).unwrap_or(4096)),
        on_filesystem(direct),
        memory.format_duration(),
        device.format_duration(),
        other_size,
        ratio.at_least(),
    )))
}

/// Ratio of two places of a buffer that is worth a sentence.
const BUFFERS_DIFFER: f64 = 2.0;

/// Reports if the place of the user's buffer in its page decides the time of a copy by the kernel.
fn user_buffer(report: &Report) -> Option<Finding> {
    let at_page =
        measured_points(report, ids::FILE_READ).filter(|m| m.numeric_param(param::BUFFER) == Some(0));
    let with_other = at_page.filter_map(|m| {
        let mut params = m.params.clone();
        params.remove(param::BUFFER);
        let other = measured_points(report, ids::FILE_READ).find(|other| other.params == params)?;
        let (aligned, usual) = (EvidenceFigure::p50(m)?, EvidenceFigure::p50(other)?);
        let (page_is_faster, ratio) = match Ratio::between(&usual, &aligned) {
            ratio if ratio.value >= 1.0 => (true, ratio),
            _ => (false, Ratio::between(&aligned, &usual)),
        };
        (ratio.low >= BUFFERS_DIFFER).then_some((m, aligned, usual, page_is_faster, ratio))
    });
    let (m, aligned, usual, page_is_faster, ratio) =
        with_other.max_by(|a, b| a.4.value.total_cmp(&b.4.value))?;
    let advice = if page_is_faster {
        "malloc(3) returns such a place for 128 KiB and more: align large buffers"
    } else {
        "align no buffers to a page"
    };
    let told = FindingBuilder::claim("user-buffer").figure("page_ns", &aligned).figure("behind_ns", &usual);
    Some(told.ratio("ratio", &ratio).into_finding(format!(
        "A read of {} from the page cache takes {} into a buffer at the start of a page, and {} into one 16 bytes \
         behind it ({}): {advice}.",
        format_size(m.numeric_param(param::SIZE)?),
        aligned.format_duration(),
        usual.format_duration(),
        ratio.at_least(),
    )))
}

fn written_and_durable(report: &Report) -> Option<Finding> {
    let sync = [ids::FSYNC, ids::FDATASYNC]
        .into_iter()
        .find_map(|probe| measured_points(report, probe).find(|m| !in_memory(m)))?;
    let write = matching_point(report, ids::FILE_WRITE, sync)?;
    let (writing, durable) = (EvidenceFigure::p50(write)?, EvidenceFigure::p50(sync)?);
    let ratio = compare_figures(&durable, &writing)?;
    let call = sync.probe.split_once('.').map_or(&*sync.probe, |(_, call)| call);
    let mut text = format!(
        "Writing {}{} returns after {}, but only {call} makes it durable, which takes {} ({})",
        format_size(write.numeric_param(param::SIZE).unwrap_or(4096)),
        on_filesystem(sync),
        writing.format_duration(),
        durable.format_duration(),
        ratio.at_least(),
    );
    let mut told =
        FindingBuilder::claim("durable-write").figure("write_ns", &writing).figure("sync_ns", &durable);
    if let Some(tail) = EvidenceFigure::p99(sync) {
        text += &format!(", and one in a hundred takes {} or more", tail.format_duration());
        told = told.figure("sync_p99_ns", &tail);
    }
    Some(told.ratio("ratio", &ratio).into_finding(text + "."))
}
