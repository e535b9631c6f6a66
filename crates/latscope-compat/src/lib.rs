//! Replacements for older tools: the programs of LMbench 3 in this module, those of rt-tests in [`rt`], AOSP's tests of
//! binder in [`binder_tests`], and the benchmark of openEuler's MCS in [`mcs`]. They take the arguments of the
//! originals, measure with latscope's probes, and print the text of the originals.
//!
//! Reading the arguments and printing the text are pure functions; only [`run`] touches the machine. The numbers are
//! always latscope's. Their differences from LMbench's are described in `docs/lmbench.md`.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod binder_tests;
pub mod getopt;
pub mod job;
pub mod mcs;
pub mod page;
pub mod rt;

mod file;
mod handover;
pub mod identity;
mod kernel;
mod memory;
mod names;
mod processor;
mod refused;
mod runner;
pub mod usage;

pub use arguments::{Call, CallError};
pub use job::{Figures, Job, PointQuery, Source};
pub use page::{NotMeasured, Output, Page};
pub use refused::{REFUSED, Refused};
pub use rt::Tool;
pub use runner::run;

use latscope_host::role::Role;
use std::ffi::OsStr;
use std::path::Path;

/// Roles of processes that this crate starts.
pub const ROLES: &[Role] = &[rt::paced::ROLE];

/// Exit code of LMbench for arguments that it does not understand: exit(-1).
pub const USAGE_EXIT: u8 = 255;

/// Program of LMbench that latscope replaces.
pub struct Personality {
    /// Name of the program.
    pub name: &'static str,
    /// Summary of what the program measures, in one line.
    pub summary: &'static str,
    /// Usage of the program, as printed after its name.
    pub usage: &'static str,
    /// Function that reads a call. It is pure.
    pub parse: fn(&Call) -> Result<Job, CallError>,
}

impl Personality {
    /// Returns the answer of this program to a call that it does not carry out.
    pub fn answer(&self, error: &CallError) -> Output {
        match error {
            CallError::Usage => Output {
                stderr: format!("Usage: {} {}\n", self.name, self.usage),
                exit_code: USAGE_EXIT,
                ..Output::default()
            },
            CallError::Refused(reason) => Output {
                stderr: format!("latscope: {}: {reason}\n", self.name),
                exit_code: 1,
                ..Output::default()
            },
        }
    }
}

const fn program(
    name: &'static str,
    parse: fn(&Call) -> Result<Job, CallError>,
    summary: &'static str,
    usage: &'static str,
) -> Personality {
    Personality { name, summary, usage, parse }
}

