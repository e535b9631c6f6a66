//! Client processes.

use crate::stage::{COUNTED, handle, transport};
use anyhow::{Context, Result, bail, ensure};
use latscope_exchange::transaction::{TransactionClient, TransactionFailure};
use latscope_os::sched::{self, ThreadSchedPolicy};
use latscope_os::signal_probe::SelfSignal;
use latscope_os::worker;
use std::fs::File;
use std::io::{Read, Write};

/// The one who started us.
struct Ear {
    says: File,
    waits: File,
}

impl Ear {
    fn say(&mut self, line: &str) -> Result<()> {
        Ok(self.says.write_all(format!("{line}\n").as_bytes())?)
    }

    fn wait(&mut self) -> Result<()> {
        Ok(self.waits.read_exact(&mut [0])?)
    }
}

/// Calls as `kind` says.
pub fn main(name: &str, kind: &str, payload: usize, words: &[&str]) -> Result<()> {
    let handle = handle(payload, words)?;
    let ear =
        &mut Ear { says: worker::take_descriptor(1)?.into(), waits: worker::take_descriptor(2)?.into() };
    let caught = (kind == "storm").then(SelfSignal::install_handler).transpose()?;
    let client = (transport(name)?.client)(handle);
    if kind == "no-server" {
        ensure!(matches!(client, Err(TransactionFailure::Gone)), "{:?}", client.err());
        return Ok(());
    }
    let client = client?;
    let mut client = client;
    let client = client.as_mut();
    match kind {
        "sizes" => (0..=16)
            .map(|bit| 1 << bit)
            .filter(|size| *size <= payload)
            .try_for_each(|size| same(client, size, 3)),
        "largest" => same(client, payload, 3).and_then(|()| same(client, payload - 1, 1)),
        "steady" => steady(client, payload),
        "backwards" => backwards(client, payload),
        "one-way" => one_way(client),
        "threads" => threads(client),
        "counted" => counted(client, ear),
        "storm" => {
            ear.say("ready")?;
            ear.wait()?;
            same(client, payload, 1000)?;
            let delivered = caught.as_ref().context("installed")?.delivery_count();
            ear.say(&format!("{delivered} signals"))?;
            // Until no more are sent, they are to be caught.
            ear.wait()
        }
        "gone" => gone(client, ear),
        "refused" => refused(client, ear),
        "full" => full(client, ear),
        "too-long" => too_long(client, payload),
        "priority" => priority(client, ear),
        _ => bail!("no client {kind}"),
    }
}

/// Bytes that differ from call to call.
fn pattern(bytes: &mut [u8], turn: usize) {
    for (index, byte) in bytes.iter_mut().enumerate().step_by(97) {
        *byte = (index + turn * 31) as u8;
    }
    bytes[0] = turn as u8;
}

fn same(client: &mut dyn TransactionClient, size: usize, turns: usize) -> Result<()> {
    let (mut request, mut reply) = (vec![0; size], vec![0; size]);
    for turn in 0..turns {
        pattern(&mut request, turn);
        let got = client.call(&request, &mut reply).with_context(|| format!("{size} bytes, call {turn}"))?;
        ensure!(got == size && reply == request, "{size} bytes, call {turn}: another answer of {got} bytes");
    }
    Ok(())
}

/// Calls that are looked at as a whole now and then, and at both ends always.
fn steady(client: &mut dyn TransactionClient, size: usize) -> Result<()> {
    let (mut request, mut reply) = (vec![0; size], vec![0; size]);
    for turn in 0..10_000u32 {
        request[..4].copy_from_slice(&turn.to_ne_bytes());
        request[size - 4..].copy_from_slice(&turn.to_ne_bytes());
        let got = client.call(&request, &mut reply).with_context(|| format!("call {turn}"))?;
        let ends = reply[..4] == request[..4] && reply[size - 4..] == request[size - 4..];
        let whole = !turn.is_multiple_of(1000) || reply == request;
        ensure!(got == size && ends && whole, "call {turn}: another answer of {got} bytes");
    }
    Ok(())
}

fn backwards(client: &mut dyn TransactionClient, size: usize) -> Result<()> {
    let (mut request, mut reply) = (vec![0; size], vec![0; size]);
    for size in [1, 5, 64, size] {
        pattern(&mut request, size);
        let got = client.call(&request[..size], &mut reply)?;
        ensure!(got == size && reply[..size].iter().eq(request[..size].iter().rev()), "{size} bytes");
    }
    // An answer that does not fit is refused, and the next one comes.
    let short = client.call(&request, &mut [0; 4]);
    ensure!(matches!(short, Err(TransactionFailure::Refused(_))), "{short:?}");
    ensure!(client.call(&request, &mut reply)? == request.len());
    Ok(())
}

