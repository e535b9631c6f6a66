//! All pictures of a report, each with a stable name: that of its file.

use super::{
    CurvePlot, Drawing, NamedDrawing, bars, by_parameter, distribution_figure, heat_map, latency_figure,
    percentile_figure, spikes, throughput_figure, time,
};
use crate::headline::families;
use crate::rows::family as family_of;
use latscope_core::catalogue::{ProbeCatalogue, families};
use latscope_core::events::{ProbeEventGroup, event_groups};
use latscope_core::report::Report;

/// The pictures of a family as a whole.
pub fn of_family(report: &Report, family: &str, catalogue: &ProbeCatalogue) -> Vec<NamedDrawing> {
    let first = match family {
        families::MEMORY => latency_figure(report).map(|figure| ("memory-latency", figure)),
        families::IPC => throughput_figure(report).map(|figure| ("ipc-time-by-payload", figure)),
        _ => None,
    };
    let first = first.map(|(id, figure)| NamedDrawing::new(family, id, Drawing::Curves(figure)));
    let curves = by_parameter::parameter_figures(report, family, catalogue).into_iter();
    let rows =
        bars::bar_figures(report, family, catalogue).into_iter().chain(bars::deadlines(report, family));
    first.into_iter().chain(curves).chain(rows).chain(heat_map::heat_maps(report, family)).collect()
}

fn distribution(report: &Report, group: &ProbeEventGroup) -> Option<NamedDrawing> {
    distribution_figure(report, group).map(|figure| of_group(group, "distribution", Drawing::Curves(figure)))
}

fn of_group(group: &ProbeEventGroup, what: &str, drawing: Drawing) -> NamedDrawing {
    NamedDrawing::new(family_of(group.probe), &format!("{}-{what}", group.probe), drawing)
}

/// The pictures of the events of a probe.
pub fn of_events(report: &Report, group: &ProbeEventGroup) -> Vec<NamedDrawing> {
    let curves = |what: &str, figure: CurvePlot| of_group(group, what, Drawing::Curves(figure));
    let percentiles = percentile_figure(report, group).map(|figure| curves("percentiles", figure));
    let first = [distribution(report, group), percentiles];
    let over_time =
        time::time_figures(report, group).into_iter().map(|figure| Some(curves("over-time", figure)));
    let causes =
        spikes::spike_figure(report, group).map(|rows| of_group(group, "causes", Drawing::Rows(rows)));
    first.into_iter().chain(over_time).chain([causes]).flatten().collect()
}

/// Returns the pictures of a report in the order of its families, each with a name of its own: the pictures of
/// its page and, for families that also have batches, the distribution of each probe whose single events were
/// timed.
pub fn pictures(report: &Report, catalogue: &ProbeCatalogue) -> Vec<NamedDrawing> {
    let groups = event_groups(report);
    let mut all: Vec<NamedDrawing> = Vec::new();
    for family in families(report.measurements.iter().map(|m| &m.probe)) {
        all.extend(of_family(report, family, catalogue));
        let ours = groups.iter().filter(|group| family_of(group.probe) == family);
        all.extend(ours.flat_map(|group| match catalogue.has_single_events(family) {
            true => of_events(report, group),
            false => distribution(report, group).into_iter().collect(),
        }));
    }
    for at in 1..all.len() {
        let (before, rest) = all.split_at_mut(at);
        let taken = |id: &str| before.iter().any(|known| known.id == id);
        let id = rest[0].id.clone();
        let more = (2..).map(|number| format!("{id}-{number}"));
        rest[0].id = std::iter::once(id.clone()).chain(more).find(|id| !taken(id)).unwrap_or_default();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    #[test]
    fn every_picture_has_a_name_of_its_own() {
        let mut report = fixture::report();
        report.measurements.extend(fixture::wake().measurements);
        report.measurements.extend(fixture::ipc::throughput().measurements);
        let mut ids: Vec<String> =
            pictures(&report, crate::golden::catalogue()).into_iter().map(|picture| picture.id).collect();
        let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(ids.iter().all(|id| id.chars().all(safe)), "{ids:?}");
        for known in ["memory-latency", "wake-timer-distribution", "ipc-throughput", "file-by-size-tmpfs"] {
            assert!(ids.iter().any(|id| id == known), "{known}: {ids:?}");
        }
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
