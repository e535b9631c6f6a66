//! JSON of rt-tests, which has keys with colons inside them and hand-made indentation. Existing readers depend on both.

use super::options::RtTestsCommonOptions;
use crate::context::PersonalityContext;
use latscope_core::redact::REDACTED;
use latscope_engine::saver;
use latscope_process::eprintln;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::SystemTime;

/// Common beginning of the JSON files of cyclictest, oslat and cyclicdeadline.
#[derive(Debug, Clone)]
pub struct RtTestsJsonHeader {
    /// Command line of the run.
    pub command: String,
    /// Release of rt-tests whose form the file has.
    pub version: &'static str,
    /// Time at which the run began.
    pub started: SystemTime,
    /// Time at which the run ended.
    pub ended: SystemTime,
    /// `sysname`, `nodename`, `release`, `version` and `machine`, as of uname(2).
    pub system: [(&'static str, String); 5],
    /// Content of /sys/kernel/realtime; 0 if there is none.
    pub realtime: u32,
}

impl RtTestsJsonHeader {
    /// Returns the head for a run on this machine that ends now.
    pub fn for_finished_run(
        name: &str,
        arguments: &[OsString],
        version: &'static str,
        started: SystemTime,
    ) -> RtTestsJsonHeader {
        let uname = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let realtime = std::fs::read_to_string("/sys/kernel/realtime").unwrap_or_default();
        let words = arguments.iter().map(|word| word.to_string_lossy());
        let command = std::iter::once(name.into()).chain(words);
        RtTestsJsonHeader {
            command: command.collect::<Vec<Cow<str>>>().join(" "),
            version,
            started,
            ended: SystemTime::now(),
            system: [
                ("sysname", text(uname.sysname())),
                ("nodename", text(uname.nodename())),
                ("release", text(uname.release())),
                ("version", text(uname.version())),
                ("machine", text(uname.machine())),
            ],
            realtime: realtime.trim().parse().unwrap_or(0),
        }
    }

    /// Returns the head without the host's name and the words of the command line.
    fn redact_identity(mut self) -> RtTestsJsonHeader {
        self.command = self.command.split(' ').take(1).chain([REDACTED]).collect::<Vec<_>>().join(" ");
        for (key, value) in &mut self.system {
            if *key == "nodename" {
                REDACTED.clone_into(value);
            }
        }
        self
    }

    /// The whole file; `rest` is what follows, with its indentation and without the last brace.
    pub fn format_file(&self, rest: &str) -> String {
        let mut text = String::from("{\n  \"file_version\": 1,\n");
        let mut put = |key: &str, value: &str| {
            let _ = writeln!(text, "  \"{key}\": {},", quote_json(value));
        };
        put("cmdline:", &self.command);
        put("rt_test_version:", self.version);
        put("start_time", &rfc2822(self.started));
        put("end_time", &rfc2822(self.ended));
        text.push_str("  \"return_code\": 0,\n  \"sysinfo\": {\n");
        for (key, value) in &self.system {
            let _ = writeln!(text, "    \"{key}\": {},", quote_json(value));
        }
        let _ = writeln!(text, "    \"realtime\": {}\n  }},", self.realtime);
        text + rest + "}\n"
    }
}

/// Quotes and escapes a text. rt-tests does not escape, so its files may be invalid JSON.
pub(crate) fn quote_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A histogram's counts by value, leaving out zeros.
pub fn format_counts(values: impl Iterator<Item = (u64, u64)>) -> String {
    let rows: Vec<String> = values
        .filter(|(_, count)| *count > 0)
        .map(|(value, count)| format!("        \"{value}\": {count}"))
        .collect();
    match rows.is_empty() {
        // As it is printed: the closing brace is indented, on the same line.
        true => "{      }".to_owned(),
        false => format!("{{\n{}\n      }}", rows.join(",\n")),
    }
}

/// Checks that the JSON of the end can be written, before anything is measured. Returns the exit code if it cannot.
pub(super) fn check_writable(common: &RtTestsCommonOptions) -> Option<u8> {
    let path = common.json.as_ref().filter(|path| path.as_os_str() != "-")?;
    let error = saver::check_in_place(path).err()?;
    eprintln!("Failed to open '{}': {error}", path.display());
    Some(write_failure_code(common))
}

/// Exit code if the JSON cannot be written: the original's, or with `--strict-exit` latscope's, where 2 is a verdict.
pub(super) fn write_failure_code(common: &RtTestsCommonOptions) -> u8 {
    if common.strict_exit { 1 } else { 2 }
}

/// Writes the JSON of a run that ends now, if `--json` asks for it. Returns false if writing failed.
pub(super) fn write_run(
    context: &PersonalityContext,
    common: &RtTestsCommonOptions,
    started: SystemTime,
    rest: impl FnOnce() -> String,
) -> bool {
    let Some(path) = &common.json else { return true };
    let head = RtTestsJsonHeader::for_finished_run(
        context.name,
        &context.arguments,
        common.release.printed(),
        started,
    );
    let head = if context.redact { head.redact_identity() } else { head };
    let written = write_text(path, &head.format_file(&rest()));
    written.map_err(|error| eprintln!("Failed to open '{}': {error}", path.display())).is_ok()
}

/// Writes to a file, or to stdout for `-`.
///
/// # Errors
/// The file cannot be written.
fn write_text(path: &Path, text: &str) -> std::io::Result<()> {
    match path.as_os_str() == "-" {
        true => {
            // What cannot be written there is reported in the end.
            latscope_process::stdout::print_text(text);
            Ok(())
        }
        false => saver::write_in_place(path, text.as_bytes()),
    }
}

/// `Sat, 21 Nov 2026 07:02:44 +0000`: always UTC.
fn rfc2822(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let date =
        humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    let date = date.to_string();
    let month: usize = date[5..7].parse().unwrap_or(1);
    format!(
        "{}, {} {} {} {} +0000",
        DAYS[(seconds / 86_400 % 7) as usize],
        &date[8..10],
        MONTHS[month - 1],
        &date[..4],
        &date[11..19]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_mails() {
        let at = |seconds| rfc2822(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(at(1_795_244_564), "Sat, 21 Nov 2026 07:02:44 +0000");
    }

    #[test]
    fn the_file_is_json_whatever_the_command_line_holds() {
        let head = RtTestsJsonHeader::for_finished_run(
            "cyclictest",
            &["--json=a\"b\\".into()],
            "2.40",
            SystemTime::UNIX_EPOCH,
        );
        let file = head.format_file("  \"num_threads\": 1\n");
        let json: serde_json::Value = serde_json::from_str(&file).unwrap();
        assert_eq!(json["cmdline:"], "cyclictest --json=a\"b\\");
        assert_eq!((&json["file_version"], &json["return_code"]), (&1.into(), &0.into()));
        assert_eq!(json["sysinfo"]["sysname"], "Linux");
    }

    #[test]
    fn a_redacted_head_names_neither_the_host_nor_the_files() {
        let words = ["--json=/home/ann/x.json".into()];
        let mut head =
            RtTestsJsonHeader::for_finished_run("cyclictest", &words, "2.40", SystemTime::UNIX_EPOCH);
        head.system[1].1 = "thor".to_owned();
        let file = head.redact_identity().format_file("  \"num_threads\": 1\n");
        assert!(!file.contains("thor") && !file.contains("ann"), "{file}");
        let json: serde_json::Value = serde_json::from_str(&file).unwrap();
        assert_eq!(json["cmdline:"], "cyclictest (redacted)");
        assert_eq!(json["sysinfo"]["nodename"], "(redacted)");
    }

    #[test]
    fn counts_of_nothing_are_an_odd_brace() {
        assert_eq!(format_counts([(1, 0)].into_iter()), "{      }");
        assert_eq!(format_counts([(1, 0), (7, 2)].into_iter()), "{\n        \"7\": 2\n      }");
    }
}
