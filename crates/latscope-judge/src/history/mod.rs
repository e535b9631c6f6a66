//! Histories of machines: a series for each point of each machine, the changes in it, and the facts that changed with
//! them.
//!
//! The run is the unit. docs/history.md has the method.

mod archive;
mod energy;
mod false_changes;
mod found;
mod nulls;
mod place;
mod series;
mod steps;

pub use archive::{Archive, ArchivePointFigures, ArchiveRun, ArchiveTailCounts, ArchiveWork, ArchiveWriter};
pub use energy::{LEAST, SHORTEST, runs_for_one};
pub use false_changes::FALSE_CHANGES;
pub use found::{
    Change, ChangedFact, Drift, History, HistoryFigureKind, HistoryRun, MachineHistory, Moved, Odd,
    PointHistory, SCHEMA, Smaller,
};
pub use series::detect;

pub use crate::compare::ComparisonOptions;
use crate::compare::is_wanted;
use found::NamedArchiveRun;
use std::collections::BTreeMap;

/// The history of each machine of the named runs, which may be in any order but without duplicates.
pub fn history(archive: &Archive, runs: &[(&str, &ArchiveRun)], options: &ComparisonOptions) -> History {
    let mut by_machine: BTreeMap<&str, Vec<NamedArchiveRun>> = BTreeMap::new();
    for (name, entry) in runs {
        by_machine.entry(&entry.machine).or_default().push(NamedArchiveRun { name, entry });
    }
    let machines = by_machine.into_values().map(|mut runs| {
        // Times are RFC 3339 in UTC, which sort as text.
        runs.sort_by(|a, b| (&a.entry.started, a.name).cmp(&(&b.entry.started, b.name)));
        analyse_machine(archive, &runs, options)
    });
    let machines = machines.collect();
    History {
        schema: SCHEMA,
        margin: options.same,
        tail_margin: crate::compare::TAIL_MARGIN,
        remarks: Vec::new(),
        machines,
    }
}

fn analyse_machine(
    archive: &Archive,
    runs: &[NamedArchiveRun],
    options: &ComparisonOptions,
) -> MachineHistory {
    let wanted: Vec<bool> = archive.works.iter().map(|work| is_wanted(&work.probe, &options.only)).collect();
    let series = series::of_machine(archive, runs, &wanted);
    let judged = series::judge_series(&series, options);
    place::assemble_history(archive, runs, &series, judged, options)
}
