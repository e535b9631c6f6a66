//! The kernel's log, as `/dev/kmsg` has it (Documentation/ABI/testing/dev-kmsg).

use super::root::SystemRoot;
use memchr::{memmem, memrchr};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Messages of the kernel since boot that the log still has, in the form of `/dev/kmsg`.
#[derive(Debug)]
pub(crate) struct KernelLog(Vec<u8>);

/// Message in the log.
#[derive(Debug)]
pub(crate) struct KernelLogMessage<'a> {
    /// Time since boot, µs.
    pub at: u64,
    pub text: &'a str,
}

/// Size of a buffer for a record, in bytes, larger than any; the kernel gives one record with each read.
const RECORD: usize = 16 << 10;
/// Upper bound of the size of the log, in bytes (CONFIG_LOG_BUF_SHIFT is at most 25).
const LARGEST: usize = 64 << 20;

impl KernelLog {
    /// Reads the log; `None` if it is missing or this user may not read it.
    pub fn read_kmsg(root: &SystemRoot) -> Option<KernelLog> {
        // A read at the end of the log would wait for the next message.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(root.path("/dev/kmsg")).ok()?;
        let (mut bytes, mut record) = (Vec::new(), vec![0; RECORD]);
        while bytes.len() < LARGEST {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&record[..length]),
                // A record was overwritten before it was read.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
        }
        Some(KernelLog(bytes))
    }

    /// The first message of the kernel with a text in it.
    pub fn find_message(&self, text: &str) -> Option<KernelLogMessage<'_>> {
        memmem::find_iter(&self.0, text).find_map(|at| {
            let begin = memrchr(b'\n', &self.0[..at]).map_or(0, |end| end + 1);
            let line = self.0[begin..].split(|byte| *byte == b'\n').next()?;
            parse_record(str::from_utf8(line).ok()?).filter(|message| message.text.contains(text))
        })
    }

    /// Text after `text` in the first message that has it.
    pub fn text_after(&self, text: &str) -> Option<&str> {
        self.find_message(text)?.text.split_once(text).map(|(_, rest)| rest.trim())
    }

    /// Returns true if the log still begins with the boot.
    pub fn is_whole(&self) -> bool {
        self.find_message("Linux version ").is_some()
    }
}

/// Parses a record `priority,sequence,µs,flags;text`; lines that begin with a space are its properties. Any process of
/// root can write messages, too, but not with the kernel's facility, 0.
fn parse_record(line: &str) -> Option<KernelLogMessage<'_>> {
    let (head, text) = line.split_once(';')?;
    let mut fields = head.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let at = fields.nth(1)?.parse().ok()?;
    (priority < 8).then_some(KernelLogMessage { at, text })
}

#[cfg(test)]
mod tests {
    use super::super::root::tree;
    use super::*;

    #[test]
    fn messages_of_the_kernel_are_read_with_their_times() {
        let text = "5,0,0,-;Linux version 6.18\n SUBSYSTEM=cpu\n6,1,242328,-;Dynamic Preempt: none\n12,2,9,-;Dynamic Preempt: full\n,,\n6,x\n";
        let (_directory, root) = tree(&[("/dev/kmsg", text)]);
        let log = KernelLog::read_kmsg(&root).unwrap();
        assert!(log.is_whole());
        assert_eq!(log.text_after("Dynamic Preempt: "), Some("none"));
        assert_eq!(log.find_message("Dynamic").unwrap().at, 242_328);
        assert!(log.find_message("full").is_none(), "it is no message of the kernel");
        assert!(log.find_message("SUBSYSTEM").is_none(), "it is a property");
        assert!(KernelLog::read_kmsg(&tree(&[]).1).is_none());
    }
}
