//! Reads back the files for trace-cmd, as far as ours go.

use latscope_trace::events::{Decoder, KernelTraceEvent, TraceFormatCatalogue};

/// A trace recorded with `examples/record_blame.rs` of the command: a thread
/// `victim` is late because of a thread `thief`; it notes when.
pub const THEFT: &[u8] = include_bytes!("../traces/theft.dat");

/// What a file holds.
pub struct Dat {
    pub catalogue: TraceFormatCatalogue,
    /// Pages of each CPU.
    pub pages: Vec<Vec<Vec<u8>>>,
}

impl Dat {
    pub fn read(file: &[u8]) -> Dat {
        let mut rest = Rest(file);
        assert_eq!(rest.take(14), b"\x17\x08\x44tracing6\0\0\x08");
        let page_size = rest.u32();
        assert_eq!(rest.take(12), b"header_page\0");
        let header_page = rest.long_text();
        assert_eq!(rest.take(13), b"header_event\0");
        let header_event = rest.long_text();
        let mut events: Vec<(String, String)> = Vec::new();
        (0..rest.u32()).for_each(|_| events.push(("ftrace".to_owned(), rest.long_text())));
        for _ in 0..rest.u32() {
            let system = rest.name();
            (0..rest.u32()).for_each(|_| events.push((system.clone(), rest.long_text())));
        }
        assert_eq!((rest.u32(), rest.u32()), (0, 0));
        rest.long_text();
        let cpus = rest.u32();
        assert_eq!(rest.take(10), b"options  \0");
        while rest.u16() != 0 {
            let length = rest.u32();
            rest.take(length);
        }
        assert_eq!(rest.take(10), b"flyrecord\0");
        let places: Vec<(usize, usize)> = (0..cpus).map(|_| (rest.u64(), rest.u64())).collect();
        let pages = places.iter().map(|(at, length)| {
            assert_eq!((at % page_size, length % page_size), (0, 0));
            file[*at..at + length].chunks(page_size).map(<[u8]>::to_vec).collect()
        });
        let pages = pages.collect();
        Dat { catalogue: TraceFormatCatalogue { header_page, header_event, events }, pages }
    }

    /// All events in order of time.
    pub fn events(&self) -> Vec<KernelTraceEvent> {
        let (mut decoder, mut events) = (Decoder::new(&self.catalogue), Vec::new());
        for (cpu, pages) in self.pages.iter().enumerate() {
            pages.iter().for_each(|page| decoder.decode_page(cpu as u32, page, |event| events.push(event)));
        }
        events.sort_by_key(|event| event.at);
        events
    }
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> usize {
        u32::from_le_bytes(self.take(4).try_into().unwrap()) as usize
    }

    fn u64(&mut self) -> usize {
        u64::from_le_bytes(self.take(8).try_into().unwrap()) as usize
    }

    fn long_text(&mut self) -> String {
        let length = self.u64();
        String::from_utf8(self.take(length).to_vec()).unwrap()
    }

    fn name(&mut self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap();
        let name = String::from_utf8(self.take(length).to_vec()).unwrap();
        self.take(1);
        name
    }
}
