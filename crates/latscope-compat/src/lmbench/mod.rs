//! The programs of LMbench 3. Reading the arguments and printing the text are pure functions: a call is read into a
//! [`LmbenchJob`], which has the points to measure and prints their figures. The differences from LMbench's figures are
//! in `docs/lmbench.md`.

pub mod job;
pub mod page;

mod file;
mod handover;
mod kernel;
mod memory;
mod options;
mod processor;
mod run;

pub use options::{LmbenchCall, LmbenchOptions};

use crate::context::PersonalityContext;
use crate::getopt::{CommandLineRefusal, ProgramOption, Spec};
use crate::notes::StandardStream;
use crate::personality::{PersonalityProgram, PersonalitySuite};
use anyhow::{Context as _, Result};
use job::LmbenchJob;
use latscope_process::stdout;
use options::{N, P, W, flag, grammar, parallelism, value_option};
use page::LmbenchOutput;
use std::io::Write;

/// Exit code of LMbench for arguments that it does not understand: exit(-1).
const USAGE_EXIT: u8 = 255;

static LMBENCH: PersonalitySuite = PersonalitySuite {
    grammar,
    prepare,
    usage,
    answer: |context, error, usage| write_output(&answer(context, &error.downcast()?, &usage), context),
};

/// Takes `--strict-exit` and `--json FILE` out of the arguments, wherever they stand: the originals have no long
/// options.
fn prepare(context: &mut PersonalityContext) -> Result<()> {
    let mut rest = std::mem::take(&mut context.arguments).into_iter();
    while let Some(argument) = rest.next() {
        if argument == "--strict-exit" {
            context.strict_exit = true;
        } else if argument == "--json" {
            context.result = Some(rest.next().context("--json needs a file")?.into());
        } else {
            context.arguments.push(argument);
        }
    }
    Ok(())
}

/// Usage of a program as LMbench prints it. Options that the form names itself are not listed.
fn usage(name: &str, form: &str, specs: &[&Spec]) -> String {
    let listed = specs.iter().filter(|spec| !form.contains(&spec.name()));
    let options: Vec<String> = listed.map(|spec| format!("[{}]", spec.forms())).collect();
    format!("Usage: {name} {}\n", form.replace("{}", &options.join(" ")))
}

/// Output of a program for a refused call.
pub fn answer(context: &PersonalityContext, refusal: &CommandLineRefusal, usage: &str) -> LmbenchOutput {
    let (stderr, exit_code) = match refusal {
        CommandLineRefusal::Fatal(reason) => (format!("latscope: {}: {reason}\n", context.name), 1),
        _ => (usage.to_owned(), if context.strict_exit { 1 } else { USAGE_EXIT }),
    };
    LmbenchOutput { stderr, exit_code, ..LmbenchOutput::default() }
}

/// Writes the output of a program, then its notes. Returns its exit code.
///
/// # Errors
/// Standard error or the file of notes cannot be written. Results go to standard error: a program that loses them has
/// failed.
fn write_output(output: &LmbenchOutput, context: &PersonalityContext) -> Result<u8> {
    stdout::print_text(&output.stdout);
    latscope_process::output::BlockingOutput(rustix::stdio::stderr()).write_all(output.stderr.as_bytes())?;
    let figures = if output.stdout.is_empty() { StandardStream::Stderr } else { StandardStream::Stdout };
    for note in &output.notes {
        context.notes.write_line(&format!("latscope: {}: note: {note}", context.name), figures)?;
    }
    Ok(output.exit_code)
}

