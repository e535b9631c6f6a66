//! An own trace instance, for the time line of the threads that are measured.
//!
//! tracefs gives every directory made in `instances/` buffers, events and
//! options of its own (Documentation/trace/ftrace.rst, "Instances"): nothing
//! that others trace is touched, and removing the directory undoes it all. The
//! instance records the scheduler's events and the system calls of the threads
//! followed and of all that they create, and the signposts that a [`Marker`]
//! places.

use latscope_core::timeline::{Recording, with_nanoseconds};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Largest buffer of a CPU, KiB: some 70 000 events. When it is full the newest
/// events replace the oldest.
const BUFFER_KIB: usize = 4096;

/// Memory for the buffers of all CPUs together, KiB.
const ALL_BUFFERS_KIB: usize = 64 * 1024;

/// Without these there is no time line.
const NEEDED: [&str; 5] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_process_fork",
];

/// Not all kernels are built with these; without them there are no calls.
const CALLS: [&str; 2] = ["raw_syscalls/sys_enter", "raw_syscalls/sys_exit"];

/// Settings of the instance before its events are enabled. Lines without
/// interrupt flags and remarks are alike on all kernels; the process beside
/// each thread is recorded only while asked for.
const SETTINGS: [(&str, &str); 6] = [
    ("tracing_on", "0"),
    ("trace_clock", "mono"),
    ("options/event-fork", "1"),
    ("options/record-tgid", "1"),
    ("options/irq-info", "0"),
    ("options/annotate", "0"),
];

/// Why there can be no trace instance, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {remedy}")]
pub struct Unavailable {
    /// What is missing or refused.
    pub reason: String,
    /// The command or the step that mends it.
    pub remedy: &'static str,
}

/// A trace instance of ours. It is removed when dropped.
#[derive(Debug)]
pub struct Instance {
    directory: PathBuf,
    followed: Vec<u32>,
    shortfall: Option<String>,
}

