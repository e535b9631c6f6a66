//! Names of the families that views and findings are about, as [`ids`](super::ids) has the probes.
//!
//! A test of the command compares them with the registry.

macro_rules! families {
    ($($name:ident = $family:literal;)+) => {
        $(
            #[doc = concat!("Name of the family `", $family, "`.")]
            pub const $name: &str = $family;
        )+

        /// Returns every name of this module.
        pub fn all() -> impl Iterator<Item = &'static str> {
            [$($family),+].into_iter()
        }
    };
}

families! {
    MEMORY = "memory";
    FILE = "file";
    NOISE = "noise";
    WAKE = "wake";
    IPC = "ipc";
    REMOTE = "remote";
}

/// Returns the family of a probe: the part of its id before the dot.
pub fn of_probe(probe: &str) -> &str {
    probe.split_once('.').map_or(probe, |(family, _)| family)
}
