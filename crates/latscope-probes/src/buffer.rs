//! Memory of the user, at a place in a page that is stated: copies of the kernel can depend on it.

use crate::prelude::*;

/// Place of a buffer unless another is asked for, as an offset from the start of a page: that of malloc(3) of the GNU C
/// library for 128 KiB and more.
pub(crate) const AS_MALLOC: u64 = 16;

/// A buffer of zeros, at an offset from the start of a page.
#[derive(Debug)]
pub(crate) struct PageOffsetBuffer {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl PageOffsetBuffer {
    /// Returns a buffer so many bytes behind the start of a page.
    pub fn new(bytes: usize, offset: u64) -> PageOffsetBuffer {
        let page = page_size();
        let offset = offset as usize % page;
        let memory = vec![0; bytes + 2 * page];
        let start = memory.as_ptr().addr().next_multiple_of(page) - memory.as_ptr().addr() + offset;
        PageOffsetBuffer { memory, start, bytes }
    }

    /// Returns the bytes of the buffer.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

/// Returns an offset as a parameter has it: without that of malloc(3), the usual one, so that a point is that of
/// earlier versions.
pub(crate) fn stated(offset: u64) -> Option<u64> {
    Some(offset).filter(|offset| *offset != AS_MALLOC)
}

/// Returns what the title of a point says of an offset: nothing of the usual one.
pub(crate) fn offset_title(offset: Option<u64>) -> String {
    match offset {
        None => String::new(),
        Some(0) => ", buffer at a page".to_owned(),
        Some(offset) => format!(", buffer {offset} B behind a page"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_where_it_is_asked_for() {
        for (bytes, offset) in [(1, 0), (64 << 10, 16), (4096, 4095), (0, 1)] {
            let mut buffer = PageOffsetBuffer::new(bytes, offset);
            assert_eq!(buffer.bytes().len(), bytes);
            assert_eq!(buffer.bytes().as_ptr().addr() % page_size(), offset as usize);
        }
    }

    #[test]
    fn the_usual_place_is_not_a_parameter() {
        assert_eq!([16, 0, 64].map(stated), [None, Some(0), Some(64)]);
        let titles = [None, Some(0), Some(64)].map(offset_title);
        assert_eq!(titles, ["", ", buffer at a page", ", buffer 64 B behind a page"]);
    }
}
