//! Real pseudo terminals: pings over them, terminals that lead to a remote, and the programs of MCS.

use crate::process::{Mark, send, signal};
use crate::support::{
    Place, Ran, end, eventually, has_reason, json, latscope, measurements, of_probe, program, run, start,
    wait,
};
use crate::terminal::Terminal;
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, ptsname, unlockpt};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};

/// Pseudo terminal of the test, as a shell would have it.
struct Pty {
    master: OwnedFd,
    slave: OwnedFd,
    path: String,
}

impl Pty {
    fn new() -> Pty {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("pseudo terminals are there");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let slave = ioctl_tiocgptpeer(&master, flags).expect("it has another end");
        let path = ptsname(&master, []).expect("it has a name").into_string().expect("in ASCII");
        Pty { master, slave, path }
    }
}

/// Text with all modes that change how a terminal treats bytes.
fn modes(terminal: &OwnedFd) -> String {
    let modes = termios::tcgetattr(terminal).expect("it is a terminal");
    let code = |index| modes.special_codes[index];
    let codes = [code(SpecialCodeIndex::VMIN), code(SpecialCodeIndex::VTIME)];
    let (input, output) = (modes.input_modes, modes.output_modes);
    format!("{input:?} {output:?} {:?} {:?} {codes:?}", modes.control_modes, modes.local_modes)
}

fn is_raw(terminal: &OwnedFd) -> bool {
    let modes = termios::tcgetattr(terminal).expect("it is a terminal");
    let mut raw = modes.clone();
    raw.make_raw();
    let local = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN;
    modes.input_modes == raw.input_modes
        && modes.output_modes == raw.output_modes
        && !modes.local_modes.intersects(local)
}

/// Terminal that leads to a remote, in a process that prints its path.
struct Served {
    child: Child,
    path: String,
    mark: Mark,
}

impl Served {
    fn start(words: &[&str]) -> Served {
        let mut command = latscope(["remote", "serve", "--pty"].iter().chain(words));
        let (served, line) = Served::with(&mut command, |line| line.starts_with("/dev/"));
        Served { path: line, ..served }
    }

    /// Starts a command, and waits for a line of its output.
    fn with(command: &mut Command, is_it: impl Fn(&str) -> bool) -> (Served, String) {
        let mark = Mark::on(command);
        let mut child = start(command);
        let mut lines = BufReader::new(child.stdout.as_mut().expect("it is piped")).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| is_it(line))).expect("it says where it is");
        (Served { child, path: String::new(), mark }, line)
    }

    fn end(self) -> Ran {
        signal(&self.child, Signal::INT);
        let ran = wait(self.child);
        self.mark.wait_for_none();
        ran
    }
}

fn ping(path: &str, words: &str, result: &str) -> Command {
    let fixed = ["remote", "ping", "--transport", "tty", "--path", path, "--json", result, "--quiet"];
    latscope(fixed.into_iter().chain(words.split_whitespace()))
}

