//! A run: its endpoints are set up one by one, begin together, and end together when the first of them is done.

use super::board::{PacedEndpointWord, PacedRunMemory};
use super::endpoint::{PacedEndpoint, ROLE};
use super::means::PacedWakeChannel;
use super::{PacedEndpointRules, PacedWakeOrder};
use anyhow::{Context, Result, bail};
use latscope_exchange::notify::poll;
use latscope_os::shared_cell::SharingScope;
use latscope_os::signal::{SignalFd, TERMINATION};
use latscope_os::worker::{self, Lifetime};
use latscope_process::guardian::Guardian;
use latscope_process::leftover::Leftovers;
use latscope_process::role::KilledOnDrop;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A run that has begun. Dropping it removes the objects it made; its own threads may sleep until the process
/// ends.
#[derive(Debug)]
pub struct Session {
    board: Arc<PacedRunMemory>,
    bell: Arc<OwnedFd>,
    signals: SignalFd,
    children: Vec<KilledOnDrop>,
    // In this order: what is left is removed before the guardian ends.
    left: Vec<Leftovers>,
    guardian: Guardian,
}

/// Reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacedWaitOutcome {
    /// The time to wait is over.
    Time,
    /// The run is over.
    Run,
    /// A signal ends the run.
    Told,
}

/// Time for an endpoint to be set up.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// Time for all to fall asleep before the first message.
const LEAD: Duration = Duration::from_millis(10);

/// Memory of a thread's stack: all of it is locked.
const STACK_BYTES: usize = 256 << 10;

impl Session {
    /// Sets up an endpoint for each of the rules, as threads or as processes, and lets them begin.
    ///
    /// # Errors
    /// An endpoint cannot be set up.
    pub fn start_endpoints(rules: Vec<PacedEndpointRules>, processes: bool) -> Result<Session> {
        let signals = SignalFd::block(&TERMINATION).context("signals cannot be waited for")?;
        let board = Arc::new(PacedRunMemory::for_endpoints(rules.len()).context("no shared memory")?);
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (children, left) = (Vec::new(), Vec::new());
        let mut session = Session { board, bell, signals, children, left, guardian: Guardian::default() };
        let form = rules.first().map_or(PacedWakeOrder::Pairs, |rules| rules.form);
        let together = if form == PacedWakeOrder::Circle { rules.len() } else { 2 };
        for (number, rules) in rules.chunks(together).enumerate() {
            session.add_endpoints(number * together, rules, processes)?;
        }
        session.await_all()?;
        std::thread::sleep(LEAD);
        session.board.start_senders();
        Ok(session)
    }

    /// Adds endpoints that share a channel.
    fn add_endpoints(&mut self, first: usize, rules: &[PacedEndpointRules], processes: bool) -> Result<()> {
        let scope = if processes { SharingScope::Processes } else { SharingScope::Threads };
        let (channel, left) = PacedWakeChannel::create_with_leftovers(rules[0].means, scope)
            .context(rules[0].means.exhaustion_text())?;
        for leftover in left.iter() {
            self.guardian.journal_leftover(leftover)?;
        }
        self.left.push(left);
        let channel = Arc::new(channel);
        for (index, rules) in (first..).zip(rules) {
            match processes {
                true => self.children.push(self.process(index, rules, &channel)?),
                false => self.thread(index, rules, &channel)?,
            }
        }
        Ok(())
    }

    fn thread(
        &self,
        index: usize,
        rules: &PacedEndpointRules,
        channel: &Arc<PacedWakeChannel>,
    ) -> Result<()> {
        let (board, bell, channel, rules) =
            (self.board.clone(), self.bell.clone(), channel.clone(), rules.clone());
        let body = move || {
            PacedEndpoint { board: &board, index, rules: &rules, channel: &channel, bell: bell.as_fd() }
                .run_endpoint();
        };
        let builder = std::thread::Builder::new().name(format!("paced/{index}")).stack_size(STACK_BYTES);
        builder.spawn(body).map(drop).context("no thread can be created")
    }

    fn process(
        &self,
        index: usize,
        rules: &PacedEndpointRules,
        channel: &PacedWakeChannel,
    ) -> Result<KilledOnDrop> {
        let set = if let PacedWakeChannel::Semaphores(set) = channel { *set } else { 0 };
        let numbers = [index, self.board.endpoints(), set as usize, std::process::id() as usize];
        let [index, endpoints, set, parent] = numbers.map(|number| number.to_string());
        let rules = serde_json::to_string(rules)?;
        let mut descriptors = vec![self.bell.try_clone()?, self.board.descriptor().try_clone_to_owned()?];
        if let PacedWakeChannel::Futexes(lanes) = channel {
            descriptors.push(lanes.descriptor().try_clone_to_owned()?);
        }
        let descriptors: Vec<&OwnedFd> = descriptors.iter().collect();
        let words = [ROLE.name, &rules, &index, &endpoints, &set, &parent];
        let child = worker::spawn(&words, &descriptors, Lifetime::WithParent);
        child.map(KilledOnDrop).context("no process can be started")
    }