/// All programs of LMbench that latscope replaces, by name.
#[rustfmt::skip]
pub static PERSONALITIES: &[Personality] = &[
    program("bw_file_rd", file::bw_file_rd, "bandwidth of reading a cached file",
        "[-C] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] <size> open2close|io_only <filename>\nmin size=1"),
    program("bw_mem", memory::bw_mem, "bandwidth of memory, by kind of transfer",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] <size> what [conflict]\nwhat: rd wr rdwr cp fwr frd fcp bzero bcopy\n<size> must be larger than 512"),
    program("bw_mmap_rd", file::bw_mmap_rd, "bandwidth of reading a mapped file",
        "[-C] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] <size> open2close|mmap_only <filename>"),
    program("bw_pipe", handover::bw_pipe, "bandwidth of a pipe",
        "[-m <message size>] [-M <total bytes>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("bw_tcp", handover::bw_tcp, "bandwidth of TCP over loopback",
        "-s\n OR [-m <message size>] [-M <bytes to move>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] server\n OR -S serverhost"),
    program("bw_unix", handover::bw_unix, "bandwidth of a Unix stream socket",
        "[-m <message size>] [-M <total bytes>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("lat_ctx", handover::lat_ctx, "context switch in a ring of processes",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] [-s kbytes] processes [processes ...]"),
    program("lat_fifo", handover::lat_fifo, "round trip through named pipes",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("lat_fs", file::lat_fs, "files created and deleted in a second",
        "[-s <file size>] [-n <max files per dir>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] [<dir>]"),
    program("lat_mem_rd", memory::lat_mem_rd, "latency of a load, by size and stride",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] [-t] len [stride...]"),
    program("lat_mmap", kernel::lat_mmap, "mapping, touching and unmapping a file",
        "[-r] [-C] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] size file"),
    program("lat_ops", processor::lat_ops, "latency of arithmetic",
        "[-W <warmup>] [-N <repetitions>] [-P <parallel>]"),
    program("lat_pagefault", kernel::lat_pagefault, "page fault on a cached file",
        "[-C] [-P <parallel>] [-W <warmup>] [-N <repetitions>] file"),
    program("lat_pipe", handover::lat_pipe, "round trip through pipes",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("lat_proc", kernel::lat_proc, "creating processes",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] procedure|fork|exec|shell"),
    program("lat_select", kernel::lat_select, "select on many descriptors",
        "[-n <#descriptors>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] file|tcp"),
    program("lat_sem", handover::lat_sem, "semaphore hand-over, one way",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("lat_sig", kernel::lat_sig, "signals",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] install|catch|prot [file]"),
    program("lat_syscall", kernel::lat_syscall, "system calls",
        "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] null|read|write|stat|fstat|open [file]"),
    program("lat_tcp", handover::lat_tcp, "round trip over TCP, loopback",
        "-s\n OR [-m <message size>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] server\n OR -S server"),
    program("lat_udp", handover::lat_udp, "round trip over UDP, loopback",
        "-s\n OR [-S] [-m <message size>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] server\n NOTE: message size must be >= 4"),
    program("lat_unix", handover::lat_unix, "round trip through a Unix stream socket",
        "[-m <message size>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("mhz", processor::mhz, "core clock",
        "[-d] [-c]"),
    program("par_mem", memory::par_mem, "loads under way at once, by size",
        "[-L <line size>] [-M len[K|M]] [-W <warmup>] [-N <repetitions>]"),
    program("par_ops", processor::par_ops, "operations under way at once",
        "[-W <warmup>] [-N <repetitions>] [-P <parallel>]"),
    program("stream", memory::stream, "STREAM: copy, scale, add, triad",
        "[-v <stream version 1|2>] [-M <len>[K|M]] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]"),
    program("tlb", memory::tlb, "pages that can be visited without a page walk",
        "[-c] [-L <line size>] [-M len[K|M]] [-W <warmup>] [-N <repetitions>]"),
];

fn tools() -> impl Iterator<Item = &'static Tool> {
    rt::TOOLS.iter().chain(binder_tests::TOOLS).chain(mcs::TOOLS)
}

/// Returns the program of rt-tests, of AOSP or of MCS with this name.
pub fn find_tool(name: &str) -> Option<&'static Tool> {
    tools().find(|tool| tool.name == name)
}

/// Returns name and summary of every program that latscope replaces.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let tools = tools().map(|tool| (tool.name, tool.summary));
    tools.chain(PERSONALITIES.iter().map(|personality| (personality.name, personality.summary)))
}

/// List of the programs that latscope replaces, as `latscope as` prints it.
pub fn listing() -> String {
    let lines = all().map(|(name, summary)| format!("  {name:<22} {summary}\n"));
    format!(
        "Behave as an older tool: its arguments, its output, our numbers\n\n\
         Usage: latscope as NAME [ARGS]…, or a link of that name to latscope\n\n{}\n\
         All of them take --label KEY=VALUE and --machine-id TEXT|none, which are saved with latscope's result,\n\
         --save-every T, the interval between saves of that result, and --dry-run, which shows the plan and measures nothing.\n",
        lines.collect::<String>()
    )
}

/// Returns the personality with this name.
pub fn find(name: &str) -> Option<&'static Personality> {
    PERSONALITIES.iter().find(|personality| personality.name == name)
}

/// Name of the personality for a program that was called by this name or path.
pub fn by_name(argv0: &OsStr) -> Option<&'static str> {
    let name = Path::new(argv0).file_name()?.to_str()?;
    find(name).map(|tool| tool.name).or_else(|| find_tool(name).map(|tool| tool.name))
}
