//! A remote for tests that keeps, loses and changes messages as ordered.

use latscope_exchange::remote::{ChannelFailure, RemoteChannel};
use latscope_rpmsg::link::Unsent;
use latscope_rpmsg::messages::block::Receipt;
use std::collections::VecDeque;

/// Fate of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The message comes back.
    Echo,
    /// The message never comes back.
    Lose,
    /// The message comes back when it was given up, before the echo of the next one.
    Late,
    /// The message comes back twice.
    Twice,
    /// Another message comes before it.
    Garbage,
    /// The message comes back with a byte changed.
    Damage,
    /// The message comes back after the echo of the next one.
    Overtaken,
    /// Copies of the message come, and nothing else.
    Flood,
}

/// A connection to such a remote; after the last fate every message comes back.
pub struct Scripted {
    fates: VecDeque<Fate>,
    coming: VecDeque<Vec<u8>>,
    late: Vec<Vec<u8>>,
    overtaken: Option<Vec<u8>>,
    flood: Option<Vec<u8>>,
    room: usize,
    sink: Option<Receipt>,
}

impl Scripted {
    /// Returns a remote with these fates, in turn.
    pub fn new(fates: impl IntoIterator<Item = Fate>) -> Scripted {
        Scripted {
            fates: fates.into_iter().collect(),
            coming: VecDeque::new(),
            late: Vec::new(),
            overtaken: None,
            flood: None,
            room: usize::MAX,
            sink: None,
        }
    }

    /// Returns a remote with room for `room` messages that were not taken.
    pub(crate) fn with_room(self, room: usize) -> Scripted {
        Scripted { room, ..self }
    }

    /// Returns a remote that verifies blocks instead.
    pub(crate) fn sinking(self) -> Scripted {
        Scripted { sink: Some(Receipt::default()), ..self }
    }
}

impl RemoteChannel for Scripted {
    fn send_message(&mut self, message: &[u8]) -> Result<(), ChannelFailure> {
        if self.coming.len() >= self.room {
            return Err(ChannelFailure::Unsent(Unsent::NoBuffer));
        }
        let mut message = message.to_vec();
        if let Some(receipt) = &mut self.sink {
            if message.is_empty() {
                self.coming.push_back(receipt.bytes().to_vec());
                *receipt = Receipt::default();
            } else {
                match self.fates.pop_front().unwrap_or(Fate::Echo) {
                    Fate::Lose => {}
                    Fate::Damage => receipt.mismatched += 1,
                    Fate::Twice => (0..2).for_each(|_| receipt.count_block(&message)),
                    _ => receipt.count_block(&message),
                }
            }
            return Ok(());
        }
        let fate = self.fates.pop_front().unwrap_or(Fate::Echo);
        if fate == Fate::Echo {
            self.coming.extend(self.late.drain(..));
        }
        match fate {
            Fate::Lose => return Ok(()),
            Fate::Late => {
                self.late.push(message);
                return Ok(());
            }
            Fate::Overtaken => {
                self.overtaken = Some(message);
                return Ok(());
            }
            Fate::Flood => self.flood = Some(message.clone()),
            Fate::Twice => self.coming.push_back(message.clone()),
            Fate::Garbage => self.coming.push_back(b"what is this".to_vec()),
            Fate::Damage => *message.last_mut().unwrap() ^= 1,
            Fate::Echo => {}
        }
        self.coming.push_back(message);
        self.coming.extend(self.overtaken.take());
        Ok(())
    }

    fn receive_message(&mut self, into: &mut [u8], _: u64) -> Result<usize, ChannelFailure> {
        let message = self.coming.pop_front().or(self.flood.clone()).ok_or(ChannelFailure::Timeout)?;
        into[..message.len()].copy_from_slice(&message);
        Ok(message.len())
    }

    fn limit(&self) -> usize {
        496
    }

    fn end_description(&mut self) -> Option<String> {
        None
    }
}
