//! Description of one caller of a pair, and its form as the parameters of a point.

use super::hog::{HIGH, ROUNDS_A_SECOND};
use super::{message, transport};
use crate::Param;
use crate::prelude::*;
use latscope_bench::settings::{SettingValue, get, given, unless};
use latscope_exchange::transaction::IpcTransport;
use serde::{Deserialize, Serialize};

/// Id of the probe of priority inversion.
pub const INVERSION: &str = "ipc.inversion";

words! {
    /// Quantity that is measured of a transaction.
    #[derive(Serialize, Deserialize)]
    pub enum IpcMeasureMode {
        /// Each call, there and back, with a small payload.
        Latency = "latency",
        /// Each call, with a payload that is echoed and verified.
        Throughput = "throughput",
        /// From the stamp of the sender to that of the receiver.
        OneWay = "one-way",
        /// Each call of something that others serve, which answers with nothing.
        Ping = "ping",
        /// Each call, while the server works for it and a hog of middle priority
        /// wants its CPU.
        Inversion = "inversion",
    }
}

/// Policy of the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    /// A thread of SCHED_OTHER.
    Other,
    /// A thread of SCHED_FIFO with this priority.
    Fifo(u32),
}

words! {
    /// Placement of client and server.
    pub enum IpcPairPlacement {
        /// Both on one CPU.
        SameCore = "same-core",
        /// Each on a CPU of its own.
        TwoCores = "two-cores",
        /// Both on CPUs that the scheduler chooses.
        Free = "free",
    }
}

words! {
    /// Start of a duration.
    pub enum DurationStart {
        /// The beginning of the call.
        Call = "call",
        /// The instant at which the call was due: a caller that is late has waited.
        Due = "due",
    }
}

/// A row of the results: a caller of a pair, and its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpcCallerPoint {
    /// Name of the transport.
    pub transport: String,
    /// Mode of the measurement.
    pub mode: IpcMeasureMode,
    /// Policy of the calling thread.
    pub caller: Caller,
    /// Number of the pair of processes, from 0.
    pub pair: u64,
    /// Placement of client and server.
    pub placement: IpcPairPlacement,
    /// Bytes of a request, and of its reply.
    pub payload: u64,
    /// A call that takes longer misses, ns.
    pub deadline: u64,
    /// True if each call is made by a new thread.
    pub fresh: bool,
    /// Calls a second, for those that are paced.
    pub rate: Option<u64>,
    /// Start of the durations.
    pub since: DurationStart,
    /// Number of first calls that are printed in full.
    pub hops: u64,
    /// True if the server looks up its scheduling in each call.
    pub watched: bool,
    /// Service to ping, where others serve.
    pub service: Option<String>,
    /// Path of the requested binder device.
    pub device: Option<String>,
}

impl Caller {
    /// Words of the policies on the command line and in results.
    pub const WORDS: &'static [&'static str] = &["other", "fifo"];

    /// Word of this policy.
    pub fn policy_name(self) -> &'static str {
        if self == Caller::Other { "other" } else { "fifo" }
    }

    /// Returns the priority under SCHED_FIFO; `None` under another policy.
    pub fn priority(self) -> Option<u32> {
        if let Caller::Fifo(priority) = self { Some(priority) } else { None }
    }
}

impl PointSettings for IpcCallerPoint {
    const LIST: &'static [Param] = &[
        Param::stated("transport", "What carries the transactions.", true),
        Param::stated("mode", "latency, throughput, one-way, or ping.", false),
        Param::stated("caller", "Policy of the calling thread: other or fifo.", false),
        Param::stated("pair", "Number of the pair of processes; `all` is their sum.", true),
        Param::stated("placement", "CPUs of the pair: same-core, two-cores, or free.", false),
        Param::stated("payload", "Bytes of a request, and of its reply.", true),
        Param::stated("deadline", "A transaction that takes longer is a miss, ns.", false),
        Param::stated("wait", "How the endpoints wait: block or spin.", false),
        Param::stated("copies", "How often the payload is copied on its way there.", false),
        Param::stated("inheritance", "By what the server could inherit the caller's priority.", false),
        Param::stated("priority", "Real-time priority of the SCHED_FIFO caller.", false),
        Param::stated(
            "caller-thread",
            "Whether each SCHED_FIFO call is made by a fresh thread, or all by a kept one.",
            false,
        ),
        Param::stated("rate", "Calls of each caller in a second (open loop).", false),
        Param::stated("since", "Open loop: from the begin of the call, or from when it was due.", false),
        Param::stated("hops", "So many first calls are printed in full.", false),
        Param::stated("watched", "The server looks up its scheduling in each call.", false),
        Param::stated("service", "Whom to ping: what others serve, or 0 for the context manager.", false),
        Param::stated(
            "device",
            "Binder device: the one asked for, or one of another name that stood in.",
            false,
        ),
    ];

    fn params(&self) -> Params {
        let transport = transport(&self.transport);
        let (priority, paced) = (self.caller.priority(), self.rate.is_some());
        given([
            ("transport", self.transport.to_param()),
            ("mode", self.mode.to_param()),
            ("caller", Some(self.caller.policy_name().into())),
            ("pair", self.pair.to_param()),
            ("placement", self.placement.to_param()),
            ("payload", self.payload.to_param()),
            ("deadline", self.deadline.to_param()),
            ("wait", transport.map(|transport| if transport.spins { "spin" } else { "block" }.into())),
            ("copies", transport.map(|transport| u64::from(transport.copies).into())),
            ("inheritance", transport.map(|transport| transport.inheritance.unwrap_or("none").into())),
            ("priority", priority.to_param()),
            ("caller-thread", priority.map(|_| if self.fresh { "fresh" } else { "kept" }.into())),
            ("rate", self.rate.to_param()),
            ("since", self.since.to_param().filter(|_| paced)),
            ("hops", unless(&0, &self.hops)),
            ("watched", self.watched.then(|| "each call".into())),
            ("service", self.service.to_param()),
            ("device", self.device.to_param()),
        ])
    }

    fn from_params(params: &Params) -> Option<IpcCallerPoint> {
        Some(IpcCallerPoint {
            transport: get(params, "transport")?,
            mode: get(params, "mode")?,
            caller: match get::<String>(params, "caller")?.as_str() {
                "other" => Caller::Other,
                "fifo" => Caller::Fifo(get(params, "priority")?),
                _ => return None,
            },
            pair: get(params, "pair")?,
            placement: get(params, "placement")?,
            payload: get(params, "payload")?,
            deadline: get(params, "deadline")?,
            fresh: get::<String>(params, "caller-thread").is_some_and(|word| word == "fresh"),
            rate: get(params, "rate")?,
            since: get::<Option<DurationStart>>(params, "since")?.unwrap_or(DurationStart::Call),
            hops: get::<Option<u64>>(params, "hops")?.unwrap_or(0),
            watched: params.contains_key("watched"),
            service: get(params, "service")?,
            device: get(params, "device")?,
        })
    }
}

