//! Rows about the kernel: preemption, lockdown, throttling, interrupts.

use super::*;

const CONFIGURATION: &str = "/boot/config-6.18.1";
const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
/// A log as the kernel gives it.
const NONE: &str = "5,0,0,-;Linux version 6.18.1\n6,1,242328,-;Dynamic Preempt: none\n";
const LOCKED: &str =
    "5,0,0,-;Linux version 6.18.1\n5,1,105,-;Kernel is locked down from Kernel configuration; see man\n";

/// The row of a dynamically preemptible kernel 6.18.
fn of(id: &str, files: Files) -> DoctorCheck {
    row(files, &kernel("6.18.1"), &mut Always(None), id)
}

fn kernel(release: &str) -> Machine {
    let version = "#1 SMP PREEMPT_DYNAMIC".to_owned();
    Machine { kernel: release.to_owned(), kernel_version: version, ..machine() }
}

#[test]
fn the_preemption_model_has_five_sources_in_order() {
    let configuration = (CONFIGURATION, "CONFIG_PREEMPT_VOLUNTARY=y");
    let booted = ("/proc/cmdline", "quiet preempt=full");
    let cases: [(Files, CheckState, &str); 6] = [
        (&[("/dev/kmsg", NONE)], Bad, "none, says the kernel's log"),
        (&[("/dev/kmsg", NONE), configuration], Note, "voluntary, says /boot/config-6.18.1"),
        (&[("/dev/kmsg", NONE), configuration, booted], Good, "full, says the kernel's command line"),
        (&[(PREEMPT, "none (lazy)"), configuration, booted], Note, "lazy, says /sys/kernel/debug"),
        (&[("/proc/cmdline", "preempt=no")], Unknown, "do not say"),
        (&[], Unknown, "do not say"),
    ];
    for (files, state, found) in cases {
        let check = of("preemption", files);
        assert!(check.state == state && check.found.contains(found), "{check:?}");
    }
    let refused = "4,1,242328,-;Dynamic Preempt: unsupported mode: lazy\n6,2,3,-;Dynamic Preempt: none\n";
    let files =
        [("/dev/kmsg", refused), ("/proc/cmdline", "preempt=lazy"), (CONFIGURATION, "CONFIG_PREEMPT_NONE=y")];
    assert!(of("preemption", &files).found.starts_with("none, says /boot"));
}

#[test]
fn no_remedy_is_one_that_a_lockdown_forbids() {
    let locked = ("/dev/kmsg", LOCKED);
    let fair = ("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000");
    let files = [locked, (CONFIGURATION, "CONFIG_PREEMPT_NONE=y"), (PREEMPT, "(none) full"), fair];
    let (_directory, root) = tree(&files);
    for check in checks(&root, &kernel("6.18.1"), &mut Always(None), &catalogue()) {
        let remedy = check.remedy.unwrap_or_default();
        assert!(!remedy.contains("/sys/kernel/debug") || remedy.contains("forbid"), "{}: {remedy}", check.id);
    }
    assert!(
        of("preemption", &files).remedy.unwrap().starts_with("preempt=full on the kernel's command line")
    );
    assert!(of("preemption", &files[1..]).remedy.unwrap().ends_with(PREEMPT), "not locked down");
}

#[test]
fn a_lockdown_is_named_with_what_states_it() {
    let cases: [(Files, CheckState, &str); 7] = [
        (&[(LOCKDOWN, "none [integrity] confidentiality")], Note, "integrity, says /sys/kernel/security"),
        (&[(LOCKDOWN, "[none] integrity"), ("/dev/kmsg", LOCKED)], Good, "off"),
        (&[("/dev/kmsg", LOCKED)], Note, "on, says the kernel's log"),
        (&[("/proc/cmdline", "lockdown=confidentiality")], Note, "traces, performance counters"),
        (
            &[(CONFIGURATION, "CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y")],
            Note,
            "integrity, says the kernel's conf",
        ),
        (&[("/dev/kmsg", NONE)], Good, "off"),
        (&[("/dev/kmsg", "6,1,5,-;later\n")], Unknown, "cannot be read"),
    ];
    for (files, state, found) in cases {
        let check = of("lockdown", files);
        assert!(check.state == state && check.found.contains(found), "{check:?}");
    }
    let instances = ("/sys/kernel/tracing/instances/x", "");
    expect("tracing", &[instances], Good, "can be made");
    expect("tracing", &[instances, (LOCKDOWN, "none integrity [confidentiality]")], Note, "locked down");
}

#[test]
fn throttling_that_happened_is_bad() {
    let runtime = ("/proc/sys/kernel/sched_rt_runtime_us", "950000");
    let log = "4,9,1777000000,-;sched: RT throttling activated\n";
    let check = of("real-time-throttling", &[runtime, ("/dev/kmsg", log)]);
    assert!(check.state == Bad && check.found.contains("1777 s after boot"), "{check:?}");
    // What any program of root wrote is not the kernel's.
    let forged = "12,9,1777000000,-;sched: RT throttling activated\n";
    assert_eq!(of("real-time-throttling", &[runtime, ("/dev/kmsg", forged)]).state, Note);
    let ungrouped = (CONFIGURATION, "CONFIG_HZ=250");
    assert!(of("real-time-throttling", &[runtime, ungrouped]).found.contains("fair-server"));
    assert_eq!(row(&[runtime], &kernel("6.1.0"), &mut Always(None), "real-time-throttling").state, Note);
}

