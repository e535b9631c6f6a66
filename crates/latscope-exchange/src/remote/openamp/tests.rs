//! Both roles against each other, and against states that must not occur.

use super::device::OpenampDevice;
use super::*;
use crate::notify::Notifier;
use crate::remote::rings::PAYLOAD;
use crate::remote::{ChannelFailure, RemoteAbsent};
use latscope_rpmsg::echo::{RpmsgEcho, RpmsgService};
use latscope_rpmsg::header::NAME_SERVICE;
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::table::{BufferSizes, status};
use latscope_rpmsg::{RpmsgLink, RpmsgRemote};
use std::cell::RefCell;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

const SECOND: u64 = 1_000_000_000;
const LONG: Duration = Duration::from_secs(30);

/// Memory and socket of a test, in a directory of their own.
struct OpenampDirectory {
    directory: TempDir,
    spin_ns: u64,
}

impl OpenampDirectory {
    fn new() -> OpenampDirectory {
        OpenampDirectory { directory: tempfile::tempdir().unwrap(), spin_ns: 0 }
    }

    fn memory(&self) -> PathBuf {
        self.directory.path().join("openamp.shm")
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("openamp.event.0")
    }

    fn device(&self) -> Result<OpenampDevice> {
        OpenampDevice::new(&self.memory(), &self.socket(), 0)
    }

    fn drive(&self, name: RpmsgEndpointName) -> Result<Rings> {
        drive(&self.memory(), &self.socket(), name, self.spin_ns, LONG, &|_| ())
    }

    fn names(&self) -> usize {
        std::fs::read_dir(self.directory.path()).unwrap().count()
    }
}

fn echo(rings: &mut Rings, messages: usize) {
    let until = monotonic_ns() + 20 * SECOND;
    let mut room = [0; PAYLOAD];
    for index in 0..messages {
        let message = vec![index as u8; 1 + index % PAYLOAD];
        rings.send_message(&message).unwrap();
        let length = rings.receive_message(&mut room, until).unwrap();
        assert_eq!(&room[..length], message, "{index}");
    }
}

#[test]
fn one_driver_after_the_other_is_answered_and_nothing_stays_behind() {
    for wait in WAITS {
        one_after_the_other(&OpenampDirectory { spin_ns: spin_ns(wait), ..OpenampDirectory::new() });
    }
}

fn one_after_the_other(room: &OpenampDirectory) {
    let device = room.device().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| (0..3).try_for_each(|_| device.serve_one()));
        for name in [RpmsgService::Pty.endpoint_name(), RpmsgService::Bandwidth.endpoint_name(), DEMO] {
            let mut rings = room.drive(name).unwrap();
            echo(&mut rings, 600);
            assert_eq!((rings.faults(), rings.end_description()), (0, None));
        }
        server.join().unwrap().unwrap();
    });
    drop(device);
    assert_eq!(room.names(), 0);
}

#[test]
fn all_rows_of_a_run_go_to_a_device_that_serves_one_driver() {
    let room = OpenampDirectory::new();
    let device = room.device().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| device.serve_one());
        let mut rings = room.drive(DEMO).unwrap();
        assert!(!rings.is_reusable());
        rings.set_follow_rule(requested_endpoint, LONG);
        assert!(rings.is_reusable());
        echo(&mut rings, 100);
        // A reply of an earlier row is none of the next.
        rings.send_message(b"late").unwrap();
        for (name, wait) in [("", "socket"), ("rpmsg-openamp-demo-channel", "spin-then-park"), ("", "socket")]
        {
            let params = [("wait", wait), ("endpoint", name)];
            let params = params.map(|(name, value)| (name.to_owned(), value.into())).into();
            let journal = |_: &_| Ok(());
            let service = RpmsgService::Bandwidth;
            let (journal, notice) = (&journal, &|_: &str| ());
            let order =
                ChannelRequest { params: &params, service, cpus: &[], journal, patience: LONG, notice };
            thread::sleep(Duration::from_millis(50));
            rings.turn_to(&order).unwrap();
            echo(&mut rings, 100);
            assert_eq!((rings.faults(), rings.misaddressed(), rings.end_description()), (0, 0, None));
        }
        drop(rings);
        server.join().unwrap().unwrap();
    });
}

