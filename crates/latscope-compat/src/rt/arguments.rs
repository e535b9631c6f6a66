//! The command lines of rt-tests, as getopt_long(3) reads them: bundles of
//! letters, optional values, abbreviated long options, operands anywhere.

use super::Refusal;
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::fmt::Write;

/// Whether an option takes a value.
#[derive(Clone, Copy)]
pub enum Takes {
    /// No.
    Nothing,
    /// Always: the rest of the word, or the next word.
    Value,
    /// The rest of the word, or the next word if it is of this form.
    Perhaps(fn(&str) -> bool),
}

/// Whose option it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The program's.
    Theirs,
    /// An older release's, accepted without effect.
    Retired,
    /// Ours; not to be abbreviated, so that no abbreviation of theirs becomes ambiguous.
    Ours,
}

/// An option.
pub struct Spec {
    /// Its letter.
    pub short: Option<char>,
    /// Its long name.
    pub long: &'static str,
    /// Whether it takes a value.
    pub takes: Takes,
    /// What the value is called in the usage.
    pub value: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Whose it is.
    pub whose: Whose,
}

impl Spec {
    /// An option of the program without a value.
    pub const fn flag(short: Option<char>, long: &'static str, help: &'static str) -> Spec {
        Spec { short, long, takes: Takes::Nothing, value: "", help, whose: Whose::Theirs }
    }

    /// An option of the program with a value.
    pub const fn value(
        short: Option<char>,
        long: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Spec {
        Spec { short, long, takes: Takes::Value, value, help, whose: Whose::Theirs }
    }

    /// An option of the program with a value that may be left out.
    pub const fn perhaps(
        short: Option<char>,
        long: &'static str,
        value: &'static str,
        follows: fn(&str) -> bool,
        help: &'static str,
    ) -> Spec {
        Spec { short, long, takes: Takes::Perhaps(follows), value, help, whose: Whose::Theirs }
    }

    /// The same option as an older release's.
    pub const fn retired(self) -> Spec {
        Spec { whose: Whose::Retired, ..self }
    }

    /// The same option as one of ours.
    pub const fn ours(self) -> Spec {
        Spec { whose: Whose::Ours, ..self }
    }

    /// As it is written: `-p PRIO, --priority=PRIO`.
    pub fn forms(&self) -> String {
        let (apart, together) = match self.takes {
            Takes::Nothing => (String::new(), String::new()),
            Takes::Value => (format!(" {}", self.value), format!("={}", self.value)),
            Takes::Perhaps(_) => (format!(" [{}]", self.value), format!("[={}]", self.value)),
        };
        match (self.short, self.long) {
            (Some(short), "") => format!("-{short}{apart}"),
            (Some(short), long) => format!("-{short}{apart}, --{long}{together}"),
            (None, long) => format!("--{long}{together}"),
        }
    }

    /// As the program's words name it: `-n`, `--numa`.
    pub fn name(&self) -> String {
        self.short.map_or_else(|| format!("--{}", self.long), |short| format!("-{short}"))
    }
}

/// An option that was given.
pub struct Given {
    /// Which.
    pub spec: &'static Spec,
    /// With what value.
    pub value: Option<String>,
}

/// The options of a call, in order, and what is none.
#[derive(Default)]
pub struct Words {
    /// The options.
    pub options: Vec<Given>,
    /// The rest.
    pub operands: Vec<String>,
}

/// Reads a call.
///
/// # Errors
/// An option that is none, or a value where none belongs or none where one does.
pub fn read(specs: &'static [Spec], arguments: &[OsString]) -> Result<Words, Refusal> {
    let mut parser = Parser::from_args(arguments.iter().cloned());
    let mut words = Words::default();
    while let Some(argument) = parser.next().map_err(unexpected)? {
        let (spec, missing) = match argument {
            Arg::Value(operand) => {
                words.operands.push(operand.to_string_lossy().into_owned());
                continue;
            }
            Arg::Short(letter) => {
                let spec = specs.iter().find(|spec| spec.short == Some(letter));
                let spec = spec.ok_or_else(|| Refusal::Usage(format!("invalid option -- '{letter}'")))?;
                (spec, format!("option requires an argument -- '{letter}'"))
            }
            Arg::Long(name) => {
                let spec = long(specs, name)?;
                (spec, format!("option '--{}' requires an argument", spec.long))
            }
        };
        let value = value(&mut parser, spec).ok_or(Refusal::Usage(missing))?;
        words.options.push(Given { spec, value });
    }
    Ok(words)
}

fn unexpected(error: lexopt::Error) -> Refusal {
    Refusal::Usage(match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            format!("option '{option}' doesn't allow an argument")
        }
        other => other.to_string(),
    })
}

/// The option with this name, or the only one of theirs that begins so.
fn long(specs: &'static [Spec], name: &str) -> Result<&'static Spec, Refusal> {
    let named = specs.iter().filter(|spec| !spec.long.is_empty());
    if let Some(exact) = named.clone().find(|spec| spec.long == name) {
        return Ok(exact);
    }
    let mut begin = named.filter(|spec| spec.whose != Whose::Ours && spec.long.starts_with(name));
    match (begin.next(), begin.next()) {
        (None, _) => Err(Refusal::Usage(format!("unrecognized option '--{name}'"))),
        (Some(only), None) => Ok(only),
        _ => Err(Refusal::Usage(format!("option '--{name}' is ambiguous"))),
    }
}

/// The value of an option, if it has one; `None` where one is missing.
fn value(parser: &mut Parser, spec: &Spec) -> Option<Option<String>> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    match spec.takes {
        Takes::Nothing => Some(None),
        Takes::Value => parser.value().ok().map(|value| Some(text(value))),
        Takes::Perhaps(follows) => Some(parser.optional_value().map(text).or_else(|| {
            let mut rest = parser.try_raw_args()?;
            let next = rest.peek()?.to_str()?;
            if follows(next) { rest.next().map(text) } else { None }
        })),
    }
}

