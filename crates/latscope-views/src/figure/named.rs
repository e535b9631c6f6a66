//! Names of pictures, which are those of their files.

use super::Drawing;

/// A picture with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedDrawing {
    /// Name that a file can have, of letters a to z, digits and hyphens: `memory-latency`.
    pub id: String,
    /// Content of the picture.
    pub drawing: Drawing,
}

impl NamedDrawing {
    /// Makes a picture whose name begins with that of its family.
    pub(super) fn new(family: &str, id: &str, drawing: Drawing) -> NamedDrawing {
        let id = if id.starts_with(family) { id.to_owned() } else { format!("{family}-{id}") };
        let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        NamedDrawing { id: id.chars().map(safe).collect(), drawing }
    }
}
