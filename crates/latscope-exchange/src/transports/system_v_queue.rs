//! Two System V message queues: msgop(2).

use super::endpoint::{EndpointSide, failed, numbers, transport, unavailable};
use super::lifeline;
use super::queue::{Queued, Queues};
use crate::transaction::{
    EndpointHandle, EndpointPair, IpcTransport, TransactionFailure, TransportSetupError,
};
use latscope_os::system_v::{Blocking, SystemVMessage, create_queue};
use latscope_process::leftover::{Leftover, Leftovers};
use rustix::io::Errno;
use std::fs;

pub(super) static TRANSPORT: IpcTransport =
    transport::<Queued<SystemVQueues>>("sysv-mq", "System V message queue", "msgop(2)", open);

fn queue() -> Result<i32, TransportSetupError> {
    create_queue().map_err(|error| {
        let remedy =
            "remove unused ones (ipcs -q, ipcrm), raise kernel.msgmni, or use a kernel with CONFIG_SYSVIPC";
        unavailable("no System V message queues", error, remedy)
    })
}

fn open(payload: usize) -> Result<EndpointPair, TransportSetupError> {
    // A longer one is refused, or waits for room that never comes.
    let allowed = limit("msgmax").min(limit("msgmnb"));
    if payload > allowed {
        return Err(TransportSetupError {
            reason: format!("System V message queues carry at most {allowed} bytes here, not {payload}"),
            remedy: format!("sysctl kernel.msgmax={payload} kernel.msgmnb={payload}"),
        });
    }
    let there = queue()?;
    let first = Leftovers::from([Leftover::SystemVQueue(there)]);
    let back = queue()?;
    let leftovers = first.and(Leftover::SystemVQueue(back));
    let words = vec![there.to_string(), back.to_string()];
    Ok(EndpointPair { words, leftovers, ..lifeline::endpoint_pair(Vec::new(), Vec::new())? })
}

/// Returns a limit of the kernel, bytes; the usual value where the kernel does not report it.
fn limit(name: &str) -> usize {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(8192)
}

struct SystemVQueues {
    input: i32,
    output: i32,
    message: SystemVMessage,
}

impl Queues for SystemVQueues {
    const EMPTY: Errno = Errno::NOMSG;

    /// Twice in the kernel, and behind the type of the message on both sides.
    const COPIES: u32 = 4;

    fn open(handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure> {
        let queues: [i32; 2] = numbers(&handle)?;
        // In the order of the sides that put into them.
        let (input, output) = (queues[side.other()], queues[side.own()]);
        Ok(SystemVQueues { input, output, message: SystemVMessage::with_capacity(handle.payload) })
    }

    #[inline]
    fn put(&mut self, message: &[u8], blocking: Blocking) -> Result<(), Errno> {
        self.message.bytes()[..message.len()].copy_from_slice(message);
        self.message.send(self.output, message.len(), blocking)
    }

    #[inline]
    fn take(&mut self, buffer: &mut [u8], blocking: Blocking) -> Result<usize, Errno> {
        let length = self.message.receive(self.input, blocking)?;
        let fits = length.min(buffer.len());
        buffer[..fits].copy_from_slice(&self.message.bytes()[..fits]);
        Ok(length)
    }

    fn again(&self) -> std::io::Result<Self> {
        let message = SystemVMessage::with_capacity(self.message.capacity());
        Ok(SystemVQueues { input: self.input, output: self.output, message })
    }

    fn nudge(&mut self) {
        let _ = self.message.send(self.input, 0, Blocking::No);
    }

    fn empty(&mut self) {
        while self.message.receive(self.output, Blocking::No).is_ok() {}
    }

    /// A queue that is not there any more was removed with the run.
    fn failed(error: Errno) -> TransactionFailure {
        if error == Errno::INVAL { TransactionFailure::Gone } else { failed(error) }
    }
}
