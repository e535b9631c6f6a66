//! Files that Perfetto opens.

use super::ftrace::{self, FtraceEvent, stamp_text};
use super::syscalls::syscall_name;
use super::{ThreadStateInterval, ThreadTimeline, Timeline, TraceRecording, Why};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The format of a time line's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineFileFormat {
    /// ftrace text, as [`ftrace_text`] writes it.
    Ftrace,
    /// Chrome trace-event JSON, as [`chrome_json`] writes it.
    Json,
}

impl TimelineFileFormat {
    /// JSON for a file whose name ends in `.json`, else ftrace text.
    pub fn for_path(path: &Path) -> TimelineFileFormat {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("json") => TimelineFileFormat::Json,
            _ => TimelineFileFormat::Ftrace,
        }
    }
}

/// Writes a file step by step, so that no more than one recording need be in
/// memory: [`Export::file_header`], [`Export::format_step`] for each in order of time,
/// [`Export::file_footer`].
#[derive(Debug)]
pub struct Export {
    format: TimelineFileFormat,
    empty: bool,
}

impl Export {
    /// A file of a format.
    pub fn new(format: TimelineFileFormat) -> Export {
        Export { format, empty: true }
    }

    /// Returns the begin of the file.
    pub fn file_header(&self) -> &'static str {
        match self.format {
            TimelineFileFormat::Ftrace => FTRACE_HEAD,
            TimelineFileFormat::Json => "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[",
        }
    }

    /// Returns the text of one step, which need not end with a line feed.
    pub fn format_step(&mut self, recording: &TraceRecording, timeline: &Timeline) -> String {
        let text = match self.format {
            TimelineFileFormat::Ftrace => ftrace_step(recording, timeline),
            TimelineFileFormat::Json => json_step(timeline),
        };
        let separator =
            if self.format == TimelineFileFormat::Json && !self.empty && !text.is_empty() { "," } else { "" };
        self.empty &= text.is_empty();
        format!("{separator}{text}")
    }

    /// Returns the end of the file.
    pub fn file_footer(&self) -> &'static str {
        match self.format {
            TimelineFileFormat::Ftrace => "",
            TimelineFileFormat::Json => "]}\n",
        }
    }
}

fn export_steps(format: TimelineFileFormat, steps: &[(&TraceRecording, &Timeline)]) -> String {
    let mut export = Export::new(format);
    let body: String =
        steps.iter().map(|(recording, timeline)| export.format_step(recording, timeline)).collect();
    format!("{}{body}{}", export.file_header(), export.file_footer())
}

/// Header of ftrace text.
pub(crate) const FTRACE_HEAD: &str = "\
# tracer: nop
#
#           TASK-PID       TGID    CPU#  FLAGS  TIMESTAMP  FUNCTION
#              | |           |       |    |        |         |
";

/// Writes recordings as one ftrace text file, which ui.perfetto.dev opens. The
/// recordings follow each other in time, each with its time line.
///
/// The file holds the kernel's own events, and some more for Perfetto's text importer:
/// - system calls of the followed threads a second time as slices, since it
///   knows no `sys_enter`;
/// - a `sched_waking` beside each `sched_wakeup_new`, for the same reason;
/// - switches that close the gaps on a CPU. Only switches from and to the
///   followed threads are recorded; of other threads the file shows only
///   when they gave way to a followed thread or took its place.
pub fn ftrace_text(steps: &[(&TraceRecording, &Timeline)]) -> String {
    export_steps(TimelineFileFormat::Ftrace, steps)
}

fn ftrace_step(recording: &TraceRecording, timeline: &Timeline) -> String {
    let mut out = String::with_capacity(recording.text.len() * 3 / 2);
    let mut writer = FtraceTextWriter::new(timeline);
    for text in recording.text.lines() {
        if let Some(line) = ftrace::parse_line(text).filter(|line| line.at >= timeline.from) {
            writer.write_line(&line, &mut out);
        }
    }
    writer.switch_out_running(timeline.until, &mut out);
    out
}

/// Writes the lines of one step.
struct FtraceTextWriter<'a> {
    followed: HashSet<u32>,
    slices: Slices,
    /// Id and name of the thread on each CPU, as far as they are known.
    current: BTreeMap<u32, (u32, &'a str)>,
}

const IDLE: (u32, &str) = (0, "swapper");

impl<'a> FtraceTextWriter<'a> {
    fn new(timeline: &Timeline) -> Self {
        let followed = timeline.threads.iter().map(|thread| thread.tid).collect();
        FtraceTextWriter { followed, slices: slices(timeline), current: BTreeMap::new() }
    }

