//! Real pseudo terminals, with a substitute for the remote at their other end.

use super::*;
use latscope_core::plan::Params;
use latscope_process::pseudo_terminal::PseudoTerminal;
use std::thread;

const SECOND: u64 = 1_000_000_000;

fn soon() -> u64 {
    monotonic_ns() + 20 * SECOND
}

fn a_moment() -> u64 {
    monotonic_ns() + SECOND / 5
}

fn channel(terminal: &PseudoTerminal, framing: Framing) -> Tty {
    opened_with(&terminal.path, framing, &|_| Ok(())).unwrap()
}

fn open_tty(path: &Path, journal: &dyn Fn(&Leftover) -> Result<()>) -> Result<Tty> {
    opened_with(path, Framing::Lengths, journal)
}

fn opened_with(path: &Path, framing: Framing, journal: &dyn Fn(&Leftover) -> Result<()>) -> Result<Tty> {
    let (params, notice) = (Params::new(), |_: &str| ());
    let (service, patience, notice) = (RpmsgService::Ping, Duration::MAX, &notice);
    let order = ChannelRequest { params: &params, service, cpus: &[], journal, patience, notice };
    Tty::open(path, framing, &order)
}

/// Waits until the master can be read, and returns the bytes.
fn heard(terminal: &PseudoTerminal) -> Vec<u8> {
    let mut bytes = vec![0; ROOM];
    poll(&mut [PollFd::new(&terminal.master, PollFlags::IN)], None).unwrap();
    let length = read(&terminal.master, &mut bytes[..]).unwrap();
    bytes.truncate(length);
    bytes
}

fn say(terminal: &PseudoTerminal, bytes: &[u8]) {
    assert_eq!(write(&terminal.master, bytes).unwrap(), bytes.len());
}

/// Sends all received bytes back, until its channel ends and `bytes` bytes have been received.
fn echo(terminal: &PseudoTerminal, bytes: usize) {
    let mut left = bytes;
    while left > 0 {
        let heard = heard(terminal);
        let mut rest = &heard[..];
        while !rest.is_empty() {
            match write(&terminal.master, rest) {
                Ok(length) => rest = &rest[length..],
                Err(Errno::AGAIN) => {
                    poll(&mut [PollFd::new(&terminal.master, PollFlags::OUT)], None).unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        left = left.saturating_sub(heard.len());
    }
}

#[test]
fn every_byte_goes_through_unharmed() {
    let terminal = PseudoTerminal::open().unwrap();
    // As a terminal is by default.
    Modes::of_terminal(&terminal.slave).unwrap().cooked_without_echo().apply_to(&terminal.slave).unwrap();
    let mut channel = channel(&terminal, Framing::Lengths);
    let all: Vec<u8> = (0..=255).collect();
    let commands = b"\x03\x04\x11\x13\x1a\x1c\x7f\x15\x17\r\n\xff\xff\0";
    let messages: [&[u8]; 4] = [&all, commands, b"\r", &[0x13; 300]];
    let bytes = messages.iter().map(|message| message.len()).sum();
    thread::scope(|scope| {
        scope.spawn(|| echo(&terminal, bytes));
        let mut into = [0; LIMIT];
        for message in messages {
            channel.send_message(message).unwrap();
            let length = channel.receive_message(&mut into, soon()).unwrap();
            assert_eq!(&into[..length], message);
        }
        assert!(
            matches!(channel.receive_message(&mut into, 0), Err(ChannelFailure::Timeout)),
            "one look, and no more"
        );
    });
    assert_eq!((channel.faults(), channel.end_description()), (0, None));
}

#[test]
fn modes_are_raw_while_it_is_used_and_restored_after() {
    let terminal = PseudoTerminal::open().unwrap();
    let before = Modes::of_terminal(&terminal.slave).unwrap().cooked_without_echo();
    before.apply_to(&terminal.slave).unwrap();
    let journalled = std::cell::RefCell::new(Vec::new());
    let journal = |leftover: &Leftover| -> Result<()> {
        assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), before, "journalled before it is made");
        journalled.borrow_mut().push(leftover.clone());
        Ok(())
    };
    let channel = open_tty(&terminal.path, &journal).unwrap();
    assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), before.raw());
    drop(channel);
    assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), before);
    let expected = Leftover::Modes(terminal.path.clone(), before, before.raw());
    assert_eq!(*journalled.borrow(), [expected]);
    // Without a guardian nothing is changed.
    let refused = open_tty(&terminal.path, &|_| anyhow::bail!("no guardian"));
    assert_eq!(refused.unwrap_err().to_string(), "no guardian");
    assert_eq!(Modes::of_terminal(&terminal.slave).unwrap(), before);
}

