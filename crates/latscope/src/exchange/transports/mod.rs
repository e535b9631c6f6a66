//! Every transport of this binary.

use super::transaction::{Answer, Client, Failure, Handed, Meeting, Server, Service, Transport, Unavailable};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::unix::net::UnixStream;

/// All of them.
pub static TRANSPORTS: &[&Transport] = &[&UNIX_STREAM, &PIPE];

static UNIX_STREAM: Transport = Transport {
    name: "unix-stream",
    title: "Unix stream socket",
    source: "unix(7)",
    copies: 2,
    spins: false,
    inheritance: None,
    max_payload: 64 << 20,
    open: |_| {
        let (first, second) = UnixStream::pair().map_err(unavailable)?;
        Ok(meeting(vec![first.into()], vec![second.into()]))
    },
    server,
    client,
};

static PIPE: Transport = Transport {
    name: "pipe",
    title: "pipes",
    source: "pipe(7)",
    copies: 2,
    spins: false,
    inheritance: None,
    max_payload: 64 << 20,
    open: |_| {
        let pair = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| unavailable(error.into()));
        let ((a, b), (c, d)) = (pair()?, pair()?);
        Ok(meeting(vec![a, d], vec![c, b]))
    },
    server,
    client,
};

fn unavailable(error: std::io::Error) -> Unavailable {
    Unavailable { reason: error.to_string(), remedy: String::new() }
}

fn meeting(server: Vec<OwnedFd>, client: Vec<OwnedFd>) -> Meeting {
    Meeting { server, client, words: Vec::new(), undo: Vec::new() }
}

struct Ends {
    input: OwnedFd,
    output: OwnedFd,
    buffer: Vec<u8>,
}

impl Ends {
    fn of(mut handed: Handed) -> Result<Ends, Failure> {
        let broken = |_| Failure::Broken("no descriptors".to_owned());
        let output = handed.descriptors.pop().ok_or(()).map_err(broken)?;
        let input = handed.descriptors.pop().map_or_else(|| output.try_clone().map_err(|_| ()), Ok);
        Ok(Ends { input: input.map_err(broken)?, output, buffer: vec![0; handed.payload + 4] })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.buffer[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.buffer[4..4 + bytes.len()].copy_from_slice(bytes);
        let mut rest = &self.buffer[..4 + bytes.len()];
        while !rest.is_empty() {
            match write(&self.output, rest) {
                Ok(n) => rest = &rest[n..],
                Err(Errno::INTR) => {}
                Err(_) => return Err(Failure::Gone),
            }
        }
        Ok(())
    }

    fn receive(&mut self, length: usize) -> Result<(), Failure> {
        let mut at = 0;
        while at < length {
            match read(&self.input, &mut self.buffer[at..length]) {
                Ok(0) => return Err(Failure::Gone),
                Ok(n) => at += n,
                Err(Errno::INTR) => {}
                Err(_) => return Err(Failure::Gone),
            }
        }
        Ok(())
    }

    fn message(&mut self) -> Result<usize, Failure> {
        self.receive(4)?;
        let length = u32::from_le_bytes([self.buffer[0], self.buffer[1], self.buffer[2], self.buffer[3]]);
        self.receive(length as usize)?;
        Ok(length as usize)
    }
}

impl Client for Ends {
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, Failure> {
        self.send(request)?;
        let length = self.message()?;
        reply[..length].copy_from_slice(&self.buffer[..length]);
        Ok(length)
    }
}

impl Server for Ends {
    fn serve(&mut self, service: &mut dyn Service) -> Result<(), Failure> {
        loop {
            let length = match self.message() {
                Ok(length) => length,
                Err(Failure::Gone) => return Ok(()),
                Err(failure) => return Err(failure),
            };
            let request = self.buffer[..length].to_vec();
            match service.answer(&request) {
                Answer::Echo => self.send(&request)?,
                Answer::Bytes(bytes) => self.send(bytes)?,
                Answer::None => {}
            }
        }
    }
}

fn server(handed: Handed) -> Result<Box<dyn Server>, Failure> {
    Ok(Box::new(Ends::of(handed)?))
}

fn client(handed: Handed) -> Result<Box<dyn Client>, Failure> {
    Ok(Box::new(Ends::of(handed)?))
}
