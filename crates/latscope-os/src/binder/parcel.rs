//! Contents of a transaction.

use super::abi::*;
use super::{BinderNode, Handle};
use std::mem::offset_of;

/// Contents of a transaction or a reply.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// Plain bytes, copied from where they are.
    Flat(&'a [u8]),
    /// Bytes as a `hidl_vec`: a small structure in a buffer of its own that
    /// points to them in another, gathered by the driver from where they are
    /// and with the pointer put right at the receiver's.
    Vector(&'a [u8]),
    /// Bytes with nodes and handles among them.
    Composed(&'a Composed),
}

/// Bytes with nodes and handles among them, which the driver translates for
/// the receiver.
#[derive(Debug, Clone, Default)]
pub struct Composed {
    pub(super) data: Vec<u8>,
    pub(super) offsets: Vec<u64>,
}

impl Composed {
    /// Returns an empty parcel.
    pub fn new() -> Composed {
        Composed::default()
    }

    /// Adds plain bytes to the parcel.
    pub fn add_bytes(mut self, bytes: &[u8]) -> Composed {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Adds a node of the sender's: the receiver gets a handle. The lowest 8
    /// bits of `flags` are the least priority (a nice value) it is served with.
    pub fn node(self, node: BinderNode, flags: u32) -> Composed {
        self.object(FlatObject { kind: TYPE_BINDER, flags, binder: node.address, cookie: node.cookie })
    }

    /// Adds a handle of the sender's: the receiver gets a handle of its own.
    pub fn handle(self, handle: Handle) -> Composed {
        let binder = handle_word(handle.0);
        self.object(FlatObject { kind: TYPE_HANDLE, flags: 0, binder, cookie: 0 })
    }

    fn object(mut self, object: FlatObject) -> Composed {
        // The driver takes objects at multiples of 4 only.
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        self.offsets.push(self.data.len() as u64);
        self.data.extend_from_slice(object.as_bytes());
        self
    }
}

/// The pieces of a [`Payload::Vector`]; they refer to each other by address, so
/// they are made where they stay.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Pieces {
    pub data: PiecesData,
    pub offsets: [u64; 2],
}

/// The data of a transaction with a vector.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct PiecesData {
    /// The driver puts no pointer right in an object at offset 0; a HAL has the
    /// name of its interface here.
    token: u64,
    objects: [BufferObject; 2],
}

// SAFETY: integers only, without padding (`a_vector_is_a_header_that_points_to_bytes`).
unsafe impl Plain for PiecesData {}

impl Pieces {
    /// The header as it is in the sender's memory.
    pub fn header(bytes: &[u8]) -> VectorHeader {
        VectorHeader { buffer: bytes.as_ptr() as u64, size: bytes.len() as u32, owns: 0 }
    }

    /// Parent and child: the header, and the bytes its first word points to.
    pub fn of(header: &VectorHeader, bytes: &[u8]) -> Pieces {
        let parent = BufferObject {
            kind: TYPE_PTR,
            buffer: std::ptr::from_ref(header) as u64,
            length: size_of::<VectorHeader>() as u64,
            ..BufferObject::default()
        };
        let child = BufferObject {
            kind: TYPE_PTR,
            flags: HAS_PARENT,
            buffer: bytes.as_ptr() as u64,
            length: bytes.len() as u64,
            ..BufferObject::default()
        };
        let first = offset_of!(PiecesData, objects) as u64;
        Pieces {
            data: PiecesData { token: 0, objects: [parent, child] },
            offsets: [first, first + size_of::<BufferObject>() as u64],
        }
    }

    /// Room that the driver needs for both at the receiver's.
    pub fn room(bytes: usize) -> u64 {
        (size_of::<VectorHeader>() + bytes.next_multiple_of(8)) as u64
    }
}

/// Returns the two objects of a received vector, if the data is one.
pub(super) fn vector_objects(data: &[u8], offsets: &[u64]) -> Option<(BufferObject, BufferObject)> {
    let [first, second] = *offsets else { return None };
    let object = |at: u64| BufferObject::from_bytes(data.get(usize::try_from(at).ok()?..)?);
    let (parent, child) = (object(first)?, object(second)?);
    let header = parent.kind == TYPE_PTR
        && parent.flags & HAS_PARENT == 0
        && parent.length == size_of::<VectorHeader>() as u64;
    let bytes = child.kind == TYPE_PTR
        && child.flags & HAS_PARENT != 0
        && (child.parent, child.parent_offset) == (0, 0);
    (header && bytes).then_some((parent, child))
}

/// The handles in received data.
pub(super) fn handles<'a>(data: &'a [u8], offsets: &'a [u64]) -> impl Iterator<Item = Handle> + 'a {
    let object = move |at: &u64| FlatObject::from_bytes(data.get(usize::try_from(*at).ok()?..)?);
    let objects = offsets.iter().filter_map(object).filter(|object| object.kind == TYPE_HANDLE);
    objects.map(|object| Handle(word_handle(object.binder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_aligned_and_their_places_listed() {
        let node = BinderNode { address: 1, cookie: 2 };
        let composed = Composed::new().add_bytes(b"name!").node(node, 0x813).handle(Handle(6));
        assert_eq!((composed.data.len(), composed.offsets.as_slice()), (8 + 2 * 24, &[8, 32][..]));
        assert_eq!(&composed.data[..8], b"name!\0\0\0");
        let object = FlatObject { kind: TYPE_BINDER, flags: 0x813, binder: 1, cookie: 2 };
        assert_eq!(FlatObject::from_bytes(&composed.data[8..]), Some(object));
        assert_eq!(handles(&composed.data, &composed.offsets).collect::<Vec<_>>(), [Handle(6)]);
    }

    #[test]
    fn a_vector_is_a_header_that_points_to_bytes() {
        let bytes = [1u8, 2, 3, 4, 5];
        let header = Pieces::header(&bytes);
        let pieces = Pieces::of(&header, &bytes);
        assert_eq!((size_of::<PiecesData>(), pieces.offsets), (88, [8, 48]));
        let (parent, child) = vector_objects(pieces.data.as_bytes(), &pieces.offsets).unwrap();
        assert_eq!((parent.length, parent.buffer), (16, std::ptr::from_ref(&header) as u64));
        assert_eq!((child.length, child.buffer), (5, bytes.as_ptr() as u64));
        assert_eq!((header.buffer, header.size), (child.buffer, 5));
        assert_eq!(Pieces::room(5), 24);
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        let bytes = [0u8; 8];
        let header = Pieces::header(&bytes);
        let pieces = Pieces::of(&header, &bytes);
        let refused = |change: fn(&mut Pieces)| {
            let mut changed = pieces;
            change(&mut changed);
            vector_objects(changed.data.as_bytes(), &changed.offsets).is_none()
        };
        assert!(refused(|pieces| pieces.data.objects[0].kind = TYPE_HANDLE));
        assert!(refused(|pieces| pieces.data.objects[0].length = 8));
        assert!(refused(|pieces| pieces.data.objects[1].flags = 0));
        assert!(refused(|pieces| pieces.data.objects[1].parent = 1));
        assert!(refused(|pieces| pieces.data.objects[1].parent_offset = 8));
        assert!(refused(|pieces| pieces.offsets[1] = 56));
        assert!(refused(|pieces| pieces.offsets[1] = u64::MAX));
        assert!(vector_objects(&[0; 80], &[0]).is_none() && vector_objects(&[], &[]).is_none());
    }
}
