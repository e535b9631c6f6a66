//! Machines kept as trees of files under tests/machines/NAME, each with the expected description in
//! tests/machines/NAME.json.
#![forbid(unsafe_code)]

use latscope_core::machine::{CheckState, Machine};
use latscope_machine::{MachineFacts, SystemRoot, ThisMachine, Trials, checks, describe_machine, snapshot};
use latscope_views::DisplayOptions;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Answers of a machine that does not exist.
#[derive(Default)]
struct Scripted {
    /// Highest priority that is granted; 0 for none.
    priority: u32,
    /// Number of bytes that can be locked.
    lockable: usize,
    /// Files and directories that can be written to, by the end of their path.
    writable: &'static [&'static str],
}

fn permitted(yes: bool) -> io::Result<()> {
    if yes { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

impl Trials for Scripted {
    fn real_time(&mut self, priority: u32) -> io::Result<()> {
        permitted(priority <= self.priority)
    }

    fn lock_memory(&mut self, bytes: usize) -> io::Result<()> {
        permitted(bytes <= self.lockable)
    }

    fn open_for_writing(&mut self, path: &Path) -> io::Result<()> {
        permitted(self.writable.iter().any(|end| path.ends_with(end)))
    }

    fn may_make_directory(&mut self, parent: &Path) -> io::Result<()> {
        permitted(self.writable.iter().any(|end| parent.ends_with(end)))
    }

    fn count_cycles(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn machines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// Describes a machine. The answers of the processor and the kernel are given, everything else is read.
fn examine(root: &SystemRoot, facts: &MachineFacts, mut trials: Scripted) -> Machine {
    let mut machine = describe_machine(root, facts);
    machine.checks = checks(root, &machine, &mut trials, &latscope_probes::catalogue());
    machine
}

fn assert_as_recorded(name: &str, found: &Machine) {
    let file = machines().join(format!("{name}.json"));
    let json = serde_json::to_string_pretty(found).unwrap();
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        fs::write(&file, format!("{json}\n")).unwrap();
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    let expected: Option<Machine> = serde_json::from_str(&text).ok();
    assert!(expected.as_ref() == Some(found), "{name} is now described so:\n{json}");
}

#[test]
fn a_raspberry_pi_without_cache_files() {
    let root = SystemRoot::at(machines().join("raspberry-pi-4"));
    let trials = Scripted { lockable: 300 << 20, ..Scripted::default() };
    assert_as_recorded("raspberry-pi-4", &examine(&root, &MachineFacts::of_root(&root), trials));
}

#[test]
fn a_container_on_a_server_of_two_nodes() {
    let root = SystemRoot::at(machines().join("numa-server"));
    let trials = Scripted::default();
    assert_as_recorded("numa-server", &examine(&root, &MachineFacts::of_root(&root), trials));
}

#[test]
fn a_virtual_machine() {
    let root = SystemRoot::at(machines().join("epyc-guest"));
    let facts = MachineFacts { hypervisor: Some("KVM".to_owned()), ..MachineFacts::of_root(&root) };
    let trials = Scripted { priority: 0, lockable: usize::MAX, writable: &["instances"] };
    assert_as_recorded("epyc-guest", &examine(&root, &facts, trials));
}

#[test]
fn a_phone_of_two_kinds_of_cpus() {
    let root = SystemRoot::at(machines().join("android-phone"));
    let trials = Scripted { priority: 99, lockable: usize::MAX, writable: &["instances"] };
    assert_as_recorded("android-phone", &examine(&root, &MachineFacts::of_root(&root), trials));
}

#[test]
fn a_machine_without_proc_and_sys() {
    let directory = tempfile::tempdir().unwrap();
    let root = SystemRoot::at(directory.path());
    let machine = examine(
        &root,
        &MachineFacts::of_root(&root),
        Scripted { priority: 99, lockable: usize::MAX, writable: &[] },
    );
    let empty =
        Machine { caches_from: "unknown".to_owned(), checks: machine.checks.clone(), ..Machine::default() };
    assert_eq!(machine, empty);
    for check in &machine.checks {
        let tried = ["real-time", "locked-memory"].contains(&check.id.as_str());
        let expected = if tried { CheckState::Good } else { CheckState::Unknown };
        assert_eq!(check.state, expected, "{check:?}");
        assert_eq!(check.remedy, None, "{check:?}");
    }
}

#[test]
fn caches_come_from_the_processor_where_sysfs_has_none() {
    let root = SystemRoot::at(machines().join("raspberry-pi-4"));
    let cache = latscope_core::machine::CpuCache {
        level: 1,
        kind: "Data".to_owned(),
        size: 32 << 10,
        ..Default::default()
    };
    let facts = MachineFacts { caches: vec![cache.clone()], ..MachineFacts::of_root(&root) };
    let machine = describe_machine(&root, &facts);
    assert_eq!((machine.caches, machine.caches_from.as_str()), (vec![cache], "cpuid"));
}

#[test]
fn this_machine_is_described_consistently() {
    let root = SystemRoot::real();
    let mut machine = snapshot(&root);
    assert!(!machine.kernel.is_empty() && !machine.architecture.is_empty());
    assert!(!machine.allowed.0.is_empty());
    assert!(machine.allowed.0.iter().all(|cpu| machine.online.0.contains(cpu)), "{machine:?}");
    let ids: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.id).collect();
    assert_eq!(ids, machine.online.0);
    assert!(machine.cpus.iter().all(|cpu| cpu.siblings.0.contains(&cpu.id)));
    assert!(machine.memory_available <= machine.memory);
    assert!(["sysfs", "cpuid", "unknown"].contains(&machine.caches_from.as_str()));
    assert!(machine.caches.iter().all(|cache| cache.level > 0 && cache.size > 0));
    assert_eq!(machine.caches.is_empty(), machine.caches_from == "unknown");

    machine.checks = checks(&root, &machine, &mut ThisMachine, &latscope_probes::catalogue());
    let ids: BTreeSet<&str> = machine.checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids.len(), machine.checks.len(), "each row has a name of its own");
    assert!(machine.checks.iter().all(|check| !check.found.is_empty()));
    assert!(machine.checks.iter().all(|check| check.state != CheckState::Bad || !check.affects.is_empty()));
    let text = latscope_views::doctor::format_checks(
        &machine,
        &DisplayOptions { width: 100, ..DisplayOptions::default() },
    );
    assert!(machine.checks.iter().all(|check| text.contains(&check.id)));
}

/// All files under a directory, with paths relative to it.
fn files_under(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => pending.push(entry.path()),
                false => found.push(entry.path().strip_prefix(directory).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

/// Texts that a file of the kernel should not hold, but might.
const NONSENSE: [&str; 10] = [
    "",
    "-1",
    "18446744073709551615",
    "0-3,9",
    "max 0",
    "0 0",
    "[never] [",
    ":::\nUid: x\nMemTotal: 18446744073709551615 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB",
    "cpu 18446744073709551615 18446744073709551615 1 1 1 1 1 18446744073709551615",
    "\u{fffd}µ\0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn nonsense_in_any_file_is_survived(texts in proptest::collection::vec(0..NONSENSE.len() + 1, 400)) {
        let kept = machines().join("numa-server");
        let directory = tempfile::tempdir().unwrap();
        for (path, choice) in files_under(&kept).iter().zip(texts) {
            let target = directory.path().join(path);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            match NONSENSE.get(choice) {
                Some(text) => fs::write(target, text).unwrap(),
                None => drop(fs::copy(kept.join(path), target).unwrap()),
            }
        }
        let root = SystemRoot::at(directory.path());
        let machine = examine(&root, &MachineFacts::of_root(&root), Scripted::default());
        prop_assert!(machine.cpus.len() == machine.online.0.len());
        prop_assert!(machine.checks.iter().all(|check| !check.found.is_empty()));
        let options = DisplayOptions { color: true, ..DisplayOptions::default() };
        prop_assert!(!latscope_views::doctor::format_checks(&machine, &options).is_empty());
    }
}
