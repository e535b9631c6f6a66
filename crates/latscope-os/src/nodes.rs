//! Placement of memory on NUMA nodes, and where it is: mbind(2), get_mempolicy(2), move_pages(2).

use crate::syscall::check_errno;
use std::collections::BTreeMap;
use std::io;

/// Nodes that a mask of this module has room for, as many as the kernel can be built for (`MAX_NUMNODES`).
pub const MOST_NODES: u32 = 1024;

const BITS: u32 = u64::BITS;
type Mask = [u64; (MOST_NODES / BITS) as usize];

/// `maxnode` of the calls: the kernel reads one bit less than it says.
const MAX_NODE: u64 = MOST_NODES as u64 + 1;

/// Flag of get_mempolicy(2): the policy of an address, not of the thread.
const MPOL_F_ADDR: libc::c_int = 2;

/// Pages that one call asks for.
const BATCH: usize = 1 << 14;

/// Binds memory to a node: pages that are touched from now on come from there or not at all (`MPOL_BIND`).
///
/// # Errors
/// There is no such node with memory, the kernel knows no nodes, or a seccomp filter refuses the call.
pub(crate) fn bind(start: usize, bytes: usize, node: u32) -> io::Result<()> {
    let mut mask: Mask = [0; _];
    let word = mask.get_mut((node / BITS) as usize).ok_or(io::ErrorKind::InvalidInput)?;
    *word |= 1 << (node % BITS);
    // SAFETY: a policy changes where pages come from, not what they contain; the mask is as long as stated.
    check_errno(unsafe {
        libc::syscall(libc::SYS_mbind, start, bytes, libc::MPOL_BIND, mask.as_ptr(), MAX_NODE, 0)
    })
    .map(drop)
}

/// Returns the policy of the memory at an address in words, as the kernel has it: `bind 2`.
pub(crate) fn policy(address: usize) -> io::Result<String> {
    let (mut mode, mut mask): (libc::c_int, Mask) = (0, [0; _]);
    // SAFETY: the kernel writes an int and a mask of the stated length.
    check_errno(unsafe {
        let mask = mask.as_mut_ptr();
        libc::syscall(libc::SYS_get_mempolicy, &mut mode, mask, MAX_NODE, address, MPOL_F_ADDR)
    })?;
    let words =
        ["default", "preferred", "bind", "interleave", "local", "preferred-many", "weighted-interleave"];
    let word = usize::try_from(mode & 0xff).ok().and_then(|mode| words.get(mode).copied());
    let nodes = (0..MOST_NODES).filter(|node| mask[(node / BITS) as usize] >> (node % BITS) & 1 == 1);
    let nodes: Vec<String> = nodes.map(|node| node.to_string()).collect();
    Ok(format!("{} {}", word.unwrap_or("unknown"), nodes.join(",")).trim_end().to_owned())
}

/// Number of pages on each node; those that are nowhere, or whose node the kernel does not say, have `None`.
pub type NumaPageCounts = BTreeMap<Option<u32>, u64>;

/// Counts the pages at these addresses by node.
pub(crate) fn count_pages(addresses: impl Iterator<Item = usize>) -> io::Result<NumaPageCounts> {
    let mut addresses = addresses.peekable();
    let mut pages = NumaPageCounts::new();
    while addresses.peek().is_some() {
        let batch: Vec<usize> = addresses.by_ref().take(BATCH).collect();
        let mut nodes: Vec<libc::c_int> = vec![-1; batch.len()];
        let nowhere = std::ptr::null::<libc::c_int>();
        // SAFETY: without target nodes the call only asks; both arrays are as long as stated.
        check_errno(unsafe {
            let (addresses, nodes) = (batch.as_ptr(), nodes.as_mut_ptr());
            libc::syscall(libc::SYS_move_pages, 0, batch.len(), addresses, nowhere, nodes, 0)
        })?;
        for node in nodes {
            *pages.entry(u32::try_from(node).ok()).or_default() += 1;
        }
    }
    Ok(pages)
}

/// Bytes of a node's memory that can be had without swapping, as far as the kernel says: `MemFree` and the cached files
/// that were not used of late. `None` if it does not say.
pub fn available(node: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
    Some(kilobytes(&text, "MemFree:")? + kilobytes(&text, "Inactive(file):").unwrap_or(0))
}

/// Reads `Node 0 MemFree:  1024 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once(name))?.1;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_memory_of_a_node_is_read() {
        let text = "Node 1 MemTotal:  262144 kB\nNode 1 MemFree:   1000 kB\nNode 1 Inactive(file):  24 kB\n";
        assert_eq!(kilobytes(text, "MemFree:"), Some(1_024_000));
        assert_eq!(kilobytes(text, "Inactive(file):"), Some(24 << 10));
        assert_eq!(kilobytes(text, "Nothing:"), None);
        assert!(available(u32::MAX).is_none());
    }

    #[test]
    fn a_node_beyond_all_masks_is_refused() {
        assert_eq!(bind(0, 0, MOST_NODES).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
