//! A monitor and a guest's driver, both in this process, as QEMU and Linux behave.

use super::memory::Guest;
use super::wire::VhostMemoryRegion;
use super::{bind, serve_monitor};
use anyhow::Result;
use latscope_os::signal::SignalFd;
use latscope_os::window::MemoryWindow;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::link::Received;
use latscope_rpmsg::messages::{PingWordSize, ShortPing};
use latscope_rpmsg::ring::VirtqueueLayout;
use latscope_rpmsg::window::RpmsgBufferPool;
use latscope_rpmsg::{RpmsgHost, RpmsgLink};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Address at which the guest's memory begins, for the guest and for the monitor.
const BASE: u64 = 0x4000_0000;
const USER: u64 = 0x7f00_0000_0000;
const SIZE: u64 = 1 << 20;
const ENTRIES: u32 = 16;

/// Offsets of descriptors, available and used ring, of both rings.
const RINGS: [[u64; 3]; 2] = [[0, 0x1000, 0x2000], [0x4000, 0x5000, 0x6000]];

struct VhostUserFrontend {
    socket: UnixStream,
    kicks: [OwnedFd; 2],
    calls: [OwnedFd; 2],
    memory: MemoryWindow,
    device: JoinHandle<Result<String>>,
}

impl VhostUserFrontend {
    fn new() -> VhostUserFrontend {
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let device = spawn(move || serve_monitor(theirs, &SignalFd::block(&[]).unwrap()));
        let new = || eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let memory = MemoryWindow::create_zeroed(SIZE as usize).unwrap();
        VhostUserFrontend { socket, kicks: [new(), new()], calls: [new(), new()], memory, device }
    }

    fn send(&self, request: u32, flags: u32, payload: &[u8], descriptors: &[BorrowedFd]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(descriptors.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
        let header = [request, flags, payload.len() as u32].map(u32::to_ne_bytes);
        let bytes = [header.as_flattened(), payload].concat();
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL).unwrap();
    }

    /// The reply of so many bytes.
    fn reply<const N: usize>(&mut self, request: u32) -> [u8; N] {
        let mut header = [[0; 4]; 3];
        self.socket.read_exact(header.as_flattened_mut()).unwrap();
        assert_eq!(header.map(u32::from_ne_bytes), [request, 5, N as u32]);
        let mut payload = [0; N];
        self.socket.read_exact(&mut payload).unwrap();
        payload
    }

    fn asked(&mut self, request: u32) -> u64 {
        self.send(request, 1, &[], &[]);
        u64::from_ne_bytes(self.reply(request))
    }

    /// Sends a request, and expects it to be confirmed.
    fn tell(&mut self, request: u32, payload: &[u8], descriptors: &[BorrowedFd]) {
        self.send(request, 1 | 8, payload, descriptors);
        assert_eq!(self.reply(request), [0; 8], "request {request}");
    }

    /// Sends all that QEMU sends until the driver is ready.
    fn begin(&mut self) {
        self.begin_with(0x1_4000_0001);
    }

    /// Begins like `begin`, for a guest whose driver accepted these features.
    fn begin_with(&mut self, accepted: u64) {
        assert_eq!(self.asked(1), 0x1_4000_0001);
        assert_eq!((self.asked(15), self.asked(17)), (9, 2));
        self.tell(2, &accepted.to_ne_bytes(), &[]);
        let memory = self.memory.descriptor().try_clone_to_owned().unwrap();
        self.tell(5, &longs(&[1, BASE, SIZE, USER, 0]), &[memory.as_fd()]);
        for (index, [descriptors, available, used]) in (0..).zip(RINGS) {
            self.tell(8, &state(index, ENTRIES), &[]);
            self.tell(10, &state(index, 0), &[]);
            let [descriptors, available, used] = [descriptors, available, used].map(|at| USER + at);
            self.tell(9, &longs(&[index.into(), descriptors, used, available, 0]), &[]);
            let at = index as usize;
            let (kick, call) = (self.kicks[at].try_clone().unwrap(), self.calls[at].try_clone().unwrap());
            self.tell(12, &u64::from(index).to_ne_bytes(), &[kick.as_fd()]);
            self.tell(13, &u64::from(index).to_ne_bytes(), &[call.as_fd()]);
            self.tell(18, &state(index, 1), &[]);
        }
    }

