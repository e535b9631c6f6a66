//! Pairs of processes, and trials in which nothing goes wrong.

use anyhow::{Context, Result, ensure};
use latscope_exchange::binder::{BINDER, HWBINDER};
use latscope_exchange::transaction::{EndpointHandle, EndpointPair, IpcTransport};
use latscope_os::worker::{self, Lifetime};
use latscope_trace::tracefs::TracefsInstance;
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::time::Duration;

/// Both transports.
pub const BOTH: [&IpcTransport; 2] = [&BINDER, &HWBINDER];

/// The transport of this name.
pub fn transport(name: &str) -> Result<&'static IpcTransport> {
    BOTH.into_iter().find(|transport| transport.name == name).context("no such transport")
}

/// What a process was handed.
pub fn handle(payload: usize, words: &[&str]) -> Result<EndpointHandle> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(EndpointHandle { descriptors: vec![worker::take_descriptor(0)?], words, payload })
}

/// A server and a client that can talk to each other, and to us: the client
/// sends lines, and waits for one where it asks for it.
pub struct Pair {
    pub server: Child,
    pub client: Child,
    said: BufReader<File>,
    go: File,
    _endpoints: EndpointPair,
}

impl Pair {
    /// Starts both.
    pub fn start(transport: &IpcTransport, server: &str, client: &str, payload: usize) -> Result<Pair> {
        Pair::start_with(transport, server, client, payload, |_| Ok(()))
    }

    /// Starts the server, does something to it, and starts the client.
    pub fn start_with(
        transport: &IpcTransport,
        server: &str,
        client: &str,
        payload: usize,
        between: impl FnOnce(&mut Child) -> Result<()>,
    ) -> Result<Pair> {
        let endpoints = (transport.open)(payload)?;
        let (said, says) = pipe_with(PipeFlags::CLOEXEC)?;
        let (waits, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let role = ["__server", transport.name, server];
        let mut server = spawn(&role, payload, &endpoints.words, &[&endpoints.server[0]])?;
        between(&mut server)?;
        let (role, descriptors) =
            (["__client", transport.name, client], [&endpoints.client[0], &says, &waits]);
        let client = spawn(&role, payload, &endpoints.words, &descriptors)?;
        Ok(Pair { server, client, said: BufReader::new(said.into()), go: go.into(), _endpoints: endpoints })
    }

    /// The next line of the client.
    pub fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes = self.said.read_line(&mut line)?;
        ensure!(bytes > 0, "the client ended: {:?}", self.client.wait()?);
        Ok(line.trim_end().to_owned())
    }

    /// Lets the client go on.
    pub fn go(&mut self) -> Result<()> {
        Ok(self.go.write_all(b"\n")?)
    }

    /// Waits for both; the client was satisfied, and the server saw it go.
    pub fn finish(mut self) -> Result<()> {
        let (client, server) = (self.client.wait()?, self.server.wait()?);
        ensure!(client.success() && server.success(), "client {client}, server {server}");
        Ok(())
    }
}

fn spawn(role: &[&str], payload: usize, words: &[String], descriptors: &[&OwnedFd]) -> Result<Child> {
    let payload = payload.to_string();
    let mut arguments = role.to_vec();
    arguments.push(&payload);
    arguments.extend(words.iter().map(String::as_str));
    Ok(worker::spawn(&arguments, descriptors, Lifetime::WithParent)?)
}

/// Runs one pair of each transport to its end.
fn each(server: &str, client: &str, payload: usize) -> Result<()> {
    for transport in BOTH {
        Pair::start(transport, server, client, payload)?.finish()?;
    }
    Ok(())
}

/// Every size there and back, as it is and backwards.
pub fn echo() -> Result<()> {
    each("echo", "sizes", 1 << 16)?;
    each("late", "sizes", 1 << 10)?;
    each("echo", "largest", 1 << 20)?;
    each("backwards", "backwards", 1 << 12)
}

/// Nothing comes back, and nothing is lost.
pub fn one_way() -> Result<()> {
    each("count", "one-way", 64)
}

/// Three pairs of each transport at once, on as many devices as there are.
pub fn pairs() -> Result<()> {
    let all = [BOTH, BOTH, BOTH].concat();
    let pairs: Result<Vec<Pair>> =
        all.iter().map(|transport| Pair::start(transport, "echo", "sizes", 1 << 12)).collect();
    pairs?.into_iter().try_for_each(Pair::finish)
}

