//! The words in front of the resource table, and those in it that are for commands.

use super::super::RemoteAbsent;
use anyhow::{Context, Result, bail, ensure};
use latscope_os::window::MemoryWindow as Memory;
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{Fault, RpmsgMemory as _};
use rustix::fd::AsFd;
use rustix::fs::fstat;
use rustix::io::pread;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// The master's address of the window: any but 0, by which the slave recognises that there is a master. Descriptors
/// have addresses from here on, and so has our memory; in the table offsets count from the window's beginning.
pub(super) const BASE: u32 = 0xE000_0000;

/// Offsets in the window: the master's address (u64), then each side's counter of kicks.
pub(super) const MASTER: usize = 0;
pub(super) const SLAVE_COUNTER: usize = 8;
pub(super) const MASTER_COUNTER: usize = 12;
/// Offset of the table in the window.
pub(super) const TABLE: usize = 24;
/// Offsets of the commands in the table, where other implementations have reserved words.
pub(super) const MASTER_COMMAND: usize = TABLE + 8;
pub(super) const SLAVE_COMMAND: usize = TABLE + 12;

/// Commands, in the upper half of a word.
pub(super) const READY: u32 = 1 << 16;
const PANIC: u32 = 2 << 16;
pub(super) const RESET: u32 = 3 << 16;

/// Resources of the table: memory for a device, and a device.
const CARVEOUT: u32 = 0;
const DEVICE: u32 = 3;
const RPMSG: u32 = 7;
/// A table with more is taken for garbage.
const MOST_RESOURCES: u32 = 256;

/// Bytes of the header, and of the first words of the table: version, number of resources, commands.
const HEAD: usize = TABLE + 16;

/// Looks at a file that could be no window, 2 ms apart: a slave that boots clears its window first, which takes a
/// while.
const LOOKS: u32 = 50;

/// Checks that a file can be the window of a slave, which may not have booted yet. It is not mapped, nor changed.
///
/// # Errors
/// It is too short, or begins with other content.
pub(super) fn check_window(file: impl AsFd, path: &Path) -> Result<()> {
    let length = fstat(&file)?.st_size;
    ensure!(
        length >= HEAD as i64,
        "{} has {length} bytes, too few for a window of rptun: {REMEDY}",
        path.display()
    );
    for _ in 0..LOOKS {
        let mut head = [0; HEAD];
        let read = pread(&file, &mut head, 0).with_context(|| format!("cannot read {}", path.display()))?;
        if read == HEAD && can_be_a_window(&head) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    bail!("{} has no header of rptun, and is left as it is: {REMEDY}", path.display())
}

/// Remedy for a file that is no window.
const REMEDY: &str = "give the file behind the slave's ivshmem device";

/// Returns true if a slave made this, or if nothing did.
fn can_be_a_window(head: &[u8; HEAD]) -> bool {
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_table = word(TABLE) == 1 && word(TABLE + 4) <= MOST_RESOURCES;
    is_table || head.iter().all(|byte| *byte == 0)
}

/// The header of a window.
#[derive(Debug, Clone)]
pub(super) struct RptunHeader(Memory);

impl RptunHeader {
    /// Returns the header of a window, which is mapped from [`BASE`] on.
    pub(super) fn new(memory: &Memory) -> RptunHeader {
        RptunHeader(memory.clone())
    }

    fn load_word(&self, at: usize) -> Result<u32, Fault> {
        self.0.load_u32(BASE as usize + at)
    }

    fn store_word(&self, at: usize, word: u32) -> Result<(), Fault> {
        self.0.store_u32(BASE as usize + at, word)
    }

    /// Waits for a slave that has just begun, and resets one that has begun with another master.
    ///
    /// # Errors
    /// No slave is ready in time.
    pub(super) fn wait_for_slave(&self, time: Duration, path: &Path, waiting: &dyn Fn(&str)) -> Result<()> {
        let start = Instant::now();
        let (mut was_reset, mut told) = (false, false);
        while !self.is_fresh()? {
            // Nothing is written before the table shows that this is a slave's window.
            if !was_reset && self.load_word(MASTER)? != 0 && self.read_table().is_ok() {
                self.store_word(MASTER_COMMAND, RESET)?;
                self.count_up()?;
                was_reset = true;
            }
            let wanted = "a slave of rptun that boots with this memory behind its ivshmem device";
            if start.elapsed() >= time {
                let path = path.display();
                let text = format!("no slave of rptun is ready in {path}: start {wanted}, or start it again");
                return Err(RemoteAbsent(text).into());
            }
            if !told && start.elapsed() > Duration::from_secs(1) {
                waiting(&format!("waiting for {wanted}: {}", path.display()));
                told = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Returns true if the slave has made its table, and waits for a master.
    fn is_fresh(&self) -> Result<bool, Fault> {
        let is_fresh = self.load_word(MASTER)? == 0 && self.load_word(SLAVE_COMMAND)? == READY;
        // The table was written before.
        self.0.fence();
        Ok(is_fresh)
    }

    /// Takes the slave's command, and shows the slave that there is a master.
    pub(super) fn announce_master(&self) -> Result<(), Fault> {
        self.store_word(SLAVE_COMMAND, 0)?;
        self.0.fence();
        self.store_word(MASTER + 4, 0)?;
        self.store_word(MASTER, BASE)
    }

    /// Kicks the slave by counting up the master's counter.
    pub(super) fn count_up(&self) -> Result<(), Fault> {
        self.0.fence();
        self.store_word(MASTER_COUNTER, self.load_word(MASTER_COUNTER)?.wrapping_add(1))
    }

    /// Returns the number of kicks by the slave.
    pub(super) fn sent_by_slave(&self) -> Result<u32, Fault> {
        self.load_word(SLAVE_COUNTER)
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.load_word(SLAVE_COMMAND).is_ok_and(|command| command & 0xFFFF_0000 == PANIC)
    }

    /// The RPMsg device of the table, and the memory that the table has for its rings and buffers: the n-th device
    /// has the n-th of these.
    ///
    /// # Errors
    /// The table has no RPMsg device or no memory for it, or these are not in the window.
    pub(super) fn read_table(&self) -> Result<(ResourceTable, Range<usize>)> {
        let start = BASE as usize + TABLE;
        let table =
            ResourceTable::parse_at(&self.0, start).context("the window has no resource table of RPMsg")?;
        let (mut devices, mut found, mut carveouts) = (0, None, Vec::new());
        for index in 0..self.load_word(TABLE + 4)?.min(MOST_RESOURCES) as usize {
            let offset = self.load_word(TABLE + 16 + 4 * index)?;
            let at = self.0.locate(start as u64 + u64::from(offset), 16)?;
            match self.0.load_u32(at)? {
                CARVEOUT => carveouts.push((self.0.load_u32(at + 4)?, self.0.load_u32(at + 12)?)),
                DEVICE => {
                    if self.0.load_u32(at + 4)? == RPMSG && found.is_none() {
                        found = Some(devices);
                    }
                    devices += 1;
                }
                _ => {}
            }
        }
        let Some((offset, length)) = found.and_then(|index: usize| carveouts.get(index).copied()) else {
            bail!("the slave's table has no memory for the rings of RPMsg (a carveout)");
        };
        let at = self.0.locate(u64::from(BASE) + u64::from(offset), length)?;
        Ok((table, at..at + length as usize))
    }
}