    fn await_all(&mut self) -> Result<()> {
        let begun = Instant::now();
        let ready = |board: &PacedRunMemory| {
            (0..board.endpoints()).all(|endpoint| {
                board.endpoint_word(endpoint, PacedEndpointWord::Address).load(Ordering::Acquire) != 0
            })
        };
        while !ready(&self.board) {
            self.check_endpoints()?;
            if begun.elapsed() > READY_TIMEOUT {
                bail!("not all are ready after {} s", READY_TIMEOUT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Checks that all endpoints still run.
    ///
    /// # Errors
    /// An endpoint failed or ended too early.
    pub fn check_endpoints(&mut self) -> Result<()> {
        if let Some(error) = self.board.first_error() {
            return Err(error).context("an endpoint failed");
        }
        let died = self.children.iter_mut().find_map(|child| child.0.try_wait().ok().flatten());
        match died {
            Some(status) if !self.board.over() => bail!("an endpoint ended: {status}"),
            _ => Ok(()),
        }
    }

    /// Board with the endpoints' figures.
    pub fn board(&self) -> &PacedRunMemory {
        &self.board
    }

    /// Waits for a time, or until the run is over: by itself, or by a signal.
    ///
    /// # Errors
    /// Waiting is refused.
    pub fn wait_for_end(&self, time: Duration) -> Result<PacedWaitOutcome> {
        let mut fds = [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&*self.bell, PollFlags::IN)];
        Ok(match poll(&mut fds, time)? {
            false => PacedWaitOutcome::Time,
            true if fds[1].revents().is_empty() => PacedWaitOutcome::Told,
            true => PacedWaitOutcome::Run,
        })
    }

    /// Ends the run, so that its figures stay.
    pub fn end_run(&self) {
        self.board.end_run();
        // A sample that is just being put on the board.
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.board.end_run();
        self.children.clear();
        self.left.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::PacedWakeMechanism;
    use super::*;

    fn rules(means: PacedWakeMechanism, form: PacedWakeOrder) -> PacedEndpointRules {
        PacedEndpointRules {
            means,
            form,
            interval: 100_000,
            priority: 0,
            cpu: None,
            loops: 20,
            threshold: u64::MAX,
            timeout: 0,
            delay: 0,
            trace: None,
        }
    }

    fn finished(rules: Vec<PacedEndpointRules>) -> Session {
        let mut session = Session::start_endpoints(rules, false).unwrap();
        let begun = Instant::now();
        while session.wait_for_end(Duration::from_millis(100)).unwrap() == PacedWaitOutcome::Time {
            session.check_endpoints().unwrap();
            assert!(begun.elapsed() < READY_TIMEOUT, "it does not end");
        }
        session.end_run();
        session
    }

    #[test]
    fn every_means_wakes_as_often_as_ordered() {
        // Semaphores need the guardian, which is our own binary.
        for means in [PacedWakeMechanism::Queues, PacedWakeMechanism::Futexes, PacedWakeMechanism::Signals] {
            let session = finished(vec![rules(means, PacedWakeOrder::Pairs); 2]);
            let (receiver, sender) =
                (session.board().endpoint_statistics(0), session.board().endpoint_statistics(1));
            assert_eq!((receiver.cycles, receiver.samples, sender.samples), (20, 20, 0), "{means:?}");
            assert!(receiver.min > 0 && receiver.min <= receiver.last && receiver.last <= receiver.max);
            assert!(receiver.min as f64 <= receiver.mean && receiver.mean <= receiver.max as f64);
            assert!(receiver.cpu.is_some() && sender.cpu.is_some() && receiver.thread != sender.thread);
        }
    }

    #[test]
    fn a_turn_with_a_rest_is_no_sample_of_the_others() {
        let session = finished(vec![rules(PacedWakeMechanism::Signals, PacedWakeOrder::Circle); 3]);
        let all: Vec<_> = (0..3).map(|endpoint| session.board().endpoint_statistics(endpoint)).collect();
        assert_eq!(all.iter().map(|figures| figures.cycles).collect::<Vec<_>>(), [20; 3]);
        // The first message begins a turn, and the 17th came after a rest.
        assert_eq!(all.iter().map(|figures| figures.samples).collect::<Vec<_>>(), [20, 18, 18]);
        assert_eq!(session.board().sample(19), all[0].last);
    }

    #[test]
    fn the_first_latency_above_the_threshold_ends_the_run() {
        let session = finished(vec![
            PacedEndpointRules {
                threshold: 0,
                ..rules(PacedWakeMechanism::Queues, PacedWakeOrder::Pairs)
            };
            2
        ]);
        assert_eq!(
            (session.board().exceeding_endpoint(), session.board().endpoint_statistics(0).cycles),
            (Some(0), 1)
        );
    }

    #[test]
    fn an_endpoint_that_cannot_be_set_up_is_reported() {
        let nowhere = PacedEndpointRules {
            cpu: Some(8191),
            ..rules(PacedWakeMechanism::Futexes, PacedWakeOrder::Pairs)
        };
        let text = format!("{:#}", Session::start_endpoints(vec![nowhere; 2], false).err().unwrap());
        assert!(text.starts_with("an endpoint failed: "), "{text}");
    }
}
