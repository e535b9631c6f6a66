//! What is odd on this machine: the largest deviations that rows show by themselves.

use super::evidence::{EvidenceFigure, FindingBuilder, Ratio};
use super::select::{is_measured, measured_points};
use latscope_core::catalogue::ids;
use latscope_core::modes::TWO_MODES;
use latscope_core::param;
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Finding, Measurement, Report};
use latscope_core::units::{format_share, format_time};

/// Most findings of all kinds together, and of one kind.
const MOST: usize = 5;
const OF_A_KIND: usize = 2;

/// Least ratio of two figures of a row that is odd.
const ODD: f64 = 1.5;

/// A deviation: the ratio of two figures of a row, with the finding about it.
type Deviation = (f64, Finding);

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let kinds: [fn(&Report, &Measurement) -> Option<Deviation>; 5] =
        [modes, rounds_in_two_groups, copies, returns, pages];
    let mut found: Vec<Deviation> = Vec::new();
    for kind in kinds {
        let rows = report.measurements.iter().filter(|m| m.row || m.probe == ids::MEMORY_LATENCY);
        let mut of_kind: Vec<Deviation> = rows.filter_map(|m| kind(report, m)).collect();
        of_kind.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.extend(of_kind.into_iter().take(OF_A_KIND));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    // A refusal that concerns many points is one fact.
    let mut seen: Vec<String> = Vec::new();
    let mut once = |finding: &Finding| {
        !seen.contains(&finding.text) && {
            seen.push(finding.text.clone());
            true
        }
    };
    found.into_iter().map(|(_, finding)| finding).filter(|finding| once(finding)).take(MOST).collect()
}

fn find_reason<'a>(m: &'a Measurement, id: &str) -> Option<&'a Reason> {
    m.quality.reasons.iter().find(|reason| reason.id == id)
}

/// The two figures of a reason, with the share of the lower one, if they are far apart.
fn two_figures(reason: &Reason) -> Option<(f64, f64, f64)> {
    let [low, high, share] = ["low", "high", "share"].map(|name| reason.values.get(name).copied());
    let (low, high, share) = (low?, high?, share?);
    (low > 0.0 && high / low >= ODD).then_some((low, high, share))
}

/// Events of two kinds, on a row against which nothing speaks.
fn modes(report: &Report, m: &Measurement) -> Option<Deviation> {
    if !is_measured(m) || m.quality.level != QualityLevel::Ok || m.is_imported() {
        return None;
    }
    let (low, high, share) = two_figures(find_reason(m, TWO_MODES)?)?;
    let mut text = format!(
        "Odd here: {} takes around {} in {} of the events, and around {} in the rest.",
        m.title,
        format_time(low),
        format_share(share),
        format_time(high)
    );
    // It is stated as a fact: the row does not show that each slow event leaves the machine.
    let exit = report.of_probe(ids::VM_EXIT).find(|exit| exit.quality.level == QualityLevel::Ok);
    if let Some(exit) = exit
        .and_then(Measurement::typical)
        .filter(|_| m.probe == ids::TIMER_SET && report.machine.hypervisor.is_some())
    {
        text += &format!(" The way out of this virtual machine and back takes {}.", format_time(exit));
    }
    let told =
        FindingBuilder::claim("odd-modes").values([("low_ns", low), ("high_ns", high), ("share", share)]);
    Some((high / low, told.points([m]).into_finding(text)))
}

