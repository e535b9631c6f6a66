//! Signals a thread sends to itself, and stores that fault: sigaction(2),
//! tgkill(2), and the SIGSEGV of a read-only page.

use crate::page::{Access, PageMapping, page_size};
use crate::syscall::{check_errno, signal_set, syscall};
use rustix::io::{Errno, Result};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

static DELIVERED: AtomicU64 = AtomicU64::new(0);

/// Counts, with a plain load and store: only one thread sends itself the
/// signal, so nothing can come between.
extern "C" fn count_delivery(_: libc::c_int) {
    DELIVERED.store(DELIVERED.load(Relaxed) + 1, Relaxed);
}

/// Action in the kernel's own form, read from the kernel and given back unchanged: its layout differs between
/// architectures and need not be known. 64 bytes are twice the size of any of them (asm/signal.h: handler, flags,
/// restorer, mask).
type KernelAction = [usize; ACTION_WORDS];

const ACTION_WORDS: usize = 64 / size_of::<usize>();

/// Bytes of the kernel's signal mask.
const MASK_BYTES: usize = 8;

/// SIGUSR1 caught by a handler that only counts, and unblocked in this
/// thread. The action and the mask of before come back on drop.
#[derive(Debug)]
pub struct SelfSignal {
    action: KernelAction,
    previous: KernelAction,
    previous_mask: libc::sigset_t,
    process: usize,
    thread: usize,
    /// Marker that binds the value to the thread whose id it holds.
    not_send: PhantomData<*const ()>,
}

impl SelfSignal {
    const SIGNAL: libc::c_int = libc::SIGUSR1;

    /// Installs the handler of the signal.
    ///
    /// # Errors
    /// EPERM or ENOSYS from a seccomp filter; nothing else can fail.
    pub fn install_handler() -> Result<SelfSignal> {
        let previous = kernel_action(Self::SIGNAL)?;
        // SAFETY: `count_delivery` is async-signal-safe: it touches one atomic.
        unsafe { set_handler(Self::SIGNAL, count_delivery as *const () as usize, 0)? };
        let mut previous_mask = signal_set(&[]);
        // SAFETY: one set is read and the other written.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &signal_set(&[Self::SIGNAL]), &mut previous_mask) };
        Ok(SelfSignal {
            action: kernel_action(Self::SIGNAL)?,
            previous,
            previous_mask,
            process: rustix::process::getpid().as_raw_nonzero().get() as usize,
            thread: rustix::thread::gettid().as_raw_nonzero().get() as usize,
            not_send: PhantomData,
        })
    }

    /// Arguments of rt_sigaction(2) that install the same handler once more.
    pub(crate) fn sigaction_arguments(&self) -> [usize; 4] {
        [Self::SIGNAL as usize, self.action.as_ptr() as usize, 0, MASK_BYTES]
    }

    /// Arguments of tgkill(2) that send the signal to this thread; its handler has run when the call returns.
    pub(crate) fn tgkill_arguments(&self) -> [usize; 3] {
        [self.process, self.thread, Self::SIGNAL as usize]
    }

    /// Sends the signal to this thread; its handler has run when this returns.
    ///
    /// # Errors
    /// The errors of [`install_handler`](Self::install_handler).
    #[inline]
    pub fn send_signal(&self) -> Result<()> {
        self.call_tgkill(Self::SIGNAL)
    }

    /// Sends signal 0, which checks everything and delivers nothing.
    ///
    /// # Errors
    /// The errors of [`install_handler`](Self::install_handler).
    #[inline]
    pub fn send_nothing(&self) -> Result<()> {
        self.call_tgkill(0)
    }

    #[inline]
    fn call_tgkill(&self, signal: libc::c_int) -> Result<()> {
        let arguments = [self.process, self.thread, signal as usize, 0, 0, 0];
        // SAFETY: no pointers; the handler of the only signal sent is `count_delivery`.
        unsafe { syscall(libc::SYS_tgkill, arguments).map(drop) }
    }

