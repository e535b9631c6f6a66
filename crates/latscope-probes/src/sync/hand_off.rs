//! Hand-off between two threads: round trips by each mechanism, by placement.

use super::placement::{self, HandOffPlacement};
use crate::available;
use crate::prelude::*;
use crate::ways::{by_title, other_than_bare};
use latscope_core::param;
use latscope_exchange::{Closed, RoundTripCall, TokenLink, echo, links};
use latscope_os::monitor::CondvarCounter;
use rustix::thread::sched_getcpu;
use std::sync::atomic::AtomicU32;

settings! {
    /// Settings of two threads that hand over.
    struct HandOffSettings, requested as HandOffRequest {
        /// Where the two threads run: on one CPU; on two that idle while their thread waits (the round trip then
        /// contains two exits from idle); on two that are kept from idling; or, where asked for, wherever the scheduler
        /// puts them, with the share of trips in which both were in one last-level cache.
        placement: HandOffPlacement;
    }
}

settings! {
    /// Settings of two threads that hand over by calls of the kernel.
    struct HandOffCallSettings, requested as HandOffCallRequest {
        /// `libc`, where asked for or next to the bare instruction on one CPU: by functions of the C library
        by: Option<SyscallInvocation>;
        ..threads: HandOffSettings;
    }
}

static EXPERIMENT: Experiment = Experiment::new("sync.hand-off", Cpus::Two, run_hand_offs)
    .setup_per_point(0.02)
    .fewer_rounds(4, placement::AWAKE);

probes! {
    EXPERIMENT, HandOffSettings, plan_hand_offs, ..ProbeFacts { by: Some(SyscallInvocation::Libc), ..FACTS };
    SEMAPHORE "sync.semaphore", "semaphore hand-off, round trip", "sem_post(3), sem_wait(3)",
        "sem_post to a thread that sleeps in sem_wait, and back by another semaphore.";
    CONDVAR "sync.condvar", "condvar hand-off, round trip", "pthread_cond_signal(3), pthread_cond_wait(3)",
        "Lock, count, unlock and pthread_cond_signal to a thread that sleeps in pthread_cond_wait, and back by another pair of mutex and condition.";
}

probes! {
    EXPERIMENT, HandOffCallSettings, plan_called, ..FACTS;
    EVENTFD "sync.eventfd", "eventfd hand-off, round trip", "eventfd(2), EFD_SEMAPHORE",
        "write(2) of an eventfd to a thread that sleeps in read(2), and back by another eventfd.";
}

const FACTS: ProbeFacts = ProbeFacts {
    times: Semantics::RoundTrip,
    revision: 2,
    by: Some(SyscallInvocation::Instruction),
    ..ProbeFacts::DEFAULT
};

probes! {
    EXPERIMENT, HandOffSettings, plan_hand_offs, ..FACTS;
    FUTEX "sync.futex", "futex hand-off, round trip", "futex(2)",
        "Atomic add and FUTEX_WAKE to a thread that sleeps in FUTEX_WAIT, and back by another futex."
        { headline: Some(ProbeHeadline { name: "hand-off", preferred: &[("placement", "two-cores"), ("placement", "same-core")] }), };
    PIPE "sync.pipe", "pipe hand-off, round trip", "pipe(7)",
        "write(2) of one byte to a pipe whose reader sleeps in read(2), and back by another pipe.";
    UNIX_STREAM "sync.unix-stream", "socket hand-off, round trip", "unix(7), socketpair(2)",
        "write(2) of one byte to a Unix stream socket whose peer sleeps in read(2), and back.";
}

/// Returns the points of a mechanism by each way: by the C library on one CPU, where no exit from idle hides the calls.
fn plan_called(probe: &Probe, input: &PlanInput, machine: &Machine) -> Vec<MeasurementPoint> {
    let asked = HandOffCallRequest::of(input).by;
    let mut points = Vec::new();
    for by in asked.or(SyscallInvocation::ALL) {
        for point in plan_hand_offs(probe, input, machine) {
            let same_core =
                point.params.get(param::PLACEMENT) == Some(&HandOffPlacement::SameCore.word().into());
            if by == SyscallInvocation::Instruction || same_core || asked.given() {
                let by_param = other_than_bare(by).map(|by| by.word().into());
                let mut point = MeasurementPoint { title: by_title(&point.title, by), ..point };
                point.params.extend(by_param.map(|by| (param::BY.to_owned(), by)));
                points.push(point);
            }
        }
    }
    points
}

fn plan_hand_offs(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let what = probe.title.trim_end_matches(", round trip");
    let mut points = Vec::new();
    for placement in HandOffRequest::of(input).placement.or(&HandOffPlacement::FIXED) {
        let place = match placement {
            HandOffPlacement::SameCore => "same core",
            HandOffPlacement::TwoCores => "two cores",
            HandOffPlacement::TwoCoresAwake => "two awake",
            HandOffPlacement::Scheduler => "placed by the scheduler",
        };
        points.push(probe.make_point(HandOffSettings { placement }, format!("{what}, {place}"), true));
    }
    points
}

