//! All bytes of a window, as OpenAMP's generic machine on Linux leaves them, in both roles.
//!
//! The bytes are written out here, apart from the code that makes them: from a dump of two OpenAMP
//! processes, and from the layouts in virtio 1.2, section 2.7, and in Linux's `remoteproc.h` and `rpmsg_ns.h`.
#![cfg(not(loom))]
#![forbid(unsafe_code)]

use latscope_rpmsg::endpoints::Endpoints;
use latscope_rpmsg::memory::AtomicCellMemory;
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{RpmsgHost, RpmsgLink, RpmsgMemory, RpmsgWindow};
use std::sync::atomic::AtomicU16;

/// What is expected of a whole window: zeros but for what is put.
struct Dump(Vec<u8>);

impl Dump {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// A memory of these bytes.
    fn memory(&self) -> AtomicCellMemory<Vec<AtomicU16>> {
        let memory = AtomicCellMemory((0..self.0.len() / 2).map(|_| AtomicU16::new(0)).collect());
        memory.write_bytes(0, &self.0).unwrap();
        memory
    }

    /// Compares, and tells the first place that differs.
    fn expect(&self, memory: &impl RpmsgMemory, when: &str) {
        let mut bytes = vec![0; memory.size()];
        memory.read_bytes(0, &mut bytes).unwrap();
        let differs = bytes.iter().zip(&self.0).position(|(found, expected)| found != expected);
        if let Some(at) = differs {
            let line = at / 16 * 16;
            panic!(
                "{when}, {at:#x}:\n{:02x?}, not\n{:02x?}",
                &bytes[line..line + 16],
                &self.0[line..line + 16]
            );
        }
    }
}

/// 512 bytes at `address` for the device to write.
fn receive_descriptor(address: u32) -> [u8; 16] {
    let [a, b, c, d] = address.to_le_bytes();
    [a, b, c, d, 0, 0, 0, 0, 0x00, 0x02, 0, 0, 2, 0, 0, 0]
}

