//! The resource table of a remote processor's firmware, as far as it is about
//! RPMsg: one virtio device with two rings.
//!
//! The table is version 1 of what `remoteproc.h` in Linux describes: a header,
//! the offsets of its resources, and the resources. Here one is read among any
//! number, and written alone.

use crate::ring::Layout;
use crate::{Fault, Memory};

/// What a vdev resource is called.
const VDEV: u32 = 3;
/// The virtio device that RPMsg is.
const RPMSG: u32 = 7;
/// Version, number of resources, two reserved words; then the offsets.
const HEADER: usize = 16;
/// Where the device is in a table that has only this one.
const ALONE: usize = HEADER + 4;
/// Bytes of the device in front of its rings.
const DEVICE: usize = 28;
/// Bytes of a ring's entry.
const RING: usize = 20;
/// A table with more resources is taken for garbage.
const MOST_RESOURCES: u32 = 256;

/// Feature: the remote processor announces names.
pub const NAME_SERVICE: u32 = 1;

/// Bits of a virtio device's status, which the driver sets.
pub mod status {
    /// The driver saw the device.
    pub const ACKNOWLEDGE: u8 = 1;
    /// The driver knows how to drive it.
    pub const DRIVER: u8 = 2;
    /// The driver is ready: the device may use the rings.
    pub const DRIVER_OK: u8 = 4;
    /// Set by the device: it cannot go on before it is reset.
    pub const NEEDS_RESET: u8 = 0x40;
}

/// A ring as the table has it: four words, and a reserved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Its device address; [`Ring::ANYWHERE`] if the driver is to choose.
    pub address: u32,
    /// The alignment of its used part, bytes.
    pub align: u32,
    /// How many descriptors it has.
    pub num: u32,
    /// What a kick for it is called.
    pub notify: u32,
}

impl Ring {
    /// The address of a ring that has none yet.
    pub const ANYWHERE: u32 = 0xFFFF_FFFF;

    /// Where its parts are.
    ///
    /// # Errors
    /// [`Fault::Ring`] if no ring is so, or its address is still to be chosen.
    pub fn layout(&self) -> Result<Layout, Fault> {
        let base = usize::try_from(self.address).map_err(|_| Fault::Ring)?;
        if self.address == Ring::ANYWHERE {
            Err(Fault::Ring)
        } else {
            Layout::contiguous(base, self.num, self.align)
        }
    }

    fn load(memory: &impl Memory, at: usize) -> Result<Ring, Fault> {
        let word = |index: usize| memory.load_u32(at + 4 * index);
        Ok(Ring { address: word(0)?, align: word(1)?, num: word(2)?, notify: word(3)? })
    }

    fn words(&self) -> [u32; 5] {
        [self.address, self.align, self.num, self.notify, 0]
    }
}

/// The RPMsg device of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Features that the remote processor has.
    pub features: u32,
    /// Remote to host, then host to remote.
    pub rings: [Ring; 2],
    /// Where the device's status is.
    status: usize,
}

impl Table {
    /// A table with nothing but the device.
    pub const fn new(features: u32, rings: [Ring; 2]) -> Table {
        Table { features, rings, status: ALONE + 24 }
    }

    /// A table that is nowhere in memory, whose status is at this offset: for links that both sides
    /// were built for, as those of openEuler's MCS.
    pub const fn unwritten(features: u32, rings: [Ring; 2], status: usize) -> Table {
        Table { features, rings, status }
    }

    /// Bytes of a table with nothing but the device.
    pub const SIZE: usize = ALONE + DEVICE + 2 * RING;

    /// Writes the table to the beginning of the window; the status is 0: no driver is there.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] if it has no room.
    pub fn write(&self, memory: &impl Memory) -> Result<(), Fault> {
        memory.locate(0, Table::SIZE as u32)?;
        let head = [1, 1, 0, 0, ALONE as u32, VDEV, RPMSG, 0, self.features, 0, 0];
        let status_and_count = u32::from_le_bytes([0, 2, 0, 0]);
        let rings = self.rings.iter().flat_map(Ring::words);
        let words = head.into_iter().chain([status_and_count]).chain(rings);
        (0..).step_by(4).zip(words).try_for_each(|(at, word)| memory.store_u32(at, word))
    }

    /// Finds the RPMsg device in a table at the beginning of the window.
    ///
    /// # Errors
    /// [`Fault::Table`] if the version is not 1 or there is no RPMsg device with two rings and no
    /// configuration, [`Fault::OutOfWindow`] if a part lies outside. The rings' shapes are checked by [`Ring::layout`].
    pub fn parse(memory: &impl Memory) -> Result<Table, Fault> {
        let (version, count) = (memory.load_u32(0)?, memory.load_u32(4)?);
        if version != 1 || count > MOST_RESOURCES {
            return Err(Fault::Table);
        }
        for index in 0..count as usize {
            let offset = memory.load_u32(HEADER + 4 * index)?;
            let at = memory.locate(offset.into(), DEVICE as u32)?;
            if memory.load_u32(at)? == VDEV && memory.load_u32(at + 4)? == RPMSG {
                return Table::device(memory, at);
            }
        }
        Err(Fault::Table)
    }

