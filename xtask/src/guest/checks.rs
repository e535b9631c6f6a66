//! Checks in a guest whose remote processor is latscope.

use super::machine::{GuestMachine, KILL};
use crate::vm::checks::{Ran, VmCheck, script};
use anyhow::{Context, Result, ensure};
use latscope_core::report::Report;
use std::time::Duration;

/// Values of a result that count everything but samples. All of them must be 0 here.
const LOSSES: [&str; 6] = ["losses", "late", "mismatches", "duplicates", "reorderings", "faults"];

/// Checks in the guest, in the order in which they run.
const CHECKS: &[VmCheck] = &[
    VmCheck::new(
        "Linux has the devices of all that was announced",
        &[],
        "ls /dev /sys/bus/rpmsg/devices",
        devices,
    ),
    VmCheck::new("the terminal echoes", &[], TERMINAL, |ran| ran.prints("Hello,world")),
    VmCheck::new("pings", &[], "latscope remote ping --transport char --count 500 --json -", |ran| {
        check_pings(ran, "remote.ping", 500)
    }),
    VmCheck::new(
        "long pings",
        &[],
        "latscope remote long-ping --transport char --count 100 --json -",
        |ran| check_pings(ran, "remote.long-ping", 100),
    ),
    VmCheck::new(
        "pings over an announced channel that is bound",
        &[],
        "latscope remote ping --transport char --via bind --count 100 --json -; ls /dev >&2",
        |ran| {
            check_pings(ran, "remote.ping", 100)?;
            gone(ran)
        },
    ),
    VmCheck::new(
        "pings to an address that is given, by a name of one's own",
        &[],
        "latscope remote ping --transport char --endpoint mine --dst 0x400 --count 100 --json -; ls /dev >&2",
        |ran| {
            check_pings(ran, "remote.ping", 100)?;
            gone(ran)
        },
    ),
    VmCheck::new(
        "blocks, verified",
        &[],
        "latscope remote bandwidth --transport char --count 20 --json -",
        |ran| lossless(ran, "remote.bandwidth"),
    ),
    VmCheck::new("pings over a terminal of RPMsg", &[], TTY_PING, |ran| check_pings(ran, "remote.ping", 300)),
    VmCheck::new("long pings over a terminal of RPMsg", &[], TTY_LONG_PING, |ran| {
        check_pings(ran, "remote.long-ping", 100)
    }),
    VmCheck::new("tables over both", &[], TABLES, |ran| {
        println!("{}", ran.stdout);
        ran.check_stdout("ping to a remote")
    })
    .with_time_limit(120),
    VmCheck::new("a name that no remote announces is reported", &[], NOBODY, |ran| {
        let said = ran.output_text();
        ensure!(said.contains("no remote announces nobody"), "{said}");
        Ok(())
    })
    .exits(1),
    VmCheck::new("doctor knows where it is", &[], "latscope doctor", |ran| ran.check_stdout("emulated")),
    VmCheck::new("list", &[], "latscope list", |ran| ran.check_stdout("remote.long-ping")),
    VmCheck::new("a remote that is killed is reported, and no sample", &[], DEATH, |ran| {
        let report = Report::from_json(ran.stdout.as_bytes()).with_context(|| ran.output_text())?;
        let point = report.of_probe("remote.ping").next().context("no ping in the result")?;
        let reason = point.joined_reasons().unwrap_or_default();
        ensure!(point.summary.count > 0, "it was killed before the first ping: {reason}");
        ensure!(
            reason.contains("no message came in time") || reason.contains("the remote is gone"),
            "{reason}"
        );
        Ok(())
    })
    .with_time_limit(120),
];

/// Command that sends a line over the terminal's driver to latscope, and prints the line that comes back.
const TERMINAL: &str = "stty -F /dev/ttyRPMSG0 raw -echo && exec 3<>/dev/ttyRPMSG0 && \
                        echo Hello,world >&3 && timeout 20 head -n1 <&3";

const TTY_PING: &str = "latscope remote ping --transport tty --path /dev/ttyRPMSG0 --count 300 --json -";

/// Command for long pings in lock step. The driver drops packets for which it has no room, and reports that only in its
/// log.
const TTY_LONG_PING: &str =
    "latscope remote long-ping --mode lock-step --transport tty --path /dev/ttyRPMSG0 --count 100 --json -";

const TABLES: &str = "latscope remote --transport char --count 200; \
                      latscope remote ping long-ping --transport tty --path /dev/ttyRPMSG0 --count 200; \
                      latscope remote bandwidth --direction echoed --transport tty --path /dev/ttyRPMSG0 --count 200";

const NOBODY: &str = "latscope remote ping --transport char --endpoint nobody --count 10";

/// Command of the last check, which kills the remote processor. Nothing answers after it.
const DEATH: &str = "latscope remote ping --transport char --duration 60s --json result --quiet & \
                     sleep 5; echo 'kill the remote processor' >/dev/console; wait $!; cat result";

/// Boots the guest, and judges each check.
pub fn run_checks(machine: &GuestMachine, mut report: impl FnMut(&str, Result<()>)) {
    debug_assert!(DEATH.contains(KILL));
    let checks: Vec<&VmCheck> = CHECKS.iter().collect();
    let limit = 60 + checks.iter().map(|check| u64::from(check.limit)).sum::<u64>();
    match machine.run_job(&script(&checks), Duration::from_secs(limit)) {
        Ok((ended, said)) => {
            for (index, check) in checks.iter().enumerate() {
                let ran = Ran::read_outcome(&ended.out().join(index.to_string())).context("it did not run");
                report(&format!("guest: {}", check.name), ran.and_then(|ran| check.check_outcome(&ran)));
            }
            report("guest: a machine is connected, and its remote says so", check_connection(&said));
        }
        Err(error) => report("guest: it runs to its end", Err(error)),
    }
}

fn check_connection(said: &str) -> Result<()> {
    ensure!(said.contains("a virtual machine is connected"), "{said:?}");
    Ok(())
}

fn devices(ran: &Ran) -> Result<()> {
    let all = [
        "rpmsg_ctrl0", "rpmsg0", "ttyRPMSG0", "rpc-ping", "rpc-long-ping", "pty-ping", "bandwidth",
        "rpmsg-raw",
    ];
    all.iter().try_for_each(|name| ran.check_stdout(name))
}

/// Checks that every ping came back, and that each figure is marked as emulated.
fn check_pings(ran: &Ran, probe: &str, count: u64) -> Result<()> {
    ran.check_measured(probe)?;
    for point in ran.parse_report()?.of_probe(probe) {
        ensure!(point.summary.count == count, "{} of {count} pings", point.summary.count);
    }
    lossless(ran, probe)
}

/// Checks that no message was lost, wrong, or late.
fn lossless(ran: &Ran, probe: &str) -> Result<()> {
    let report = ran.parse_report()?;
    ensure!(report.of_probe(probe).next().is_some(), "no {probe} in the result");
    for point in report.of_probe(probe) {
        for name in LOSSES {
            let value = point.values.get(name).with_context(|| format!("no {name}"))?;
            ensure!(value.value == 0.0, "{name}: {}", value.value);
        }
    }
    Ok(())
}

/// Checks that no device is left but that of the channel that Linux binds by itself.
fn gone(ran: &Ran) -> Result<()> {
    let left: Vec<&str> = ran.stderr.lines().filter(|name| name.starts_with("rpmsg")).collect();
    ensure!(left == ["rpmsg0", "rpmsg_ctrl0"], "devices are left: {left:?}");
    Ok(())
}
