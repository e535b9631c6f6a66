//! Latency tracer of the kernel (osnoise, timerlat, hwlat) in a trace instance of latscope.
//!
//! The lines of a tracer go to the instance alone, but its settings (`osnoise/`, `hwlat_detector/`) apply to
//! the whole machine (Documentation/trace/osnoise-tracer.rst, hwlat_detector.rst). So nothing is done while
//! another process uses such a tracer, and every setting is journalled before it is changed, so that it is
//! restored even if this process is killed.

use super::instance;
use super::tracefs::{self, TraceInstanceError};
use latscope_process::guardian::{Guardian, UndoAction};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Request for a tracer, with its settings, events and CPUs.
#[derive(Debug, Clone)]
pub struct LatencyTracerRequest<'a> {
    /// Name of the tracer in `available_tracers`.
    pub tracer: &'static str,
    /// Files of tracefs with the texts to write to them, in this order.
    pub settings: Vec<(String, String)>,
    /// Events to be recorded beside the tracer, as `group/event`.
    pub events: &'static [&'static str],
    /// CPUs whose lines are read.
    pub cpus: &'a [u32],
}

/// A tracer at work. Everything is undone when it is dropped.
#[derive(Debug)]
pub struct LatencyTracer {
    instance: PathBuf,
    tracefs: PathBuf,
    pipes: Vec<Pipe>,
    /// Restores the settings when dropped, after the pipes have been closed.
    _guardian: Guardian,
}

/// The lines of one CPU.
#[derive(Debug)]
struct Pipe {
    cpu: u32,
    file: File,
    text: Vec<u8>,
}

/// A line that a tracer or an event wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyTracerLine<'a> {
    /// CPU on which the line was written.
    pub cpu: u32,
    /// Time of the line: `CLOCK_MONOTONIC`, ns, in whole µs.
    pub at: u64,
    /// Text after the time.
    pub text: &'a str,
}

impl<'a> LatencyTracerLine<'a> {
    /// Parses a line of `trace_pipe`; `None` for a text of another form.
    pub fn parse(line: &'a str) -> Option<LatencyTracerLine<'a>> {
        // A thread's name may hold anything but ends before this.
        let (cpu, rest) = line.match_indices(" [").find_map(|(at, _)| {
            let (cpu, rest) = line[at + 2..].split_once("] ")?;
            Some((cpu.parse().ok()?, rest))
        })?;
        let (time, text) = rest.split_once(": ")?;
        let (seconds, micros) = time.split_whitespace().last()?.split_once('.')?;
        let at = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
        Some(LatencyTracerLine { cpu, at: at.checked_mul(1000)?, text: text.trim_end() })
    }
}

/// Tracers that exclude each other, since they share their settings.
const OSNOISE: [&str; 2] = ["osnoise", "timerlat"];

/// Settings of the instance before the tracer is chosen.
const INSTANCE: [(&str, &str); 4] =
    [("tracing_on", "0"), ("trace_clock", "mono"), ("options/irq-info", "0"), ("options/annotate", "0")];

/// Buffer of each CPU, KiB.
const BUFFER_KIB: &str = "4096";

/// Bytes of lines taken from a CPU before the next CPU has its turn.
const MOST_AT_ONCE: usize = 4 << 20;

/// Returns the directory of the kernel's tracing files, if the kernel has this tracer.
///
/// # Errors
/// tracefs is not mounted or not readable, or there is no such tracer.
pub fn tracefs_with(tracer: &str) -> Result<PathBuf, TraceInstanceError> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let tracefs = tracefs::mount_point(&mounts).ok_or_else(|| TraceInstanceError {
        reason: "tracefs is not mounted".to_owned(),
        remedy: "run `mount -t tracefs nodev /sys/kernel/tracing` as root (docker: --privileged -v /sys/kernel/tracing:/sys/kernel/tracing)",
    })?;
    available(&tracefs, tracer).map(|()| tracefs)
}

fn available(tracefs: &Path, tracer: &str) -> Result<(), TraceInstanceError> {
    let path = tracefs.join("available_tracers");
    let tracers = fs::read_to_string(&path).map_err(|error| tracefs::file_refusal(&path, &error))?;
    if tracers.split_whitespace().any(|name| name == tracer) {
        return Ok(());
    }
    Err(TraceInstanceError {
        reason: format!("this kernel has no {tracer} tracer"),
        remedy: "use a kernel with CONFIG_OSNOISE_TRACER, CONFIG_TIMERLAT_TRACER and CONFIG_HWLAT_TRACER",
    })
}

