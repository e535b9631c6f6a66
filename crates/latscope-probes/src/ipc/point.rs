//! What one caller of a pair does, and its form as the parameters of a point.

use super::hog::{HIGH, ROUNDS_A_SECOND};
use super::message;
use latscope_core::plan::{ParamValue, Params, Point};
use latscope_core::units::format_size;
use latscope_exchange::transaction::Transport;
use serde::{Deserialize, Serialize};

/// Id of the probe of priority inversion.
pub const INVERSION: &str = "ipc.inversion";

/// What is measured of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Each call, there and back, with a small payload.
    Latency,
    /// Each call, with a payload that is echoed and verified.
    Throughput,
    /// From the stamp of the sender to that of the receiver.
    OneWay,
    /// Each call of something that others serve, which answers with nothing.
    Ping,
    /// Each call, while the server works for it and a hog of middle priority
    /// wants its CPU.
    Inversion,
}

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Caller {
    /// A thread of SCHED_OTHER.
    Other,
    /// A thread of SCHED_FIFO with this priority.
    Fifo(u32),
}

/// Where client and server run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Both on one CPU.
    SameCore,
    /// Each on a CPU of its own.
    TwoCores,
    /// Where the scheduler puts them.
    Free,
}

/// From where on a duration counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The beginning of the call.
    Call,
    /// The instant it was due: a caller that is late has waited.
    Due,
}

/// One row: a caller of a pair, and how it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Name of the transport.
    pub transport: String,
    /// What is measured.
    pub mode: Mode,
    /// Who calls.
    pub caller: Caller,
    /// Number of the pair of processes, from 0.
    pub pair: u64,
    /// Where they run.
    pub placement: Placement,
    /// Bytes of a request, and of its reply.
    pub payload: u64,
    /// A call that takes longer misses, ns.
    pub deadline: u64,
    /// Whether each call is made by a new thread.
    pub fresh: bool,
    /// Calls a second, for those that are paced.
    pub rate: Option<u64>,
    /// From where on it counts.
    pub since: Since,
    /// So many first calls are printed in full.
    pub hops: u64,
    /// Whether the server looks up its scheduling in each call.
    pub watched: bool,
    /// Whom to ping, where others serve.
    pub service: Option<String>,
}

impl Mode {
    /// Its words in results.
    pub const WORDS: &'static [&'static str] = &["latency", "throughput", "one-way", "ping", "inversion"];

    /// Its word.
    pub fn word(self) -> &'static str {
        Mode::WORDS[self as usize]
    }

    /// The one with this word.
    pub fn named(word: &str) -> Option<Mode> {
        let all = [Mode::Latency, Mode::Throughput, Mode::OneWay, Mode::Ping, Mode::Inversion];
        all.into_iter().find(|mode| mode.word() == word)
    }
}

impl Placement {
    /// Its words on the command line and in results.
    pub const WORDS: &'static [&'static str] = &["same-core", "two-cores", "free"];

    /// Its word.
    pub fn word(self) -> &'static str {
        Placement::WORDS[self as usize]
    }

    /// The one with this word.
    pub fn named(word: &str) -> Option<Placement> {
        [Placement::SameCore, Placement::TwoCores, Placement::Free].into_iter().find(|p| p.word() == word)
    }
}

impl Caller {
    /// Its words on the command line and in results.
    pub const WORDS: &'static [&'static str] = &["other", "fifo"];

    /// Its word.
    pub fn word(self) -> &'static str {
        if self == Caller::Other { "other" } else { "fifo" }
    }
}

impl Row {
    /// The point of this row; what the transport is like is stated beside.
    pub fn point(&self, transport: &Transport) -> Point {
        let title = match self.mode {
            Mode::Throughput => format!("{}, {}", transport.title, format_size(self.payload)),
            _ => format!("{}, {} caller, pair {}", transport.title, self.caller.word(), self.pair),
        };
        let probe = format!("ipc.{}", transport.name);
        let revision = crate::find(&probe).map_or(1, |probe| probe.revision);
        Point { probe, revision, params: self.params(transport), title, row: false }
    }

