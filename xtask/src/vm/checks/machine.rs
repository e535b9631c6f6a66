//! Checks of latscope's knowledge of the machine that it runs on.

use super::{ALL, Check, Kernel, REAL_TIME};
use anyhow::{Context, Result, ensure};

pub const CHECKS: &[Check] = &[
    Check::new("the kernel is a real-time kernel", REAL_TIME, "cat /sys/kernel/realtime", |ran| {
        ran.prints("1")
    }),
    Check::new("the kernel is 6.12", &[Kernel::Rt612], "uname -r", |ran| ran.says("6.12.")),
    Check::new("latscope lists its probes", ALL, "latscope list", |ran| ran.says("wake.timer")),
    Check::new("latscope doctor finds the emulator", ALL, "latscope doctor", |ran| {
        ran.says("TCG (emulated)")
    }),
    Check::new("latscope doctor finds PREEMPT_RT", REAL_TIME, "latscope doctor", |ran| {
        ran.says("PREEMPT_RT")
    }),
    Check::new("latscope doctor reads the preemption model", &[Kernel::Std], "latscope doctor", |ran| {
        ran.says("voluntary, says /sys/kernel/debug/sched/preempt")
    }),
    Check::new("latscope doctor finds the fair server", &[Kernel::Rt612], "latscope doctor", |ran| {
        ran.says("ordinary threads get 50.0 ms in each 1.00 s")
    }),
    Check::new("latscope doctor finds no lockdown", ALL, "latscope doctor", |ran| {
        ran.says("lockdown                off")
    }),
    Check::new("latscope doctor can trace", ALL, "latscope doctor", |ran| {
        ran.says("a trace instance can be made")
    }),
    Check::new(
        "a result says that it is emulated",
        ALL,
        "latscope survey --quick --only syscall.getppid --json -",
        |ran| ran.measured("syscall.getppid"),
    ),
    Check::new("the kernel's clock needs no system call", ALL, CLOCK, |ran| ran.prints("tsc")),
    Check::new("a failure comes out", ALL, "latscope doctor --nonsense", |ran| ran.complains("--nonsense"))
        .exits(1),
    Check::new("a file comes out", ALL, "echo text >file", |ran| file(&ran.files.join("file"))),
];

const CLOCK: &str = "cat /sys/devices/system/clocksource/clocksource0/current_clocksource";

fn file(path: &std::path::Path) -> Result<()> {
    let text = std::fs::read_to_string(path).context("no file")?;
    ensure!(text == "text\n", "{text:?}");
    Ok(())
}
