//! Messages in a stream of bytes: each begins with its length, four bytes added by this program, and is sent in one
//! system call. It arrives in one piece too, unless the kernel delivers it in several.

use super::endpoint::{EndpointSide, MessageEndpoint, broken_failure, descriptors, failure_from_errno};
use crate::transaction::{EndpointHandle, TransactionFailure};
use rustix::fd::OwnedFd;
use rustix::io::{read, readv, retry_on_intr, write, writev};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{IoSlice, IoSliceMut};

/// Bytes of the length before each message.
pub(super) const PREFIX: usize = size_of::<u32>();

/// Longest message that is copied behind its length, bytes: up to here the copy costs less than the kernel's look at
/// two pieces of memory.
const SMALL: usize = 512;

/// Bytes read at once where messages do not arrive one by one.
const CHUNK: usize = 64 << 10;

/// Endpoint of two streams, or of a single stream that goes both ways.
pub(super) struct StreamEndpoint {
    input: OwnedFd,
    output: OwnedFd,
    /// Sockets have calls of their own, which do not go by way of files.
    socket: bool,
    limit: usize,
    small: [u8; PREFIX + SMALL],
    /// Bytes that were read and not taken yet: pieces, or messages sent ahead.
    ahead: Vec<u8>,
    /// Number of bytes of `ahead` that are taken.
    taken: usize,
}

impl StreamEndpoint {
    fn new(input: OwnedFd, output: OwnedFd, socket: bool, limit: usize) -> StreamEndpoint {
        StreamEndpoint {
            input,
            output,
            socket,
            limit,
            small: [0; PREFIX + SMALL],
            ahead: Vec::new(),
            taken: 0,
        }
    }

