//! What compiled code expects of a C library: five functions on memory.
//!
//! None is in the path of a message, where copies go word by word (`bar`). The
//! direction flag is clear, as the calling convention has it.

use core::arch::asm;

/// # Safety
/// As in C.
// SAFETY: it is the symbol's only definition, and of the expected type.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: both spans are valid and apart: the caller's promise.
    unsafe {
        asm!("rep movsb", inout("rcx") length => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
    to
}

/// # Safety
/// As in C.
// SAFETY: as of `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= length {
        // SAFETY: a copy upwards reads each byte before it writes there.
        return unsafe { memcpy(to, from, length) };
    }
    // SAFETY: both spans are valid, the caller's promise; a copy downwards from the last byte,
    // which exists, reads each byte before it writes there. The flag is restored.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") length => _, inout("rdi") to.wrapping_add(length).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(length).wrapping_sub(1) => _, options(nostack));
    }
    to
}

/// # Safety
/// As in C.
// SAFETY: as of `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    // SAFETY: the span is valid: the caller's promise.
    unsafe {
        asm!("rep stosb", inout("rcx") length => _, inout("rdi") to => _, in("al") value as u8,
            options(nostack, preserves_flags));
    }
    to
}

/// # Safety
/// As in C.
// SAFETY: as of `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    for at in 0..length {
        // SAFETY: both spans are valid: the caller's promise.
        let (one, other) = unsafe { (*one.add(at), *other.add(at)) };
        if one != other {
            return i32::from(one) - i32::from(other);
        }
    }
    0
}

/// # Safety
/// As in C.
// SAFETY: as of `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: the caller's promise is the same.
    unsafe { memcmp(one, other, length) }
}
