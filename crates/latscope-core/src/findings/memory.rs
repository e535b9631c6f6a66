//! Caches, memory and address translation.

use super::finding;
use super::select::{is, is_slower, listed, measured, number, times, typical};
use crate::levels::{Agreement, Level, LevelMatch, detect, match_declared, plateaus};
use crate::report::{Finding, Measurement, Report, Support};
use crate::statistics::median;
use crate::units::{format_size, format_time};

/// Two sizes this close, in octaves, are compared as the same.
const SAME_SIZE: f64 = 0.3;

/// A row for one level of the memory hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelRow {
    /// `L1`, `L2`, `L3`, … or `memory`.
    pub name: String,
    /// Median latency over the interior of the level, ns.
    pub ns: f64,
    /// The same in core cycles, where they were measured.
    pub cycles: Option<f64>,
    /// Median of the points' 10 % quantiles, ns.
    pub p10: Option<f64>,
    /// Median of the points' 90 % quantiles, ns.
    pub p90: Option<f64>,
    /// Declared capacity, bytes.
    pub declared: Option<u64>,
    /// Bytes up to which the level serves; `None` for memory. The declared
    /// ones where the measurement agrees, for they are exact; else those found,
    /// to two digits, for no more are known.
    pub capacity: Option<u64>,
    /// The capacity as measured, bytes.
    pub measured: Option<u64>,
    /// How the two compare.
    pub agreement: Agreement,
}

/// The levels that the random pointer chase shows, fastest first: on 2 MiB
/// pages where those could be had, else on 4 KiB pages. Empty without one.
pub fn level_rows(report: &Report) -> Vec<LevelRow> {
    let Some(chase) = Chase::of(report) else { return Vec::new() };
    chase.matches.iter().filter_map(|m| chase.row(m)).collect()
}

/// The chase that levels are read from.
struct Chase<'a> {
    points: Vec<&'a Measurement>,
    pages: &'static str,
    levels: Vec<Level>,
    matches: Vec<LevelMatch>,
}

impl<'a> Chase<'a> {
    fn of(report: &'a Report) -> Option<Self> {
        // One size is a figure, no curve: it has no levels.
        let (pages, points) = ["2MiB", "4KiB"]
            .map(|pages| (pages, chases(report, "random", pages)))
            .into_iter()
            .find(|(_, points)| points.len() > 1)?;
        // The lower quantile: what disturbs a load only ever makes it slower.
        let low = |m: &Measurement| m.summary.p10.unwrap_or_else(|| typical(m));
        let curve: Vec<(u64, f64)> =
            points.iter().filter_map(|m| number(m, "size").map(|size| (size, low(m)))).collect();
        let levels = detect(&curve);
        let matches = match_declared(&levels, &report.machine);
        Some(Chase { points, pages, levels, matches })
    }

    /// The figures of a level, from the points of its interior.
    fn row(&self, found: &LevelMatch) -> Option<LevelRow> {
        let level = found.level.as_ref()?;
        let within = |m: &&&Measurement| {
            number(m, "size").is_some_and(|size| (level.from_size..=level.to_size).contains(&size))
        };
        let members: Vec<&Measurement> = self.points.iter().filter(within).copied().collect();
        let trim = members.len() / 4;
        let interior = &members[trim..members.len() - trim];
        let typical_of = |figure: fn(&Measurement) -> Option<f64>| {
            median(&interior.iter().filter_map(|m| figure(m)).collect::<Vec<f64>>())
        };
        Some(LevelRow {
            name: found.name.clone(),
            ns: typical_of(Measurement::typical)?,
            cycles: typical_of(|m| m.summary.cycles),
            p10: typical_of(|m| m.summary.p10),
            p90: typical_of(|m| m.summary.p90),
            declared: found.declared,
            capacity: found
                .declared
                .filter(|_| found.agreement == Agreement::Agrees)
                .or(level.capacity.map(two_digits)),
            measured: level.capacity,
            agreement: found.agreement,
        })
    }
}

