//! How an endpoint that sleeps in something learns that the other is gone, also
//! when that was killed: a socket whose other end only the other process has,
//! and a thread that sleeps on it. Transactions cost nothing more for it.

use super::endpoint::{MORE_DESCRIPTORS, unavailable};
use crate::transaction::{Failure, Unavailable};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, read};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The two ends of a lifeline, the server's and the client's.
pub(super) fn pair() -> Result<(OwnedFd, OwnedFd), Unavailable> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| unavailable("no sockets", error, MORE_DESCRIPTORS))
}

/// One end of a lifeline; the other endpoint's sees when this is dropped.
#[derive(Debug)]
pub(super) struct Lifeline {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    socket: OwnedFd,
    gone: AtomicBool,
    closing: AtomicBool,
}

/// Stack of the watching thread: it does next to nothing, and the process may
/// have all its memory locked.
const STACK: usize = 128 << 10;

impl Lifeline {
    /// Watches `socket`; calls `wake` once when the other endpoint is gone, which
    /// must not sleep. From before that call on [`gone`](Self::gone) is true.
    pub(super) fn watch(socket: OwnedFd, mut wake: impl FnMut() + Send + 'static) -> Result<Self, Failure> {
        let (gone, closing) = (AtomicBool::new(false), AtomicBool::new(false));
        let state = Arc::new(State { socket, gone, closing });
        let watched = Arc::clone(&state);
        let watching = move || {
            while let Ok(1) | Err(Errno::INTR) = read(&watched.socket, &mut [0]) {}
            watched.gone.store(true, Ordering::SeqCst);
            if !watched.closing.load(Ordering::SeqCst) {
                wake();
            }
        };
        let thread =
            thread::Builder::new().name(String::from("lifeline")).stack_size(STACK).spawn(watching).map_err(
                |error| Failure::Broken(format!("no thread to watch the other endpoint: {error}")),
            )?;
        Ok(Lifeline { state, thread: Some(thread) })
    }

    /// Whether the other endpoint is known to be gone.
    #[inline]
    pub(super) fn gone(&self) -> bool {
        self.state.gone.load(Ordering::SeqCst)
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
        let (near, far) = pair().unwrap();
        let (tell_near, told_near) = channel();
        let (tell_far, told_far) = channel();
        let near = Lifeline::watch(near, move || tell_near.send(()).unwrap()).unwrap();
        let far = Lifeline::watch(far, move || tell_far.send(()).unwrap()).unwrap();
        assert!(!near.gone() && !far.gone());
        drop(near);
        told_far.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(far.gone());
        assert!(told_near.try_recv().is_err());
    }
}