/// The window when the driver is ready: 256 buffers offered, none sent.
fn ready(status: u8) -> Dump {
    let mut dump = Dump(vec![0; 0x80000]);
    // Version 1, one resource at 0x14.
    dump.put(0x00, &[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0]);
    // A virtio device, number 7; it announces names, which the driver accepted; no configuration; two rings.
    dump.put(0x14, &[3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    dump.put(0x2C, &[status, 2, 0, 0]);
    dump.put(0x30, &[0, 0x40, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    dump.put(0x44, &[0, 0x80, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    for (index, entry) in (0_u32..).zip(0..256_usize) {
        dump.put(0x4000 + 16 * entry, &receive_descriptor(0x1_0000 + 512 * index));
        dump.put(0x5004 + 2 * entry, &[entry as u8, 0]);
    }
    dump.put(0x5000, &[0, 0, 0, 1]);
    dump.put(0x9000, &[1, 0, 0, 0]);
    dump
}

/// The message by which OpenAMP's demonstration announces itself, its header included.
const ANNOUNCEMENT: &[u8; 56] =
    b"\x00\x04\0\0\x35\0\0\0\0\0\0\0\x28\0\0\0rpmsg-openamp-demo-channel\0\0\0\0\0\0\x00\x04\0\0\0\0\0\0";

/// 48 bytes from 0x400 to 0x400, as the demonstration's first ping.
fn ping() -> Vec<u8> {
    let header = [0x00, 4, 0, 0, 0x00, 4, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0];
    [&header[..], &[0xA5; 48]].concat()
}

/// State after the remote announced itself, and the announcement's buffer was offered again. A buffer comes back with
/// the length of its descriptor.
fn announced(dump: &mut Dump) {
    dump.put(0x1_0000, ANNOUNCEMENT);
    dump.put(0x6000, &[0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
}

/// The buffer is the 257th that is offered, in the place of the first.
fn offered_again(dump: &mut Dump, index: u16) {
    dump.put(0x5002, &index.to_le_bytes());
}

/// The host's first message: in the first buffer of the second half of the pool.
fn sent(dump: &mut Dump) {
    dump.put(0x3_0000, &ping());
    dump.put(0x8000, &[0, 0, 3, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0]);
    dump.put(0x9002, &[1, 0, 0, 0]);
}

/// The remote took the message and sent it back, in the second buffer to the host.
fn echoed(dump: &mut Dump) {
    dump.put(0xA000, &[0, 0, 1, 0, 0, 0, 0, 0, 64, 0, 0, 0]);
    dump.put(0x1_0200, &ping());
    dump.put(0x6002, &[2, 0]);
    dump.put(0x600C, &[1, 0, 0, 0, 0, 2, 0, 0]);
}

/// We are the driver. The device's bytes are put there as OpenAMP would.
#[test]
fn the_hosts_bytes_are_openamps() {
    let window = RpmsgWindow::OPENAMP;
    let memory = Dump(vec![0; 0x80000]).memory();
    window.reset(&memory).unwrap();
    let mut host: RpmsgHost<_, 256> = window.host(&memory).unwrap();
    // Linux sets three bits, OpenAMP only the last of them, and both look only at that.
    let mut dump = ready(7);
    dump.expect(&memory, "ready");

    announced(&mut dump);
    let memory = &memory;
    let device =
        |at: usize, length: usize, dump: &Dump| memory.write_bytes(at, &dump.0[at..at + length]).unwrap();
    device(0x1_0000, 512, &dump);
    device(0x6000, 0x806, &dump);
    let mut endpoints = Endpoints::<1>::default();
    let mut payload = [0; 496];
    let received = host.receive_message(&mut payload).unwrap().unwrap();
    assert!(received.kick, "OpenAMP is kicked for each buffer");
    endpoints.handle_message(&received.header, &payload[..received.length]).unwrap().unwrap();
    let found: Vec<_> = endpoints.theirs().map(|(name, at)| (name.to_string(), at)).collect();
    assert_eq!(found, [("rpmsg-openamp-demo-channel".to_owned(), 0x400)]);
    offered_again(&mut dump, 257);
    dump.expect(memory, "announced");

    assert_eq!(host.send_message(0x400, 0x400, &[0xA5; 48]), Ok(true));
    sent(&mut dump);
    dump.expect(memory, "sent");

    echoed(&mut dump);
    device(0x1_0200, 512, &dump);
    device(0x6000, 0x806, &dump);
    device(0xA000, 0x806, &dump);
    let received = host.receive_message(&mut payload).unwrap().unwrap();
    assert_eq!((received.header.source, &payload[..received.length]), (0x400, &[0xA5; 48][..]));
    offered_again(&mut dump, 258);
    dump.expect(memory, "received");
}

/// We are the device. The driver's bytes are put there as OpenAMP would.
#[test]
fn the_remotes_bytes_are_openamps() {
    let mut dump = ready(4);
    let memory = dump.memory();
    let table = ResourceTable::parse(&memory).unwrap();
    assert_eq!(table, RpmsgWindow::OPENAMP.table);
    let window = RpmsgWindow { table, ..RpmsgWindow::OPENAMP };
    let mut remote = window.remote(&memory).unwrap().unwrap();
    dump.expect(&memory, "begun");

    assert_eq!(remote.send_message(0x400, 53, &ANNOUNCEMENT[16..]), Ok(true));
    announced(&mut dump);
    dump.expect(&memory, "announced");

    offered_again(&mut dump, 257);
    sent(&mut dump);
    memory.write_bytes(0, &dump.0).unwrap();
    let mut payload = [0; 496];
    let received = remote.receive_message(&mut payload).unwrap().unwrap();
    assert!(!received.kick, "OpenAMP wants no interrupt for a buffer that it sent");
    let (source, destination) = (received.header.destination, received.header.source);
    assert_eq!(remote.send_message(source, destination, &payload[..received.length]), Ok(true));
    echoed(&mut dump);
    dump.expect(&memory, "echoed");
}