impl LatencyTracer {
    /// Sets a tracer up in an instance of latscope, not yet recording.
    ///
    /// # Errors
    /// The tracer is not there, not permitted, or in use by another process. In that case all changes are
    /// undone.
    pub fn set_up_tracer(wanted: &LatencyTracerRequest) -> Result<LatencyTracer, TraceInstanceError> {
        let tracefs = tracefs_with(wanted.tracer)?;
        let instances = tracefs.join("instances");
        unused(&tracefs, wanted.tracer)?;
        let guardian = Guardian::default();
        let mut journal = |undo| guardian.journal(undo).map(drop).map_err(without_guardian);
        for (file, value) in &wanted.settings {
            change(&tracefs.join(file), value, &mut journal)?;
        }
        // Journalled last and so removed first: settings return when nothing uses them.
        let instance = tracefs::free_name(&instances)?;
        journal(UndoAction::RemoveInstance(instance.clone()))?;
        fs::create_dir(&instance).map_err(|error| tracefs::file_refusal(&instance, &error))?;
        let events = wanted.events.iter().map(|event| (format!("events/{event}/enable"), "1".to_owned()));
        let settings = INSTANCE.iter().map(|(file, value)| ((*file).to_owned(), (*value).to_owned()));
        let tracer = [("current_tracer".to_owned(), wanted.tracer.to_owned())];
        for (file, value) in settings.chain(events).chain(tracer) {
            let path = instance.join(file);
            tracefs::write_kernel_file(&path, &value)
                .map_err(|error| tracefs::file_refusal(&path, &error))?;
        }
        // A short buffer only loses lines sooner, and those are counted.
        let _ = tracefs::write_kernel_file(&instance.join("buffer_size_kb"), BUFFER_KIB);
        let pipes =
            wanted.cpus.iter().map(|cpu| Pipe::open_trace_pipe(&instance, *cpu)).collect::<Result<_, _>>()?;
        Ok(LatencyTracer { instance, tracefs, pipes, _guardian: guardian })
    }

    /// Returns the directory of the kernel's tracing files.
    pub fn tracefs(&self) -> &Path {
        &self.tracefs
    }

    /// Starts the recording of the tracer.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start_recording(&self) -> io::Result<()> {
        tracefs::write_kernel_file(&self.instance.join("tracing_on"), "1")
    }

    /// Stops the recording of the tracer.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn stop_recording(&self) -> io::Result<()> {
        tracefs::write_kernel_file(&self.instance.join("tracing_on"), "0")
    }

    /// Passes on the lines that came since the last call, CPU by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read_lines(&mut self, mut line: impl FnMut(LatencyTracerLine)) -> io::Result<()> {
        self.pipes.iter_mut().try_for_each(|pipe| pipe.read_pending(&mut line))
    }

    /// Returns the number of lines that were overwritten before they could be taken.
    pub fn count_lost_lines(&self) -> u64 {
        let lost = self.pipes.iter().map(|pipe| {
            let path = self.instance.join(format!("per_cpu/cpu{}/stats", pipe.cpu));
            fs::read_to_string(path).map_or(0, |stats| instance::lost_on_cpu(&stats).0)
        });
        lost.sum()
    }
}

impl Pipe {
    fn open_trace_pipe(instance: &Path, cpu: u32) -> Result<Pipe, TraceInstanceError> {
        let path = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe"));
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let file = file.map_err(|error| tracefs::file_refusal(&path, &error))?;
        Ok(Pipe { cpu, file, text: Vec::new() })
    }

