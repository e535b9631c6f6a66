//! Settings of known practices.

use latscope_core::word::Meaning;

/// Profile of a known practice.
#[derive(Debug)]
pub struct WakeProfile {
    pub name: &'static str,
    /// Time from one activation to the next, ns.
    pub interval: u64,
    /// Real-time priority of the thread.
    pub priority: u32,
    /// Activations, where the practice counts.
    pub count: Option<u64>,
    /// Time of the run, ns, where it does not.
    pub duration: Option<u64>,
    /// The largest latency it lets pass, ns.
    pub max: Option<u64>,
    /// Source of the practice.
    pub source: &'static str,
}

/// All of them, by name.
pub static PROFILES: &[(Meaning, &WakeProfile)] = &[
    ((OSADL.name, OSADL.source), &OSADL),
    ((RTEVAL.name, RTEVAL.source), &RTEVAL),
    ((LAVA.name, LAVA.source), &LAVA),
];

const OSADL: WakeProfile = WakeProfile {
    name: "osadl",
    interval: 200_000,
    priority: 90,
    count: Some(100_000_000),
    duration: None,
    max: None,
    source: "OSADL QA farm: a hundred million cycles of 200 us, five and a half hours, under some load",
};

const RTEVAL: WakeProfile = WakeProfile {
    name: "rteval",
    interval: 100_000,
    priority: 95,
    count: None,
    duration: Some(3_600_000_000_000),
    max: None,
    source: "rteval: cycles of 100 us beside a kernel build and hackbench (give --load)",
};

const LAVA: WakeProfile = WakeProfile {
    name: "lava",
    interval: 1_000_000,
    priority: 98,
    count: None,
    duration: Some(60_000_000_000),
    max: Some(50_000),
    source: "Linaro's test of kernels in LAVA: a minute, and no latency above 50 us",
};
