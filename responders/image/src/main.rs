//! A remote processor for QEMU: bare metal that answers RPMsg.
//!
//! The window is the memory of an ivshmem device. The host directs the image by
//! the words of [`latscope_rpmsg::control`]: it answers the benchmarks over
//! RPMsg, or echoes one bare word, or ends. It polls, and never halts.
#![no_std]
#![no_main]

mod bar;
mod exit;
mod pci;
mod ports;
mod serial;
mod string;

use bar::Bar;
use core::arch::global_asm;
use latscope_rpmsg::control::{Command, Control, Order};
use latscope_rpmsg::echo::Echo;
use latscope_rpmsg::table::Table;
use latscope_rpmsg::{Fault, Remote, image};
use serial::say;

global_asm!(include_str!("entry.s"));

/// Bytes of the longest payload that a header can name.
const LONGEST: usize = u16::MAX as usize;

/// Steps between two looks at what the host orders: a look costs more than a step that finds nothing.
const STEPS: usize = 64;

/// What the entry calls, in 64-bit mode.
// SAFETY: no other symbol has this name: there is no C library.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let span = pci::shared_memory().expect("an ivshmem device");
    say!("window of {:#x} bytes at {:#x}", span.size, span.at);
    // SAFETY: the device's memory, below 4 GiB, all of which is mapped where it is; there is no other
    // device that could be there, and neither code nor stack of ours is.
    let window = unsafe { Bar::new(span) };
    let control = Control::new(window).expect("a window with room for the control words");
    match obey(window, &control) {
        Ok(()) => exit::exit(image::STOPPED),
        Err(fault) => panic!("the window is gone: {fault}"),
    }
}

/// Does what the host orders, until that is to stop.
fn obey(window: Bar, control: &Control<Bar>) -> Result<(), Fault> {
    loop {
        let command = control.command()?;
        // All that an earlier order began is over here.
        control.accept(command)?;
        match command.order() {
            Order::Stop => return Ok(()),
            Order::Word => echo_words(control, command)?,
            Order::Link => link(window, control, command)?,
        }
    }
}

/// Echoes the bare word.
fn echo_words(control: &Control<Bar>, command: Command) -> Result<(), Fault> {
    let mut last = None;
    while control.command()? == command {
        for _ in 0..STEPS {
            let word = control.word()?;
            if last != Some(word) {
                control.reply(word)?;
                last = Some(word);
            }
        }
    }
    Ok(())
}

/// Serves one driver after the other.
fn link(window: Bar, control: &Control<Bar>, command: Command) -> Result<(), Fault> {
    while control.command()? == command {
        // A driver's mistakes are not ours: what is no table, or names no sound rings, may become one.
        let _ = serve(window, control, command);
    }
    Ok(())
}

/// Serves the driver, if there is one, until it is gone or the order changes.
fn serve(window: Bar, control: &Control<Bar>, command: Command) -> Result<(), Fault> {
    let table = Table::parse(&window)?;
    if !table.is_ready(&window)? {
        return Ok(());
    }
    let rings = [table.rings[0].layout()?, table.rings[1].layout()?];
    let mut echo = Echo::<_, LONGEST>::new(Remote::new(window, rings)?);
    echo.mute()?;
    while control.command()? == command && table.is_ready(&window)? {
        for _ in 0..STEPS {
            // A fault is counted, and may be there again until the driver starts over.
            echo.poll();
        }
    }
    Ok(())
}
