//! How quantities are written and read: durations, sizes, CPU lists.
//!
//! On screen a duration is in ns, µs, ms or s and nothing else, with three
//! significant digits.

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
    let (value, unit) = match ns.abs() {
        a if a < 999.5 => (ns, "ns"),
        a if a < 999.5e3 => (ns / 1e3, "µs"),
        a if a < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Writes a rate given in bytes per second, in decimal units: `13.8 GB/s`.
pub fn format_rate(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second {
        r if r < 999.5e3 => (r / 1e3, "kB/s"),
        r if r < 999.5e6 => (r / 1e6, "MB/s"),
        r => (r / 1e9, "GB/s"),
    };
    format!("{} {unit}", three_digits(value))
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

/// Writes a share (1 is all) in percent with two significant digits, and no
/// zeros after them: `0.1 %`, `12 %`, `0.00003 %`.
pub fn format_share(share: f64) -> String {
    let percent = share * 100.0;
    if percent.is_nan() || percent <= 0.0 {
        return "0 %".to_owned();
    }
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{percent:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// Writes a number with three significant digits, never in exponent form.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        a if a < 9.995 => format!("{value:.2}"),
        a if a < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Reads `100ns`, `250us`, `1ms`, `10s`, `5m`, `2h` and sums of such.
///
/// # Errors
/// The text has no unit, an unknown unit, or no number.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    humantime::parse_duration(text).map_err(|_| ParseError {
        text: text.to_owned(),
        expected: "a duration such as 100ns, 250us, 1ms, 10s, 5m or 2h",
    })
}

const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

/// Reads `64`, `4KiB`, `2MiB`, `1GiB`: bytes, in binary units only.
///
/// # Errors
/// The text has another unit, no number, or does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, ParseError> {
    SIZE_UNITS
        .iter()
        .find_map(|(unit, scale)| {
            let digits = text.strip_suffix(unit)?.trim_end();
            digits.parse::<u64>().ok()?.checked_mul(*scale)
        })
        .ok_or_else(|| ParseError {
            text: text.to_owned(),
            expected: "a size such as 64, 4KiB, 2MiB or 1GiB",
        })
}

/// Writes a size in bytes: `64 B`, `48 KiB`, `1.5 MiB`.
pub fn format_size(bytes: u64) -> String {
    for (unit, scale) in &SIZE_UNITS[..3] {
        if bytes >= *scale {
            let value = bytes as f64 / *scale as f64;
            let digits = if value.fract() == 0.0 { format!("{value:.0}") } else { three_digits(value) };
            return format!("{digits} {unit}");
        }
    }
    format!("{bytes} B")
}

/// A set of CPUs in the kernel's list format: `0-3,6`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuList(
    /// The CPU numbers, ascending, each once.
    pub Vec<u32>,
);

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
        let shares = [
            (0.0, "0 %"),
            (0.001, "0.1 %"),
            (0.12345, "12 %"),
            (3e-8, "0.000003 %"),
            (1.0, "100 %"),
            (0.5, "50 %"),
        ];
        for (share, text) in shares {
            assert_eq!(format_share(share), text);
        }
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_duration("100ns"), Ok(Duration::from_nanos(100)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        for wrong in ["1x", "", "10", "ms"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(parse_size("64"), Ok(64));
        assert_eq!(parse_size("4KiB"), Ok(4096));
        assert_eq!(parse_size("2 MiB"), Ok(2 << 20));
        for wrong in ["4k", "4KB", "", "-1", "99999999999GiB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(format_size(48 << 10), "48 KiB");
        assert_eq!(format_size(1536 << 10), "1.50 MiB");
        assert_eq!(format_size(1), "1 B");
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
        fn cpu_lists_round_trip(mut cpus in proptest::collection::vec(0u32..300, 0..40)) {
            cpus.sort_unstable();
            cpus.dedup();
            let list = CpuList(cpus);
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }
    }
}