impl Instance {
    /// Makes the instance `latscope-PID`, ready to record and not yet
    /// recording. `journal` is called with the directory before it is made, so
    /// that it can be removed even if this process is killed.
    ///
    /// # Errors
    /// tracefs is not mounted, the kernel or the permissions do not allow an
    /// instance, or `journal` fails; then nothing was changed.
    pub fn create(journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>) -> Result<Instance, Unavailable> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let tracefs = tracefs(&mounts).ok_or_else(|| Unavailable {
            reason: "tracefs is not mounted".to_owned(),
            remedy: "run `mount -t tracefs nodev /sys/kernel/tracing` as root",
        })?;
        Instance::create_in(&tracefs, journal)
    }

    fn create_in(
        tracefs: &Path,
        journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
    ) -> Result<Instance, Unavailable> {
        let directory = free_name(&tracefs.join("instances"))?;
        journal(&directory).map_err(|error| Unavailable {
            reason: format!("{error:#}"),
            remedy: "run again; no trace is recorded that could not be cleared up",
        })?;
        fs::create_dir(&directory).map_err(|error| refused(&directory, &error))?;
        let mut instance = Instance { directory, followed: Vec::new(), shortfall: None };
        instance.prepare().map_err(|(file, error)| refused(&file, &error))?;
        Ok(instance)
    }

    fn prepare(&mut self) -> Result<(), (PathBuf, io::Error)> {
        for (file, value) in SETTINGS {
            self.put(file, value)?;
        }
        let cpus = fs::read_dir(self.directory.join("per_cpu")).map_or(1, Iterator::count);
        let buffer = (ALL_BUFFERS_KIB / cpus.max(1)).clamp(64, BUFFER_KIB);
        self.put("buffer_size_kb", &buffer.to_string())?;
        for event in NEEDED {
            self.put(&format!("events/{event}/enable"), "1")?;
        }
        for event in CALLS {
            if self.put(&format!("events/{event}/enable"), "1").is_err() {
                self.shortfall =
                    Some("this kernel traces no system calls (CONFIG_FTRACE_SYSCALLS)".to_owned());
            }
        }
        Ok(())
    }

    fn put(&self, file: &str, value: &str) -> Result<(), (PathBuf, io::Error)> {
        let path = self.directory.join(file);
        fs::write(&path, value).map_err(|error| (path, error))
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        self.put(file, value).map_err(|(path, error)| named(&path, &error))
    }

    fn get(&self, file: &str) -> io::Result<String> {
        let path = self.directory.join(file);
        let bytes = fs::read(&path).map_err(|error| named(&path, &error))?;
        // Names of threads can be any bytes.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The instance's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file to open a [`Marker`] on; a worker opens it itself.
    pub fn marker(&self) -> PathBuf {
        self.directory.join("trace_marker")
    }

    /// What will be missing from the time line, if anything.
    pub fn shortfall(&self) -> Option<&str> {
        self.shortfall.as_deref()
    }

    /// Follows a process: all its present threads, and every thread and
    /// process that they create.
    ///
    /// # Errors
    /// There is no such process, or the kernel refuses.
    pub fn follow(&mut self, process: u32) -> io::Result<()> {
        let tasks = PathBuf::from(format!("/proc/{process}/task"));
        let threads = fs::read_dir(&tasks).map_err(|error| named(&tasks, &error))?;
        let threads: Vec<u32> =
            threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        self.follow_threads(&threads)
    }

    /// Follows threads by id, and every thread and process that they create.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn follow_threads(&mut self, threads: &[u32]) -> io::Result<()> {
        let path = self.directory.join("set_event_pid");
        let list: String = threads.iter().map(|tid| format!("{tid} ")).collect();
        // Opened for appending, the file keeps those it has.
        let mut file = OpenOptions::new().append(true).open(&path).map_err(|error| named(&path, &error))?;
        file.write_all(list.as_bytes()).map_err(|error| named(&path, &error))?;
        self.followed.extend(threads);
        Ok(())
    }

    /// Begins to record. Follow somebody first: else the whole system is recorded.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(&self) -> io::Result<()> {
        self.set("tracing_on", "1")
    }

    /// Stops recording, hands out what was recorded and forgets it and whom it
    /// followed, so that the next step can be recorded.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<Recording> {
        self.set("tracing_on", "0")?;
        let text = self.get("trace")?;
        self.set("options/raw", "1")?;
        let raw = self.get("trace")?;
        self.set("options/raw", "0")?;
        let (lost, whole_from) = self.lost()?;
        self.set("trace", "")?;
        self.set("set_event_pid", "")?;
        Ok(Recording {
            text: with_nanoseconds(&text, &raw),
            followed: std::mem::take(&mut self.followed),
            lost,
            whole_from,
            architecture: rustix::system::uname().machine().to_string_lossy().into_owned(),
        })
    }

    /// Events lost on all CPUs, and from when on nothing is missing.
    fn lost(&self) -> io::Result<(u64, Option<u64>)> {
        let path = self.directory.join("per_cpu");
        let (mut lost, mut whole_from) = (0, None);
        for cpu in fs::read_dir(&path).map_err(|error| named(&path, &error))? {
            let stats = fs::read_to_string(cpu?.path().join("stats"))?;
            let (here, oldest) = lost_on_cpu(&stats);
            lost += here;
            if here > 0 {
                whole_from = whole_from.max(oldest);
            }
        }
        Ok((lost, whole_from))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Busy as long as a worker holds its marker; then the journal's keeper
        // removes it, who has the patience.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Places signposts from a measuring thread: one `write` each to a descriptor
/// opened before. The format is that of Android's atrace, which Perfetto shows
/// as slices of the thread.
#[derive(Debug)]
pub struct Marker {
    file: File,
    process: u32,
}

/// Longest line written for a signpost, bytes; more is cut off.
const LINE_BYTES: usize = 160;

impl Marker {
    /// Opens an instance's `trace_marker` ([`Instance::marker`]).
    ///
    /// # Errors
    /// The instance is gone, or writing to it is not permitted.
    pub fn open(path: &Path) -> io::Result<Marker> {
        let file = OpenOptions::new().write(true).open(path).map_err(|error| named(path, &error))?;
        Ok(Marker { file, process: std::process::id() })
    }

    /// Begins a named stretch on the calling thread. Stretches nest. Does not
    /// allocate; about a microsecond.
    pub fn begin(&self, name: &str) {
        let mut line = io::Cursor::new([0u8; LINE_BYTES]);
        // Takes what fits: a name cut short is still a name.
        let _ = write!(line, "B|{}|{name}", self.process);
        let length = line.position() as usize;
        let line = line.get_mut();
        // The kernel's text has a line for each event.
        line[..length].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        self.put(&line[..length]);
    }

    /// Ends the stretch that the calling thread began last.
    pub fn end(&self) {
        self.put(b"E|");
    }

    /// Writes a remark at this moment. Does not allocate.
    pub fn note(&self, text: fmt::Arguments) {
        let mut line = io::Cursor::new([0u8; LINE_BYTES]);
        let _ = line.write_fmt(text);
        let length = line.position() as usize;
        self.put(&line.get_ref()[..length]);
    }

    fn put(&self, line: &[u8]) {
        // Fails when nothing records: then nobody misses the signpost.
        let _ = (&self.file).write(line);
    }
}

/// Where tracefs is mounted, by a `/proc/mounts`: on its own, or as a part of
/// debugfs, which older kernels mount it in.
pub(super) fn tracefs(mounts: &str) -> Option<PathBuf> {
    let of_type = |kind: &str| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let place = fields.nth(1)?;
            (fields.next()? == kind).then(|| PathBuf::from(place))
        })
    };
    of_type("tracefs").or_else(|| of_type("debugfs").map(|debugfs| debugfs.join("tracing")))
}

