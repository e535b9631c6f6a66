//! The smallest program: a static ELF file of one page that exits with 0,
//! made here, so that nothing but starting a program is measured.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, memfd_create, openat};
use rustix::io::{Errno, Result};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The machine's number in an ELF file (elf.h) and the instructions of
/// `exit(0)`.
#[cfg(target_arch = "x86_64")]
const MACHINE: Option<(u16, &[u8])> = Some((
    62,
    &[
        0x31, 0xff, // xor edi, edi
        0xb8, 0x3c, 0, 0, 0, // mov eax, 60 (exit)
        0x0f, 0x05, // syscall
    ],
));
#[cfg(target_arch = "aarch64")]
const MACHINE: Option<(u16, &[u8])> = Some((
    183,
    &[
        0x00, 0x00, 0x80, 0xd2, // mov x0, #0
        0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93 (exit)
        0x01, 0x00, 0x00, 0xd4, // svc #0
    ],
));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: Option<(u16, &[u8])> = None;

const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const LOADED_AT: u64 = 0x40_0000;

/// Bytes of the file (elf(5)): file header, one program header, the instructions.
fn build_elf_image(machine: u16, code: &[u8]) -> Vec<u8> {
    let headers = FILE_HEADER + PROGRAM_HEADER;
    let bytes = (headers + code.len()) as u64;
    let mut file = Vec::with_capacity(headers + code.len());
    let mut put = |field: &[u8]| file.extend_from_slice(field);
    put(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"); // 64 bit, little-endian, version 1
    put(&2u16.to_le_bytes()); // executable
    put(&machine.to_le_bytes());
    put(&1u32.to_le_bytes()); // version
    put(&(LOADED_AT + headers as u64).to_le_bytes()); // entry
    put(&(FILE_HEADER as u64).to_le_bytes()); // offset of the program headers
    put(&0u64.to_le_bytes()); // no section headers
    put(&0u32.to_le_bytes()); // flags
    put(&(FILE_HEADER as u16).to_le_bytes());
    put(&(PROGRAM_HEADER as u16).to_le_bytes());
    put(&1u16.to_le_bytes()); // one program header
    put(&[0; 6]); // section headers: size, number, names
    put(&1u32.to_le_bytes()); // a segment to load
    put(&5u32.to_le_bytes()); // readable, executable
    put(&0u64.to_le_bytes()); // from the start of the file
    put(&LOADED_AT.to_le_bytes()); // virtual address
    put(&LOADED_AT.to_le_bytes()); // physical address
    put(&bytes.to_le_bytes()); // in the file
    put(&bytes.to_le_bytes()); // in memory
    put(&0x1_0000u64.to_le_bytes()); // alignment: the largest page size there is
    put(code);
    file
}

/// Writes the program into a directory and returns its path.
///
/// # Errors
/// The errors of writing a file; ENOSYS if the instructions of this machine are not known here.
pub fn write_to_directory(directory: &Path) -> Result<CString> {
    let (machine, code) = MACHINE.ok_or(Errno::NOSYS)?;
    let path = directory.join("exit");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(CWD, &path, flags, Mode::RWXU)?;
    write_image(&file, &build_elf_image(machine, code))?;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}

/// Writes the program into a memfd. Returns its path, which is one only while the descriptor is open.
///
/// # Errors
/// The errors of making and writing a memfd; ENOSYS if the instructions of this machine are not known here.
pub fn write_to_memory() -> Result<(CString, OwnedFd)> {
    let (machine, code) = MACHINE.ok_or(Errno::NOSYS)?;
    // A kernel that knows no such flag lets every memfd be run.
    let flags = MemfdFlags::CLOEXEC;
    let file = memfd_create(c"exit", flags | MemfdFlags::EXEC).or_else(|_| memfd_create(c"exit", flags))?;
    write_image(&file, &build_elf_image(machine, code))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok((CString::new(path).map_err(|_| Errno::INVAL)?, file))
}

fn write_image(file: &OwnedFd, image: &[u8]) -> Result<()> {
    if rustix::io::write(file, image)? == image.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_as_long_as_its_headers_say() {
        let image = build_elf_image(62, &[1, 2, 3]);
        assert_eq!(image.len(), 64 + 56 + 3);
        let in_file = u64::from_le_bytes(image[64 + 32..64 + 40].try_into().unwrap());
        assert_eq!(in_file, image.len() as u64);
    }
}
