//! Queries which of many descriptors are ready: select, poll and epoll.

use super::calls::{FACTS, time_call, time_loop};
use crate::prelude::*;
use latscope_os::kernels::code::calls::SystemCallLoop;
use latscope_os::select::Descriptors;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Result;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

static READY: Experiment = Experiment::new("syscall.ready", Cpus::One, run_ready_queries);

settings! {
    /// A question about descriptors.
    struct ReadinessQuerySettings, requested as ReadinessQueryRequest {
        /// How many descriptors are asked about; the last one is ready
        descriptors: u64, axis;
    }
}

settings! {
    /// A question that can also be whether they can be written to.
    struct ReadinessSettings, requested as ReadinessRequest {
        /// How many descriptors are asked about; the last one is ready
        descriptors: u64, axis;
        /// `write-file` or `write-tcp`, where asked for: whether descriptors of one file, or connections, can be
        /// written to, which all can
        mode: Option<WriteDescriptorKind>;
    }
}

words! {
    /// Descriptors of a query for writing, instead of reading.
    enum WriteDescriptorKind {
        /// Descriptors of one file, as LMbench has them.
        WriteFile = "write-file",
        /// TCP connections over loopback, as LMbench has them.
        WriteTcp = "write-tcp",
    }
}

probes! {
    READY, ReadinessSettings, plan_ready_queries, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::BATCHES };
    SELECT "syscall.select", "select", "select(2)",
        "One select (pselect6) for reading on n eventfds, the last of them ready, with a zero timeout; filling \
        the set is included.";
}

probes! {
    READY, ReadinessQuerySettings, plan_ready_queries, ..FACTS;
    POLL "syscall.poll", "poll", "poll(2)",
        "One poll for reading on n eventfds, the last of them ready, with a zero timeout.";
    EPOLL "syscall.epoll", "epoll_wait", "epoll_wait(2)",
        "One epoll_wait on a set of n eventfds of which one is ready (level-triggered), with a zero timeout.";
}

fn plan_ready_queries(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let numbers: &[u64] = match input.profile {
        SurveyProfile::Quick => &[100],
        SurveyProfile::Normal => &[10, 100, 1_000],
        SurveyProfile::Full => &[10, 100, 1_000, 10_000],
    };
    let asked = ReadinessRequest::of(input);
    let mode = asked.mode.first().filter(|_| probe.id == SELECT.id);
    let of = match mode {
        None => "",
        Some(WriteDescriptorKind::WriteFile) => " of a file",
        Some(WriteDescriptorKind::WriteTcp) => " of TCP connections",
    };
    let point = |descriptors: u64| {
        let title = format!("{} on {}{of}", probe.title, count_with_noun(descriptors, "descriptor"));
        probe.make_point(ReadinessSettings { descriptors, mode }, title, descriptors == 100)
    };
    asked.descriptors.or(numbers).into_iter().map(point).collect()
}

fn run_ready_queries(bench: &mut Bench) -> anyhow::Result<()> {
    let seed = bench.seed();
    for (index, point) in bench.points().iter().enumerate() {
        let ReadinessSettings { descriptors: count, mode } = ReadinessSettings::read(point)?;
        let written = mode.is_some();
        let opened = match mode {
            None => open_eventfds(count),
            Some(WriteDescriptorKind::WriteFile) => open_file(count),
            Some(WriteDescriptorKind::WriteTcp) => open_connections(count),
        };
        let Some(files) = ok_or_refuse(bench, index, "open that many descriptors", opened) else { continue };
        match point.probe.as_str() {
            "syscall.select" if written => {
                let mut set = Descriptors::new(&files[..count as usize]);
                let all = |ready: usize| if ready as u64 == count { Ok(()) } else { Err(Errno::PROTO) };
                time_call(bench, index, "select", || set.writable_now().and_then(all));
            }
            "syscall.select" => {
                let mut set = Descriptors::new(&files);
                time_call(bench, index, "select", || set.readable_now().and_then(check_one_ready));
            }
            "syscall.poll" => {
                let mut list: Vec<PollFd> = files.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
                let ready = poll(&mut list, Some(&ZERO)).and_then(check_one_ready);
                let Some(()) = ok_or_refuse(bench, index, "poll", ready) else { continue };
                time_loop(bench, index, "poll", &mut SystemCallLoop::poll(seed, &mut list));
            }
            _ => {
                let Some(set) = ok_or_refuse(bench, index, "epoll_ctl", create_epoll_set(&files)) else {
                    continue;
                };
                let ready = count_ready(&set).and_then(check_one_ready);
                let Some(()) = ok_or_refuse(bench, index, "epoll_wait", ready) else { continue };
                time_loop(bench, index, "epoll_wait", &mut SystemCallLoop::epoll_wait(seed, set.as_fd()));
            }
        }
    }
    Ok(())
}

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Checks that exactly one descriptor is ready; any other answer is an error of the kernel's.
#[inline(always)]
fn check_one_ready(ready: usize) -> Result<()> {
    if ready == 1 { Ok(()) } else { Err(Errno::PROTO) }
}