    fn params(&self, transport: &Transport) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: ParamValue| params.insert(name.to_owned(), value);
        put("transport", self.transport.as_str().into());
        put("mode", self.mode.word().into());
        put("caller", self.caller.word().into());
        put("pair", self.pair.into());
        put("placement", self.placement.word().into());
        put("payload", self.payload.into());
        put("deadline", self.deadline.into());
        put("wait", if transport.spins { "spin" } else { "block" }.into());
        put("copies", u64::from(transport.copies).into());
        put("inheritance", transport.inheritance.unwrap_or("none").into());
        if let Caller::Fifo(priority) = self.caller {
            put("priority", u64::from(priority).into());
            put("caller-thread", if self.fresh { "fresh" } else { "kept" }.into());
        }
        if let Some(rate) = self.rate {
            put("rate", rate.into());
            put("since", if self.since == Since::Due { "due" } else { "call" }.into());
        }
        if self.hops > 0 {
            put("hops", self.hops.into());
        }
        if self.watched {
            put("watched", "each call".into());
        }
        if let Some(service) = &self.service {
            put("service", service.as_str().into());
        }
        params
    }

    /// The row of a point.
    ///
    /// # Panics
    /// If the point is neither of [`Row::point`] nor of priority inversion.
    pub fn of(point: &Point) -> Row {
        if point.probe == INVERSION {
            return Row::of_inversion(point.text("lock"));
        }
        let number = |name: &str| match point.params.get(name) {
            Some(ParamValue::Number(number)) => Some(*number),
            _ => None,
        };
        let is = |name: &str, word: &str| matches!(point.params.get(name), Some(ParamValue::Text(text)) if text == word);
        Row {
            transport: point.text("transport").to_owned(),
            mode: Mode::named(point.text("mode")).expect("a mode of ours"),
            caller: match point.text("caller") {
                "fifo" => Caller::Fifo(point.number("priority") as u32),
                _ => Caller::Other,
            },
            pair: point.number("pair"),
            placement: Placement::named(point.text("placement")).expect("a placement of ours"),
            payload: point.number("payload"),
            deadline: point.number("deadline"),
            fresh: is("caller-thread", "fresh"),
            rate: number("rate"),
            since: if is("since", "due") { Since::Due } else { Since::Call },
            hops: number("hops").unwrap_or(0),
            watched: point.params.contains_key("watched"),
            service: point.params.get("service").map(ToString::to_string),
        }
    }

    /// The row of priority inversion over a transport: its point states no more.
    fn of_inversion(transport: &str) -> Row {
        Row {
            transport: transport.to_owned(),
            mode: Mode::Inversion,
            caller: Caller::Fifo(HIGH),
            pair: 0,
            placement: Placement::SameCore,
            payload: message::LENGTH as u64,
            deadline: u64::MAX,
            fresh: false,
            rate: Some(ROUNDS_A_SECOND),
            since: Since::Call,
            hops: 0,
            watched: false,
            service: None,
        }
    }

    /// Whether both belong to one run of processes: they differ in the pair, in
    /// who calls, and in from where on it counts.
    pub fn runs_with(&self, other: &Row) -> bool {
        let alike = |row: &Row| Row {
            caller: Caller::Other,
            pair: 0,
            fresh: false,
            since: Since::Call,
            ..row.clone()
        };
        alike(self) == alike(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::transports;

    fn row() -> Row {
        Row {
            transport: transports().next().unwrap().name.to_owned(),
            mode: Mode::Latency,
            caller: Caller::Fifo(95),
            pair: 2,
            placement: Placement::TwoCores,
            payload: 32,
            deadline: 2_500_000,
            fresh: true,
            rate: Some(500),
            since: Since::Due,
            hops: 4,
            watched: true,
            service: None,
        }
    }

    #[test]
    fn a_row_is_read_back_from_its_point() {
        let transport = transports().next().unwrap();
        let plain = Row {
            caller: Caller::Other,
            fresh: false,
            rate: None,
            since: Since::Call,
            hops: 0,
            watched: false,
            ..row()
        };
        let ping = Row { mode: Mode::Ping, service: Some("0".to_owned()), payload: 0, ..row() };
        for row in [row(), plain, ping] {
            assert_eq!(Row::of(&row.point(transport)), row);
        }
    }

    #[test]
    fn the_callers_of_all_pairs_run_together() {
        assert!(row().runs_with(&Row { caller: Caller::Other, fresh: false, pair: 0, ..row() }));
        assert!(!row().runs_with(&Row { payload: 64, ..row() }));
    }
}
