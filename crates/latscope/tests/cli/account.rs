//! Account of the time on the CPUs: each test causes a disturbance, and checks what latscope prints about it.

use crate::support::{
    Place, end, eventually, json, latscope, measurements, needs, program, root, run, start, wait,
};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

/// Control group of the first version with a fifth of a CPU, removed when dropped.
struct FifthOfCpu(PathBuf);

impl FifthOfCpu {
    /// Creates the group, if root may make one with a quota; else prints the reason.
    fn possible(test: &str) -> Option<FifthOfCpu> {
        let mount = Path::new("/sys/fs/cgroup/cpu");
        let there = mount.join("cpu.cfs_quota_us").exists() || mount.join("tasks").exists();
        if !root(test) || !needs(test, there, "no CPU controller of the first version is mounted") {
            return None;
        }
        let group = FifthOfCpu(mount.join(format!("latscope-test-{}-{test}", std::process::id())));
        fs::create_dir(&group.0).expect("root may make a control group");
        let quota = fs::write(group.0.join("cpu.cfs_quota_us"), "20000");
        // The quota shall stop the group, not other tests that take the CPU before it is used up.
        fs::write(group.0.join("cpu.shares"), "262144").expect("root may raise the share of a group");
        needs(test, quota.is_ok(), "this kernel has no quotas of CPU time").then_some(group)
    }

    /// Runs `latscope` with these words in the group, to its end.
    fn run(&self, words: &str) -> crate::support::Ran {
        let script = "echo $$ >\"$1\" && shift && exec \"$@\"";
        let tasks = self.0.join("tasks");
        let before = ["sh", "-c", script, "sh", tasks.to_str().unwrap(), crate::support::BINARY];
        end(&mut program(before.into_iter().chain(words.split(' '))))
    }
}

impl Drop for FifthOfCpu {
    fn drop(&mut self) {
        eventually("the group is empty", || {
            fs::remove_dir(&self.0).ok().or((!self.0.exists()).then_some(()))
        });
    }
}

/// Ids of the reasons of a measurement, in order.
fn reasons(m: &Value) -> Vec<&str> {
    let reasons = m["quality"]["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    reasons.iter().filter_map(|reason| reason["id"].as_str()).collect()
}

#[test]
fn a_quota_is_named_first_and_no_other_is_blamed_for_it() {
    let Some(group) = FifthOfCpu::possible("a_quota_is_named_first_and_no_other_is_blamed_for_it") else {
        return;
    };
    let place = Place::new();
    let result = place.at("result.json");
    let words = "wake --policy other --cpus 0 --work 900us --interval 1ms --duration 2s --no-live --json";
    let ran = group.run(&format!("{words} {result}"));
    let found = json(&result);
    let quota = &found["activity"]["quota"];
    assert_eq!(quota["cpus"].as_f64(), Some(0.2), "{quota:#}");
    assert!(quota["throttled"].as_u64() > Some(0), "{quota:#}");
    let limited = "limited to 0.20 CPU by its control group; throttled in ";
    let flat = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(limited), "{}", ran.out);
    assert!(!flat.contains("The machine was quiet") && !flat.contains("others used"), "{}", ran.out);
    // Other tests may take the CPU, too.
    let alone = found["activity"]["others"].as_f64() < Some(0.2);
    for m in measurements(&found).iter().filter(|m| m["probe"] == "wake.timer") {
        assert_eq!(reasons(m).first(), Some(&"throttled"), "{m:#}");
        assert!(!alone || !reasons(m).contains(&"waited-for-a-cpu"), "{m:#}");
        assert!(m["account"]["quota"]["throttled"].as_u64() > Some(0), "{m:#}");
    }
    let page = place.at("page.html");
    run(&["show", &result, "--html", &page]).done();
    assert!(fs::read_to_string(page).unwrap().contains(limited));
    let doctor = group.run("doctor").out;
    assert!(doctor.contains("0.20 CPUs: 20.0 ms of CPU time in each 100 ms"), "{doctor}");
}

#[test]
fn a_criterion_is_not_judged_by_what_a_quota_stopped() {
    let Some(group) = FifthOfCpu::possible("a_criterion_is_not_judged_by_what_a_quota_stopped") else {
        return;
    };
    let ran = group.run("ipc --transport pipe --duration 1s --max 10s --json -");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let found = crate::support::parsed(&ran.out);
    let stopped = measurements(&found).iter().filter(|m| reasons(m).first() == Some(&"throttled")).count();
    assert!(stopped > 0, "{found:#}");
    // What is timed in short samples leaves out those that were stopped.
    let ran = group.run("sync pipe --rounds 1 --json -");
    let found = crate::support::parsed(&ran.out);
    for m in measurements(&found) {
        let gated = m["contention"]["gated"] == true;
        assert!(gated || reasons(m).first() == Some(&"throttled"), "{:#}", m["contention"]);
    }
}

/// Measures under a load, while another latscope runs. Returns its pid and the result.
fn beside_another_latscope(place: &Place, result: &str) -> (u64, Value) {
    let beside: Child =
        start(&mut latscope(["cpu", "--duration", "60s", "--json", &place.at("other.json"), "--quiet"]));
    let pid = u64::from(beside.id());
    run(&["wake", "--duration", "2s", "--load", "cpu", "--no-live", "--json", result]);
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid as i32).unwrap(), Signal::TERM).unwrap();
    wait(beside);
    (pid, json(result))
}

/// Returns true if the account of a result lists a process.
fn is_listed(result: &Value, pid: u64) -> bool {
    let top = result["activity"]["top"].as_array();
    top.is_some_and(|top| top.iter().any(|process| process["pid"].as_u64() == Some(pid)))
}

#[test]
fn a_load_and_another_latscope_are_told_from_others() {
    let test = "a_load_and_another_latscope_are_told_from_others";
    if !needs(test, Path::new("/proc/stat").exists(), "the kernel does not count CPU time") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    // Other tests may leave the other latscope no CPU for a while.
    let mut runs = (0..5).map(|_| beside_another_latscope(&place, &result));
    let (pid, found) = runs.find(|(pid, found)| is_listed(found, *pid)).expect("none of five runs lists it");
    let account = &found["activity"];
    // Where others take most of the CPUs, little is left for the load.
    let is_crowded = account["others"].as_f64() > Some(0.5);
    assert!(account["load"].as_f64() > Some(if is_crowded { 0.0 } else { 0.1 }), "{account:#}");
    let top = account["top"].as_array().unwrap();
    let other =
        top.iter().find(|one| one["pid"].as_u64() == Some(pid)).unwrap_or_else(|| panic!("{account:#}"));
    assert!(other["latscope"].as_str().unwrap().starts_with("latscope cpu"), "{account:#}");
    // Other tests may run more of them, of which the sentence names the busiest; it is wrapped anywhere.
    let shown = run(&["show", &result]).done();
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("the load") && flat.contains("another latscope (pid "), "{shown}");
}
