//! Placement of pictures in a page.

use crate::figure::{Named, drawn};
use crate::markup::{Element, element};

/// Returns the pictures as parts of a page.
pub(super) fn pictures(all: &[Named]) -> Vec<Element> {
    all.iter().map(|picture| element("figure").child(drawn(&picture.drawing))).collect()
}