const fn define_program(
    name: &'static str,
    summary: &'static str,
    settle: fn(LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal>,
    options: &'static [ProgramOption<LmbenchOptions>],
    form: &'static str,
) -> PersonalityProgram<LmbenchOptions, LmbenchJob> {
    let usual = LmbenchOptions::default_options;
    PersonalityProgram {
        name,
        summary,
        suite: &LMBENCH,
        form,
        options,
        usual,
        settle,
        carry_out: run::carry_out,
    }
}

/// All programs of LMbench that latscope replaces, by name.
#[rustfmt::skip]
pub static PROGRAMS: &[PersonalityProgram<LmbenchOptions, LmbenchJob>] = &[
    define_program("bw_file_rd", "bandwidth of reading a cached file", file::bw_file_rd,
        &[flag('C'), P, W, N], "{} <size> open2close|io_only <filename>\nmin size=1"),
    define_program("bw_mem", "bandwidth of memory, by kind of transfer", memory::bw_mem,
        &[P, W, N], "{} <size> what [conflict]\nwhat: rd wr rdwr cp fwr frd fcp bzero bcopy\n<size> must be larger than 512"),
    define_program("bw_mmap_rd", "bandwidth of reading a mapped file", file::bw_mmap_rd,
        &[flag('C'), P, W, N], "{} <size> open2close|mmap_only <filename>"),
    define_program("bw_pipe", "bandwidth of a pipe", handover::bw_pipe,
        &[value_option('m', "<message size>"), value_option('M', "<total bytes>"), P, W, N], "{}"),
    define_program("bw_tcp", "bandwidth of TCP over loopback", handover::bw_tcp,
        &[flag('s'), value_option('S', "serverhost"), value_option('m', "<message size>"), value_option('M', "<bytes to move>"), P, W, N],
        "-s\n OR {} server\n OR -S serverhost"),
    define_program("bw_unix", "bandwidth of a Unix stream socket", handover::bw_unix,
        &[value_option('m', "<message size>"), value_option('M', "<total bytes>"), P, W, N], "{}"),
    define_program("lat_ctx", "context switch in a ring of processes", handover::lat_ctx,
        &[P, W, N, value_option('s', "kbytes")], "{} processes [processes ...]"),
    define_program("lat_fifo", "round trip through named pipes", handover::lat_fifo, &[P, W, N], "{}"),
    define_program("lat_fs", "files created and deleted in a second", file::lat_fs,
        &[value_option('s', "<file size>"), value_option('n', "<max files per dir>"), P, W, N], "{} [<dir>]"),
    define_program("lat_mem_rd", "latency of a load, by size and stride", memory::lat_mem_rd,
        &[P, W, N, flag('t')], "{} len [stride...]"),
    define_program("lat_mmap", "mapping, touching and unmapping a file", kernel::lat_mmap,
        &[flag('r'), flag('C'), P, W, N], "{} size file"),
    define_program("lat_ops", "latency of arithmetic", processor::lat_ops, &[W, N, parallelism("<parallel>")], "{}"),
    define_program("lat_pagefault", "page fault on a cached file", kernel::lat_pagefault,
        &[flag('C'), parallelism("<parallel>"), W, N], "{} file"),
    define_program("lat_pipe", "round trip through pipes", handover::lat_pipe, &[P, W, N], "{}"),
    define_program("lat_proc", "creating processes", kernel::lat_proc, &[P, W, N], "{} procedure|fork|exec|shell"),
    define_program("lat_select", "select on many descriptors", kernel::lat_select,
        &[value_option('n', "<#descriptors>"), P, W, N], "{} file|tcp"),
    define_program("lat_sem", "semaphore hand-over, one way", handover::lat_sem, &[P, W, N], "{}"),
    define_program("lat_sig", "signals", kernel::lat_sig, &[P, W, N], "{} install|catch|prot [file]"),
    define_program("lat_syscall", "system calls", kernel::lat_syscall,
        &[P, W, N], "{} null|read|write|stat|fstat|open [file]"),
    define_program("lat_tcp", "round trip over TCP, loopback", handover::lat_tcp,
        &[flag('s'), value_option('S', "server"), value_option('m', "<message size>"), P, W, N], "-s\n OR {} server\n OR -S server"),
    define_program("lat_udp", "round trip over UDP, loopback", handover::lat_udp,
        &[flag('s'), flag('S'), value_option('m', "<message size>"), P, W, N],
        "-s\n OR {} server\n NOTE: message size must be >= 4"),
    define_program("lat_unix", "round trip through a Unix stream socket", handover::lat_unix,
        &[value_option('m', "<message size>"), P, W, N], "{}"),
    define_program("mhz", "core clock", processor::mhz, &[flag('d'), flag('c')], "{}"),
    define_program("par_mem", "loads under way at once, by size", memory::par_mem,
        &[value_option('L', "<line size>"), value_option('M', "len[K|M]"), W, N], "{}"),
    define_program("par_ops", "operations under way at once", processor::par_ops,
        &[W, N, parallelism("<parallel>")], "{}"),
    define_program("stream", "STREAM: copy, scale, add, triad", memory::stream,
        &[value_option('v', "<stream version 1|2>"), value_option('M', "<len>[K|M]"), P, W, N], "{}"),
    define_program("tlb", "pages that can be visited without a page walk", memory::tlb,
        &[flag('c'), value_option('L', "<line size>"), value_option('M', "len[K|M]"), W, N], "{}"),
];

/// Program that latscope does not replace.
pub struct UnsupportedProgram {
    /// Name of the program.
    pub name: &'static str,
    /// Text on the alternative.
    pub instead: &'static str,
}

const NETWORK: &str = "it is not measured; the nearest are lat_tcp, lat_udp and bw_tcp, over loopback";
const HARNESS: &str =
    "it belongs to LMbench's harness; `latscope cpu` shows what our clock resolves and costs";
const DISK: &str = "raw disks are not measured; see `latscope file` (file.read-direct, file.fsync)";
const MEMORY: &str = "see `latscope memory`, whose findings name the cache levels with size and latency";

/// All programs that latscope does not replace, by name.
pub static REFUSED: &[UnsupportedProgram] = &[
    UnsupportedProgram { name: "bw_udp", instead: NETWORK },
    UnsupportedProgram { name: "cache", instead: MEMORY },
    UnsupportedProgram { name: "disk", instead: DISK },
    UnsupportedProgram { name: "enough", instead: HARNESS },
    UnsupportedProgram { name: "flushdisk", instead: DISK },
    UnsupportedProgram { name: "lat_cmd", instead: "commands are not timed; the nearest is lat_proc exec" },
    UnsupportedProgram { name: "lat_connect", instead: NETWORK },
    UnsupportedProgram { name: "lat_dram_page", instead: MEMORY },
    UnsupportedProgram {
        name: "lat_fcntl",
        instead: "record locks are not measured; the nearest hand-overs are lat_sem and lat_pipe",
    },
    UnsupportedProgram { name: "lat_http", instead: NETWORK },
    UnsupportedProgram {
        name: "lat_pmake",
        instead: "job mixes are not measured; see `latscope thread` (thread.pool)",
    },
    UnsupportedProgram {
        name: "lat_rand",
        instead: "library calls are not measured; see `latscope cpu` (cpu.call, cpu.mul)",
    },
    UnsupportedProgram { name: "lat_rpc", instead: NETWORK },
    UnsupportedProgram { name: "lat_unix_connect", instead: NETWORK },
    UnsupportedProgram {
        name: "lat_usleep",
        instead: "sleeps are measured as wake-ups, with their distribution: `latscope wake`",
    },
    UnsupportedProgram {
        name: "line",
        instead: "the line size is not measured; `latscope doctor` shows what the machine declares",
    },
    UnsupportedProgram { name: "lmdd", instead: DISK },
    UnsupportedProgram { name: "lmhttp", instead: NETWORK },
    UnsupportedProgram { name: "loop_o", instead: HARNESS },
    UnsupportedProgram { name: "memsize", instead: "see `free -b`: the kernel says what memory can be had" },
    UnsupportedProgram { name: "msleep", instead: HARNESS },
    UnsupportedProgram { name: "par_list", instead: "see par_mem" },
    UnsupportedProgram { name: "seek", instead: DISK },
    UnsupportedProgram { name: "timing_o", instead: HARNESS },
];

/// Returns the program with this name.
pub fn find_program(name: &str) -> Option<&'static PersonalityProgram<LmbenchOptions, LmbenchJob>> {
    PROGRAMS.iter().find(|program| program.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_latscope_are_taken_out_wherever_they_stand() {
        let mut context = PersonalityContext::new(["-P", "1", "--strict-exit", "null", "--json", "F"]);
        prepare(&mut context).unwrap();
        assert_eq!(context.arguments, ["-P", "1", "null"]);
        assert!(context.strict_exit && context.result == Some("F".into()));
        assert!(prepare(&mut PersonalityContext::new(["--json"])).is_err());
    }

    #[test]
    fn exit_codes_are_lmbenchs_unless_latscopes_are_asked_for() {
        let code = |name: &str, words: &[&str]| {
            let mut context = PersonalityContext::new(words.iter().copied());
            prepare(&mut context).unwrap();
            let program = find_program(name).unwrap();
            answer(&context, &program.read_call(&context).unwrap_err(), &program.usage()).exit_code
        };
        assert_eq!(code("lat_syscall", &["nonsense"]), 255);
        assert_eq!(code("lat_syscall", &["nonsense", "--strict-exit"]), 1);
        assert_eq!(code("lat_pipe", &["-P", "2"]), 1);
    }
}