    /// The guest's driver, which kicks when it is ready.
    fn driver(&self) -> RpmsgHost<Guest, 16> {
        let region = VhostMemoryRegion { guest: BASE, size: SIZE, user: USER, offset: 0 };
        let guest =
            Guest::map_regions(vec![(region, self.memory.descriptor().try_clone_to_owned().unwrap())])
                .unwrap();
        let rings = RINGS.map(|parts| {
            let [descriptors, available, used] = parts.map(|at| (BASE + at) as usize);
            VirtqueueLayout::parts(descriptors, available, used, ENTRIES).unwrap()
        });
        let pool = |at: u64| RpmsgBufferPool { at: (BASE + at) as usize, buffer: 512, count: 16 };
        let host = RpmsgHost::new(guest, rings, [pool(0x1_0000), pool(0x2_0000)]).unwrap();
        self.kick(0);
        host
    }

    fn kick(&self, ring: usize) {
        rustix::io::write(&self.kicks[ring], &1u64.to_ne_bytes()).unwrap();
    }

    /// Returns the outcome of the device after the end of the monitor.
    fn ended(self) -> Result<String> {
        drop(self.socket);
        self.device.join().unwrap()
    }
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
}

fn state(index: u32, number: u32) -> Vec<u8> {
    [index, number].map(u32::to_ne_bytes).concat()
}

