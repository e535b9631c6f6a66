//! The probes of the family, and the plans of their points.

use super::{PACE, PAYLOAD, TIMEOUT, TRANSPORT, WAIT, WARM_UP, probe};
use crate::prelude::*;
use crate::{Param, ParamValueKind};
use latscope_bench::settings::{ParamValueRequest, SettingValue, get, given};
use latscope_exchange::remote::{
    self, LONGEST, MAILBOXES, PAYLOAD as USUAL, RemoteOption, RemoteTransport, TRANSPORTS, shm,
};
use latscope_rpmsg::messages::{self, LongPing, LongPingDivision, ShortPing, block};

/// Probe of a message there and back.
pub static PING: Probe = probe(
    "remote.ping",
    "ping to a remote",
    "From before an RPMsg is put into a buffer until its echo was taken out of another one; all of the content \
    is verified afterwards.",
    (Semantics::RoundTrip, Subject::Operation),
    &[TRANSPORT, WAIT, PAYLOAD, TIMEOUT, PACE, WARM_UP],
);

/// Probe of 4 KiB there and back.
pub static LONG_PING: Probe = probe(
    "remote.long-ping",
    "long ping to a remote",
    "From before the first of nine RPMsgs of up to 480 bytes (eight with --legacy) until the echoes of all were taken; each \
     is verified and so is their order.",
    (Semantics::RoundTrip, Subject::Operation),
    &[
        TRANSPORT,
        WAIT,
        Param {
            name: "mode",
            help: "`pipelined`: all are sent back to back; `lock-step`: each waits for the echo of the one before, and the \
                   times of single packets are reported, too.",
            kind: ParamValueKind::Choice(LongPingMode::MEANINGS),
            axis: false,
        },
        Param {
            name: "form",
            help: "`exact`: 4096 bytes of data; `legacy`: the eight packets of MCS, with 3776.",
            kind: ParamValueKind::Stated,
            axis: false,
        },
        Param {
            name: "payload",
            help: "Bytes of data in all packets.",
            kind: ParamValueKind::Stated,
            axis: false,
        },
        TIMEOUT,
        PACE,
        WARM_UP,
    ],
);

/// Probe of blocks without a pause.
pub static BANDWIDTH: Probe = probe(
    "remote.bandwidth",
    "bandwidth to a remote",
    "A stretch of blocks, from the last verified block of the stretch before to the last of this one, while as many are in flight as half of the buffers hold. The receiver verifies every byte.",
    (Semantics::Operation, Subject::Many),
    &[
        TRANSPORT,
        WAIT,
        Param {
            name: "direction",
            help: "`echoed`: there and back, verified by the host, order included; `to-remote`: verified by the remote, which \
                   reports from time to time.",
            kind: ParamValueKind::Choice(RemoteBlockDirection::MEANINGS),
            axis: false,
        },
        PAYLOAD,
        TIMEOUT,
    ],
);

/// Probe of a word without RPMsg.
pub static MAILBOX: Probe = probe(
    "remote.mailbox",
    "single-word mailbox of a remote",
    "From before a word of 4 bytes is stored until the same word was loaded from another line, in the memory of \
    a ping, without RPMsg.",
    (Semantics::RoundTrip, Subject::Operation),
    &[
        TRANSPORT,
        WAIT,
        Param { name: "payload", help: "Bytes of the word.", kind: ParamValueKind::Stated, axis: false },
        TIMEOUT,
        PACE,
        WARM_UP,
    ],
);

words! {
    /// Order in which the packets of a long ping are sent.
    pub(super) enum LongPingMode {
        /// All back to back.
        Pipelined = "pipelined",
        /// Each waits for the echo of the one before.
        LockStep = "lock-step",
    }
}

words! {
    /// The packets of a long ping.
    pub enum LongPingPackets {
        /// 4096 bytes of data.
        Exact = "exact",
        /// The eight packets of MCS.
        Legacy = "legacy",
    }
}

impl LongPingPackets {
    /// The long ping of these packets.
    pub(super) fn ping(self) -> LongPing {
        let form = match self {
            LongPingPackets::Exact => LongPingDivision::Exact,
            LongPingPackets::Legacy => LongPingDivision::Legacy,
        };
        LongPing { form, word: messages::PingWordSize::Eight }
    }
}

words! {
    /// Direction of the blocks.
    pub(super) enum RemoteBlockDirection {
        /// The remote sends them back.
        Echoed = "echoed",
        /// The remote verifies them.
        ToRemote = "to-remote",
    }
}

