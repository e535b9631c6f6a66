//! A trace instance for the time line of the threads that are measured: it
//! records the scheduler's events and the system calls of the threads followed
//! and of all that they create, and the signposts that a [`Marker`](latscope_os::trace_marker::Marker) places.

use super::tracefs::{self, TraceInstanceError, error_with_path};
use crate::timeline::{TraceRecording, with_nanoseconds};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Largest buffer of a CPU, KiB: some 70 000 events. When it is full the newest
/// events replace the oldest.
const BUFFER_KIB: usize = 4096;

/// Memory for the buffers of all CPUs together, KiB.
const ALL_BUFFERS_KIB: usize = 64 * 1024;

/// Events without which there is no time line.
const NEEDED: [&str; 5] = [
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_process_fork",
];

/// Events of system calls. Kernels that are built without them show no calls.
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

/// A trace instance that follows threads. It is removed when dropped.
#[derive(Debug)]
pub struct ThreadTraceInstance {
    own: tracefs::TracefsInstance,
    followed: Vec<u32>,
    shortfall: Option<String>,
}

impl ThreadTraceInstance {
    /// Makes the instance `latscope-PID`, ready to record and not yet
    /// recording. `journal` is called with the directory before it is made, so
    /// that it can be removed even if this process is killed.
    ///
    /// # Errors
    /// [`tracefs::TracefsInstance::create_with_journal`] fails, or the kernel refuses a setting.
    pub fn create_with_journal(
        journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
    ) -> Result<ThreadTraceInstance, TraceInstanceError> {
        let own = tracefs::TracefsInstance::create_with_journal(journal)?;
        own.set_all(&SETTINGS)?;
        own.set_buffers(ALL_BUFFERS_KIB, BUFFER_KIB)?;
        for event in NEEDED {
            own.enable(event).map_err(|error| own.setting_refusal(&error))?;
        }
        let calls = CALLS.iter().all(|event| own.enable(event).is_ok());
        let shortfall =
            (!calls).then(|| "this kernel traces no system calls (CONFIG_FTRACE_SYSCALLS)".to_owned());
        Ok(ThreadTraceInstance { own, followed: Vec::new(), shortfall })
    }

    /// Returns the directory of the instance.
    pub fn directory(&self) -> &Path {
        self.own.directory()
    }

    /// Returns the file on which a worker opens a [`Marker`](latscope_os::trace_marker::Marker).
    pub fn marker_path(&self) -> PathBuf {
        self.own.marker_path()
    }

    /// Returns a description of the parts that will be missing from the time line, if any.
    pub fn shortfall(&self) -> Option<&str> {
        self.shortfall.as_deref()
    }

    /// Follows a process: all its present threads, and every thread and
    /// process that they create.
    ///
    /// # Errors
    /// There is no such process, or the kernel refuses.
    pub fn follow_process(&mut self, process: u32) -> io::Result<()> {
        let tasks = PathBuf::from(format!("/proc/{process}/task"));
        let threads = fs::read_dir(&tasks).map_err(|error| error_with_path(&tasks, &error))?;
        let threads: Vec<u32> =
            threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        self.follow_threads(&threads)
    }

