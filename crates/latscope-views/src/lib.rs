//! The ways to show a report: pure functions of it, each in its own file.
//!
//! [`rows`] holds the rows that all tables share. [`table`] and [`survey`] are for a terminal. [`text`] shows a
//! family in full, [`groups`] a family whose every event was timed. [`markdown`] is for issues, [`html`] for a page
//! to pass on, and [`csv`] for programs.
#![forbid(unsafe_code)]

mod bar;
pub mod blame;
mod cells;
pub mod comparison;
pub mod csv;
mod devices;
pub mod doctor;
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
pub mod human;
mod legend;
mod machine_state;
pub mod markdown;
mod markup;
mod matrix;
pub mod overview;
pub mod published;
pub mod references;
pub mod rows;
#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;
mod style;
pub mod survey;
pub mod table;
pub mod text;
pub mod trial;
mod unmeasured;
mod verdicts;

pub use head::unfinished;

/// Options for the display of a report on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; no line is longer.
    pub width: usize,
    /// True if the text has colour and weight.
    pub color: bool,
    /// Scale of the durations shown.
    pub scale: Scale,
    /// Order of the rows.
    pub sort: Sort,
}

impl Default for Options {
    /// Returns 80 columns, no colour, units of time, order by value.
    fn default() -> Self {
        Options { width: 80, color: false, scale: Scale::Time, sort: Sort::Value }
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

/// Scale of the durations shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    /// Units of time: ns, µs, ms, s.
    #[default]
    Time,
    /// Durations as if a hit in the L1 cache took a second.
    Human,
}
