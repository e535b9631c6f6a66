//! Reason against a point of which messages were lost: no time has them.

use crate::quality::{QualityLevel, Reason};
use crate::report::Measurement;
use crate::units::format_count;

/// Id of the reason.
pub const MESSAGES_LOST: &str = "messages-lost";

/// Named values that count messages without a valid reply, each with its words.
const WITHOUT_A_REPLY: [(&str, &str); 2] = [(LOSSES, "lost"), (MISMATCHES, "answered with other content")];

/// Name of the number of messages without a reply within the timeout.
pub const LOSSES: &str = "losses";

/// Name of the number of replies with another content than was sent.
pub const MISMATCHES: &str = "mismatches";

/// Name of the number of replies that came after their timeout.
pub const LATE: &str = "late";

impl Measurement {
    /// Returns the number of lost messages; 0 if the probe does not count them.
    pub fn losses(&self) -> u64 {
        self.event_count(LOSSES)
    }

    /// Returns the number of replies with other content to messages that can be lost; such a message may also be among
    /// the lost ones.
    pub fn wrong_replies(&self) -> u64 {
        if self.values.contains_key(LOSSES) { self.event_count(MISMATCHES) } else { 0 }
    }

    /// Returns the value of this name, if it is a number of events; 0 if the probe does not count them.
    pub fn event_count(&self, name: &str) -> u64 {
        self.values.get(name).filter(|value| value.unit == "count").map_or(0, |value| value.value as u64)
    }

    /// Lowers the quality if messages were lost or came back with other content. A probe that counts no losses has
    /// mismatches of another kind.
    pub(super) fn settle_losses(&mut self) {
        if self.quality.level == QualityLevel::Unsupported || !self.values.contains_key(LOSSES) {
            return;
        }
        let mut counts = Vec::new();
        for (name, words) in WITHOUT_A_REPLY {
            let count = self.values.get(name).map_or(0.0, |value| value.value);
            if count > 0.0 {
                counts.push((name, count, format!("{} {words}", format_count(count as u64))));
            }
        }
        if counts.is_empty() {
            return;
        }
        let words: Vec<&str> = counts.iter().map(|(.., words)| words.as_str()).collect();
        let text = format!("messages without a valid reply, which no time has: {}", words.join(", "));
        let mut reason = Reason::new(QualityLevel::Degraded, MESSAGES_LOST, text, "");
        for (name, count, _) in counts {
            reason = reason.with_number(name, count);
        }
        self.quality.add_reason(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::params;
    use crate::report::Semantics;
    use crate::testing::{point, with_value};

    fn counted(counts: &[(&str, f64)]) -> Measurement {
        let mut m = point("remote.bandwidth", params([]), Semantics::RoundTrip, 5.0);
        for (name, count) in counts {
            m = with_value(m, name, *count);
        }
        m.derive_results();
        m
    }

    #[test]
    fn lost_messages_of_all_rounds_are_one_reason() {
        let mut m = counted(&[("losses", 3.0), ("mismatches", 0.0)]);
        assert_eq!(m.quality.level, QualityLevel::Degraded);
        assert_eq!(m.joined_reasons().unwrap(), "messages without a valid reply, which no time has: 3 lost");
        m.values.get_mut("losses").unwrap().value = 1_005.0;
        m.derive_results();
        assert_eq!(
            m.joined_reasons().unwrap(),
            "messages without a valid reply, which no time has: 1,005 lost"
        );
        assert_eq!(m.quality.reasons[0].values["losses"], 1_005.0);
    }

    #[test]
    fn without_a_loss_there_is_no_reason() {
        assert_eq!(counted(&[("losses", 0.0), ("mismatches", 0.0)]).quality.level, QualityLevel::Ok);
        assert_eq!(counted(&[("mismatches", 4.0)]).quality.level, QualityLevel::Ok, "of another kind");
        assert!(
            counted(&[("losses", 0.0), ("mismatches", 4.0)])
                .joined_reasons()
                .unwrap()
                .contains("4 answered with")
        );
    }
}
