//! From the options of `latscope wake` to what is measured: pure.

use super::arguments::{PolicyName, WakeArguments, WakeProbe};
use anyhow::{Result, bail, ensure};
use latscope_core::machine::Machine;
use latscope_core::plan::{Conditions, Periodic};
use latscope_core::units::{CpuList, format_time};
use latscope_probes::KeywordEnum;
use latscope_probes::wake::setup::WakeStepSetup;
use latscope_probes::wake::thread::{WakeHopKind, WakeMethod, WakeThreadPolicy, WakeThreadSettings};
use latscope_probes::wake::timer;

/// The default length of a run, ns.
const MINUTE: u64 = 60_000_000_000;

/// Returns the setup of the measurement.
///
/// # Errors
/// A priority, an interval or a number of threads that is out of range; options that
/// exclude each other, or that nothing uses.
pub fn step_setup(asked: &WakeArguments, machine: &Machine) -> Result<WakeStepSetup> {
    check_used(asked)?;
    let threads = thread_settings(asked, machine)?;
    let longest = threads.iter().map(|thread| thread.interval).max().unwrap_or(timer::INTERVAL);
    let count = asked.run.count.or(asked.profile.and_then(|profile| profile.count));
    let duration = asked.run.duration.or(asked.profile.and_then(|profile| profile.duration));
    let limited = !asked.endless;
    let unlimited = duration.unwrap_or(if count.is_none() && limited { MINUTE } else { u64::MAX });
    // A length that was asked for replaces the count of a practice.
    let count = if asked.run.duration.is_some() { asked.run.count } else { count };
    if let Some(duration) = duration.filter(|duration| limited && *duration < longest) {
        let (interval, duration) = (format_time(longest as f64), format_time(duration as f64));
        bail!(
            "--interval {interval} is longer than --duration {duration}: no activation falls into the run; choose a \
             longer --duration"
        );
    }
    Ok(WakeStepSetup {
        threads,
        periodic: Periodic {
            warm_up: asked.threads.warm_up.unwrap_or_else(|| timer::warm_up(longest)),
            phase: asked.threads.phase,
            align_second: asked.threads.align_second,
            threshold: asked.outliers.threshold,
            stop_at_threshold: asked.outliers.stops(),
            ..timer::usual_rules()
        },
        count: count.filter(|_| limited).unwrap_or(u64::MAX),
        duration: if limited { unlimited } else { u64::MAX },
        conditions: if asked.threads.as_is { Conditions::default() } else { timer::usual_conditions() },
        seed: asked.run.seed,
    })
}

/// Options that only latscope's own threads have.
const OF_THREADS: [&str; 15] = [
    "threads", "distance", "policy", "priority", "spread", "runtime", "method", "clock", "phase",
    "align_second", "via", "work", "touch", "slice", "warm_up",
];

fn check_used(asked: &WakeArguments) -> Result<()> {
    if asked.probe == WakeProbe::Timerlat {
        asked
            .given
            .refuse(&OF_THREADS, "is for latscope's own threads (timer), and timerlat has the kernel's")?;
    }
    if asked.threads.policy != Some(PolicyName::Deadline) {
        asked.given.refuse(&["runtime"], "is for --policy deadline")?;
    }
    if asked.threads.policy != Some(PolicyName::Other) {
        asked
            .given
            .refuse(&["slice"], "is for --policy other: the other policies have no slice to choose")?;
    }
    if matches!(asked.threads.policy, Some(PolicyName::Other | PolicyName::Deadline)) {
        asked.given.refuse(
            &["priority", "spread"],
            "is for --policy fifo or rr: the other policies have no priority",
        )?;
    }
    Ok(())
}

