//! Result file of a whole quick survey, compared with its own histograms, the plan, the registry and the screen.

use crate::support::{Ran, end, json, latscope, measurements, of_probe, reason, remedy, run};
use latscope_core::report::Report;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Quick survey of this machine, run once for all tests.
pub struct Survey {
    pub ran: Ran,
    pub path: String,
    pub found: Value,
    files: Vec<String>,
}

pub fn survey() -> &'static Survey {
    static SURVEY: OnceLock<Survey> = OnceLock::new();
    SURVEY.get_or_init(|| {
        // Nothing is dropped at the end of a process, so the next one clears away.
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("survey");
        let _ = fs::remove_dir_all(&place);
        let home = place.join("home");
        fs::create_dir_all(&home).expect("the target directory can be written to");
        let path = place.join("result.json").to_str().expect("target paths are UTF-8").to_owned();
        // Rounds that are asked for have no limit of time: each row is measured, also on a busy machine.
        let words = ["survey", "--quick", "--rounds", "2", "--json", &path];
        let ran = end(latscope(words).current_dir(&home));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let files = crate::support::names(&home);
        Survey { found: json(&path), ran, path, files }
    })
}

fn float(value: &Value) -> Option<f64> {
    value.as_f64()
}

fn words(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value:#}")).to_owned()
}

#[test]
fn it_is_complete_and_names_what_wrote_it() {
    let survey = survey();
    let found = &survey.found;
    survey.ran.no_panic();
    assert_eq!(found["schema"], "latscope/1");
    assert_eq!(
        (&found["tool"]["name"], &found["tool"]["version"]),
        (&"latscope".into(), &env!("CARGO_PKG_VERSION").into())
    );
    let time = |name| humantime::parse_rfc3339(&words(found, name)).unwrap();
    assert!(time("started") <= time("finished"));
    assert_eq!(found["plan"]["job"], "survey");
    assert!(found["machine"]["clock"]["resolution_ns"].as_f64() > Some(0.0));
    assert!(survey.files.is_empty(), "{:?}", survey.files);
}

#[test]
fn summaries_follow_from_histograms() {
    let text = fs::read(&survey().path).unwrap();
    let report = Report::from_json(&text).unwrap();
    // Loading computes the summaries anew, so that writing again changes nothing.
    assert_eq!(serde_json::from_str::<Value>(&report.to_json()).unwrap(), survey().found);
    for m in measurements(&survey().found) {
        let (summary, histogram) = (&m["summary"], &m["histogram"]);
        let buckets: Vec<[u64; 3]> = serde_json::from_value(histogram["buckets"].clone()).unwrap();
        let counted =
            buckets.iter().map(|[_, _, n]| n).sum::<u64>() + histogram["overflow"].as_u64().unwrap();
        let count = summary["count"].as_u64().unwrap();
        assert_eq!(counted, count, "{m:#}");
        assert_eq!(histogram["tick_ps"], if m["sampling"] == "event" { 1000 } else { 1 }, "{m:#}");
        assert!(buckets.windows(2).all(|pair| pair[0][1] < pair[1][0]), "buckets in order: {m:#}");
        assert!(
            buckets
                .iter()
                .all(|[low, high, n]| low <= high && *n > 0 && (high - low) as f64 <= *low as f64 / 100.0)
        );
        let rounds = m["rounds"].as_array().map_or(0, Vec::len);
        ordered(summary, count, rounds);
        let tick = histogram["tick_ps"].as_f64().unwrap() / 1000.0;
        if count > 0 {
            let mean = histogram["sum"].as_f64().unwrap() / count as f64 * tick;
            assert!((mean - float(&summary["mean"]).unwrap()).abs() <= mean * 1e-9, "{m:#}");
            let (min, max) = (&histogram["min"], &histogram["max"]);
            assert!((float(min).unwrap() * tick - float(&summary["min"]).unwrap()).abs() < 1e-6);
            assert!(
                (float(max).unwrap() * tick - float(&summary["max"]).unwrap()).abs()
                    <= max.as_f64().unwrap() * 1e-9
            );
        }
    }
}

