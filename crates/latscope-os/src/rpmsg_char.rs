//! Endpoints of RPMsg as character devices.
//!
//! Source: include/uapi/linux/rpmsg.h.

use rustix::fd::AsFd;
use rustix::io;
use rustix::ioctl::{NoArg, Opcode, Setter, ioctl, opcode};

/// Layout of `struct rpmsg_endpoint_info`.
#[repr(C)]
struct Info {
    name: [u8; 32],
    source: u32,
    destination: u32,
}

const GROUP: u8 = 0xB5;
const CREATE: Opcode = opcode::write::<Info>(GROUP, 1);
const DESTROY: Opcode = opcode::none(GROUP, 2);

/// An address that the kernel is to choose.
pub const ANY: u32 = u32::MAX;

/// Makes a device for an endpoint at `/dev/rpmsg_ctrlN`. The kernel does not report the name of the device: it is found
/// in `/sys/class/rpmsg`. A name of more than 31 bytes is cut.
///
/// # Errors
/// `control` is no such device, the remote no longer exists, or no memory is left.
pub fn create_endpoint(control: impl AsFd, name: &str, source: u32, destination: u32) -> io::Result<()> {
    let mut info = Info { name: [0; 32], source, destination };
    let length = name.len().min(info.name.len() - 1);
    info.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: the kernel reads an `Info` for this request, and keeps nothing of it.
    unsafe { ioctl(control, Setter::<CREATE, Info>::new(info)) }
}

/// Removes the device of an endpoint that [`create_endpoint`] made.
///
/// # Errors
/// The endpoint was made otherwise, or is no such device.
pub fn destroy(endpoint: impl AsFd) -> io::Result<()> {
    // SAFETY: this request has no argument.
    unsafe { ioctl(endpoint, NoArg::<DESTROY>::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_are_those_of_the_kernel() {
        assert_eq!((CREATE, DESTROY, size_of::<Info>()), (0x4028_B501, 0xB502, 40));
    }

    #[test]
    fn another_file_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(create_endpoint(&file, "rpc-ping", ANY, 1024), Err(io::Errno::NOTTY));
        assert_eq!(destroy(&file), Err(io::Errno::NOTTY));
    }
}
