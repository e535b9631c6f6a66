//! Signposts in the kernel's trace, from a measuring thread (Documentation/trace/ftrace.rst, `trace_marker`).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Places signposts from a measuring thread: one `write` each to a descriptor
/// opened before. The format is that of Android's atrace, which Perfetto shows
/// as slices of the thread.
#[derive(Debug)]
pub struct Marker {
    file: File,
    process: u32,
}

/// Maximum length of a line written for a signpost, bytes; the rest is cut off.
const LINE_BYTES: usize = 160;

impl Marker {
    /// Opens an instance's `trace_marker`.
    ///
    /// # Errors
    /// The instance is gone, or writing to it is not permitted.
    pub fn open(path: &Path) -> io::Result<Marker> {
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Marker { file, process: std::process::id() })
    }

    /// Begins a named stretch on the calling thread. Stretches nest. Does not
    /// allocate; about a microsecond.
    pub fn begin_section(&self, name: &str) {
        let mut line = io::Cursor::new([0u8; LINE_BYTES]);
        // Takes what fits: a name cut short is still a name.
        let _ = write!(line, "B|{}|{name}", self.process);
        let length = line.position() as usize;
        let line = line.get_mut();
        // The kernel's text has a line for each event.
        line[..length].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        self.write_line(&line[..length]);
    }

    /// Ends the stretch that the calling thread began last.
    pub fn end_section(&self) {
        self.write_line(b"E|");
    }

    /// Writes a remark at this moment. Does not allocate; the rest of a long text is cut off.
    pub fn write_note(&self, text: fmt::Arguments) {
        let mut line = io::Cursor::new([0u8; LINE_BYTES]);
        let _ = line.write_fmt(text);
        let length = line.position() as usize;
        self.write_line(&line.get_ref()[..length]);
    }

    fn write_line(&self, line: &[u8]) {
        // Fails when nothing records: then no reader misses the marker.
        let _ = (&self.file).write(line);
    }
}
