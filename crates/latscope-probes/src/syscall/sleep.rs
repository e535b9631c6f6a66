//! Sleeps of an ordinary thread by its timer slack: how late they end.

use crate::apart::measure_apart;
use crate::prelude::*;
use latscope_os::timer_slack;
use std::thread::Builder;

probes! {
    EXPERIMENT, ShortSleepSettings, plan_sleeps, ..ProbeFacts::DELAYS;
    SLACK "syscall.sleep", "late end of a sleep", "nanosleep(2), PR_SET_TIMERSLACK(2const)",
        "From 200 µs after a thread of SCHED_OTHER called nanosleep for 200 µs to its return, with the given \
        timer slack. Other sleepers on the CPU do the same; `interrupts`: of the CPU's timer for each sleep."
        { times: Semantics::OneWay, by_name_only: true, most: &[("sleepers", MOST)],
          sensitive_to: &[Condition::WakeUp, Condition::Virtualisation, Condition::Fairness], };
}

static EXPERIMENT: Experiment = Experiment::new("syscall.sleep", Cpus::One, run_sleeps);

settings! {
    /// Settings of a short sleep.
    struct ShortSleepSettings, requested as ShortSleepRequest {
        /// Timer slack of the thread; the kernel's default is 50 µs
        slack: u64 as Time, axis;
        /// Threads that sleep on one CPU, one of which is timed
        sleepers: u64;
    }
}

/// Largest number of threads that sleep at once.
const MOST: u64 = 256;

/// Length of a sleep.
const SLEEP: Duration = Duration::from_micros(200);

fn plan_sleeps(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let usual: &[u64] = match input.profile {
        SurveyProfile::Quick => &[1, 50_000],
        _ => &[1, 50_000, 200_000, 1_000_000],
    };
    let asked = ShortSleepRequest::of(input);
    let mut points = Vec::new();
    for sleepers in asked.sleepers.or(&[1, 8]).into_iter().filter(|sleepers| (1..=MOST).contains(sleepers)) {
        // The kernel takes 0 for its default.
        for slack in asked.slack.or(usual).into_iter().filter(|slack| *slack > 0) {
            let of = count_with_noun(sleepers, "thread");
            let title = format!("{}, {of}, timer slack {}", probe.title, format_time(slack as f64));
            points.push(probe.make_point(ShortSleepSettings { slack, sleepers }, title, true));
        }
    }
    points
}

fn run_sleeps(bench: &mut Bench) -> Result<()> {
    for (index, sleep) in bench.settings::<ShortSleepSettings>()?.into_iter().enumerate() {
        measure_apart(bench, |bench| {
            measure_sleep(bench, index, &sleep);
            Ok(())
        })?;
    }
    Ok(())
}

fn measure_sleep(bench: &mut Bench, index: usize, sleep: &ShortSleepSettings) {
    let slack = sleep.slack;
    let Some(()) = ok_or_refuse(bench, index, "set the timer slack", timer_slack::set_slack_ns(slack)) else {
        return;
    };
    if timer_slack::get() != Some(slack) {
        let reason = "the kernel has no timer slack for this thread: a real-time policy has none";
        return bench.unsupported(index, reason, "");
    }
    let (over, others) = (AtomicBool::new(false), AtomicU64::new(0));
    let sleep_on = || {
        while !over.load(Relaxed) {
            std::thread::sleep(SLEEP);
            others.fetch_add(1, Relaxed);
        }
    };
    std::thread::scope(|scope| {
        // They have the slack and the CPU of this thread, which starts them.
        let sleeper = |_| Builder::new().spawn_scoped(scope, sleep_on);
        match (1..sleep.sleepers).map(sleeper).collect::<std::io::Result<Vec<_>>>() {
            Ok(_) => time_sleeps(bench, index, &others),
            Err(error) => {
                bench.unsupported(index, format!("no thread can be created: {error}"), more_tasks())
            }
        }
        over.store(true, Relaxed);
    });
}

/// Times sleeps of this thread, beside those that the others count.
fn time_sleeps(bench: &mut Bench, index: usize, others: &AtomicU64) {
    let ticks = bench.timebase().ticks(SLEEP.as_nanos() as u64);
    let cpu = bench.cpus()[0];
    let interrupts =
        || timer_interrupts(&std::fs::read_to_string("/proc/interrupts").unwrap_or_default(), cpu);
    let (before, slept) = (interrupts(), others.load(Relaxed));
    let (mut sleeps, mut early) = (0_u64, 0_u64);
    bench.splits(&[index], SampleGate::Open, |splits| {
        let began = splits.now();
        std::thread::sleep(SLEEP);
        let ended = splits.now();
        sleeps += 1;
        early += u64::from(ended < began + ticks);
        splits.set_part(0, began + ticks, ended);
    });
    sleeps += others.load(Relaxed) - slept;
    bench.add_value(index, "early", early as f64, "", Better::Neither);
    if let (Some(before), Some(after), true) = (before, interrupts(), sleeps > 0) {
        let each = after.saturating_sub(before) as f64 / sleeps as f64;
        bench.add_value(index, "interrupts", each, "", Better::Neither);
    }
}

/// Interrupts of a CPU's own timer so far, by the text of `/proc/interrupts`: x86 and arm64.
fn timer_interrupts(text: &str, cpu: u32) -> Option<u64> {
    let column = text.lines().next()?.split_whitespace().position(|name| name == format!("CPU{cpu}"))?;
    let is_timer = |line: &&str| line.trim_start().starts_with("LOC:") || line.contains("arch_timer");
    text.lines().find(is_timer)?.split_whitespace().nth(1 + column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn sleeps_are_measured_and_the_slack_goes_with_its_thread() {
        let before = timer_slack::get();
        for m in measure(&EXPERIMENT, points(&SLACK)) {
            check(&m);
            assert!(m.joined_reasons().is_some() || m.values.contains_key("early"));
        }
        assert_eq!(timer_slack::get(), before);
    }

    #[test]
    fn interrupts_of_the_timer_are_found_by_their_cpu() {
        let x86 = "            CPU0       CPU2\n   1:   9   8  IO-APIC\n LOC:   2433915    2722459   Local timer interrupts\n";
        assert_eq!(timer_interrupts(x86, 2), Some(2_722_459));
        let arm = "           CPU0       CPU1\n 11:   345   678     GICv3  27 Level     arch_timer\n";
        assert_eq!(timer_interrupts(arm, 1), Some(678));
        assert_eq!((timer_interrupts(arm, 7), timer_interrupts("", 0)), (None, None));
    }
}
