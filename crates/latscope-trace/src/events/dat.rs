//! The file that trace-cmd opens: `trace.dat`, version 6 (trace-cmd.dat(5)).

use super::{TraceFormatCatalogue, TraceName};
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"\x17\x08\x44tracing6\0";
const LITTLE_ENDIAN: u8 = 0;
const LONG_BYTES: u8 = 8;

/// Numbers of trace-cmd's options `TRACECMD_OPTION_DONE` and `TRACECMD_OPTION_TRACECLOCK`.
const DONE: u16 = 0;
const CLOCK: u16 = 4;

/// Returns the file with pages as they came from the kernel, those of each CPU in order, and everything needed
/// to read them. `clock` is the trace clock's name, `names` are those of threads.
///
/// The file contains only the pages given: no addresses of kernel functions, no `printk` formats. `None` if the
/// catalogue is damaged.
pub fn dat(
    catalogue: &TraceFormatCatalogue,
    clock: &str,
    names: &BTreeMap<u32, TraceName>,
    cpus: &[Vec<&[u8]>],
) -> Option<Vec<u8>> {
    let page_size = catalogue.page_size()?;
    let mut file = File(Vec::new());
    file.write_bytes(MAGIC);
    file.write_bytes(&[LITTLE_ENDIAN, LONG_BYTES]);
    file.u32(page_size);
    file.write_bytes(b"header_page\0");
    file.long_text(&catalogue.header_page);
    file.write_bytes(b"header_event\0");
    file.long_text(&catalogue.header_event);
    file.write_event_formats(catalogue);
    file.u32(0); // kallsyms
    file.u32(0); // printk formats
    file.long_text(&names.iter().map(|(tid, name)| format!("{tid} {name}\n")).collect::<String>());
    file.u32(cpus.len());
    file.write_bytes(b"options  \0");
    file.option(CLOCK, format!("[{clock}]\0").as_bytes());
    file.write_bytes(&DONE.to_le_bytes());
    file.pages(page_size, cpus);
    Some(file.0)
}

struct File(Vec<u8>);

impl File {
    fn write_bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u32(&mut self, number: usize) {
        self.write_bytes(&(number as u32).to_le_bytes());
    }

    fn u64(&mut self, number: usize) {
        self.write_bytes(&(number as u64).to_le_bytes());
    }

    fn long_text(&mut self, text: &str) {
        self.u64(text.len());
        self.write_bytes(text.as_bytes());
    }

    fn option(&mut self, id: u16, data: &[u8]) {
        self.write_bytes(&id.to_le_bytes());
        self.u32(data.len());
        self.write_bytes(data);
    }

    /// Writes the formats of the events. The kernel's own events stand apart from those of its systems.
    fn write_event_formats(&mut self, catalogue: &TraceFormatCatalogue) {
        let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (system, text) in &catalogue.events {
            systems.entry(system).or_default().push(text);
        }
        let own = systems.remove("ftrace").unwrap_or_default();
        self.formats(&own);
        self.u32(systems.len());
        for (system, texts) in systems {
            self.write_bytes(system.as_bytes());
            self.write_bytes(b"\0");
            self.formats(&texts);
        }
    }

    fn formats(&mut self, texts: &[&str]) {
        self.u32(texts.len());
        for text in texts {
            self.long_text(text);
        }
    }

    /// Writes the place of each CPU's pages, and appends the pages, those of each CPU from a whole page on.
    fn pages(&mut self, page_size: usize, cpus: &[Vec<&[u8]>]) {
        self.write_bytes(b"flyrecord\0");
        let mut at = (self.0.len() + 16 * cpus.len()).next_multiple_of(page_size);
        let first = at;
        for pages in cpus {
            self.u64(at);
            self.u64(pages.len() * page_size);
            at += pages.len() * page_size;
        }
        self.0.resize(first, 0);
        for page in cpus.iter().flatten() {
            let end = self.0.len() + page_size;
            self.write_bytes(&page[..page.len().min(page_size)]);
            self.0.resize(end, 0);
        }
    }
}
