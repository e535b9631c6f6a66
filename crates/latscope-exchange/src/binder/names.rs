//! The context manager, and its name service: servers leave a node under a
//! name, the client that asks for it gets it, and the service keeps nothing.
//!
//! It is a thread of the process that opens endpoint pairs, one for each device, and
//! sleeps while there is nothing to do. It ends with the last endpoint pair.

use super::super::transaction::{TransactionFailure, TransportSetupError};
use super::device::{self, BinderDevice};
use super::failure::{driver, transact};
use super::{NODE_FLAGS, mapping};
use latscope_os::binder::binderfs::BinderfsInstance;
use latscope_os::binder::{
    BinderBuffer, BinderDriver, BinderNode, Composed, Handle, Incoming, MANAGER, Payload, Port, Return,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Leaves a node: a name, then the node.
const ADD: u32 = 1;
/// Asks for one: a name.
const GET: u32 = 2;

/// First byte of an answer of the name service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum NameReplyStatus {
    /// Done; for a question, the handle follows.
    Done = 0,
    /// No process has registered that name yet.
    NotYet = 1,
    /// The process that registered the name has died.
    Gone = 2,
    /// The request was not understood.
    Nonsense = 3,
}

/// Longest wait of a client for its server to register.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for the driver to forget a context manager that has closed the device. The driver does that at a later
/// time of its own.
const FORGETTING: Duration = Duration::from_millis(500);

/// Time between two tries: the driver writes a line to the kernel log for each that it refuses.
const RETRY: Duration = Duration::from_millis(50);

/// The node's own words; a server has but one.
const NODE: BinderNode = BinderNode { address: 1, cookie: 1 };

/// A name that no other process uses.
pub(super) fn unique_name() -> String {
    format!("latscope-{:016x}", RandomState::new().build_hasher().finish())
}

/// Leaves this process's node under a name.
pub(super) fn register_node(port: &mut Port, name: &str) -> Result<(), TransactionFailure> {
    let message = Composed::new().add_bytes(name.as_bytes()).node(NODE, NODE_FLAGS);
    let reply = transact(port, MANAGER, ADD, Payload::Composed(&message)).map_err(no_service)?;
    let status = port.data(&reply.buffer).first().copied();
    port.free(reply.buffer);
    if status == Some(NameReplyStatus::Done as u8) { Ok(()) } else { Err(foreign()) }
}

/// Takes a reference to the node that the buffer of a reply has, if it has one, and gives the buffer back.
pub(super) fn take_handle(
    port: &mut Port,
    buffer: BinderBuffer,
) -> Result<Option<Handle>, TransactionFailure> {
    let handle = port.handles(&buffer).first().copied();
    if let Some(handle) = handle {
        port.acquire(handle);
    }
    port.free(buffer);
    port.flush().map_err(driver)?;
    Ok(handle)
}

