//! Number formats of LMbench, and the page that they are written to.
//!
//! Results go to standard error, as from LMbench. Only text that LMbench's own scripts take by command substitution
//! (`mhz`) goes to standard output.

use crate::environment::remedy_text;
use latscope_core::report::Measurement;

/// Text of a personality, with the points that it could not print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LmbenchPage {
    /// Text for standard output.
    pub stdout: String,
    /// Text for standard error.
    pub stderr: String,
    /// Points that have no number.
    pub missing: Vec<NotMeasured>,
    /// Reasons for doubting numbers, each reason once.
    pub notes: Vec<String>,
}

/// Point that has no number, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{query}: not measured: {reason}")]
pub struct NotMeasured {
    /// Description of the point.
    pub query: String,
    /// Reason for the lack, and its remedy.
    pub reason: String,
}

impl LmbenchPage {
    /// Adds text for standard error.
    pub fn add_text(&mut self, text: &str) {
        self.stderr += text;
    }

    /// Adds a line for standard error, or records the point without a number.
    pub fn add_line(&mut self, line: Result<String, NotMeasured>) {
        match line {
            Ok(line) => {
                self.stderr += &line;
                self.stderr.push('\n');
            }
            Err(missing) => self.missing.push(missing),
        }
    }

    /// Records the reasons for which measurements are degraded, each reason once.
    pub(crate) fn degraded<'a>(&mut self, measurements: impl Iterator<Item = &'a Measurement>) {
        for measurement in measurements {
            let reason = measurement.joined_reasons().unwrap_or_else(|| "no reason given".to_owned());
            let mut note = format!("degraded: {reason}");
            if let Some(remedy) = remedy_text(measurement) {
                note += &format!("; {remedy}");
            }
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Output of the program. Failures come last in standard error, each as a line that begins with `latscope:`.
    pub fn output(&self, name: &str) -> LmbenchOutput {
        let mut stderr = self.stderr.clone();
        // A whole curve is missing for one reason: that is one line.
        for group in self.missing.chunk_by(|a, b| a.reason == b.reason) {
            let more = if group.len() > 1 { format!(" and {} more", group.len() - 1) } else { String::new() };
            let NotMeasured { query, reason } = &group[0];
            stderr += &format!("latscope: {name}: {query}{more}: not measured: {reason}\n");
        }
        let exit_code = u8::from(!self.missing.is_empty());
        LmbenchOutput { stdout: self.stdout.clone(), stderr, notes: self.notes.clone(), exit_code }
    }
}

/// Output of a program at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LmbenchOutput {
    /// Text on standard output.
    pub stdout: String,
    /// Text on standard error.
    pub stderr: String,
    /// Notes, which belong to neither text.
    pub notes: Vec<String>,
    /// Exit code of the program.
    pub exit_code: u8,
}

/// Line `Simple read: 0.2135 microseconds`, from a time in ns.
pub fn microseconds(label: &str, ns: f64) -> String {
    format!("{label}: {:.4} microseconds", ns / 1e3)
}

/// Line `integer add: 0.31 nanoseconds`, from a time in ns.
pub fn nanoseconds(label: &str, ns: f64) -> String {
    format!("{label}: {ns:.2} nanoseconds")
}

/// Line `Pipe bandwidth: 3538.24 MB/sec`, with 10^6 bytes to a MB.
pub(crate) fn megabytes_per_second(label: &str, bytes_per_second: f64) -> String {
    format!("{label}: {:.2} MB/sec", bytes_per_second / 1e6)
}

/// Line `8.39 17941.80`: size and rate in 10^6 bytes. A value below 1 has six digits after the point.
pub fn bandwidth(size: u64, bytes_per_second: f64) -> String {
    let column = |value: f64| if value < 1.0 { format!("{value:.6}") } else { format!("{value:.2}") };
    format!("{} {}", column(size as f64 / 1e6), column(bytes_per_second / 1e6))
}

/// Line `0.524288 9.824` or `1.048576 16`: size in 10^6 bytes, then µs, with a fraction below ten.
pub(crate) fn size_and_microseconds(size: u64, ns: f64) -> String {
    let microseconds = ns / 1e3;
    let digits = if microseconds < 10.0 { 3 } else { 0 };
    format!("{:.6} {microseconds:.digits$}", size as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_lmbench_prints_them() {
        assert_eq!(microseconds("Simple read", 213.5), "Simple read: 0.2135 microseconds");
        assert_eq!(nanoseconds("integer add", 0.306), "integer add: 0.31 nanoseconds");
        assert_eq!(megabytes_per_second("Pipe bandwidth", 3538.24e6), "Pipe bandwidth: 3538.24 MB/sec");
    }

    #[test]
    fn bandwidth_columns_switch_format_at_one_megabyte() {
        assert_eq!(bandwidth(512, 671.66e6), "0.000512 671.66");
        assert_eq!(bandwidth(524_288, 476_628.0), "0.524288 0.476628");
        assert_eq!(bandwidth(1 << 20, 17_652.11e6), "1.05 17652.11");
        assert_eq!(bandwidth(8 << 20, 17_941.8e6), "8.39 17941.80");
    }

    #[test]
    fn points_missing_for_one_reason_share_a_line() {
        let missing = |query: &str, reason: &str| NotMeasured { query: query.into(), reason: reason.into() };
        let page = LmbenchPage {
            missing: vec![missing("a", "x"), missing("b", "x"), missing("c", "y")],
            ..LmbenchPage::default()
        };
        let output = page.output("tlb");
        assert_eq!(output.exit_code, 1);
        assert_eq!(
            output.stderr,
            "latscope: tlb: a and 1 more: not measured: x\nlatscope: tlb: c: not measured: y\n"
        );
    }

    #[test]
    fn mappings_have_a_fraction_below_ten_microseconds() {
        assert_eq!(size_and_microseconds(512 << 10, 9_824.0), "0.524288 9.824");
        assert_eq!(size_and_microseconds(1 << 20, 16_000.0), "1.048576 16");
    }
}
