//! The stream of commands that a thread writes.

use super::abi::*;
use super::{BinderNode, Handle};

/// Commands one behind the other, each a number and its parameters, unaligned.
#[derive(Debug, Default)]
pub(super) struct BinderCommandBuffer(Vec<u8>);

impl BinderCommandBuffer {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A command without parameters.
    pub fn bare(&mut self, code: u32) {
        debug_assert_eq!(parameter_bytes(code), 0);
        self.push(code, &[]);
    }

    /// Changes a count of references to a handle.
    pub fn push_refcount(&mut self, code: u32, handle: Handle) {
        self.push(code, &[&handle.0.to_ne_bytes()]);
    }

    /// Confirms that a count of a node was changed.
    pub fn confirm(&mut self, code: u32, node: BinderNode) {
        self.push(code, &[&node.address.to_ne_bytes(), &node.cookie.to_ne_bytes()]);
    }

    /// Asks for, or no longer for, the news that a handle's process died.
    pub fn death(&mut self, code: u32, handle: Handle, cookie: u64) {
        self.push(code, &[&handle.0.to_ne_bytes(), &cookie.to_ne_bytes()]);
    }

    /// A command whose parameter is an address or a cookie.
    pub fn push_word(&mut self, code: u32, word: u64) {
        self.push(code, &[&word.to_ne_bytes()]);
    }

    /// A transaction or a reply; with `buffers`, one that carries so many
    /// bytes in buffer objects besides.
    pub fn transaction(&mut self, (flat, scattered): (u32, u32), data: &Transaction, buffers: Option<u64>) {
        match buffers {
            None => self.push(flat, &[data.as_bytes()]),
            Some(size) => self.push(scattered, &[data.as_bytes(), &size.to_ne_bytes()]),
        }
    }

    #[inline]
    fn push(&mut self, code: u32, parts: &[&[u8]]) {
        debug_assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), parameter_bytes(code));
        self.0.extend_from_slice(&code.to_ne_bytes());
        for part in parts {
            self.0.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_unaligned_one_behind_the_other() {
        let mut commands = BinderCommandBuffer::default();
        assert!(commands.is_empty());
        commands.bare(BC_ENTER_LOOPER);
        commands.push_refcount(BC_ACQUIRE, Handle(5));
        commands.death(BC_REQUEST_DEATH_NOTIFICATION, Handle(5), 0x0102);
        commands.push_word(BC_FREE_BUFFER, 0x7f00_0000_0010);
        let expected: [&[u8]; 4] = [
            &[0x0c, 0x63, 0, 0],
            &[0x05, 0x63, 4, 0x40, 5, 0, 0, 0],
            &[0x0e, 0x63, 12, 0x40, 5, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0],
            &[0x03, 0x63, 8, 0x40, 0x10, 0, 0, 0, 0, 0x7f, 0, 0],
        ];
        assert_eq!(commands.as_bytes(), expected.concat());
    }

    #[test]
    fn a_transaction_is_its_number_and_its_structure() {
        let data = Transaction { target: 3, code: 7, data_size: 4, buffer: 0x1000, ..Transaction::default() };
        let mut commands = BinderCommandBuffer::default();
        commands.transaction((BC_TRANSACTION, BC_TRANSACTION_SG), &data, None);
        let flat = commands.as_bytes().to_vec();
        assert_eq!((flat.len(), &flat[..4]), (68, &[0, 0x63, 0x40, 0x40][..]));
        assert_eq!((flat[4], flat[4 + 16], flat[4 + 32], flat[4 + 49]), (3, 7, 4, 0x10));
        commands.clear();
        commands.transaction((BC_REPLY, BC_REPLY_SG), &data, Some(24));
        let scattered = commands.as_bytes();
        assert_eq!((scattered.len(), &scattered[..4]), (76, &[0x12, 0x63, 0x48, 0x40][..]));
        assert_eq!(scattered[68..], 24u64.to_le_bytes());
        assert_eq!(scattered[4..68], flat[4..]);
    }
}
