//! Descriptors that were open when the process began, and so inherited. Before `main` the runtime opens /dev/null in
//! the place of a closed standard output, to which every write succeeds.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A bit for each of the first descriptors that was open and belongs to nothing in this process.
static INHERITED: AtomicU32 = AtomicU32::new(0);

// SAFETY: the loader calls what is in this section before the runtime is there; `look` needs neither.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = record_inherited;

extern "C" fn record_inherited() {
    // SAFETY: F_GETFD on whatever number is harmless, and tells whether it is open.
    let open = |number: &i32| unsafe { libc::fcntl(*number, libc::F_GETFD) } >= 0;
    INHERITED.store((0..32).filter(open).fold(0, |all, number| all | 1 << number), Relaxed);
}

/// Returns true if the process was started without a standard output.
pub fn stdout_was_closed() -> bool {
    INHERITED.load(Relaxed) & 1 << libc::STDOUT_FILENO == 0
}

/// Returns true if a descriptor was inherited and was not taken before. The caller owns it from then on.
pub(crate) fn take_inherited(number: u32) -> bool {
    1u32.checked_shl(number).is_some_and(|bit| INHERITED.fetch_and(!bit, Relaxed) & bit != 0)
}
