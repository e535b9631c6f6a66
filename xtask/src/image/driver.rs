//! The driver's side of the link with the image, as a program on Linux has it.

use super::machine::Machine;
use anyhow::{Context, Result, ensure};
use latscope_rpmsg::control::Order;
use latscope_rpmsg::echo::Service;
use latscope_rpmsg::header::{Address, NAME_SERVICE};
use latscope_rpmsg::image::LAYOUT;
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::{Host, Link};
use latscope_sys::window::Window;

/// Where replies are to come.
const OURS: Address = 0x2000;

/// Bytes of the longest payload of the layout.
pub const LONGEST: usize = 496;

/// A link whose names are known.
pub struct Driver<'a> {
    machine: &'a mut Machine,
    host: Host<Window, 256>,
}

impl<'a> Driver<'a> {
    /// Begins anew, whatever was in the window and whoever used it before: not
    /// before the image has left that.
    pub fn begin(machine: &'a mut Machine) -> Result<Driver<'a>> {
        let window = machine.window();
        LAYOUT.reset(&window)?;
        machine.order(Order::Link)?;
        let mut driver = Driver { host: LAYOUT.host(window)?, machine };
        for service in Service::ALL {
            driver.expect_name(service)?;
        }
        Ok(driver)
    }

    fn expect_name(&mut self, service: Service) -> Result<()> {
        let (to, payload) = self.receive()?;
        ensure!(to == NAME_SERVICE, "a message to {to:#x} instead of a name");
        let expected = Announcement { name: service.name(), address: service.address(), destroyed: false };
        ensure!(Announcement::parse(&payload)? == expected, "another name than {}", service.name());
        Ok(())
    }

    /// Sends to a service, when there is a buffer.
    pub fn send(&mut self, to: Service, payload: &[u8]) -> Result<()> {
        let host = &mut self.host;
        let send = || match host.send(OURS, to.address(), payload) {
            Ok(_) => Ok(Some(Ok(()))),
            Err(Unsent::NoBuffer) => Ok(None),
            Err(Unsent::Fault(fault)) => Err(fault),
            Err(unsent) => Ok(Some(Err(unsent))),
        };
        Ok(self.machine.until("no buffer comes back", send)??)
    }

    /// Receives the next reply.
    pub fn reply(&mut self) -> Result<Vec<u8>> {
        let (to, payload) = self.receive()?;
        ensure!(to == OURS, "a message to {to:#x}, where nobody is");
        Ok(payload)
    }

    /// The next message: its destination and its payload.
    fn receive(&mut self) -> Result<(Address, Vec<u8>)> {
        let mut payload = [0; LONGEST];
        let host = &mut self.host;
        let received = self.machine.until("no reply comes", || host.receive(&mut payload))?;
        let payload = payload.get(..received.length).context("more than was sent")?;
        Ok((received.header.destination, payload.to_vec()))
    }
}
