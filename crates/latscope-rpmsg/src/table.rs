//! The resource table of a remote processor's firmware, as far as it is about
//! RPMsg: one virtio device with two rings.
//!
//! The table is version 1 of the table that `remoteproc.h` in Linux describes: a header, the offsets of its resources,
//! and the resources. This module reads a device among any number of resources, and writes it alone.

use crate::header::RpmsgHeader;
use crate::ring::VirtqueueLayout;
use crate::{Fault, RpmsgMemory};

/// Type number of a vdev resource.
const VDEV: u32 = 3;
/// Number of RPMsg as a virtio device.
const RPMSG: u32 = 7;
/// Version, number of resources, two reserved words; then the offsets.
const HEADER: usize = 16;
/// Offset of the device in a table that has only this one.
const ALONE: usize = HEADER + 4;
/// Size of the device in front of its rings, bytes.
const DEVICE: usize = 28;
/// Offsets in a device of the features that the driver accepted, and of its status.
const ACCEPTED: usize = 16;
const STATUS: usize = 24;
/// Size of a ring's entry, bytes.
const RING: usize = 20;
/// Offset of the configuration in a table that has only one device.
const CONFIGURATION: usize = ALONE + DEVICE + 2 * RING;
/// A table with more resources is taken for garbage.
const MOST_RESOURCES: u32 = 256;

/// Size in bytes of the configuration that states the sizes of the buffers: `u8` version, `u16` bytes of it all, and
/// the sizes as the remote sees them, `u32` to send and `u32` to receive.
const CONFIG: usize = 11;
/// The version of it that is known.
const CONFIG_VERSION: u8 = 1;

/// Feature: the remote processor announces names.
pub const NAME_SERVICE: u32 = 1;

/// Feature of Linux's `virtio_rpmsg.h`: the configuration states the sizes of the buffers. NuttX uses this bit for
/// something else, so that only a configuration with its version and size counts.
pub const BUFFER_SIZES: u32 = 2;

/// Bits of a virtio device's status, which the driver sets.
pub mod status {
    /// The driver saw the device.
    pub const ACKNOWLEDGE: u8 = 1;
    /// The driver knows how to drive it.
    pub const DRIVER: u8 = 2;
    /// The driver is ready: the device may use the rings.
    pub const DRIVER_OK: u8 = 4;
    /// Bit set by a device that cannot continue before it is reset.
    pub const NEEDS_RESET: u8 = 0x40;
}

/// A ring as the table has it: four words, and a reserved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VringResource {
    /// Device address of the ring; [`VringResource::ANYWHERE`] if the driver is to choose.
    pub address: u32,
    /// Alignment of the ring's used part, bytes.
    pub align: u32,
    /// Number of the ring's descriptors.
    pub num: u32,
    /// Number that identifies the ring in a kick.
    pub notify: u32,
}

impl VringResource {
    /// The address of a ring that has none yet.
    pub const ANYWHERE: u32 = 0xFFFF_FFFF;

    /// Returns the offsets of the parts of the ring.
    ///
    /// # Errors
    /// [`Fault::Ring`] if no ring can have these values, or its address is still to be chosen.
    pub fn layout(&self) -> Result<VirtqueueLayout, Fault> {
        let base = usize::try_from(self.address).map_err(|_| Fault::Ring)?;
        if self.address == VringResource::ANYWHERE {
            Err(Fault::Ring)
        } else {
            VirtqueueLayout::contiguous(base, self.num, self.align)
        }
    }

    fn load_resource(memory: &impl RpmsgMemory, at: usize) -> Result<VringResource, Fault> {
        let word = |index: usize| memory.load_u32(at + 4 * index);
        Ok(VringResource { address: word(0)?, align: word(1)?, num: word(2)?, notify: word(3)? })
    }

    fn encode_words(&self) -> [u32; 5] {
        [self.address, self.align, self.num, self.notify, 0]
    }
}

/// Sizes of the buffers of a link, bytes, headers included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSizes {
    /// Size of the buffers from the remote to the host.
    pub to_host: u32,
    /// Size of the buffers from the host to the remote.
    pub to_remote: u32,
}

impl BufferSizes {
    /// Sizes that Linux and OpenAMP use if nothing else was negotiated.
    pub const USUAL: BufferSizes = BufferSizes { to_host: 512, to_remote: 512 };

