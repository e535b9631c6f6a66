//! Text forms of quantities, written and read: durations, sizes, CPU lists.
//!
//! On screen a duration is in ns, µs, ms or s and nothing else, with three
//! significant digits.

use crate::ordered::group_by_key;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A text that is not the quantity it should be; says what would be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseError {
    text: String,
    expected: &'static str,
}

/// Writes a duration given in nanoseconds with three significant digits and
/// the unit that suits it: `0.31 ns`, `137 ns`, `2.04 µs`, `16.7 ms`, `1.5 s`.
pub fn format_time(ns: f64) -> String {
    time_with(ns, 0)
}

/// Writes a duration with `more` digits than usual.
fn time_with(ns: f64, more: usize) -> String {
    let (value, unit) = match ns.abs() {
        a if a < 999.5 => (ns, "ns"),
        a if a < 999.5e3 => (ns / 1e3, "µs"),
        a if a < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", digits_with(value, more))
}

/// Writes how long something lasted, given in nanoseconds, with about two significant digits and the largest unit that
/// suits it: `170 ms`, `6.7 s`, `20 s`, `10 min`, `3.3 h`, `12 d`.
pub fn format_span(ns: f64) -> String {
    let (value, unit) = match ns / 1e9 {
        s if s < 0.9995 => (s * 1e3, "ms"),
        s if s < 99.5 => (s, "s"),
        s if s < 5_970.0 => (s / 60.0, "min"),
        s if s < 171_000.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "d"),
    };
    let text = if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Writes a rate given in bytes per second, in decimal units: `13.8 GB/s`.
pub fn format_rate(bytes_per_second: f64) -> String {
    rate_with(bytes_per_second, 0)
}

fn rate_with(bytes_per_second: f64, more: usize) -> String {
    let (value, unit) = match bytes_per_second {
        r if r < 999.5e3 => (r / 1e3, "kB/s"),
        r if r < 999.5e6 => (r / 1e6, "MB/s"),
        r => (r / 1e9, "GB/s"),
    };
    format!("{} {unit}", digits_with(value, more))
}

/// Writes a number of things with its thousands apart: `60,000`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number of things with their name: `1 thread`, `4 threads`.
pub fn count_with_noun(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", format_count(count))
}

/// Number of words of another program's command line that are shown.
const SHOWN_WORDS: usize = 4;

/// Writes the first words of a command line, and `…` for the others: `latscope wake --duration 1h …`.
pub fn first_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let more = if words.len() > SHOWN_WORDS { " …" } else { "" };
    words[..words.len().min(SHOWN_WORDS)].join(" ") + more
}

/// The verb of so many things of the past: `1 was`, `4 were`.
pub fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// Writes a share (1 is all) in percent; see [`format_percent`].
pub fn format_share(share: f64) -> String {
    format_percent(share * 100.0)
}

/// Writes a percentage: `12.3 %`, `0.1 %`, `99.983 %`. It has one decimal, and
/// more where the value is near 0 or 100, so that it is never rounded to
/// either: only none is `0 %`, and only all is `100 %`.
pub fn format_percent(percent: f64) -> String {
    percent_with(percent, 0)
}