/// Content of the messages: parameters in which the probes differ.
#[derive(Debug, Clone, Copy)]
pub(super) enum RemoteMessagePlan {
    /// A message of so many bytes.
    Message(u64),
    /// The packets of a long ping.
    LongPing(LongPingMode, LongPingPackets),
    /// Blocks of so many bytes.
    Blocks(RemoteBlockDirection, u64),
}

/// The parameters of a point.
pub(super) struct Sent {
    /// Transport of the messages.
    pub transport: &'static RemoteTransport,
    /// Way of waiting for a message, out of those of the transport.
    pub wait: String,
    pub content: RemoteMessagePlan,
    /// Time after which a message is lost, ns.
    pub timeout: u64,
    /// Time from one ping to the next, ns; `None` for back to back.
    pub pace: Option<u64>,
    /// Number of pings before the first that is recorded; `None` for the usual number.
    pub warm_up: Option<u64>,
    /// The transport's own options.
    pub options: Params,
}

impl Sent {
    /// Returns the parameters of a point.
    ///
    /// # Errors
    /// The parameters are not those of the point's probe.
    pub fn from_point(point: &MeasurementPoint) -> Result<Sent> {
        let sent = Sent::read(point)?;
        let probes: &[&Probe] = match sent.content {
            RemoteMessagePlan::Message(_) => &[&PING, &MAILBOX],
            RemoteMessagePlan::LongPing(..) => &[&LONG_PING],
            RemoteMessagePlan::Blocks(..) => &[&BANDWIDTH],
        };
        ensure!(probes.iter().any(|probe| probe.id == point.probe), "{} sends something else", point.probe);
        Ok(sent)
    }

    /// Bytes of data in a message, a block, or all packets of a long ping.
    pub fn payload(&self) -> u64 {
        match self.content {
            RemoteMessagePlan::Message(payload) | RemoteMessagePlan::Blocks(_, payload) => payload,
            RemoteMessagePlan::LongPing(_, packets) => long_ping_bytes(packets.ping()),
        }
    }

    fn point_title(&self, probe: &Probe) -> String {
        let over = (self.transport.name != shm::SHM.name).then_some(self.transport.name);
        let size = format_size(self.payload());
        let (how, payload) = match self.content {
            RemoteMessagePlan::Message(_) => (None, size),
            RemoteMessagePlan::LongPing(mode, _) => (Some(mode.word()), size),
            // A sample is of many blocks.
            RemoteMessagePlan::Blocks(direction, _) => {
                (Some(direction.word()), format!("stretch of {size} blocks"))
            }
        };
        let words: Vec<&str> = [over, how, Some(&self.wait)].into_iter().flatten().collect();
        format!("{}, {payload} ({})", probe.title, words.join(", "))
    }
}

impl PointSettings for Sent {
    const LIST: &'static [Param] = &[];

    fn params(&self) -> Params {
        let (mode, form, direction) = match self.content {
            RemoteMessagePlan::Message(_) => (None, None, None),
            RemoteMessagePlan::LongPing(mode, packets) => (Some(mode), Some(packets), None),
            RemoteMessagePlan::Blocks(direction, _) => (None, None, Some(direction)),
        };
        let mut params = given([
            ("transport", Some(self.transport.name.into())),
            ("wait", self.wait.to_param()),
            ("payload", self.payload().to_param()),
            ("timeout", self.timeout.to_param()),
            ("mode", mode.to_param()),
            ("form", form.to_param()),
            ("direction", direction.to_param()),
            ("pace", self.pace.to_param()),
            ("warm-up", self.warm_up.to_param()),
        ]);
        params.extend(self.options.clone());
        params
    }

    fn from_params(params: &Params) -> Option<Sent> {
        let transport = remote::transport(&get::<String>(params, "transport")?)?;
        let wait = get::<String>(params, "wait").filter(|wait| transport.waits.contains(&wait.as_str()))?;
        let content = match (
            get::<Option<LongPingMode>>(params, "mode")?,
            get::<Option<RemoteBlockDirection>>(params, "direction")?,
        ) {
            (None, None) => RemoteMessagePlan::Message(get(params, "payload")?),
            (Some(mode), None) => RemoteMessagePlan::LongPing(mode, get(params, "form")?),
            (None, Some(direction)) => RemoteMessagePlan::Blocks(direction, get(params, "payload")?),
            (Some(_), Some(_)) => return None,
        };
        let own = params.iter().filter(|(name, _)| transport.has_option(name));
        Some(Sent {
            transport,
            wait,
            content,
            timeout: get(params, "timeout")?,
            pace: get(params, "pace")?,
            warm_up: get(params, "warm-up")?,
            options: own.map(|(name, value)| (name.clone(), value.clone())).collect(),
        })
    }
}