    /// Reads a configuration; `None` if it is of another kind.
    fn parse(bytes: &[u8; CONFIG]) -> Result<Option<BufferSizes>, Fault> {
        let [version, a, b, sizes @ ..] = *bytes;
        if version != CONFIG_VERSION || usize::from(u16::from_le_bytes([a, b])) != CONFIG {
            return Ok(None);
        }
        let [to_host, to_remote] =
            [0, 4].map(|at| u32::from_le_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]));
        match to_host.min(to_remote) as usize >= RpmsgHeader::SIZE {
            true => Ok(Some(BufferSizes { to_host, to_remote })),
            false => Err(Fault::Table),
        }
    }

    fn encode_bytes(&self) -> [u8; CONFIG] {
        let mut bytes = [0; CONFIG];
        bytes[0] = CONFIG_VERSION;
        bytes[1..3].copy_from_slice(&(CONFIG as u16).to_le_bytes());
        bytes[3..7].copy_from_slice(&self.to_host.to_le_bytes());
        bytes[7..].copy_from_slice(&self.to_remote.to_le_bytes());
        bytes
    }
}

/// The RPMsg device of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceTable {
    /// Features that the remote processor offers.
    pub features: u32,
    /// Remote to host, then host to remote.
    pub rings: [VringResource; 2],
    /// Sizes of the buffers, if the remote processor states them.
    buffers: Option<BufferSizes>,
    /// Offset of the device's status.
    status: usize,
    /// Offset of the features that the driver accepted; `None` if both sides were built for the same features.
    accepted: Option<usize>,
}

impl ResourceTable {
    /// A table with nothing but the device.
    pub const fn new(features: u32, rings: [VringResource; 2]) -> ResourceTable {
        ResourceTable {
            features,
            rings,
            buffers: None,
            status: ALONE + STATUS,
            accepted: Some(ALONE + ACCEPTED),
        }
    }

    /// Returns the table with buffers of these sizes, which it offers to the driver.
    pub const fn with_buffers(self, sizes: BufferSizes) -> ResourceTable {
        ResourceTable { features: self.features | BUFFER_SIZES, buffers: Some(sizes), ..self }
    }

    /// Returns the sizes of the buffers once a driver has accepted all that it can.
    pub fn buffers(&self) -> BufferSizes {
        self.buffers.unwrap_or(BufferSizes::USUAL)
    }

    /// A table that is nowhere in memory, whose status is at this offset: for links that both sides
    /// were built for, as those of openEuler's MCS. Nothing is negotiated: the features are those of both.
    pub const fn without_memory(features: u32, rings: [VringResource; 2], status: usize) -> ResourceTable {
        ResourceTable { features, rings, buffers: None, status, accepted: None }
    }

    /// Bytes of a table with nothing but the device and its configuration.
    pub const SIZE: usize = CONFIGURATION + CONFIG;

    /// Writes the table to the beginning of the window; the status is 0, no driver is there, and no
    /// feature is accepted.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] if it has no room.
    pub fn write_table(&self, memory: &impl RpmsgMemory) -> Result<(), Fault> {
        memory.locate(0, ResourceTable::SIZE as u32)?;
        let config = if self.buffers.is_some() { CONFIG as u32 } else { 0 };
        let head = [1, 1, 0, 0, ALONE as u32, VDEV, RPMSG, 0, self.features, 0, config];
        let status_and_count = u32::from_le_bytes([0, 2, 0, 0]);
        let rings = self.rings.iter().flat_map(VringResource::encode_words);
        let words = head.into_iter().chain([status_and_count]).chain(rings);
        (0..).step_by(4).zip(words).try_for_each(|(at, word)| memory.store_u32(at, word))?;
        self.buffers.map_or(Ok(()), |sizes| memory.write_bytes(CONFIGURATION, &sizes.encode_bytes()))
    }

    /// Finds the RPMsg device in a table at the beginning of the window.
    ///
    /// # Errors
    /// [`Fault::Table`] if the version is not 1, there is no RPMsg device with two rings, or it wants buffers
    /// that have no room for a header; [`Fault::OutOfWindow`] if a part is outside. The rings' shapes are checked by
    /// [`VringResource::layout`].
    pub fn parse(memory: &impl RpmsgMemory) -> Result<ResourceTable, Fault> {
        ResourceTable::parse_at(memory, 0)
    }