/// Rounds in two groups.
fn rounds_in_two_groups(report: &Report, m: &Measurement) -> Option<Deviation> {
    if !is_measured(m) || m.quality.level != QualityLevel::Unstable || m.is_imported() {
        return None;
    }
    let (low, high, share) = two_figures(find_reason(m, "rounds-in-two-groups")?)?;
    let mut text = format!(
        "Odd here: {} takes around {} in {} of the rounds, and around {} in the rest",
        m.title,
        format_time(low),
        format_share(share),
        format_time(high)
    );
    if m.probe == ids::CORE_TO_CORE && report.machine.hypervisor.is_some() {
        text += &match swapped(report, m) {
            Some(other) => {
                format!(", while {} did the reverse: virtual CPUs changed their places", other.title)
            }
            None => ", as if the virtual CPUs changed their places".to_owned(),
        };
    }
    let doubt = "what this run saw; the next run may have other shares";
    let told = FindingBuilder::unless(Some(doubt), "odd-rounds");
    let told = told.values([("low_ns", low), ("high_ns", high), ("share", share)]);
    Some((high / low, told.points([m]).into_finding(text + ".")))
}

/// Another pair of CPUs with rounds in two groups, which was fast in a round in which this one was slow, and slow in
/// one in which this one was fast. Whatever slows the machine as a whole slows both.
fn swapped<'a>(report: &'a Report, m: &Measurement) -> Option<&'a Measurement> {
    let rounds = fast_rounds(m)?;
    let alike = |other: &&Measurement| {
        let but_pair = |m: &Measurement| {
            let mut params = m.params.clone();
            params.remove(param::PAIR);
            params
        };
        other.params != m.params && but_pair(other) == but_pair(m)
    };
    report.of_probe(ids::CORE_TO_CORE).filter(alike).find(|other| {
        let reverse = |(here, there): (&bool, bool)| *here != there;
        let Some(of_other) = fast_rounds(other).filter(|of_other| of_other.len() == rounds.len()) else {
            return false;
        };
        let apart: Vec<bool> =
            rounds.iter().zip(of_other).filter(|pair| reverse(*pair)).map(|pair| *pair.0).collect();
        apart.contains(&true) && apart.contains(&false)
    })
}

/// The rounds of a point in two groups: true for those of the lower.
fn fast_rounds(m: &Measurement) -> Option<Vec<bool>> {
    let (low, high, _) = two_figures(find_reason(m, "rounds-in-two-groups")?)?;
    let middle = (low * high).sqrt();
    m.rounds.iter().map(|round| Some(round.p50? < middle)).collect()
}

/// Least ratio of two copies of as many bytes that is odd.
const COPIES_DIFFER: f64 = 2.0;

/// The slowest copy of a size, where the places of its buffers alone make it that slow.
fn copies(report: &Report, m: &Measurement) -> Option<Deviation> {
    if m.probe != ids::COPY {
        return None;
    }
    let same = |other: &&Measurement| {
        [param::SIZE, param::MODE].iter().all(|name| other.params.get(*name) == m.params.get(*name))
    };
    let alike: Vec<(&Measurement, EvidenceFigure)> = measured_points(report, ids::COPY)
        .filter(same)
        .filter_map(|other| Some((other, EvidenceFigure::p50(other)?)))
        .collect();
    let (slowest, slow) = alike.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let (fastest, fast) = alike.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let ratio = Ratio::between(slow, fast);
    if slowest.params != m.params || ratio.low < COPIES_DIFFER {
        return None;
    }
    let text = format!(
        "Odd here: the places of two buffers in their pages decide the time of a copy: {} takes {}, and {} takes {}.",
        m.title,
        slow.format_duration(),
        fastest.title,
        fast.format_duration()
    );
    let told = FindingBuilder::claim("odd-copies")
        .figure("slow_ns", slow)
        .figure("fast_ns", fast)
        .ratio("ratio", &ratio);
    Some((ratio.value, told.points([m, *fastest]).into_finding(text)))
}

/// Core cycles of a call and its return, and those from which the return cannot have been predicted: a call that is
/// predicted takes less than 6 on cores of today, a mispredicted branch 12 and more.
const PREDICTED: f64 = 6.0;
const NOT_PREDICTED: f64 = 12.0;

