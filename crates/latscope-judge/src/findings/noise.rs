//! Time stolen from a busy loop, and its causes.

use super::evidence::FindingBuilder;
use super::select::{finite_value, join_list};
use latscope_core::catalogue::ids;
use latscope_core::merged::is_part_of;
use latscope_core::param;
use latscope_core::quality::{HALTED, QualityLevel};
use latscope_core::report::{Account, Finding, Measurement, Report, WATCHED};
use latscope_core::units::{count_with_noun, format_count, format_percent, format_time};

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let watched = report.of_probe(ids::NOISE_BUSY).filter(|m| {
        m.has_param_value(param::CPU, "all")
            && m.quality.level != QualityLevel::Unsupported
            && finite_value(m, "watched").is_some()
    });
    watched.filter_map(|all| stolen(report, all)).collect()
}

/// Causes of the gaps: the word in the names of values, and words for a reader.
const CLASSES: [(&str, &str); 3] = [
    ("preemption", "went to other threads"),
    (
        "steal",
        "was not the loop's own by the kernel's count: the hypervisor's, or that of interrupts counted apart",
    ),
    ("unattributed", "is what interrupts took, and what no kernel sees"),
];

/// Words for gaps in which another thread may have run, in a run that a quota stopped.
const STOPPED: &str = "is what the quota and other threads took";

fn stolen(report: &Report, all: &Measurement) -> Option<Finding> {
    let gap = finite_value(all, "gap").or_else(|| Some(all.numeric_param(param::GAP)? as f64))?;
    let gap = format_time(gap);
    let time = &time_watched(report, all)?;
    let (lost, watched) = (finite_value(all, "lost")?, finite_value(all, "watched")?);
    let doubt = "of this run only: another run has other gaps";
    let told = FindingBuilder::unless(Some(doubt), "stolen-time").points([all]);
    let mut values = vec![("lost_percent", lost), ("watched_s", watched)];
    let Some(longest) = all.summary.max.filter(|_| all.summary.count > 0) else {
        let text = format!("In {time} nothing took {gap} or more at once from a busy loop on any CPU.");
        return Some(told.values(values).into_finding(text));
    };
    values.extend([("gaps_per_second", finite_value(all, "gaps")?), ("longest_ns", longest)]);
    let mut text = format!(
        "In {time} a busy loop{} on each CPU lost {} of this time in gaps of {gap} or more, the longest {}",
        all.numeric_param(param::PRIORITY)
            .map_or(String::new(), |priority| format!(" under SCHED_FIFO {priority}")),
        format_percent(lost),
        format_time(longest)
    );
    text += &worst(report, all, lost).unwrap_or_default();
    let throttled = all.account.as_ref().and_then(Account::throttled);
    text += &throttled.map_or(String::new(), |quota| format!("; the run was {}", quota.format_throttling()));
    if is_halted(report, all) {
        text += ". The run was frozen or stopped meanwhile, which counts as lost: the shares of other causes are not known.";
        return Some(told.values(values).into_finding(text));
    }
    text += ". Of the time lost ";
    let shares: Vec<String> = CLASSES
        .iter()
        .filter_map(|(class, words)| {
            let gaps = finite_value(all, &format!("gaps-{class}")).filter(|gaps| *gaps > 0.0)?;
            let share = 100.0 * finite_value(all, &format!("lost-{class}"))? / lost;
            // Where a quota stops a thread, the kernel switches to another one, or to none.
            let words = if *class == "preemption" && throttled.is_some() { STOPPED } else { words };
            Some(format!("{} {words} ({})", format_percent(share), count_with_noun(gaps as u64, "gap")))
        })
        .collect();
    text += &join_list(&shares);
    text += ".";
    text += &interrupts(report, all, &mut values).unwrap_or_default();
    Some(told.values(values).into_finding(text))
}

/// `the 3.00 s watched`, where all CPUs were watched for the same time to within a tenth; else
/// how long each was.
fn time_watched(report: &Report, all: &Measurement) -> Option<String> {
    let times: Vec<(u64, f64)> = cpu_parts(report, all)
        .map(|m| Some((m.numeric_param(param::CPU)?, finite_value(m, WATCHED).unwrap_or(0.0))))
        .collect::<Option<_>>()?;
    let seconds = |time: f64| format_time(time * 1e9);
    let (least, most) = times
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), (_, time)| (least.min(*time), most.max(*time)));
    if times.is_empty() || least > 0.9 * most {
        return Some(format!("the {} watched", seconds(finite_value(all, WATCHED)?)));
    }
    let total = seconds(times.iter().map(|(_, time)| time).sum());
    let (least, most) = (seconds(least), seconds(most));
    Some(format!("{total} watched in all, {least} to {most} on each CPU,"))
}

