//! The transport against a device that is played by a thread.

use super::*;
use latscope_os::window::MemoryWindow as Mapped;
use latscope_rpmsg::RpmsgRemote;
use latscope_rpmsg::echo::RpmsgEcho;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::notify::readable;
use crate::remote::rings::PAYLOAD;

const BASE: usize = 0x7000_0000;
const LOADED: usize = 0x7a00_0000;
const RESERVED: Reserved = Reserved { address: BASE as u64, size: 0x1000_0000 };
const SECOND: u64 = 1_000_000_000;

/// A board: memory at physical addresses, and a CPU that begins to answer when it is started.
struct Fake {
    memory: OwnedFd,
    to_client: OwnedFd,
    to_host: OwnedFd,
    calls: Mutex<Vec<String>>,
    off: bool,
    module: McsModuleVersion,
    end: Arc<AtomicBool>,
}

/// Version of the module's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum McsModuleVersion {
    /// Since March 2024: it says which memory is reserved.
    Current,
    /// Since 2023, with three requests.
    Older,
    /// No memory is reserved.
    Bare,
}

impl Fake {
    fn new() -> Fake {
        // Only the pages that are used take memory.
        let memory = memfd_create("board", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, RESERVED.address + RESERVED.size).unwrap();
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (to_client, to_host) = (event(), event());
        Fake {
            memory,
            to_client,
            to_host,
            calls: Mutex::default(),
            off: true,
            module: McsModuleVersion::Current,
            end: Arc::default(),
        }
    }

    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn mapped(&self, address: usize, size: usize) -> io::Result<Mapped> {
        Mapped::map_at(self.memory.try_clone()?, address, size)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

impl McsBoard for Fake {
    fn check_off(&self, cpu: u32) -> io::Result<()> {
        self.note(format!("is {cpu} off"));
        if self.off { Ok(()) } else { Err(io::Error::from_raw_os_error(14)) }
    }

    fn reserved(&self) -> io::Result<Option<Reserved>> {
        match self.module {
            McsModuleVersion::Current => Ok(Some(RESERVED)),
            McsModuleVersion::Older => Ok(None),
            McsModuleVersion::Bare => Err(io::Error::from_raw_os_error(19)),
        }
    }

    fn map_memory(&self, address: usize, size: usize) -> io::Result<Mapped> {
        self.note(format!("map {address:#x}"));
        if (address as u64) < RESERVED.address {
            return Err(io::Error::from_raw_os_error(22));
        }
        self.mapped(address, size)
    }

    fn start_cpu(&self, cpu: u32, entry: u64) -> io::Result<()> {
        self.note(format!("start {cpu} at {entry:#x}"));
        let (to_client, to_host) = (self.to_client.try_clone()?, self.to_host.try_clone()?);
        let (memory, end) = (self.mapped(BASE, SIZE)?, Arc::clone(&self.end));
        std::thread::spawn(move || client(&memory, &to_client, &to_host, &end));
        Ok(())
    }

    fn notify(&self, _: u32) -> io::Result<()> {
        rustix::io::write(&self.to_client, &1u64.to_ne_bytes())?;
        Ok(())
    }

    fn wait_for_client(&self, timeout: Duration) -> io::Result<bool> {
        let ready = readable(&self.to_host, timeout)?;
        if ready {
            rustix::io::read(&self.to_host, &mut [0; 8])?;
        }
        Ok(ready)
    }
}

/// The client OS: its own driver's settings are in no table, but in its code.
fn client(memory: &Mapped, interrupt: &OwnedFd, to_host: &OwnedFd, end: &AtomicBool) {
    assert_eq!(memory.load_u8(BASE), Ok(7), "the host is ready before the client starts");
    let rings =
        [0x7002_C000, 0x7002_8000].map(|address| VringResource { address, align: 4, num: 16, notify: 0 });
    let rings = rings.map(|ring| ring.layout().unwrap());
    let mut echo = RpmsgEcho::<_, PAYLOAD>::new(RpmsgRemote::new(memory, rings).unwrap());
    while !end.load(Ordering::Relaxed) {
        let progress = echo.poll();
        if progress.kick_transmit || progress.kick_receive {
            rustix::io::write(to_host, &1u64.to_ne_bytes()).unwrap();
        }
        if progress.step.is_waiting()
            && !echo.request_kick().unwrap()
            && readable(interrupt, Duration::from_millis(10)).unwrap()
        {
            rustix::io::read(interrupt, &mut [0; 8]).unwrap();
        }
    }
}

fn setup(image: &Path) -> McsClientSetup<'_> {
    McsClientSetup { cpu: 3, image, address: LOADED, entry: None, shared: BASE }
}

/// Connects as `open` does, and returns the notices.
fn connected(
    board: Rc<Fake>,
    setup: &McsClientSetup,
    service: RpmsgService,
    ms: u64,
) -> (Result<Rings>, Vec<String>) {
    let notices = std::cell::RefCell::new(Vec::new());
    let notice = |text: &str| notices.borrow_mut().push(text.to_owned());
    let rings = connect(board, setup, service, Duration::from_millis(ms), &notice);
    (rings, notices.into_inner())
}

#[test]
fn an_older_module_does_not_say_what_is_reserved_and_serves() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a client").unwrap();
    let board = |module| {
        let mut board = Fake::new();
        board.module = module;
        Rc::new(board)
    };
    let (rings, notices) =
        connected(board(McsModuleVersion::Older), &setup(file.path()), RpmsgService::Pty, 20_000);
    let (mut rings, mut room) = (rings.unwrap(), [0; PAYLOAD]);
    rings.send_message(b"to and fro").unwrap();
    assert_eq!(rings.receive_message(&mut room, monotonic_ns() + 20 * SECOND).unwrap(), 10);
    assert!(notices.len() == 1 && notices[0].contains("--mcs-shared"), "{notices:?}");
    // latscope checks here what the module does not.
    let elsewhere = McsClientSetup { entry: Some(0x1000), ..setup(file.path()) };
    let refused =
        connected(board(McsModuleVersion::Older), &elsewhere, RpmsgService::Pty, 100).0.err().unwrap();
    assert!(refused.to_string().contains("outside of its image"), "{refused}");
    let bare = connected(board(McsModuleVersion::Bare), &setup(file.path()), RpmsgService::Pty, 100)
        .0
        .err()
        .unwrap();
    assert!(bare.to_string().contains("no memory is reserved"), "{bare}");
}