    /// Reads a small message. What did not come alone and whole goes to `ahead`.
    #[inline]
    fn read_small(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, TransactionFailure> {
        let got = if self.socket {
            some(|| recv(&self.input, &mut self.small, RecvFlags::empty()).map(|(got, _)| got))?
        } else {
            some(|| read(&self.input, &mut self.small))?
        };
        if let Some((prefix, message)) = self.small[..got].split_first_chunk() {
            let length = parse_length(prefix, self.limit)?;
            if message.len() == length && length <= buffer.len() {
                buffer[..length].copy_from_slice(message);
                return Ok(Some(length));
            }
        }
        self.ahead.extend_from_slice(&self.small[..got]);
        Ok(None)
    }

    /// Reads a message to where it belongs, with what is missing of it.
    #[inline]
    fn read_large(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, TransactionFailure> {
        let mut prefix = [0; PREFIX];
        let got = some(|| {
            let mut pieces = [IoSliceMut::new(&mut prefix), IoSliceMut::new(buffer)];
            readv(&self.input, &mut pieces)
        })?;
        if let Some(mut there) = got.checked_sub(PREFIX) {
            let length = parse_length(&prefix, self.limit)?;
            if there <= length && length <= buffer.len() {
                while there < length {
                    there += some(|| read(&self.input, &mut buffer[there..length]))?;
                }
                return Ok(Some(length));
            }
        }
        self.ahead.extend_from_slice(&prefix[..got.min(PREFIX)]);
        self.ahead.extend_from_slice(&buffer[..got.saturating_sub(PREFIX)]);
        Ok(None)
    }

    /// Takes a message from what was read ahead, reading until it is whole.
    #[cold]
    fn take_ahead(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure> {
        loop {
            if let Some((prefix, rest)) = self.ahead[self.taken..].split_first_chunk() {
                let length = parse_length(prefix, self.limit)?;
                if let Some(message) = rest.get(..length) {
                    let fits = length.min(buffer.len());
                    buffer[..fits].copy_from_slice(&message[..fits]);
                    self.taken += PREFIX + length;
                    return Ok(length);
                }
            }
            self.ahead.drain(..std::mem::take(&mut self.taken));
            let there = self.ahead.len();
            self.ahead.resize(there + CHUNK, 0);
            let got = some(|| read(&self.input, &mut self.ahead[there..]));
            self.ahead.truncate(there + *got.as_ref().unwrap_or(&0));
            got?;
        }
    }
}

impl MessageEndpoint for StreamEndpoint {
    const QUEUES: bool = true;

    /// Over the one descriptor of a socket, or those of two pipes, the one that is read first.
    fn from_handle(
        mut handle: EndpointHandle,
        _: EndpointSide,
    ) -> Result<StreamEndpoint, TransactionFailure> {
        let socket = handle.descriptors.len() == 1;
        if socket {
            handle.descriptors.push(handle.descriptors[0].try_clone().map_err(broken_failure)?);
        }
        let [input, output] = descriptors(&mut handle)?;
        Ok(StreamEndpoint::new(input, output, socket, handle.payload))
    }

    #[inline]
    fn send_message(&mut self, message: &[u8]) -> Result<(), TransactionFailure> {
        let prefix = (message.len() as u32).to_ne_bytes();
        let whole = PREFIX + message.len();
        let mut sent = match self.small.get_mut(..whole) {
            Some(small) => {
                small[..PREFIX].copy_from_slice(&prefix);
                small[PREFIX..].copy_from_slice(message);
                if self.socket {
                    some(|| send(&self.output, small, SendFlags::NOSIGNAL))?
                } else {
                    some(|| write(&self.output, small))?
                }
            }
            None => some(|| writev(&self.output, &[IoSlice::new(&prefix), IoSlice::new(message)]))?,
        };
        while sent < whole {
            let rest = match sent.checked_sub(PREFIX) {
                Some(sent) => &message[sent..],
                None => &prefix[sent..],
            };
            sent += some(|| write(&self.output, rest))?;
        }
        Ok(())
    }

    #[inline]
    fn receive_message(&mut self, buffer: &mut [u8]) -> Result<usize, TransactionFailure> {
        if self.ahead.len() == self.taken {
            self.ahead.clear();
            self.taken = 0;
            let whole =
                if buffer.len() <= SMALL { self.read_small(buffer)? } else { self.read_large(buffer)? };
            if let Some(length) = whole {
                return Ok(length);
            }
        }
        self.take_ahead(buffer)
    }
}

/// A transfer of at least a byte; signals do not end it.
#[inline]
fn some(transfer: impl FnMut() -> rustix::io::Result<usize>) -> Result<usize, TransactionFailure> {
    match retry_on_intr(transfer).map_err(failure_from_errno)? {
        0 => Err(TransactionFailure::Gone),
        bytes => Ok(bytes),
    }
}

/// The length a message begins with.
#[inline]
fn parse_length(prefix: &[u8; PREFIX], limit: usize) -> Result<usize, TransactionFailure> {
    let length = u32::from_ne_bytes(*prefix) as usize;
    if length > limit {
        return Err(TransactionFailure::Broken(format!(
            "a message of {length} bytes came where {limit} are the most"
        )));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn stream(limit: usize) -> (UnixStream, StreamEndpoint) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, StreamEndpoint::new(theirs.try_clone().unwrap().into(), theirs.into(), true, limit))
    }

    fn wire(messages: &[&[u8]]) -> Vec<u8> {
        let wired = |message: &&[u8]| [&(message.len() as u32).to_ne_bytes(), *message].concat();
        messages.iter().flat_map(wired).collect()
    }

    /// Returns the message that a receiver with a buffer of that size gets.
    fn received(stream: &mut StreamEndpoint, buffer: usize) -> Vec<u8> {
        let mut buffer = vec![0; buffer];
        let length = stream.receive_message(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    }

    #[test]
    fn messages_are_whole_however_the_bytes_come() {
        let (long, short) = ([7; 3000], [9; 5]);
        let bytes = wire(&[&short, &long, &short]);
        for pieces in [1, 3, 100, 2999, bytes.len()] {
            for buffer in [3000, 4000] {
                let (mut sender, mut stream) = stream(3000);
                let bytes = bytes.clone();
                let sending = std::thread::spawn(move || {
                    for (index, piece) in bytes.chunks(pieces).enumerate() {
                        sender.write_all(piece).unwrap();
                        // A busy machine takes milliseconds for each.
                        if index % 64 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
                assert_eq!(received(&mut stream, buffer), short);
                assert_eq!(received(&mut stream, buffer), long);
                assert_eq!(received(&mut stream, SMALL), short);
                sending.join().unwrap();
                assert_eq!(stream.receive_message(&mut [0; 8]), Err(TransactionFailure::Gone));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_reported_and_lost_alone() {
        let (mut sender, mut stream) = stream(600);
        sender.write_all(&wire(&[&[1; 600], &[2; 5], &[3; 600], &[4; 8]])).unwrap();
        let mut buffer = [0; 8];
        assert_eq!((stream.receive_message(&mut buffer), buffer), (Ok(600), [1; 8]));
        assert_eq!((stream.receive_message(&mut buffer), &buffer[..5]), (Ok(5), &[2; 5][..]));
        assert_eq!(stream.receive_message(&mut buffer), Ok(600));
        assert_eq!((stream.receive_message(&mut buffer), buffer), (Ok(8), [4; 8]));
    }

    #[test]
    fn a_length_over_the_limit_is_no_message() {
        let (mut sender, mut stream) = stream(16);
        sender.write_all(&wire(&[&[1; 17]])).unwrap();
        assert!(matches!(stream.receive_message(&mut [0; 16]), Err(TransactionFailure::Broken(_))));
    }
}