/// The measurements of single CPUs of which `all` is the sum.
fn cpu_parts<'a>(report: &'a Report, all: &'a Measurement) -> impl Iterator<Item = &'a Measurement> {
    report.of_probe(&all.probe).filter(|m| is_part_of(m, all))
}

/// Returns true if a loop was frozen or stopped.
fn is_halted(report: &Report, all: &Measurement) -> bool {
    let mut rows = cpu_parts(report, all).chain([all]);
    rows.any(|m| m.quality.reasons.iter().any(|reason| reason.id == HALTED))
}

/// The CPU that lost most, if it stands out.
fn worst(report: &Report, all: &Measurement, mean: f64) -> Option<String> {
    let lost =
        cpu_parts(report, all).filter_map(|m| Some((m.numeric_param(param::CPU)?, finite_value(m, "lost")?)));
    let (cpu, most) = lost.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most > 1.5 * mean).then(|| format!(", most of it on CPU {cpu} ({})", format_percent(most)))
}

/// Reports if there were interrupts enough to explain the gaps that no other source explains.
fn interrupts(report: &Report, all: &Measurement, values: &mut Vec<(&str, f64)>) -> Option<String> {
    let gaps = finite_value(all, "gaps-unattributed").filter(|gaps| *gaps > 0.0)?;
    let count = finite_value(all, "interrupts")?;
    values.extend([("unattributed_gaps", gaps), ("interrupts", count)]);
    let sources = all.values.iter();
    let mut sources: Vec<(&str, f64)> =
        sources.filter_map(|(name, value)| Some((name.strip_prefix("irq:")?, value.value))).collect();
    sources.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = if sources.len() > 3 { "most: " } else { "" };
    let sources: Vec<String> = sources
        .iter()
        .take(3)
        .map(|(name, count)| format!("{} {}", format_count(*count as u64), source(name)))
        .collect();
    let mut text = format!(" The kernel counted {} meanwhile", count_with_noun(count as u64, "interrupt"));
    if !sources.is_empty() {
        text += &format!(" ({most}{})", join_list(&sources));
    }
    text += &match gaps - count {
        unexplained if unexplained > 0.0 => {
            let virtual_machine = report.machine.hypervisor.is_some();
            let who = if virtual_machine { "the hypervisor" } else { "firmware (SMI)" };
            format!(
                ": too few for the {} without another thread. At least {} gaps stay unexplained: look at {who}, and at code that keeps interrupts off.",
                count_with_noun(gaps as u64, "gap"),
                format_count(unexplained as u64)
            )
        }
        _ => format!(": enough for the {} without another thread.", count_with_noun(gaps as u64, "gap")),
    };
    Some(text)
}

