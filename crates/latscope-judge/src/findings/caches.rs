//! Caches that a random chase shows. Each round of the run has a curve of its own, and its levels are determined round
//! by round: only levels on which the rounds agree are claimed.

use super::NOT_KNOWN;
use super::evidence::{ENOUGH_ROUNDS, EvidenceFigure, FindingBuilder};
use super::select::{join_list, measured_points};
use crate::levels::{Agreement, Edge, LevelMatch, detect, doubted_name, match_declared, sizes_of};
use latscope_core::catalogue::ids;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{KIND, MeasurementPoint, ParamValue};
use latscope_core::quality::{Quality, QualityLevel as Trust, Reason};
use latscope_core::report::{Finding, Measurement, QuotaThrottling, Report};
use latscope_core::statistics::median;
use latscope_core::units::{count_with_noun, format_share, format_size, format_time};

/// Most octaves between the neighbouring sizes of a curve: a cache between two that lie farther apart looks like a
/// slope.
const CURVE_OCTAVES: f64 = 2.0;

/// Edges of several rounds within this many octaves are the same edge.
const SAME_EDGE: f64 = 0.5;

/// A row for one level of the memory hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelRow {
    /// `L1`, `L2`, `L3`, … or `memory`.
    pub name: String,
    /// Median latency over the interior of the level, ns.
    pub ns: f64,
    /// Median latency in core cycles, if they were measured.
    pub cycles: Option<f64>,
    /// Median of the points' 10 % quantiles, ns.
    pub p10: Option<f64>,
    /// Median of the points' 90 % quantiles, ns.
    pub p90: Option<f64>,
    /// Interval in which the median of the next run is expected, ns, if the rounds agree on the level; `None` with
    /// fewer than three rounds.
    pub next: Option<(f64, f64)>,
    /// The smallest and the largest size of its interior, bytes.
    pub sizes: (u64, u64),
    /// Size of the pages it was read from: `2 MiB`.
    pub pages: String,
    /// Number of rounds that show the levels.
    pub rounds: usize,
    /// Levels that this one can be where that is not sure: its sizes would fit into a declared cache, or lie far beyond
    /// the second one, of a curve without memory.
    pub within: Option<String>,
    /// Declared capacity of the level, bytes.
    pub declared: Option<u64>,
    /// The two measured sizes between which the level ends, if the rounds agree on that; `None` for memory.
    pub edge: Option<Edge>,
    /// Agreement of the measured end with the declared capacity.
    pub agreement: Agreement,
    /// Quality of the row.
    pub quality: Quality,
}

impl LevelRow {
    /// Returns the name of the level for readers: `L1`, `memory`, or `L3 or memory` where all of the sizes measured
    /// there would fit into a declared cache.
    pub fn display_name(&self) -> String {
        self.within.clone().unwrap_or_else(|| self.name.clone())
    }

    /// Returns the name of a read from the level: `L1 hit`, `memory read`.
    pub fn read_title(&self) -> String {
        let what = if self.name == "memory" || self.within.is_some() { "read" } else { "hit" };
        format!("{} {what}", self.display_name())
    }

    /// Bytes up to which the level serves, as far as is known. This is the declared capacity if the measurement agrees
    /// with it, as it is exact; else the largest measured size that the level still served.
    pub fn capacity(&self) -> Option<u64> {
        let declared = self.declared.filter(|_| self.agreement == Agreement::Agrees);
        declared.or(self.edge.map(|edge| edge.from))
    }
}

/// The levels that the random pointer chase shows, fastest first: on 2 MiB
/// pages where those could be had, else on 4 KiB pages. Empty without one. A
/// step that no declared cache accounts for has no row.
pub fn level_rows(report: &Report) -> Vec<LevelRow> {
    let Some(chase) = Chase::of(report) else { return Vec::new() };
    chase.levels().filter_map(|level| chase.level_row(level)).collect()
}

/// Returns true if levels can be read from points in ascending size: a few sizes are figures, no curve.
fn is_curve(points: &[&Measurement]) -> bool {
    let sizes: Vec<f64> = points.iter().filter_map(|m| Some(m.numeric_param(param::SIZE)? as f64)).collect();
    sizes.len() > 1 && sizes.windows(2).all(|pair| (pair[1] / pair[0]).log2() <= CURVE_OCTAVES)
}