#[test]
fn a_reply_may_come_in_pieces_and_several_at_once() {
    let terminal = PseudoTerminal::open().unwrap();
    let mut channel = channel(&terminal, Framing::Lengths);
    let mut into = [0; LIMIT];
    channel.send_message(b"one").unwrap();
    channel.send_message(b"three").unwrap();
    say(&terminal, b"on");
    assert!(matches!(channel.receive_message(&mut into, a_moment()), Err(ChannelFailure::Timeout)));
    say(&terminal, b"ethree");
    for expected in [&b"one"[..], b"three"] {
        let length = channel.receive_message(&mut into, soon()).unwrap();
        assert_eq!(&into[..length], expected);
    }
}

#[test]
fn what_is_late_or_unasked_does_not_answer_what_follows() {
    let terminal = PseudoTerminal::open().unwrap();
    let mut channel = channel(&terminal, Framing::Lengths);
    let mut into = [0; LIMIT];
    channel.send_message(b"lost").unwrap();
    assert!(matches!(channel.receive_message(&mut into, a_moment()), Err(ChannelFailure::Timeout)));
    say(&terminal, b"lo");
    channel.give_up().unwrap();
    assert_eq!(heard(&terminal), b"lost");
    channel.send_message(b"next").unwrap();
    say(&terminal, b"nextstray");
    assert_eq!(channel.receive_message(&mut into, soon()).unwrap(), 4);
    assert_eq!(&into[..4], b"next");
    // It came with the reply, and is not taken for the next.
    channel.send_message(b"more").unwrap();
    say(&terminal, b"more");
    assert_eq!(channel.receive_message(&mut into, soon()).unwrap(), 4);
    assert_eq!((&into[..4], channel.faults()), (&b"more"[..], 1));
}

/// Foreign bytes in front of replies, also in pieces: each reply is found, and the next one.
#[test]
fn replies_behind_foreign_bytes_are_found() {
    let terminal = PseudoTerminal::open().unwrap();
    let mut channel = channel(&terminal, Framing::Lengths);
    let mut into = [0; LIMIT];
    for number in 0..5u8 {
        let message = [number; 48];
        channel.send_message(&message).unwrap();
        heard(&terminal);
        say(&terminal, b"login: ");
        say(&terminal, &message[..30]);
        // It is taken for no reply before its rest is there.
        assert!(matches!(channel.receive_message(&mut into, 0), Err(ChannelFailure::Timeout)));
        say(&terminal, &message[30..]);
        assert_eq!(channel.receive_message(&mut into, soon()).unwrap(), 48);
        assert_eq!(into[..48], message);
    }
    assert_eq!((channel.foreign(), channel.faults()), (35, 0));
}

/// Replies that come twice, the second time whole, in pieces, and beside the next reply: none is a fault, and none
/// answers another message.
#[test]
fn replies_that_come_again_are_counted_as_such() {
    let all_three = |framing: Framing, end: &str| {
        let terminal = PseudoTerminal::open().unwrap();
        let mut channel = channel(&terminal, framing);
        let mut into = [0; LIMIT];
        let rounds = [
            ("first", format!("first{end}first{end}")),
            ("second", format!("second{end}sec")),
            ("third", format!("ond{end}third{end}")),
            ("fourth", format!("third{end}fourth{end}")),
        ];
        for (message, said) in rounds {
            channel.send_message(message.as_bytes()).unwrap();
            heard(&terminal);
            say(&terminal, said.as_bytes());
            let length = channel.receive_message(&mut into, soon()).unwrap();
            assert_eq!(String::from_utf8_lossy(&into[..length]), message, "{framing:?}");
        }
        assert_eq!((channel.duplicates(), channel.faults()), (3, 0), "{framing:?}");
    };
    all_three(Framing::Lengths, "");
    all_three(Framing::Lines, "\n");
}