/// Words for the kernel's shorthand of its own interrupts.
fn source(name: &str) -> &str {
    match name {
        "LOC" => "local timer",
        "RES" => "rescheduling",
        "CAL" => "function call",
        "TLB" => "TLB shootdown",
        "IWI" => "IRQ work",
        "NMI" => "non-maskable",
        "HYP" => "hypervisor callback",
        device => device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;
    use latscope_core::quality::Reason;
    use latscope_core::report::Semantics;
    use latscope_core::testing::{point, report, with_value};

    fn loops(cpu: &str, values: &[(&str, f64)]) -> Measurement {
        let cpu = cpu.parse::<u64>().map_or(cpu.into(), Into::into);
        let params = params([("cpu", cpu), ("gap", 1000.into())]);
        let m = point(ids::NOISE_BUSY, params, Semantics::Operation, 4_000.0);
        values.iter().fold(m, |m, (name, value)| with_value(m, name, *value))
    }

    fn said(all: &[(&str, f64)], hypervisor: bool) -> Finding {
        let cpus =
            [("0", 0.1), ("1", 1.9)].map(|(cpu, lost)| loops(cpu, &[("lost", lost), ("watched", 3.0)]));
        let mut report = report(cpus.into_iter().chain([loops("all", all)]).collect());
        report.machine.hypervisor = hypervisor.then(|| "KVM".to_owned());
        findings(&report).remove(0)
    }

    const ALL: [(&str, f64); 10] = [
        ("lost", 1.0),
        ("watched", 3.0),
        ("gaps", 200.0),
        ("gaps-preemption", 4.0),
        ("gaps-unattributed", 90.0),
        ("lost-preemption", 0.75),
        ("lost-unattributed", 0.25),
        ("interrupts", 100.0),
        ("irq:LOC", 80.0),
        ("irq:eth0", 20.0),
    ];

    #[test]
    fn shares_interrupts_and_the_worst_cpu_are_named() {
        let text = said(&ALL, true).text;
        for part in [
            "lost 1 % of this time",
            "1.00 µs or more",
            "most of it on CPU 1 (1.9 %)",
            "In the 3.00 s watched",
            "75 % went to other threads (4 gaps)",
            "25 % is what interrupts took",
            "100 interrupts meanwhile (80 local timer and 20 eth0)",
            "enough for the 90 gaps",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(!text.contains("kept by the hypervisor"), "{text}");
    }

    #[test]
    fn the_classes_are_those_that_the_probe_reports() {
        for (class, _) in CLASSES {
            for name in [format!("gaps-{class}"), format!("lost-{class}")] {
                assert!(latscope_probes::VALUES.contains(&name.as_str()), "{name}");
            }
        }
    }

    #[test]
    fn unequal_times_of_the_cpus_are_told() {
        let cpus =
            [("0", 9.0), ("1", 1.0)].map(|(cpu, time)| loops(cpu, &[("lost", 1.0), ("watched", time)]));
        let all = ALL.map(|(name, value)| (name, if name == "watched" { 5.0 } else { value }));
        let text = &findings(&report(cpus.into_iter().chain([loops("all", &all)]).collect()))[0].text;
        let start = "In 10.0 s watched in all, 1.00 s to 9.00 s on each CPU, a busy loop on each CPU lost 1 % of this time";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn too_few_interrupts_point_below_the_kernel() {
        let mut few = ALL;
        few[7].1 = 30.0;
        let guest = said(&few, true).text;
        assert!(
            guest.contains("too few for the 90 gaps")
                && guest.contains("At least 60 gaps stay unexplained")
                && guest.contains("the hypervisor, and at code that keeps interrupts off."),
            "{guest}"
        );
        assert!(said(&few, false).text.contains("firmware"));
        let mut many = ALL;
        (many[4].1, many[7].1, many[8].1) = (2_500.0, 1_500.0, 1_400.0);
        let text = said(&many, false).text;
        for part in [
            "(2,500 gaps)",
            "for the 2,500 gaps",
            "At least 1,000 gaps stay unexplained",
            "1,400 local timer",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        (many[4].1, many[7].1) = (1.0, 2.0);
        assert!(said(&many, false).text.contains("enough for the 1 gap without"));
    }

    #[test]
    fn a_loop_that_a_quota_stopped_did_not_lose_its_time_to_others() {
        let quota = latscope_core::report::QuotaThrottling {
            cpus: 0.5,
            periods: 30,
            throttled: 29,
            ..Default::default()
        };
        let mut all = loops("all", &ALL);
        all.account = Some(Account { quota: Some(quota), ..Account::default() });
        let text = &findings(&report(vec![loops("0", &[("lost", 1.0), ("watched", 3.0)]), all]))[0].text;
        for part in [
            "; the run was limited to 0.50 CPU by its control group; throttled in 29 of 30 periods.",
            "75 % is what the quota and other threads took (4 gaps)",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
        assert!(!text.contains("went to other threads"), "{text}");
    }

    #[test]
    fn the_time_of_a_loop_that_stood_still_is_not_that_of_a_hypervisor() {
        let mut all = loops("all", &ALL);
        all.lower(Reason::new(QualityLevel::Degraded, "halted", "frozen meanwhile", ""));
        let text = &findings(&report(vec![loops("0", &[("lost", 1.0), ("watched", 3.0)]), all]))[0].text;
        assert!(text.contains(". The run was frozen or stopped meanwhile"), "{text}");
        for part in ["interrupt", "hypervisor", "firmware", "no kernel sees"] {
            assert!(!text.contains(part), "{part:?} is in {text:?}");
        }
    }

    #[test]
    fn quiet_cpus_are_said_to_be_quiet() {
        let mut quiet = loops("all", &[("lost", 0.0), ("watched", 3.0), ("gaps", 0.0)]);
        quiet.histogram = latscope_core::histogram::Histogram::new(1000);
        quiet.summary = Default::default();
        let found = findings(&report(vec![quiet]));
        assert!(found[0].text.contains("nothing took 1.00 µs or more"), "{}", found[0].text);
        assert!(findings(&report(vec![])).is_empty());
    }
}
