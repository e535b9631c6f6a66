//! Points that a personality needs measured, and the search for their results in the report.

use super::options::LmbenchOptions;
use super::page::{LmbenchPage, NotMeasured};
use crate::environment::remedy_text;
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::{MeasurementPoint, ParamValue, Params, Plan, params};
use latscope_core::quality::QualityLevel;
use latscope_core::report::{Measurement, Report, Semantics, ToolVersion};
use latscope_core::units::CpuList;
use std::fmt;
use std::path::PathBuf;

/// Query for a point: a probe, and the parameters that matter. For parameters left out, the first default of the probe
/// applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointQuery {
    /// Id of the probe.
    pub probe: &'static str,
    /// Parameters that the point must have.
    pub params: Params,
}

impl PointQuery {
    /// Returns a query for a probe with these parameters.
    pub fn new<const N: usize>(probe: &'static str, pairs: [(&str, ParamValue); N]) -> PointQuery {
        PointQuery { probe, params: params(pairs) }
    }

    /// Distance of a planned point from the query. `None` if the point measures something else, else the difference of
    /// the sizes in bytes, since probes round sizes to whole blocks.
    pub(crate) fn distance(&self, point: &MeasurementPoint) -> Option<u64> {
        let differs =
            |(name, value): (&String, &ParamValue)| match (name.as_str(), value, point.params.get(name)) {
                (param::SIZE, ParamValue::Number(wanted), Some(ParamValue::Number(found))) => {
                    Some(wanted.abs_diff(*found)).filter(|bytes| *bytes <= ROUNDING.max(wanted / 2))
                }
                (_, value, found) => (found == Some(value)).then_some(0),
            };
        (self.probe == point.probe).then(|| self.params.iter().map(differs).sum()).flatten()
    }
}

/// Difference between sizes that always counts as rounding, in bytes. Half of the wanted size counts, too.
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

/// File that the original program would read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LmbenchSourceFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Bytes that the file must have.
    pub at_least: u64,
}