    /// Finds the RPMsg device like [`ResourceTable::parse`], in a table that begins at `start`.
    ///
    /// # Errors
    /// The errors of [`ResourceTable::parse`].
    pub fn parse_at(memory: &impl RpmsgMemory, start: usize) -> Result<ResourceTable, Fault> {
        let start = memory.locate(start as u64, HEADER as u32)?;
        let (version, count) = (memory.load_u32(start)?, memory.load_u32(start + 4)?);
        if version != 1 || count > MOST_RESOURCES {
            return Err(Fault::Table);
        }
        for index in 0..count as usize {
            let offset = memory.load_u32(start + HEADER + 4 * index)?;
            let at = memory.locate(start as u64 + u64::from(offset), DEVICE as u32)?;
            if memory.load_u32(at)? == VDEV && memory.load_u32(at + 4)? == RPMSG {
                return ResourceTable::device(memory, at);
            }
        }
        Err(Fault::Table)
    }

    /// Loads the device at `at`.
    #[inline]
    fn device(memory: &impl RpmsgMemory, at: usize) -> Result<ResourceTable, Fault> {
        let (features, config) = (memory.load_u32(at + 12)?, memory.load_u32(at + 20)?);
        if memory.load_u8(at + STATUS + 1)? != 2 {
            return Err(Fault::Table);
        }
        let first = at + DEVICE;
        Ok(ResourceTable {
            features,
            rings: [
                VringResource::load_resource(memory, first)?,
                VringResource::load_resource(memory, first + RING)?,
            ],
            buffers: ResourceTable::load_buffer_sizes(memory, first + 2 * RING, config, features)?,
            status: at + STATUS,
            accepted: Some(at + ACCEPTED),
        })
    }

    /// Returns the buffer sizes in a configuration of `length` bytes at `at`, if it has them.
    fn load_buffer_sizes(
        memory: &impl RpmsgMemory,
        at: usize,
        length: u32,
        features: u32,
    ) -> Result<Option<BufferSizes>, Fault> {
        memory.locate(at as u64, length)?;
        if features & BUFFER_SIZES == 0 || (length as usize) < CONFIG {
            return Ok(None);
        }
        let mut bytes = [0; CONFIG];
        memory.read_bytes(at, &mut bytes)?;
        BufferSizes::parse(&bytes)
    }

    /// Chooses the places of the rings, and writes them into the table, less `origin`, which the other side adds.
    ///
    /// # Errors
    /// [`Fault::Table`] of a table that is nowhere in memory, [`Fault::OutOfWindow`] of another memory than it
    /// is in.
    pub fn place_rings(
        &self,
        memory: &impl RpmsgMemory,
        addresses: [u32; 2],
        origin: u32,
    ) -> Result<ResourceTable, Fault> {
        let first = self.accepted.ok_or(Fault::Table)? - ACCEPTED + DEVICE;
        let mut table = *self;
        for (index, address) in addresses.into_iter().enumerate() {
            memory.store_u32(first + index * RING, address.wrapping_sub(origin))?;
            table.rings[index].address = address;
        }
        Ok(table)
    }

    /// Accepts, as the driver, the known features among those that are offered: to be called before the driver is
    /// ready.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    pub fn accept(&self, memory: &impl RpmsgMemory) -> Result<(), Fault> {
        let known = NAME_SERVICE | if self.buffers.is_some() { BUFFER_SIZES } else { 0 };
        self.accepted.map_or(Ok(()), |at| memory.store_u32(at, self.features & known))
    }

    /// The features that both sides have, once the driver is ready. What was not offered is not accepted.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    #[inline]
    pub fn accepted(&self, memory: &impl RpmsgMemory) -> Result<u32, Fault> {
        let accepted = self.accepted.map_or(Ok(self.features), |at| memory.load_u32(at))?;
        Ok(accepted & self.features)
    }

    /// The device's status: bits of [`status`].
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    #[inline]
    pub fn status(&self, memory: &impl RpmsgMemory) -> Result<u8, Fault> {
        let status = memory.load_u8(self.status)?;
        // What the other side wrote before it set the status is seen from here on.
        memory.fence();
        Ok(status)
    }

    /// Sets the device's status, after all that was stored before.
    ///
    /// # Errors
    /// [`Fault::OutOfWindow`] of another memory than the table is in.
    pub fn set_status(&self, memory: &impl RpmsgMemory, status: u8) -> Result<(), Fault> {
        memory.fence();
        memory.store_u8(self.status, status)
    }

    /// Returns true if the driver is ready and no reset is requested.
    ///
    /// # Errors
    /// The errors of [`ResourceTable::status`].
    #[inline]
    pub fn is_ready(&self, memory: &impl RpmsgMemory) -> Result<bool, Fault> {
        Ok(is_ready(self.status(memory)?))
    }

    /// Returns the same as [`ResourceTable::is_ready`] for a driver that was ready before, without order: it makes no
    /// earlier store of the driver visible, but it costs almost nothing.
    ///
    /// # Errors
    /// The errors of [`ResourceTable::status`].
    #[inline]
    pub fn is_still_ready(&self, memory: &impl RpmsgMemory) -> Result<bool, Fault> {
        Ok(is_ready(memory.load_u8(self.status)?))
    }
}

