//! A page fault while other threads of the process change its address space, so that both want the lock of the
//! mappings.

use crate::prelude::*;
use crate::siblings::doubled;
use crate::siblings::switches;

probes! {
    EXPERIMENT, ContendedFaultSettings, plan_contended_faults;
    CONTENDED_FAULT "syscall.contended-fault", "page fault beside mmap and munmap",
        "mmap(2), madvise(2), getrusage(2) ru_minflt; Documentation/mm/process_addrs.rst",
        "The first store to a page of 4 KiB of private anonymous memory, while so many other threads of the \
        process map, touch and unmap a page without pause, each on its own CPU."
        { by_name_only: true, exclusive_cpus: ExclusiveCpus::ThreadsAndOne, may_be_zero: &["threads"],
          sensitive_to: &[Condition::Virtualisation, Condition::TwoCpus, Condition::MovedPages], };
}

static EXPERIMENT: Experiment =
    Experiment::new("syscall.contended-fault", Cpus::All, run_contended_faults).setup_per_point(0.01);

settings! {
    /// Threads beside a fault.
    struct ContendedFaultSettings, requested as ContendedFaultRequest {
        /// Other threads that map and unmap meanwhile, each on its own CPU.
        threads: u64, axis;
    }
}

fn plan_contended_faults(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let others = (machine.allowed.0.len() as u64).saturating_sub(1).max(1);
    let mut points = Vec::new();
    for threads in ContendedFaultRequest::of(input).threads.or(&Vec::from_iter(doubled(others))) {
        let beside = match threads {
            0 => "nothing beside it".to_owned(),
            threads => format!("{} mapping and unmapping", count_with_noun(threads, "thread")),
        };
        points.push(probe.make_point(
            ContendedFaultSettings { threads },
            format!("page fault, {beside}"),
            false,
        ));
    }
    points
}

fn run_contended_faults(bench: &mut Bench) -> Result<()> {
    for (point, ContendedFaultSettings { threads }) in bench.settings()?.into_iter().enumerate() {
        if !enough_cpus(bench, &[point], threads) {
            continue;
        }
        let cpus = bench.cpus()[1..=threads as usize].to_vec();
        let mappers = Mappers::start_threads(&cpus)?;
        let measured = measure_faults(bench, point, &mappers);
        ok_or_refuse(bench, point, "map memory", measured);
    }
    Ok(())
}

/// Threads that map and unmap until they are dropped.
struct Mappers {
    over: Arc<AtomicBool>,
    pairs: Arc<AtomicU64>,
    threads: Vec<Partner<()>>,
}

impl Mappers {
    fn start_threads(cpus: &[u32]) -> Result<Mappers> {
        let mut mappers =
            Mappers { over: Arc::default(), pairs: Arc::default(), threads: Vec::with_capacity(cpus.len()) };
        for cpu in cpus.iter().copied() {
            let (over, pairs) = (mappers.over.clone(), mappers.pairs.clone());
            let body = move || {
                while !over.load(Relaxed) {
                    // The caller meets the same refusal, and says so.
                    let Ok(mut mapping) = PageMapping::anonymous(page_size()) else { return };
                    mapping.write_byte(0);
                    drop(mapping);
                    pairs.fetch_add(1, Relaxed);
                }
            };
            mappers.threads.push(threads::start_partner(move || threads::pin(cpu), body)?);
        }
        Ok(mappers)
    }
}

impl Drop for Mappers {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        self.threads.drain(..).for_each(Partner::join);
    }
}

/// Pages in a row that are touched before all are given back: 2 MiB, so that they share a page table.
const PAGES: usize = 512;

fn measure_faults(bench: &mut Bench, point: usize, mappers: &Mappers) -> rustix::io::Result<()> {
    let mut memory = PageMapping::huge_aligned(PAGES * page_size())?;
    // EINVAL: a kernel without huge pages, which is as good.
    let _ = memory.refuse_huge_pages();
    memory.populate();
    memory.discard()?;
    let mut next = 0;
    let mut refused = None;
    let (mut touched, before) = (0u64, thread_counts().minor_faults);
    let (pairs, began) = (mappers.pairs.load(Relaxed), Instant::now());
    bench.splits(&[point], SampleGate::Open, |splits| {
        if next == PAGES {
            next = 0;
            refused = refused.or(memory.discard().err());
        }
        let switched = switches();
        let start = splits.now();
        memory.write_byte(next * page_size());
        let end = splits.now();
        next += 1;
        touched += 1;
        // Whoever waits for the lock of the mappings sleeps: that is what is measured. Being preempted is not.
        let alone = mappers.threads.is_empty() && switches() == switched;
        if alone || !mappers.threads.is_empty() {
            splits.set_part(0, start, end);
        }
    });
    let faults = thread_counts().minor_faults - before;
    let pairs = mappers.pairs.load(Relaxed) - pairs;
    bench.add_value(point, "mapped", pairs as f64 / began.elapsed().as_secs_f64(), "1/s", Better::Neither);
    bench.add_value(point, "faults", faults as f64 / touched.max(1) as f64, "count", Better::Neither);
    if pairs == 0 && !mappers.threads.is_empty() {
        let reason = "the other threads did not run meanwhile: nothing was mapped beside the faults";
        bench.degrade(point, "no-load", reason, "run it on a quieter machine, or on other CPUs (--cpus)");
    }
    refused.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    /// The second method: the kernel counts a fault for each touch.
    #[test]
    fn every_touch_is_a_fault_and_the_others_map_meanwhile() {
        let points = harness::points(&CONTENDED_FAULT);
        assert!(points.len() >= 2);
        for m in harness::measure(&EXPERIMENT, points) {
            harness::check(&m);
            if m.quality.level == QualityLevel::Unsupported {
                continue;
            }
            assert!(m.values["faults"].value >= 1.0, "{m:?}");
            let without_load = m.quality.reasons.iter().any(|reason| reason.id == "no-load");
            let contended = m.numeric_param("threads") != Some(0) && !without_load;
            assert_eq!(m.values["mapped"].value > 0.0, contended, "{m:?}");
        }
    }
}
