//! Android's binder as two transports: `binder` sends flat bytes as Android's framework does, `hwbinder` sends them as
//! a `hidl_vec` that the driver gathers from their place, as its HALs do. Only the driver is measured: no libbinder is
//! in between.
//!
//! The process that opens an endpoint pair is the context manager of the device (`names`): it passes the server's node
//! to the client and keeps no reference to it, so that the driver itself reports the end of the client to the server. A
//! side makes one system call for each transaction: the client writes its request and waits, the server answers, gives
//! the request back and waits for the next.
//!
//! Two openings of one process cannot be distinguished by the driver when one is
//! the manager: server and client have to be processes of their own.

mod client;
mod device;
mod failure;
mod names;
mod server;
pub mod service;

use super::transaction::{
    EndpointHandle, EndpointPair, IpcTransport, TransactionClient, TransactionFailure, TransactionServer,
    TransportSetupError,
};
pub use client::BinderClient;
pub use device::BinderDevice;
use latscope_os::binder::{BinderDriver, INHERIT_RT, Payload};
pub use names::Manager;
pub use server::BinderServer;
use std::sync::Arc;

/// Transport `binder`, which sends flat bytes.
pub static BINDER: IpcTransport = IpcTransport {
    name: "binder",
    title: "binder, driver only",
    source: "Documentation/admin-guide/binderfs.rst, include/uapi/linux/android/binder.h",
    copies: 1,
    spins: false,
    inheritance: Some(INHERITANCE),
    max_payload: MAX_PAYLOAD,
    open: |payload| endpoint_pair(&["binder", "vndbinder", "hwbinder"], payload),
    server: |handle| server(handle, BinderPayloadKind::Flat),
    client: |handle| client(handle, BinderPayloadKind::Flat),
};

/// Bytes as a `hidl_vec`, gathered by the driver.
pub static HWBINDER: IpcTransport = IpcTransport {
    name: "hwbinder",
    title: "hwbinder (scatter-gather), driver only",
    source: BINDER.source,
    copies: 1,
    spins: false,
    inheritance: Some(INHERITANCE),
    max_payload: MAX_PAYLOAD,
    open: |payload| endpoint_pair(&["hwbinder", "vndbinder", "binder"], payload),
    server: |handle| server(handle, BinderPayloadKind::Vector),
    client: |handle| client(handle, BinderPayloadKind::Vector),
};

const INHERITANCE: &str = "the driver: nice value; policy and real-time priority on Android's own kernels";

/// Largest payload: the largest mapping has room for two requests on their way
/// and for one-way ones, which get half of it.
pub(crate) const MAX_PAYLOAD: usize = 1 << 20;

/// Form in which bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinderPayloadKind {
    /// Sends the bytes in one piece.
    Flat,
    /// Sends the bytes as a `hidl_vec`.
    Vector,
}

impl BinderPayloadKind {
    fn payload(self, bytes: &[u8]) -> Payload<'_> {
        match self {
            BinderPayloadKind::Flat => Payload::Flat(bytes),
            BinderPayloadKind::Vector => Payload::Vector(bytes),
        }
    }
}

/// The transaction of a pair (FIRST_CALL_TRANSACTION of IBinder).
const CALL: u32 = 1;

/// Flags of the server's node: callers' real-time priorities are inherited, and
/// callers down to nice 19 served at their own.
const NODE_FLAGS: u32 = INHERIT_RT | 19;

/// Returns the bytes to map for payloads of this size: as many as libbinder maps, or more where that is too little, up
/// to the driver's limit.
fn mapping(payload: usize) -> usize {
    let usual = (1 << 20) - 2 * latscope_os::page::page_size();
    (4 * payload + (64 << 10)).clamp(usual, 4 << 20)
}

/// Opens a pair on an own device if the kernel allows one, else on the first
/// of those named that has no context manager.
fn endpoint_pair(names: &[&str], payload: usize) -> Result<EndpointPair, TransportSetupError> {
    pair_of(payload, || names::manager(names))
}

/// Opens a pair on the device of this path.
///
/// # Errors
/// The payload is over the limit, it is no binder device, it cannot be opened, or it has a context manager.
pub fn endpoint_pair_on(device: &str, payload: usize) -> Result<EndpointPair, TransportSetupError> {
    pair_of(payload, || names::manager_on(device))
}