/// Bytes of the smallest block: its number. A ping may be shorter, and is then a part of its number.
pub const SMALLEST_BLOCK: u64 = block::SHORTEST as u64;

/// Bytes of a single word.
const WORD: u64 = 4;

/// Time for a message to come back, ns; later it is lost.
const SECOND: u64 = 1_000_000_000;

/// The points of a probe on each transport.
pub(super) fn plan_points(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = ParamValueRequest::of::<String>(input, "transport").or(&[shm::SHM.name.to_owned()]);
    let transports = TRANSPORTS.iter().copied().filter(|known| asked.iter().any(|name| name == known.name));
    transports.flat_map(|transport| plan_transport(probe, input, transport)).collect()
}

/// The points of a probe on one transport.
fn plan_transport(
    probe: &Probe,
    input: &PlanInput,
    transport: &'static RemoteTransport,
) -> Vec<MeasurementPoint> {
    let mut points = Vec::new();
    for wait in waits(probe, input, transport) {
        for content in contents(probe, input, transport) {
            for pace in paces(probe, input) {
                for timeout in ParamValueRequest::of::<u64>(input, "timeout").or(&[SECOND]) {
                    let (wait, options) = (wait.clone(), options(transport, input));
                    let warm_up = warm_up(probe, input);
                    let sent = Sent { transport, wait, content, timeout, pace, warm_up, options };
                    let title = sent.point_title(probe);
                    points.push(probe.make_point(sent, title, true));
                }
            }
        }
    }
    points
}

/// The ways to wait; empty if the transport does not have what the probe needs.
fn waits(probe: &Probe, input: &PlanInput, transport: &RemoteTransport) -> Vec<String> {
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
    let usual: Vec<String> = usual.iter().map(ToString::to_string).collect();
    let mut waits = ParamValueRequest::of::<String>(input, "wait").or(&usual);
    // A single word cannot say that no side sleeps.
    waits.retain(|wait| transport.waits.contains(&wait.as_str()) && !(bare && wait == "spin-then-park"));
    waits
}

/// Intervals between pings; none for back to back.
fn paces(probe: &Probe, input: &PlanInput) -> Vec<Option<u64>> {
    let asked = ParamValueRequest::of::<u64>(input, "pace");
    if probe.id == BANDWIDTH.id || !asked.given() {
        return vec![None];
    }
    asked.or(&[]).into_iter().map(Some).collect()
}

/// Number of pings before the first that is recorded, if it was given.
fn warm_up(probe: &Probe, input: &PlanInput) -> Option<u64> {
    let asked = ParamValueRequest::of::<u64>(input, "warm-up");
    if probe.id == BANDWIDTH.id || !asked.given() { None } else { asked.first() }
}

/// Contents that a probe sends over a transport.
fn contents(probe: &Probe, input: &PlanInput, transport: &RemoteTransport) -> Vec<RemoteMessagePlan> {
    let longest = if transport.name == shm::SHM.name { LONGEST } else { USUAL } as u64;
    let payloads = |usual: &[u64]| match input.values.contains_key("sweep") {
        true => sweep(longest),
        false => ParamValueRequest::of::<u64>(input, "payload").or(usual),
    };
    match probe.id {
        id if id == MAILBOX.id => vec![RemoteMessagePlan::Message(WORD)],
        id if id == LONG_PING.id => {
            let packets = ParamValueRequest::of::<LongPingPackets>(input, "form")
                .first()
                .unwrap_or(LongPingPackets::Exact);
            let usual = if input.survey { &LongPingMode::ALL[..1] } else { LongPingMode::ALL };
            let modes = ParamValueRequest::of::<LongPingMode>(input, "mode").or(usual).into_iter();
            modes.map(|mode| RemoteMessagePlan::LongPing(mode, packets)).collect()
        }
        id if id == BANDWIDTH.id => {
            let usual = if input.survey || longest == USUAL as u64 {
                vec![longest]
            } else {
                vec![USUAL as u64, longest]
            };
            let payloads = payloads(&usual);
            let of = |direction| {
                payloads.iter().map(move |payload| RemoteMessagePlan::Blocks(direction, *payload))
            };
            ParamValueRequest::of::<RemoteBlockDirection>(input, "direction")
                .or(RemoteBlockDirection::ALL)
                .into_iter()
                .flat_map(of)
                .collect()
        }
        _ => payloads(&[ShortPing::SIZE as u64]).into_iter().map(RemoteMessagePlan::Message).collect(),
    }
}

/// Bytes of data in all packets of a long ping.
fn long_ping_bytes(ping: LongPing) -> u64 {
    let mut room = [0; LongPing::PACKET];
    (0..ping.packets())
        .map(|index| ping.write_packet(index, &mut room).len() - ping.word.bytes())
        .sum::<usize>() as u64
}

