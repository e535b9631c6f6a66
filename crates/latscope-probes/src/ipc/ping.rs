//! Client that pings a service of another program over binder.

use latscope_exchange::binder::service::BinderPinger;
use latscope_exchange::transaction::{TransactionClient, TransactionFailure, TransportSetupError};

/// Name that stands for the context manager, which has none.
pub const MANAGER: &str = "0";

/// Client that pings a binder service, which answers with nothing.
pub struct BinderPingClient(BinderPinger);

impl BinderPingClient {
    /// The service of this name, or [`MANAGER`], on a device; on the first of the transport if none is named.
    ///
    /// # Errors
    /// There is no binder, or no service of this name.
    pub fn for_service(
        service: &str,
        transport: &str,
        device: Option<&str>,
    ) -> Result<BinderPingClient, TransportSetupError> {
        let named = Some(service).filter(|service| *service != MANAGER);
        BinderPinger::find_service(transport, device, named).map(BinderPingClient)
    }
}

impl TransactionClient for BinderPingClient {
    fn call(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, TransactionFailure> {
        self.0.ping().map(|()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_answer_the_reason_is_given() {
        let refused = BinderPingClient::for_service("no.such.service", "binder", None)
            .err()
            .expect("there is no such service");
        assert!(!refused.reason.is_empty());
    }
}
