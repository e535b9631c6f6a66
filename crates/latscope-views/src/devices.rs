//! Reference devices: machines whose published latencies have a column in every table.

use latscope_core::plan::Params;
use latscope_judge::references::{Reference, built_in};
use std::sync::LazyLock;

/// A machine with a column of its own.
#[derive(Debug, Clone)]
pub(crate) struct ReferenceDevice {
    /// Full name of the device.
    pub name: &'static str,
    /// Heading of its column.
    pub short: &'static str,
}

/// All devices, in the order of their columns.
pub(crate) static DEVICES: LazyLock<Vec<ReferenceDevice>> = LazyLock::new(|| {
    let mut devices: Vec<ReferenceDevice> = built_in().iter().filter_map(device).collect();
    devices.sort_by_key(|device| device.name);
    devices.dedup_by_key(|device| device.name);
    devices
});

fn device(reference: &'static Reference) -> Option<ReferenceDevice> {
    Some(ReferenceDevice { name: &reference.machine, short: reference.column.as_deref()? })
}

impl ReferenceDevice {
    fn references(&self) -> impl Iterator<Item = &'static Reference> {
        let name = self.name;
        built_in().iter().filter(move |one| one.column.is_some() && one.machine == name)
    }

    /// Returns the device's number for a cache level or memory. `name` is the name in the findings: `L1`, `L2`,
    /// …, `memory`.
    pub(crate) fn for_level(&self, name: &str) -> Option<&'static Reference> {
        self.references().find(|one| one.definition.row.is_level(name))
    }

    /// Returns the device's number for a measurement of `probe` with `params`.
    pub(crate) fn for_probe(&self, probe: &str, params: &Params) -> Option<&'static Reference> {
        self.references().find(|one| one.definition.row.is_point(probe, params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;

    #[test]
    fn columns_are_in_the_order_of_the_table() {
        let shorts: Vec<&str> = DEVICES.iter().map(|device| device.short).collect();
        assert_eq!(shorts, ["2012", "5s", "6s+", "X"]);
    }

    #[test]
    fn levels_are_found_by_name() {
        let level = |name: &str| DEVICES[3].for_level(name).map(|one| one.ns);
        assert_eq!((level("L1"), level("memory")), (Some(2.0), Some(146.0)));
        assert_eq!((level("L3"), level("TLB")), (None, None));
    }

    #[test]
    fn a_phone_semaphore_is_half_a_round_trip_and_the_mutex_is_something_else() {
        let placement = params([("placement", "same-core".into())]);
        let phone = DEVICES[1].for_probe("sync.semaphore", &placement).unwrap();
        assert_eq!((phone.ns, phone.definition.factor, phone.definition.differs.as_str()), (8e3, 2.0, ""));
        let classic = DEVICES[0].for_probe("sync.semaphore", &placement).unwrap();
        assert!(classic.ns == 25.0 && !classic.definition.differs.is_empty());
        let mutex = DEVICES[0].for_probe("sync.mutex", &Params::new()).unwrap();
        assert!(mutex.definition.differs.is_empty());
        assert_eq!(DEVICES[1].for_probe("sync.mutex", &Params::new()), None);
    }

    #[test]
    fn parameters_decide_which_number_fits() {
        let read = |size: u64, mode: &str| params([("size", size.into()), ("mode", mode.into())]);
        let classic = |params: &Params| {
            DEVICES[0].for_probe("file.read", params).map(|one| (one.ns, one.definition.differs.is_empty()))
        };
        assert_eq!(classic(&read(4096, "kept-open")), Some((150e3, false)));
        assert_eq!(classic(&read(8192, "kept-open")), None);
        assert_eq!(classic(&read(1 << 20, "open-close")), Some((1e6, false)));
        assert_eq!(DEVICES[3].for_probe("file.read", &read(1, "open-close")), None);
        let branch = |mode: &str| DEVICES[0].for_probe("cpu.branch", &params([("mode", mode.into())]));
        assert!(branch("mispredicted").is_some() && branch("predicted").is_none());
    }
}