#[test]
fn who_holds_the_other_side_of_the_terminal_is_the_peer() {
    let place = Place::new();
    let result = place.at("result.json");
    let served = Served::start(&["--echo"]);
    let pid = u64::from(served.child.id());
    end(&mut ping(&served.path, "--duration 1s", &result)).done();
    let account = &json(&result)["activity"];
    assert!(account["peer"].as_f64() > Some(0.0), "{account:#}");
    let others = account["top"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(others.iter().all(|one| one["pid"].as_u64() != Some(pid)), "{account:#}");
    served.end().done();
}

#[test]
fn pings_over_a_terminal_that_leads_to_a_remote_come_back_whole() {
    let place = Place::new();
    let result = place.at("result.json");
    for words in [&[][..], &["--transport", "shm", "--wait", "spin"], &["--echo"]] {
        let served = Served::start(words);
        let words = [
            "remote", "ping", "long-ping", "--mode", "pipelined", "--transport", "tty", "--path",
            &served.path, "--count", "300",
        ];
        end(&mut latscope(words.into_iter().chain(["--json", &result]))).done();
        let found = json(&result);
        assert_eq!(measurements(&found).len(), 2);
        for m in measurements(&found) {
            assert_eq!(
                (m["summary"]["count"].as_u64(), m["params"]["wait"].as_str()),
                (Some(300), Some("poll"))
            );
            for name in ["losses", "mismatches", "duplicates", "reorderings", "faults"] {
                assert_eq!(m["values"][name]["value"].as_f64(), Some(0.0), "{name}: {m:#}");
            }
        }
        let told = served.end();
        // 400 of 48 bytes; 400 of 4096 in nine packets with a word each.
        let bytes = 400 * 48 + 400 * (4096 + 9 * 8);
        assert_eq!(told.code, Some(0), "{told:#?}");
        assert!(told.err.replace(',', "").contains(&format!("{bytes} bytes")), "{told:#?}");
    }
}

#[test]
fn bandwidth_is_of_what_comes_back() {
    let place = Place::new();
    let result = place.at("result.json");
    let served = Served::start(&[]);
    let words = ["remote", "bandwidth", "--transport", "tty", "--path", &served.path, "--count", "200"];
    end(&mut latscope(words.into_iter().chain(["--json", &result]))).done();
    let found = json(&result);
    let points = of_probe(&found, "remote.bandwidth");
    let of =
        |direction: &str| points.iter().copied().find(|m| m["params"]["direction"] == direction).unwrap();
    let echoed = of("echoed");
    for name in ["losses", "mismatches", "faults"] {
        assert_eq!(echoed["values"][name]["value"].as_f64(), Some(0.0), "{name}: {echoed:#}");
    }
    assert_eq!(echoed["values"]["sent"]["value"], echoed["values"]["received"]["value"]);
    assert!(echoed["values"]["throughput"]["value"].as_f64() > Some(0.0), "{echoed:#}");
    has_reason(&[of("to-remote")], "unsupported", "--direction echoed");
    served.end().done();
}

#[test]
fn a_terminal_leads_over_another_terminal() {
    let far = Served::start(&["--echo"]);
    let near = Served::start(&["--transport", "tty", "--path", &far.path]);
    let place = Place::new();
    let result = place.at("result.json");
    end(&mut ping(&near.path, "--count 100 --timeout 30s", &result)).done();
    assert_eq!(of_probe(&json(&result), "remote.ping")[0]["values"]["losses"]["value"].as_f64(), Some(0.0));
    near.end().done();
    // Its other end is gone.
    let near = Served::start(&["--transport", "tty", "--path", &far.path]);
    let path = far.path.clone();
    far.end().done();
    let ran = wait(near.child).has_code(1);
    assert!(ran.err.contains(&format!("the remote is gone: {path}: its other end was closed")), "{ran:#?}");
    near.mark.wait_for_none();
}

impl Ran {
    fn has_code(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self.no_panic();
        self
    }
}

#[test]
fn modes_are_raw_while_it_runs_and_as_before_however_it_ends() {
    let place = Place::new();
    let result = place.at("result.json");
    for way in [None, Some(Signal::INT), Some(Signal::TERM), Some(Signal::KILL)] {
        let pty = Pty::new();
        let before = modes(&pty.slave);
        assert!(!is_raw(&pty.slave));
        // Without an answer it ends by itself after three seconds.
        let mut command = ping(&pty.path, "--duration 60s", &result);
        let mark = Mark::on(&mut command);
        let child = start(&mut command);
        eventually("it is raw", || is_raw(&pty.slave).then_some(()));
        if let Some(way) = way {
            signal(&child, way);
        }
        wait(child).no_panic();
        mark.wait_for_none();
        assert_eq!(modes(&pty.slave), before, "{way:?}");
    }
}

#[test]
fn modes_that_another_process_set_meanwhile_stay() {
    let pty = Pty::new();
    let mut command = ping(&pty.path, "--duration 60s", "/dev/null");
    let child = start(&mut command);
    eventually("it is raw", || is_raw(&pty.slave).then_some(()));
    let mut theirs = termios::tcgetattr(&pty.slave).unwrap();
    theirs.local_modes |= LocalModes::ECHO;
    termios::tcsetattr(&pty.slave, OptionalActions::Now, &theirs).unwrap();
    let expected = modes(&pty.slave);
    signal(&child, Signal::INT);
    wait(child).no_panic();
    assert_eq!(modes(&pty.slave), expected);
}

#[test]
fn a_terminal_without_answers_costs_losses_and_ends_the_row() {
    let pty = Pty::new();
    let place = Place::new();
    let result = place.at("result.json");
    let ran = end(&mut ping(&pty.path, "--duration 60s", &result)).has_code(1);
    assert!(ran.err.contains("no reply was valid: ") && ran.err.contains("sent, 3 lost"), "{ran:#?}");
    end(&mut ping(&pty.path, "--duration 60s --losses 0", &result)).has_code(2);
    end(&mut ping(&pty.path, "--duration 60s --mismatches 0", &result)).has_code(1);
    let found = json(&result);
    let points = of_probe(&found, "remote.ping");
    has_reason(&points, "unsupported", "no message came in time");
    assert_eq!(points[0]["values"]["losses"]["value"].as_f64(), Some(3.0), "{found:#}");
}

#[test]
fn a_terminal_without_answers_is_named_in_every_row() {
    let pty = Pty::new();
    for row in ["long-ping", "bandwidth"] {
        let words = ["remote", row, "--transport", "tty", "--path", &pty.path, "--duration", "1s", "--quiet"];
        let ran = end(&mut latscope(words)).has_code(1);
        assert!(ran.err.contains("no reply was valid: "), "{row}: {ran:#?}");
    }
}

#[test]
fn bytes_that_belong_to_no_message_are_a_reason() {
    let (pty, place) = (Pty::new(), Place::new());
    let result = place.at("result.json");
    let far = far_side(&pty, |bytes, _| [b"msh > ", bytes].concat());
    end(&mut ping(&pty.path, "--count 50", &result)).done();
    has_reason(&of_probe(&json(&result), "remote.ping"), "degraded", "bytes came that belong to no message");
    drop(pty);
    drop(far);
}

#[test]
fn a_server_that_is_killed_ends_the_row_and_leaves_nothing() {
    let place = Place::new();
    let (result, link) = (place.at("result.json"), place.at("tty"));
    let served = Served::start(&["--link", &link]);
    assert_eq!(std::fs::read_link(&link).unwrap(), Path::new(&served.path));
    let words = [
        "remote", "ping", "--transport", "tty", "--path", &link, "--duration", "600s", "--no-live", "--json",
        &result,
    ];
    let mut terminal = Terminal::run(&words);
    terminal.wait_for_samples();
    signal(&served.child, Signal::KILL);
    wait(served.child);
    terminal.ends(1);
    let found = json(&result);
    has_reason(&of_probe(&found, "remote.ping"), "degraded", "its other end was closed");
    served.mark.wait_for_none();
    assert!(Path::new(&link).symlink_metadata().is_err());
}

#[test]
fn a_remote_that_dies_ends_the_server() {
    let served = Served::start(&[]);
    let echo = served.mark.wait_for("__remote");
    send(Signal::KILL, echo.pid);
    let ran = wait(served.child);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("the remote is gone: the process that answers ended: signal: 9"), "{ran:#?}");
    served.mark.wait_for_none();
}

