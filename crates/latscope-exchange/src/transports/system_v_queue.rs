//! Two System V message queues: msgop(2).

use super::endpoint::{EndpointSide, failure_from_errno, parse_numbers, transport, unavailable};
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
    transport::<Queued<SystemVQueues>>("sysv-mq", "System V message queue", "msgop(2)", open_pair);

fn queue() -> Result<i32, TransportSetupError> {
    create_queue().map_err(|error| {
        let remedy =
            "remove unused ones (ipcs -q, ipcrm), raise kernel.msgmni, or use a kernel with CONFIG_SYSVIPC";
        unavailable("no System V message queues", error, remedy)
    })
}

fn open_pair(payload: usize) -> Result<EndpointPair, TransportSetupError> {
    // A longer one is refused, or waits for room that never comes.
    let allowed = read_kernel_limit("msgmax").min(read_kernel_limit("msgmnb"));
    if payload > allowed {
        return Err(TransportSetupError {
            reason: format!("System V message queues carry at most {allowed} bytes here, not {payload}"),
            remedy: format!("sysctl kernel.msgmax={payload} kernel.msgmnb={payload}"),
        });
    }
    let there = queue()?;
    let first = Leftovers::from([Leftover::SystemVQueue(there)]);
    let back = queue()?;
    let leftovers = first.with_leftover(Leftover::SystemVQueue(back));
    let words = vec![there.to_string(), back.to_string()];
    Ok(EndpointPair { words, leftovers, ..lifeline::endpoint_pair(Vec::new(), Vec::new())? })
}

/// Returns a limit of the kernel, bytes; the usual value where the kernel does not report it.
fn read_kernel_limit(name: &str) -> usize {
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

    fn open_queues(handle: EndpointHandle, side: EndpointSide) -> Result<Self, TransactionFailure> {
        let queues: [i32; 2] = parse_numbers(&handle)?;
        // In the order of the sides that put into them.
        let (input, output) = (queues[side.other_index()], queues[side.own_index()]);
        Ok(SystemVQueues { input, output, message: SystemVMessage::with_capacity(handle.payload) })
    }

    #[inline]
    fn enqueue_message(&mut self, message: &[u8], blocking: Blocking) -> Result<(), Errno> {
        self.message.payload_mut()[..message.len()].copy_from_slice(message);
        self.message.send_to_queue(self.output, message.len(), blocking)
    }

    #[inline]
    fn dequeue_message(&mut self, buffer: &mut [u8], blocking: Blocking) -> Result<usize, Errno> {
        let length = self.message.receive_from_queue(self.input, blocking)?;
        let fits = length.min(buffer.len());
        buffer[..fits].copy_from_slice(&self.message.payload_mut()[..fits]);
        Ok(length)
    }

    fn again(&self) -> std::io::Result<Self> {
        let message = SystemVMessage::with_capacity(self.message.capacity());
        Ok(SystemVQueues { input: self.input, output: self.output, message })
    }

    fn nudge(&mut self) {
        let _ = self.message.send_to_queue(self.input, 0, Blocking::No);
    }

    fn empty(&mut self) {
        while self.message.receive_from_queue(self.output, Blocking::No).is_ok() {}
    }

    /// A queue that is not there any more was removed with the run.
    fn transfer_failure(error: Errno) -> TransactionFailure {
        if error == Errno::INVAL { TransactionFailure::Gone } else { failure_from_errno(error) }
    }
}
