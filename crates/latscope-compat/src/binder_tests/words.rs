//! Options that AOSP's tests share, and the forms of their numbers and switches.

use crate::context::PersonalityContext;
use crate::getopt::{
    self, CommandLineRefusal, FLAG, OptionOccurrence, ProgramCall, ProgramOption, Takes, Whose, set_field,
    set_flag, value,
};
use crate::personality::{PersonalityProgram, PersonalitySuite, format_options};
use latscope_process::stdout::print_text;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Value of an option that may be given without a value: `--flag`, `--flag=false`.
pub(crate) const SWITCH: (Takes, &str) = (Takes::Perhaps(|_| false), "true|false");

/// Version of Android whose output is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AndroidOutputVersion {
    /// Output of current versions.
    #[default]
    Current,
    /// Output of Android 8.0.
    Oreo,
}

/// Values of the options that all of the programs share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BinderCommonOptions {
    /// Value of `--transport`: the name of the transport.
    pub transport: Option<String>,
    /// Value of `--compat`: the version whose output is printed.
    pub layout: AndroidOutputVersion,
    /// Value of `--result`: the file for latscope's result.
    pub result: Option<std::path::PathBuf>,
    /// Value of `--help`: print the usage.
    pub help: bool,
}

/// Returns an option of a program, with its dashes in the name.
pub(crate) const fn option<O>(
    name: &'static str,
    takes: (Takes, &'static str),
    help: &'static str,
    read: fn(&mut O, &mut OptionOccurrence) -> Result<(), CommandLineRefusal>,
) -> ProgramOption<O> {
    ProgramOption::new(None, name, takes, help, read)
}

/// Options that latscope adds to all of the programs.
#[rustfmt::skip]
impl<O: AsMut<BinderCommonOptions>> ProgramOption<O> {
    pub(crate) const TRANSPORT: ProgramOption<O> = option("--transport", value("NAME"), "ours: what carries the transactions, such as unix-stream",
        |o: &mut O, given| set_field(&mut o.as_mut().transport, Ok(given.value.clone())));
    pub(crate) const LAYOUT: ProgramOption<O> = option("--compat", value("8.0"), "ours: the output of Android 8.0; also LATSCOPE_COMPAT=8.0",
        |o: &mut O, given| set_field(&mut o.as_mut().layout, older(given.value_text(), "--compat")));
    pub(crate) const SAVED: ProgramOption<O> = option("--result", value("FILE"), "ours: save latscope's result too",
        |o: &mut O, given| set_field(&mut o.as_mut().result, given.path()));
    pub(crate) const USAGE: ProgramOption<O> = option("--help", FLAG, "this text", |o: &mut O, _| set_flag(&mut o.as_mut().help));
}

/// Name of the variable that has the effect of `--compat`, for scripts that are not to be edited.
const COMPAT: &str = "LATSCOPE_COMPAT";

fn older(release: &str, option: &str) -> Result<AndroidOutputVersion, CommandLineRefusal> {
    let wrong = || {
        CommandLineRefusal::Usage(format!(
            "{option} {release} is not known: the older layout there is is 8.0"
        ))
    };
    (release == "8.0").then_some(AndroidOutputVersion::Oreo).ok_or_else(wrong)
}

/// Suite of AOSP's tests. The command prints the reason of a refusal after the name of the program.
pub(super) static AOSP: PersonalitySuite = PersonalitySuite {
    grammar: getopt::whole_words,
    prepare: |_| Ok(()),
    usage: |name, _, specs| {
        let options = format_options(specs, Whose::Theirs, "  ", 44);
        format!(
            "Usage: {name} [OPTIONS]\n{options}\
             This is latscope, with the options and the output of AOSP's test.\n"
        )
    },
    answer: |context, error, usage| {
        if error.downcast_ref() != Some(&CommandLineRefusal::Help) {
            return Err(error.context(context.name));
        }
        print_text(&usage);
        Ok(0)
    },
};

/// Returns a program of the suite.
pub(super) const fn define_program<O: AsMut<BinderCommonOptions>>(
    name: &'static str,
    summary: &'static str,
    options: &'static [ProgramOption<O>],
    usual: fn(&PersonalityContext) -> Result<O, CommandLineRefusal>,
    carry_out: fn(&O, &PersonalityContext) -> anyhow::Result<u8>,
) -> PersonalityProgram<O> {
    PersonalityProgram {
        name,
        summary,
        suite: &AOSP,
        form: "",
        options,
        usual,
        settle: resolve_options,
        carry_out,
    }
}

/// Returns the options of a call without arguments: the default values, with the output that the environment names.
///
/// # Errors
/// There is no such output.
pub(super) fn usual<O: AsMut<BinderCommonOptions>>(
    mut options: O,
    context: &PersonalityContext,
) -> Result<O, CommandLineRefusal> {
    if let Some(release) = (context.variable)(COMPAT).filter(|release| !release.is_empty()) {
        options.as_mut().layout = older(&release.to_string_lossy(), COMPAT)?;
    }
    Ok(options)
}

/// Returns the options of a call, unless `--help` is one of them.
///
/// # Errors
/// Help was asked for.
pub(super) fn resolve_options<O: AsMut<BinderCommonOptions>>(
    mut call: ProgramCall<O>,
) -> Result<O, CommandLineRefusal> {
    if call.options.as_mut().help { Err(CommandLineRefusal::Help) } else { Ok(call.options) }
}

/// Parses a number within a range.
///
/// # Errors
/// The value is no number, or is outside of the range.
pub(crate) fn parse_in_range<T>(
    given: &OptionOccurrence,
    range: RangeInclusive<T>,
) -> Result<T, CommandLineRefusal>
where
    T: FromStr + PartialOrd + Display,
{
    let number = given.value_text().parse().ok().filter(|number| range.contains(number));
    let (name, least, most) = (&given.name, range.start(), range.end());
    let wrong = || {
        CommandLineRefusal::Usage(format!(
            "{name} takes a number from {least} to {most}, not {:?}",
            given.value_text()
        ))
    };
    number.ok_or_else(wrong)
}

/// Parses the value of a switch; true without a value.
///
/// # Errors
/// The value means neither true nor false.
pub(crate) fn parse_switch(given: &OptionOccurrence) -> Result<bool, CommandLineRefusal> {
    match given.value.as_deref().unwrap_or("true").to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "y" | "yes" | "on" => Ok(true),
        "0" | "f" | "false" | "n" | "no" | "off" => Ok(false),
        _ => Err(CommandLineRefusal::Usage(format!(
            "{} is true or false, not {:?}",
            given.name,
            given.value_text()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Asked {
        count: u64,
        verbose: bool,
        list: bool,
        out: String,
        common: BinderCommonOptions,
    }

    impl AsMut<BinderCommonOptions> for Asked {
        fn as_mut(&mut self) -> &mut BinderCommonOptions {
            &mut self.common
        }
    }

    static TABLE: &[ProgramOption<Asked>] = &[
        option("-i", value("N"), "", |o, given| set_field(&mut o.count, parse_in_range(given, 1..=5))),
        option("-v", FLAG, "", |o, _| set_flag(&mut o.verbose)),
        option("--list", SWITCH, "", |o, given| set_field(&mut o.list, parse_switch(given))),
        option("--out", value("FILE"), "", |o, given| {
            set_field(&mut o.out, Ok(given.value_text().to_owned()))
        }),
        ProgramOption::TRANSPORT,
        ProgramOption::LAYOUT,
        ProgramOption::USAGE,
    ];

    fn words(line: &str) -> Result<Asked, CommandLineRefusal> {
        let context = PersonalityContext::new(line.split_whitespace());
        resolve_options(getopt::read(TABLE, getopt::whole_words, &context.arguments, Asked::default())?)
    }

    #[test]
    fn values_stand_apart_or_behind_an_equals_sign() {
        let read = words("-i 5 -v --list --out=a=b --transport pipe").unwrap();
        assert_eq!((read.count, read.verbose, read.list, read.out.as_str()), (5, true, true, "a=b"));
        assert_eq!(read.common.transport.as_deref(), Some("pipe"));
        assert!(!words("--list --list=false").unwrap().list);
    }

    #[test]
    fn a_release_is_named_by_an_option_or_a_variable() {
        assert_eq!(older("8.0", COMPAT), Ok(AndroidOutputVersion::Oreo));
        let wrong = older("9", COMPAT).unwrap_err().to_string();
        assert!(wrong.starts_with("LATSCOPE_COMPAT 9 is not known"), "{wrong}");
    }

    #[test]
    fn mistakes_are_named() {
        for (line, said) in [
            ("5", "there is no option \"5\""),
            ("-pair 5", "there is no option \"-pair\""),
            ("-v -i", "-i needs a value: N"),
            ("--help=1", "--help takes no value"),
            ("--compat 9", "--compat 9 is not known"),
            ("-i -1", "-i takes a number from 1 to 5"),
            ("--list=maybe", "--list is true or false"),
        ] {
            assert!(words(line).unwrap_err().to_string().contains(said), "{line}");
        }
    }
}