    fn read_pending(&mut self, line: &mut impl FnMut(LatencyTracerLine)) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        let mut taken = 0;
        // Lines can come as fast as they are read: there has to be an end.
        while taken < MOST_AT_ONCE {
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    taken += length;
                    self.text.extend_from_slice(&buffer[..length]);
                    self.pass_on(line);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Passes the whole lines on and keeps the beginning of the next one.
    fn pass_on(&mut self, line: &mut impl FnMut(LatencyTracerLine)) {
        let whole = self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        String::from_utf8_lossy(&self.text[..whole])
            .lines()
            .filter_map(LatencyTracerLine::parse)
            .for_each(line);
        self.text.drain(..whole);
    }
}

/// Checks that no process uses the tracer, or a tracer that shares its settings.
fn unused(tracefs: &Path, tracer: &str) -> Result<(), TraceInstanceError> {
    let rivals = if OSNOISE.contains(&tracer) { &OSNOISE[..] } else { std::slice::from_ref(&tracer) };
    let instances = fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten();
    let places = instances.map(|entry| entry.path()).chain([tracefs.to_owned()]);
    for place in places {
        let current = fs::read_to_string(place.join("current_tracer")).unwrap_or_default();
        if rivals.contains(&current.trim()) {
            return Err(TraceInstanceError {
                reason: format!("the {} tracer is in use in {}", current.trim(), place.display()),
                remedy: "wait until its present user is done (`fuser`, rtla), or `echo nop > current_tracer` there",
            });
        }
    }
    Ok(())
}

fn without_guardian(error: anyhow::Error) -> TraceInstanceError {
    TraceInstanceError {
        reason: format!("{error:#}"),
        remedy: "run again; nothing is changed that could not be restored",
    }
}

/// Changes a setting to another value, after journalling the present one.
fn change(
    path: &Path,
    value: &str,
    journal: &mut impl FnMut(UndoAction) -> Result<(), TraceInstanceError>,
) -> Result<(), TraceInstanceError> {
    let refused = |error| tracefs::file_refusal(path, &error);
    let before = read_setting(path).map_err(refused)?;
    let Some(restored) = undone(before.trim(), value) else { return Ok(()) };
    // Some kernels read a list beyond its end, unless a line ends there.
    journal(UndoAction::Write(path.to_owned(), format!("{restored}\n")))?;
    tracefs::write_kernel_file(path, &format!("{value}\n")).map_err(refused)
}

/// Returns the content of a file of settings, read in one go: the kernel refuses to read `osnoise/cpus` into a
/// buffer that is too small.
fn read_setting(path: &Path) -> io::Result<String> {
    let mut buffer = vec![0; 64 * 1024];
    let length = File::open(path)?.read(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Returns the text that restores a file that reads `before` after `value` has been written to it; `None` if
/// nothing changes. A file may hold a value, a choice in brackets, or several words each of which can be
/// negated by `NO_`.
fn undone(before: &str, value: &str) -> Option<String> {
    let words: Vec<&str> = before.split_whitespace().collect();
    let other = |before: &str| (before != value).then(|| before.to_owned());
    if let Some(chosen) = words.iter().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')) {
        return other(chosen);
    }
    if words.len() < 2 {
        return other(before);
    }
    let opposite = value.strip_prefix("NO_").map_or_else(|| format!("NO_{value}"), str::to_owned);
    words.contains(&opposite.as_str()).then_some(opposite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_whatever_the_thread_is_called() {
        let event = "       osnoise/0-134     [000]      6.092775: sample_threshold: start 9.291494962 duration 14247 ns";
        let line = LatencyTracerLine::parse(event).unwrap();
        assert_eq!((line.cpu, line.at), (0, 6_092_775_000));
        assert_eq!(line.text, "sample_threshold: start 9.291494962 duration 14247 ns");
        let odd = "a [x] 1.0: b [2-9  [011] d..1. 12.000001:  1 2 ";
        assert_eq!(
            LatencyTracerLine::parse(odd),
            Some(LatencyTracerLine { cpu: 11, at: 12_000_001_000, text: " 1 2" })
        );
        for none in ["", "# tracer: osnoise", "CPU:1 [LOST 12 EVENTS]", "x-1 [000] now: y", "x-1 [000] 1.2"] {
            assert_eq!(LatencyTracerLine::parse(none), None, "{none}");
        }
    }

    #[test]
    fn settings_are_restored_in_the_words_of_their_file() {
        assert_eq!(undone("1000", "250").as_deref(), Some("1000"));
        assert_eq!(undone("1000", "1000"), None);
        assert_eq!(undone("none [round-robin] per-cpu", "per-cpu").as_deref(), Some("round-robin"));
        assert_eq!(undone("none [round-robin] per-cpu", "round-robin"), None);
        let options = "DEFAULTS OSNOISE_WORKLOAD NO_PANIC_ON_STOP";
        assert_eq!(undone(options, "NO_OSNOISE_WORKLOAD").as_deref(), Some("OSNOISE_WORKLOAD"));
        assert_eq!(undone(options, "NO_PANIC_ON_STOP"), None);
        assert_eq!(undone(options, "PANIC_ON_STOP").as_deref(), Some("NO_PANIC_ON_STOP"));
    }

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_tracer_that_others_use_is_left_alone() {
        let root = tree(&[
            ("available_tracers", "timerlat osnoise nop\n"),
            ("current_tracer", "nop\n"),
            ("instances/rtla/current_tracer", "timerlat\n"),
        ]);
        let refusal = unused(root.path(), "osnoise").unwrap_err();
        assert!(refusal.reason.contains("timerlat") && refusal.reason.contains("rtla"), "{refusal}");
        assert_eq!(unused(root.path(), "hwlat"), Ok(()));
        assert_eq!(available(root.path(), "osnoise"), Ok(()));
        assert!(available(root.path(), "hwlat").unwrap_err().reason.contains("no hwlat tracer"));
    }

    #[test]
    fn a_change_is_journalled_before_it_is_made_and_not_made_without() {
        let root = tree(&[("period", "1000\n")]);
        let path = root.path().join("period");
        let mut journalled = Vec::new();
        change(&path, "250", &mut |undo| {
            assert_eq!(fs::read_to_string(&path).unwrap(), "1000\n");
            journalled.push(undo);
            Ok(())
        })
        .unwrap();
        assert_eq!(journalled, [UndoAction::Write(path.clone(), "1000\n".to_owned())]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "250\n");
        let gone = TraceInstanceError { reason: "gone".to_owned(), remedy: "" };
        assert_eq!(change(&path, "1", &mut |_| Err(gone.clone())), Err(gone.clone()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "250\n");
    }
}