fn run_hand_offs(bench: &mut Bench) -> Result<()> {
    let called: Vec<HandOffCallSettings> = bench.settings()?;
    let all = called.iter().enumerate().map(|(index, called)| (index, called.threads.placement));
    // Those whose CPUs are kept awake come last, for that heats up the machine.
    let (last, first): (Vec<_>, Vec<_>) =
        all.partition(|(_, placement)| *placement == HandOffPlacement::TwoCoresAwake);
    measure_all(bench, &first)?;
    if !last.is_empty() {
        placement::warm_up_cpus(bench);
    }
    measure_all(bench, &last)
}

fn measure_all(bench: &mut Bench, placed: &[(usize, HandOffPlacement)]) -> Result<()> {
    let points = bench.points();
    for (index, placement) in placed.iter().copied() {
        let Some(cpus) = placement.cpus(bench.cpus()) else {
            available::lacks_a_cpu(bench, index);
            continue;
        };
        let measured = match points[index].probe.as_str() {
            "sync.semaphore" => measure_hand_off(
                bench,
                index,
                placement,
                cpus,
                links::counter_pair::<Semaphore>(SharingScope::Threads),
            ),
            "sync.futex" => measure_hand_off(
                bench,
                index,
                placement,
                cpus,
                links::counter_pair::<Tokens>(SharingScope::Threads),
            ),
            "sync.condvar" => measure_hand_off(
                bench,
                index,
                placement,
                cpus,
                links::counter_pair::<CondvarCounter>(SharingScope::Threads),
            ),
            "sync.eventfd" if points[index].params.contains_key(param::BY) => {
                measure_hand_off(bench, index, placement, cpus, links::eventfd_by_libc())
            }
            "sync.eventfd" => measure_hand_off(bench, index, placement, cpus, links::eventfd()),
            "sync.pipe" => measure_hand_off(bench, index, placement, cpus, links::pipe()),
            "sync.unix-stream" => measure_hand_off(bench, index, placement, cpus, links::unix_stream()),
            other => anyhow::bail!("{other} is no hand-off"),
        };
        close_failed(bench, &[index], measured, placement::REMEDY);
    }
    Ok(())
}

/// Hand-offs before the first one is timed: they start the threads, fill the
/// caches, and give the process that keeps the CPU awake its first slice,
/// after which the scheduler treats the two as it does on a busy machine.
const WARM_UP: Duration = Duration::from_millis(8);

fn measure_hand_off<L: TokenLink + 'static>(
    bench: &mut Bench,
    point: usize,
    placement: HandOffPlacement,
    cpus: [u32; 2],
    ends: std::io::Result<(L, L)>,
) -> Result<()> {
    let (mut near, far) = ends.context("the two ends cannot be connected")?;
    let awake = placement::keep_awake(bench, point, placement, cpus);
    let settle = settling(placement, bench.allowed());
    settle(cpus[0]).context("the measuring thread cannot be set up")?;
    let mut places = (placement == HandOffPlacement::Scheduler).then(HandOffCpuTrips::default);
    let noted = places.as_ref().map(|places| places.there.clone());
    let partner = threads::start_partner(
        move || settle(cpus[1]),
        move || match noted {
            Some(cpu) => answer_trips(Noting { link: far, cpu }),
            None => answer_trips(far),
        },
    )
    .context("the other thread")?;
    let mut trips = 0u64;
    let mut lost = false;
    let mut call = || {
        trips += 1;
        lost |= near.call().is_err();
        trips
    };
    let before = thread_counts().voluntary;
    let started = Instant::now();
    let mut warm_up = 0;
    while started.elapsed() < WARM_UP {
        warm_up = call();
    }
    if !partner.is_finished() {
        let stop = bench.stop();
        bench.set_stop(longer(stop, placement));
        bench.each(point, placement.gate(), || {
            call();
            if let Some(places) = &mut places {
                places.count_trip();
            }
        });
        bench.set_stop(stop);
    }
    placement::check_awake(bench, point, &awake);
    let slept = thread_counts().voluntary - before;
    drop(near);
    let partner_slept = partner.join();
    anyhow::ensure!(!lost, "the other thread was gone");
    placement::check_count(bench, point, trips - warm_up);
    // Each trip has two hand-offs, and in each of them one thread waits.
    let blocked = 100.0 * (slept + partner_slept) as f64 / (2 * trips) as f64;
    bench.add_value(point, "blocked", blocked.min(100.0), "%", Better::Neither);
    if let Some(places) = places {
        places.report_cpu_shares(bench, point);
    }
    Ok(())
}

