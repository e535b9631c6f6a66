//! Copies between private memory and memory that another process may write meanwhile.
//!
//! A plain `memcpy` would be a data race: a compiler may take for granted that what it copied is still
//! there, and look at the shared bytes a second time, after they were checked. So the shared side is
//! accessed by instructions that the compiler does not see through, at the speed of a `memcpy` (what is
//! measured is the way between two CPUs).

use std::ptr::NonNull;

/// Copies out of shared memory.
///
/// # Safety
/// All of `into.len()` bytes at `from` are mapped, and no reference of this program refers to them, except references
/// to atomics.
#[inline]
pub unsafe fn out(from: NonNull<u8>, into: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if into.len() >= vectors::SIZE {
        // SAFETY: both ranges are valid, as the caller vouches for and by the slice.
        return unsafe { vectors::copy(from.as_ptr(), into.as_mut_ptr(), into.len()) };
    }
    // SAFETY: the caller vouches for the range.
    unsafe { words::out(from, into) }
}

/// Copies into shared memory.
///
/// # Safety
/// The requirements of [`out`] apply, for `from.len()` bytes at `to`.
#[inline]
pub unsafe fn copy_in(to: NonNull<u8>, from: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if from.len() >= vectors::SIZE {
        // SAFETY: both ranges are valid, as the caller vouches for and by the slice.
        return unsafe { vectors::copy(from.as_ptr(), to.as_ptr(), from.len()) };
    }
    // SAFETY: the caller vouches for the range.
    unsafe { words::copy_words_in(to, from) }
}

/// Copies by vectors: AVX where the processor has it, else SSE, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::{asm, is_x86_feature_detected};

    /// Bytes of the shortest vector; fewer cannot be copied.
    pub const SIZE: usize = 16;

    /// Copies `length` bytes. The last vector may overlap the one before; the bytes of the overlap are then copied
    /// twice.
    ///
    /// # Safety
    /// At least [`SIZE`] bytes, that do not overlap: `from` is readable, `to` writable.
    #[inline]
    pub unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
        let way = if length >= 2 * SIZE && is_x86_feature_detected!("avx") { avx } else { sse };
        // SAFETY: as the caller vouches; there are enough for a vector, and the processor has the instructions.
        unsafe { way(from, to, length) };
    }

    /// Defines a copy by vectors of a size, by an instruction and its registers.
    macro_rules! copy {
        ($name:ident, $size:literal, $move:literal, $vector:literal, $finish:literal) => {
            /// # Safety
            /// The requirements of `copy` apply, with at least a vector of bytes, and the processor has the
            /// instructions.
            pub(super) unsafe fn $name(from: *const u8, to: *mut u8, length: usize) {
                // SAFETY: the first loop ends before the last four vectors, the second one before the last, and
                // the last vector begins there, which is not before the beginning.
                unsafe {
                    asm!(
                        "lea {fours}, [{last} - 3 * {size}]",
                        "jmp 3f",
                        "2:",
                        concat!($move, " ", $vector, "0, [{from} + {at}]"),
                        concat!($move, " ", $vector, "1, [{from} + {at} + {size}]"),
                        concat!($move, " ", $vector, "2, [{from} + {at} + 2 * {size}]"),
                        concat!($move, " ", $vector, "3, [{from} + {at} + 3 * {size}]"),
                        concat!($move, " [{to} + {at}], ", $vector, "0"),
                        concat!($move, " [{to} + {at} + {size}], ", $vector, "1"),
                        concat!($move, " [{to} + {at} + 2 * {size}], ", $vector, "2"),
                        concat!($move, " [{to} + {at} + 3 * {size}], ", $vector, "3"),
                        "add {at}, 4 * {size}",
                        "3:",
                        "cmp {at}, {fours}",
                        "jl 2b",
                        "jmp 5f",
                        "4:",
                        concat!($move, " ", $vector, "0, [{from} + {at}]"),
                        concat!($move, " [{to} + {at}], ", $vector, "0"),
                        "add {at}, {size}",
                        "5:",
                        "cmp {at}, {last}",
                        "jl 4b",
                        concat!($move, " ", $vector, "0, [{from} + {last}]"),
                        concat!($move, " [{to} + {last}], ", $vector, "0"),
                        $finish,
                        size = const $size,
                        from = in(reg) from,
                        to = in(reg) to,
                        last = in(reg) length - $size,
                        fours = out(reg) _,
                        at = inout(reg) 0_usize => _,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                        options(nostack),
                    );
                }
            }
        };
    }

    copy!(sse, 16, "movups", "xmm", "");
    // `vzeroupper` changes all vector registers.
    copy!(avx, 32, "vmovups", "ymm", "vzeroupper");
}

