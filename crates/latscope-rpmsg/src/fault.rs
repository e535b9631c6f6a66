//! Mistakes of a peer, as values that can be counted.

use core::fmt;

/// A breach of the protocol by the peer, found when what it wrote was checked.
///
/// After [`Fault::Index`] or [`Fault::Reset`] a ring cannot go on until both sides start again, and every further call
/// answers the same: a loop must not go on at once after a fault. Faults of one entry consume it, so
/// that the next call meets the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An address, or the end of what starts there, is not in the window.
    OutOfWindow,
    /// A ring's index ran ahead by more entries than the ring has, or ran back.
    Index,
    /// An entry names a descriptor that the ring does not have.
    Descriptor,
    /// A used entry names a descriptor that was not in flight.
    NotInFlight,
    /// A descriptor goes on in another one. RPMsg has one buffer a message, so
    /// that chains, and with them loops of chains, are refused unread.
    Chained,
    /// A descriptor points to a table of descriptors, which was not negotiated.
    Indirect,
    /// A buffer to read was offered for writing or the other way round.
    Direction,
    /// A length that is less than a header, more than its buffer, or more than was transferred.
    Length,
    /// An announcement of other than 40 bytes, or without a name.
    Announcement,
    /// The ring was used before: it was not reset since an earlier run.
    Stale,
    /// The driver is not ready any more, or began again: this side must begin again, too. No breach
    /// by itself: hosts end and restart.
    Reset,
    /// A ring of a size or alignment that no ring has, or larger than there is room for.
    Ring,
    /// A resource table of another version, or without an RPMsg device of two rings.
    Table,
}

impl Fault {
    /// Every fault, in the order of their discriminants.
    pub const ALL: [Fault; 13] = [
        Fault::OutOfWindow,
        Fault::Index,
        Fault::Descriptor,
        Fault::NotInFlight,
        Fault::Chained,
        Fault::Indirect,
        Fault::Direction,
        Fault::Length,
        Fault::Announcement,
        Fault::Stale,
        Fault::Reset,
        Fault::Ring,
        Fault::Table,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Fault::OutOfWindow => "an address is outside of the shared memory",
            Fault::Index => "a ring's index jumped",
            Fault::Descriptor => "an entry names a descriptor that does not exist",
            Fault::NotInFlight => "a descriptor was returned that was not in flight",
            Fault::Chained => "a message is in a chain of descriptors",
            Fault::Indirect => "a descriptor is indirect",
            Fault::Direction => "a buffer has the wrong direction",
            Fault::Length => "a length does not fit its buffer",
            Fault::Announcement => "an announcement has the wrong length or no name",
            Fault::Stale => "a ring is left over from an earlier run",
            Fault::Reset => "the host ended or began again",
            Fault::Ring => "a ring has an impossible shape",
            Fault::Table => "the resource table has no RPMsg device",
        })
    }
}

impl core::error::Error for Fault {}

/// Number of times that each [`Fault`] was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults([u64; Fault::ALL.len()]);

impl Faults {
    /// Counts one occurrence of `fault`.
    #[inline]
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    /// Returns how many times `fault` was counted.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Returns how many faults of any kind were counted.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl core::ops::AddAssign for Faults {
    fn add_assign(&mut self, more: Faults) {
        self.0.iter_mut().zip(more.0).for_each(|(count, more)| *count += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_a_counter_of_its_own() {
        let mut faults = Faults::default();
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            for _ in 0..=place {
                faults.count(fault);
            }
        }
        assert_eq!(Fault::ALL.map(|fault| faults.of(fault)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(faults.total(), 91);
        faults += faults;
        assert_eq!((faults.of(Fault::Index), faults.total()), (4, 182));
    }
}
