//! Time that the measuring threads of this process waited for a CPU though they could run.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Run delay of measuring threads that have ended, ns.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Ids of the measuring threads that have not ended, without the calling thread.
static RUNNING: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// A stretch of time over which the waits of the calling thread and of all [`Measuring`] ones are added up.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    began: Instant,
    before: Option<u64>,
}

impl Waits {
    /// Starts here. Reads files: outside of stamps only.
    pub fn start() -> Waits {
        Waits { before: of_all(), began: Instant::now() }
    }

    /// Time since the start, and the run delay in it, ns; the delay is `None`
    /// where the kernel does not count it.
    pub fn so_far(&self) -> (u64, Option<u64>) {
        let wall = self.began.elapsed().as_nanos() as u64;
        (wall, self.before.zip(of_all()).map(|(before, now)| now.saturating_sub(before)))
    }
}

/// Counts a thread among those that measure, for as long as it is held by it:
/// threads that only keep a CPU awake wait for it all the time.
#[derive(Debug)]
pub struct Measuring(i32);

impl Measuring {
    /// Counts the calling thread.
    pub fn hold() -> Measuring {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        RUNNING.lock().expect("no holder panics").push(thread);
        Measuring(thread)
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        // `/proc` forgets it with the thread.
        let mut running = RUNNING.lock().expect("no holder panics");
        ENDED.fetch_add(run_delay(self.0).unwrap_or(0), Relaxed);
        running.retain(|thread| *thread != self.0);
    }
}

/// Run delay of all measuring threads so far, ns.
fn of_all() -> Option<u64> {
    Some(own()? + of_measuring())
}

/// Run delay of the calling thread so far, ns; `None` where the kernel does not count it.
pub fn own() -> Option<u64> {
    run_delay(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Run delay of all [`Measuring`] threads so far, ns.
pub fn of_measuring() -> u64 {
    let running = RUNNING.lock().expect("no holder panics");
    running.iter().filter_map(|thread| run_delay(*thread)).sum::<u64>() + ENDED.load(Relaxed)
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
        let waits = Waits::start();
        if waits.before.is_none() {
            return skipped("two_threads_on_one_cpu_wait_for_each_other", "this kernel has no schedstat");
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    let _measuring = Measuring::hold();
                    sched::pin(&[cpu]).unwrap();
                    let began = Instant::now();
                    while began.elapsed().as_millis() < 60 {
                        std::hint::spin_loop();
                    }
                });
            }
        });
        let (wall, delay) = waits.so_far();
        assert!(of_process(std::process::id()) >= own(), "this thread is one of the process");
        // Each had the CPU at most half of the time that both wanted it.
        assert!(delay.unwrap() > 10_000_000, "{delay:?} of {wall}");
    }
}
