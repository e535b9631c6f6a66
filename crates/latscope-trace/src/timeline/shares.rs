//! Division of the time of threads among their states.

use super::syscalls::syscall_name;
use super::{ThreadTimeline, Timeline, TimelineThreadState};
use latscope_core::report::{Better, Certainty, Finding, MeasuredQuantity};
use latscope_core::units::{format_share, format_time};
use std::collections::BTreeMap;
use std::ops::Range;

/// Sums over all threads that were there within a window.
#[derive(Default)]
struct Sums {
    threads: u64,
    /// Time in each state, ns.
    states: [u64; 4],
    /// Number of times that a thread left a CPU, for any reason.
    switches: u64,
    /// Number of calls and their time, ns, by the number of the system call. The time contains the waiting in it.
    calls: BTreeMap<u32, (u64, u64)>,
}

/// The part of `from..until` within a window.
fn overlap(from: u64, until: u64, window: &Range<u64>) -> u64 {
    until.min(window.end).saturating_sub(from.max(window.start))
}

impl Sums {
    /// The sums within a window; `None` if no thread was there.
    fn for_window(timeline: &Timeline, window: &Range<u64>) -> Option<Sums> {
        let mut sums = Sums::default();
        let there = |thread: &&ThreadTimeline| thread.from() < window.end && thread.until() >= window.start;
        timeline.threads.iter().filter(there).for_each(|thread| sums.add_thread(thread, window));
        (sums.threads > 0).then_some(sums)
    }

    fn add_thread(&mut self, thread: &ThreadTimeline, window: &Range<u64>) {
        self.threads += 1;
        for interval in &thread.intervals {
            self.states[interval.state as usize] += overlap(interval.from, interval.until, window);
        }
        // The last interval was cut by the end of the recording, unless the
        // thread itself ended then.
        let left = thread.intervals.len().saturating_sub(usize::from(!thread.ended));
        let left =
            thread.intervals[..left].iter().filter(|interval| interval.state == TimelineThreadState::Running);
        self.switches += left.filter(|interval| window.contains(&interval.until)).count() as u64;
        for call in thread.calls.iter().filter(|call| window.contains(&call.from)) {
            let (count, ns) = self.calls.entry(call.number).or_default();
            *count += 1;
            *ns += overlap(call.from, call.until, window);
        }
    }

    /// Time in which the threads existed, ns.
    fn total_time_ns(&self) -> u64 {
        self.states.iter().sum()
    }

    /// The share of a state, 0 to 1.
    fn state_share(&self, state: TimelineThreadState) -> f64 {
        self.states[state as usize] as f64 / self.total_time_ns().max(1) as f64
    }

    /// The shares of all states in %, and the number of switches, by name.
    fn named_figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let shares =
            TimelineThreadState::ALL.iter().map(|state| (state.name(), self.state_share(*state) * 100.0));
        shares.chain([("switches", self.switches as f64)])
    }
}

/// The shares of all threads together within a window as named values of a
/// measurement: `timeline-running`, `timeline-runnable`, `timeline-preempted`
/// and `timeline-blocked` in %, `timeline-switches`. Empty if no thread was there.
pub fn values(timeline: &Timeline, window: Range<u64>) -> BTreeMap<String, MeasuredQuantity> {
    let value = |(name, value): (&str, f64)| {
        let unit = if name == "switches" { "count" } else { "%" };
        (
            format!("timeline-{name}"),
            MeasuredQuantity { value, unit: unit.to_owned(), better: Better::Neither },
        )
    };
    Sums::for_window(timeline, &window).iter().flat_map(Sums::named_figures).map(value).collect()
}

/// The shares as a finding (`timeline`) of the result. Its values are those of
/// [`values`] without their prefix, for all threads together.
pub fn finding(timeline: &Timeline, title: &str) -> Option<Finding> {
    let sums = Sums::for_window(timeline, &(timeline.from..timeline.until.saturating_add(1)))?;
    let share =
        |state: &TimelineThreadState| format!("{} {}", format_share(sums.state_share(*state)), state.name());
    let mut text = format!(
        "{title}: {} {} for {} in all: {}",
        sums.threads,
        if sums.threads == 1 { "thread" } else { "threads" },
        format_time(sums.total_time_ns() as f64),
        TimelineThreadState::ALL.iter().map(share).collect::<Vec<_>>().join(", ")
    );
    if let Some((number, (count, ns))) = sums.calls.iter().rev().max_by_key(|(_, (_, ns))| ns) {
        let name = syscall_name(&timeline.architecture, *number);
        text += &format!("; most time in {name} ({count}x, {})", format_time(*ns as f64));
    }
    if timeline.lost > 0 {
        text += &format!("; {} earlier events did not fit: only the last part is shown", timeline.lost);
    }
    let counts = [("threads", sums.threads as f64), ("lost", timeline.lost as f64)];
    Some(Finding {
        id: "timeline".to_owned(),
        text,
        values: sums.named_figures().chain(counts).map(|(name, value)| (name.to_owned(), value)).collect(),
        certainty: Certainty::Doubt,
        doubt: Some("what was recorded of this run, not what the next one will be".to_owned()),
        evidence: Vec::new(),
        rounds: None,
    })
}
