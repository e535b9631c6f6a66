//! `shm`: an echo process stands for the remote, in memory that both map.

use super::kicks::Kicks;
use super::mailbox::{self, MailboxChannel};
use super::rings::{self, Far, LONGEST, Rings};
use super::{ChannelRequest, RemoteChannel, RemoteTransport, echo};
use crate::notify::eventfd::{self, Eventfd};
use crate::notify::futex::{Bells, Futex};
use anyhow::{Context, Result, bail};
use latscope_os::clock::monotonic_ns;
use latscope_os::sched;
use latscope_os::shared_cell::SharingScope;
use latscope_os::window::MemoryWindow;
use latscope_os::worker::{self, Lifetime, take_descriptor};
use latscope_process::role::{KilledOnDrop, ProcessRole};
use rustix::event::EventfdFlags;
use rustix::fd::OwnedFd;
use std::time::Duration;

/// Transport `shm` over shared memory.
pub static SHM: RemoteTransport =
    RemoteTransport { name: "shm", waits: WAITS, ours: true, options: &[], open: open_channel };

const WAITS: &[&str] = &["spin", "spin-then-park", "futex", "eventfd"];

/// Time for the remote to begin.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that `spin-then-park` spins before it sleeps, ns: longer than an answer takes.
pub(crate) const PARK_AFTER: u64 = 50_000;

/// The word of a remote that does not know RPMsg.
const BARE: &str = "word";

fn open_channel(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let payload = order.payload();
    if payload > LONGEST {
        bail!("a payload of {payload} bytes is longer than any buffer: at most {LONGEST}");
    }
    let window = rings::layout(payload)?;
    let memory = MemoryWindow::create_zeroed(window.size).context("no shared memory")?;
    let (process, kicks) = ShmEchoProcess::spawn_process(order, &memory, &payload.to_string())?;
    let until = monotonic_ns() + CONNECT_TIMEOUT.as_nanos() as u64;
    let rings = Rings::connect(&window, memory, kicks, Box::new(process), order.service, until)?;
    Ok(Box::new(rings))
}

/// Opens a channel for one word there and back between the same two processes.
///
/// # Errors
/// No memory, no process, or not two CPUs where both spin.
pub fn mailbox(order: &ChannelRequest) -> Result<Box<dyn RemoteChannel>> {
    let memory = MemoryWindow::create_zeroed(mailbox::SIZE).context("no shared memory")?;
    let (process, kicks) = ShmEchoProcess::spawn_process(order, &memory, BARE)?;
    Ok(Box::new(MailboxChannel::new(memory, kicks, Box::new(process))))
}

/// Returns the kicks of the first or the second side for a way to wait, from the descriptors that both sides hold.
fn kicks(wait: &str, side: usize, shared: &[OwnedFd]) -> Result<Kicks> {
    let shared = shared.iter().map(OwnedFd::try_clone).collect::<Result<Vec<_>, _>>()?;
    match (wait, <[OwnedFd; 2]>::try_from(shared)) {
        ("spin", _) => Ok(Kicks::SPIN),
        ("eventfd", Ok(events)) => Ok(Kicks::new(Eventfd::new(events, side), 0)),
        ("futex" | "spin-then-park", Err(mut cells)) => {
            let cell = cells.pop().context("two endpoints share one futex")?;
            let spin_ns = if wait == "futex" { 0 } else { PARK_AFTER };
            Ok(Kicks::new(Futex::new(Bells::map_existing(cell)?, side), spin_ns))
        }
        _ => bail!("no way to wait is called {wait}"),
    }
}

/// Makes the descriptors that both sides hold for a way to wait.
fn create_descriptors(wait: &str) -> Result<Vec<OwnedFd>> {
    match wait {
        "futex" | "spin-then-park" => {
            let bells = Bells::create_zeroed(SharingScope::Processes)?;
            Ok(vec![bells.descriptor().try_clone_to_owned()?])
        }
        "eventfd" => Ok(eventfd::create_pair(EventfdFlags::NONBLOCK)?.into()),
        _ => Ok(Vec::new()),
    }
}

/// The process that answers.
struct ShmEchoProcess(KilledOnDrop);

