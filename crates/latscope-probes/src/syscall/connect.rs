//! A connection: connect and accept.

use crate::prelude::*;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    AddressFamily, Ipv4Addr, SocketAddrAny, SocketAddrUnix, SocketAddrV4, SocketFlags, SocketType,
    accept_with, bind, connect, getsockname, listen, socket_with,
};

static CONNECT: Experiment = Experiment::new("syscall.connect", Cpus::One, run_connections).first_rounds();

settings! {
    /// Settings of a connection to this machine.
    struct ConnectSettings, requested as ConnectRequest {
        /// Address family: `tcp` over loopback, or a Unix stream socket (`unix`)
        mode: ConnectSocketKind;
    }
}

words! {
    /// Kind of the sockets.
    enum ConnectSocketKind {
        /// TCP over loopback.
        Tcp = "tcp",
        /// A Unix stream socket.
        Unix = "unix",
    }
}

probes! {
    CONNECT, ConnectSettings, plan_connections, ..ProbeFacts { by: Some(SyscallInvocation::Instruction), ..ProbeFacts::DEFAULT };
    ESTABLISH "syscall.connect", "connect + accept", "connect(2), accept(2), tcp(7), unix(7)",
        "One connect to a listening socket and one accept, by one thread; for TCP with the handshake over \
        loopback. Making and closing the sockets is not timed.";
}

fn plan_connections(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let usual = if input.survey { &ConnectSocketKind::ALL[..1] } else { ConnectSocketKind::ALL };
    let point = |mode: ConnectSocketKind| {
        let kind = if mode == ConnectSocketKind::Tcp { "TCP over loopback" } else { "Unix stream" };
        probe.make_point(ConnectSettings { mode }, format!("{}, {kind}", probe.title), true)
    };
    ConnectRequest::of(input).mode.or(usual).into_iter().map(point).collect()
}

fn run_connections(bench: &mut Bench) -> Result<()> {
    for (index, ConnectSettings { mode }) in bench.settings::<ConnectSettings>()?.into_iter().enumerate() {
        if let Some(listener) = ok_or_refuse(bench, index, "listen", Listener::new(mode)) {
            measure_connection(bench, index, &listener);
        }
    }
    Ok(())
}

/// Socket that listens for the measured connections.
struct Listener {
    mode: ConnectSocketKind,
    socket: OwnedFd,
    address: SocketAddrAny,
}

impl Listener {
    fn new(mode: ConnectSocketKind) -> rustix::io::Result<Listener> {
        let socket = socket(mode)?;
        match mode {
            ConnectSocketKind::Tcp => bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?,
            // The kernel chooses a free abstract name.
            ConnectSocketKind::Unix => bind(&socket, &SocketAddrUnix::new_unnamed())?,
        }
        listen(&socket, 1)?;
        let address = getsockname(&socket)?;
        Ok(Listener { mode, socket, address })
    }

    /// A socket that can be connected.
    fn client(&self) -> rustix::io::Result<OwnedFd> {
        let client = socket(self.mode)?;
        if self.mode == ConnectSocketKind::Tcp {
            // Closed by a reset: else its port would be in use for a minute, and there are not so many.
            set_socket_linger(&client, Some(Duration::ZERO))?;
        }
        Ok(client)
    }

    #[inline(always)]
    fn establish(&self, client: &OwnedFd) -> rustix::io::Result<OwnedFd> {
        connect(client, &self.address)?;
        accept_with(&self.socket, SocketFlags::CLOEXEC)
    }
}

fn socket(mode: ConnectSocketKind) -> rustix::io::Result<OwnedFd> {
    let family = if mode == ConnectSocketKind::Tcp { AddressFamily::INET } else { AddressFamily::UNIX };
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

fn measure_connection(bench: &mut Bench, index: usize, listener: &Listener) {
    let tried = listener.client().and_then(|client| listener.establish(&client));
    let Some(_) = ok_or_refuse(bench, index, "connect", tried) else { return };
    let mut first = FirstError::default();
    bench.splits(&[index], SampleGate::Thread, |splits| {
        let Some(client) = first.check_result(listener.client()) else { return };
        first.check_result(splits.time_part(0, || listener.establish(&client)));
    });
    first.ok_or_close(bench, &[index], "connect");
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, input, machine, measure, points};

    #[test]
    fn both_kinds_are_connected_and_a_survey_has_one() {
        assert_eq!(points(&ESTABLISH).len(), 1);
        for m in measure(&CONNECT, ESTABLISH.plan(&PlanInput { survey: false, ..input() }, &machine())) {
            check(&m);
            assert_ne!(m.quality.level, QualityLevel::Unsupported, "{:?}", m.joined_reasons());
        }
    }

    #[test]
    fn both_ends_are_of_one_connection() {
        for mode in ConnectSocketKind::ALL {
            let listener = Listener::new(*mode).unwrap();
            let client = listener.client().unwrap();
            let server = listener.establish(&client).unwrap();
            rustix::io::write(&client, b"x").unwrap();
            let mut byte = [0];
            assert_eq!((rustix::io::read(&server, &mut byte), byte), (Ok(1), *b"x"));
        }
    }
}
