//! Two POSIX message queues: mq_overview(7). Their names go before they are
//! used: a queue is a descriptor on Linux.

use super::endpoint::{EndpointSide, descriptors, failure_from_errno, random_name, transport, unavailable};
use super::lifeline;
use super::queue::{Queued, Queues};
use crate::transaction::{
    EndpointHandle, EndpointPair, IpcTransport, TransactionFailure, TransportSetupError,
};
use latscope_os::message_queue::{self, Blocking, create_queue, receive_message, unlink};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

pub(super) static TRANSPORT: IpcTransport =
    transport::<Queued<PosixQueues>>("posix-mq", "POSIX message queue", "mq_overview(7)", open_pair);

/// Messages a queue holds, where they are not large: as many as any user may have.
const MESSAGES: usize = 10;

/// Bytes of all messages of a queue. Its owner may have 800 KiB in all queues together.
const ROOM: usize = 32 << 10;

fn open_pair(payload: usize) -> Result<EndpointPair, TransportSetupError> {
    let messages = (ROOM / payload).clamp(1, MESSAGES);
    let queue = || create_unlinked(messages, payload).map_err(|error| queue_setup_error(error, payload));
    let (there, back) = (queue()?, queue()?);
    let server = [&there, &back].into_iter().map(OwnedFd::try_clone).collect::<std::io::Result<_>>();
    let server =
        server.map_err(|error| unavailable("no descriptors", error, super::endpoint::MORE_DESCRIPTORS))?;
    lifeline::endpoint_pair(server, vec![back, there])
}

/// A queue that goes with its descriptors.
///
/// # Errors
/// See [`create_queue`].
pub fn create_unlinked(messages: usize, size: usize) -> rustix::io::Result<OwnedFd> {
    let name = random_name();
    let queue = create_queue(&name, messages, size)?;
    unlink(&name)?;
    Ok(queue)
}

fn queue_setup_error(error: Errno, payload: usize) -> TransportSetupError {
    let remedy = match error {
        Errno::INVAL => format!("sysctl fs.mqueue.msgsize_max={payload}, or run it as root"),
        Errno::MFILE => String::from("allow more bytes in message queues: ulimit -q"),
        _ => String::from("use a kernel with CONFIG_POSIX_MQUEUE"),
    };
    unavailable(&format!("no POSIX message queue for {payload} bytes"), error, &remedy)
}

struct PosixQueues {
    input: OwnedFd,
    output: OwnedFd,
    limit: usize,
    /// Room for the longest message, for receivers that expect a shorter message: the kernel insists.
    whole: Vec<u8>,
}

impl Queues for PosixQueues {
    const EMPTY: Errno = Errno::TIMEDOUT;

    fn open_queues(mut handle: EndpointHandle, _: EndpointSide) -> Result<Self, TransactionFailure> {
        let [input, output] = descriptors(&mut handle)?;
        Ok(PosixQueues { input, output, limit: handle.payload, whole: Vec::new() })
    }

    #[inline]
    fn enqueue_message(&mut self, message: &[u8], blocking: Blocking) -> Result<(), Errno> {
        message_queue::send_message(&self.output, message, blocking)
    }

    #[inline]
    fn dequeue_message(&mut self, buffer: &mut [u8], blocking: Blocking) -> Result<usize, Errno> {
        if buffer.len() >= self.limit {
            return receive_message(&self.input, buffer, blocking);
        }
        self.whole.resize(self.limit, 0);
        let length = receive_message(&self.input, &mut self.whole, blocking)?;
        let fits = length.min(buffer.len());
        buffer[..fits].copy_from_slice(&self.whole[..fits]);
        Ok(length)
    }

    fn again(&self) -> std::io::Result<Self> {
        let (input, output) = (self.input.try_clone()?, self.output.try_clone()?);
        Ok(PosixQueues { input, output, limit: self.limit, whole: Vec::new() })
    }

    fn nudge(&mut self) {
        let _ = message_queue::send_message(&self.input, &[], Blocking::No);
    }

    fn empty(&mut self) {
        self.whole.resize(self.limit, 0);
        while receive_message(&self.output, &mut self.whole, Blocking::No).is_ok() {}
    }

    fn transfer_failure(error: Errno) -> TransactionFailure {
        failure_from_errno(error)
    }
}
