//! Histories of machines: as text, Markdown, CSV and a page.

mod csv;
mod html;
mod markdown;
mod text;
mod words;

pub use csv::csv;
pub use html::html;
pub use markdown::markdown;
pub use text::text;

#[cfg(test)]
pub(crate) mod tests;
