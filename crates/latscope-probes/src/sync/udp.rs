//! Round trips of datagrams: over loopback, with busy polling, and between two network namespaces.

use super::network::{bring_up, make_pair};
use super::placement::{self, HandOffPlacement};
use crate::apart::measure_apart;
use crate::available;
use crate::prelude::*;
use latscope_os::network::{own_network, polled_queue, set_busy_poll};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc;

probes! {
    EXPERIMENT, UdpRoundTripSettings, plan_udp_trips, ..ProbeFacts { by: Some(SyscallInvocation::Libc), ..ProbeFacts::DEFAULT };
    UDP "sync.udp", "UDP datagram, round trip", "udp(7), socket(7), veth(4), network_namespaces(7)",
        "send(2) of one byte by UDP to a thread that sleeps in recv(2), and back. Via loopback; busy-poll: the \
        same with SO_BUSY_POLL; veth: between two new network namespaces joined by virtual Ethernet devices."
        { times: Semantics::RoundTrip, by_name_only: true, };
}

static EXPERIMENT: Experiment = Experiment::new("sync.udp", Cpus::Two, run_udp_trips).setup_per_point(0.1);

settings! {
    /// Datagrams between two threads.
    struct UdpRoundTripSettings, requested as UdpRoundTripRequest {
        /// Device between the threads
        via: UdpLinkKind;
        /// Where the two threads run: on one CPU; on two that idle while their thread waits (the round trip then
        /// contains two exits from idle); on two that are kept from idling.
        placement: HandOffPlacement;
    }
}

words! {
    /// Way of the datagrams.
    enum UdpLinkKind {
        /// The loopback device.
        Loopback = "loopback",
        /// The loopback device, with SO_BUSY_POLL.
        BusyPoll = "busy-poll",
        /// Virtual Ethernet devices between two new network namespaces.
        Veth = "veth",
    }
}

fn plan_udp_trips(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let asked = UdpRoundTripRequest::of(input);
    let mut points = Vec::new();
    for via in asked.via.or(UdpLinkKind::ALL) {
        for placement in asked.placement.or(&[HandOffPlacement::SameCore, HandOffPlacement::TwoCores]) {
            let over = if via == UdpLinkKind::BusyPoll { "loopback with busy polling" } else { via.word() };
            let place = placement.word().replace('-', " ");
            points.push(probe.make_point(
                UdpRoundTripSettings { via, placement },
                format!("probe over {over}, {place}"),
                true,
            ));
        }
    }
    points
}

fn run_udp_trips(bench: &mut Bench) -> Result<()> {
    for (index, UdpRoundTripSettings { via, placement }) in
        bench.settings::<UdpRoundTripSettings>()?.into_iter().enumerate()
    {
        let Some(cpus) = placement.cpus(bench.cpus()) else {
            available::lacks_a_cpu(bench, index);
            continue;
        };
        let measured = measure_apart(bench, |bench| measure_link(bench, index, via, placement, cpus));
        let remedy = if via == UdpLinkKind::Loopback { placement::REMEDY } else { RIGHTS };
        close_failed(bench, &[index], measured, remedy);
    }
    Ok(())
}

const RIGHTS: &str = "run as root, or with CAP_SYS_ADMIN (for network namespaces) and CAP_NET_ADMIN";

/// Name of both devices of a pair, each in its namespace, and their addresses.
const DEVICE: &str = "latscope0";
const HERE: Ipv4Addr = Ipv4Addr::new(10, 213, 77, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 213, 77, 2);

/// Time after which a datagram counts as lost.
const LOST: Duration = Duration::from_secs(1);
/// Time for which a busy socket polls, µs.
const POLLED: u32 = 50;
/// Datagram that ends the other thread.
const END: u8 = 255;

/// Measures in a thread of its own, which may get a network namespace of its own.
fn measure_link(
    bench: &mut Bench,
    index: usize,
    via: UdpLinkKind,
    placement: HandOffPlacement,
    cpus: [u32; 2],
) -> Result<()> {
    if via == UdpLinkKind::Veth {
        own_network().context("a network namespace (CAP_SYS_ADMIN)")?;
    }
    let (there, partner) = start_partner(via, placement, cpus[1])?;
    let here = if via == UdpLinkKind::Veth { HERE } else { Ipv4Addr::LOCALHOST };
    let socket = UdpSocket::bind((here, 0)).context("a socket")?;
    socket.connect(there)?;
    socket.set_read_timeout(Some(LOST))?;
    if via == UdpLinkKind::BusyPoll {
        set_busy_poll(&socket, POLLED).context("busy polling (CAP_NET_ADMIN)")?;
    }
    placement::place_thread(placement, cpus[0])?;
    let mut number = 0;
    let mut trip = || {
        number = (number + 1) % END;
        exchange(&socket, number)
    };
    let ready = first_contact(&socket, &mut trip).context("the first datagrams");
    let polled = via != UdpLinkKind::BusyPoll || polled_queue(&socket).is_ok_and(|queue| queue != 0);
    let mut lost = 0;
    if ready.is_ok() && polled {
        let awake = placement::keep_awake(bench, index, placement, cpus);
        bench.each(index, placement.gate(), || lost += u64::from(trip().is_err()));
        placement::check_awake(bench, index, &awake);
    }
    let _ = socket.send(&[END]);
    drop(partner);
    ready?;
    if !polled {
        let reason = "the loopback device has no queue that can be polled: SO_INCOMING_NAPI_ID is 0";
        bench.unsupported(index, reason, "");
    }
    anyhow::ensure!(lost == 0, "datagrams were lost");
    Ok(())
}

