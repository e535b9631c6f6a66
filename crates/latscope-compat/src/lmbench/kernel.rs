//! LMbench's programs for the kernel: `lat_syscall`, `lat_sig`, `lat_proc`, `lat_select`, `lat_pagefault`, `lat_mmap`.

use super::job::{LmbenchJob, LmbenchJobReport, LmbenchSourceFile, PointQuery};
use super::options::{LmbenchCall, parse_leading_digits, usage_refusal};
use super::page::{NotMeasured, microseconds, size_and_microseconds};
use crate::getopt::{CommandLineRefusal, parse_size};
use latscope_core::param::{DESCRIPTORS, MODE, PAGES, PATH, PLACEMENT, SIZE, STRIDE, TOUCHED};
use std::path::PathBuf;

/// Measurement of a program whose operand names one of several.
struct LmbenchOperandChoice {
    word: &'static str,
    label: &'static str,
    query: fn() -> PointQuery,
}

fn choice(
    word: &str,
    choices: &'static [LmbenchOperandChoice],
) -> Result<&'static LmbenchOperandChoice, CommandLineRefusal> {
    choices.iter().find(|choice| choice.word == word).ok_or_else(usage_refusal)
}

fn job_for_word(
    call: &LmbenchCall,
    word: &str,
    choices: &'static [LmbenchOperandChoice],
) -> Result<LmbenchJob, CommandLineRefusal> {
    let choice = choice(word, choices)?;
    let query = (choice.query)();
    call.options.one_caller(query.probe)?;
    Ok(microseconds_job(call, choice.label, query))
}

fn microseconds_job(call: &LmbenchCall, label: &'static str, query: PointQuery) -> LmbenchJob {
    LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        page.add_line(figures.median_ns(&query).map(|ns| microseconds(label, ns)));
    })
}

static SYSCALLS: &[LmbenchOperandChoice] = &[
    LmbenchOperandChoice {
        word: "null",
        label: "Simple syscall",
        query: || PointQuery::new("syscall.getppid", []),
    },
    LmbenchOperandChoice {
        word: "read",
        label: "Simple read",
        query: || PointQuery::new("syscall.read", []),
    },
    LmbenchOperandChoice {
        word: "write",
        label: "Simple write",
        query: || PointQuery::new("syscall.write", []),
    },
    LmbenchOperandChoice {
        word: "stat",
        label: "Simple stat",
        query: || PointQuery::new("syscall.stat", []),
    },
    LmbenchOperandChoice {
        word: "fstat",
        label: "Simple fstat",
        query: || PointQuery::new("syscall.fstat", []),
    },
    LmbenchOperandChoice {
        word: "open",
        label: "Simple open/close",
        query: || PointQuery::new("syscall.open-close", []),
    },
];

/// `lat_syscall null|read|write|stat|fstat|open [file]`: time of a system call.
///
/// # Errors
/// The system call is missing or unknown, or `-P` is above 1.
pub fn lat_syscall(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let (word, file) = match call.operands.as_slice() {
        [word] => (word, None),
        [word, file] => (word, Some(file)),
        _ => return Err(usage_refusal()),
    };
    let Some(file) = file.filter(|_| matches!(word.as_str(), "stat" | "fstat" | "open")) else {
        return job_for_word(&call, word, SYSCALLS);
    };
    let choice = choice(word, SYSCALLS)?;
    let mut query = (choice.query)();
    call.options.one_caller(query.probe)?;
    query.params.insert(PATH.to_owned(), file.as_str().into());
    let mut job = microseconds_job(&call, choice.label, query);
    job.source = Some(LmbenchSourceFile { path: PathBuf::from(file), at_least: 0 });
    Ok(job)
}

/// `lat_sig install|catch|prot [file]`: time of signals. As in LMbench, `catch` is without the cost of the call that
/// sends,
/// and `prot` is without the cost of `catch`.
///
/// # Errors
/// The word is missing or unknown, or `-P` is above 1.
pub fn lat_sig(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller("syscall.signal-deliver")?;
    // The file that LMbench maps for `prot` is a page of ours.
    let figure = match call.operands.as_slice() {
        [word] | [word, _] => SIGNALS.iter().find(|figure| figure.word == word).ok_or_else(usage_refusal)?,
        _ => return Err(usage_refusal()),
    };
    Ok(LmbenchJob::new(&call.options, (figure.queries)(), move |figures, page| {
        page.add_line((figure.ns)(figures).map(|ns| microseconds(figure.label, ns)));
    }))
}