    /// Returns the number of runs of the handler in this process.
    pub fn delivery_count(&self) -> u64 {
        DELIVERED.load(Relaxed)
    }
}

impl Drop for SelfSignal {
    fn drop(&mut self) {
        // SAFETY: action and mask are those found before, given back as they
        // were read.
        unsafe {
            let _ = set_kernel_action(Self::SIGNAL, &self.previous);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.previous_mask, ptr::null_mut());
        }
    }
}

/// Reads the action of a signal in the kernel's form.
fn kernel_action(signal: libc::c_int) -> Result<KernelAction> {
    let mut action: KernelAction = [0; ACTION_WORDS];
    let arguments = [signal as usize, 0, action.as_mut_ptr() as usize, MASK_BYTES, 0, 0];
    // SAFETY: the kernel writes its structure, which is shorter than ours.
    unsafe { syscall(libc::SYS_rt_sigaction, arguments)? };
    Ok(action)
}

/// Sets an action in the kernel's form.
///
/// # Safety
/// The action was read by [`kernel_action`], and its handler still exists.
#[inline]
unsafe fn set_kernel_action(signal: libc::c_int, action: &KernelAction) -> Result<()> {
    let arguments = [signal as usize, action.as_ptr() as usize, 0, MASK_BYTES, 0, 0];
    // SAFETY: the kernel reads its structure, which is shorter than ours.
    unsafe { syscall(libc::SYS_rt_sigaction, arguments).map(drop) }
}

/// Sets a handler through the C library, which adds the return trampoline.
///
/// # Safety
/// `handler` is a function of the kind that `flags` say, and async-signal-safe.
unsafe fn set_handler(signal: libc::c_int, handler: usize, flags: libc::c_int) -> Result<()> {
    // SAFETY: all zero is a valid value of this C structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags | libc::SA_RESTART;
    // SAFETY: the caller vouches for the handler.
    let set = check_errno(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) });
    set.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

/// Address of the page whose faults this module handles; 0 while there is none.
static TRAP: AtomicUsize = AtomicUsize::new(0);
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// A read-only page, and a SIGSEGV handler that skips the store which faulted
/// on it. Any other SIGSEGV is fatal, as it should be.
#[derive(Debug)]
pub struct FaultTrap {
    page: PageMapping,
    previous: KernelAction,
    address: usize,
}

impl FaultTrap {
    /// Maps the page and installs the handler.
    ///
    /// # Errors
    /// EBUSY (there is one already in this process), ENOSYS (on architectures
    /// other than x86-64 and arm64 the length of the store is not known).
    pub fn install_trap() -> Result<FaultTrap> {
        if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
            return Err(Errno::NOSYS);
        }
        let mut page = PageMapping::anonymous(page_size())?;
        page.populate();
        page.protect(Access::Read)?;
        let address = page.as_ptr() as usize;
        // First of all: the action before is none of ours then.
        TRAP.compare_exchange(0, address, Relaxed, Relaxed).map_err(|_| Errno::BUSY)?;
        let previous = kernel_action(libc::SIGSEGV).and_then(|previous| {
            // SAFETY: `skip` takes what SA_SIGINFO gives and is async-signal-safe.
            unsafe { set_handler(libc::SIGSEGV, skip as *const () as usize, libc::SA_SIGINFO)? };
            Ok(previous)
        });
        let previous = previous.inspect_err(|_| TRAP.store(0, Relaxed))?;
        Ok(FaultTrap { page, previous, address })
    }

    /// Tries to store to the page; returns after the fault was caught and the
    /// store skipped.
    #[inline(always)]
    pub fn try_store(&mut self) {
        store_byte(self.address);
    }

    /// Returns the number of stores caught in this process.
    pub fn caught(&self) -> u64 {
        CAUGHT.load(Relaxed)
    }

    /// The byte stored to, which never changes.
    pub fn byte(&self) -> u8 {
        self.page.read_byte(0)
    }
}

