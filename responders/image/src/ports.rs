//! The I/O ports of a PC.

use core::arch::asm;

/// Reads a byte.
pub fn read_u8(port: u16) -> u8 {
    let value;
    // SAFETY: the ports of this image (serial line, PCI) have no effect on memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes a byte.
pub fn write_u8(port: u16, value: u8) {
    // SAFETY: as of `read_u8`.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags)) };
}

/// Reads 32 bits.
pub fn read_u32(port: u16) -> u32 {
    let value;
    // SAFETY: as of `read_u8`.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Writes 32 bits.
pub fn write_u32(port: u16, value: u32) {
    // SAFETY: a write to PCI's ports may move a BAR. That is memory that is not used yet: see `pci`.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags)) };
}
