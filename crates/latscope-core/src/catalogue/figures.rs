//! Figures of a family, as data: which probes they are of, and what lies along their axes.

use super::ProbeFacts;
use crate::param;

/// Mapping from values to places on an axis. On a logarithmic axis, values that are not positive have no place
/// and are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureAxisScale {
    /// Scale on which equal differences are equally far apart.
    Linear,
    /// Scale on which octaves are equally far apart.
    Log2,
    /// Scale on which decades are equally far apart.
    Log10,
}

impl FigureAxisScale {
    /// Returns the place of a value: itself or its logarithm; `None` if it has none.
    pub fn axis_position(self, value: f64) -> Option<f64> {
        let place = match self {
            FigureAxisScale::Linear => value,
            FigureAxisScale::Log2 => value.log2(),
            FigureAxisScale::Log10 => value.log10(),
        };
        place.is_finite().then_some(place)
    }
}

/// Unit of the numbers along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureAxisUnit {
    /// Bytes, written `32 KiB`.
    Bytes,
    /// Nanoseconds, written `10 ns`, `1 µs`.
    Nanoseconds,
    /// Number without a unit.
    Number,
    /// Bytes per second, written `10 GB/s`.
    Rate,
    /// Numbers of things, written `10,000`.
    Count,
    /// 1 / (1 - q) of a quantile q, written as that: `99.9 %`.
    Percentile,
}

/// Curves of a quantity over a parameter: one figure, or one for each value of some parameters.
#[derive(Debug, Clone, Copy)]
pub struct Curves {
    /// Name of the file, to which the values of `apart` are added.
    pub id: &'static str,
    /// Title of the figure.
    pub title: &'static str,
    /// Probes that are drawn; all of the family, known or not, if there are none.
    pub probes: &'static [&'static ProbeFacts],
    /// Parameter and value that the points must have, if not all points are drawn. Threads and pairs that were summed
    /// are drawn as their sum.
    pub only: Option<(&'static str, &'static str)>,
    /// Quantity along the horizontal axis.
    pub x: Along,
    /// Quantity along the vertical axis.
    pub y: Along,
    /// Quantities along y, if there are several for each point: curves of one colour.
    pub several: &'static [(&'static str, Quantity)],
    /// Parameter whose values are curves of one colour.
    pub dashes: Option<&'static str>,
    /// Parameter that is a limit of the quantity along y.
    pub limit: Option<&'static str>,
    /// Parameters with a figure of their own for each value.
    pub apart: &'static [&'static str],
    /// Parameters that follow from x.
    pub within: &'static [&'static str],
}

/// Quantity along an axis.
#[derive(Debug, Clone, Copy)]
pub struct Along {
    /// Source of the values.
    pub of: Quantity,
    /// Label of the axis.
    pub label: &'static str,
    /// Mapping from values to places.
    pub scale: FigureAxisScale,
    /// Unit of the values.
    pub unit: FigureAxisUnit,
}

/// Source of a value of a point.
#[derive(Debug, Clone, Copy)]
pub enum Quantity {
    /// Parameter with this name, a number.
    Parameter(&'static str),
    /// Value with this name, multiplied by this to be in the unit of the axis.
    Value(&'static str, f64),
    /// Median of the samples of a point, ns.
    Median,
    /// The p99 of single events, ns; it is not known for few events.
    P99,
    /// Largest sample of a point, ns.
    Maximum,
    /// Bytes touched per second.
    Rate,
}

/// Medians beside each other: a bar for each point.
#[derive(Debug, Clone, Copy)]
pub struct Bars {
    /// Name of the file.
    pub id: &'static str,
    /// Title of the figure.
    pub title: &'static str,
    /// Probes in the order of their bars; all of the family, known or not, if there are none.
    pub probes: &'static [&'static ProbeFacts],
    /// Parameter that the colours stand for.
    pub key: &'static str,
    /// Label of the axis.
    pub label: &'static str,
}

impl Along {
    /// Returns the values of a parameter.
    pub const fn parameter(name: &'static str, scale: FigureAxisScale, unit: FigureAxisUnit) -> Along {
        Along { of: Quantity::Parameter(name), label: name, scale, unit }
    }

    /// Returns an axis of medians, logarithmic, in ns.
    pub const fn median(label: &'static str) -> Along {
        Along {
            of: Quantity::Median,
            label,
            scale: FigureAxisScale::Log10,
            unit: FigureAxisUnit::Nanoseconds,
        }
    }

    /// Returns a rate, bytes per second.
    pub const fn rate(of: Quantity, label: &'static str) -> Along {
        Along { of, label, scale: FigureAxisScale::Log10, unit: FigureAxisUnit::Rate }
    }

    /// Sizes of what is touched.
    pub const SIZE: Along = Along::parameter(param::SIZE, FigureAxisScale::Log2, FigureAxisUnit::Bytes);
    /// Sizes of a message.
    pub const PAYLOAD: Along = Along::parameter(param::PAYLOAD, FigureAxisScale::Log2, FigureAxisUnit::Bytes);
}

impl Curves {
    /// Curves of medians by size, in one figure; the texts are empty.
    pub const DEFAULT: Curves = Curves {
        id: "",
        title: "",
        probes: &[],
        only: None,
        x: Along::SIZE,
        y: Along::median("median"),
        several: &[],
        dashes: None,
        limit: None,
        apart: &[],
        within: &[],
    };

    /// Curves of the longest round trips: p99 and maximum by payload; the texts are empty.
    pub const TAILS: Curves = Curves {
        x: Along::PAYLOAD,
        y: Along::median("round trip"),
        several: &[("p99", Quantity::P99), ("maximum", Quantity::Maximum)],
        limit: Some(param::DEADLINE),
        ..Curves::DEFAULT
    };
}
