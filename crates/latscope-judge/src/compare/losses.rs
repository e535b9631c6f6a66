//! Lost messages of both sides: no time has them, so no verdict does.

use super::pair::ComparisonPair;
use crate::titles::title_or_id;
use latscope_core::units::{count_with_noun, format_count};

/// Number of points that the remark names.
const MOST: usize = 3;

/// Returns a remark on the messages that the runs of each side lost; `None` without a loss.
pub(super) fn remark(pairs: &[ComparisonPair]) -> Option<String> {
    let mut total = [0; 2];
    let mut points = Vec::new();
    for pair in pairs {
        let [a, b] = [&pair.a, &pair.b].map(|side| side.iter().map(|m| m.losses()).sum::<u64>());
        if a + b > 0 {
            total = [total[0] + a, total[1] + b];
            points.push(format!("{} ({} and {})", title_or_id(pair.a[0]), format_count(a), format_count(b)));
        }
    }
    if points.is_empty() {
        return None;
    }
    let more = points.len().saturating_sub(MOST);
    points.truncate(MOST);
    if more > 0 {
        points.push(count_with_noun(more as u64, "more point"));
    }
    let [a, b] = total.map(format_count);
    Some(format!("lost messages, which are in no time: {a} of A and {b} of B: {}", points.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;
    use latscope_core::report::{Measurement, Semantics};
    use latscope_core::testing::{point, with_value};

    fn losing(losses: f64) -> Measurement {
        with_value(point("remote.ping", params([]), Semantics::RoundTrip, 5.0), "losses", losses)
    }

    #[test]
    fn losses_of_both_sides_are_named() {
        let (none, some) = (losing(0.0), losing(1_200.0));
        let pair = || ComparisonPair { a: vec![&none, &none], b: vec![&some, &none], of_one: false };
        assert_eq!(
            remark(&[pair()]).unwrap(),
            "lost messages, which are in no time: 0 of A and 1,200 of B: remote.ping of a test (0 and 1,200)"
        );
        let many = remark(&[pair(), pair(), pair(), pair()]).unwrap();
        assert!(many.contains("4,800 of B") && many.ends_with("(0 and 1,200), 1 more point"), "{many}");
        assert_eq!(remark(&[ComparisonPair { a: vec![&none], b: vec![&none], of_one: false }]), None);
    }
}
