//! Selection of benchmarks by name.

use anyhow::Result;
use regex_lite::Regex;

/// Condition for running a benchmark.
#[derive(Debug, Clone)]
pub struct BenchmarkFilter {
    pattern: Regex,
    /// True if the benchmarks that do not match are run.
    others: bool,
}

impl BenchmarkFilter {
    /// Reads a regular expression. A `-` before it selects the benchmarks that do not match. Returns `None` if all are
    /// selected.
    ///
    /// # Errors
    /// The text is no regular expression.
    pub fn parse_filter(text: &str) -> Result<Option<BenchmarkFilter>> {
        if text.is_empty() || text == "all" {
            return Ok(None);
        }
        let (others, pattern) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let pattern = Regex::new(pattern).map_err(|error| {
            anyhow::anyhow!("--benchmark_filter {text:?} is no regular expression: {error}")
        })?;
        Ok(Some(BenchmarkFilter { pattern, others }))
    }

    /// Returns true if a benchmark of this name is to run.
    pub fn selects_name(&self, name: &str) -> bool {
        self.pattern.is_match(name) != self.others
    }
}
