//! Time of a call of rsbinder: `rsbinder-ping serve DEVICE` answers each request
//! with the bytes it brought; `rsbinder-ping DEVICE BYTES CALLS` calls, and prints
//! nanoseconds.
//!
//! As lean as the crate has it: the server is the context manager too and hands
//! out its service, so that there is no third process; neither the name of an
//! interface nor a status is sent beside the bytes. A call is timed from before
//! its parcel is made until its reply's bytes are read out, and verified
//! afterwards.

use rsbinder::{
    Binder, Interface, LAST_CALL_TRANSACTION, Parcel, ProcessState, Remotable, SIBinder, StatusCode,
    TransactionCode,
};
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

/// Asks the manager for the service.
const FIND: TransactionCode = ECHO + 1;

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

    fn on_transact(
        &self,
        code: TransactionCode,
        request: &mut Parcel,
        reply: &mut Parcel,
    ) -> rsbinder::Result<()> {
        if code != ECHO {
            return Err(StatusCode::UnknownTransaction);
        }
        reply.write(&request.read::<Vec<u8>>()?)
    }

    fn on_dump(&self, _: &mut dyn Write, _: &[String]) -> rsbinder::Result<()> {
        Ok(())
    }
}

/// What the context manager is asked for.
struct Door(SIBinder);

impl Interface for Door {}

impl Remotable for Door {
    fn descriptor() -> &'static str {
        "latscope.IDoor"
    }

    fn on_transact(&self, code: TransactionCode, _: &mut Parcel, reply: &mut Parcel) -> rsbinder::Result<()> {
        if code != FIND {
            return Err(StatusCode::UnknownTransaction);
        }
        reply.write(&self.0)
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
    let service = Interface::as_binder(&Binder::new(Echo));
    process.become_context_manager(Interface::as_binder(&Binder::new(Door(service))))?;
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
    let manager = loop {
        match ProcessState::as_self().context_object() {
            Ok(manager) => break manager,
            Err(error) if Instant::now() > end => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    Ok(transact(&manager, FIND, |_| Ok(()))?.read()?)
}

fn echo(server: &SIBinder, payload: &[u8]) -> rsbinder::Result<Vec<u8>> {
    transact(server, ECHO, |request| request.write(payload))?.read()
}

fn transact(
    to: &SIBinder,
    code: TransactionCode,
    write: impl FnOnce(&mut Parcel) -> rsbinder::Result<()>,
) -> rsbinder::Result<Parcel> {
    let proxy = to.as_proxy().ok_or(StatusCode::BadType)?;
    let mut request = proxy.prepare_transact(false)?;
    write(&mut request)?;
    proxy.submit_transact(code, &request, 0)?.ok_or(StatusCode::UnexpectedNull)
}
