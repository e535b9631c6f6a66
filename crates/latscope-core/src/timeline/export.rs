//! Files that Perfetto opens.

use super::ftrace::{self, stamp_text};
use super::syscalls::syscall_name;
use super::{Interval, Recording, Thread, Timeline, Why};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Writes recordings as one ftrace text file, which ui.perfetto.dev opens: the
/// kernel's own events, and the system calls of the followed threads a second
/// time as slices, since Perfetto's text importer knows no `sys_enter`.
///
/// The recordings follow each other in time, each with its time line.
pub fn ftrace_text(steps: &[(&Recording, &Timeline)]) -> String {
    let mut out = String::from(
        "# tracer: nop\n#\n#           TASK-PID       TGID    CPU#  FLAGS  TIMESTAMP  FUNCTION\n\
         #              | |           |       |    |        |         |\n",
    );
    for (recording, timeline) in steps {
        let mut slices = slices(timeline);
        for text in recording.text.lines() {
            let Some(line) = ftrace::line(text).filter(|line| line.at >= timeline.from) else { continue };
            let edges = take(&mut slices, &line);
            // The slice of a call lies inside its entry and exit.
            let marks: String = edges.iter().map(|mark| row(&line, "tracing_mark_write", mark)).collect();
            match line.name {
                "sys_exit" => out += &(marks + &row(&line, line.name, line.fields)),
                _ => out += &(row(&line, line.name, line.fields) + &marks),
            }
        }
    }
    out
}

/// One line, in the form that all importers know: with a process column and
/// four flags.
fn row(line: &ftrace::Line, name: &str, fields: &str) -> String {
    let process = line.process.map_or("-------".to_owned(), |process| format!("{process:>7}"));
    format!(
        "{:>16}-{:<7} ({process}) [{:03}] .... {:>12}: {name}: {fields}\n",
        line.task,
        line.tid,
        line.cpu,
        stamp_text(line.at)
    )
}

/// Begins and ends of the calls by thread and instant.
type Slices = BTreeMap<(u32, u64), Vec<String>>;

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

/// The edge of a call that a line is, if it is one.
fn take(slices: &mut Slices, line: &ftrace::Line) -> Vec<String> {
    match line.name {
        "sys_enter" | "sys_exit" => slices.remove(&(line.tid, line.at)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Offset of the made-up thread ids under which the states of threads stand in
/// the JSON file: a track cannot hold states and calls, which overlap freely.
/// Above every real thread id (at most 2^22, proc_sys_kernel(5)).
const STATE_TRACKS: u32 = 1 << 23;

/// Writes time lines as Chrome trace-event JSON, which ui.perfetto.dev and
/// chrome://tracing open: two tracks for each thread, one with its system calls
/// and signposts, one with its states.
pub fn chrome_json(timelines: &[&Timeline]) -> String {
    let mut events = Vec::new();
    for timeline in timelines {
        let others = timeline.others.iter().map(|(tid, name)| (*tid, name.as_str()));
        let own = timeline.threads.iter().map(|thread| (thread.tid, thread.name.as_str()));
        let known: Names = others.chain(own).collect();
        for thread in &timeline.threads {
            names(thread, &mut events);
            spans(timeline, &known, thread, &mut events);
        }
    }
    let document = json!({ "displayTimeUnit": "ns", "traceEvents": events });
    let mut text = document.to_string();
    text.push('\n');
    text
}

/// Names of threads by id.
type Names<'a> = HashMap<u32, &'a str>;

fn names(thread: &Thread, events: &mut Vec<Value>) {
    let mut name = |kind: &str, tid: u32, name: String| {
        events.push(
            json!({ "ph": "M", "name": kind, "pid": thread.process, "tid": tid, "args": { "name": name } }),
        );
    };
    if thread.is_main() {
        name("process_name", thread.tid, thread.name.clone());
    }
    name("thread_name", thread.tid, thread.name.clone());
    name("thread_name", thread.tid + STATE_TRACKS, format!("{} {} states", thread.name, thread.tid));
}

/// A finished slice. The format's times are in µs.
fn slice(pid: u32, tid: u32, category: &str, name: &str, (from, until): (u64, u64), args: Value) -> Value {
    let micros = |ns: u64| ns as f64 / 1e3;
    json!({
        "ph": "X", "pid": pid, "tid": tid, "cat": category, "name": name,
        "ts": micros(from), "dur": micros(until.saturating_sub(from)), "args": args,
    })
}

fn spans(timeline: &Timeline, known: &Names, thread: &Thread, events: &mut Vec<Value>) {
    let pid = thread.process;
    for interval in &thread.intervals {
        let args = json!({ "why": reason(timeline, known, interval), "cpu": interval.cpu });
        let times = (interval.from, interval.until);
        events.push(slice(pid, thread.tid + STATE_TRACKS, "state", interval.state.name(), times, args));
    }
    for call in &thread.calls {
        let name = syscall_name(&timeline.architecture, call.number);
        let args = json!({ "number": call.number, "result": call.result });
        events.push(slice(pid, thread.tid, "syscall", &name, (call.from, call.until), args));
    }
    for signpost in &thread.signposts {
        let args = json!({ "closed": signpost.closed });
        let times = (signpost.from, signpost.until);
        events.push(slice(pid, thread.tid, "signpost", &signpost.name, times, args));
    }
}

/// What began an interval, in words.
fn reason(timeline: &Timeline, known: &Names, interval: &Interval) -> String {
    let who = |tid: u32| match known.get(&tid) {
        _ if tid == 0 => "an interrupt".to_owned(),
        Some(name) => format!("{name} {tid}"),
        None => format!("thread {tid}"),
    };
    match interval.why {
        Why::Scheduled => "a CPU took it up".to_owned(),
        Why::Woken { by } => format!("woken by {}", who(by)),
        Why::Created { by } => format!("created by {}", who(by)),
        Why::Yielded => "called sched_yield".to_owned(),
        Why::Preempted { by: 0 } => "its CPU was taken".to_owned(),
        Why::Preempted { by } => format!("{} got its CPU", who(by)),
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
