//! The parts of an activity. Each part belongs to at most one point, that which asks for it.

use latscope_bench::bench::Splits;

/// The points that take part in an activity, for `Bench::splits`.
#[derive(Debug, Default)]
pub struct ActivityParts(Vec<usize>);

/// A part of an activity: timed if a point asks for it, otherwise only executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityPart(Option<usize>);

impl ActivityParts {
    /// The part that belongs to the first of `points` that is `wanted`.
    pub fn add_part<P>(&mut self, points: &[P], wanted: impl Fn(&P) -> bool) -> ActivityPart {
        ActivityPart(points.iter().position(wanted).map(|point| {
            self.0.push(point);
            self.0.len() - 1
        }))
    }

    /// Indices of the points, in the order of their parts.
    pub fn point_indices(&self) -> &[usize] {
        &self.0
    }
}

impl ActivityPart {
    /// Sets the time of the part from two readings of the clock, if a point asks for it.
    #[inline(always)]
    pub fn set_between(self, splits: &mut Splits, from: u64, to: u64) {
        if let Some(part) = self.0 {
            splits.set_part(part, from, to);
        }
    }

    /// Executes the operation, and times it if a point asks for that.
    #[inline(always)]
    pub fn time_operation<T>(self, splits: &mut Splits, operation: impl FnOnce() -> T) -> T {
        match self.0 {
            None => operation(),
            Some(part) => splits.time_part(part, operation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_as_they_are_asked_for() {
        let points = ["a", "b", "c"];
        let mut parts = ActivityParts::default();
        assert_eq!(parts.add_part(&points, |p| *p == "c"), ActivityPart(Some(0)));
        assert_eq!(parts.add_part(&points, |p| *p == "x"), ActivityPart(None));
        assert_eq!(parts.add_part(&points, |p| *p == "a"), ActivityPart(Some(1)));
        assert_eq!(parts.point_indices(), [2, 0]);
    }
}
