//! Client of the binder transports.

use super::super::transaction::{TransactionClient, TransactionFailure};
use super::{BinderPayloadKind, CALL, failure, names};
use latscope_os::binder::{BinderBuffer, BinderDriver, Handle, Port};
use std::sync::Arc;

/// A client's end for one thread at a time. Drop it in the thread that used
/// it: the driver then forgets the thread.
#[derive(Debug)]
pub struct BinderClient {
    port: Port,
    server: Handle,
    shape: BinderPayloadKind,
    most: usize,
    /// The last reply, which is given back with the next request: no system
    /// call of its own, but its cost is in the next transaction.
    last: Option<BinderBuffer>,
}

impl BinderClient {
    /// Waits until the server has registered under a name, and takes the only
    /// reference to it.
    ///
    /// # Errors
    /// The server or the name service ended, or the wait takes too long.
    pub fn wait_for_server(
        driver: Arc<BinderDriver>,
        name: &str,
        shape: BinderPayloadKind,
        most: usize,
    ) -> Result<BinderClient, TransactionFailure> {
        let mut port = Port::new(driver);
        let server = names::wait_for_node(&mut port, name)?;
        Ok(BinderClient::new(port, server, shape, most))
    }

    fn new(port: Port, server: Handle, shape: BinderPayloadKind, most: usize) -> BinderClient {
        BinderClient { port, server, shape, most, last: None }
    }

    /// System calls made so far for transactions.
    pub fn exchanges(&self) -> u64 {
        self.port.exchanges()
    }

    fn check_size(&self, request: &[u8]) -> Result<(), TransactionFailure> {
        if (1..=self.most).contains(&request.len()) {
            return Ok(());
        }
        let (bytes, most) = (request.len(), self.most);
        Err(TransactionFailure::Refused(format!("a request of {bytes} bytes: 1 to {most} were agreed on")))
    }

    /// Calls; the answer where the driver put it.
    #[inline]
    fn transact(&mut self, request: &[u8]) -> Result<&[u8], TransactionFailure> {
        self.check_size(request)?;
        self.give_back();
        let answer = failure::transact(&mut self.port, self.server, CALL, self.shape.payload(request))?;
        let buffer = self.last.insert(answer.buffer);
        let bytes = match self.shape {
            BinderPayloadKind::Flat => Some(self.port.data(buffer)),
            BinderPayloadKind::Vector => self.port.vector(buffer),
        };
        bytes.ok_or_else(|| TransactionFailure::Refused("the answer is no vector".to_owned()))
    }

    #[inline]
    fn give_back(&mut self) {
        if let Some(last) = self.last.take() {
            self.port.free(last);
        }
    }
}

#[cold]
fn too_long() -> TransactionFailure {
    TransactionFailure::Refused("the answer is longer than expected".to_owned())
}

impl TransactionClient for BinderClient {
    #[inline]
    fn call(&mut self, request: &[u8], reply: &mut [u8]) -> Result<usize, TransactionFailure> {
        let bytes = self.transact(request)?;
        let room = reply.get_mut(..bytes.len()).ok_or_else(too_long)?;
        room.copy_from_slice(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn call_in_place<'a>(
        &'a mut self,
        request: &[u8],
        room: &'a mut [u8],
    ) -> Result<&'a [u8], TransactionFailure> {
        let bytes = self.transact(request)?;
        if bytes.len() <= room.len() { Ok(bytes) } else { Err(too_long()) }
    }

    fn send_one_way(&mut self, request: &[u8]) -> Option<Result<(), TransactionFailure>> {
        Some(self.check_size(request).and_then(|()| {
            self.give_back();
            failure::transact_one_way(&mut self.port, self.server, CALL, self.shape.payload(request))
        }))
    }

    fn clone_for_thread(&self) -> Option<Result<Box<dyn TransactionClient>, TransactionFailure>> {
        let port = Port::new(Arc::clone(self.port.driver()));
        Some(Ok(Box::new(BinderClient::new(port, self.server, self.shape, self.most))))
    }
}

impl Drop for BinderClient {
    fn drop(&mut self) {
        self.give_back();
        // Both can only fail when the driver is gone, and all with it.
        let _ = self.port.flush();
        let _ = self.port.driver().thread_exit();
    }
}
