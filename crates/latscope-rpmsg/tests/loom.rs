//! The orderings of a ring, in every interleaving and with every stale value
//! that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p latscope-rpmsg --test loom --release`
#![cfg(loom)]
#![forbid(unsafe_code)]

use latscope_rpmsg::ring::{
    VirtqueueDevice, VirtqueueDirection, VirtqueueDriver, VirtqueueLayout, WindowBuffer,
};
use latscope_rpmsg::{Fault, RpmsgMemory};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU16, Ordering, fence};
use loom::thread;

/// The payload's place, behind a ring of two entries.
const PAYLOAD: usize = 68;

/// What is left out, so that a test shows what it is for.
#[derive(Clone, Copy, PartialEq)]
enum Without {
    Nothing,
    Fence,
    Release,
}

#[derive(Clone)]
struct Cells {
    cells: Arc<[AtomicU16; 36]>,
    without: Without,
}

impl Cells {
    fn new(without: Without) -> Cells {
        Cells { cells: Arc::new(std::array::from_fn(|_| AtomicU16::new(0))), without }
    }

    fn cell(&self, at: usize) -> Result<&AtomicU16, Fault> {
        self.cells.get(at / 2).ok_or(Fault::OutOfWindow)
    }
}

impl RpmsgMemory for Cells {
    fn size(&self) -> usize {
        2 * self.cells.len()
    }
    fn load_u8(&self, at: usize) -> Result<u8, Fault> {
        Ok(self.load_u16(at)?.to_le_bytes()[at % 2])
    }
    /// No other thread stores to the same cell where these tests use it.
    fn store_u8(&self, at: usize, value: u8) -> Result<(), Fault> {
        let mut bytes = self.load_u16(at)?.to_le_bytes();
        bytes[at % 2] = value;
        self.store_u16(at, u16::from_le_bytes(bytes))
    }
    fn load_u16(&self, at: usize) -> Result<u16, Fault> {
        Ok(self.cell(at)?.load(Ordering::Relaxed))
    }
    fn store_u16(&self, at: usize, value: u16) -> Result<(), Fault> {
        self.cell(at)?.store(value, Ordering::Relaxed);
        Ok(())
    }
    fn load_index(&self, at: usize) -> Result<u16, Fault> {
        Ok(self.cell(at)?.load(Ordering::Acquire))
    }
    fn store_index(&self, at: usize, value: u16) -> Result<(), Fault> {
        let order = if self.without == Without::Release { Ordering::Relaxed } else { Ordering::Release };
        self.cell(at)?.store(value, order);
        Ok(())
    }
    fn load_u32(&self, at: usize) -> Result<u32, Fault> {
        Ok(u32::from(self.load_u16(at)?) | u32::from(self.load_u16(at + 2)?) << 16)
    }
    fn store_u32(&self, at: usize, value: u32) -> Result<(), Fault> {
        self.store_u16(at, value as u16)?;
        self.store_u16(at + 2, (value >> 16) as u16)
    }
    fn read_bytes(&self, at: usize, into: &mut [u8]) -> Result<(), Fault> {
        for (at, byte) in (at..).zip(into) {
            *byte = self.load_u8(at)?;
        }
        Ok(())
    }
    fn write_bytes(&self, at: usize, from: &[u8]) -> Result<(), Fault> {
        (at..).zip(from).try_for_each(|(at, byte)| self.store_u8(at, *byte))
    }
    fn fence(&self) {
        if self.without != Without::Fence {
            fence(Ordering::SeqCst);
        }
    }
}

/// Both halves of a ring of two entries.
fn halves(memory: &Cells) -> (VirtqueueDriver<Cells, 2>, VirtqueueDevice<Cells>) {
    let layout = VirtqueueLayout::contiguous(0, 2, 4).unwrap();
    let driver = VirtqueueDriver::new(memory.clone(), layout, VirtqueueDirection::ToDevice).unwrap();
    (driver, VirtqueueDevice::new(memory.clone(), layout, VirtqueueDirection::ToDevice).unwrap())
}

const BUFFER: WindowBuffer = WindowBuffer { at: PAYLOAD, length: 2 };

/// The driver offers what it wrote. Whoever takes it sees that, and who
/// reclaims it sees what the device made of it.
fn a_buffer_goes_there_and_back(without: Without) {
    loom::model(move || {
        let memory = Cells::new(without);
        let (mut driver, mut device) = halves(&memory);
        let there = memory.clone();
        let remote = thread::spawn(move || {
            let Some(taken) = device.take_buffer().unwrap() else { return };
            assert_eq!(taken.buffer(), BUFFER);
            assert_eq!(there.load_u16(PAYLOAD), Ok(0xAAAA));
            there.store_u16(PAYLOAD, 0xBBBB).unwrap();
            device.give_back(taken, 2).unwrap();
        });
        memory.store_u16(PAYLOAD, 0xAAAA).unwrap();
        assert!(driver.offer(BUFFER).unwrap());
        if let Some(reclaimed) = driver.reclaim().unwrap() {
            assert_eq!((reclaimed.buffer, reclaimed.written), (BUFFER, 2));
            assert_eq!(memory.load_u16(PAYLOAD), Ok(0xBBBB));
        }
        remote.join().unwrap();
    });
}

