//! Single system calls that do next to nothing in the kernel.

use crate::prelude::*;
use crate::ways::{by_title, other_than_bare};
use latscope_bench::hold::real_time_remedy;
use latscope_os::kernels::code::calls::SystemCallLoop;
use rustix::fd::AsFd;
use rustix::fs::Mode;
use rustix::io::Result;
use std::ffi::CString;

static CALLS: Experiment = Experiment::new("syscall.calls", Cpus::One, run_system_calls)
    .per_kind(|point| point.row && is_bare_getppid(point));

fn is_bare_getppid(point: &MeasurementPoint) -> bool {
    point.probe == GETPPID.id && point.params.is_empty()
}

settings! {
    /// A call by one of two ways.
    struct SyscallSettings, requested as SyscallRequest {
        /// `libc`, where asked for or next to the bare instruction: by the function of the C library
        by: Option<SyscallInvocation>;
    }
}

probes! {
    CALLS, SyscallSettings, plan_called, ..FACTS;
    GETPPID "syscall.getppid", "getppid, the cheapest system call", "getppid(2)",
        "One getppid: into the kernel and back.";
}

/// Facts of calls by the bare instruction, at several addresses.
pub(crate) const FACTS: ProbeFacts =
    ProbeFacts { by: Some(SyscallInvocation::Instruction), at_addresses: true, ..ProbeFacts::BATCHES };

probes! {
    CALLS, (), crate::only_point, ..FACTS;
    READ "syscall.read", "read 1 B of /dev/zero", "read(2), zero(4)",
        "One read of 1 byte from an open /dev/zero.";
    WRITE "syscall.write", "write 1 B to /dev/null", "write(2), null(4)",
        "One write of 1 byte to an open /dev/null.";
    YIELD "syscall.yield", "sched_yield, no other thread ready", "sched_yield(2)",
        "One sched_yield by the only SCHED_FIFO thread that wants the CPU: threads of the normal class do not count as waiting.";
}

settings! {
    /// A file by its path.
    struct PathSyscallSettings, requested as PathSyscallRequest {
        /// Path of the file; /etc, if none is given
        path: Option<String>;
    }
}

probes! {
    CALLS, PathSyscallSettings, plan_named, ..FACTS;
    STAT "syscall.stat", "stat /etc", "stat(2)",
        "One stat of /etc by its path, which is in the kernel's cache.";
    FSTAT "syscall.fstat", "fstat of an open file", "fstat(2)",
        "One fstat of an open directory.";
    OPEN_CLOSE "syscall.open-close", "open and close /etc", "open(2), close(2)",
        "One open of /etc for reading, by its cached path, and one close.";
}

fn plan_called(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let ways = SyscallRequest::of(input).by.or(SyscallInvocation::ALL);
    ways.into_iter()
        .map(|by| {
            probe.make_point(SyscallSettings { by: other_than_bare(by) }, by_title(probe.title, by), true)
        })
        .collect()
}

fn plan_named(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let path = PathSyscallRequest::of(input).path.first();
    let title = match &path {
        Some(path) => format!("{} of {path}", probe.id.trim_start_matches("syscall.")),
        None => probe.title.to_owned(),
    };
    vec![probe.make_point(PathSyscallSettings { path }, title, true)]
}

/// Path that exists on every Linux and has no symbolic link.
const KNOWN_PATH: &CStr = c"/etc";

fn run_system_calls(bench: &mut Bench) -> anyhow::Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        let operation = point.title.as_str();
        let path = match point.probe.as_str() {
            "syscall.stat" | "syscall.fstat" | "syscall.open-close" => PathSyscallSettings::read(point)?.path,
            _ => None,
        };
        let path = path.map_or_else(|| Ok(KNOWN_PATH.to_owned()), CString::new);
        let Ok(path) = path else {
            bench.unsupported(index, "the path has a zero byte", "");
            continue;
        };
        let measured = measure_call(bench, index, &point.probe, operation, &path)?;
        ok_or_refuse(bench, index, operation, measured);
    }
    Ok(())
}

