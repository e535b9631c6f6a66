//! Lock and unlock of an uncontended mutex.

use crate::{Cpus, Experiment, Facts, Headline, Probe, Settings};
use anyhow::{Context, Result};
use latscope_bench::bench::{Batch, Bench};
use latscope_core::report::Semantics;
use latscope_os::monitor::Mutex;
use latscope_os::shared_cell::{Scope, SharedCell};
use std::sync::mpsc;

/// Probe of a lock that no other thread wants: no thread is blocked or woken. Lists of latency numbers call
/// this "mutex"; a hand-off is another operation.
pub static MUTEX: Probe = Probe {
    facts: Facts {
        id: "sync.mutex",
        title: "mutex lock + unlock, uncontended",
        timed: "pthread_mutex_lock and pthread_mutex_unlock of an uncontended mutex, in a process with two threads.",
        times: Semantics::Operation,
        source: "pthread_mutex_lock(3)",
        revision: 1,
        params: <()>::LIST,
        headline: Some(Headline { name: "mutex", preferred: &[] }),
        ..Facts::BATCHES
    },
    check: <()>::check,
    experiment: &EXPERIMENT,
    plan: |_, _| vec![MUTEX.point((), MUTEX.title, true)],
};

static EXPERIMENT: Experiment = Experiment::new("sync.mutex", Cpus::One, run);

fn run(bench: &mut Bench) -> Result<()> {
    let mutex = SharedCell::<Mutex>::create(Scope::Threads).context("no memory for a mutex")?;
    // glibc leaves out the atomic instruction while a process has one thread
    // only; programs that need a mutex have more.
    let (end, ended) = mpsc::channel::<()>();
    let second =
        std::thread::Builder::new().spawn(move || ended.recv()).context("no thread can be created")?;
    bench.batch(0, Batch { cycles: true, ..Batch::default() }, |iterations| {
        for _ in 0..iterations {
            mutex.with(|| ());
        }
    });
    drop(end);
    // It ends because the channel is closed, which is no error here.
    let _ = second.join();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn it_is_measured() {
        for m in harness::measure(&EXPERIMENT, harness::points(&MUTEX)) {
            harness::check(&m);
        }
    }
}