#[test]
fn lines_are_a_variant_of_their_own_that_tells_what_it_loses() {
    let served = Served::start(&["--echo"]);
    let place = Place::new();
    let result = place.at("result.json");
    let words = [
        "remote", "ping", "--transport", "tty-line", "--path", &served.path, "--duration", "60s", "--json",
        &result,
    ];
    let ran = end(&mut latscope(words));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    // What breaks the protocol exceeds a criterion, whatever else the row is worth.
    let ran = end(&mut latscope(words.into_iter().chain(["--faults", "0"])));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    let found = json(&result);
    let [m] = measurements(&found) else { panic!("{found:#}") };
    assert_eq!(m["params"]["transport"], "tty-line");
    let count = |name: &str| m["values"][name]["value"].as_f64().unwrap();
    // Pings number 3, 4, 10, 13, … are commands to it.
    assert!(count("losses") + count("mismatches") > 0.0 && count("faults") > 0.0, "{m:#}");
    served.end().done();
}

#[test]
fn what_cannot_be_served_or_talked_to_is_refused_in_a_line() {
    let place = Place::new();
    let taken = place.file("taken", "");
    for (words, said) in [
        (&["serve", "--pty", "--link", &taken][..], "is there already"),
        (&["serve", "--pty", "--wait", "poll"], "shm waits by: spin"),
        (&["serve"], "--pty"),
        (&["serve", "--pty", "--transport", "tty"], "--path /dev/pts/N"),
        (&["ping", "--transport", "tty"], "--path /dev/pts/N"),
        (&["ping", "--transport", "tty", "--path", &taken], "is not a terminal"),
        (&["ping", "--transport", "tty", "--path", "/dev/pts/never"], "/dev/pts/never"),
    ] {
        let line = end(&mut latscope(["remote"].iter().chain(words).chain(&[]))).refused();
        assert!(line.contains(said), "{words:?}: {line}");
    }
    assert_eq!(std::fs::read(&taken).unwrap(), b"");
}

