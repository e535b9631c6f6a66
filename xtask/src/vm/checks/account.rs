//! Checks of the account of time under control groups of the second version.

use super::{ALL, VmCheck};
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("a quota of a control group of the second version is named first", ALL, QUOTA, |ran| {
        ran.check_stdout("The run was limited to 0.50 CPU by its control group; throttled in ")?;
        ensure!(!ran.output_text().contains("The machine was quiet"), "{}", ran.output_text());
        throttled(&ran.files.join("result.json"))
    }),
    VmCheck::new("latscope doctor finds a quota of a group above", ALL, DOCTOR, |ran| {
        ran.check_stdout("0.50 CPUs: 50.0 ms of CPU time in each 100 ms")
    }),
];

/// Command that latscope runs in a group without a limit, inside of a group with half a CPU.
macro_rules! in_half_a_cpu {
    ($command:literal) => {
        concat!(
            "mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup; echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && ",
            "mkdir -p /sys/fs/cgroup/outer/inner && echo '50000 100000' >/sys/fs/cgroup/outer/cpu.max && ",
            "sh -c 'echo $$ >/sys/fs/cgroup/outer/inner/cgroup.procs; ",
            $command,
            "'; status=$?; rmdir /sys/fs/cgroup/outer/inner /sys/fs/cgroup/outer; exit $status"
        )
    };
}

const QUOTA: &str = in_half_a_cpu!(
    "latscope wake --policy other --cpus 0 --work 9ms --interval 10ms --duration 3s --no-live --json result.json; latscope show result.json --table"
);

const DOCTOR: &str = in_half_a_cpu!("latscope doctor");

fn throttled(result: &std::path::Path) -> Result<()> {
    let text = std::fs::read(result).context("no result")?;
    let report = Report::from_json(&text)?;
    for m in report.of_probe("wake.timer") {
        let first = m.quality.reasons.first().map(|reason| reason.id.as_str());
        ensure!(first == Some("throttled"), "{:?}", m.quality);
    }
    Ok(())
}
