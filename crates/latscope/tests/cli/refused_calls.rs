//! Seccomp filters, as containers have them. Measurements that need a refused call are degraded or unsupported with the
//! reason, and the rest runs.

use crate::support::{
    BINARY, Place, Ran, end, has_reason, json, measured, of_probe, program, reason, remedy,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Path of the example of latscope-os that refuses calls, built beside the binary.
fn deny() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let profile = Path::new(BINARY).parent().expect("the binary is in a directory");
        let target = profile.parent().expect("a profile is in a target directory");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--offline", "-p", "latscope-os", "--example", "deny"]);
        cargo.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo can be run").success());
        profile.join("examples/deny")
    })
}

/// Runs a survey of `only` while `calls` are answered with `error`.
fn survey(error: &str, calls: &str, only: &str) -> (Ran, Option<Value>) {
    let place = Place::new();
    let result = place.at("result.json");
    let deny = deny().to_str().expect("target paths are UTF-8");
    let words = ["survey", "--quick", "--count", "2", "--only", only, "--json", &result];
    let ran = end(program([deny, error, calls, BINARY]).args(words));
    ran.no_panic();
    let found = Path::new(&result).exists().then(|| json(&result));
    (ran, found)
}

/// Runs a survey like [`survey`], which must succeed.
#[track_caller]
fn result(error: &str, calls: &str, only: &str) -> Value {
    let (ran, found) = survey(error, calls, only);
    ran.done();
    found.expect("a survey that is done has a result")
}

#[test]
fn without_policies_timers_are_degraded() {
    for error in ["EPERM", "ENOSYS"] {
        let found =
            result(error, "sched_setattr,sched_setscheduler", "cpu.cycle,sync.futex,thread.create,wake");
        measured(&found, "cpu.cycle");
        measured(&found, "thread.create");
        let timers = of_probe(&found, "wake.timer");
        has_reason(&timers, "degraded", "SCHED_OTHER");
        assert!(timers.iter().all(|m| !remedy(m).is_empty()));
        for m in of_probe(&found, "sync.futex") {
            match m["params"]["placement"].as_str().unwrap() {
                "same-core" | "two-cores" if m["quality"]["level"] == "ok" => {}
                // There is one CPU only, or it is not kept awake.
                _ => assert!(m["quality"]["level"] != "ok" && !remedy(m).is_empty(), "{m:#}"),
            }
        }
    }
}

#[test]
fn without_a_choice_of_cpus_what_runs_anywhere_is_degraded() {
    for error in ["EPERM", "ENOSYS"] {
        let found = result(error, "sched_setaffinity", "cpu.cycle,memory.tlb,syscall.getppid,sync.futex");
        for probe in ["cpu.cycle", "memory.tlb", "syscall.getppid"] {
            measured(&found, probe);
            has_reason(&of_probe(&found, probe), "degraded", "not kept on CPU");
        }
        for m in of_probe(&found, "sync.futex") {
            assert!(m["quality"]["level"] == "unsupported" && !remedy(m).is_empty(), "{m:#}");
        }
    }
}

#[test]
fn without_memfd_histograms_have_another_home() {
    for error in ["EPERM", "ENOSYS"] {
        let found = result(error, "memfd_create", "cpu.cycle,syscall.getppid,sync.pipe,sync.futex");
        for probe in ["cpu.cycle", "syscall.getppid", "sync.pipe"] {
            measured(&found, probe);
        }
        for m in of_probe(&found, "sync.futex") {
            assert!(m["quality"]["level"] != "unsupported" || !reason(m).is_empty(), "{m:#}");
        }
    }
}

#[test]
fn without_clone3_threads_are_made_otherwise_or_it_is_told() {
    let only =
        "cpu.cycle,sync.mutex,sync.futex,thread.create,memory.bandwidth,memory.loaded,process.fork,wake";
    // The C library knows this answer and calls clone instead.
    let found = result("ENOSYS", "clone3", only);
    for probe in ["cpu.cycle", "sync.mutex", "thread.create", "process.fork", "wake.timer"] {
        measured(&found, probe);
    }
    // This one it does not: there are no threads at all.
    let found = result("EPERM", "clone3", only);
    measured(&found, "cpu.cycle");
    measured(&found, "process.fork");
    for probe in ["sync.mutex", "thread.create", "wake.timer"] {
        has_reason(&of_probe(&found, probe), "unsupported", "thread");
    }
}

