//! Page of a ring buffer (linux `include/linux/ring_buffer.h`, `kernel/trace/ring_buffer.c`): a time stamp, the
//! length of the data, and events with their distances in time.

use super::TraceFormatCatalogue;

/// Flag in the word with the length: events before this page are missing.
const MISSED: u64 = 1 << 31;

/// Flag in the word with the length: the number of missing events stands behind the events.
const STORED: u64 = 1 << 30;

const LENGTH: u64 = (1 << 27) - 1;

/// Kinds of entries that are no data (`enum ring_buffer_type`).
const PADDING: u32 = 29;
const EXTEND: u32 = 30;
const ABSOLUTE: u32 = 31;

/// The layout of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePageLayout {
    commit: std::ops::Range<usize>,
    data: usize,
}

/// Parsed page of a ring buffer.
#[derive(Debug)]
pub struct TraceBufferPage<'a> {
    /// Time at the begin of the page, ns.
    pub from: u64,
    /// Set if events before the page are missing, with their number if it is known.
    pub lost: Option<Option<u64>>,
    data: &'a [u8],
}

impl TracePageLayout {
    pub fn from_catalogue(catalogue: &TraceFormatCatalogue) -> Option<TracePageLayout> {
        let commit = catalogue.commit().filter(|commit| (4..=8).contains(&commit.len()))?;
        Some(TracePageLayout { commit, data: catalogue.data()? })
    }

    fn commit(&self, page: &[u8]) -> Option<u64> {
        parse_le_number(page.get(self.commit.clone())?)
    }

    /// Parses a page; `None` if the bytes are no page.
    pub fn parse_page<'a>(&self, page: &'a [u8]) -> Option<TraceBufferPage<'a>> {
        let from = parse_le_number(page.get(..8)?)?;
        let commit = self.commit(page)?;
        let rest = page.get(self.data..)?;
        let (data, behind) = rest.split_at_checked((commit & LENGTH) as usize)?;
        let lost = (commit & MISSED != 0).then(|| match commit & STORED {
            0 => None,
            _ => behind.get(..8).and_then(parse_le_number),
        });
        Some(TraceBufferPage { from, lost, data })
    }
}

/// Returns the bytes of a page that are used, its head included; `None` if the bytes are no page or hold no
/// event.
pub fn page_length(catalogue: &TraceFormatCatalogue, page: &[u8]) -> Option<usize> {
    let layout = TracePageLayout::from_catalogue(catalogue)?;
    let opened = layout.parse_page(page).filter(|opened| !opened.data.is_empty())?;
    let stored = if matches!(opened.lost, Some(Some(_))) { 8 } else { 0 };
    Some(layout.data + opened.data.len() + stored)
}

/// The time at which a page begins, ns.
pub fn page_begin(page: &[u8]) -> u64 {
    page.get(..8).and_then(parse_le_number).unwrap_or(0)
}

impl<'a> TraceBufferPage<'a> {
    /// Returns the events, with time and bytes of each.
    pub fn events(&self) -> TracePageEvents<'a> {
        TracePageEvents { rest: self.data, at: self.from }
    }
}

/// Iterator over the events of a page.
#[derive(Debug)]
pub struct TracePageEvents<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Iterator for TracePageEvents<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = parse_le_number(self.rest.get(..4)?)? as u32;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let behind = &self.rest[4..];
            let long = || parse_le_number(behind.get(..4)?);
            match kind {
                // The rest of the page is empty.
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.at = self.at.wrapping_add(delta);
                    self.rest = behind.get(long()? as usize..)?;
                }
                EXTEND => {
                    self.at = self.at.wrapping_add(long()? << 27 | delta);
                    self.rest = &behind[4..];
                }
                ABSOLUTE => {
                    // Only 59 bits; the others are those of the time so far.
                    self.at = self.at & !(u64::MAX >> 5) | long()? << 27 | delta;
                    self.rest = &behind[4..];
                }
                _ => {
                    self.at = self.at.wrapping_add(delta);
                    // The length of a long event stands before it, and counts itself.
                    let (data, length) = match kind {
                        0 => (behind.get(4..)?, (long()? as usize).checked_sub(4)?),
                        words => (behind, 4 * words as usize),
                    };
                    let (data, rest) = data.split_at_checked(length)?;
                    self.rest = rest;
                    return Some((self.at, data));
                }
            }
        }
    }
}

/// A little-endian number of up to eight bytes.
fn parse_le_number(bytes: &[u8]) -> Option<u64> {
    let mut word = [0u8; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUT: TracePageLayout = TracePageLayout { commit: 8..16, data: 16 };

    fn page(from: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut page = from.to_le_bytes().to_vec();
        page.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page
    }

    fn head(kind: u32, delta: u32) -> u32 {
        delta << 5 | kind
    }

    #[test]
    fn events_have_the_sum_of_the_distances_before_them() {
        let words = [
            head(1, 10),
            1,
            head(EXTEND, 5),
            1, // 2^27 + 5 later
            head(0, 1),
            12, // itself and two words
            2,
            3,
            head(PADDING, 7), // a discarded event of two words
            8,
            99,
            head(ABSOLUTE, 3),
            2,
            head(2, 0),
            4,
            5,
            head(PADDING, 0),
            6,
        ];
        let page = page(100, 0, &words);
        let opened = LAYOUT.parse_page(&page).unwrap();
        let events: Vec<(u64, Vec<u8>)> = opened.events().map(|(at, data)| (at, data.to_vec())).collect();
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let expected =
            [(110, bytes(&[1])), (110 + (1 << 27) + 5 + 1, bytes(&[2, 3])), ((2 << 27) + 3, bytes(&[4, 5]))];
        assert_eq!(events, expected);
        assert_eq!(opened.lost, None);
    }

    #[test]
    fn missing_events_are_told_with_their_number_where_it_is_stored() {
        let mut stored = page(1, MISSED | STORED, &[head(1, 1), 7]);
        stored.extend(42u64.to_le_bytes());
        assert_eq!(LAYOUT.parse_page(&stored).unwrap().lost, Some(Some(42)));
        let missed = page(1, MISSED, &[head(1, 1), 7]);
        let opened = LAYOUT.parse_page(&missed).unwrap();
        assert_eq!((opened.lost, opened.events().count()), (Some(None), 1));
    }

    #[test]
    fn a_page_that_claims_too_much_is_none() {
        let mut page = page(1, 0, &[head(1, 1), 7]);
        page[8] = 9;
        assert!(LAYOUT.parse_page(&page).is_none());
        assert!(LAYOUT.parse_page(&page[..10]).is_none());
    }

    proptest! {
        #[test]
        fn garbage_ends(bytes in proptest::collection::vec(any::<u8>(), 0..300), length in 0u64..300) {
            let mut page = bytes.clone();
            if page.len() >= 16 {
                page[8..16].copy_from_slice(&length.to_le_bytes());
            }
            if let Some(opened) = LAYOUT.parse_page(&page) {
                prop_assert!(opened.events().map(|(_, data)| data.len()).sum::<usize>() <= page.len());
            }
        }
    }
}
