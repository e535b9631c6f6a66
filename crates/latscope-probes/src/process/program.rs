//! Running a program: posix_spawn, fork and exec, and the shell.

use super::tiny_program;
use crate::prelude::*;
use crate::scheduled::{FreePlacement, apply_placement, suffix};
use latscope_os::process_probe::{ExecProgram, fork_execute, keep_children, spawn};
use latscope_process::files::may_be_replaced;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Result;
use rustix::process::geteuid;
use std::ffi::CString;
use std::io::Read;

static PROGRAMS: Experiment = Experiment::new("process.program", Cpus::One, run_programs).in_scratch();

words! {
    /// Linking of a program.
    enum ProgramLinkMode {
        /// A static program of one page, which exits at once.
        Static = "static",
        /// `true`, which the dynamic linker prepares first.
        Dynamic = "dynamic",
    }
}

settings! {
    /// Settings of a program that is started.
    struct ProgramStartSettings, requested as ProgramStartRequest {
        /// How the program is linked
        mode: ProgramLinkMode;
        /// `free`, where asked for: the scheduler places parent and child. Otherwise both are on one CPU
        placement: Option<FreePlacement>;
    }
}

words! {
    /// Command for a shell, if not `:`.
    enum ShellMode {
        /// `true`, by its path, in a shell that is forked and executed, as LMbench does it.
        ForkProgram = "fork-program",
    }
}

settings! {
    /// Settings of a shell that is started.
    struct ShellStartSettings, requested as ShellStartRequest {
        /// `fork-program`, where asked for: fork and execve of `sh -c PATH`, where PATH is that of `true`
        mode: Option<ShellMode>;
        /// `free`, where asked for: the scheduler places parent and child. Otherwise both are on one CPU
        placement: Option<FreePlacement>;
    }
}

probes! {
    PROGRAMS, (), crate::only_point;
    SPAWN "process.spawn", "posix_spawn, tiny static program", "posix_spawn(3), wait(2)",
        "posix_spawn of a static program of one page that exits at once, and the wait for it, on one CPU.";
}

probes! {
    PROGRAMS, ShellStartSettings, plan_shell;
    SHELL "process.shell", "sh -c :", "posix_spawn(3), sh(1), wait(2)",
        "posix_spawn of `sh -c :`, the shell's start and end, and the wait for it, on one CPU.";
}

probes! {
    PROGRAMS, ProgramStartSettings, plan_exec;
    EXEC "process.exec", "fork, exec, wait", "fork(2), execve(2), wait(2)",
        "fork, execve in the child, the program's whole run, and the wait for it, on one CPU. Static: a program of one \
            page that exits at once. Dynamic: `true`, which the dynamic linker prepares first.";
}

fn plan_exec(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ProgramStartRequest::of(input);
    let placement = asked.placement.first();
    let mut points = Vec::new();
    for mode in asked.mode.or(ProgramLinkMode::ALL) {
        let what = match mode {
            ProgramLinkMode::Static => "fork, exec, tiny static program",
            ProgramLinkMode::Dynamic => "fork, exec, `true` (dynamic)",
        };
        points.push(probe.make_point(
            ProgramStartSettings { mode, placement },
            format!("{what}{}", suffix(placement)),
            true,
        ));
    }
    points
}

fn plan_shell(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ShellStartRequest::of(input);
    // Others of the family have modes of their own.
    let (mode, placement) = (asked.mode.first(), asked.placement.first());
    let what = if mode.is_some() { "fork, sh -c, `true` by its path" } else { probe.title };
    vec![probe.make_point(
        ShellStartSettings { mode, placement },
        format!("{what}{}", suffix(placement)),
        true,
    )]
}

const TRUE: [&CStr; 3] = [c"/bin/true", c"/usr/bin/true", c"/system/bin/true"];
const SHELLS: [&CStr; 2] = [c"/bin/sh", c"/system/bin/sh"];

