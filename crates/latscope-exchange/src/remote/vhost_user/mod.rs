//! Remote processor for a virtual machine's guest: its Linux uses its own `virtio_rpmsg_bus`, and this program is the
//! device (virtio ID 7).
//!
//! The monitor (QEMU) connects, hands over the guest's memory and a kick for
//! each direction of each ring, and from then on guest and device talk without
//! it. What is in the memory, the guest wrote, and is not trusted; the monitor
//! is, as far as it could end this process by shrinking the memory's file.

mod device;
mod memory;
#[cfg(test)]
mod tests;
mod wire;

use crate::notify::poll;
use anyhow::{Context, Result};
use device::RpmsgDevice;
use latscope_os::signal::{SignalFd, TERMINATION};
use latscope_process::eprintln;
use latscope_process::files::Looked;
use latscope_process::made_name::MadeName;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::FileType;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use wire::VhostUserMessage;

/// Longest wait for a kick before the next look: a kick may be lost.
const WATCHDOG: Duration = Duration::from_millis(100);

/// Time for a message of the monitor that has begun.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Plays the remote processor for one guest: waits at a path for its monitor,
/// and serves until that goes, or until a signal ends it. Nothing is left at the path.
///
/// # Errors
/// The path is taken, or the monitor speaks another protocol.
pub fn serve_guest(path: &Path) -> Result<()> {
    let signals = SignalFd::block(&TERMINATION)?;
    let (listener, name) = bind(path)?;
    if readable(&[signals.as_fd(), listener.as_fd()], None)?[0] {
        return Ok(());
    }
    let (monitor, _) = listener.accept()?;
    // A second monitor finds no listener, not a socket that never answers.
    drop((listener, name));
    eprintln!("a virtual machine is connected");
    let told = serve_monitor(monitor, &signals)?;
    eprintln!("{told}");
    Ok(())
}

/// Serves a monitor, and returns a summary of the work.
fn serve_monitor(mut monitor: UnixStream, signals: &SignalFd) -> Result<String> {
    // One that stops in the middle of a message does not hold up a signal.
    monitor.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
    monitor.set_write_timeout(Some(MESSAGE_TIMEOUT))?;
    let mut device = RpmsgDevice::default();
    loop {
        let more = device.answer_guest()?;
        let sources = [signals.as_fd(), monitor.as_fd()].into_iter().chain(device.kick_descriptors());
        let sources: Vec<BorrowedFd> = sources.collect();
        let ready = readable(&sources, Some(if more { Duration::ZERO } else { WATCHDOG }))?;
        if ready[0] {
            return Ok(device.into_summary());
        }
        let kicked = ready[2..].to_vec();
        if ready[1] {
            let Some(message) = VhostUserMessage::receive(&mut monitor)? else {
                return Ok(device.into_summary());
            };
            device.handle(message, &mut monitor)?;
        } else if kicked.contains(&true) {
            device.take_kicks(&kicked);
        }
    }
}

/// Waits until one of the descriptors can be read; which can.
fn readable(descriptors: &[BorrowedFd], time: Option<Duration>) -> Result<Vec<bool>> {
    let watched = descriptors.iter().map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN));
    let mut watched: Vec<PollFd> = watched.collect();
    poll(&mut watched, time)?;
    Ok(watched.iter().map(|one| !one.revents().is_empty()).collect())
}

/// Listens at a path where nothing is, or a socket without a listener. The socket goes with the name.
fn bind(path: &Path) -> Result<(UnixListener, MadeName)> {
    let listening = match MadeName::listen_at(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let left = MadeName::take_over(path, is_without_listener);
            let left = left.with_context(|| format!("cannot listen at {}", path.display()))?;
            drop(left.with_context(|| format!("{} is taken", path.display()))?);
            MadeName::listen_at(path)
        }
        listening => listening,
    };
    listening.with_context(|| format!("cannot listen at {}", path.display()))
}

/// Returns true if a file is a socket that no process listens to any more.
fn is_without_listener(looked: &Looked) -> bool {
    // By what was looked at: another user can have put a link to another socket there since.
    let refused = || UnixStream::connect(looked.exact_path()).map_err(|error| error.kind());
    looked.kind() == FileType::Socket && matches!(refused(), Err(io::ErrorKind::ConnectionRefused))
}