/// Text in which each number, with the spaces that fill up its column, is a single sign.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for c in text.chars() {
        let digit = c.is_ascii_digit() || c == '.' && masked.ends_with('#');
        if digit {
            let kept = masked.trim_end_matches(' ').len();
            masked.truncate(kept);
            if !masked.ends_with('#') {
                masked.push('#');
            }
        } else {
            masked.push(c);
        }
    }
    masked
}

/// Lines of a text, each once, where it comes first.
fn different(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    text.split_inclusive('\n').for_each(|line| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    });
    lines.concat()
}

fn documented(name: &str) -> String {
    let path = format!("{}/../latscope-compat/tests/golden/mcs/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    masked(&std::fs::read_to_string(path).expect("it is there"))
}

#[test]
fn mica_main_pings_in_the_documented_words() {
    let call = "as mica_main -c 1 -t zephyr-image.bin -a 0x7a000000 --loop 3";
    for (task, policy) in [("--ping", "ping_msg"), ("--long-ping", "long_ping_msg")] {
        let ran = end(&mut latscope(call.split(' ').chain([task])));
        assert!(ran.err.contains("the remote is a process of latscope"), "{ran:#?}");
        let out = ran.done();
        assert_eq!(
            different(&masked(&out)),
            different(&documented("mica_main-ping").replace("ping_msg", policy))
        );
        assert_eq!(out.matches(" Realtime:").count(), 3, "{out}");
        assert!(out.contains("Count:       3 Realtime:"), "{out}");
    }
}

#[test]
fn pty_test_talks_to_the_terminal_of_mica_main_in_the_documented_words() {
    let mut command = latscope(["as", "mica_main", "--pty"]);
    let (served, line) = Served::with(&mut command, |line| line.starts_with("pls open "));
    let path = line.split(' ').nth(2).unwrap();
    let ping = run(&["as", "pty_test", "--path", path, "--ping", "--loop", "3"]).done();
    assert_eq!(different(&masked(&ping)), documented("pty_test-ping"));
    assert!((1..=3).all(|number| ping.contains(&format!("Count:     {number} | "))), "{ping}");
    let ran = run(&["as", "pty_test", path, "--bandwidth", "--time", "1"]);
    assert!(
        ran.err.contains(
            ", 0 were lost, 0 blocks came otherwise, 0 came again, 0 bytes belong to no block, 0 faults"
        ),
        "{ran:#?}"
    );
    let bandwidth = ran.done();
    assert_eq!(different(&masked(&bandwidth)), different(&documented("pty_test-bandwidth")));
    let ran = served.end().has_code(0);
    // The line that was waited for is gone with what was before it.
    assert_eq!(masked(&line), "pls open /dev/pts/# to test pty");
    assert!(ran.err.contains("note"), "{ran:#?}");
}

/// Reads from the far side of a terminal until it is closed, and writes what `answer` returns for the bytes and the
/// number of bytes before them.
fn far_side(
    pty: &Pty,
    mut answer: impl FnMut(&[u8], usize) -> Vec<u8> + Send + 'static,
) -> std::thread::JoinHandle<()> {
    let master = pty.master.try_clone().expect("a descriptor is left");
    std::thread::spawn(move || {
        let (mut room, mut before) = ([0; 4096], 0);
        // EIO: no other side.
        while let Ok(length @ 1..) = rustix::io::read(&master, &mut room) {
            let reply = answer(&room[..length], before);
            before += length;
            let mut rest = &reply[..];
            while let Ok(written @ 1..) = rustix::io::write(&master, rest) {
                rest = &rest[written..];
            }
        }
    })
}

#[test]
fn foreign_bytes_cost_pty_test_no_block_and_nothing_wraps() {
    let pty = Pty::new();
    // A line of another program before the first block, and one in the middle.
    // A read may return few bytes: a place among them would come more than once.
    let mut lines = 0;
    let far = far_side(&pty, move |bytes, before| {
        let is_due = before >= 50_000 * lines && lines < 2;
        lines += usize::from(is_due);
        let line: &[u8] = if is_due { b"login: " } else { b"" };
        [line, bytes].concat()
    });
    let ran = run(&["as", "pty_test", &pty.path, "--bandwidth", "--time", "1"]);
    let Pty { slave, .. } = &pty;
    assert!(!ran.err.contains("18446744"), "{ran:#?}");
    let number = |name: &str| -> u64 {
        let (before, _) = ran.err.split_once(name).unwrap_or_else(|| panic!("{name}: {ran:#?}"));
        before.trim_end().rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number")
    };
    // At most the one block in which the line stands is lost.
    assert!(number("blocks came otherwise") <= 1 && number("were lost") <= 1024, "{ran:#?}");
    assert!((7..=14 + 1024).contains(&number("bytes belong to no block")), "{ran:#?}");
    assert!(number("bytes came back as they were sent") > 50_000, "{ran:#?}");
    let _ = slave;
    drop(pty);
    drop(far);
}

#[test]
fn a_far_side_that_is_not_raw_is_named() {
    type Answer = fn(&[u8]) -> Vec<u8>;
    let translated: Answer = |bytes| {
        bytes.iter().flat_map(|byte| if *byte == b'\r' { b"\r\n".to_vec() } else { vec![*byte] }).collect()
    };
    let doubled: Answer = |bytes| [bytes, bytes].concat();
    for (words, answer, said) in [
        (&["--loop", "2", "--pace", "0ms"][..], translated, "CR comes back as CR LF"),
        (&["--bandwidth", "--time", "1"], translated, "CR comes back as CR LF"),
        (&["--loop", "2", "--pace", "0ms"], doubled, "each message comes back twice"),
    ] {
        let pty = Pty::new();
        let far = far_side(&pty, move |bytes, _| answer(bytes));
        let ran = run(&[&["as", "pty_test", &pty.path][..], words].concat());
        assert!(ran.err.contains(said) && !ran.err.contains("18446744"), "{words:?}: {ran:#?}");
        drop(pty);
        drop(far);
    }
}

#[test]
fn bandwidth_keeps_its_rates_when_the_terminal_ends() {
    let pty = Pty::new();
    let child = start(&mut latscope(["as", "pty_test", &pty.path, "-b", "--compat", "2023-10"]));
    // It echoes what comes for a while, then it is closed.
    let began = std::time::Instant::now();
    let mut room = [0; 4096];
    while began.elapsed().as_millis() < 500 {
        let length = rustix::io::read(&pty.master, &mut room[..]).unwrap();
        let mut rest = &room[..length];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&pty.master, rest).unwrap()..];
        }
    }
    drop(pty);
    let ran = wait(child);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.out.contains("Count:    1 | Elapsed:") && ran.out.ends_with(" Mbps\n"), "{ran:#?}");
    assert!(ran.err.contains("bytes that had come back as they were sent by the last line"), "{ran:#?}");
    assert!(ran.err.contains("its other end was closed"), "{ran:#?}");
}

