//! Copies between our own memory and memory that somebody else may write meanwhile.
//!
//! A plain `memcpy` would be a data race: a compiler may take for granted that what it copied is still
//! there, and look at the shared bytes a second time, after they were checked. So the shared side is
//! accessed by instructions that the compiler does not see through, at the speed of a `memcpy` (what is
//! measured is the way between two CPUs), or by relaxed atomics.

use std::ptr::NonNull;

/// Copies out of shared memory.
///
/// # Safety
/// All of `into.len()` bytes at `from` are mapped, and no reference of ours to anything but atomics refers to them.
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
/// As of [`out`].
#[inline]
pub unsafe fn within(to: NonNull<u8>, from: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if from.len() >= vectors::SIZE {
        // SAFETY: both ranges are valid, as the caller vouches for and by the slice.
        return unsafe { vectors::copy(from.as_ptr(), to.as_ptr(), from.len()) };
    }
    // SAFETY: the caller vouches for the range.
    unsafe { words::within(to, from) }
}

/// By vectors of SSE, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::asm;

    /// Bytes of a vector; fewer cannot be copied.
    pub const SIZE: usize = 16;

    /// Copies `length` bytes. The last vector may overlap the one before, whose bytes are copied twice then.
    ///
    /// # Safety
    /// At least [`SIZE`] bytes, that do not overlap: `from` is readable, `to` writable.
    #[inline]
    pub unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
        // SAFETY: the first loop ends before `length - 16`, rounded down to pairs of vectors, the second
        // one before it, and the last vector begins there, which is not before the beginning.
        unsafe {
            asm!(
                "lea {pairs}, [{last} - 16]",
                "jmp 3f",
                "2:",
                "movups {a}, [{from} + {at}]",
                "movups {b}, [{from} + {at} + 16]",
                "movups [{to} + {at}], {a}",
                "movups [{to} + {at} + 16], {b}",
                "add {at}, 32",
                "3:",
                "cmp {at}, {pairs}",
                "jl 2b",
                "cmp {at}, {last}",
                "jge 4f",
                "movups {a}, [{from} + {at}]",
                "movups [{to} + {at}], {a}",
                "4:",
                "movups {a}, [{from} + {last}]",
                "movups [{to} + {last}], {a}",
                from = in(reg) from,
                to = in(reg) to,
                last = in(reg) length - SIZE,
                pairs = out(reg) _,
                at = inout(reg) 0_usize => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                options(nostack),
            );
        }
    }
}

/// By machine words where the shared side is aligned to them: the only accesses, but those of bytes,
/// that memory of devices stands everywhere.
mod words {
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

    const SIZE: usize = size_of::<AtomicUsize>();

    /// See [`super::out`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn out(from: NonNull<u8>, into: &mut [u8]) {
        let (head, rest) = into.split_at_mut(from.align_offset(SIZE).min(into.len()));
        let (words, tail) = rest.as_chunks_mut();
        let mut from = from;
        // SAFETY: there are as many bytes from `from` on as `into` has, of which each step takes the
        // next ones; behind the head the place is aligned for words.
        unsafe {
            for byte in head {
                *byte = from.cast::<AtomicU8>().as_ref().load(Relaxed);
                from = from.add(1);
            }
            for word in words {
                *word = from.cast::<AtomicUsize>().as_ref().load(Relaxed).to_ne_bytes();
                from = from.add(SIZE);
            }
            for byte in tail {
                *byte = from.cast::<AtomicU8>().as_ref().load(Relaxed);
                from = from.add(1);
            }
        }
    }

    /// See [`super::within`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn within(to: NonNull<u8>, from: &[u8]) {
        let (head, rest) = from.split_at(to.align_offset(SIZE).min(from.len()));
        let (words, tail) = rest.as_chunks();
        let mut to = to;
        // SAFETY: as in `out`.
        unsafe {
            for byte in head {
                to.cast::<AtomicU8>().as_ref().store(*byte, Relaxed);
                to = to.add(1);
            }
            for word in words {
                to.cast::<AtomicUsize>().as_ref().store(usize::from_ne_bytes(*word), Relaxed);
                to = to.add(SIZE);
            }
            for byte in tail {
                to.cast::<AtomicU8>().as_ref().store(*byte, Relaxed);
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

    /// Every length and place of a piece: exactly its bytes are copied, whatever the way.
    #[test]
    fn exactly_the_bytes_are_copied() {
        let from: Vec<u8> = (0..=255).collect();
        let ways: [Out; 2] = [out, words::out];
        let back: [Within; 2] = [within, words::within];
        for (at, length) in (0..17).flat_map(|at| (0..200).map(move |length| (at, length))) {
            let expected = [&[0; 20][..], &from[at..at + length], &[0; 20]].concat();
            for way in ways {
                let mut into = vec![0; length + 40];
                let place = NonNull::from(&from[at..]).cast();
                // SAFETY: that many bytes follow, and nobody writes them.
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