/// Payloads from the smallest to the longest, by doubling.
fn sweep(longest: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (3..).map(|power| 1 << power).take_while(|size| *size < longest).collect();
    sizes.push(longest);
    sizes
}

/// The options of a transport.
fn options(transport: &RemoteTransport, input: &PlanInput) -> Params {
    let option = |option: &RemoteOption| {
        let value = input.values.get(option.name).and_then(|values| values.first());
        let usual = (!option.default.is_empty()).then(|| ParamValue::from(option.default));
        Some((option.name.to_owned(), value.cloned().or(usual)?))
    };
    transport.options.iter().filter_map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness::{input, machine};

    fn family() -> PlanInput {
        PlanInput { survey: false, ..input() }
    }

    fn numbers(points: &[MeasurementPoint]) -> Vec<u64> {
        points.iter().map(|point| point.numeric_param("payload")).collect()
    }

    #[test]
    fn each_way_to_wait_is_pinged_and_a_survey_is_short() {
        let waits: Vec<String> = PING
            .plan(&family(), &machine())
            .iter()
            .map(|point| point.text_param("wait").to_owned())
            .collect();
        assert_eq!(waits, shm::SHM.waits);
        let surveyed: usize =
            super::super::PROBES.iter().map(|probe| plan_points(probe, &input(), &machine()).len()).sum();
        assert_eq!(surveyed, 7);
    }

    #[test]
    fn a_sweep_ends_at_the_limit() {
        let mut input = family();
        input.values.insert("sweep".to_owned(), Vec::new());
        input.values.insert("wait".to_owned(), vec!["spin".into()]);
        let sizes = numbers(&PING.plan(&input, &machine()));
        assert_eq!((sizes[0], sizes[1], sizes.last()), (8, 16, Some(&(LONGEST as u64))));
        assert_eq!(sweep(USUAL as u64), [8, 16, 32, 64, 128, 256, 496]);
    }

    #[test]
    fn long_pings_state_their_data() {
        assert!(numbers(&LONG_PING.plan(&family(), &machine())).iter().all(|bytes| *bytes == 4096));
        let mut input = family();
        input.values.insert("form".to_owned(), vec![LongPingPackets::Legacy.word().into()]);
        let legacy = LONG_PING.plan(&input, &machine());
        assert!(numbers(&legacy).iter().all(|bytes| *bytes == 3776));
        let modes: Vec<&str> = legacy.iter().map(|point| point.text_param("mode")).collect();
        assert_eq!(modes, ["pipelined", "lock-step", "pipelined", "lock-step"]);
    }

    #[test]
    fn what_another_probe_or_transport_has_is_refused() {
        let point = LONG_PING.plan(&family(), &machine()).remove(0);
        assert!(Sent::from_point(&point).is_ok());
        assert!(Sent::from_point(&MeasurementPoint { probe: PING.id.to_owned(), ..point.clone() }).is_err());
        for (name, value) in [("wait", "doorbell".into()), ("payload", 7u64.into()), ("port", 1u64.into())] {
            let mut other = point.clone();
            other.params.insert(name.to_owned(), value);
            assert!(Sent::from_point(&other).is_err(), "{name}");
        }
    }

    #[test]
    fn a_title_says_what_a_sample_is() {
        let mut points = BANDWIDTH.plan(&input(), &machine());
        points.extend(PING.plan(&input(), &machine()));
        for point in points {
            let of_many = point.title.contains("stretch of");
            assert_eq!(of_many, point.probe == BANDWIDTH.id, "{}", point.title);
        }
    }

    #[test]
    fn a_warm_up_is_stated_where_it_was_given() {
        let mut input = family();
        assert!(PING.plan(&input, &machine()).iter().all(|point| !point.params.contains_key("warm-up")));
        input.values.insert("warm-up".to_owned(), vec![0u64.into()]);
        for probe in [&PING, &LONG_PING, &MAILBOX] {
            assert!(probe.plan(&input, &machine()).iter().all(|point| point.numeric_param("warm-up") == 0));
        }
        assert!(BANDWIDTH.plan(&input, &machine()).iter().all(|point| !point.params.contains_key("warm-up")));
    }

    #[test]
    fn a_pace_is_stated_where_it_is_kept() {
        let mut input = family();
        input.values.insert("pace".to_owned(), vec![200_000_000u64.into()]);
        assert!(PING.plan(&input, &machine()).iter().all(|point| point.numeric_param("pace") == 200_000_000));
        assert!(BANDWIDTH.plan(&input, &machine()).iter().all(|point| !point.params.contains_key("pace")));
    }
}
