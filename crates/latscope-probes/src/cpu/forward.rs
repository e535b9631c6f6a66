//! Loads right behind a store: forwarded, blocked, or delayed by a store that only looks alike.

use crate::prelude::*;
use latscope_os::kernels::forward::{PAIRS_PER_ITERATION, Store, store_and_load};

settings! {
    /// A store and the load behind it.
    struct StoreForwardSettings, requested as StoreForwardRequest {
        /// Place of the load: that of the store (`hit`), where a store of one byte precedes (`blocked`), 4 KiB behind
        /// it (`aliased`), or elsewhere (`apart`)
        mode: StoreLoadOverlap;
        /// Address of the store, where it is not known long before: `late` comes from the load before, as that of the
        /// load does
        address: Option<StoreAddressTiming>;
    }
}

words! {
    /// Address of a store that is not known long before the load.
    enum StoreAddressTiming {
        /// From the load before, as the address of the load.
        Late = "late",
    }
}

words! {
    /// Place of the load, by that of the store.
    enum StoreLoadOverlap {
        /// The place of the store.
        Hit = "hit",
        /// The 8 bytes around a store of one byte.
        Blocked = "blocked",
        /// 4 KiB behind the store.
        Aliased = "aliased",
        /// Another place.
        Apart = "apart",
    }
}

probes! {
    EXPERIMENT, StoreForwardSettings, plan_forwarding, ..crate::ProbeFacts::LOOPS;
    FORWARD "cpu.store-forward", "load behind a store",
        "the processor's optimisation manual: store forwarding, 4 KiB aliasing",
        "One store and one load of 8 bytes; the store's value and the load's address come from the load before. \
        Mode hit: the same place. Mode blocked: 1 byte is stored, the 8 bytes around it are loaded. Mode \
        aliased: 4 KiB behind it. Mode apart: another place. Address late: the store's address comes from the \
        load before, too.";
}

static EXPERIMENT: Experiment =
    Experiment::new("cpu.store-forward", Cpus::One, run_forwarding).first_rounds();

fn plan_forwarding(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = StoreForwardRequest::of(input);
    let modes = asked.mode.or(if input.survey { &StoreLoadOverlap::ALL[..2] } else { StoreLoadOverlap::ALL });
    let addresses = match (asked.address.given(), input.survey) {
        (true, _) => asked.address.or(&[]).into_iter().map(Some).collect(),
        (false, true) => vec![None],
        (false, false) => vec![None, Some(StoreAddressTiming::Late)],
    };
    let mut points = Vec::new();
    for address in addresses {
        for mode in modes.iter().copied() {
            let late = if address.is_some() { ", its address known late" } else { "" };
            points.push(probe.make_point(
                StoreForwardSettings { mode, address },
                format!("{}{late}", mode.point_title()),
                true,
            ));
        }
    }
    points
}

/// Words of memory in which all places lie.
const WORDS: usize = 8192 / size_of::<u64>();

impl StoreLoadOverlap {
    fn point_title(self) -> &'static str {
        match self {
            StoreLoadOverlap::Hit => "load of what was just stored",
            StoreLoadOverlap::Blocked => "load of more than was just stored",
            StoreLoadOverlap::Aliased => "load 4 KiB behind a store",
            StoreLoadOverlap::Apart => "load apart from a store",
        }
    }

    /// Distance of the load from the store, bytes.
    fn distance_bytes(self) -> usize {
        match self {
            StoreLoadOverlap::Hit | StoreLoadOverlap::Blocked => 0,
            StoreLoadOverlap::Aliased => 4096,
            StoreLoadOverlap::Apart => 4096 + 2048,
        }
    }
}

fn run_forwarding(bench: &mut Bench) -> Result<()> {
    let mut words = vec![0_u64; WORDS];
    for (index, StoreForwardSettings { mode, address }) in
        bench.settings::<StoreForwardSettings>()?.into_iter().enumerate()
    {
        let batch = Batch { ops: PAIRS_PER_ITERATION, cycles: true, ..Batch::default() };
        let store = Store { narrow: mode == StoreLoadOverlap::Blocked, late: address.is_some() };
        bench.batch(index, batch, |n| store_and_load(&mut words, mode.distance_bytes(), store, n));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness::{check, input, machine, measure, points};

    #[test]
    fn every_place_of_the_load_is_measured_and_a_survey_has_two() {
        assert_eq!(points(&FORWARD).len(), 2);
        let all = FORWARD.plan(&PlanInput { survey: false, ..input() }, &machine());
        let measured = measure(&EXPERIMENT, all);
        assert_eq!(measured.len(), 8);
        assert!(measured[..4].iter().all(|m| !m.params.contains_key("address")));
        assert!(measured[4..].iter().all(|m| m.has_param_value("address", "late")));
        measured.iter().for_each(check);
    }
}
