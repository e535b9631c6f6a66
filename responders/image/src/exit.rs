//! How the image ends: by QEMU's `isa-debug-exit`.

use crate::ports;
use crate::serial::say;
use core::panic::PanicInfo;
use latscope_rpmsg::image;

/// Ends QEMU with a status of [`image`].
pub fn exit(status: i32) -> ! {
    // The device ends QEMU with twice the value plus one.
    ports::write_u32(image::EXIT_PORT, (status >> 1) as u32);
    // Without the device.
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    say!("{info}");
    exit(image::PANICKED)
}
