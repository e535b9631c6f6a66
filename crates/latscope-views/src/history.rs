//! Histories of machines: as text, Markdown and CSV.

mod csv;
mod markdown;
mod text;
mod words;

pub use csv::csv;
pub use markdown::markdown;
pub use text::text;

#[cfg(test)]
mod tests;