/// The points of a chase, in ascending size.
fn chases<'a>(report: &'a Report, order: &str, pages: &str) -> Vec<&'a Measurement> {
    let mut points: Vec<&Measurement> = measured(report, "memory.latency")
        .filter(|m| is(m, "order", order) && is(m, "pages", pages) && number(m, "size").is_some())
        .collect();
    points.sort_by_key(|m| number(m, "size"));
    points
}

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(chase) = Chase::of(report) {
        found.extend(cache_levels(&chase));
        found.extend(declared_caches(&chase, report));
    }
    found.extend(address_translation(report));
    found.extend(sequential_sum(report));
    found
}

fn cache_levels(chase: &Chase) -> Option<Finding> {
    let rows: Vec<LevelRow> = chase.matches.iter().filter_map(|m| chase.row(m)).collect();
    if rows.len() < 2 {
        return None;
    }
    let mut described = Vec::new();
    let mut values = Vec::new();
    for row in &rows {
        let name = row.name.to_lowercase();
        let capacity = row.capacity.map_or(String::new(), |size| format!("{} ", rounded(size)));
        let cycles = row.cycles.map_or(String::new(), |c| format!(" ({} cycles)", cycles(c)));
        described.push(format!("{} {capacity}{}{cycles}", row.name, format_time(row.ns)));
        values.push((format!("{name}_ns"), row.ns));
        values.extend(row.cycles.map(|cycles| (format!("{name}_cycles"), cycles)));
        values.extend(row.measured.map(|size| (format!("{name}_capacity"), size as f64)));
    }
    let mut text = format!(
        "{} levels of memory, from a random chase on {} pages: {}.",
        rows.len(),
        chase.pages.replace("MiB", " MiB").replace("KiB", " KiB"),
        described.join(", ")
    );
    let unreached = plateaus(&chase.levels).next_back().is_some_and(|last| last.capacity.is_some());
    if let Some(end) = chase.levels.last().filter(|_| unreached) {
        text += &format!(
            " At {}, the largest size, the latency still rises: memory itself was not reached.",
            rounded(end.to_size)
        );
    }
    let values: Vec<(&str, f64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    Some(finding("cache-levels", text, &values))
}

/// Cycles as they are known: small ones to a tenth.
fn cycles(cycles: f64) -> String {
    if cycles < 9.95 { format!("{cycles:.1}") } else { format!("{cycles:.0}") }
}

/// A size that was read off a curve: two digits are known at most.
pub(crate) fn rounded(size: u64) -> String {
    let (unit, count) = in_units(size);
    let name = format_size(unit).trim_start_matches("1 ").to_owned();
    format!("{count} {name}")
}

/// The bytes of what [`rounded`] writes.
fn two_digits(size: u64) -> u64 {
    let (unit, count) = in_units(size);
    (unit as f64 * count).round() as u64
}

/// The binary unit that suits a size, and how many of it: a tenth is told
/// below ten.
fn in_units(size: u64) -> (u64, f64) {
    let unit = [1u64 << 30, 1 << 20, 1 << 10, 1].into_iter().find(|unit| size >= *unit).unwrap_or(1);
    let count = size as f64 / unit as f64;
    (unit, if count < 9.95 { (count * 10.0).round() / 10.0 } else { count.round() })
}

/// A line for each cache that is not what it is declared to be.
fn declared_caches(chase: &Chase, report: &Report) -> Vec<Finding> {
    let largest = chase.points.last().and_then(|m| number(m, "size")).unwrap_or(0);
    let any_declared = chase.matches.iter().any(|m| m.declared.is_some());
    chase
        .matches
        .iter()
        // A curve that ends before a cache does cannot show it.
        .filter(|m| m.agreement != Agreement::NotSeen || m.declared.is_some_and(|size| largest > 2 * size))
        .filter(|m| m.agreement != Agreement::Undeclared || any_declared)
        .filter_map(|m| declared_cache(m, chase, report))
        .collect()
}

fn declared_cache(found: &LevelMatch, chase: &Chase, report: &Report) -> Option<Finding> {
    let name = &found.name;
    let capacity = found.level.as_ref().and_then(|level| level.capacity);
    let size = capacity.map_or(String::new(), rounded);
    let declared = found.declared.map_or(String::new(), format_size);
    let (id, text) = match found.agreement {
        Agreement::Agrees | Agreement::Memory => return None,
        Agreement::Smaller => {
            let mut text = format!(
                "{name} is declared as {declared}, but only {size} are effective: it is partitioned or contended. \
                 Count on {size}."
            );
            if report.machine.hypervisor.is_some() && name != "L1" {
                text += " This is a virtual machine: its neighbours may hold the rest.";
            }
            if chase.pages == "4KiB" {
                text += " (Measured on 4 KiB pages, whose scattered addresses blur the edge.)";
            }
            ("effective-cache", text)
        }
        Agreement::ExclusiveSum => (
            "exclusive-cache",
            format!(
                "{name} is declared as {declared}, but the step is at {size}, about its size and that of the level \
                 before together: the two hold different lines (an exclusive cache)."
            ),
        ),
        Agreement::Larger => (
            "declared-cache",
            format!(
                "{name} is declared as {declared}, but the step is at {size}: the declaration is wrong, or the edge \
                 is soft."
            ),
        ),
        Agreement::Undeclared => (
            "undeclared-cache",
            format!(
                "There is a step at {size} that no declared cache accounts for; it is called {name} here."
            ),
        ),
        Agreement::NotSeen => (
            "unseen-cache",
            format!(
                "{name} is declared as {declared}, but the latency has no step for it: this machine cannot count on it."
            ),
        ),
    };
    let numbers = [("declared", found.declared), ("effective", capacity)];
    let values: Vec<(&str, f64)> =
        numbers.into_iter().filter_map(|(name, size)| size.map(|size| (name, size as f64))).collect();
    Some(finding(id, text, &values))
}

/// What a TLB miss and its page walk add to a load: the same random chase on
/// small and on huge pages, or in windows that the TLB covers.
fn address_translation(report: &Report) -> Option<Finding> {
    let small = chases(report, "random", "4KiB");
    // Huge pages that were refused would make the difference vanish.
    let undegraded = |order, pages| {
        let mut points = chases(report, order, pages);
        points.retain(|m| m.support == Support::Ok);
        points
    };
    let (huge, window) = (undegraded("random", "2MiB"), undegraded("window", "4KiB"));
    let bases = [(&huge, "on 2 MiB pages"), (&window, "in windows that the TLB covers")];
    let (large, base, how) = bases.into_iter().find_map(|(points, how)| {
        let of_size = |size: Option<u64>| points.iter().find(|m| number(m, "size") == size);
        let (large, base) = small.iter().rev().find_map(|m| Some((*m, *of_size(number(m, "size"))?)))?;
        Some((large, base, how))
    })?;
    let size = number(large, "size")?;
    let (with, without) = (typical(large), typical(base));
    let mut values = vec![("size", size as f64), ("random_4kib_ns", with), ("without_ns", without)];
    let figures = format!(
        "At {} a random load takes {} on 4 KiB pages and {} {how}",
        format_size(size),
        format_time(with),
        format_time(without)
    );
    if !is_slower(large, base) {
        let text = format!("{figures}: the difference is too small to be told from the spread of a chase.");
        return Some(finding("page-walk", text, &values));
    }
    values.push(("page_walk_ns", with - without));
    let share = 100.0 * (with - without) / with;
    let mut text = format!(
        "{figures}: {} of it ({share:.0} %) is address translation, a TLB miss and the page walk.",
        format_time(with - without)
    );
    if report.machine.hypervisor.is_some() {
        text += " In a virtual machine a walk goes through two sets of page tables.";
    }
    if let Some(window) = window.iter().find(|m| number(m, "size") == Some(size)).filter(|_| !huge.is_empty())
    {
        values.push(("window_4kib_ns", typical(window)));
        text +=
            &format!(" The same 4 KiB pages visited window by window take {}.", format_time(typical(window)));
    }
    Some(finding("page-walk", text, &values))
}

/// Why summing an array in order shows no cache steps: the lesson of the talk
/// "Latency numbers on the iPhone", whose first attempt did just this.
fn sequential_sum(report: &Report) -> Option<Finding> {
    let rows = sequential_rows(report);
    let ((first, first_line, first_load), (last, last_line, last_load)) = (rows.first()?, rows.last()?);
    if last <= first {
        return None;
    }
    let (rise, chase_rise) = (last_line / first_line, last_load / first_load);
    let quoted = |pick: fn(&(u64, f64, f64)) -> f64| {
        listed(&rows.iter().map(|row| format_time(pick(row))).collect::<Vec<_>>())
    };
    let sizes = listed(&rows.iter().map(|(size, ..)| as_given(*size)).collect::<Vec<_>>());
    let figures = format!(
        "Summing {sizes} in order costs {} for each 64-byte line, a random chase through the same sizes {} a line",
        quoted(|row| row.1),
        quoted(|row| row.2)
    );
    let values = [
        ("sum_rise", rise),
        ("chase_rise", chase_rise),
        ("sum_line_ns", *last_line),
        ("chase_line_ns", *last_load),
    ];
    // The steps of the caches are there to be seen, and the sum hides them.
    let conclusion = if chase_rise < 1.5 {
        return None;
    } else if rise < chase_rise.sqrt() {
        format!(
            ": from end to end the sum grows {}, the chase {}. The sum {} because in sequential order the processor \
             fetches the next lines before they are asked for; to see the caches, the order must be unpredictable.",
            times(rise),
            times(chase_rise),
            if rise < 1.5 { "shows no cache steps" } else { "hardly shows the steps of the caches" }
        )
    } else {
        format!(
            ": the sum grows {}, the chase {}. Here the steps of the caches show even in sequential order.",
            times(rise),
            times(chase_rise)
        )
    };
    Some(finding("sequential-sum", figures + &conclusion, &values))
}

/// A size as it was chosen: the talk's are round in decimal units.
fn as_given(size: u64) -> String {
    match size {
        s if s >= 1_000_000 && s % 100_000 == 0 => format!("{} MB", s as f64 / 1e6),
        s if s >= 1_000 && s % 1_000 == 0 => format!("{} kB", s / 1_000),
        s => format_size(s),
    }
}

/// Size, ns a line in order, ns a line at random, of each size that has both.
fn sequential_rows(report: &Report) -> Vec<(u64, f64, f64)> {
    let random = ["2MiB", "4KiB"].map(|pages| chases(report, "random", pages));
    let Some(random) = random.iter().max_by_key(|points| points.len()) else { return Vec::new() };
    let at_size = |size: u64| {
        let distance = |m: &Measurement| {
            number(m, "size").map_or(f64::MAX, |other| (size as f64 / other as f64).log2().abs())
        };
        let near = random.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        (distance(near) <= SAME_SIZE).then(|| typical(near))
    };
    let sums: Vec<&Measurement> = measured(report, "memory.sequential-sum").collect();
    // The talk's XOR loop is the second choice.
    let mode = if sums.iter().any(|m| is(m, "mode", "sum")) { "sum" } else { "xor" };
    let mut rows: Vec<(u64, f64, f64)> = sums
        .into_iter()
        .filter(|m| is(m, "mode", mode))
        .filter_map(|m| {
            let size = number(m, "size")?;
            Some((size, 64e9 / m.rate_touched()?, at_size(size)?))
        })
        .collect();
    rows.sort_by_key(|(size, ..)| *size);
    rows
}
