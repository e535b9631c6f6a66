//! Criteria on messages, and on the times of those that were answered.

use super::*;
use latscope_core::quality::NO_VALID_REPLY;

#[test]
fn wrong_messages_exceed_a_criterion_though_no_reply_was_valid() {
    let count = |value| MeasuredQuantity { value, unit: "count".to_owned(), better: Better::Less };
    let mut silent = of(&[]);
    silent.values =
        [("mismatches", 4.0), ("faults", 0.0)].map(|(name, n)| (name.to_owned(), count(n))).into();
    let why = "no reply was valid: 4 sent, 4 with another payload";
    silent.lower(Reason::new(QualityLevel::Unsupported, NO_VALID_REPLY, why, ""));
    assert_eq!(one(&silent, "mismatches", 0.0).status, VerdictStatus::Exceeded);
    for metric in ["faults", "max"] {
        let check = one(&silent, metric, 0.0);
        assert_eq!((check.status, check.text.as_str()), (VerdictStatus::Inconclusive, why), "{metric}");
    }
    // A busy machine makes replies late, and not wrong.
    let mut busy = events(1_000, 0);
    let wrong = ["mismatches", "duplicates", "reorderings", "faults"];
    busy.values = wrong.map(|name| (name.to_owned(), count(1.0))).into();
    busy.values.insert("late".to_owned(), count(1.0));
    busy.lower(Reason::new(QualityLevel::Degraded, "waited-for-a-cpu", "it waited", ""));
    for metric in wrong {
        assert_eq!(one(&busy, metric, 0.0).status, VerdictStatus::Exceeded, "{metric}");
        assert_eq!(one(&busy, metric, 1.0).status, VerdictStatus::Pass, "{metric}");
    }
    assert_eq!(one(&busy, "late", 0.0).status, VerdictStatus::Inconclusive);
}

/// `n` replies of 10 µs, and `lost` messages without a reply in 50 ms.
fn with_losses(n: u64, lost: f64) -> Measurement {
    let mut m = events(n, 0);
    let losses = MeasuredQuantity { value: lost, unit: "count".to_owned(), better: Better::Less };
    m.values.insert("losses".to_owned(), losses);
    m.params.insert("timeout".to_owned(), 50_000_000.into());
    m
}

#[test]
fn a_lost_message_is_above_every_limit() {
    let m = with_losses(5_000, 106.0);
    let check = one(&m, "max", 45e6);
    assert_eq!((check.status, check.value), (VerdictStatus::Exceeded, None));
    assert_eq!((check.above, check.of), (Some(106), Some(5_106)));
    assert_eq!(
        check.text,
        "106 of 5,106 were above 45.0 ms (with the 106 lost messages, which had no reply within 50.0 ms); the longest \
         that had a reply took 10.0 µs"
    );
    for limit in [40e6, 50e6, 60e6] {
        assert_eq!(one(&m, "max", limit).status, VerdictStatus::Exceeded, "{limit}");
        assert_eq!(one(&m, "p99", limit).status, VerdictStatus::Exceeded, "{limit}");
        assert_eq!(one(&m, "p90", limit).status, VerdictStatus::Pass, "{limit}");
    }
    assert_eq!(one(&with_losses(5_000, 0.0), "max", 45e6).status, VerdictStatus::Pass);
}

/// The criteria on messages and times that a row with these counts exceeds, of [`MESSAGES`].
fn verdicts_of(m: &Measurement) -> String {
    let sign = |(metric, limit): &(&str, f64)| match one(m, metric, *limit).status {
        VerdictStatus::Pass => '+',
        VerdictStatus::Exceeded => '-',
        VerdictStatus::Inconclusive => '?',
    };
    MESSAGES.iter().map(sign).collect()
}

const MESSAGES: [(&str, f64); 9] = [
    ("losses", 0.0),
    ("losses", 10.0),
    ("losses", 100.0),
    ("late", 0.0),
    ("late", 3.0),
    ("max", 1e6),
    ("p99", 1e6),
    ("p95", 1e6),
    ("p50", 1e6),
];

