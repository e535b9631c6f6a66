//! Setting a timer again, with others armed beside it.

use super::ready::allow_descriptors;
use crate::prelude::*;
use latscope_bench::bench::Addresses;
use latscope_os::kernels::code::calls::SystemCallLoop;
use rustix::fd::AsFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

static TIMER: Experiment =
    Experiment::new("syscall.timer-set", Cpus::One, run_timer_sets).setup_per_point(0.1);

settings! {
    /// A timer among others.
    struct ArmedTimerSettings, requested as ArmedTimerRequest {
        /// Timers that are armed beside it
        armed: u64, axis;
        /// Place of its instant: before those of all others (`first`), so that the interrupt is programmed again, or
        /// after them (`last`)
        mode: TimerPosition;
    }
}

words! {
    /// Place of the timer's instant.
    enum TimerPosition {
        /// Before those of all others: the interrupt is programmed again.
        First = "first",
        /// After those of all others.
        Last = "last",
    }
}

probes! {
    TIMER, ArmedTimerSettings, plan_timer_sets, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), at_addresses: true, ..ProbeFacts::DEFAULT };
    SET "syscall.timer-set", "set a timer again", "timerfd_settime(2)",
        "One timerfd_settime of an armed timer, among so many others of this thread on the same clock. Mode \
        first: to 50 µs from now, mostly before all else that the CPU's clock waits for; it is set again before \
        it comes. Mode last: behind all others."
            { by_name_only: true, may_be_zero: &["armed"], };
}

fn plan_timer_sets(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let numbers: &[u64] = match input.profile {
        SurveyProfile::Quick => &[1, 1_000],
        _ => &[1, 1_000, 10_000, 100_000],
    };
    let asked = ArmedTimerRequest::of(input);
    let mut points = Vec::new();
    for mode in asked.mode.or(TimerPosition::ALL) {
        for armed in asked.armed.or(numbers) {
            let title = format!(
                "{}, {} of {}",
                probe.title,
                mode.word(),
                count_with_noun(armed.saturating_add(1), "timer")
            );
            points.push(probe.make_point(ArmedTimerSettings { armed, mode }, title, true));
        }
    }
    points
}

/// Instants, from now. That of the first is near, since the clock is programmed only if nothing else comes before: 50
/// µs were that in three of four calls (KVM, busy machine), 500 µs in one of four. If it comes, nothing waits for it.
const FIRST: Duration = Duration::from_micros(50);
const OTHERS: u64 = 20_000;
const LAST: Duration = Duration::from_secs(90_000);

fn run_timer_sets(bench: &mut Bench) -> Result<()> {
    let amongs: Vec<ArmedTimerSettings> = bench.settings()?;
    for (index, ArmedTimerSettings { armed, mode }) in amongs.into_iter().enumerate() {
        let from_now = if mode == TimerPosition::First { FIRST } else { LAST };
        let armed = create_timers(armed).and_then(|others| Ok((timer(from_now)?, others)));
        if let Some((timer, _others)) = ok_or_refuse(bench, index, "arm that many timers", armed) {
            measure_timer_set(bench, index, &timer, mode, from_now);
        }
    }
    Ok(())
}

/// Times single calls: the clock is programmed in some of them only.
fn measure_timer_set(
    bench: &mut Bench,
    index: usize,
    timer: &OwnedFd,
    mode: TimerPosition,
    from_now: Duration,
) {
    let mut calls = SystemCallLoop::set_timer(bench.seed(), timer.as_fd(), from_now);
    let mut addresses = Addresses::new(calls.address_count(), bench.stop().events);
    let (timebase, mut first) = (bench.timebase(), FirstError::default());
    bench.splits(&[index], SampleGate::Thread, |splits| {
        let address = addresses.next_event();
        first.check_result(splits.time_part(0, || calls.run_at(address, 1)));
        addresses.record_time(timebase.interval_ns(splits.part_ticks(0)));
    });
    // Events of two kinds: their shares at an address decide its median, not the address.
    if first.ok_or_close(bench, &[index], "timerfd_settime") && mode == TimerPosition::Last {
        bench.state_addresses(index, &addresses);
    }
}

/// Armed timers, with instants in no order.
fn create_timers(count: u64) -> rustix::io::Result<Vec<OwnedFd>> {
    allow_descriptors(count)?;
    (0..count).map(|number| timer(Duration::from_secs(OTHERS + number * 7919 % 50_000))).collect()
}

fn timer(from_now: Duration) -> rustix::io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    arm_timer(&timer, from_now)?;
    Ok(timer)
}

#[inline(always)]
fn arm_timer(timer: &OwnedFd, from_now: Duration) -> rustix::io::Result<()> {
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let value = Timespec { tv_sec: from_now.as_secs() as _, tv_nsec: from_now.subsec_nanos() as _ };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: never, it_value: value })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};
    use rustix::time::timerfd_gettime;

    #[test]
    fn timers_are_set_among_many() {
        for m in measure(&TIMER, points(&SET)) {
            check(&m);
            assert_ne!(
                m.quality.level,
                QualityLevel::Unsupported,
                "{:?}: {:?}",
                m.params,
                m.joined_reasons()
            );
        }
        let impossible =
            SET.make_point(ArmedTimerSettings { armed: 1 << 40, mode: TimerPosition::First }, "", false);
        assert_eq!(measure(&TIMER, vec![impossible])[0].quality.level, QualityLevel::Unsupported);
    }

    #[test]
    fn a_timer_is_armed_for_what_was_set() {
        let timer = timer(Duration::from_secs(OTHERS)).unwrap();
        arm_timer(&timer, LAST).unwrap();
        let left = timerfd_gettime(&timer).unwrap().it_value.tv_sec as u64;
        assert!((OTHERS + 50_000..=LAST.as_secs()).contains(&left), "{left}");
    }
}