impl ShmEchoProcess {
    /// Starts the process on the second CPU, with the memory; returns the kicks of this side for it.
    fn spawn_process(
        order: &ChannelRequest,
        memory: &MemoryWindow,
        what: &str,
    ) -> Result<(ShmEchoProcess, Kicks)> {
        let wait = order.wait_mode();
        let there = match order.cpus {
            [_, there, ..] => *there,
            [only] if !wait.starts_with("spin") => *only,
            _ => bail!("two endpoints that spin need two CPUs: allow a second one, or --wait futex"),
        };
        let shared = create_descriptors(wait)?;
        let kicks = kicks(wait, 0, &shared)?;
        let memory = memory.descriptor().try_clone_to_owned()?;
        let descriptors: Vec<&OwnedFd> = [&memory].into_iter().chain(&shared).collect();
        let words = [ROLE.name, wait, &there.to_string(), what];
        let child = worker::spawn(&words, &descriptors, Lifetime::WithParent)
            .context("the process that answers does not start")?;
        Ok((ShmEchoProcess(KilledOnDrop(child)), kicks))
    }
}

impl Far for ShmEchoProcess {
    fn describe_end(&mut self) -> Option<String> {
        self.0.0.try_wait().ok().flatten().map(|status| format!("the process that answers ended: {status}"))
    }
}

/// The process itself: `__remote WAIT CPU PAYLOAD`, or `word` for the payload.
pub(crate) const ROLE: ProcessRole = ProcessRole { name: "__remote", terminates: false, main };