fn percent_with(percent: f64, more: usize) -> String {
    let distance = percent.abs().min((100.0 - percent).abs());
    // Two significant digits of what is missing; a difference this small is one of the arithmetic.
    let digits = if distance < 1e-10 { 0 } else { (1.0 - distance.log10().floor()).max(1.0) as usize };
    let digits = digits + more;
    let text = format!("{percent:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // Without the sign of a negative zero.
    format!("{} %", if text == "-0" { "0" } else { text })
}

/// Writes a named value with its unit, as the screen shows it.
pub fn format_value(value: f64, unit: &str) -> String {
    value_with(value, unit, 0)
}

fn value_with(value: f64, unit: &str, more: usize) -> String {
    match unit {
        "ns" => time_with(value, more),
        "B/s" => rate_with(value, more),
        "%" => percent_with(value, more),
        "s" => time_with(value * 1e9, more),
        "1/s" => format!("{}/s", digits_with(value, more)),
        "count" | "" if value.fract() == 0.0 && value >= 0.0 => format_count(value as u64),
        "count" | "" => digits_with(value, more),
        _ => format!("{} {unit}", digits_with(value, more)),
    }
}

/// Most digits beyond the usual ones with which two values are written.
const MOST_DIGITS: usize = 12;

/// Writes a limit and a figure, or any two values, as [`format_value`] does, with more digits where their texts would
/// be the same although the values are not: `250.000 µs` and `250.001 µs`.
pub fn format_apart(values: [f64; 2], unit: &str) -> [String; 2] {
    let [a, b] = values;
    let texts = |more| values.map(|value| value_with(value, unit, more));
    let usual = texts(0);
    if a == b || usual[0] != usual[1] {
        return usual;
    }
    (1..=MOST_DIGITS).map(texts).find(|[a, b]| a != b).unwrap_or(usual)
}

/// Writes a number with three significant digits, never in exponent form.
pub fn three_digits(value: f64) -> String {
    digits_with(value, 0)
}

/// Writes a number with `more` than three significant digits.
fn digits_with(value: f64, more: usize) -> String {
    let decimals = match value.abs() {
        a if a < 9.995 => 2,
        a if a < 99.95 => 1,
        _ => 0,
    } + more;
    format!("{value:.decimals$}")
}

/// Reads `100ns`, `250us`, `1ms`, `10s`, `5m`, `2h` and sums of such.
///
/// # Errors
/// The text has no unit, an unknown unit, or no number.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    humantime::parse_duration(text).map_err(|_| ParseError {
        text: text.to_owned(),
        expected: match text.bytes().next() {
            Some(b'-') => "a duration: it cannot be negative",
            Some(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                "a duration: its unit is missing, as in 250us or 10s"
            }
            _ => "a duration such as 100ns, 250us, 1ms, 10s, 5m or 2h",
        },
    })
}

const SIZE_UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Units of sizes that are read, and never written.
const READ_ONLY: [(&str, u64); 9] = [
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
];

/// Reads `64`, `4KiB`, `2MiB`, `1GiB` (in any case), for short `4K`, `2M`, `1G`, and in decimal units `4kB`, `100MB`,
/// `1GB`.
///
/// # Errors
/// The text has another unit, no number, or does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, ParseError> {
    let binary = SIZE_UNITS.iter().filter_map(|(unit, scale)| Some((without_unit(text, unit)?, *scale)));
    let other = READ_ONLY.iter().filter_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    binary
        .chain(other)
        .find_map(|(digits, scale)| digits.trim_end().parse::<u64>().ok()?.checked_mul(scale))
        .ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "a size such as 64, 4KiB or 4K, 2MiB or 100MB",
        })
}

/// What stands before a unit in any case.
fn without_unit<'a>(text: &'a str, unit: &str) -> Option<&'a str> {
    let (digits, last) = text.split_at_checked(text.len().checked_sub(unit.len())?)?;
    last.eq_ignore_ascii_case(unit).then_some(digits)
}

/// Writes a size in bytes: `64 B`, `48 KiB`, `1.50 MiB`; what is not a whole number of the unit has as many digits
/// as show that: `63.98 KiB`.
pub fn format_size(bytes: u64) -> String {
    let Some((unit, scale)) = SIZE_UNITS.iter().find(|(_, scale)| bytes >= *scale) else {
        return format!("{bytes} B");
    };
    if bytes.is_multiple_of(*scale) {
        return format!("{} {unit}", bytes / scale);
    }
    let value = bytes as f64 / *scale as f64;
    let is_whole = |digits: &str| !digits.contains('.') || digits.trim_end_matches('0').ends_with('.');
    let mut digits =
        std::iter::once(three_digits(value)).chain((1..=9).map(|places| format!("{value:.places$}")));
    // A number beyond what a f64 holds exactly may be whole in it.
    match digits.find(|digits| !is_whole(digits)) {
        Some(digits) => format!("{digits} {unit}"),
        None => format!("{} B", format_count(bytes)),
    }
}

