//! A report as one HTML page that can be passed on: no file beside it, nothing loaded from elsewhere. It is readable
//! without script and style, as tables and drawings with presentation attributes; both only add to it.

mod published;
mod report;
mod section;
mod strip;
mod summary;

pub use report::report_page;
pub(crate) use strip::{draw_ratio as ratio_strip, ratio_legend};

#[cfg(test)]
mod tests;