#[test]
fn a_remote_that_says_that_it_ends_is_named() {
    let room = OpenampDirectory::new();
    let device = room.device().unwrap();
    let memory = files::existing(&room.memory()).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| device.serve_one());
        let mut rings = room.drive(DEMO).unwrap();
        assert_eq!(rings.end_description(), None);
        let ready = rings.table.status(&memory).unwrap();
        rings.table.set_status(&memory, ready | status::NEEDS_RESET).unwrap();
        assert!(rings.end_description().unwrap().contains("NEEDS_RESET"));
        rings.table.set_status(&memory, ready).unwrap();
        let address = rings.endpoints.theirs().find(|(name, _)| *name == DEMO).unwrap().1;
        rings.endpoints.apply_announcement(&Announcement { name: DEMO, address, destroyed: true });
        let end = rings.end_description().unwrap();
        assert!(end.contains("destroyed its channel rpmsg-openamp-demo-channel"), "{end}");
        drop(rings);
        server.join().unwrap().unwrap();
    });
}

#[test]
fn a_driver_may_be_there_first() {
    let room = OpenampDirectory::new();
    thread::scope(|scope| {
        let driver = scope.spawn(|| echo(&mut room.drive(DEMO).unwrap(), 10));
        thread::sleep(Duration::from_millis(50));
        room.device().unwrap().serve_one().unwrap();
        driver.join().unwrap();
    });
}

#[test]
fn what_an_earlier_run_left_is_taken_over() {
    let room = OpenampDirectory::new();
    // A killed pair: rings in the middle of something, a ready driver, a socket without a listener.
    drop(UnixListener::bind(room.socket()).unwrap());
    let (memory, name) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
    std::mem::forget(name);
    memory.write_bytes(0, &vec![0xA5; LAYOUT.size]).unwrap();
    LAYOUT.table.write_table(&memory).unwrap();
    LAYOUT.table.set_status(&memory, status::DRIVER_OK).unwrap();
    let device = room.device().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| device.serve_one());
        echo(&mut room.drive(DEMO).unwrap(), 10);
        server.join().unwrap().unwrap();
    });
}

#[test]
fn a_device_that_ends_before_it_answers_is_reported() {
    let room = OpenampDirectory::new();
    let (memory, _own) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
    LAYOUT.reset(&memory).unwrap();
    let listener = UnixListener::bind(room.socket()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| drop(listener.accept().unwrap()));
        let line = room.drive(DEMO).err().unwrap().to_string();
        assert!(line.contains("closed the socket") || line.contains("pipe"), "{line}");
    });
}

/// Serves the first driver until it is to end.
fn serve_until(room: &OpenampDirectory, end: &AtomicBool) {
    let (memory, _own) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
    LAYOUT.reset(&memory).unwrap();
    let (listener, _name) = socket::listen(&room.socket()).unwrap();
    let _stream = listener.accept().unwrap();
    let remote = loop {
        if let Some(remote) = LAYOUT.remote(&memory).unwrap() {
            break remote;
        }
    };
    let mut echo = RpmsgEcho::<_, PAYLOAD>::new(remote);
    while !end.load(Ordering::Relaxed) {
        echo.poll();
    }
}

#[test]
fn a_device_that_ends_later_is_reported() {
    let (room, end) = (OpenampDirectory::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| serve_until(&room, &end));
        let mut rings = room.drive(RpmsgService::Pty.endpoint_name()).unwrap();
        echo(&mut rings, 10);
        end.store(true, Ordering::Relaxed);
        let failure = rings.receive_message(&mut [0; PAYLOAD], monotonic_ns() + 20 * SECOND).unwrap_err();
        assert!(matches!(failure, ChannelFailure::Io(_)), "{failure}");
        assert!(rings.end_description().unwrap().contains("closed the socket"));
    });
}

/// State that a device saw when its driver was ready: the features that the driver accepted, and the status.
type DriverHandshakeState = (u32, u8);

