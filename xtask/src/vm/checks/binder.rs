//! Android's binder, as Debian builds it: a module, without binderfs.

use super::{ALL, Check};

pub const CHECKS: &[Check] = &[
    Check::new("binder is loaded", ALL, "cat /proc/modules", |ran| ran.says("binder_linux")),
    Check::new("binder has its three devices", ALL, "cd /dev && ls -1 binder hwbinder vndbinder", |ran| {
        ran.prints("binder\nhwbinder\nvndbinder")
    }),
];
