//! Causes of late events, in words.

use latscope_core::report::{Account, Cause, Outlier};
use latscope_core::units::{format_count, format_share, format_time};
use latscope_judge::patterns::{Pattern, known_source};

/// Causes named in a line; the others are summed up.
const NAMED: usize = 4;

/// Returns the line of an outlier: `CPU 1, 412 µs late: 342 µs (83 %) thread hog (pid 123) held the CPU, …`.
pub fn format_outlier(outlier: &Outlier) -> String {
    let head = format!("CPU {}, {} late", outlier.cpu, format_time(outlier.value as f64));
    if outlier.cause.is_empty() { head } else { format!("{head}: {}", shares(outlier)) }
}

/// Returns words for an outlier that was not traced, with the reason if it is known.
fn not_traced(outlier: &Outlier) -> String {
    outlier.cause.first().map_or_else(|| "not traced".to_owned(), describe_cause)
}

/// Returns the causes of an outlier, with the µs and the share of each. An outlier that was not traced has no share.
pub fn shares(outlier: &Outlier) -> String {
    if !outlier.is_traced() {
        return not_traced(outlier);
    }
    let (named, others) = outlier.cause.split_at(outlier.cause.len().min(NAMED));
    let mut shares: Vec<String> = named
        .iter()
        .map(|cause| format!("{} {}", time_and_share(cause.ns, outlier.value), describe_cause(cause)))
        .collect();
    let rest: u64 = others.iter().map(|cause| cause.ns).sum();
    if rest > 0 {
        shares.push(format!("{} others", time_and_share(rest, outlier.value)));
    }
    shares.join(", ")
}

fn time_and_share(ns: u64, of: u64) -> String {
    format!("{} ({})", format_time(ns as f64), format_share(ns as f64 / of.max(1) as f64))
}

/// A cause without its share: `thread hog (pid 123) held the CPU`. Names of
/// threads are chosen by their programs: no control character gets through.
pub fn describe_cause(cause: &Cause) -> String {
    let name: String = cause.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let name = name.as_str();
    let with = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{what}: {name}") };
    match cause.kind.as_str() {
        "thread" if name == "itself" => "the measured thread itself".to_owned(),
        "thread" if cause.pid == 0 => format!("threads {name} held the CPU"),
        "thread" => format!("thread {name} (pid {}) held the CPU", cause.pid),
        "irq" => format!("interrupt {name}"),
        "softirq" => format!("softirq {name}"),
        "nmi" => "non-maskable interrupt".to_owned(),
        "lock" if cause.pid > 0 => format!("blocked in the kernel until {name} (pid {})", cause.pid),
        "lock" => "blocked in the kernel".to_owned(),
        "idle-exit" if name.is_empty() => "exit from idle".to_owned(),
        "idle-exit" => format!("exit from idle {name}"),
        "run-queue" => with("waiting for the CPU"),
        "throttling" => with("real-time throttling"),
        "quota" => with("the CPU quota of a control group"),
        "hypervisor-or-interrupts-off" => with("hypervisor or interrupts off"),
        "stopped" => with("the thread was stopped, by a signal or a debugger"),
        "frozen" => with("the thread was frozen, by its control group"),
        "not-traced" => with("not traced"),
        "smi" => "firmware".to_owned(),
        "unknown" => with("unknown"),
        kind => with(kind),
    }
}

/// Kernel functions of a stack that are named in a line.
const FUNCTIONS: usize = 3;

/// Returns the causes of an outlier in as many columns as there are, the largest share first, with the number
/// of further causes; then the stack and the further events, if there are any.
pub fn brief(outlier: &Outlier, width: usize) -> String {
    if !outlier.is_traced() {
        return not_traced(outlier) + &format_details(outlier);
    }
    let mut line = String::new();
    for (at, cause) in outlier.cause.iter().enumerate() {
        let share = format_share(cause.ns as f64 / outlier.value.max(1) as f64);
        let next = format!("{}{share} {}", if at > 0 { ", " } else { "" }, describe_cause(cause));
        let left = outlier.cause.len() - at;
        let more = format!(", {left} more");
        let reserved = if left > 1 { more.len() } else { 0 };
        if at > 0 && line.chars().count() + next.chars().count() + reserved > width {
            line += &more;
            break;
        }
        line += &next;
    }
    line + &format_details(outlier)
}

