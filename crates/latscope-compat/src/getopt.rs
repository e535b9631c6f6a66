//! Command lines of all programs. A table has one line for each option, with the function that reads it. The table
//! determines the parsing, the check for unknown options, and the usage.

use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Reason for not carrying out a call, with the answer of the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineRefusal {
    /// Arguments that the program does not take. The answer is this line, if the program names mistakes, and the usage.
    #[error("{0}")]
    Usage(String),
    /// Request for the help text.
    #[error("help")]
    Help,
    /// Arguments that the program takes, but not on this machine, not together, or not here.
    #[error("{0}")]
    Fatal(String),
}

/// Form of the value of an option.
#[derive(Clone, Copy)]
pub enum Takes {
    /// The option takes no value.
    Nothing,
    /// The option takes a value: the rest of the word, or the next word.
    Value,
    /// The option may have a value: the rest of the word, or the next word if it is of this form.
    Perhaps(fn(&str) -> bool),
}

/// Origin of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Option of the original program.
    Theirs,
    /// Option of an older release, accepted with a note.
    Retired,
    /// Option of a newer release, which is not in the usage.
    Newer,
    /// Option that latscope adds. It cannot be abbreviated, so that no abbreviation of an original option becomes
    /// ambiguous.
    Ours,
}

/// Spelling of an option, with its help.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Letter of the option.
    pub short: Option<char>,
    /// Long name of the option. It includes its dashes if the program has no letters and a single dash is possible, as
    /// in `-pair 3`.
    pub long: &'static str,
    /// Form of the value, if the option takes a value.
    pub takes: Takes,
    /// Name of the value in the usage.
    pub value: &'static str,
    /// Effect of the option, in one line.
    pub help: &'static str,
    /// Origin of the option.
    pub whose: Whose,
}

impl Spec {
    /// Option without a spelling, which no word is.
    pub(crate) const NONE: Spec =
        Spec { short: None, long: "", takes: Takes::Nothing, value: "", help: "", whose: Whose::Newer };

    /// Spelling of the option in the usage: `-p PRIO, --priority=PRIO`.
    pub fn forms(&self) -> String {
        let (apart, together) = match self.takes {
            Takes::Nothing => (String::new(), String::new()),
            Takes::Value => (format!(" {}", self.value), format!("={}", self.value)),
            Takes::Perhaps(_) => (format!(" [{}]", self.value), format!("[={}]", self.value)),
        };
        match (self.short, self.long) {
            (None, long) if self.value.is_empty() && long.starts_with('-') => long.to_owned(),
            (None, long) if long.starts_with("--") => format!("{long}={}", self.value),
            (None, long) if long.starts_with('-') => format!("{long}{apart}"),
            (Some(short), "") => format!("-{short}{apart}"),
            (Some(short), long) => format!("-{short}{apart}, --{long}{together}"),
            (None, long) => format!("--{long}{together}"),
        }
    }

    /// Name of the option in messages: `-n`, `--numa`.
    pub fn name(&self) -> String {
        match self.short {
            Some(short) => format!("-{short}"),
            None if self.long.starts_with('-') => self.long.to_owned(),
            None => format!("--{}", self.long),
        }
    }
}

/// Option of a program, with the function that stores its value in the options of a call.
pub struct ProgramOption<O: 'static> {
    /// Spelling of the option.
    pub spec: Spec,
    read: Read<O>,
}

type Read<O> = fn(&mut O, &mut OptionOccurrence) -> Result<(), CommandLineRefusal>;

impl<O> ProgramOption<O> {
    /// Option `-h`, `--help`: print the usage.
    pub(crate) const HELP: ProgramOption<O> =
        ProgramOption::new(Some('h'), "help", FLAG, "this text", |_, _| Err(CommandLineRefusal::Help));

    /// Option `--help` of the programs in which `-h` is another option.
    pub(crate) const LONG_HELP: ProgramOption<O> =
        ProgramOption::new(None, "help", FLAG, "this text", |_, _| Err(CommandLineRefusal::Help));

