//! Placement of pictures in a page.

use crate::figure::{self, Named, drawn};
use crate::markup::{Element, element};
use latscope_core::catalogue::Catalogue;
use latscope_core::events::Group;
use latscope_core::report::Report;

/// The pictures of a family as a whole.
pub(super) fn pictures(report: &Report, family: &str, catalogue: &Catalogue) -> Vec<Element> {
    framed(&figure::of_family(report, family, catalogue))
}

/// The pictures of the events of a probe.
pub(super) fn of_events(report: &Report, group: &Group) -> Vec<Element> {
    framed(&figure::of_events(report, group))
}

fn framed(pictures: &[Named]) -> Vec<Element> {
    pictures.iter().map(|picture| element("figure").child(drawn(&picture.drawing))).collect()
}
