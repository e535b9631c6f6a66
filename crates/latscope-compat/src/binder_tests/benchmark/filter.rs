//! The choice of benchmarks by name.

use anyhow::Result;
use regex_lite::Regex;

/// Which benchmarks are run.
#[derive(Debug, Clone)]
pub struct Filter {
    pattern: Regex,
    /// Those that do not match.
    others: bool,
}

impl Filter {
    /// Reads a regular expression, after a `-` for those that do not match; `None` for all.
    ///
    /// # Errors
    /// It is no regular expression.
    pub fn read(text: &str) -> Result<Option<Filter>> {
        if text.is_empty() || text == "all" {
            return Ok(None);
        }
        let (others, pattern) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let pattern = Regex::new(pattern).map_err(|error| {
            anyhow::anyhow!("--benchmark_filter {text:?} is no regular expression: {error}")
        })?;
        Ok(Some(Filter { pattern, others }))
    }

    /// Whether a benchmark is to run.
    pub fn takes(&self, name: &str) -> bool {
        self.pattern.is_match(name) != self.others
    }
}
