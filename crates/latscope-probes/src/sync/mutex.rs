//! Lock and unlock of an uncontended mutex.

use crate::prelude::*;
use latscope_os::monitor::Mutex;
use std::sync::mpsc;

probes! {
    EXPERIMENT, (), crate::only_point, ..ProbeFacts { by: Some(SyscallInvocation::Libc), ..ProbeFacts::BATCHES };
    MUTEX "sync.mutex", "mutex lock + unlock, uncontended", "pthread_mutex_lock(3)",
        "pthread_mutex_lock and pthread_mutex_unlock of an uncontended mutex, in a process with two threads."
        { headline: Some(ProbeHeadline { name: "mutex", preferred: &[] }), };
}

static EXPERIMENT: Experiment = Experiment::new("sync.mutex", Cpus::One, run_mutex_probe);

fn run_mutex_probe(bench: &mut Bench) -> Result<()> {
    let mutex = SharedCell::<Mutex>::create_zeroed(SharingScope::Threads).context("no memory for a mutex")?;
    // glibc leaves out the atomic instruction while a process has one thread
    // only; programs that need a mutex have more.
    let (end, ended) = mpsc::channel::<()>();
    let second =
        std::thread::Builder::new().spawn(move || ended.recv()).context("no thread can be created")?;
    bench.calls(0, Batch { cycles: true, ..Batch::default() }, || mutex.with_lock(|| ()));
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
