//! `lat_syscall`, `lat_sig`, `lat_proc`, `lat_select`, `lat_pagefault`,
//! `lat_mmap`.

use super::arguments::{Call, CallError, LmbenchOptions, bytes, number, refuse};
use super::job::{Figures, Job, PointQuery, Source};
use super::page::{NotMeasured, microseconds, size_and_microseconds};
use std::path::PathBuf;

/// A program whose operand names one of several measurements.
struct Choice {
    word: &'static str,
    label: &'static str,
    query: fn() -> PointQuery,
}

fn chosen(options: &LmbenchOptions, word: &str, choices: &'static [Choice]) -> Result<Job, CallError> {
    let choice = choices.iter().find(|choice| choice.word == word).ok_or(CallError::Usage)?;
    let query = (choice.query)();
    options.one_caller(query.probe)?;
    Ok(Job::new(options, vec![query.clone()], move |figures, page| {
        page.line(figures.ns(&query).map(|ns| microseconds(choice.label, ns)));
    }))
}

static SYSCALLS: &[Choice] = &[
    Choice { word: "null", label: "Simple syscall", query: || PointQuery::new("syscall.getppid", []) },
    Choice { word: "read", label: "Simple read", query: || PointQuery::new("syscall.read", []) },
    Choice { word: "write", label: "Simple write", query: || PointQuery::new("syscall.write", []) },
    Choice { word: "stat", label: "Simple stat", query: || PointQuery::new("syscall.stat", []) },
    Choice { word: "fstat", label: "Simple fstat", query: || PointQuery::new("syscall.fstat", []) },
    Choice { word: "open", label: "Simple open/close", query: || PointQuery::new("syscall.open-close", []) },
];

/// `lat_syscall null|read|write|stat|fstat|open [file]`.
///
/// # Errors
/// No or an unknown system call, `-P`.
pub fn lat_syscall(call: &Call) -> Result<Job, CallError> {
    let options = LmbenchOptions::read(call, "P:W:N:")?;
    let (word, file) = match options.operands.as_slice() {
        [word] => (word, None),
        [word, file] => (word, Some(file)),
        _ => return Err(CallError::Usage),
    };
    let mut job = chosen(&options, word, SYSCALLS)?;
    if let Some(file) = file.filter(|_| matches!(word.as_str(), "stat" | "fstat" | "open")) {
        job.source = Some(Source { path: PathBuf::from(file), at_least: 0 });
        job.notes
            .push(format!("measured on a temporary file, not on {file}: path depth and file system differ"));
    }
    Ok(job)
}

/// `lat_sig install|catch|prot [file]`. As there, `catch` is without the cost
/// of the call that sends, and `prot` without that of `catch`.
///
/// # Errors
/// No or an unknown word, `-P`.
pub fn lat_sig(call: &Call) -> Result<Job, CallError> {
    let options = LmbenchOptions::read(call, "P:W:N:")?;
    options.one_caller("syscall.signal-deliver")?;
    // The file that LMbench maps for `prot` is a page of ours.
    let figure = match options.operands.as_slice() {
        [word] | [word, _] => SIGNALS.iter().find(|figure| figure.word == word).ok_or(CallError::Usage)?,
        _ => return Err(CallError::Usage),
    };
    Ok(Job::new(&options, (figure.queries)(), move |figures, page| {
        page.line((figure.ns)(figures).map(|ns| microseconds(figure.label, ns)));
    }))
}

