//! A remote processor for QEMU: bare metal that answers RPMsg.
//!
//! The window is the memory of an ivshmem device. The host directs the image by
//! the words of [`latscope_rpmsg::control`]: it answers the benchmarks over
//! RPMsg, or echoes one bare word, or ends. It polls, unless it is to sleep
//! until it is kicked, for which the device must have a doorbell.
#![no_std]
#![no_main]

mod bar;
mod doorbell;
mod exit;
mod pci;
mod ports;
mod serial;
mod string;

use bar::Bar;
use core::arch::global_asm;
use doorbell::Doorbell;
use latscope_rpmsg::control::{ControlCommand, ControlOpcode, RpmsgControlBlock};
use latscope_rpmsg::echo::{EchoStepOutcome, RpmsgEcho};
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{Fault, RpmsgRemote, image};
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
    let parts = pci::ivshmem().expect("an ivshmem device");
    say!("window of {:#x} bytes at {:#x}", parts.memory.size, parts.memory.at);
    // SAFETY: the device's memory, below 4 GiB, all of which is mapped where it is; there is no other
    // device that could be there, and neither code nor stack of ours is.
    let window = unsafe { Bar::new(parts.memory) };
    // SAFETY: likewise, the device's registers and its table.
    let doorbell = parts.doorbell.map(|spans| unsafe { Doorbell::new(spans) });
    let control = RpmsgControlBlock::new(window).expect("a window with room for the control words");
    match obey(window, &control, doorbell.as_ref()) {
        Ok(()) => exit::exit(image::STOPPED),
        Err(fault) => panic!("the window is gone: {fault}"),
    }
}

/// Does what the host orders, until that is to stop.
fn obey(window: Bar, control: &RpmsgControlBlock<Bar>, doorbell: Option<&Doorbell>) -> Result<(), Fault> {
    loop {
        let command = control.load_command()?;
        // All that an earlier order began is over here.
        control.accept(command)?;
        match (command.decode_opcode(), doorbell) {
            (ControlOpcode::Stop, _) => return Ok(()),
            (ControlOpcode::Word, _) => echo_words(control, command)?,
            (ControlOpcode::Doorbell, Some(doorbell)) => {
                link(control, command, || serve_asleep(window, control, command, doorbell))?
            }
            (ControlOpcode::Link | ControlOpcode::Doorbell, _) => {
                link(control, command, || serve(window, control, command))?
            }
        }
    }
}

/// Echoes the bare word.
fn echo_words(control: &RpmsgControlBlock<Bar>, command: ControlCommand) -> Result<(), Fault> {
    let mut last = None;
    while control.load_command()? == command {
        for _ in 0..STEPS {
            let word = control.load_word()?;
            if last != Some(word) {
                control.send_reply(word)?;
                last = Some(word);
            }
        }
    }
    Ok(())
}

/// Serves one driver after the other.
fn link(
    control: &RpmsgControlBlock<Bar>,
    command: ControlCommand,
    serve: impl Fn() -> Result<(), Fault>,
) -> Result<(), Fault> {
    while control.load_command()? == command {
        // A driver's mistakes are not ours: what is no table, or names no sound rings, may become one.
        let _ = serve();
    }
    Ok(())
}

/// Who answers a driver, and the table by which the driver tells whether it is there.
type Answering = (ResourceTable, RpmsgEcho<RpmsgRemote<Bar>, LONGEST>);

/// Begins with the driver, if there is one.
fn begin(window: Bar) -> Result<Option<Answering>, Fault> {
    let table = ResourceTable::parse(&window)?;
    if !table.is_ready(&window)? {
        return Ok(None);
    }
    let rings = [table.rings[0].layout()?, table.rings[1].layout()?];
    let mut echo = RpmsgEcho::new(RpmsgRemote::new(window, rings)?.watch_status(table)?);
    echo.set_description("x86-64", concat!("latscope's image ", env!("CARGO_PKG_VERSION")));
    Ok(Some((table, echo)))
}

/// Serves the driver, if there is one, until it is gone or the order changes.
fn serve(window: Bar, control: &RpmsgControlBlock<Bar>, command: ControlCommand) -> Result<(), Fault> {
    let Some((table, mut echo)) = begin(window)? else { return Ok(()) };
    echo.suppress_kicks()?;
    while control.load_command()? == command && table.is_ready(&window)? {
        for _ in 0..STEPS {
            // Another fault is counted, and may be there again until the driver starts over.
            if echo.poll().step == EchoStepOutcome::Fault(Fault::Reset) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Like [`serve`], but sleeps when there is nothing to do, and kicks. So that each order is seen, a kick comes with it.
fn serve_asleep(
    window: Bar,
    control: &RpmsgControlBlock<Bar>,
    command: ControlCommand,
    doorbell: &Doorbell,
) -> Result<(), Fault> {
    let begun = begin(window);
    let Ok(Some((table, mut echo))) = begun else {
        // Whatever there is no driver for: it kicks when it is ready.
        doorbell.sleep();
        return begun.map(|_| ());
    };
    while control.load_command()? == command && table.is_ready(&window)? {
        let progress = echo.poll();
        if progress.step == EchoStepOutcome::Fault(Fault::Reset) {
            return Ok(());
        }
        if progress.kick_transmit || progress.kick_receive {
            doorbell.kick();
        }
        // After a fault there is nothing to listen to.
        if progress.step.is_waiting() && !echo.request_kick().unwrap_or(false) {
            doorbell.sleep();
        }
    }
    Ok(())
}