fn main(arguments: &[String]) -> Result<()> {
    let [wait, cpu, what] = arguments else {
        bail!("this is started by latscope itself: run `latscope remote`")
    };
    let _ = rustix::thread::set_name(c"remote/echo");
    sched::pin(&[cpu.parse()?]).with_context(|| format!("CPU {cpu} cannot be used"))?;
    let memory = MemoryWindow::map_file(take_descriptor(0)?)?;
    let shared: Vec<OwnedFd> = (1..=2).map_while(|index| take_descriptor(index).ok()).collect();
    let mut kicks = kicks(wait, 1, &shared)?;
    match what.as_str() {
        BARE => mailbox::echo_words(&memory, &mut kicks),
        payload => echo::answer_hosts(&rings::layout(payload.parse()?)?, &memory, &mut kicks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::Notifier;
    use crate::remote::ChannelFailure;
    use latscope_rpmsg::echo::RpmsgService;
    use latscope_rpmsg::header::NAME_SERVICE;
    use latscope_rpmsg::link::Unsent;
    use latscope_rpmsg::name_service::Announcement;
    use latscope_rpmsg::{RpmsgLink, RpmsgMemory as _, RpmsgWindow as LinkWindow};
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const SECOND: u64 = 1_000_000_000;

    /// A far side that never ends.
    struct NoFarSide;

    impl Far for NoFarSide {
        fn describe_end(&mut self) -> Option<String> {
            None
        }
    }

    /// A host and what the other side is made of, for payloads of up to so many bytes.
    fn pair(wait: &str, payload: usize) -> (LinkWindow, MemoryWindow, [Kicks; 2]) {
        let window = rings::layout(payload).unwrap();
        let shared = create_descriptors(wait).unwrap();
        let kicks = [0, 1].map(|side| kicks(wait, side, &shared).unwrap());
        (window, MemoryWindow::create_zeroed(window.size).unwrap(), kicks)
    }

    fn connect(
        window: &LinkWindow,
        memory: MemoryWindow,
        kicks: Kicks,
        service: RpmsgService,
    ) -> Result<Rings> {
        Rings::connect(window, memory, kicks, Box::new(NoFarSide), service, monotonic_ns() + 20 * SECOND)
    }

    /// Other side, in a thread, which ends when this value is dropped. A side that spins would otherwise take a CPU
    /// from all tests that follow.
    struct OtherSide {
        memory: MemoryWindow,
        size: usize,
        over: Arc<AtomicBool>,
    }

    impl OtherSide {
        /// `answer` makes use of the memory and the kicks until one of these fails.
        fn start<A>(
            memory: &MemoryWindow,
            size: usize,
            kicks: impl Fn() -> Kicks + Send + 'static,
            answer: A,
        ) -> OtherSide
        where
            A: FnOnce(&MemoryWindow, &mut Kicks) -> Result<()> + Send + 'static,
        {
            let over = Arc::new(AtomicBool::new(false));
            let (there, until) = (memory.clone(), Arc::clone(&over));
            std::thread::spawn(move || {
                let kicks = kicks();
                let spin_ns = kicks.spin_ns;
                answer(&there, &mut Kicks::new(Until { kicks, over: until }, spin_ns))
            });
            OtherSide { memory: memory.clone(), size, over }
        }
    }

    impl Drop for OtherSide {
        fn drop(&mut self) {
            self.over.store(true, Ordering::Relaxed);
            // The memory is empty now: the other side sleeps or kicks next, and both fail.
            self.memory.write_bytes(0, &vec![0; self.size]).unwrap();
        }
    }

    /// Kicks that fail after the end of the test.
    struct Until {
        kicks: Kicks,
        over: Arc<AtomicBool>,
    }

    impl Until {
        fn check(&self) -> io::Result<()> {
            if self.over.load(Ordering::Relaxed) {
                Err(std::io::ErrorKind::Interrupted.into())
            } else {
                Ok(())
            }
        }
    }

    impl Notifier for Until {
        fn notify(&mut self) -> io::Result<()> {
            self.check()?;
            self.kicks.kick()
        }

        fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
            self.check()?;
            self.kicks.wait_for_kick(timeout.unwrap().as_nanos() as u64)
        }
    }

    /// Rings, and the remote that answers there.
    fn remote(wait: &'static str, payload: usize) -> (Rings, OtherSide) {
        let window = rings::layout(payload).unwrap();
        let memory = MemoryWindow::create_zeroed(window.size).unwrap();
        let shared = create_descriptors(wait).unwrap();
        let ours = kicks(wait, 0, &shared).unwrap();
        let theirs = move || kicks(wait, 1, &shared).unwrap();
        let remote = OtherSide::start(&memory, window.size, theirs, move |memory, kicks| {
            echo::answer_hosts(&window, memory, kicks)
        });
        (connect(&window, memory, ours, RpmsgService::Pty).unwrap(), remote)
    }

    #[test]
    fn a_remote_answers_however_both_wait() {
        for wait in WAITS {
            for longest in [rings::PAYLOAD, LONGEST] {
                let (mut rings, _remote) = remote(wait, longest);
                assert_eq!(rings.limit(), longest);
                let until = monotonic_ns() + 20 * SECOND;
                let mut payload = vec![0; longest];
                for message in [&b"a"[..], &vec![7; longest], b"last"] {
                    rings.send_message(message).unwrap();
                    let length = rings.receive_message(&mut payload, until).unwrap();
                    assert!(&payload[..length] == message, "{wait}");
                }
                assert!(
                    matches!(rings.receive_message(&mut payload, 0), Err(ChannelFailure::Timeout)),
                    "one look, and no more"
                );
                assert_eq!(rings.faults(), 0);
                let long = rings.send_message(&vec![0; longest + 1]);
                assert!(matches!(long, Err(ChannelFailure::Unsent(Unsent::TooLong))));
            }
        }
    }

    #[test]
    fn as_many_messages_as_the_window_has_find_room() {
        for wait in WAITS {
            let (mut rings, _remote) = remote(wait, LONGEST);
            let until = monotonic_ns() + 20 * SECOND;
            let mut payload = vec![0; LONGEST];
            for round in 0..20u8 {
                (0..rings.window()).for_each(|_| rings.send_message(&[round; 1000]).unwrap());
                for _ in 0..rings.window() {
                    let length = rings.receive_message(&mut payload, until).unwrap();
                    assert!(payload[..length] == [round; 1000], "{wait}");
                }
            }
        }
    }

    #[test]
    fn a_word_goes_there_and_back_however_both_wait() {
        for &wait in WAITS {
            let memory = MemoryWindow::create_zeroed(mailbox::SIZE).unwrap();
            let shared = create_descriptors(wait).unwrap();
            let ours = kicks(wait, 0, &shared).unwrap();
            let theirs = move || kicks(wait, 1, &shared).unwrap();
            let _remote = OtherSide::start(&memory, mailbox::SIZE, theirs, mailbox::echo_words);
            let mut mailbox = MailboxChannel::new(memory, ours, Box::new(NoFarSide));
            for word in [1u32, 2, u32::MAX] {
                mailbox.send_message(&word.to_le_bytes()).unwrap();
                let mut answer = [0; 4];
                assert_eq!(mailbox.receive_message(&mut answer, monotonic_ns() + 20 * SECOND).unwrap(), 4);
                assert_eq!(u32::from_le_bytes(answer), word, "{wait}");
            }
            assert!(matches!(
                mailbox.send_message(b"long word"),
                Err(ChannelFailure::Unsent(Unsent::TooLong))
            ));
        }
    }

    #[test]
    fn no_far_side_is_a_timeout() {
        for wait in WAITS {
            let (window, memory, [ours, _]) = pair(wait, 48);
            let until = monotonic_ns() + 20_000_000;
            let found = Rings::connect(&window, memory, ours, Box::new(NoFarSide), RpmsgService::Ping, until);
            assert!(found.err().unwrap().to_string().contains("rpc-ping"), "{wait}");
        }
    }

    /// A side whose kicks go nowhere.
    struct Mute(Kicks);

    impl Notifier for Mute {
        fn notify(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
            self.0.wait_for_kick(timeout.unwrap().as_nanos() as u64)
        }
    }

    #[test]
    fn what_comes_without_a_kick_is_found_and_counted() {
        for wait in ["futex", "eventfd"] {
            let (window, memory, _) = pair(wait, 48);
            let both = create_descriptors(wait).unwrap();
            // Sleeps at once, so that answers come meanwhile.
            let mut ours = kicks(wait, 0, &both).unwrap();
            ours.spin_ns = 0;
            let theirs = move || Kicks::new(Mute(kicks(wait, 1, &both).unwrap()), 0);
            let _remote = OtherSide::start(&memory, window.size, theirs, move |memory, kicks| {
                echo::answer_hosts(&window, memory, kicks)
            });
            let mut rings = connect(&window, memory, ours, RpmsgService::Pty).unwrap();
            let before = rings.recovered();
            let mut payload = [0; 100];
            // The answer may be there before this side sleeps, but not each time.
            for _ in 0..10_000 {
                rings.send_message(b"knock").unwrap();
                assert_eq!(
                    rings.receive_message(&mut payload, monotonic_ns() + 20 * SECOND).unwrap(),
                    5,
                    "{wait}"
                );
                if rings.recovered() > before {
                    break;
                }
            }
            assert!(rings.recovered() > before, "{wait}");
        }
    }

    #[test]
    fn a_flood_to_another_address_does_not_outlast_the_wait() {
        let (window, memory, [ours, _]) = pair("spin", 48);
        let there = memory.clone();
        // Announces itself as a remote does, then sends to no endpoint until the ring is broken.
        std::thread::spawn(move || {
            let mut link = loop {
                if let Ok(Some(link)) = window.remote(&there) {
                    break link;
                }
            };
            let address = RpmsgService::Ping.address();
            let name = Announcement { name: RpmsgService::Ping.endpoint_name(), address, destroyed: false };
            link.send_message(address, NAME_SERVICE, &name.encode_bytes()).unwrap();
            while !matches!(link.send_message(address, 99, b"flood"), Err(Unsent::Fault(_))) {}
        });
        let mut rings = connect(&window, memory.clone(), ours, RpmsgService::Ping).unwrap();
        let found = rings.receive_message(&mut [0; 100], monotonic_ns() + SECOND / 50);
        assert!(matches!(found, Err(ChannelFailure::Timeout)), "{found:?}");
        // Nonsense in all of it, the indices included, ends the flood.
        memory.write_bytes(0, &vec![0xA5; window.size]).unwrap();
    }

    #[test]
    fn a_ring_that_jumps_ends_the_wait() {
        let (window, memory, [ours, _]) = pair("spin", 48);
        let there = memory.clone();
        std::thread::spawn(move || {
            while !matches!(window.remote(&there), Ok(Some(_))) {}
            // Nonsense in all of it, the indices included.
            there.write_bytes(0, &vec![0xA5; window.size]).unwrap();
        });
        let found = connect(&window, memory, ours, RpmsgService::Ping);
        assert!(found.err().unwrap().to_string().contains("index jumped"));
    }
}
