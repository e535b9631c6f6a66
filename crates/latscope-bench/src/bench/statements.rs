//! Statements of a probe about its points: what a figure means, what it lacks, what stands beside it.

use super::Bench;
use crate::hold::Shortfall;
use crate::protocol::WorkerMessage;
use latscope_core::plan::ParamValue;
use latscope_core::quality::{CUT_SHORT, NO_PEER, NO_VALID_REPLY, Quality, QualityLevel, Reason};
use latscope_core::report::{
    Better, Contention, MeasuredQuantity, OperationWork, RemoteIdentity, SampleBlock, Semantics,
    TransactionHop,
};
use latscope_machine::account::Peers;

impl Bench<'_> {
    /// Says that what the threads of a point waited for a CPU distorts it: its events are operations, not how late
    /// something is.
    pub fn waits_distort(&mut self, point: usize) {
        if let Some(contention) = self.result(point).contention.as_mut() {
            contention.distorts = true;
        }
    }

    /// Adds to what the threads of a point waited for a CPU what else waited in each of its samples, ns: no more than
    /// all samples lasted.
    pub fn add_waits(&mut self, point: usize, ns: u64) {
        let Some((samples, lasted)) = self.total(point) else { return };
        let waits = ns.saturating_mul(samples).min(lasted as u64);
        let Some(contention) = &mut self.result(point).contention else { return };
        if let Some(waited) = &mut contention.run_delay_ns {
            *waited = waited.saturating_add(waits);
        }
        // The waiting threads lived no longer than the samples.
        if let Some(threads) = &mut contention.threads_ns {
            *threads = threads.saturating_add(lasted as u64);
        }
    }

    /// States what measuring processes waited for a CPU.
    pub fn set_contention(&mut self, point: usize, contention: Contention) {
        self.result(point).contention = Some(contention);
    }

    /// Takes what was recorded in order of time: the point is measured.
    pub fn set_blocks(&mut self, point: usize, blocks: Vec<SampleBlock>) {
        let interrupted = self.slots.interrupted();
        let result = self.result(point);
        (result.blocks, result.interrupted) = (blocks, interrupted);
    }

    /// States what lies between the two stamps, where that is not what the probe says; before the point begins.
    pub fn set_times(&mut self, point: usize, times: Semantics) {
        self.is_still_to_begin(point);
        self.result(point).times = Some(times);
    }

    /// States a parameter that was known only when the point was measured.
    pub fn set_param(&mut self, point: usize, name: &str, value: ParamValue) {
        self.result(point).params.insert(name.to_owned(), value);
    }

    /// States what the remote of a point says of itself.
    pub fn set_remote(&mut self, point: usize, remote: RemoteIdentity) {
        self.result(point).remote = Some(remote);
    }

    /// States who had a part in the first transactions of a point.
    pub fn set_hops(&mut self, point: usize, hops: Vec<TransactionHop>) {
        self.result(point).hops = hops;
    }

    /// Events of a point so far, and their durations together, ns.
    pub fn total(&self, point: usize) -> Option<(u64, f64)> {
        let histogram = self.slots.snapshot(point).histogram;
        Some((histogram.count(), histogram.mean()? * histogram.count() as f64))
    }

    /// States the bytes behind one operation of a point, before it begins.
    pub fn set_work(&mut self, point: usize, work: OperationWork) {
        self.is_still_to_begin(point);
        self.result(point).work = Some(work);
    }

    /// The median of a point so far, in ns.
    pub fn median(&self, point: usize) -> Option<f64> {
        self.slots.snapshot(point).histogram.quantile(0.5)
    }

    /// Adds a named quantity that is no duration of the point itself.
    pub fn add_value(&mut self, point: usize, name: &str, value: f64, unit: &str, better: Better) {
        let value = MeasuredQuantity { value, unit: unit.to_owned(), better };
        self.result(point).values.insert(name.to_owned(), value);
    }

    /// States that no event of a point is a result and not a failure, in words.
    pub fn uneventful(&mut self, point: usize, text: impl Into<String>) {
        let result = self.result(point);
        result.uneventful = true;
        result.quality.add_reason(Reason::new(QualityLevel::Ok, "uneventful", text, ""));
    }

    /// Marks a point as measured under conditions that distort it; `id` names the
    /// condition for programs. What could not be measured stays that.
    pub fn degrade(&mut self, point: usize, id: &str, reason: impl Into<String>, remedy: impl Into<String>) {
        let quality = &mut self.result(point).quality;
        if quality.level != QualityLevel::Unsupported {
            quality.add_reason(Reason::new(QualityLevel::Degraded, id, reason, remedy));
        }
    }

    /// Marks a point as degraded because it ended before it had all it was to have.
    pub fn cut_short(&mut self, point: usize, reason: impl Into<String>) {
        self.degrade(point, CUT_SHORT, reason, "");
        self.result(point).cut_short = true;
    }

    /// Marks a point of which nothing that came back was valid; the text says what did.
    pub fn nothing_valid(&mut self, point: usize, reason: impl Into<String>) {
        self.result(point).quality.add_reason(Reason::new(
            QualityLevel::Unsupported,
            NO_VALID_REPLY,
            reason,
            "",
        ));
    }

    /// Marks a point whose other side was asked for and was not there.
    pub fn no_peer(&mut self, point: usize, reason: impl Into<String>) {
        self.result(point).quality.add_reason(Reason::new(QualityLevel::Unsupported, NO_PEER, reason, ""));
    }

    /// Announces to observers, before anything is measured, why the points will be [degraded](Bench::degrade).
    pub fn announce_shortfall(&mut self, shortfall: &Shortfall) {
        let Shortfall { reason, remedy, .. } = shortfall.clone();
        (self.tell)(WorkerMessage::Shortfall { reason, remedy: remedy.to_owned() });
    }

    /// Marks a point as measured without a condition that was asked for.
    pub fn fell_short(&mut self, point: usize, shortfall: &Shortfall) {
        self.degrade(point, shortfall.id, shortfall.reason.as_str(), shortfall.remedy);
    }

    /// Counts the processes at the other end of what this process has open as peers: their CPU time disturbs nothing.
    pub fn find_peers(&mut self) {
        // The run is that of the coordinator, which started this process.
        let run = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get() as u32);
        self.peers = Peers::find_outside_run(run);
        self.account_for_peers();
    }

    /// States what the peers used; before their channel is closed, since they may end with it.
    pub fn account_for_peers(&mut self) {
        let (processes, used_ns) = (self.peers.process_ids(), self.peers.used_ns());
        if !processes.is_empty() {
            (self.tell)(WorkerMessage::Peers(processes, used_ns));
        }
    }

    /// Announces to observers what a point waits for before it can be measured.
    pub fn announce_wait(&mut self, text: &str) {
        (self.tell)(WorkerMessage::Waiting(text.to_owned()));
    }

    /// Closes a point that cannot be measured here; what else speaks against it does not matter then.
    pub fn unsupported(&mut self, point: usize, reason: impl Into<String>, remedy: impl Into<String>) {
        let quality = &mut self.result(point).quality;
        if quality.level != QualityLevel::Unsupported {
            *quality = Quality::default();
            quality.add_reason(Reason::new(QualityLevel::Unsupported, "not-possible-here", reason, remedy));
        }
    }

    /// Checks that nothing has been recorded: the meaning of samples is stated before the first of them, because
    /// samples outlive this process.
    fn is_still_to_begin(&self, point: usize) {
        debug_assert!(self.slots.snapshot(point).sampling.is_none(), "stated too late");
    }
}
