//! Full disks: no measured value is lost, and nothing is left behind.

use crate::support::{
    Place, end, eventually, has_reason, json, measured, measurements, of_probe, reason, remedy, root, run,
    traceable, with_mounts,
};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::process::CommandExt;

#[test]
fn a_full_device_is_refused_before_anything_is_measured() {
    let device = "/dev/full";
    for option in ["--json", "--csv", "--csv-histogram", "--markdown", "--html", "--svg", "--svg-percentiles"]
    {
        let ran = run(&["sync", "futex", "--count", "2", option, device]);
        let line = ran.refused();
        assert!(line.contains(device) && line.contains("No space left"), "{option}: {line}");
        assert!(ran.out.is_empty() && !ran.err.contains("measuring"), "{option}: {ran:?}");
        assert!(fs::metadata(device).unwrap().file_type().is_char_device());
    }
    // Where nothing is measured, every file is tried, whatever becomes of the others, and the table is shown.
    let place = Place::new();
    let (result, csv) = (crate::result::survey().path.as_str(), place.at("table.csv"));
    for option in ["--json", "--markdown", "--html", "--svg", "--svg-percentiles"] {
        let ran = run(&["show", result, "--table", option, device, "--csv", &csv]);
        let line = ran.refused();
        assert!(line.contains(device) && line.contains("No space left"), "{option}: {line}");
        assert!(ran.out.contains("getppid"), "{option}: {ran:?}");
        assert!(fs::read_to_string(&csv).unwrap().contains("syscall.getppid"));
        fs::remove_file(&csv).unwrap();
    }
}

/// A full disk is not noticed in advance. The measured values are shown, and the old file still exists.
#[test]
fn a_full_disk_costs_the_file_and_not_the_table() {
    if !root("a_full_disk_costs_the_file_and_not_the_table") {
        return;
    }
    let place = Place::new();
    let disk = place.directory("disk");
    let script = "
        mount -t tmpfs -o size=64k none \"$2\"
        head -c 1M /dev/zero > \"$2/filler\" 2>/dev/null || true
        code=0
        \"$1\" syscall getppid --count 2 \"$3\" \"$2/file\" || code=$?
        echo \"left: $(ls -A \"$2\" | tr '\\n' ' ')\"
        exit $code";
    for option in ["--csv", "--markdown", "--html"] {
        let ran = end(&mut with_mounts(script, &[&disk, option]));
        let line = ran.refused();
        assert!(line.contains("disk/file") && line.contains("No space left"), "{option}: {line}");
        assert!(ran.out.contains("getppid") && ran.out.contains("left: filler \n"), "{option}: {}", ran.out);
    }
}

#[test]
fn a_file_that_only_its_owner_may_replace_is_refused_before_anything_is_measured() {
    if !root("a_file_that_only_its_owner_may_replace_is_refused_before_anything_is_measured") {
        return;
    }
    let place = Place::new();
    let shared = place.directory("shared");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let theirs = place.file("shared/theirs.json", "old");
    let mut command = crate::support::latscope(["cpu", "cycle", "--count", "2", "--json", &theirs]);
    command.uid(65_534).gid(65_534);
    let ran = end(&mut command);
    let line = ran.refused();
    assert!(line.contains("theirs.json") && line.contains("another user's"), "{line}");
    assert!(!ran.err.contains("measuring") && fs::read_to_string(&theirs).unwrap() == "old", "{ran:?}");
}

#[test]
fn a_full_stdout_is_an_error() {
    let result = crate::result::survey().path.as_str();
    for words in
        ["list", "doctor", "--help", "show $1", "show $1 --json -", "cpu add --count 2", "as hackbench -h"]
    {
        for (to, reason) in [("> /dev/full", "No space left"), (">&-", "Bad file descriptor")] {
            let script = format!("exec \"$0\" {words} {to}");
            let ran =
                end(&mut crate::support::program(["sh", "-c", &script, crate::support::BINARY, result]));
            let line = ran.refused();
            assert!(line.contains("cannot write to stdout: ") && line.contains(reason), "{words}: {line}");
        }
    }
}

#[test]
fn a_result_on_a_full_disk_leaves_the_old_one() {
    if !root("a_result_on_a_full_disk_leaves_the_old_one") {
        return;
    }
    let place = Place::new();
    let disk = place.directory("disk");
    let script = "
        mount -t tmpfs -o size=64k none \"$2\"
        echo old > \"$2/result.json\"
        head -c 1M /dev/zero > \"$2/filler\" 2>/dev/null || true
        code=0
        \"$1\" cpu add --count 20 --json \"$2/result.json\" || code=$?
        echo \"left: $(ls -A \"$2\" | tr '\\n' ' ')\"
        echo \"content: $(cat \"$2/result.json\")\"
        exit $code";
    let ran = end(&mut with_mounts(script, &[&disk]));
    let line = ran.refused();
    assert!(line.contains("result.json") && line.contains("No space left"), "{line}");
    assert!(ran.out.contains("cpu.add"), "{}", ran.out);
    assert!(ran.out.contains("left: filler result.json \ncontent: old\n"), "{}", ran.out);
}

