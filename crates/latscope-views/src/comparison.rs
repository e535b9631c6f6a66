//! Two sides of results beside each other: as text, Markdown and CSV.

mod csv;
pub(crate) mod figures;
mod head;
mod markdown;
mod text;

pub use csv::csv;
pub(crate) use head::difference;
pub use markdown::markdown;
pub use text::text;

#[cfg(test)]
mod tests;
