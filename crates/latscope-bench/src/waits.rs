//! Time that the measuring threads of this process waited for a CPU though they could run.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Run delay of measuring threads that have ended, ns.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Time from begin to end of measuring threads that have ended, ns.
static ENDED_TIME: AtomicU64 = AtomicU64::new(0);

/// Ids of the measuring threads that have not ended, without the calling thread, each with the time of its begin.
static RUNNING: Mutex<Vec<(i32, Instant)>> = Mutex::new(Vec::new());

/// A stretch of time over which the waits of the calling thread and of all [`Measuring`] ones are added up.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    began: Instant,
    before: Option<u64>,
    /// Time of the measuring threads until then, ns.
    time_before: u64,
}

impl Waits {
    /// Starts here. Reads files: outside of stamps only.
    pub fn start_counting() -> Waits {
        Waits { before: of_all(), time_before: time_of_measuring(), began: Instant::now() }
    }

    /// Time since the start, the run delay in it, and the time of all threads that could wait, ns; the delay is `None`
    /// where the kernel does not count it.
    pub fn so_far(&self) -> (u64, Option<u64>, Option<u64>) {
        let wall = self.began.elapsed().as_nanos() as u64;
        let delay = self.before.zip(of_all()).map(|(before, now)| now.saturating_sub(before));
        let threads = wall + time_of_measuring().saturating_sub(self.time_before);
        (wall, delay, delay.map(|_| threads))
    }
}

/// Counts a thread among those that measure, for as long as it is held by it:
/// threads that only keep a CPU awake wait for it all the time.
#[derive(Debug)]
pub struct Measuring(i32);

impl Measuring {
    /// Counts the calling thread.
    pub fn register_thread() -> Measuring {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        RUNNING.lock().expect("no holder panics").push((thread, Instant::now()));
        Measuring(thread)
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        // `/proc` forgets it with the thread.
        let mut running = RUNNING.lock().expect("no holder panics");
        ENDED.fetch_add(run_delay(self.0).unwrap_or(0), Relaxed);
        for (_, began) in running.extract_if(.., |(thread, _)| *thread == self.0) {
            ENDED_TIME.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
        }
    }
}

/// Run delay of all measuring threads so far, ns.
fn of_all() -> Option<u64> {
    Some(own_run_delay()? + of_measuring())
}

/// Run delay of the calling thread so far, ns; `None` where the kernel does not count it.
pub fn own_run_delay() -> Option<u64> {
    run_delay(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Run delay of all [`Measuring`] threads so far, ns.
pub fn of_measuring() -> u64 {
    let running = RUNNING.lock().expect("no holder panics");
    running.iter().filter_map(|(thread, _)| run_delay(*thread)).sum::<u64>() + ENDED.load(Relaxed)
}

/// Time of all [`Measuring`] threads so far, ns.
fn time_of_measuring() -> u64 {
    let running = RUNNING.lock().expect("no holder panics");
    let alive: u64 = running.iter().map(|(_, began)| began.elapsed().as_nanos() as u64).sum();
    alive + ENDED_TIME.load(Relaxed)
}

/// Run delay of all threads of another process so far, ns.
pub fn of_process(process: u32) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    tasks.map(|task| delay_in(&task.path())).sum()
}

/// Run delay of a thread of this process so far, ns; `None` if the kernel does not count it.
pub fn run_delay(thread: i32) -> Option<u64> {
    delay_in(Path::new(&format!("/proc/self/task/{thread}")))
}

/// The second figure of a `schedstat` file: time on a run queue, ns (proc(5)).
fn delay_in(task: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;
    use latscope_os::sched;

    #[test]
    fn two_threads_on_one_cpu_wait_for_each_other_and_their_waits_stay_known() {
        let cpu = *sched::allowed_cpus().unwrap().last().expect("a CPU is allowed");
        let waits = Waits::start_counting();
        if waits.before.is_none() {
            return skipped("two_threads_on_one_cpu_wait_for_each_other", "this kernel has no schedstat");
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    let _measuring = Measuring::register_thread();
                    sched::pin(&[cpu]).unwrap();
                    let began = Instant::now();
                    while began.elapsed().as_millis() < 60 {
                        std::hint::spin_loop();
                    }
                });
            }
        });
        let (wall, delay, threads) = waits.so_far();
        assert!(of_process(std::process::id()) >= own_run_delay(), "this thread is one of the process");
        // Each had the CPU at most half of the time that both wanted it.
        assert!(delay.unwrap() > 10_000_000, "{delay:?} of {wall}");
        // The time of both, and of this thread.
        assert!(threads.unwrap() >= wall + 2 * 60_000_000, "{threads:?} of {wall}");
    }
}
