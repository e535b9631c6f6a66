//! Elements of HTML and SVG, written as well-formed XML that is HTML as well. Text and attributes are escaped here and
//! nowhere else; names of elements and attributes are constants, so that nothing from a result is ever markup.

use std::fmt::Display;

/// Element with its attributes and its content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Element(Element),
    Text(String),
    /// Style or script of latscope, written as it is.
    Constant(&'static str),
}

/// Elements that HTML closes at once and that have no content.
const VOID: [&str; 8] = ["meta", "br", "col", "rect", "line", "path", "circle", "hr"];

/// An element without attributes and content.
pub(crate) fn element(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), content: Vec::new() }
}

impl Element {
    /// Returns the element with an attribute added.
    pub fn with_attr(mut self, name: &'static str, value: impl Display) -> Element {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// Returns the element with a text after its content.
    pub fn with_text(mut self, text: impl Into<String>) -> Element {
        self.content.push(Node::Text(text.into()));
        self
    }

    /// Returns the element with a child after its content.
    pub fn child(mut self, child: Element) -> Element {
        self.content.push(Node::Element(child));
        self
    }

    /// Returns the element with children after its content.
    pub fn children(mut self, children: impl IntoIterator<Item = Element>) -> Element {
        self.content.extend(children.into_iter().map(Node::Element));
        self
    }

    /// Returns the element with a constant after its content that is markup, style or script already.
    pub fn constant(mut self, text: &'static str) -> Element {
        self.content.push(Node::Constant(text));
        self
    }

    /// The element as text.
    pub fn to_markup(&self) -> String {
        let mut out = String::new();
        self.write_markup(&mut out);
        out
    }

    /// Appends the markup of the element to `out`.
    pub fn write_markup(&self, out: &mut String) {
        *out += "<";
        *out += self.name;
        for (name, value) in &self.attributes {
            *out += " ";
            *out += name;
            *out += "=\"";
            escape(value, out);
            *out += "\"";
        }
        if VOID.contains(&self.name) && self.content.is_empty() {
            *out += "/>";
            return;
        }
        *out += ">";
        for node in &self.content {
            match node {
                Node::Element(element) => element.write_markup(out),
                Node::Text(text) => escape(text, out),
                Node::Constant(text) => *out += text,
            }
        }
        *out += "</";
        *out += self.name;
        *out += ">";
    }
}

/// Appends a text that stands for itself, in an element as in an attribute. Characters that XML does not allow,
/// or that turn the direction of writing, become a replacement character.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => *out += "&lt;",
            '>' => *out += "&gt;",
            '&' => *out += "&amp;",
            '"' => *out += "&quot;",
            '\'' => *out += "&#39;",
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_forbidden(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

fn is_forbidden(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') || c as u32 & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_and_attributes_are_never_markup() {
        let odd = "<script>alert(1)</script>\"&'\u{0}\u{202e}";
        let text = element("p").with_attr("title", odd).with_text(odd).to_markup();
        let safe = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;&#39;\u{fffd}\u{fffd}";
        assert_eq!(text, format!("<p title=\"{safe}\">{safe}</p>"));
    }

    #[test]
    fn what_has_no_content_is_closed_as_html_does() {
        let text = element("p").child(element("br")).child(element("b")).to_markup();
        assert_eq!(text, "<p><br/><b></b></p>");
    }

    proptest! {
        #[test]
        fn no_text_opens_an_element(text in any::<String>()) {
            let written = element("p").with_attr("title", &text).with_text(text).to_markup();
            prop_assert_eq!(written.matches('<').count(), 2);
            prop_assert_eq!(written.matches('"').count(), 2);
        }
    }
}