/// Writes an amount of memory or storage that is no size anyone chose, in three digits: `50 MiB`, `23.4 GiB`.
pub fn format_amount(bytes: u64) -> String {
    match SIZE_UNITS.iter().find(|(_, scale)| bytes >= *scale) {
        Some((unit, scale)) if !bytes.is_multiple_of(*scale) => {
            format!("{} {unit}", three_digits(bytes as f64 / *scale as f64))
        }
        _ => format_size(bytes),
    }
}

/// A set of CPUs in the kernel's list format: `0-3,6`.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
pub struct CpuList(
    /// The CPU numbers, ascending, each once.
    #[schemars(with = "String")]
    pub Vec<u32>,
);

/// Folds texts that are equal but for the CPU that they name (`CPU 3`) into one
/// that names them all (`CPUs 0-15`), in the order of their first; equal ones
/// into one.
pub fn fold_cpus(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let parts = texts.into_iter().map(|text| {
        let (before, cpu, after) = around_cpu(&text).unwrap_or((&text, None, ""));
        ((before.to_owned(), after.to_owned(), cpu.is_some()), cpu)
    });
    let folded = group_by_key(parts).into_iter();
    folded
        .map(|((before, after, _), cpus)| with_cpus((before, after, cpus.into_iter().flatten().collect())))
        .collect()
}

/// Returns the text without the number of the CPU that it names: equal for texts that [`fold_cpus`] folds into one.
pub fn without_cpu(text: &str) -> String {
    match around_cpu(text) {
        Some((before, Some(_), after)) => format!("{before}CPU \0{after}"),
        _ => text.to_owned(),
    }
}

fn with_cpus((before, after, mut cpus): (String, String, Vec<u32>)) -> String {
    cpus.sort_unstable();
    cpus.dedup();
    match cpus[..] {
        [] => before,
        [cpu] => format!("{before}CPU {cpu}{after}"),
        _ => format!("{before}CPUs {}{after}", CpuList(cpus)),
    }
}

/// Splits a text into the part before the first CPU that it names, the CPU's number, and the part behind it. `None` if
/// the number after the word is a share of time ("waited for a CPU 7 % of the time").
fn around_cpu(text: &str) -> Option<(&str, Option<u32>, &str)> {
    let (before, rest) = text.split_once("CPU ")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (cpu, after) = rest.split_at(digits);
    let share = after.trim_start().starts_with('%')
        || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if share { None } else { Some((before, Some(cpu.parse().ok()?), after)) }
}

