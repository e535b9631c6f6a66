//! Finds the device whose memory is the window: ivshmem on the first PCI bus.

use crate::ports;

const ADDRESS: u16 = 0xCF8;
const DATA: u16 = 0xCFC;

/// Device and vendor of ivshmem.
const IVSHMEM: u32 = 0x1110_1AF4;

/// Registers of a device's configuration.
const IDENTITY: u8 = 0;
const COMMAND: u8 = 4;
/// BAR2, of 64 bits: the shared memory.
const MEMORY_LOW: u8 = 0x18;
const MEMORY_HIGH: u8 = 0x1C;

/// In the command register: the device answers at its memory addresses.
const DECODE: u32 = 2;
/// In a BAR: bits that are no address.
const FLAGS: u32 = 0xF;
/// In a BAR's flags: the next BAR has the upper half.
const WIDE: u32 = 4;

/// Where memory goes for which the firmware had no place below 4 GiB: QEMU's
/// machines leave addresses from here on to devices, and there is no other.
const OWN_PLACE: u32 = 0xC000_0000;

/// A piece of the address space.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub at: u32,
    pub size: u32,
}

/// A device on the first bus.
#[derive(Clone, Copy)]
struct Device(u32);

impl Device {
    fn read(self, register: u8) -> u32 {
        self.select(register);
        ports::read_u32(DATA)
    }

    fn write(self, register: u8, value: u32) {
        self.select(register);
        ports::write_u32(DATA, value);
    }

    fn select(self, register: u8) {
        ports::write_u32(ADDRESS, 1 << 31 | self.0 << 11 | u32::from(register));
    }

    /// Makes the device's memory accessible and tells where it is.
    fn memory(self) -> Option<Span> {
        let command = self.read(COMMAND);
        self.write(COMMAND, command & !DECODE);
        let size = self.size()?;
        let at = self.place();
        self.write(COMMAND, command | DECODE);
        Some(Span { at, size })
    }

    /// The size of the memory, which is below 4 GiB: of an address only as many bits can be written as it has.
    fn size(self) -> Option<u32> {
        let old = self.read(MEMORY_LOW);
        self.write(MEMORY_LOW, u32::MAX);
        let mask = self.read(MEMORY_LOW) & !FLAGS;
        self.write(MEMORY_LOW, old);
        (mask != 0).then(|| mask.wrapping_neg())
    }

    /// Where the memory is, after it was put below 4 GiB if it was not there.
    fn place(self) -> u32 {
        let low = self.read(MEMORY_LOW);
        let high = if low & WIDE != 0 { self.read(MEMORY_HIGH) } else { 0 };
        if low & !FLAGS != 0 && high == 0 {
            return low & !FLAGS;
        }
        self.write(MEMORY_LOW, OWN_PLACE);
        if low & WIDE != 0 {
            self.write(MEMORY_HIGH, 0);
        }
        OWN_PLACE
    }
}

/// The shared memory of the first ivshmem device.
pub fn shared_memory() -> Option<Span> {
    (0..32).map(Device).find(|device| device.read(IDENTITY) == IVSHMEM)?.memory()
}