/// A device that behaves as OpenAMP's: it waits for `DRIVER_OK`, then looks at the features that were offered and
/// accepted, and announces its echo only if the name service is in both.
fn serve_as_openamp(
    room: &OpenampDirectory,
    offered: u32,
    config: &[u8],
    end: &AtomicBool,
) -> DriverHandshakeState {
    let (memory, _own) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
    LAYOUT.reset(&memory).unwrap();
    memory.store_u32(0x20, offered).unwrap();
    memory.store_u32(0x28, config.len() as u32).unwrap();
    memory.write_bytes(0x58, config).unwrap();
    let (listener, _name) = socket::listen(&room.socket()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let mut kicks = OpenampKickSocket::new(stream).unwrap();
    while memory.load_u8(0x2C).unwrap() & status::DRIVER_OK == 0 {
        thread::yield_now();
    }
    let seen = (memory.load_u32(0x24).unwrap(), memory.load_u8(0x2C).unwrap());
    let mut remote = RpmsgRemote::new(&memory, LAYOUT.ring_layouts().unwrap()).unwrap();
    if memory.load_u32(0x20).unwrap() & seen.0 & 1 != 0 {
        let name = Announcement { name: DEMO, address: 0x400, destroyed: false };
        remote.send_message(0x400, NAME_SERVICE, &name.encode_bytes()).unwrap();
        kicks.notify().unwrap();
    }
    let mut payload = [0; 8192];
    while !end.load(Ordering::Relaxed) {
        let Ok(Some(message)) = remote.receive_message(&mut payload) else { continue };
        let (source, destination) = (message.header.source, message.header.destination);
        if destination == 0x400 {
            remote.send_message(0x400, source, &payload[..message.length]).unwrap();
            kicks.notify().unwrap();
        }
    }
    seen
}

#[test]
fn a_device_that_announces_only_what_was_accepted_is_pinged() {
    // NuttX offers bits 1 to 3 for things of its own, with another configuration.
    let nuttx = [1536_u32.to_le_bytes(), 1536_u32.to_le_bytes()].concat();
    let sizes = [1, 11, 0, 0x00, 0x10, 0, 0, 0x00, 0x08, 0, 0];
    for (offered, config, accepted, limit) in [
        (0b0001, &[][..], 0b01, PAYLOAD),
        (0b1111, &nuttx, 0b01, PAYLOAD),
        (0b0011, &[], 0b01, PAYLOAD),
        (0b0011, &sizes, 0b11, 2048 - 16),
    ] {
        let (room, end) = (OpenampDirectory::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            let device = scope.spawn(|| serve_as_openamp(&room, offered, config, &end));
            let rings = room.drive(DEMO);
            end.store(rings.is_err(), Ordering::Relaxed);
            let mut rings = rings.unwrap();
            echo(&mut rings, 600);
            assert_eq!((rings.faults(), rings.limit()), (0, limit));
            let long = vec![7; limit];
            rings.send_message(&long).unwrap();
            assert_eq!(
                rings.receive_message(&mut vec![0; 8192], monotonic_ns() + 20 * SECOND).unwrap(),
                limit
            );
            end.store(true, Ordering::Relaxed);
            assert_eq!(device.join().unwrap(), (accepted, 7));
        });
    }
}

#[test]
fn a_device_without_the_name_service_is_refused_at_once() {
    let room = OpenampDirectory::new();
    let (memory, _own) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
    LAYOUT.reset(&memory).unwrap();
    memory.store_u32(0x20, 0b10).unwrap();
    let _listener = UnixListener::bind(room.socket()).unwrap();
    let line = room.drive(DEMO).err().unwrap().to_string();
    assert!(line.contains("feature bit 0"), "{line}");
    assert_eq!(memory.load_u8(0x2C), Ok(0), "no driver was there");
}

#[test]
fn a_driver_that_leaves_resets_the_device() {
    let room = OpenampDirectory::new();
    let device = room.device().unwrap();
    let memory = files::existing(&room.memory()).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| device.serve_one());
        let rings = room.drive(DEMO).unwrap();
        assert_eq!(memory.load_u8(0x2C), Ok(7));
        drop(rings);
        assert_eq!(memory.load_u8(0x2C), Ok(0));
        server.join().unwrap().unwrap();
    });
}

#[test]
fn a_second_device_and_a_second_driver_are_refused() {
    let room = OpenampDirectory::new();
    let device = room.device().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| device.serve_one());
        let mut rings = room.drive(DEMO).unwrap();
        let line = room.device().unwrap_err().to_string();
        assert!(line.contains("another process uses"), "{line}");
        let short = Duration::from_millis(30);
        let line = drive(&room.memory(), &room.socket(), DEMO, 0, short, &|_| ()).err().unwrap().to_string();
        assert!(line.contains("no process listens"), "{line}");
        echo(&mut rings, 10);
        drop(rings);
        server.join().unwrap().unwrap();
    });
}

#[test]
fn files_that_are_not_ours_are_refused_and_stay() {
    let room = OpenampDirectory::new();
    let refused = |room: &OpenampDirectory, word: &str| {
        let line = room.device().unwrap_err().to_string();
        assert!(line.contains(word) && !line.contains('\n'), "{line}");
    };
    std::fs::write(room.memory(), [0; 4096]).unwrap();
    refused(&room, "4096 bytes");
    std::fs::remove_file(room.memory()).unwrap();
    std::os::unix::fs::symlink("/dev/null", room.memory()).unwrap();
    refused(&room, "cannot open");
    refused(&room, "it is a link, which is not followed: give the path of the file itself");
    std::fs::remove_file(room.memory()).unwrap();
    std::fs::create_dir(room.memory()).unwrap();
    refused(&room, "cannot open");
    std::fs::remove_dir(room.memory()).unwrap();
    // What is at the path of the socket is no socket.
    std::fs::write(room.socket(), "mine").unwrap();
    let line = room.device().unwrap().serve_one().unwrap_err().to_string();
    assert!(line.contains("no socket"), "{line}");
    assert_eq!(std::fs::read(room.socket()).unwrap(), b"mine");
    assert_eq!(room.names(), 1);
}

