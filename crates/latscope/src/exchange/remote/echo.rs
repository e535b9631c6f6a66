//! The other side of a link in shared memory: what stands for a remote
//! processor, as a process of Linux.

use super::kicks::Kicks;
use super::rings::PAYLOAD;
use latscope_rpmsg::echo::Echo;
use latscope_rpmsg::{Fault, Remote, Window};
use latscope_sys::clock::monotonic_ns;
use latscope_sys::window::Window as Memory;
use std::hint::spin_loop;
use std::io;

const MILLISECOND: u64 = 1_000_000;

/// How long a kick is waited for before one looks again, ns: one may be lost.
const WATCHDOG: u64 = 10 * MILLISECOND;

/// Looks at the ring between two looks at the clock.
const LOOKS: u32 = 1 << 8;

/// Answers until the process is ended.
///
/// # Errors
/// The memory is too small, or a kick failed.
pub fn answer(window: &Window, memory: &Memory, kicks: &dyn Kicks) -> anyhow::Result<()> {
    loop {
        match window.remote(memory) {
            Ok(Some(remote)) => serve(Echo::new(remote), kicks)?,
            // The host has not begun, or clears what an earlier one left.
            Ok(None) | Err(Fault::Stale) => kicks.sleep(MILLISECOND)?,
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Answers one host until a kick fails.
///
/// # Errors
/// Why it fails.
pub fn serve(mut echo: Echo<Remote<&Memory>, PAYLOAD>, kicks: &dyn Kicks) -> io::Result<()> {
    let patience = kicks.patience();
    let (mut looks, mut idle_since) = (0u32, None);
    loop {
        let progress = echo.poll();
        if progress.kick_transmit || progress.kick_receive {
            kicks.kick()?;
        }
        if !progress.step.is_waiting() {
            (looks, idle_since) = (0, None);
            continue;
        }
        looks += 1;
        if patience == u64::MAX || patience > 0 && !looks.is_multiple_of(LOOKS) {
            spin_loop();
            continue;
        }
        let now = monotonic_ns();
        if now - *idle_since.get_or_insert(now) >= patience && !echo.listen().unwrap_or(false) {
            kicks.sleep(WATCHDOG)?;
        }
    }
}
