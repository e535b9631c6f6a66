//! Transactions between processes, over all transports.

mod caller;
mod client;
mod figures;
mod hog;
pub mod inversion;
mod measure;
pub mod message;
mod orders;
pub mod passthrough;
mod ping;
pub mod point;
mod server;
mod session;
pub mod setup;
mod trial;

use super::{Family, FamilyFacts};
use crate::prelude::*;
use latscope_bench::settings::ParamValueRequest;
use latscope_core::report::Warning;
use latscope_exchange::transaction::IpcTransport;
use latscope_process::role::{MessageSocket, ProcessRole};
use point::{Caller, IpcCallerPoint, IpcPairPlacement};

/// Every transport of this binary; the call within the process, the floor under them, is last.
pub fn transports() -> impl Iterator<Item = &'static IpcTransport> {
    carriers().chain([&passthrough::PASSTHROUGH])
}

/// Transports that carry something from one process to another.
pub fn carriers() -> impl Iterator<Item = &'static IpcTransport> {
    latscope_exchange::transports::TRANSPORTS.iter().copied()
}

/// The transport of this name.
pub fn transport(name: &str) -> Option<&'static IpcTransport> {
    transports().find(|transport| transport.name == name)
}

/// Returns the warnings to show before the first number: more pairs than the machine has room for.
pub fn warnings(steps: &[PlanStep], machine: &Machine) -> Vec<Warning> {
    let cpus = machine.allowed.0.len() as u64;
    let mut warnings = Vec::new();
    let mut warn = |id: &str, text: String| {
        let remedy = match cpus {
            0..=2 => "--pairs 1".to_owned(),
            _ => format!("at most --pairs {}, one less than CPUs", cpus - 1),
        };
        warnings.push(Warning { id: id.to_owned(), text, remedy: Some(remedy) });
    };
    let steps = || steps.iter().filter(|step| step.name == STEP);
    let rows = || {
        steps().flat_map(|step| step.points.iter().filter_map(|point| IpcCallerPoint::from_point(point).ok()))
    };
    let pairs = rows().map(|row| row.pair + 1).max().unwrap_or(0);
    let real_time =
        rows().filter(|row| row.caller != Caller::Other).map(|row| row.pair + 1).max().unwrap_or(0);
    if pairs > cpus {
        warn(
            "pairs",
            format!(
                "{pairs} pairs on {}: the machine is overloaded, and the figures say little else",
                count_with_noun(cpus, "CPU")
            ),
        );
    }
    if real_time > cpus {
        let text = format!(
            "{real_time} real-time callers on {}: they wait for each other, and miss",
            count_with_noun(cpus, "CPU")
        );
        warn("real-time-threads", text);
    }
    warnings
}

/// The name of a step of transactions.
pub const STEP: &str = "ipc";

static EXPERIMENT: Experiment = Experiment::new(STEP, Cpus::All, measure::measure_points);

/// The family of transactions between processes.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "ipc",
        about: "Transactions between processes: latency, deadlines, inheritance, throughput",
        sensitive_to: &[
            Condition::Speed,
            Condition::ClockRate,
            Condition::Virtualisation,
            Condition::Mitigations,
            Condition::WakeUp,
            Condition::RealTime,
            Condition::Tick,
            Condition::TimerSlack,
            Condition::Transports,
        ],
        curves: figures::CURVES,
        bars: figures::BARS,
        single_events: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// Facts of the probes of all transports. A survey measures one of them; the others are there for comparison.
const FACTS: ProbeFacts = ProbeFacts {
    timed: "From before the request is handed over until the reply is there, in the caller's thread, without \
            filling and verifying; with mode one-way until the stamp of the server.",
    times: Semantics::RoundTrip,
    revision: 2,
    params: IpcCallerPoint::LIST,
    by_name_only: true,
    ..ProbeFacts::DEFAULT
};