/// Returns true if the run ended before each size of a random chase was measured once: such a curve ends anywhere, and
/// its last plateau is no level.
fn is_cut(report: &Report, points: &[&Measurement], pages: &str) -> bool {
    let is_chase = |point: &&MeasurementPoint| {
        let of = |name: &str| point.params.get(name).and_then(ParamValue::as_text);
        let chase = (point.probe.as_str(), of(param::ORDER), of(param::PAGES));
        chase == (ids::MEMORY_LATENCY, Some("random"), Some(pages))
    };
    let planned = report.plan.steps.iter().flat_map(|step| &step.points).filter(is_chase).count();
    let whole = points.iter().filter(|m| !m.incomplete || !m.rounds.is_empty()).count();
    report.is_unfinished() && whole < planned
}

/// The points of a chase, in ascending size.
pub(super) fn chases<'a>(report: &'a Report, order: &str, pages: &str) -> Vec<&'a Measurement> {
    let mut points: Vec<&Measurement> = measured_points(report, ids::MEMORY_LATENCY)
        .filter(|m| {
            m.has_param_value(param::ORDER, order)
                && m.has_param_value(param::PAGES, pages)
                && m.numeric_param(param::SIZE).is_some()
        })
        .filter(|m| !m.params.contains_key(param::NODES) && !m.params.contains_key(KIND))
        .collect();
    points.sort_by_key(|m| m.numeric_param(param::SIZE));
    points
}

pub(super) fn findings(report: &Report) -> Vec<Finding> {
    let Some(chase) = Chase::of(report) else { return Vec::new() };
    let caches = chase.matches.iter().filter_map(|level| chase.declared_cache(level));
    chase.cache_levels().into_iter().chain(caches).collect()
}

/// The chase from which the levels are read.
struct Chase<'a> {
    report: &'a Report,
    points: Vec<&'a Measurement>,
    pages: &'static str,
    /// The levels of the medians over the rounds.
    matches: Vec<LevelMatch>,
    /// The levels of each round.
    rounds: Vec<Vec<LevelMatch>>,
}

/// Summary over the rounds of the end of one level.
struct CacheEdgeSummary {
    /// Agreement that most of the rounds show.
    agreement: Agreement,
    /// Number of rounds that show it, of `of` rounds.
    agree: usize,
    of: usize,
    /// Range from the smallest to the largest size at which any round saw the end.
    edge: Option<Edge>,
    /// True if the edge is one place, seen in rounds enough.
    steady: bool,
}

impl<'a> Chase<'a> {
    fn of(report: &'a Report) -> Option<Self> {
        let curves = ["2MiB", "4KiB"].map(|pages| (pages, chases(report, "random", pages)));
        // A curve on huge pages that were refused is one on small pages, of fewer or more points.
        let curves: Vec<_> = curves.into_iter().filter(|(_, points)| is_curve(points)).collect();
        let best =
            curves.iter().find(|(_, points)| points.iter().all(|m| m.quality.level <= Trust::Unstable));
        let (pages, points) = best.or(curves.first())?.clone();
        if is_cut(report, &points, pages) {
            return None;
        }
        let mut rounds = Vec::new();
        for round in 0..points.iter().map(|m| m.rounds.len()).max().unwrap_or(0) {
            let present = points.iter().filter(|m| m.rounds.get(round).is_some_and(|r| r.p50.is_some()));
            if 4 * present.count() >= 3 * points.len() {
                rounds.push(match_levels(report, &points, |m| m.rounds.get(round)?.p50));
            }
        }
        let matches = if rounds.len() > 1 {
            match_levels(report, &points, Measurement::typical)
        } else {
            // In a single round the lower quantile is nearer to the truth: what disturbs
            // a load only ever makes it slower.
            match_levels(report, &points, |m| m.summary.p10.or_else(|| m.typical()))
        };
        let rounds = if rounds.is_empty() { vec![matches.clone()] } else { rounds };
        Some(Chase { report, points, pages, matches, rounds })
    }

    /// The levels with a name: caches and memory.
    fn levels(&self) -> impl Iterator<Item = &LevelMatch> {
        self.matches.iter().filter(|level| level.name != "step")
    }

