//! Changes that the other side makes to the bytes of a terminal: the beginning of both directions, compared.

/// Bytes that are kept of each direction.
const KEPT: usize = 4096;

/// Bytes by which the beginning of a translation is found.
const HEAD: usize = 8;

/// Bytes that came before the first reply, at most.
const BEFORE: usize = 512;

/// The first bytes of both directions.
#[derive(Debug, Default)]
pub(super) struct Witness {
    sent: Vec<u8>,
    received: Vec<u8>,
    /// Bytes of the first message.
    first: usize,
}

/// Something that a terminal does to bytes.
struct Translation {
    what: &'static str,
    apply: fn(u8, &mut Vec<u8>),
}

static TRANSLATIONS: &[Translation] = &[
    Translation {
        what: "LF comes back as CR LF (onlcr)",
        apply: |byte, to| push_translated(byte, to, b'\n', b"\r\n"),
    },
    Translation {
        what: "CR comes back as LF (icrnl)",
        apply: |byte, to| push_translated(byte, to, b'\r', b"\n"),
    },
    Translation {
        what: "CR comes back as CR LF",
        apply: |byte, to| push_translated(byte, to, b'\r', b"\r\n"),
    },
    Translation {
        what: "CR and LF come back as CR LF (icrnl, onlcr)",
        apply: |byte, to| push_translated(if byte == b'\r' { b'\n' } else { byte }, to, b'\n', b"\r\n"),
    },
    Translation {
        what: "LF comes back as CR (inlcr)",
        apply: |byte, to| push_translated(byte, to, b'\n', b"\r"),
    },
    Translation {
        what: "CR does not come back (igncr)",
        apply: |byte, to| push_translated(byte, to, b'\r', b""),
    },
    Translation {
        what: "the highest bit of bytes is cleared (istrip)",
        apply: |byte, to| to.push(byte & 0x7f),
    },
    Translation {
        what: "control characters come back in caret notation (echoctl)",
        apply: |byte, to| match byte {
            b'\t' | b'\n' => to.push(byte),
            0..0x20 | 0x7f => to.extend([b'^', byte ^ 0x40]),
            _ => to.push(byte),
        },
    },
];

fn push_translated(byte: u8, to: &mut Vec<u8>, from: u8, into: &[u8]) {
    if byte == from { to.extend(into) } else { to.push(byte) }
}

impl Witness {
    pub(super) fn record_sent(&mut self, bytes: &[u8]) {
        if self.sent.is_empty() {
            self.first = bytes.len();
        }
        append_bounded(&mut self.sent, bytes);
    }

    pub(super) fn record_received(&mut self, bytes: &[u8]) {
        // What came before anything was sent is no reply.
        if !self.sent.is_empty() {
            append_bounded(&mut self.received, bytes);
        }
    }

    /// Returns a description of the changes that the other side makes to bytes, as far as the beginning shows them.
    pub(super) fn describe_changes(&self) -> Option<String> {
        let translated = self.translation().map(str::to_owned);
        let doubled =
            self.doubled().then(|| "each message comes back twice: it is echoed, and answered".to_owned());
        let found: Vec<String> = translated.into_iter().chain(doubled).collect();
        (!found.is_empty()).then(|| format!("the other side's terminal is not raw: {}", found.join("; ")))
    }

    /// The translation after which the two directions are alike for longer than as they are.
    fn translation(&self) -> Option<&'static str> {
        let plain = common_length(&self.sent, &self.received);
        let mut best = (plain, None);
        for Translation { what, apply } in TRANSLATIONS {
            let mut translated = Vec::new();
            for byte in &self.sent {
                apply(*byte, &mut translated);
            }
            let length = common_length(&translated, &self.received);
            if length > best.0 && length >= self.first.min(self.sent.len()) {
                best = (length, Some(*what));
            }
        }
        best.1
    }

    /// Returns true if the first message came a second time before as many bytes came as two messages have.
    fn doubled(&self) -> bool {
        let message = &self.sent[..self.first.min(self.sent.len())];
        let again =
            |received: &[u8]| received.windows(message.len()).filter(|found| *found == message).count() > 1;
        message.len() >= HEAD && again(&self.received)
    }
}

/// Returns how many bytes of `message` stand together in `received`, near its beginning.
fn common_length(message: &[u8], received: &[u8]) -> usize {
    let Some(head) = message.get(..HEAD) else { return 0 };
    let at = received.windows(HEAD).take(BEFORE).position(|found| found == head);
    at.map_or(0, |at| message.iter().zip(&received[at..]).take_while(|(a, b)| a == b).count())
}

fn append_bounded(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT.saturating_sub(kept.len());
    kept.extend(&bytes[..bytes.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_rpmsg::messages::block;

    fn blocks() -> Vec<u8> {
        (5_000..5_003).fold(Vec::new(), |mut all, number| {
            let mut block = vec![0; 1024];
            block::write_block(number, &mut block);
            all.extend(block);
            all
        })
    }

    fn verdict(first: usize, sent: &[u8], received: &[u8]) -> Option<String> {
        let mut witness = Witness::default();
        witness.record_received(b"before anything was sent");
        sent.chunks(first).for_each(|message| witness.record_sent(message));
        witness.record_received(received);
        witness.describe_changes()
    }

    #[test]
    fn each_translation_is_told_from_the_others() {
        let (blocks, text) = (blocks(), b"Hello,00000\rHello,00001\r");
        assert_eq!((verdict(1024, &blocks, &blocks), verdict(12, text, text)), (None, None));
        for Translation { what, apply } in TRANSLATIONS {
            let mut translated = b"login: ".to_vec();
            blocks.iter().for_each(|byte| apply(*byte, &mut translated));
            let found = verdict(1024, &blocks, &translated).unwrap_or_default();
            assert!(found.ends_with(what), "{what}: {found}");
        }
        let found = verdict(12, text, b"Hello,00000\r\nHello,00001\r\n").unwrap();
        assert!(found.ends_with("CR comes back as CR LF"), "{found}");
    }

    #[test]
    fn messages_that_come_twice_are_seen() {
        let blocks = blocks();
        let doubled: Vec<u8> = blocks.chunks(1024).flat_map(|block| [block, block].concat()).collect();
        assert!(verdict(1024, &blocks, &doubled).unwrap().contains("comes back twice"));
    }

    #[test]
    fn nothing_is_said_of_what_is_damaged_otherwise() {
        let blocks = blocks();
        let mut damaged = blocks.clone();
        damaged[700] ^= 1;
        damaged.splice(1500..1500, *b"foreign");
        assert_eq!(verdict(1024, &blocks, &damaged), None);
        assert_eq!(verdict(1024, &blocks, b""), None);
        assert_eq!(verdict(4, b"abc\r", b"abc\r\n"), None, "too short to tell");
    }
}
