//! Messages between the worker of a step and the processes of its pairs.

use super::point::{Caller, IpcMeasureMode};
use super::transport;
use crate::prelude::*;
use latscope_bench::recorder::{HistogramSlotLayout, Slots};
use latscope_core::report::{SampleBlock, TransactionHop};
use latscope_exchange::transaction::{EndpointHandle, IpcTransport};
use latscope_os::worker::take_descriptor;
use serde::{Deserialize, Serialize};

/// Descriptors before those of the endpoint pair: this socket, the histograms, the bell.
pub(crate) const OWN_DESCRIPTORS: u32 = 3;

/// The orders of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IpcProcessOrder {
    /// Orders to act as a server.
    Serve(Box<ServerOrder>),
    /// Orders to act as a client.
    Call(Box<ClientOrder>),
    /// Start signal, when all processes are ready.
    Go,
}

/// Orders that both processes of a pair need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IpcPairOrder {
    /// Name of the transport.
    pub transport: String,
    /// Mode of the measurement.
    pub mode: IpcMeasureMode,
    /// The words of the endpoint pair.
    pub words: Vec<String>,
    /// Number of inherited descriptors of the endpoint pair.
    pub descriptors: usize,
    /// Largest payload of the endpoint pair, bytes.
    pub payload: usize,
    /// CPUs on which the process stays.
    pub cpus: Vec<u32>,
    /// The step, for the layout of its histograms.
    pub step: PlanStep,
    /// `CLOCK_MONOTONIC` at the epoch of the run, ns.
    pub epoch: u64,
    /// The clock of durations.
    pub timebase: Timebase,
    /// Id of the process that started this one.
    pub parent: u32,
    /// Duration above which a call misses, ns.
    pub deadline: u64,
    /// First calls of each caller that are not recorded.
    pub warm_up: u64,
}

/// The orders of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerOrder {
    /// Orders that both processes need.
    pub common: IpcPairOrder,
    /// Point that records arriving requests.
    pub point: Option<usize>,
}

/// The orders of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClientOrder {
    /// Orders that both processes need.
    pub common: IpcPairOrder,
    /// Callers of each turn, in this order.
    pub callers: Vec<CallerOrder>,
    /// Bytes of a request.
    pub payload: usize,
    /// Turns; `u64::MAX` for no limit.
    pub count: u64,
    /// Time of the run, ns; `u64::MAX` for no limit.
    pub duration: u64,
    /// Turns a second, where they are paced.
    pub rate: Option<u64>,
    /// First calls of each caller that are reported in full.
    pub hops: u64,
    /// True if the server looks up its scheduling in each call.
    pub watched: bool,
    /// Number of calls by which inheritance is tried out, of each kind.
    pub trials: u64,
    /// Process id of the server; `None` if there is none.
    pub server: Option<u32>,
    /// True if the first exceedance ends the step.
    pub stops: bool,
    /// The `trace_marker` of the trace instance.
    pub trace_marker: Option<PathBuf>,
    /// The `tracing_on` of the trace instance, which is switched off at the first exceedance.
    pub trace_switch: Option<PathBuf>,
}

/// Orders of a single caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallerOrder {
    /// Policy of the calling thread.
    pub caller: Caller,
    /// True if each call is made by a new thread.
    pub fresh: bool,
    /// Point for the durations of calls; `None` if the server records.
    pub point: Option<usize>,
    /// Point for the durations from the due instant.
    pub due: Option<usize>,
}

/// Final message of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum IpcProcessResult {
    /// Results of a client that is done.
    Called(Box<IpcClientResult>),
    /// Results of a server that is done.
    Served(IpcServerResult),
}

/// Results of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpcServerResult {
    /// Number of requests received.
    pub requests: u64,
    /// Requests that were recorded.
    pub recorded: u64,
    /// Recorded requests that were longer on their way than the deadline.
    pub misses: u64,
    /// Requests with a sequence that is not the next.
    pub unexpected: u64,
    /// Reason for which the server ended, unless the client ended first.
    pub ended: Option<String>,
    /// Scheduling that the server did not get, with the reason.
    pub shortfall: Option<String>,
    /// Recorded durations, in order of time.
    pub blocks: Vec<SampleBlock>,
    /// State of the server's thread at the start.
    pub began: Option<TransactionHop>,
}

