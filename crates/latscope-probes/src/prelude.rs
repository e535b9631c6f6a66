//! Names that many probes need.

pub(crate) use crate::activity::{Part, Parts};
pub(crate) use crate::failure::{
    FirstError, close_failed, enough_cpus, explain, possible, refuse, time_each, too_few_cpus,
};
pub(crate) use anyhow::{Context, Result, bail, ensure};
pub(crate) use latscope_bench::bench::{Batch, Bench, Splits};
pub(crate) use latscope_bench::gate::{Gate, Watch};
pub(crate) use latscope_bench::probe::{Cpus, Experiment, Facts, PlanInput, Probe, Profile};
pub(crate) use latscope_bench::recorder::Writer;
pub(crate) use latscope_bench::settings::{Settings, Word};
pub(crate) use latscope_bench::threads::{self, Partner};
pub(crate) use latscope_bench::timebase::{AnyClock, Timebase};
pub(crate) use latscope_bench::{settings, words};
pub(crate) use latscope_core::catalogue::{
    By, Condition, ExclusiveCpus, Footprint, Headline, Samples, Subject,
};
pub(crate) use latscope_core::machine::Machine;
pub(crate) use latscope_core::plan::{ParamValue, Params, Periodic, Point, Step, Stop};
pub(crate) use latscope_core::report::{Better, Exceedance, Semantics, Work};
pub(crate) use latscope_core::statistics::median;
pub(crate) use latscope_core::units::{counted, format_share, format_size, format_time};
pub(crate) use latscope_machine::more_tasks;
pub(crate) use latscope_os::clock::{Clock, monotonic_ns};
pub(crate) use latscope_os::futex::Tokens;
pub(crate) use latscope_os::memory::{Pages, Region};
pub(crate) use latscope_os::page::{Mapping, page_size};
pub(crate) use latscope_os::sched;
pub(crate) use latscope_os::semaphore::Semaphore;
pub(crate) use latscope_os::shared_cell::{Scope, SharedCell};
pub(crate) use latscope_os::usage::thread_counts;
pub(crate) use rustix::fd::OwnedFd;
pub(crate) use rustix::fs::OFlags;
pub(crate) use rustix::io::Errno;
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::ffi::CStr;
pub(crate) use std::hint::black_box;
pub(crate) use std::num::NonZeroU64;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, Ordering::Relaxed};
pub(crate) use std::time::{Duration, Instant};
