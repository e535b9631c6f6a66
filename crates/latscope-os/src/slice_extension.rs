//! Extension of a time slice: a thread asks the scheduler for a little more time, and gives the CPU back when it is
//! done (Documentation/userspace-api/rseq.rst, Linux 7.0). The request is a byte of the thread's area of rseq(2).

use crate::syscall::check_errno;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering::Relaxed, compiler_fence};

/// `struct rseq`, in a size that all kernels take.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Area {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    critical_section: [AtomicU32; 2],
    flags: AtomicU32,
    node_id: AtomicU32,
    concurrency_id: AtomicU32,
    request: AtomicU8,
    granted: AtomicU8,
    reserved: AtomicU16,
    more: [AtomicU32; 8],
}

/// Flag of an area of a kernel that can extend slices.
const AVAILABLE: u32 = 1 << 4;
const PR_SLICE_EXTENSION: libc::c_int = 79;
const SET: libc::c_ulong = 2;
const ENABLE: libc::c_ulong = 1;
const SYS_SLICE_YIELD: libc::c_long = 471;
const UNREGISTER: libc::c_int = 1;
/// The error of the kernel's own that says that it was disabled at boot.
const ENOTSUPP: i32 = 524;

#[cfg(target_arch = "aarch64")]
const SIGNATURE: u32 = 0xd428_bc00;
#[cfg(not(target_arch = "aarch64"))]
const SIGNATURE: u32 = 0x5305_3053;

/// The extension, enabled for the thread that made it.
#[derive(Debug)]
pub struct SliceExtension {
    area: *const Area,
    /// True if the area was registered here, not by the C library.
    own: bool,
    thread: PhantomData<*const ()>,
}

impl SliceExtension {
    /// Enables the extension for the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] with the reason: the kernel has no extension, it is disabled, or the C library
    /// registered an area without room for a request.
    pub fn enable() -> io::Result<SliceExtension> {
        if !is_known() {
            return Err(unsupported(
                "this kernel does not extend slices: CONFIG_RSEQ_SLICE_EXTENSION, from Linux 7.0",
            ));
        }
        let extension = match library_area() {
            Some(area) => SliceExtension { area, own: false, thread: PhantomData },
            None => register()?,
        };
        if extension.area().flags.load(Relaxed) & AVAILABLE == 0 {
            return Err(unsupported(
                "the C library's area of rseq has no room for a request (GLIBC_TUNABLES=glibc.pthread.rseq=0 leaves it out)",
            ));
        }
        // SAFETY: the call takes numbers only; the area is registered.
        match check_errno(unsafe { libc::prctl(PR_SLICE_EXTENSION, SET, ENABLE, 0, 0) }) {
            Err(error) if error.raw_os_error() == Some(ENOTSUPP) => {
                Err(unsupported("the extension of slices is disabled (rseq_slice_ext=off at boot)"))
            }
            other => other.map(|_| extension),
        }
    }

    /// Asks for more time, should the slice end before [`withdraw_request`](Self::withdraw_request).
    #[inline]
    pub fn request_extension(&self) {
        self.area().request.store(1, Relaxed);
        // The kernel reads the byte on this thread's own CPU.
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Withdraws the request. Returns true if more time was granted; the CPU is given back then.
    #[inline]
    pub fn withdraw_request(&self) -> bool {
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        self.area().request.store(0, Relaxed);
        let granted = self.area().granted.load(Relaxed) != 0;
        if granted {
            // SAFETY: the call takes no arguments, and only gives the CPU to another thread.
            unsafe { libc::syscall(SYS_SLICE_YIELD) };
        }
        granted
    }

    fn area(&self) -> &Area {
        // SAFETY: the area lives until it is unregistered by `drop`, or as long as the thread, which this never leaves;
        // all of its fields are atomic.
        unsafe { &*self.area }
    }
}

impl Drop for SliceExtension {
    fn drop(&mut self) {
        if self.own {
            // SAFETY: the area was registered by this thread, with the same arguments; it is freed only if the kernel
            // no longer writes to it.
            unsafe {
                if check_errno(rseq(self.area, UNREGISTER)).is_ok() {
                    drop(Box::from_raw(self.area.cast_mut()));
                }
            }
        }
    }
}

fn unsupported(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

/// Returns true if the kernel knows the request, whether enabled or not. An older kernel answers EINVAL.
fn is_known() -> bool {
    // SAFETY: the call takes numbers only, and changes nothing.
    let answer = check_errno(unsafe { libc::prctl(PR_SLICE_EXTENSION, 1 as libc::c_ulong, 0, 0, 0) });
    !matches!(answer, Err(error) if error.raw_os_error() == Some(libc::EINVAL))
}

/// Makes the call rseq(2), which the C library does not export.
///
/// # Safety
/// The area stays where it is until it is unregistered or the thread has ended.
unsafe fn rseq(area: *const Area, flags: libc::c_int) -> libc::c_long {
    // SAFETY: as the caller vouches.
    unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), flags, SIGNATURE) }
}

fn register() -> io::Result<SliceExtension> {
    let area: *const Area = Box::into_raw(Box::default());
    // SAFETY: the area is freed only after it was unregistered, or was never registered.
    unsafe {
        if let Err(error) = check_errno(rseq(area, 0)) {
            drop(Box::from_raw(area.cast_mut()));
            return Err(error);
        }
    }
    Ok(SliceExtension { area, own: true, thread: PhantomData })
}

/// Returns the area of this thread that the C library registered: glibc from 2.35 names its place.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn library_area() -> Option<*const Area> {
    // SAFETY: both symbols are what glibc documents, an offset and a size; others have neither.
    let (offset, size) = unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        (offset.as_ref()?, size.as_ref()?)
    };
    (*size > 0).then(|| (thread_pointer().wrapping_add_signed(*offset)) as *const Area)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn library_area() -> Option<*const Area> {
    None
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register, or the word that the ABI puts at the thread pointer.
    unsafe {
        core::arch::asm!(
            either!("mov {}, fs:0", "mrs {}, tpidr_el0"),
            out(reg) pointer,
            options(nostack, readonly, preserves_flags),
        );
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_area_has_the_layout_of_the_kernel() {
        assert_eq!((size_of::<Area>(), align_of::<Area>()), (64, 64));
        assert_eq!(
            (offset_of!(Area, flags), offset_of!(Area, request), offset_of!(Area, granted)),
            (16, 28, 29)
        );
    }

    #[test]
    fn a_kernel_without_it_is_named() {
        match SliceExtension::enable() {
            Ok(extension) => {
                extension.request_extension();
                extension.withdraw_request();
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
        }
    }
}