fn pair_of(
    payload: usize,
    manager: impl FnOnce() -> Result<Arc<Manager>, TransportSetupError>,
) -> Result<EndpointPair, TransportSetupError> {
    if payload > MAX_PAYLOAD {
        return Err(TransportSetupError {
            reason: format!("{payload} bytes are more than the {MAX_PAYLOAD} that fit into a binder buffer"),
            remedy: "a smaller payload".to_owned(),
        });
    }
    let manager = manager()?;
    let (server, client) = (manager.device().descriptor()?, manager.device().descriptor()?);
    Ok(EndpointPair {
        server: vec![server],
        client: vec![client],
        words: vec![names::unique_name(), manager.device().path().to_owned()],
        leftovers: Default::default(),
        kept: Some(manager),
    })
}

/// The device of an endpoint pair of this transport, if it is one of another name: that of the transport could not be
/// had. One that no other process sees is as good as that.
#[must_use]
pub fn other_device<'a>(transport: &str, words: &'a [String]) -> Option<&'a str> {
    let ([_, path], true) = (words, [BINDER.name, HWBINDER.name].contains(&transport)) else { return None };
    let name = path.rsplit('/').next().unwrap_or(path);
    let same = name == names::PRIVATE || name.trim_start_matches("anbox-") == transport;
    (!same).then_some(path.as_str())
}

/// Opens the device that was passed to the process, and returns the name under which client and server find each other.
fn open(handle: &EndpointHandle) -> Result<(Arc<BinderDriver>, String), TransactionFailure> {
    let ([descriptor], [name, path]) = (&handle.descriptors[..], &handle.words[..]) else {
        return Err(TransactionFailure::Broken("a binder device and two words are handed".to_owned()));
    };
    let device = BinderDevice::from_borrowed_fd(descriptor, path)
        .map_err(|error| failure::broken_transport("a descriptor", error))?;
    let driver = device
        .open_driver(mapping(handle.payload))
        .map_err(|refused| TransactionFailure::Broken(refused.reason))?;
    Ok((Arc::new(driver), name.clone()))
}

fn server(
    handle: EndpointHandle,
    shape: BinderPayloadKind,
) -> Result<Box<dyn TransactionServer>, TransactionFailure> {
    let (driver, name) = open(&handle)?;
    Ok(Box::new(BinderServer::register(driver, &name, shape)?))
}

fn client(
    handle: EndpointHandle,
    shape: BinderPayloadKind,
) -> Result<Box<dyn TransactionClient>, TransactionFailure> {
    let (driver, name) = open(&handle)?;
    Ok(Box::new(BinderClient::wait_for_server(driver, &name, shape, handle.payload)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_room_for_what_is_under_way() {
        assert_eq!(mapping(4), (1 << 20) - 2 * latscope_os::page::page_size());
        assert!(mapping(1 << 18) >= 4 << 18);
        assert_eq!(mapping(MAX_PAYLOAD), 4 << 20);
    }

    #[test]
    fn a_payload_over_the_limit_is_refused_by_its_size() {
        for transport in [&BINDER, &HWBINDER] {
            let refused = (transport.open)(MAX_PAYLOAD + 1).err().unwrap();
            assert!(refused.reason.starts_with("1048577 bytes are more than the 1048576"), "{refused}");
        }
    }

    #[test]
    fn a_device_of_another_name_is_told() {
        let words = |path: &str| vec!["latscope-0".to_owned(), path.to_owned()];
        let other = |transport, path| other_device(transport, &words(path)).map(str::to_owned);
        assert_eq!(other("hwbinder", "/dev/vndbinder").as_deref(), Some("/dev/vndbinder"));
        assert_eq!(other("binder", "/dev/binderfs/hwbinder").as_deref(), Some("/dev/binderfs/hwbinder"));
        for (transport, path) in [
            ("binder", "/dev/binder"),
            ("hwbinder", "/dev/binderfs/hwbinder"),
            ("hwbinder", "/dev/anbox-hwbinder"),
            ("hwbinder", "binderfs (private)/latscope"),
            ("pipe", "/dev/vndbinder"),
        ] {
            assert_eq!(other(transport, path), None, "{transport} {path}");
        }
        assert_eq!(other_device("binder", &[]), None);
    }

    #[test]
    fn what_is_not_handed_is_named() {
        let handle = EndpointHandle { descriptors: Vec::new(), words: Vec::new(), payload: 4 };
        assert!(matches!((BINDER.client)(handle).err(), Some(TransactionFailure::Broken(_))));
    }
}
