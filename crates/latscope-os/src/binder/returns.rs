//! The stream of returns that a thread reads.

use super::abi::*;

/// Object that a process offers to others, identified by two words of its choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BinderNode {
    /// First word, unique among the nodes of a process. The driver takes it for an address and never accesses memory
    /// there.
    pub address: u64,
    /// Comes with each transaction.
    pub cookie: u64,
}

/// A return as it stands in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RawBinderReturn {
    Transaction(Transaction),
    Reply(Transaction),
    Complete,
    DeadReply,
    FailedReply,
    FrozenReply,
    IncRefs(BinderNode),
    Acquire(BinderNode),
    Release(BinderNode),
    DecRefs(BinderNode),
    DeadBinder(u64),
    DeathCleared(u64),
    Error(i32),
    /// The caller has nothing to do: no operation, a plain OK, a proposal to start threads, or a return that is newer
    /// than this program.
    Nothing(u32),
}

/// Takes the first return off the stream; `None` at its end, and where it is
/// cut off.
pub(super) fn take_return(stream: &mut &[u8]) -> Option<RawBinderReturn> {
    let code = u32::from_ne_bytes(stream.get(..4)?.try_into().ok()?);
    let end = 4 + parameter_bytes(code);
    let raw = parse_return(code, stream.get(4..end)?)?;
    *stream = &stream[end..];
    Some(raw)
}