    /// Returns an option with or without a value.
    pub const fn new(
        short: Option<char>,
        long: &'static str,
        (takes, value): (Takes, &'static str),
        help: &'static str,
        read: Read<O>,
    ) -> ProgramOption<O> {
        ProgramOption { spec: Spec { short, long, takes, value, help, whose: Whose::Theirs }, read }
    }

    /// Returns this option as an option of an older release.
    pub(crate) const fn retired(self) -> ProgramOption<O> {
        ProgramOption { spec: Spec { whose: Whose::Retired, ..self.spec }, read: self.read }
    }

    /// Returns this option as an option of a newer release.
    pub(crate) const fn newer(self) -> ProgramOption<O> {
        ProgramOption { spec: Spec { whose: Whose::Newer, ..self.spec }, read: self.read }
    }

    /// Returns this option as an option that latscope adds.
    pub(crate) const fn mark_added(self) -> ProgramOption<O> {
        ProgramOption { spec: Spec { whose: Whose::Ours, ..self.spec }, read: self.read }
    }

    /// Returns this option with another text in the usage.
    pub(crate) const fn saying(self, help: &'static str) -> ProgramOption<O> {
        ProgramOption { spec: Spec { help, ..self.spec }, read: self.read }
    }
}

/// Declares a field of a program's options as a part that several programs share, with options that are read into it.
macro_rules! part {
    ($whole:ty, $field:ident: $part:ty) => {
        impl AsMut<$part> for $whole {
            fn as_mut(&mut self) -> &mut $part {
                &mut self.$field
            }
        }
    };
}
pub(crate) use part;

/// Form of an option that takes no value.
pub(crate) const FLAG: (Takes, &str) = (Takes::Nothing, "");

/// Returns the form of an option that takes a value of this name.
pub(crate) const fn value(name: &'static str) -> (Takes, &'static str) {
    (Takes::Value, name)
}

/// Returns the form of an option whose value may be left out. The next word is the value only if `follows` accepts it.
pub(crate) const fn perhaps(name: &'static str, follows: fn(&str) -> bool) -> (Takes, &'static str) {
    (Takes::Perhaps(follows), name)
}

/// Sets the field of a flag.
pub(crate) fn set_flag(field: &mut bool) -> Result<(), CommandLineRefusal> {
    set_field(field, Ok(true))
}

/// Sets a field to a value that was read, or passes the refusal on.
pub(crate) fn set_field<T>(
    field: &mut T,
    value: Result<T, CommandLineRefusal>,
) -> Result<(), CommandLineRefusal> {
    *field = value?;
    Ok(())
}

/// Option that was given in a call.
pub struct OptionOccurrence {
    /// Name of the option in messages.
    pub(crate) name: String,
    /// Value that was given; `None` without a value.
    pub(crate) value: Option<String>,
    notes: Vec<String>,
}

impl OptionOccurrence {
    /// Text of the value; empty without a value.
    pub(crate) fn value_text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    /// Value as the path of a file.
    pub(crate) fn path(&self) -> Result<Option<PathBuf>, CommandLineRefusal> {
        Ok(Some(self.value_text().into()))
    }

    /// Adds a note on the effect of the option.
    pub(crate) fn add_note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Adds a note on the effect that an older release's option has here.
    pub(crate) fn retired(&mut self, why: &str) -> Result<(), CommandLineRefusal> {
        self.add_note(format!("{} is retired: {why}", self.name));
        Ok(())
    }

    fn value_refusal(&self, what: &str) -> CommandLineRefusal {
        CommandLineRefusal::Usage(format!("{} {} is {what}", self.name, self.value_text()))
    }

    /// Parses a number with a sign. Text after it is ignored, as by atoi(3), but noted.
    pub(crate) fn signed(&mut self) -> Result<i64, CommandLineRefusal> {
        let (number, whole) =
            parse_leading_number(self.value_text()).ok_or_else(|| self.value_refusal("no number"))?;
        if !whole {
            self.notes.push(format!("{} {} is taken as {number}", self.name, self.value_text()));
        }
        Ok(number)
    }

    /// Parses a number from 0 on, in the same way.
    pub(crate) fn parse_count(&mut self) -> Result<u64, CommandLineRefusal> {
        let number = self.signed().ok().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| self.value_refusal("no number from 0 on"))
    }

    /// Parses a number from 1 on, in the same way.
    pub(crate) fn positive(&mut self) -> Result<u64, CommandLineRefusal> {
        Some(self.parse_count()?)
            .filter(|number| *number > 0)
            .ok_or_else(|| self.value_refusal("not above 0"))
    }

    /// Parses a limit; 0 means no limit.
    pub(crate) fn parse_limit(&mut self) -> Result<Option<u64>, CommandLineRefusal> {
        Ok(Some(self.parse_count()?).filter(|limit| *limit > 0))
    }

    /// Returns the number in a value that consists only of a number in this range.
    pub(crate) fn number_in_range(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let (number, _) = parse_leading_number(self.value_text()).filter(|(_, whole)| *whole)?;
        u64::try_from(number).ok().filter(|number| range.contains(number))
    }

    /// Returns the same number as [`OptionOccurrence::number_in_range`], or a refusal that names the range.
    pub(crate) fn parse_in_range(&self, range: RangeInclusive<u64>) -> Result<u64, CommandLineRefusal> {
        let bounds = match (*range.start(), *range.end()) {
            (0, u64::MAX) => String::new(),
            (least, most) => format!(" from {least} to {most}"),
        };
        self.number_in_range(range).ok_or_else(|| self.value_refusal(&format!("no number{bounds}")))
    }

