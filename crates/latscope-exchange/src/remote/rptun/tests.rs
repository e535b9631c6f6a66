//! Peer of the tests in the window of NuttX's slave, laid out like the snapshot of 2026-08.

use super::header::{MASTER_COMMAND, MASTER_COUNTER, READY, RESET, SLAVE_COMMAND, SLAVE_COUNTER, TABLE};
use super::*;
use crate::remote::{ChannelFailure, PAYLOAD};
use latscope_rpmsg::echo::{RpmsgEcho, RpmsgService};
use latscope_rpmsg::header::NAME_SERVICE;
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::table::{ResourceTable, VringResource};
use latscope_rpmsg::{RpmsgLink, RpmsgMemory as _, RpmsgRemote};
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

const LONG: Duration = Duration::from_secs(30);
const ANYWHERE: u32 = VringResource::ANYWHERE;

/// Words at offsets of the table, as the slave writes them: two devices for random numbers, then that of RPMsg.
const RESOURCES: [(usize, &[u32]); 7] = [
    (0, &[1, 6, 0, 0, 0x28, 0x58, 0x1_0090, 0x1_00C0, 0x2_00F8, 0x2_017C]),
    (0x28, &[3, 4, ANYWHERE, 0, 0, 0, 0x100, ANYWHERE, 8, 8, ANYWHERE, 0]),
    (0x58, &[0, 0xA8, ANYWHERE, 0x1_0000, 0, 0]),
    (0x1_0090, &[3, 4, ANYWHERE, 0, 0, 0, 0x100, ANYWHERE, 8, 8, ANYWHERE, 0]),
    (0x1_00C0, &[0, 0x1_0110, ANYWHERE, 0x1_0000, 0, 0]),
    (
        0x2_00F8,
        &[
            3, 7, ANYWHERE, 0xF, 0, 0x40, 0x200, ANYWHERE, 8, 8, ANYWHERE, 0, ANYWHERE, 8, 8, ANYWHERE, 0,
            0x600, 0x600,
        ],
    ),
    (0x2_017C, &[0, 0x2_01CC, ANYWHERE, 0x1_0000, 0, 0]),
];

/// The slave's machine, in a file.
struct Slave {
    directory: tempfile::TempDir,
    memory: Memory,
    over: AtomicBool,
    boots: AtomicU32,
}

impl Slave {
    fn new() -> Slave {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create_new(directory.path().join("window")).unwrap();
        file.set_len(4 << 20).unwrap();
        let memory =
            Memory::map_from(files::open_existing(&directory.path().join("window")).unwrap(), BASE as usize);
        Slave { directory, memory: memory.unwrap(), over: AtomicBool::new(false), boots: AtomicU32::new(0) }
    }

    fn drive(&self, name: RpmsgEndpointName, time: Duration) -> Result<Rings> {
        connect_slave(&self.directory.path().join("window"), name, 0, time, &|_| ())
    }

    fn load(&self, at: usize) -> u32 {
        self.memory.load_u32(BASE as usize + at).unwrap()
    }

