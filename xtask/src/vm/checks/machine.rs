//! Checks of latscope's knowledge of the machine that it runs on.

use super::{ALL, REAL_TIME, VmCheck, VmKernel};
use anyhow::{Context, Result, ensure};

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("the kernel is a real-time kernel", REAL_TIME, "cat /sys/kernel/realtime", |ran| {
        ran.prints("1")
    }),
    VmCheck::new("the kernel is 6.12", &[VmKernel::Rt612], "uname -r", |ran| ran.check_stdout("6.12.")),
    VmCheck::new("latscope lists its probes", ALL, "latscope list", |ran| ran.check_stdout("wake.timer")),
    VmCheck::new("latscope doctor finds the emulator", ALL, "latscope doctor", |ran| {
        ran.check_stdout("TCG (emulated)")
    }),
    VmCheck::new("latscope doctor finds PREEMPT_RT", REAL_TIME, "latscope doctor", |ran| {
        ran.check_stdout("PREEMPT_RT")
    }),
    VmCheck::new("latscope doctor reads the preemption model", &[VmKernel::Std], "latscope doctor", |ran| {
        ran.check_stdout("voluntary, says /sys/kernel/debug/sched/preempt")
    }),
    VmCheck::new("latscope doctor finds the fair server", &[VmKernel::Rt612], "latscope doctor", |ran| {
        ran.check_stdout("ordinary threads get 50.0 ms in each 1.00 s")
    }),
    VmCheck::new("latscope doctor finds no lockdown", ALL, "latscope doctor", |ran| {
        ran.check_stdout("lockdown                off")
    }),
    VmCheck::new("latscope doctor can trace", ALL, "latscope doctor", |ran| {
        ran.check_stdout("a trace instance can be made")
    }),
    VmCheck::new(
        "a result says that it is emulated",
        ALL,
        "latscope survey --quick --only syscall.getppid --json -",
        |ran| ran.check_measured("syscall.getppid"),
    ),
    VmCheck::new("the kernel's clock needs no system call", ALL, CLOCK, |ran| ran.prints("tsc")),
    VmCheck::new("a failure comes out", ALL, "latscope doctor --nonsense", |ran| ran.complains("--nonsense"))
        .exits(1),
    VmCheck::new("a file comes out", ALL, "echo text >file", |ran| check_file(&ran.files.join("file"))),
];

const CLOCK: &str = "cat /sys/devices/system/clocksource/clocksource0/current_clocksource";

fn check_file(path: &std::path::Path) -> Result<()> {
    let text = std::fs::read_to_string(path).context("no file")?;
    ensure!(text == "text\n", "{text:?}");
    Ok(())
}
