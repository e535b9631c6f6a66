//! Cache levels, read off a curve of latency over working-set size, and their agreement with the caches that the
//! machine declares.
//!
//! The curve is cleaned of single outliers and dips (a larger working set is never truly faster). Then plateaus are
//! fitted to log latency over log size by dynamic programming with a BIC penalty. Between two plateaus is an edge, or a
//! ramp if the latency rises gradually over an octave or more (a shared or sliced cache, or one whose replacement is
//! not LRU).

mod fit;
mod matching;
mod naming;

pub use matching::{Agreement, LevelMatch, match_declared};
pub(crate) use naming::{doubted_name, sizes_of};

use fit::{MINIMUM_RATIO, Plateau};
use latscope_core::statistics::median;

/// A ramp narrower than this many octaves is an ordinary edge.
const RAMP_OCTAVES: f64 = 1.0;

/// Two successive measured sizes between which a level ends. The exact place is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The larger size that the level still serves, bytes.
    pub from: u64,
    /// The smaller size that it no longer serves, bytes.
    pub to: u64,
}

impl Edge {
    /// The size that stands for the edge where edges are compared: the middle on
    /// the log scale. It was not measured, and is never shown.
    pub fn log_midpoint(&self) -> u64 {
        (self.from as f64 * self.to as f64).sqrt().round() as u64
    }

    /// Returns the edge from the smallest to the largest size of both.
    pub fn union_with(self, other: Edge) -> Edge {
        Edge { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// Distance between the ends of the edge, in octaves.
    pub fn octaves(&self) -> f64 {
        (self.to as f64 / self.from as f64).log2()
    }
}

/// A stretch of the curve: a level of the memory hierarchy, or a ramp between
/// two of them.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryHierarchyLevel {
    /// End of this level: the sizes between which the latency passes the geometric mean of this plateau's and the next
    /// one's latency. `None` if nothing slower was seen (memory, if the curve reaches that far), and for a ramp.
    pub edge: Option<Edge>,
    /// Typical latency, ns: the median of the plateau's interior.
    pub latency_ns: f64,
    /// Smallest working set on it, bytes.
    pub from_size: u64,
    /// Largest working set on it, bytes.
    pub to_size: u64,
    /// True if the latency rises gradually here, so that this is no level of its own.
    pub ramp: bool,
}

/// The levels alone, without the ramps between them.
pub(crate) fn without_ramps(
    levels: &[MemoryHierarchyLevel],
) -> impl DoubleEndedIterator<Item = &MemoryHierarchyLevel> {
    levels.iter().filter(|level| !level.ramp)
}

/// Finds the levels of a curve of (working-set size in bytes, ns), in any
/// order. Points without a positive size and a positive finite latency are
/// ignored; of several of one size the median counts.
///
/// The levels come in ascending size, edge and latency, ramps in between.
/// A curve that ends while still rising ends in a ramp, and then no level has
/// `edge: None`: memory was not reached. Empty only without usable points.
pub(crate) fn detect(curve: &[(u64, f64)]) -> Vec<MemoryHierarchyLevel> {
    let points = usable(curve);
    if points.is_empty() {
        return Vec::new();
    }
    let x: Vec<f64> = points.iter().map(|(size, _)| (*size as f64).log2()).collect();
    let y: Vec<f64> = points.iter().map(|(_, ns)| ns.log2()).collect();
    let monotone = fit::isotonic(&fit::without_spikes(&y));
    let plateaus = fit::plateaus(&x, &y, &monotone);
    Assembly { points: &points, x: &x, y: &monotone }.levels(&plateaus)
}

/// Points in ascending size, one for each.
fn usable(curve: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut sorted: Vec<(u64, f64)> =
        curve.iter().copied().filter(|(size, ns)| *size > 0 && ns.is_finite() && *ns > 0.0).collect();
    sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let sizes = sorted.chunk_by(|a, b| a.0 == b.0).filter_map(|group| {
        let times: Vec<f64> = group.iter().map(|(_, ns)| *ns).collect();
        Some((group[0].0, median(&times)?))
    });
    sizes.collect()
}

/// Input of the assembly of levels: the points, and their logarithms with latencies made monotone.
struct Assembly<'a> {
    points: &'a [(u64, f64)],
    x: &'a [f64],
    y: &'a [f64],
}

impl Assembly<'_> {
    fn levels(&self, plateaus: &[Plateau]) -> Vec<MemoryHierarchyLevel> {
        let Some((first, last)) = plateaus.first().zip(plateaus.last()) else {
            // Nothing but slope: one ramp from end to end.
            return self.ramp(0, self.points.len() - 1).into_iter().collect();
        };
        let mut levels = Vec::new();
        if first.first > 0 && first.height - self.y[0] > MINIMUM_RATIO {
            levels.extend(self.ramp(0, first.first));
        }
        for (at, plateau) in plateaus.iter().enumerate() {
            let next = plateaus.get(at + 1);
            levels.push(MemoryHierarchyLevel {
                edge: next.map(|next| self.edge(plateau, next)),
                latency_ns: plateau.height.exp2(),
                from_size: self.points[plateau.first].0,
                to_size: self.points[plateau.last].0,
                ramp: false,
            });
            let gap = next.map_or(0.0, |next| self.x[next.first] - self.x[plateau.last]);
            if let Some(next) = next.filter(|_| gap >= RAMP_OCTAVES) {
                levels.extend(self.ramp(plateau.last, next.first));
            }
        }
        self.end_in_ramp(last, &mut levels);
        levels
    }

    /// A curve that still rises at its end has not shown its last level.
    fn end_in_ramp(&self, last: &Plateau, levels: &mut Vec<MemoryHierarchyLevel>) {
        let end = self.points.len() - 1;
        if last.last == end || self.y[end] - last.height <= MINIMUM_RATIO {
            return;
        }
        let after = Plateau { first: end, last: end, height: self.y[end] };
        if let Some(level) = levels.last_mut() {
            level.edge = Some(self.edge(last, &after));
        }
        levels.extend(self.ramp(last.last, end));
    }

    /// The slope from one point to another, the edges of plateaus or of the
    /// curve.
    fn ramp(&self, from: usize, to: usize) -> Option<MemoryHierarchyLevel> {
        let middle: Vec<f64> = self.y[from..=to].to_vec();
        Some(MemoryHierarchyLevel {
            edge: None,
            latency_ns: median(&middle)?.exp2(),
            from_size: self.points[from].0,
            to_size: self.points[to].0,
            ramp: true,
        })
    }

    /// The two points between which the latency passes the geometric mean of two plateaus.
    fn edge(&self, low: &Plateau, high: &Plateau) -> Edge {
        let middle = (low.height + high.height) / 2.0;
        let between = low.last + 1..=high.first;
        let above = between.clone().find(|at| self.y[*at] >= middle).unwrap_or(*between.end());
        Edge { from: self.points[above - 1].0, to: self.points[above].0 }
    }
}

#[cfg(test)]
mod tests;