settings! {
    /// Lock, owner and hog of a round of priority inversion.
    pub(super) struct PriorityInversionSettings {
        /// plain, pi (its owner inherits the priority of its waiters), or a transport: its server works.
        lock: String;
        /// CPU time for which the owner keeps the lock, ns.
        hold: u64 as Stated;
        /// CPU time that the thread of middle priority takes, ns.
        hog: u64 as Stated;
    }
}

impl IpcCallerPoint {
    /// The point of this row.
    pub fn to_point(&self, transport: &IpcTransport) -> MeasurementPoint {
        let title = match self.mode {
            IpcMeasureMode::Throughput => format!("{}, {}", transport.title, format_size(self.payload)),
            _ => format!("{}, {} caller, pair {}", transport.title, self.caller.policy_name(), self.pair),
        };
        let probe =
            crate::find_probe(&format!("ipc.{}", transport.name)).expect("every transport has a probe");
        probe.make_point(self.clone(), title, false)
    }

    /// Returns the row of a point, which is one of [`IpcCallerPoint::to_point`] or of priority inversion.
    ///
    /// # Errors
    /// The point is of neither kind.
    pub fn from_point(point: &MeasurementPoint) -> Result<IpcCallerPoint> {
        if point.probe == INVERSION {
            return Ok(IpcCallerPoint::of_inversion(&PriorityInversionSettings::read(point)?.lock));
        }
        IpcCallerPoint::read(point)
    }

    /// The row of priority inversion over a transport; its point states only the transport.
    fn of_inversion(transport: &str) -> IpcCallerPoint {
        IpcCallerPoint {
            transport: transport.to_owned(),
            mode: IpcMeasureMode::Inversion,
            caller: Caller::Fifo(HIGH),
            pair: 0,
            placement: IpcPairPlacement::SameCore,
            payload: message::LENGTH as u64,
            deadline: u64::MAX,
            fresh: false,
            rate: Some(ROUNDS_A_SECOND),
            since: DurationStart::Call,
            hops: 0,
            watched: false,
            service: None,
            device: None,
        }
    }

    /// Returns true if both rows belong to one run of processes. Such rows differ only in the pair, in the
    /// caller and its thread, and in the start of their durations.
    pub(crate) fn runs_with(&self, other: &IpcCallerPoint) -> bool {
        let IpcCallerPoint { caller, pair, fresh, since, .. } = *self;
        *self == IpcCallerPoint { caller, pair, fresh, since, ..other.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::transports;

    fn row() -> IpcCallerPoint {
        IpcCallerPoint {
            transport: transports().next().unwrap().name.to_owned(),
            mode: IpcMeasureMode::Latency,
            caller: Caller::Fifo(95),
            pair: 2,
            placement: IpcPairPlacement::TwoCores,
            payload: 32,
            deadline: 2_500_000,
            fresh: true,
            rate: Some(500),
            since: DurationStart::Due,
            hops: 4,
            watched: true,
            service: None,
            device: None,
        }
    }

    #[test]
    fn a_row_is_read_back_from_its_point() {
        let transport = transports().next().unwrap();
        let plain = IpcCallerPoint {
            caller: Caller::Other,
            fresh: false,
            rate: None,
            since: DurationStart::Call,
            hops: 0,
            watched: false,
            ..row()
        };
        let ping =
            IpcCallerPoint { mode: IpcMeasureMode::Ping, service: Some("0".to_owned()), payload: 0, ..row() };
        let chosen = IpcCallerPoint { device: Some("/dev/vndbinder".to_owned()), ..row() };
        for row in [row(), plain, ping, chosen] {
            assert_eq!(IpcCallerPoint::from_point(&row.to_point(transport)).unwrap(), row);
        }
        for (name, value) in [("wait", "doze"), ("since", "then"), ("caller", "other"), ("transport", "post")]
        {
            let mut point = row().to_point(transport);
            point.params.insert(name.to_owned(), value.into());
            assert!(IpcCallerPoint::from_point(&point).is_err(), "{name}");
        }
    }

    #[test]
    fn the_callers_of_all_pairs_run_together() {
        assert!(row().runs_with(&IpcCallerPoint { caller: Caller::Other, fresh: false, pair: 0, ..row() }));
        assert!(!row().runs_with(&IpcCallerPoint { payload: 64, ..row() }));
    }
}
