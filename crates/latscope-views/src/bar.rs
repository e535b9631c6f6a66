//! Bars on a logarithmic scale of time.

use super::rows::SurveyRow;
use latscope_core::units::format_time;

const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];

/// A logarithmic scale over whole decades that holds all rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DecadeScale {
    /// Decimal logarithm of the ns at the left end.
    low: f64,
    /// Decimal logarithm of the ns at the right end.
    high: f64,
}

impl DecadeScale {
    /// Returns the scale from the decade below the fastest row to the end of the decade of the slowest row.
    pub fn for_rows(rows: &[SurveyRow]) -> DecadeScale {
        let logs = rows.iter().map(|row| row.ns).filter(|ns| *ns > 0.0).map(f64::log10);
        let (low, high) = logs.fold((f64::MAX, f64::MIN), |(low, high), log| (low.min(log), high.max(log)));
        if low > high {
            return DecadeScale { low: 0.0, high: 1.0 };
        }
        // A bar of no length would look like nothing measured.
        let low = (low - 0.1).floor();
        DecadeScale { low, high: high.ceil().max(low + 1.0) }
    }

    /// Returns both ends of the scale: `0.01 ns to 100 ms`.
    pub fn format_range(&self) -> String {
        let [low, high] = [self.low, self.high]
            .map(|log| format_time(10f64.powf(log)).replace(".00", "").replace(".0 ", " "));
        format!("{low} to {high}")
    }

    /// Columns from the left end to `ns`.
    fn column_offset(&self, ns: f64, width: usize) -> f64 {
        let share = (ns.log10() - self.low) / (self.high - self.low);
        share.clamp(0.0, 1.0) * width as f64
    }

    /// Returns the bar, and the text that fills the rest of its column: blanks with a tick where a unit begins.
    pub fn bar(&self, ns: f64, width: usize) -> (String, String) {
        let eighths = if ns > 0.0 { (self.column_offset(ns, width) * 8.0).round() as usize } else { 0 };
        let mut filled = "█".repeat(eighths / 8);
        filled.extend((!eighths.is_multiple_of(8)).then(|| EIGHTHS[eighths % 8 - 1]));
        let taken = eighths.div_ceil(8);
        let ticks: Vec<usize> = self.ticks(width).map(|(at, _)| at).collect();
        let rest = (taken..width).map(|at| if ticks.contains(&at) { '┊' } else { ' ' }).collect();
        (filled, rest)
    }

    /// Returns the units that begin within the scale, with their columns.
    fn ticks(&self, width: usize) -> impl Iterator<Item = (usize, &'static str)> {
        let inside = UNITS.into_iter().filter(|(ns, _)| (self.low..self.high).contains(&ns.log10()));
        inside.map(move |(ns, name)| (self.column_offset(ns, width) as usize, name))
    }

    /// The names of the units over the columns where they begin.
    pub fn format_heading(&self, width: usize) -> String {
        let mut heading: Vec<char> = vec![' '; width];
        let mut free = 0;
        for (at, name) in self.ticks(width) {
            if at >= free && at + name.chars().count() <= width {
                heading.splice(at..at + name.chars().count(), name.chars());
                free = at + name.chars().count() + 1;
            }
        }
        heading.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bar_ends_where_its_duration_lies() {
        let scale = DecadeScale { low: 0.0, high: 4.0 };
        assert_eq!(scale.format_heading(8), "ns    µs");
        assert_eq!(scale.bar(100.0, 8), ("████".to_owned(), "  ┊ ".to_owned()));
        assert_eq!(scale.bar(10_000.0, 8), ("█".repeat(8), String::new()));
        assert_eq!(scale.bar(1.0, 4), (String::new(), "┊  ┊".to_owned()));
    }

    #[test]
    fn no_rows_have_a_scale_too() {
        assert_eq!(DecadeScale::for_rows(&[]), DecadeScale { low: 0.0, high: 1.0 });
    }

    proptest! {
        #[test]
        fn a_bar_fills_its_column(ns in 0.0f64..1e11, width in 4usize..40) {
            let scale = DecadeScale { low: -1.0, high: 8.0 };
            let (filled, rest) = scale.bar(ns, width);
            prop_assert_eq!(filled.chars().count() + rest.chars().count(), width);
        }
    }
}