/// Asserts that quantiles rise, and that those from p90 up exist only with ten samples beyond. The median over several
/// rounds is not that of all samples, and lies anywhere between the extremes.
fn ordered(summary: &Value, count: u64, rounds: usize) {
    let names = ["min", "p10", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999", "p99_9999", "max"];
    let of_all = names.iter().filter(|name| rounds < 2 || **name != "p50");
    let values: Vec<f64> = of_all.filter_map(|name| float(&summary[*name])).collect();
    let (min, max) = (float(&summary["min"]), float(&summary["max"]));
    assert!(min <= float(&summary["p50"]) && float(&summary["p50"]) <= max, "{summary:#}");
    assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{summary:#}");
    for name in ["min", "p10", "p50", "max", "mean"] {
        assert_eq!(summary[name].is_number(), count > 0, "{name}: {summary:#}");
    }
    let tails = [10, 20, 100, 1_000, 10_000, 100_000, 1_000_000];
    for (name, one_in) in names[3..10].iter().zip(tails) {
        // The sample of rank ⌈q·n⌉ has ⌊n / one_in⌋ above it.
        assert_eq!(summary[*name].is_number(), count / one_in >= 10, "{name}: {summary:#}");
    }
}

#[test]
fn what_is_not_fully_measured_says_why() {
    for m in measurements(&survey().found) {
        let count = m["summary"]["count"].as_u64().unwrap();
        match m["quality"]["level"].as_str().unwrap() {
            "ok" => {
                // What says nothing against a row has no remedy.
                assert!(count > 0 && remedy(m).is_empty(), "{m:#}");
            }
            "degraded" | "unstable" => assert!(count > 0 && !reason(m).is_empty(), "{m:#}"),
            "unsupported" => assert!(count == 0 && !reason(m).is_empty(), "{m:#}"),
            other => panic!("{other}"),
        }
        assert!(m["incomplete"].is_null(), "{m:#}");
        assert!(["one-way", "round-trip", "operation"].contains(&m["times"].as_str().unwrap()));
        assert!(m["sampling"] == "event" || m["sampling"]["batch"]["ops"].as_u64() > Some(0), "{m:#}");
        // Files of single events are refused for these before anything is measured.
        let batches = ["cpu.", "memory.", "sync.mutex", "sync.atomic", "sync.core-to-core"];
        if count > 0 && batches.iter().any(|probe| m["probe"].as_str().unwrap().starts_with(probe)) {
            assert!(m["sampling"]["batch"].is_object(), "{m:#}");
        }
        for (name, value) in m["values"].as_object().unwrap() {
            assert!(value["value"].is_number() && value["unit"].is_string(), "{name}: {m:#}");
        }
    }
}

#[test]
fn every_point_of_the_plan_is_measured_once() {
    let found = &survey().found;
    let key = |point: &Value| format!("{} {}", point["probe"], point["params"]);
    let steps = found["plan"]["steps"].as_array().unwrap();
    let planned: Vec<String> =
        steps.iter().flat_map(|step| step["points"].as_array().unwrap()).map(key).collect();
    let unique: BTreeSet<&String> = planned.iter().collect();
    assert_eq!(unique.len(), planned.len(), "a point is planned twice");
    // Points of single CPUs are merged in one more, and so are pairs of processes.
    let single = |m: &&Value| m["params"]["cpu"] != "all" && m["params"]["pair"] != "all";
    let measured: Vec<String> = measurements(found).iter().filter(single).map(key).collect();
    assert_eq!(measured, planned);
    let merged: Vec<&Value> = measurements(found).iter().filter(|m| m["params"]["cpu"] == "all").collect();
    for all in merged {
        let one = of_probe(found, all["probe"].as_str().unwrap())
            .into_iter()
            .filter(|m| m["params"]["cpu"].is_u64());
        let counts: u64 = one.map(|m| m["summary"]["count"].as_u64().unwrap()).sum();
        assert_eq!(all["summary"]["count"], counts, "{all:#}");
    }
}

/// Ids that scripts rely on.
const IDS: &[&str] = &[
    "cpu.cycle cpu.add cpu.sub cpu.mul cpu.div cpu.mod cpu.and cpu.or cpu.xor cpu.shift cpu.rotate cpu.popcount",
    "cpu.fma cpu.branch cpu.call cpu.rdtsc cpu.clock-vdso cpu.clock-syscall",
    "memory.latency memory.sequential-sum memory.bandwidth memory.stream memory.parallelism memory.loaded memory.tlb",
    "sync.mutex sync.atomic sync.core-to-core sync.semaphore sync.futex sync.condvar sync.eventfd sync.pipe",
    "sync.unix-stream sync.context-switch sync.ring sync.pipe-bandwidth sync.unix-bandwidth sync.tcp-bandwidth",
    "thread.create thread.start thread.end thread.join thread.total thread.std thread.overhead thread.pool",
    "syscall.getppid syscall.read syscall.write syscall.stat syscall.fstat syscall.open-close syscall.select",
    "syscall.poll syscall.epoll syscall.signal-install syscall.signal-deliver syscall.signal-fault",
    "syscall.page-fault syscall.mmap syscall.munmap syscall.mprotect syscall.yield",
    "process.fork process.vfork process.spawn process.exec process.shell",
    "file.read file.create file.write file.close file.unlink file.rename file.stat file.open-close file.fsync",
    "file.fdatasync file.read-direct file.read-mmap",
    "wake.timer wake.timerlat noise.busy noise.osnoise noise.hwlat",
    "ipc.binder ipc.hwbinder ipc.spin ipc.futex ipc.posix-semaphore ipc.sysv-semaphore ipc.eventfd ipc.signal",
    "ipc.io-uring ipc.pipe ipc.fifo ipc.posix-mq ipc.sysv-mq ipc.unix-datagram ipc.unix-seqpacket ipc.unix-stream",
    "ipc.udp ipc.tcp ipc.vsock ipc.passthrough ipc.inversion",
    "remote.ping remote.long-ping",
];

/// Probes that change settings of the kernel, need an option, or last long. They are measured only when asked for.
const NOT_SURVEYED: &[&str] = &[
    "wake.timerlat",
    "wake.response",
    "noise.osnoise",
    "noise.hwlat",
    "sync.lock",
    "syscall.shootdown-gap",
    "sync.futex-crowd",
    "syscall.contended-fault",
    "cpu.idle-exit",
    "cpu.ramp",
    "cpu.indirect-branch",
    "cpu.jump",
    "cpu.return-depth",
    "file.read-uring",
    "memory.single-load",
    "process.clone",
    "process.pidfd-open",
    "process.pidfd-poll",
    "sync.line-state",
    "sync.udp",
    "syscall.seccomp",
    "syscall.sleep",
    "syscall.timer-set",
    "syscall.traced",
];

/// Returns true for a probe that is an alternative to another probe in the survey.
fn is_for_comparison(id: &str) -> bool {
    id.starts_with("ipc.") && id != "ipc.unix-stream"
}

#[test]
fn every_probe_is_listed_and_in_the_survey() {
    let list = run(&["list"]).done();
    // An entry is an id, a title, and in the next line what exactly is timed.
    let entry = |line: &str| Some(line.strip_prefix("  ")?.split_whitespace().next()?.to_owned());
    let listed: BTreeSet<String> = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(entry)
        .collect();
    let relied_on: BTreeSet<String> =
        IDS.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect();
    let missing: Vec<_> = relied_on.difference(&listed).collect();
    assert!(missing.is_empty(), "not listed: {missing:?}");
    let surveyed: BTreeSet<String> =
        measurements(&survey().found).iter().map(|m| words(m, "probe")).collect();
    let unsurveyed: Vec<_> = listed
        .difference(&surveyed)
        .filter(|id| !is_for_comparison(id) && !NOT_SURVEYED.contains(&id.as_str()))
        .collect();
    assert!(unsurveyed.is_empty(), "listed, but not in the survey: {unsurveyed:?}");
    assert!(surveyed.is_subset(&listed));
    for id in &listed {
        let line = list
            .lines()
            .position(|line| entry(line).as_ref() == Some(id) && !line.starts_with("   "))
            .unwrap();
        let timed = list.lines().nth(line + 1).unwrap();
        assert!(timed.starts_with("      ") && timed.trim().len() > 15, "{id}: {timed}");
    }
}

/// Probes that take batches or single events, depending on parameters and on the machine.
const EITHER: [&str; 4] = ["file.read", "file.read-mmap", "sync.rwlock", "syscall.uring-nop"];

#[test]
fn a_probe_of_batches_is_known_to_have_no_single_events_before_it_is_measured() {
    let found = &survey().found;
    let probes: BTreeSet<String> = measurements(found).iter().map(|m| words(m, "probe")).collect();
    let is_batch = |m: &Value| m["sampling"].get("batch").is_some() || m["sampling"] == "batch";
    let batches = probes.iter().filter(|probe| !EITHER.contains(&probe.as_str()));
    let batches: Vec<&String> =
        batches.filter(|probe| of_probe(found, probe).iter().all(|m| is_batch(m))).collect();
    assert!(batches.len() > 30 && batches.iter().any(|probe| *probe == "syscall.getppid"), "{batches:?}");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("h.csv");
    for probe in batches {
        let (family, name) = probe.split_once('.').unwrap();
        let refused = run(&[family, name, "--csv-histogram", file.to_str().unwrap()]).refused();
        assert!(refused.contains("there are no single events"), "{probe}: {refused}");
    }
}

#[test]
fn parameters_are_named_as_settled() {
    let found = &survey().found;
    let names = |probe: &str| -> BTreeSet<String> {
        of_probe(found, probe).iter().flat_map(|m| m["params"].as_object().unwrap().keys().cloned()).collect()
    };
    let settled = [
        ("cpu.add", "mode type"),
        ("cpu.branch", "mode"),
        ("memory.sequential-sum", "mode size"),
        ("memory.bandwidth", "operation size step threads"),
        ("memory.stream", "operation size threads"),
        ("memory.parallelism", "chains pages size"),
        ("memory.tlb", "pages size"),
        ("sync.mutex", ""),
        ("sync.atomic", "operation sharing threads"),
        ("sync.core-to-core", "mode pair"),
        ("sync.futex", "placement"),
        ("sync.ring", "processes size"),
        ("thread.create", "mode"),
        ("thread.pool", "size threads"),
        ("syscall.epoll", "descriptors"),
        ("syscall.mmap", "size"),
        ("process.fork", "size"),
        ("process.exec", "mode"),
        ("file.write", "device directory filesystem size"),
        ("file.read", "device directory filesystem mode size"),
        ("wake.timer", "cpu interval policy"),
        ("noise.busy", "cpu gap policy"),
    ];
    for (probe, expected) in settled {
        let expected: BTreeSet<String> = expected.split_whitespace().map(str::to_owned).collect();
        // A probe may say more, never less.
        assert!(expected.is_subset(&names(probe)), "{probe}: {:?} and not {expected:?}", names(probe));
    }
    let latency = names("memory.latency");
    assert!(["order", "pages", "size"].iter().all(|name| latency.contains(*name)), "{latency:?}");
}

#[test]
fn a_plan_is_what_is_then_done() {
    let words =
        ["sync", "mutex", "futex", "--placement", "same-core", "--count", "3", "--seed", "7", "--quick"];
    let plan = end(latscope(words).args(["--dry-run", "--json", "-"])).done();
    let plan = crate::support::parsed(&plan);
    let done = crate::support::parsed(&end(latscope(words).args(["--json", "-"])).done());
    assert_eq!(plan, done["plan"]);
    assert!(plan["steps"].as_array().unwrap().iter().all(|step| step["seed"] == 7));
    for m in measurements(&done) {
        // Events come in groups that are clean or not as a whole.
        assert!(m["summary"]["count"].as_u64() >= Some(3), "{m:#}");
    }
}

/// Result of a measurement that takes no time, with further options.
fn named(options: &[&str]) -> Value {
    let words = ["cpu", "cycle", "--count", "1", "--json", "-"];
    let ran = run(&[&words[..], options].concat());
    serde_json::from_str(&ran.done()).unwrap()
}

#[test]
fn a_result_is_found_again_by_its_names() {
    let given = named(&["--label", "board=a7", "--label", "kernel=rt", "--machine-id", "rack 3"]);
    assert_eq!(given["labels"], serde_json::json!({ "board": "a7", "kernel": "rt" }));
    assert_eq!(given["machine"]["id"], "rack 3");
    let (one, other) = (named(&["--machine-id", "none"]), named(&[]));
    assert!(one["machine"].as_object().unwrap()["id"].is_null() && one.get("labels").is_none());
    let secret = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let secret = secret.trim();
    match other["machine"]["id"].as_str() {
        Some(id) => assert!(id.len() == 32 && id != secret, "{id}"),
        None => assert_ne!(secret.len(), 32, "a machine with a machine-id has an identity"),
    }
    let ids: BTreeSet<String> = [&given, &one, &other].map(|found| words(found, "run_id")).into();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|c| c.is_ascii_hexdigit())), "{ids:?}");
}

