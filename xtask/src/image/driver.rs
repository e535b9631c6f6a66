//! Driver's side of the link with the image, as a program on Linux has it.

use super::machine::{ImageMachine, TIMEOUT};
use anyhow::{Context, Result, ensure};
use latscope_os::window::MemoryWindow;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::header::{NAME_SERVICE, RpmsgAddress};
use latscope_rpmsg::image::LAYOUT;
use latscope_rpmsg::link::{RpmsgLinkEvent, Unsent};
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::{RpmsgHost, RpmsgLink, RpmsgWindow as Layout};

/// Address at which replies arrive.
const OURS: RpmsgAddress = 0x2000;

/// Length of the longest payload of the usual layout, in bytes.
pub const LONGEST: usize = 496;

/// Link on which the names of the services are known.
pub struct ImageDriver<'a> {
    machine: &'a mut ImageMachine,
    host: RpmsgHost<MemoryWindow, 256>,
    /// Buffer for the longest payload that is possible.
    payload: Vec<u8>,
}

impl<'a> ImageDriver<'a> {
    /// Begins a link anew with the usual layout.
    pub fn begin_link(machine: &'a mut ImageMachine) -> Result<ImageDriver<'a>> {
        ImageDriver::begin_with(machine, LAYOUT)
    }

    /// Begins a link anew with a layout, whatever was in the window before. Waits until the image has left the former
    /// link.
    pub fn begin_with(machine: &'a mut ImageMachine, layout: Layout) -> Result<ImageDriver<'a>> {
        let window = machine.window();
        layout.reset(&window)?;
        machine.order(machine.serving())?;
        let host = layout.host(window)?;
        machine.kick()?;
        let mut driver = ImageDriver { machine, host, payload: vec![0; u16::MAX.into()] };
        for service in RpmsgService::ALL {
            driver.expect_name(service)?;
        }
        Ok(driver)
    }

    fn expect_name(&mut self, service: RpmsgService) -> Result<()> {
        let (to, payload) = self.receive_message()?;
        ensure!(to == NAME_SERVICE, "a message to {to:#x} instead of a name");
        let expected =
            Announcement { name: service.endpoint_name(), address: service.address(), destroyed: false };
        ensure!(Announcement::parse(&payload)? == expected, "another name than {}", service.endpoint_name());
        Ok(())
    }

    /// Sends to a service, as soon as there is a buffer.
    pub fn send_payload(&mut self, to: RpmsgService, payload: &[u8]) -> Result<()> {
        let host = &mut self.host;
        let send = || match host.send_message(OURS, to.address(), payload) {
            Ok(kick) => Ok(Some(kick)),
            Err(Unsent::NoBuffer) => Ok(None),
            Err(unsent) => Err(unsent.into()),
        };
        let kick = self.machine.poll_until("no buffer comes back", send)?;
        if kick { self.machine.kick() } else { Ok(()) }
    }

    /// Receives the next reply.
    pub fn receive_reply(&mut self) -> Result<Vec<u8>> {
        let (to, payload) = self.receive_message()?;
        ensure!(to == OURS, "a message to {to:#x}, where there is no endpoint");
        Ok(payload)
    }

    /// Receives the next message: its destination and its payload.
    fn receive_message(&mut self) -> Result<(RpmsgAddress, Vec<u8>)> {
        let (host, payload) = (&mut self.host, &mut self.payload);
        let doorbell = self.machine.doorbell();
        let receive = || {
            let received = host.receive_message(payload)?;
            if let (None, Some(doorbell)) = (received, &doorbell) {
                // Who is not kicked finds nothing, in all that time.
                ensure!(
                    host.request_kick(RpmsgLinkEvent::Message)? || doorbell.wait_for_kick(TIMEOUT)?,
                    "no kick comes"
                );
            }
            Ok(received)
        };
        let received = self.machine.poll_until("no reply comes", receive)?;
        if received.kick {
            self.machine.kick()?;
        }
        let payload = payload.get(..received.length).context("more than was sent")?;
        Ok((received.header.destination, payload.to_vec()))
    }
}
