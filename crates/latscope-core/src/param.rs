//! Parameters of points: their values, and the names that are known outside of the probes.
//!
//! A test of the command compares the names with the registry: each is a parameter of some probe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

macro_rules! names {
    ($($name:ident = $text:literal;)+) => {
        $(
            #[doc = concat!("Name of the parameter `", $text, "`.")]
            pub const $name: &str = $text;
        )+

        /// Returns every name of a probe's parameter in this module.
        pub fn all() -> impl Iterator<Item = &'static str> {
            [$($text),+].into_iter()
        }
    };
}

names! {
    // Places.
    CPU = "cpu"; CPU_NODES = "cpu-nodes"; NODES = "nodes"; NODE_CPUS = "node-cpus"; BOUND = "bound";
    PAIR = "pair"; CLASS = "class"; ALL_PAIRS = "all-pairs"; PLACEMENT = "placement"; DIRECTORY = "directory";
    FILESYSTEM = "filesystem"; DEVICE = "device"; PATH = "path";
    // Threads, and how they run.
    THREAD = "thread"; THREADS = "threads"; PROCESSES = "processes"; POLICY = "policy"; PRIORITY = "priority";
    CLOCK = "clock"; METHOD = "method"; VIA = "via"; CONTEXT = "context";
    // Times.
    INTERVAL = "interval"; RUNTIME = "runtime"; DEADLINE = "deadline"; DELAY = "delay"; GAP = "gap";
    HOG = "hog"; HOLD = "hold"; PACE = "pace"; PAUSE = "pause"; RATE = "rate"; SLACK = "slack";
    SLICE = "slice"; TIMEOUT = "timeout"; WORK = "work";
    // Memory and what is done with it.
    SIZE = "size"; STRIDE = "stride"; STEP = "step"; ORDER = "order"; PAGES = "pages"; CHAINS = "chains";
    BUFFER = "buffer"; SOURCE = "source"; BY = "by"; TOUCH = "touch"; TOUCHED = "touched"; OPERATION = "operation"; TYPE = "type"; MODE = "mode";
    DESCRIPTORS = "descriptors";
    // Messages.
    CALLER = "caller"; CALLER_THREAD = "caller-thread"; COPIES = "copies"; DIRECTION = "direction";
    FORM = "form"; HOPS = "hops"; INHERITANCE = "inheritance"; LOCK = "lock"; PAYLOAD = "payload";
    SERVICE = "service"; SINCE = "since"; TRANSPORT = "transport"; WAIT = "wait";
}

/// Parameter with the kind of core that a point is measured on. The planner adds it to rows that it plans for each
/// kind.
pub const KIND: &str = "kind";

/// The parameters of one measurement, by name: `size`, `order`, `placement`, …
pub type Params = BTreeMap<String, ParamValue>;

/// The value of a parameter. Sizes are in bytes, intervals in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ParamValue {
    /// A number: bytes, nanoseconds, threads.
    Number(u64),
    /// A choice, a path, or a pair of CPUs such as `0-1`.
    Text(String),
}

impl ParamValue {
    /// Returns the number, if it is one.
    pub fn as_number(&self) -> Option<u64> {
        match self {
            ParamValue::Number(number) => Some(*number),
            ParamValue::Text(_) => None,
        }
    }

    /// Returns the text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ParamValue::Text(text) => Some(text),
            ParamValue::Number(_) => None,
        }
    }
}

impl From<u64> for ParamValue {
    fn from(number: u64) -> Self {
        ParamValue::Number(number)
    }
}

impl From<&str> for ParamValue {
    fn from(text: &str) -> Self {
        ParamValue::Text(text.to_owned())
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamValue::Number(number) => number.fmt(f),
            ParamValue::Text(text) => text.fmt(f),
        }
    }
}

/// Beginning of the name of a parameter that the user named, as with `hyperfine --parameter-scan`.
pub const USER_PARAMETER: &str = "parameter-";

/// Builds [`Params`] from pairs: `params([("size", 4096.into())])`.
pub fn params<const N: usize>(pairs: [(&str, ParamValue); N]) -> Params {
    let mut params = Params::new();
    for (name, value) in pairs {
        params.insert(name.to_owned(), value);
    }
    params
}
