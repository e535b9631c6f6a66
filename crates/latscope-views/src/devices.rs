//! Reference devices: latencies that were published for other machines, as
//! data, to stand beside the ones measured here.
//!
//! Two sources. The list "Latency numbers every programmer should know" in its
//! form of 2012; its L1 row was printed as 0.5 ns and is usually quoted as
//! 1 ns, as here. And the talk "Latency numbers on the iPhone" (2019), which
//! measured three phones with LMbench: memory by a chase that takes a new page
//! at each load (so with TLB misses), semaphores one way, files out of the page
//! cache, the parts of a thread's life as read off a system trace.

use latscope_core::catalogue::ids;
use latscope_core::plan::{ParamValue, Params};

/// Published duration in nanoseconds.
pub type Nanoseconds = f64;

/// A machine whose latencies were published.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// Full name of the device.
    pub name: &'static str,
    /// Heading of its column.
    pub short: &'static str,
    /// Source of the numbers.
    pub source: &'static str,
    /// Published numbers, each with the measurements that it stands beside.
    pub rows: &'static [Reference],
}

/// Published number of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Measurements that the number stands beside.
    pub key: RowKey,
    /// Published duration in nanoseconds.
    pub ns: Nanoseconds,
    /// Part of this machine's duration that the number is compared with.
    pub part: Part,
    /// True if the number and this machine's row are of the same operation; otherwise a ratio would mislead.
    pub same: bool,
    /// Difference from this machine's row, or the way of measurement; may be empty.
    pub note: &'static str,
}

/// Rows of this machine that a published number stands beside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowKey {
    /// A cache level, by its number.
    Cache(u32),
    /// Main memory, behind all caches.
    Memory,
    /// Measurements of a probe whose parameters have the wanted values.
    Probe(&'static str, &'static [(&'static str, Wanted)]),
}

/// Condition on the value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// Equal to this text.
    Is(&'static str),
    /// Equal to this number.
    Equals(u64),
    /// A number not above this one.
    AtMost(u64),
    /// A number not below this one.
    AtLeast(u64),
}

/// Part of this machine's duration that a published number is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of the duration.
    Whole,
    /// Half of the duration: it is a round trip, the published number is one way.
    Half,
    /// Share of the duration that belongs to this many of the bytes touched.
    Bytes(u64),
}

impl Wanted {
    fn holds(self, value: &ParamValue) -> bool {
        match (self, value) {
            (Wanted::Is(wanted), ParamValue::Text(text)) => text == wanted,
            (Wanted::Equals(wanted), ParamValue::Number(number)) => *number == wanted,
            (Wanted::AtMost(limit), ParamValue::Number(number)) => *number <= limit,
            (Wanted::AtLeast(limit), ParamValue::Number(number)) => *number >= limit,
            _ => false,
        }
    }
}

impl Device {
    /// Returns the device's number for a cache level or memory. `name` is the name in the findings: `L1`, `L2`,
    /// …, `memory`.
    pub(crate) fn for_level(&self, name: &str) -> Option<&'static Reference> {
        let key = match name.strip_prefix('L').and_then(|rest| rest.parse().ok()) {
            Some(level) => RowKey::Cache(level),
            None if ["memory", "dram"].contains(&name.to_lowercase().as_str()) => RowKey::Memory,
            None => return None,
        };
        self.rows.iter().find(|row| row.key == key)
    }

    /// Returns the device's number for a measurement of `probe` with `params`.
    pub(crate) fn for_probe(&self, probe: &str, params: &Params) -> Option<&'static Reference> {
        self.rows.iter().find(|row| match row.key {
            RowKey::Probe(id, wanted) => {
                id == probe
                    && wanted.iter().all(|(name, wanted)| params.get(*name).is_some_and(|v| wanted.holds(v)))
            }
            _ => false,
        })
    }
}

/// Returns a number for the same operation as this machine's row.
const fn same(key: RowKey, ns: Nanoseconds) -> Reference {
    Reference { key, ns, part: Part::Whole, same: true, note: "" }
}

