//! The ways to show a report: pure functions of it, each in its own file.
//!
//! What all tables share is in [`rows`]; [`table`] and [`survey`] are for a
//! terminal, [`text`] shows one family in full, [`groups`] one whose every event
//! was timed, [`markdown`] is for issues, [`html`] a page to pass on,
//! [`csv`] for programs.
#![forbid(unsafe_code)]

mod bar;
pub mod blame;
mod cells;
pub mod comparison;
pub mod csv;
pub mod devices;
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

/// How to show a report on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; no line is longer.
    pub width: usize,
    /// Whether to use colour and weight.
    pub color: bool,
    /// In what durations are shown.
    pub scale: Scale,
    /// In which order rows stand.
    pub sort: Sort,
}

impl Default for Options {
    /// 80 columns, no colour, units of time, by value.
    fn default() -> Self {
        Options { width: 80, color: false, scale: Scale::Time, sort: Sort::Value }
    }
}

/// In which order the rows of a table stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// From the fastest to the slowest.
    #[default]
    Value,
    /// Family by family, as they were planned, and in each from the fastest to the slowest.
    Family,
}

/// In what durations are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    /// ns, µs, ms, s.
    #[default]
    Time,
    /// As if a hit in the L1 cache took a second.
    Human,
}
