//! Server processes.

use crate::stage::{handle, transport};
use anyhow::Result;
use latscope_exchange::transaction::{HandlerReply, RequestHandler};
use latscope_os::sched::{self, ThreadSchedPolicy};
use latscope_os::signal_probe::SelfSignal;
use std::time::Duration;

/// Serves as `kind` says until the client is gone.
pub fn main(name: &str, kind: &str, payload: usize, words: &[&str]) -> Result<()> {
    // Late, so that the client asks for what is not there yet.
    if kind == "late" {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _caught = (kind == "caught").then(SelfSignal::install_handler).transpose()?;
    let mut server = (transport(name)?.server)(handle(payload, words)?)?;
    let mut service: Box<dyn RequestHandler> = match kind {
        "backwards" => Box::new(Backwards(Vec::new())),
        "count" => Box::new(Count { seen: 0, answer: [0; 8] }),
        "sleep" => Box::new(Sleep),
        "facts" => Box::new(Facts([0; 16])),
        _ => Box::new(Echo),
    };
    Ok(server.serve_requests(service.as_mut())?)
}

/// Answers with the request.
struct Echo;

impl RequestHandler for Echo {
    fn handle_request(&mut self, _: &[u8]) -> HandlerReply<'_> {
        HandlerReply::Echo
    }
}

/// Answers with the bytes of the request from the last to the first.
struct Backwards(Vec<u8>);

impl RequestHandler for Backwards {
    fn handle_request(&mut self, request: &[u8]) -> HandlerReply<'_> {
        self.0.clear();
        self.0.extend(request.iter().rev());
        HandlerReply::Bytes(&self.0)
    }
}

/// Counts requests of one byte, and answers others with the count.
struct Count {
    seen: u64,
    answer: [u8; 8],
}

impl RequestHandler for Count {
    fn handle_request(&mut self, request: &[u8]) -> HandlerReply<'_> {
        if request.len() == 2 {
            self.answer = self.seen.to_ne_bytes();
            return HandlerReply::Bytes(&self.answer);
        }
        self.seen += 1;
        HandlerReply::None
    }
}

/// Never answers.
struct Sleep;

impl RequestHandler for Sleep {
    fn handle_request(&mut self, _: &[u8]) -> HandlerReply<'_> {
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// Answers with policy, real-time priority and nice value of this thread while
/// it serves.
struct Facts([u8; 16]);

impl RequestHandler for Facts {
    fn handle_request(&mut self, _: &[u8]) -> HandlerReply<'_> {
        let (policy, priority) = match sched::policy() {
            Ok(ThreadSchedPolicy::Other) => (0, 0),
            Ok(ThreadSchedPolicy::Fifo(priority)) => (1, priority as i32),
            Ok(ThreadSchedPolicy::RoundRobin(priority)) => (2, priority as i32),
            _ => (-1, 0),
        };
        let nice = rustix::process::getpriority_process(None).unwrap_or(i32::MIN);
        for (place, value) in self.0.chunks_exact_mut(4).zip([policy, priority, nice, 0]) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        HandlerReply::Bytes(&self.0)
    }
}
