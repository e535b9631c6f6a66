//! Rows that the kept machines do not show: one knob at a time.

mod kernel;

use super::super::root::tree;
use super::super::trials::Trials;
use super::checks;
use latscope_core::catalogue::{Condition, FamilyFacts, ProbeCatalogue};
use latscope_core::machine::CheckState::{self, Bad, Good, Note, Unknown};
use latscope_core::machine::{DoctorCheck, Machine};
use latscope_core::units::CpuList;
use std::io;
use std::path::Path;

/// Grants everything, or fails everything in one way.
struct Always(Option<io::ErrorKind>);

impl Always {
    fn answer(&self) -> io::Result<()> {
        self.0.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Trials for Always {
    fn real_time(&mut self, _priority: u32) -> io::Result<()> {
        self.answer()
    }

    fn lock_memory(&mut self, _bytes: usize) -> io::Result<()> {
        self.answer()
    }

    fn open_for_writing(&mut self, _path: &Path) -> io::Result<()> {
        self.answer()
    }

    fn may_make_directory(&mut self, _parent: &Path) -> io::Result<()> {
        self.answer()
    }

    fn count_cycles(&mut self) -> io::Result<()> {
        self.answer()
    }
}

/// Facts on a family that is sensitive to the speed of the machine.
fn catalogue() -> ProbeCatalogue {
    static WAKE: FamilyFacts =
        FamilyFacts { name: "wake", sensitive_to: &[Condition::Speed], ..FamilyFacts::DEFAULT };
    ProbeCatalogue { families: vec![&WAKE], probes: Vec::new() }
}

type Files<'a> = &'a [(&'a str, &'a str)];

fn machine() -> Machine {
    let cpus = CpuList(vec![0, 1]);
    Machine { cpu_model: "X".to_owned(), online: cpus.clone(), allowed: cpus, ..Machine::default() }
}

fn row(files: Files, machine: &Machine, trials: &mut Always, id: &str) -> DoctorCheck {
    let (_directory, root) = tree(files);
    checks(&root, machine, trials, &catalogue()).into_iter().find(|check| check.id == id).unwrap()
}

/// Asserts the state of a row and a part of its text, on a machine of these files.
fn expect(id: &str, files: Files, state: CheckState, found: &str) -> DoctorCheck {
    let check = row(files, &machine(), &mut Always(None), id);
    assert_eq!(check.state, state, "{check:?}");
    assert!(check.found.contains(found), "{check:?}");
    check
}

#[test]
fn emulation_spoils_everything() {
    let machine = Machine { hypervisor: Some("TCG (emulated)".to_owned()), ..machine() };
    let check = row(&[], &machine, &mut Always(None), "virtualised");
    assert_eq!((check.state, check.affects), (Bad, vec!["wake.*".to_owned()]));
}

#[test]
fn counters_that_the_processor_lacks_are_not_good_also_for_root() {
    let files: Files = &[("/proc/sys/kernel/perf_event_paranoid", "2")];
    let check = |root: bool, refusal: Option<io::ErrorKind>| {
        let hypervisor = Some("KVM".to_owned());
        let machine = Machine { root, hypervisor, ..machine() };
        row(files, &machine, &mut Always(refusal), "performance-counters")
    };
    for missing in [io::ErrorKind::NotFound, io::ErrorKind::Unsupported] {
        for root in [true, false] {
            let check = check(root, Some(missing));
            assert_eq!(check.state, Note, "{check:?}");
            assert!(check.found.contains("cycles cannot be counted"), "{check:?}");
            assert!(check.remedy.unwrap().contains("PMU"));
        }
    }
    assert_eq!((check(true, None).state, check(false, None).state), (Good, Note));
    let refused = check(true, Some(io::ErrorKind::PermissionDenied));
    assert!(refused.state == Note && refused.found.contains("refused to this process"), "{refused:?}");
}

#[test]
fn timers_may_move_to_cpus_that_are_set_apart() {
    let knob = "/proc/sys/kernel/timer_migration";
    let isolated = ("/sys/devices/system/cpu/isolated", "2-3");
    expect("timer-migration", &[(knob, "0"), isolated], Good, "on the CPU that armed it");
    expect("timer-migration", &[(knob, "1")], Good, "timers of idle CPUs");
    let check = expect("timer-migration", &[(knob, "1"), isolated], Note, "CPUs 2-3, which are set apart");
    assert!(check.remedy.unwrap().contains("timer_migration"));
}

#[test]
fn stolen_time_counts_by_its_share() {
    expect("steal", &[("/proc/stat", "cpu 90 0 0 0 0 0 0 10 0 0")], Bad, "10 %");
    expect("steal", &[("/proc/stat", "cpu 995 0 0 0 0 0 0 5 100 0")], Note, "0.5 %");
    expect("steal", &[("/proc/stat", "cpu 995 0 0 0 0 0 0 0")], Good, "0 %");
    expect("steal", &[("/proc/stat", "cpu 995 0 0")], Unknown, "not count");
    expect("steal", &[("/proc/stat", "cpu 0 0 0 0 0 0 0 0")], Unknown, "not count");
}

#[test]
fn a_mitigation_without_its_microcode_is_applied_and_paid() {
    let file = |name: &str| format!("/sys/devices/system/cpu/vulnerabilities/{name}");
    let (srso, mds, ssb) = (file("spec_rstack_overflow"), file("mds"), file("spec_store_bypass"));
    let safe = [(&*srso, "Vulnerable: Safe RET, no microcode")];
    expect("mitigations", &safe, Note, "1 active: spec_rstack_overflow (Safe RET)");
    expect("mitigations", &safe, Note, "left open: spec_rstack_overflow in part (Safe RET, no microcode)");
    let attempted = [(&*mds, "Vulnerable: Clear CPU buffers attempted, no microcode; SMT vulnerable")];
    expect("mitigations", &attempted, Note, "1 active: mds (Clear CPU buffers attempted)");
    let open = [(&*srso, "Vulnerable: No microcode"), (&*ssb, "Vulnerable")];
    let check = row(&open, &machine(), &mut Always(None), "mitigations");
    let left = "left open: spec_rstack_overflow (No microcode), spec_store_bypass";
    assert!(check.found.contains(left) && !check.found.contains("thunk"), "{check:?}");
    let returns = "(Safe RET); each return in the kernel goes through a thunk; left open";
    expect("mitigations", &safe, Note, returns);
    let retbleed = file("retbleed");
    let thunk = [(&*retbleed, "Mitigation: untrained return thunk; SMT disabled")];
    expect(
        "mitigations",
        &thunk,
        Note,
        "(untrained return thunk); each return in the kernel goes through a thunk",
    );
}

#[test]
fn load_is_per_cpu() {
    expect("load", &[("/proc/loadavg", "0.10 0 0 1/9 9")], Good, "0.10 on 2 CPUs");
    expect("load", &[("/proc/loadavg", "0.60 0 0 1/9 9")], Note, "0.60");
    expect("load", &[("/proc/loadavg", "1.00 0 0 1/9 9")], Bad, "1.00");
    expect("load", &[("/proc/loadavg", "busy")], Unknown, "/proc/loadavg");
}

#[test]
fn few_cpus_are_told_apart() {
    let cpus = |numbers: &[u32]| CpuList(numbers.to_vec());
    let restricted = |online: &[u32], allowed: &[u32]| {
        let machine = Machine { online: cpus(online), allowed: cpus(allowed), ..machine() };
        row(&[], &machine, &mut Always(None), "cpus")
    };
    let one = restricted(&[0], &[0]);
    assert_eq!((one.state, one.remedy), (Note, None));
    let pinned = restricted(&[0, 1, 2], &[1]);
    assert_eq!((pinned.state, pinned.remedy.as_deref()), (Bad, Some("taskset -pc 0-2 $$")));
    let some = restricted(&[0, 1, 2], &[0, 1]);
    assert_eq!(
        (some.state, some.found.as_str()),
        (Note, "may run on CPUs 0-1 of 0-2 only, by the affinity mask")
    );
    assert_eq!(restricted(&[], &[]).state, Unknown);
}

#[test]
fn the_preemption_model_is_what_the_version_names() {
    let preemption = |version: &str, files: Files| {
        let machine = Machine { kernel_version: version.to_owned(), ..machine() };
        row(files, &machine, &mut Always(None), "preemption").state
    };
    assert_eq!(preemption("#1 SMP PREEMPT_RT", &[]), Good);
    assert_eq!(preemption("#1 SMP", &[("/sys/kernel/realtime", "1")]), Good);
    assert_eq!(preemption("#1 SMP PREEMPT_DYNAMIC", &[("/proc/cmdline", "a -- preempt=full")]), Unknown);
    assert_eq!(preemption("#1 SMP PREEMPT", &[]), Good);
    assert_eq!(preemption("#1 SMP PREEMPT", &[("/proc/cmdline", "preempt=none")]), Good);
    assert_eq!(preemption("#1 SMP", &[]), Note);
    assert_eq!(preemption("", &[]), Unknown);
}

#[test]
fn huge_pages_need_a_way_to_get_them() {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
    const BY_SIZE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    const NONE: (&str, &str) =
        ("/proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB");
    let id = "transparent-huge-pages";
    let madvise = (ENABLED, "always [madvise] never");
    let never = expect(id, &[(ENABLED, "always madvise [never]")], Bad, "never");
    assert!(never.remedy.unwrap().ends_with(ENABLED));
    let by_size = expect(id, &[madvise, (BY_SIZE, "always inherit madvise [never]")], Bad, "never");
    assert!(by_size.remedy.unwrap().ends_with(BY_SIZE));
    expect(id, &[madvise, (BY_SIZE, "always [inherit] madvise never")], Good, "madvise");
    expect(id, &[madvise, (DEFRAG, "always defer [never]")], Note, "unbroken");
    expect(id, &[madvise, (DEFRAG, "[always] defer never")], Note, "compacted");
    expect("huge-pages", &[NONE], Note, "no transparent ones");
    expect("huge-pages", &[NONE, madvise], Good, "transparent ones serve");
}

#[test]
fn processor_knobs_name_their_files() {
    const GOVERNOR: &str = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    const CHOICES: &str = "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors";
    const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
    expect("governor", &[(GOVERNOR, "performance")], Good, "performance on CPUs 0");
    let only = expect("governor", &[(GOVERNOR, "userspace"), (CHOICES, "userspace")], Bad, "userspace");
    assert_eq!(only.remedy, None, "performance cannot be chosen");
    let on = expect("boost", &[(BOOST, "1")], Note, "on");
    assert_eq!(on.remedy.as_deref(), Some("echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"));
    expect("boost", &[(BOOST, "0")], Good, "off");
    expect("boost", &[("/sys/devices/system/cpu/online", "0-1")], Good, "no control");
    expect("boost", &[], Unknown, "cannot be read");
}

#[test]
fn clock_sources_differ_in_price() {
    let source = |current: &str, available: &str| {
        let directory = "/sys/devices/system/clocksource/clocksource0";
        let (current_file, available_file) =
            (format!("{directory}/current_clocksource"), format!("{directory}/available_clocksource"));
        let check = row(
            &[(&current_file, current), (&available_file, available)],
            &machine(),
            &mut Always(None),
            "clock-source",
        );
        (check.state, check.remedy.is_some())
    };
    assert_eq!(source("tsc", "tsc hpet"), (Good, false));
    assert_eq!(source("kvm-clock", "kvm-clock tsc"), (Note, true));
    assert_eq!(source("acpi_pm", "acpi_pm"), (Bad, false));
    assert_eq!(source("new-counter", "new-counter"), (Unknown, false));
}

#[test]
fn deep_sleep_is_bad_where_it_cannot_be_held_off() {
    let files: Files = &[
        ("/sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C6"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "133"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state3/name", "C8"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state3/latency", "200"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "1"),
    ];
    let held = expect("idle-states", files, Note, "C6, 133 µs");
    assert!(held.remedy.unwrap().ends_with("state[2]/disable"));
    let refused = row(files, &machine(), &mut Always(Some(io::ErrorKind::PermissionDenied)), "idle-states");
    assert_eq!(refused.state, Bad);
}

#[test]
fn real_time_budgets_of_nothing_are_bad() {
    let id = "real-time-throttling";
    let file = "/proc/sys/kernel/sched_rt_runtime_us";
    expect(id, &[(file, "0")], Bad, "no time at all");
    expect(id, &[(file, "-1")], Good, "off");
    expect(id, &[(file, "1000000")], Good, "off");
    expect(id, &[(file, "950000")], Note, "950 ms in each 1.00 s");
    expect(id, &[("/proc/sys/kernel/ostype", "Linux")], Good, "not in this kernel");
}

#[test]
fn what_cannot_be_tried_is_unknown() {
    let mut unsupported = Always(Some(io::ErrorKind::Unsupported));
    assert_eq!(row(&[], &machine(), &mut unsupported, "locked-memory").state, Unknown);
    let mut refused = Always(Some(io::ErrorKind::PermissionDenied));
    assert_eq!(row(&[], &machine(), &mut refused, "locked-memory").state, Note);
    assert_eq!(row(&[], &machine(), &mut refused, "real-time").state, Bad);
}

#[test]
fn binder_is_there_or_could_be_or_not() {
    const NONE: (&str, &str) = ("/proc/filesystems", "ext4");
    const LOADED: (&str, &str) = ("/proc/modules", "binder_linux 217088 0 - Live 0x0");
    expect("binder", &[], Unknown, "/proc cannot be read");
    expect("binder", &[NONE], Note, "not in this kernel");
    let dep = ("/lib/modules/6.1/modules.dep", "kernel/drivers/android/binder_linux.ko:");
    let loadable = expect("binder", &[NONE, ("/proc/sys/kernel/osrelease", "6.1"), dep], Note, "not loaded");
    let expected = "sudo modprobe binder_linux devices=binder,hwbinder,vndbinder";
    assert_eq!(loadable.remedy.as_deref(), Some(expected));
    let bare = expect("binder", &[LOADED], Note, "loaded, no binderfs, no devices");
    assert!(bare.remedy.unwrap().starts_with("sudo rmmod binder_linux; sudo modprobe"));
    let found = "the module is loaded, no binderfs, /dev/binder";
    expect("binder", &[LOADED, ("/dev/binder", "")], Good, found);
    expect("binder", &[("/proc/filesystems", "nodev\tbinder")], Good, "part of the kernel, binderfs");
}

#[test]
fn a_context_manager_is_named() {
    const STATE: &str = "/sys/kernel/debug/binder/state";
    let id = "binder-manager";
    let held = "proc 7\ncontext binder\n node 1: u0000000000000000 c0000000000000000 hs 1\n";
    expect(id, &[("/dev/null", "")], Good, "no binder device");
    expect(id, &[("/dev/binder", "")], Unknown, STATE);
    expect(id, &[("/dev/binder", ""), (STATE, "binder state:")], Good, "free");
    let alone = [("/dev/binder", ""), (STATE, held), ("/proc/7/comm", "servicemanager")];
    expect(id, &alone, Note, "/dev/binder: servicemanager (process 7); only what is registered");
    let two = [alone[0], alone[1], ("/dev/hwbinder", "")];
    expect(id, &two, Good, "/dev/binder: process 7; latscope takes a device of its own");
}

#[test]
fn how_kernel_and_system_are_built_is_read() {
    let config = |text| [("/boot/config-6.1", text)];
    let of = |text| {
        let machine = Machine { kernel: "6.1".to_owned(), ..machine() };
        row(&config(text), &machine, &mut Always(None), "kernel-debugging")
    };
    assert_eq!(of("CONFIG_DEBUG_PREEMPT=y\nCONFIG_KASAN=y").state, Bad);
    assert!(of("CONFIG_DEBUG_PREEMPT=y\nCONFIG_KASAN=y").found.starts_with("DEBUG_PREEMPT, KASAN slow"));
    assert_eq!(of("# CONFIG_KASAN is not set").state, Good);
    expect("kernel-debugging", &[], Unknown, "/proc/config.gz");
    expect("android-build", &[("/proc/self/status", "")], Good, "not an Android");
    expect("android-build", &[("/system/build.prop", "ro.build.type=userdebug")], Good, "userdebug");
    expect("android-build", &[("/system/build.prop", "ro.build.type=eng")], Note, "eng: ");
    expect("android-build", &[("/system/build.prop", "ro.x=eng")], Unknown, "does not state");
}

#[test]
fn kinds_of_cpus_and_those_switched_off_are_listed() {
    const CPU: &str = "/sys/devices/system/cpu";
    let [first, second] = ["cpu0", "cpu1"].map(|cpu| format!("{CPU}/{cpu}/cpu_capacity"));
    expect("cpu-kinds", &[(&first, "1024"), (&second, "1024")], Good, "alike");
    let by_energy = ("/proc/sys/kernel/sched_energy_aware", "1");
    let mixed = expect("cpu-kinds", &[(&first, "250"), (&second, "1024"), by_energy], Note, "by energy");
    assert!(
        mixed.found.starts_with("CPUs 0 are cores of capacity 250, CPUs 1 are cores of capacity 1024"),
        "{mixed:?}"
    );
    let hybrid = [("/sys/devices/cpu_core/cpus", "0-1"), ("/sys/devices/cpu_atom/cpus", "2-5")];
    expect("cpu-kinds", &hybrid, Note, "CPUs 2-5 are efficient cores");
    let present = format!("{CPU}/present");
    expect("offline-cpus", &[(&present, "0-1")], Good, "all CPUs are online");
    let off = expect("offline-cpus", &[(&present, "0-3")], Note, "CPUs 2-3 are switched off");
    assert!(off.remedy.unwrap().ends_with("cpu2/online"));
}
