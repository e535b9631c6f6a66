//! Names that nearly every probe needs.

pub(crate) use crate::failure::{FirstError, explain, possible, refuse, time_each};
pub(crate) use latscope_bench::bench::{Batch, Bench};
pub(crate) use latscope_bench::gate::Gate;
pub(crate) use latscope_bench::probe::{Cpus, Experiment, Facts, PlanInput, Probe, Profile};
pub(crate) use latscope_bench::settings::{Settings, Word};
pub(crate) use latscope_bench::{settings, words};
pub(crate) use latscope_core::catalogue::{Condition, ExclusiveCpus, Footprint, Headline, Samples, Subject};
pub(crate) use latscope_core::machine::Machine;
pub(crate) use latscope_core::plan::{Params, Point};
pub(crate) use latscope_core::report::{Better, Semantics, Work};
pub(crate) use latscope_core::units::{counted, format_size, format_time};
pub(crate) use latscope_os::clock::Clock;
pub(crate) use std::hint::black_box;