#[test]
fn losses_are_data_and_no_distortion() {
    let of = |replies: u64, lost: f64, late: f64| {
        let mut m = with_losses(replies, lost);
        let value = MeasuredQuantity { value: late, unit: "count".to_owned(), better: Better::Less };
        m.values.insert("late".to_owned(), value);
        m.derive_results();
        m
    };
    for (replies, lost, late, expected) in [
        (390, 0.0, 0.0, "+++++++++"),
        (390, 10.0, 0.0, "-++++--++"),
        (390, 10.0, 3.0, "-++-+--++"),
        (390, 11.0, 4.0, "--+----++"),
        (390, 200.0, 0.0, "---++---+"),
        (390, 1.0, 0.0, "-++++-?++"),
        (2_000, 1.0, 0.0, "-++++-+++"),
        (2_000, 10.0, 0.0, "-++++-+++"),
        (0, 3.0, 0.0, "-????---?"),
        (0, 40.0, 0.0, "--???----"),
    ] {
        assert_eq!(
            verdicts_of(&of(replies, lost, late)),
            expected,
            "{replies} replies, {lost} lost, {late} late"
        );
    }
    // A disturbed machine loses no fewer messages; those whose reply never came are not lost because of it.
    let mut disturbed = of(390, 10.0, 4.0);
    disturbed.lower(Reason::new(QualityLevel::Degraded, "waited-for-a-cpu", "it waited", ""));
    assert_eq!(verdicts_of(&disturbed), "-++??-???");
    assert_eq!(one(&disturbed, "losses", 6.0).status, VerdictStatus::Inconclusive, "four came late");
    assert_eq!(one(&disturbed, "losses", 5.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&disturbed, "late", 4.0).status, VerdictStatus::Pass);
    // Their quantiles count the lost ones as the longest.
    let check = one(&of(2_000, 2.0, 0.0), "p99_9", 1e6);
    assert_eq!(check.value, None, "the tenth above is lost");
    let check = one(&of(99_900, 100.0, 0.0), "p99", 1e6);
    assert_eq!((check.status, check.value), (VerdictStatus::Pass, Some(10_000.0)), "{check:?}");
}

#[test]
fn a_reply_of_other_content_may_be_of_a_message_without_a_time() {
    let mut m = with_losses(5_000, 0.0);
    let value = MeasuredQuantity { value: 3.0, unit: "count".to_owned(), better: Better::Less };
    m.values.insert("mismatches".to_owned(), value);
    m.derive_results();
    let check = one(&m, "max", 45e6);
    assert_eq!(check.status, VerdictStatus::Inconclusive);
    assert!(
        check.text.starts_with("0 to 3 of 5,003 were above 45.0 ms (with up to 3 messages answered"),
        "{check:?}"
    );
    assert_eq!(one(&m, "p99", 45e6).status, VerdictStatus::Pass);
}

#[test]
fn an_inherited_priority_is_a_fact_on_an_emulated_machine() {
    let calls = |inherited: f64| {
        let mut m = events(1_000, 0);
        for (name, value) in [("rt-calls", 50.0), ("rt-inherited", inherited), ("rt-restored", 50.0)] {
            let value = MeasuredQuantity { value, unit: "count".to_owned(), better: Better::Neither };
            m.values.insert(name.to_owned(), value);
        }
        m.lower(Reason::new(
            QualityLevel::Degraded,
            "emulated",
            "emulated (TCG): the figure is the emulator's",
            "",
        ));
        m
    };
    assert_eq!(one(&calls(50.0), "inherits-fifo", 100.0).status, VerdictStatus::Pass);
    assert_eq!(one(&calls(49.0), "inherits-fifo", 100.0).status, VerdictStatus::Exceeded);
    assert_eq!(one(&calls(50.0), "max", 1e9).status, VerdictStatus::Inconclusive);
}

#[test]
fn no_limit_passes_that_the_lost_messages_may_exceed() {
    let quantile = |name: &str| QUANTILES.into_iter().find(|quantile| quantile.name == name).unwrap();
    assert_eq!(passes_from(&with_losses(5_000, 106.0), quantile("p99")), None);
    assert!(passes_from(&with_losses(5_000, 106.0), quantile("p90")).is_some());
}