    /// Summarises the rounds' views of a level.
    fn summarise_rounds(&self, name: &str) -> CacheEdgeSummary {
        let levels: Vec<&LevelMatch> =
            self.rounds.iter().filter_map(|round| round.iter().find(|level| level.name == name)).collect();
        let of = self.rounds.len();
        let count = |agreement| levels.iter().filter(|level| level.agreement == agreement).count();
        let met = count(Agreement::Agrees);
        // What disturbs a cache takes from it: if half of the rounds find all of it, all is there.
        let agreement = if met > 0 && 2 * met >= of {
            Agreement::Agrees
        } else {
            levels.iter().map(|level| level.agreement).max_by_key(|a| count(*a)).unwrap_or(Agreement::NotSeen)
        };
        let agree = count(agreement);
        let agreeing = levels.iter().filter(|level| level.agreement == agreement);
        let edges: Vec<Edge> = agreeing.filter_map(edge).collect();
        let widest = edges.iter().map(Edge::octaves).fold(SAME_EDGE, f64::max);
        let together = edges.into_iter().reduce(Edge::union_with);
        let close = together.is_none_or(|edge| edge.octaves() <= widest);
        let undisputed = agreement == Agreement::Agrees || met == 0 && 4 * agree >= 3 * of && close;
        CacheEdgeSummary {
            agreement,
            agree,
            of,
            edge: levels.iter().filter_map(edge).reduce(Edge::union_with),
            steady: agree >= ENOUGH_ROUNDS && undisputed,
        }
    }

