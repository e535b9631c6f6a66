//! Skeleton of a page: a whole document, and elements that every page has.

use crate::markup::{Element, element};

pub(super) const STYLE: &str = include_str!("html/style.css");

/// Script that adds controls; the page is complete without it.
pub(super) const SCRIPT: &str = include_str!("html/script.js");

/// Content security policy of a page: it loads nothing and runs no script but its own.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'sha256-gRXO7SwfBPfpWotmfsrTONE8DNjulbGzVQ+qaEIuU6M='";

/// Returns a whole HTML document.
pub(super) fn html_document(title: &str, body: impl IntoIterator<Item = Element>) -> String {
    let head = element("head")
        .child(element("meta").with_attr("charset", "utf-8"))
        .child(
            element("meta").with_attr("http-equiv", "Content-Security-Policy").with_attr("content", POLICY),
        )
        .child(
            element("meta")
                .with_attr("name", "viewport")
                .with_attr("content", "width=device-width, initial-scale=1"),
        )
        .child(element("title").with_text(title))
        .child(element("style").constant(STYLE))
        .child(element("script").constant(SCRIPT));
    let page =
        element("html").with_attr("lang", "en").child(head).child(element("body").children(body)).to_markup();
    format!("<!DOCTYPE html>\n{page}\n")
}

/// A list of texts; `None` without any.
pub(super) fn list(texts: impl IntoIterator<Item = String>) -> Option<Element> {
    let items: Vec<Element> = texts.into_iter().map(|text| element("li").with_text(text)).collect();
    (!items.is_empty()).then(|| element("ul").children(items))
}

/// Returns an element that shows `content` when a reader opens it, without script, too.
pub(super) fn details_element(summary: &str, content: Element) -> Element {
    element("details").child(element("summary").with_text(summary)).child(content)
}
