//! Content of a transaction: the first 32 bytes of the payload, little-endian.
//!
//! Shorter payloads carry as much of it as fits, at least the low four bytes of
//! the sequence. What does not fit is read as zero.

use latscope_os::sched::ThreadSchedState;

/// Bytes of a request or a reply that have a meaning.
pub const LENGTH: usize = 32;

/// Bytes of a request that carries the stamp of its sender, too.
pub const STAMPED: usize = 40;

/// Flag: the server states its thread and scheduling, for a call that is reported in full.
pub const VERBOSE: u32 = 1;

/// Flag: the server looks up its scheduling during the call.
pub const STATE: u32 = 2;

/// Flag: the client waits for no reply.
pub const ONE_WAY: u32 = 4;

/// Request of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IpcRequestHeader {
    /// Sequence number, larger than that of the request before.
    pub sequence: u64,
    /// CPU on which the caller runs.
    pub cpu: u32,
    /// Scheduling of the calling thread.
    pub caller: ThreadSchedState,
    /// Flags of the request: [`VERBOSE`], [`STATE`], [`ONE_WAY`].
    pub flags: u32,
    /// Length of the request, bytes; 0 if it is not stated.
    pub length: u32,
}

/// Reply of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IpcReplyHeader {
    /// Sequence number of the request.
    pub sequence: u64,
    /// CPU on which the server runs.
    pub cpu: u32,
    /// Scheduling of the server during the call; `None` if it was not requested.
    pub server: Option<ThreadSchedState>,
    /// Id of the server's thread; 0 if it was not requested.
    pub thread: u32,
    /// True if the server expected this request.
    pub verified: bool,
}

/// Policy that stands for "not asked".
const NOT_ASKED: u32 = u32::MAX;

impl IpcRequestHeader {
    /// Writes the request over the beginning of `payload`.
    pub fn write_to(&self, payload: &mut [u8]) {
        let ThreadSchedState { policy, priority, nice } = self.caller;
        encode_header(
            payload,
            self.sequence,
            [self.cpu, policy, priority, nice as u32, self.flags, self.length],
        );
    }

    /// Reads a request from the beginning of `payload`.
    #[inline]
    pub fn read_from(payload: &[u8]) -> IpcRequestHeader {
        let (sequence, [cpu, policy, priority, nice, flags, length]) = decode_header(payload);
        IpcRequestHeader {
            sequence,
            cpu,
            caller: ThreadSchedState { policy, priority, nice: nice as i32 },
            flags,
            length,
        }
    }

    /// Returns true if this request, of `length` bytes, is whole and comes after the request number `last`, as
    /// far as its bytes show.
    #[inline]
    pub(crate) fn is_next(&self, last: u64, length: usize) -> bool {
        let whole = self.length == 0 || self.length as usize == length;
        // Of a short one the low bytes alone are there, and come round again.
        let later = match length {
            8.. => self.sequence > last,
            _ => (self.sequence as u32).wrapping_sub(last as u32).wrapping_sub(1) < u32::MAX / 2,
        };
        whole && later
    }
}

impl IpcReplyHeader {
    /// Writes the reply over the beginning of `payload`.
    pub fn write_to(&self, payload: &mut [u8]) {
        let unknown = ThreadSchedState { policy: NOT_ASKED, ..ThreadSchedState::default() };
        let ThreadSchedState { policy, priority, nice } = self.server.unwrap_or(unknown);
        let words = [self.cpu, policy, priority, nice as u32, self.thread, u32::from(self.verified)];
        encode_header(payload, self.sequence, words);
    }

    /// Reads a reply from the beginning of `payload`. Fields that do not fit have the values of a good reply.
    pub fn read_from(payload: &[u8]) -> IpcReplyHeader {
        let (sequence, [cpu, policy, priority, nice, thread, verified]) = decode_header(payload);
        let state = ThreadSchedState { policy, priority, nice: nice as i32 };
        let told = payload.len() >= LENGTH && policy != NOT_ASKED;
        IpcReplyHeader {
            sequence,
            cpu,
            server: told.then_some(state),
            thread,
            verified: payload.len() < LENGTH || verified == 1,
        }
    }
}

/// Sets the flags of a request that is written.
pub(crate) fn set_flags(payload: &mut [u8], flags: u32) {
    payload[24..28].copy_from_slice(&flags.to_le_bytes());
}

/// Returns the part of a sequence number that a payload of `length` bytes carries.
pub fn carried(sequence: u64, length: usize) -> u64 {
    if length >= 8 { sequence } else { sequence & u64::from(u32::MAX) }
}

