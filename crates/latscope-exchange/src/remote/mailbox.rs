//! A single word there and back, in the memory and between the endpoints of a link:
//! what RPMsg costs is what a ping takes longer.

use super::kicks::{KickWait, Kicks, Next};
use super::rings::Far;
use super::{ChannelFailure, RemoteChannel};
use latscope_os::window::MemoryWindow as Memory;
use latscope_rpmsg::RpmsgMemory as _;
use latscope_rpmsg::link::Unsent;

/// Offsets of the words to the remote and to the host: two lines apart, because adjacent lines are fetched in pairs.
const WORDS: [usize; 2] = [0, 128];

/// Size of the memory, bytes.
pub(super) const SIZE: usize = 4096;

/// Endpoint of the host.
pub(super) struct MailboxChannel {
    memory: Memory,
    kicks: Kicks,
    far: Box<dyn Far>,
    last: u32,
}

impl MailboxChannel {
    /// Over memory of zeros.
    pub(super) fn new(memory: Memory, kicks: Kicks, far: Box<dyn Far>) -> MailboxChannel {
        MailboxChannel { memory, kicks, far, last: 0 }
    }
}

impl RemoteChannel for MailboxChannel {
    #[inline]
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        let word = message.try_into().map_err(|_| ChannelFailure::Unsent(Unsent::TooLong))?;
        self.memory.store_u32(WORDS[0], u32::from_le_bytes(word)).map_err(ChannelFailure::from_fault)?;
        Ok(self.kicks.kick()?)
    }

    #[inline]
    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        let mut wait = KickWait::new(self.kicks.spin_ns, until);
        loop {
            let word = self.memory.load_u32(WORDS[1]).map_err(ChannelFailure::from_fault)?;
            if word != self.last {
                self.last = word;
                into[..4].copy_from_slice(&word.to_le_bytes());
                return Ok(4);
            }
            match wait.next_action() {
                Next::Look => {}
                Next::Sleep(ns) => _ = self.kicks.wait_for_kick(ns)?,
                Next::Over => return Err(ChannelFailure::Timeout),
            }
        }
    }

    fn limit(&self) -> usize {
        4
    }

    fn window(&self) -> usize {
        1
    }

    fn end_description(&mut self) -> Option<String> {
        self.far.describe_end()
    }
}

/// Runs the other end: answers each word with the same word, until the process is ended.
///
/// # Errors
/// The memory is too small, or a kick failed.
pub(super) fn echo_words(memory: &Memory, kicks: &mut Kicks) -> anyhow::Result<()> {
    let spin_ns = kicks.spin_ns;
    let waiting = || KickWait::new(spin_ns, u64::MAX);
    let (mut last, mut wait) = (0, waiting());
    loop {
        let word = memory.load_u32(WORDS[0])?;
        if word != last {
            last = word;
            memory.store_u32(WORDS[1], word)?;
            kicks.kick()?;
            wait = waiting();
        } else if let Next::Sleep(ns) = wait.next_action() {
            kicks.wait_for_kick(ns)?;
        }
    }
}
