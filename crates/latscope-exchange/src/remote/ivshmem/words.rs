//! A single word there and back, beside the link and answered by the same image.

use super::super::kicks::{FOREVER, KickWait, Next};
use super::super::rings::Far;
use super::super::{ChannelFailure, RemoteChannel};
use super::Guest;
use latscope_os::window::MemoryWindow;
use latscope_rpmsg::control::RpmsgControlBlock;
use latscope_rpmsg::link::Unsent;

/// Endpoint of the host.
pub(super) struct IvshmemWordChannel {
    control: RpmsgControlBlock<MemoryWindow>,
    guest: Guest,
    /// Last sent word, in both halves: a mixture of halves of two words is equal to neither.
    word: u64,
}

impl IvshmemWordChannel {
    /// Connects to an image that was ordered to echo words.
    pub(super) fn new(control: RpmsgControlBlock<MemoryWindow>, guest: Guest) -> IvshmemWordChannel {
        IvshmemWordChannel { control, guest, word: 0 }
    }
}

impl RemoteChannel for IvshmemWordChannel {
    #[inline]
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        let word = message.try_into().map_err(|_| ChannelFailure::Unsent(Unsent::TooLong))?;
        self.word = u64::from(u32::from_le_bytes(word)) * 0x1_0000_0001;
        self.control.send_word(self.word).map_err(ChannelFailure::from_fault)
    }

    #[inline]
    fn receive_message(&mut self, into: &mut [u8], until: u64) -> Result<usize, ChannelFailure> {
        let mut wait = KickWait::new(FOREVER, until);
        while !self.control.is_echoed(self.word).map_err(ChannelFailure::from_fault)? {
            if wait.next_action() == Next::Over {
                return Err(ChannelFailure::Timeout);
            }
        }
        into[..4].copy_from_slice(&self.word.to_le_bytes()[..4]);
        Ok(4)
    }

    fn limit(&self) -> usize {
        4
    }

    fn window(&self) -> usize {
        1
    }

    fn end_description(&mut self) -> Option<String> {
        self.guest.describe_end()
    }

    fn distortion(&self) -> Option<&'static str> {
        self.guest.distortion()
    }
}
