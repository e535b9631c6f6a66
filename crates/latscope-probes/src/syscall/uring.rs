//! Operations by io_uring: what the queue costs, with the caller and with a thread of the kernel to take them.

use crate::prelude::*;
use latscope_os::uring::{Taker, UringQueue};

static URING: Experiment = Experiment::new("syscall.uring", Cpus::Two, run_uring_batches).first_rounds();

settings! {
    /// Operations of a submission.
    struct UringSubmissionSettings, requested as UringSubmissionRequest {
        /// Operations that are submitted and awaited together, at most 4096
        batch: u64, axis;
        /// Who takes submissions: the caller in its system call (`enter`), or a thread of the kernel on a second CPU
        /// that looks for them all the time (`poller`) or has to be woken (`poller-asleep`, one operation at a time)
        mode: UringSubmitMode;
    }
}

words! {
    /// Taker of the submissions.
    enum UringSubmitMode {
        /// The caller in its system call.
        Enter = "enter",
        /// A kernel thread on a second CPU that looks for submissions all the time.
        Poller = "poller",
        /// A kernel thread on a second CPU that has to be woken.
        PollerAsleep = "poller-asleep",
    }
}

probes! {
    URING, UringSubmissionSettings, plan_uring_batches, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), at_addresses: true, ..ProbeFacts::DEFAULT };
    NOP "syscall.uring-nop", "io_uring NOP", "io_uring(7), io_uring_enter(2), IORING_OP_NOP",
        "One operation that does nothing, from before its submission until its completion is read; of several at \
        once, their time divided by their number. Mode enter: by one system call. Mode poller: by a kernel \
        thread that polls on another CPU. Mode poller-asleep: that thread sleeps, and is woken by a system call."
            { samples: crate::ProbeSampleKind::Either, most: &[("batch", MOST)], };
}

/// Most operations at once: a queue of them is small, and a batch of them short.
const MOST: u64 = 4096;

/// Time without submissions after which the poller sleeps: the shortest, and one that no batch lasts.
const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(10);

fn plan_uring_batches(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let (batches, modes): (&[u64], _) = match (input.survey, input.profile) {
        (true, _) => (&[1], &UringSubmitMode::ALL[..1]),
        (false, SurveyProfile::Full) => (&[1, 2, 4, 8, 16, 32, 64, 128], UringSubmitMode::ALL),
        (false, _) => (&[1, 32], UringSubmitMode::ALL),
    };
    let asked = UringSubmissionRequest::of(input);
    let mut points = Vec::new();
    for mode in asked.mode.or(modes) {
        let most = if mode == UringSubmitMode::PollerAsleep { 1 } else { MOST };
        for batch in asked.batch.or(batches).into_iter().filter(|batch| (1..=most).contains(batch)) {
            let taker = match mode {
                UringSubmitMode::Enter => "",
                UringSubmitMode::Poller => ", by a poller",
                UringSubmitMode::PollerAsleep => ", by a poller that sleeps",
            };
            let of =
                if batch == 1 { String::new() } else { format!(", {batch} at once: time per operation") };
            let title = format!("{}{taker}{of}", probe.title);
            points.push(probe.make_point(UringSubmissionSettings { batch, mode }, title, true));
        }
    }
    points
}

fn run_uring_batches(bench: &mut Bench) -> anyhow::Result<()> {
    for (index, UringSubmissionSettings { batch, mode }) in bench.settings()?.into_iter().enumerate() {
        let taker = match (mode, bench.cpus().get(1).copied()) {
            (UringSubmitMode::Enter, _) => Taker::Caller,
            (_, None) => {
                crate::available::lacks_a_cpu(bench, index);
                continue;
            }
            (UringSubmitMode::Poller, Some(cpu)) => Taker::Poller { cpu, idle: LONG },
            (UringSubmitMode::PollerAsleep, Some(cpu)) => Taker::Poller { cpu, idle: SHORT },
        };
        let queue = UringQueue::new((batch as u32).next_power_of_two(), taker);
        if let Some(queue) = ok_or_refuse(bench, index, "io_uring_setup", queue) {
            measure_uring_batch(bench, index, batch, mode, queue);
        }
    }
    Ok(())
}

fn measure_uring_batch(
    bench: &mut Bench,
    index: usize,
    batch: u64,
    mode: UringSubmitMode,
    mut queue: UringQueue,
) {
    let submit = |queue: &mut UringQueue| {
        (0..batch).for_each(|_| queue.prepare_nop());
        queue.submit_and_wait().map(drop)
    };
    let Some(()) = ok_or_refuse(bench, index, "io_uring_enter", submit(&mut queue)) else { return };
    let mut first = FirstError::default();
    match mode {
        UringSubmitMode::Enter => {
            let addresses = queue.place_call(bench.seed(), batch as u32);
            let timed = Batch { ops: batch, cycles: true, ..Batch::default() };
            bench.batch_at_addresses(index, timed, addresses, |address, iterations| {
                for _ in 0..iterations {
                    (0..batch).for_each(|_| queue.prepare_nop());
                    first.check_result(queue.finish_at(address));
                }
            });
        }
        UringSubmitMode::Poller => bench.calls(index, Batch { ops: batch, ..Batch::default() }, || {
            first.check_result(submit(&mut queue));
        }),
        UringSubmitMode::PollerAsleep => bench.splits(&[index], SampleGate::Open, |splits| {
            while !queue.is_asleep() {
                std::thread::sleep(SHORT / 10);
            }
            first.check_result(splits.time_part(0, || submit(&mut queue)));
        }),
    }
    first.ok_or_close(bench, &[index], "io_uring_enter");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PointSettings;
    use latscope_core::plan::ParamValue;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, input, machine, measure, points};

    #[test]
    fn a_survey_has_one_operation_and_a_sleeping_poller_takes_one_at_a_time() {
        assert_eq!(points(&NOP).len(), 1);
        let mut alone = PlanInput { survey: false, ..input() };
        assert_eq!(NOP.plan(&alone, &machine()).len(), 5);
        alone.values.insert("batch".into(), [0, 7, 4097].map(ParamValue::from).to_vec());
        let planned: Vec<UringSubmissionSettings> = NOP
            .plan(&alone, &machine())
            .iter()
            .map(|point| UringSubmissionSettings::read(point).unwrap())
            .collect();
        assert_eq!(
            planned,
            [UringSubmitMode::Enter, UringSubmitMode::Poller]
                .map(|mode| UringSubmissionSettings { batch: 7, mode })
        );
    }

    #[test]
    fn every_taker_is_measured() {
        let all = NOP.plan(&PlanInput { survey: false, ..input() }, &machine());
        for m in measure(&URING, all) {
            check(&m);
            let alone = machine().allowed.0.len() == 1;
            assert!(
                m.quality.level != QualityLevel::Unsupported || alone,
                "{:?}: {:?}",
                m.params,
                m.joined_reasons()
            );
        }
    }
}