/// Opens eventfds of which the last one is readable.
fn open_eventfds(count: u64) -> Result<Vec<OwnedFd>> {
    allow_descriptors(count)?;
    (1..=count).map(|n| eventfd(u32::from(n == count), EventfdFlags::CLOEXEC)).collect()
}

/// Opens a file `count` times.
fn open_file(count: u64) -> Result<Vec<OwnedFd>> {
    allow_descriptors(count)?;
    let file = memfd_create("latscope-select", MemfdFlags::CLOEXEC)?;
    (0..count).map(|_| rustix::io::fcntl_dupfd_cloexec(&file, 0)).collect()
}

/// Opens connections over loopback: first the ends that connected, then their peers, which are not queried.
fn open_connections(count: u64) -> Result<Vec<OwnedFd>> {
    allow_descriptors(count.saturating_mul(2))?;
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(errno)?;
    let address = listener.local_addr().map_err(errno)?;
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..count {
        near.push(TcpStream::connect(address).map_err(errno)?.into());
        far.push(OwnedFd::from(listener.accept().map_err(errno)?.0));
    }
    near.extend(far);
    Ok(near)
}

/// Raises this process's own limit on open files, as far as that is allowed.
///
/// # Errors
/// EMFILE: the limit cannot be raised far enough.
pub(super) fn allow_descriptors(count: u64) -> Result<()> {
    const OTHERS: u64 = 64;
    let wanted = count.saturating_add(OTHERS);
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    limit.current = Some(wanted);
    // A higher maximum takes CAP_SYS_RESOURCE.
    limit.maximum = limit.maximum.map(|maximum| maximum.max(wanted));
    // Refused beyond the system's own limit, fs.nr_open.
    setrlimit(Resource::Nofile, limit).map_err(|_| Errno::MFILE)
}

/// An epoll set of these descriptors.
fn create_epoll_set(files: &[OwnedFd]) -> Result<OwnedFd> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, file) in (0u64..).zip(files) {
        epoll::add(&set, file, epoll::EventData::new_u64(number), epoll::EventFlags::IN)?;
    }
    Ok(set)
}

/// Number of ready descriptors, up to 64, now.
#[inline(always)]
fn count_ready(set: &OwnedFd) -> Result<usize> {
    const NONE: epoll::Event =
        epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
    let mut events = [NONE; 64];
    epoll::wait(set, &mut events[..], Some(&ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeywordEnum;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{self, check, measure, points};

    #[test]
    fn each_way_of_asking_finds_the_one_ready_descriptor() {
        let files = open_eventfds(70).unwrap();
        let mut list: Vec<PollFd> = files.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let set = create_epoll_set(&files).unwrap();
        for _ in 0..2 {
            assert_eq!(Descriptors::new(&files).readable_now(), Ok(1));
            assert_eq!(poll(&mut list, Some(&ZERO)), Ok(1));
            assert_eq!(count_ready(&set), Ok(1));
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
        let planned: Vec<MeasurementPoint> = [&SELECT, &POLL, &EPOLL].into_iter().flat_map(points).collect();
        for m in measure(&READY, planned) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{}: {:?}", m.probe, m.joined_reasons());
        }
    }

    #[test]
    fn files_are_asked_about_where_that_is_wanted_only() {
        let mut input = latscope_engine::harness::input();
        assert!(
            SELECT.plan(&input, &harness::machine()).iter().all(|point| !point.params.contains_key("mode"))
        );
        input.values.insert("mode".to_owned(), vec![WriteDescriptorKind::WriteFile.word().into()]);
        assert!(
            POLL.plan(&input, &harness::machine()).iter().all(|point| !point.params.contains_key("mode"))
        );
        for mode in [WriteDescriptorKind::WriteFile, WriteDescriptorKind::WriteTcp] {
            input.values.insert("mode".to_owned(), vec![mode.word().into()]);
            for m in measure(&READY, SELECT.plan(&input, &harness::machine())) {
                check(&m);
                assert_eq!(
                    (m.quality.level, &m.params["mode"]),
                    (QualityLevel::Ok, &mode.word().into()),
                    "{:?}",
                    m.joined_reasons()
                );
            }
        }
    }

    #[test]
    fn more_descriptors_than_allowed_close_the_point_with_a_reason() {
        let point =
            SELECT.make_point(ReadinessSettings { descriptors: 1 << 40, mode: None }, "too many", false);
        let measured = measure(&READY, vec![point]);
        assert_eq!(measured[0].quality.level, QualityLevel::Unsupported);
        assert!(measured[0].joined_remedies().as_ref().unwrap().contains("ulimit"));
    }
}
