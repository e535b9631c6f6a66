//! Threads beside the measuring one.

use crate::hold::Shortfall;
use crate::waits::Measuring;
use anyhow::{Context, Result};
use latscope_core::units::CpuList;
use latscope_os::sched;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Builder, JoinHandle, Scope};

/// Puts the calling thread on a CPU.
///
/// # Errors
/// The CPU cannot be used; the text names it.
pub fn pin(cpu: u32) -> Result<()> {
    sched::pin(&[cpu]).with_context(|| format!("CPU {cpu} cannot be used"))
}

/// Returns the shortfall of the calling thread, if it was moved off the CPUs that it chose, or may be.
pub fn moved() -> Option<Shortfall> {
    let (place, allowed) = sched::changed_affinity()?;
    let (place, allowed) = (CpuList(place), CpuList(allowed));
    let reason = format!("a thread that was to stay on CPU {place} was made to run on CPU {allowed}");
    Some(Shortfall::other_cpu(reason))
}

/// Shortfalls of threads that have ended.
static MOVED: Mutex<BTreeSet<Shortfall>> = Mutex::new(BTreeSet::new());

/// Returns the shortfalls of the calling thread and of all [started](start) ones that have ended, if they were
/// [moved].
pub(crate) fn all_moved() -> BTreeSet<Shortfall> {
    let mut shortfalls = MOVED.lock().expect("no holder panics").clone();
    shortfalls.extend(moved());
    shortfalls
}

/// A thread that was [started](start_partner).
#[derive(Debug)]
pub struct Partner<T>(JoinHandle<Option<T>>);

impl<T> Partner<T> {
    /// Returns true if the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the end of the thread; returns its result.
    ///
    /// # Panics
    /// The thread panicked.
    pub fn join(self) -> T {
        self.0.join().expect("a partner does not panic").expect("a partner was set up")
    }
}

/// Starts a thread that measures with the calling one. It sets itself up; this returns when it has.
///
/// # Errors
/// There is no thread, or it cannot be set up.
pub fn start_partner<T: Send + 'static>(
    set_up: impl FnOnce() -> Result<()> + Send + 'static,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Partner<T>> {
    let (told, ready) = mpsc::channel();
    let body = move || {
        let _measuring = Measuring::register_thread();
        body()
    };
    let thread = Builder::new().spawn(move || set_up_and_run(set_up, &told, body)).context(NO_THREAD)?;
    wait_until_ready(&ready)?;
    Ok(Partner(thread))
}

/// Starts a thread of a scope on a CPU; returns when it is there. What it waits for a CPU is not counted.
///
/// # Errors
/// As [`start_partner`].
pub fn start_in<'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: u32,
    body: impl FnOnce() + Send + 'scope,
) -> Result<()> {
    let (told, ready) = mpsc::channel();
    Builder::new()
        .spawn_scoped(scope, move || set_up_and_run(|| pin(cpu), &told, body))
        .context(NO_THREAD)?;
    wait_until_ready(&ready)
}

const NO_THREAD: &str = "no thread can be created";

fn wait_until_ready(ready: &Receiver<Result<()>>) -> Result<()> {
    ready.recv().context("a thread ended early")?
}

fn set_up_and_run<T>(
    set_up: impl FnOnce() -> Result<()>,
    told: &Sender<Result<()>>,
    body: impl FnOnce() -> T,
) -> Option<T> {
    let done = set_up();
    let is_set_up = done.is_ok();
    let result = (told.send(done).is_ok() && is_set_up).then(body);
    MOVED.lock().expect("no holder panics").extend(moved());
    result
}

/// Flag on which threads end: it is set when this is dropped, also by a panic.
#[derive(Debug)]
pub struct StopFlagGuard<'a>(pub &'a AtomicBool);

impl Drop for StopFlagGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_partner_begins_on_its_cpu_and_one_that_cannot_be_set_up_never_begins() {
        let cpu = sched::allowed_cpus().unwrap()[0];
        let partner = start_partner(move || pin(cpu), || sched::allowed_cpus().unwrap()).unwrap();
        assert_eq!(partner.join(), [cpu]);
        let error = start_partner(|| bail!("refused"), || panic!("it began")).unwrap_err();
        assert_eq!(error.to_string(), "refused");
        let nowhere = start_partner(|| pin(60_000), || ()).unwrap_err();
        assert!(nowhere.to_string().contains("CPU 60000 cannot be used"), "{nowhere}");
        std::thread::scope(|scope| {
            start_in(scope, cpu, || assert_eq!(sched::allowed_cpus().unwrap(), [cpu])).unwrap();
            assert!(start_in(scope, 60_000, || panic!("it began")).is_err());
        });
    }

    #[test]
    fn a_partner_that_is_moved_from_outside_is_a_shortfall() {
        let allowed = sched::allowed_cpus().unwrap();
        let (cpu, everywhere) = (allowed[0], allowed.clone());
        let body = move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            std::thread::spawn(move || sched::pin_thread(thread, &everywhere).unwrap()).join().unwrap();
        };
        start_partner(move || pin(cpu), body).unwrap().join();
        let reasons: Vec<String> = all_moved().into_iter().map(|shortfall| shortfall.reason).collect();
        let expected = format!(
            "a thread that was to stay on CPU {cpu} was made to run on CPU {}",
            CpuList(allowed.clone())
        );
        // On one CPU there is nowhere to go.
        assert_eq!(reasons, Vec::from_iter((allowed.len() > 1).then_some(expected)));
    }
}
