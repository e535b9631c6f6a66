//! Messages sent through a terminal and their replies, told apart by content: which reply came, and which came again.

use std::collections::VecDeque;

/// Answered messages that are remembered: more than are ever on their way together.
const REMEMBERED: usize = 16;

/// Bytes of a reply that other bytes do not equal by chance.
const CERTAIN: usize = 8;

/// Messages on their way, and the last ones that were answered, each with the newline of its line.
#[derive(Debug, Default)]
pub(super) struct Replies {
    owed: VecDeque<Vec<u8>>,
    answered: VecDeque<Vec<u8>>,
    /// Length of the last message, bytes.
    last: usize,
}

/// Reading of the beginning of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TtyReplyMatch {
    /// Length in bytes of a whole reply as it was sent, and its place among the messages on their way.
    Reply(usize, usize),
    /// Length in bytes of a reply that has come before.
    Again(usize),
    /// Part of a reply that has come before: more bytes are needed.
    Incomplete,
    /// None of these.
    Other,
}

impl Replies {
    /// Notes a message that was sent, in the bytes that were written.
    pub(super) fn record_sent(&mut self, written: &[u8]) {
        let spare = if self.answered.len() < REMEMBERED { None } else { self.answered.pop_front() };
        let mut message = spare.unwrap_or_default();
        message.clear();
        message.extend_from_slice(written);
        self.owed.push_back(message);
        self.last = written.len();
    }

    /// Returns true if no message waits for its reply.
    pub(super) fn is_idle(&self) -> bool {
        self.owed.is_empty()
    }

    /// Length of the next reply, bytes, if it is as long as what was sent.
    pub(super) fn expected(&self) -> usize {
        self.owed.front().map_or(self.last, Vec::len).max(1)
    }

    /// Reads the beginning of the input.
    pub(super) fn match_input(&self, input: &[u8]) -> TtyReplyMatch {
        let begins = |message: &Vec<u8>| !message.is_empty() && input.starts_with(message);
        if let Some(place) = self.owed.iter().position(begins) {
            return TtyReplyMatch::Reply(self.owed[place].len(), place);
        }
        if let Some(message) = self.answered.iter().find(|message| begins(message)) {
            return TtyReplyMatch::Again(message.len());
        }
        let is_part = !input.is_empty() && self.answered.iter().any(|message| message.starts_with(input));
        if is_part { TtyReplyMatch::Incomplete } else { TtyReplyMatch::Other }
    }

    /// Returns the number of bytes in front of the next reply, where that begins further on. A part of a reply counts
    /// if it cannot be there by chance.
    pub(super) fn bytes_before_reply(&self, input: &[u8]) -> Option<usize> {
        let owed = self.owed.front()?;
        let least = owed.len().min(CERTAIN);
        let begins = |at: &usize| {
            let rest = &input[*at..];
            rest.len() >= least && (rest.starts_with(owed) || owed.starts_with(rest))
        };
        (0..input.len()).find(begins).filter(|at| *at > 0)
    }

    /// Notes that the message at a place was answered.
    pub(super) fn mark_answered(&mut self, place: usize) {
        self.answered.extend(self.owed.remove(place));
        if self.answered.len() > REMEMBERED {
            self.answered.pop_front();
        }
    }

    /// Notes that a reply came which is none of those awaited: the next message has no other.
    pub(super) fn spoil(&mut self) {
        self.owed.pop_front();
    }

    /// Forgets the messages on their way.
    pub(super) fn give_up(&mut self) {
        self.owed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_from_copies_and_from_all_else() {
        let mut replies = Replies::default();
        assert_eq!(replies.match_input(b"noise"), TtyReplyMatch::Other);
        for message in [b"first.", b"second", b"third."] {
            replies.record_sent(message);
        }
        assert_eq!(replies.match_input(b"first.second"), TtyReplyMatch::Reply(6, 0));
        assert_eq!(replies.match_input(b"second"), TtyReplyMatch::Reply(6, 1), "it overtook the first");
        replies.mark_answered(0);
        assert_eq!(replies.match_input(b"first.sec"), TtyReplyMatch::Again(6));
        assert_eq!(replies.match_input(b"fir"), TtyReplyMatch::Incomplete);
        assert_eq!(replies.match_input(b"firm"), TtyReplyMatch::Other);
        assert_eq!(replies.match_input(b""), TtyReplyMatch::Other);
        assert_eq!((replies.match_input(b"third."), replies.expected()), (TtyReplyMatch::Reply(6, 1), 6));
        replies.give_up();
        assert!(replies.is_idle() && replies.match_input(b"second") == TtyReplyMatch::Other);
        // A message that is sent again is awaited again.
        replies.record_sent(b"first.");
        assert_eq!(replies.match_input(b"first."), TtyReplyMatch::Reply(6, 0));
    }

    #[test]
    fn a_reply_behind_foreign_bytes_is_found() {
        let mut replies = Replies::default();
        assert_eq!(replies.bytes_before_reply(b"noise"), None);
        replies.record_sent(b"a message of ours");
        assert_eq!(replies.bytes_before_reply(b"login: a message of ours"), Some(7));
        assert_eq!(replies.bytes_before_reply(b"login: a messag"), Some(7), "the rest is on its way");
        assert_eq!(replies.bytes_before_reply(b"login: a"), None, "a single letter may be anything");
        assert_eq!(replies.bytes_before_reply(b"a massage of ours"), None);
        replies.give_up();
        replies.record_sent(b"ab");
        assert_eq!((replies.bytes_before_reply(b"xab"), replies.bytes_before_reply(b"xa")), (Some(1), None));
        replies.give_up();
        replies.record_sent(&[7; 20]);
        assert_eq!(replies.bytes_before_reply(&[7; 19]), None, "a part of it, and nothing in front");
    }

    #[test]
    fn a_bounded_number_of_answered_messages_is_remembered() {
        let mut replies = Replies::default();
        for number in 0..100u8 {
            replies.record_sent(&[number, 7]);
            replies.mark_answered(0);
        }
        assert_eq!(replies.answered.len(), REMEMBERED);
        assert_eq!(
            (replies.match_input(&[99, 7]), replies.match_input(&[3, 7])),
            (TtyReplyMatch::Again(2), TtyReplyMatch::Other)
        );
    }
}
