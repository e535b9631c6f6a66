//! Table of the own endpoints and of the peer's addresses for their names.

use crate::Fault;
use crate::header::{FIRST_DYNAMIC, NAME_SERVICE, RpmsgAddress, RpmsgHeader};
use crate::name_service::{Announcement, RpmsgEndpointName};

/// Table of up to `N` own endpoints, and as many names that the peer announced.
///
/// The peer's names are remembered even without an own endpoint of that name, as long as there is room, so that the
/// order of the two does not matter. A name with an own endpoint always has room. An endpoint and a name of the peer's
/// belong together when they are equal.
#[derive(Debug, Clone)]
pub struct Endpoints<const N: usize> {
    /// The place of an endpoint is its address above [`FIRST_DYNAMIC`].
    ours: [Option<RpmsgEndpointName>; N],
    theirs: [Option<(RpmsgEndpointName, RpmsgAddress)>; N],
}

/// Change made by an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnouncementChange {
    /// The peer has a name that it had not before.
    Created,
    /// The peer no longer has a name.
    Destroyed,
    /// Nothing changed: the name was announced before, or was never there.
    Known,
    /// A new name was not remembered: there are `N` already, and it has no own endpoint.
    NoRoom,
}

impl<const N: usize> Default for Endpoints<N> {
    fn default() -> Self {
        Endpoints { ours: [None; N], theirs: [None; N] }
    }
}

impl<const N: usize> Endpoints<N> {
    /// Opens an endpoint and returns its address: the existing address if there is an endpoint of that name. `None` if
    /// there are `N` endpoints.
    pub fn open_endpoint(&mut self, name: RpmsgEndpointName) -> Option<RpmsgAddress> {
        let place = match self.ours.iter().position(|ours| *ours == Some(name)) {
            Some(place) => place,
            None => self.ours.iter().position(Option::is_none)?,
        };
        self.ours[place] = Some(name);
        Some(FIRST_DYNAMIC + place as RpmsgAddress)
    }

    /// Closes an endpoint and returns the name it had.
    pub fn close_endpoint(&mut self, address: RpmsgAddress) -> Option<RpmsgEndpointName> {
        self.ours.get_mut(slot_index(address)?)?.take()
    }

    /// Returns the name of the own endpoint at this address.
    pub fn endpoint_name(&self, address: RpmsgAddress) -> Option<RpmsgEndpointName> {
        *self.ours.get(slot_index(address)?)?
    }

    /// Returns the peer's address for the name of the own endpoint at this address: the first that the peer announced,
    /// if there are several.
    pub fn peer(&self, address: RpmsgAddress) -> Option<RpmsgAddress> {
        let name = self.endpoint_name(address)?;
        self.theirs().find(|(theirs, _)| *theirs == name).map(|(_, address)| address)
    }

    /// Returns the announcements of the own endpoints.
    pub fn ours(&self) -> impl Iterator<Item = Announcement> {
        (FIRST_DYNAMIC..)
            .zip(self.ours)
            .filter_map(|(address, name)| Some(Announcement { name: name?, address, destroyed: false }))
    }

    /// The names that the peer announced and did not destroy.
    pub fn theirs(&self) -> impl Iterator<Item = (RpmsgEndpointName, RpmsgAddress)> {
        self.theirs.into_iter().flatten()
    }

    /// Takes a message that was received. `None` if it is not for the name service.
    ///
    /// # Errors
    /// [`Fault::Announcement`] if it is, but no announcement.
    pub fn handle_message(
        &mut self,
        header: &RpmsgHeader,
        payload: &[u8],
    ) -> Option<Result<AnnouncementChange, Fault>> {
        (header.destination == NAME_SERVICE)
            .then(|| Ok(self.apply_announcement(&Announcement::parse(payload)?)))
    }

    /// Takes an announcement of the peer's.
    pub fn apply_announcement(&mut self, announcement: &Announcement) -> AnnouncementChange {
        let channel = Some((announcement.name, announcement.address));
        let known = self.theirs.iter_mut().find(|theirs| **theirs == channel);
        match (announcement.destroyed, known) {
            (true, Some(known)) => {
                *known = None;
                AnnouncementChange::Destroyed
            }
            (false, None) => self.remember(announcement),
            _ => AnnouncementChange::Known,
        }
    }

    /// Remembers a name. If the table is full, a name with an own endpoint replaces one without.
    fn remember(&mut self, announcement: &Announcement) -> AnnouncementChange {
        let is_own = |name| self.ours.contains(&Some(name));
        let free = self.theirs.iter().position(Option::is_none);
        let foreign = |theirs: &Option<(RpmsgEndpointName, RpmsgAddress)>| {
            theirs.is_some_and(|(name, _)| !is_own(name))
        };
        let replaced = || self.theirs.iter().position(foreign).filter(|_| is_own(announcement.name));
        let Some(room) = free.or_else(replaced) else {
            return AnnouncementChange::NoRoom;
        };
        self.theirs[room] = Some((announcement.name, announcement.address));
        AnnouncementChange::Created
    }
}

