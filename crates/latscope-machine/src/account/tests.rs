use super::*;
use crate::root::tree;
use std::time::Duration;

fn reading(at: Instant, idle_ns: u64, own_ns: u64) -> CpuTimeReading {
    let cpus = BTreeMap::from([(0, CpuTime { idle_ns, stolen_ns: 0 }), (1, CpuTime::default())]);
    CpuTimeReading { at, cpus, own_ns, load_ns: None, peer_ns: None, quotas: Vec::new() }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn what_others_use_is_what_is_neither_idle_nor_ours_nor_the_loads_nor_the_peers() {
    let at = Instant::now();
    let from = reading(at, 0, 0);
    let to = reading(at + SECOND, 500_000_000, 500_000_000);
    // Two ticks may be missing of the idle time.
    assert_eq!(account_between(&from, &to, &[0, 1]).others, 0.49);
    let beside = CpuTimeReading { load_ns: Some(400_000_000), peer_ns: Some(500_000_000), ..to.clone() };
    let all = account_between(&from, &beside, &[0, 1]);
    assert_eq!((all.others, all.load, all.peer), (0.04, Some(0.2), Some(0.25)));
    let short = reading(at + SECOND / 100, 10_000_000, 0);
    let short = account_between(&from, &short, &[0, 1]);
    assert_eq!(short.others, 0.0, "half of 10 ms may be one tick");
    assert_eq!((short.unseen, short.known_others()), (1.0, None), "and all of it may be others'");
    let idle = reading(at + SECOND, 2_010_000_000, 0);
    assert_eq!(account_between(&from, &idle, &[0, 1]).others, 0.0);
}

/// Others can have used between what was seen and what the ticks may hide, whatever the length of the stretch.
#[test]
fn the_share_of_others_has_the_resolution_of_the_ticks() {
    let at = Instant::now();
    for (ms, unseen, is_known) in [
        (14, 10.0 / 14.0, false),
        (50, 0.2, true),
        (40, 0.25, false),
        (400, 0.025, true),
        (10_000, 0.001, true),
    ] {
        let idle = 2 * ms * 1_000_000;
        let (from, to) = (reading(at, 0, 0), reading(at + Duration::from_millis(ms), idle, 0));
        let found = account_between(&from, &to, &[0, 1]);
        assert!((found.unseen - unseen).abs() < 1e-4, "{ms} ms: {found:?}");
        assert_eq!((found.others, found.known_others().is_some()), (0.0, is_known), "{ms} ms");
    }
    // A busy machine is known to be busy also after a short stretch.
    let busy = account_between(&reading(at, 0, 0), &reading(at + Duration::from_millis(50), 0, 0), &[0, 1]);
    assert_eq!((busy.others, busy.unseen, busy.known_others()), (0.8, 0.2, Some(0.8)));
}

#[test]
fn what_the_hypervisor_took_is_no_others() {
    let at = Instant::now();
    let (from, mut to) = (reading(at, 0, 0), reading(at + SECOND, 0, 0));
    to.cpus.insert(0, CpuTime { idle_ns: 0, stolen_ns: 900_000_000 });
    let account = account_between(&from, &to, &[0]);
    assert_eq!((account.stolen, account.others), (Some(0.9), 0.09));
}

#[test]
fn cpus_beside_the_measuring_ones_count_by_what_they_are_used() {
    let at = Instant::now();
    let (from, to) = (reading(at, 0, 0), reading(at + SECOND, 240_000_000, 0));
    assert_eq!(used_of(&from, &to, &[0]), Some(0.75));
    assert_eq!(used_of(&from, &to, &[]), None);
    assert_eq!(used_of(&from, &to, &[7]), None);
}

/// Control groups as files: `cpu.stat` of the group that has the limit, by version.
fn group(version: u32, counts: [u64; 3]) -> (tempfile::TempDir, SystemRoot) {
    let [periods, throttled, time] = counts;
    let head = format!("nr_periods {periods}\nnr_throttled {throttled}\n");
    let stat = ("/proc/stat", "cpu  0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n");
    match version {
        1 => tree(&[
            stat,
            ("/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n0::/\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "50000"),
            ("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000"),
            ("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.stat", &format!("{head}throttled_time {time}000\n")),
        ]),
        _ => tree(&[
            stat,
            ("/proc/self/cgroup", "0::/outer/inner\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpu"),
            ("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000"),
            (
                "/sys/fs/cgroup/outer/inner/cpu.stat",
                "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
            ),
            ("/sys/fs/cgroup/outer/cpu.max", "50000 100000"),
            ("/sys/fs/cgroup/outer/cpu.stat", &format!("usage_usec 9\n{head}throttled_usec {time}\n")),
        ]),
    }
}

#[test]
fn a_quota_of_a_group_or_of_one_above_it_counts_from_the_begin() {
    for version in [1, 2] {
        let (_directory, before) = group(version, [1000, 900, 77]);
        let mut accountant = Accountant::at(before, &[0]);
        let (_directory, after) = group(version, [1230, 1125, 11_000_077]);
        accountant.root = after;
        let quota = accountant.since_last(&[]).unwrap().quota.unwrap();
        assert_eq!((quota.periods, quota.throttled, quota.throttled_ns), (230, 225, 11_000_000_000));
        assert_eq!(
            quota.format_throttling(),
            "limited to 0.50 CPU by its control group; throttled in 225 of 230 periods",
            "version {version}"
        );
        let total = accountant.total().unwrap();
        assert_eq!(total.throttled(), Some(&quota));
        let none = accountant.since_last(&[]).unwrap();
        assert!(none.throttled().is_none() && none.quota.is_some());
    }
}

#[test]
fn this_process_is_not_among_the_others_of_this_machine() {
    let mut accountant = Accountant::watch_cpus(&latscope_os::sched::allowed_cpus().unwrap());
    let account = accountant.total().expect("/proc/stat can be read");
    assert!(account.top.iter().all(|consumer| consumer.pid != std::process::id()));
    assert!((0.0..=1.0).contains(&account.others));
    assert!(accountant.since_last(&[]).is_some());
}

#[test]
fn what_was_seen_of_others_counts_where_the_run_has_all_cpus() {
    let (_directory, root) = group(1, [0, 0, 0]);
    let mut accountant = Accountant::at(root, &[0]);
    let used = |ticks: u64| {
        let line = format!("7 (other) R 1 7 7 0 -1 4 1 2 3 4 {ticks} 0 0 0 20 0 1 0 62 0 0");
        tree(&[("/proc/7/stat", &line), ("/proc/stat", "cpu  0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n")])
    };
    let trees = [0, 100].map(used);
    for (_, root) in &trees {
        accountant.root.clone_from(root);
        accountant.record_processes();
    }
    let now = accountant.read_times().unwrap();
    assert_eq!(accountant.recorded_share(&now, 1_000_000_000), 1.0);
    accountant.cpus.clear();
    assert_eq!(accountant.recorded_share(&now, 1_000_000_000), 0.0);
}
