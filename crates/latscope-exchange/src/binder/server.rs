//! Server of the binder transports.

use super::super::transaction::{HandlerReply, RequestHandler, TransactionFailure, TransactionServer};
use super::{BinderPayloadKind, failure, names};
use latscope_os::binder::{BinderDriver, Incoming, Port, Return};
use std::sync::Arc;

/// A server's end, one thread.
#[derive(Debug)]
pub struct BinderServer {
    port: Port,
    shape: BinderPayloadKind,
}

impl BinderServer {
    /// Offers a node under a name.
    ///
    /// # Errors
    /// The name service ended.
    pub fn register(
        driver: Arc<BinderDriver>,
        name: &str,
        shape: BinderPayloadKind,
    ) -> Result<BinderServer, TransactionFailure> {
        // Requests wait for this thread; none is started beside it.
        driver.set_max_threads(0).map_err(failure::driver)?;
        let mut port = Port::new(driver);
        names::register_node(&mut port, name)?;
        Ok(BinderServer { port, shape })
    }

    /// System calls made so far for transactions.
    pub fn exchanges(&self) -> u64 {
        self.port.exchanges()
    }

    /// Answers, gives the request back and waits for the next: one system call.
    #[inline]
    fn answer_request(
        &mut self,
        request: Incoming,
        service: &mut dyn RequestHandler,
    ) -> Result<(), TransactionFailure> {
        let bytes = match self.shape {
            BinderPayloadKind::Flat => Some(self.port.data(&request.buffer)),
            BinderPayloadKind::Vector => self.port.vector(&request.buffer),
        };
        // A stranger's request that is no vector has no answer either.
        let answer = bytes.map_or(HandlerReply::None, |bytes| service.handle_request(bytes));
        let one_way = request.one_way();
        let done = match answer {
            _ if one_way => {
                self.port.free(request.buffer);
                Ok(())
            }
            HandlerReply::Echo => self.port.echo(request.buffer),
            HandlerReply::Bytes(bytes) => self.port.reply_to(request.buffer, self.shape.payload(bytes)),
            HandlerReply::None => self.port.reply_to(request.buffer, self.shape.payload(&[])),
        };
        done.map_err(failure::driver)
    }

    fn exit_thread(&mut self) {
        self.port.exit_looper();
        // Both can only fail when the driver is gone, and all with it.
        let _ = self.port.flush();
        let _ = self.port.driver().thread_exit();
    }
}

impl TransactionServer for BinderServer {
    fn serve_requests(&mut self, service: &mut dyn RequestHandler) -> Result<(), TransactionFailure> {
        self.port.enter_looper();
        loop {
            match self.port.next() {
                Some(Return::Transaction(request)) => self.answer_request(request, service)?,
                // The client had the only reference.
                Some(Return::Released(_)) => {
                    self.exit_thread();
                    return Ok(());
                }
                Some(Return::Error(error)) => {
                    return Err(failure::broken_transport("the binder driver, error", error));
                }
                Some(Return::Outside) => {
                    return Err(failure::broken_transport(
                        "the binder driver",
                        "a request outside of the mapped buffer",
                    ));
                }
                // That a reply found no taker is the client's business.
                Some(_) => {}
                None => self.port.read_returns().map_err(failure::driver)?,
            }
        }
    }
}
