//! The experiment: each point over a connection of its own, or over that of the point before where the transport allows
//! it.

use super::deadlines::PingSchedule;
use super::patience::RemotePatience;
use super::ping_loop::{MOST_LOSSES, PingContentKind, PingLoop};
use super::plan::{LongPingMode, MAILBOX, RemoteBlockDirection, RemoteMessagePlan, Sent};
use super::status;
use super::stream::{RemoteBlockStream, RemoteStreamOutcome};
use crate::prelude::*;
use latscope_core::histogram::Histogram;
use latscope_exchange::remote::{
    ChannelFailure, ChannelRequest, MAILBOXES, RemoteAbsent, RemoteChannel, tty,
};
use latscope_process::guardian::Guardian;
use latscope_process::leftover::Leftover;
use latscope_rpmsg::echo::RpmsgService;
use latscope_rpmsg::messages::{LongPing, RpmsgStatus, ShortPing};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// First pings that are not recorded, back to back and paced.
const WARM_UP: [u64; 2] = [100, 1];

/// Measures each point. A point that cannot be measured is closed with the reason.
///
/// # Errors
/// A point has invalid parameters.
pub fn measure_points(bench: &mut Bench) -> Result<()> {
    let mut kept = Kept::default();
    let mut patience = RemotePatience::new(&bench.stop());
    for (index, point) in bench.points().iter().enumerate() {
        let sent = Sent::from_point(point)?;
        let guardian = Guardian::default();
        let remote = (sent.transport.name, sent.options.clone());
        let began = Instant::now();
        match connect(bench, point, &sent, (&mut kept, &guardian, patience.remaining_wait(&remote))) {
            Ok(channel) => {
                patience.record_arrival(remote);
                kept.keep_channel(measure_point(bench, index, (channel, point), &sent), &sent);
            }
            // A remote that this program starts is missing for a reason of this machine.
            Err(error) if !sent.transport.ours && !is_without_sink(&sent) => {
                if error.is::<RemoteAbsent>() {
                    patience.waited_in_vain(remote, began.elapsed());
                }
                bench.no_peer(index, format!("{error:#}"))
            }
            failed => close_failed(bench, &[index], failed.map(drop), ""),
        }
        if bench.is_stopping() {
            break;
        }
    }
    Ok(())
}

/// Returns true if blocks would go to a remote that verifies them, and the transport is a terminal, which only echoes.
fn is_without_sink(sent: &Sent) -> bool {
    let to_remote = matches!(sent.content, RemoteMessagePlan::Blocks(RemoteBlockDirection::ToRemote, _));
    to_remote && [tty::TTY.name, "tty-line"].contains(&sent.transport.name)
}

/// Measures a point over a channel, and returns the channel.
fn measure_point(
    bench: &mut Bench,
    index: usize,
    (mut channel, point): (Box<dyn RemoteChannel>, &MeasurementPoint),
    sent: &Sent,
) -> Box<dyn RemoteChannel> {
    let (limit, payload) = (channel.limit(), sent.payload());
    let before = asked_status(&mut *channel, sent);
    let mut channel = match sent.content {
        // A long ping is in packets, and states all of its data.
        RemoteMessagePlan::LongPing(..) => pings(bench, index, (channel, point), sent),
        _ if payload > limit as u64 => {
            let name = sent.transport.name;
            let reason = format!("a payload of {payload} bytes is above the limit of {name}");
            bench.unsupported(index, reason, format!("choose at most {limit}"));
            channel
        }
        RemoteMessagePlan::Blocks(direction, payload) => {
            stream(bench, index, (channel, sent), direction, payload)
        }
        RemoteMessagePlan::Message(_) => pings(bench, index, (channel, point), sent),
    };
    if let Some(before) = before
        && let Some(after) = asked_status(&mut *channel, sent)
    {
        status::report_status(bench, index, (&before, &after));
    }
    channel
}

/// What a remote says of itself, where this program did not start it.
fn asked_status(channel: &mut dyn RemoteChannel, sent: &Sent) -> Option<RpmsgStatus> {
    if sent.transport.ours || channel.end_description().is_some() { None } else { channel.status() }
}

