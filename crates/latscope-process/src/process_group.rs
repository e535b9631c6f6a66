//! Process groups: a load and all processes that its command started.

use rustix::process::{Pid, Signal};

/// Kills all processes of a group.
///
/// # Errors
/// There is no such group.
pub(crate) fn kill(group: u32) -> rustix::io::Result<()> {
    let group = Pid::from_raw(group as i32).ok_or(rustix::io::Errno::SRCH)?;
    rustix::process::kill_process_group(group, Signal::KILL)
}