    fn store(&self, at: usize, word: u32) {
        self.memory.store_u32(BASE as usize + at, word).unwrap();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Boots again and again, and serves a master each time, until it is over.
    fn run(&self, serve: impl Fn(&Slave, RpmsgRemote<Memory>)) {
        while !self.is_over() {
            self.boot();
            if let Some(remote) = self.wait_for_driver() {
                serve(self, remote);
            }
            while !self.is_over() && !self.is_to_reset() {
                thread::yield_now();
            }
        }
    }

    fn boot(&self) {
        self.boots.fetch_add(1, Ordering::Relaxed);
        (0..0x4_0000).step_by(4).for_each(|at| self.store(at, 0));
        for (start, words) in RESOURCES {
            for (index, word) in words.iter().enumerate() {
                self.store(TABLE + start + 4 * index, *word);
            }
        }
        self.memory.fence();
        self.store(SLAVE_COMMAND, READY);
    }

    fn is_to_reset(&self) -> bool {
        self.load(MASTER_COMMAND) == RESET
    }

    fn wait_for_driver(&self) -> Option<RpmsgRemote<Memory>> {
        let table = ResourceTable::parse_at(&self.memory, BASE as usize + TABLE).unwrap();
        while !table.is_ready(&self.memory).unwrap() {
            if self.is_over() || self.is_to_reset() {
                return None;
            }
            thread::yield_now();
        }
        assert_eq!(
            (self.load(0), self.load(SLAVE_COMMAND)),
            (BASE, 0),
            "the master's address, and the command taken"
        );
        let table = ResourceTable::parse_at(&self.memory, BASE as usize + TABLE).unwrap();
        let addresses = table.rings.map(|ring| ring.address + BASE);
        let table = table.place_rings(&self.memory, addresses, BASE).unwrap();
        let [to_host, from_host] = table.rings.map(|ring| ring.layout().unwrap());
        assert!(
            to_host.end_offset() <= BASE as usize + 0x2_01CC + 24 + 0x1_0000
                && to_host.end_offset() <= from_host.end_offset()
        );
        let window = RpmsgWindow { table, pools: RpmsgWindow::OPENAMP.pools, size: 0 };
        window.remote(self.memory.clone()).unwrap()
    }

    /// Serves as the responder of this program.
    fn echo(&self, remote: RpmsgRemote<Memory>) {
        let mut echo = RpmsgEcho::<_, PAYLOAD>::new(remote);
        while !self.is_over() && !self.is_to_reset() {
            echo.poll();
            self.store(SLAVE_COUNTER, self.load(SLAVE_COUNTER).wrapping_add(1));
        }
    }

    /// Serves as NuttX's own endpoint.
    fn ping(&self, mut remote: RpmsgRemote<Memory>) {
        let name = Announcement { name: ping::NAME, address: 0x400, destroyed: false };
        remote.send_message(0x400, NAME_SERVICE, &name.encode_bytes()).unwrap();
        let mut room = [0; PAYLOAD];
        while !self.is_over() && !self.is_to_reset() {
            let Ok(Some(message)) = remote.receive_message(&mut room) else { continue };
            let request = &mut room[..message.length];
            if message.header.destination != 0x400 || request[..4] != ping::REQUEST.to_le_bytes() {
                continue;
            }
            request[..4].copy_from_slice(&ping::RESPONSE.to_le_bytes());
            remote.send_message(0x400, message.header.source, request).unwrap();
        }
    }
}

/// Runs `test` beside a slave that serves so.
fn beside(serve: impl Fn(&Slave, RpmsgRemote<Memory>) + Send, test: impl FnOnce(&Slave)) {
    struct SlaveStopGuard<'a>(&'a Slave);
    impl Drop for SlaveStopGuard<'_> {
        fn drop(&mut self) {
            self.0.over.store(true, Ordering::Relaxed);
        }
    }
    let slave = Slave::new();
    thread::scope(|scope| {
        scope.spawn(|| slave.run(serve));
        let _over = SlaveStopGuard(&slave);
        test(&slave);
    });
}

fn echo(channel: &mut dyn RemoteChannel, messages: usize) {
    let until = monotonic_ns() + LONG.as_nanos() as u64;
    let mut room = [0; PAYLOAD];
    for index in 0..messages {
        let message = vec![index as u8; 1 + index % channel.limit()];
        channel.send_message(&message).unwrap();
        let length = channel.receive_message(&mut room, until).unwrap();
        assert_eq!(&room[..length], message, "{index}");
    }
}

#[test]
fn every_master_after_the_first_resets_the_slave() {
    beside(Slave::echo, |slave| {
        for boots in 1..=3 {
            let mut rings = slave.drive(RpmsgService::Pty.endpoint_name(), LONG).unwrap();
            echo(&mut rings, 600);
            assert_eq!((rings.faults(), rings.end_description(), rings.limit()), (0, None, PAYLOAD));
            assert_eq!(slave.boots.load(Ordering::Relaxed), boots);
            assert!(slave.load(MASTER_COUNTER) > 0, "it was kicked");
        }
    });
}