#[test]
fn pty_test_is_ended_by_a_signal_and_leaves_the_terminal_as_it_was() {
    for bandwidth in [false, true] {
        let pty = Pty::new();
        let before = modes(&pty.slave);
        let mut command = latscope(["as", "pty_test", &pty.path]);
        command.args(bandwidth.then_some("--bandwidth"));
        let child = start(&mut command);
        eventually("it is raw", || is_raw(&pty.slave).then_some(()));
        signal(&child, Signal::INT);
        let ran = wait(child).has_code(0);
        assert!(ran.out.ends_with("Test was interrupted and benchmark ended.\n"), "{ran:#?}");
        assert_eq!(modes(&pty.slave), before);
    }
}

#[test]
fn pty_test_counts_what_is_not_answered() {
    let pty = Pty::new();
    let ran = run(&["as", "pty_test", &pty.path, "--loop", "2", "--pace", "0ms"]).has_code(1);
    assert_eq!(ran.out, "ping test over!\n");
    assert!(ran.err.contains("of 2 pings 2 had no reply within a second"), "{ran:#?}");
    // Ours are accepted beside theirs, and wrong ones are reported.
    assert!(run(&["as", "pty_test", "--help"]).done().contains("--pace=TIME"));
    let ran = run(&["as", "mica_main", "--loop", "x"]).has_code(1);
    assert!(ran.err.starts_with("mica_main: --loop x is no number\nUsage:"), "{ran:#?}");
}

