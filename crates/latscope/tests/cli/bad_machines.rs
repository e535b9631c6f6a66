//! Machines that lack something: whatever needs it reports that, and the rest runs.

use crate::support::{
    BINARY, NOBODY, Place, end, has_reason, is_ok, json, latscope, measured, measurements, names, of_probe,
    program, public_binary, reason, remedy, root, with_mounts,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;

/// CPUs that the tests may use.
fn allowed() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.parse::<latscope_core::units::CpuList>().unwrap().0
}

/// CPUs that a text of the result names.
fn cpus(value: &Value) -> Vec<u32> {
    serde_json::from_value::<latscope_core::units::CpuList>(value.clone()).unwrap().0
}

/// Asserts that everything that is not fully measured has a reason.
fn explained(result: &Value) {
    for m in measurements(result).iter().filter(|m| m["quality"]["level"] != "ok") {
        assert!(!reason(m).is_empty(), "{m:#}");
    }
}

#[test]
fn on_one_cpu_what_needs_two_says_so() {
    let cpu = allowed()[0].to_string();
    let place = Place::new();
    let result = place.at("result.json");
    let only =
        "sync.futex,sync.core-to-core,sync.atomic,memory.bandwidth,memory.loaded,thread,wake,cpu.cycle";
    let words = ["survey", "--quick", "--count", "2", "--only", only, "--json", &result];
    let ran = end(program(["taskset", "-c", &cpu, BINARY]).args(words));
    let table = ran.done();
    let found = json(&result);
    assert_eq!(cpus(&found["plan"]["cpus"]), [cpu.parse::<u32>().unwrap()]);
    for step in found["plan"]["steps"].as_array().unwrap() {
        assert_eq!(step["cpus"].to_string(), format!("[{cpu}]"), "{step:#}");
    }
    for probe in ["cpu.cycle", "thread.create", "thread.pool", "wake.timer"] {
        measured(&found, probe);
    }
    for m in of_probe(&found, "sync.futex") {
        if m["params"]["placement"] == "same-core" {
            assert!(is_ok(m), "{m:#}");
        } else {
            has_reason(&[m], "unsupported", "two CPUs");
            assert!(remedy(m).contains("taskset"), "{m:#}");
        }
    }
    for m in of_probe(&found, "wake.timer") {
        let timed = m["params"]["cpu"].to_string();
        assert!(timed == cpu || timed == "\"all\"", "{m:#}");
    }
    explained(&found);
    assert!(table.contains("two CPUs"), "{table}");
}

#[test]
fn a_mask_is_honoured_and_cannot_be_left() {
    let all = allowed();
    let last = all[all.len() - 1];
    let place = Place::new();
    let result = place.at("result.json");
    let masked = |words: &[&str]| end(program(["taskset", "-c", &last.to_string(), BINARY]).args(words));
    masked(&["wake", "timer", "--count", "2", "--json", &result, "--quiet"]).done();
    let found = json(&result);
    assert_eq!(cpus(&found["machine"]["allowed"]), [last]);
    assert_eq!(cpus(&found["plan"]["cpus"]), [last]);
    if all.len() > 1 {
        let other = all[0].to_string();
        let ran = masked(&["cpu", "cycle", "--cpus", &other]);
        assert!(ran.refused().contains(&format!("taskset -c {other}")), "{ran:?}");
        assert_eq!(ran.out, "");
    }
    // A choice within the mask is honoured too.
    let words = ["wake", "timer", "--count", "2", "--cpus", &all[0].to_string(), "--json", &result];
    end(&mut latscope(words)).done();
    for step in json(&result)["plan"]["steps"].as_array().unwrap() {
        assert_eq!(step["cpus"].to_string(), format!("[{}]", all[0]));
    }
}

#[test]
fn without_root_all_is_measured_or_explained() {
    if !root("without_root_all_is_measured_or_explained") {
        return;
    }
    let place = Place::new();
    let home = place.directory("home");
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let words = ["survey", "--quick", "--count", "2", "--json", "result.json"];
    let only = ["--only", "cpu.cycle,memory.tlb,sync,thread.create,syscall,process,file,wake"];
    let (_copy, binary) = public_binary();
    let mut command = program([&binary]);
    let ran =
        end(command.args(words).args(only).current_dir(&home).uid(NOBODY).gid(NOBODY).env("HOME", &home));
    ran.done();
    assert_eq!(names(&home), ["result.json"]);
    let found = json(format!("{home}/result.json"));
    assert_eq!(found["machine"]["root"], false);
    for probe in ["cpu.cycle", "sync.futex", "syscall.getppid", "process.fork", "file.write"] {
        measured(&found, probe);
    }
    let timers: Vec<_> = of_probe(&found, "wake.timer");
    has_reason(&timers, "degraded", "SCHED_OTHER");
    assert!(remedy(timers[0]).contains("root"));
    explained(&found);
}

