//! Devices of a network namespace, by messages to the kernel: rtnetlink(7).

use crate::prelude::*;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::net::Ipv4Addr;

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const ERROR: u16 = 2;

/// Attributes of links (IFLA_*) and of addresses (IFA_*).
const NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const NAMESPACE: u16 = 28;
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;

/// Flag of a device that is up (IFF_UP).
const UP: u32 = 1;

/// Makes a pair of virtual Ethernet devices of one name, one here and one in the other network namespace.
///
/// # Errors
/// It takes CAP_NET_ADMIN in both, and a kernel with veth.
pub fn make_pair(name: &str, other: BorrowedFd) -> Result<()> {
    send_request(NEW_LINK, CREATE | EXCLUSIVE, &encode_veth_pair(name, other.as_raw_fd()))
        .context("make a veth pair")
}

/// Gives a device of this namespace an address in a network of 24 bits, and brings it up.
///
/// # Errors
/// There is no such device, or the right (CAP_NET_ADMIN) is missing.
pub fn bring_up(name: &str, address: Ipv4Addr) -> Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let index = name_to_index(&socket, name).with_context(|| format!("the device {name}"))?;
    send_request(NEW_ADDRESS, CREATE | EXCLUSIVE, &address_of(index, address)).context("set an address")?;
    send_request(NEW_LINK, 0, &encode_ifinfomsg(index, UP)).with_context(|| format!("bring {name} up"))
}

/// `struct ifinfomsg`.
fn encode_ifinfomsg(index: u32, flags: u32) -> Vec<u8> {
    [0_u32, index, flags, flags].into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn encode_veth_pair(name: &str, namespace: i32) -> Vec<u8> {
    let name = attribute(NAME, &[name.as_bytes(), &[0]].concat());
    let there = attribute(NAMESPACE, &namespace.to_ne_bytes());
    let peer = attribute(VETH_PEER, &[encode_ifinfomsg(0, 0), name.clone(), there].concat());
    let info = [attribute(INFO_KIND, b"veth"), attribute(INFO_DATA, &peer)].concat();
    [encode_ifinfomsg(0, 0), name, attribute(LINK_INFO, &info)].concat()
}

/// `struct ifaddrmsg` with its attributes.
fn address_of(index: u32, address: Ipv4Addr) -> Vec<u8> {
    const INET: u8 = 2;
    let head = [&[INET, 24, 0, 0][..], &index.to_ne_bytes()].concat();
    let octets = address.octets();
    [head, attribute(LOCAL, &octets), attribute(ADDRESS, &octets)].concat()
}

/// An attribute, with the bytes behind it up to a multiple of 4.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = [&(length as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// A message with its header, which asks for an answer.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    const HEADER: usize = 16;
    let flags = flags | REQUEST | ACKNOWLEDGE;
    let length = ((HEADER + body.len()) as u32).to_ne_bytes();
    [&length[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &1_u32.to_ne_bytes(), &[0; 4], body].concat()
}

/// Sends a request to the kernel and waits for its answer.
fn send_request(kind: u16, flags: u16, body: &[u8]) -> Result<()> {
    // The first protocol of the family is that of devices and addresses, NETLINK_ROUTE.
    let (family, kind_of) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind_of, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message(kind, flags, body), SendFlags::empty())?;
    let mut answer = [0_u8; 4096];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let error = error_in(&answer[..length]).context("the kernel did not answer")?;
    ensure!(error == 0, Errno::from_raw_os_error(-error));
    Ok(())
}

/// Error number in the kernel's answer, negative, or 0; `None` if it is another message.
fn error_in(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let error = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == ERROR).then_some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_state_their_own_length() {
        assert_eq!(attribute(7, b"ab")[..2], 6_u16.to_ne_bytes());
        assert_eq!(attribute(7, b"ab").len(), 8);
        let message = message(NEW_LINK, CREATE, &encode_ifinfomsg(3, UP));
        assert_eq!(message.len(), 32);
        assert_eq!(message[..4], 32_u32.to_ne_bytes());
        assert_eq!(message[6..8], (CREATE | REQUEST | ACKNOWLEDGE).to_ne_bytes());
    }

    #[test]
    fn a_pair_names_its_kind_and_its_other_namespace() {
        let pair = encode_veth_pair("latscope0", 42);
        let holds = |part: &[u8]| pair.windows(part.len()).any(|window| window == part);
        assert!(holds(&attribute(INFO_KIND, b"veth")) && holds(&attribute(NAMESPACE, &42_i32.to_ne_bytes())));
        assert_eq!(pair.windows(10).filter(|window| *window == b"latscope0\0").count(), 2);
    }

    #[test]
    fn an_answer_has_an_error_or_none() {
        let answer = |kind: u16, error: i32| {
            [&[0; 4][..], &kind.to_ne_bytes(), &[0; 10], &error.to_ne_bytes()].concat()
        };
        assert_eq!(error_in(&answer(ERROR, -1)), Some(-1));
        assert_eq!(error_in(&answer(ERROR, 0)), Some(0));
        assert_eq!((error_in(&answer(3, 0)), error_in(&[])), (None, None));
    }
}