/// How many instances this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// `latscope-PID`, or with a number behind it for a second one, or where an
/// earlier process of this id has left one.
pub(super) fn free_name(instances: &Path) -> Result<PathBuf, Unavailable> {
    let name = |number: u32| match number {
        0 => format!("latscope-{}", std::process::id()),
        _ => format!("latscope-{}-{number}", std::process::id()),
    };
    let first = MADE.fetch_add(1, Ordering::Relaxed);
    (first..first.saturating_add(100))
        .map(|number| instances.join(name(number)))
        .find(|path| matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound))
        .ok_or_else(|| match instances.read_dir() {
            Err(error) => refused(instances, &error),
            Ok(_) => Unavailable {
                reason: format!("{} holds too many instances of latscope", instances.display()),
                remedy: "remove those of processes that are gone: `rmdir latscope-*` there, as root",
            },
        })
}

pub(super) fn refused(path: &Path, error: &io::Error) -> Unavailable {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => "run as root",
        ErrorKind::NotFound => "use a kernel with CONFIG_TRACING and CONFIG_FTRACE, and mounted tracefs",
        ErrorKind::OutOfMemory => "free some memory: the buffers take up to 64 MiB",
        _ => "see whether tracing is locked down: `cat /sys/kernel/security/lockdown`",
    };
    Unavailable { reason: named(path, error).to_string(), remedy }
}

