//! Faults that need the driver without a transport.

use anyhow::{Context, Result, ensure};
use latscope_exchange::binder::BINDER;
use latscope_os::binder::{BinderDriver, Incoming, MANAGER, PROTOCOL, Payload, Port, Return};
use rustix::io::Errno;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Runs a client of the name service, in a process of its own.
fn raw(kind: &str) -> Result<()> {
    let endpoints = (BINDER.open)(64)?;
    let status = Command::new("/proc/self/exe").args(["__raw", kind]).status()?;
    drop(endpoints);
    ensure!(status.success(), "{status}");
    Ok(())
}

/// A client that never gives anything back fills its own buffer.
pub fn exhausted() -> Result<()> {
    raw("exhausted")
}

/// A request for which no buffer is large enough.
pub fn over_the_buffer() -> Result<()> {
    raw("over-the-buffer")
}

/// The kernel speaks the version that is spoken here.
pub fn protocol() -> Result<()> {
    let driver = BinderDriver::open_device(Path::new("/dev/binder"), 4096);
    ensure!(driver.is_ok(), "{driver:?}");
    println!("protocol {PROTOCOL}");
    Ok(())
}

pub fn main(kind: &str) -> Result<()> {
    let driver = BinderDriver::open_device(Path::new("/dev/binder"), 4096).ok().context("no binder")?;
    let mut port = Port::new(Arc::new(driver));
    match kind {
        "exhausted" => exhaust(&mut port),
        _ => exceed(&mut port),
    }
}

fn exhaust(port: &mut Port) -> Result<()> {
    let mut kept = Vec::new();
    let error = loop {
        match ask(port, &[0; 4])? {
            Ok(reply) => kept.push(reply.buffer),
            Err(error) => break error,
        }
        ensure!(kept.len() < 10_000, "never full");
    };
    println!("{} replies kept in 4096 bytes, then {error:?}", kept.len());
    ensure!(!kept.is_empty());
    kept.into_iter().for_each(|buffer| port.free(buffer));
    let again = ask(port, &[0; 4])?;
    ensure!(again.is_ok(), "{again:?}");
    Ok(())
}

fn exceed(port: &mut Port) -> Result<()> {
    let answer = ask(port, &vec![0; 2 << 20])?;
    println!("{answer:?}");
    ensure!(matches!(answer, Err(Some(Errno::NOSPC))), "{answer:?}");
    ensure!(ask(port, &[0; 4])?.is_ok());
    Ok(())
}

/// The context manager's reply, or what the kernel says of the failure.
fn ask(port: &mut Port, request: &[u8]) -> Result<std::result::Result<Incoming, Option<Errno>>> {
    port.call_handle(MANAGER, 0x77, 0, Payload::Flat(request))?;
    loop {
        while let Some(returned) = port.next() {
            match returned {
                Return::Reply(reply) => return Ok(Ok(reply)),
                Return::FailedReply => {
                    let error = port.driver().extended_error();
                    return Ok(Err(error.map(|error| Errno::from_raw_os_error(-error.error))));
                }
                Return::Nothing | Return::Complete => {}
                other => anyhow::bail!("{other:?}"),
            }
        }
        port.read_returns()?;
    }
}
