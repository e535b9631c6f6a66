//! Other side of a link in shared memory: a process of Linux in the role of a remote processor.

use super::kicks::{KickWait, Kicks, Next};
use latscope_os::window::MemoryWindow as Memory;
use latscope_os::window::ends::WindowEcho;
use latscope_rpmsg::echo::EchoStepOutcome;
use latscope_rpmsg::{Fault, RpmsgWindow};

const MILLISECOND: u64 = 1_000_000;

/// Answers until the process is ended.
///
/// # Errors
/// The memory is too small, or a kick failed.
pub(super) fn answer_hosts(window: &RpmsgWindow, memory: &Memory, kicks: &mut Kicks) -> anyhow::Result<()> {
    loop {
        match window.remote(memory.clone()) {
            Ok(Some(remote)) => serve_host(&mut WindowEcho::new(remote), kicks, &mut |_| ())?,
            // The host has not begun, or clears what an earlier one left.
            Ok(None) | Err(Fault::Stale) => _ = kicks.wait_for_kick(MILLISECOND)?,
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Answers one host, until it ends or begins again. A side that is awake needs no kicks: it asks for them only before a
/// sleep, and then tells what it has done so far.
pub(super) fn serve_host(
    echo: &mut WindowEcho,
    kicks: &mut Kicks,
    tell: &mut dyn FnMut(&WindowEcho),
) -> anyhow::Result<()> {
    let spin_ns = kicks.spin_ns;
    let waiting = || KickWait::new(spin_ns, u64::MAX);
    let mut wait = waiting();
    echo.mute()?;
    loop {
        let progress = echo.poll();
        if progress.step == EchoStepOutcome::Fault(Fault::Reset) {
            return Ok(());
        }
        if progress.kick_transmit || progress.kick_receive {
            kicks.kick()?;
        }
        if !progress.step.is_waiting() {
            wait = waiting();
        } else if let Next::Sleep(ns) = wait.next_action() {
            tell(echo);
            // A ring that is broken stays so until the host begins again.
            if !echo.listen().unwrap_or(false) {
                kicks.wait_for_kick(ns)?;
            }
            echo.mute()?;
        }
    }
}
