//! What goes wrong between a server and a client.

use crate::stage::{BOTH, Pair, node_of};
use anyhow::{Context, Result, ensure};
use latscope_exchange::binder::BINDER;
use latscope_os::binder::BinderDriver;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(child.id() as i32).context("a process has an id")?;
    Ok(kill_process(pid, signal)?)
}

/// Signals at 1 kHz to both while they talk.
pub fn storm() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "caught", "storm", 512)?;
        pair.hear()?;
        pair.go()?;
        let (client, server) = (pair.client.id(), pair.server.id());
        let storm = std::thread::spawn(move || {
            let pids = [client, server].map(|id| Pid::from_raw(id as i32).expect("a process has an id"));
            for _ in 0..500 {
                for pid in pids {
                    let _ = kill_process(pid, Signal::USR1);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let heard = pair.hear()?;
        storm.join().expect("no panic");
        pair.go()?;
        println!("{}: {heard} caught by the client", transport.name);
        ensure!(!heard.starts_with("0 "), "no signal came in between");
        pair.finish()?;
    }
    Ok(())
}

/// The server is killed while it serves: the client gets an error, and ends.
pub fn server_killed() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "sleep", "gone", 64)?;
        pair.hear()?;
        std::thread::sleep(Duration::from_millis(50));
        pair.server.kill()?;
        pair.server.wait()?;
        println!("{}: {}", transport.name, pair.hear()?);
        ensure!(pair.client.wait()?.success());
    }
    Ok(())
}

/// The client is killed between two calls, and the server ends well.
pub fn client_killed() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "echo", "counted", 64)?;
        pair.hear()?;
        pair.client.kill()?;
        pair.client.wait()?;
        let server = pair.server.wait()?;
        println!("{}: server {server}", transport.name);
        ensure!(server.success());
    }
    Ok(())
}

/// The server dies after it has registered, before the client asks for it: the
/// name service has had the news.
pub fn server_died_early() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start_with(transport, "echo", "no-server", 64, |server| {
            while node_of(server.id())?.is_none() {
                ensure!(server.try_wait()?.is_none(), "it did not register");
            }
            server.kill()?;
            server.wait()?;
            std::thread::sleep(Duration::from_millis(50));
            Ok(())
        })?;
        ensure!(pair.client.wait()?.success());
    }
    Ok(())
}

/// A frozen server refuses, and serves when it is thawed.
pub fn frozen() -> Result<()> {
    let driver = BinderDriver::open_device(Path::new("/dev/binder"), 4096).ok().context("no binder")?;
    for transport in BOTH {
        let mut pair = Pair::start(transport, "echo", "refused", 64)?;
        pair.hear()?;
        driver.freeze(pair.server.id(), true)?;
        pair.go()?;
        let heard = pair.hear()?;
        println!("{}: {heard}", transport.name);
        ensure!(heard.contains("BR_FROZEN_REPLY"));
        driver.freeze(pair.server.id(), false)?;
        pair.go()?;
        pair.finish()?;
    }
    Ok(())
}

/// A server that does not get to run: one-way requests fill its queue, which is
/// told, and are all there when it runs again.
pub fn queue_full() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "count", "full", 4096)?;
        pair.hear()?;
        signal(&pair.server, Signal::STOP)?;
        pair.go()?;
        let heard = pair.hear()?;
        println!("{}: {heard}", transport.name);
        ensure!(heard.contains("ENOSPC"));
        signal(&pair.server, Signal::CONT)?;
        pair.go()?;
        pair.finish()?;
    }
    Ok(())
}

/// What is too long is refused before it is sent.
pub fn too_long() -> Result<()> {
    Pair::start(&BINDER, "echo", "too-long", 1 << 12)?.finish()
}