/// Returns what puts a thread where the placement has it.
fn settling(
    placement: HandOffPlacement,
    allowed: &[u32],
) -> impl Fn(u32) -> Result<()> + Clone + Send + 'static {
    let allowed = allowed.to_vec();
    move |cpu| match placement {
        HandOffPlacement::Scheduler => placement::settle_freely(&allowed),
        _ => placement::place_thread(placement, cpu),
    }
}

/// CPUs on which the two threads of trips were.
#[derive(Default)]
struct HandOffCpuTrips {
    /// CPU on which the other thread received last.
    there: Arc<AtomicU32>,
    /// Trips by the CPUs of the measuring and the other thread.
    trips: BTreeMap<(u32, u32), u64>,
}

impl HandOffCpuTrips {
    /// Counts a trip that has just ended. The reading of the CPU, some 30 ns, is in the time of the trip.
    fn count_trip(&mut self) {
        *self.trips.entry((sched_getcpu() as u32, self.there.load(Ordering::Relaxed))).or_default() += 1;
    }

    /// States the shares of trips in which both threads were on one CPU, and in one last-level cache.
    fn report_cpu_shares(&self, bench: &mut Bench, point: usize) {
        let caches = latscope_machine::last_caches();
        let total: u64 = self.trips.values().sum();
        let mut state = |name: &str, is: &dyn Fn(u32, u32) -> bool| {
            let count: u64 = self.trips.iter().filter(|((a, b), _)| is(*a, *b)).map(|(_, count)| count).sum();
            bench.add_value(point, name, 100.0 * count as f64 / total.max(1) as f64, "%", Better::Neither);
        };
        state("same-cpu", &|a, b| a == b);
        if !caches.is_empty() {
            let shared = |a, b| caches.iter().any(|cpus| cpus.0.contains(&a) && cpus.0.contains(&b));
            state("same-cache", &|a, b| a == b || shared(a, b));
        }
    }
}

/// A link whose receiver notes the CPU on which it woke up.
struct Noting<L> {
    link: L,
    cpu: Arc<AtomicU32>,
}

impl<L: TokenLink> TokenLink for Noting<L> {
    fn send_token(&mut self) -> Result<(), Closed> {
        self.link.send_token()
    }

    fn receive_token(&mut self) -> Result<(), Closed> {
        self.link.receive_token()?;
        self.cpu.store(sched_getcpu() as u32, Ordering::Relaxed);
        Ok(())
    }
}

/// Runs the other thread, which answers until the first thread is done. Returns how often it slept.
fn answer_trips(link: impl TokenLink) -> u64 {
    let before = thread_counts().voluntary;
    echo(link);
    thread_counts().voluntary - before
}

/// Returns a longer stop on one CPU, where a trip is short: four times as many trips make up a stretch in which
/// a busy scheduler changes its decision several times. A requested count stays as it is.
fn longer(stop: Stop, placement: HandOffPlacement) -> Stop {
    let counted = stop.budget_ns == u64::MAX;
    match placement {
        HandOffPlacement::SameCore if !counted => Stop { events: stop.events.saturating_mul(4), ..stop },
        _ => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::ParamValue;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn all() -> Vec<MeasurementPoint> {
        [&SEMAPHORE, &FUTEX, &CONDVAR, &EVENTFD, &PIPE, &UNIX_STREAM]
            .into_iter()
            .flat_map(harness::points)
            .collect()
    }

    #[test]
    fn a_point_for_each_mechanism_and_placement_asked_for() {
        // One more: eventfd by the C library on one CPU.
        assert_eq!(all().len(), 19);
        let mut input = harness::input();
        input.values.insert("placement".into(), vec![ParamValue::from("same-core")]);
        let points = PIPE.plan(&input, &harness::machine());
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].title, "pipe hand-off, same core");
    }

    #[test]
    fn the_scheduler_places_the_threads_where_asked_for_and_the_places_are_stated() {
        let mut input = harness::input();
        input.values.insert("placement".into(), vec![ParamValue::from("scheduler")]);
        let points = FUTEX.plan(&input, &harness::machine());
        assert_eq!(points[0].title, "futex hand-off, placed by the scheduler");
        let measured = harness::measure(&EXPERIMENT, points);
        harness::check(&measured[0]);
        if measured[0].quality.level != QualityLevel::Unsupported {
            let share = |name: &str| measured[0].values.get(name).map(|share| share.value);
            let same_cpu = share("same-cpu").unwrap();
            assert!((0.0..=100.0).contains(&same_cpu));
            assert!(share("same-cache").is_none_or(|share| (same_cpu..=100.0).contains(&share)));
        }
    }

    #[test]
    fn every_mechanism_is_measured_and_really_blocks() {
        for m in harness::measure(&EXPERIMENT, all()) {
            harness::check(&m);
            if m.quality.level != QualityLevel::Unsupported {
                let blocked = m.values["blocked"].value;
                assert!(blocked > 0.0 && blocked <= 100.0, "{} {:?}: blocked {blocked}", m.probe, m.params);
            }
        }
    }
}
