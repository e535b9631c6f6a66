//! The 16 bytes in front of each message, as in Linux's `virtio_rpmsg_bus.c`.

/// Address of the sender or the receiver of a message.
pub type RpmsgAddress = u32;

/// "Any address": as a source, an address is to be chosen; as a destination, no endpoint has it.
pub const ANY: RpmsgAddress = 0xFFFF_FFFF;

/// Address to which announcements of names are sent.
pub const NAME_SERVICE: RpmsgAddress = 53;

/// The first address that is given out; those below are reserved for well-known services.
pub const FIRST_DYNAMIC: RpmsgAddress = 0x400;

/// A message's header: little-endian words in the order of the fields, with a
/// reserved word after the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RpmsgHeader {
    /// Address of the sender.
    pub source: RpmsgAddress,
    /// Address of the receiver.
    pub destination: RpmsgAddress,
    /// Bytes of payload behind the header.
    pub length: u16,
    /// No flag is defined; Linux sends 0.
    pub flags: u16,
}

impl RpmsgHeader {
    /// Bytes of a header.
    pub const SIZE: usize = 16;

    /// Takes a header from its bytes. Any bytes are one; the length is not checked against anything here.
    ///
    /// The reserved word is ignored: OpenAMP counts holders of a buffer in it.
    #[inline]
    pub fn parse(bytes: &[u8; RpmsgHeader::SIZE]) -> RpmsgHeader {
        let [s0, s1, s2, s3, d0, d1, d2, d3, _, _, _, _, l0, l1, f0, f1] = *bytes;
        RpmsgHeader {
            source: u32::from_le_bytes([s0, s1, s2, s3]),
            destination: u32::from_le_bytes([d0, d1, d2, d3]),
            length: u16::from_le_bytes([l0, l1]),
            flags: u16::from_le_bytes([f0, f1]),
        }
    }

    /// The header's bytes; the reserved word is 0.
    #[inline]
    pub fn encode_bytes(&self) -> [u8; RpmsgHeader::SIZE] {
        let mut bytes = [0; RpmsgHeader::SIZE];
        bytes[0..4].copy_from_slice(&self.source.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.destination.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.length.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.flags.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_on_the_wire() {
        let header = RpmsgHeader { source: FIRST_DYNAMIC, destination: NAME_SERVICE, length: 40, flags: 0 };
        let bytes = [0, 4, 0, 0, 0x35, 0, 0, 0, 0, 0, 0, 0, 0x28, 0, 0, 0];
        assert_eq!(header.encode_bytes(), bytes);
        assert_eq!(RpmsgHeader::parse(&bytes), header);
    }

    #[test]
    fn the_reserved_word_means_nothing() {
        let header = RpmsgHeader { source: 1, destination: ANY, length: 0xABCD, flags: 3 };
        let mut bytes = header.encode_bytes();
        bytes[8..12].fill(0xFF);
        assert_eq!(RpmsgHeader::parse(&bytes), header);
    }
}
