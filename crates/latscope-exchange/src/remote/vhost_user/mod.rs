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
use anyhow::{Context, Result, bail};
use device::RpmsgDevice;
use latscope_os::signal::{SignalFd, TERMINATION};
use latscope_process::eprintln;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd};
use std::fs;
use std::os::unix::fs::FileTypeExt;
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
pub fn serve(path: &Path) -> Result<()> {
    let signals = SignalFd::block(&TERMINATION)?;
    let place = Place::bind(path)?;
    if readable(&[signals.as_fd(), place.listener.as_fd()], None)?[0] {
        return Ok(());
    }
    let (monitor, _) = place.listener.accept()?;
    // A second monitor finds no listener, not a socket that never answers.
    drop(place);
    eprintln!("a virtual machine is connected");
    let told = attend(monitor, &signals)?;
    eprintln!("{told}");
    Ok(())
}

/// Serves a monitor, and returns a summary of the work.
fn attend(mut monitor: UnixStream, signals: &SignalFd) -> Result<String> {
    // One that stops in the middle of a message does not hold up a signal.
    monitor.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
    monitor.set_write_timeout(Some(MESSAGE_TIMEOUT))?;
    let mut device = RpmsgDevice::default();
    loop {
        let more = device.work()?;
        let sources = [signals.as_fd(), monitor.as_fd()].into_iter().chain(device.kicks());
        let sources: Vec<BorrowedFd> = sources.collect();
        let ready = readable(&sources, Some(if more { Duration::ZERO } else { WATCHDOG }))?;
        if ready[0] {
            return Ok(device.told());
        }
        let kicked = ready[2..].to_vec();
        if ready[1] {
            let Some(message) = VhostUserMessage::receive(&mut monitor)? else { return Ok(device.told()) };
            device.handle(message, &mut monitor)?;
        } else if kicked.contains(&true) {
            device.kicked(&kicked);
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

/// A listening socket; its path is removed with it.
struct Place<'a> {
    listener: UnixListener,
    path: &'a Path,
}

impl Place<'_> {
    /// Listens at a path where nothing is, or a socket without a listener.
    fn bind(path: &Path) -> Result<Place<'_>> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
                let refused = UnixStream::connect(path).map_err(|error| error.kind());
                if !is_socket || !matches!(refused, Err(std::io::ErrorKind::ConnectionRefused)) {
                    bail!("{} is taken", path.display());
                }
                fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            bound => bound,
        };
        let listener = listener.with_context(|| format!("cannot listen at {}", path.display()))?;
        Ok(Place { listener, path })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path);
    }
}