/// A probe for each transport; in braces further facts of that one.
macro_rules! transports {
    ($($(#[$when:meta])? $name:literal: $title:literal, $source:literal $({ $($more:tt)+ })?;)+) => {
        /// The probes of the family.
        pub static PROBES: &[&Probe] = &[$($(#[$when])? &Probe {
            facts: ProbeFacts {
                id: concat!("ipc.", $name),
                title: concat!("transaction, ", $title),
                source: $source,
                $($($more)+)?
                ..FACTS
            },
            check: IpcCallerPoint::check,
            experiment: &EXPERIMENT,
            plan,
        }),+, &inversion::INVERSION];
    };
}

transports! {
    "binder": "binder, driver only", "Documentation/admin-guide/binderfs.rst, include/uapi/linux/android/binder.h";
    "hwbinder": "hwbinder (scatter-gather), driver only", "Documentation/admin-guide/binderfs.rst, include/uapi/linux/android/binder.h";
    "spin": "shared memory, spinning", "memfd_create(2), mmap(2)";
    "futex": "shared memory, futex", "futex(2), memfd_create(2)";
    "posix-semaphore": "shared memory, POSIX semaphore", "sem_overview(7), memfd_create(2)";
    "sysv-semaphore": "shared memory, System V semaphore", "semop(2), memfd_create(2)";
    "eventfd": "shared memory, eventfd", "eventfd(2), memfd_create(2)";
    "signal": "shared memory, queued signal", "sigqueue(3), sigwaitinfo(2)";
    "io-uring": "shared memory, io_uring message", "io_uring_enter(2), IORING_OP_MSG_RING";
    "pipe": "pipe", "pipe(7)";
    "fifo": "FIFO file", "fifo(7)";
    "posix-mq": "POSIX message queue", "mq_overview(7)";
    "sysv-mq": "System V message queue", "msgop(2)";
    "unix-datagram": "Unix datagram socket", "unix(7), SOCK_DGRAM";
    "unix-seqpacket": "Unix packet socket", "unix(7), SOCK_SEQPACKET";
    "unix-stream": "Unix stream socket", "unix(7), SOCK_STREAM" { by_name_only: false, };
    "udp": "UDP, loopback", "udp(7)";
    "tcp": "TCP, loopback", "tcp(7), TCP_NODELAY";
    "vsock": "vsock, loopback", "vsock(7), VMADDR_CID_LOCAL";
    "passthrough": "call within the process", "none: a virtual call and a copy of the payload";
}

/// The points of a survey, or of a program that asks for others: one pair.
fn plan(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let Some(transport) = transport(probe.id.trim_start_matches("ipc.")) else { return Vec::new() };
    let usual = setup::IpcStepSetup::for_transport(transport, machine);
    let placement = ParamValueRequest::of::<IpcPairPlacement>(input, "placement").first();
    let setup = setup::IpcStepSetup {
        placement: placement.unwrap_or(usual.placement),
        payloads: ParamValueRequest::of::<u64>(input, "payload").or(&usual.payloads),
        ..usual
    };
    let point = |row: IpcCallerPoint| {
        let title = format!("transaction, {}, {} caller", transport.title, row.caller.policy_name());
        MeasurementPoint { title, row: true, ..row.to_point(transport) }
    };
    setup.caller_points().map(point).collect()
}

/// A process of a pair: `__ipc server|client`.
pub(crate) const ROLE: ProcessRole = ProcessRole { name: "__ipc", terminates: false, main };

fn main(arguments: &[String]) -> Result<()> {
    let by_hand = "a server or client is started by latscope itself: run `latscope ipc`";
    let mut worker = MessageSocket::inherited().context(by_hand)?;
    match arguments.first().map(String::as_str) {
        Some("server") => {
            let _ = rustix::thread::set_name(c"ipc/server");
            server::main(&mut worker)
        }
        Some("client") => {
            let _ = rustix::thread::set_name(c"ipc/client");
            client::main(&mut worker)
        }
        _ => bail!("a process of a pair is a server or a client: run `latscope ipc`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_has_its_probe() {
        let of_transports = || PROBES.iter().filter(|probe| probe.id != inversion::INVERSION.id);
        let ids: Vec<&str> = of_transports().map(|probe| probe.id).collect();
        let expected: Vec<String> = transports().map(|transport| format!("ipc.{}", transport.name)).collect();
        assert_eq!(ids, expected);
        for (probe, transport) in of_transports().zip(transports()) {
            assert_eq!(probe.title, format!("transaction, {}", transport.title));
            assert_eq!(probe.source, transport.source);
        }
    }
}
