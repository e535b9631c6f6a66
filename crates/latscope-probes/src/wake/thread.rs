//! Description of one periodic thread, and its form as the parameters of a point.

use crate::Param;
use crate::prelude::*;
use latscope_bench::settings::{SettingValue, get, given, unless};

/// A periodic measuring thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeThreadSettings {
    /// Number of the thread in the run, from 0.
    pub index: u64,
    /// CPU on which the thread stays; `None` lets the scheduler choose.
    pub cpu: Option<u32>,
    /// Time from one activation to the next, ns.
    pub interval: u64,
    /// Scheduling policy of the thread.
    pub policy: WakeThreadPolicy,
    /// Method of waiting for the next activation.
    pub method: WakeMethod,
    /// Clock of the thread's timer and stamps.
    pub clock: ClockName,
    /// Hop from the thread whose timer expires to the thread that stamps.
    pub via: WakeHopKind,
    /// Computing time of each activation after the stamp, ns.
    pub work: u64,
    /// Bytes of memory that each activation reads and writes.
    pub touch: u64,
    /// Time slice asked for under SCHED_OTHER, ns; `None` for that of the kernel.
    pub slice: Option<u64>,
}

/// A scheduling policy as a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeThreadPolicy {
    /// SCHED_OTHER, with a timer slack of 1 ns.
    Other,
    /// SCHED_FIFO with this priority.
    Fifo(u32),
    /// SCHED_RR with this priority.
    RoundRobin(u32),
    /// SCHED_DEADLINE with this runtime; deadline and period are the interval.
    Deadline {
        /// CPU time reserved in each period, ns.
        runtime: u64,
        /// Time after the activation within which it is reserved, ns.
        deadline: u64,
    },
}

words! {
    /// Method by which a thread waits.
    pub enum WakeMethod {
        /// `clock_nanosleep` to an absolute instant.
        Nanosleep = "nanosleep",
        /// A read of a periodic timerfd.
        Timerfd = "timerfd",
        /// A periodic POSIX timer that signals the thread, which waits in `sigwait`.
        PosixTimer = "posix-timer",
        /// `clock_nanosleep` for a time from now: the instant of the call is part of it.
        Relative = "relative",
        /// `nanosleep` for a time from now.
        System = "system",
        /// `sched_yield` of a SCHED_DEADLINE thread, which sleeps until its next period.
        Yield = "yield",
    }
}

words! {
    /// A clock as a parameter.
    pub enum ClockName {
        /// The kernel's clock `CLOCK_MONOTONIC`.
        Monotonic = "monotonic",
        /// The kernel's clock `CLOCK_REALTIME`.
        Realtime = "realtime",
    }
}

words! {
    /// The hop after the timer.
    pub enum WakeHopKind {
        /// None: the thread whose timer expires stamps.
        Direct = "direct",
        /// A futex wakes a second thread.
        Thread = "thread",
        /// An eventfd wakes a second thread.
        Eventfd = "eventfd",
        /// A pipe wakes a second thread.
        Pipe = "pipe",
    }
}

impl WakeThreadPolicy {
    /// Words of the policies, as on the command line.
    pub const WORDS: &'static [&'static str] = &["other", "fifo", "rr", "deadline"];

    /// Word of this policy.
    pub fn policy_name(self) -> &'static str {
        match self {
            WakeThreadPolicy::Other => "other",
            WakeThreadPolicy::Fifo(_) => "fifo",
            WakeThreadPolicy::RoundRobin(_) => "rr",
            WakeThreadPolicy::Deadline { .. } => "deadline",
        }
    }

    /// Real-time priority; 0 if the policy has none.
    pub fn priority(self) -> u32 {
        match self {
            WakeThreadPolicy::Fifo(priority) | WakeThreadPolicy::RoundRobin(priority) => priority,
            _ => 0,
        }
    }

    /// CPU time reserved in each period, and the time within which it is, ns.
    fn reservation(self) -> Option<(u64, u64)> {
        if let WakeThreadPolicy::Deadline { runtime, deadline } = self {
            Some((runtime, deadline))
        } else {
            None
        }
    }
}

