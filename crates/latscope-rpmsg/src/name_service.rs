//! Announcements of endpoints by name: messages of 40 bytes to
//! [`NAME_SERVICE`](crate::header::NAME_SERVICE).

use crate::Fault;
use crate::header::RpmsgAddress;
use core::fmt;

/// Bytes of a name's field, the closing NUL included.
const FIELD: usize = 32;

/// An endpoint's name: 1 to 31 bytes, none of them NUL.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RpmsgEndpointName([u8; FIELD]);

impl RpmsgEndpointName {
    /// Bytes of the longest name.
    pub const LONGEST: usize = FIELD - 1;

    /// Makes a name for an own endpoint; `None` if it is empty, too long, or has a NUL.
    pub const fn new(text: &str) -> Option<RpmsgEndpointName> {
        let text = text.as_bytes();
        if text.is_empty() || text.len() > RpmsgEndpointName::LONGEST {
            return None;
        }
        let mut field = [0; FIELD];
        let mut at = 0;
        while at < text.len() {
            if text[at] == 0 {
                return None;
            }
            field[at] = text[at];
            at += 1;
        }
        Some(RpmsgEndpointName(field))
    }

    /// Returns a name of the peer's: the bytes before the first NUL, and no more than 31 bytes if there is no NUL, as
    /// Linux cuts it. `None` if that is empty.
    fn from_field(field: [u8; FIELD]) -> Option<RpmsgEndpointName> {
        let mut name = [0; FIELD];
        let length = field[..RpmsgEndpointName::LONGEST]
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(RpmsgEndpointName::LONGEST);
        name[..length].copy_from_slice(&field[..length]);
        (length > 0).then_some(RpmsgEndpointName(name))
    }

    /// The name's bytes without padding. A peer's name may be any bytes.
    pub fn as_bytes(&self) -> &[u8] {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(FIELD);
        &self.0[..length]
    }
}

/// The name; bytes that are not printable ASCII are escaped.
impl fmt::Display for RpmsgEndpointName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.as_bytes().escape_ascii().fmt(f)
    }
}

impl fmt::Debug for RpmsgEndpointName {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Message that an endpoint exists, or no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcement {
    /// Name of the endpoint.
    pub name: RpmsgEndpointName,
    /// Address of the endpoint.
    pub address: RpmsgAddress,
    /// False if the endpoint exists, true if it no longer exists.
    pub destroyed: bool,
}

impl Announcement {
    /// Bytes of an announcement.
    pub const SIZE: usize = FIELD + 8;

    /// Takes an announcement from a payload. Of the flags only the lowest bit
    /// counts, as in Linux.
    ///
    /// # Errors
    /// [`Fault::Announcement`] if it has not 40 bytes or the name is empty.
    pub fn parse(payload: &[u8]) -> Result<Announcement, Fault> {
        let payload: &[u8; Announcement::SIZE] = payload.try_into().map_err(|_| Fault::Announcement)?;
        let [field @ .., a0, a1, a2, a3, f0, _, _, _] = *payload;
        Ok(Announcement {
            name: RpmsgEndpointName::from_field(field).ok_or(Fault::Announcement)?,
            address: u32::from_le_bytes([a0, a1, a2, a3]),
            destroyed: f0 & 1 != 0,
        })
    }

    /// Returns the payload of the announcement.
    pub fn encode_bytes(&self) -> [u8; Announcement::SIZE] {
        let mut bytes = [0; Announcement::SIZE];
        bytes[..FIELD].copy_from_slice(&self.name.0);
        bytes[FIELD..FIELD + 4].copy_from_slice(&self.address.to_le_bytes());
        bytes[FIELD + 4] = u8::from(self.destroyed);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_on_the_wire() {
        let name = RpmsgEndpointName::new("rpmsg-openamp-demo-channel").unwrap();
        let announcement = Announcement { name, address: 0x400, destroyed: false };
        let mut bytes = *b"rpmsg-openamp-demo-channel\0\0\0\0\0\0\x00\x04\0\0\0\0\0\0";
        assert_eq!(announcement.encode_bytes(), bytes);
        assert_eq!(Announcement::parse(&bytes), Ok(announcement));
        bytes[36] = 1;
        assert_eq!(Announcement::parse(&bytes), Ok(Announcement { destroyed: true, ..announcement }));
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let mut bytes = [b'x'; Announcement::SIZE];
        let name = Announcement::parse(&bytes).unwrap().name;
        assert_eq!(name.as_bytes(), [b'x'; RpmsgEndpointName::LONGEST]);
        bytes[0] = 0;
        assert_eq!(Announcement::parse(&bytes), Err(Fault::Announcement));
    }

    #[test]
    fn what_is_behind_the_end_of_a_name_is_no_part_of_it() {
        let mut bytes =
            Announcement { name: RpmsgEndpointName::new("a").unwrap(), address: 1, destroyed: false }
                .encode_bytes();
        bytes[2] = b'b';
        assert_eq!(Announcement::parse(&bytes).unwrap().name, RpmsgEndpointName::new("a").unwrap());
    }

    #[test]
    fn other_lengths_are_refused() {
        assert_eq!(Announcement::parse(&[b'x'; 39]), Err(Fault::Announcement));
        assert_eq!(Announcement::parse(&[b'x'; 41]), Err(Fault::Announcement));
    }

    #[test]
    fn names_of_ours_are_refused_rather_than_cut() {
        assert!(RpmsgEndpointName::new(&"x".repeat(31)).is_some());
        assert!(RpmsgEndpointName::new(&"x".repeat(32)).is_none());
        assert!(RpmsgEndpointName::new("").is_none());
        assert!(RpmsgEndpointName::new("a\0b").is_none());
    }

    #[test]
    fn a_name_is_shown_without_control_characters() {
        let mut bytes = [0; Announcement::SIZE];
        bytes[..4].copy_from_slice(b"a\x1b\"\xFF");
        assert_eq!(Announcement::parse(&bytes).unwrap().name.to_string(), r#"a\x1b\"\xff"#);
    }
}