/// Returns a number for another operation that people compare with this machine's row nevertheless.
const fn other(key: RowKey, ns: Nanoseconds, note: &'static str) -> Reference {
    Reference { key, ns, part: Part::Whole, same: false, note }
}

/// Returns the number of a one-way blocking hand-off by semaphore, beside this machine's round trips.
const fn semaphore(ns: Nanoseconds) -> Reference {
    let note = "one way, between two threads wherever the scheduler put them";
    Reference { key: SEMAPHORE, ns, part: Part::Half, same: true, note }
}

const L1: RowKey = RowKey::Cache(1);
const L2: RowKey = RowKey::Cache(2);
const MEMORY: RowKey = RowKey::Memory;
const MUTEX: RowKey = RowKey::Probe(ids::MUTEX, &[]);
const SEMAPHORE: RowKey = RowKey::Probe(ids::SEMAPHORE, &[]);
const MISPREDICT: RowKey = RowKey::Probe(ids::BRANCH, &[("mode", Wanted::Is("mispredicted"))]);
const SMALL_READ: RowKey =
    RowKey::Probe(ids::FILE_READ, &[("mode", Wanted::Is("kept-open")), ("size", Wanted::AtMost(4096))]);
const MEGABYTE_READ: RowKey = RowKey::Probe(ids::FILE_READ, &[("size", Wanted::Equals(1 << 20))]);
const DIRECT_READ: RowKey = RowKey::Probe(ids::FILE_READ_DIRECT, &[]);
/// Read of far more than a cache holds, by one thread.
const MEMORY_READ: RowKey = RowKey::Probe(
    ids::MEMORY_BANDWIDTH,
    &[
        ("operation", Wanted::Is("read")),
        ("step", Wanted::Is("every")),
        ("threads", Wanted::Equals(1)),
        ("size", Wanted::AtLeast(256 << 20)),
    ],
);
const FILE_OPEN: RowKey = RowKey::Probe(ids::FILE_OPEN_CLOSE, &[]);
const FILE_CREATE: RowKey = RowKey::Probe(ids::FILE_CREATE, SMALL);
const FILE_UNLINK: RowKey = RowKey::Probe(ids::FILE_UNLINK, SMALL);
const SMALL: &[(&str, Wanted)] = &[("size", Wanted::AtMost(1024))];
const THREAD_OVERHEAD: RowKey = RowKey::Probe(ids::THREAD_OVERHEAD, &[]);
const THREAD_CREATE: RowKey = RowKey::Probe(ids::THREAD_CREATE, &[]);
const THREAD_END: RowKey = RowKey::Probe(ids::THREAD_END, &[]);
const THREAD_JOIN: RowKey = RowKey::Probe(ids::THREAD_JOIN, &[]);

const LIST_OF_2012: &str =
    "\"Latency numbers every programmer should know\", as of 2012 (L1 rounded up from 0.5 ns)";
const TALK: &str = "\"Latency numbers on the iPhone\" (2019), measured with LMbench";

const UNCONTENDED: &str = "an uncontended mutex: no thread waits, nothing is handed over";
const DISK: &str = "a random read from an SSD; the row is a read out of the page cache";
const SSD_MEGABYTE: &str = "a sequential read from an SSD; the row is a read out of the page cache";
const CREATE_AND_CLOSE: &str = "creating and closing an empty file, timed as one";

/// Numbers of the list of 2012.
pub(crate) const CLASSIC_2012: Device = Device {
    name: "classic 2012",
    short: "2012",
    source: LIST_OF_2012,
    rows: &[
        same(L1, 1.0),
        same(MISPREDICT, 5.0),
        same(L2, 7.0),
        same(MUTEX, 25.0),
        other(SEMAPHORE, 25.0, UNCONTENDED),
        same(MEMORY, 100.0),
        same(DIRECT_READ, 150e3),
        other(SMALL_READ, 150e3, DISK),
        Reference {
            key: MEMORY_READ,
            ns: 250e3,
            part: Part::Bytes(1_000_000),
            same: true,
            note: "1 MB read in sequence from memory",
        },
        other(MEGABYTE_READ, 1e6, SSD_MEGABYTE),
    ],
};

