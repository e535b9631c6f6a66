//! From the options of `latscope wake` to what is measured: pure.

use super::profile::{PROFILES, Profile};
use crate::cli::outliers;
use anyhow::{Result, bail};
use clap::ArgMatches;
use latscope_core::machine::Machine;
use latscope_core::plan::{Conditions, Periodic, Phase};
use latscope_core::units::CpuList;
use latscope_probes::Word;
use latscope_probes::wake::setup::Setup;
use latscope_probes::wake::thread::{ClockName, Method, Policy, Thread, Via};
use latscope_probes::wake::timer;
use std::time::Duration;

/// The default length of a run, ns.
const MINUTE: u64 = 60_000_000_000;

fn ns(matches: &ArgMatches, name: &str) -> Option<u64> {
    matches.get_one::<Duration>(name).map(|time| time.as_nanos() as u64)
}

fn word<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map_or("", String::as_str)
}

/// The practice that was asked for.
pub fn profile(matches: &ArgMatches) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == word(matches, "profile"))
}

/// What is measured.
///
/// # Errors
/// A priority, an interval or a number of threads that cannot be; options that
/// exclude each other.
pub fn setup(matches: &ArgMatches, machine: &Machine) -> Result<Setup> {
    let threads = threads(matches, machine)?;
    let profile = profile(matches);
    let count = matches.get_one("count").copied().or(profile.and_then(|profile| profile.count));
    let given = ns(matches, "duration");
    let duration = given.or(profile.and_then(|profile| profile.duration));
    let as_is = matches.get_flag("as-is");
    let limited = !matches.get_flag("endless");
    let unlimited = duration.unwrap_or(if count.is_none() && limited { MINUTE } else { u64::MAX });
    // A length that was asked for replaces the count of a practice.
    let count = if given.is_some() && !matches.contains_id("count") { None } else { count };
    Ok(Setup {
        threads,
        periodic: periodic(matches),
        count: count.filter(|_| limited).unwrap_or(u64::MAX),
        duration: if limited { unlimited } else { u64::MAX },
        conditions: if as_is { Conditions::default() } else { timer::usual_conditions() },
        seed: matches.get_one("seed").copied().unwrap_or(1),
    })
}

fn threads(matches: &ArgMatches, machine: &Machine) -> Result<Vec<Thread>> {
    let interval = ns(matches, "interval").or(profile(matches).map(|profile| profile.interval));
    let interval = interval.unwrap_or(timer::INTERVAL);
    if interval == 0 {
        bail!("--interval 0 leaves no time between activations: choose at least some microseconds");
    }
    let policy = policy(matches, interval)?;
    let cpus = match (matches.get_one::<CpuList>("cpus"), policy) {
        (Some(_), Policy::Deadline { .. }) => {
            bail!(
                "SCHED_DEADLINE wants all CPUs for each thread: leave out --cpus, or choose another --policy"
            )
        }
        (None, Policy::Deadline { .. }) => vec![None; machine.allowed.0.len()],
        (Some(list), _) => list.0.iter().copied().map(Some).collect(),
        (None, _) => machine.allowed.0.iter().copied().map(Some).collect::<Vec<_>>(),
    };
    let count = matches.get_one::<u64>("threads").copied().unwrap_or(cpus.len() as u64);
    if count == 0 || count > 4096 {
        bail!("--threads {count}: it must be 1 to 4096");
    }
    let distance = ns(matches, "distance").unwrap_or(0);
    let thread = |index: u64| Thread {
        index,
        cpu: cpus[index as usize % cpus.len()],
        interval: interval + index * distance,
        policy: match policy {
            Policy::Fifo(priority) => Policy::Fifo(lowered(matches, priority, index)),
            Policy::RoundRobin(priority) => Policy::RoundRobin(lowered(matches, priority, index)),
            other => other,
        },
        method: Method::named(word(matches, "method")).unwrap_or(Method::Nanosleep),
        clock: ClockName::named(word(matches, "clock")).unwrap_or(ClockName::Monotonic),
        via: Via::named(word(matches, "via")).unwrap_or(Via::Direct),
        work: ns(matches, "work").unwrap_or(0),
        touch: matches.get_one("touch").copied().unwrap_or(0),
    };
    let threads: Vec<Thread> = (0..count).map(thread).collect();
    check(&threads)?;
    Ok(threads)
}

fn lowered(matches: &ArgMatches, priority: u32, index: u64) -> u32 {
    if matches.get_flag("spread") { priority.saturating_sub(index as u32).max(1) } else { priority }
}