#[test]
fn all_rows_of_a_run_go_to_the_client_that_was_started_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a client").unwrap();
    let board = Rc::new(Fake::new());
    let mut rings = connected(board.clone(), &setup(file.path()), RpmsgService::Ping, 20_000).0.unwrap();
    rings.set_follow_rule(|order| Ok((order.service.endpoint_name(), 0)), Duration::from_secs(20));
    let params = latscope_core::plan::Params::new();
    for service in [RpmsgService::Pty, RpmsgService::Bandwidth, RpmsgService::Pty] {
        let journal = |_: &_| Ok(());
        let (journal, notice) = (&journal, &|_: &str| ());
        let patience = Duration::MAX;
        let order = ChannelRequest { params: &params, service, cpus: &[], journal, patience, notice };
        rings.turn_to(&order).unwrap();
        let mut room = [0; PAYLOAD];
        rings.send_message(b"here").unwrap();
        assert_eq!(rings.receive_message(&mut room, monotonic_ns() + 20 * SECOND).unwrap(), 4);
        assert_eq!(&room[..4], b"here");
    }
    let starts = board.calls().iter().filter(|call| call.starts_with("start")).count();
    assert_eq!((starts, rings.misaddressed(), rings.faults()), (1, 0, 0));
}

#[test]
fn a_client_is_loaded_started_and_answers() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a client").unwrap();
    let board = Rc::new(Fake::new());
    // An earlier run.
    let shared = board.mapped(BASE, SIZE).unwrap();
    shared.write_bytes(BASE, &vec![0xA5; SIZE]).unwrap();
    let mut rings = connected(board.clone(), &setup(file.path()), RpmsgService::Pty, 20_000).0.unwrap();
    assert_eq!(board.calls(), ["is 3 off", "map 0x7a000000", "map 0x70000000", "start 3 at 0x7a000000"]);
    let mut bytes = [0; 9];
    board.mapped(LOADED, 4096).unwrap().read_bytes(LOADED, &mut bytes).unwrap();
    assert_eq!(&bytes, b"a client\0");
    let (until, mut room) = (monotonic_ns() + 20 * SECOND, [0; PAYLOAD]);
    for index in 0..1000 {
        let message = vec![index as u8; 1 + index % PAYLOAD];
        rings.send_message(&message).unwrap();
        let length = rings.receive_message(&mut room, until).unwrap();
        assert_eq!(&room[..length], message, "{index}");
    }
    assert_eq!((rings.faults(), rings.limit()), (0, PAYLOAD));
    // Descriptors have physical addresses.
    assert_eq!(shared.load_u32(0x7002_C000), Ok(0x7000_4000));
    assert_eq!(shared.load_u32(0x7002_8000), Ok(0x7000_6000));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_started() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a client").unwrap();
    let refused = |board: Fake, setup: McsClientSetup, word: &str| {
        let board = Rc::new(board);
        let error = connected(board.clone(), &setup, RpmsgService::Ping, 1000).0.err().unwrap();
        let line = format!("{error:#}");
        assert!(line.contains(word) && !line.contains('\n'), "{line}");
        assert!(!board.calls().iter().any(|call| call.contains("start")), "{:?}", board.calls());
    };
    let path = file.path();
    let mut on = Fake::new();
    on.off = false;
    refused(on, setup(path), "not off");
    refused(Fake::new(), setup(Path::new("/nonexistent")), "cannot read");
    refused(Fake::new(), McsClientSetup { address: 0x6000_0000, ..setup(path) }, "cannot be mapped");
    refused(Fake::new(), McsClientSetup { shared: 0x6000_0000, ..setup(path) }, "cannot be mapped");
    refused(Fake::new(), McsClientSetup { address: BASE + 0x1000, ..setup(path) }, "over the shared memory");
    refused(Fake::new(), McsClientSetup { shared: 0x7ffe_0000, ..setup(path) }, "reserved is");
}

#[test]
fn a_client_that_does_not_answer_is_a_timeout() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a client").unwrap();
    let board = Fake::new();
    board.end.store(true, Ordering::Relaxed);
    let error = connected(Rc::new(board), &setup(file.path()), RpmsgService::Ping, 100).0.err().unwrap();
    assert!(error.to_string().contains("rpc-ping"), "{error}");
}
