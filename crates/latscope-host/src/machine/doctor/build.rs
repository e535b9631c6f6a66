//! How the kernel and the system were built.

use super::{Context, bad, good, note, unknown};
use latscope_core::machine::{Check, EVERY_FAMILY};
use std::fs;

/// What makes locks, preemption or every access to memory slower
/// (lib/Kconfig.debug, lib/Kconfig.kasan).
const SLOW: [&str; 12] = [
    "DEBUG_PREEMPT",
    "DEBUG_SPINLOCK",
    "DEBUG_MUTEXES",
    "DEBUG_RT_MUTEXES",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_ATOMIC_SLEEP",
    "LOCKDEP",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "KASAN",
    "KCSAN",
    "KMSAN",
];

/// Debug options of the kernel.
pub(super) fn kernel_debugging(context: &Context) -> Check {
    let id = "kernel-debugging";
    let Some((text, file)) = configuration(context) else {
        return unknown(id, "neither /proc/config.gz nor /boot/config-* says so");
    };
    let on: Vec<&str> = SLOW.into_iter().filter(|option| is_set(&text, option)).collect();
    if on.is_empty() {
        return good(id, format!("none that slows the kernel down, says {file}"));
    }
    Check {
        remedy: Some("run a kernel without them".to_owned()),
        ..bad(id, format!("{} slow the kernel down, says {file}", on.join(", ")), EVERY_FAMILY)
    }
}

fn is_set(text: &str, option: &str) -> bool {
    text.lines()
        .any(|line| line.strip_prefix("CONFIG_").and_then(|line| line.strip_suffix("=y")) == Some(option))
}

/// The kernel's configuration, and where it stands.
fn configuration(context: &Context) -> Option<(String, String)> {
    if let Some(text) = fs::read(context.root.path("/proc/config.gz")).ok().and_then(|bytes| unpacked(&bytes))
    {
        return Some((text, "/proc/config.gz".to_owned()));
    }
    let release = &context.machine.kernel;
    let files = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    files.into_iter().find_map(|file| Some((context.root.text(&file)?, file)))
}

/// No configuration is larger.
const LARGEST: usize = 4 << 20;

/// The text in a file of gzip (RFC 1952) as the kernel makes it: a header of 10
/// bytes without extras, the stream, 8 bytes of sums.
fn unpacked(file: &[u8]) -> Option<String> {
    let [0x1f, 0x8b, 8, flags, ..] = *file else { return None };
    let name = if flags & 8 == 0 { 0 } else { file.get(10..)?.iter().position(|byte| *byte == 0)? + 1 };
    let stream = file.get(10 + name..).filter(|_| flags & !8 == 0)?;
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(stream, LARGEST).ok()?;
    String::from_utf8(bytes).ok()
}

/// The build type of an Android: `ro.build.type`.
pub(super) fn android(context: &Context) -> Check {
    let id = "android-build";
    let files = ["/system/build.prop", "/vendor/build.prop", "/default.prop"];
    let Some(text) = files.iter().find_map(|file| context.root.text(file)) else {
        return context.absent(id, "/proc/self", "not an Android");
    };
    let kind = text.lines().find_map(|line| line.strip_prefix("ro.build.type="));
    match kind.map(str::trim) {
        None => unknown(id, "an Android that does not state its build type"),
        Some(kind @ ("user" | "userdebug")) => good(id, kind),
        Some(kind) => Check {
            remedy: Some("measure a user or userdebug build".to_owned()),
            ..note(id, format!("{kind}: checks that a build for users does not have cost time"), EVERY_FAMILY)
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `echo CONFIG_KASAN=y | gzip -n`.
    const SMALL: [u8; 35] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 115, 246, 247, 115, 243, 116, 143, 247, 118, 12, 118, 244, 179, 173,
        228, 2, 0, 65, 178, 151, 207, 15, 0, 0, 0,
    ];

    #[test]
    fn a_compressed_configuration_is_read_and_others_are_refused() {
        assert_eq!(unpacked(&SMALL).as_deref(), Some("CONFIG_KASAN=y\n"));
        assert_eq!(unpacked(&SMALL[..20]), None);
        assert_eq!(unpacked(b"CONFIG_KASAN=y"), None);
        let mut odd = SMALL;
        odd[3] = 4;
        assert_eq!(unpacked(&odd), None);
    }

    #[test]
    fn an_option_is_set_by_its_whole_name() {
        let text = "CONFIG_HAVE_ARCH_KASAN=y\n# CONFIG_KASAN is not set\nCONFIG_LOCKDEP=y\nCONFIG_KCSAN=m\n";
        let on: Vec<&str> = SLOW.into_iter().filter(|option| is_set(text, option)).collect();
        assert_eq!(on, ["LOCKDEP"]);
    }
}