/// The place of an endpoint in the table.
fn slot_index(address: RpmsgAddress) -> Option<usize> {
    usize::try_from(address.checked_sub(FIRST_DYNAMIC)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> RpmsgEndpointName {
        RpmsgEndpointName::new(name).unwrap()
    }

    fn announcement(name: &str, address: RpmsgAddress) -> Announcement {
        Announcement { name: named(name), address, destroyed: false }
    }

    #[test]
    fn it_does_not_matter_who_comes_first() {
        let mut endpoints = Endpoints::<2>::default();
        assert_eq!(endpoints.apply_announcement(&announcement("early", 7)), AnnouncementChange::Created);
        let early = endpoints.open_endpoint(named("early")).unwrap();
        let late = endpoints.open_endpoint(named("late")).unwrap();
        assert_eq!((early, late), (0x400, 0x401));
        assert_eq!((endpoints.peer(early), endpoints.peer(late)), (Some(7), None));
        assert_eq!(endpoints.apply_announcement(&announcement("late", 8)), AnnouncementChange::Created);
        assert_eq!(endpoints.peer(late), Some(8));
    }

    #[test]
    fn repeated_announcements_change_nothing() {
        let mut endpoints = Endpoints::<2>::default();
        let heard = [0; 3].map(|_| endpoints.apply_announcement(&announcement("echo", 7)));
        assert_eq!(
            heard,
            [AnnouncementChange::Created, AnnouncementChange::Known, AnnouncementChange::Known]
        );
        assert_eq!(endpoints.theirs().count(), 1);
    }

    #[test]
    fn a_destroyed_name_is_gone_and_another_of_that_name_takes_over() {
        let mut endpoints = Endpoints::<2>::default();
        let echo = endpoints.open_endpoint(named("echo")).unwrap();
        endpoints.apply_announcement(&announcement("echo", 7));
        endpoints.apply_announcement(&announcement("echo", 8));
        assert_eq!(endpoints.peer(echo), Some(7));
        let gone = Announcement { destroyed: true, ..announcement("echo", 7) };
        assert_eq!(endpoints.apply_announcement(&gone), AnnouncementChange::Destroyed);
        assert_eq!(endpoints.peer(echo), Some(8));
        assert_eq!(endpoints.apply_announcement(&gone), AnnouncementChange::Known);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut endpoints = Endpoints::<2>::default();
        let heard = [1, 2, 3].map(|address| endpoints.apply_announcement(&announcement("flood", address)));
        assert_eq!(
            heard,
            [AnnouncementChange::Created, AnnouncementChange::Created, AnnouncementChange::NoRoom]
        );
        assert_eq!(endpoints.open_endpoint(named("a")), endpoints.open_endpoint(named("a")));
        endpoints.open_endpoint(named("b"));
        assert_eq!(endpoints.open_endpoint(named("c")), None);
    }

    #[test]
    fn a_name_with_an_own_endpoint_always_has_room() {
        let mut endpoints = Endpoints::<2>::default();
        let awaited = endpoints.open_endpoint(named("awaited")).unwrap();
        for address in [1, 2, 3] {
            endpoints.apply_announcement(&announcement("other", address));
        }
        assert_eq!(endpoints.apply_announcement(&announcement("awaited", 9)), AnnouncementChange::Created);
        assert_eq!(endpoints.peer(awaited), Some(9));
        assert_eq!(endpoints.theirs().count(), 2);
        assert_eq!(endpoints.apply_announcement(&announcement("other", 4)), AnnouncementChange::NoRoom);
    }

    #[test]
    fn a_closed_endpoint_has_no_peer() {
        let mut endpoints = Endpoints::<2>::default();
        let echo = endpoints.open_endpoint(named("echo")).unwrap();
        endpoints.apply_announcement(&announcement("echo", 7));
        assert_eq!(endpoints.close_endpoint(echo), Some(named("echo")));
        assert_eq!((endpoints.peer(echo), endpoints.close_endpoint(echo)), (None, None));
        assert_eq!([0, 0x3FF, 0x402, u32::MAX].map(|address| endpoints.peer(address)), [None; 4]);
    }

    #[test]
    fn only_messages_to_the_name_service_are_announcements() {
        let mut endpoints = Endpoints::<2>::default();
        let payload = announcement("echo", 0x400).encode_bytes();
        let to = |destination| RpmsgHeader { source: 0x400, destination, length: 40, flags: 0 };
        assert_eq!(endpoints.handle_message(&to(0x400), &payload), None);
        assert_eq!(endpoints.handle_message(&to(53), &payload), Some(Ok(AnnouncementChange::Created)));
        assert_eq!(endpoints.handle_message(&to(53), &payload[1..]), Some(Err(Fault::Announcement)));
    }

    #[test]
    fn our_endpoints_are_announced_by_name_and_address() {
        let mut endpoints = Endpoints::<3>::default();
        let first = endpoints.open_endpoint(named("first")).unwrap();
        endpoints.open_endpoint(named("second"));
        endpoints.close_endpoint(first);
        assert!(endpoints.ours().eq([announcement("second", 0x401)]));
    }
}
