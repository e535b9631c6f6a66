//! Asking which of many descriptors are ready: select, poll and epoll.

use super::calls::time_call;
use crate::failure::refuse;
use crate::{Cpus, Experiment, Kind, Param, PlanInput, Probe, Profile};
use latscope_bench::bench::Bench;
use latscope_core::plan::{Point, Policy, params};
use latscope_core::report::Semantics;
use latscope_core::units::counted;
use latscope_os::select::Descriptors;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, Result};
use rustix::process::{Resource, getrlimit, setrlimit};

static READY: Experiment =
    Experiment { name: "syscall.ready", cpus: Cpus::One, scratch: false, policy: Policy::Other, run };

static PARAMS: [Param; 1] = [Param {
    name: "descriptors",
    help: "How many descriptors are asked about; the last one is ready",
    kind: Kind::Number,
    axis: true,
}];

static SELECTED: [Param; 2] = [
    Param { name: PARAMS[0].name, help: PARAMS[0].help, kind: PARAMS[0].kind, axis: PARAMS[0].axis },
    Param {
        name: "mode",
        help: "`write-file`, where asked for: whether descriptors of one file can be written to, which all can",
        kind: Kind::Choice(&[WRITE_FILE]),
        axis: false,
    },
];

/// What LMbench asks.
const WRITE_FILE: &str = "write-file";

/// select(2).
pub static SELECT: Probe = Probe {
    id: "syscall.select",
    title: "select",
    timed: "One select (the pselect6 call, which knows no limit of 1024) for reading on n eventfds of which the last \
            one is ready, with a zero timeout; filling the set is included.",
    times: Semantics::Operation,
    source: "select(2)",
    params: &SELECTED,
    experiment: &READY,
    revision: 1,
    plan: |input, _| plan(&SELECT, input),
};

/// poll(2).
pub static POLL: Probe = Probe {
    id: "syscall.poll",
    title: "poll",
    timed: "One poll for reading on n eventfds of which the last one is ready, with a zero timeout.",
    times: Semantics::Operation,
    source: "poll(2)",
    params: &PARAMS,
    experiment: &READY,
    revision: 1,
    plan: |input, _| plan(&POLL, input),
};

/// epoll_wait(2).
pub static EPOLL: Probe = Probe {
    id: "syscall.epoll",
    title: "epoll_wait",
    timed: "One epoll_wait on a set of n eventfds of which one is ready (level-triggered), with a zero timeout.",
    times: Semantics::Operation,
    source: "epoll_wait(2)",
    params: &PARAMS,
    experiment: &READY,
    revision: 1,
    plan: |input, _| plan(&EPOLL, input),
};

fn plan(probe: &Probe, input: &PlanInput) -> Vec<Point> {
    let numbers: &[u64] = match input.profile {
        Profile::Quick => &[100],
        Profile::Normal => &[10, 100, 1_000],
        Profile::Full => &[10, 100, 1_000, 10_000],
    };
    let mode = input.texts("mode", &[]).into_iter().find(|mode| mode == WRITE_FILE && probe.id == SELECT.id);
    let point = |n: u64| {
        let mut params = params([("descriptors", n.into())]);
        let of = if mode.is_some() { " of a file" } else { "" };
        params.extend(mode.as_ref().map(|mode| ("mode".to_owned(), mode.as_str().into())));
        probe.point(params, format!("{} on {}{of}", probe.title, counted(n, "descriptor")), n == 100)
    };
    input.numbers("descriptors", numbers).into_iter().map(point).collect()
}

fn run(bench: &mut Bench) -> anyhow::Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        let count = point.number("descriptors");
        let written = point.params.contains_key("mode");
        let opened = if written { open_file(count) } else { open_eventfds(count) };
        let files = match opened {
            Ok(files) => files,
            Err(error) => {
                refuse(bench, index, "open that many descriptors", error);
                continue;
            }
        };
        match point.probe.as_str() {
            "syscall.select" if written => {
                let mut set = Descriptors::new(&files);
                let all = |ready: usize| if ready as u64 == count { Ok(()) } else { Err(Errno::PROTO) };
                time_call(bench, index, "select", || set.writable_now().and_then(all))?;
            }
            "syscall.select" => {
                let mut set = Descriptors::new(&files);
                time_call(bench, index, "select", || set.readable_now().and_then(one))?;
            }
            "syscall.poll" => {
                let mut list: Vec<PollFd> = files.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
                time_call(bench, index, "poll", || poll(&mut list, Some(&ZERO)).and_then(one))?;
            }
            _ => match watch(&files) {
                Ok(set) => time_call(bench, index, "epoll_wait", || wait(&set).and_then(one))?,
                Err(error) => refuse(bench, index, "epoll_ctl", error),
            },
        }
    }
    Ok(())
}

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Exactly one is ready; any other answer is an error of the kernel's.
#[inline(always)]
fn one(ready: usize) -> Result<()> {
    if ready == 1 { Ok(()) } else { Err(Errno::PROTO) }
}