    fn write_line(&mut self, line: &ftrace::FtraceLine<'a>, out: &mut String) {
        let event = line.parse_event();
        match event {
            Some(FtraceEvent::Switch { from, from_name, to, to_name, .. }) => {
                if self.current.contains_key(&line.cpu) {
                    self.on_cpu(line.cpu, line.at, (from, from_name), out);
                }
                self.current.insert(line.cpu, (to, to_name));
            }
            _ if self.followed.contains(&line.tid) => {
                self.on_cpu(line.cpu, line.at, (line.tid, line.task), out);
            }
            _ => {}
        }
        let edges = match event {
            Some(FtraceEvent::Enter { .. } | FtraceEvent::Exit { .. }) => {
                self.slices.remove(&(line.tid, line.at))
            }
            _ => None,
        };
        let marks =
            edges.unwrap_or_default().into_iter().map(|mark| format_line(line, "tracing_mark_write", &mark));
        // The slice of a call lies inside its entry and exit.
        match event {
            Some(FtraceEvent::Exit { .. }) => {
                *out += &(marks.collect::<String>() + &format_line(line, line.name, line.fields))
            }
            _ => *out += &(format_line(line, line.name, line.fields) + &marks.collect::<String>()),
        }
        if let Some(FtraceEvent::WakeNew { .. }) = event {
            *out += &format_line(line, "sched_waking", line.fields);
        }
    }