    /// The points of a level's interior: the outer quarters belong half to the edges.
    fn interior(&self, level: &LevelMatch) -> Option<Vec<&'a Measurement>> {
        let seen = level.level.as_ref()?;
        let last = self.report.machine.last_level_cache().filter(|_| level.agreement == Agreement::Memory);
        let (from, to) = sizes_of((seen.from_size, seen.to_size), level.declared, last);
        let sizes = from..=to;
        let members = self
            .points
            .iter()
            .filter(|m| m.numeric_param(param::SIZE).is_some_and(|size| sizes.contains(&size)));
        let members: Vec<&Measurement> = members.copied().collect();
        let trim = members.len() / 4;
        Some(members[trim..members.len() - trim].to_vec())
    }

    fn level_row(&self, level: &LevelMatch) -> Option<LevelRow> {
        let interior = self.interior(level)?;
        let seen = self.summarise_rounds(&level.name);
        let mut quality = Quality::default();
        let worst = interior.iter().map(|m| &m.quality).max_by_key(|quality| quality.level);
        if let Some(worst) = worst.filter(|quality| quality.level > Trust::Unstable) {
            quality.merge(worst);
        }
        if let Some(edge) = seen.edge.filter(|_| !seen.steady && seen.of >= ENOUGH_ROUNDS) {
            let text = format!(
                "its end was seen anywhere from {} to {}",
                format_exact_size(edge.from),
                format_exact_size(edge.to)
            );
            let reason = Reason::new(Trust::Unstable, "edge-varies", text, "");
            quality
                .add_reason(reason.with_number("from", edge.from as f64).with_number("to", edge.to as f64));
        }
        let sizes =
            (interior.first()?.numeric_param(param::SIZE)?, interior.last()?.numeric_param(param::SIZE)?);
        Some(LevelRow {
            name: level.name.clone(),
            within: self.doubted_name(level, sizes.1),
            ns: median_over(&interior, Measurement::typical)?,
            cycles: median_over(&interior, |m| m.summary.cycles),
            p10: median_over(&interior, |m| m.summary.p10),
            p90: median_over(&interior, |m| m.summary.p90),
            next: self.latency_and_cycles(level).map(|(latency, _)| (latency.low, latency.high)),
            sizes,
            pages: self.pages(),
            rounds: seen.of,
            declared: level.declared,
            edge: seen.edge.filter(|_| seen.steady && self.may_be_told(level, &seen)),
            agreement: if level.level.as_ref()?.edge.is_none() { Agreement::Memory } else { seen.agreement },
            quality,
        })
    }

    /// Other levels that a level can be, of which `largest` is the largest size.
    fn doubted_name(&self, level: &LevelMatch, largest: u64) -> Option<String> {
        let machine = &self.report.machine;
        if level.agreement == Agreement::Memory {
            return within(machine, largest);
        }
        let data = machine.caches.iter().filter(|cache| cache.kind != "Instruction" && cache.level == 2);
        let memory_seen = self.matches.iter().any(|level| level.agreement == Agreement::Memory);
        doubted_name(&level.name, largest, data.map(|cache| cache.size).max(), memory_seen)
    }

    /// Returns true if the place of an edge may be stated as that of the level: not if it would contradict the declared
    /// size without evidence enough for that.
    fn may_be_told(&self, level: &LevelMatch, seen: &CacheEdgeSummary) -> bool {
        let agrees = matches!(seen.agreement, Agreement::Agrees | Agreement::Memory);
        agrees || level.declared.is_none() || self.size_doubts(&level.name, seen).is_empty()
    }

    /// The latency of a level and its cycles, from a median over its interior in each
    /// round; `None` where the rounds do not agree on its place, or differ on its latency by a factor of two.
    fn latency_and_cycles(&self, level: &LevelMatch) -> Option<(EvidenceFigure, Option<EvidenceFigure>)> {
        let interior = self.interior(level)?;
        if !self.summarise_rounds(&level.name).steady
            || interior.iter().any(|m| m.quality.level > Trust::Unstable || m.incomplete)
        {
            return None;
        }
        let rounds = interior.iter().map(|m| m.rounds.len()).min()?;
        let latency = (0..rounds).filter_map(|round| median_over(&interior, |m| m.rounds[round].p50));
        let cycles = (0..rounds).filter_map(|round| median_over(&interior, |m| m.rounds[round].cycles));
        let latency = EvidenceFigure::combine_points(&interior, "p50", &latency.collect::<Vec<_>>())?;
        if latency.high > 2.0 * latency.low {
            return None;
        }
        Some((latency, EvidenceFigure::combine_points(&[], "cycles", &cycles.collect::<Vec<_>>())))
    }

    /// Reports the latency of each level on whose place and latency the rounds agree.
    fn cache_levels(&self) -> Option<Finding> {
        let of = self.rounds.len();
        let once = of < ENOUGH_ROUNDS;
        let doubt =
            format!("measured in {}, too few to judge how steady it is", count_with_noun(of as u64, "round"));
        let mut told = FindingBuilder::unless(Some(&*doubt).filter(|_| once), "cache-levels");
        let mut described = Vec::new();
        for level in self.levels() {
            let Some(row) = self.level_row(level) else { continue };
            let name = row.name.to_lowercase();
            let mut words = format!("{}{}", row.display_name(), self.format_extent(&row));
            if once {
                words += &format!(" {}", format_time(row.ns));
                told = told.value(&format!("{name}_ns"), row.ns);
            } else {
                let Some((latency, cycles)) = self.latency_and_cycles(level) else { continue };
                words += &format!(" {}", latency.format_duration());
                told = told.figure(&format!("{name}_ns"), &latency);
                if let Some(cycles) = cycles {
                    words += &format!(" ({} cycles)", cycles.format_number());
                    told = told.figure(&format!("{name}_cycles"), &cycles);
                }
            }
            if let Some(capacity) = row.capacity() {
                told = told.value(&format!("{name}_capacity"), capacity as f64);
            }
            described.push(words);
        }
        if described.len() < 2 {
            return None;
        }
        let mut text = format!("A random chase on {} pages: {}.", self.pages(), described.join(", "));
        let unreached =
            self.rounds.iter().filter(|round| round.iter().all(|l| l.agreement != Agreement::Memory));
        if let Some(largest) = self.largest().filter(|_| 4 * unreached.count() >= 3 * of) {
            text += &format!(
                " At {}, the largest size, the latency still rises: memory itself was not reached.",
                format_size(largest)
            );
        }
        Some(told.agreeing(of, of).into_finding(text))
    }

    /// ` of 32 KiB`, where the level ends as it is declared to; else up to which size
    /// it was seen to serve, if that is steady.
    fn format_extent(&self, row: &LevelRow) -> String {
        match row.agreement {
            Agreement::Memory => String::new(),
            Agreement::Agrees => {
                row.declared.map_or(String::new(), |size| format!(" ({})", format_size(size)))
            }
            _ => row.edge.map_or(String::new(), |edge| format!(" (up to {})", format_exact_size(edge.from))),
        }
    }

    fn pages(&self) -> String {
        self.pages.replace("MiB", " MiB").replace("KiB", " KiB")
    }

    fn largest(&self) -> Option<u64> {
        self.points.last().and_then(|m| m.numeric_param(param::SIZE))
    }

    /// Reports a cache whose measured size is not the declared size.
    fn declared_cache(&self, level: &LevelMatch) -> Option<Finding> {
        if level.name == "step" {
            return self.undeclared(level);
        }
        let declared = level.declared?;
        let seen = self.summarise_rounds(&level.name);
        // A curve that ends before a cache does cannot show it.
        let beyond = self.largest().is_some_and(|largest| largest > 2 * declared);
        if seen.agreement == Agreement::Agrees || seen.edge.is_none() && !beyond {
            return None;
        }
        let doubts = self.size_doubts(&level.name, &seen);
        let id = match seen.agreement {
            _ if !seen.steady => "effective-cache",
            Agreement::NotSeen => "unseen-cache",
            Agreement::Larger => "declared-cache",
            Agreement::ExclusiveSum => "exclusive-cache",
            _ => "effective-cache",
        };
        let doubt = (!doubts.is_empty()).then(|| format!("the size is uncertain: {}", join_list(&doubts)));
        let told = FindingBuilder::unless(doubt.as_deref(), id)
            .value("declared", declared as f64)
            .values(seen.edge.iter().flat_map(|edge| {
                [
                    ("effective", edge.from as f64),
                    ("effective_low", edge.from as f64),
                    ("effective_high", edge.to as f64),
                ]
            }))
            .points(self.points_around(seen.edge))
            .agreeing(seen.agree, seen.of);
        let start = format!("{} is declared as {}; ", level.name, format_size(declared));
        let judged = if doubts.is_empty() { claimed(&seen) } else { doubtful(&seen) + "." };
        Some(told.into_finding(start + &judged))
    }

    /// Reasons against contradicting a declared size.
    fn size_doubts(&self, name: &str, seen: &CacheEdgeSummary) -> Vec<String> {
        let mut doubts = Vec::new();
        if seen.of < ENOUGH_ROUNDS {
            doubts.push(format!("at least {ENOUGH_ROUNDS} rounds are needed, and {} measured it", seen.of));
        } else if !seen.steady {
            doubts.push("the rounds do not agree".to_owned());
        }
        match &self.report.activity {
            Some(account) if account.throttled().is_some() => {
                doubts.extend(account.throttled().map(QuotaThrottling::format_throttling));
            }
            Some(activity) if activity.known_others().is_none() => doubts.push(NOT_KNOWN.to_owned()),
            Some(activity) if activity.is_quiet() => {}
            Some(activity) => doubts.push(format!(
                "other processes used {} of the CPUs and a part of the caches",
                format_share(activity.others)
            )),
            None => doubts.push(NOT_KNOWN.to_owned()),
        }
        if self.report.machine.hypervisor.is_some() {
            doubts.push(
                "other virtual machines on this host may use part of the caches, which cannot be seen from inside".to_owned(),
            );
        }
        if self.pages == "4KiB" && name != "L1" {
            doubts.push("4 KiB pages at scattered addresses blur the edge".to_owned());
        }
        if self.points.iter().any(|m| m.quality.level > Trust::Unstable) {
            doubts.push("points of the chase are degraded".to_owned());
        }
        doubts
    }

    /// A step that no declared cache accounts for: it is claimed, or left out.
    fn undeclared(&self, level: &LevelMatch) -> Option<Finding> {
        let whole = edge(&level)?;
        let near = SAME_EDGE.max(whole.octaves());
        let steps = self.rounds.iter().filter_map(|round| {
            let mut steps =
                round.iter().filter(|level| level.name == "step").filter_map(|level| edge(&level));
            steps.find(|step| whole.union_with(*step).octaves() <= near)
        });
        let steps: Vec<Edge> = steps.collect();
        let (agree, of) = (steps.len(), self.rounds.len());
        let range = steps.into_iter().reduce(Edge::union_with)?;
        let steady = agree >= ENOUGH_ROUNDS && 4 * agree >= 3 * of;
        let seen =
            CacheEdgeSummary { agreement: Agreement::Undeclared, agree, of, edge: Some(range), steady };
        if !self.size_doubts("", &seen).is_empty() {
            return None;
        }
        let told = FindingBuilder::claim("undeclared-cache")
            .points(self.points_around(seen.edge))
            .agreeing(agree, of);
        let told = told.values([("effective_low", range.from as f64), ("effective_high", range.to as f64)]);
        Some(told.into_finding(format!(
            "{} of {} rounds show a step {}, which no declared cache accounts for.",
            agree,
            of,
            format_edge(range)
        )))
    }

    /// The points on both sides of an edge.
    fn points_around(&self, edge: Option<Edge>) -> impl Iterator<Item = &'a Measurement> {
        self.points.iter().copied().filter(move |m| {
            edge.zip(m.numeric_param(param::SIZE)).is_some_and(|(e, size)| (e.from..=e.to).contains(&size))
        })
    }
}