/// Waits for the node of this name, and takes the only reference to it.
pub(super) fn wait_for_node(port: &mut Port, name: &str) -> Result<Handle, TransactionFailure> {
    let end = Instant::now() + REGISTRATION_TIMEOUT;
    loop {
        // That the other endpoint is gone is said of the name service, and of a
        // server whose death it has not heard of yet.
        let reply = transact(port, MANAGER, GET, Payload::Flat(name.as_bytes()))?;
        let status = port.data(&reply.buffer).first().copied();
        let handle = take_handle(port, reply.buffer)?;
        match (status, handle) {
            (Some(0), Some(handle)) => return Ok(handle),
            (Some(status), _) if status == NameReplyStatus::Gone as u8 => {
                return Err(TransactionFailure::Gone);
            }
            (Some(status), _) if status == NameReplyStatus::NotYet as u8 => {}
            _ => return Err(foreign()),
        }
        if Instant::now() > end {
            return Err(TransactionFailure::Broken(format!(
                "no server registered within {} s",
                REGISTRATION_TIMEOUT.as_secs()
            )));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn no_service(failure: TransactionFailure) -> TransactionFailure {
    match failure {
        TransactionFailure::Gone => TransactionFailure::Broken("the binder name service is gone".to_owned()),
        other => other,
    }
}

fn foreign() -> TransactionFailure {
    TransactionFailure::Broken("the context manager is not latscope's".to_owned())
}

/// The managers of this process.
static MANAGERS: Mutex<Vec<Weak<Manager>>> = Mutex::new(Vec::new());

/// The manager of an own device if the kernel allows one, else of
/// the first of those named that can have one.
pub(super) fn manager(names: &[&str]) -> Result<Arc<Manager>, TransportSetupError> {
    let mut managers = MANAGERS.lock().unwrap_or_else(PoisonError::into_inner);
    managers.retain(|manager| manager.strong_count() > 0);
    let living = |wanted: &dyn Fn(&Manager) -> bool| {
        managers.iter().filter_map(Weak::upgrade).find(|manager| wanted(manager))
    };
    if let Some(own) = living(&|manager| manager.instance.is_some()) {
        return Ok(own);
    }
    let mut started =
        own_device().and_then(|(device, instance)| Manager::start_on_device(device, Some(instance)).ok());
    let mut first_reason = None;
    for path in if started.is_none() { paths(names) } else { Vec::new() } {
        let Some(device) = BinderDevice::from_path(&path) else { continue };
        if let Some(same) = living(&|manager| manager.device.device_number() == device.device_number()) {
            return Ok(same);
        }
        match Manager::start_on_device(device, None) {
            Ok(manager) => {
                started = Some(manager);
                break;
            }
            Err(reason) => drop(first_reason.get_or_insert(reason)),
        }
    }
    let Some(manager) = started else {
        return Err(first_reason.unwrap_or_else(|| device::no_device_error(Path::new("/"))));
    };
    let manager = Arc::new(manager);
    managers.push(Arc::downgrade(&manager));
    Ok(manager)
}

/// The manager of the device of this path.
pub(super) fn manager_on(path: &str) -> Result<Arc<Manager>, TransportSetupError> {
    let mut managers = MANAGERS.lock().unwrap_or_else(PoisonError::into_inner);
    managers.retain(|manager| manager.strong_count() > 0);
    let device = BinderDevice::from_path(path).ok_or_else(|| TransportSetupError {
        reason: format!("there is no {path}"),
        remedy: "ls -l /dev/*binder* /dev/binderfs".to_owned(),
    })?;
    let same = |manager: &Arc<Manager>| manager.device.device_number() == device.device_number();
    if let Some(same) = managers.iter().filter_map(Weak::upgrade).find(same) {
        return Ok(same);
    }
    let manager = Arc::new(Manager::start_on_device(device, None)?);
    managers.push(Arc::downgrade(&manager));
    Ok(manager)
}

/// Name of a device that this program makes.
pub(super) const PRIVATE: &str = "latscope";

/// A device in an instance of binderfs that no other process sees.
fn own_device() -> Option<(BinderDevice, BinderfsInstance)> {
    let instance = BinderfsInstance::create().ok()?;
    let descriptor = instance.add_device(PRIVATE).ok()?;
    Some((BinderDevice::from_owned_fd(descriptor, &format!("binderfs (private)/{PRIVATE}")), instance))
}

/// Returns the paths where devices of these names are found: on Android, on Debian, with Anbox's module.
fn paths(names: &[&str]) -> Vec<String> {
    let places = ["/dev/", "/dev/binderfs/", "/dev/anbox-"];
    places.iter().flat_map(|place| names.iter().map(move |name| format!("{place}{name}"))).collect()
}

/// A device's context manager, and the thread that serves names.
#[derive(Debug)]
pub struct Manager {
    device: BinderDevice,
    instance: Option<BinderfsInstance>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// Becomes the context manager of a device.
    ///
    /// # Errors
    /// The device cannot be used, or it has a context manager, which is named.
    pub fn claim(device: BinderDevice) -> Result<Manager, TransportSetupError> {
        Manager::start_on_device(device, None)
    }

    fn start_on_device(
        device: BinderDevice,
        instance: Option<BinderfsInstance>,
    ) -> Result<Manager, TransportSetupError> {
        let driver = device.open_driver(mapping(0))?;
        become_manager(&driver).map_err(|error| device.not_manager(error))?;
        let (stop, thread) = spawn_service(driver).map_err(|error| TransportSetupError {
            reason: format!("the binder name service does not start: {error}"),
            remedy: "ulimit -n, ulimit -u".to_owned(),
        })?;
        Ok(Manager { device, instance, stop, thread: Some(thread) })
    }

    /// Returns the device that this process manages.
    pub fn device(&self) -> &BinderDevice {
        &self.device
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn become_manager(driver: &BinderDriver) -> Result<(), Errno> {
    let end = Instant::now() + FORGETTING;
    loop {
        match driver.become_manager(0) {
            Err(Errno::BUSY) if Instant::now() < end => thread::sleep(RETRY),
            outcome => return outcome,
        }
    }
}

/// Starts the thread of the name service.
fn spawn_service(driver: BinderDriver) -> io::Result<(OwnedFd, JoinHandle<()>)> {
    // Woken by two things, it must not sleep for one of them alone.
    fcntl_setfl(&driver, OFlags::NONBLOCK)?;
    let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
    let stopped = stop.try_clone()?;
    let mut clerk = Clerk { port: Port::new(Arc::new(driver)), book: Book::default() };
    let thread = thread::Builder::new().name("binder-names".to_owned()).spawn(move || {
        // It fails when the driver does; then the callers get that error.
        let _ = clerk.serve_names(&stopped);
    })?;
    Ok((stop, thread))
}

/// Server of the name service.
struct Clerk {
    port: Port,
    book: Book,
}

impl Clerk {
    fn serve_names(&mut self, stop: &OwnedFd) -> Result<(), Errno> {
        self.port.enter_looper();
        self.port.flush()?;
        let driver = Arc::clone(self.port.driver());
        loop {
            let watched = (driver.as_fd(), stop.as_fd());
            let mut watched =
                [PollFd::new(&watched.0, PollFlags::IN), PollFd::new(&watched.1, PollFlags::IN)];
            match poll(&mut watched, None) {
                Ok(_) if !watched[1].revents().is_empty() => return Ok(()),
                Ok(_) => self.process_returns()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Does all there is to do.
    fn process_returns(&mut self) -> Result<(), Errno> {
        at_once(self.port.read_returns())?;
        while let Some(returned) = self.port.next() {
            match returned {
                Return::Transaction(request) => self.answer_request(request)?,
                Return::DeadBinder(cookie) => self.mourn(cookie),
                _ => {}
            }
        }
        if self.port.is_queued() { self.port.flush() } else { Ok(()) }
    }

    fn answer_request(&mut self, request: Incoming) -> Result<(), Errno> {
        let data = self.port.data(&request.buffer);
        let handle = self.port.handles(&request.buffer).first().copied();
        let mut given = None;
        let status = match (request.code, handle, std::str::from_utf8(name(data, handle.is_some()))) {
            (ADD, Some(handle), Ok(name)) => {
                let cookie = self.book.add_entry(name, handle);
                self.port.acquire(handle);
                self.port.watch_death(handle, cookie);
                NameReplyStatus::Done
            }
            (GET, None, Ok(name)) => match self.book.take_entry(name) {
                Some(NameRegistryEntry { handle: Some(handle), cookie, .. }) => {
                    given = Some((handle, cookie));
                    NameReplyStatus::Done
                }
                Some(_) => NameReplyStatus::Gone,
                None => NameReplyStatus::NotYet,
            },
            _ => NameReplyStatus::Nonsense,
        };
        let answer = Composed::new().add_bytes(&[status as u8]);
        let answer = if let Some((handle, _)) = given { answer.handle(handle) } else { answer };
        if request.one_way() {
            self.port.free(request.buffer);
        } else {
            at_once(self.port.reply_to(request.buffer, Payload::Composed(&answer)))?;
        }
        // The reply on its way has a reference of its own.
        if let Some((handle, cookie)) = given {
            self.port.unwatch(handle, cookie);
            self.port.release_handle(handle);
        }
        Ok(())
    }

    fn mourn(&mut self, cookie: u64) {
        self.port.confirm_death(cookie);
        if let Some(handle) = self.book.mark_dead(cookie) {
            self.port.release_handle(handle);
        }
    }
}

/// Converts `EAGAIN` to success: nothing to read is no error.
fn at_once(outcome: Result<(), Errno>) -> Result<(), Errno> {
    if outcome == Err(Errno::AGAIN) { Ok(()) } else { outcome }
}

/// The name in a message; a node stands behind it, aligned.
fn name(data: &[u8], node: bool) -> &[u8] {
    const NODE_SIZE: usize = 24;
    let end = if node { data.len().saturating_sub(NODE_SIZE) } else { data.len() };
    let padding = data[..end].iter().rev().take_while(|byte| **byte == 0).count();
    &data[..end - padding]
}

/// Registered names and the handles left under them.
#[derive(Debug, Default)]
struct Book {
    entries: Vec<NameRegistryEntry>,
    cookies: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct NameRegistryEntry {
    name: String,
    /// `None` once its process died.
    handle: Option<Handle>,
    cookie: u64,
}

impl Book {
    /// Enters a name; returns the cookie for the news of a death.
    fn add_entry(&mut self, name: &str, handle: Handle) -> u64 {
        self.cookies += 1;
        self.entries.push(NameRegistryEntry {
            name: name.to_owned(),
            handle: Some(handle),
            cookie: self.cookies,
        });
        self.cookies
    }

    /// Removes the entry of a name and returns it. The entry of a dead server stays, and a copy of it is returned.
    fn take_entry(&mut self, name: &str) -> Option<NameRegistryEntry> {
        let index = self.entries.iter().position(|entry| entry.name == name)?;
        let NameRegistryEntry { handle, cookie, .. } = self.entries[index];
        match handle {
            Some(_) => Some(self.entries.swap_remove(index)),
            None => Some(NameRegistryEntry { name: name.to_owned(), handle: None, cookie }),
        }
    }

    /// Marks the entry with this cookie, whose process died, and returns the handle to give back.
    fn mark_dead(&mut self, cookie: u64) -> Option<Handle> {
        self.entries.iter_mut().find(|entry| entry.cookie == cookie)?.handle.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_a_death_is_remembered() {
        let mut book = Book::default();
        let (first, second) = (book.add_entry("a", Handle(1)), book.add_entry("b", Handle(2)));
        assert_ne!(first, second);
        assert_eq!(book.take_entry("c"), None);
        assert_eq!(book.take_entry("a").unwrap().handle, Some(Handle(1)));
        assert_eq!(book.take_entry("a"), None);
        assert_eq!(book.mark_dead(second), Some(Handle(2)));
        assert_eq!(book.mark_dead(second), None);
        assert_eq!((book.mark_dead(first), book.take_entry("b").unwrap().handle), (None, None));
        assert_eq!(book.take_entry("b").unwrap().handle, None);
    }

    #[test]
    fn a_name_ends_before_its_padding_and_node() {
        let mut message = b"latscope-1\0\0\0\0\0\0".to_vec();
        assert_eq!(name(&message, false), b"latscope-1");
        message.extend_from_slice(&[7; 24]);
        assert_eq!(name(&message, true), b"latscope-1");
        assert_eq!((name(&[], true), name(&[0; 30], true)), (&b""[..], &b""[..]));
    }

    #[test]
    fn names_differ() {
        assert_ne!(unique_name(), unique_name());
    }

    #[test]
    fn devices_are_looked_for_by_name_first() {
        let paths = paths(&["hwbinder", "binder"]);
        assert_eq!(paths[..3], ["/dev/hwbinder", "/dev/binder", "/dev/binderfs/hwbinder"]);
    }
}
