//! Network namespaces and busy polling: unshare(2), socket(7).

use crate::syscall::check_errno;
use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Gives the calling thread, and its later children, a network namespace of its own, with a loopback device that is
/// down. It goes with its last thread and socket.
///
/// # Errors
/// `EPERM`: it takes CAP_SYS_ADMIN. `EINVAL`: a kernel without network namespaces.
pub fn own_network() -> io::Result<()> {
    // SAFETY: unshare takes flags only, and no memory or descriptor of this process is concerned.
    check_errno(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Makes receiving on a socket poll the device's queue for so many microseconds before it sleeps (SO_BUSY_POLL).
///
/// # Errors
/// `EPERM`: it takes CAP_NET_ADMIN. `ENOPROTOOPT`: a kernel without busy polling.
pub fn set_busy_poll(socket: impl AsFd, microseconds: u32) -> io::Result<()> {
    let length = size_of::<u32>() as libc::socklen_t;
    let value = (&raw const microseconds).cast();
    // SAFETY: the kernel reads an integer of that length.
    check_errno(unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, value, length)
    })
    .map(drop)
}

/// Returns the id of the queue (NAPI) from which a socket received last; 0 if it came from none that could be polled.
///
/// # Errors
/// `ENOPROTOOPT`: a kernel without busy polling.
pub fn polled_queue(socket: impl AsFd) -> io::Result<u32> {
    let (mut id, mut length) = (0_u32, size_of::<u32>() as libc::socklen_t);
    // SAFETY: the kernel writes an integer of that length.
    check_errno(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_INCOMING_NAPI_ID,
            (&raw mut id).cast(),
            &mut length,
        )
    })?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    #[test]
    fn a_namespace_of_its_own_has_no_way_out() {
        let reached = std::thread::spawn(|| {
            own_network()
                .map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|s| s.connect("127.0.0.1:9")))
        });
        match reached.join().unwrap() {
            Ok(connected) => assert!(connected.is_err(), "its loopback device is down"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
    }

    #[test]
    fn what_comes_over_loopback_came_from_no_queue() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        socket.recv(&mut [0]).unwrap();
        assert_eq!(polled_queue(&socket).unwrap_or(0), 0);
    }
}
