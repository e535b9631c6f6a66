//! Detection of the other endpoint's end for an endpoint that sleeps elsewhere, even after a kill: a socket whose other
//! end only the other process holds, and a thread that sleeps on it. Transactions have no further cost from it.

use super::endpoint::{self, MORE_DESCRIPTORS, broken_failure, unavailable};
use crate::transaction::{EndpointHandle, EndpointPair, TransactionFailure, TransportSetupError};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// An endpoint pair with a lifeline behind the other descriptors.
pub(super) fn endpoint_pair(
    mut server: Vec<OwnedFd>,
    mut client: Vec<OwnedFd>,
) -> Result<EndpointPair, TransportSetupError> {
    let (servers, clients) = create_sockets()?;
    server.push(servers);
    client.push(clients);
    Ok(endpoint::endpoint_pair(server, client))
}

fn create_sockets() -> Result<(OwnedFd, OwnedFd), TransportSetupError> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| unavailable("no sockets", error, MORE_DESCRIPTORS))
}

/// Takes the lifeline out of the descriptors passed to the process.
pub(super) fn take_from_handle(handle: &mut EndpointHandle) -> Result<OwnedFd, TransactionFailure> {
    handle.descriptors.pop().ok_or_else(|| broken_failure("no lifeline was handed over"))
}

/// End of a lifeline. When it is dropped, the other endpoint's lifeline detects that.
#[derive(Debug)]
pub(super) struct Lifeline {
    state: Arc<State>,
    gone: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    socket: OwnedFd,
    closing: AtomicBool,
}

/// Stack of the watching thread: it does next to nothing, and the process may
/// have all its memory locked.
const STACK: usize = 128 << 10;

impl Lifeline {
    /// Watches `socket`, and calls `wake` once when the other endpoint ends; `wake` must not sleep. From before that
    /// call on [`gone`](Self::gone) is true.
    pub(super) fn watch_socket(
        socket: OwnedFd,
        wake: impl FnMut() + Send + 'static,
    ) -> Result<Self, TransactionFailure> {
        Lifeline::watch_with_flag(socket, Arc::default(), wake)
    }

    /// Watches like [`watch_socket`](Self::watch_socket), and sets `gone` as well.
    pub(super) fn watch_with_flag(
        socket: OwnedFd,
        gone: Arc<AtomicBool>,
        mut wake: impl FnMut() + Send + 'static,
    ) -> Result<Self, TransactionFailure> {
        let state = Arc::new(State { socket, closing: AtomicBool::new(false) });
        let (watched, over) = (Arc::clone(&state), Arc::clone(&gone));
        let builder = thread::Builder::new().name(String::from("lifeline")).stack_size(STACK);
        let thread = builder.spawn(move || {
            while let Ok(1) | Err(Errno::INTR) = read(&watched.socket, &mut [0]) {}
            over.store(true, Ordering::SeqCst);
            if !watched.closing.load(Ordering::SeqCst) {
                wake();
            }
        });
        let thread = thread.map_err(|error| {
            TransactionFailure::Broken(format!("no thread to watch the other endpoint: {error}"))
        })?;
        Ok(Lifeline { state, gone, thread: Some(thread) })
    }

    /// Returns true if the other endpoint is known to be gone.
    #[inline]
    pub(super) fn gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::SeqCst);
        // A socket that was connected once can always be shut down.
        let _ = shutdown(&self.state.socket, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and has nothing to say.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn the_end_of_one_wakes_the_other_and_not_itself() {
        let (near, far) = create_sockets().unwrap();
        let (tell_near, told_near) = channel();
        let (tell_far, told_far) = channel();
        let near = Lifeline::watch_socket(near, move || tell_near.send(()).unwrap()).unwrap();
        let far = Lifeline::watch_socket(far, move || tell_far.send(()).unwrap()).unwrap();
        assert!(!near.gone() && !far.gone());
        drop(near);
        told_far.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(far.gone());
        assert!(told_near.try_recv().is_err());
    }
}
