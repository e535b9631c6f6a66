//! Checks of Android's binder, as Debian builds it: a module, without binderfs.
//!
//! Checks that need processes of their own are in `binder_trials`, an example of the command, which fails if anything
//! is wrong.

use super::{ALL, VmCheck};

pub const CHECKS: &[VmCheck] = &[
    VmCheck::new("binder is loaded", ALL, "cat /proc/modules", |ran| ran.check_stdout("binder_linux")),
    VmCheck::new("binder has its three devices", ALL, "cd /dev && ls -1 binder hwbinder vndbinder", |ran| {
        ran.prints("binder\nhwbinder\nvndbinder")
    }),
    VmCheck::new("binder carries every size there and back", ALL, "binder_trials echo", |ran| {
        ran.check_stdout("done: echo")
    }),
    VmCheck::new("binder carries one way, and loses nothing", ALL, "binder_trials one-way", |ran| {
        ran.check_stdout("done: one-way")
    }),
    VmCheck::new("pairs share a binder device", ALL, "binder_trials pairs", |ran| {
        ran.check_stdout("done: pairs")
    }),
    VmCheck::new("threads share a binder client", ALL, "binder_trials threads", |ran| {
        ran.check_stdout("done: threads")
    }),
    VmCheck::new("binder's buffer does not fill", ALL, "taskset 1 binder_trials steady-binder", |ran| {
        ran.check_stdout("done: steady-binder")
    }),
    VmCheck::new("hwbinder's buffer does not fill", ALL, "taskset 1 binder_trials steady-hwbinder", |ran| {
        ran.check_stdout("done: steady-hwbinder")
    }),
    VmCheck::new("a binder client makes one call a transaction", ALL, "binder_trials system-calls", |ran| {
        ran.check_stdout("hwbinder client: 1000 ioctl, ")
    }),
    VmCheck::new(
        "only the client refers to a binder server's node",
        ALL,
        "binder_trials references",
        |ran| ran.check_stdout("done: references"),
    ),
    VmCheck::new("binder calls survive signals", ALL, "binder_trials storm", |ran| {
        ran.check_stdout("done: storm")
    }),
    VmCheck::new("a killed binder server is reported", ALL, "binder_trials server-killed", |ran| {
        ran.check_stdout("hwbinder: gone")
    }),
    VmCheck::new("a binder server ends with its client", ALL, "binder_trials client-killed", |ran| {
        ran.check_stdout("hwbinder: server exit status: 0")
    }),
    VmCheck::new(
        "a binder server that died early is reported",
        ALL,
        "binder_trials server-died-early",
        |ran| ran.check_stdout("done: server-died-early"),
    ),
    VmCheck::new("a frozen binder server is reported", ALL, "binder_trials frozen", |ran| {
        ran.check_stdout("hwbinder: the receiver is frozen (BR_FROZEN_REPLY)")
    }),
    VmCheck::new("a full one-way queue is reported", ALL, "binder_trials queue-full", |ran| {
        ran.check_stdout("no room in the receiver's binder buffer (BR_FAILED_REPLY, ENOSPC)")
    }),
    VmCheck::new("a payload over the limit is refused", ALL, "binder_trials too-long", |ran| {
        ran.check_stdout("done: too-long")
    }),
    VmCheck::new("a client that frees nothing fills its buffer", ALL, "binder_trials exhausted", |ran| {
        ran.check_stdout("512 replies kept in 4096 bytes, then ")
    }),
    VmCheck::new("what no binder buffer holds is reported", ALL, "binder_trials over-the-buffer", |ran| {
        ran.check_stdout("No space left on device")
    }),
    VmCheck::new("the kernel speaks binder's protocol 8", ALL, "binder_trials protocol", |ran| {
        ran.check_stdout("protocol 8")
    }),
    VmCheck::new("a second context manager names the first", ALL, "binder_trials taken", |ran| {
        ran.check_stdout("/dev/binder has a context manager: binder_trials (process ")
    }),
    VmCheck::new("another user of binder gets the reason", ALL, "binder_trials other-user", |ran| {
        ran.check_stdout(
            "/dev/vndbinder had a context manager of another user, which the driver does not forget",
        )
    }),
    VmCheck::new("a refused mapping is reported", ALL, "binder_trials no-memory", |ran| {
        ran.check_stdout("1016 KiB of /dev/binder cannot be mapped: ")
    }),
    VmCheck::new("what others serve can be pinged", ALL, "binder_trials service", |ran| {
        ran.check_stdout("/dev/binder has no context manager, so nothing is registered")
    }),
    VmCheck::new("binder inherits nice values and no more", ALL, "binder_trials inheritance", |ran| {
        ran.check_stdout("hwbinder: nice -5: policy 0 priority 0 nice -5")?;
        ran.check_stdout("hwbinder: fifo 99: policy 0 priority 0 nice 0")?;
        ran.check_stdout("hwbinder: the server waits with nice 0")
    }),
    VmCheck::new(
        "the device asked for is used, and stated",
        ALL,
        "latscope ipc -t hwbinder --device /dev/vndbinder --count 500 --json - --quiet",
        |ran| ran.check_stdout(r#""device":"/dev/vndbinder""#),
    ),
    VmCheck::new(
        "a device that is not there is refused",
        ALL,
        "latscope ipc --device /dev/none --count 5",
        |ran| ran.check_stdout("there is no /dev/none"),
    )
    .exits(1),
];