#[test]
fn budgets_of_groups_depend_on_configuration_and_command_line() {
    const ON: &str = "CONFIG_RT_GROUP_SCHED=y";
    let id = "real-time-groups";
    assert_eq!(of(id, &[]).state, Unknown);
    assert_eq!(of(id, &[(CONFIGURATION, "CONFIG_HZ=250")]).state, Good);
    let group = [("/proc/self/cgroup", "1:cpu:/a"), ("/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "950000")];
    let on = of(id, &[(CONFIGURATION, ON), group[0], group[1]]);
    let found = "real-time threads of this control group may take 950 ms in each 1.00 s; one that spins is stopped for \
        the rest (/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us)";
    assert_eq!((on.state, on.found.as_str()), (Note, found));
    let period = ("/sys/fs/cgroup/cpu/a/cpu.rt_period_us", "2000000");
    assert!(
        of(id, &[(CONFIGURATION, ON), group[0], group[1], period]).found.contains("950 ms in each 2.00 s")
    );
    assert!(of(id, &[(CONFIGURATION, ON)]).found.contains("not known"));
    assert_eq!(of(id, &[(CONFIGURATION, ON), ("/proc/cmdline", "rt_group_sched=0")]).state, Good);
    let disabled = "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y";
    assert_eq!(of(id, &[(CONFIGURATION, disabled)]).state, Good);
    assert_eq!(of(id, &[(CONFIGURATION, disabled), ("/proc/cmdline", "rt_group_sched=1")]).state, Note);
}

#[test]
fn a_group_without_a_budget_is_refused_and_not_stopped() {
    let id = "real-time-groups";
    let of_group = |budget, global| {
        of(
            id,
            &[
                (CONFIGURATION, "CONFIG_RT_GROUP_SCHED=y"),
                ("/proc/self/cgroup", "1:cpu:/a"),
                ("/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", budget),
                ("/proc/sys/kernel/sched_rt_runtime_us", global),
            ],
        )
    };
    let refused = of_group("0", "950000");
    let found = "SCHED_FIFO is refused: /sys/fs/cgroup/cpu/a/cpu.rt_runtime_us is 0";
    assert_eq!((refused.state, refused.found.as_str()), (Bad, found));
    let remedy = refused.remedy.unwrap();
    assert!(remedy.contains("950000") && remedy.contains("/cpu/a/cpu.rt_runtime_us"), "{remedy}");
    // A budget of the whole period stops none, and without the kernel's limit no budget counts.
    for (budget, global) in [("-1", "950000"), ("1000000", "1000000"), ("0", "-1"), ("950000", "-1")] {
        let check = of_group(budget, global);
        assert_eq!(check.state, Good, "{check:?}");
    }
}

#[test]
fn the_fair_server_is_named_with_its_share() {
    let id = "fair-server";
    let files = |runtime| {
        [
            ("/sys/kernel/debug/sched/fair_server/cpu1/runtime", runtime),
            ("/sys/kernel/debug/sched/fair_server/cpu1/period", "1000000000"),
        ]
    };
    let on = of(id, &files("50000000"));
    assert!(on.state == Note && on.found.contains("50.0 ms in each 1.00 s"), "{on:?}");
    assert!(on.remedy.unwrap().ends_with("fair_server/cpu*/runtime"));
    assert_eq!(of(id, &files("0")).state, Good);
    let old = row(&[], &kernel("6.1.0-50-rt"), &mut Always(None), id);
    assert!(old.state == Good && old.found.contains("since 6.12"), "{old:?}");
    let hidden = of(id, &[]);
    assert!(hidden.state == Unknown && hidden.remedy.unwrap().contains("mount"));
    let locked = of(id, &[("/dev/kmsg", LOCKED)]);
    assert!(locked.state == Note && locked.remedy.is_none(), "{locked:?}");
}

#[test]
fn another_scheduler_is_named_in_the_machine() {
    let described = |files: Files| {
        let (_directory, root) = tree(files);
        let mut machine = crate::snapshot(&root);
        machine.checks = checks(&root, &machine, &mut Always(None), &catalogue());
        let check = machine.checks.into_iter().find(|check| check.id == "scheduler").unwrap();
        (machine.scheduler, check.state)
    };
    let state = "/sys/kernel/sched_ext/state";
    let loaded = [(state, "enabled"), ("/sys/kernel/sched_ext/root/ops", "bpfland_1.0")];
    assert_eq!(described(&loaded), (Some("bpfland_1.0".to_owned()), Note));
    assert_eq!(described(&[(state, "disabled")]), (Some("kernel".to_owned()), Good));
    assert_eq!(described(&[("/sys/kernel/mm/x", "")]), (Some("kernel".to_owned()), Good));
    assert_eq!(described(&[]), (None, Unknown));
}

#[test]
fn ticks_are_judged_by_their_rate_and_by_the_timers() {
    let of_configuration = |text| of("timer-tick", &[(CONFIGURATION, text)]);
    let slow = of_configuration("CONFIG_HZ=250\nCONFIG_HIGH_RES_TIMERS=y");
    assert!(slow.state == Note && slow.found.contains("4.00 ms"), "{slow:?}");
    assert_eq!(of_configuration("CONFIG_HZ=1000\nCONFIG_HIGH_RES_TIMERS=y").state, Good);
    assert_eq!(of_configuration("CONFIG_HZ=1000").state, Bad);
    assert_eq!(of_configuration("CONFIG_HZ=0").state, Unknown);
    let fine = (CONFIGURATION, "CONFIG_HZ=1000\nCONFIG_HIGH_RES_TIMERS=y");
    assert_eq!(of("timer-tick", &[fine, ("/proc/cmdline", "highres=off")]).state, Bad);
}

#[test]
fn watchdogs_are_named_with_their_times() {
    let files = |nmi, soft| {
        let [all, nmi_watchdog, soft_watchdog, thresh] =
            ["watchdog", "nmi_watchdog", "soft_watchdog", "watchdog_thresh"];
        [(all, "1"), (nmi_watchdog, nmi), (soft_watchdog, soft), (thresh, "10")]
            .map(|(name, text)| (format!("/proc/sys/kernel/{name}"), text))
    };
    let found = |nmi, soft| {
        let files = files(nmi, soft);
        of("watchdogs", &files.each_ref().map(|(path, text)| (path.as_str(), *text)))
    };
    let both = found("1", "1");
    assert!(both.found.contains("each 4.00 s") && both.found.contains("NMI about each 10.0 s"), "{both:?}");
    assert_eq!(both.state, Note);
    assert!(!found("0", "1").found.contains("NMI"));
    assert_eq!(found("0", "0").state, Good);
    assert_eq!(
        of("watchdogs", &[("/proc/sys/kernel/watchdog", "0"), ("/proc/sys/kernel/nmi_watchdog", "1")]).state,
        Good
    );
}

const INTERRUPTS: [(&str, &str); 4] = [
    (
        "/proc/interrupts",
        "      CPU0 CPU1\n 24: 7 0 IO-APIC 5-edge ACPI:Ged\n 36: 0 138305 PCI-MSIX 1-edge virtio1-req.0\nNMI: 0 0 Non-maskable",
    ),
    ("/proc/irq/24/effective_affinity_list", "0"),
    ("/proc/irq/36/smp_affinity_list", "0-1"),
    ("/proc/irq/36/effective_affinity_list", "1"),
];

#[test]
fn interrupts_of_devices_are_those_of_the_measured_cpus() {
    let id = "device-interrupts";
    let both = of(id, &INTERRUPTS);
    assert_eq!(
        both.found,
        "CPUs 0-1 serve 2 interrupts; the most frequent: virtio1-req.0 (36, 138305 since boot)"
    );
    assert_eq!((both.state, both.remedy), (Note, None));
    let (_directory, root) = tree(&INTERRUPTS);
    let on = |cpu: u32| {
        let mut machine = kernel("6.18.1");
        machine.checks = checks(&root, &machine, &mut Always(None), &catalogue());
        super::super::measured_on(&root, &mut machine, &CpuList(vec![cpu]), &catalogue());
        machine.checks.into_iter().find(|check| check.id == id).unwrap()
    };
    assert_eq!(on(0).remedy.as_deref(), Some("echo 1 | sudo tee /proc/irq/24/smp_affinity_list"));
    assert!(on(1).found.starts_with("CPUs 1 serve 1 interrupt; the most frequent: virtio1-req.0"));
    assert_eq!(on(7).state, Good);
}

#[test]
fn access_monitoring_and_isolation_are_notes() {
    const STATE: &str = "/sys/kernel/mm/damon/admin/kdamonds/0/state";
    expect("damon", &[(STATE, "off")], Good, "off");
    // There is a thread, and its state cannot be read by this user.
    let other = "/sys/kernel/mm/damon/admin/kdamonds/0/pid";
    expect("damon", &[(other, "77")], Unknown, "kdamonds/0/state cannot be read");
    let interval = "/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/monitoring_attrs/intervals/sample_us";
    let on = expect("damon", &[(STATE, "on"), (interval, "5000")], Note, "each 5.00 ms");
    assert!(on.remedy.unwrap().ends_with(STATE));
    let module = "/sys/module/damon_stat/parameters/enabled";
    assert!(expect("damon", &[(module, "Y")], Note, "DAMON").remedy.unwrap().ends_with(module));
    expect("isolation", &[("/proc/cmdline", "quiet")], Note, "no CPU is set apart");
}