fn run_programs(bench: &mut Bench) -> anyhow::Result<()> {
    keep_children();
    let tiny = Tiny::write_program(bench.scratch()?);
    for (index, point) in bench.points().iter().enumerate() {
        let placement = match point.probe.as_str() {
            "process.exec" => ProgramStartSettings::read(point)?.placement,
            "process.shell" => ShellStartSettings::read(point)?.placement,
            _ => None,
        };
        apply_placement(bench, placement)?;
        match point.probe.as_str() {
            "process.spawn" => run_tiny(bench, index, &tiny, spawn),
            "process.exec" if ProgramStartSettings::read(point)?.mode == ProgramLinkMode::Static => {
                run_tiny(bench, index, &tiny, fork_execute)
            }
            "process.shell" => run_shell(bench, index, ShellStartSettings::read(point)?.mode),
            _ => match TRUE.into_iter().find(|path| is_dynamic(path)) {
                Some(path) => time_program(bench, index, &ExecProgram::new(path, &[c"true"]), fork_execute),
                None => {
                    let reason = "no dynamically linked `true` in /bin or /usr/bin";
                    bench.unsupported(index, reason, "install coreutils, dynamically linked");
                }
            },
        }
    }
    Ok(())
}

fn run_shell(bench: &mut Bench, index: usize, mode: Option<ShellMode>) {
    let exists = |path: &&CStr| rustix::fs::stat(*path).is_ok();
    let Some(shell) = SHELLS.into_iter().find(exists) else {
        bench.unsupported(index, "no shell at /bin/sh", "install a shell");
        return;
    };
    match mode {
        None => time_program(bench, index, &ExecProgram::new(shell, &[c"sh", c"-c", c":"]), spawn),
        Some(ShellMode::ForkProgram) => {
            let program = TRUE.into_iter().find(exists).unwrap_or(TRUE[0]);
            time_program(bench, index, &ExecProgram::new(shell, &[c"sh", c"-c", program]), fork_execute)
        }
    }
}

/// The tiny program, in a file, or in memory where files in the directory cannot be run.
struct Tiny {
    path: CString,
    memory: Option<OwnedFd>,
}

impl Tiny {
    fn write_program(directory: &Path) -> Result<Tiny> {
        let runs = statvfs(directory).is_ok_and(|about| !about.f_flag.contains(StatVfsMountFlags::NOEXEC));
        // Root runs no file by a name that another user can give to his own.
        let is_safe = !geteuid().is_root() || may_be_replaced(directory).is_ok_and(|replaced| !replaced);
        if runs && is_safe {
            return Ok(Tiny { path: tiny_program::write_to_directory(directory)?, memory: None });
        }
        let (path, memory) = tiny_program::write_to_memory()?;
        Ok(Tiny { path, memory: Some(memory) })
    }
}

type Start = fn(&ExecProgram<'_>) -> Result<i32>;

fn run_tiny(bench: &mut Bench, point: usize, tiny: &Result<Tiny>, start: Start) {
    match tiny {
        Ok(tiny) => {
            time_program(bench, point, &ExecProgram::new(&tiny.path, &[c"exit"]), start);
            if tiny.memory.is_some() {
                let reason = "the program lies in a memfd, since in the directory for temporary files programs cannot run, or \
                     another user can replace them";
                let remedy = "set TMPDIR to another one (docker: --tmpfs /tmp:exec)";
                bench.degrade(point, "not-as-asked", reason, remedy);
            }
        }
        Err(error) => refuse(bench, point, "write a program", *error),
    }
}

fn time_program(bench: &mut Bench, point: usize, program: &ExecProgram<'_>, start: Start) {
    // posix_spawn tells why a program cannot run; a forked child could not.
    if let Err((reason, remedy)) = try_once(program) {
        bench.unsupported(point, reason, remedy);
        return;
    }
    time_each(bench, point, SampleGate::Open, "run a program", || start(program).and_then(successful));
}

fn successful(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Errno::NOEXEC) }
}

