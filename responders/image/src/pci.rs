//! Finds the device whose memory is the window: ivshmem on the first PCI bus.

use crate::ports;

const ADDRESS: u16 = 0xCF8;
const DATA: u16 = 0xCFC;

/// Device and vendor of ivshmem.
const IVSHMEM: u32 = 0x1110_1AF4;

/// Registers of a device's configuration.
const IDENTITY: u8 = 0;
const COMMAND: u8 = 4;
/// Where the list of capabilities begins.
const CAPABILITIES: u8 = 0x34;
/// The capability of interrupts by messages, with a table.
const MSI_X: u8 = 0x11;
/// In the first register of that capability: it is on.
const MSI_X_ON: u32 = 1 << 31;

/// In the command register: the device answers at its memory addresses, and may write to
/// others', as interrupts by messages do.
const DECODE: u32 = 2;
const MASTER: u32 = 4;
/// In a BAR: bits that are no address.
const FLAGS: u32 = 0xF;
/// In a BAR's flags: the next BAR has the upper half.
const WIDE: u32 = 4;

/// A BAR of ivshmem, and where it goes if the firmware had no place for it below 4 GiB: QEMU's
/// machines leave addresses from 3 GiB on to devices, and there is no other.
#[derive(Clone, Copy)]
struct Bar {
    register: u8,
    own_place: u32,
}

const REGISTERS: Bar = Bar { register: 0x10, own_place: 0xF000_0000 };
const VECTORS: Bar = Bar { register: 0x14, own_place: 0xF001_0000 };
const MEMORY: Bar = Bar { register: 0x18, own_place: 0xC000_0000 };

/// A piece of the address space.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub at: u32,
    pub size: u32,
}

/// A device on the first bus.
#[derive(Clone, Copy)]
struct VirtqueueDevice(u32);

impl VirtqueueDevice {
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

    /// Makes a BAR accessible, and tells where it is.
    fn map(self, bar: Bar) -> Option<Span> {
        let command = self.read(COMMAND);
        self.write(COMMAND, command & !DECODE);
        let size = self.size(bar)?;
        let at = self.place(bar);
        self.write(COMMAND, command | DECODE | MASTER);
        Some(Span { at, size })
    }

    /// The size of a BAR, which is below 4 GiB: of an address only as many bits can be written as it has.
    fn size(self, bar: Bar) -> Option<u32> {
        let old = self.read(bar.register);
        self.write(bar.register, u32::MAX);
        let mask = self.read(bar.register) & !FLAGS;
        self.write(bar.register, old);
        (mask != 0).then(|| mask.wrapping_neg())
    }

    /// Where a BAR is, after it was put below 4 GiB if it was not there.
    fn place(self, bar: Bar) -> u32 {
        let low = self.read(bar.register);
        let is_wide = low & WIDE != 0;
        let high = if is_wide { self.read(bar.register + 4) } else { 0 };
        if low & !FLAGS != 0 && high == 0 {
            return low & !FLAGS;
        }
        self.write(bar.register, bar.own_place);
        if is_wide {
            self.write(bar.register + 4, 0);
        }
        bar.own_place
    }

    /// Where a capability is, if there is one of this kind.
    fn capability(self, kind: u8) -> Option<u8> {
        let mut at = self.read(CAPABILITIES) as u8;
        // There is room for 48, unless the list is a ring.
        for _ in 0..48 {
            let [found, next, ..] = self.read(at & !3).to_le_bytes();
            match at {
                0 => return None,
                _ if found == kind => return Some(at & !3),
                _ => at = next,
            }
        }
        None
    }
}

/// What the image uses of its device.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// The shared memory.
    pub memory: Span,
    /// Registers, and the table of interrupts, if the device has any.
    pub doorbell: Option<[Span; 2]>,
}

/// The parts of the first ivshmem device.
pub fn ivshmem() -> Option<Parts> {
    let device = (0..32).map(VirtqueueDevice).find(|device| device.read(IDENTITY) == IVSHMEM)?;
    let memory = device.map(MEMORY)?;
    let doorbell = device.capability(MSI_X).and_then(|at| {
        let parts = [device.map(REGISTERS)?, device.map(VECTORS)?];
        device.write(at, device.read(at) | MSI_X_ON);
        Some(parts)
    });
    Some(Parts { memory, doorbell })
}
