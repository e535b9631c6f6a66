//! What a server inherits from its caller.

use crate::stage::{BOTH, Pair};
use anyhow::{Context, Result, ensure};
use std::fs;

/// Nice values are inherited and restored; policy and real-time priority are not
/// by a kernel that is not Android's, although the node asks for it.
pub fn inheritance() -> Result<()> {
    for transport in BOTH {
        let mut pair = Pair::start(transport, "facts", "priority", 64)?;
        let mut heard = Vec::new();
        while heard.last().is_none_or(|line| line != "waiting") {
            heard.push(pair.hear()?);
            println!("{}: {}", transport.name, heard.last().context("just heard")?);
        }
        for (line, nice) in heard.iter().zip([0, -5, 0, 10, 0]) {
            ensure!(*line == format!("nice {nice}: policy 0 priority 0 nice {nice}"), "{line}");
        }
        ensure!(heard[5..7] == ["fifo 99: policy 0 priority 0 nice 0", "other: policy 0 priority 0 nice 0"]);
        let nice = nice_of(pair.server.id())?;
        println!("{}: the server waits with nice {nice}", transport.name);
        ensure!(nice == 0);
        pair.go()?;
        pair.finish()?;
    }
    Ok(())
}

/// Field 19 of /proc/PID/stat.
fn nice_of(pid: u32) -> Result<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let behind = text.rsplit(')').next().context("a name in parentheses")?;
    Ok(behind.split_whitespace().nth(16).context("a nice value")?.parse()?)
}
