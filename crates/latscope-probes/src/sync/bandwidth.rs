//! Bytes per second through pipes, Unix sockets and TCP on the loopback.

use crate::buffer::{self, AS_MALLOC, PageOffsetBuffer};
use crate::prelude::*;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

settings! {
    /// Messages from a writer to a reader.
    struct MessageStreamSettings, requested as MessageStreamRequest {
        /// Bytes of a message: of each write.
        size: u64 as Size;
        /// Where asked for: both threads on one CPU, each on one of its own, as usual, or where the scheduler puts
        /// them.
        placement: Option<MessageStreamPlacement>;
        /// Offset of both buffers from the start of a page; 16, as that of large buffers of malloc(3), if none is
        /// stated.
        buffer: Option<u64> as Size;
    }
}

words! {
    /// Placement of reader and writer.
    enum MessageStreamPlacement {
        /// Both in turn on one CPU.
        SameCore = "same-core",
        /// Each on a CPU of its own.
        TwoCores = "two-cores",
        /// Both on CPUs that the scheduler chooses.
        Free = "free",
    }
}

static EXPERIMENT: Experiment = Experiment::new("sync.bandwidth", Cpus::Two, run_streams);

const TIMED: &str = "Reading one message whole while another thread, on another CPU where there is one, writes such messages all the time.";

probes! {
    EXPERIMENT, MessageStreamSettings, plan_streams, ..ProbeFacts { by: Some(SyscallInvocation::Libc), subject: Subject::Many, may_be_zero: &["buffer"], most: &[("buffer", 4095)], ..ProbeFacts::BATCHES };
    PIPE "sync.pipe-bandwidth", "pipe bandwidth", "pipe(7)", TIMED;
    UNIX "sync.unix-bandwidth", "Unix socket bandwidth", "unix(7)", TIMED;
    TCP "sync.tcp-bandwidth", "TCP loopback bandwidth", "tcp(7)", TIMED;
}

/// Bytes of the largest message, which stands in memory twice.
const LARGEST: u64 = 64 << 20;

fn plan_streams(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let what = probe.title.trim_end_matches(" bandwidth");
    let asked = MessageStreamRequest::of(input);
    let mut placements: Vec<_> = asked.placement.or(&[]).into_iter().map(Some).collect();
    if placements.is_empty() {
        placements.push(None);
    }
    let mut points = Vec::new();
    let offsets = asked.buffer.or(&[AS_MALLOC]);
    for size in asked.size.or(&[64 << 10]).into_iter().map(|size| size.min(LARGEST)) {
        for placement in placements.iter().copied() {
            let place = match placement {
                None => "",
                Some(MessageStreamPlacement::SameCore) => ", same core",
                Some(MessageStreamPlacement::TwoCores) => ", two cores",
                Some(MessageStreamPlacement::Free) => ", placed by the scheduler",
            };
            for offset in &offsets {
                let buffer = buffer::stated(*offset);
                let title =
                    format!("{what}, {} messages{place}{}", format_size(size), buffer::offset_title(buffer));
                points.push(probe.make_point(MessageStreamSettings { size, placement, buffer }, title, true));
            }
        }
    }
    points
}

fn run_streams(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        let messages = MessageStreamSettings::read(point)?;
        let measured = match point.probe.as_str() {
            "sync.pipe-bandwidth" => measure_stream(bench, index, messages, io::pipe()),
            "sync.unix-bandwidth" => measure_stream(bench, index, messages, UnixStream::pair()),
            _ => measure_stream(bench, index, messages, tcp_pair()),
        };
        close_failed(bench, &[index], measured, "");
    }
    Ok(())
}

/// The two ends of a TCP connection through the loopback interface.
fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let writer = TcpStream::connect(listener.local_addr()?)?;
    Ok((listener.accept()?.0, writer))
}

fn measure_stream<R: Read, W: Write + Send + 'static>(
    bench: &mut Bench,
    index: usize,
    MessageStreamSettings { size, placement, buffer }: MessageStreamSettings,
    ends: io::Result<(R, W)>,
) -> Result<()> {
    let (mut reader, mut writer) = ends.context("the two ends cannot be connected")?;
    let shared = placement == Some(MessageStreamPlacement::SameCore);
    let free = placement == Some(MessageStreamPlacement::Free);
    let cpu = *bench.cpus().get(usize::from(!shared)).unwrap_or(&bench.cpus()[0]);
    sched::pin(if free { bench.allowed() } else { &bench.cpus()[..1] })?;
    if bench.cpus().len() < 2 && !shared && !free {
        let reason = "reader and writer share the only CPU";
        bench.degrade(index, "one-cpu", reason, "allow a second CPU (--cpus, taskset, the cgroup's cpuset)");
    }
    let offset = buffer.unwrap_or(AS_MALLOC);
    let writing = threads::start_partner(
        move || if free { Ok(()) } else { threads::pin(cpu) },
        move || {
            let mut message = PageOffsetBuffer::new(size as usize, offset);
            // It ends with an error, when the reader is gone.
            while writer.write_all(message.bytes()).is_ok() {}
        },
    )?;
    let mut message = PageOffsetBuffer::new(size as usize, offset);
    let mut lost = false;
    // Through the kernel's memory each byte is read and written twice.
    let work = OperationWork { ops: 1, bytes_touched: size, bytes_moved: 4 * size };
    let batch = Batch { work: Some(work), gate: SampleGate::Open, ..Batch::default() };
    bench.calls(index, batch, || lost = lost || reader.read_exact(message.bytes()).is_err());
    drop(reader);
    writing.join();
    ensure!(!lost, "the writer ended early");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_engine::harness;

    #[test]
    fn bytes_flow_through_each() {
        let points: Vec<_> = [&PIPE, &UNIX, &TCP].into_iter().flat_map(harness::points).collect();
        let measured = harness::measure(&EXPERIMENT, points);
        assert_eq!(measured.len(), 3);
        assert!(measured.iter().all(|m| !m.params.contains_key("placement")));
        let mut input = harness::input();
        input.values.insert("placement".to_owned(), vec!["same-core".into(), "free".into()]);
        let shared = harness::measure(&EXPERIMENT, PIPE.plan(&input, &harness::machine()));
        assert_eq!((shared.len(), &shared[0].params["placement"]), (2, &"same-core".into()));
        let measured: Vec<_> = measured.into_iter().chain(shared).collect();
        for m in measured {
            harness::check(&m);
            assert_eq!(m.work.unwrap().bytes_touched, 64 << 10);
            assert!(m.rate_touched().unwrap() > 0.0);
        }
    }
}
