//! Both halves over one memory, and either against a memory that was tampered with.

use super::*;
use crate::memory::AtomicCellMemory;
use std::sync::atomic::AtomicU16;

type RingCellMemory = AtomicCellMemory<Vec<AtomicU16>>;

fn room(bytes: usize) -> RingCellMemory {
    AtomicCellMemory((0..bytes / 2).map(|_| AtomicU16::new(0)).collect())
}

/// Makes a ring of `num` entries at offset 0, and the memory that holds it.
fn ring(num: u32) -> (RingCellMemory, VirtqueueLayout) {
    let layout = VirtqueueLayout::contiguous(0, num, 64).unwrap();
    (room(layout.end_offset().next_multiple_of(64) + 4096), layout)
}

fn halves(
    memory: &RingCellMemory,
    layout: VirtqueueLayout,
    direction: VirtqueueDirection,
) -> (VirtqueueDriver<&RingCellMemory, 256>, VirtqueueDevice<&RingCellMemory>) {
    let driver = VirtqueueDriver::new(memory, layout, direction).unwrap();
    (driver, VirtqueueDevice::new(memory, layout, direction).unwrap())
}

#[test]
fn the_parts_are_where_linux_puts_them() {
    let layout = VirtqueueLayout::contiguous(0x4000, 256, 0x1000).unwrap();
    assert_eq!((layout.descriptors(), layout.available(), layout.used()), (0x4000, 0x5000, 0x6000));
    assert_eq!(layout.end_offset(), 0x4000 + 0x2806);
    assert_eq!(layout.spans(), [(0x4000, 0x1000), (0x5000, 0x206), (0x6000, 0x806)]);
    let small = VirtqueueLayout::contiguous(0, 2, 4).unwrap();
    assert_eq!((small.available(), small.used(), small.end_offset()), (32, 44, 66));
}

#[test]
fn impossible_rings_are_refused() {
    let shapes: [(usize, u32, u32); 8] = [
        (0, 0, 4096),
        (0, 3, 4096),
        (0, 65536, 4096),
        (0, 256, 0),
        (0, 256, 3),
        (0, 256, 2),
        (8, 256, 8),
        (64, 2, 4096),
    ];
    for (base, num, align) in shapes {
        assert_eq!(VirtqueueLayout::contiguous(base, num, align), Err(Fault::Ring), "{base} {num} {align}");
    }
    assert_eq!(VirtqueueLayout::contiguous(usize::MAX & !4095, 256, 4096), Err(Fault::Ring));
    assert!(VirtqueueLayout::contiguous(0, VirtqueueLayout::LARGEST, 4096).is_ok());
    assert_eq!(VirtqueueLayout::parts(0, 33, 64, 2), Err(Fault::Ring));
    assert_eq!(VirtqueueLayout::parts(0, 32, 62, 2), Err(Fault::Ring));
}

#[test]
fn a_ring_must_be_in_the_window_and_in_the_drivers_table() {
    let memory = room(64);
    let layout = VirtqueueLayout::contiguous(0, 2, 4).unwrap();
    let driver =
        |layout| VirtqueueDriver::<_, 2>::new(&memory, layout, VirtqueueDirection::ToDevice).map(|_| ());
    assert_eq!(driver(layout), Err(Fault::OutOfWindow));
    assert_eq!(driver(VirtqueueLayout::contiguous(0, 4, 4).unwrap()), Err(Fault::Ring));
    assert!(VirtqueueDevice::new(&memory, layout, VirtqueueDirection::ToDevice).is_err());
}

#[test]
fn an_offer_is_these_bytes() {
    let (memory, layout) = ring(4);
    let (mut driver, _) = halves(&memory, layout, VirtqueueDirection::ToDriver);
    assert_eq!(driver.offer(WindowBuffer { at: 0x200, length: 512 }), Ok(true));
    let mut descriptor = [0; 16];
    memory.read_bytes(layout.descriptors(), &mut descriptor).unwrap();
    assert_eq!(descriptor, [0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0]);
    let mut available = [0; 6];
    memory.read_bytes(layout.available(), &mut available).unwrap();
    assert_eq!(available, [0, 0, 1, 0, 0, 0]);
}

#[test]
fn a_return_is_these_bytes() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDriver);
    driver.offer(WindowBuffer { at: 0x200, length: 512 }).unwrap();
    let taken = device.take_buffer().unwrap().unwrap();
    device.give_back(taken, 56).unwrap();
    let mut used = [0; 12];
    memory.read_bytes(layout.used(), &mut used).unwrap();
    assert_eq!(used, [0, 0, 1, 0, 0, 0, 0, 0, 56, 0, 0, 0]);
}