    /// Parses a time in seconds, or with `m`, `h` or `d` in minutes, hours or days. Returns ns.
    ///
    /// # Errors
    /// The text is no time. cyclictest ignores unknown units and takes `1x` for 1 s.
    pub(crate) fn parse_duration(&self) -> Result<u64, CommandLineRefusal> {
        let text = self.value_text();
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
            CommandLineRefusal::Fatal(format!(
                "-D {text} is no time: whole seconds, or minutes, hours or days as in 90, 20m, 2h, 1d"
            ))
        })
    }
}

/// Words of a call, separated into options and operands.
#[derive(Default)]
pub(crate) struct CommandLineWords {
    /// Options in order: the index in the table, and the value.
    pub(crate) options: Vec<(usize, Option<String>)>,
    /// Operands: all words that are neither options nor values.
    pub(crate) operands: Vec<String>,
}

/// Function that separates the words of a command line.
pub(crate) type Grammar = fn(&[&Spec], &[OsString]) -> Result<CommandLineWords, CommandLineRefusal>;

/// Call as it was read by a table.
pub struct ProgramCall<O> {
    /// Values of the options.
    pub options: O,
    /// Words that are neither options nor values.
    pub operands: Vec<String>,
    /// Notes on values that are taken otherwise than they were written.
    pub notes: Vec<String>,
}

/// Reads a call by a table, starting from these values.
///
/// # Errors
/// The errors are those of the grammar and of the options.
pub(crate) fn read<O>(
    table: &[ProgramOption<O>],
    grammar: Grammar,
    arguments: &[OsString],
    mut options: O,
) -> Result<ProgramCall<O>, CommandLineRefusal> {
    let specs: Vec<&Spec> = table.iter().map(|option| &option.spec).collect();
    let words = grammar(&specs, arguments)?;
    let mut notes = Vec::new();
    for (index, value) in words.options {
        let mut given = OptionOccurrence { name: specs[index].name(), value, notes };
        (table[index].read)(&mut options, &mut given)?;
        notes = given.notes;
    }
    Ok(ProgramCall { options, operands: words.operands, notes })
}

/// Grammar of getopt_long(3): bundles of letters, optional values, abbreviated long options, operands anywhere.
///
/// # Errors
/// An option is unknown, a value is missing, or an option has a value that it does not take.
pub(crate) fn getopt(
    specs: &[&Spec],
    arguments: &[OsString],
) -> Result<CommandLineWords, CommandLineRefusal> {
    let mut parser = Parser::from_args(arguments.iter().cloned());
    let mut words = CommandLineWords::default();
    while let Some(argument) = parser.next().map_err(refusal_from_lexopt)? {
        let (index, missing) = match argument {
            Arg::Value(operand) => {
                words.operands.push(operand.to_string_lossy().into_owned());
                continue;
            }
            Arg::Short(letter) => {
                let index = specs.iter().position(|spec| spec.short == Some(letter));
                let index = index
                    .ok_or_else(|| CommandLineRefusal::Usage(format!("invalid option -- '{letter}'")))?;
                (index, format!("option requires an argument -- '{letter}'"))
            }
            Arg::Long(name) => {
                let index = long(specs, name)?;
                (index, format!("option '--{}' requires an argument", specs[index].long))
            }
        };
        let value = next_value(&mut parser, specs[index]).ok_or(CommandLineRefusal::Usage(missing))?;
        words.options.push((index, value));
    }
    Ok(words)
}

fn refusal_from_lexopt(error: lexopt::Error) -> CommandLineRefusal {
    CommandLineRefusal::Usage(match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            format!("option '{option}' doesn't allow an argument")
        }
        other => other.to_string(),
    })
}

/// Index of the option with this name, or of the only original option that begins with it.
fn long(specs: &[&Spec], name: &str) -> Result<usize, CommandLineRefusal> {
    if let Some(exact) = specs.iter().position(|spec| !spec.long.is_empty() && spec.long == name) {
        return Ok(exact);
    }
    let begins =
        |spec: &Spec| !spec.long.is_empty() && spec.whose != Whose::Ours && spec.long.starts_with(name);
    let mut begin = (0..specs.len()).filter(|index| begins(specs[*index]));
    match (begin.next(), begin.next()) {
        (None, _) => Err(CommandLineRefusal::Usage(format!("unrecognized option '--{name}'"))),
        (Some(only), None) => Ok(only),
        _ => Err(CommandLineRefusal::Usage(format!("option '--{name}' is ambiguous"))),
    }
}

