//! Cost of taking a page away that other CPUs use: the call waits until all of them have flushed their TLBs, and
//! each of them is interrupted (TLB shoot-down).

use crate::noise::counters::CpuKernelCounters;
use crate::prelude::*;
use crate::siblings::{Prepare, Siblings, doubled, switches};
use latscope_os::page::Access;
use std::sync::Mutex;

probes! {
    EXPERIMENT, ShootdownSettings, plan_shootdowns, ..FACTS;
    SHOOTDOWN "syscall.shootdown", "page taken away that other CPUs use", FACTS.source,
        "One munmap of a page of 4 KiB, or one mprotect of it to read-only, while so many other threads of the \
        process compute on CPUs of their own and have just read the page: the kernel makes their CPUs forget the \
        translation.";
    GAP "syscall.shootdown-gap", "gap in another thread", FACTS.source,
        "The longest gap between two readings of the clock, beyond the own time of the loop that reads it, in any of \
        these threads during the call of syscall.shootdown."
        { subject: crate::Subject::Delay, by_name_only: true, };
}

const FACTS: ProbeFacts = ProbeFacts {
    source: "munmap(2), mprotect(2); TLB of proc_interrupts(5)",
    exclusive_cpus: ExclusiveCpus::ThreadsAndOne,
    may_be_zero: &["threads"],
    sensitive_to: &[Condition::Virtualisation, Condition::TwoCpus, Condition::Interrupts],
    ..ProbeFacts::DEFAULT
};

static EXPERIMENT: Experiment = Experiment::new("syscall.shootdown", Cpus::All, run_shootdowns)
    .setup_per_point(0.01)
    .fewer_rounds(4, "its threads compute on all CPUs");

words! {
    /// Call that takes a page away.
    enum ShootdownCall {
        /// Removal of the mapping.
        Munmap = "munmap",
        /// Protection against stores.
        Mprotect = "mprotect",
    }
}

settings! {
    /// A page and its users.
    struct ShootdownSettings, requested as ShootdownRequest {
        /// Call that takes the page away: munmap, or mprotect to read-only.
        call: ShootdownCall;
        /// Other threads of the process that use the page, each on its own CPU.
        threads: u64, axis;
    }
}

fn plan_shootdowns(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let others = (machine.allowed.0.len() as u64).saturating_sub(1).max(1);
    let (calls, threads) = if input.survey {
        (&ShootdownCall::ALL[..1], BTreeSet::from([others]))
    } else {
        (ShootdownCall::ALL, doubled(others))
    };
    let asked = ShootdownRequest::of(input);
    let threads: Vec<u64> = asked.threads.or(&threads.into_iter().collect::<Vec<_>>());
    let mut points = Vec::new();
    for call in asked.call.or(calls) {
        // No other thread has no gap.
        for threads in threads.iter().copied().filter(|n| *n > 0 || probe.id == SHOOTDOWN.id) {
            let users = match threads {
                0 => "that no other CPU uses".to_owned(),
                threads => format!("used by {}", count_with_noun(threads, "other thread")),
            };
            let what = if probe.id == GAP.id { "gap by " } else { "" };
            let title = format!("{what}{} of a page {users}", call.word());
            points.push(probe.make_point(ShootdownSettings { call, threads }, title, input.survey));
        }
    }
    points
}

fn run_shootdowns(bench: &mut Bench) -> Result<()> {
    let points = bench.points();
    let settings: Vec<ShootdownSettings> = bench.settings()?;
    let wanted: Vec<(String, ShootdownSettings)> =
        points.iter().map(|point| point.probe.clone()).zip(settings).collect();
    let groups: BTreeSet<(ShootdownCall, u64)> = wanted.iter().map(|(_, of)| (of.call, of.threads)).collect();
    for (call, threads) in groups {
        let of_group = |(_, of): &(String, ShootdownSettings)| of.call == call && of.threads == threads;
        let mut parts = ActivityParts::default();
        let mut part =
            |probe: &Probe| parts.add_part(&wanted, |point| point.0 == probe.id && of_group(point));
        let places = [part(&SHOOTDOWN), part(&GAP)];
        if !enough_cpus(bench, parts.point_indices(), threads) {
            continue;
        }
        let cpus = bench.cpus()[1..=threads as usize].to_vec();
        let page = ShootdownPage::default();
        let siblings = Siblings::start_threads(bench.timebase(), &cpus, || page.page_reader())?;
        measure_shootdown(bench, &parts, ShootdownGroup { call, page, siblings, cpus, places });
    }
    Ok(())
}

/// The page that all threads use, if there is one.
#[derive(Debug, Clone, Default)]
struct ShootdownPage(Arc<Mutex<Option<Arc<PageMapping>>>>);

impl ShootdownPage {
    /// Puts a page there, which has been written.
    fn map_page(&self) -> rustix::io::Result<()> {
        let mut mapping = PageMapping::anonymous(page_size())?;
        // EINVAL: a kernel without huge pages, which is as good.
        let _ = mapping.refuse_huge_pages();
        mapping.populate();
        *self.0.lock().expect("no thread panics with it") = Some(Arc::new(mapping));
        Ok(())
    }

    fn page(&self) -> Option<Arc<PageMapping>> {
        self.0.lock().expect("no thread panics with it").clone()
    }

