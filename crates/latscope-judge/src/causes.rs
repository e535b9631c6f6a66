//! Sums of the causes of many late events.

use latscope_core::report::{Cause, Outlier};

/// Time that one cause took of all late events together.
#[derive(Debug, Clone, PartialEq)]
pub struct CauseSum {
    /// Example of the cause: its kind, and its name without the parts that differ from event to event.
    pub cause: Cause,
    /// Events of which it took the most.
    pub mainly: u64,
    /// Time in all events together, ns.
    pub total: u64,
    /// Most time in one event, ns.
    pub longest: u64,
    /// Part of the time of all events.
    pub share: f64,
}

/// The causes of the late events that were traced, the one with the most time first. Threads of one name count
/// together; their process is named where it is only one.
pub fn sum_causes<'a>(outliers: impl IntoIterator<Item = &'a Outlier>) -> Vec<CauseSum> {
    let mut sums: Vec<CauseSum> = Vec::new();
    let mut all = 0;
    for outlier in outliers.into_iter().filter(|outlier| outlier.is_traced()) {
        all += outlier.value;
        let most = outlier.cause.iter().map(|cause| cause.ns).max();
        let mut main = true;
        for cause in &outlier.cause {
            let sum = entry(&mut sums, cause);
            sum.total += cause.ns;
            sum.longest = sum.longest.max(cause.ns);
            let is_main = main && Some(cause.ns) == most;
            sum.mainly += u64::from(is_main);
            main &= !is_main;
        }
    }
    for sum in &mut sums {
        sum.share = sum.total as f64 / all.max(1) as f64;
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.total));
    sums
}

fn entry<'a>(sums: &'a mut Vec<CauseSum>, cause: &Cause) -> &'a mut CauseSum {
    let name = cause.name.split(';').next().unwrap_or_default().trim();
    let itself = name == "itself";
    let known = sums.iter().position(|sum| sum.cause.kind == cause.kind && sum.cause.name == name);
    let at = known.unwrap_or_else(|| {
        let cause = Cause { name: name.to_owned(), ..cause.clone() };
        sums.push(CauseSum { cause, mainly: 0, total: 0, longest: 0, share: 0.0 });
        sums.len() - 1
    });
    if sums[at].cause.pid != cause.pid || itself {
        sums[at].cause.pid = 0;
    }
    &mut sums[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlier(causes: &[(&str, &str, u32, u64)]) -> Outlier {
        let cause = |(kind, name, pid, ns): &(&str, &str, u32, u64)| Cause {
            kind: (*kind).to_owned(),
            name: (*name).to_owned(),
            pid: *pid,
            ns: *ns,
        };
        let value = causes.iter().map(|cause| cause.3).sum();
        Outlier { value, cause: causes.iter().map(cause).collect(), ..Outlier::default() }
    }

    #[test]
    fn causes_of_a_name_are_summed_and_every_event_counts_once() {
        let outliers = [
            outlier(&[("thread", "hog", 7, 600), ("irq", "timer", 0, 100)]),
            outlier(&[("thread", "hog", 7, 300), ("thread", "sh", 8, 10), ("irq", "timer", 0, 10)]),
            outlier(&[
                ("hypervisor", "while sh ran; 10.0 ms stolen lately", 0, 500),
                ("thread", "sh", 9, 30),
            ]),
            outlier(&[("hypervisor", "while sh ran; 20.0 ms stolen lately", 0, 450)]),
            Outlier { value: 1_000_000, ..Outlier::default() },
        ];
        let sums = sum_causes(&outliers);
        let told: Vec<_> = sums
            .iter()
            .map(|sum| (sum.cause.name.as_str(), sum.cause.pid, sum.mainly, sum.total, sum.longest))
            .collect();
        let expected = [
            ("while sh ran", 0, 2, 950, 500),
            ("hog", 7, 2, 900, 600),
            ("timer", 0, 0, 110, 100),
            ("sh", 0, 0, 40, 30),
        ];
        assert_eq!(told, expected);
        assert_eq!(sums.iter().map(|sum| sum.mainly).sum::<u64>(), 4);
        assert!((sums.iter().map(|sum| sum.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