#[test]
fn labels_are_shown_and_bad_ones_refused() {
    for view in [&["--markdown", "-"][..], &[]] {
        let text = run(&[&["cpu", "cycle", "--count", "1", "--label", "board=a7"], view].concat()).done();
        assert!(text.contains("board=a7"), "{text}");
    }
    for (options, said) in [
        (&["--label", "board"][..], "KEY=VALUE"),
        (&["--label", "board="], "empty"),
        (&["--label", "a=1", "--label", "a=2"], "given twice"),
        (&["--machine-id", ""], "empty"),
    ] {
        let ran = run(&[&["cpu", "cycle", "--dry-run"], options].concat());
        assert!(ran.refused().contains(said), "{ran:?}");
    }
}

/// Counts and limits apply to all rounds together, in every family.
#[test]
fn rounds_share_the_count_and_are_told() {
    for (words, probe) in [
        (&["wake", "--as-is", "--policy", "other", "--warm-up", "0", "--cpus", "0"][..], "wake.timer"),
        (&["ipc", "-t", "pipe", "--caller", "other", "--warm-up", "0"], "ipc.pipe"),
        (&["remote", "ping", "--transport", "shm", "--wait", "eventfd"], "remote.ping"),
        (&["sync", "mutex"], "sync.mutex"),
    ] {
        let run = |rounds: &str, count: &str, view: &[&str]| {
            let asked = ["--rounds", rounds, "--count", count];
            end(&mut latscope(words.iter().chain(&asked).chain(view))).done()
        };
        let found = crate::support::parsed(&run("2", "9", &["--json", "-"]));
        assert_eq!(found["plan"]["rounds"], 2, "{words:?}");
        for m in of_probe(&found, probe) {
            assert_eq!(
                (&m["summary"]["count"], m["rounds"].as_array().map(Vec::len)),
                (&9.into(), Some(2)),
                "{m:#}"
            );
        }
        assert!(run("2", "9", &[]).contains(" · 2 rounds · "), "{words:?}");
        assert!(run("2", "1", &[]).contains("note  1 round and not 2: "), "{words:?}");
    }
}

/// The personalities save the same names as latscope's own commands.
#[test]
fn older_tools_save_labels_and_the_machine() {
    let place = crate::support::Place::new();
    for words in [
        &["oslat", "--duration=1", "--cpu-list=0", "--result"][..],
        &["cyclictest", "-t1", "-l5", "-q", "--result"],
        &["lat_pipe", "--json"],
        &["binderThroughputTest", "-w", "2", "-i", "10", "--transport", "pipe", "--result"],
    ] {
        let path = place.at(words[0]);
        let names = ["--label", "board=a7", "--machine-id=rack 3", "--label=boot=cold"];
        end(latscope(["as"]).args(words).arg(&path).args(names)).done();
        let found = json(&path);
        assert_eq!(found["labels"], serde_json::json!({"board": "a7", "boot": "cold"}), "{words:?}");
        assert_eq!(found["machine"]["id"], "rack 3", "{words:?}");
        let refused = end(latscope(["as"]).args(words).arg(&path).args(["--label", "board"])).refused();
        assert!(refused.contains("KEY=VALUE"), "{refused}");
    }
}