#[test]
fn where_the_current_directory_is_closed_another_one_is_used() {
    if !root("where_the_current_directory_is_closed_another_one_is_used") {
        return;
    }
    let (_copy, binary) = public_binary();
    let mut command = program([&binary]);
    command
        .args(["file", "stat", "--count", "2", "--json", "-"])
        .current_dir("/proc")
        .uid(NOBODY)
        .gid(NOBODY);
    let out = end(command.env("HOME", "/nonexistent")).done();
    let found = crate::support::parsed(&out);
    measured(&found, "file.stat");
    let notes = found["plan"]["notes"].to_string();
    assert!(notes.contains("tmp is used"), "{notes}");
}

#[test]
fn without_sysfs_the_rest_runs() {
    if !root("without_sysfs_the_rest_runs") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    let script = "mount -t tmpfs none /sys; exec \"$@\"";
    let only = "cpu.cycle,memory.tlb,sync.futex,thread.create,syscall.getppid,wake";
    let words = ["survey", "--quick", "--count", "2", "--only", only, "--json", &result];
    end(&mut with_mounts(script, &words)).done();
    let found = json(&result);
    for m in measurements(&found) {
        assert_ne!(m["quality"]["level"], "unsupported", "{m:#}");
    }
    explained(&found);
    let doctor = end(&mut with_mounts(script, &["doctor"])).done();
    assert!(doctor.contains("unknown"), "{doctor}");
}

#[test]
fn without_proc_the_rest_runs() {
    if !root("without_proc_the_rest_runs") {
        return;
    }
    let place = Place::new();
    let result = place.at("result.json");
    // The result is written outside of what is hidden.
    let script = "mount -t tmpfs none /proc; mount -t tmpfs none /sys; exec \"$@\"";
    let only = "cpu.cycle,memory.tlb,sync.futex,thread.create,syscall.getppid,process.fork,file.stat,wake";
    let words = ["survey", "--quick", "--count", "2", "--only", only, "--json", &result];
    end(&mut with_mounts(script, &words)).done();
    let found = json(&result);
    for probe in ["cpu.cycle", "sync.futex", "thread.create", "syscall.getppid", "process.fork", "file.stat"]
    {
        measured(&found, probe);
    }
    explained(&found);
    end(&mut with_mounts(script, &["doctor"])).done();
    end(&mut with_mounts(script, &["show", &result])).done();
}

#[test]
fn few_descriptors_close_only_what_needs_many() {
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["survey", "--quick", "--count", "2", "--only", "syscall,sync.pipe", "--json", &result];
    end(program(["prlimit", "--nofile=64:64", BINARY]).args(words)).done();
    for probe in ["syscall.getppid", "sync.pipe"] {
        measured(&json(&result), probe);
    }
    let words = ["syscall", "poll", "getppid", "--descriptors", "1000", "--count", "2", "--json", &result];
    end(program(["prlimit", "--nofile=300:300", BINARY]).args(words)).done();
    let found = json(&result);
    has_reason(&of_probe(&found, "syscall.poll"), "unsupported", "Too many open files");
    measured(&found, "syscall.getppid");
}

#[test]
fn little_memory_closes_only_what_needs_much() {
    let place = Place::new();
    let result = place.at("result.json");
    let words = ["survey", "--quick", "--count", "2", "--only", "cpu.cycle,memory.stream", "--json", &result];
    end(program(["prlimit", "--as=200000000", BINARY]).args(words)).done();
    let found = json(&result);
    measured(&found, "cpu.cycle");
    has_reason(&of_probe(&found, "memory.stream"), "unsupported", "memory");
}

#[test]
fn with_a_set_user_id_bit_it_says_so_once_and_does_nothing() {
    if !root("with_a_set_user_id_bit_it_says_so_once_and_does_nothing") {
        return;
    }
    let (place, binary) = public_binary();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o4755)).unwrap();
    for words in
        [&["wake", "--max", "10s", "--duration", "100ms"][..], &["list"], &["as", "cyclictest", "-l", "1"]]
    {
        let ran = end(program([&binary]).args(words).current_dir(place.path()).uid(NOBODY).gid(NOBODY));
        let sentence = ran.refused();
        assert!(sentence.contains("set-user-ID bit"), "{sentence}");
        assert_eq!(ran.out, "", "{words:?}");
    }
}
