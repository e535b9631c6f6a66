//! What the worker of a step and the processes of its pairs say to each other.

use super::point::{Caller, Mode};
use super::transport;
use anyhow::{Context, Result};
use latscope_bench::recorder::{Layout, Slots};
use latscope_bench::timebase::Timebase;
use latscope_core::plan::Step;
use latscope_core::report::{Block, Hop};
use latscope_exchange::transaction::{EndpointHandle, Transport};
use latscope_os::worker::inherited;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Descriptors before those of the endpoint pair: this socket, the histograms, the bell.
pub(crate) const OWN_DESCRIPTORS: u32 = 3;

/// The orders of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Order {
    /// Be a server.
    Serve(Box<ServerOrder>),
    /// Be a client.
    Call(Box<ClientOrder>),
    /// All are ready: begin.
    Go,
}

/// What both processes of a pair need to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Common {
    /// Name of the transport.
    pub transport: String,
    /// What is measured.
    pub mode: Mode,
    /// The words of the endpoint pair.
    pub words: Vec<String>,
    /// How many descriptors of the endpoint pair are inherited.
    pub descriptors: usize,
    /// Largest payload of the endpoint pair, bytes.
    pub payload: usize,
    /// CPUs to stay on.
    pub cpus: Vec<u32>,
    /// The step, for the layout of its histograms.
    pub step: Step,
    /// `CLOCK_MONOTONIC` at the epoch of the run, ns.
    pub epoch: u64,
    /// The clock of durations.
    pub timebase: Timebase,
    /// The process that started this one.
    pub parent: u32,
    /// What misses, ns.
    pub deadline: u64,
    /// First calls of each caller that are not recorded.
    pub warm_up: u64,
}

/// The orders of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ServerOrder {
    /// What both need.
    pub common: Common,
    /// The point into which it records what arrives.
    pub point: Option<usize>,
}

/// The orders of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClientOrder {
    /// What both need.
    pub common: Common,
    /// Who calls in each turn, in this order.
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
    /// Whether the server looks up its scheduling in each call.
    pub watched: bool,
    /// Calls by which inheritance is tried out, of each kind.
    pub trials: u64,
    /// The server's process; `None` where there is none.
    pub server: Option<u32>,
    /// Whether the first exceedance ends the step.
    pub stops: bool,
    /// The `trace_marker` of the trace instance.
    pub trace_marker: Option<PathBuf>,
    /// Its `tracing_on`, to be switched off at the first exceedance.
    pub trace_switch: Option<PathBuf>,
}

/// One caller.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallerOrder {
    /// Who.
    pub caller: Caller,
    /// Whether each call is made by a new thread.
    pub fresh: bool,
    /// Where durations of calls go; `None` where the server records.
    pub point: Option<usize>,
    /// Where durations from the due instant go.
    pub due: Option<usize>,
}

/// What a process says in the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Word {
    /// A client is done.
    Called(Box<Called>),
    /// A server is done.
    Served(Served),
}

/// What a server has to tell in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Requests.
    pub requests: u64,
    /// Requests that were recorded.
    pub recorded: u64,
    /// Those of them that were longer on their way than the deadline.
    pub misses: u64,
    /// Requests with a sequence that is not the next.
    pub unexpected: u64,
    /// Why it ended, where that was not the client's end.
    pub ended: Option<String>,
    /// What it did not get.
    pub shortfall: Option<String>,
    /// What it recorded, in order of time.
    pub blocks: Vec<Block>,
    /// Its thread as it began.
    pub began: Option<Hop>,
}

/// What a client has to tell in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// One for each caller, in their order.
    pub tallies: Vec<Tally>,
    /// CPU time of the server's process while it was measured, ns.
    pub server_cpu: u64,
    /// What the server's threads waited for a CPU in that time, ns; see [`Tally::run_delay`].
    pub server_delay: Option<u64>,
    /// CPU time of the client's process in that time, ns.
    pub client_cpu: u64,
    /// Transactions in that time.
    pub transactions: u64,
    /// Page faults of the client's process in that time.
    pub faults: u64,
    /// `CLOCK_MONOTONIC` before the first turn and at the end of the last, ns.
    pub from: u64,
    /// See `from`.
    pub until: u64,
    /// Its thread as it began.
    pub began: Option<Hop>,
    /// Why it ended before its count, where that was a failure.
    pub ended: Option<String>,
    /// What was found of the inheritance of a real-time priority.
    pub real_time: Trial,
    /// What was found of the inheritance of a nice value.
    pub nice: Trial,
}

/// What was counted of one caller's calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Calls that were recorded.
    pub calls: u64,
    /// Those that took longer than the deadline.
    pub misses: u64,
    /// Those that ended later than the deadline after they were due.
    pub due_misses: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Calls whose reply was not what it must be.
    pub mismatches: u64,
    /// The first failure, in words.
    pub first_failure: Option<String>,
    /// Calls during which the caller stayed on its CPU.
    pub stayed: u64,
    /// Of those, the ones served on that CPU.
    pub synced: u64,
    /// Calls during which the caller came to another CPU.
    pub migrated: u64,
    /// Calls in which the server told its scheduling.
    pub told: u64,
    /// Of those, the ones in which it had not the caller's real-time priority.
    pub uninherited: u64,
    /// Time that the caller's threads waited for a CPU from the first turn to the last, ns;
    /// `None` where the kernel does not count it.
    pub run_delay: Option<u64>,
    /// What it did not get: the reason.
    pub shortfall: Option<String>,
    /// The first calls in full.
    pub hops: Vec<Hop>,
    /// What was recorded, in order of time.
    pub blocks: Vec<Block>,
    /// The same from the due instants.
    pub due_blocks: Vec<Block>,
}

/// Calls by which inheritance is tried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Calls.
    pub calls: u64,
    /// Those that were served with the caller's priority.
    pub inherited: u64,
    /// Those after which the server had its own again.
    pub restored: u64,
    /// Why it was not tried.
    pub refused: Option<String>,
}

impl Common {
    /// The transport.
    ///
    /// # Errors
    /// This binary has none of that name.
    pub fn transport(&self) -> Result<&'static Transport> {
        transport(&self.transport).with_context(|| format!("no transport {:?}", self.transport))
    }

    /// The histograms of the step.
    ///
    /// # Errors
    /// They were not inherited.
    pub fn slots(&self) -> Result<Slots> {
        Ok(Slots::map(inherited(1)?, Layout::of(&self.step))?)
    }
}

/// The share of the endpoint pair that this process inherited.
///
/// # Errors
/// There are fewer descriptors than its orders say.
pub fn handle(common: &Common) -> Result<EndpointHandle> {
    let range = OWN_DESCRIPTORS..OWN_DESCRIPTORS + common.descriptors as u32;
    let descriptors: Vec<OwnedFd> = range.map(inherited).collect::<std::io::Result<_>>()?;
    Ok(EndpointHandle { descriptors, words: common.words.clone(), payload: common.payload })
}
