//! Gate: detects whether anything else ran while a sample was taken.

use latscope_os::usage::{ResourceUsageCounts, process_cpu_ns, thread_counts, thread_cpu_ns};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Conditions that make a sample clean.
#[derive(Debug, Clone)]
pub enum SampleGate {
    /// A thread that never blocks: no context switch, and all of the time was its own CPU time.
    Thread,
    /// Several threads of which one at a time runs, on one CPU: all of the
    /// time was CPU time of the process.
    OneCpu,
    /// Condition of `Thread`, for the thread that stamps. Its helpers raise the flag when their own
    /// [`DisturbanceWatch`] saw a disturbance.
    ThreadGroup(Arc<AtomicBool>),
    /// No gate: what is timed waits for devices or for other CPUs.
    Open,
}

/// Reason why a sample was thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taint {
    /// Something else ran on the CPU.
    Preempted,
    /// No switch was counted, but time is missing: the hypervisor, firmware or
    /// an interrupt took it.
    Stolen,
}

/// Readings at the opening of a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleGateReading {
    /// Voluntary and involuntary switches so far.
    pub switches: u64,
    /// CPU time so far, ns.
    pub cpu_ns: u64,
}

/// Time that may be missing without a sample being tainted: the readings
/// themselves, and a timer tick.
fn allowance(wall_ns: f64) -> f64 {
    3_000.0 + wall_ns / 50.0
}

impl SampleGateReading {
    /// Returns the disturbance between this reading and `now`, in a stretch that took `wall_ns`.
    pub fn find_disturbance(&self, now: SampleGateReading, wall_ns: f64) -> Option<Taint> {
        let missing = wall_ns - (now.cpu_ns - self.cpu_ns) as f64;
        if now.switches != self.switches {
            Some(Taint::Preempted)
        } else if missing > allowance(wall_ns) {
            Some(Taint::Stolen)
        } else {
            None
        }
    }
}

fn switches(counts: ResourceUsageCounts) -> u64 {
    counts.voluntary + counts.involuntary
}

impl SampleGate {
    /// Reads what the gate compares. Outside of the stamps.
    pub fn take_reading(&self) -> SampleGateReading {
        match self {
            SampleGate::Thread | SampleGate::ThreadGroup(_) => {
                SampleGateReading { switches: switches(thread_counts()), cpu_ns: thread_cpu_ns() }
            }
            SampleGate::OneCpu => SampleGateReading { switches: 0, cpu_ns: process_cpu_ns() },
            SampleGate::Open => SampleGateReading::default(),
        }
    }

    /// Reads again and judges the stretch of `wall_ns` since `before`.
    pub fn close_and_judge(&self, before: SampleGateReading, wall_ns: f64) -> Option<Taint> {
        let told = match self {
            SampleGate::Open => return None,
            SampleGate::ThreadGroup(flag) => flag.swap(false, Ordering::Relaxed),
            _ => false,
        };
        match before.find_disturbance(self.take_reading(), wall_ns) {
            // Another process that ran instead was not counted as a switch of one thread.
            Some(_) if matches!(self, SampleGate::OneCpu) => Some(Taint::Preempted),
            None if told => Some(Taint::Preempted),
            taint => taint,
        }
    }
}

/// A helper's own gate: opened before its share of the work, asked after.
#[derive(Debug, Clone, Copy)]
pub struct DisturbanceWatch(SampleGateReading);

impl DisturbanceWatch {
    /// Starts watching the calling thread.
    pub fn watch_thread() -> DisturbanceWatch {
        DisturbanceWatch(SampleGate::Thread.take_reading())
    }

    /// Returns true if anything else ran on the thread's CPU in the last `wall_ns`.
    pub fn disturbed(&self, wall_ns: f64) -> bool {
        self.0.find_disturbance(SampleGate::Thread.take_reading(), wall_ns).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_taints_and_so_does_missing_time() {
        let before = SampleGateReading { switches: 5, cpu_ns: 1_000 };
        let after = |switches, cpu_ns| SampleGateReading { switches, cpu_ns };
        assert_eq!(before.find_disturbance(after(5, 501_000), 500_000.0), None);
        assert_eq!(before.find_disturbance(after(6, 501_000), 500_000.0), Some(Taint::Preempted));
        assert_eq!(before.find_disturbance(after(5, 301_000), 500_000.0), Some(Taint::Stolen));
        // A tick's worth may be missing.
        assert_eq!(before.find_disturbance(after(5, 495_000), 500_000.0), None);
    }

    #[test]
    fn a_sleep_does_not_pass_the_gate() {
        for gate in [SampleGate::Thread, SampleGate::ThreadGroup(Arc::default())] {
            let before = gate.take_reading();
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert_eq!(gate.close_and_judge(before, 5e6), Some(Taint::Preempted), "{gate:?}");
        }
        // More time than all threads of this process together can have used.
        assert_eq!(
            SampleGate::OneCpu.close_and_judge(SampleGate::OneCpu.take_reading(), 1e15),
            Some(Taint::Preempted)
        );
        assert_eq!(SampleGate::Open.close_and_judge(SampleGate::Open.take_reading(), 5e6), None);
    }

    #[test]
    fn a_helper_can_taint_a_sample_once() {
        let flag = Arc::new(AtomicBool::new(true));
        let gate = SampleGate::ThreadGroup(flag);
        assert_eq!(gate.close_and_judge(gate.take_reading(), 0.0), Some(Taint::Preempted));
        assert_eq!(gate.close_and_judge(gate.take_reading(), 0.0), None);
    }
}
