//! getrandom(2) as a system call. The C library (glibc since 2.41) may answer from the vDSO (Linux since 6.11)
//! without entering the kernel.

use crate::syscall::syscall;
use rustix::io::{Errno, Result};

/// Returns true if the kernel's generator has its seed; before that, early in the boot, [`fill_buffer`] would wait for
/// it.
///
/// # Errors
/// EPERM or ENOSYS where a filter refuses the call, ENOSYS before Linux 3.17.
pub fn is_seeded() -> Result<bool> {
    match getrandom(&mut [0; 1], libc::GRND_NONBLOCK) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Fills the buffer with random bytes by one call.
///
/// # Errors
/// The errors of [`is_seeded`]; EIO if the kernel gave fewer bytes: a signal came, or the kernel gives no more at once.
#[inline(always)]
pub fn fill_buffer(buffer: &mut [u8]) -> Result<()> {
    if getrandom(buffer, 0)? == buffer.len() { Ok(()) } else { Err(Errno::IO) }
}

#[inline(always)]
fn getrandom(buffer: &mut [u8], flags: libc::c_uint) -> Result<usize> {
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    unsafe {
        syscall(libc::SYS_getrandom, [buffer.as_mut_ptr() as usize, buffer.len(), flags as usize, 0, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_buffer_is_filled_and_differently_each_time() {
        assert_eq!(is_seeded(), Ok(true));
        let [mut first, mut second] = [[0; 256]; 2];
        assert_eq!((fill_buffer(&mut first), fill_buffer(&mut second)), (Ok(()), Ok(())));
        assert_ne!(first, second);
        assert!(first.chunks(32).chain(second.chunks(32)).all(|part| part != [0; 32]));
        assert_eq!(fill_buffer(&mut []), Ok(()));
    }
}