/// Returns true if a reply of `length` bytes states the server's CPU.
pub(crate) fn tells_cpu(length: usize) -> bool {
    length >= 12
}

/// Writes the sender's stamp behind the message.
pub fn stamp(payload: &mut [u8], ns: u64) {
    payload[LENGTH..STAMPED].copy_from_slice(&ns.to_le_bytes());
}

/// Returns the sender's stamp, ns; `None` if the payload has no room for it, or if it is 0, which means that
/// the way is not measured.
pub fn read_stamp(payload: &[u8]) -> Option<u64> {
    let bytes = payload.get(LENGTH..STAMPED)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?)).filter(|ns| *ns > 0)
}

fn encode_header(payload: &mut [u8], sequence: u64, words: [u32; 6]) {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    for (place, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    match payload.first_chunk_mut::<LENGTH>() {
        Some(whole) => *whole = bytes,
        None => payload.copy_from_slice(&bytes[..payload.len()]),
    }
}

#[inline]
fn decode_header(payload: &[u8]) -> (u64, [u32; 6]) {
    match payload.first_chunk() {
        Some(whole) => decode_words(whole),
        None => {
            let mut bytes = [0; LENGTH];
            bytes[..payload.len()].copy_from_slice(payload);
            decode_words(&bytes)
        }
    }
}

#[inline]
fn decode_words(bytes: &[u8; LENGTH]) -> (u64, [u32; 6]) {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let sequence = u64::from(word(0)) | u64::from(word(4)) << 32;
    (sequence, std::array::from_fn(|index| word(8 + 4 * index)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFO: ThreadSchedState = ThreadSchedState { policy: 1, priority: 95, nice: -5 };

    #[test]
    fn what_is_written_is_read() {
        let request = IpcRequestHeader {
            sequence: 1 << 40 | 7,
            cpu: 3,
            caller: FIFO,
            flags: VERBOSE | STATE,
            length: 64,
        };
        let reply = IpcReplyHeader { sequence: 9, cpu: 1, server: Some(FIFO), thread: 4711, verified: true };
        let mut payload = [0xff; 64];
        request.write_to(&mut payload);
        assert_eq!(IpcRequestHeader::read_from(&payload), request);
        assert_eq!(payload[32], 0xff);
        reply.write_to(&mut payload);
        assert_eq!(IpcReplyHeader::read_from(&payload), reply);
        IpcReplyHeader { server: None, ..reply }.write_to(&mut payload);
        assert_eq!(IpcReplyHeader::read_from(&payload).server, None);
    }

    #[test]
    fn the_layout_is_the_one_agreed() {
        let mut payload = [0; 32];
        let caller = ThreadSchedState { policy: 1, priority: 4, nice: -1 };
        IpcRequestHeader { sequence: 1, cpu: 2, caller, flags: 6, length: 32 }.write_to(&mut payload);
        assert_eq!(payload[..12], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(payload[12..], [1, 0, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255, 6, 0, 0, 0, 32, 0, 0, 0]);
    }

    #[test]
    fn a_short_payload_carries_what_fits() {
        let mut payload = [0; 4];
        IpcRequestHeader { sequence: 1 << 32 | 5, ..IpcRequestHeader::default() }.write_to(&mut payload);
        assert_eq!(IpcRequestHeader::read_from(&payload).sequence, carried(1 << 32 | 5, 4));
        let reply = IpcReplyHeader::read_from(&payload);
        assert!(reply.verified && reply.server.is_none());
        assert!(!tells_cpu(8) && tells_cpu(12));
    }

    #[test]
    fn what_is_cut_off_or_comes_again_is_not_the_next() {
        let request = IpcRequestHeader { sequence: 1 << 32 | 5, length: 64, ..IpcRequestHeader::default() };
        assert!(request.is_next(1 << 32 | 3, 64));
        assert!(!request.is_next(1 << 32 | 3, 63));
        assert!(!request.is_next(1 << 32 | 5, 64));
        let short =
            |sequence, last| IpcRequestHeader { sequence, ..IpcRequestHeader::default() }.is_next(last, 4);
        assert!(short(7, 5) && short(1, u64::from(u32::MAX)));
        assert!(!short(5, 5) && !short(5, 7));
    }

    #[test]
    fn a_stamp_stands_behind_the_message() {
        let mut payload = [0; STAMPED];
        stamp(&mut payload, 1 << 50);
        assert_eq!((read_stamp(&payload), read_stamp(&payload[..39])), (Some(1 << 50), None));
        stamp(&mut payload, 0);
        assert_eq!(read_stamp(&payload), None);
    }
}