fn try_once(program: &ExecProgram<'_>) -> std::result::Result<(), (String, &'static str)> {
    let mut outcome = spawn(program);
    // A process forked while the program was written still has it open, and
    // then it cannot be run; such a process lives for a moment only.
    for _ in 0..100 {
        if outcome != Err(Errno::TXTBSY) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        outcome = spawn(program);
    }
    match outcome {
        Ok(0) => Ok(()),
        Ok(code) => Err((format!("the program ends with exit code {code}"), "")),
        Err(Errno::ACCESS) => Err((
            "run a program: permission denied; is the directory for temporary files mounted noexec?"
                .to_owned(),
            "set TMPDIR to a directory from which programs may run (docker: --tmpfs /tmp:exec)",
        )),
        Err(error) => Err(explain(&format!("run a program: {}", program.path().to_string_lossy()), error)),
    }
}

/// Returns true if the file is a program that names a dynamic linker (elf(5): a PT_INTERP entry among the
/// program headers, which lie in the first page).
fn is_dynamic(path: &CStr) -> bool {
    let mut head = Vec::new();
    let file = path.to_str().ok().and_then(|path| std::fs::File::open(path).ok());
    let read = file.and_then(|file| file.take(4096).read_to_end(&mut head).ok());
    read.is_some() && names_linker(&head).unwrap_or(false)
}

fn names_linker(head: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let half = |at: usize| Some(u16::from_ne_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?));
    if head.get(..4)? != b"\x7fELF" {
        return Some(false);
    }
    // Class 2 is 64 bit; offset, size and number of program headers follow.
    let (first, size, count) = match head.get(4)? {
        2 => (word(32)? as usize, half(54)?, half(56)?),
        _ => (word(28)? as usize, half(42)?, half(44)?),
    };
    let kind = |n: u16| word(first.checked_add(usize::from(n) * usize::from(size))?);
    Some((0..count).any(|n| kind(n) == Some(PT_INTERP)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{self, check, measure, points};

    #[test]
    fn programs_are_run() {
        let planned: Vec<MeasurementPoint> = [&SPAWN, &EXEC, &SHELL].into_iter().flat_map(points).collect();
        assert_eq!(planned.len(), 4);
        let mut input = latscope_engine::harness::input();
        input.values.insert("placement".into(), vec!["free".into()]);
        input.values.insert("mode".into(), vec!["dynamic".into(), "fork-program".into()]);
        let placed =
            EXEC.plan(&input, &harness::machine()).into_iter().chain(SHELL.plan(&input, &harness::machine()));
        for m in measure(&PROGRAMS, planned.into_iter().chain(placed).collect()) {
            check(&m);
            assert_eq!(m.quality.level, QualityLevel::Ok, "{:?}", m.joined_reasons());
        }
    }

    #[test]
    fn the_tiny_program_exits_with_zero() {
        keep_children();
        let directory = tempfile::tempdir().unwrap();
        let path = tiny_program::write_to_directory(directory.path()).unwrap();
        let program = ExecProgram::new(&path, &[c"exit"]);
        assert_eq!(try_once(&program), Ok(()));
        assert_eq!(fork_execute(&program), Ok(0));
    }

    #[test]
    fn the_tiny_program_runs_from_memory() {
        keep_children();
        let (path, _memory) = tiny_program::write_to_memory().unwrap();
        let program = ExecProgram::new(&path, &[c"exit"]);
        assert_eq!(try_once(&program), Ok(()));
        assert_eq!(fork_execute(&program), Ok(0));
    }

    #[test]
    fn the_tiny_program_is_not_dynamic_and_damaged_files_are_not_either() {
        let directory = tempfile::tempdir().unwrap();
        let path = tiny_program::write_to_directory(directory.path()).unwrap();
        assert!(!is_dynamic(&path));
        assert_eq!(names_linker(b"\x7fELF\x02"), None);
        assert_eq!(names_linker(b"#!/bin/sh"), Some(false));
    }

    #[test]
    fn a_program_that_fails_is_no_measurement() {
        keep_children();
        let (reason, _) = try_once(&ExecProgram::new(c"/bin/sh", &[c"sh", c"-c", c"exit 4"])).unwrap_err();
        assert!(reason.contains("exit code 4"), "{reason}");
        let (reason, _) = try_once(&ExecProgram::new(c"/nonexistent", &[c"x"])).unwrap_err();
        assert!(reason.starts_with("run a program: /nonexistent: "), "{reason}");
    }
}
