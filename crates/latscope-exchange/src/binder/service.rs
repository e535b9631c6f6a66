//! Pings of services in other processes: the context manager of a device, or a service that is registered with it. The
//! module needs no context manager of its own, and so works on a running Android.
//!
//! Source: `IBinder::PING_TRANSACTION`, and the request of
//! `android.os.IServiceManager.getService`, as they are on the wire.

use super::super::transaction::{TransactionFailure, TransportSetupError};
use super::device::{self, BinderDevice};
use super::failure::transact;
use super::mapping;
use super::names::take_handle;
use latscope_machine::binder_presence as presence;
use latscope_os::binder::{BinderBuffer, Handle, MANAGER, Payload, Port};
use std::path::Path;
use std::sync::Arc;

/// `_PNG`: every libbinder object answers it with nothing.
const PING: u32 = u32::from_be_bytes(*b"_PNG");

/// The first method of the service manager.
const GET_SERVICE: u32 = 1;

/// Interface that the request is addressed to.
const SERVICE_MANAGER: &str = "android.os.IServiceManager";

/// Words in front of the interface's name in a request, newest first: from Android 11 strict mode, work source and
/// `SYST`; on 10 without the last; on earlier versions strict mode only.
const HEADERS: [&[i32]; 3] = [&[i32::MIN, -1, i32::from_be_bytes(*b"SYST")], &[i32::MIN, -1], &[i32::MIN]];

/// Something that can be pinged.
#[derive(Debug)]
pub struct BinderPinger {
    port: Port,
    target: Handle,
    last: Option<BinderBuffer>,
}

impl BinderPinger {
    /// The service of this name, or with `None` the context manager, of a device; if none is named, of the first that a
    /// transport has.
    ///
    /// # Errors
    /// There is no device, it cannot be used, or it has no such service.
    pub fn find_service(
        transport: &str,
        device: Option<&str>,
        service: Option<&str>,
    ) -> Result<BinderPinger, TransportSetupError> {
        let root = Path::new("/");
        let paths = match device {
            None => of_transport(presence::devices(root), transport),
            Some(path) => vec![path.to_owned()],
        };
        let Some(device) = paths.iter().find_map(|path| BinderDevice::from_path(path)) else {
            return Err(device::no_device_error(root));
        };
        let mut port = Port::new(Arc::new(device.open_driver(mapping(0))?));
        let target = match service {
            None => MANAGER,
            Some(name) => look_up(&mut port, name).map_err(|failure| not_found(&device, name, &failure))?,
        };
        let mut pinger = BinderPinger { port, target, last: None };
        pinger.ping().map_err(|failure| ping_error(&device, service, &failure))?;
        Ok(pinger)
    }

    /// Calls the service and waits for its answer, which is empty: one system call.
    ///
    /// # Errors
    /// The service ended, or the driver refuses.
    #[inline]
    pub fn ping(&mut self) -> Result<(), TransactionFailure> {
        if let Some(last) = self.last.take() {
            self.port.free(last);
        }
        let reply = transact(&mut self.port, self.target, PING, Payload::Flat(&[]))?;
        self.last = Some(reply.buffer);
        Ok(())
    }
}

/// Returns the devices by which a transport may find a service. Services of hwbinder have a device of their own; those
/// of binder may be on any.
fn of_transport(mut paths: Vec<String>, transport: &str) -> Vec<String> {
    let fits = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.trim_start_matches("anbox-") == transport
    };
    if transport == "hwbinder" {
        paths.retain(fits);
    } else {
        paths.sort_by_key(|path| !fits(path));
    }
    paths
}

fn look_up(port: &mut Port, name: &str) -> Result<Handle, TransactionFailure> {
    for header in HEADERS {
        let reply = transact(port, MANAGER, GET_SERVICE, Payload::Flat(&encode_request(header, name)))?;
        if let Some(handle) = take_handle(port, reply.buffer)? {
            return Ok(handle);
        }
    }
    Err(TransactionFailure::Refused("it is not registered, or not for this user".to_owned()))
}

/// The request in the layout of a Parcel.
fn encode_request(header: &[i32], name: &str) -> Vec<u8> {
    let mut parcel: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for text in [SERVICE_MANAGER, name] {
        let units: Vec<u16> = text.encode_utf16().collect();
        parcel.extend_from_slice(&(units.len() as i32).to_ne_bytes());
        // A zero ends the text, in multiples of 4 bytes.
        parcel.extend(units.iter().chain(&[0]).flat_map(|unit| unit.to_ne_bytes()));
        parcel.resize(parcel.len().next_multiple_of(4), 0);
    }
    parcel
}

fn not_found(device: &BinderDevice, name: &str, failure: &TransactionFailure) -> TransportSetupError {
    match failure {
        TransactionFailure::Gone => no_manager(device),
        other => TransportSetupError {
            reason: format!("no service {name} on {}: {other}", device.path()),
            remedy: "service list shows those of an Android".to_owned(),
        },
    }
}

fn ping_error(
    device: &BinderDevice,
    service: Option<&str>,
    failure: &TransactionFailure,
) -> TransportSetupError {
    match (failure, service) {
        (TransactionFailure::Gone, None) => no_manager(device),
        (other, _) => TransportSetupError {
            reason: format!("{} on {}: {other}", service.unwrap_or("the context manager"), device.path()),
            remedy: String::new(),
        },
    }
}

fn no_manager(device: &BinderDevice) -> TransportSetupError {
    TransportSetupError {
        reason: format!("{} has no context manager, so nothing is registered", device.path()),
        remedy: "without --service both sides are latscope's own".to_owned(),
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_a_parcel() {
        let parcel = encode_request(HEADERS[0], "ab");
        assert_eq!(parcel[..12], [0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0xff, b'T', b'S', b'Y', b'S']);
        // 26 characters and the zero: 54 bytes, padded to 56.
        assert_eq!((parcel[12..16].to_vec(), &parcel[16..20]), (vec![26, 0, 0, 0], &b"a\0n\0"[..]));
        assert_eq!(parcel[16 + 52..16 + 56], [0; 4]);
        assert_eq!(parcel[72..], [2, 0, 0, 0, b'a', 0, b'b', 0, 0, 0, 0, 0]);
        assert_eq!(encode_request(HEADERS[2], "ab").len(), parcel.len() - 8);
    }

    #[test]
    fn services_of_hwbinder_are_looked_for_on_its_device_alone() {
        let paths = ["/dev/vndbinder", "/dev/hwbinder", "/dev/binderfs/binder"].map(str::to_owned).to_vec();
        assert_eq!(of_transport(paths.clone(), "hwbinder"), ["/dev/hwbinder"]);
        let binder = of_transport(paths, "binder");
        assert_eq!(binder, ["/dev/binderfs/binder", "/dev/vndbinder", "/dev/hwbinder"]);
        assert!(of_transport(vec!["/dev/binder".to_owned()], "hwbinder").is_empty());
    }

    #[test]
    fn ping_is_the_code_of_android() {
        assert_eq!(PING, 0x5f50_4e47);
    }

    #[test]
    fn a_device_that_is_not_there_is_no_device() {
        let refused = BinderPinger::find_service("binder", Some("/nonexistent/binder"), None).err().unwrap();
        assert!(!refused.reason.is_empty() && !refused.remedy.is_empty());
    }
}
