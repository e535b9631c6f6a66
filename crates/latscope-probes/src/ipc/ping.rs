//! Client that pings a service of another program over binder.

use latscope_exchange::binder::service::Pinger;
use latscope_exchange::transaction::{Client, Failure, Unavailable};

/// Name that stands for the context manager, which has none.
pub const MANAGER: &str = "0";

/// Client that pings a binder service, which answers with nothing.
pub struct Ping(Pinger);

impl Ping {
    /// The service of this name, or [`MANAGER`], on a device; on the first of the transport if none is named.
    ///
    /// # Errors
    /// There is no binder, or no service of this name.
    pub fn of(service: &str, transport: &str, device: Option<&str>) -> Result<Ping, Unavailable> {
        let named = Some(service).filter(|service| *service != MANAGER);
        Pinger::find(transport, device, named).map(Ping)
    }
}

impl Client for Ping {
    fn call(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, Failure> {
        self.0.ping().map(|()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_answer_the_reason_is_given() {
        let refused = Ping::of("no.such.service", "binder", None).err().expect("there is no such service");
        assert!(!refused.reason.is_empty());
    }
}