/// One of the figures of `lat_sig`.
struct SignalFigure {
    word: &'static str,
    label: &'static str,
    queries: fn() -> Vec<PointQuery>,
    ns: fn(&Figures<'_>) -> Result<f64, NotMeasured>,
}

static SIGNALS: &[SignalFigure] = &[
    SignalFigure {
        word: "install",
        label: "Signal handler installation",
        queries: || vec![installation()],
        ns: |figures| figures.ns(&installation()),
    },
    SignalFigure {
        word: "catch",
        label: "Signal handler overhead",
        queries: || vec![delivery()],
        ns: handling_ns,
    },
    SignalFigure {
        word: "prot",
        label: "Protection fault",
        queries: || vec![fault(), delivery()],
        ns: |figures| Ok((figures.ns(&fault())? - handling_ns(figures)?).max(0.0)),
    },
];

fn installation() -> PointQuery {
    PointQuery::new("syscall.signal-install", [])
}

fn delivery() -> PointQuery {
    PointQuery::new("syscall.signal-deliver", [])
}

fn fault() -> PointQuery {
    PointQuery::new("syscall.signal-fault", [])
}

/// A signal delivered and handled, without the call that sends it.
fn handling_ns(figures: &Figures<'_>) -> Result<f64, NotMeasured> {
    let sending = figures.measurement(&delivery())?.values.get("nothing-sent").map_or(0.0, |sent| sent.value);
    Ok((figures.ns(&delivery())? - sending).max(0.0))
}

static PROCESSES: &[Choice] = &[
    Choice {
        word: "procedure",
        label: "Procedure call",
        query: || PointQuery::new("cpu.call", [("mode", "direct".into())]),
    },
    Choice { word: "fork", label: "Process fork+exit", query: || PointQuery::new("process.fork", []) },
    Choice {
        word: "exec",
        label: "Process fork+execve",
        query: || PointQuery::new("process.exec", [("mode", "dynamic".into())]),
    },
    Choice {
        word: "shell",
        label: "Process fork+/bin/sh -c",
        query: || PointQuery::new("process.shell", []),
    },
];

/// `lat_proc procedure|fork|exec|shell`.
///
/// # Errors
/// No or an unknown word, `-P`.
pub fn lat_proc(call: &Call) -> Result<Job, CallError> {
    let options = LmbenchOptions::read(call, "P:W:N:")?;
    let [word] = options.exactly()?;
    chosen(&options, word, PROCESSES)
}

/// `lat_select [-n descriptors] file|tcp`.
///
/// # Errors
/// `tcp`, no word, `-P`.
pub fn lat_select(call: &Call) -> Result<Job, CallError> {
    let options = LmbenchOptions::read(call, "P:W:N:n:")?;
    let [word] = options.exactly()?;
    match word {
        "file" => {}
        "tcp" => {
            return refuse(
                "`tcp` is not covered: syscall.select waits on descriptors of one kind that is not TCP; give `file`",
            );
        }
        _ => return Err(CallError::Usage),
    }
    options.one_caller("syscall.select")?;
    let descriptors =
        options.value('n').map_or(Some(200), number).filter(|n| *n > 0).ok_or(CallError::Usage)?;
    let params = [("descriptors", descriptors.into()), ("mode", "write-file".into())];
    let query = PointQuery::new("syscall.select", params);
    Ok(Job::new(&options, vec![query.clone()], move |figures, page| {
        page.line(figures.ns(&query).map(|ns| microseconds(&format!("Select on {descriptors} fd's"), ns)));
    }))
}

/// All pages of a mapping of a file, one after the other.
fn file_faults() -> PointQuery {
    PointQuery::new("syscall.page-fault", [("mode", "file-around".into()), ("pages", "4KiB".into())])
}

fn file_fault() -> PointQuery {
    PointQuery::new("syscall.page-fault", [("mode", "file".into()), ("pages", "4KiB".into())])
}

/// `lat_pagefault [-C] file`: first touch of a page of a cached file.
///
/// # Errors
/// Not one file, `-P`.
pub fn lat_pagefault(call: &Call) -> Result<Job, CallError> {
    let options = LmbenchOptions::read(call, "P:W:N:C")?;
    let [file] = options.exactly()?;
    options.one_caller("syscall.page-fault")?;
    let file = file.to_owned();
    let path = PathBuf::from(&file);
    let mut job = Job::new(&options, vec![file_faults()], move |figures, page| {
        let ns = figures.ns_of_part(&file_faults());
        page.line(ns.map(|ns| microseconds(&format!("Pagefaults on {file}"), ns)));
    });
    job.source = Some(Source { path, at_least: 1 });
    Ok(job)
}

/// `lat_mmap [-r] [-C] size file`: map a file, touch a tenth of it every
/// 16 KiB (`-r`: all of it every 160 KiB), unmap it.
///
/// # Errors
/// No size and file, `-P`.
pub fn lat_mmap(call: &Call) -> Result<Job, CallError> {
    let options = LmbenchOptions::read(call, "rP:W:N:C")?;
    let [size, file] = options.exactly()?;
    let size = bytes(size).filter(|size| *size >= 4096).ok_or(CallError::Usage)?;
    options.one_caller("syscall.mmap")?;
    let touched = match options.flag('r') {
        true => size.div_ceil(160 << 10),
        false => (size / 10).div_ceil(16 << 10),
    };
    let path = PathBuf::from(file);
    let map = PointQuery::new("syscall.mmap", [("size", size.into())]);
    // What unmapping costs is the pages that were touched.
    let unmap = PointQuery::new("syscall.munmap", [("size", (touched * 4096).into())]);
    let queries = vec![map.clone(), unmap.clone(), file_fault()];
    let mut job = Job::new(&options, queries, move |figures, page| {
        let total = figures.ns(&map).and_then(|map| {
            let faults = figures.ns(&file_fault())? * touched as f64;
            Ok(map + faults + figures.ns(&unmap)?)
        });
        page.line(total.map(|ns| size_and_microseconds(size, ns)));
    });
    job.source = Some(Source { path, at_least: size });
    Ok(job)
}
