//! The memory of a virtual machine: regions that its monitor hands over.

use super::wire::VhostMemoryRegion;
use anyhow::{Context, Result, ensure};
use latscope_os::window::MemoryWindow;
use latscope_rpmsg::{Fault, RpmsgMemory};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// The guest's memory; offsets are its physical addresses. Clones refer to the same.
#[derive(Debug, Clone)]
pub(super) struct Guest(Arc<[VhostMemoryMapping]>);

#[derive(Debug)]
struct VhostMemoryMapping {
    /// The guest's physical address of the first byte.
    base: usize,
    /// Address of the region in the monitor, by which the monitor gives the places of the rings.
    user: u64,
    window: MemoryWindow,
}

impl Guest {
    /// Maps the regions that the monitor describes.
    ///
    /// # Errors
    /// A region is not in its file, or its addresses overflow.
    pub(super) fn map_regions(regions: Vec<(VhostMemoryRegion, OwnedFd)>) -> Result<Guest> {
        let mapped: Result<Vec<VhostMemoryMapping>> =
            regions.into_iter().map(|(region, file)| map_region(&region, file)).collect();
        Ok(Guest(mapped?.into()))
    }

    /// The guest's physical address of one of the monitor's.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`].
    pub(super) fn translate(&self, user: u64) -> Result<usize, Fault> {
        let within = |region: &&VhostMemoryMapping| {
            user.checked_sub(region.user).is_some_and(|offset| offset < region.window.size() as u64)
        };
        let region = self.0.iter().find(within).ok_or(Fault::OutOfWindow)?;
        Ok(region.base + (user - region.user) as usize)
    }

    /// The region with an address, and the offset in it. Whether all that is
    /// accessed is in the region, its window checks.
    #[inline]
    fn at(&self, address: usize) -> Result<(&MemoryWindow, usize), Fault> {
        let within = |region: &&VhostMemoryMapping| {
            address.checked_sub(region.base).is_some_and(|offset| offset < region.window.size())
        };
        let region = self.0.iter().find(within).ok_or(Fault::OutOfWindow)?;
        Ok((&region.window, address - region.base))
    }
}

fn map_region(region: &VhostMemoryRegion, file: OwnedFd) -> Result<VhostMemoryMapping> {
    let (base, size) = (usize::try_from(region.guest)?, usize::try_from(region.size)?);
    ensure!(base.checked_add(size).is_some(), "a region of memory ends behind the last address");
    let window = MemoryWindow::map_part(file, region.offset, size).with_context(|| {
        format!("the memory at {base:#x} cannot be mapped: is it shared (memory-backend-memfd)?")
    })?;
    Ok(VhostMemoryMapping { base, user: region.user, window })
}

/// Accesses to the window of the region that has the address.
macro_rules! in_region {
    ($($access:ident($($value:ident: $kind:ty)?) -> $found:ty;)+) => {
        $(fn $access(&self, at: usize $(, $value: $kind)?) -> Result<$found, Fault> {
            let (window, at) = self.at(at)?;
            window.$access(at $(, $value)?)
        })+
    };
}

impl RpmsgMemory for Guest {
    fn size(&self) -> usize {
        self.0.iter().map(|region| region.base + region.window.size()).max().unwrap_or(0)
    }

    in_region! {
        load_u8() -> u8;
        store_u8(value: u8) -> ();
        load_u16() -> u16;
        store_u16(value: u16) -> ();
        load_index() -> u16;
        store_index(value: u16) -> ();
        load_u32() -> u32;
        store_u32(value: u32) -> ();
        read_bytes(into: &mut [u8]) -> ();
        write_bytes(from: &[u8]) -> ();
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// Locates a range that is wholly in one region: a range across two regions belongs to neither.
    fn locate(&self, address: u64, length: u32) -> Result<usize, Fault> {
        let address = usize::try_from(address).map_err(|_| Fault::OutOfWindow)?;
        let (window, at) = self.at(address)?;
        window.locate(at as u64, length)?;
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Guest {
        let file =
            || MemoryWindow::create_zeroed(2 * 4096).unwrap().descriptor().try_clone_to_owned().unwrap();
        let region = |guest, user, offset| VhostMemoryRegion { guest, size: 4096, user, offset };
        Guest::map_regions(vec![
            (region(0x4000_0000, 0x7000_0000_0000, 0), file()),
            (region(0x4000_1000, 0x7100_0000_0000, 4096), file()),
            (region(0x8000_0000, 0x7200_0000_0000, 0), file()),
        ])
        .unwrap()
    }

    #[test]
    fn addresses_are_the_guests() {
        let guest = guest();
        guest.store_u32(0x4000_0010, 7).unwrap();
        guest.store_u32(0x8000_0ffc, 8).unwrap();
        assert_eq!((guest.load_u32(0x4000_0010), guest.load_u32(0x8000_0ffc)), (Ok(7), Ok(8)));
        assert_eq!(guest.translate(0x7200_0000_0ffc), Ok(0x8000_0ffc));
        assert_eq!(guest.size(), 0x8000_1000);
    }

    #[test]
    fn holes_and_what_crosses_regions_are_refused() {
        let (guest, out) = (guest(), Err(Fault::OutOfWindow));
        for address in [0, 0x3fff_ffff, 0x4000_2000, 0x8000_1000, usize::MAX] {
            assert_eq!(guest.load_u8(address).map(drop), out, "{address:#x}");
        }
        assert_eq!(guest.read_bytes(0x4000_0ffe, &mut [0; 4]), out);
        assert_eq!(guest.locate(0x4000_0ff0, 0x20).map(drop), out);
        assert_eq!(guest.locate(0x4000_0ff0, 0x10), Ok(0x4000_0ff0));
        assert_eq!(guest.locate(u64::MAX, u32::MAX).map(drop), out);
        assert_eq!(guest.translate(0x7000_0000_1000).map(drop), out);
        assert_eq!(guest.translate(1), Err(Fault::OutOfWindow));
    }

    #[test]
    fn a_region_that_is_not_in_its_file_is_refused() {
        let file = MemoryWindow::create_zeroed(4096).unwrap().descriptor().try_clone_to_owned().unwrap();
        let region = VhostMemoryRegion { guest: 0, size: 8192, user: 0, offset: 0 };
        assert!(Guest::map_regions(vec![(region, file)]).is_err());
    }
}