#[test]
fn both_sides_full_is_no_deadlock_and_costs_no_byte() {
    let terminal = PseudoTerminal::open().unwrap();
    let mut channel = channel(&terminal, Framing::Lengths);
    let block = |number: u32| [&number.to_le_bytes()[..], &[0x13; 1020]].concat();
    let mut sent = 0;
    // There is no reader: it fills, and does not wait. Parts of the last block are in it.
    while channel.send_message(&block(sent)).is_ok() {
        sent += 1;
        assert!(sent < 10_000, "a terminal has an end");
    }
    assert!(matches!(channel.send_message(&block(sent)), Err(ChannelFailure::Unsent(Unsent::NoBuffer))));
    assert!(sent >= 4, "{sent}");
    let bytes = sent as usize * 1024;
    thread::scope(|scope| {
        scope.spawn(|| echo(&terminal, bytes));
        let mut into = [0; LIMIT];
        for number in 0..sent {
            let length = channel.receive_message(&mut into, soon()).unwrap();
            assert_eq!(&into[..length], block(number), "{number}");
        }
    });
    assert_eq!(channel.faults(), 0);
    assert!(matches!(channel.send_message(&[0; LIMIT + 1]), Err(ChannelFailure::Unsent(Unsent::TooLong))));
}

#[test]
fn an_end_that_closes_is_reported() {
    let terminal = PseudoTerminal::open().unwrap();
    let path = terminal.path.display().to_string();
    let mut channel = channel(&terminal, Framing::Lengths);
    channel.send_message(b"ping").unwrap();
    drop(terminal);
    let mut into = [0; LIMIT];
    let failure = channel.receive_message(&mut into, soon()).unwrap_err();
    assert!(matches!(&failure, ChannelFailure::Gone(how) if how.starts_with(&path)), "{failure}");
    assert!(channel.end_description().unwrap().contains("other end"));
    assert!(matches!(channel.send_message(b"ping"), Err(ChannelFailure::Gone(_))));
}

#[test]
fn lines_lose_what_the_terminal_takes_for_commands() {
    let through = |message: &[u8]| {
        let terminal = PseudoTerminal::open().unwrap();
        let mut channel = channel(&terminal, Framing::Lines);
        channel.send_message(message).unwrap();
        // What is typed comes with a carriage return.
        let typed = heard(&terminal);
        let kept = write(&terminal.master, &typed).unwrap();
        assert_eq!(kept, typed.len());
        let mut into = [0; LIMIT];
        channel.receive_message(&mut into, a_moment()).ok().map(|length| into[..length].to_vec())
    };
    assert_eq!(through(b"Hello,world").as_deref(), Some(&b"Hello,world"[..]));
    assert_eq!(through(b"a\x03b").as_deref(), Some(&b"b"[..]), "a signal empties the line");
    assert_eq!(through(b"a\x04b"), Some(b"ab".to_vec()), "the end of a file is not in it");
    assert_eq!(through(b"ab\x7fc"), Some(b"ac".to_vec()), "erased");
    assert_eq!(through(b"a\x11b"), Some(b"ab".to_vec()), "the start of output");
    assert_eq!(through(b"a\rb"), Some(b"a".to_vec()), "a line of its own");
    assert_eq!(through(b"Hello\xff").as_deref(), Some(&b"Hello\xff"[..]));
}

#[test]
fn a_line_has_an_end_and_the_rest_of_a_longer_one_is_lost() {
    let terminal = PseudoTerminal::open().unwrap();
    let mut channel = channel(&terminal, Framing::Lines);
    let mut into = [0; LIMIT];
    let long = [[b'a'; LIMIT].as_slice(), b"\n"].concat();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rest = &long[..];
            while !rest.is_empty() {
                poll(&mut [PollFd::new(&terminal.master, PollFlags::OUT)], None).unwrap();
                rest = &rest[no_wait(write(&terminal.master, rest))..];
            }
        });
        let length = channel.receive_message(&mut into, soon()).unwrap();
        assert_eq!(
            (length, &into[..length]),
            (4095, &[b'a'; 4095][..]),
            "one of 4096 is lost without a word"
        );
    });
}

