//! The names of values beside the duration.

/// Names that probes give to values, except names that contain the name of something on the machine, such as
/// `irq:eth0`. A result has only those of its points.
pub const VALUES: &[&str] = &[
    "additions", "blocked", "caller-cpu", "chains", "cost", "cpu-time", "direct", "drain", "duplicates",
    "early", "elapsed", "failures", "fairness", "fastest-address", "faults", "foreign-bytes", "frequency",
    "gap", "gaps", "gaps-hardware", "gaps-preemption", "gaps-steal", "gaps-unattributed", "hash-slots",
    "injected", "injected-ns", "interrupts", "involuntary", "irqs", "late", "load", "loop", "losses", "lost",
    "lost-irq", "lost-nmi", "lost-preemption", "lost-softirq", "lost-steal", "lost-thread",
    "lost-unattributed", "mapped", "meet", "migrated", "migrations", "misaddressed", "mismatches", "miss",
    "misses", "nice-calls", "nice-inherited", "nice-restored", "nmis", "nothing-sent", "one-way",
    "own-cache", "packet-max", "packet-min", "packet-p50", "packet-p99", "pages-elsewhere", "pages-on-node",
    "per-packet", "preemptions", "received", "recovered", "remote-faults", "remote-longest", "remote-mean",
    "remote-refused", "remote-replied", "remote-stalls", "reorderings", "rested", "round-trip", "rt-calls",
    "rt-inherited", "rt-restored", "run-elapsed", "same-cache", "same-cpu", "self", "sent", "settled",
    "settles-after", "shootdowns", "side-by-side", "slow-addresses", "slowdown", "slowest-address",
    "softirqs", "speedup", "steal", "sync", "sync-of", "threads", "throughput", "turns", "uninherited",
    "virtual", "voluntary", "wait_p50", "wait_p99", "waited", "wall-time", "warm", "watched",
];

#[cfg(test)]
mod tests {
    use super::VALUES;
    use std::fs;
    use std::path::Path;

    /// The names that a program text gives values itself: the second argument of a call, in quotes.
    fn given(text: &str) -> impl Iterator<Item = &str> {
        let calls = text.split("bench.add_value(").skip(1);
        let names = calls.filter_map(|rest| rest.split(',').nth(1)?.trim_start().strip_prefix('"'));
        names.filter_map(|rest| rest.split('"').next())
    }

    fn check(directory: &Path, seen: &mut usize) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(&path, seen);
                continue;
            }
            for name in given(&fs::read_to_string(&path).unwrap()) {
                *seen += 1;
                assert!(VALUES.contains(&name), "{}: {name:?} is not in VALUES", path.display());
            }
        }
    }

    #[test]
    fn every_value_that_a_probe_names_is_in_the_list() {
        assert!(VALUES.is_sorted());
        let mut seen = 0;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for family in crate::FAMILIES {
            check(&sources.join(family.name), &mut seen);
        }
        assert!(seen > 20, "the test sees {seen} names only");
    }
}
