//! Names that many probes need.

pub(crate) use crate::activity::{ActivityPart, ActivityParts};
pub(crate) use crate::failure::{
    FirstError, close_failed, enough_cpus, explain, ok_or_refuse, refuse, time_each, too_few_cpus,
};
pub(crate) use anyhow::{Context, Result, bail, ensure};
pub(crate) use latscope_bench::bench::{Batch, Bench, Splits};
pub(crate) use latscope_bench::gate::{DisturbanceWatch, SampleGate};
pub(crate) use latscope_bench::probe::{Cpus, Experiment, PlanInput, Probe, ProbeFacts, SurveyProfile};
pub(crate) use latscope_bench::recorder::HistogramSlotWriter;
pub(crate) use latscope_bench::settings::{KeywordEnum, PointSettings};
pub(crate) use latscope_bench::threads::{self, Partner};
pub(crate) use latscope_bench::timebase::{AnyClock, Timebase};
pub(crate) use latscope_bench::{settings, words};
pub(crate) use latscope_core::catalogue::{
    Condition, ExclusiveCpus, Footprint, ProbeHeadline, ProbeSampleKind, Subject, SyscallInvocation,
};
pub(crate) use latscope_core::machine::Machine;
pub(crate) use latscope_core::plan::{MeasurementPoint, ParamValue, Params, Periodic, PlanStep, Stop};
pub(crate) use latscope_core::report::{Better, Exceedance, OperationWork, Semantics};
pub(crate) use latscope_core::statistics::median;
pub(crate) use latscope_core::units::{count_with_noun, format_share, format_size, format_time};
pub(crate) use latscope_machine::more_tasks;
pub(crate) use latscope_os::clock::{Clock, monotonic_ns};
pub(crate) use latscope_os::futex::Tokens;
pub(crate) use latscope_os::memory::{MemoryRegion, RegionPageSize};
pub(crate) use latscope_os::page::{PageMapping, page_size};
pub(crate) use latscope_os::sched;
pub(crate) use latscope_os::semaphore::Semaphore;
pub(crate) use latscope_os::shared_cell::{SharedCell, SharingScope};
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
