//! The file of a client OS: an ELF file for 64 bits, or bytes as they are.

use super::McsBoard;
use anyhow::{Context, Result, bail};
use latscope_rpmsg::RpmsgMemory;

const PAGE: usize = 4096;

/// A kind of part of an ELF file: to be loaded.
const LOAD: u32 = 1;

/// Contents of an image, with their addresses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Image<'a> {
    parts: Vec<McsImageSegment<'a>>,
    /// First address, and the address behind the last.
    pub span: (usize, usize),
    /// Address where execution begins.
    pub entry: u64,
}

/// Bytes, and zeros up to a size.
#[derive(Debug, PartialEq, Eq)]
struct McsImageSegment<'a> {
    at: usize,
    bytes: &'a [u8],
    size: usize,
}

impl<'a> Image<'a> {
    /// Reads a file that is to be loaded at an address. Parts of an ELF file keep their
    /// distances from the first.
    ///
    /// # Errors
    /// The file is empty, or an ELF file that is not whole.
    pub(super) fn parse(file: &'a [u8], address: usize) -> Result<Image<'a>> {
        if !address.is_multiple_of(PAGE) {
            bail!("{address:#x} is no address of a page");
        }
        let (parts, entry) = if file.starts_with(b"\x7fELF") {
            elf(file, address).context("an ELF file that is not whole, or not for 64 bits")?
        } else {
            (vec![McsImageSegment { at: address, bytes: file, size: file.len() }], address as u64)
        };
        let first = parts.iter().map(|part| part.at).min();
        let last = parts.iter().map(|part| part.at + part.size).max();
        match first.zip(last) {
            Some(span) if span.0 < span.1 => Ok(Image { parts, span, entry }),
            _ => bail!("the file of the client OS has nothing to load"),
        }
    }

    /// Copies the image to its addresses.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    pub(super) fn load_segments(&self, board: &dyn McsBoard) -> Result<()> {
        let start = self.span.0 - self.span.0 % PAGE;
        let size = (self.span.1 - start).next_multiple_of(PAGE);
        let memory = board.map_memory(start, size).context("the memory of the client OS cannot be mapped")?;
        for part in &self.parts {
            memory.write_bytes(part.at, part.bytes)?;
            memory.clear(part.at + part.bytes.len(), part.size - part.bytes.len())?;
        }
        Ok(())
    }
}

/// The parts of an ELF file (little-endian, 64 bits), and where it begins.
fn elf(file: &[u8], address: usize) -> Option<(Vec<McsImageSegment<'_>>, u64)> {
    let half = |at: usize| Some(u16::from_le_bytes(*file.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u64::from_le_bytes(*file.get(at..)?.first_chunk()?));
    let (class, order) = (file.get(4)?, file.get(5)?);
    if (*class, *order) != (2, 1) {
        return None;
    }
    let (table, length, count) = (usize::try_from(word(32)?).ok()?, usize::from(half(54)?), half(56)?);
    let (mut parts, mut first) = (Vec::new(), None);
    for index in 0..usize::from(count) {
        let at = table.checked_add(index * length)?;
        let kind = u32::from_le_bytes(*file.get(at..)?.first_chunk()?);
        let [offset, physical, filled, size] = [8, 24, 32, 40].map(|field| word(at.checked_add(field)?));
        let (offset, filled) = (usize::try_from(offset?).ok()?, usize::try_from(filled?).ok()?);
        let (physical, size) = (physical?, usize::try_from(size?).ok()?);
        if kind != LOAD || size == 0 {
            continue;
        }
        let bytes = file.get(offset..offset.checked_add(filled)?)?;
        let from = *first.get_or_insert(physical);
        let at = address.checked_add(usize::try_from(physical.checked_sub(from)?).ok()?)?;
        at.checked_add(size)?;
        parts.push(McsImageSegment { at, bytes: (filled <= size).then_some(bytes)?, size });
    }
    let entry = word(24)?.checked_sub(first?)?.checked_add(address as u64)?;
    Some((parts, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file of two parts, which are linked at 0x4000_0000.
    pub fn file() -> Vec<u8> {
        let mut file = vec![0; 64 + 2 * 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, value: u64, bytes: usize| {
            file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        };
        put(24, 0x4000_0010, 8);
        put(32, 64, 8);
        put(54, 56, 2);
        put(56, 2, 2);
        for (index, (physical, filled, size)) in
            [(0x4000_0000, 8, 8), (0x4000_1000, 4, 0x20)].into_iter().enumerate()
        {
            let at = 64 + 56 * index;
            put(at, 1, 4);
            put(at + 8, 64, 8);
            put(at + 24, physical, 8);
            put(at + 32, filled, 8);
            put(at + 40, size, 8);
        }
        file
    }

    #[test]
    fn parts_keep_their_distance_and_zeros_follow() {
        let file = file();
        let image = Image::parse(&file, 0x7a00_0000).unwrap();
        assert_eq!((image.span, image.entry), ((0x7a00_0000, 0x7a00_1020), 0x7a00_0010));
        assert_eq!(image.parts[1], McsImageSegment { at: 0x7a00_1000, bytes: &file[64..68], size: 0x20 });
    }

    #[test]
    fn bytes_that_are_no_elf_file_are_loaded_as_they_are() {
        let image = Image::parse(b"code", 0x7a00_0000).unwrap();
        assert_eq!((image.span, image.entry), ((0x7a00_0000, 0x7a00_0004), 0x7a00_0000));
        assert!(Image::parse(b"", 0x7a00_0000).is_err());
        assert!(Image::parse(b"code", 0x7a00_0001).is_err());
    }

    #[test]
    fn files_that_lie_are_refused() {
        for length in 0..64 + 56 + 48 {
            let short = &file()[..length];
            assert!(!short.starts_with(b"\x7fELF") || Image::parse(short, 0x7a00_0000).is_err(), "{length}");
        }
        // Where a field is, and what it must not say: class, order, table, offset, bytes, size, the second's address.
        for (at, value) in [(4, 1), (5, 2), (39, 0xFF), (79, 0xFF), (103, 0xFF), (104, 4), (147, 0)] {
            let mut file = file();
            file[at] = value;
            assert!(Image::parse(&file, 0x7a00_0000).is_err(), "{at}");
        }
    }
}
