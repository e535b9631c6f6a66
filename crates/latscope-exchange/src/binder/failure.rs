//! Refusals of the driver, in words.

use super::super::transaction::TransactionFailure;
use latscope_os::binder::{BinderDriver, Handle, Incoming, Payload, Port, Return};
use rustix::io::Errno;
use std::fmt::Display;

/// The transport does not work any more.
pub(super) fn broken_transport(what: &str, error: impl Display) -> TransactionFailure {
    TransactionFailure::Broken(format!("{what}: {error}"))
}

/// Returns the failure for a write that the driver refuses.
pub(super) fn driver(error: Errno) -> TransactionFailure {
    broken_transport("the binder driver", error)
}

/// Returns the failure of the last transaction of this thread, with the reason.
pub(super) fn last_failure(driver: &BinderDriver) -> TransactionFailure {
    let error = driver.extended_error().map(|error| Errno::from_raw_os_error(-error.error));
    TransactionFailure::Refused(match error {
        None => "the binder driver failed it (BR_FAILED_REPLY)".to_owned(),
        Some(Errno::NOSPC) => "no room in the receiver's binder buffer (BR_FAILED_REPLY, ENOSPC)".to_owned(),
        Some(error) => format!("the binder driver failed it (BR_FAILED_REPLY, {error})"),
    })
}

/// Calls and waits for the reply.
pub(super) fn transact(
    port: &mut Port,
    target: Handle,
    code: u32,
    payload: Payload,
) -> Result<Incoming, TransactionFailure> {
    port.call_handle(target, code, 0, payload).map_err(driver)?;
    loop {
        while let Some(returned) = port.next() {
            match returned {
                Return::Reply(reply) => return Ok(reply),
                other => bad_news(port, &other)?,
            }
        }
        port.read_returns().map_err(driver)?;
    }
}

/// Sends without a reply to wait for.
pub(super) fn transact_one_way(
    port: &mut Port,
    target: Handle,
    code: u32,
    payload: Payload,
) -> Result<(), TransactionFailure> {
    port.call_handle(target, code, latscope_os::binder::ONE_WAY, payload).map_err(driver)?;
    loop {
        while let Some(returned) = port.next() {
            match returned {
                Return::Complete => return Ok(()),
                other => bad_news(port, &other)?,
            }
        }
        port.read_returns().map_err(driver)?;
    }
}

/// Returns an error if a return reports that a transaction failed.
fn bad_news(port: &Port, returned: &Return) -> Result<(), TransactionFailure> {
    match returned {
        Return::DeadReply => Err(TransactionFailure::Gone),
        Return::FailedReply => Err(last_failure(port.driver())),
        Return::FrozenReply => {
            Err(TransactionFailure::Refused("the receiver is frozen (BR_FROZEN_REPLY)".to_owned()))
        }
        Return::Error(error) => {
            Err(broken_transport("the binder driver", Errno::from_raw_os_error(error.wrapping_neg())))
        }
        Return::Outside => Err(broken_transport("the binder driver", "a reply outside of the mapped buffer")),
        _ => Ok(()),
    }
}