fn thread_settings(asked: &WakeArguments, machine: &Machine) -> Result<Vec<WakeThreadSettings>> {
    let interval = asked.threads.interval.or(asked.profile.map(|profile| profile.interval));
    let interval = interval.unwrap_or(timer::INTERVAL);
    if interval == 0 {
        bail!("--interval 0 leaves no time between activations: choose at least some microseconds");
    }
    let policy = policy(asked, interval)?;
    let cpus = match (&asked.run.cpus, policy) {
        (Some(_), WakeThreadPolicy::Deadline { .. }) => {
            bail!(
                "SCHED_DEADLINE wants all CPUs for each thread: leave out --cpus, or choose another --policy"
            )
        }
        (None, WakeThreadPolicy::Deadline { .. }) => vec![None; machine.allowed.0.len()],
        (given, _) => given.as_ref().unwrap_or(&machine.allowed).0.iter().copied().map(Some).collect(),
    };
    let count = asked.threads.threads.unwrap_or(cpus.len() as u64);
    ensure!((1..=4096).contains(&count), "--threads {count}: it must be 1 to 4096");
    let lowered = |priority: u32, index: u64| match asked.threads.spread {
        true => priority.saturating_sub(index as u32).max(1),
        false => priority,
    };
    let mut threads = Vec::new();
    for index in 0..count {
        threads.push(WakeThreadSettings {
            index,
            cpu: cpus[index as usize % cpus.len()],
            interval: interval + index * asked.threads.distance,
            policy: match policy {
                WakeThreadPolicy::Fifo(priority) => WakeThreadPolicy::Fifo(lowered(priority, index)),
                WakeThreadPolicy::RoundRobin(priority) => {
                    WakeThreadPolicy::RoundRobin(lowered(priority, index))
                }
                other => other,
            },
            method: asked.threads.method,
            clock: asked.threads.clock,
            via: asked.threads.via,
            work: asked.threads.work,
            touch: asked.threads.touch,
            slice: asked.threads.slice,
        });
    }
    check_threads(&threads)?;
    Ok(threads)
}

fn policy(asked: &WakeArguments, interval: u64) -> Result<WakeThreadPolicy> {
    let of_profile = asked.profile.map(|profile| profile.priority);
    let priority = asked.threads.priority.or(of_profile).unwrap_or(timer::PRIORITY);
    ensure!((1..=99).contains(&priority), "--priority {priority}: it must be 1 to 99");
    Ok(match asked.threads.policy {
        Some(PolicyName::Other) => WakeThreadPolicy::Other,
        Some(PolicyName::RoundRobin) => WakeThreadPolicy::RoundRobin(priority),
        Some(PolicyName::Deadline) => {
            // The kernel grants no less than 1024 ns.
            let runtime = asked.threads.runtime.unwrap_or(interval / 10).clamp(1024, interval.max(1024));
            WakeThreadPolicy::Deadline { runtime, deadline: interval }
        }
        Some(PolicyName::Fifo) | None => WakeThreadPolicy::Fifo(priority),
    })
}

fn check_threads(threads: &[WakeThreadSettings]) -> Result<()> {
    let first = &threads[0];
    if first.method == WakeMethod::Yield && first.policy.policy_name() != "deadline" {
        bail!("--method yield sleeps only with --policy deadline: add that, or choose another method");
    }
    if first.via != WakeHopKind::Direct && first.method != WakeMethod::Nanosleep {
        bail!("--via {} measures the hop after an absolute sleep: leave out --method", first.via.word());
    }
    if first.via != WakeHopKind::Direct && first.policy.policy_name() == "deadline" {
        bail!(
            "--via {} needs a second thread of the same policy: choose fifo, rr or other",
            first.via.word()
        );
    }
    if first.work >= first.interval {
        bail!("--work must be shorter than --interval, or every activation comes late by itself");
    }
    Ok(())
}

