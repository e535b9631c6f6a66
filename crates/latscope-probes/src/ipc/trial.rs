//! Trial of the inheritance of a caller's priority: calls by threads that have one, and the server's own
//! scheduling meanwhile.

use super::caller::IpcClientChannel;
use super::hog::fifo;
use super::orders::InheritanceTrial;
use latscope_os::sched::{self, ThreadSchedState};
use std::time::Duration;

/// The nice value of the caller that has one: better than that of any server.
const NICE: i32 = -5;

/// The priority where no caller has one.
const PRIORITY: u32 = 95;

/// Tries out a real-time caller and a niced one, `calls` calls each.
pub fn run_trials(
    line: IpcClientChannel,
    calls: u64,
    priority: Option<u32>,
    sequence: &mut u64,
) -> (InheritanceTrial, InheritanceTrial) {
    let priority = priority.unwrap_or(PRIORITY);
    let (line, real_time) = run_trial(line, calls, sequence, move || fifo(priority).map_or(Ok(()), Err));
    let (_, nice) = run_trial(line, calls, sequence, || {
        sched::set_nice(NICE).map_err(|error| format!("a nice value of {NICE} is not granted: {error}"))
    });
    (real_time, nice)
}

/// Makes calls from a thread that has been given a priority by `settle`.
fn run_trial(
    line: IpcClientChannel,
    calls: u64,
    sequence: &mut u64,
    settle: impl FnOnce() -> Result<(), String> + Send,
) -> (IpcClientChannel, InheritanceTrial) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let mut own = line.another().and_then(Result::ok);
            let mut line = line;
            let mut trial = InheritanceTrial::default();
            match settle() {
                Err(refused) => trial.refused = Some(refused),
                Ok(()) => (0..calls).for_each(|_| {
                    *sequence += 2;
                    try_call(own.as_mut().unwrap_or(&mut line), *sequence, &mut trial);
                }),
            }
            drop(own);
            (line, trial)
        });
        thread.join().expect("a trial does not panic")
    })
}

fn try_call(line: &mut IpcClientChannel, sequence: u64, trial: &mut InheritanceTrial) {
    let state = sched::sched_state(0).unwrap_or_default();
    let Ok(reply) = line.query_server(sequence, state) else { return };
    let Some(server) = reply.server else { return };
    trial.calls += 1;
    trial.inherited += u64::from(server == state);
    trial.restored += u64::from(restored(reply.thread));
}

/// Returns true if a server's thread has its own priority again. It may get that back only when it waits for
/// the next request, a moment later.
fn restored(thread: u32) -> bool {
    for _ in 0..100 {
        match sched::sched_state(thread) {
            Ok(state) if state == ThreadSchedState::default() => return true,
            Ok(_) => std::thread::sleep(Duration::from_micros(100)),
            Err(_) => return false,
        }
    }
    false
}