/// Threads of one client, each with an end of its own, one after another and
/// at once.
pub fn threads() -> Result<()> {
    each("echo", "threads", 64)
}

/// 10^5 transactions of 64 KiB do not fill the buffer.
pub fn steady_binder() -> Result<()> {
    Pair::start(&BINDER, "echo", "steady", 1 << 16)?.finish()
}

/// The same, gathered.
pub fn steady_hwbinder() -> Result<()> {
    Pair::start(&HWBINDER, "echo", "steady", 1 << 16)?.finish()
}

/// Calls of the client between two lines, as [`system_calls`] counts them.
pub const COUNTED: usize = 1000;

/// System calls of a transaction, counted by the kernel: the client's is one.
/// The server's is one, and one that returns at once: the driver confirms a
/// reply (BR_TRANSACTION_COMPLETE) before it lets its sender wait for anything.
pub fn system_calls() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "echo", "counted", 64)?;
        pair.hear()?;
        let trace = follow(&[pair.client.id(), pair.server.id()])?;
        pair.go()?;
        pair.hear()?;
        trace.write_file("tracing_on", "0")?;
        let text = fs::read_to_string(trace.directory().join("trace"))?;
        for (side, pid, each) in [("client", pair.client.id(), 1), ("server", pair.server.id(), 2)] {
            let ours = format!("-{pid} ");
            let calls = text.lines().filter(|line| line.contains(&ours) && line.contains("sys_enter: NR "));
            let (ioctl, other): (Vec<&str>, Vec<&str>) = calls.partition(|line| line.contains(" NR 16 "));
            let (ioctl, others) = (ioctl.len(), other.len());
            println!("{} {side}: {ioctl} ioctl, {others} others, {COUNTED} transactions", transport.name);
            // The server's first wait began before, its last perhaps after; the client reads and writes a line.
            let all = each * COUNTED;
            ensure!((ioctl == all || side == "server" && ioctl == all - 1) && others <= 2, "{other:?}");
        }
        pair.go()?;
        pair.finish()?;
    }
    Ok(())
}

/// A trace of the system calls of these processes.
fn follow(pids: &[u32]) -> Result<TracefsInstance> {
    let trace = TracefsInstance::create_with_journal(&mut |_| Ok(()))?;
    trace.write_file("buffer_size_kb", "2048")?;
    let filter: Vec<String> = pids.iter().map(|pid| format!("common_pid == {pid}")).collect();
    trace.write_file("events/raw_syscalls/sys_enter/filter", &filter.join(" || "))?;
    trace.enable("raw_syscalls/sys_enter")?;
    Ok(trace)
}

/// While a pair talks only the client refers to the server's node, and
/// afterwards nothing is left.
pub fn references() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "echo", "counted", 64)?;
        pair.hear()?;
        let (client, server) = (pair.client.id(), pair.server.id());
        let only = |node: &str| {
            let counts = node.contains(" hs 1 hw 1 ") && node.contains(" is 1 iw 1 ");
            counts && node.ends_with(&format!(" proc {client}"))
        };
        // The name service gives its reference back when it has handed the client's out.
        let node = eventually(|| Ok(node_of(server)?.filter(|node| only(node))))?;
        println!("{} node: {node}", transport.name);
        pair.go()?;
        pair.hear()?;
        pair.go()?;
        pair.finish()?;
        // The driver cleans up after a process when it gets to it.
        eventually(|| Ok(node_of(server)?.is_none().then_some(())))?;
    }
    Ok(())
}

/// What is there within some seconds.
fn eventually<T>(mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..500 {
        if let Some(found) = look()? {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    anyhow::bail!("debugfs tells something else: {}", fs::read_to_string(STATE)?)
}

const STATE: &str = "/sys/kernel/debug/binder/state";

/// The line of debugfs on the node of a process that is no context manager.
pub fn node_of(pid: u32) -> Result<Option<String>> {
    let state = fs::read_to_string(STATE)?;
    let section = state.split("\nproc ").find(|section| section.lines().next() == Some(&pid.to_string()));
    let line = section.and_then(|section| section.lines().find(|line| line.trim().starts_with("node ")));
    Ok(line.map(|line| line.trim().to_owned()))
}
