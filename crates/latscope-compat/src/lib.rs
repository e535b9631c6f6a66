//! The drop-in personalities: LMbench 3's arguments in, our probes, LMbench's
//! text out; the programs of rt-tests in [`rt`], and AOSP's tests of binder in
//! [`binder_tests`], and the benchmark of openEuler's MCS in [`mcs`].
//!
//! Reading the arguments and printing the text are pure functions; only
//! [`run`] touches the machine. The number is always ours: how it differs
//! from LMbench's is in `docs/lmbench.md`.
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

use std::ffi::OsStr;
use std::path::Path;

/// Exit code of LMbench for arguments it does not understand: exit(-1).
pub const USAGE_EXIT: u8 = 255;

/// A program of LMbench that latscope stands in for.
pub struct Personality {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in a line.
    pub summary: &'static str,
    /// Its usage, as it prints it after its name.
    pub usage: &'static str,
    /// Reads a call. Pure.
    pub parse: fn(&Call) -> Result<Job, CallError>,
}

impl Personality {
    /// What this program answers to a call it does not carry out.
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

/// All programs latscope stands in for, by name.
pub static PERSONALITIES: &[Personality] = &[
    Personality {
        name: "bw_file_rd",
        summary: "bandwidth of reading a cached file",
        usage: "[-C] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] <size> open2close|io_only <filename>\nmin size=1",
        parse: file::bw_file_rd,
    },
    Personality {
        name: "bw_mem",
        summary: "bandwidth of memory, by kind of transfer",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] <size> what [conflict]\n\
                what: rd wr rdwr cp fwr frd fcp bzero bcopy\n<size> must be larger than 512",
        parse: memory::bw_mem,
    },
    Personality {
        name: "bw_mmap_rd",
        summary: "bandwidth of reading a mapped file",
        usage: "[-C] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] <size> open2close|mmap_only <filename>",
        parse: file::bw_mmap_rd,
    },
    Personality {
        name: "bw_pipe",
        summary: "bandwidth of a pipe",
        usage: "[-m <message size>] [-M <total bytes>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: handover::bw_pipe,
    },
    Personality {
        name: "bw_tcp",
        summary: "bandwidth of TCP over loopback",
        usage: "-s\n OR [-m <message size>] [-M <bytes to move>] [-P <parallelism>] [-W <warmup>] \
                [-N <repetitions>] server\n OR -S serverhost",
        parse: handover::bw_tcp,
    },
    Personality {
        name: "bw_unix",
        summary: "bandwidth of a Unix stream socket",
        usage: "[-m <message size>] [-M <total bytes>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: handover::bw_unix,
    },
    Personality {
        name: "lat_ctx",
        summary: "context switch in a ring of processes",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] [-s kbytes] processes [processes ...]",
        parse: handover::lat_ctx,
    },
    Personality {
        name: "lat_fifo",
        summary: "round trip through named pipes",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: handover::lat_fifo,
    },
    Personality {
        name: "lat_fs",
        summary: "files created and deleted in a second",
        usage: "[-s <file size>] [-n <max files per dir>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] [<dir>]",
        parse: file::lat_fs,
    },
    Personality {
        name: "lat_mem_rd",
        summary: "latency of a load, by size and stride",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] [-t] len [stride...]",
        parse: memory::lat_mem_rd,
    },
    Personality {
        name: "lat_mmap",
        summary: "mapping, touching and unmapping a file",
        usage: "[-r] [-C] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] size file",
        parse: kernel::lat_mmap,
    },
    Personality {
        name: "lat_ops",
        summary: "latency of arithmetic",
        usage: "[-W <warmup>] [-N <repetitions>] [-P <parallel>]",
        parse: processor::lat_ops,
    },
    Personality {
        name: "lat_pagefault",
        summary: "page fault on a cached file",
        usage: "[-C] [-P <parallel>] [-W <warmup>] [-N <repetitions>] file",
        parse: kernel::lat_pagefault,
    },
    Personality {
        name: "lat_pipe",
        summary: "round trip through pipes",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: handover::lat_pipe,
    },
    Personality {
        name: "lat_proc",
        summary: "creating processes",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] procedure|fork|exec|shell",
        parse: kernel::lat_proc,
    },
    Personality {
        name: "lat_select",
        summary: "select on many descriptors",
        usage: "[-n <#descriptors>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] file|tcp",
        parse: kernel::lat_select,
    },
    Personality {
        name: "lat_sem",
        summary: "semaphore hand-over, one way",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: handover::lat_sem,
    },
    Personality {
        name: "lat_sig",
        summary: "signals",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] install|catch|prot [file]",
        parse: kernel::lat_sig,
    },
    Personality {
        name: "lat_syscall",
        summary: "system calls",
        usage: "[-P <parallelism>] [-W <warmup>] [-N <repetitions>] null|read|write|stat|fstat|open [file]",
        parse: kernel::lat_syscall,
    },
    Personality {
        name: "lat_tcp",
        summary: "round trip over TCP, loopback",
        usage: "-s\n OR [-m <message size>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] server\n OR -S server",
        parse: handover::lat_tcp,
    },
    Personality {
        name: "lat_udp",
        summary: "round trip over UDP, loopback",
        usage: "-s\n OR [-S] [-m <message size>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>] server\n \
                NOTE: message size must be >= 4",
        parse: handover::lat_udp,
    },
    Personality {
        name: "lat_unix",
        summary: "round trip through a Unix stream socket",
        usage: "[-m <message size>] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: handover::lat_unix,
    },
    Personality { name: "mhz", summary: "core clock", usage: "[-d] [-c]", parse: processor::mhz },
    Personality {
        name: "par_mem",
        summary: "loads under way at once, by size",
        usage: "[-L <line size>] [-M len[K|M]] [-W <warmup>] [-N <repetitions>]",
        parse: memory::par_mem,
    },
    Personality {
        name: "par_ops",
        summary: "operations under way at once",
        usage: "[-W <warmup>] [-N <repetitions>] [-P <parallel>]",
        parse: processor::par_ops,
    },
    Personality {
        name: "stream",
        summary: "STREAM: copy, scale, add, triad",
        usage: "[-v <stream version 1|2>] [-M <len>[K|M]] [-P <parallelism>] [-W <warmup>] [-N <repetitions>]",
        parse: memory::stream,
    },
    Personality {
        name: "tlb",
        summary: "pages that can be visited without a page walk",
        usage: "[-c] [-L <line size>] [-M len[K|M]] [-W <warmup>] [-N <repetitions>]",
        parse: memory::tlb,
    },
];

