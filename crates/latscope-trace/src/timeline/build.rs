//! Derivation of the states of threads from events.

use super::ftrace::{self, FtraceEvent, FtraceLine};
use super::syscalls::syscall_name;
use super::{
    Signpost, SyscallSpan, ThreadStateInterval, ThreadTimeline, Timeline, TimelineThreadState,
    TraceRecording, Why,
};
use std::collections::HashMap;

impl Timeline {
    /// The time line of the threads that a recording followed.
    ///
    /// The activity of a thread before its first event is not known, and no interval covers it. A state that lasts
    /// at the end of the recording ends there.
    pub fn from_recording(recording: &TraceRecording) -> Timeline {
        let mut builder = Builder::new(recording);
        for text in recording.text.lines() {
            match ftrace::parse_line(text) {
                Some(line) => builder.process_line(&line),
                // `CPU:1 [LOST 23 EVENTS]`: counted by the statistics.
                None if text.is_empty() || text.starts_with('#') || text.starts_with("CPU:") => {}
                None => builder.timeline.damaged += 1,
            }
        }
        builder.finish_timeline()
    }
}

/// State of a thread under construction.
#[derive(Default)]
struct Track {
    /// State with its begin and its reason; `None` before the first event and after the end.
    open: Option<(TimelineThreadState, u64, Why)>,
    cpu: u32,
    call: Option<OpenCall>,
    signposts: Vec<(u64, String)>,
}

struct OpenCall {
    number: u32,
    from: u64,
    /// True if the call is the write of a signpost, not an activity of the program.
    marker: bool,
}

struct Builder<'a> {
    recording: &'a TraceRecording,
    timeline: Timeline,
    /// Index into `timeline.threads` and `tracks` of a followed thread. A
    /// thread id that is used again gets a new one.
    index: HashMap<u32, usize>,
    tracks: Vec<Track>,
    /// Creator of each thread that has been announced and not yet queued.
    creators: HashMap<u32, u32>,
    begun: bool,
}

impl<'a> Builder<'a> {
    fn new(recording: &'a TraceRecording) -> Self {
        let mut builder = Builder {
            recording,
            timeline: Timeline {
                lost: recording.lost,
                architecture: recording.architecture.clone(),
                ..Timeline::default()
            },
            index: HashMap::new(),
            tracks: Vec::new(),
            creators: HashMap::new(),
            begun: false,
        };
        for &tid in &recording.followed {
            builder.follow_thread(tid, "");
        }
        builder
    }

    fn follow_thread(&mut self, tid: u32, name: &str) {
        self.index.insert(tid, self.tracks.len());
        self.tracks.push(Track::default());
        self.timeline.threads.push(ThreadTimeline {
            tid,
            name: name.to_owned(),
            ..ThreadTimeline::default()
        });
    }

    fn process_line(&mut self, line: &FtraceLine) {
        let Some(event) = line.parse_event() else {
            self.timeline.damaged += 1;
            return;
        };
        if self.recording.whole_from.is_some_and(|from| line.at < from) {
            // Too early to be whole; but who was created then must be known.
            if let (FtraceEvent::Fork { child, name }, true) = (&event, self.index.contains_key(&line.tid)) {
                self.follow_thread(*child, name);
            }
            return;
        }
        if !self.begun {
            self.begun = true;
            self.timeline.from = line.at;
        }
        self.timeline.until = self.timeline.until.max(line.at);
        self.identify(line);
        self.apply_event(line, &event);
    }

    /// Takes the thread's name and process from the head of its line.
    fn identify(&mut self, line: &FtraceLine) {
        let Some(&at) = self.index.get(&line.tid) else {
            self.record_other_name(line.tid, line.task);
            return;
        };
        let thread = &mut self.timeline.threads[at];
        if line.task != "<...>" {
            thread.name = line.task.to_owned();
        }
        if let Some(process) = line.process {
            thread.process = process;
        }
    }

    /// Keeps the name of a thread that is not followed.
    fn record_other_name(&mut self, tid: u32, name: &str) {
        if tid != 0 && name != "<...>" && !self.index.contains_key(&tid) {
            self.timeline.others.entry(tid).or_insert_with(|| name.to_owned());
        }
    }

    fn apply_event(&mut self, line: &FtraceLine, event: &FtraceEvent) {
        match *event {
            FtraceEvent::Switch { from, state, to, to_name, .. } => {
                if let Some(at) = self.live_thread_index(from) {
                    self.record_other_name(to, to_name);
                    self.switch_out(at, line, state, to);
                }
                if let Some(at) = self.live_thread_index(to) {
                    self.rename(at, to_name);
                    self.change(at, line.at, TimelineThreadState::Running, Why::Scheduled);
                    self.tracks[at].cpu = line.cpu;
                }
            }
            FtraceEvent::Wake { tid, name } => {
                if let Some(at) = self.live_thread_index(tid) {
                    self.rename(at, name);
                    // Only a sleeper wakes: a wake-up that meets the thread on
                    // its way to sleep changes nothing here, the later
                    // `sched_wakeup` does if it was too late.
                    if matches!(self.tracks[at].open, None | Some((TimelineThreadState::Blocked, ..))) {
                        self.change(at, line.at, TimelineThreadState::Runnable, Why::Woken { by: line.tid });
                    }
                }
            }
            FtraceEvent::WakeNew { tid, name } => {
                if let Some(at) = self.live_thread_index(tid) {
                    self.rename(at, name);
                    let by = self.creators.remove(&tid).unwrap_or(line.tid);
                    self.change(at, line.at, TimelineThreadState::Runnable, Why::Created { by });
                }
            }
            FtraceEvent::Fork { child, name } => {
                if self.index.contains_key(&line.tid) {
                    self.on_cpu(line);
                    self.follow_thread(child, name);
                    self.creators.insert(child, line.tid);
                }
            }
            FtraceEvent::Enter { number } => {
                if let Some(at) = self.on_cpu(line) {
                    self.tracks[at].call = Some(OpenCall { number, from: line.at, marker: false });
                }
            }
            FtraceEvent::Exit { number, result } => {
                if let Some(at) = self.on_cpu(line) {
                    self.record_call_exit(at, line.at, number, result);
                }
            }
            FtraceEvent::Mark { text } => {
                if let Some(at) = self.on_cpu(line) {
                    self.record_signpost(at, line.at, text);
                }
            }
            FtraceEvent::Other => {
                self.on_cpu(line);
            }
        }
    }

