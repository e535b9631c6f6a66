//! JSON as every reader can carry it: most take each number for a double, jq among them, which holds whole numbers up
//! to 2^53 only; and the service that keeps a log takes no text for a command.

use crate::log_commands;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::io;

/// Whole numbers up to this one are carried by every reader.
pub const LARGEST: u64 = 1 << 53;

/// Writes a value as JSON in which each whole number is one that a double holds.
/// One beyond [`LARGEST`], such as a sum over years, loses its last digits.
///
/// # Errors
/// The writer's.
pub fn write_value(to: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    format(to, value, CompactFormatter)
}

/// Returns the JSON of a value with indentation and a line break at the end, for people.
///
/// # Panics
/// The value has keys that are no texts.
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    format(&mut text, value, PrettyFormatter::new()).expect("memory takes what has a JSON form");
    String::from_utf8(text).expect("JSON is UTF-8") + "\n"
}

fn format(to: &mut dyn io::Write, value: &impl Serialize, formatter: impl Formatter) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(to, PortableJsonFormatter(formatter));
    Ok(value.serialize(&mut serializer)?)
}

/// Returns the whole number that is written for this number.
pub fn portable_number(number: u64) -> u64 {
    let beyond = (u64::BITS - number.leading_zeros()).saturating_sub(53);
    number >> beyond << beyond
}

struct PortableJsonFormatter<F>(F);

macro_rules! as_before {
    ($($name:ident($($argument:ident: $kind:ty)?))*) => {$(
        fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W $(, $argument: $kind)?) -> io::Result<()> {
            self.0.$name(writer $(, $argument)?)
        }
    )*};
}

impl<F: Formatter> Formatter for PortableJsonFormatter<F> {
    fn write_u64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        self.0.write_u64(writer, portable_number(value))
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.0.write_string_fragment(writer, &log_commands::escape_commands(fragment))
    }

    as_before! {
        begin_array() end_array() begin_array_value(first: bool) end_array_value()
        begin_object() end_object() begin_object_key(first: bool) end_object_key()
        begin_object_value() end_object_value()
    }
}

/// Reads a fact that is `null` where it is not known.
///
/// # Errors
/// The deserializer's.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a count, 0 where it is `null`.
///
/// # Errors
/// The number is above [`LARGEST`]: no program counted that, and sums of such numbers overflow.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let count: u64 = or_default(deserializer)?;
    if count > LARGEST {
        return Err(D::Error::custom(format_args!("{count} is above 2^53")));
    }
    Ok(count)
}

/// Limit of which `u64::MAX` means "no limit": `null` in JSON.
pub mod limit {
    use super::*;

    /// Writes a limit as a number or `null`.
    ///
    /// # Errors
    /// The serializer fails.
    pub(crate) fn serialize<S: Serializer>(limit: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        (*limit != u64::MAX).then_some(*limit).serialize(serializer)
    }

    /// Reads a limit from a number or `null`.
    ///
    /// # Errors
    /// The deserializer fails.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::plan::Stop;
    use crate::report::Report;
    use serde_json::Value;

    fn written(value: &impl Serialize) -> String {
        let mut text = Vec::new();
        write_value(&mut text, value).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// The largest number anywhere in a value.
    fn largest(value: &Value) -> f64 {
        match value {
            Value::Number(number) => number.as_f64().unwrap().abs(),
            Value::Array(all) => all.iter().map(largest).fold(0.0, f64::max),
            Value::Object(all) => all.values().map(largest).fold(0.0, f64::max),
            _ => 0.0,
        }
    }

    #[test]
    fn a_count_above_2_to_the_53rd_is_refused() {
        let read = |text: &str| count(&mut serde_json::Deserializer::from_str(text));
        assert_eq!((read("null").unwrap(), read("9007199254740992").unwrap()), (0, LARGEST));
        assert!(read("9007199254740993").unwrap_err().to_string().contains("above 2^53"));
    }

    #[test]
    fn a_text_is_no_command_to_a_service_and_is_read_as_it_was() {
        for text in
            ["##vso[task.setvariable]x", "###[error]", "##teamcity[a] ##[b] <LAVA_SIGNAL_A>", "#\n#[a]"]
        {
            let json = pretty(&[text]);
            let lines: Vec<&str> = json.lines().map(str::trim_start).collect();
            assert!(lines.iter().all(|line| !line.starts_with("::")), "{json}");
            assert!(
                ["##[", "##vso[", "##teamcity[", "<LAVA_"].iter().all(|word| !json.contains(word)),
                "{json}"
            );
            assert_eq!(serde_json::from_str::<[String; 1]>(&json).unwrap(), [text]);
        }
    }

    #[test]
    fn a_whole_number_is_one_that_a_double_holds() {
        for number in [0, 1, LARGEST - 1, LARGEST, LARGEST + 1, (LARGEST << 4) + 17, u64::MAX, u64::MAX - 1] {
            let back: u64 = written(&number).parse().unwrap();
            assert!(back as f64 as u128 == u128::from(back) && back <= number, "{number}");
            assert!(number > LARGEST || back == number, "{number}");
        }
        assert_eq!(written(&(-5i64, 2.5)), "[-5,2.5]");
        assert_eq!(pretty(&[u64::MAX]), format!("[\n  {}\n]\n", portable_number(u64::MAX)));
        let indented = serde_json::to_string_pretty(&fixture::report()).unwrap();
        assert_eq!(pretty(&fixture::report()), indented + "\n");
    }

    #[test]
    fn no_limit_is_null() {
        let stop = Stop::after_events(7, u64::MAX);
        let text = written(&stop);
        assert_eq!(text, r#"{"samples":null,"events":7,"batch_ns":0,"budget_ns":null,"limit_ns":null}"#);
        assert_eq!(serde_json::from_str::<Stop>(&text).unwrap(), stop);
    }

    #[test]
    fn results_hold_no_number_that_a_reader_cannot_carry() {
        for report in [fixture::report(), fixture::wake(), fixture::ipc::latency()] {
            let text = report.to_json();
            assert!(largest(&serde_json::from_str(&text).unwrap()) <= LARGEST as f64);
            assert_eq!(Report::from_json(text.as_bytes()).unwrap(), report);
        }
    }
}