#[test]
fn buffers_go_round_when_the_index_wraps() {
    for num in [2, 4, 32, 256] {
        let (memory, layout) = ring(num);
        let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
        let (mut offered, mut returned) = (0_u32, 0_u32);
        // More than 65536, and never the same number in flight.
        while returned < 70_000 {
            for _ in 0..1 + offered % num {
                let buffer = WindowBuffer { at: offered as usize % 64, length: offered % 64 };
                offered += u32::from(driver.offer(buffer).unwrap());
            }
            while let Some(taken) = device.take_buffer().unwrap() {
                let WindowBuffer { at, length } = taken.buffer();
                assert_eq!((at, length), (returned as usize % 64, returned % 64), "ring of {num}");
                device.give_back(taken, length).unwrap();
                let back = driver.reclaim().unwrap().unwrap();
                assert_eq!((back.buffer.length, back.written), (length, length));
                returned += 1;
            }
        }
        assert_eq!((offered, driver.in_flight()), (returned, 0));
    }
}

#[test]
fn a_full_ring_takes_no_more() {
    let (memory, layout) = ring(2);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    let buffer = WindowBuffer { at: 0, length: 1 };
    assert_eq!([0; 3].map(|_| driver.offer(buffer).unwrap()), [true, true, false]);
    let taken = device.take_buffer().unwrap().unwrap();
    assert_eq!(driver.reclaim(), Ok(None));
    device.give_back(taken, 0).unwrap();
    assert_eq!(driver.offer(buffer), Ok(false), "it is not ours before it is reclaimed");
    assert!(driver.reclaim().unwrap().is_some());
    assert_eq!(driver.offer(buffer), Ok(true));
}

#[test]
fn out_of_order_returns_are_told_apart() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    for length in [1, 2] {
        driver.offer(WindowBuffer { at: 0, length }).unwrap();
    }
    let [first, second] = [0; 2].map(|_| device.take_buffer().unwrap().unwrap());
    device.give_back(second, 0).unwrap();
    device.give_back(first, 0).unwrap();
    let lengths = [0; 2].map(|_| driver.reclaim().unwrap().unwrap().buffer.length);
    assert_eq!(lengths, [2, 1]);
}

#[test]
fn a_bad_descriptor_costs_one_entry() {
    // Words of the descriptor: address, length, flags; and what is found.
    let cases = [
        (0, 64, 1, Fault::Chained),
        (0, 64, 3, Fault::Chained),
        (0, 64, 4, Fault::Indirect),
        (0, 64, 2, Fault::Direction),
        (u64::MAX, 2, 0, Fault::OutOfWindow),
        (0, u32::MAX, 0, Fault::OutOfWindow),
        (1 << 32, 0, 0, Fault::OutOfWindow),
    ];
    for (address, length, flags, fault) in cases {
        let (memory, layout) = ring(4);
        let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
        driver.offer(WindowBuffer { at: 0, length: 64 }).unwrap();
        driver.offer(WindowBuffer { at: 0, length: 65 }).unwrap();
        let at = layout.descriptor_offset(0);
        memory.store_u64(at, address).unwrap();
        memory.store_u32(at + 8, length).unwrap();
        memory.store_u16(at + 12, flags).unwrap();
        assert_eq!(device.take_buffer(), Err(fault));
        assert_eq!(device.take_buffer().unwrap().unwrap().buffer().length, 65);
        assert_eq!(device.take_buffer(), Ok(None));
    }
}

#[test]
fn a_descriptor_that_goes_on_in_itself_is_refused() {
    let (memory, layout) = ring(2);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    driver.offer(WindowBuffer { at: 0, length: 8 }).unwrap();
    memory.store_u16(layout.descriptor_offset(0) + 12, NEXT).unwrap();
    memory.store_u16(layout.descriptor_offset(0) + 14, 0).unwrap();
    assert_eq!(device.take_buffer(), Err(Fault::Chained));
    assert_eq!(device.take_buffer(), Ok(None));
}

#[test]
fn a_descriptor_that_does_not_exist_is_refused() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    driver.offer(WindowBuffer { at: 0, length: 8 }).unwrap();
    memory.store_u16(layout.available_entry(0), 4).unwrap();
    assert_eq!(device.take_buffer(), Err(Fault::Descriptor));
}

