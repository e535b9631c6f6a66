//! A call within the process, through the same buffers and the same service:
//! the floor under every transport.

use super::point::Mode;
use super::server::Attendant;
use latscope_exchange::transaction::{
    Answer, Client, EndpointHandle, EndpointPair, Failure, Server, Service, Transport, Unavailable,
};

/// Name of the transport.
pub const NAME: &str = "passthrough";

/// Transport within one process: a plain call.
pub static PASSTHROUGH: Transport = Transport {
    name: NAME,
    title: "call within the process",
    source: "none: a virtual call and a copy of the payload",
    copies: 1,
    spins: false,
    inheritance: Some("the caller's own thread serves it"),
    max_payload: 64 << 20,
    open: |_| -> Result<EndpointPair, Unavailable> { Ok(EndpointPair::of_words(Vec::new())) },
    server: |_: EndpointHandle| -> Result<Box<dyn Server>, Failure> { Err(no_server()) },
    client: |handle: EndpointHandle| -> Result<Box<dyn Client>, Failure> {
        Ok(Box::new(InProcess::new(Mode::Latency, handle.payload)))
    },
};

fn no_server() -> Failure {
    Failure::Broken("a call within the process has no server".to_owned())
}

/// Client and server in one process.
pub(crate) struct InProcess(Attendant);

impl InProcess {
    /// Returns a client for payloads of up to `payload` bytes.
    pub fn new(mode: Mode, payload: usize) -> InProcess {
        InProcess(Attendant::new(mode, payload, None))
    }
}

impl Client for InProcess {
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, Failure> {
        self.0.change_thread();
        let answer = match self.0.answer(request) {
            Answer::Echo => request,
            Answer::Bytes(bytes) => bytes,
            Answer::None => &[],
        };
        let place = reply.get_mut(..answer.len()).ok_or_else(no_server)?;
        place.copy_from_slice(answer);
        Ok(answer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Reply, Request};
    use super::*;

    #[test]
    fn the_call_is_answered_in_place() {
        let mut client = InProcess::new(Mode::Latency, 64);
        let (mut request, mut reply) = ([0; 64], [0; 64]);
        Request { sequence: 3, ..Request::default() }.write(&mut request);
        assert_eq!(client.call(&request, &mut reply), Ok(64));
        assert!(Reply::read(&reply).verified && Reply::read(&reply).sequence == 3);
    }
}