/// Results of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpcClientResult {
    /// Tallies of the callers, in their order.
    pub tallies: Vec<IpcCallTally>,
    /// CPU time of the server's process during the measurement, ns.
    pub server_cpu: u64,
    /// Time for which the server's threads waited for a CPU in that time, ns; see [`IpcCallTally::run_delay`].
    pub server_delay: Option<u64>,
    /// CPU time of the client's process in that time, ns.
    pub client_cpu: u64,
    /// Transactions in that time.
    pub transactions: u64,
    /// Page faults of the client's process in that time.
    pub faults: u64,
    /// `CLOCK_MONOTONIC` before the first turn, ns.
    pub from: u64,
    /// `CLOCK_MONOTONIC` at the end of the last turn, ns.
    pub until: u64,
    /// State of the client's thread at the start.
    pub began: Option<TransactionHop>,
    /// Failure that ended the client before its count.
    pub ended: Option<String>,
    /// Trial of the inheritance of a real-time priority.
    pub real_time: InheritanceTrial,
    /// Trial of the inheritance of a nice value.
    pub nice: InheritanceTrial,
}

/// Counts of one caller's calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpcCallTally {
    /// Calls that were recorded.
    pub calls: u64,
    /// Recorded calls that took longer than the deadline.
    pub misses: u64,
    /// Recorded calls that ended later than the deadline after they were due.
    pub due_misses: u64,
    /// Number of failed calls.
    pub failures: u64,
    /// Calls whose reply was not what it must be.
    pub mismatches: u64,
    /// The first failure, in words.
    pub first_failure: Option<String>,
    /// Calls during which the caller stayed on its CPU.
    pub stayed: u64,
    /// Calls of `stayed` that were served on that CPU.
    pub synced: u64,
    /// Calls during which the caller came to another CPU.
    pub migrated: u64,
    /// Calls in which the server stated its scheduling.
    pub told: u64,
    /// Calls of `told` in which the server did not have the caller's real-time priority.
    pub uninherited: u64,
    /// Time that the caller's threads waited for a CPU from the first turn to the last, ns;
    /// `None` where the kernel does not count it.
    pub run_delay: Option<u64>,
    /// Scheduling that the caller did not get, with the reason.
    pub shortfall: Option<String>,
    /// The first calls in full.
    pub hops: Vec<TransactionHop>,
    /// Recorded durations, in order of time.
    pub blocks: Vec<SampleBlock>,
    /// Recorded durations from the due instants, in order of time.
    pub due_blocks: Vec<SampleBlock>,
}

/// Calls by which inheritance is tried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritanceTrial {
    /// Calls in which the server stated its scheduling.
    pub calls: u64,
    /// Calls that were served with the caller's priority.
    pub inherited: u64,
    /// Calls after which the server had its own priority again.
    pub restored: u64,
    /// Reason why inheritance was not tried.
    pub refused: Option<String>,
}

impl IpcPairOrder {
    /// Returns the transport of the pair.
    ///
    /// # Errors
    /// This binary has no transport of that name.
    pub fn transport(&self) -> Result<&'static IpcTransport> {
        transport(&self.transport).with_context(|| format!("no transport {:?}", self.transport))
    }

    /// Maps the histograms of the step.
    ///
    /// # Errors
    /// The histograms were not inherited.
    pub fn slots(&self) -> Result<Slots> {
        Ok(Slots::map_memfd(take_descriptor(1)?, HistogramSlotLayout::of_step(&self.step))?)
    }
}

/// The share of the endpoint pair that this process inherited.
///
/// # Errors
/// There are fewer descriptors than the orders state.
pub fn handle(common: &IpcPairOrder) -> Result<EndpointHandle> {
    let range = OWN_DESCRIPTORS..OWN_DESCRIPTORS + common.descriptors as u32;
    let descriptors: Vec<OwnedFd> = range.map(take_descriptor).collect::<std::io::Result<_>>()?;
    Ok(EndpointHandle { descriptors, words: common.words.clone(), payload: common.payload })
}
