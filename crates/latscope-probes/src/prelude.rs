//! Names that many probes need.

pub(crate) use crate::failure::{FirstError, explain, possible, refuse, time_each, too_few_cpus};
pub(crate) use anyhow::{Context, Result, bail, ensure};
pub(crate) use latscope_bench::bench::{Batch, Bench};
pub(crate) use latscope_bench::gate::{Gate, Watch};
pub(crate) use latscope_bench::probe::{Cpus, Experiment, Facts, PlanInput, Probe, Profile};
pub(crate) use latscope_bench::recorder::Writer;
pub(crate) use latscope_bench::settings::{Settings, Word};
pub(crate) use latscope_bench::threads::{self, Partner};
pub(crate) use latscope_bench::timebase::{AnyClock, Timebase};
pub(crate) use latscope_bench::{settings, words};
pub(crate) use latscope_core::catalogue::{Condition, ExclusiveCpus, Footprint, Headline, Samples, Subject};
pub(crate) use latscope_core::machine::Machine;
pub(crate) use latscope_core::plan::{ParamValue, Params, Point, Stop};
pub(crate) use latscope_core::report::{Better, Semantics, Work};
pub(crate) use latscope_core::statistics::median;
pub(crate) use latscope_core::units::{counted, format_size, format_time};
pub(crate) use latscope_machine::more_tasks;
pub(crate) use latscope_os::clock::{Clock, monotonic_ns};
pub(crate) use latscope_os::sched;
pub(crate) use latscope_os::shared_cell::{Scope, SharedCell};
pub(crate) use latscope_os::usage::thread_counts;
pub(crate) use rustix::fd::OwnedFd;
pub(crate) use rustix::io::Errno;
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::hint::black_box;
pub(crate) use std::sync::Arc;
pub(crate) use std::time::{Duration, Instant};