#[test]
fn the_echo_of_nuttx_is_asked_by_its_own_header() {
    beside(Slave::ping, |slave| {
        let mut channel = ping::Framed::new(slave.drive(ping::NAME, LONG).unwrap());
        assert_eq!(channel.limit(), PAYLOAD - ping::HEADER);
        echo(&mut channel, 600);
        assert!(channel.faults() == 0 && channel.end_description().is_none());
    });
}

#[test]
fn a_slave_that_does_not_come_and_one_that_panics_are_reported() {
    let slave = Slave::new();
    let absent = slave.drive(ping::NAME, Duration::from_millis(20)).err().unwrap().to_string();
    assert!(absent.starts_with("no slave of rptun is ready in"), "{absent}");
    // One with another master, which does not obey.
    slave.boot();
    slave.store(0, 0x1000);
    assert!(slave.drive(ping::NAME, Duration::from_millis(20)).is_err());
    assert_eq!((slave.load(MASTER_COMMAND), slave.load(MASTER_COUNTER)), (RESET, 1));
    beside(Slave::echo, |slave| {
        let mut rings = slave.drive(RpmsgService::Pty.endpoint_name(), LONG).unwrap();
        slave.store(SLAVE_COMMAND, 2 << 16);
        assert!(rings.end_description().unwrap().contains("panic"));
        assert!(matches!(rings.receive_message(&mut [0; PAYLOAD], 1), Err(ChannelFailure::Timeout)));
    });
}

#[test]
fn tables_that_lie_are_refused() {
    // What one word of the table is changed to.
    let changes = [
        (TABLE, 2),                          // another version
        (TABLE + 4, u32::MAX),               // resources without end
        (TABLE + 16 + 16, 0xFFFF_FFF0),      // a device outside
        (TABLE + 16 + 20, 0xFFFF_FFF0),      // memory outside
        (TABLE + 0x2_017C, 1),               // none
        (TABLE + 0x2_0180, 0x3F_FFFF),       // memory that ends outside
        (TABLE + 0x2_0188, 128),             // too little for the rings
        (TABLE + 0x2_0188, 0x300),           // and for the buffers
        (TABLE + 0x2_00F8 + 28 + 8, 3),      // a ring of three
        (TABLE + 0x2_00F8 + 28 + 8, 0x8000), // a ring larger than its memory
    ];
    for (at, word) in changes {
        let slave = Slave::new();
        slave.boot();
        slave.store(at, word);
        assert!(slave.drive(ping::NAME, Duration::from_millis(200)).is_err(), "{at:#x}");
        assert_eq!(slave.load(0), 0, "{at:#x}: it was told that there is a master");
    }
}

#[test]
fn a_file_that_is_no_window_is_refused_at_once_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let text: Vec<u8> = (0..1 << 16).map(|at: u32| b"a user's own text\n"[at as usize % 18]).collect();
    let mut table = text.clone();
    table[TABLE..TABLE + 8].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
    for (content, wanted) in [
        (Vec::new(), "has 0 bytes, too few"),
        (b"six by".to_vec(), "has 6 bytes, too few"),
        (text, "has no header of rptun"),
        // Only its first words are a table's: it is waited for, and not written to.
        (table, "no slave of rptun is ready"),
    ] {
        std::fs::write(&path, &content).unwrap();
        let error = connect_slave(&path, ping::NAME, 0, Duration::from_millis(20), &|_| ()).err().unwrap();
        let line = format!("{error:#}");
        assert!(line.contains(wanted) && !line.contains('\n'), "{line}");
        assert!(std::fs::read(&path).unwrap() == content, "{wanted}");
    }
}
