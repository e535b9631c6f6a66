//! The server of QEMU's `ivshmem-doorbell`: hands out a window, and a kick a direction.
//!
//! Sources: docs/specs/ivshmem-spec.txt of QEMU (protocol version 0), unix(7), eventfd(2).

use crate::syscall::is_readable;
use crate::window::MemoryWindow;
use latscope_rpmsg::image::{GUEST, HOST};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// The version of the protocol.
const VERSION: i64 = 0;
/// Number of the message that brings the memory.
const MEMORY: i64 = -1;

/// A socket that QEMU connects to when it starts.
#[derive(Debug)]
pub struct IvshmemServer(UnixListener);

impl IvshmemServer {
    /// Listens at a path where no file exists.
    ///
    /// # Errors
    /// The errors of bind(2).
    pub fn bind(path: &Path) -> io::Result<IvshmemServer> {
        UnixListener::bind(path).map(IvshmemServer)
    }

    /// Waits until QEMU connects, and gives it the window and a kick for each direction.
    ///
    /// # Errors
    /// [`TimedOut`](io::ErrorKind::TimedOut); QEMU went away, or out of descriptors.
    pub fn accept(&self, window: &MemoryWindow, timeout: Duration) -> io::Result<Doorbell> {
        if !is_readable(&self.0, timeout)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (connection, _) = self.0.accept()?;
        Doorbell::new(connection, window)
    }
}

/// Kicks to and from the guest; the guest has none any more when this is dropped.
#[derive(Debug)]
pub struct Doorbell {
    to_guest: OwnedFd,
    to_host: OwnedFd,
    /// Connection to QEMU. QEMU takes its end for the end of the server.
    connection: UnixStream,
}

impl Doorbell {
    /// Makes a doorbell, and the connection that a QEMU started by this program is to inherit as its `-chardev`: no
    /// name is needed.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn connected_pair(window: &MemoryWindow) -> io::Result<(Doorbell, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Doorbell::new(ours, window)?, theirs.into()))
    }

    fn new(connection: UnixStream, window: &MemoryWindow) -> io::Result<Doorbell> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let doorbell = Doorbell { to_guest: eventfd(0, flags)?, to_host: eventfd(0, flags)?, connection };
        doorbell.send_handshake(window)?;
        Ok(doorbell)
    }

    /// Sends the first messages of the protocol: the version, the guest's number, the memory, the vector of the other
    /// side, the guest's own vector.
    fn send_handshake(&self, window: &MemoryWindow) -> io::Result<()> {
        self.send_number(VERSION, None)?;
        self.send_number(GUEST.into(), None)?;
        self.send_number(MEMORY, Some(window.descriptor()))?;
        self.send_number(HOST.into(), Some(self.to_host.as_fd()))?;
        self.send_number(GUEST.into(), Some(self.to_guest.as_fd()))
    }

    /// Sends a number, and a descriptor that belongs to it.
    fn send_number(&self, number: i64, descriptor: Option<BorrowedFd>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.as_slice();
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = number.to_le_bytes();
        let sent = sendmsg(&self.connection, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Interrupts the guest by its event descriptor.
    ///
    /// # Errors
    /// The errors of write(2).
    pub fn kick(&self) -> io::Result<()> {
        rustix::io::write(&self.to_guest, &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Sleeps until the guest kicks, or has kicked since the last call. Returns false after the timeout.
    ///
    /// # Errors
    /// The errors of poll(2) and read(2).
    pub fn wait_for_kick(&self, timeout: Duration) -> io::Result<bool> {
        if !is_readable(&self.to_host, timeout)? {
            return Ok(false);
        }
        rustix::io::read(&self.to_host, &mut [0; 8])?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::io::IoSliceMut;

    /// Returns the next number, and the descriptor that comes with it, as QEMU receives them.
    fn receive(connection: &UnixStream) -> (i64, Option<OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 8];
        let into = &mut [IoSliceMut::new(&mut bytes)];
        recvmsg(connection, into, &mut ancillary, RecvFlags::CMSG_CLOEXEC).unwrap();
        let descriptor = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        (i64::from_le_bytes(bytes), descriptor)
    }

    #[test]
    fn a_guest_gets_the_window_and_both_kicks() {
        let directory = std::env::temp_dir().join(format!("latscope-ivshmem-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("socket");
        let server = IvshmemServer::bind(&path).unwrap();
        let guest = UnixStream::connect(&path).unwrap();
        let doorbell =
            server.accept(&MemoryWindow::create_zeroed(4096).unwrap(), Duration::from_secs(9)).unwrap();
        std::fs::remove_dir_all(directory).unwrap();

        let [version, id, memory, host, own] = std::array::from_fn(|_| receive(&guest));
        assert_eq!([version.0, id.0, memory.0, host.0, own.0], [0, 1, -1, 0, 1]);
        assert!(version.1.is_none() && id.1.is_none());
        assert_eq!(rustix::fs::fstat(memory.1.unwrap()).unwrap().st_size, 4096);

        assert!(!doorbell.wait_for_kick(Duration::ZERO).unwrap());
        rustix::io::write(host.1.unwrap(), &1u64.to_ne_bytes()).unwrap();
        assert!(doorbell.wait_for_kick(Duration::from_secs(9)).unwrap());
        doorbell.kick().unwrap();
        assert!(is_readable(&own.1.unwrap(), Duration::ZERO).unwrap());
    }

    #[test]
    fn a_guest_that_does_not_come_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("latscope-ivshmem-alone-{}", std::process::id()));
        let server = IvshmemServer::bind(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let error = server.accept(&MemoryWindow::create_zeroed(4096).unwrap(), Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