    /// Follows threads by id, and every thread and process that they create.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn follow_threads(&mut self, threads: &[u32]) -> io::Result<()> {
        let path = self.directory().join("set_event_pid");
        let list: String = threads.iter().map(|tid| format!("{tid} ")).collect();
        // Opened for appending, the file keeps those it has.
        let mut file =
            OpenOptions::new().append(true).open(&path).map_err(|error| error_with_path(&path, &error))?;
        file.write_all(list.as_bytes()).map_err(|error| error_with_path(&path, &error))?;
        self.followed.extend(threads);
        Ok(())
    }

    /// Starts the recording. Without threads to follow, it records the whole system.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start_recording(&self) -> io::Result<()> {
        self.own.write_file("tracing_on", "1")
    }

    /// Stops the recording and returns it. The recording and the followed threads are then forgotten, so that
    /// the next step can be recorded.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take_recording(&mut self) -> io::Result<TraceRecording> {
        self.own.write_file("tracing_on", "0")?;
        let text = self.own.read_file("trace")?;
        self.own.write_file("options/raw", "1")?;
        let raw = self.own.read_file("trace")?;
        self.own.write_file("options/raw", "0")?;
        let (lost, whole_from) = self.count_lost_events()?;
        self.own.write_file("trace", "")?;
        self.own.write_file("set_event_pid", "")?;
        Ok(TraceRecording {
            text: with_nanoseconds(&text, &raw),
            followed: std::mem::take(&mut self.followed),
            lost,
            whole_from,
            architecture: rustix::system::uname().machine().to_string_lossy().into_owned(),
        })
    }

    /// Returns the number of events lost on all CPUs, and the instant from which on no events are missing.
    fn count_lost_events(&self) -> io::Result<(u64, Option<u64>)> {
        let path = self.directory().join("per_cpu");
        let (mut lost, mut whole_from) = (0, None);
        for cpu in fs::read_dir(&path).map_err(|error| error_with_path(&path, &error))? {
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

/// Returns the number of events lost on a CPU, and the time of the oldest event left, ns, from a
/// `per_cpu/cpuN/stats`.
pub(super) fn lost_on_cpu(stats: &str) -> (u64, Option<u64>) {
    let [lost @ .., oldest] = ["overrun", "commit overrun", "dropped events", "oldest event ts"]
        .map(|name| stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')));
    let lost = lost.into_iter().flatten().filter_map(|value| value.trim().parse::<u64>().ok()).sum();
    let oldest = oldest.and_then(|value| value.trim().parse::<f64>().ok());
    (lost, oldest.map(|seconds| (seconds * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::traceable;
    use crate::timeline::{Timeline, TimelineThreadState, chrome_json, ftrace_text, values};
    use crate::tracefs::testing::shared_settings;
    use latscope_os::trace_marker::Marker;
    use std::sync::mpsc;

    #[test]
    fn losses_are_read_from_the_statistics() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 0\nbytes: 68\n\
            oldest event ts:  1695.603818\nnow ts:  1695.8\ndropped events: 2\nread events: 0\n";
        assert_eq!(lost_on_cpu(stats), (9, Some(1_695_603_818_000)));
        assert_eq!(lost_on_cpu(""), (0, None));
    }

    /// Two threads that wake each other twenty times; returns when both are done.
    fn ping_pong(marker: &Marker) {
        let (to, from) = (mpsc::sync_channel::<u32>(0), mpsc::sync_channel::<u32>(0));
        let (received, send_back) = (to.1, from.0);
        let echo = move || (0..20).for_each(|_| send_back.send(received.recv().unwrap()).unwrap());
        let echo = std::thread::Builder::new().name("echo".into()).spawn(echo).unwrap();
        marker.begin_section("ping\npong");
        for ball in 0..20 {
            to.0.send(ball).unwrap();
            from.1.recv().unwrap();
        }
        marker.end_section();
        echo.join().unwrap();
    }

    #[test]
    fn what_does_not_fit_is_counted_and_left_out() {
        if !traceable("what_does_not_fit_is_counted_and_left_out") {
            return;
        }
        let mut instance = ThreadTraceInstance::create_with_journal(&mut |_| Ok(())).unwrap();
        fs::write(instance.directory().join("buffer_size_kb"), "8").unwrap();
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        instance.follow_threads(&[me]).unwrap();
        instance.start_recording().unwrap();
        for _ in 0..5000 {
            let _ = rustix::process::getppid();
        }
        let recording = instance.take_recording().unwrap();
        assert!(recording.lost > 1000, "{}", recording.lost);
        let timeline = Timeline::from_recording(&recording);
        assert_eq!((timeline.damaged, timeline.lost), (0, recording.lost));
        assert!(timeline.from >= recording.whole_from.unwrap());
        assert!(timeline.threads.iter().any(|thread| thread.tid == me && thread.calls.len() > 10));
    }

    #[test]
    fn a_real_trace_has_the_threads_and_leaves_nothing_behind() {
        if !traceable("a_real_trace_has_the_threads_and_leaves_nothing_behind") {
            return;
        }
        let before = shared_settings();
        let mut journalled = Vec::new();
        let mut instance = ThreadTraceInstance::create_with_journal(&mut |path| {
            assert!(!path.exists());
            journalled.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(journalled, [instance.directory()]);
        let marker = Marker::open(&instance.marker_path()).unwrap();
        for _step in 0..2 {
            let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            instance.follow_threads(&[me]).unwrap();
            instance.start_recording().unwrap();
            ping_pong(&marker);
            let recording = instance.take_recording().unwrap();
            check(&recording, me);
        }
        drop(marker);
        let directory = instance.directory().to_owned();
        drop(instance);
        assert!(!directory.exists());
        assert_eq!(shared_settings(), before);
    }

    fn check(recording: &TraceRecording, me: u32) {
        let timeline = Timeline::from_recording(recording);
        assert_eq!((timeline.damaged, timeline.lost), (0, 0));
        let main = timeline.threads.iter().find(|thread| thread.tid == me).unwrap();
        let echo = timeline.threads.iter().find(|thread| thread.tid != me).unwrap();
        assert_eq!((echo.name.as_str(), echo.process), ("echo", std::process::id()));
        assert!(echo.ended && !main.ended);
        assert!(main.signposts.iter().any(|post| post.name == "ping pong" && post.closed));
        for thread in [main, echo] {
            assert!(thread.intervals.iter().any(|interval| interval.state == TimelineThreadState::Running));
            let gapless = thread.intervals.windows(2).all(|pair| pair[0].until == pair[1].from);
            assert!(gapless, "{thread:#?}");
        }
        for thread in [main, echo] {
            let alone = Timeline { threads: vec![thread.clone()], ..timeline.clone() };
            let values = values(&alone, timeline.from..timeline.until + 1);
            let sum: f64 = TimelineThreadState::ALL
                .iter()
                .map(|s| values[&format!("timeline-{}", s.name())].value)
                .sum();
            assert!((sum - 100.0).abs() < 1e-9, "{values:?}");
        }
        // Every event has its exact time, not microseconds.
        assert!(recording.text.lines().any(|line| line.contains("sched_switch")));
        assert!(main.intervals.iter().any(|interval| interval.from % 1000 != 0));
        assert!(ftrace_text(&[(recording, &timeline)]).contains("|ping pong"));
        assert!(chrome_json(&[(recording, &timeline)]).contains("ping pong"));
    }
}
