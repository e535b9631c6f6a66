//! Two sides of results beside each other: as text, Markdown, CSV and a page.

mod csv;
pub(crate) mod figures;
mod head;
mod html;
mod markdown;
mod text;

pub use csv::csv;
pub(crate) use head::difference;
#[cfg(test)]
pub(crate) use html::by_percentile;
pub use html::html;
pub(crate) use html::{body, sides};
pub use markdown::markdown;
pub use text::text;

#[cfg(test)]
pub(crate) mod tests;