#[test]
fn without_descriptors_of_events_only_their_probes_are_closed() {
    for error in ["EPERM", "ENOSYS"] {
        let found =
            result(error, "eventfd2,epoll_create1", "sync.eventfd,sync.pipe,syscall.epoll,syscall.getppid");
        measured(&found, "sync.pipe");
        measured(&found, "syscall.getppid");
        for probe in ["sync.eventfd", "syscall.epoll"] {
            let points = of_probe(&found, probe);
            assert!(!points.is_empty());
            for m in points {
                assert!(m["quality"]["level"] == "unsupported" && !reason(m).is_empty(), "{m:#}");
                assert!(!remedy(m).is_empty(), "{m:#}");
            }
        }
    }
}

#[test]
fn without_calls_of_one_probe_each_only_these_are_closed() {
    let refused = "io_uring_setup,perf_event_open,pidfd_open,seccomp,timerfd_create,unshare";
    let probes =
        ["syscall.uring-nop", "syscall.seccomp", "syscall.traced", "syscall.timer-set", "process.pidfd-open"];
    for error in ["EPERM", "ENOSYS"] {
        let only = format!("syscall.getppid,process.clone,sync.udp,{}", probes.join(","));
        let found = result(error, refused, &only);
        measured(&found, "syscall.getppid");
        for probe in probes {
            let points = of_probe(&found, probe);
            assert!(!points.is_empty(), "{probe}");
            for m in points {
                assert!(m["quality"]["level"] == "unsupported" && !reason(m).is_empty(), "{m:#}");
            }
        }
        let veth: Vec<_> =
            of_probe(&found, "sync.udp").into_iter().filter(|m| m["params"]["via"] == "veth").collect();
        has_reason(&veth, "unsupported", "CAP_SYS_ADMIN");
    }
}

#[test]
fn without_getrandom_its_row_has_no_figure() {
    for (error, reason) in [("EPERM", "not permitted"), ("ENOSYS", "not implemented")] {
        let found = result(error, "getrandom", "syscall.getrandom,syscall.getppid");
        measured(&found, "syscall.getppid");
        let rows = of_probe(&found, "syscall.getrandom");
        has_reason(&rows, "unsupported", reason);
        assert!(rows.iter().all(|m| !remedy(m).is_empty() && m["summary"]["p50"].is_null()), "{rows:#?}");
    }
}

#[test]
fn calls_that_only_help_are_not_missed() {
    let calls = "mlockall,perf_event_open,pidfd_open,statx,timer_create,timerfd_create,madvise";
    for error in ["EPERM", "ENOSYS"] {
        let found = result(
            error,
            calls,
            "cpu.cycle,syscall.getppid,sync.futex,process.fork,process.spawn,file.stat,wake",
        );
        for probe in ["cpu.cycle", "syscall.getppid", "process.fork", "process.spawn", "wake.timer"] {
            measured(&found, probe);
        }
    }
}

#[test]
fn what_an_old_kernel_lacks_has_rows_that_say_so() {
    // Linux 3.10 has none of these.
    let calls = "statx,clone3,pidfd_open,memfd_create,getrandom,openat2,close_range,copy_file_range,membarrier,\
                 io_uring_setup,io_uring_enter,io_uring_register,rseq,faccessat2";
    let only = "cpu,memory.latency,sync,syscall,file,thread,wake,ipc,remote,process";
    let found = result("ENOSYS", calls, only);
    for probe in ["cpu.cycle", "syscall.getppid", "sync.pipe", "thread.create", "process.fork", "wake.timer"]
    {
        measured(&found, probe);
    }
    let all = found["measurements"].as_array().unwrap();
    let without: Vec<_> = all.iter().filter(|m| m["quality"]["level"] == "unsupported").collect();
    assert!(without.iter().all(|m| !reason(m).is_empty()), "{without:#?}");
    has_reason(&of_probe(&found, "syscall.getrandom"), "unsupported", "not implemented");
}

#[test]
fn what_the_engine_cannot_do_without_is_told_in_a_line() {
    for calls in ["socketpair", "signalfd4"] {
        let (ran, found) = survey("EPERM", calls, "cpu.cycle");
        let line = ran.refused();
        assert!(line.contains("not permitted") && line.len() > 60, "{line}");
        assert!(found.is_none());
    }
}

#[test]
fn without_huge_pages_points_that_want_them_are_degraded() {
    let found = result("EPERM", "huge-pages", "memory.stream,memory.tlb,cpu.cycle");
    measured(&found, "cpu.cycle");
    let wants = of_probe(&found, "memory.stream");
    assert!(!wants.is_empty());
    for m in wants.into_iter().filter(|m| m["params"]["pages"] != "4KiB") {
        // Only where somebody reserved huge pages are there any.
        let reserved = m["quality"]["level"] == "ok";
        assert!(reserved || reason(m).contains("2 MiB"), "{m:#}");
        assert!(reserved || !remedy(m).is_empty(), "{m:#}");
    }
}
