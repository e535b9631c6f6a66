//! LMbench's programs for files: `lat_fs`, `bw_file_rd`, `bw_mmap_rd`.

use super::job::{LmbenchJob, LmbenchJobReport, LmbenchSourceFile, PointQuery};
use super::options::{LmbenchCall, directory_of, refuse, usage_refusal};
use super::page::{NotMeasured, bandwidth};
use crate::getopt::{CommandLineRefusal, parse_size};
use latscope_core::param::{MODE, SIZE};
use std::path::PathBuf;

/// `lat_fs [-s size] [-n files] [dir]`: files created and deleted in a second, by size.
///
/// # Errors
/// There is more than one directory, a size is invalid, or `-P` is above 1.
pub fn lat_fs(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller("file.create")?;
    let directory = match call.operands.as_slice() {
        [] => PathBuf::from("."),
        [directory] => PathBuf::from(directory),
        _ => return Err(usage_refusal()),
    };
    let sizes = match call.options.option_value('s') {
        None => vec![0, 1 << 10, 4 << 10, 10 << 10],
        Some(text) => vec![parse_size(text).ok_or_else(usage_refusal)?],
    };
    let part = |probe: &'static str, size: u64| PointQuery::new(probe, [(SIZE, size.into())]);
    let parts = ["file.create", "file.write", "file.close", "file.unlink"];
    let all = sizes.iter().flat_map(|size| parts.map(|probe| (probe, *size)));
    // An empty file is not written.
    let timed = all.filter(|(probe, size)| *size > 0 || *probe != "file.write");
    let queries = timed.map(|(probe, size)| part(probe, size)).collect();
    let mut job = LmbenchJob::new(&call.options, queries, move |figures, page| {
        for size in &sizes {
            page.add_line(files_per_second(figures, *size, |probe| part(probe, *size)));
        }
    });
    if call.options.option_value('n').is_some() {
        job.notes.push("-n has no effect: the files of a size lie in one directory".to_owned());
    }
    job.directory = Some(directory);
    Ok(job)
}

/// Line `0k\t469\t84505\t138552`: size, files, creates/s, deletes/s. A file counts as created when it has been opened,
/// written and closed.
fn files_per_second(
    figures: &LmbenchJobReport<'_>,
    size: u64,
    part: impl Fn(&'static str) -> PointQuery,
) -> Result<String, NotMeasured> {
    let created = figures.find_measurement(&part("file.create"))?.summary.count;
    let written = if size == 0 { 0.0 } else { figures.median_ns(&part("file.write"))? };
    let create =
        figures.median_ns(&part("file.create"))? + written + figures.median_ns(&part("file.close"))?;
    let unlink = figures.median_ns(&part("file.unlink"))?;
    Ok(format!("{}k\t{created}\t{:.0}\t{:.0}", size >> 10, 1e9 / create, 1e9 / unlink))
}

/// `bw_file_rd [-C] size open2close|io_only file`: bandwidth of reading a file.
///
/// # Errors
/// The operands are different, or `-P` is above 1.
pub fn bw_file_rd(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller("file.read")?;
    let [size, what, file] = call.exactly()?;
    let mode = match what {
        "open2close" => "open-close",
        "io_only" => "kept-open",
        _ => return Err(usage_refusal()),
    };
    read_bandwidth(&call, size, file, |size| {
        PointQuery::new("file.read", [(SIZE, size.into()), (MODE, mode.into())])
    })
}

/// `bw_mmap_rd [-C] size open2close|mmap_only file`: bandwidth of reading a mapped file.
///
/// # Errors
/// `mmap_only` is given, the operands are different, or `-P` is above 1.
pub fn bw_mmap_rd(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller("file.read-mmap")?;
    let [size, what, file] = call.exactly()?;
    match what {
        "open2close" => {}
        "mmap_only" => {
            return refuse(
                "`mmap_only` is not covered: file.read-mmap maps, reads and unmaps; for memory already mapped use bw_mem frd",
            );
        }
        _ => return Err(usage_refusal()),
    }
    read_bandwidth(&call, size, file, |size| PointQuery::new("file.read-mmap", [(SIZE, size.into())]))
}

fn read_bandwidth(
    call: &LmbenchCall,
    size: &str,
    file: &str,
    query: impl Fn(u64) -> PointQuery,
) -> Result<LmbenchJob, CommandLineRefusal> {
    let size = parse_size(size).filter(|size| *size > 0).ok_or_else(usage_refusal)?;
    let query = query(size);
    let mut job = LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        let ns = figures.median_ns(&query);
        page.add_line(ns.map(|ns| bandwidth(size, size as f64 / ns * 1e9)));
    });
    job.source = Some(LmbenchSourceFile { path: PathBuf::from(file), at_least: size });
    job.directory = Some(directory_of(file));
    Ok(job)
}
