//! Output of the programs for inter-process communication, made by pure functions.

use crate::rt::paced::{PacedEndpointRules, PacedEndpointStatistics};
use crate::rt::row::NO_MIN;
use latscope_core::units::format_time;
use std::fmt::Write;

/// Pair of endpoints: the rules of its receiver, and the figures of its receiver and its sender.
#[derive(Debug, Clone)]
pub struct PacedEndpointPair<'a> {
    /// Rules of the receiver.
    pub rules: &'a PacedEndpointRules,
    /// Figures of the endpoint that waits.
    pub receiver: PacedEndpointStatistics,
    /// Figures of the endpoint that sends.
    pub sender: PacedEndpointStatistics,
}

fn us(ns: u64) -> u64 {
    ns / 1000
}

/// CPU as it is printed: -1 before it is known.
fn cpu(figures: &PacedEndpointStatistics) -> i64 {
    figures.cpu.map_or(-1, i64::from)
}

/// Returns two lines for each pair, with the receivers' timeouts where these are counted.
pub fn format_pairs(all: &[PacedEndpointPair], timeouts: bool) -> String {
    let mut text = String::new();
    for (index, pair) in all.iter().enumerate() {
        let (receiver, sender, priority) = (&pair.receiver, &pair.sender, pair.rules.priority);
        let timeouts = if timeouts { format!("TO {}, ", receiver.timeouts) } else { String::new() };
        let _ = writeln!(
            text,
            "#{}: ID{}, P{priority}, CPU{}, I{}; #{}: ID{}, P{priority}, CPU{}, {timeouts}Cycles {}",
            2 * index,
            receiver.thread,
            cpu(receiver),
            us(pair.rules.interval),
            2 * index + 1,
            sender.thread,
            cpu(sender),
            receiver.cycles
        );
    }
    for (index, pair) in all.iter().enumerate() {
        let _ = write!(text, "#{} -> #{}", 2 * index + 1, 2 * index);
        let receiver = &pair.receiver;
        let _ = match receiver.samples {
            0 => writeln!(text, " (not yet ready)"),
            _ => writeln!(
                text,
                ", Min {:4}, Cur {:4}, Avg {:4}, Max {:4}",
                us(receiver.min),
                us(receiver.last),
                us(receiver.mean as u64),
                us(receiver.max)
            ),
        };
    }
    text
}

/// Returns a line for each thread of a circle.
pub fn circle(priority: u32, all: &[PacedEndpointStatistics]) -> String {
    let mut text = String::new();
    for (index, thread) in all.iter().enumerate() {
        let (min, max) = match thread.samples {
            0 => (NO_MIN as i64, -(NO_MIN as i64)),
            _ => (us(thread.min) as i64, us(thread.max) as i64),
        };
        let _ = writeln!(
            text,
            "T:{index:2} ({:5}) P:{priority:2} C:{:7} Min:{min:7} Act:{:5} Avg:{:5} Max:{max:8}",
            thread.thread,
            thread.cycles,
            us(thread.last),
            us(thread.mean as u64)
        );
    }
    text
}

/// Frame drawn during a run of a circle: three lines, with the figures of the first thread.
pub fn circle_frame(load: &str, priority: u32, first: PacedEndpointStatistics) -> String {
    format!("{}          \n\n{}", load.trim_end(), circle(priority, &[first]))
}

/// Line for one sample of `-v`.
pub fn sample(cycle: u64, ns: u64) -> String {
    format!("{:8}:{cycle:8}:{:8}\n", 0, us(ns))
}

/// Line about a run that `-b` ended.
pub fn format_break(endpoint: usize) -> String {
    format!("Thread {endpoint} exceeded trace limit.\n")
}

/// Part of the JSON of pairs after the common head.
pub fn pairs_json(all: &[PacedEndpointPair], timeouts: bool) -> String {
    let each = all.iter().enumerate().map(|(index, pair)| pair_json(index, pair, timeouts));
    threads_json(each.collect())
}

fn pair_json(index: usize, pair: &PacedEndpointPair, timeouts: bool) -> String {
    let (receiver, sender, rules) = (&pair.receiver, &pair.sender, pair.rules);
    let timeouts = match timeouts {
        true => format!("        \"timeoutcount\": {},\n", receiver.timeouts),
        false => String::new(),
    };
    format!(
        "    \"{index}\": {{\n      \"sender\": {{\n        \"cpu\": {},\n        \"priority\": {},\n        \
         \"samples\": {},\n        \"interval\": {}\n      }},\n      \"receiver\": {{\n        \"cpu\": {},\n        \
         \"priority\": {},\n{timeouts}        \"min\": {},\n        \"avg\": {:.2},\n        \"max\": {}\n      }}\n    }}",
        cpu(sender),
        rules.priority,
        receiver.cycles,
        us(rules.interval),
        cpu(receiver),
        rules.priority,
        us(receiver.min),
        receiver.mean / 1000.0,
        us(receiver.max)
    )
}

/// Part of the JSON of a circle after the common head.
pub fn circle_json(all: &[PacedEndpointStatistics]) -> String {
    threads_json(all.iter().enumerate().map(thread_json).collect())
}

fn thread_json((index, thread): (usize, &PacedEndpointStatistics)) -> String {
    format!(
        "    \"{index}\": {{\n      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n      \"avg\": {:.2},\n      \
         \"cpu\": {}\n    }}",
        thread.cycles,
        us(thread.min),
        us(thread.max),
        thread.mean / 1000.0,
        cpu(thread)
    )
}

fn threads_json(threads: Vec<String>) -> String {
    format!("  \"num_threads\": {},\n  \"thread\": {{\n{}\n  }}\n", threads.len(), threads.join(",\n"))
}

/// Escape sequence that moves the cursor up by so many lines.
pub fn up(lines: usize) -> String {
    format!("\x1b[{lines}A")
}

/// Escape sequence that moves the cursor down by so many lines.
pub fn down(lines: usize) -> String {
    format!("\x1b[{lines}B")
}

/// Title of a pair, or of a thread of the circle: means, interval, policy and CPU.
pub(super) fn format_title(rules: &PacedEndpointRules) -> String {
    let means = format!("{:?}", rules.means).to_lowercase();
    let every = format_time(rules.interval as f64);
    let policy = match rules.priority {
        0 => "SCHED_OTHER".to_owned(),
        priority => format!("SCHED_FIFO {priority}"),
    };
    let place = rules.cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    format!("{means} every {every}, {policy}, {place}")
}
