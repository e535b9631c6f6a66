//! Checks of the build options of the kernel and of the system.

use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use crate::root::SystemRoot;
use latscope_core::catalogue::Condition;
use std::fs;

/// Options that make locks, preemption or every access to memory slower (lib/Kconfig.debug, lib/Kconfig.kasan).
const SLOW: [&str; 12] = [
    "DEBUG_PREEMPT", "DEBUG_SPINLOCK", "DEBUG_MUTEXES", "DEBUG_RT_MUTEXES", "DEBUG_LOCK_ALLOC",
    "DEBUG_ATOMIC_SLEEP", "LOCKDEP", "PROVE_LOCKING", "PROVE_RCU", "KASAN", "KCSAN", "KMSAN",
];

/// Checks the debug options of the kernel.
pub(super) fn kernel_debugging(context: &DoctorContext) -> DoctorFinding {
    let Some(configuration) = context.configuration() else {
        return unknown_finding(NO_CONFIGURATION);
    };
    let file = &configuration.file;
    let on: Vec<&str> = SLOW.into_iter().filter(|option| configuration.is_set(option)).collect();
    if on.is_empty() {
        return good(format!("none that slows the kernel down, says {file}"));
    }
    bad(format!("{} slow the kernel down, says {file}", on.join(", ")), Condition::Speed)
        .with_remedy("run a kernel without them".to_owned())
}

/// Reason why the kernel's configuration is not known.
pub(super) const NO_CONFIGURATION: &str = "neither /proc/config.gz nor /boot/config-* says so";

/// Configuration of the kernel.
pub(super) struct Configuration {
    text: String,
    /// File with the configuration.
    pub file: String,
}

impl Configuration {
    /// Reads the configuration of the kernel of this release.
    pub fn read(root: &SystemRoot, release: &str) -> Option<Configuration> {
        let packed = fs::read(root.path("/proc/config.gz")).ok();
        if let Some(text) = packed.and_then(|bytes| unpack_gzip(&bytes)) {
            return Some(Configuration { text, file: "/proc/config.gz".to_owned() });
        }
        let files = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
        files.into_iter().find_map(|file| Some(Configuration { text: root.read_text(&file)?, file }))
    }

    /// Returns true if an option is built in.
    pub fn is_set(&self, option: &str) -> bool {
        self.option_value(option) == Some("y")
    }

    /// The value of an option; `None` if it is not set.
    pub fn option_value(&self, option: &str) -> Option<&str> {
        // Each start of a run looks up dozens of options: a search in the whole text is faster than line by line.
        let line = format!("CONFIG_{option}=");
        let begins = |at: &usize| *at == 0 || self.text.as_bytes()[at - 1] == b'\n';
        let at = self.text.match_indices(&line).map(|(at, _)| at).find(begins)?;
        self.text[at + line.len()..].lines().next()
    }
}

/// Upper bound of the size of a configuration, in bytes.
const LARGEST: usize = 4 << 20;

/// The text in a file of gzip (RFC 1952) as the kernel makes it: a header of 10
/// bytes without extras, the stream, 8 bytes of sums.
fn unpack_gzip(file: &[u8]) -> Option<String> {
    let [0x1f, 0x8b, 8, flags, ..] = *file else { return None };
    let name = if flags & 8 == 0 { 0 } else { file.get(10..)?.iter().position(|byte| *byte == 0)? + 1 };
    let stream = file.get(10 + name..).filter(|_| flags & !8 == 0)?;
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(stream, LARGEST).ok()?;
    String::from_utf8(bytes).ok()
}

/// Checks the build type of an Android: `ro.build.type`.
pub(super) fn android(context: &DoctorContext) -> DoctorFinding {
    let files = ["/system/build.prop", "/vendor/build.prop", "/default.prop"];
    let Some(text) = files.iter().find_map(|file| context.root.read_text(file)) else {
        return context.missing_knob("/proc/self", "not an Android");
    };
    let kind = text.lines().find_map(|line| line.strip_prefix("ro.build.type="));
    match kind.map(str::trim) {
        None => unknown_finding("an Android that does not state its build type"),
        Some(kind @ ("user" | "userdebug")) => good(kind),
        Some(kind) => note_finding(
            format!("{kind}: checks that a build for users does not have cost time"),
            Condition::Speed,
        )
        .with_remedy("measure a user or userdebug build".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `echo CONFIG_KASAN=y | gzip -n`.
    const SMALL: [u8; 35] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 115, 246, 247, 115, 243, 116, 143, 247, 118, 12, 118, 244, 179, 173,
        228, 2, 0, 65, 178, 151, 207, 15, 0, 0, 0,
    ];

    #[test]
    fn a_compressed_configuration_is_read_and_others_are_refused() {
        assert_eq!(unpack_gzip(&SMALL).as_deref(), Some("CONFIG_KASAN=y\n"));
        assert_eq!(unpack_gzip(&SMALL[..20]), None);
        assert_eq!(unpack_gzip(b"CONFIG_KASAN=y"), None);
        let mut odd = SMALL;
        odd[3] = 4;
        assert_eq!(unpack_gzip(&odd), None);
    }

    #[test]
    fn an_option_is_set_by_its_whole_name() {
        let text = "CONFIG_HAVE_ARCH_KASAN=y\n# CONFIG_KASAN is not set\nCONFIG_LOCKDEP=y\nCONFIG_KCSAN=m\n";
        let configuration = Configuration { text: text.to_owned(), file: String::new() };
        let on: Vec<&str> = SLOW.into_iter().filter(|option| configuration.is_set(option)).collect();
        assert_eq!(on, ["LOCKDEP"]);
        assert_eq!(configuration.option_value("KCSAN"), Some("m"));
        assert_eq!(configuration.option_value("KASAN"), None);
    }
}