/// Copies by machine words where the shared side is aligned to them: besides bytes, these are the only accesses that
/// memory of devices permits everywhere.
mod words {
    use crate::access::{load_u8, load_word, store_u8, store_word};
    use std::ptr::NonNull;

    const SIZE: usize = size_of::<usize>();

    /// Copies word by word; see [`super::out`].
    ///
    /// # Safety
    /// The requirements of [`super::out`] apply.
    #[inline]
    pub unsafe fn out(from: NonNull<u8>, into: &mut [u8]) {
        let (head, rest) = into.split_at_mut(from.align_offset(SIZE).min(into.len()));
        let (words, tail) = rest.as_chunks_mut();
        let mut from = from;
        // SAFETY: there are as many bytes from `from` on as `into` has, of which each step takes the
        // next ones; behind the head the place is aligned for words.
        unsafe {
            for byte in head {
                *byte = load_u8(from.as_ptr());
                from = from.add(1);
            }
            for word in words {
                *word = load_word(from.as_ptr().cast()).to_ne_bytes();
                from = from.add(SIZE);
            }
            for byte in tail {
                *byte = load_u8(from.as_ptr());
                from = from.add(1);
            }
        }
    }

    /// Copies word by word; see [`super::copy_in`].
    ///
    /// # Safety
    /// The requirements of [`super::copy_in`] apply.
    #[inline]
    pub unsafe fn copy_words_in(to: NonNull<u8>, from: &[u8]) {
        let (head, rest) = from.split_at(to.align_offset(SIZE).min(from.len()));
        let (words, tail) = rest.as_chunks();
        let mut to = to;
        // SAFETY: as in `out`.
        unsafe {
            for byte in head {
                store_u8(to.as_ptr(), *byte);
                to = to.add(1);
            }
            for word in words {
                store_word(to.as_ptr().cast(), usize::from_ne_bytes(*word));
                to = to.add(SIZE);
            }
            for byte in tail {
                store_u8(to.as_ptr(), *byte);
                to = to.add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Out = unsafe fn(NonNull<u8>, &mut [u8]);
    type Within = unsafe fn(NonNull<u8>, &[u8]);

    /// The way of a processor without AVX.
    unsafe fn sse(from: NonNull<u8>, into: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if into.len() >= vectors::SIZE {
            // SAFETY: the caller vouches for both ranges.
            return unsafe { vectors::sse(from.as_ptr(), into.as_mut_ptr(), into.len()) };
        }
        // SAFETY: as above.
        unsafe { words::out(from, into) }
    }

    /// Every length and place of a piece: exactly its bytes are copied, with each method.
    #[test]
    fn exactly_the_bytes_are_copied() {
        let from: Vec<u8> = (0..=255).collect();
        let ways: [Out; 3] = [out, sse, words::out];
        let back: [Within; 2] = [copy_in, words::copy_words_in];
        for (at, length) in (0..17).flat_map(|at| (0..200).map(move |length| (at, length))) {
            let expected = [&[0; 20][..], &from[at..at + length], &[0; 20]].concat();
            for way in ways {
                let mut into = vec![0; length + 40];
                let place = NonNull::from(&from[at..]).cast();
                // SAFETY: that many bytes follow, and they are not written.
                unsafe { way(place, &mut into[20..20 + length]) };
                assert_eq!(into, expected, "{length} bytes from {at}");
            }
            for way in back {
                let mut into = vec![0; at + length + 40];
                let place = NonNull::from(&mut into[at + 20..]).cast();
                // SAFETY: that many bytes follow, and nothing else refers to them meanwhile.
                unsafe { way(place, &from[at..at + length]) };
                assert_eq!(into[at..], expected, "{length} bytes to {at}");
            }
        }
    }
}