/// CPUs that the inherited mask leaves out, and the option that takes them in.
pub fn left_out(machine: &Machine) -> Option<String> {
    let outside: Vec<u32> =
        machine.online.0.iter().copied().filter(|cpu| !machine.allowed.0.contains(cpu)).collect();
    let list = CpuList(outside);
    (!list.0.is_empty()).then(|| {
        format!(
            "CPUs {list} are not measured: this process may not use them (isolated, a cpuset, or taskset): \
             `taskset -c {list} latscope wake --cpus {list}` measures them"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command, FromArgMatches};

    fn machine() -> Machine {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        Machine { online: list("0-5"), allowed: list("0-3"), ..Machine::default() }
    }

    fn command() -> Command {
        WakeArguments::augment_args(Command::new("wake"))
    }

    fn planned(words: &str) -> Result<WakeStepSetup> {
        let matches = command().try_get_matches_from(format!("wake {words}").split_whitespace()).unwrap();
        step_setup(&WakeArguments::from_arg_matches(&matches).unwrap(), &machine())
    }

    fn refused(words: &str) -> String {
        planned(words).unwrap_err().to_string()
    }

    #[test]
    fn without_options_a_fifo_thread_runs_on_each_allowed_cpu_for_a_minute() {
        let setup = planned("").unwrap();
        let cpus: Vec<_> = setup.threads.iter().map(|thread| thread.cpu.unwrap()).collect();
        assert_eq!(cpus, [0, 1, 2, 3]);
        assert!(setup.threads.iter().all(|thread| thread.policy == WakeThreadPolicy::Fifo(95)));
        assert_eq!((setup.count, setup.duration), (u64::MAX, MINUTE));
        assert_eq!(setup.conditions, timer::usual_conditions());
    }

    #[test]
    fn threads_go_round_the_cpus_with_their_distances_and_priorities() {
        let words = "--cpus 1,3 --threads 3 --interval 200us --distance 50us --priority 80 --spread";
        let setup = planned(words).unwrap();
        let seen: Vec<_> = setup.threads.iter().map(|t| (t.cpu, t.interval, t.policy.priority())).collect();
        assert_eq!(seen, [(Some(1), 200_000, 80), (Some(3), 250_000, 79), (Some(1), 300_000, 78)]);
    }

    #[test]
    fn a_practice_sets_what_is_not_given() {
        let osadl = planned("--profile osadl").unwrap();
        assert_eq!((osadl.count, osadl.duration), (100_000_000, u64::MAX));
        assert_eq!(
            (osadl.threads[0].interval, osadl.threads[0].policy),
            (200_000, WakeThreadPolicy::Fifo(90))
        );
        let shorter = planned("--profile osadl --duration 5s -p 70").unwrap();
        assert_eq!((shorter.count, shorter.duration), (u64::MAX, 5_000_000_000));
        assert_eq!(shorter.threads[0].policy, WakeThreadPolicy::Fifo(70));
    }

    #[test]
    fn a_usual_warm_up_takes_a_tenth_of_a_second_unless_an_interval_is_longer() {
        for (words, intervals) in [
            ("", 100),
            ("--interval 100us", 100),
            ("--interval 20ms", 5),
            ("--interval 20ms --threads 2 --distance 30ms", 2),
            ("--interval 1s", 1),
            ("--interval 1s --warm-up 7", 7),
        ] {
            assert_eq!(planned(words).unwrap().periodic.warm_up, intervals, "{words}");
        }
    }

    #[test]
    fn endless_has_no_limit() {
        let setup = planned("--endless --as-is").unwrap();
        assert_eq!(
            (setup.count, setup.duration, setup.conditions),
            (u64::MAX, u64::MAX, Conditions::default())
        );
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_line() {
        for (words, said) in [
            ("--priority 0", "1 to 99"),
            ("--priority 100", "1 to 99"),
            ("--policy other --priority 5", "have no priority"),
            ("timerlat --method timerfd", "latscope's own threads"),
            ("--runtime 1ms", "is for --policy deadline"),
            ("--slice 100us", "is for --policy other"),
            ("--policy other --spread", "--policy fifo or rr"),
            ("--policy deadline --cpus 1", "wants all CPUs"),
            ("--method yield", "--policy deadline"),
            ("--via pipe --method timerfd", "leave out --method"),
            ("--interval 0s", "--interval 0"),
            ("--interval 1m --duration 1s", "is longer than --duration 1.00 s"),
            ("--work 2ms", "shorter than --interval"),
            ("--threads 0", "1 to 4096"),
        ] {
            let text = refused(words);
            assert!(text.contains(said) && !text.contains('\n'), "{words}: {text}");
        }
        assert!(command().try_get_matches_from(["wake", "--duration", "1x"]).is_err());
    }

    #[test]
    fn an_outlier_may_end_the_run() {
        let stop = |words: &str| planned(words).unwrap().periodic.stop_at_threshold;
        assert!(stop("-b 50us --on-threshold stop") && !stop("-b 50us"));
    }

    #[test]
    fn cpus_outside_of_the_mask_are_named_with_the_way_to_them() {
        let text = left_out(&machine()).unwrap();
        assert!(text.contains("--cpus 4-5") && text.contains("taskset -c 4-5"), "{text}");
        let all = Machine { allowed: machine().online, ..machine() };
        assert_eq!(left_out(&all), None);
    }
}
