//! What can be measured, and the points of it.

use super::{PACE, PAYLOAD, TIMEOUT, TRANSPORT, WAIT, probe};
use crate::{Kind, Param, PlanInput, Probe};
use latscope_core::plan::{ParamValue, Params, Point, params};
use latscope_core::report::Semantics;
use latscope_core::units::format_size;
use latscope_exchange::remote::{LONGEST, PAYLOAD as USUAL};
use latscope_exchange::remote::{MAILBOXES, TRANSPORTS, Transport, shm};
use latscope_rpmsg::messages::{Form, LongPing, Ping, Word, block};

/// One message there and back.
pub static PING: Probe = probe(
    "remote.ping",
    "ping to a remote",
    "From before an RPMsg is put into a buffer until the echo of all of it was taken out of another one; all of the content \
     is verified afterwards.",
    Semantics::RoundTrip,
    &[TRANSPORT, WAIT, PAYLOAD, TIMEOUT, PACE],
    |input, _| plan(&PING, input),
);

/// Four KiB there and back.
pub static LONG_PING: Probe = probe(
    "remote.long-ping",
    "long ping to a remote",
    "From before the first of nine RPMsgs of up to 480 bytes (eight with --legacy) until the echoes of all were taken; each \
     is verified and so is their order.",
    Semantics::RoundTrip,
    &[
        TRANSPORT,
        WAIT,
        Param {
            name: "mode",
            help: "`pipelined`: all are sent back to back; `lock-step`: each waits for the echo of the one before, and the \
                   times of single packets are reported, too.",
            kind: Kind::Choice(MODES),
            axis: false,
        },
        Param {
            name: "form",
            help: "`exact`: 4096 bytes of data; `legacy`: the eight packets of MCS, with 3776.",
            kind: Kind::Stated,
            axis: false,
        },
        Param { name: "payload", help: "Bytes of data in all packets.", kind: Kind::Stated, axis: false },
        TIMEOUT,
        PACE,
    ],
    |input, _| plan(&LONG_PING, input),
);

/// Blocks without a pause.
pub static BANDWIDTH: Probe = probe(
    "remote.bandwidth",
    "bandwidth to a remote",
    "A stretch of blocks, from the last verified block of the stretch before to the last of this one, while as many are in flight as half of the buffers hold. The receiver verifies every byte.",
    Semantics::Operation,
    &[
        TRANSPORT,
        WAIT,
        Param {
            name: "direction",
            help: "`echoed`: there and back, verified by the host, order included; `to-remote`: verified by the remote, which \
                   reports from time to time.",
            kind: Kind::Choice(DIRECTIONS),
            axis: false,
        },
        PAYLOAD,
        TIMEOUT,
    ],
    |input, _| plan(&BANDWIDTH, input),
);

/// A word without RPMsg.
pub static MAILBOX: Probe = probe(
    "remote.mailbox",
    "single-word mailbox of a remote",
    "From before a word of 4 bytes is stored until the same word was loaded from another line, between the endpoints and in the \
     kind of memory of a ping: what RPMsg costs is the rest of that.",
    Semantics::RoundTrip,
    &[
        TRANSPORT,
        WAIT,
        Param { name: "payload", help: "Bytes of the word.", kind: Kind::Stated, axis: false },
        TIMEOUT,
        PACE,
    ],
    |input, _| plan(&MAILBOX, input),
);

/// The form that MCS has.
pub const LEGACY: &str = "legacy";
/// A packet of a long ping waits for the echo of the one before.
pub const LOCK_STEP: &str = "lock-step";
/// Blocks come back.
pub const ECHOED: &str = "echoed";

const MODES: &[&str] = &["pipelined", LOCK_STEP];
const DIRECTIONS: &[&str] = &[ECHOED, "to-remote"];

/// Bytes of the smallest message: its number.
pub const SMALLEST: u64 = block::SHORTEST as u64;

/// Bytes of a single word.
const WORD: u64 = 4;

/// Time for a message to come back, ns; later it is lost.
const SECOND: u64 = 1_000_000_000;

