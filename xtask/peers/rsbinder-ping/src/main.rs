//! Time of a call of rsbinder: `rsbinder-ping serve DEVICE` answers each request
//! with the bytes it brought; `rsbinder-ping DEVICE BYTES CALLS` calls, and prints
//! nanoseconds.
//!
//! As lean as the crate has it: the server is the context manager, so that no
//! third process is there, and neither a name of an interface nor a status is
//! sent beside the bytes. A call is timed from before its parcel is made until
//! its reply's bytes are read out, and verified afterwards.

use rsbinder::{
    Binder, Interface, LAST_CALL_TRANSACTION, Parcel, ProcessState, Remotable, SIBinder, StatusCode,
    TransactionCode,
};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

/// Beyond the codes whose requests begin with the name of their interface.
const ECHO: TransactionCode = LAST_CALL_TRANSACTION + 1;

/// First calls that are not recorded.
const WARM_UP: usize = 100;

struct Echo;

impl Interface for Echo {}

impl Remotable for Echo {
    fn descriptor() -> &'static str {
        "latscope.IEcho"
    }

    fn on_transact(&self, code: TransactionCode, request: &mut Parcel, reply: &mut Parcel) -> rsbinder::Result<()> {
        if code != ECHO {
            return Err(StatusCode::UnknownTransaction);
        }
        reply.write(&request.read::<Vec<u8>>()?)
    }

    fn on_dump(&self, _: &mut dyn Write, _: &[String]) -> rsbinder::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", device] => serve(device),
        [device, bytes, calls] => call(device, bytes.parse()?, calls.parse()?),
        _ => Err("rsbinder-ping serve DEVICE | rsbinder-ping DEVICE BYTES CALLS".into()),
    }
}

fn serve(device: &str) -> Result<(), Box<dyn Error>> {
    let process = ProcessState::init(device, 0)?;
    process.become_context_manager(Interface::as_binder(&Binder::new(Echo)))?;
    Ok(ProcessState::join_thread_pool()?)
}

fn call(device: &str, bytes: usize, calls: usize) -> Result<(), Box<dyn Error>> {
    ProcessState::init(device, 0)?;
    let server = reach()?;
    let mut payload: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let mut times = Vec::with_capacity(calls);
    for turn in 0..WARM_UP + calls {
        let length = bytes.min(4);
        payload[..length].copy_from_slice(&(turn as u32).to_le_bytes()[..length]);
        let begun = Instant::now();
        let reply = echo(&server, &payload)?;
        let time = begun.elapsed();
        if reply != payload {
            return Err("a reply is not what was sent".into());
        }
        if turn >= WARM_UP {
            times.push(time.as_nanos() as u64);
        }
    }
    times.sort_unstable();
    let mean = times.iter().sum::<u64>() / calls as u64;
    println!("min {} p50 {} mean {mean} ns", times[0], times[calls / 2]);
    Ok(())
}

/// The server, as soon as it is there.
fn reach() -> Result<SIBinder, Box<dyn Error>> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match ProcessState::as_self().context_object() {
            Ok(server) => return Ok(server),
            Err(error) if Instant::now() > end => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn echo(server: &SIBinder, payload: &[u8]) -> rsbinder::Result<Vec<u8>> {
    let proxy = server.as_proxy().ok_or(StatusCode::BadType)?;
    let mut request = proxy.prepare_transact(false)?;
    request.write(payload)?;
    let reply = proxy.submit_transact(ECHO, &request, 0)?;
    reply.ok_or(StatusCode::UnexpectedNull)?.read()
}