#[test]
fn an_index_that_jumps_stops_the_ring() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    for ahead in [5, 0x8000, 0xFFFF] {
        memory.store_u16(layout.available() + INDEX, ahead).unwrap();
        assert_eq!(device.take_buffer(), Err(Fault::Index));
        assert_eq!(device.request_kick(), Err(Fault::Index));
        memory.store_u16(layout.used() + INDEX, ahead).unwrap();
        assert_eq!(driver.reclaim(), Err(Fault::Index));
        assert_eq!(driver.request_interrupt(), Err(Fault::Index));
        assert_eq!(device.take_buffer(), Err(Fault::Reset), "our own index is not what we wrote");
        memory.store_u16(layout.used() + INDEX, 0).unwrap();
    }
}

#[test]
fn a_buffer_comes_back_only_once() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    driver.offer(WindowBuffer { at: 0, length: 8 }).unwrap();
    driver.offer(WindowBuffer { at: 8, length: 8 }).unwrap();
    let taken = device.take_buffer().unwrap().unwrap();
    device.give_back(taken, 0).unwrap();
    // The device repeats the entry, and makes up one.
    memory.store_u16(layout.used() + INDEX, 2).unwrap();
    assert!(driver.reclaim().unwrap().is_some());
    memory.store_u32(layout.used_entry(1), 0).unwrap();
    assert_eq!(driver.reclaim(), Err(Fault::NotInFlight));
    memory.store_u16(layout.used() + INDEX, 3).unwrap();
    memory.store_u32(layout.used_entry(2), 0x1_0001).unwrap();
    assert_eq!(driver.reclaim(), Err(Fault::NotInFlight));
    assert_eq!(driver.in_flight(), 1);
}

#[test]
fn what_the_device_does_to_descriptors_does_not_reach_the_driver() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDriver);
    let buffer = WindowBuffer { at: 8, length: 8 };
    driver.offer(buffer).unwrap();
    let taken = device.take_buffer().unwrap().unwrap();
    device.give_back(taken, u32::MAX).unwrap();
    memory.clear(layout.descriptors(), 64).unwrap();
    assert_eq!(driver.reclaim(), Ok(Some(Reclaimed { buffer, written: u32::MAX })));
}

#[test]
fn kicks_are_wanted_unless_muted() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    assert_eq!((driver.wants_kick(), device.wants_kick()), (Ok(true), Ok(true)));
    device.suppress_kicks().unwrap();
    assert_eq!((driver.wants_kick(), device.wants_kick()), (Ok(false), Ok(true)));
    driver.suppress_interrupts().unwrap();
    assert_eq!(device.wants_kick(), Ok(false));
    assert_eq!(memory.load_u16(layout.available()), Ok(1), "the word that Linux writes");
    driver.offer(WindowBuffer { at: 0, length: 8 }).unwrap();
    assert_eq!(device.request_kick(), Ok(true), "it came while nobody listened");
    let taken = device.take_buffer().unwrap().unwrap();
    assert_eq!((device.request_kick(), driver.request_interrupt()), (Ok(false), Ok(false)));
    device.give_back(taken, 0).unwrap();
    assert_eq!(driver.request_interrupt(), Ok(true));
}

#[test]
fn a_ring_of_an_earlier_run_is_noticed_and_cleared() {
    let (memory, layout) = ring(4);
    let (mut driver, mut device) = halves(&memory, layout, VirtqueueDirection::ToDevice);
    assert_eq!(layout.is_fresh(&memory), Ok(true));
    driver.offer(WindowBuffer { at: 0, length: 8 }).unwrap();
    let taken = device.take_buffer().unwrap().unwrap();
    device.give_back(taken, 0).unwrap();
    assert_eq!(layout.is_fresh(&memory), Ok(false));
    let again = |position| {
        VirtqueueDevice::resume(&memory, layout, VirtqueueDirection::ToDevice, position).map(|_| ())
    };
    assert_eq!((again(0), again(device.position())), (Err(Fault::Stale), Ok(())));
    let mut driver = VirtqueueDriver::<_, 4>::new(&memory, layout, VirtqueueDirection::ToDevice).unwrap();
    assert_eq!((layout.is_fresh(&memory), again(0)), (Ok(true), Ok(())));
    // The old device sees that the driver began anew,
    assert_eq!(device.take_buffer(), Err(Fault::Reset));
    // even when the driver's index has just come to where the old one was.
    driver.offer(WindowBuffer { at: 0, length: 8 }).unwrap();
    assert_eq!((device.take_buffer(), device.check_reset()), (Ok(None), Err(Fault::Reset)));
}