fn one_way(client: &mut dyn TransactionClient) -> Result<()> {
    let mut count = [0; 8];
    for turn in 1..=500u64 {
        client.send_one_way(&[1]).context("there is one way")??;
        if turn.is_multiple_of(100) {
            // Requests that wait for an answer overtake those that do not.
            while u64::from_ne_bytes(count) < turn {
                client.call(&[2, 2], &mut count)?;
            }
            ensure!(u64::from_ne_bytes(count) == turn, "{count:?} instead of {turn}");
        }
    }
    Ok(())
}

fn threads(client: &mut dyn TransactionClient) -> Result<()> {
    same(client, 64, 10)?;
    for _ in 0..50 {
        let mut own = client.clone_for_thread().context("ends for threads")??;
        let thread = std::thread::spawn(move || same(own.as_mut(), 64, 2));
        thread.join().expect("no panic")?;
    }
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut own = client.clone_for_thread().context("ends for threads")??;
            Ok(std::thread::spawn(move || same(own.as_mut(), 32, 200)))
        })
        .collect::<Result<_>>()?;
    threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
    same(client, 64, 10)
}

fn counted(client: &mut dyn TransactionClient, ear: &mut Ear) -> Result<()> {
    let mut reply = [0; 64];
    client.call(&[7; 64], &mut reply)?;
    ear.say("ready")?;
    ear.wait()?;
    for _ in 0..COUNTED {
        client.call(&[7; 64], &mut reply)?;
    }
    ear.say("called")?;
    ear.wait()
}

/// The server dies in the middle.
fn gone(client: &mut dyn TransactionClient, ear: &mut Ear) -> Result<()> {
    ear.say("calling")?;
    let outcome = client.call(&[1; 16], &mut [0; 16]);
    ensure!(outcome == Err(TransactionFailure::Gone), "{outcome:?}");
    let again = client.call(&[1; 16], &mut [0; 16]);
    ensure!(again == Err(TransactionFailure::Gone), "{again:?}");
    let sent = client.send_one_way(&[1; 16]).context("there is one way")?;
    ensure!(sent == Err(TransactionFailure::Gone), "{sent:?}");
    ear.say("gone")
}

/// One call that fails, and one that does not, when a message says so.
fn refused(client: &mut dyn TransactionClient, ear: &mut Ear) -> Result<()> {
    same(client, 16, 1)?;
    ear.say("ready")?;
    ear.wait()?;
    let outcome = client.call(&[1; 16], &mut [0; 16]);
    ear.say(&format!("{}", outcome.err().context("it was answered")?))?;
    ear.wait()?;
    same(client, 16, 2)
}

/// Sends until there is no room.
fn full(client: &mut dyn TransactionClient, ear: &mut Ear) -> Result<()> {
    let bytes = vec![1; 4096];
    let mut count = [0; 8];
    client.call(&[2, 2], &mut count)?;
    ear.say("ready")?;
    ear.wait()?;
    let mut sent = 0u64;
    let failure = loop {
        match client.send_one_way(&bytes).context("there is one way")? {
            Ok(()) => sent += 1,
            Err(failure) => break failure,
        }
        ensure!(sent < 10_000, "the queue never fills");
    };
    ear.say(&format!("{sent} sent, then: {failure}"))?;
    ear.wait()?;
    while u64::from_ne_bytes(count) < sent {
        client.call(&[2, 2], &mut count)?;
    }
    ensure!(u64::from_ne_bytes(count) == sent, "{count:?} instead of {sent}");
    Ok(client.send_one_way(&bytes).context("there is one way")??)
}

fn too_long(client: &mut dyn TransactionClient, payload: usize) -> Result<()> {
    for size in [0, payload + 1, payload * 2] {
        let outcome = client.call(&vec![0; size], &mut vec![0; size]);
        ensure!(matches!(outcome, Err(TransactionFailure::Refused(_))), "{size} bytes: {outcome:?}");
        let outcome = client.send_one_way(&vec![0; size]).context("there is one way")?;
        ensure!(matches!(outcome, Err(TransactionFailure::Refused(_))), "{size} bytes: {outcome:?}");
    }
    same(client, payload, 2)
}

/// Says what the server is while it serves callers of several kinds.
fn priority(client: &mut dyn TransactionClient, ear: &mut Ear) -> Result<()> {
    let mut ask = |who: &str, ear: &mut Ear| -> Result<()> {
        let mut reply = [0; 16];
        client.call(&[0; 16], &mut reply)?;
        let facts: Vec<i32> =
            reply.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)).collect();
        ear.say(&format!("{who}: policy {} priority {} nice {}", facts[0], facts[1], facts[2]))
    };
    for nice in [0, -5, 0, 10, 0] {
        rustix::process::setpriority_process(None, nice)?;
        ask(&format!("nice {nice}"), ear)?;
    }
    sched::set_policy(ThreadSchedPolicy::Fifo(99))?;
    ensure!(sched::policy()? == ThreadSchedPolicy::Fifo(99), "SCHED_FIFO is not had");
    ask("fifo 99", ear)?;
    sched::set_policy(ThreadSchedPolicy::Other)?;
    ask("other", ear)?;
    // The server is back to what it was while it waits.
    ear.say("waiting")?;
    ear.wait()
}
