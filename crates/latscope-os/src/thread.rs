//! Creating and joining threads with libc, the calls themselves and nothing
//! beside them: pthread_create(3), pthread_join(3).
//!
//! The standard library's `spawn` allocates, counts references and names the
//! thread. Here the body is a `&'static` closure, made beforehand, so that
//! neither side allocates or frees while the calls are timed: a first `free`
//! in a new thread would set up its allocator arena.

use crate::syscall::check_number;
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;

/// Attributes of threads to be created: pthread_attr_init(3).
#[derive(Debug)]
pub struct PosixThreadAttributes(libc::pthread_attr_t);

impl PosixThreadAttributes {
    /// The default attributes, with a stack of `stack_size` bytes if given.
    ///
    /// # Errors
    /// The size is below the minimum or no multiple of the page size.
    pub fn new(stack_size: Option<usize>) -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: init fills what the pointer refers to before it is used.
        let mut attributes = unsafe {
            check_number(libc::pthread_attr_init(raw.as_mut_ptr()))?;
            PosixThreadAttributes(raw.assume_init())
        };
        if let Some(size) = stack_size {
            // SAFETY: the attributes are initialised.
            check_number(unsafe { libc::pthread_attr_setstacksize(&mut attributes.0, size) })?;
        }
        Ok(attributes)
    }
}

impl Drop for PosixThreadAttributes {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: they were initialised by new and are not used afterwards.
        unsafe { libc::pthread_attr_destroy(&mut self.0) };
    }
}

/// A thread that has been created. Dropping it joins it.
#[derive(Debug)]
pub struct PosixThread(Option<libc::pthread_t>);

/// Creates a thread that runs `body` once and ends.
///
/// # Errors
/// `EAGAIN`: a limit on threads or memory is reached.
#[inline]
pub fn create_thread<F: Fn() + Sync>(
    attributes: &PosixThreadAttributes,
    body: &'static F,
) -> io::Result<PosixThread> {
    let mut id = MaybeUninit::uninit();
    let argument: *const F = body;
    // SAFETY: the attributes are initialised; `run_body::<F>` gets the pointer it
    // expects, to a body that lives for ever and may be called from any thread.
    let result = unsafe {
        libc::pthread_create(id.as_mut_ptr(), &attributes.0, run_body::<F>, argument.cast_mut().cast())
    };
    check_number(result)?;
    // SAFETY: pthread_create succeeded and has stored the id.
    Ok(PosixThread(Some(unsafe { id.assume_init() })))
}

/// A panic in the body ends the process: unwinding stops at `extern "C"`.
extern "C" fn run_body<F: Fn() + Sync>(body: *mut c_void) -> *mut c_void {
    // SAFETY: `create_thread` passes a `&'static F`.
    let body: &F = unsafe { &*body.cast_const().cast() };
    body();
    std::ptr::null_mut()
}

impl PosixThread {
    /// Waits for the end of the thread and frees its resources in libc.
    ///
    /// # Errors
    /// `EDEADLK` when the thread joins itself.
    #[inline]
    pub fn join(mut self) -> io::Result<()> {
        self.join_once()
    }

    #[inline]
    fn join_once(&mut self) -> io::Result<()> {
        match self.0.take() {
            // SAFETY: the id came from pthread_create and is joined once:
            // `take` leaves none for a second time.
            Some(id) => check_number(unsafe { libc::pthread_join(id, std::ptr::null_mut()) }),
            None => Ok(()),
        }
    }
}

impl Drop for PosixThread {
    #[inline]
    fn drop(&mut self) {
        // Only a thread that drops its own handle gets an error; it goes on.
        let _ = self.join_once();
    }
}

/// pthread functions return the error instead of setting errno.
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    static RUNS: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_thread_runs_its_body_once_before_join_returns() {
        static BODY: fn() = || {
            RUNS.fetch_add(1, SeqCst);
        };
        let attributes = PosixThreadAttributes::new(Some(1 << 20)).unwrap();
        for runs in 1..=3 {
            create_thread(&attributes, &BODY).unwrap().join().unwrap();
            assert_eq!(RUNS.load(SeqCst), runs);
        }
        drop(create_thread(&attributes, &BODY).unwrap());
        assert_eq!(RUNS.load(SeqCst), 4);
    }

    #[test]
    fn an_impossible_stack_is_refused() {
        assert!(PosixThreadAttributes::new(Some(1)).is_err());
    }
}