/// Numbers of the iPhone 5s (2013).
pub(crate) const IPHONE_5S: Device = Device {
    name: "iPhone 5s",
    short: "5s",
    source: TALK,
    rows: &[
        same(L1, 7.0),
        same(L2, 30.0),
        same(MEMORY, 240.0),
        same(SMALL_READ, 5e3),
        same(FILE_OPEN, 50e3),
        other(FILE_CREATE, 7e3, CREATE_AND_CLOSE),
        same(FILE_UNLINK, 7e3),
        semaphore(8e3),
        same(THREAD_OVERHEAD, 230e3),
        same(THREAD_CREATE, 40e3),
        same(THREAD_END, 70e3),
        same(THREAD_JOIN, 30e3),
    ],
};

/// Numbers of the iPhone 6s Plus (2015).
pub(crate) const IPHONE_6S_PLUS: Device = Device {
    name: "iPhone 6s Plus",
    short: "6s+",
    source: TALK,
    rows: &[
        same(L1, 5.0),
        same(L2, 12.0),
        same(MEMORY, 200.0),
        same(SMALL_READ, 4e3),
        semaphore(5e3),
        same(THREAD_OVERHEAD, 50e3),
        same(THREAD_CREATE, 12e3),
        same(THREAD_END, 20e3),
        same(THREAD_JOIN, 7e3),
    ],
};

/// Numbers of the iPhone X (2017).
pub(crate) const IPHONE_X: Device = Device {
    name: "iPhone X",
    short: "X",
    source: TALK,
    rows: &[same(L1, 2.0), same(L2, 12.0), same(MEMORY, 146.0), same(SMALL_READ, 1.3e3), semaphore(3.2e3)],
};

/// All devices, in the order of their columns.
pub(crate) const DEVICES: [&Device; 4] = [&CLASSIC_2012, &IPHONE_5S, &IPHONE_6S_PLUS, &IPHONE_X];

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;

    #[test]
    fn levels_are_found_by_name() {
        assert_eq!(IPHONE_X.for_level("L1").map(|r| r.ns), Some(2.0));
        assert_eq!(IPHONE_X.for_level("memory").map(|r| r.ns), Some(146.0));
        assert_eq!(IPHONE_X.for_level("L3"), None);
        assert_eq!(IPHONE_X.for_level("TLB"), None);
    }

    #[test]
    fn a_phone_semaphore_is_half_a_round_trip_and_the_mutex_is_something_else() {
        let placement = params([("placement", "same-core".into())]);
        let phone = IPHONE_5S.for_probe("sync.semaphore", &placement).unwrap();
        assert_eq!((phone.ns, phone.part, phone.same), (8e3, Part::Half, true));
        let classic = CLASSIC_2012.for_probe("sync.semaphore", &placement).unwrap();
        assert_eq!((classic.ns, classic.same), (25.0, false));
        let mutex = CLASSIC_2012.for_probe("sync.mutex", &Params::new()).unwrap();
        assert!(mutex.same);
        assert_eq!(IPHONE_5S.for_probe("sync.mutex", &Params::new()), None);
    }

    #[test]
    fn parameters_decide_which_number_fits() {
        let read = |size: u64, mode: &str| params([("size", size.into()), ("mode", mode.into())]);
        let classic = |params: &Params| CLASSIC_2012.for_probe("file.read", params).map(|r| (r.ns, r.same));
        assert_eq!(classic(&read(4096, "kept-open")), Some((150e3, false)));
        assert_eq!(classic(&read(8192, "kept-open")), None);
        assert_eq!(classic(&read(1 << 20, "open-close")), Some((1e6, false)));
        assert_eq!(IPHONE_X.for_probe("file.read", &read(1, "open-close")), None);
        let branch = |mode: &str| CLASSIC_2012.for_probe("cpu.branch", &params([("mode", mode.into())]));
        assert!(branch("mispredicted").is_some());
        assert!(branch("predicted").is_none());
    }

    #[test]
    fn whatever_is_not_the_same_says_why() {
        for device in DEVICES {
            for row in device.rows {
                assert!(row.ns > 0.0);
                assert!(row.same || !row.note.is_empty(), "{}: {:?}", device.name, row.key);
            }
        }
    }
}