type Print = Box<dyn Fn(&LmbenchJobReport<'_>, &mut LmbenchPage) + Send + Sync>;

/// Job made from a call: the points to measure, and the function that prints them.
pub struct LmbenchJob {
    /// Queries for the points to measure.
    pub queries: Vec<PointQuery>,
    /// Directory for the files of file probes.
    pub directory: Option<PathBuf>,
    /// File without which the original program would fail.
    pub source: Option<LmbenchSourceFile>,
    /// Value of `-N`, if it was given.
    pub repetitions: Option<u64>,
    /// Value of `-W`: the warm-up, in µs.
    pub warmup: u64,
    /// Notes about arguments that have no effect.
    pub notes: Vec<String>,
    print: Print,
}

impl LmbenchJob {
    /// Returns a job that measures `queries` and prints with `print`.
    pub fn new(
        options: &LmbenchOptions,
        queries: Vec<PointQuery>,
        print: impl Fn(&LmbenchJobReport<'_>, &mut LmbenchPage) + Send + Sync + 'static,
    ) -> LmbenchJob {
        LmbenchJob {
            queries,
            directory: None,
            source: None,
            repetitions: options.repetitions,
            warmup: options.warmup,
            notes: Vec::new(),
            print: Box::new(print),
        }
    }

    /// Text of the original program for a report. `planned` has the point that answers each query: the index of its
    /// step, and its index in the step. The text depends on nothing but the job and these.
    pub fn print(&self, planned: &[Option<(usize, usize)>], report: &Report) -> LmbenchPage {
        let mut page = LmbenchPage::default();
        let figures = LmbenchJobReport { job: self, planned, report };
        (self.print)(&figures, &mut page);
        let found = planned.iter().flatten().filter_map(|(step, point)| report.of_point(*step, *point));
        page.degraded(found.filter(|m| m.quality.level.is_doubtful()));
        page
    }
}

impl LmbenchJob {
    /// Text of the original program around figures, without any: all of it where there is nothing to measure.
    pub fn page_without_figures(&self) -> LmbenchPage {
        let plan = Plan::new("", Vec::new(), CpuList::default());
        let report = Report::new(ToolVersion::default(), String::new(), plan, Machine::default());
        self.print(&[], &report)
    }
}

impl fmt::Debug for LmbenchJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("queries", &self.queries)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// Report, with the job whose queries it answers.
pub struct LmbenchJobReport<'a> {
    job: &'a LmbenchJob,
    planned: &'a [Option<(usize, usize)>],
    report: &'a Report,
}

const NOT_OFFERED: &str = "it is not offered on this machine; `latscope list` shows what is";

impl<'a> LmbenchJobReport<'a> {
    /// Returns the measurement that answers a query.
    ///
    /// # Errors
    /// There is no such measurement, or it has no numbers.
    pub fn find_measurement(&self, query: &PointQuery) -> Result<&'a Measurement, NotMeasured> {
        let failed = |reason: String| NotMeasured { query: query.to_string(), reason };
        let index = self.job.queries.iter().position(|known| known == query);
        let planned = index.and_then(|index| *self.planned.get(index)?);
        let (step, point) = planned.ok_or_else(|| failed(NOT_OFFERED.to_owned()))?;
        let found = self.report.of_point(step, point);
        let found = found.ok_or_else(|| failed("the run ended before it".to_owned()))?;
        if found.quality.level != QualityLevel::Unsupported && found.typical().is_some() {
            return Ok(found);
        }
        let reason = found.joined_reasons().clone().unwrap_or_else(|| "no clean sample".to_owned());
        Err(failed(match remedy_text(found) {
            Some(remedy) => format!("{reason}; {remedy}"),
            None => reason,
        }))
    }

    /// Median of a point, in ns.
    ///
    /// # Errors
    /// The errors are those of [`LmbenchJobReport::find_measurement`].
    pub fn median_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        // `find_measurement` returns none without a median.
        Ok(self.find_measurement(query)?.typical().unwrap_or(f64::NAN))
    }

    /// Mean of a point, in ns. A loop around all of it would show the same, including disturbances.
    ///
    /// # Errors
    /// The errors are those of [`LmbenchJobReport::find_measurement`].
    pub(crate) fn mean_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let found = self.find_measurement(query)?;
        Ok(found.summary.mean.or(found.typical()).unwrap_or(f64::NAN))
    }

    /// Median of a point divided by its [elementary operations](latscope_core::report::OperationWork::ops), in ns.
    ///
    /// # Errors
    /// The errors are those of [`LmbenchJobReport::find_measurement`].
    pub(crate) fn ns_of_part(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let parts = self.find_measurement(query)?.work.map_or(1, |work| work.ops.max(1));
        Ok(self.median_ns(query)? / parts as f64)
    }

    /// Mean of a hand-over one way, in ns: half of a round trip.
    ///
    /// # Errors
    /// The errors are those of [`LmbenchJobReport::find_measurement`].
    pub(crate) fn one_way_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let share = if self.find_measurement(query)?.times == Semantics::RoundTrip { 0.5 } else { 1.0 };
        Ok(self.mean_ns(query)? * share)
    }

    /// Mean of a hand-over there and back, in ns: twice a one-way time.
    ///
    /// # Errors
    /// The errors are those of [`LmbenchJobReport::find_measurement`].
    pub(crate) fn round_trip_ns(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        let times = if self.find_measurement(query)?.times == Semantics::OneWay { 2.0 } else { 1.0 };
        Ok(self.mean_ns(query)? * times)
    }

    /// Bandwidth in bytes per second, for the bytes that the program asked for.
    ///
    /// # Errors
    /// The errors are those of [`LmbenchJobReport::find_measurement`]. Another is a point that states no bytes.
    pub fn bytes_per_second(&self, query: &PointQuery) -> Result<f64, NotMeasured> {
        self.find_measurement(query)?
            .rate_touched()
            .ok_or_else(|| NotMeasured { query: query.to_string(), reason: "it states no bytes".to_owned() })
    }
}