#[test]
fn a_file_of_the_user_is_neither_overwritten_nor_removed() {
    let room = OpenampDirectory::new();
    let ours = {
        let (memory, _name) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
        LAYOUT.reset(&memory).unwrap();
        std::fs::read(room.memory()).unwrap()
    };
    assert_eq!(room.names(), 0);
    let text = vec![b'x'; LAYOUT.size];
    let longer = [ours.as_slice(), b"x"].concat();
    let mut nearly = vec![0; LAYOUT.size];
    nearly[LAYOUT.size - 1] = 1;
    for (content, wanted) in [
        (text, "other content"),
        (longer, "bytes and not"),
        (nearly, "other content"),
        (vec![], "has 0 bytes"),
    ] {
        std::fs::write(room.memory(), &content).unwrap();
        let line = room.device().unwrap_err().to_string();
        assert!(line.contains(wanted) && line.contains("another --openamp-shm"), "{line}");
        assert!(std::fs::read(room.memory()).unwrap() == content, "{line}");
    }
    // Prepared zeros are used, and stay. Memory of an earlier run goes.
    for (content, left) in [(vec![0; LAYOUT.size], 1), (ours, 0)] {
        std::fs::write(room.memory(), content).unwrap();
        drop(room.device().unwrap());
        assert_eq!(room.names(), left);
    }
}

#[test]
fn a_socket_that_is_none_and_a_service_that_is_not_there_are_named() {
    let room = OpenampDirectory::new();
    std::fs::write(room.socket(), "mine").unwrap();
    let line = room.drive(DEMO).err().unwrap().to_string();
    assert!(line.contains("is no socket: give another --openamp-socket"), "{line}");
    std::fs::remove_file(room.socket()).unwrap();
    let device = room.device().unwrap();
    let told = RefCell::new(Vec::new());
    let waiting = |text: &str| told.borrow_mut().push(text.to_owned());
    thread::scope(|scope| {
        let server = scope.spawn(|| device.serve_one());
        let (name, time) = (RpmsgEndpointName::new("nosuch").unwrap(), Duration::from_millis(1500));
        let error = loop {
            match drive(&room.memory(), &room.socket(), name, 0, time, &waiting).err().unwrap() {
                error if error.is::<RemoteAbsent>() => {}
                error => break error.to_string(),
            }
        };
        assert!(error.contains("did not announce nosuch: it announced "), "{error}");
        assert!(error.contains("rpmsg-openamp-demo-channel"), "{error}");
        server.join().unwrap().unwrap();
    });
    let told = told.into_inner();
    assert!(told.last().unwrap().contains("waiting for nosuch, at most "), "{told:?}");
}

#[test]
fn a_table_that_is_not_openamps_is_refused() {
    let room = OpenampDirectory::new();
    let (memory, _own) = files::create_or_reuse(&room.memory(), &LAYOUT).unwrap();
    let _listener = UnixListener::bind(room.socket()).unwrap();
    let refused = |word: &str| {
        let line = format!("{:#}", room.drive(DEMO).err().unwrap());
        assert!(line.contains(word), "{line}");
    };
    refused("no resource table");
    LAYOUT
        .table
        .with_buffers(BufferSizes { to_host: 0x10_0000, to_remote: 512 })
        .write_table(&memory)
        .unwrap();
    refused("too few for buffers");
    LAYOUT.reset(&memory).unwrap();
    // The second ring would be where the buffers are.
    memory.store_u32(0x44, 0x1_0000).unwrap();
    refused("not that of OpenAMP");
    LAYOUT.reset(&memory).unwrap();
    LAYOUT.table.set_status(&memory, status::DRIVER_OK).unwrap();
    refused("another driver");
}

#[test]
fn a_long_wait_for_a_server_is_reported_with_its_end_and_its_remedy() {
    let room = OpenampDirectory::new();
    let told = RefCell::new(Vec::new());
    let waiting = |text: &str| told.borrow_mut().push(text.to_owned());
    let time = Duration::from_millis(1200);
    let error = drive(&room.memory(), &room.socket(), DEMO, 0, time, &waiting).err().unwrap();
    assert!(error.is::<RemoteAbsent>());
    let serve = format!("`latscope remote serve --openamp --openamp-socket {}`", room.socket().display());
    let told = told.into_inner();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("at most 0 s more") && told[0].contains(&serve), "{told:?}");
    assert!(error.to_string().contains(&serve), "{error}");
}
