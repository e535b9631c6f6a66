//! A report as one HTML page that can be passed on: no file beside it, nothing loaded from elsewhere. It is readable
//! without script and style, as tables and drawings with presentation attributes; both only add to it.

mod events;
mod pictures;
mod published;
mod report;
mod section;
mod strip;
mod summary;
mod table;

pub use report::report;
pub(crate) use strip::{ratio as ratio_strip, ratio_legend};
pub(crate) use table::{cell, table};

use crate::markup::{Element, element};
use latscope_core::report::Measurement;

/// Function that returns what exactly the probe of a point times; `None` if it is not known, as for another
/// revision.
pub type Timed<'a> = &'a dyn Fn(&Measurement) -> Option<&'static str>;

const STYLE: &str = include_str!("html/style.css");

/// Script that adds controls; the page is complete without it.
const SCRIPT: &str = include_str!("html/script.js");

/// Content security policy of a page: it loads nothing and runs no script but its own.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'sha256-gRXO7SwfBPfpWotmfsrTONE8DNjulbGzVQ+qaEIuU6M='";

/// Returns a whole HTML document.
pub(crate) fn document(title: &str, body: impl IntoIterator<Item = Element>) -> String {
    let head = element("head")
        .child(element("meta").with("charset", "utf-8"))
        .child(element("meta").with("http-equiv", "Content-Security-Policy").with("content", POLICY))
        .child(
            element("meta").with("name", "viewport").with("content", "width=device-width, initial-scale=1"),
        )
        .child(element("title").text(title))
        .child(element("style").constant(STYLE))
        .child(element("script").constant(SCRIPT));
    let page = element("html").with("lang", "en").child(head).child(element("body").children(body)).written();
    format!("<!DOCTYPE html>\n{page}\n")
}

/// A list of texts; `None` without any.
pub(crate) fn list(texts: impl IntoIterator<Item = String>) -> Option<Element> {
    let items: Vec<Element> = texts.into_iter().map(|text| element("li").text(text)).collect();
    (!items.is_empty()).then(|| element("ul").children(items))
}

/// Returns an element that shows `content` when a reader opens it, without script, too.
pub(crate) fn details(summary: &str, content: Element) -> Element {
    element("details").child(element("summary").text(summary)).child(content)
}

#[cfg(test)]
mod tests;