/// The device goes to sleep while the driver offers: it sees the buffer, or is kicked.
fn the_device_is_not_left_asleep(without: Without) {
    loom::model(move || {
        let memory = Cells::new(without);
        let (mut driver, mut device) = halves(&memory);
        device.suppress_kicks().unwrap();
        let remote = thread::spawn(move || device.request_kick().unwrap());
        driver.offer(BUFFER).unwrap();
        let kicked = driver.wants_kick().unwrap();
        let seen = remote.join().unwrap();
        assert!(seen || kicked, "a kick was lost");
    });
}

/// The driver goes to sleep while the device gives back: it sees the buffer, or is kicked.
fn the_driver_is_not_left_asleep(without: Without) {
    loom::model(move || {
        let memory = Cells::new(without);
        let (mut driver, mut device) = halves(&memory);
        driver.suppress_interrupts().unwrap();
        driver.offer(BUFFER).unwrap();
        let remote = thread::spawn(move || {
            let taken = device.take_buffer().unwrap().unwrap();
            device.give_back(taken, 0).unwrap();
            device.wants_kick().unwrap()
        });
        let seen = driver.request_interrupt().unwrap();
        let kicked = remote.join().unwrap();
        assert!(seen || kicked, "a kick was lost");
    });
}

#[test]
fn what_is_in_a_buffer_comes_with_it() {
    a_buffer_goes_there_and_back(Without::Nothing);
}

#[test]
fn no_kick_is_lost() {
    the_device_is_not_left_asleep(Without::Nothing);
    the_driver_is_not_left_asleep(Without::Nothing);
}

#[test]
#[should_panic]
fn without_release_a_buffer_comes_before_its_content() {
    a_buffer_goes_there_and_back(Without::Release);
}

#[test]
#[should_panic(expected = "a kick was lost")]
fn without_the_fence_the_device_is_left_asleep() {
    the_device_is_not_left_asleep(Without::Fence);
}

#[test]
#[should_panic(expected = "a kick was lost")]
fn without_the_fence_the_driver_is_left_asleep() {
    the_driver_is_not_left_asleep(Without::Fence);
}

/// The driver begins again while a device still looks for buffers at the position where an earlier
/// run ended: whatever it sees of the new one, it takes nothing.
#[test]
fn a_device_of_an_earlier_run_takes_nothing() {
    for offers in 1..=2 {
        loom::model(move || {
            let memory = Cells::new(Without::Nothing);
            let (mut driver, mut device) = halves(&memory);
            driver.offer(BUFFER).unwrap();
            let taken = device.take_buffer().unwrap().unwrap();
            device.give_back(taken, 0).unwrap();
            let remote = thread::spawn(move || {
                let taken = device.take_buffer();
                assert!(matches!(taken, Ok(None) | Err(Fault::Reset | Fault::Index)), "{taken:?}");
            });
            let layout = VirtqueueLayout::contiguous(0, 2, 4).unwrap();
            let mut driver =
                VirtqueueDriver::<_, 2>::new(memory.clone(), layout, VirtqueueDirection::ToDevice).unwrap();
            for _ in 0..offers {
                driver.offer(BUFFER).unwrap();
            }
            remote.join().unwrap();
        });
    }
}

/// Two buffers, one after the other, through a device that listens between
/// them: all are taken, and none twice.
#[test]
fn a_device_that_sleeps_between_takes_all() {
    loom::model(|| {
        let memory = Cells::new(Without::Nothing);
        let (mut driver, mut device) = halves(&memory);
        device.suppress_kicks().unwrap();
        let remote = thread::spawn(move || {
            let mut taken = 0;
            while device.take_buffer().unwrap().is_some() {
                taken += 1;
            }
            (taken, device.request_kick().unwrap(), device)
        });
        let kicks = [(); 2].map(|()| {
            driver.offer(BUFFER).unwrap();
            driver.wants_kick().unwrap()
        });
        let (mut taken, woken, mut device) = remote.join().unwrap();
        assert!(taken == 2 || woken || kicks.contains(&true), "a kick was lost");
        while device.take_buffer().unwrap().is_some() {
            taken += 1;
        }
        assert_eq!(taken, 2);
    });
}
