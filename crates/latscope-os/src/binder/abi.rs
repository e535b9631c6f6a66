//! The structures and numbers of the driver's interface.

use rustix::ioctl::{Direction, opcode};

/// The protocol that is spoken here: 64-bit sizes and addresses.
pub const PROTOCOL: i32 = 8;

/// A structure that is nothing but its bytes.
///
/// # Safety
/// `repr(C)`, made of integers only, without padding: every pattern of bytes is
/// a value, and every value is its bytes.
pub(super) unsafe trait Plain: Copy {
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: `Self` has no padding, so all of its bytes are initialised.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// The value at the beginning of `bytes`, if they are enough.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..size_of::<Self>())?;
        // SAFETY: as many bytes as the type has, any of which make a value; they
        // need not be aligned.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

/// Layout of `struct binder_write_read`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WriteRead {
    pub write_size: u64,
    pub write_consumed: u64,
    pub write_buffer: u64,
    pub read_size: u64,
    pub read_consumed: u64,
    pub read_buffer: u64,
}

/// `struct binder_transaction_data`. `target` is a union of a handle (32 bits)
/// and a node's address.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Transaction {
    pub target: u64,
    pub cookie: u64,
    pub code: u32,
    pub flags: u32,
    pub sender_pid: i32,
    pub sender_euid: u32,
    pub data_size: u64,
    pub offsets_size: u64,
    pub buffer: u64,
    pub offsets: u64,
}

/// `struct flat_binder_object`: a node or a handle inside of a transaction.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FlatObject {
    pub kind: u32,
    pub flags: u32,
    /// The node's address, or the handle in the first 32 bits.
    pub binder: u64,
    pub cookie: u64,
}

/// `struct binder_buffer_object`: a piece of memory that goes along.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BufferObject {
    pub kind: u32,
    pub flags: u32,
    pub buffer: u64,
    pub length: u64,
    /// Index of the parent in the array of offsets.
    pub parent: u64,
    /// Offset in the parent buffer at which the address of this buffer stands.
    pub parent_offset: u64,
}

/// `hidl_vec` as Android's HALs have it in memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VectorHeader {
    pub buffer: u64,
    pub size: u32,
    pub owns: u32,
}

/// `struct binder_extended_error`: why the last transaction of this thread
/// failed.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendedError {
    /// The driver's number of the transaction.
    pub id: u32,
    /// Return code that the failed command led to.
    pub command: u32,
    /// The error, negative; 0 for none.
    pub error: i32,
}

/// Layout of `struct binder_freeze_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Freeze {
    pub pid: u32,
    pub enable: u32,
    pub timeout_ms: u32,
}

/// Layout of `struct binderfs_device`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct BinderfsDevice {
    pub name: [u8; 256],
    pub major: u32,
    pub minor: u32,
}

// SAFETY: integers only, without padding (`layouts` checks the sizes).
unsafe impl Plain for Transaction {}
// SAFETY: as above.
unsafe impl Plain for FlatObject {}
// SAFETY: as above.
unsafe impl Plain for BufferObject {}
// SAFETY: as above.
unsafe impl Plain for VectorHeader {}

/// `B_PACK_CHARS(a, b, c, 0x85)`.
const fn kind(name: [u8; 3]) -> u32 {
    u32::from_be_bytes([name[0], name[1], name[2], 0x85])
}

/// A handle where the interface has a union of a handle and an address.
pub(super) fn handle_word(handle: u32) -> u64 {
    let mut word = [0; 8];
    word[..4].copy_from_slice(&handle.to_ne_bytes());
    u64::from_ne_bytes(word)
}