fn policy(matches: &ArgMatches, interval: u64) -> Result<Policy> {
    let of_profile = profile(matches).map(|profile| profile.priority);
    let priority = matches.get_one::<u32>("priority").copied().or(of_profile).unwrap_or(timer::PRIORITY);
    let policy = word(matches, "policy");
    if matches.contains_id("priority") {
        if !(1..=99).contains(&priority) {
            bail!("--priority {priority}: it must be 1 to 99");
        }
        if matches!(policy, "other" | "deadline") {
            bail!("--policy {policy} has no priority: leave out --priority, or choose fifo or rr");
        }
    }
    Ok(match policy {
        "other" => Policy::Other,
        "rr" => Policy::RoundRobin(priority),
        "deadline" => {
            // The kernel grants no less than 1024 ns.
            let runtime = ns(matches, "runtime").unwrap_or(interval / 10).clamp(1024, interval.max(1024));
            Policy::Deadline { runtime, deadline: interval }
        }
        _ => Policy::Fifo(priority),
    })
}

fn check(threads: &[Thread]) -> Result<()> {
    let first = &threads[0];
    if first.method == Method::Yield && first.policy.word() != "deadline" {
        bail!("--method yield sleeps only with --policy deadline: add that, or choose another method");
    }
    if first.via != Via::Direct && first.method != Method::Nanosleep {
        bail!("--via {} measures the hop after an absolute sleep: leave out --method", first.via.word());
    }
    if first.via != Via::Direct && first.policy.word() == "deadline" {
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

fn periodic(matches: &ArgMatches) -> Periodic {
    Periodic {
        warm_up: matches.get_one("warm-up").copied().unwrap_or(100),
        phase: match word(matches, "phase") {
            "aligned" => Phase::Aligned(0),
            "random" => Phase::Random,
            _ => Phase::Staggered,
        },
        align_second: matches.get_flag("align-second"),
        threshold: outliers::threshold(matches),
        stop_at_threshold: outliers::stops(matches),
        ..timer::usual_rules()
    }
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
    use super::super::arguments::command;
    use super::*;

    fn machine() -> Machine {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        Machine { online: list("0-5"), allowed: list("0-3"), ..Machine::default() }
    }

    fn matches(words: &str) -> ArgMatches {
        command().try_get_matches_from(format!("wake {words}").split_whitespace()).unwrap()
    }

    fn refused(words: &str) -> String {
        setup(&matches(words), &machine()).unwrap_err().to_string()
    }

    #[test]
    fn without_options_a_fifo_thread_runs_on_each_allowed_cpu_for_a_minute() {
        let setup = setup(&matches(""), &machine()).unwrap();
        let cpus: Vec<_> = setup.threads.iter().map(|thread| thread.cpu.unwrap()).collect();
        assert_eq!(cpus, [0, 1, 2, 3]);
        assert!(setup.threads.iter().all(|thread| thread.policy == Policy::Fifo(95)));
        assert_eq!((setup.count, setup.duration), (u64::MAX, MINUTE));
        assert_eq!(setup.conditions, timer::usual_conditions());
    }

    #[test]
    fn threads_go_round_the_cpus_with_their_distances_and_priorities() {
        let words = "--cpus 1,3 --threads 3 --interval 200us --distance 50us --priority 80 --spread";
        let setup = setup(&matches(words), &machine()).unwrap();
        let seen: Vec<_> = setup.threads.iter().map(|t| (t.cpu, t.interval, t.policy.priority())).collect();
        assert_eq!(seen, [(Some(1), 200_000, 80), (Some(3), 250_000, 79), (Some(1), 300_000, 78)]);
    }

    #[test]
    fn a_practice_sets_what_is_not_given() {
        let osadl = setup(&matches("--profile osadl"), &machine()).unwrap();
        assert_eq!((osadl.count, osadl.duration), (100_000_000, u64::MAX));
        assert_eq!((osadl.threads[0].interval, osadl.threads[0].policy), (200_000, Policy::Fifo(90)));
        let shorter = setup(&matches("--profile osadl --duration 5s -p 70"), &machine()).unwrap();
        assert_eq!((shorter.count, shorter.duration), (u64::MAX, 5_000_000_000));
        assert_eq!(shorter.threads[0].policy, Policy::Fifo(70));
    }

    #[test]
    fn endless_has_no_limit() {
        let setup = setup(&matches("--endless --as-is"), &machine()).unwrap();
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
            ("--policy other --priority 5", "has no priority"),
            ("--policy deadline --cpus 1", "wants all CPUs"),
            ("--method yield", "--policy deadline"),
            ("--via pipe --method timerfd", "leave out --method"),
            ("--interval 0s", "--interval 0"),
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
        let stop = |words: &str| setup(&matches(words), &machine()).unwrap().periodic.stop_at_threshold;
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