/// The stack and the further events of an outlier: ` · in f ← g · sched_migrate_task ×2 (first after 41.0 µs: …)`.
pub fn format_details(outlier: &Outlier) -> String {
    let mut text = String::new();
    if !outlier.stack.is_empty() {
        let call = |name: &&String| name.starts_with("system call ");
        let functions = outlier.stack.iter().filter(|name| !call(name)).take(FUNCTIONS);
        let functions: Vec<&str> =
            functions.chain(outlier.stack.iter().find(call)).map(String::as_str).collect();
        text += &format!(" · in {}", functions.join(" ← "));
    }
    let mut named: Vec<&str> = outlier.events.iter().map(|event| event.name.as_str()).collect();
    named.sort_unstable();
    named.dedup();
    for name in named {
        let mut events = outlier.events.iter().filter(|event| event.name == name);
        let (Some(first), count) = (events.next(), events.count() + 1) else { continue };
        let (times, after) = (if count > 1 { format!(" ×{count}") } else { String::new() }, first.at as f64);
        text += &format!(" · {name}{times} after {}: {}", format_time(after), first.text);
    }
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Sentence about a pattern, with the chance that it is an accident. `account` is that of the run.
pub fn pattern(pattern: &Pattern, account: Option<&Account>) -> String {
    match pattern {
        Pattern::Periodic { fitting: (fit, all), above, period, phase, begins, chance } => format!(
            "{fit} of the {all} events of {} or more {} {} after multiples of {}: a periodic source{} ({}).",
            format_time(*above as f64),
            if *begins { "began" } else { "ended" },
            from_to(*phase),
            format_time(*period as f64),
            account
                .and_then(|account| known_source(*period, account))
                .map_or(String::new(), |known| format!("; {known}")),
            by_chance(*chance)
        ),
        Pattern::Simultaneous { fitting: (fit, all), within, chance } => format!(
            "{fit} of {all} on a CPU ended within {} of one on another CPU: a common source, as the host is ({}).",
            format_time(*within as f64),
            by_chance(*chance)
        ),
    }
}

/// Times as `94.0 ms to 95.0 ms`, or as one if they are written alike.
fn from_to(times: (u64, u64)) -> String {
    let (from, to) = (format_time(times.0 as f64), format_time(times.1 as f64));
    if from == to { from } else { format!("{from} to {to}") }
}

fn by_chance(chance: f64) -> String {
    if chance < 1e-9 {
        return "by chance less than once in a billion such runs".to_owned();
    }
    format!("by chance at most once in {} such runs", format_count((1.0 / chance) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::account::QuotaThrottling;
    use latscope_core::report::TraceEvent;

    fn cause(kind: &str, name: &str, pid: u32, ns: u64) -> Cause {
        Cause { kind: kind.to_owned(), name: name.to_owned(), pid, ns }
    }

    #[test]
    fn an_outlier_is_a_sentence_with_time_and_share_of_each() {
        let causes = vec![
            cause("thread", "stress-ng", 123, 342_000),
            cause("softirq", "net_rx", 0, 49_400),
            cause("idle-exit", "", 0, 17_000),
            cause("irq", "local_timer", 0, 2_000),
            cause("thread", "itself", 5, 1_000),
            cause("nmi", "", 0, 600),
        ];
        let outlier = Outlier { cpu: 1, value: 412_000, cause: causes, ..Outlier::default() };
        let expected = "CPU 1, 412 µs late: 342 µs (83 %) thread stress-ng (pid 123) held the CPU, \
            49.4 µs (12 %) softirq net_rx, 17.0 µs (4.1 %) exit from idle, 2.00 µs (0.49 %) interrupt local_timer, \
            1.60 µs (0.39 %) others";
        assert_eq!(format_outlier(&outlier), expected);
        assert_eq!(format_outlier(&Outlier { cause: Vec::new(), ..outlier }), "CPU 1, 412 µs late");
    }

    #[test]
    fn every_kind_has_its_words() {
        for (kind, name, pid, said) in [
            ("thread", "itself", 7, "the measured thread itself"),
            ("lock", "writer", 9, "blocked in the kernel until writer (pid 9)"),
            ("lock", "", 0, "blocked in the kernel"),
            ("idle-exit", "from state 3", 0, "exit from idle from state 3"),
            ("hypervisor", "while hog ran", 0, "hypervisor: while hog ran"),
            ("run-queue", "", 0, "waiting for the CPU"),
            ("unknown", "events were lost", 0, "unknown: events were lost"),
            ("smi", "", 0, "firmware"),
            ("thread", "rustc", 0, "threads rustc held the CPU"),
            (
                "throttling",
                "hog ran for 94 % of a second",
                9,
                "real-time throttling: hog ran for 94 % of a second",
            ),
            ("frozen", "", 0, "the thread was frozen, by its control group"),
            ("quota", "", 0, "the CPU quota of a control group"),
            (
                "hypervisor-or-interrupts-off",
                "while hog ran",
                0,
                "hypervisor or interrupts off: while hog ran",
            ),
            ("not-traced", "there is no trace", 0, "not traced: there is no trace"),
            ("thread", "\x1b[2J", 3, "thread ?[2J (pid 3) held the CPU"),
        ] {
            assert_eq!(describe_cause(&cause(kind, name, pid, 1)), said);
        }
    }

    #[test]
    fn a_line_has_the_causes_that_find_room() {
        let causes = vec![
            cause("thread", "stress-ng", 123, 342_000),
            cause("softirq", "net_rx", 0, 49_400),
            cause("irq", "local_timer", 0, 20_600),
        ];
        let mut outlier = Outlier { cpu: 1, value: 412_000, cause: causes, ..Outlier::default() };
        let first = "83 % thread stress-ng (pid 123) held the CPU";
        assert_eq!(brief(&outlier, 10), format!("{first}, 2 more"));
        assert_eq!(brief(&outlier, 75), format!("{first}, 12 % softirq net_rx, 1 more"));
        assert_eq!(brief(&outlier, 99), format!("{first}, 12 % softirq net_rx, 5 % interrupt local_timer"));
        outlier.stack =
            ["shrink", "reclaim", "fault", "entry", "system call read"].map(str::to_owned).to_vec();
        let event = |at| TraceEvent { at, name: "mark".to_owned(), text: "cpu=1\n".to_owned() };
        outlier.events = vec![event(41_000), event(50_000)];
        let details = " · in shrink ← reclaim ← fault ← system call read · mark ×2 after 41.0 µs: cpu=1?";
        assert_eq!(brief(&outlier, 10), format!("{first}, 2 more{details}"));
        assert_eq!(brief(&Outlier::default(), 10), "not traced");
        let cause = vec![cause("not-traced", "nothing was traced on CPU 1", 0, 412_000)];
        assert_eq!(
            brief(&Outlier { value: 412_000, cause, ..Outlier::default() }, 99),
            "not traced: nothing was traced on CPU 1"
        );
    }

    #[test]
    fn patterns_are_sentences_with_their_chance() {
        let periodic = Pattern::Periodic {
            fitting: (8, 8),
            above: 3_000_000,
            period: 100_000_000,
            phase: (94_000_000, 95_000_000),
            begins: true,
            chance: 1e-12,
        };
        let expected = |source: &str| {
            format!(
                "8 of the 8 events of 3.00 ms or more began 94.0 ms to 95.0 ms after multiples of 100 ms: a periodic \
                 source{source} (by chance less than once in a billion such runs)."
            )
        };
        assert_eq!(pattern(&periodic, None), expected(""));
        // Only a quota that stopped the run and has the period is named.
        let quota = |period_ns, throttled| Account {
            quota: Some(QuotaThrottling { period_ns, throttled, ..QuotaThrottling::default() }),
            ..Account::default()
        };
        for account in [quota(100_000_000, 0), quota(50_000_000, 40)] {
            assert_eq!(pattern(&periodic, Some(&account)), expected(""));
        }
        let known =
            "; the CPU quota of the run's control group, which stopped it in 40 periods, has this period";
        assert_eq!(pattern(&periodic, Some(&quota(100_000_000, 40))), expected(known));
        let together = Pattern::Simultaneous { fitting: (7, 8), within: 1_000_000, chance: 1e-4 };
        let expected = "7 of 8 on a CPU ended within 1.00 ms of one on another CPU: a common source, as the host is (by chance at \
             most once in 10,000 such runs).";
        assert_eq!(pattern(&together, None), expected);
    }
}
