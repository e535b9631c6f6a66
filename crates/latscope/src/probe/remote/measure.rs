//! Pings: sent, timed, verified, and counted where they do not come back.

use super::PING;
use crate::engine::bench::Bench;
use crate::engine::recorder::Writer;
use crate::exchange::remote::{self, Channel, Failure, Order};
use anyhow::{Context, Result};
use latscope_core::plan::Point;
use latscope_core::report::Better;
use latscope_rpmsg::echo::Service;
use latscope_rpmsg::messages::{Assembler, Form, LongPing, Ping, Word};
use latscope_sys::clock::{Clock, monotonic_ns};
use latscope_sys::sched;

/// Time for a ping to come back; later it is lost.
const TIMEOUT: u64 = 1_000_000_000;

/// First pings that are not recorded.
const WARM_UP: u64 = 100;

/// Losses after which there is no point in more.
const MOST_LOSSES: u64 = 3;

/// Measures each point with an echo process of its own.
///
/// # Errors
/// None: a point that cannot be measured says so.
pub fn run(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        if let Err(error) = measure(bench, index, point) {
            bench.unsupported(index, format!("{error:#}"), "");
        }
        if bench.is_stopping() {
            break;
        }
    }
    Ok(())
}

fn measure(bench: &mut Bench, index: usize, point: &Point) -> Result<()> {
    let transport = remote::transport(point.text("transport")).context("no such transport")?;
    let service = if point.probe == PING.id { Service::Ping } else { Service::LongPing };
    let here = bench.cpus()[0];
    sched::pin(&[here]).with_context(|| format!("CPU {here} cannot be used"))?;
    let order = Order { params: &point.params, service, cpus: bench.cpus() };
    let channel = (transport.open)(&order)?;
    if let Some(reason) = channel.distortion() {
        bench.degrade(index, reason, "");
    }
    let payload = vec![0; channel.limit()];
    let mut station = Station { channel, number: 0, payload, counts: Counts::default() };
    let mut writer = bench.writer(index);
    let ended = station.repeat(bench, &mut writer, service);
    station.tell(bench, index);
    match (ended, station.channel.ended()) {
        (Ok(()), None) => {}
        (_, Some(end)) => bench.cut_short(index, end),
        (Err(failure), None) => bench.cut_short(index, failure.to_string()),
    }
    bench.recorded(index, writer);
    Ok(())
}

/// What is no sample.
#[derive(Debug, Default)]
struct Counts {
    lost: u64,
    late: u64,
    mismatched: u64,
    duplicated: u64,
    reordered: u64,
}

struct Station {
    channel: Box<dyn Channel>,
    number: u64,
    payload: Vec<u8>,
    counts: Counts,
}

impl Station {
    /// Pings until it is enough.
    fn repeat(&mut self, bench: &Bench, writer: &mut Writer, service: Service) -> Result<(), Failure> {
        let (timebase, stop, epoch) = (bench.timebase(), bench.stop(), bench.epoch_ns());
        let clock = timebase.clock();
        let end = monotonic_ns().saturating_add(stop.limit_ns);
        let mut done = 0;
        while done < WARM_UP.saturating_add(stop.events) && !writer.stopping() && monotonic_ns() < end {
            let ticks = match service {
                Service::LongPing => self.long_ping(clock),
                _ => self.ping(clock),
            };
            match ticks {
                Ok(Some(ticks)) => {
                    done += 1;
                    if done > WARM_UP {
                        let at = monotonic_ns().saturating_sub(epoch);
                        writer.record(timebase.ns(ticks) as u64, at);
                    }
                }
                Ok(None) => {}
                // Packets do not tell their long ping: late ones would pass for those of the next.
                Err(Failure::Timeout) if service == Service::Ping && self.counts.lost < MOST_LOSSES => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// A ping: its ticks, if its reply is what was sent.
    #[inline]
    fn ping(&mut self, clock: impl Clock) -> Result<Option<u64>, Failure> {
        self.number += 1;
        let mut room = [0; Ping::SIZE];
        let message = Ping { number: self.number }.write(Word::Eight, &mut room);
        let until = monotonic_ns() + TIMEOUT;
        let begun = clock.start();
        self.channel.send(message)?;
        loop {
            let length = self.take(until)?;
            let ended = clock.end();
            let reply = &self.payload[..length];
            match Ping::parse(Word::Eight, reply) {
                Ok(_) if reply == message => return Ok(Some(ended - begun)),
                Ok(Ping { number }) if number < self.number => self.counts.late += 1,
                _ => {
                    self.counts.mismatched += 1;
                    return Ok(None);
                }
            }
        }
    }

    /// All packets of a long ping: its ticks, if all came as they were sent, and in order.
    fn long_ping(&mut self, clock: impl Clock) -> Result<Option<u64>, Failure> {
        let sent = LongPing { form: Form::Exact, word: Word::Eight };
        let mut room = [0; LongPing::PACKET];
        let mut assembler = Assembler::new(sent);
        let until = monotonic_ns() + TIMEOUT;
        let begun = clock.start();
        for index in 0..sent.packets() {
            self.channel.send(sent.write(index, &mut room))?;
        }
        let whole = loop {
            match self.take(until) {
                Ok(length) if assembler.receive(&self.payload[..length]) => break Ok(clock.end()),
                Ok(_) => {}
                Err(failure) => break Err(failure),
            }
        };
        let tally = assembler.tally();
        self.counts.mismatched += u64::from(tally.mismatched);
        self.counts.duplicated += u64::from(tally.duplicated);
        self.counts.reordered += u64::from(tally.reordered);
        let sound = tally.mismatched + tally.duplicated + tally.reordered == 0;
        whole.map(|ended| sound.then_some(ended - begun))
    }

    /// The next message; what does not come in time is lost.
    #[inline]
    fn take(&mut self, until: u64) -> Result<usize, Failure> {
        self.channel.receive(&mut self.payload, until).inspect_err(|failure| {
            self.counts.lost += u64::from(matches!(failure, Failure::Timeout));
        })
    }

    /// States what is no duration.
    fn tell(&self, bench: &mut Bench, index: usize) {
        let Counts { lost, late, mismatched, duplicated, reordered } = self.counts;
        let all = [
            ("losses", lost),
            ("late", late),
            ("mismatches", mismatched),
            ("duplicates", duplicated),
            ("reorderings", reordered),
            ("faults", self.channel.faults()),
        ];
        for (name, count) in all {
            bench.value(index, name, count as f64, "count", Better::Less);
        }
    }
}
