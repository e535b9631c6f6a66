//! Single accesses to memory that other processes and threads write meanwhile, in any sizes.
//!
//! Atomics of the language must not overlap in different sizes. These functions are instructions that the compiler does
//! not see through, like those of [`copy`](crate::copy); on architectures without such instructions here, they are
//! atomics.

/// Defines a load and a store, by the instructions of each architecture: name of the load, of the store, the type, its
/// atomic, then instruction and register of x86-64 (load, store), and of aarch64 (load, store).
macro_rules! access {
    ($load:ident, $store:ident, $type:ty, $atomic:ident, $order:ident, $ordered:ident,
     [$x_load:literal, $x_store:literal, $class:ident], [$a_load:literal, $a_store:literal]) => {
        /// Returns the value at `from`.
        ///
        /// # Safety
        /// The place is mapped and aligned, and no reference of this program refers to it, except references to
        /// atomics.
        #[inline(always)]
        pub unsafe fn $load(from: *const $type) -> $type {
            let value: $type;
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller vouches for the place; the instruction only loads, and keeps its order with others.
            unsafe {
                std::arch::asm!($x_load, value = out($class) value, place = in(reg) from,
                    options(nostack, preserves_flags));
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            unsafe {
                std::arch::asm!($a_load, value = out(reg) value, place = in(reg) from,
                    options(nostack, preserves_flags));
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            {
                // SAFETY: as above.
                value = unsafe { &*from.cast::<std::sync::atomic::$atomic>() }
                    .load(std::sync::atomic::Ordering::$order);
            }
            value
        }

        /// Stores `value` at `to`.
        ///
        /// # Safety
        /// The place is mapped and aligned, and no reference of this program refers to it, except references to
        /// atomics.
        #[inline(always)]
        pub unsafe fn $store(to: *mut $type, value: $type) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the caller vouches for the place; the instruction only stores, and keeps its order with others.
            unsafe {
                std::arch::asm!($x_store, value = in($class) value, place = in(reg) to,
                    options(nostack, preserves_flags));
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            unsafe {
                std::arch::asm!($a_store, value = in(reg) value, place = in(reg) to,
                    options(nostack, preserves_flags));
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            // SAFETY: as above.
            unsafe { &*to.cast::<std::sync::atomic::$atomic>() }
                .store(value, std::sync::atomic::Ordering::$ordered);
        }
    };
}

access!(
    load_u8,
    store_u8,
    u8,
    AtomicU8,
    Relaxed,
    Relaxed,
    ["mov {value}, byte ptr [{place}]", "mov byte ptr [{place}], {value}", reg_byte],
    ["ldrb {value:w}, [{place}]", "strb {value:w}, [{place}]"]
);
access!(
    load_u16,
    store_u16,
    u16,
    AtomicU16,
    Relaxed,
    Relaxed,
    ["mov {value:x}, word ptr [{place}]", "mov word ptr [{place}], {value:x}", reg],
    ["ldrh {value:w}, [{place}]", "strh {value:w}, [{place}]"]
);
// What other accesses must not pass: stores of x86-64 stay in order, and its loads do.
access!(
    load_acquire,
    store_release,
    u16,
    AtomicU16,
    Acquire,
    Release,
    ["mov {value:x}, word ptr [{place}]", "mov word ptr [{place}], {value:x}", reg],
    ["ldarh {value:w}, [{place}]", "stlrh {value:w}, [{place}]"]
);
access!(
    load_u32,
    store_u32,
    u32,
    AtomicU32,
    Relaxed,
    Relaxed,
    ["mov {value:e}, dword ptr [{place}]", "mov dword ptr [{place}], {value:e}", reg],
    ["ldr {value:w}, [{place}]", "str {value:w}, [{place}]"]
);
access!(
    load_word,
    store_word,
    usize,
    AtomicUsize,
    Relaxed,
    Relaxed,
    ["mov {value}, qword ptr [{place}]", "mov qword ptr [{place}], {value}", reg],
    ["ldr {value}, [{place}]", "str {value}, [{place}]"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_access_is_of_its_size() {
        let mut memory = [0x1111_1111_1111_1111_u64; 3];
        let place = (&raw mut memory[1]).cast::<u8>();
        // SAFETY: the place is aligned for all of them, and nothing else refers to it meanwhile.
        unsafe {
            store_word(place.cast(), usize::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
            assert_eq!(load_word(place.cast()), usize::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]));
            store_u32(place.cast(), u32::from_le_bytes([11, 12, 13, 14]));
            assert_eq!(load_u32(place.cast()), u32::from_le_bytes([11, 12, 13, 14]));
            store_u16(place.cast(), u16::from_le_bytes([21, 22]));
            assert_eq!(load_u16(place.cast()), u16::from_le_bytes([21, 22]));
            store_u8(place, 31);
            assert_eq!((load_u8(place), load_u8(place.add(1))), (31, 22));
            store_release(place.add(6).cast(), u16::from_le_bytes([41, 42]));
            assert_eq!(load_acquire(place.add(6).cast()), u16::from_le_bytes([41, 42]));
        }
        let all = 0x1111_1111_1111_1111;
        assert_eq!(memory, [all, u64::from_le_bytes([31, 22, 13, 14, 5, 6, 41, 42]), all]);
    }
}
