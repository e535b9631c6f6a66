//! A container of Docker: the user nobody without capabilities, Docker's seccomp filter, a read-only root, 64 MiB of
//! /dev/shm, half a CPU, no trace of the kernel. What a row lacks is named.

use crate::support::{
    BINARY, Place, end, eventually, has_program, has_reason, measurements, needs, of_probe, parsed, program,
    reason, remedy, root,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Profile of Debian's package golang-github-containers-common.
const PROFILE: &str = "/usr/share/containers/seccomp.json";

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/container");

/// Control group with half a CPU, removed when dropped.
struct HalfOfCpu(PathBuf);

impl HalfOfCpu {
    fn if_possible(test: &str) -> Option<HalfOfCpu> {
        let mount = Path::new("/sys/fs/cgroup/cpu");
        if !needs(test, mount.join("tasks").exists(), "no CPU controller of the first version is mounted") {
            return None;
        }
        let group = HalfOfCpu(mount.join(format!("latscope-test-{}-{test}", std::process::id())));
        fs::create_dir(&group.0).expect("root may make a control group");
        let quota = fs::write(group.0.join("cpu.cfs_quota_us"), "50000");
        needs(test, quota.is_ok(), "this kernel has no quotas of CPU time").then_some(group)
    }
}

impl Drop for HalfOfCpu {
    fn drop(&mut self) {
        eventually("the group is empty", || {
            fs::remove_dir(&self.0).ok().or((!self.0.exists()).then_some(()))
        });
    }
}

/// Returns true if a container can be made here.
fn container_possible(test: &str) -> bool {
    root(test)
        && has_program(test, "python3")
        && has_program(test, "setpriv")
        && needs(test, Path::new(PROFILE).exists(), "golang-github-containers-common is not installed")
}

/// Runs `latscope` in a container that lacks `hidden`.
fn run_in(group: &Path, hidden: &str, words: &[&str]) -> crate::support::Ran {
    let place = Place::new();
    let enter = r#"echo $$ >"$GROUP/tasks" && exec unshare --mount --propagation private --pid --fork "$@""#;
    let script = format!("{SCRIPTS}/enter.sh");
    let root = place.directory("root");
    let mut command = program(["sh", "-c", enter, "sh", "sh", &script, &root]);
    command.args(words).env("LATSCOPE", BINARY).env("PROFILE", PROFILE).env("GROUP", group);
    command.env("FILTER", format!("{SCRIPTS}/docker_profile.py")).env("HIDDEN", hidden).env_remove("TMPDIR");
    end(&mut command)
}

/// Runs a quick survey in a container that lacks `hidden`.
fn survey_in(group: &Path, hidden: &str) -> Value {
    parsed(&run_in(group, hidden, &["survey", "--quick", "--count", "5", "--json", "-"]).done())
}

/// Returns true if the container lets a point be measured. For one that takes long half of a busy CPU may be too
/// little.
fn is_possible(m: &Value) -> bool {
    let reasons = m["quality"]["reasons"].as_array().unwrap();
    let none = |reason: &&Value| reason["level"] == "unsupported";
    let slow = |reason: &Value| ["", "nothing was measured"].contains(&reason["text"].as_str().unwrap());
    reasons.iter().filter(none).all(|reason| reason["id"] == "nothing-measured" && slow(reason))
}

/// Probes with the number of points that the container lets be measured.
fn possible(result: &Value) -> BTreeMap<&str, usize> {
    let mut probes = BTreeMap::new();
    for m in measurements(result) {
        let there = usize::from(is_possible(m));
        *probes.entry(m["probe"].as_str().unwrap()).or_default() += there;
    }
    probes
}

/// Asserts that what is not fully measured says why, and names the file where a file is missing.
fn explained(result: &Value) {
    for m in measurements(result).iter().filter(|m| m["quality"]["level"] != "ok") {
        let text = reason(m);
        assert!(!text.is_empty(), "{m:#}");
        for part in text.split("; ").filter(|part| part.contains("No such file")) {
            assert!(part.contains('/'), "no file is named: {part}");
        }
    }
}

#[test]
fn in_a_container_nearly_all_is_measured_and_the_rest_says_what_it_lacks() {
    let test = "in_a_container_nearly_all_is_measured_and_the_rest_says_what_it_lacks";
    if !container_possible(test) {
        return;
    }
    let Some(group) = HalfOfCpu::if_possible("most") else { return };
    let found = survey_in(&group.0, "");
    let probes = possible(&found);
    let there = probes.values().filter(|points| **points > 0).count();
    assert!(there * 100 >= probes.len() * 95, "{there} of {}: {probes:?}", probes.len());
    explained(&found);
    for m in measurements(&found).iter().filter(|m| !is_possible(m)) {
        assert!(!reason(m).contains("limited to"), "the quota is no reason for it: {m:#}");
        assert!(!remedy(m).is_empty(), "{m:#}");
    }
    let timers = of_probe(&found, "wake.timer");
    has_reason(&timers, "degraded", "SCHED_OTHER");
    for option in ["--ulimit rtprio=99", "--ulimit memlock=-1", "--device /dev/cpu_dma_latency"] {
        assert!(remedy(timers[0]).contains(option), "{}", remedy(timers[0]));
    }
    has_reason(&of_probe(&found, "process.spawn"), "degraded", "memfd");
    let throttled = |m: &Value| reason(m).contains("limited to 0.50 CPU by its control group");
    assert!(measurements(&found).iter().any(throttled), "the quota of half a CPU is in no reason");
}

#[test]
fn what_a_container_lacks_is_counted_by_the_option_that_gives_it() {
    if !container_possible("what_a_container_lacks_is_counted_by_the_option_that_gives_it") {
        return;
    }
    let Some(group) = HalfOfCpu::if_possible("list") else { return };
    let text = run_in(&group.0, "", &["list", "--check"]).done();
    let counts = text.rsplit("\n\n").next().unwrap().replace('\n', " ");
    let (here, rest) = counts.split_once(" here; ").unwrap_or_else(|| panic!("{counts}"));
    let (here, all) = here.split_once(" of ").unwrap();
    let all = all.trim_end_matches(" rows").parse::<usize>().unwrap();
    let parts = rest.trim_end().split("; ");
    let number =
        |part: &str| part.rsplit(": ").next().unwrap().trim_end_matches(" more").parse::<usize>().unwrap();
    assert_eq!(here.parse::<usize>().unwrap() + parts.map(number).sum::<usize>(), all, "{counts}");
    // Half of a busy CPU may not suffice for all rows.
    let is_whole = !counts.contains("not checked");
    for option in ["--cap-add SYS_NICE", "--ulimit memlock=-1", "--tmpfs /tmp:exec", "-v /sys/kernel/tracing"]
    {
        assert!(!is_whole || counts.contains(option), "{counts}");
    }
}

#[test]
fn without_proc_sys_or_null_the_rest_runs_and_files_are_named() {
    if !container_possible("without_proc_sys_or_null_the_rest_runs_and_files_are_named") {
        return;
    }
    let Some(group) = HalfOfCpu::if_possible("without") else { return };
    for hidden in ["proc", "sys", "null", "proc sys null"] {
        let found = survey_in(&group.0, hidden);
        explained(&found);
        let probes = possible(&found);
        // What needs the hidden file itself is checked below.
        let needs_it = |probe: &str| {
            probe == "syscall.write" && hidden.contains("null")
                || probe == "process.spawn" && hidden.contains("proc")
        };
        let missing: BTreeSet<&str> = probes
            .iter()
            .filter(|(probe, points)| **points == 0 && !needs_it(probe))
            .map(|(probe, _)| *probe)
            .collect();
        assert!(missing.len() * 20 <= probes.len(), "without {hidden}: {missing:?}");
        if hidden.contains("null") {
            has_reason(&of_probe(&found, "syscall.write"), "unsupported", "/dev/null: No such file");
        }
        if hidden.contains("proc") {
            has_reason(&of_probe(&found, "process.spawn"), "unsupported", "/proc/self/fd/");
        }
    }
}