/// The program of rt-tests, of AOSP or of MCS with this name.
pub fn find_tool(name: &str) -> Option<&'static Tool> {
    rt::find(name).or_else(|| binder_tests::find(name)).or_else(|| mcs::find(name))
}

/// Name and summary of every program that latscope stands in for.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let tools = rt::TOOLS.iter().chain(binder_tests::TOOLS).chain(mcs::TOOLS);
    let tools = tools.map(|tool| (tool.name, tool.summary));
    tools.chain(PERSONALITIES.iter().map(|personality| (personality.name, personality.summary)))
}

/// The programs that latscope stands in for, as `latscope as` shows them.
pub fn listing() -> String {
    let lines = all().map(|(name, summary)| format!("  {name:<22} {summary}\n"));
    format!(
        "Behave as an older tool: its arguments, its output, our numbers\n\n\
         Usage: latscope as NAME [ARGS]…, or a link of that name to latscope\n\n{}\n\
         All of them take --label KEY=VALUE and --machine-id TEXT|none, which are saved with latscope's result,\n\
         and --dry-run, which shows the plan and measures nothing.\n",
        lines.collect::<String>()
    )
}

/// The personality with this name.
pub fn find(name: &str) -> Option<&'static Personality> {
    PERSONALITIES.iter().find(|personality| personality.name == name)
}

/// The name of the personality that a program called by this name or path is.
pub fn by_name(argv0: &OsStr) -> Option<&'static str> {
    let name = Path::new(argv0).file_name()?.to_str()?;
    find(name).map(|tool| tool.name).or_else(|| find_tool(name).map(|tool| tool.name))
}