/// What so many bytes can lie in, from the smallest declared cache that has room for them: `L3 or memory`, `L1 or
/// beyond`. `None` without such a cache.
fn within(machine: &Machine, bytes: u64) -> Option<String> {
    let data = || machine.caches.iter().filter(|cache| cache.kind != "Instruction");
    let first = data().filter(|cache| cache.size >= bytes).map(|cache| cache.level).min()?;
    let is_last = data().all(|cache| cache.level <= first);
    Some(format!("L{first} or {}", if is_last { "memory" } else { "beyond" }))
}

/// The levels of a curve of one figure of each point, beside the declared caches.
fn match_levels(
    report: &Report,
    points: &[&Measurement],
    figure: impl Fn(&Measurement) -> Option<f64>,
) -> Vec<LevelMatch> {
    let curve = points.iter().filter_map(|m| Some((m.numeric_param(param::SIZE)?, figure(m)?)));
    match_declared(&detect(&curve.collect::<Vec<_>>()), &report.machine)
}

fn median_over(points: &[&Measurement], figure: impl Fn(&Measurement) -> Option<f64>) -> Option<f64> {
    median(&points.iter().filter_map(|m| figure(m)).collect::<Vec<f64>>())
}

fn edge(level: &&LevelMatch) -> Option<Edge> {
    level.level.as_ref()?.edge
}