/// A number and whether it is all of the text: as atoi(3) finds it, but text
/// that has no number in front is none, instead of 0.
pub fn number(text: &str) -> Option<(i64, bool)> {
    let trimmed = text.trim_start();
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let end = trimmed.len() - unsigned.len() + digits;
    trimmed[..end].parse().ok().map(|number| (number, end == trimmed.len()))
}

/// Whether a text begins with a number other than 0.
pub fn is_count(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && number(text).is_some_and(|(number, _)| number != 0)
}

/// A time in seconds, or with `m`, `h` or `d` in minutes, hours or days; as ns.
///
/// # Errors
/// It is none; cyclictest ignores what it does not know and takes `1x` for 1 s.
pub fn duration(text: &str) -> Result<u64, Refusal> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 0,
    };
    let seconds = text[..digits].parse::<u64>().ok().filter(|_| unit > 0);
    seconds.and_then(|number| number.checked_mul(unit * 1_000_000_000)).ok_or_else(|| {
        Refusal::Fatal(format!(
            "-D {text} is no time: whole seconds, or minutes, hours or days as in 90, 20m, 2h, 1d"
        ))
    })
}

/// The usage of a program, made from its options.
pub fn usage(name: &str, version: &str, specs: &[Spec]) -> String {
    let mut text = format!("{name} V {version}\nUsage:\n{name} <options>\n\n");
    let mut list = |whose: Whose| {
        for spec in specs.iter().filter(|spec| spec.whose == whose) {
            let _ = writeln!(text, "{:<36} {}", spec.forms(), spec.help);
        }
    };
    list(Whose::Theirs);
    list(Whose::Ours);
    let retired: Vec<String> =
        specs.iter().filter(|spec| spec.whose == Whose::Retired).map(Spec::name).collect();
    if !retired.is_empty() {
        let _ = writeln!(text, "\naccepted for old scripts: {}", retired.join(" "));
    }
    text + "\nThis is latscope, with the options and the output of rt-tests.\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static SPECS: &[Spec] = &[
        Spec::flag(Some('m'), "mlockall", ""),
        Spec::flag(Some('s'), "system", ""),
        Spec::value(Some('p'), "prio", "N", ""),
        Spec::perhaps(Some('t'), "threads", "N", is_count, ""),
        Spec::flag(None, "tracemark", ""),
        Spec::flag(Some('n'), "", "").retired(),
        Spec::flag(None, "threaded", "").ours(),
    ];

    fn words(line: &str) -> Result<(String, Vec<String>), Refusal> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let words = read(SPECS, &arguments)?;
        let one = |given: &Given| match &given.value {
            Some(value) => format!("{}={value}", given.spec.name()),
            None => given.spec.name(),
        };
        Ok((words.options.iter().map(one).collect::<Vec<_>>().join(" "), words.operands))
    }

    fn refused(line: &str) -> String {
        words(line).map(|words| words.0).unwrap_err().to_string()
    }

    #[test]
    fn letters_are_bundled_and_the_rest_of_a_word_is_a_value() {
        assert_eq!(words("-smp 5").unwrap().0, "-s -m -p=5");
        assert_eq!(words("-mp95 -n").unwrap().0, "-m -p=95 -n");
        assert_eq!(words("-tm").unwrap().0, "-t=m");
        assert_eq!(words("-p -1").unwrap().0, "-p=-1");
    }

    #[test]
    fn an_optional_value_may_stand_apart_if_it_looks_like_one() {
        assert_eq!(words("-t 3 -m").unwrap(), ("-t=3 -m".to_owned(), vec![]));
        assert_eq!(words("-t 0").unwrap(), ("-t".to_owned(), vec!["0".to_owned()]));
        assert_eq!(words("-mt 3").unwrap().0, "-m -t=3");
        assert_eq!(words("--threads=2 -t").unwrap().0, "-t=2 -t");
    }

    #[test]
    fn long_options_may_be_abbreviated_but_ours_may_not() {
        assert_eq!(words("--mlock --thr").unwrap().0, "-m -t");
        assert_eq!(words("--threaded").unwrap().0, "--threaded");
        assert_eq!(refused("--t"), "option '--t' is ambiguous");
    }

    #[test]
    fn mistakes_are_named_as_getopt_does() {
        assert_eq!(refused("-z"), "invalid option -- 'z'");
        assert_eq!(refused("-smp"), "option requires an argument -- 'p'");
        assert_eq!(refused("--prio"), "option '--prio' requires an argument");
        assert_eq!(refused("--nope"), "unrecognized option '--nope'");
        assert_eq!(refused("--mlockall=3"), "option '--mlockall' doesn't allow an argument");
    }

    #[test]
    fn numbers_stand_in_front() {
        assert_eq!(number("400us"), Some((400, false)));
        assert_eq!(number("-3"), Some((-3, true)));
        assert_eq!(number("us"), None);
        assert_eq!(number(""), None);
    }

    #[test]
    fn times_are_whole_and_have_known_units() {
        assert_eq!(duration("90").unwrap(), 90_000_000_000);
        assert_eq!(duration("2H").unwrap(), 7_200_000_000_000);
        for wrong in ["1x", "", "-1", "1.5h", "m"] {
            assert!(duration(wrong).unwrap_err().to_string().contains("is no time"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(line in "([-a-z0-9=é ]{0,8} ){0,4}") {
            if let Ok((_, operands)) = words(&line) {
                prop_assert!(operands.len() <= line.split_whitespace().count());
            }
        }
    }
}