/// Parses the parameters of a return; `given` has the length that is part of the code.
fn parse_return(code: u32, given: &[u8]) -> Option<RawBinderReturn> {
    let word = |at: usize| Some(u64::from_ne_bytes(given.get(at..at + 8)?.try_into().ok()?));
    let node = || Some(BinderNode { address: word(0)?, cookie: word(8)? });
    Some(match code {
        // The security context behind the second form was never asked for.
        BR_TRANSACTION | BR_TRANSACTION_SEC_CTX => {
            RawBinderReturn::Transaction(Transaction::from_bytes(given)?)
        }
        BR_REPLY => RawBinderReturn::Reply(Transaction::from_bytes(given)?),
        // The other two stand in its place, to say more about a one-way transaction.
        BR_TRANSACTION_COMPLETE | BR_ONEWAY_SPAM_SUSPECT | BR_TRANSACTION_PENDING_FROZEN => {
            RawBinderReturn::Complete
        }
        BR_DEAD_REPLY => RawBinderReturn::DeadReply,
        BR_FAILED_REPLY => RawBinderReturn::FailedReply,
        BR_FROZEN_REPLY => RawBinderReturn::FrozenReply,
        BR_INCREFS => RawBinderReturn::IncRefs(node()?),
        BR_ACQUIRE => RawBinderReturn::Acquire(node()?),
        BR_RELEASE => RawBinderReturn::Release(node()?),
        BR_DECREFS => RawBinderReturn::DecRefs(node()?),
        BR_DEAD_BINDER => RawBinderReturn::DeadBinder(word(0)?),
        BR_CLEAR_DEATH_NOTIFICATION_DONE => RawBinderReturn::DeathCleared(word(0)?),
        BR_ERROR => RawBinderReturn::Error(i32::from_ne_bytes(given.get(..4)?.try_into().ok()?)),
        // BR_NOOP and others that ask for nothing.
        _ => RawBinderReturn::Nothing(code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// A stream of returns with their parameters.
    fn stream(returns: &[(u32, &[u8])]) -> Vec<u8> {
        returns.iter().flat_map(|(code, given)| [&code.to_ne_bytes(), *given].concat()).collect()
    }

    fn all(bytes: &[u8]) -> (Vec<RawBinderReturn>, usize) {
        let (mut rest, mut found) = (bytes, Vec::new());
        while let Some(raw) = take_return(&mut rest) {
            found.push(raw);
        }
        (found, rest.len())
    }

    #[test]
    fn an_answer_is_a_completion_and_a_reply() {
        let data = Transaction { data_size: 4, buffer: 0x7f00_0000, ..Transaction::default() };
        let bytes = stream(&[(BR_NOOP, &[]), (BR_TRANSACTION_COMPLETE, &[]), (BR_REPLY, data.as_bytes())]);
        assert_eq!(
            all(&bytes),
            (
                vec![
                    RawBinderReturn::Nothing(BR_NOOP),
                    RawBinderReturn::Complete,
                    RawBinderReturn::Reply(data)
                ],
                0
            )
        );
    }

    #[test]
    fn references_and_deaths_name_what_they_are_about() {
        let words = [7u64.to_ne_bytes(), 9u64.to_ne_bytes()].concat();
        let bytes = stream(&[(BR_INCREFS, &words), (BR_RELEASE, &words), (BR_DEAD_BINDER, &words[8..])]);
        let node = BinderNode { address: 7, cookie: 9 };
        assert_eq!(
            all(&bytes),
            (
                vec![
                    RawBinderReturn::IncRefs(node),
                    RawBinderReturn::Release(node),
                    RawBinderReturn::DeadBinder(9)
                ],
                0
            )
        );
    }

    #[test]
    fn a_transaction_with_a_security_context_is_one() {
        let data = Transaction { cookie: 5, ..Transaction::default() };
        let given = [data.as_bytes(), &[0; 8]].concat();
        assert_eq!(
            all(&stream(&[(BR_TRANSACTION_SEC_CTX, &given)])),
            (vec![RawBinderReturn::Transaction(data)], 0)
        );
    }

    #[test]
    fn what_is_unknown_is_skipped_by_its_size() {
        let unknown = 2 << 30 | 24 << 16 | u32::from(b'r') << 8 | 21;
        let bytes = stream(&[(unknown, &[0xff; 24]), (BR_DEAD_REPLY, &[])]);
        assert_eq!(all(&bytes), (vec![RawBinderReturn::Nothing(unknown), RawBinderReturn::DeadReply], 0));
    }

    #[test]
    fn what_is_cut_off_is_left() {
        let whole = stream(&[(BR_FAILED_REPLY, &[]), (BR_REPLY, Transaction::default().as_bytes())]);
        for end in 0..whole.len() {
            let (found, rest) = all(&whole[..end]);
            assert_eq!((found.len(), rest), if end < 4 { (0, end) } else { (1, end - 4) });
        }
    }

    /// Returns with parameters of any value.
    fn sound() -> impl Strategy<Value = Vec<u8>> {
        let known =
            [BR_REPLY, BR_TRANSACTION, BR_NOOP, BR_ACQUIRE, BR_DEAD_BINDER, BR_ERROR, BR_FROZEN_REPLY];
        let one = (0..known.len()).prop_flat_map(move |index| {
            let code = known[index];
            vec(any::<u8>(), parameter_bytes(code)).prop_map(move |given| stream(&[(code, &given)]))
        });
        vec(one, 0..8).prop_map(|returns| returns.concat())
    }

    proptest! {
        #[test]
        fn sound_streams_are_read_to_their_end(bytes in sound()) {
            prop_assert_eq!(all(&bytes).1, 0);
        }

        #[test]
        fn damaged_streams_are_survived(
            bytes in sound(),
            damage in vec((any::<Index>(), any::<u8>()), 0..8),
            end in any::<Index>(),
        ) {
            let mut bytes = bytes;
            for (at, byte) in damage {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            bytes.truncate(end.index(bytes.len() + 1));
            let (found, rest) = all(&bytes);
            prop_assert!(found.len() * 4 + rest <= bytes.len());
        }

        #[test]
        fn noise_is_survived(bytes in vec(any::<u8>(), 0..600)) {
            let (found, rest) = all(&bytes);
            prop_assert!(found.len() * 4 + rest <= bytes.len());
        }
    }
}