/// Session whose controlling terminal is one of the test, with a shell that waits.
struct Session {
    pty: Pty,
    shell: Child,
}

impl Session {
    fn start() -> Session {
        let pty = Pty::new();
        let end = || pty.slave.try_clone().expect("descriptors are left");
        let script = "trap '' TTOU; read -r line";
        let shell = program(["setsid", "--ctty", "sh", "-c", script]).stdin(end()).spawn().unwrap();
        let pid = shell.id();
        eventually("the shell has its terminal", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            (fields[4] != "0" && stat.contains("(sh)")).then_some(())
        });
        Session { pty, shell }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn a_terminal_of_a_session_is_refused_unless_it_is_forced() {
    let session = Session::start();
    let (path, before) = (session.pty.path.clone(), modes(&session.pty.slave));
    let place = Place::new();
    let link = place.at("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let named = format!("is the terminal of sh (pid {}), ", session.shell.id());
    let calls: [&[&str]; 6] = [
        &["remote", "ping", "--transport", "tty", "--path", &path],
        &["remote", "ping", "--transport", "tty-line", "--path", &link],
        &["remote", "bandwidth", "--transport", "tty", "--path", &path, "--direction", "echoed"],
        &["remote", "serve", "--pty", "--transport", "tty", "--path", &path],
        &["as", "pty_test", "--path", &path],
        &["as", "pty_test", &link, "--bandwidth"],
    ];
    for words in calls {
        let ran = run(words);
        ran.no_panic();
        assert_eq!(ran.code, Some(1), "{words:?}: {ran:#?}");
        assert!(ran.err.contains(&named) && ran.err.contains("--force"), "{words:?}: {ran:#?}");
    }
    let mut room = [0; 64];
    rustix::io::ioctl_fionbio(&session.pty.master, true).unwrap();
    assert!(rustix::io::read(&session.pty.master, &mut room).is_err(), "nothing was written");
    assert_eq!(modes(&session.pty.slave), before);
    let ran = end(&mut ping(&path, "--force --duration 60s", "/dev/null"));
    assert!(ran.err.contains("no reply was valid: "), "{ran:#?}");
    assert!(rustix::io::read(&session.pty.master, &mut room).is_ok(), "pings were written");
    let ran = run(&["as", "pty_test", "--force", "--loop", "1", "--path", &path]);
    assert!(!ran.err.contains(&named) && ran.out.contains("ping"), "{ran:#?}");
}
