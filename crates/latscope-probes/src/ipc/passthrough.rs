//! A call within the process, through the same buffers and the same service:
//! the floor under every transport.

use super::point::IpcMeasureMode;
use super::server::Attendant;
use latscope_exchange::transaction::{
    EndpointHandle, EndpointPair, HandlerReply, IpcTransport, RequestHandler, TransactionClient,
    TransactionFailure, TransactionServer, TransportSetupError,
};

/// Name of the transport.
pub const NAME: &str = "passthrough";

/// Transport within one process: a plain call.
pub static PASSTHROUGH: IpcTransport = IpcTransport {
    name: NAME,
    title: "call within the process",
    source: "none: a virtual call and a copy of the payload",
    copies: 1,
    spins: false,
    inheritance: Some("the caller's own thread serves it"),
    max_payload: 64 << 20,
    open: |_| -> Result<EndpointPair, TransportSetupError> { Ok(EndpointPair::of_words(Vec::new())) },
    server: |_: EndpointHandle| -> Result<Box<dyn TransactionServer>, TransactionFailure> {
        Err(no_server())
    },
    client: |handle: EndpointHandle| -> Result<Box<dyn TransactionClient>, TransactionFailure> {
        Ok(Box::new(InProcess::new(IpcMeasureMode::Latency, handle.payload)))
    },
};

fn no_server() -> TransactionFailure {
    TransactionFailure::Broken("a call within the process has no server".to_owned())
}

/// Client and server in one process.
pub(crate) struct InProcess(Attendant);

impl InProcess {
    /// Returns a client for payloads of up to `payload` bytes.
    pub fn new(mode: IpcMeasureMode, payload: usize) -> InProcess {
        InProcess(Attendant::new(mode, payload, None))
    }
}

impl TransactionClient for InProcess {
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, TransactionFailure> {
        self.0.change_thread();
        let answer = match self.0.handle_request(request) {
            HandlerReply::Echo => request,
            HandlerReply::Bytes(bytes) => bytes,
            HandlerReply::None => &[],
        };
        let place = reply.get_mut(..answer.len()).ok_or_else(no_server)?;
        place.copy_from_slice(answer);
        Ok(answer.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{IpcReplyHeader, IpcRequestHeader};
    use super::*;

    #[test]
    fn the_call_is_answered_in_place() {
        let mut client = InProcess::new(IpcMeasureMode::Latency, 64);
        let (mut request, mut reply) = ([0; 64], [0; 64]);
        IpcRequestHeader { sequence: 3, ..IpcRequestHeader::default() }.write_to(&mut request);
        assert_eq!(client.call(&request, &mut reply), Ok(64));
        assert!(
            IpcReplyHeader::read_from(&reply).verified && IpcReplyHeader::read_from(&reply).sequence == 3
        );
    }
}
