//! Division of the time of threads among their states.

use super::syscalls::syscall_name;
use super::{State, Thread, Timeline};
use latscope_core::report::{Better, Certainty, Finding, Value};
use latscope_core::units::{format_share, format_time};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Division of the time of a thread, or of several threads alike, among states.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadShares {
    /// Id of the thread; of several threads, that of the first.
    pub tid: u32,
    /// Process id; 0 where unknown.
    pub process: u32,
    /// Name of the thread.
    pub name: String,
    /// Number of threads that are summed up.
    pub threads: u64,
    /// Share of the span in which a CPU executed the thread, 0 to 1.
    pub running: f64,
    /// Share in which the thread waited for a CPU after a wake-up, 0 to 1.
    pub runnable: f64,
    /// Share in which the thread waited for a CPU that was taken from it, 0 to 1.
    pub preempted: f64,
    /// Share in which the thread waited for something else, 0 to 1.
    pub blocked: f64,
    /// Time in which the thread existed, ns; of several threads, the sum.
    pub span_ns: u64,
    /// Number of times that the thread left a CPU, for any reason.
    pub switches: u64,
    /// System calls of the thread, the call with most time first. The time of a call contains the waiting in
    /// it.
    pub syscalls: Vec<CallShare>,
}

/// The time spent in one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallShare {
    /// Name of the call.
    pub name: String,
    /// Number of times that it was called.
    pub count: u64,
    /// Time from entry to return, summed, ns.
    pub ns: u64,
    /// Duration of the longest call, ns.
    pub longest_ns: u64,
}

impl ThreadShares {
    /// The share of a state, 0 to 1.
    pub fn share(&self, state: State) -> f64 {
        match state {
            State::Running => self.running,
            State::Runnable => self.runnable,
            State::Preempted => self.preempted,
            State::Blocked => self.blocked,
        }
    }
}

/// Sums from which shares are made.
#[derive(Default)]
struct Sums {
    threads: u64,
    states: [u64; 4],
    switches: u64,
    calls: BTreeMap<u32, CallSum>,
}

#[derive(Default)]
struct CallSum {
    count: u64,
    ns: u64,
    longest: u64,
}

/// The part of `from..until` within a window.
fn overlap(from: u64, until: u64, window: &Range<u64>) -> u64 {
    until.min(window.end).saturating_sub(from.max(window.start))
}

impl Sums {
    fn add(&mut self, thread: &Thread, window: &Range<u64>) {
        self.threads += 1;
        for interval in &thread.intervals {
            self.states[interval.state as usize] += overlap(interval.from, interval.until, window);
        }
        // The last interval was cut by the end of the recording, unless the
        // thread itself ended then.
        let left = thread.intervals.len().saturating_sub(usize::from(!thread.ended));
        let left = thread.intervals[..left].iter().filter(|interval| interval.state == State::Running);
        self.switches += left.filter(|interval| window.contains(&interval.until)).count() as u64;
        for call in thread.calls.iter().filter(|call| window.contains(&call.from)) {
            let ns = overlap(call.from, call.until, window);
            let sum = self.calls.entry(call.number).or_default();
            sum.count += 1;
            sum.ns += ns;
            sum.longest = sum.longest.max(ns);
        }
    }

    fn shares(&self, first: &Thread, architecture: &str) -> ThreadShares {
        let span: u64 = self.states.iter().sum();
        let share = |state: State| self.states[state as usize] as f64 / span.max(1) as f64;
        let mut syscalls: Vec<CallShare> = self
            .calls
            .iter()
            .map(|(number, sum)| CallShare {
                name: syscall_name(architecture, *number).into_owned(),
                count: sum.count,
                ns: sum.ns,
                longest_ns: sum.longest,
            })
            .collect();
        syscalls.sort_by_key(|call| std::cmp::Reverse(call.ns));
        ThreadShares {
            tid: first.tid,
            process: first.process,
            name: first.name.clone(),
            threads: self.threads,
            running: share(State::Running),
            runnable: share(State::Runnable),
            preempted: share(State::Preempted),
            blocked: share(State::Blocked),
            span_ns: span,
            switches: self.switches,
            syscalls,
        }
    }
}

/// The shares of each thread over the whole time line, in order of appearance.
pub fn shares(timeline: &Timeline) -> Vec<ThreadShares> {
    shares_within(timeline, timeline.from..timeline.until.saturating_add(1))
}

/// The shares of each thread that was there within a window of the trace clock,
/// for example between the ends of a [signpost](super::Signpost).
pub fn shares_within(timeline: &Timeline, window: Range<u64>) -> Vec<ThreadShares> {
    let there = timeline.threads.iter().filter(|t| t.from() < window.end && t.until() >= window.start);
    there
        .map(|thread| {
            let mut sums = Sums::default();
            sums.add(thread, &window);
            sums.shares(thread, &timeline.architecture)
        })
        .collect()
}