/// Opens eventfds of which the last one is readable.
fn open_eventfds(count: u64) -> Result<Vec<OwnedFd>> {
    allow_descriptors(count)?;
    (1..=count).map(|n| eventfd(u32::from(n == count), EventfdFlags::CLOEXEC)).collect()
}

/// Opens a file so many times.
fn open_file(count: u64) -> Result<Vec<OwnedFd>> {
    allow_descriptors(count)?;
    let file = memfd_create("latscope-select", MemfdFlags::CLOEXEC)?;
    (0..count).map(|_| rustix::io::fcntl_dupfd_cloexec(&file, 0)).collect()
}

/// Raises this process's own limit on open files, as far as that is allowed.
///
/// # Errors
/// EMFILE: that is not far enough.
fn allow_descriptors(count: u64) -> Result<()> {
    const OTHERS: u64 = 64;
    let wanted = count.saturating_add(OTHERS);
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        return Err(Errno::MFILE);
    }
    limit.current = Some(wanted);
    // Refused beyond the system's own limit, fs.nr_open.
    setrlimit(Resource::Nofile, limit).map_err(|_| Errno::MFILE)
}

/// An epoll set of these descriptors.
fn watch(files: &[OwnedFd]) -> Result<OwnedFd> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, file) in (0u64..).zip(files) {
        epoll::add(&set, file, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
    }
    Ok(set)
}

/// Number of ready descriptors, up to 64, now.
#[inline(always)]
fn wait(set: &OwnedFd) -> Result<usize> {
    const NONE: epoll::Event =
        epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
    let mut events = [NONE; 64];
    epoll::wait(set, &mut events[..], Some(&ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::report::Support;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn each_way_of_asking_finds_the_one_ready_descriptor() {
        let files = open_eventfds(70).unwrap();
        let mut list: Vec<PollFd> = files.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let set = watch(&files).unwrap();
        for _ in 0..2 {
            assert_eq!(Descriptors::new(&files).readable_now(), Ok(1));
            assert_eq!(poll(&mut list, Some(&ZERO)), Ok(1));
            assert_eq!(wait(&set), Ok(1));
        }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_needed_or_not_at_all() {
        assert_eq!(allow_descriptors(100), Ok(()));
        let before = getrlimit(Resource::Nofile);
        assert!(before.current.is_none_or(|current| current >= 164));
        assert_eq!(allow_descriptors(1 << 40), Err(Errno::MFILE));
        assert_eq!(getrlimit(Resource::Nofile).current, before.current);
    }

    #[test]
    fn every_way_is_measured() {
        let planned: Vec<Point> = [&SELECT, &POLL, &EPOLL].into_iter().flat_map(points).collect();
        for m in measure(&READY, planned) {
            check(&m);
            assert_ne!(m.support, Support::Unsupported, "{}: {:?}", m.probe, m.reason);
        }
    }

    #[test]
    fn files_are_asked_about_where_that_is_wanted_only() {
        let mut input = latscope_engine::harness::input();
        assert!(plan(&SELECT, &input).iter().all(|point| !point.params.contains_key("mode")));
        input.values.insert("mode".to_owned(), vec![WRITE_FILE.into()]);
        assert!(plan(&POLL, &input).iter().all(|point| !point.params.contains_key("mode")));
        for m in measure(&READY, plan(&SELECT, &input)) {
            check(&m);
            assert_eq!((m.support, &m.params["mode"]), (Support::Ok, &WRITE_FILE.into()), "{:?}", m.reason);
        }
    }

    #[test]
    fn more_descriptors_than_allowed_close_the_point_with_a_reason() {
        let point = SELECT.point(params([("descriptors", (1u64 << 40).into())]), "too many", false);
        let measured = measure(&READY, vec![point]);
        assert_eq!(measured[0].support, Support::Unsupported);
        assert!(measured[0].remedy.as_ref().unwrap().contains("ulimit"));
    }
}
