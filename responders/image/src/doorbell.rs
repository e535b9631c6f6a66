//! Kicks: the device's doorbell register, and its interrupt, by which the processor wakes.
//!
//! Interrupts are on only while it sleeps. So nothing is ever interrupted, not
//! even a function of `core`, which keeps data below its stack; and one that
//! comes between the last look at the window and the sleep waits, and ends it.

use crate::pci::Span;
use crate::ports;
use core::arch::asm;
use latscope_rpmsg::image;

/// The register that interrupts another party: who, and by which vector.
const RING: usize = 12;

/// The processor's local interrupt controller, and its registers.
const CONTROLLER: usize = 0xFEE0_0000;
const SPURIOUS: usize = 0xF0;
/// In the register for spurious interrupts: the controller is on.
const ON: u32 = 0x100;
/// The vector of spurious interrupts.
const SPURIOUS_VECTOR: u8 = 0xFF;
/// The vector of a kick.
const KICK_VECTOR: u8 = 0x40;

/// Data ports of the two interrupt controllers of old PCs, with a bit a line to be silent.
const OLD_CONTROLLERS: [u16; 2] = [0x21, 0xA1];

unsafe extern "C" {
    fn prepare_interrupts();
}

/// The two directions of kicks.
pub struct Doorbell {
    registers: *mut u32,
}

impl Doorbell {
    /// Lets the device wake the processor.
    ///
    /// # Safety
    /// The spans are the registers and the table of an ivshmem device, mapped, and used here only.
    pub unsafe fn new([registers, vectors]: [Span; 2]) -> Doorbell {
        OLD_CONTROLLERS.iter().for_each(|port| ports::write_u8(*port, 0xFF));
        // SAFETY: it writes the table of gates, which is used here only, and loads it.
        unsafe { prepare_interrupts() };
        store(CONTROLLER + SPURIOUS, ON | u32::from(SPURIOUS_VECTOR));
        // The first entry: the address of the controller, the vector, and no mask.
        let entry = [CONTROLLER as u32, 0, KICK_VECTOR.into(), 0];
        for (at, word) in (vectors.at as usize..).step_by(4).zip(entry) {
            store(at, word);
        }
        Doorbell { registers: registers.at as usize as *mut u32 }
    }

    /// Kicks the host, after all that was stored before.
    pub fn kick(&self) {
        store(self.registers as usize + RING, u32::from(image::HOST) << 16);
    }

    /// Sleeps until kicked; not at all if that was since the last sleep.
    pub fn sleep(&self) {
        // SAFETY: the handler changes no register and tells the controller. An interrupt is taken only after
        // the instruction that follows `sti`, so that it ends the halt.
        unsafe { asm!("sti", "hlt", "cli") };
    }
}

/// Writes a register of a device.
fn store(at: usize, value: u32) {
    // SAFETY: those of the controller are where every processor has them, and the others were promised
    // to `Doorbell::new`. None has an effect on memory of ours.
    unsafe { (at as *mut u32).write_volatile(value) };
}
