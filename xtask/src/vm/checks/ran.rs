//! Outcome of a command in the VM.

use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use std::fs;
use std::path::{Path, PathBuf};

/// Outcome of a command in the VM.
pub struct Ran {
    /// Exit status of the command.
    pub status: i32,
    /// Text that the command wrote to its standard output.
    pub stdout: String,
    /// Text that the command wrote to its standard error.
    pub stderr: String,
    /// Directory of the files that the command left.
    pub files: PathBuf,
}

impl Ran {
    /// Reads the outcome from the files of the VM.
    pub fn read_outcome(dir: &Path) -> Result<Ran> {
        let read = |name| fs::read(dir.join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let status = read("status")?.trim().parse()?;
        Ok(Ran { status, stdout: read("stdout")?, stderr: read("stderr")?, files: dir.join("files") })
    }

    /// Text on standard output, then that on standard error.
    pub fn output_text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Checks that the standard output contains this text.
    pub fn check_stdout(&self, text: &str) -> Result<()> {
        ensure!(self.stdout.contains(text), "no {text:?} in: {}", self.output_text());
        Ok(())
    }

    /// Checks that the standard error contains this text.
    pub fn complains(&self, text: &str) -> Result<()> {
        ensure!(self.stderr.contains(text), "no {text:?} on its standard error: {}", self.output_text());
        Ok(())
    }

    /// Checks that the standard output is exactly this line.
    pub fn prints(&self, line: &str) -> Result<()> {
        ensure!(self.stdout.trim_end() == line, "not {line:?}: {}", self.output_text());
        Ok(())
    }

    /// Returns the result that the command wrote to its standard output (`--json -`). Checks that the result is
    /// complete, and
    /// that everything measured is marked as emulated.
    pub fn parse_report(&self) -> Result<Report> {
        let report = Report::from_json(self.stdout.as_bytes()).with_context(|| self.output_text())?;
        ensure!(report.finished.is_some(), "the result is incomplete: {:?}", report.warnings);
        for measurement in report.measurements.iter().filter(|measurement| measurement.summary.count > 0) {
            let reason = measurement.joined_reasons().unwrap_or_default();
            ensure!(
                reason.contains("emulated"),
                "{} is not marked: {reason:?} {:?} {:?}",
                measurement.probe,
                measurement.params,
                measurement.summary
            );
        }
        Ok(report)
    }

    /// Checks that every point of a probe was measured, according to the result on standard output, and that nothing
    /// but the
    /// emulator distorted it.
    pub fn check_measured(&self, probe: &str) -> Result<()> {
        let report = self.parse_report()?;
        ensure!(report.of_probe(probe).next().is_some(), "no {probe} in the result");
        for point in report.of_probe(probe) {
            ensure!(point.summary.count > 0, "{probe} was not measured: {:?}", point.joined_reasons());
            let reason = point.joined_reasons().unwrap_or_default();
            ensure!(reason.starts_with("emulated"), "{probe} is distorted: {reason}");
        }
        Ok(())
    }
}