/// Sends a datagram and waits for the answer to it: that to an earlier one, which counted as lost, may come first.
#[inline(always)]
fn exchange(socket: &UdpSocket, number: u8) -> std::io::Result<()> {
    let mut byte = [END];
    socket.send(&[number])?;
    while byte[0] != number {
        socket.recv(&mut byte)?;
    }
    Ok(())
}

/// Exchanges datagrams until their way is found: the kernel drops those to a device that is up and not yet ready, which
/// it becomes within a second or so.
fn first_contact(socket: &UdpSocket, trip: &mut impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    const ATTEMPTS: u32 = 40;
    socket.set_read_timeout(Some(LOST / 10))?;
    (0..ATTEMPTS).find(|_| trip().is_ok());
    socket.set_read_timeout(Some(LOST))?;
    (0..100).try_for_each(|_| trip())
}

/// Starts the thread that answers, in a namespace of its own if they are joined by a pair of devices. Returns its
/// address.
fn start_partner(
    via: UdpLinkKind,
    placement: HandOffPlacement,
    cpu: u32,
) -> Result<(SocketAddr, Partner<()>)> {
    let (send_namespace, namespace) = mpsc::channel::<File>();
    let (joined, wait_joined) = mpsc::channel::<()>();
    let (send_address, address) = mpsc::channel::<Result<SocketAddr>>();
    let set_up = move || {
        if via == UdpLinkKind::Veth {
            own_network().context("a second network namespace")?;
            let _ = send_namespace.send(File::open("/proc/thread-self/ns/net")?);
        }
        Ok(())
    };
    let body = move || {
        let socket = wait_joined.recv().context("there is no pair of devices").and_then(|()| answering(via));
        let settled = placement::place_thread(placement, cpu);
        match (socket, settled) {
            (Ok(socket), Ok(())) => {
                let _ = send_address.send(socket.local_addr().map_err(Into::into));
                answer_datagrams(&socket);
            }
            (Err(error), _) | (_, Err(error)) => drop(send_address.send(Err(error))),
        }
    };
    let partner = threads::start_partner(set_up, body).context("the other thread")?;
    if via == UdpLinkKind::Veth {
        let namespace = namespace.recv().context("the other namespace")?;
        make_pair(DEVICE, namespace.as_fd())?;
        bring_up(DEVICE, HERE)?;
    }
    joined.send(()).context("the other thread ended")?;
    Ok((address.recv().context("the other thread ended")??, partner))
}

fn answering(via: UdpLinkKind) -> Result<UdpSocket> {
    let mut here = Ipv4Addr::LOCALHOST;
    if via == UdpLinkKind::Veth {
        bring_up(DEVICE, THERE)?;
        here = THERE;
    }
    let socket = UdpSocket::bind((here, 0)).context("a socket")?;
    // It ends also when the other thread does not tell it.
    socket.set_read_timeout(Some(5 * LOST))?;
    if via == UdpLinkKind::BusyPoll {
        set_busy_poll(&socket, POLLED).context("busy polling (CAP_NET_ADMIN)")?;
    }
    Ok(socket)
}

fn answer_datagrams(socket: &UdpSocket) {
    let mut byte = [0];
    while let Ok((1, from)) = socket.recv_from(&mut byte) {
        if byte[0] == END || socket.send_to(&byte, from).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn datagrams_go_over_loopback_and_between_namespaces_or_a_right_is_missing() {
        let all = measure(&EXPERIMENT, points(&UDP));
        assert_eq!(all.len(), 6);
        all.iter().for_each(check);
        let same = |m: &&latscope_core::report::Measurement| m.has_param_value("placement", "same-core");
        let mut same = all.iter().filter(same);
        assert_ne!(same.next().unwrap().quality.level, QualityLevel::Unsupported);
        // Loopback has no queue to poll.
        assert_eq!(same.next().unwrap().quality.level, QualityLevel::Unsupported);
        let veth = same.next().unwrap();
        let refused = veth
            .joined_reasons()
            .is_some_and(|reason| reason.contains("CAP_SYS_ADMIN") || reason.contains("veth"));
        assert!(veth.quality.level != QualityLevel::Unsupported || refused, "{:?}", veth.joined_reasons());
    }
}