    /// Returns the index of a followed thread that has not ended.
    fn live_thread_index(&self, tid: u32) -> Option<usize> {
        self.index.get(&tid).copied().filter(|at| !self.timeline.threads[*at].ended)
    }

    fn rename(&mut self, at: usize, name: &str) {
        self.timeline.threads[at].name = name.to_owned();
    }

    /// Notes that the thread of a line is on a CPU, whatever its state was before.
    fn on_cpu(&mut self, line: &FtraceLine) -> Option<usize> {
        let at = self.live_thread_index(line.tid)?;
        if !matches!(self.tracks[at].open, Some((TimelineThreadState::Running, ..))) {
            self.change(at, line.at, TimelineThreadState::Running, Why::Scheduled);
        }
        self.tracks[at].cpu = line.cpu;
        Some(at)
    }

    fn switch_out(&mut self, at: usize, line: &FtraceLine, state: &str, to: u32) {
        self.tracks[at].cpu = line.cpu;
        let call = self.tracks[at].call.as_ref().map(|call| call.number);
        match state.chars().next() {
            Some('X' | 'Z') => {
                self.close_interval(at, line.at);
                self.timeline.threads[at].ended = true;
            }
            // `R+` was taken off inside the kernel. `R` is either that on the
            // way back to the program, or the thread's own wish.
            Some('R') if state == "R" && self.yields(call) => {
                self.change(at, line.at, TimelineThreadState::Runnable, Why::Yielded);
            }
            Some('R') => self.change(at, line.at, TimelineThreadState::Preempted, Why::Preempted { by: to }),
            kind => {
                let why = Why::Slept { kind: kind.unwrap_or('?'), call };
                self.change(at, line.at, TimelineThreadState::Blocked, why);
            }
        }
    }

    fn yields(&self, call: Option<u32>) -> bool {
        call.is_some_and(|call| syscall_name(&self.recording.architecture, call) == "sched_yield")
    }

    fn change(&mut self, at: usize, now: u64, state: TimelineThreadState, why: Why) {
        self.close_interval(at, now);
        self.tracks[at].open = Some((state, now, why));
    }

    fn close_interval(&mut self, at: usize, now: u64) {
        let Some((state, from, why)) = self.tracks[at].open.take() else { return };
        let until = now.max(from);
        let cpu = self.tracks[at].cpu;
        self.timeline.threads[at].intervals.push(ThreadStateInterval { from, until, state, why, cpu });
    }

    fn record_call_exit(&mut self, at: usize, now: u64, number: u32, result: i64) {
        let Some(call) = self.tracks[at].call.take() else { return };
        if call.number == number && !call.marker {
            let done = SyscallSpan { from: call.from, until: now, number, result: Some(result) };
            self.timeline.threads[at].calls.push(done);
        }
    }

    fn record_signpost(&mut self, at: usize, now: u64, text: &str) {
        if let Some(call) = &mut self.tracks[at].call {
            call.marker = true;
        }
        let mut parts = text.splitn(3, '|');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("B"), Some(_), Some(name)) => self.tracks[at].signposts.push((now, name.to_owned())),
            (Some("E"), ..) => {
                if let Some((from, name)) = self.tracks[at].signposts.pop() {
                    let signpost = Signpost { from, until: now, name, closed: true };
                    self.timeline.threads[at].signposts.push(signpost);
                }
            }
            _ => {}
        }
    }

    fn finish_timeline(mut self) -> Timeline {
        let until = self.timeline.until;
        for at in 0..self.tracks.len() {
            let ended = self.timeline.threads[at].ended;
            self.close_interval(at, until);
            let track = std::mem::take(&mut self.tracks[at]);
            let thread = &mut self.timeline.threads[at];
            let end = if ended { thread.until() } else { until };
            // A thread that ended is in `exit` for ever: that is no call.
            if let Some(call) = track.call.filter(|call| !ended && !call.marker) {
                thread.calls.push(SyscallSpan {
                    from: call.from,
                    until: end,
                    number: call.number,
                    result: None,
                });
            }
            for (from, name) in track.signposts.into_iter().rev() {
                thread.signposts.push(Signpost { from, until: end.max(from), name, closed: false });
            }
        }
        self.timeline.threads.retain(|thread| !thread.intervals.is_empty());
        self.timeline
    }
}