impl Drop for FaultTrap {
    fn drop(&mut self) {
        // SAFETY: the action found before, given back as it was read.
        let _ = unsafe { set_kernel_action(libc::SIGSEGV, &self.previous) };
        TRAP.store(0, Relaxed);
    }
}

/// A store of one byte whose instruction is [`STORE_BYTES`] long.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn store_byte(address: usize) {
    // SAFETY: the address is a page that only faults: `skip` resumes behind.
    // Encoded by hand (mov byte [rdi], al), so that its length is certain.
    unsafe { std::arch::asm!(".byte 0x88, 0x07", in("rdi") address, in("al") 2u8, options(nostack)) }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn store_byte(address: usize) {
    // SAFETY: the address is a page that only faults: `skip` resumes behind.
    // Every arm64 instruction has four bytes.
    unsafe { std::arch::asm!("strb w1, [x0]", in("x0") address, in("w1") 2u32, options(nostack)) }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn store_byte(_: usize) {
    unreachable!("no trap is installed on this architecture");
}

#[cfg(target_arch = "x86_64")]
const STORE_BYTES: i64 = 2;
#[cfg(target_arch = "aarch64")]
const STORE_BYTES: u64 = 4;

/// The SIGSEGV handler: resumes behind the store if the fault is on the trap
/// page, else lets the fault happen again without a handler.
#[allow(unused_variables)] // the context, on architectures without a trap
extern "C" fn skip(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo, which for
    // SIGSEGV has an address, and the context it will resume from.
    unsafe {
        if (*info).si_addr() as usize != TRAP.load(Relaxed) {
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        CAUGHT.store(CAUGHT.load(Relaxed) + 1, Relaxed);
        #[cfg(target_arch = "x86_64")]
        {
            let context = context.cast::<libc::ucontext_t>();
            (*context).uc_mcontext.gregs[libc::REG_RIP as usize] += STORE_BYTES;
        }
        #[cfg(target_arch = "aarch64")]
        {
            let context = context.cast::<libc::ucontext_t>();
            (*context).uc_mcontext.pc += STORE_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Handlers belong to the process, so the tests take turns.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn a_signal_has_been_handled_when_sending_returns() {
        let _turn = TURN.lock().unwrap_or_else(|turn| turn.into_inner());
        let signal = SelfSignal::install_handler().unwrap();
        let before = signal.delivery_count();
        signal.send_signal().unwrap();
        signal.send_signal().unwrap();
        signal.send_nothing().unwrap();
        assert_eq!(signal.delivery_count() - before, 2);
    }

    #[test]
    fn installing_again_changes_nothing_and_dropping_restores() {
        let _turn = TURN.lock().unwrap_or_else(|turn| turn.into_inner());
        let before = kernel_action(SelfSignal::SIGNAL).unwrap();
        let signal = SelfSignal::install_handler().unwrap();
        let installed = kernel_action(SelfSignal::SIGNAL).unwrap();
        assert_eq!(installed[0], count_delivery as *const () as usize);
        // SAFETY: the action is the one in force.
        unsafe { set_kernel_action(SelfSignal::SIGNAL, &signal.action) }.unwrap();
        assert_eq!(kernel_action(SelfSignal::SIGNAL).unwrap(), installed);
        drop(signal);
        assert_eq!(kernel_action(SelfSignal::SIGNAL).unwrap(), before);
    }

    #[test]
    fn a_faulting_store_is_caught_and_skipped() {
        let _turn = TURN.lock().unwrap_or_else(|turn| turn.into_inner());
        let before = kernel_action(libc::SIGSEGV).unwrap();
        let mut trap = FaultTrap::install_trap().unwrap();
        assert_eq!(FaultTrap::install_trap().unwrap_err(), Errno::BUSY);
        let caught = trap.caught();
        trap.try_store();
        trap.try_store();
        assert_eq!((trap.caught() - caught, trap.byte()), (2, 1));
        drop(trap);
        assert_eq!(kernel_action(libc::SIGSEGV).unwrap(), before);
    }
}