/// The points of a probe on each transport.
fn plan(probe: &'static Probe, input: &PlanInput) -> Vec<Point> {
    let asked = input.texts("transport", &[shm::SHM.name]);
    let transports = TRANSPORTS.iter().copied().filter(|known| asked.iter().any(|name| name == known.name));
    transports.flat_map(|transport| over(probe, input, transport)).collect()
}

/// The points of a probe on one transport.
fn over(probe: &'static Probe, input: &PlanInput, transport: &'static Transport) -> Vec<Point> {
    let bare = probe.id == MAILBOX.id;
    if bare && !MAILBOXES.iter().any(|(name, _)| *name == transport.name) {
        return Vec::new();
    }
    let all = probe.id == PING.id || bare;
    let usual = match transport.waits {
        [first, .., last] if !all || input.survey => &[*first, *last],
        waits => waits,
    };
    let usual = if input.survey && (bare || probe.id == BANDWIDTH.id) { &usual[..1] } else { usual };
    let mut points = Vec::new();
    let mut waits = input.choices("wait", usual, transport.waits);
    // A single word cannot say that no side sleeps.
    waits.retain(|wait| !(bare && wait == "spin-then-park"));
    for wait in waits {
        for shape in shapes(probe, input, transport) {
            for pace in paces(probe, input) {
                for timeout in input.numbers("timeout", &[SECOND]) {
                    let given = [("transport", transport.name.into()), ("timeout", timeout.into())];
                    let mut params = params(given);
                    params.insert("wait".to_owned(), wait.as_str().into());
                    params.extend(shape.clone());
                    params.extend(pace.map(|interval| ("pace".to_owned(), interval.into())));
                    options(transport, input, &mut params);
                    points.push(probe.point(params.clone(), title(probe, transport, &params), true));
                }
            }
        }
    }
    points
}

/// Intervals between pings; none for back to back.
fn paces(probe: &Probe, input: &PlanInput) -> Vec<Option<u64>> {
    if probe.id == BANDWIDTH.id || !input.gave("pace") {
        return vec![None];
    }
    input.numbers("pace", &[]).into_iter().map(Some).collect()
}

/// What is sent: parameters in which the probes differ.
fn shapes(probe: &Probe, input: &PlanInput, transport: &Transport) -> Vec<Params> {
    let longest = if transport.name == shm::SHM.name { LONGEST } else { USUAL } as u64;
    let payloads = |usual: &[u64]| match input.gave("sweep") {
        true => sweep(longest),
        false => input.numbers("payload", usual),
    };
    match probe.id {
        id if id == MAILBOX.id => vec![params([("payload", WORD.into())])],
        id if id == LONG_PING.id => {
            let (form, name) = match input.texts("form", &["exact"]).first().map(String::as_str) {
                Some(LEGACY) => (Form::Legacy, LEGACY),
                _ => (Form::Exact, "exact"),
            };
            let payload = data(LongPing { form, word: Word::Eight });
            let usual = if input.survey { &MODES[..1] } else { MODES };
            let modes = input.choices("mode", usual, MODES).into_iter();
            let shape = |mode: String| {
                [("mode", mode.as_str().into()), ("form", name.into()), ("payload", payload.into())]
            };
            modes.map(|mode| params(shape(mode))).collect()
        }
        id if id == BANDWIDTH.id => {
            let usual = if input.survey || longest == USUAL as u64 {
                vec![longest]
            } else {
                vec![USUAL as u64, longest]
            };
            let directions = input.choices("direction", DIRECTIONS, DIRECTIONS).into_iter();
            let of = |direction: String, payload: u64| {
                params([("direction", direction.as_str().into()), ("payload", payload.into())])
            };
            let payloads = payloads(&usual);
            directions
                .flat_map(|direction| payloads.iter().map(move |payload| of(direction.clone(), *payload)))
                .collect()
        }
        _ => payloads(&[Ping::SIZE as u64])
            .into_iter()
            .map(|payload| params([("payload", payload.into())]))
            .collect(),
    }
}

