//! Every parser. What one accepts is written as it was, apart from what it says it ignores.
#![no_main]

use latscope_rpmsg::header::RpmsgHeader;
use latscope_rpmsg::memory::AtomicCellMemory;
use latscope_rpmsg::messages::{
    LongPing, LongPingAssembler, LongPingDivision, PingWordSize, ShortPing, block,
};
use latscope_rpmsg::name_service::Announcement;
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{RpmsgMemory, RpmsgWindow};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicU16;

fn header(data: &[u8]) {
    let Some(bytes) = data.first_chunk() else { return };
    let header = RpmsgHeader::parse(bytes);
    assert_eq!(RpmsgHeader::parse(&header.encode_bytes()), header);
    assert_eq!(header.encode_bytes()[12..], bytes[12..]);
}

fn announcement(data: &[u8]) {
    let Ok(announcement) = Announcement::parse(data) else { return };
    assert_eq!(Announcement::parse(&announcement.encode_bytes()), Ok(announcement));
    assert!(announcement.name.to_string().is_ascii());
}

fn table(data: &[u8]) {
    let memory = AtomicCellMemory((0..256).map(|_| AtomicU16::new(0)).collect::<Vec<_>>());
    memory.write_bytes(0, &data[..data.len().min(memory.size())]).unwrap();
    let Ok(table) = ResourceTable::parse(&memory) else { return };
    table.status(&memory).unwrap();
    let Ok(window) = RpmsgWindow::of_table(table, 0x100, memory.size()) else { return };
    for ring in table.rings.iter().filter_map(|ring| ring.layout().ok()) {
        assert!(ring.descriptors() < ring.available() && ring.available() < ring.used());
    }
    let _ = window.host::<_, 256>(&memory);
    let _ = window.remote(&memory);
}

fn messages(data: &[u8]) {
    for word in PingWordSize::ALL {
        if let Ok(ping) = ShortPing::parse(word, data) {
            let mut room = [0; ShortPing::SIZE];
            assert_eq!(ping.write_ping(word, &mut room)[2 * word.bytes()..], data[2 * word.bytes()..]);
        }
        for form in [LongPingDivision::Exact, LongPingDivision::Legacy] {
            let ping = LongPing { form, word };
            if let Ok(index) = ping.parse_packet(data) {
                assert_eq!(ping.write_packet(index, &mut [0; LongPing::PACKET]), data);
                assert!(LongPing::is_packet(data));
            }
            let mut assembler = LongPingAssembler::new(ping);
            for part in data.chunks(LongPing::PACKET) {
                assembler.receive_packet(part);
            }
            assert!(assembler.missing_packets() as usize <= ping.packets());
        }
    }
    if let Ok(sequence) = block::verify_block(data) {
        let mut room = vec![0; data.len()];
        block::write_block(sequence, &mut room);
        assert_eq!(room, data);
    }
    let _ = block::Receipt::parse(data);
}

fuzz_target!(|data: &[u8]| {
    header(data);
    announcement(data);
    table(data);
    messages(data);
});
