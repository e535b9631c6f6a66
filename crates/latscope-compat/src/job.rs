//! What a personality asks of the engine, and how it finds the answers in the
//! report.

use super::arguments::LmbenchOptions;
use super::page::{self, NotMeasured, Page};
use latscope_core::plan::{ParamValue, Params, Point, params};
use latscope_core::quality::Level;
use latscope_core::report::{Measurement, Report, Semantics};
use std::fmt;
use std::path::PathBuf;

/// A point wanted: a probe, and the parameters that matter. What is left out
/// is left to the probe's default, the first of them where there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointQuery {
    /// Probe id.
    pub probe: &'static str,
    /// Parameters that matter.
    pub params: Params,
}

impl PointQuery {
    /// A query for a probe with these parameters.
    pub fn new<const N: usize>(probe: &'static str, pairs: [(&str, ParamValue); N]) -> PointQuery {
        PointQuery { probe, params: params(pairs) }
    }

    /// How far a planned point is from what was asked for: `None` if it is another thing, else the bytes by which its
    /// size differs, for probes round sizes to whole blocks.
    pub(crate) fn distance(&self, point: &Point) -> Option<u64> {
        let differs =
            |(name, value): (&String, &ParamValue)| match (name.as_str(), value, point.params.get(name)) {
                ("size", ParamValue::Number(wanted), Some(ParamValue::Number(found))) => {
                    Some(wanted.abs_diff(*found)).filter(|bytes| *bytes <= ROUNDING.max(wanted / 2))
                }
                (_, value, found) => (found == Some(value)).then_some(0),
            };
        (self.probe == point.probe).then(|| self.params.iter().map(differs).sum()).flatten()
    }
}

/// A difference of size that is but rounding, bytes.
const ROUNDING: u64 = 4096;

impl fmt::Display for PointQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.probe)?;
        for (name, value) in &self.params {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

/// A file that the old program would read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// Bytes it has to have.
    pub at_least: u64,
}

type Print = Box<dyn Fn(&Figures<'_>, &mut Page) + Send + Sync>;

/// A call understood: what to measure, and how to print it.
pub struct Job {
    /// The points.
    pub queries: Vec<PointQuery>,
    /// For each query the planned point that answers it: the index of its step, and its own in the step.
    pub planned: Vec<Option<(usize, usize)>>,
    /// Directory for the files of file probes.
    pub directory: Option<PathBuf>,
    /// A file the old program would fail without.
    pub source: Option<Source>,
    /// `-N`, where given.
    pub repetitions: Option<u64>,
    /// `-W`, µs.
    pub warmup: u64,
    /// What of the arguments has no effect, in words.
    pub notes: Vec<String>,
    print: Print,
}

impl Job {
    /// A job that measures `queries` and prints with `print`.
    pub fn new(
        options: &LmbenchOptions,
        queries: Vec<PointQuery>,
        print: impl Fn(&Figures<'_>, &mut Page) + Send + Sync + 'static,
    ) -> Job {
        Job {
            queries,
            planned: Vec::new(),
            directory: None,
            source: None,
            repetitions: options.repetitions,
            warmup: options.warmup,
            notes: Vec::new(),
            print: Box::new(print),
        }
    }

    /// The old program's text for a report: a pure function of both.
    pub fn print(&self, report: &Report) -> Page {
        let mut page = Page::default();
        let figures = Figures { job: self, report };
        (self.print)(&figures, &mut page);
        let found = self.planned.iter().flatten().filter_map(|(step, point)| report.of_point(*step, *point));
        page.degraded(found.filter(|m| m.quality.level.is_doubtful()));
        page
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("queries", &self.queries)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// A report, asked for figures.
pub struct Figures<'a> {
    job: &'a Job,
    report: &'a Report,
}

const NOT_OFFERED: &str = "it is not offered on this machine; `latscope list` shows what is";

impl<'a> Figures<'a> {
    /// The measurement that answers a query.
    ///
    /// # Errors
    /// There is none, or it has no numbers.
    pub fn measurement(&self, query: &PointQuery) -> Result<&'a Measurement, NotMeasured> {
        let failed = |reason: String| NotMeasured { query: query.to_string(), reason };
        let index = self.job.queries.iter().position(|known| known == query);
        let planned = index.and_then(|index| *self.job.planned.get(index)?);
        let (step, point) = planned.ok_or_else(|| failed(NOT_OFFERED.to_owned()))?;
        let found = self.report.of_point(step, point);
        let found = found.ok_or_else(|| failed("the run ended before it".to_owned()))?;
        if found.quality.level != Level::Unsupported && found.typical().is_some() {
            return Ok(found);
        }
        let reason = found.reason.clone().unwrap_or_else(|| "no clean sample".to_owned());
        Err(failed(match page::remedy(found) {
            Some(remedy) => format!("{reason}; {remedy}"),
            None => reason,
        }))
    }

    /// The median of a point, ns.
    ///
    /// # Errors
    /// As [`Figures::measurement`].
    pub fn ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        // `measurement` returns none without a median.
        Ok(self.measurement(query)?.typical().unwrap_or(f64::NAN))
    }

    /// The mean of a point, ns: what a loop around all of it shows, with what disturbed it.
    ///
    /// # Errors
    /// As [`Figures::measurement`].
    pub(crate) fn mean_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let found = self.measurement(query)?;
        Ok(found.summary.mean.or(found.typical()).unwrap_or(f64::NAN))
    }

    /// The median of a point by its [elementary operations](latscope_core::report::Work::ops), ns.
    ///
    /// # Errors
    /// As [`Figures::measurement`].
    pub(crate) fn ns_of_part(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let parts = self.measurement(query)?.work.map_or(1, |work| work.ops.max(1));
        Ok(self.ns(query)? / parts as f64)
    }

    /// The mean of a hand-over, ns, one way: half of a round trip.
    ///
    /// # Errors
    /// As [`Figures::measurement`].
    pub(crate) fn one_way_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let share = if self.measurement(query)?.times == Semantics::RoundTrip { 0.5 } else { 1.0 };
        Ok(self.mean_ns(query)? * share)
    }

    /// The mean of a hand-over, ns, there and back: twice a one-way time.
    ///
    /// # Errors
    /// As [`Figures::measurement`].
    pub(crate) fn round_trip_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let times = if self.measurement(query)?.times == Semantics::OneWay { 2.0 } else { 1.0 };
        Ok(self.mean_ns(query)? * times)
    }

    /// Bytes the program asked for, per second.
    ///
    /// # Errors
    /// As [`Figures::measurement`], or the point states no bytes.
    pub fn bytes_per_second(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        self.measurement(query)?
            .rate_touched()
            .ok_or_else(|| NotMeasured { query: query.to_string(), reason: "it states no bytes".to_owned() })
    }
}