    /// Takes the page out, which no sibling holds any more.
    fn take_page(&self) -> Option<PageMapping> {
        Arc::into_inner(self.0.lock().expect("no thread panics with it").take()?)
    }

    /// Returns the preparation of a sibling: it reads the page, so that its CPU has the translation.
    fn page_reader(&self) -> Prepare {
        let shared = self.clone();
        Box::new(move || {
            if let Some(page) = shared.page() {
                std::hint::black_box(page.read_byte(0));
            }
        })
    }
}

/// A group that is measured together.
struct ShootdownGroup {
    call: ShootdownCall,
    page: ShootdownPage,
    siblings: Siblings,
    cpus: Vec<u32>,
    /// Places of the call and of the gap among the parts, if they are asked for.
    places: [ActivityPart; 2],
}

fn measure_shootdown(bench: &mut Bench, parts: &ActivityParts, mut of: ShootdownGroup) {
    let timebase = bench.timebase();
    let mut first = FirstError::default();
    let mut gaps: Vec<Vec<f64>> = of.cpus.iter().map(|_| Vec::new()).collect();
    let mut calls = 0u64;
    let before = CpuKernelCounters::read_current();
    bench.splits(parts.point_indices(), SampleGate::Open, |splits| {
        if first.has_error() || first.check_result(of.page.map_page()).is_none() {
            return;
        }
        of.siblings.begin_round();
        let Some(mapping) = of.page.take_page() else { return };
        let before = switches();
        let (start, end) = first.check_result(time_shootdown(splits, of.call, mapping)).unwrap_or_default();
        let alone = switches() == before;
        calls += 1;
        let Some(seen) = of.siblings.end_round().filter(|_| alone) else { return };
        let mut longest = 0;
        for (gaps, gap) in gaps.iter_mut().zip(seen) {
            gaps.push(timebase.span(gap));
            longest = longest.max(gap);
        }
        of.places[0].set_between(splits, start, end);
        of.places[1].set_between(splits, 0, longest);
    });
    let after = CpuKernelCounters::read_current();
    if !first.ok_or_close(bench, parts.point_indices(), of.call.word()) {
        return;
    }
    let interrupts: u64 = of.cpus.iter().map(|cpu| after.since(&before, *cpu).interrupts_from("TLB")).sum();
    for point in parts.point_indices() {
        if calls > 0 {
            bench.add_value(*point, "shootdowns", interrupts as f64 / calls as f64, "count", Better::Less);
        }
        for (cpu, gaps) in of.cpus.iter().zip(&gaps).take(NAMED) {
            if let Some(median) = median(gaps) {
                bench.add_value(*point, &format!("gap:cpu{cpu}"), median, "ns", Better::Less);
            }
        }
    }
}

/// CPUs whose gaps are values.
const NAMED: usize = 16;

/// Takes the page away; returns the stamps around the call.
fn time_shootdown(
    splits: &Splits,
    call: ShootdownCall,
    mut mapping: PageMapping,
) -> rustix::io::Result<(u64, u64)> {
    let start = splits.now();
    match call {
        ShootdownCall::Munmap => {
            mapping.unmap()?;
            Ok((start, splits.now()))
        }
        ShootdownCall::Mprotect => {
            mapping.protect(Access::Read)?;
            Ok((start, splits.now()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SurveyProfile;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn planned(cpus: &str, survey: bool) -> Vec<MeasurementPoint> {
        let machine = Machine { allowed: cpus.parse().unwrap(), ..Machine::default() };
        let input = PlanInput { profile: SurveyProfile::Normal, survey, ..harness::input() };
        [&SHOOTDOWN, &GAP].into_iter().flat_map(|probe| probe.plan(&input, &machine)).collect()
    }

    #[test]
    fn by_powers_of_two_and_all_and_one_row_in_a_survey() {
        let threads: Vec<u64> =
            planned("0-5", false)[..5].iter().map(|point| point.numeric_param("threads")).collect();
        assert_eq!(threads, [0, 1, 2, 4, 5]);
        assert!(
            planned("0-5", false)
                .iter()
                .all(|point| point.probe == SHOOTDOWN.id || point.numeric_param("threads") > 0)
        );
        let surveyed = planned("0-5", true);
        assert_eq!(surveyed.len(), 2);
        assert_eq!(surveyed[0].title, "munmap of a page used by 5 other threads");
        assert_eq!(planned("3", true)[0].numeric_param("threads"), 1, "reported as unsupported");
    }

    /// The second method: on x86 without broadcast invalidation the kernel counts the interrupts.
    #[test]
    fn both_calls_are_measured_and_the_kernel_counts_the_interrupts() {
        let cpus = latscope_os::sched::allowed_cpus().unwrap().len();
        let points = planned(if cpus > 1 { "0-1" } else { "0" }, false);
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let interrupted = cfg!(target_arch = "x86_64") && !info.contains("invlpgb");
        for m in harness::measure(&EXPERIMENT, points) {
            harness::check(&m);
            assert_eq!(
                m.quality.level == QualityLevel::Unsupported,
                m.numeric_param("threads") == Some(1) && cpus == 1
            );
            if m.quality.level != QualityLevel::Unsupported && m.numeric_param("threads") == Some(1) {
                assert!(m.values["shootdowns"].value > 0.0 || !interrupted, "{m:?}");
                assert!(m.values.keys().any(|name| name.starts_with("gap:cpu")), "{m:?}");
            }
        }
    }
}