fn receive(host: &mut RpmsgHost<Guest, 16>, into: &mut [u8]) -> Received {
    for _ in 0..20_000 {
        if let Some(received) = host.receive_message(into).unwrap() {
            return received;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("no message");
}

#[test]
fn a_guest_hears_of_all_services_and_its_pings_come_back() {
    let mut monitor = VhostUserFrontend::new();
    monitor.begin();
    let mut host = monitor.driver();
    let (mut endpoints, mut room) = (Endpoints::<8>::default(), [0; 496]);
    for _ in RpmsgService::LINUX {
        let received = receive(&mut host, &mut room);
        endpoints.handle_message(&received.header, &room[..received.length]).unwrap().unwrap();
    }
    for service in RpmsgService::LINUX {
        let ours = endpoints.open_endpoint(service.endpoint_name()).unwrap();
        assert_eq!(endpoints.peer(ours), Some(service.address()), "{}", service.endpoint_name());
        endpoints.close_endpoint(ours);
    }
    let mut ping = [0; ShortPing::SIZE];
    let ping = ShortPing { number: 7 }.write_ping(PingWordSize::Eight, &mut ping).to_vec();
    for service in [RpmsgService::Ping, RpmsgService::Tty, RpmsgService::Raw] {
        if host.send_message(0x500, service.address(), &ping).unwrap() {
            monitor.kick(1);
        }
        let received = receive(&mut host, &mut room);
        assert_eq!((received.header.destination, received.header.source), (0x500, service.address()));
        assert_eq!(&room[..received.length], ping);
    }
    // Both rings stop, and tell where they are: eight names and three replies; three messages.
    for (ring, position) in [(0, 11), (1, 3)] {
        monitor.send(11, 1, &state(ring, 0), &[]);
        assert_eq!(monitor.reply::<8>(11).as_slice(), state(ring, position), "ring {ring}");
    }
    assert_eq!(monitor.ended().unwrap(), "3 replies, 0 faults of the guest");
}

#[test]
fn a_guest_that_did_not_accept_the_name_service_hears_no_names_and_is_answered() {
    let mut monitor = VhostUserFrontend::new();
    monitor.begin_with(0x1_4000_0000);
    let mut host = monitor.driver();
    if host.send_message(0x500, RpmsgService::Raw.address(), b"knock").unwrap() {
        monitor.kick(1);
    }
    let received = receive(&mut host, &mut [0; 496]);
    assert_eq!((received.header.destination, received.header.source), (0x500, RpmsgService::Raw.address()));
    assert_eq!(host.receive_message(&mut [0; 496]), Ok(None));
    assert_eq!(monitor.ended().unwrap(), "1 replies, 0 faults of the guest");
}

#[test]
fn a_guest_that_writes_garbage_costs_faults_and_nothing_else() {
    let mut monitor = VhostUserFrontend::new();
    monitor.begin();
    drop(monitor.driver());
    for round in 0..200u64 {
        let noise: Vec<u8> = (0..0x8000u64).map(|at| (at.wrapping_mul(round * 2 + 1) >> 5) as u8).collect();
        latscope_rpmsg::RpmsgMemory::write_bytes(&monitor.memory, 0, &noise).unwrap();
        monitor.kick(round as usize % 2);
        // It still listens to its monitor.
        assert_eq!(monitor.asked(17), 2);
    }
    let told = monitor.ended().unwrap();
    assert!(!told.contains(" 0 faults"), "{told}");
}

#[test]
fn invalid_requests_of_a_monitor_are_reported_in_one_line() {
    let wrong: [(u32, u32, Vec<u8>, &str); 9] = [
        (1, 2, vec![], "not vhost-user"),
        (1, 1 | 4, vec![], "not vhost-user"),
        (99, 1, vec![], "request 99"),
        (2, 1, u64::MAX.to_ne_bytes().to_vec(), "not offered"),
        (2, 1, vec![0; 3], "request 2 of 3 bytes"),
        (8, 1, state(2, 16), "no ring 2"),
        (5, 1, longs(&[1, BASE, SIZE, USER, 0]), "0 descriptors"),
        (5, 1, longs(&[1 << 31]), "request 5"),
        (5, 1, vec![0; 2000], "2000 bytes"),
    ];
    for (request, flags, payload, says) in wrong {
        let monitor = VhostUserFrontend::new();
        monitor.send(request, flags, &payload, &[]);
        let error = format!("{:#}", monitor.ended().unwrap_err());
        assert!(error.contains(says) && !error.contains('\n'), "{request}: {error}");
    }
}

#[test]
fn a_path_that_is_taken_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    std::fs::write(&path, "a file").unwrap();
    assert!(bind(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    std::fs::remove_file(&path).unwrap();
    let first = bind(&path).unwrap();
    assert!(bind(&path).is_err(), "a process listens there");
    drop(first);
    assert!(!path.exists());
    // What a process that was killed left behind.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(bind(&path).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_file_that_another_user_chose_is_not_removed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    std::fs::create_dir(at("roots")).unwrap();
    std::fs::write(at("roots/sock"), "precious").unwrap();
    std::fs::create_dir(at("inner")).unwrap();
    let bound = bind(&at("inner/sock")).unwrap();
    std::fs::rename(at("inner"), at("inner2")).unwrap();
    std::os::unix::fs::symlink("roots", at("inner")).unwrap();
    drop(bound);
    assert_eq!(std::fs::read_to_string(at("roots/sock")).unwrap(), "precious");
    assert!(!at("inner2/sock").exists());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(at("inner"), Some(65534), None).unwrap();
        let error = format!("{:#}", bind(&at("inner/new")).unwrap_err());
        assert!(error.contains("a link of another user"), "{error}");
        assert!(!at("roots/new").exists());
    }
}

#[test]
fn a_monitor_that_stops_in_the_middle_of_a_message_is_not_waited_for() {
    let (mut monitor, device) = UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut monitor, &[1, 0, 0]).unwrap();
    let served = spawn(move || serve_monitor(device, &SignalFd::block(&[10])?));
    assert!(served.join().unwrap().is_err());
    drop(monitor);
}
