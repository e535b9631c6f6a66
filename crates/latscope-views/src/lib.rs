//! The ways to show a report: pure functions of it, each in its own file.
//!
//! A view is a `document` of headings, texts, tables and figures, which has a writer for each form: terminal,
//! Markdown, page and CSV. [`rows`] holds the rows of a survey, [`table`] its table. [`text`] shows a family in full,
//! [`groups`] a family whose every event was timed.
#![forbid(unsafe_code)]

mod bar;
#[cfg(test)]
mod beyond_last_bin;
pub mod blame;
mod cells;
mod column;
pub mod comparison;
pub mod csv;
mod devices;
mod distortions;
pub mod doctor;
mod document;
pub mod figure;
mod footnotes;
pub mod gate;
#[cfg(test)]
mod golden;
mod grid;
pub mod groups;
mod head;
mod headline;
pub mod history;
pub mod html;
pub mod lava;
mod legend;
mod machine_state;
pub mod markdown;
mod markup;
mod matrix;
pub mod openmetrics;
pub mod overview;
mod page;
pub mod published;
pub mod references;
pub mod rows;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
mod style;
mod styled;
pub mod survey;
pub mod table;
pub mod text;
pub mod trial;
mod unmeasured;
mod verdicts;

pub use distortions::distortion_lines;
pub use head::measured_part;
pub use verdicts::unmet;

use latscope_core::catalogue::ProbeCatalogue;

/// Options for the display of a report on a terminal.
#[derive(Debug, Clone, Copy)]
pub struct DisplayOptions<'a> {
    /// Columns of the terminal; no line is longer.
    pub width: usize,
    /// True if the text has colour and weight.
    pub color: bool,
    /// Order of the rows.
    pub sort: Sort,
    /// Facts on the probes.
    pub catalogue: &'a ProbeCatalogue,
}

static NO_PROBES: ProbeCatalogue = ProbeCatalogue { families: Vec::new(), probes: Vec::new() };

impl Default for DisplayOptions<'_> {
    /// Returns 80 columns, no colour, units of time, order by value, and no facts on probes.
    fn default() -> Self {
        DisplayOptions { width: 80, color: false, sort: Sort::Value, catalogue: &NO_PROBES }
    }
}

/// Order of the rows in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Order from the fastest to the slowest.
    #[default]
    Value,
    /// Order by family, as the families were planned, and in each from the fastest to the slowest.
    Family,
}
