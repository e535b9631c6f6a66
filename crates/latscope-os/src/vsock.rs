//! Stream sockets between virtual machines and their host, here between two
//! processes of one system: vsock(7), over the address `VMADDR_CID_LOCAL`.

use crate::syscall::check_errno;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::io;

/// The socket address of `VMADDR_CID_LOCAL`.
fn local_address(port: u32) -> libc::sockaddr_vm {
    // SAFETY: sockaddr_vm is plain data for which zeroes are valid.
    let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
    address.svm_family = libc::AF_VSOCK as libc::sa_family_t;
    address.svm_cid = libc::VMADDR_CID_LOCAL;
    address.svm_port = port;
    address
}

const LENGTH: libc::socklen_t = size_of::<libc::sockaddr_vm>() as libc::socklen_t;

fn own_descriptor(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor without another owner.
    check_errno(descriptor).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: the call has no pointers.
    own_descriptor(unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })
}

/// Two connected stream sockets.
///
/// # Errors
/// `EAFNOSUPPORT`: a kernel without vsock. `EADDRNOTAVAIL`, `ENODEV` and others: no local transport.
pub fn connected_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let listening = socket()?;
    let mut bound = local_address(libc::VMADDR_PORT_ANY);
    let mut length = LENGTH;
    // SAFETY: the address is valid for the calls and has the length that is passed.
    unsafe {
        check_errno(libc::bind(listening.as_raw_fd(), (&raw const bound).cast(), LENGTH))?;
        check_errno(libc::listen(listening.as_raw_fd(), 1))?;
        check_errno(libc::getsockname(listening.as_raw_fd(), (&raw mut bound).cast(), &mut length))?;
    }
    let connected = socket()?;
    // SAFETY: as above; accept takes no address.
    unsafe {
        check_errno(libc::connect(connected.as_raw_fd(), (&raw const bound).cast(), LENGTH))?;
        let (none, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
        let accepted =
            own_descriptor(libc::accept4(listening.as_raw_fd(), none, no_length, libc::SOCK_CLOEXEC))?;
        Ok((connected, accepted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_laid_out_as_the_kernel_has_it() {
        assert_eq!(
            (size_of::<libc::sockaddr_vm>(), std::mem::offset_of!(libc::sockaddr_vm, svm_port)),
            (16, 4)
        );
        assert_eq!(std::mem::offset_of!(libc::sockaddr_vm, svm_cid), 8);
    }

    #[test]
    fn two_sockets_are_connected_or_the_system_says_why_not() {
        match connected_pair() {
            Ok((first, second)) => {
                rustix::io::write(&first, b"there").unwrap();
                let mut buffer = [0; 5];
                assert_eq!(rustix::io::read(&second, &mut buffer), Ok(5));
                assert_eq!(&buffer, b"there");
            }
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