impl FromStr for CpuList {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError { text: text.to_owned(), expected: "a CPU list such as 0-3,6" };
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| wrong())?;
            let last: u32 = last.trim().parse().map_err(|_| wrong())?;
            if last < first || last >= 1 << 16 {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(CpuList(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|(a, b)| **a == *b).count();
            match run {
                1 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{}", rest[run - 1])?,
            }
            rest = &rest[run..];
            separator = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_line_that_is_cut_off_says_so() {
        let shown = |command: &str| first_words(command.split(' '));
        assert_eq!(shown("latscope wake --count 5 "), "latscope wake --count 5");
        assert_eq!(shown("latscope wake --count 5 -q "), "latscope wake --count 5 …");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn spans_have_two_digits_and_the_largest_unit_that_suits_them() {
        let s = 1e9;
        let spans =
            [0.5e6, 0.17 * s, s, 20.0 / 3.0 * s, 20.0 * s, 60.0 * s, 600.0 * s, 12_000.0 * s, 1e6 * s];
        let words = ["0.5 ms", "170 ms", "1 s", "6.7 s", "20 s", "60 s", "10 min", "3.3 h", "12 d"];
        assert_eq!(spans.map(format_span), words);
    }

    #[test]
    fn two_values_have_the_same_text_only_if_they_are_equal() {
        for (values, unit, texts) in [
            ([250_000.0, 250_001.0], "ns", ["250.000 µs", "250.001 µs"]),
            ([250_000.0, 250_000.0], "ns", ["250 µs", "250 µs"]),
            ([250_000.0, 251_000.0], "ns", ["250 µs", "251 µs"]),
            ([999_600.0, 1_000_000.0], "ns", ["0.9996 ms", "1.0000 ms"]),
            ([1e9, 1e9 + 1.0], "ns", ["1.000000000 s", "1.000000001 s"]),
            ([1e9, 1e9 + 1e4], "B/s", ["1.00000 GB/s", "1.00001 GB/s"]),
            ([99.0, 99.01], "%", ["99 %", "99.01 %"]),
            ([0.5, 0.501], "1/s", ["0.500/s", "0.501/s"]),
            ([2.0, 3.0], "count", ["2", "3"]),
        ] {
            assert_eq!(format_apart(values, unit), texts);
        }
    }

    #[test]
    fn times_have_three_digits_and_a_unit_by_range() {
        let cases = [
            (0.3, "0.30 ns"),
            (1.934, "1.93 ns"),
            (137.4, "137 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (2_041.0, "2.04 µs"),
            (16_700_000.0, "16.7 ms"),
            (1.5e9, "1.50 s"),
            (12e9, "12.0 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(format_time(ns), text);
        }
    }

    #[test]
    fn counts_and_shares_are_easy_to_read() {
        let counts = [(0, "0"), (999, "999"), (60_000, "60,000"), (1_234_567, "1,234,567")];
        for (count, text) in counts {
            assert_eq!(format_count(count), text);
        }
        assert_eq!(
            (count_with_noun(1, "thread").as_str(), count_with_noun(2_000, "CPU").as_str()),
            ("1 thread", "2,000 CPUs")
        );
        let shares = [
            (0.0, "0 %"),
            (0.001, "0.1 %"),
            (0.12345, "12.3 %"),
            (3e-8, "0.000003 %"),
            (1.0, "100 %"),
            (0.5, "50 %"),
            (0.875, "87.5 %"),
            (1.0 - 30.0 / 180_494.0, "99.983 %"),
            (0.999_999_99, "99.999999 %"),
        ];
        for (share, text) in shares {
            assert_eq!(format_share(share), text);
        }
    }

    #[test]
    fn values_are_in_units_of_the_screen() {
        let values = [
            (98.2, "%", "98.2 %"),
            (99.9999, "%", "99.9999 %"),
            (3.0, "count", "3"),
            (2.4e9, "B/s", "2.40 GB/s"),
            (2.4e3, "ns", "2.40 µs"),
            (1.5, "s", "1.50 s"),
            (124.2, "1/s", "124/s"),
            (1.5, "ratio", "1.50 ratio"),
        ];
        for (value, unit, text) in values {
            assert_eq!(format_value(value, unit), text);
        }
    }

    #[test]
    fn amounts_have_three_digits() {
        let amounts =
            [(50 << 20, "50 MiB"), (102_396 << 10, "100 MiB"), (25_165_000_000, "23.4 GiB"), (7, "7 B")];
        assert_eq!(amounts.map(|(bytes, _)| format_amount(bytes)), amounts.map(|(_, text)| text));
    }

    #[test]
    fn texts_of_many_cpus_are_folded_into_one() {
        let of = |cpu: u32| format!("degraded: not kept on CPU {cpu}: refused");
        let others = ["no trace", "CPU time", "no trace"].map(str::to_owned);
        let folded = fold_cpus((0..16).rev().map(of).chain(others));
        assert_eq!(folded, ["degraded: not kept on CPUs 0-15: refused", "no trace", "CPU time"]);
        assert_eq!(fold_cpus([of(3), of(3)]), [of(3)]);
        assert_eq!(fold_cpus(["CPU 0: a".to_owned(), "CPU 1: b".to_owned()]).len(), 2);
        let waited = ["48 %", "56.7 %"].map(|share| format!("waited for a CPU {share} of the time"));
        assert_eq!(fold_cpus(waited.clone()), waited);
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("100ns"), Ok(Duration::from_nanos(100)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        for wrong in ["1x", "", "10", "ms"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert!(parse_duration("10").unwrap_err().to_string().contains("its unit is missing"));
    }

    #[test]
    fn sizes_are_written_in_binary_units_and_read_in_decimal_ones_too() {
        assert_eq!(parse_size("64"), Ok(64));
        assert_eq!(parse_size("4KiB"), Ok(4096));
        assert_eq!(parse_size("2 MiB"), Ok(2 << 20));
        assert_eq!(parse_size("100MB"), Ok(100_000_000));
        assert_eq!(
            (parse_size("4kB"), parse_size("4KB"), parse_size("1 GB")),
            (Ok(4_000), Ok(4_000), Ok(1_000_000_000))
        );
        assert_eq!(parse_size("64B"), Ok(64));
        assert_eq!((parse_size("32kib"), parse_size("1MIB")), (Ok(32 << 10), Ok(1 << 20)));
        for (short, long) in [("4K", "4KiB"), ("64M", "64MiB"), ("1 G", "1GiB")] {
            assert_eq!(parse_size(short), parse_size(long));
        }
        for wrong in ["4k", "4m", "4mb", "", "-1", "B", "99999999999GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(format_size(48 << 10), "48 KiB");
        assert_eq!(format_size(1536 << 10), "1.50 MiB");
        assert_eq!(format_size(1), "1 B");
        // What is not a whole number of a unit does not look like one.
        let sizes =
            [65_520, 65_535, 1500, (1 << 20) + 16, 61_865_984, 25_232_932_864, 100_000_000, 300_000_001];
        let said = [
            "63.98 KiB", "63.999 KiB", "1.46 KiB", "1.00002 MiB", "59 MiB", "23.5 GiB", "95.4 MiB",
            "286.1 MiB",
        ];
        assert_eq!(sizes.map(format_size), said);
        assert_eq!(format_size(u64::MAX), "18,446,744,073,709,551,615 B");
    }

    #[test]
    fn cpu_lists_reject_what_the_kernel_rejects() {
        for wrong in ["a", "3-1", "1-", "-", "0-99999999"] {
            assert!(wrong.parse::<CpuList>().is_err(), "{wrong}");
        }
        assert_eq!("0-3,6".parse::<CpuList>().unwrap().0, [0, 1, 2, 3, 6]);
    }

    proptest! {
        #[test]
        fn whole_sizes_round_trip(number in 0u64..1024, unit in 0usize..4) {
            let bytes = number << (10 * unit);
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }

        #[test]
        fn a_percentage_is_never_rounded_to_none_or_all(part in 0u64..=1_000_000_000, more in 0u64..1_000_000_000) {
            let whole = (part + more).max(1);
            for text in [format_share(part as f64 / whole as f64), format_percent(100.0 - 100.0 * more as f64 / whole as f64)] {
                let percent: f64 = text.strip_suffix(" %").unwrap().parse().unwrap();
                prop_assert!(text != "0 %" || part == 0 || more == whole, "{}", text);
                prop_assert!((percent > 0.0) == (part > 0 || whole == 1 && more == 0 && percent == 100.0), "{}", text);
                prop_assert!((percent < 100.0) == (more > 0 || part == 0), "{}", text);
                prop_assert!((percent - 100.0 * part as f64 / whole as f64).abs() <= 0.0501 || part + more == 0, "{}", text);
            }
        }

        #[test]
        fn cpu_lists_round_trip(mut cpus in proptest::collection::vec(0u32..300, 0..40)) {
            cpus.sort_unstable();
            cpus.dedup();
            let list = CpuList(cpus);
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }
    }
}