/// Bytes of data in all packets of a long ping.
fn data(ping: LongPing) -> u64 {
    let mut room = [0; LongPing::PACKET];
    (0..ping.packets()).map(|index| ping.write(index, &mut room).len() - ping.word.bytes()).sum::<usize>()
        as u64
}

/// Payloads from the smallest to the longest, by doubling.
fn sweep(longest: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (3..).map(|power| 1 << power).take_while(|size| *size < longest).collect();
    sizes.push(longest);
    sizes
}

/// Adds the options of a transport.
fn options(transport: &Transport, input: &PlanInput, params: &mut Params) {
    for option in transport.options {
        let value = input.values.get(option.name).and_then(|values| values.first());
        let usual = (!option.default.is_empty()).then(|| ParamValue::from(option.default));
        if let Some(value) = value.cloned().or(usual) {
            params.insert(option.name.to_owned(), value);
        }
    }
}

fn title(probe: &Probe, transport: &Transport, params: &Params) -> String {
    let over = (transport.name != shm::SHM.name).then(|| transport.name.to_owned());
    let word = |name: &str| params.get(name).map(ToString::to_string);
    let payload = match params.get("payload") {
        Some(ParamValue::Number(bytes)) => format_size(*bytes),
        _ => String::new(),
    };
    let words = [over, word("direction"), word("mode"), word("wait")];
    let words: Vec<String> = words.into_iter().flatten().collect();
    // A sample is of many blocks.
    let payload = if probe.id == BANDWIDTH.id { format!("stretch of {payload} blocks") } else { payload };
    format!("{}, {payload} ({})", probe.title, words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness::input;

    fn family() -> PlanInput {
        PlanInput { survey: false, ..input() }
    }

    fn numbers(points: &[Point]) -> Vec<u64> {
        points.iter().map(|point| point.number("payload")).collect()
    }

    #[test]
    fn each_way_to_wait_is_pinged_and_a_survey_is_short() {
        let waits: Vec<String> =
            plan(&PING, &family()).iter().map(|point| point.text("wait").to_owned()).collect();
        assert_eq!(waits, shm::SHM.waits);
        let surveyed: usize = super::super::PROBES.iter().map(|probe| plan(probe, &input()).len()).sum();
        assert_eq!(surveyed, 7);
    }

    #[test]
    fn a_sweep_ends_at_the_limit() {
        let mut input = family();
        input.values.insert("sweep".to_owned(), Vec::new());
        input.values.insert("wait".to_owned(), vec!["spin".into()]);
        let sizes = numbers(&plan(&PING, &input));
        assert_eq!((sizes[0], sizes[1], sizes.last()), (8, 16, Some(&(LONGEST as u64))));
        assert_eq!(sweep(USUAL as u64), [8, 16, 32, 64, 128, 256, 496]);
    }

    #[test]
    fn long_pings_state_their_data() {
        assert!(numbers(&plan(&LONG_PING, &family())).iter().all(|bytes| *bytes == 4096));
        let mut input = family();
        input.values.insert("form".to_owned(), vec![LEGACY.into()]);
        let legacy = plan(&LONG_PING, &input);
        assert!(numbers(&legacy).iter().all(|bytes| *bytes == 3776));
        let modes: Vec<&str> = legacy.iter().map(|point| point.text("mode")).collect();
        assert_eq!(modes, ["pipelined", LOCK_STEP, "pipelined", LOCK_STEP]);
    }

    #[test]
    fn a_title_says_what_a_sample_is() {
        let mut points = plan(&BANDWIDTH, &input());
        points.extend(plan(&PING, &input()));
        for point in points {
            let of_many = point.title.contains("stretch of");
            assert_eq!(of_many, point.probe == BANDWIDTH.id, "{}", point.title);
        }
    }

    #[test]
    fn a_pace_is_stated_where_it_is_kept() {
        let mut input = family();
        input.values.insert("pace".to_owned(), vec![200_000_000u64.into()]);
        assert!(plan(&PING, &input).iter().all(|point| point.number("pace") == 200_000_000));
        assert!(plan(&BANDWIDTH, &input).iter().all(|point| !point.params.contains_key("pace")));
    }
}