/// The error with the file's name before it.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Events lost on a CPU, and the time of the oldest one left, ns, from a
/// `per_cpu/cpuN/stats`.
pub(super) fn lost_on_cpu(stats: &str) -> (u64, Option<u64>) {
    let field = |name: &str| stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let count = |name: &str| field(name).and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0);
    let lost = ["overrun", "commit overrun", "dropped events"].map(count).iter().sum();
    let oldest = field("oldest event ts").and_then(|value| value.trim().parse::<f64>().ok());
    (lost, oldest.map(|seconds| (seconds * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::timeline::{State, Timeline, chrome_json, ftrace_text, shares};
    use std::sync::mpsc;

    #[test]
    fn tracefs_is_found_on_its_own_or_in_debugfs() {
        let debugfs = "proc /proc proc rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n";
        assert_eq!(tracefs(debugfs), Some("/sys/kernel/debug/tracing".into()));
        let both = format!("{debugfs}nodev /sys/kernel/tracing tracefs rw 0 0\n");
        assert_eq!(tracefs(&both), Some("/sys/kernel/tracing".into()));
        assert_eq!(tracefs("tracefs /tmp ext4 rw 0 0"), None);
    }

    #[test]
    fn losses_are_read_from_the_statistics() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 0\nbytes: 68\n\
            oldest event ts:  1695.603818\nnow ts:  1695.8\ndropped events: 2\nread events: 0\n";
        assert_eq!(lost_on_cpu(stats), (9, Some(1_695_603_818_000)));
        assert_eq!(lost_on_cpu(""), (0, None));
    }

    #[test]
    fn a_directory_that_is_no_tracefs_is_refused_with_a_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let mut journalled = 0;
        let mut journal = |_: &Path| {
            journalled += 1;
            Ok(())
        };
        let refusal = Instance::create_in(directory.path(), &mut journal).unwrap_err();
        assert!(refusal.reason.contains("instances"), "{refusal}");
        assert_eq!(journalled, 1);
        fs::create_dir(directory.path().join("instances")).unwrap();
        let refusal = Instance::create_in(directory.path(), &mut |_| anyhow::bail!("full")).unwrap_err();
        assert_eq!(refusal.reason, "full");
        assert_eq!(fs::read_dir(directory.path().join("instances")).unwrap().count(), 0);
    }

    /// The settings that everybody on the machine shares.
    fn shared_settings() -> Vec<String> {
        let files =
            ["tracing_on", "current_tracer", "set_event", "trace_clock", "set_event_pid", "trace_options"];
        let root = tracefs(&fs::read_to_string("/proc/mounts").unwrap()).unwrap();
        files.iter().map(|file| fs::read_to_string(root.join(file)).unwrap()).collect()
    }

    /// Two threads that wake each other twenty times; returns when both are done.
    fn ping_pong(marker: &Marker) {
        let (to, from) = (mpsc::sync_channel::<u32>(0), mpsc::sync_channel::<u32>(0));
        let (received, send_back) = (to.1, from.0);
        let echo = move || (0..20).for_each(|_| send_back.send(received.recv().unwrap()).unwrap());
        let echo = std::thread::Builder::new().name("echo".into()).spawn(echo).unwrap();
        marker.begin("ping\npong");
        for ball in 0..20 {
            to.0.send(ball).unwrap();
            from.1.recv().unwrap();
        }
        marker.end();
        echo.join().unwrap();
    }

    /// Whether this machine can be traced; says so if not.
    fn possible() -> bool {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let possible = rustix::process::geteuid().is_root() && tracefs(&mounts).is_some();
        if !possible {
            eprintln!("not tested: a trace instance needs root and a mounted tracefs");
        }
        possible
    }

    #[test]
    fn what_does_not_fit_is_counted_and_left_out() {
        if !possible() {
            return;
        }
        let mut instance = Instance::create(&mut |_| Ok(())).unwrap();
        fs::write(instance.directory().join("buffer_size_kb"), "8").unwrap();
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        instance.follow_threads(&[me]).unwrap();
        instance.start().unwrap();
        for _ in 0..5000 {
            let _ = rustix::process::getppid();
        }
        let recording = instance.take().unwrap();
        assert!(recording.lost > 1000, "{}", recording.lost);
        let timeline = Timeline::of(&recording);
        assert_eq!((timeline.damaged, timeline.lost), (0, recording.lost));
        assert!(timeline.from >= recording.whole_from.unwrap());
        assert!(timeline.threads.iter().any(|thread| thread.tid == me && thread.calls.len() > 10));
    }

    #[test]
    fn a_real_trace_has_the_threads_and_leaves_nothing_behind() {
        if !possible() {
            return;
        }
        let before = shared_settings();
        let mut journalled = Vec::new();
        let mut instance = Instance::create(&mut |path| {
            assert!(!path.exists());
            journalled.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(journalled, [instance.directory()]);
        let marker = Marker::open(&instance.marker()).unwrap();
        for _step in 0..2 {
            let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            instance.follow_threads(&[me]).unwrap();
            instance.start().unwrap();
            ping_pong(&marker);
            let recording = instance.take().unwrap();
            check(&recording, me);
        }
        drop(marker);
        let directory = instance.directory().to_owned();
        drop(instance);
        assert!(!directory.exists());
        assert_eq!(shared_settings(), before);
    }

    fn check(recording: &Recording, me: u32) {
        let timeline = Timeline::of(recording);
        assert_eq!((timeline.damaged, timeline.lost), (0, 0));
        let main = timeline.threads.iter().find(|thread| thread.tid == me).unwrap();
        let echo = timeline.threads.iter().find(|thread| thread.tid != me).unwrap();
        assert_eq!((echo.name.as_str(), echo.process), ("echo", std::process::id()));
        assert!(echo.ended && !main.ended);
        assert!(main.signposts.iter().any(|post| post.name == "ping pong" && post.closed));
        for thread in [main, echo] {
            assert!(thread.intervals.iter().any(|interval| interval.state == State::Running));
            let gapless = thread.intervals.windows(2).all(|pair| pair[0].until == pair[1].from);
            assert!(gapless, "{thread:#?}");
        }
        for row in shares(&timeline) {
            let sum: f64 = State::ALL.iter().map(|state| row.share(*state)).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{row:?}");
        }
        // Every event has its exact time, not microseconds.
        assert!(recording.text.lines().any(|line| line.contains("sched_switch")));
        assert!(main.intervals.iter().any(|interval| interval.from % 1000 != 0));
        assert!(ftrace_text(&[(recording, &timeline)]).contains("|ping pong"));
        assert!(chrome_json(&[(recording, &timeline)]).contains("ping pong"));
    }
}
