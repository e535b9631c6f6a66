//! Newest raw pages that were read of one CPU. They are decoded only if there is a late wake-up to explain.

use crate::events::{
    Decoder, KernelTraceEvent, KernelTraceEventKind, Loss, TraceFormatCatalogue, page_begin, page_length,
};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;

/// Newest pages that were read of one CPU.
#[derive(Debug)]
pub(super) struct CpuTracePages {
    pub id: u32,
    pub pipe: OwnedFd,
    pages: VecDeque<Page>,
    bytes: usize,
    /// Memory for the pages, bytes.
    pub most_bytes: usize,
    /// True if older pages were dropped.
    forgotten: bool,
}

#[derive(Debug)]
struct Page {
    /// Time at the begin of the page, ns.
    from: u64,
    bytes: Box<[u8]>,
}

/// Number of pages before the begin of a window that are searched for the last activity of the thread.
const SEARCHED: usize = 64;

impl CpuTracePages {
    pub fn new(id: u32, pipe: OwnedFd, most_bytes: usize) -> CpuTracePages {
        CpuTracePages { id, pipe, pages: VecDeque::new(), bytes: 0, most_bytes, forgotten: false }
    }

    /// Keeps a page, and drops the oldest pages if there is no room.
    pub fn store_page(&mut self, catalogue: &TraceFormatCatalogue, page: &[u8]) {
        let Some(length) = page_length(catalogue, page) else { return };
        while self.bytes + length > self.most_bytes
            && let Some(oldest) = self.pages.pop_front()
        {
            self.bytes -= oldest.bytes.len();
            self.forgotten = true;
        }
        self.bytes += length;
        self.pages.push_back(Page { from: page_begin(page), bytes: page[..length].into() });
    }

    pub fn pages(&self) -> impl Iterator<Item = &[u8]> {
        self.pages.iter().map(|page| &*page.bytes)
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All events that are in memory.
    pub fn decode_all(&self, decoder: &mut Decoder) -> Vec<KernelTraceEvent> {
        self.decode(decoder, 0, self.pages.len())
    }

    /// Returns the events from an instant to another. Before them are as many events as needed to know which
    /// thread had the CPU, and what `thread` did last.
    pub fn decode_between(
        &self,
        decoder: &mut Decoder,
        from: u64,
        until: u64,
        thread: Option<u32>,
    ) -> Vec<KernelTraceEvent> {
        // The first event behind tells who was there until then: it may be on the next page.
        let end = (self.pages.partition_point(|page| page.from <= until) + 1).min(self.pages.len());
        let begin = self.pages.partition_point(|page| page.from <= from).saturating_sub(1);
        let mut events = self.decode(decoder, begin, end);
        let behind = events.partition_point(|event| event.at <= until) + 1;
        events.truncate(behind);
        let (known, begin) = self.find_last_activity(decoder, &mut events, begin, (from, thread));
        events.drain(..known.unwrap_or(0));
        if let (None, true, 0, Some(oldest)) = (known, self.forgotten, begin, events.first()) {
            let kind = KernelTraceEventKind::Lost { events: None, why: Loss::Forgotten };
            let lost = KernelTraceEvent { at: oldest.at, cpu: self.id, thread: oldest.thread, kind };
            events.insert(0, lost);
        }
        events
    }

    /// Goes back, page by page, to the last event before an instant that shows which thread had the CPU, and
    /// further to the last event of the thread if it is near. Returns its place, and the index of the first
    /// decoded page.
    fn find_last_activity(
        &self,
        decoder: &mut Decoder,
        events: &mut Vec<KernelTraceEvent>,
        mut begin: usize,
        (from, thread): (u64, Option<u32>),
    ) -> (Option<usize>, usize) {
        let shows = |events: &[KernelTraceEvent], thread| {
            events.iter().any(|event| event.at <= from && shows_thread(&event.kind, thread))
        };
        let (mut any, mut own) = (shows(events, None), shows(events, thread));
        let mut earlier: Vec<Vec<KernelTraceEvent>> = Vec::new();
        while begin > 0 && !own && (!any || earlier.len() < SEARCHED) {
            begin -= 1;
            let page = self.decode(decoder, begin, begin + 1);
            (any, own) = (any || shows(&page, None), own || shows(&page, thread));
            earlier.push(page);
        }
        events.splice(0..0, earlier.into_iter().rev().flatten());
        let before = &events[..events.partition_point(|event| event.at <= from)];
        let last = |thread| before.iter().rposition(|event| shows_thread(&event.kind, thread));
        (last(thread).or_else(|| last(None)), begin)
    }

    fn decode(&self, decoder: &mut Decoder, begin: usize, end: usize) -> Vec<KernelTraceEvent> {
        let mut events = Vec::new();
        let pages = self.pages.range(begin.min(end)..end);
        pages.for_each(|page| decoder.decode_page(self.id, &page.bytes, |event| events.push(event)));
        events
    }
}

/// Returns true if an event shows that this thread, or any for `None`, got the CPU, or that events were lost.
fn shows_thread(kind: &KernelTraceEventKind, thread: Option<u32>) -> bool {
    match kind {
        // Whom it displaced matters, too.
        KernelTraceEventKind::Switch { to, .. } => thread.is_none_or(|tid| to.tid == tid),
        KernelTraceEventKind::Lost { .. } => true,
        _ => false,
    }
}