/// Figure of `lat_sig` that a word asks for.
struct SignalFigure {
    word: &'static str,
    label: &'static str,
    queries: fn() -> Vec<PointQuery>,
    ns: fn(&LmbenchJobReport<'_>) -> Result<f64, NotMeasured>,
}

static SIGNALS: &[SignalFigure] = &[
    SignalFigure {
        word: "install",
        label: "Signal handler installation",
        queries: || vec![signal_install_query()],
        ns: |figures| figures.median_ns(&signal_install_query()),
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
        ns: |figures| Ok((figures.median_ns(&fault())? - handling_ns(figures)?).max(0.0)),
    },
];

fn signal_install_query() -> PointQuery {
    PointQuery::new("syscall.signal-install", [])
}

fn delivery() -> PointQuery {
    PointQuery::new("syscall.signal-deliver", [])
}

fn fault() -> PointQuery {
    PointQuery::new("syscall.signal-fault", [])
}

/// Time in ns to deliver and handle a signal, without the call that sends it.
fn handling_ns(figures: &LmbenchJobReport<'_>) -> Result<f64, NotMeasured> {
    let sending =
        figures.find_measurement(&delivery())?.values.get("nothing-sent").map_or(0.0, |sent| sent.value);
    Ok((figures.median_ns(&delivery())? - sending).max(0.0))
}

static PROCESSES: &[LmbenchOperandChoice] = &[
    LmbenchOperandChoice {
        word: "procedure",
        label: "Procedure call",
        query: || PointQuery::new("cpu.call", [(MODE, "direct".into())]),
    },
    LmbenchOperandChoice {
        word: "fork",
        label: "Process fork+exit",
        query: || PointQuery::new("process.fork", [(PLACEMENT, "free".into())]),
    },
    LmbenchOperandChoice {
        word: "exec",
        label: "Process fork+execve",
        query: || PointQuery::new("process.exec", [(MODE, "dynamic".into()), (PLACEMENT, "free".into())]),
    },
    LmbenchOperandChoice {
        word: "shell",
        label: "Process fork+/bin/sh -c",
        query: || {
            PointQuery::new("process.shell", [(MODE, "fork-program".into()), (PLACEMENT, "free".into())])
        },
    },
];

/// `lat_proc procedure|fork|exec|shell`: time of a procedure call or of a new process.
///
/// # Errors
/// The word is missing or unknown, or `-P` is above 1.
pub fn lat_proc(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [word] = call.exactly()?;
    job_for_word(&call, word, PROCESSES)
}

/// `lat_select [-n descriptors] file|tcp`: time of select(2).
///
/// # Errors
/// The word is missing or unknown, or `-P` is above 1.
pub fn lat_select(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [word] = call.exactly()?;
    let (mode, kind) = match word {
        "file" => ("write-file", "fd's"),
        "tcp" => ("write-tcp", "tcp fd's"),
        _ => return Err(usage_refusal()),
    };
    call.options.one_caller("syscall.select")?;
    let descriptors = call
        .options
        .option_value('n')
        .map_or(Some(200), parse_leading_digits)
        .filter(|n| *n > 0)
        .ok_or_else(usage_refusal)?;
    let params = [(DESCRIPTORS, descriptors.into()), (MODE, mode.into())];
    let query = PointQuery::new("syscall.select", params);
    Ok(LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        page.add_line(
            figures.median_ns(&query).map(|ns| microseconds(&format!("Select on {descriptors} {kind}"), ns)),
        );
    }))
}

/// `lat_pagefault [-C] file`: first touches of all pages of a cached file, in random order.
///
/// # Errors
/// There is not exactly one file, or `-P` is above 1.
pub fn lat_pagefault(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [file] = call.exactly()?;
    call.options.one_caller("syscall.page-fault")?;
    let file = file.to_owned();
    let path = PathBuf::from(&file);
    let params = [(MODE, "file-around".into()), (PAGES, "4KiB".into()), (PATH, file.as_str().into())];
    let query = PointQuery::new("syscall.page-fault", params);
    let mut job = LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        let ns = figures.ns_of_part(&query);
        page.add_line(ns.map(|ns| microseconds(&format!("Pagefaults on {file}"), ns)));
    });
    job.source = Some(LmbenchSourceFile { path, at_least: PAGE });
    Ok(job)
}

/// Size of a page, in bytes.
const PAGE: u64 = 4096;

/// `lat_mmap [-r] [-C] size file`: map a file, touch a tenth of it every 16 KiB (`-r`: all of it every 160 KiB), unmap
/// it.
///
/// # Errors
/// The size or the file is missing, or `-P` is above 1.
pub fn lat_mmap(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [size, file] = call.exactly()?;
    let size = parse_size(size).filter(|size| *size >= 4096).ok_or_else(usage_refusal)?;
    call.options.one_caller("syscall.mmap")?;
    // A tenth of the file every 16 KiB, or all of it every 160 KiB: as many touches.
    let stride: u64 = if call.options.flag('r') { 160 << 10 } else { 16 << 10 };
    let path = PathBuf::from(file);
    let params = [
        (MODE, "file-mapped".into()),
        (PAGES, "4KiB".into()),
        (PATH, file.into()),
        (SIZE, size.into()),
        (STRIDE, stride.into()),
    ];
    let mut query = PointQuery::new("syscall.page-fault", params);
    if !call.options.flag('r') {
        query.params.insert(TOUCHED.to_owned(), (size / 10).into());
    }
    let mut job = LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        page.add_line(figures.median_ns(&query).map(|ns| size_and_microseconds(size, ns)));
    });
    job.source = Some(LmbenchSourceFile { path, at_least: size });
    Ok(job)
}