/// Words for the result of quiet rounds that agree.
fn claimed(seen: &CacheEdgeSummary) -> String {
    let rounds = format!("in {} of {} rounds", seen.agree, seen.of);
    let Some(edge) = seen.edge else {
        return format!("{rounds} the latency had no step for it.");
    };
    let between = format_edge(edge);
    match seen.agreement {
        Agreement::NotSeen => format!("{rounds} the latency had no step for it."),
        Agreement::ExclusiveSum => format!(
            "{rounds} the latency rose {between} only, about its size and that of the level before together, as if the \
             two hold different lines (an exclusive cache)."
        ),
        Agreement::Larger => format!("{rounds} the latency rose {between} only."),
        _ => format!("{rounds} the latency rose {between} already: so much of it served this program."),
    }
}

/// Words for the result of rounds that disagree or may be disturbed.
fn doubtful(seen: &CacheEdgeSummary) -> String {
    match seen.edge {
        None => "no step of the latency was seen for it".to_owned(),
        Some(edge) if seen.steady || seen.of == 1 => {
            format!("the latency was seen to rise {}", format_edge(edge))
        }
        Some(edge) => {
            format!(
                "the latency was seen to rise anywhere from {} to {}",
                format_exact_size(edge.from),
                format_exact_size(edge.to)
            )
        }
    }
}

/// `between 5 MiB and 6 MiB`, two sizes that were measured.
fn format_edge(edge: Edge) -> String {
    format!("between {} and {}", format_exact_size(edge.from), format_exact_size(edge.to))
}

/// A size that was measured, in as many digits as it has.
fn format_exact_size(bytes: u64) -> String {
    format_size(bytes)
}