/// Returns the handle in a word of the protocol; the inverse of [`handle_word`].
pub(super) fn word_handle(word: u64) -> u32 {
    let bytes = word.to_ne_bytes();
    u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

pub(super) const TYPE_BINDER: u32 = kind(*b"sb*");
pub(super) const TYPE_HANDLE: u32 = kind(*b"sh*");
pub(super) const TYPE_PTR: u32 = kind(*b"pt*");
pub(super) const HAS_PARENT: u32 = 1;

pub(super) const WRITE_READ: u32 = opcode::read_write::<WriteRead>(b'b', 1) as u32;
pub(super) const SET_MAX_THREADS: u32 = opcode::write::<u32>(b'b', 5) as u32;
pub(super) const SET_CONTEXT_MGR: u32 = opcode::write::<i32>(b'b', 7) as u32;
pub(super) const THREAD_EXIT: u32 = opcode::write::<i32>(b'b', 8) as u32;
pub(super) const VERSION: u32 = opcode::read_write::<i32>(b'b', 9) as u32;
pub(super) const SET_CONTEXT_MGR_EXT: u32 = opcode::write::<FlatObject>(b'b', 13) as u32;
pub(super) const FREEZE: u32 = opcode::write::<Freeze>(b'b', 14) as u32;
pub(super) const GET_EXTENDED_ERROR: u32 = opcode::read_write::<ExtendedError>(b'b', 17) as u32;
pub(super) const CTL_ADD: u32 = opcode::read_write::<BinderfsDevice>(b'b', 1) as u32;

/// A command (`BC_…`) with this number and size of parameters.
const fn command(number: u8, size: usize) -> u32 {
    let direction = if size == 0 { Direction::None } else { Direction::Write };
    opcode::from_components(direction, b'c', number, size) as u32
}

/// A return (`BR_…`) with this number and size of parameters.
const fn return_code(number: u8, size: usize) -> u32 {
    let direction = if size == 0 { Direction::None } else { Direction::Read };
    opcode::from_components(direction, b'r', number, size) as u32
}

/// Returns how many bytes of parameters follow a command or a return.
pub(super) const fn parameter_bytes(code: u32) -> usize {
    (code >> 16) as usize & 0x3fff
}

pub(super) const BC_TRANSACTION: u32 = command(0, size_of::<Transaction>());
pub(super) const BC_REPLY: u32 = command(1, size_of::<Transaction>());
pub(super) const BC_FREE_BUFFER: u32 = command(3, 8);
pub(super) const BC_INCREFS: u32 = command(4, 4);
pub(super) const BC_ACQUIRE: u32 = command(5, 4);
pub(super) const BC_RELEASE: u32 = command(6, 4);
pub(super) const BC_DECREFS: u32 = command(7, 4);
pub(super) const BC_INCREFS_DONE: u32 = command(8, 16);
pub(super) const BC_ACQUIRE_DONE: u32 = command(9, 16);
pub(super) const BC_ENTER_LOOPER: u32 = command(12, 0);
pub(super) const BC_EXIT_LOOPER: u32 = command(13, 0);
pub(super) const BC_REQUEST_DEATH_NOTIFICATION: u32 = command(14, 12);
pub(super) const BC_CLEAR_DEATH_NOTIFICATION: u32 = command(15, 12);
pub(super) const BC_DEAD_BINDER_DONE: u32 = command(16, 8);
pub(super) const BC_TRANSACTION_SG: u32 = command(17, size_of::<Transaction>() + 8);
pub(super) const BC_REPLY_SG: u32 = command(18, size_of::<Transaction>() + 8);

pub(super) const BR_ERROR: u32 = return_code(0, 4);
pub(super) const BR_TRANSACTION: u32 = return_code(2, size_of::<Transaction>());
pub(super) const BR_TRANSACTION_SEC_CTX: u32 = return_code(2, size_of::<Transaction>() + 8);
pub(super) const BR_REPLY: u32 = return_code(3, size_of::<Transaction>());
pub(super) const BR_DEAD_REPLY: u32 = return_code(5, 0);
pub(super) const BR_TRANSACTION_COMPLETE: u32 = return_code(6, 0);
pub(super) const BR_INCREFS: u32 = return_code(7, 16);
pub(super) const BR_ACQUIRE: u32 = return_code(8, 16);
pub(super) const BR_RELEASE: u32 = return_code(9, 16);
pub(super) const BR_DECREFS: u32 = return_code(10, 16);
#[cfg(test)]
pub(super) const BR_NOOP: u32 = return_code(12, 0);
pub(super) const BR_DEAD_BINDER: u32 = return_code(15, 8);
pub(super) const BR_CLEAR_DEATH_NOTIFICATION_DONE: u32 = return_code(16, 8);
pub(super) const BR_FAILED_REPLY: u32 = return_code(17, 0);
pub(super) const BR_FROZEN_REPLY: u32 = return_code(18, 0);
pub(super) const BR_ONEWAY_SPAM_SUSPECT: u32 = return_code(19, 0);
pub(super) const BR_TRANSACTION_PENDING_FROZEN: u32 = return_code(20, 0);

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_the_kernel() {
        assert_eq!(size_of::<WriteRead>(), 48);
        assert_eq!(offset_of!(WriteRead, read_buffer), 40);
        assert_eq!(size_of::<Transaction>(), 64);
        assert_eq!((offset_of!(Transaction, code), offset_of!(Transaction, sender_pid)), (16, 24));
        assert_eq!((offset_of!(Transaction, data_size), offset_of!(Transaction, offsets)), (32, 56));
        assert_eq!((size_of::<FlatObject>(), offset_of!(FlatObject, cookie)), (24, 16));
        assert_eq!((size_of::<BufferObject>(), offset_of!(BufferObject, parent_offset)), (40, 32));
        assert_eq!((size_of::<VectorHeader>(), offset_of!(VectorHeader, size)), (16, 8));
        assert_eq!(
            (size_of::<ExtendedError>(), size_of::<Freeze>(), size_of::<BinderfsDevice>()),
            (12, 12, 264)
        );
    }

    /// Compares with the numbers that `cc` computes from the kernel's header on x86-64 and arm64.
    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn numbers_are_those_of_the_kernel() {
        assert_eq!([WRITE_READ, SET_MAX_THREADS, SET_CONTEXT_MGR], [0xc030_6201, 0x4004_6205, 0x4004_6207]);
        assert_eq!([THREAD_EXIT, VERSION, SET_CONTEXT_MGR_EXT], [0x4004_6208, 0xc004_6209, 0x4018_620d]);
        assert_eq!([FREEZE, GET_EXTENDED_ERROR, CTL_ADD], [0x400c_620e, 0xc00c_6211, 0xc108_6201]);
        assert_eq!([BC_TRANSACTION, BC_REPLY, BC_FREE_BUFFER], [0x4040_6300, 0x4040_6301, 0x4008_6303]);
        assert_eq!([BC_ACQUIRE, BC_ACQUIRE_DONE, BC_ENTER_LOOPER], [0x4004_6305, 0x4010_6309, 0x630c]);
        assert_eq!([BC_REQUEST_DEATH_NOTIFICATION, BC_TRANSACTION_SG], [0x400c_630e, 0x4048_6311]);
        assert_eq!([BR_TRANSACTION, BR_TRANSACTION_SEC_CTX], [0x8040_7202, 0x8048_7202]);
        assert_eq!(
            [BR_REPLY, BR_DEAD_REPLY, BR_FAILED_REPLY, BR_NOOP],
            [0x8040_7203, 0x7205, 0x7211, 0x720c]
        );
        assert_eq!([TYPE_BINDER, TYPE_HANDLE, TYPE_PTR], [0x7362_2a85, 0x7368_2a85, 0x7074_2a85]);
    }

    #[test]
    fn a_value_is_its_bytes() {
        let object = FlatObject { kind: TYPE_HANDLE, flags: 1, binder: 2, cookie: 3 };
        let bytes = object.as_bytes().to_vec();
        assert_eq!((bytes.len(), FlatObject::from_bytes(&bytes)), (24, Some(object)));
        assert_eq!(FlatObject::from_bytes(&bytes[1..]), None);
    }
}