    /// Writes the switch to the thread that is seen on a CPU, if it was not recorded.
    fn on_cpu(&mut self, cpu: u32, at: u64, thread: (u32, &'a str), out: &mut String) {
        let before = *self.current.get(&cpu).unwrap_or(&IDLE);
        if before.0 != thread.0 {
            *out += &format_switch(cpu, at, before, "S", thread);
            self.current.insert(cpu, thread);
        }
    }

    /// Takes the threads that are still running off their CPUs: their process
    /// ends with the step.
    fn switch_out_running(self, at: u64, out: &mut String) {
        for (cpu, thread) in self.current {
            if thread.0 != IDLE.0 {
                *out += &format_switch(cpu, at, thread, "X", IDLE);
            }
        }
    }
}

/// A switch that was not recorded.
fn format_switch(cpu: u32, at: u64, from: (u32, &str), state: &str, to: (u32, &str)) -> String {
    let state = if from.0 == IDLE.0 { "R" } else { state };
    let fields = format!(
        "prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} next_pid={} next_prio=120",
        from.1, from.0, to.1, to.0
    );
    let (tid, task) = from;
    ftrace_row((tid, None, task), cpu, at, "sched_switch", &fields)
}

fn format_line(line: &ftrace::FtraceLine, name: &str, fields: &str) -> String {
    ftrace_row((line.tid, line.process, line.task), line.cpu, line.at, name, fields)
}

/// Returns a line in the form that all importers know: with a process column and four flags. The thread on the
/// CPU is given by its id, process and name.
pub(crate) fn ftrace_row(
    (tid, process, task): (u32, Option<u32>, &str),
    cpu: u32,
    at: u64,
    name: &str,
    fields: &str,
) -> String {
    let process = process.map_or("-------".to_owned(), |process| format!("{process:>7}"));
    let row =
        format!("{task:>16}-{tid:<7} ({process}) [{cpu:03}] .... {:>12}: {name}: {fields}", stamp_text(at));
    // A thread may have any name, also one that a terminal obeys.
    row.replace(char::is_control, "?") + "\n"
}

/// Begins and ends of the calls by thread and instant.
type Slices = HashMap<(u32, u64), Vec<String>>;

fn slices(timeline: &Timeline) -> Slices {
    let mut slices = Slices::new();
    for thread in &timeline.threads {
        for call in thread.calls.iter().filter(|call| call.result.is_some()) {
            let name = syscall_name(&timeline.architecture, call.number);
            slices.entry((thread.tid, call.from)).or_default().push(format!("B|{}|{name}", thread.process));
            slices.entry((thread.tid, call.until)).or_default().push(format!("E|{}", thread.process));
        }
    }
    slices
}

/// Offset of the made-up thread ids under which the states of threads stand in the JSON file: a track cannot
/// hold both states and calls, which overlap. It is above every real thread id (at most 2^22,
/// proc_sys_kernel(5)).
const STATE_TRACKS: u32 = 1 << 23;

/// Writes time lines as Chrome trace-event JSON, which ui.perfetto.dev and
/// chrome://tracing open: two tracks for each thread, one with its system calls
/// and signposts, one with its states.
pub fn chrome_json(steps: &[(&TraceRecording, &Timeline)]) -> String {
    export_steps(TimelineFileFormat::Json, steps)
}

fn json_step(timeline: &Timeline) -> String {
    let others = timeline.others.iter().map(|(tid, name)| (*tid, name.as_str()));
    let own = timeline.threads.iter().map(|thread| (thread.tid, thread.name.as_str()));
    let known: ThreadNameMap = others.chain(own).collect();
    let mut events = ChromeEventList::default();
    for thread in &timeline.threads {
        push_thread_names(thread, &mut events);
        push_slices(timeline, &known, thread, &mut events);
    }
    events.0
}

/// The text of JSON events, with commas between.
#[derive(Default)]
struct ChromeEventList(String);

impl ChromeEventList {
    fn push(&mut self, event: &Value) {
        let separator = if self.0.is_empty() { "\n" } else { ",\n" };
        self.0 += separator;
        self.0 += &event.to_string();
    }
}

/// Names of threads by id.
type ThreadNameMap<'a> = HashMap<u32, &'a str>;

fn push_thread_names(thread: &ThreadTimeline, events: &mut ChromeEventList) {
    let process = ("process_name", thread.tid, thread.name.clone());
    let states = format!("{} {} states", thread.name, thread.tid);
    let tracks =
        [("thread_name", thread.tid, thread.name.clone()), ("thread_name", state_track(thread), states)];
    for (kind, tid, name) in thread.is_main().then_some(process).into_iter().chain(tracks) {
        events.push(
            &json!({ "ph": "M", "name": kind, "pid": thread.process, "tid": tid, "args": { "name": name } }),
        );
    }
}

/// Returns the track of a thread's states, beside that of its calls. Thread ids stay below 2^22; the id in a
/// damaged file may wrap.
fn state_track(thread: &ThreadTimeline) -> u32 {
    thread.tid.wrapping_add(STATE_TRACKS)
}

/// A finished slice. The format's times are in µs.
fn slice(pid: u32, tid: u32, category: &str, name: &str, (from, until): (u64, u64), args: Value) -> Value {
    let [begin, length] = [from, until.saturating_sub(from)].map(|ns| ns as f64 / 1e3);
    json!({
        "ph": "X", "pid": pid, "tid": tid, "cat": category, "name": name,
        "ts": begin, "dur": length, "args": args,
    })
}

fn push_slices(
    timeline: &Timeline,
    known: &ThreadNameMap,
    thread: &ThreadTimeline,
    events: &mut ChromeEventList,
) {
    let pid = thread.process;
    for interval in &thread.intervals {
        let args = json!({ "why": describe_reason(timeline, known, interval), "cpu": interval.cpu });
        let times = (interval.from, interval.until);
        events.push(&slice(pid, state_track(thread), "state", interval.state.name(), times, args));
    }
    for call in &thread.calls {
        let name = syscall_name(&timeline.architecture, call.number);
        let args = json!({ "number": call.number, "result": call.result });
        events.push(&slice(pid, thread.tid, "syscall", &name, (call.from, call.until), args));
    }
    for signpost in &thread.signposts {
        let args = json!({ "closed": signpost.closed });
        let times = (signpost.from, signpost.until);
        events.push(&slice(pid, thread.tid, "signpost", &signpost.name, times, args));
    }
}

/// Returns the thread that caused an event, in words.
fn cause(known: &ThreadNameMap, tid: u32) -> String {
    match known.get(&tid) {
        _ if tid == 0 => "an interrupt".to_owned(),
        Some(name) => format!("{name} {tid}"),
        None => format!("thread {tid}"),
    }
}

/// Returns the event that began an interval, in words.
fn describe_reason(timeline: &Timeline, known: &ThreadNameMap, interval: &ThreadStateInterval) -> String {
    match interval.why {
        Why::Scheduled => "a CPU took it up".to_owned(),
        Why::Woken { by } => format!("woken by {}", cause(known, by)),
        Why::Created { by } => format!("created by {}", cause(known, by)),
        Why::Yielded => "called sched_yield".to_owned(),
        Why::Preempted { by: 0 } => "its CPU was taken".to_owned(),
        Why::Preempted { by } => format!("{} got its CPU", cause(known, by)),
        Why::Slept { kind, call } => {
            let sleep = match kind {
                'S' => "sleeps",
                'D' => "sleeps, not to be interrupted",
                'T' => "stopped",
                't' => "traced",
                _ => "waits",
            };
            match call {
                Some(number) => format!("{sleep} in {}", syscall_name(&timeline.architecture, number)),
                None => format!("{sleep} ({kind})"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_terminal_obeys_is_shown() {
        let row = ftrace_row((7, None, "\u{1b}]0;x\u{7}"), 0, 1, "sched_switch", "next_comm=\u{9b}2J");
        assert!(row.contains("?]0;x?") && row.ends_with("next_comm=?2J\n"), "{row}");
    }
}