/// Measures a call. The inner result is the error of the preparation.
fn measure_call(
    bench: &mut Bench,
    point: usize,
    probe: &str,
    operation: &str,
    path: &CStr,
) -> anyhow::Result<Result<()>> {
    let open = |path: &CStr, flags| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
    let (mut byte, seed) = ([0u8], bench.seed());
    let file = match probe {
        "syscall.read" => open(c"/dev/zero", OFlags::RDONLY),
        "syscall.write" => open(c"/dev/null", OFlags::WRONLY),
        "syscall.getppid" | "syscall.yield" => open(c"/", OFlags::RDONLY),
        _ => open(path, OFlags::RDONLY),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) => return Ok(Err(error)),
    };
    match probe {
        "syscall.getppid" if SyscallSettings::read(&bench.points()[point])?.by.is_some() => {
            time_call(bench, point, operation, || {
                black_box(std::os::unix::process::parent_id());
                Ok(())
            });
        }
        "syscall.getppid" => time_loop(bench, point, operation, &mut SystemCallLoop::getppid(seed)),
        "syscall.read" => {
            time_loop(bench, point, operation, &mut SystemCallLoop::read(seed, file.as_fd(), &mut byte))
        }
        "syscall.write" => {
            time_loop(bench, point, operation, &mut SystemCallLoop::write(seed, file.as_fd(), &byte))
        }
        "syscall.stat" => time_loop(bench, point, operation, &mut SystemCallLoop::stat(seed, path)),
        "syscall.fstat" => time_loop(bench, point, operation, &mut SystemCallLoop::fstat(seed, file.as_fd())),
        "syscall.open-close" => {
            time_loop(bench, point, operation, &mut SystemCallLoop::open_close(seed, path))
        }
        "syscall.yield" => time_yield(bench, point, operation)?,
        other => anyhow::bail!("no system call is known as {other}"),
    }
    Ok(Ok(()))
}

/// Times sched_yield under SCHED_FIFO. There a thread of the normal class does not count as waiting, so that a
/// busy machine and an idle one give the same figure. Under SCHED_OTHER the scheduler weighs waiting threads
/// also in batches in which it does not choose them.
fn time_yield(bench: &mut Bench, point: usize, operation: &str) -> anyhow::Result<()> {
    let granted = sched::set_policy(sched::ThreadSchedPolicy::Fifo(1));
    time_loop(bench, point, operation, &mut SystemCallLoop::sched_yield(bench.seed()));
    match granted {
        Ok(()) => sched::set_policy(sched::ThreadSchedPolicy::Other)?,
        Err(error) => {
            let otherwise = "each call weighed the threads that want the CPU, if any";
            let reason = format!("SCHED_FIFO was refused ({error}): {otherwise}");
            bench.degrade(point, "policy-refused", reason, real_time_remedy());
        }
    }
    Ok(())
}

/// Times a loop of calls at all of its addresses, after a first try: a call that this machine refuses closes the point
/// with the reason.
pub(crate) fn time_loop(bench: &mut Bench, point: usize, operation: &str, calls: &mut SystemCallLoop) {
    time_loop_in(bench, point, Batch { cycles: true, ..Batch::default() }, operation, calls);
}

/// Times a loop of calls as [`time_loop`] does, in batches of another kind.
pub(crate) fn time_loop_in(
    bench: &mut Bench,
    point: usize,
    batch: Batch,
    operation: &str,
    calls: &mut SystemCallLoop,
) {
    let Some(()) = ok_or_refuse(bench, point, operation, calls.run_at(0, 1)) else { return };
    let mut first = FirstError::default();
    bench.batch_at_addresses(point, batch, calls.address_count(), |address, iterations| {
        first.check_result(calls.run_at(address, iterations));
    });
    first.ok_or_close(bench, &[point], operation);
}

/// Times calls of compiled code in batches, after a first try: a call that this machine refuses closes the point with
/// the reason.
pub(crate) fn time_call(
    bench: &mut Bench,
    point: usize,
    operation: &str,
    mut call: impl FnMut() -> Result<()>,
) {
    let Some(()) = ok_or_refuse(bench, point, operation, call()) else { return };
    let mut first = FirstError::default();
    bench.calls(point, Batch { cycles: true, ..Batch::default() }, || {
        first.check_result(call());
    });
    first.ok_or_close(bench, &[point], operation);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscall::PROBES;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn every_call_is_measured() {
        let here = PROBES.iter().filter(|probe| std::ptr::eq(probe.experiment, &CALLS));
        for m in measure(&CALLS, here.flat_map(|probe| points(probe)).collect()) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{}: {:?}", m.probe, m.joined_reasons());
        }
    }

    #[test]
    fn a_refused_call_closes_its_point_with_the_reason() {
        fn refused(bench: &mut Bench) -> anyhow::Result<()> {
            time_call(bench, 0, "some call", || Err(rustix::io::Errno::PERM));
            Ok(())
        }
        static REFUSED: Experiment = Experiment::new("refused", Cpus::One, refused);
        let measured = measure(&REFUSED, points(&GETPPID));
        check(&measured[0]);
        assert_eq!(measured[0].quality.level, QualityLevel::Unsupported);
        assert!(measured[0].joined_reasons().as_ref().unwrap().starts_with("some call: "));
    }
}