#[test]
fn file_probes_on_a_small_disk_say_so_and_the_rest_runs() {
    if !root("file_probes_on_a_small_disk_say_so_and_the_rest_runs") {
        return;
    }
    let place = Place::new();
    let (disk, result) = (place.directory("disk"), place.at("result.json"));
    let script = "
        mount -t tmpfs -o size=\"$4\" none \"$2\"
        test \"$5\" = empty || head -c 1M /dev/zero > \"$2/filler\" 2>/dev/null || true
        code=0
        \"$1\" survey --quick --only sync.mutex,file --count 2 --dir \"$2\" --json \"$3\" || code=$?
        echo \"left: $(ls -A \"$2\")\"
        exit $code";

    // Small: what fits is measured, and what does not is reported.
    let out = end(&mut with_mounts(script, &[&disk, &result, "64k", "empty"])).done();
    assert!(out.ends_with("left: \n"), "{out}");
    let found = json(&result);
    measured(&found, "sync.mutex");
    measured(&found, "file.stat");
    let large: Vec<_> =
        of_probe(&found, "file.read").into_iter().filter(|m| m["params"]["size"] == 1 << 20).collect();
    has_reason(&large, "unsupported", "only");

    // Full: whatever has to write reports it.
    let out = end(&mut with_mounts(script, &[&disk, &result, "16k", "full"])).done();
    assert!(out.ends_with("left: filler\n"), "{out}");
    let found = json(&result);
    measured(&found, "sync.mutex");
    for m in measurements(&found).iter().filter(|m| m["quality"]["level"] == "unsupported") {
        assert!(!reason(m).is_empty() && !remedy(m).is_empty(), "{m:#}");
        assert_eq!(m["summary"]["count"], 0, "{m:#}");
    }
    has_reason(&of_probe(&found, "file.fsync"), "unsupported", "No space left");
    assert!(out.contains("No space left"), "{out}");
}

#[test]
fn a_limit_on_file_sizes_is_like_a_full_disk() {
    let place = Place::new();
    let result = place.at("result.json");
    let text = run(&["show", &crate::result::survey().path]).done();
    assert!(!text.is_empty());
    let words = ["show", crate::result::survey().path.as_str(), "--json", &result];
    let ran = end(crate::support::program(["prlimit", "--fsize=10000", crate::support::BINARY]).args(words));
    let line = ran.refused();
    assert!(line.contains("result.json") && line.contains("too large"), "{line}");
    assert_eq!(ran.out, text);
    assert!(crate::support::names(place.path()).is_empty());
}

#[test]
fn a_time_line_on_a_full_disk_costs_nothing_else() {
    if !traceable("a_time_line_on_a_full_disk_costs_nothing_else") {
        return;
    }
    let place = Place::new();
    let (disk, result) = (place.directory("disk"), place.at("result.json"));
    // The begin of the file has room, and what is recorded has none.
    let script = "
        mount -t tmpfs -o size=8k none \"$2\"
        code=0
        \"$1\" sync mutex --duration 50ms --timeline \"$2/t.json\" --json \"$3\" || code=$?
        exit $code";
    let ran = end(&mut with_mounts(script, &[&disk, &result]));
    let found = json(&result);
    assert!(ran.out.contains("mutex") && ran.code == Some(1), "{ran:#?}");
    measured(&found, "sync.mutex");
    assert!(found["finished"].is_string(), "{found:#}");
    let warnings = found["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["id"] == "timeline-lost"), "{warnings:?}");
}

/// The result is whole before it is shown: stdout has no reader that takes anything, and the run is killed.
#[test]
fn what_is_saved_is_whole_before_it_is_shown() {
    let place = Place::new();
    let result = place.at("result.json");
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 1 << 10]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    let mut command = crate::support::latscope(["cpu", "cycle", "--quick", "--json", &result]);
    let mut child = command.stdout(writer).stderr(std::process::Stdio::null()).spawn().unwrap();
    eventually("the result is finished", || {
        let text = fs::read(&result).ok()?;
        let found: serde_json::Value = serde_json::from_slice(&text).ok()?;
        found["finished"].is_string().then_some(())
    });
    assert!(child.try_wait().unwrap().is_none(), "it waits for the reader");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(reader);
}

/// The replacements of older tools also save while they run.
#[test]
fn a_stand_in_that_is_killed_leaves_what_it_had() {
    let place = Place::new();
    let result = place.at("result.json");
    let words = [
        "as", "cyclictest", "-q", "-D", "600", "--default-system", "--save-every", "1s", "--result", &result,
    ];
    let mut child = crate::support::start(&mut crate::support::latscope(words));
    eventually("it was saved", || {
        let text = fs::read(&result).ok()?;
        let found: serde_json::Value = serde_json::from_slice(&text).ok()?;
        (found["measurements"][0]["summary"]["count"].as_u64() > Some(0)).then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let found = json(&result);
    assert!(found["finished"].is_null(), "{found:#}");
    measured(&found, "wake.timer");
}