fn no_wait(done: rustix::io::Result<usize>) -> usize {
    if done == Err(Errno::AGAIN) { 0 } else { done.unwrap() }
}

#[test]
fn a_line_that_stops_the_output_ends_the_row() {
    let terminal = PseudoTerminal::open().unwrap();
    let mut channel = channel(&terminal, Framing::Lines);
    channel.send_message(b"a\x13b").unwrap();
    let typed = heard(&terminal);
    say(&terminal, &typed);
    let mut into = [0; LIMIT];
    assert_eq!(channel.receive_message(&mut into, soon()).unwrap(), 2);
    let mut sent = 0;
    let failure = loop {
        match channel.send_message(b"next") {
            Ok(()) => sent += 1,
            Err(failure) => break failure,
        }
        assert!(sent < 10_000);
    };
    assert!(matches!(&failure, ChannelFailure::Gone(how) if how.contains("0x13")), "{failure}");
}

#[test]
fn what_is_no_terminal_is_refused_in_a_line() {
    let open = |path: &str| {
        let error = open_tty(Path::new(path), &|_| Ok(())).unwrap_err();
        format!("{error:#}")
    };
    assert!(open("/dev/null").contains("/dev/null is not a terminal"));
    assert!(open("/nowhere/at/all").starts_with("/nowhere/at/all: "));
    let directory = tempfile::tempdir().unwrap();
    assert!(open(directory.path().to_str().unwrap()).contains(directory.path().to_str().unwrap()));
}

#[test]
fn masters_of_pseudo_terminals_are_refused() {
    let error = open_tty(Path::new("/dev/ptmx"), &|_| Ok(())).unwrap_err();
    assert!(error.to_string().starts_with("/dev/ptmx is the master of a pseudo terminal"), "{error}");
}

/// Sets a minimum below which a terminal gives nothing to read, as another program could.
fn set_minimum(terminal: &PseudoTerminal, least: u8) {
    let mut modes = rustix::termios::tcgetattr(&terminal.slave).unwrap();
    modes.special_codes[rustix::termios::SpecialCodeIndex::VMIN] = least;
    rustix::termios::tcsetattr(&terminal.slave, rustix::termios::OptionalActions::Now, &modes).unwrap();
}

#[test]
fn no_wait_depends_on_the_minimum_that_another_program_set() {
    let terminal = PseudoTerminal::open().unwrap();
    let path = terminal.path.clone();
    let (done, ended) = std::sync::mpsc::channel();
    let (opened, ready) = std::sync::mpsc::channel();
    let (go, told) = std::sync::mpsc::channel::<()>();
    thread::spawn(move || {
        let mut channel = open_tty(&path, &|_| Ok(())).unwrap();
        channel.send_message(b"ping").unwrap();
        opened.send(()).unwrap();
        told.recv().unwrap();
        let mut into = [0; LIMIT];
        let silent = channel.receive_message(&mut into, a_moment());
        assert!(matches!(silent, Err(ChannelFailure::Timeout)));
        let length = channel.receive_message(&mut into, soon()).unwrap();
        done.send((into[..length].to_vec(), channel.interference(false))).unwrap();
    });
    ready.recv().unwrap();
    set_minimum(&terminal, 200);
    go.send(()).unwrap();
    thread::sleep(Duration::from_millis(300));
    say(&terminal, b"ping");
    let (reply, interference) = ended.recv_timeout(Duration::from_secs(30)).expect("it hangs");
    assert_eq!(reply, b"ping");
    assert!(interference.unwrap().starts_with("another program changed the modes of "));
}

#[test]
fn a_terminal_is_in_exclusive_use_while_it_is_open() {
    let terminal = PseudoTerminal::open().unwrap();
    let channel = channel(&terminal, Framing::Lengths);
    assert!(latscope_os::terminal::is_exclusive(&terminal.slave));
    assert_eq!(channel.interference(true), None, "this process has it open a second time");
    drop(channel);
    assert!(!latscope_os::terminal::is_exclusive(&terminal.slave));
}
