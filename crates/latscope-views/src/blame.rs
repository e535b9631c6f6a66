//! Who took the time of late events, in plain words.

use latscope_core::report::{Cause, Measurement, Outlier};
use latscope_core::units::{format_share, format_time};

/// Causes named in a line; the others are summed up.
const NAMED: usize = 4;

/// One line of an outlier: `CPU 1, 412 µs late: 342 µs (83 %) thread hog (pid
/// 123) held the CPU, …`.
pub fn line(outlier: &Outlier) -> String {
    let head = format!("CPU {}, {} late", outlier.cpu, format_time(outlier.value as f64));
    if outlier.cause.is_empty() { head } else { format!("{head}: {}", shares(outlier)) }
}

/// Who took the time of an outlier, with µs and share of each; empty where
/// it was not traced.
pub fn shares(outlier: &Outlier) -> String {
    let (named, others) = outlier.cause.split_at(outlier.cause.len().min(NAMED));
    let mut shares: Vec<String> =
        named.iter().map(|cause| format!("{} {}", share(cause.ns, outlier.value), words(cause))).collect();
    let rest: u64 = others.iter().map(|cause| cause.ns).sum();
    if rest > 0 {
        shares.push(format!("{} others", share(rest, outlier.value)));
    }
    shares.join(", ")
}

/// The worst outliers of a measurement, a line each, the worst first; how many
/// more there are.
pub fn worst(measurement: &Measurement, most: usize) -> String {
    let mut outliers: Vec<&Outlier> = measurement.outliers.iter().collect();
    outliers.sort_by_key(|outlier| std::cmp::Reverse(outlier.value));
    let (shown, rest) = outliers.split_at(outliers.len().min(most));
    let mut text: String = shown.iter().map(|outlier| line(outlier) + "\n").collect();
    if !rest.is_empty() {
        text += &format!("and {} more\n", rest.len());
    }
    text
}

fn share(ns: u64, of: u64) -> String {
    format!("{} ({})", format_time(ns as f64), format_share(ns as f64 / of.max(1) as f64))
}

/// A cause without its share: `thread hog (pid 123) held the CPU`. Names of
/// threads are chosen by their programs: no control character gets through.
pub fn words(cause: &Cause) -> String {
    let name: String = cause.name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let name = name.as_str();
    let with = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{what}: {name}") };
    match cause.kind.as_str() {
        "thread" if name == "itself" => "the measured thread itself".to_owned(),
        "thread" => format!("thread {name} (pid {}) held the CPU", cause.pid),
        "irq" => format!("interrupt {name}"),
        "softirq" => format!("softirq {name}"),
        "nmi" => "non-maskable interrupt".to_owned(),
        "lock" if cause.pid > 0 => format!("blocked in the kernel until {name} (pid {})", cause.pid),
        "lock" => "blocked in the kernel".to_owned(),
        "idle-exit" if name.is_empty() => "exit from idle".to_owned(),
        "idle-exit" => format!("exit from idle {name}"),
        "run-queue" => with("waiting for the CPU"),
        "smi" => "firmware".to_owned(),
        "unknown" => with("unknown"),
        kind => with(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let outlier = Outlier { at: 0, cpu: 1, value: 412_000, cause: causes };
        let expected = "CPU 1, 412 µs late: 342 µs (83 %) thread stress-ng (pid 123) held the CPU, \
            49.4 µs (12 %) softirq net_rx, 17.0 µs (4.1 %) exit from idle, 2.00 µs (0.49 %) interrupt local_timer, \
            1.60 µs (0.39 %) others";
        assert_eq!(line(&outlier), expected);
        assert_eq!(line(&Outlier { cause: Vec::new(), ..outlier }), "CPU 1, 412 µs late");
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
            ("thread", "\x1b[2J", 3, "thread ?[2J (pid 3) held the CPU"),
        ] {
            assert_eq!(words(&cause(kind, name, pid, 1)), said);
        }
    }

    #[test]
    fn the_worst_come_first() {
        let outlier = |value| Outlier { at: 0, cpu: 0, value, cause: Vec::new() };
        let mut measurement = latscope_core::fixture::report().measurements[0].clone();
        measurement.outliers = vec![outlier(1000), outlier(3000), outlier(2000)];
        assert_eq!(worst(&measurement, 2), "CPU 0, 3.00 µs late\nCPU 0, 2.00 µs late\nand 1 more\n");
        measurement.outliers.clear();
        assert_eq!(worst(&measurement, 2), "");
    }
}