#[inline]
fn is_ready(status: u8) -> bool {
    status & (status::DRIVER_OK | status::NEEDS_RESET) == status::DRIVER_OK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::AtomicCellMemory;
    use crate::window::RpmsgWindow;
    use std::sync::atomic::AtomicU16;

    fn memory() -> AtomicCellMemory<[AtomicU16; 128]> {
        AtomicCellMemory([const { AtomicU16::new(0) }; 128])
    }

    #[test]
    fn the_bytes_are_openamps() {
        let memory = memory();
        RpmsgWindow::OPENAMP.table.write_table(&memory).unwrap();
        let mut bytes = [0xEE; 0x60];
        memory.read_bytes(0, &mut bytes).unwrap();
        let words: Vec<u32> =
            bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words[..5], [1, 1, 0, 0, 0x14]);
        assert_eq!(words[5..12], [3, 7, 0, 1, 0, 0, 0x0200]);
        assert_eq!(words[12..17], [0x4000, 0x1000, 256, 1, 0]);
        assert_eq!(words[17..22], [0x8000, 0x1000, 256, 2, 0]);
        assert!(words[22..].iter().all(|word| *word == 0));
        assert_eq!(ResourceTable::SIZE, 0x58 + 11);
    }

    #[test]
    fn what_was_written_is_found() {
        let memory = memory();
        RpmsgWindow::OPENAMP.table.write_table(&memory).unwrap();
        let table = ResourceTable::parse(&memory).unwrap();
        assert_eq!(table, RpmsgWindow::OPENAMP.table);
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
        let entry = [3, 7, 0, 1, 0, 0, 0x0200, 0x4000, 64, 16, 5, 0, VringResource::ANYWHERE, 64, 16, 6, 0];
        for (at, word) in entry.into_iter().enumerate() {
            memory.store_u32(0x40 + 4 * at, word).unwrap();
        }
        let table = ResourceTable::parse(&memory).unwrap();
        assert_eq!(table.rings[0], VringResource { address: 0x4000, align: 64, num: 16, notify: 5 });
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
            (0x28, 0x1000, Fault::OutOfWindow),
            (0x28, u32::MAX, Fault::OutOfWindow),
            (0x2C, 0x0300, Fault::Table),
        ];
        for (at, word, fault) in changes {
            let memory = memory();
            RpmsgWindow::OPENAMP.table.write_table(&memory).unwrap();
            memory.store_u32(at, word).unwrap();
            assert_eq!(ResourceTable::parse(&memory), Err(fault), "{at:#x}");
        }
    }

    /// A table with this configuration behind its device, whose features are these.
    fn configured(features: u32, length: u32, config: &[u8]) -> AtomicCellMemory<[AtomicU16; 128]> {
        let memory = memory();
        RpmsgWindow::OPENAMP.table.write_table(&memory).unwrap();
        memory.store_u32(0x20, features).unwrap();
        memory.store_u32(0x28, length).unwrap();
        memory.write_bytes(0x58, config).unwrap();
        memory
    }

    /// Configuration as Linux reads it: version, size, and the sizes of buffers that the remote sends and receives.
    const SIZES: [u8; 11] = [1, 11, 0, 0x00, 0x10, 0, 0, 0x00, 0x08, 0, 0];

    #[test]
    fn buffer_sizes_are_read_by_version_and_size() {
        let sizes = BufferSizes { to_host: 4096, to_remote: 2048 };
        assert_eq!(ResourceTable::parse(&configured(3, 11, &SIZES)).unwrap().buffers(), sizes);
        // A longer space than the version has.
        assert_eq!(ResourceTable::parse(&configured(3, 64, &SIZES)).unwrap().buffers(), sizes);
        let memory = memory();
        let table = RpmsgWindow::OPENAMP.table.with_buffers(sizes);
        table.write_table(&memory).unwrap();
        assert_eq!(ResourceTable::parse(&memory), Ok(table));
        let mut bytes = [0; 11];
        memory.read_bytes(0x58, &mut bytes).unwrap();
        assert_eq!(bytes, SIZES);
    }

    #[test]
    fn another_configuration_leaves_the_usual_buffers_and_its_feature_is_not_accepted() {
        let nuttx = [&1536_u32.to_le_bytes()[..], &1536_u32.to_le_bytes(), b"cpu0"].concat();
        let changed = |at: usize, byte: u8| {
            let mut config = SIZES;
            config[at] = byte;
            config.to_vec()
        };
        let cases = [
            // NuttX: bit 1 is an acknowledgement, bit 2 the sizes, elsewhere.
            (0b111, 40, nuttx),
            // OpenAMP before versions, and versions and sizes that are not known.
            (3, 8, [512_u32.to_le_bytes(), 512_u32.to_le_bytes()].concat()),
            (3, 11, changed(0, 0)),
            (3, 11, changed(0, 2)),
            (3, 13, changed(1, 13)),
            (3, 11, changed(2, 1)),
            // The feature without a configuration, one that is too short, and one without the feature.
            (3, 0, SIZES.to_vec()),
            (3, 10, SIZES.to_vec()),
            (1, 11, SIZES.to_vec()),
        ];
        for (features, length, config) in cases {
            let memory = configured(features, length, &config);
            let table = ResourceTable::parse(&memory).unwrap();
            assert_eq!(table.buffers(), BufferSizes::USUAL, "{config:?}");
            table.accept(&memory).unwrap();
            assert_eq!(memory.load_u32(0x24), Ok(NAME_SERVICE), "{config:?}");
        }
    }

    #[test]
    fn impossible_buffer_sizes_and_places_are_refused() {
        for at in [3, 7] {
            for size in [0_u32, 1, 15] {
                let mut config = SIZES;
                config[at..at + 4].copy_from_slice(&size.to_le_bytes());
                assert_eq!(
                    ResourceTable::parse(&configured(3, 11, &config)),
                    Err(Fault::Table),
                    "{at} {size}"
                );
            }
        }
        // It ends, or begins, behind the window; the last byte is just in it.
        let room = 256 - 0x58;
        assert!(ResourceTable::parse(&configured(3, room, &SIZES)).is_ok());
        for length in [room + 1, 0x7FFF_FFFF, u32::MAX] {
            assert_eq!(
                ResourceTable::parse(&configured(3, length, &SIZES)),
                Err(Fault::OutOfWindow),
                "{length:#x}"
            );
        }
    }

    #[test]
    fn what_was_not_offered_is_not_accepted() {
        let memory = configured(0b1_0101, 0, &[]);
        let table = ResourceTable::parse(&memory).unwrap();
        assert_eq!(table.accepted(&memory), Ok(0), "no driver was there");
        table.accept(&memory).unwrap();
        assert_eq!((memory.load_u32(0x24), table.accepted(&memory)), (Ok(1), Ok(1)));
        // A driver that claims everything.
        memory.store_u32(0x24, u32::MAX).unwrap();
        assert_eq!(table.accepted(&memory), Ok(0b1_0101));
        let table = ResourceTable::parse(&configured(0, 0, &[])).unwrap();
        table.accept(&memory).unwrap();
        assert_eq!(table.accepted(&memory), Ok(0));
        table.write_table(&memory).unwrap();
        assert_eq!(memory.load_u32(0x24), Ok(0), "a table that is written begins anew");
    }

    #[test]
    fn a_table_without_room_is_an_error() {
        let memory = AtomicCellMemory([const { AtomicU16::new(0) }; 40]);
        assert_eq!(RpmsgWindow::OPENAMP.table.write_table(&memory), Err(Fault::OutOfWindow));
        assert_eq!(ResourceTable::parse(&memory), Err(Fault::Table));
    }
}
