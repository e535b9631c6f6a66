//! Descriptors of processes: pidfd_open, and the poll of a process that has ended.

use crate::prelude::*;
use crate::syscall::calls::{FACTS, time_loop};
use latscope_os::kernels::code::calls::SystemCallLoop;
use latscope_os::process_probe::{ZombieChild, keep_children};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};

static PIDFD: Experiment = Experiment::new("process.pidfd", Cpus::One, run_pidfd_calls);

probes! {
    PIDFD, (), crate::only_point, ..FACTS;
    OPEN "process.pidfd-open", "pidfd_open and close", "pidfd_open(2), close(2)",
        "One pidfd_open of the own process, and one close." { by_name_only: true, };
    POLL "process.pidfd-poll", "poll of an ended process", "pidfd_open(2), poll(2)",
        "One poll of the descriptor of a child that has ended and was not waited for, with a zero timeout."
            { by_name_only: true, };
}

fn run_pidfd_calls(bench: &mut Bench) -> Result<()> {
    keep_children();
    for (index, point) in bench.points().iter().enumerate() {
        if point.probe == OPEN.id {
            time_loop(bench, index, "pidfd_open", &mut SystemCallLoop::pidfd_open_close(bench.seed()));
            continue;
        }
        match ZombieChild::child().and_then(|child| Ok((pidfd_open(child.id(), PidfdFlags::empty())?, child)))
        {
            Err(error) => refuse(bench, index, "open the descriptor of a child", error),
            Ok((descriptor, _child)) => {
                let mut list = [PollFd::new(&descriptor, PollFlags::IN)];
                // The child is on its way to its end.
                let Some(_) = ok_or_refuse(bench, index, "poll", poll(&mut list, None)) else { continue };
                time_loop(bench, index, "poll", &mut SystemCallLoop::poll(bench.seed(), &mut list));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn both_calls_are_measured() {
        for m in measure(&PIDFD, [points(&OPEN), points(&POLL)].concat()) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{:?}", m.joined_reasons());
        }
    }
}
