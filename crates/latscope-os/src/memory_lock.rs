//! Check that memory can be locked: mlock2(2) tried on a mapping made for the check.

use crate::mapping::MemoryMapping;
use rustix::io;
use rustix::mm::{MapFlags, MlockFlags, ProtFlags, mlock_with};

/// Maps `bytes` of memory, locks them and gives them back.
///
/// The pages are locked as they come (`MLOCK_ONFAULT`), which is charged to
/// `RLIMIT_MEMLOCK` in full but touches no memory, so a large amount can be
/// tried at no cost.
///
/// # Errors
/// `EPERM` or `ENOMEM` when the limit forbids it (mlock(2)), `ENOSYS` or
/// `EINVAL` before Linux 4.4.
pub fn try_lock(bytes: usize) -> io::Result<()> {
    let memory = MemoryMapping::anonymous(bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::NORESERVE)?;
    // SAFETY: the range is the mapping just made, which is unlocked as it is unmapped; locking does not change what
    // it holds.
    unsafe { mlock_with(memory.start.as_ptr().cast(), bytes, MlockFlags::ONFAULT) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_trial_is_granted_or_refused_for_a_reason() {
        match try_lock(1 << 20) {
            Ok(()) | Err(Errno::PERM | Errno::NOMEM | Errno::NOSYS) => {}
            other => panic!("mlock2 answered {other:?}"),
        }
        assert_eq!(try_lock(0), Err(Errno::INVAL));
    }
}
