//! What a remote says of itself around a row: its identity, and what it counted meanwhile.

use crate::prelude::*;
use latscope_core::report::RemoteIdentity;
use latscope_rpmsg::messages::RpmsgStatus;

/// Reports what a remote said before and after a point. Counts that went back are those of a remote that began again:
/// nothing is said of them.
pub fn report_status(bench: &mut Bench, point: usize, (before, after): (&RpmsgStatus, &RpmsgStatus)) {
    let identity = identity(after);
    if identity != RemoteIdentity::default() {
        bench.set_remote(point, identity);
    }
    let Some(meanwhile) = Meanwhile::from_statuses(before, after) else { return };
    let counts = [
        ("remote-replied", meanwhile.replied, Better::Neither),
        ("remote-refused", meanwhile.refused, Better::Less),
        ("remote-stalls", meanwhile.stalls, Better::Less),
        ("remote-faults", meanwhile.faults, Better::Less),
    ];
    for (name, count, better) in counts {
        bench.add_value(point, name, count as f64, "count", better);
    }
    if let Some((mean, longest)) = meanwhile.busy {
        bench.add_value(point, "remote-mean", mean, "ns", Better::Less);
        bench.add_value(point, "remote-longest", longest, "ns", Better::Less);
    }
}

fn identity(status: &RpmsgStatus) -> RemoteIdentity {
    RemoteIdentity {
        core: status.core().to_owned(),
        clock_hz: (status.clock_hz > 0).then_some(status.clock_hz),
        firmware: status.firmware().to_owned(),
    }
}

/// What a remote counted between two answers.
#[derive(Debug, PartialEq)]
struct Meanwhile {
    replied: u64,
    /// Messages that got no reply: they were not what the endpoint expects, to nobody, or too long to answer.
    refused: u64,
    stalls: u64,
    faults: u64,
    /// Mean and longest time from a message found to its reply sent, ns; `None` where the remote has no clock.
    busy: Option<(f64, f64)>,
}

impl Meanwhile {
    fn from_statuses(before: &RpmsgStatus, after: &RpmsgStatus) -> Option<Meanwhile> {
        let grown = |of: fn(&RpmsgStatus) -> u64| of(after).checked_sub(of(before));
        let replied = grown(|status| status.counts.replied)?;
        let busy_ns = grown(|status| status.busy_ns)?;
        Some(Meanwhile {
            replied,
            refused: grown(|status| {
                let counts = status.counts;
                counts.mismatched.saturating_add(counts.unknown).saturating_add(counts.too_long)
            })?,
            stalls: grown(|status| status.counts.stalls)?,
            faults: grown(|status| status.faults)?,
            busy: (busy_ns > 0 && replied > 0)
                .then(|| (busy_ns as f64 / replied as f64, after.longest_ns as f64)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_rpmsg::echo::RpmsgServiceCounts;

    fn status(replied: u64, busy_ns: u64, longest_ns: u64) -> RpmsgStatus {
        let counts =
            RpmsgServiceCounts { replied, mismatched: replied / 10, ..RpmsgServiceCounts::default() };
        let mut status = RpmsgStatus::new(counts, 1, "", "Zephyr 4.2");
        (status.busy_ns, status.longest_ns) = (busy_ns, longest_ns);
        status
    }

    #[test]
    fn counts_are_those_of_the_row() {
        let found = Meanwhile::from_statuses(&status(100, 1000, 90), &status(300, 5000, 70)).unwrap();
        let busy = Some((20.0, 70.0));
        assert_eq!(found, Meanwhile { replied: 200, refused: 20, stalls: 0, faults: 0, busy });
    }

    #[test]
    fn a_remote_that_began_again_counted_nothing_for_the_row() {
        assert_eq!(Meanwhile::from_statuses(&status(100, 1000, 90), &status(90, 5000, 70)), None);
    }

    #[test]
    fn what_a_remote_does_not_say_is_not_known() {
        let identity = identity(&status(1, 0, 0));
        assert_eq!((identity.format_identity(), identity.clock_hz), ("Zephyr 4.2".to_owned(), None));
        let found = Meanwhile::from_statuses(&status(0, 0, 0), &status(5, 0, 0)).unwrap();
        assert_eq!((found.replied, found.busy), (5, None));
    }
}