impl PointSettings for WakeThreadSettings {
    const LIST: &'static [Param] = &[
        Param::stated("interval", "Time from one activation to the next, ns.", false),
        Param::stated("cpu", "CPU of the measuring thread, or `any`; `all` is their sum.", true),
        Param::stated("thread", "Number of the measuring thread.", true),
        Param::stated("policy", "Scheduling policy asked for.", false),
        Param::stated("priority", "Real-time priority asked for.", false),
        Param::stated("runtime", "CPU time reserved in each period, ns (SCHED_DEADLINE).", false),
        Param::stated(
            "deadline",
            "When it is given, ns after the begin of the period (SCHED_DEADLINE).",
            false,
        ),
        Param::stated("method", "How the thread waits.", false),
        Param::stated("clock", "Clock of the timer and the stamps.", false),
        Param::stated("via", "How the thread that stamps is woken by the one whose timer expired.", false),
        Param::stated("work", "Computing time of each activation, ns.", false),
        Param::stated("touch", "Memory read and written by each activation, bytes.", false),
        Param::stated("slice", "Time slice asked for, ns (SCHED_OTHER, Linux 6.12).", false),
    ];

    fn params(&self) -> Params {
        let (runtime, deadline) = self.policy.reservation().unzip();
        given([
            ("interval", self.interval.to_param()),
            ("cpu", self.cpu.map_or(Some("any".into()), |cpu| cpu.to_param())),
            ("thread", self.index.to_param()),
            ("policy", Some(self.policy.policy_name().into())),
            ("priority", unless(&0, &self.policy.priority())),
            ("runtime", runtime.to_param()),
            ("deadline", deadline.to_param()),
            ("method", self.method.to_param()),
            ("clock", self.clock.to_param()),
            ("via", unless(&WakeHopKind::Direct, &self.via)),
            ("work", unless(&0, &self.work)),
            ("touch", unless(&0, &self.touch)),
            ("slice", self.slice.to_param()),
        ])
    }

    fn from_params(params: &Params) -> Option<WakeThreadSettings> {
        let priority = || get(params, "priority");
        Some(WakeThreadSettings {
            index: get(params, "thread")?,
            cpu: get(params, "cpu"),
            interval: get(params, "interval")?,
            policy: match get::<String>(params, "policy")?.as_str() {
                "other" => WakeThreadPolicy::Other,
                "fifo" => WakeThreadPolicy::Fifo(priority()?),
                "rr" => WakeThreadPolicy::RoundRobin(priority()?),
                "deadline" => WakeThreadPolicy::Deadline {
                    runtime: get(params, "runtime")?,
                    deadline: get(params, "deadline")?,
                },
                _ => return None,
            },
            method: get(params, "method")?,
            clock: get(params, "clock")?,
            via: get::<Option<WakeHopKind>>(params, "via")?.unwrap_or(WakeHopKind::Direct),
            work: get::<Option<u64>>(params, "work")?.unwrap_or(0),
            touch: get::<Option<u64>>(params, "touch")?.unwrap_or(0),
            slice: get(params, "slice")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::timer::{TIMER, usual_thread};

    #[test]
    fn a_thread_survives_its_parameters() {
        let usual = WakeThreadSettings {
            index: 1,
            cpu: Some(3),
            interval: 1_000_000,
            policy: WakeThreadPolicy::Fifo(95),
            method: WakeMethod::Nanosleep,
            clock: ClockName::Monotonic,
            via: WakeHopKind::Direct,
            work: 0,
            touch: 0,
            slice: None,
        };
        let policies = [
            WakeThreadPolicy::Other,
            WakeThreadPolicy::RoundRobin(1),
            WakeThreadPolicy::Deadline { runtime: 5, deadline: 9 },
        ];
        let mut threads: Vec<WakeThreadSettings> =
            policies.map(|policy| WakeThreadSettings { policy, ..usual.clone() }).into();
        threads.extend(WakeMethod::ALL.iter().map(|method| WakeThreadSettings {
            method: *method,
            cpu: None,
            via: WakeHopKind::Pipe,
            clock: ClockName::Realtime,
            work: 50_000,
            touch: 4096,
            ..usual.clone()
        }));
        threads.push(WakeThreadSettings {
            policy: WakeThreadPolicy::Other,
            slice: Some(100_000),
            ..usual.clone()
        });
        threads.push(usual);
        for thread in threads {
            assert_eq!(
                WakeThreadSettings::read(&TIMER.make_point(thread.clone(), "", true)).unwrap(),
                thread
            );
        }
    }

    #[test]
    fn what_another_thread_has_is_refused() {
        let point = |params| MeasurementPoint { params, ..TIMER.make_point(usual_thread(0, None), "", true) };
        let usual = usual_thread(0, None).params();
        let with = |name: &str, value: ParamValue| {
            let mut params = usual.clone();
            params.insert(name.to_owned(), value);
            WakeThreadSettings::read(&point(params))
        };
        assert!(with("policy", "fifo".into()).is_ok());
        for (name, value) in [
            ("policy", "rt".into()),
            ("policy", "other".into()),
            ("policy", "deadline".into()),
            ("cpu", "none".into()),
            ("via", "direct".into()),
            ("work", 0u64.into()),
        ] {
            assert!(with(name, value).is_err(), "{name}");
        }
    }
}