/// Connection of the last point, with its transport and the options of that, if the next point may use it.
#[derive(Default)]
struct Kept(Option<(Box<dyn RemoteChannel>, &'static str, Params)>);

impl Kept {
    /// Keeps the connection of a point that is done, if it serves further ones.
    fn keep_channel(&mut self, mut channel: Box<dyn RemoteChannel>, sent: &Sent) {
        if channel.is_reusable() && channel.end_description().is_none() {
            self.0 = Some((channel, sent.transport.name, sent.options.clone()));
        }
    }

    /// Returns the connection that was kept, if it leads to the remote of a point. Any other is closed.
    fn take_channel(&mut self, sent: &Sent) -> Option<Box<dyn RemoteChannel>> {
        let (channel, transport, options) = self.0.take()?;
        (transport == sent.transport.name && options == sent.options).then_some(channel)
    }
}

/// Connects to the service that a point needs.
fn connect(
    bench: &mut Bench,
    point: &MeasurementPoint,
    sent: &Sent,
    (kept, guardian, patience): (&mut Kept, &Guardian, Duration),
) -> Result<Box<dyn RemoteChannel>> {
    let name = sent.transport.name;
    let here = bench.cpus()[0];
    threads::pin(here)?;
    let service = match sent.content {
        RemoteMessagePlan::LongPing(..) => RpmsgService::LongPing,
        RemoteMessagePlan::Blocks(RemoteBlockDirection::Echoed, _) => RpmsgService::Bandwidth,
        RemoteMessagePlan::Blocks(RemoteBlockDirection::ToRemote, _) => RpmsgService::Sink,
        RemoteMessagePlan::Message(payload) if payload == ShortPing::SIZE as u64 => RpmsgService::Ping,
        // It echoes what the service of pings would refuse.
        RemoteMessagePlan::Message(_) => RpmsgService::Pty,
    };
    let journal = |leftover: &Leftover| guardian.journal_leftover(leftover);
    let (cpus, bench) = (bench.cpus().to_vec(), RefCell::new(bench));
    let notice = |text: &str| bench.borrow_mut().announce_wait(text);
    let (params, cpus, journal, notice) = (&point.params, &cpus, &journal, &notice);
    let order = ChannelRequest { params, service, cpus, journal, patience, notice };
    let channel = if point.probe == MAILBOX.id {
        let of_name = MAILBOXES.iter().find(|(known, _)| *known == name);
        (of_name.context("this transport has no single-word mailbox")?.1)(&order)?
    } else if let Some(mut channel) = kept.take_channel(sent) {
        channel.turn_to(&order)?;
        channel
    } else {
        (sent.transport.open)(&order)?
    };
    bench.into_inner().find_peers();
    Ok(channel)
}

/// Message that is sent repeatedly.
#[derive(Debug, Clone, Copy)]
enum What {
    Ping(PingContentKind, usize),
    Long { sent: LongPing, lock_step: bool },
}

impl What {
    fn of_point(point: &MeasurementPoint, sent: &Sent) -> What {
        if let RemoteMessagePlan::LongPing(mode, packets) = sent.content {
            return What::Long { sent: packets.ping(), lock_step: mode == LongPingMode::LockStep };
        }
        match sent.payload() as usize {
            payload if point.probe == MAILBOX.id => What::Ping(PingContentKind::Word, payload),
            ShortPing::SIZE => What::Ping(PingContentKind::Ping, ShortPing::SIZE),
            payload => What::Ping(PingContentKind::Block, payload),
        }
    }
}

/// Pings over a channel, and returns it.
fn pings(
    bench: &mut Bench,
    index: usize,
    (channel, point): (Box<dyn RemoteChannel>, &MeasurementPoint),
    sent: &Sent,
) -> Box<dyn RemoteChannel> {
    let mut ping_loop = PingLoop::new(channel, sent.timeout);
    let mut pinging = Pinging {
        what: What::of_point(point, sent),
        clock: bench.timebase().clock(),
        packets: Histogram::new(1000),
    };
    let mut writer = bench.writer(index);
    let ended = pinging.repeat(&mut ping_loop, bench, sent, &mut writer);
    ping_loop.tally().report_counts(&*ping_loop.channel, ping_loop.sent(), bench, index);
    pinging.report_packet_times(bench, index);
    let answered = ping_loop.answered();
    let none = bench.total(index).is_none_or(|(count, _)| count == 0);
    if none && ping_loop.all_answered() {
        let reason = format!(
            "the time was over before a reply was recorded: {} sent as warm-up, all answered",
            ping_loop.sent()
        );
        bench.degrade(index, "few-samples", reason, "a longer --duration, or a shorter --pace");
    }
    let silent = none && ping_loop.none_answered();
    let why = silent.then(|| ping_loop.tally().without_a_reply(&*ping_loop.channel, ping_loop.sent()));
    report_end(bench, index, &mut *ping_loop.channel, ended, answered);
    if let Some(why) = why.filter(|_| !bench.is_stopping()) {
        bench.nothing_valid(index, why);
    }
    bench.finish_writer(index, writer);
    bench.waits_distort(index);
    ping_loop.channel
}

/// Reports the reason why a point ended early, with the messages that were answered.
fn report_end(
    bench: &mut Bench,
    index: usize,
    channel: &mut dyn RemoteChannel,
    ended: Result<(), ChannelFailure>,
    answered: Option<(u64, u64)>,
) {
    bench.account_for_peers();
    if let Some(reason) = channel.distortion() {
        bench.degrade(index, "emulated", reason, "");
    }
    match (ended, channel.end_description()) {
        (Ok(()), None) => {}
        (_, Some(end)) => bench.cut_short(index, ended_with(end.to_string(), answered)),
        (Err(ChannelFailure::Timeout), None) if answered.is_some() => {
            let silence = format!("{} at the end", ChannelFailure::Timeout);
            bench.cut_short(index, ended_with(silence, answered));
        }
        (Err(failure), None) => bench.cut_short(index, failure.to_string()),
    }
}

/// Returns the reason of an early end, with the messages that were answered before.
fn ended_with(reason: String, answered: Option<(u64, u64)>) -> String {
    match answered {
        Some((answered, sent)) => format!("{reason}; {answered} of {sent} were answered"),
        None => reason,
    }
}

struct Pinging {
    what: What,
    clock: AnyClock,
    /// Times of the packets of long pings in lock step, ns.
    packets: Histogram,
}

impl Pinging {
    /// Pings until the step's limits are reached.
    fn repeat(
        &mut self,
        ping_loop: &mut PingLoop,
        bench: &Bench,
        sent: &Sent,
        writer: &mut HistogramSlotWriter,
    ) -> Result<(), ChannelFailure> {
        let (timebase, stop, epoch) = (bench.timebase(), bench.stop(), bench.epoch_ns());
        let interval = sent.pace.unwrap_or(0);
        let mut cold = sent.warm_up.unwrap_or(WARM_UP[usize::from(interval > 0)]);
        let mut deadlines = PingSchedule::with_interval(interval);
        let begin = monotonic_ns();
        let after = |ns: u64| monotonic_ns() >= begin.saturating_add(ns);
        let over = || bench.is_stopping() || after(stop.limit_ns);
        let mut done = 0;
        while done < stop.events && !over() {
            let missed = deadlines.wait_for_next(over);
            if over() {
                break;
            }
            // Slow ones are not all of a short run, unless that was asked for.
            if cold > 0 && sent.warm_up.is_none() && after(stop.limit_ns / 10) {
                cold = 0;
            }
            if done > 0 {
                writer.miss(missed);
            }
            match self.ping_once(ping_loop, |ticks| timebase.interval_ns(ticks) as u64, cold == 0) {
                Ok(Some(_)) if cold > 0 => cold -= 1,
                Ok(Some(ns)) => {
                    done += 1;
                    writer.record_value(ns, monotonic_ns().saturating_sub(epoch));
                }
                Ok(None) | Err(ChannelFailure::Timeout) => self.drain_late_messages(ping_loop, over)?,
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Pings once; returns the time if the echo is sound.
    fn ping_once(
        &mut self,
        ping_loop: &mut PingLoop,
        ns: impl Fn(u64) -> u64,
        recorded: bool,
    ) -> Result<Option<u64>, ChannelFailure> {
        let ticks = match self.what {
            What::Ping(kind, length) => ping_loop.ping(kind, length, self.clock).map(Some),
            What::Long { sent, lock_step: false } => ping_loop.long_ping(sent, self.clock),
            What::Long { sent, lock_step: true } => {
                let packets = &mut self.packets;
                ping_loop.lock_step(sent, self.clock, |ticks| {
                    if recorded {
                        packets.record(ns(ticks));
                    }
                })
            }
        };
        Ok(ticks?.map(ns))
    }

    /// Keeps late messages out of the next sample: waits for the echo of a message that is no sample. Three
    /// losses in a row end the pings. Once the time is over, a long timeout is not waited for again.
    fn drain_late_messages(
        &mut self,
        ping_loop: &mut PingLoop,
        over: impl Fn() -> bool,
    ) -> Result<(), ChannelFailure> {
        for _ in 1..MOST_LOSSES {
            if over() {
                ping_loop.shorten_timeout();
            }
            let settled = match self.what {
                What::Ping(kind, length) => ping_loop.ping(kind, length, self.clock).map(drop),
                What::Long { .. } => ping_loop.fence(),
            };
            match settled {
                Err(ChannelFailure::Timeout) => {}
                settled => return settled,
            }
        }
        Err(ChannelFailure::Timeout)
    }

    /// Reports the times of the packets of long pings.
    fn report_packet_times(&self, bench: &mut Bench, index: usize) {
        let mut tell = |name: &str, ns: Option<f64>| {
            if let Some(ns) = ns {
                bench.add_value(index, name, ns, "ns", Better::Less);
            }
        };
        tell("packet-min", self.packets.min());
        tell("packet-p50", self.packets.quantile(0.5));
        tell("packet-p99", self.packets.tail_quantile(0.99));
        tell("packet-max", self.packets.max());
        if let What::Long { sent, lock_step: false } = self.what {
            let each = bench.median(index).map(|ns| ns / sent.packets() as f64);
            if let Some(each) = each {
                bench.add_value(index, "per-packet", each, "ns", Better::Less);
            }
        }
    }
}

/// Sends blocks over a channel, and returns it.
fn stream(
    bench: &mut Bench,
    index: usize,
    (channel, sent): (Box<dyn RemoteChannel>, &Sent),
    direction: RemoteBlockDirection,
    payload: u64,
) -> Box<dyn RemoteChannel> {
    let timebase = bench.timebase();
    let mut stream = RemoteBlockStream::new(channel, payload as usize, sent.timeout, timebase.clock());
    stream.is_foreign = !sent.transport.ours;
    let stretch = stream.stretch();
    bench.set_work(
        index,
        OperationWork { ops: stretch, bytes_touched: stretch * payload, bytes_moved: stretch * payload },
    );
    let mut writer = bench.writer(index);
    let (stop, epoch) = (bench.stop(), bench.epoch_ns());
    let end = monotonic_ns().saturating_add(stop.limit_ns);
    let done = std::cell::Cell::new(0);
    let mut more = || done.get() < stop.events && !bench.is_stopping() && monotonic_ns() < end;
    let mut record = |ticks| {
        // What is on its way when it is enough is drained, and no sample.
        if done.get() < stop.events {
            done.set(done.get() + 1);
            writer.record_value(timebase.interval_ns(ticks) as u64, monotonic_ns().saturating_sub(epoch));
        }
    };
    let ended = match direction {
        RemoteBlockDirection::Echoed => stream.echoed(&mut more, &mut record),
        RemoteBlockDirection::ToRemote => stream.send_to_sink(&mut more, &mut record),
    };
    let outcome = stream.outcome();
    let (sent, received) = (outcome.sent, outcome.received);
    let why = outcome.tally.without_a_reply(&*stream.channel, sent);
    outcome.tally.report_counts(&*stream.channel, sent, bench, index);
    bandwidth(bench, index, outcome, payload, |ticks| timebase.span(ticks));
    let answered = (received > 0 && received < sent).then_some((received, sent));
    // A sink that does not answer at all gets no block.
    let is_silent = received == 0 && (sent > 0 || matches!(ended, Err(ChannelFailure::Timeout)));
    report_end(bench, index, &mut *stream.channel, ended, answered);
    if is_silent && !bench.is_stopping() {
        bench.nothing_valid(index, why);
    }
    bench.finish_writer(index, writer);
    bench.waits_distort(index);
    stream.channel
}

/// Reports the result of a stream.
fn bandwidth(
    bench: &mut Bench,
    index: usize,
    outcome: RemoteStreamOutcome,
    payload: u64,
    ns: impl Fn(u64) -> f64,
) {
    let (blocks, ticks) = outcome.timed;
    if ticks > 0 {
        let rate = (blocks * payload) as f64 * 1e9 / ns(ticks);
        bench.add_value(index, "throughput", rate, "B/s", Better::More);
    }
    bench.add_value(index, "drain", ns(outcome.drain), "ns", Better::Less);
    bench.add_value(index, "sent", outcome.sent as f64, "count", Better::Neither);
    bench.add_value(index, "received", outcome.received as f64, "count", Better::Neither);
}
