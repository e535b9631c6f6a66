//! The process at the other end of a socket.

/// Returns the process at the other end of a connected Unix socket, or that which listened for it; `None` of any other
/// descriptor (`SO_PEERCRED`, unix(7)).
pub fn peer_process(descriptor: i32) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is valid to write `length` bytes to; of a descriptor that is no socket the kernel returns an
    // error.
    let returned = unsafe {
        libc::getsockopt(
            descriptor,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &mut length,
        )
    };
    (returned == 0 && peer.pid > 0).then_some(peer.pid as u32)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    #[test]
    fn a_pair_of_sockets_is_this_processs_and_a_file_has_no_peer() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(super::peer_process(one.as_raw_fd()), Some(std::process::id()));
        assert_eq!(super::peer_process(std::fs::File::open("/").unwrap().as_raw_fd()), None);
        assert_eq!(super::peer_process(-1), None);
    }
}