    /// Loads the device at `at`.
    fn device(memory: &impl Memory, at: usize) -> Result<Table, Fault> {
        let status = at + 24;
        let (config, rings) = (memory.load_u32(at + 20)?, memory.load_u8(status + 1)?);
        if config != 0 || rings != 2 {
            return Err(Fault::Table);
        }
        let first = at + DEVICE;
        Ok(Table {
            features: memory.load_u32(at + 12)?,
            rings: [Ring::load(memory, first)?, Ring::load(memory, first + RING)?],
            status,
        })
    }

    /// The device's status: bits of [`status`].
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    pub fn status(&self, memory: &impl Memory) -> Result<u8, Fault> {
        let status = memory.load_u8(self.status)?;
        // What the other side wrote before it set the status is seen from here on.
        memory.fence();
        Ok(status)
    }

    /// Sets the device's status, after all that was stored before.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    pub fn set_status(&self, memory: &impl Memory, status: u8) -> Result<(), Fault> {
        memory.fence();
        memory.store_u8(self.status, status)
    }

    /// Whether the driver is ready and nobody asks for a reset.
    ///
    /// # Errors
    /// As [`Table::status`].
    pub fn is_ready(&self, memory: &impl Memory) -> Result<bool, Fault> {
        Ok(is_ready(self.status(memory)?))
    }

    /// As [`Table::is_ready`] of a driver that was ready before, without order: nothing that the
    /// driver wrote before is seen because of it, but it costs next to nothing.
    ///
    /// # Errors
    /// As [`Table::status`].
    pub fn is_still_ready(&self, memory: &impl Memory) -> Result<bool, Fault> {
        Ok(is_ready(memory.load_u8(self.status)?))
    }
}

fn is_ready(status: u8) -> bool {
    status & (status::DRIVER_OK | status::NEEDS_RESET) == status::DRIVER_OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Cells;
    use crate::window::Window;
    use std::sync::atomic::AtomicU16;

    fn memory() -> Cells<[AtomicU16; 128]> {
        Cells([const { AtomicU16::new(0) }; 128])
    }

    #[test]
    fn the_bytes_are_openamps() {
        let memory = memory();
        Window::OPENAMP.table.write(&memory).unwrap();
        let mut bytes = [0xEE; 0x60];
        memory.read(0, &mut bytes).unwrap();
        let words: Vec<u32> =
            bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..5], [1, 1, 0, 0, 0x14]);
        assert_eq!(words[5..12], [3, 7, 0, 1, 0, 0, 0x0200]);
        assert_eq!(words[12..17], [0x4000, 0x1000, 256, 1, 0]);
        assert_eq!(words[17..22], [0x8000, 0x1000, 256, 2, 0]);
        assert_eq!(words[22..], [0, 0]);
        assert_eq!(Table::SIZE, 0x58);
    }

    #[test]
    fn what_was_written_is_found() {
        let memory = memory();
        Window::OPENAMP.table.write(&memory).unwrap();
        let table = Table::parse(&memory).unwrap();
        assert_eq!(table, Window::OPENAMP.table);
        assert_eq!(table.is_ready(&memory), Ok(false));
        table.set_status(&memory, status::DRIVER_OK).unwrap();
        assert_eq!(memory.load_u8(0x2C), Ok(4), "where OpenAMP has it");
        assert_eq!(table.is_ready(&memory), Ok(true));
        table.set_status(&memory, status::DRIVER_OK | status::NEEDS_RESET).unwrap();
        assert_eq!(table.is_ready(&memory), Ok(false));
    }

    #[test]
    fn the_device_is_found_behind_other_resources() {
        let memory = memory();
        let carveout = 0x20;
        let device = 0x40;
        for (at, word) in [1, 2, 0, 0, carveout, device].into_iter().enumerate() {
            memory.store_u32(4 * at, word).unwrap();
        }
        let entry = [3, 7, 0, 1, 0, 0, 0x0200, 0x4000, 64, 16, 5, 0, Ring::ANYWHERE, 64, 16, 6, 0];
        for (at, word) in entry.into_iter().enumerate() {
            memory.store_u32(0x40 + 4 * at, word).unwrap();
        }
        let table = Table::parse(&memory).unwrap();
        assert_eq!(table.rings[0], Ring { address: 0x4000, align: 64, num: 16, notify: 5 });
        assert_eq!(table.rings[0].layout().unwrap().num(), 16);
        assert_eq!(table.rings[1].layout(), Err(Fault::Ring));
    }

    #[test]
    fn other_tables_are_refused() {
        // Each changes one word of a good table.
        let changes = [
            (0x00, 2, Fault::Table),
            (0x04, 0, Fault::Table),
            (0x04, u32::MAX, Fault::Table),
            (0x10, u32::MAX, Fault::OutOfWindow),
            (0x10, 0xF8, Fault::OutOfWindow),
            (0x10, 0x15, Fault::OutOfWindow),
            (0x14, 1, Fault::Table),
            (0x18, 3, Fault::Table),
            (0x28, 4, Fault::Table),
            (0x2C, 0x0300, Fault::Table),
        ];
        for (at, word, fault) in changes {
            let memory = memory();
            Window::OPENAMP.table.write(&memory).unwrap();
            memory.store_u32(at, word).unwrap();
            assert_eq!(Table::parse(&memory), Err(fault), "{at:#x}");
        }
    }

    #[test]
    fn a_table_without_room_is_an_error() {
        let memory = Cells([const { AtomicU16::new(0) }; 40]);
        assert_eq!(Window::OPENAMP.table.write(&memory), Err(Fault::OutOfWindow));
        assert_eq!(Table::parse(&memory), Err(Fault::Table));
    }
}
