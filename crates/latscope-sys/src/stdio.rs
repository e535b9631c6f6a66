//! Whether standard output was open when the process began. Before `main` the
//! runtime opens /dev/null in the place of a closed one, where all can be written.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls what is in this section before the runtime is there; `look` needs neither.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD on whatever number is harmless, and tells whether it is open.
    let open = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } >= 0;
    CLOSED.store(!open, Ordering::Relaxed);
}

/// Whether the process was started without a standard output.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