/// Joins threads that are alike: the main thread of each process stays alone, the others are joined by name, so
/// that a thousand short-lived threads are one row.
fn groups(timeline: &Timeline, window: &Range<u64>) -> Vec<ThreadShares> {
    let mut groups: Vec<(&Thread, Sums)> = Vec::new();
    let mut at: HashMap<(u32, bool, &str), usize> = HashMap::new();
    for thread in &timeline.threads {
        if thread.from() >= window.end || thread.until() < window.start {
            continue;
        }
        let key = (thread.process, thread.is_main(), thread.name.as_str());
        let at = *at.entry(key).or_insert_with(|| {
            groups.push((thread, Sums::default()));
            groups.len() - 1
        });
        groups[at].1.add(thread, window);
    }
    groups.iter().map(|(first, sums)| sums.shares(first, &timeline.architecture)).collect()
}

/// Joins all threads to one.
fn total(timeline: &Timeline, window: &Range<u64>) -> Option<ThreadShares> {
    let mut sums = Sums::default();
    for thread in &timeline.threads {
        if thread.from() < window.end && thread.until() >= window.start {
            sums.add(thread, window);
        }
    }
    let first = timeline.threads.first()?;
    (sums.threads > 0).then(|| sums.shares(first, &timeline.architecture))
}

/// The shares of all threads together within a window as named values of a
/// measurement: `timeline-running`, `timeline-runnable`, `timeline-preempted`
/// and `timeline-blocked` in %, `timeline-switches`. Empty if no thread was there.
pub fn values(timeline: &Timeline, window: Range<u64>) -> BTreeMap<String, Value> {
    let Some(total) = total(timeline, &window) else { return BTreeMap::new() };
    let value = |value: f64, unit: &str| Value { value, unit: unit.to_owned(), better: Better::Neither };
    let mut values: BTreeMap<String, Value> = State::ALL
        .iter()
        .map(|state| (format!("timeline-{}", state.name()), value(total.share(*state) * 100.0, "%")))
        .collect();
    values.insert("timeline-switches".to_owned(), value(total.switches as f64, "count"));
    values
}

/// The shares as a finding (`timeline`) of the result. Its values are those of
/// [`values`] without their prefix, for all threads together.
pub fn finding(timeline: &Timeline, title: &str) -> Option<Finding> {
    let window = timeline.from..timeline.until.saturating_add(1);
    let total = total(timeline, &window)?;
    let mut text = format!(
        "{title}: {} {} for {} in all: {} running, {} runnable, {} preempted, {} blocked",
        total.threads,
        if total.threads == 1 { "thread" } else { "threads" },
        format_time(total.span_ns as f64),
        format_share(total.running),
        format_share(total.runnable),
        format_share(total.preempted),
        format_share(total.blocked),
    );
    if let Some(call) = total.syscalls.first() {
        text += &format!("; most time in {} ({}x, {})", call.name, call.count, format_time(call.ns as f64));
    }
    text += &loss(timeline);
    let shares = State::ALL.iter().map(|state| (state.name(), total.share(*state) * 100.0));
    let counts = [
        ("threads", total.threads as f64),
        ("switches", total.switches as f64),
        ("lost", timeline.lost as f64),
    ];
    Some(Finding {
        id: "timeline".to_owned(),
        text,
        values: shares.chain(counts).map(|(name, value)| (name.to_owned(), value)).collect(),
        certainty: Certainty::Doubt,
        doubt: Some("what was recorded of this run, not what the next one will be".to_owned()),
        evidence: Vec::new(),
        rounds: None,
    })
}

fn loss(timeline: &Timeline) -> String {
    match timeline.lost {
        0 => String::new(),
        lost => format!("; {lost} earlier events did not fit: only the last part is shown"),
    }
}

/// Maximum width of a name on the screen.
const NAME_WIDTH: usize = 26;

/// Returns a table for the screen: a row for each thread; threads that are alike share a row.
pub fn text(timeline: &Timeline) -> String {
    let window = timeline.from..timeline.until.saturating_add(1);
    let span = timeline.until.saturating_sub(timeline.from);
    let mut out = format!("time line of {}{}\n", format_time(span as f64), loss(timeline));
    out += &format!(
        "{:<NAME_WIDTH$} {:>8} {:>8} {:>9} {:>8} {:>9} {:>8}  {}\n",
        "thread", "running", "runnable", "preempted", "blocked", "span", "switches", "most time in"
    );
    for row in groups(timeline, &window) {
        let percent = |state: State| format_share(row.share(state));
        let calls: Vec<String> = row.syscalls.iter().take(3).map(|call| call_text(call, &row)).collect();
        let line = format!(
            "{:<NAME_WIDTH$} {:>8} {:>8} {:>9} {:>8} {:>9} {:>8}  {}",
            label(&row),
            percent(State::Running),
            percent(State::Runnable),
            percent(State::Preempted),
            percent(State::Blocked),
            format_time(row.span_ns as f64),
            row.switches,
            calls.join(", ")
        );
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn label(row: &ThreadShares) -> String {
    let who = match row.threads {
        1 => format!("{} {}", row.name, row.tid),
        threads => format!("{} ({threads} threads)", row.name),
    };
    match who.char_indices().nth(NAME_WIDTH) {
        Some((end, _)) => who[..end].to_owned(),
        None => who,
    }
}

/// Returns a call with its share of the row's span: `futex 34.1 % (1020x)`.
fn call_text(call: &CallShare, row: &ThreadShares) -> String {
    let share = format_share(call.ns as f64 / row.span_ns.max(1) as f64);
    format!("{} {share} ({}x)", call.name, call.count)
}