/// A return that costs as much as a mispredicted branch: the core, or its hypervisor, does not predict returns.
fn returns(_: &Report, m: &Measurement) -> Option<Deviation> {
    let is_direct = m.probe == ids::CALL && m.has_param_value(param::MODE, "direct");
    if !is_direct || !is_measured(m) || m.quality.level != QualityLevel::Ok || m.is_imported() {
        return None;
    }
    let cycles = m.summary.cycles.filter(|cycles| *cycles >= NOT_PREDICTED)?;
    let text = format!(
        "Odd here: a call of an empty function and its return take {} ({} core cycles): as much as a branch that is \
         mispredicted.",
        format_time(m.typical()?),
        cycles.round()
    );
    Some((
        cycles / PREDICTED,
        FindingBuilder::claim("odd-returns").value("cycles", cycles).points([m]).into_finding(text),
    ))
}

/// Huge pages that were not to be had.
fn pages(_: &Report, m: &Measurement) -> Option<Deviation> {
    let reason = find_reason(m, "page-size").or_else(|| find_reason(m, "not-huge"))?;
    let text = format!("Odd here: huge pages are not used: {}.", reason.text);
    Some((1.0, FindingBuilder::claim("odd-pages").points([m]).into_finding(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::{Params, params};
    use latscope_core::report::Semantics;
    use latscope_core::testing::{in_rounds, point, report};

    fn row(probe: &str, title: &str) -> Measurement {
        let mut m = in_rounds(point(probe, Params::new(), Semantics::Operation, 100.0), &[100.0; 4]);
        (m.row, m.title) = (true, title.to_owned());
        m
    }

    fn with(
        mut m: Measurement,
        level: QualityLevel,
        id: &str,
        (low, high, share): (f64, f64, f64),
    ) -> Measurement {
        let reason = Reason::new(level, id, "seen in a test", "");
        m.lower(reason.with_number("low", low).with_number("high", high).with_number("share", share));
        m
    }

    #[test]
    fn the_largest_deviations_come_first_and_none_without_evidence() {
        assert_eq!(findings(&report(vec![row("sync.mutex", "mutex")])), []);
        let rows = vec![
            with(row("sync.futex", "futex"), QualityLevel::Ok, TWO_MODES, (1e3, 2e3, 0.4)),
            with(row(ids::TIMER_SET, "timer"), QualityLevel::Ok, TWO_MODES, (730.0, 14_000.0, 0.27)),
            with(row("sync.pipe", "pipe"), QualityLevel::Ok, TWO_MODES, (1e3, 4e3, 0.4)),
            with(
                row(ids::CORE_TO_CORE, "line"),
                QualityLevel::Unstable,
                "rounds-in-two-groups",
                (55.0, 203.0, 0.75),
            ),
            with(row("sync.eventfd", "eventfd"), QualityLevel::Ok, TWO_MODES, (1e3, 1.2e3, 0.4)),
            row(ids::VM_EXIT, "exit"),
        ];
        let mut report = report(rows);
        let texts =
            |report: &Report| findings(report).into_iter().map(|found| found.text).collect::<Vec<_>>();
        let line = "Odd here: line takes around 55.0 ns in 75 % of the rounds, and around 203 ns in the rest";
        let timer =
            "Odd here: timer takes around 730 ns in 27 % of the events, and around 14.0 µs in the rest.";
        let pipe =
            "Odd here: pipe takes around 1.00 µs in 40 % of the events, and around 4.00 µs in the rest.";
        assert_eq!(texts(&report), [timer.to_owned(), pipe.to_owned(), format!("{line}.")]);
        report.machine.hypervisor = Some("KVM".to_owned());
        let guest = texts(&report);
        assert_eq!(guest[0], format!("{timer} The way out of this virtual machine and back takes 100 ns."));
        assert_eq!(guest[2], format!("{line}, as if the virtual CPUs changed their places."));
    }

    fn pair(cpus: &str, rounds: [f64; 4]) -> Measurement {
        let params = params([("pair", cpus.into()), ("mode", "cas".into())]);
        let mut m = in_rounds(point(ids::CORE_TO_CORE, params, Semantics::RoundTrip, 100.0), &rounds);
        (m.row, m.title) = (true, format!("core to core {cpus}"));
        with(m, QualityLevel::Unstable, "rounds-in-two-groups", (50.0, 200.0, 0.5))
    }

    #[test]
    fn virtual_cpus_changed_places_where_one_pair_is_fast_while_another_is_slow() {
        let texts = |pairs: [Measurement; 2]| {
            let mut report = report(pairs.to_vec());
            report.machine.hypervisor = Some("KVM".to_owned());
            findings(&report)[0].text.clone()
        };
        let here = || pair("0-1", [50.0, 200.0, 51.0, 201.0]);
        let swapped = texts([here(), pair("0-2", [200.0, 50.0, 200.0, 51.0])]);
        assert!(
            swapped.contains("while core to core 0-2 did the reverse: virtual CPUs changed"),
            "{swapped}"
        );
        // What slows both at once need not be a change of places.
        let together = texts([here(), pair("0-2", [50.0, 200.0, 50.0, 200.0])]);
        assert!(together.contains("as if the virtual CPUs changed their places"), "{together}");
    }

    fn copy(mode: &str, source: u64, buffer: u64, ns: f64) -> Measurement {
        let params = params([
            ("mode", mode.into()),
            ("size", 4096.into()),
            ("source", source.into()),
            ("buffer", buffer.into()),
        ]);
        let mut m = in_rounds(point(ids::COPY, params, Semantics::Operation, ns), &[ns; 4]);
        (m.row, m.title) = (true, format!("{mode} {source} to {buffer}"));
        m
    }

    #[test]
    fn copies_are_odd_where_the_places_of_their_buffers_double_the_time() {
        let kernel =
            [copy("kernel", 0, 0, 400.0), copy("kernel", 0, 16, 1700.0), copy("kernel", 16, 16, 420.0)];
        let libc = [copy("libc", 0, 0, 60.0), copy("libc", 0, 16, 100.0)];
        let found = findings(&report([&kernel[..], &libc[..]].concat()));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].id, "odd-copies");
        assert!(found[0].text.contains("kernel 0 to 16 takes") && found[0].text.contains("kernel 0 to 0"));
        assert_eq!(findings(&report(libc.to_vec())), []);
    }

    #[test]
    fn a_return_is_odd_where_it_costs_a_misprediction() {
        let call = |cycles| {
            let params = params([("mode", "direct".into())]);
            let mut m = in_rounds(point(ids::CALL, params, Semantics::Operation, 9.0), &[9.0; 4]);
            (m.row, m.summary.cycles) = (true, Some(cycles));
            findings(&report(vec![m]))
        };
        assert_eq!(call(4.4), []);
        let found = call(30.2);
        assert!(found[0].text.contains("take 9.00 ns (30 core cycles)"), "{found:?}");
    }

    #[test]
    fn a_row_that_others_disturbed_is_not_odd() {
        let odd = with(row("sync.futex", "futex"), QualityLevel::Ok, TWO_MODES, (1e3, 9e3, 0.4));
        let mut disturbed = odd.clone();
        disturbed.lower(Reason::new(QualityLevel::Degraded, "disturbed", "others ran", ""));
        assert_eq!((findings(&report(vec![odd])).len(), findings(&report(vec![disturbed])).len()), (1, 0));
    }

    #[test]
    fn huge_pages_that_many_points_lack_are_one_fact() {
        let lacking = |size: u64| {
            let params = params([("size", size.into())]);
            let mut m = point(ids::MEMORY_LATENCY, params, Semantics::Operation, 5.0);
            m.lower(Reason::new(QualityLevel::Degraded, "page-size", "all pages were of 4 KiB", ""));
            m
        };
        let found = findings(&report(vec![lacking(1), lacking(2), lacking(3)]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].text, "Odd here: huge pages are not used: all pages were of 4 KiB.");
    }
}
