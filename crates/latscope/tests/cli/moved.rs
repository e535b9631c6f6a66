//! Measuring threads that another program moves off their CPU.

use crate::process::Mark;
use crate::skipped::needs;
use crate::support::{Place, eventually, has_reason, json, latscope, of_probe, start, wait};
use latscope_os::sched;
use serde_json::Value;
use std::fs;

/// Returns the CPUs: one to move to, then one to measure on if there is.
fn cpus() -> Vec<u32> {
    sched::allowed_cpus().unwrap()
}

/// Id of the thread of a run that has this name and was put on `cpu`.
fn thread_on(mark: &Mark, name: &str, cpu: u32) -> Option<u32> {
    for process in mark.processes() {
        for task in fs::read_dir(format!("/proc/{}/task", process.pid)).ok()?.flatten() {
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let is_settled = read("status").lines().any(|line| *line == format!("Cpus_allowed_list:\t{cpu}"));
            if read("comm").trim() == name && is_settled {
                return task.file_name().to_str()?.parse().ok();
            }
        }
    }
    None
}

/// Measures for a while on `from`, moves the thread with this name to `to`, and returns the exit code and the result.
fn moved(words: &[&str], thread: &str, from: u32, to: u32) -> (Option<i32>, Value) {
    let (place, cpu) = (Place::new(), from.to_string());
    let result = place.at("result.json");
    let mut command = latscope(words);
    command.args(["--cpus", &cpu, "--quiet", "--json", &result]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let tid = eventually("the thread is on its CPU", || thread_on(&mark, thread, from));
    sched::pin_thread(tid, &[to]).unwrap();
    let ran = wait(child);
    ran.no_panic();
    (ran.code, json(&result))
}

/// Asserts that all rows say why they are not of their CPU, and that no criterion passes.
fn not_of_its_cpu(code: Option<i32>, result: &Value, probe: &str) {
    let rows = of_probe(result, probe);
    has_reason(&rows, "degraded", "where the thread was to stay");
    for m in rows {
        assert!(m["quality"]["reasons"].as_array().unwrap().iter().any(|r| r["id"] == "other-cpu"), "{m:#}");
        assert_ne!(m["verdict"]["status"], "pass", "{m:#}");
    }
    assert_eq!(code, Some(3), "nothing is exceeded, and nothing may pass");
}

#[test]
fn a_row_of_wake_is_of_its_cpu_or_degraded() {
    if !needs("a_row_of_wake_is_of_its_cpu_or_degraded", cpus().len() > 1, "it needs two CPUs") {
        return;
    }
    let (from, to) = (cpus()[1], cpus()[0]);
    let words = ["wake", "--duration", "2s", "--max", "1h"];
    let (code, result) = moved(&words, "wake/0", from, to);
    not_of_its_cpu(code, &result, "wake.timer");
    let migrations = of_probe(&result, "wake.timer")[0]["values"]["migrations"]["value"].as_f64();
    assert!(migrations >= Some(1.0), "{result:#}");
}

#[test]
fn a_row_of_noise_is_of_its_cpu_or_degraded() {
    if !needs("a_row_of_noise_is_of_its_cpu_or_degraded", cpus().len() > 1, "it needs two CPUs") {
        return;
    }
    let (from, to) = (cpus()[1], cpus()[0]);
    let words = ["noise", "--duration", "2s", "--max", "1h"];
    let (code, result) = moved(&words, &format!("noise/{from}"), from, to);
    not_of_its_cpu(code, &result, "noise.busy");
}

#[test]
fn a_row_of_wake_has_its_policy_or_is_degraded() {
    let needed = "a_row_of_wake_has_its_policy_or_is_degraded";
    if !needs(needed, rustix::process::geteuid().is_root(), "it needs root") {
        return;
    }
    let (place, cpu) = (Place::new(), cpus()[0]);
    let result = place.at("result.json");
    let mut command = latscope(["wake", "--duration", "2s", "--max", "1h", "--quiet", "--json", &result]);
    command.args(["--cpus", &cpu.to_string()]);
    let mark = Mark::on(&mut command);
    let child = start(&mut command);
    let tid = eventually("the thread is on its CPU", || thread_on(&mark, "wake/0", cpu));
    eventually("it has its policy", || (policy_of(tid)? == "1").then_some(()));
    let done = std::process::Command::new("chrt").args(["-o", "-p", "0", &tid.to_string()]).status().unwrap();
    assert!(done.success());
    let ran = wait(child);
    ran.no_panic();
    has_reason(&of_probe(&json(&result), "wake.timer"), "degraded", "another program changed the policy");
    assert_eq!(ran.code, Some(3), "nothing is exceeded, and nothing may pass");
}

/// Policy of a thread by its number: field 41 of proc(5), `stat`.
fn policy_of(tid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(38).map(str::to_owned)
}

/// Process of a run that has this role and stays on one CPU.
fn settled(mark: &Mark, role: &str) -> Option<i32> {
    let one_cpu = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.is_some_and(|list| list.trim().parse::<u32>().is_ok())
    };
    let has_role = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == role.as_bytes())
    };
    mark.processes().into_iter().map(|process| process.pid).find(|pid| has_role(*pid) && one_cpu(*pid))
}

#[test]
fn a_row_of_ipc_is_of_its_placement_or_degraded() {
    if !needs("a_row_of_ipc_is_of_its_placement_or_degraded", cpus().len() > 1, "it needs two CPUs") {
        return;
    }
    for (placement, to) in [("two-cores", [cpus()[0], cpus()[0]]), ("same-core", [cpus()[0], cpus()[1]])] {
        let (place, words) = (Place::new(), ["ipc", "--caller", "other", "--duration", "3s", "--max", "1h"]);
        let result = place.at("result.json");
        let mut command = latscope(words);
        command.args(["--placement", placement, "--quiet", "--json", &result]);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        for (role, cpu) in ["client", "server"].into_iter().zip(to) {
            let pid = eventually("both ends are on their CPUs", || settled(&mark, role));
            for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
                sched::pin_thread(task.file_name().to_str().unwrap().parse().unwrap(), &[cpu]).unwrap();
            }
        }
        let ran = wait(child);
        ran.no_panic();
        let result = json(&result);
        let rows = of_probe(&result, "ipc.unix-stream");
        has_reason(&rows, "degraded", "not between");
        for m in rows {
            assert!(
                m["quality"]["reasons"].as_array().unwrap().iter().any(|r| r["id"] == "other-cpu"),
                "{m:#}"
            );
        }
        assert_eq!(ran.code, Some(3), "{placement}: nothing is exceeded, and nothing may pass");
    }
}
