//! The kernel's description of the layout of its trace (Documentation/trace/events.rst, "Event formats").

use std::ops::Range;

/// Texts in which the kernel describes its trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFormatCatalogue {
    /// Content of the file `events/header_page`.
    pub header_page: String,
    /// Content of the file `events/header_event`.
    pub header_event: String,
    /// System and text of the `format` file of each event.
    pub events: Vec<(String, String)>,
}

impl TraceFormatCatalogue {
    /// Returns the bytes of a page of the ring buffer: the begin of its data, plus the size of the data.
    pub fn page_size(&self) -> Option<usize> {
        let data = self.header_field("data")?;
        data.offset.checked_add(data.size).filter(|size| (64..=1 << 20).contains(size))
    }

    /// Returns the place of the word with the length of a page, bytes.
    pub(super) fn commit(&self) -> Option<Range<usize>> {
        let commit = self.header_field("commit")?;
        Some(commit.offset..commit.offset.checked_add(commit.size)?)
    }

    /// Returns the offset of the events in a page, bytes.
    pub(super) fn data(&self) -> Option<usize> {
        self.header_field("data").map(|data| data.offset)
    }

    fn header_field(&self, name: &str) -> Option<Field> {
        self.header_page.lines().filter_map(Field::parse).find(|field| field.name == name)
    }
}

/// Parsed `format` file of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEventFormat {
    /// The name of the event.
    pub name: String,
    /// Number of the event, with which every event of this kind begins.
    pub id: u16,
    /// Fields of the event.
    pub fields: Vec<Field>,
    /// Print format of the kernel: a format string and its arguments, in C.
    pub print: String,
}

/// A field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Offset from the begin of the event, bytes.
    pub offset: usize,
    /// Size in bytes; 0 if the field goes on to the end of the event.
    pub size: usize,
    /// True if the number is signed.
    pub signed: bool,
    /// True if the field only holds the place of the data in the event.
    pub elsewhere: bool,
    /// True if the field is an array of characters.
    pub text: bool,
    /// True if the field is an address.
    pub pointer: bool,
}

impl TraceEventFormat {
    /// Parses a `format` file; `None` if the text has another form.
    pub fn parse(text: &str) -> Option<TraceEventFormat> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        Some(TraceEventFormat {
            name: value("name:")?.to_owned(),
            id: value("ID:")?.parse().ok()?,
            fields: text.lines().filter_map(Field::parse).collect(),
            print: value("print fmt:").unwrap_or_default().to_owned(),
        })
    }

    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Reads `field:TYPE NAME[LENGTH]; offset:8; size:16; signed:0;`.
    fn parse(line: &str) -> Option<Field> {
        let mut parts = line.trim().split(';').map(str::trim);
        let declaration = parts.next()?.strip_prefix("field:")?.trim();
        let mut number = |key: &str| -> Option<usize> { parts.next()?.strip_prefix(key)?.parse().ok() };
        let (offset, size) = (number("offset:")?, number("size:")?);
        let signed = number("signed:").unwrap_or(0) != 0;
        let name = declaration.rsplit([' ', '\t', '*']).next()?;
        let name = name.split('[').next()?.to_owned();
        let elsewhere = declaration.starts_with("__data_loc");
        let text = declaration.contains("char") && declaration.contains('[');
        let pointer = declaration.contains('*');
        Some(Field { name, offset, size, signed, elsewhere, text, pointer })
    }

    /// The number in this field of an event.
    pub fn number(&self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut word = [0u8; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let value = u64::from_le_bytes(word);
        let unused = 64 - 8 * bytes.len() as u32;
        match (unused, self.signed) {
            (64, _) => None,
            (0, _) | (_, false) => Some(value),
            _ => Some((((value << unused) as i64) >> unused) as u64),
        }
    }

    /// The text in this field of an event, up to its first NUL.
    pub fn text<'a>(&self, event: &'a [u8]) -> Option<&'a [u8]> {
        let range = match (self.elsewhere, self.size) {
            (true, _) => {
                // The lower half says where, the upper half how long.
                let at = self.number(event)?;
                let offset = (at & 0xffff) as usize;
                offset..offset.checked_add((at >> 16 & 0xffff) as usize)?
            }
            (false, 0) => self.offset..event.len(),
            (false, size) => self.offset..self.offset.checked_add(size)?,
        };
        let bytes = event.get(range)?;
        Some(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: x\nID: 372\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:void * timer;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\
        \tfield:char buf[];\toffset:36;\tsize:0;\tsigned:0;\n\n\
        print fmt: \"field:int no;\"\n";

    #[test]
    fn a_format_is_read_with_all_kinds_of_fields() {
        let format = TraceEventFormat::parse(SWITCH).unwrap();
        let names: Vec<_> = format.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!((format.name.as_str(), format.id), ("x", 372));
        assert_eq!(names, ["common_type", "common_pid", "prev_comm", "timer", "name", "buf"]);
        let mut event = vec![0u8; 40];
        event[4..8].copy_from_slice(&(-1i32).to_le_bytes());
        event[8..12].copy_from_slice(b"abc\0");
        event[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        event[32..36].copy_from_slice(&(2u32 << 16 | 8).to_le_bytes());
        event[36..40].copy_from_slice(b"mark");
        let field = |name: &str| format.field(name).unwrap();
        assert_eq!(field("common_pid").number(&event), Some(-1i64 as u64));
        assert_eq!(field("prev_comm").text(&event), Some(&b"abc"[..]));
        assert_eq!(field("timer").number(&event), Some(u64::MAX));
        assert_eq!(field("name").text(&event), Some(&b"ab"[..]));
        assert_eq!(field("buf").text(&event), Some(&b"mark"[..]));
        assert_eq!((field("timer").number(&event[..30]), field("buf").number(&event)), (None, None));
    }

    #[test]
    fn what_is_no_format_is_none() {
        for wrong in ["", "name: x", "ID: 5", "name: x\nID: many\n", "name: x\nID: 70000\n"] {
            assert_eq!(TraceEventFormat::parse(wrong), None, "{wrong}");
        }
        assert_eq!(
            TraceEventFormat::parse("name: x\nID: 1\nfield: int a; offset:-1; size:4;").unwrap().fields,
            []
        );
    }

    #[test]
    fn the_header_tells_how_large_a_page_is() {
        let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        let catalogue =
            TraceFormatCatalogue { header_page: header_page.to_owned(), ..TraceFormatCatalogue::default() };
        assert_eq!(
            (catalogue.page_size(), catalogue.commit(), catalogue.data()),
            (Some(4096), Some(8..16), Some(16))
        );
        assert_eq!(TraceFormatCatalogue::default().page_size(), None);
    }
}