/// Returns the value of an option, if it has a value; `None` if a value is missing.
fn next_value(parser: &mut Parser, spec: &Spec) -> Option<Option<String>> {
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

/// Grammar of AOSP's tests: whole words with one dash, as in `-pair 3`, and flags of Google Benchmark, as in
/// `--benchmark_format=json`.
///
/// # Errors
/// A word is no option (the originals ignore it), or a value is missing (the originals read the memory after their
/// arguments).
pub(crate) fn whole_words(
    specs: &[&Spec],
    arguments: &[OsString],
) -> Result<CommandLineWords, CommandLineRefusal> {
    let mut arguments = arguments.iter().map(|word| word.to_string_lossy().into_owned());
    let mut words = CommandLineWords::default();
    while let Some(word) = arguments.next() {
        let (name, own) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let index = specs.iter().position(|spec| spec.long == name);
        let unknown = || CommandLineRefusal::Usage(format!("there is no option {word:?} (see --help)"));
        let index = index.ok_or_else(unknown)?;
        let value = match (specs[index].takes, own) {
            (Takes::Nothing, Some(_)) => {
                return Err(CommandLineRefusal::Usage(format!("{name} takes no value")));
            }
            (Takes::Value, None) => {
                let missing =
                    || CommandLineRefusal::Usage(format!("{name} needs a value: {}", specs[index].value));
                Some(arguments.next().ok_or_else(missing)?)
            }
            (_, own) => own,
        };
        words.options.push((index, value));
    }
    Ok(words)
}

/// Number at the beginning of a text, and true if it is all of the text. Numbers are as of atoi(3), but a text without
/// a number gives `None` instead of 0.
pub(crate) fn parse_leading_number(text: &str) -> Option<(i64, bool)> {
    let trimmed = text.trim_start();
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let end = trimmed.len() - unsigned.len() + digits;
    trimmed[..end].parse().ok().map(|number| (number, end == trimmed.len()))
}

/// Returns true if a text begins with a number other than 0.
pub(crate) fn is_count(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && parse_leading_number(text).is_some_and(|(number, _)| number != 0)
}

/// Parses a size in bytes: `512`, `8k`, `4m`, `1g`, in powers of 1024.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn keep(
        short: Option<char>,
        long: &'static str,
        takes: (Takes, &'static str),
    ) -> ProgramOption<Vec<String>> {
        ProgramOption::new(short, long, takes, "", |all, given| {
            let value = given.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
            all.push(given.name.clone() + &value);
            Ok(())
        })
    }

    static GETOPT: &[ProgramOption<Vec<String>>] = &[
        keep(Some('m'), "mlockall", FLAG),
        keep(Some('s'), "system", FLAG),
        keep(Some('p'), "prio", value("N")),
        keep(Some('t'), "threads", perhaps("N", is_count)),
        keep(None, "tracemark", FLAG),
        keep(Some('n'), "", FLAG).retired(),
        keep(None, "threaded", FLAG).mark_added(),
    ];

    fn words(line: &str) -> Result<(String, Vec<String>), CommandLineRefusal> {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let call = read(GETOPT, getopt, &arguments, Vec::new())?;
        Ok((call.options.join(" "), call.operands))
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

    fn given(text: &str) -> OptionOccurrence {
        OptionOccurrence { name: "-n".to_owned(), value: Some(text.to_owned()), notes: Vec::new() }
    }

    #[test]
    fn numbers_are_within_bounds_and_what_follows_them_is_noted() {
        let mut trailing = given("400us");
        assert_eq!(
            (trailing.parse_count(), &trailing.notes[..]),
            (Ok(400), &["-n 400us is taken as 400".to_owned()][..])
        );
        assert_eq!((given("0").parse_limit(), given("7").parse_limit()), (Ok(None), Ok(Some(7))));
        for (refused, said) in [
            (given("x").signed().map(drop), "-n x is no number"),
            (given("-3").parse_count().map(drop), "-n -3 is no number from 0 on"),
            (given("0").positive().map(drop), "-n 0 is not above 0"),
            (given("9").parse_in_range(1..=8).map(drop), "-n 9 is no number from 1 to 8"),
            (given("9x").parse_in_range(0..=u64::MAX).map(drop), "-n 9x is no number"),
        ] {
            assert_eq!(refused, Err(CommandLineRefusal::Usage(said.to_owned())));
        }
    }

    #[test]
    fn numbers_stand_in_front() {
        assert_eq!(parse_leading_number("400us"), Some((400, false)));
        assert_eq!(parse_leading_number("-3"), Some((-3, true)));
        assert_eq!(parse_leading_number("us"), None);
        assert_eq!(parse_leading_number(""), None);
    }

    #[test]
    fn sizes_take_binary_suffixes() {
        let cases = [("512", 512), ("8k", 8192), ("8K", 8192), ("2m", 2 << 20), ("1G", 1 << 30)];
        for (text, size) in cases {
            assert_eq!(parse_size(text), Some(size), "{text}");
        }
        for wrong in ["", "k", "1kb", "1x", "-1", "99999999999g"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_whole_and_have_known_units() {
        let duration = |text: &str| given(text).parse_duration();
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
