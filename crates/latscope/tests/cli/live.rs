//! The live screen of `latscope wake` in a real terminal, and what there is
//! where there is none.

use crate::support::{eventually, latscope, run};
use crate::terminal::Terminal;
use rustix::process::Signal;

/// A run that no test waits out.
const LONG: [&str; 5] = ["wake", "--duration", "600s", "--interval", "2ms"];

/// The screen is there, with figures on it.
#[track_caller]
fn begun(terminal: &Terminal) {
    terminal.wait_for("latscope wake");
    terminal.wait_for(" µs");
    let (alternate, hidden) = terminal.look(|screen| (screen.alternate_screen(), screen.hide_cursor()));
    assert!(alternate && hidden && terminal.is_taken());
}

#[test]
fn keys_choose_what_is_shown_and_q_ends_with_the_summary() {
    let mut terminal = Terminal::run(&LONG);
    begun(&terminal);
    terminal.wait_for("of 10:00");
    terminal.wait_for("largest of each second");
    terminal.type_in("h");
    terminal.wait_for("stop drawing, not measuring");
    terminal.type_in("h");
    terminal.wait_for("outliers");
    terminal.type_in("p");
    terminal.wait_for("PAUSED, still measuring");
    let frozen = terminal.text();
    terminal.type_in("p");
    eventually("it goes on", || {
        (!terminal.text().contains("PAUSED") && terminal.text() != frozen).then_some(())
    });
    terminal.type_in("q");
    let text = terminal.ends(1);
    assert!(text.contains("How sure"), "{text}");
    assert!(!text.contains("q end with the summary"), "{text}");
}

#[test]
fn a_terminal_may_change_its_size() {
    let mut terminal = Terminal::run(&LONG);
    begun(&terminal);
    for (columns, rows) in [(60, 15), (120, 40), (30, 4)] {
        terminal.resize(columns, rows);
        let keys = || {
            let lines = terminal.look(|screen| screen.rows(0, columns).collect::<Vec<_>>());
            let last = lines.last().is_some_and(|line| line.starts_with("q end with the summary"));
            (last && lines[0].starts_with("latscope wake")).then_some(())
        };
        eventually("it is drawn anew", keys);
    }
    terminal.resize(80, 24);
    terminal.type_in("q");
    terminal.ends(1);
}

#[test]
fn signals_end_with_the_summary_on_the_normal_screen() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut terminal = Terminal::run(&LONG);
        begun(&terminal);
        terminal.signal(signal);
        let text = terminal.ends(1);
        assert!(text.contains("How sure"), "{text}");
    }
    let mut terminal = Terminal::run(&LONG);
    begun(&terminal);
    terminal.type_in("\x03");
    let text = terminal.ends(1);
    assert!(text.contains("How sure"), "{text}");
}

#[test]
fn after_a_kill_the_terminal_is_usable() {
    let mut terminal = Terminal::run(&LONG);
    begun(&terminal);
    terminal.signal(Signal::KILL);
    eventually("the guardian restores it", || (!terminal.is_taken()).then_some(()));
    eventually("and the screen", || {
        terminal.look(|screen| !screen.alternate_screen() && !screen.hide_cursor()).then_some(())
    });
    terminal.ends(137);
}

#[test]
fn keys_that_would_stop_it_do_not() {
    let mut terminal = Terminal::run(&LONG);
    begun(&terminal);
    // Ctrl-Z, Ctrl-S: with either the screen would stand still.
    terminal.type_in("\x1a\x13h");
    terminal.wait_for("stop drawing, not measuring");
    terminal.type_in("q");
    terminal.ends(1);
}

#[test]
fn colours_are_not_forced() {
    let colored = |terminal: &Terminal| {
        let written = terminal.written();
        (0..8).any(|color| written.contains(&format!("\x1b[3{color}m")))
    };
    let mut plain = Terminal::run_with(&LONG, &[("NO_COLOR", "1")]);
    let mut usual = Terminal::run(&LONG);
    begun(&plain);
    begun(&usual);
    eventually("there are colours", || colored(&usual).then_some(()));
    plain.wait_for("last 2 s");
    assert!(!colored(&plain), "{}", plain.written());
    for terminal in [&mut plain, &mut usual] {
        terminal.type_in("q");
        terminal.ends(1);
    }
}

#[test]
fn who_does_not_want_the_screen_gets_lines() {
    let words = ["wake", "--duration", "300ms", "--no-live"];
    let mut terminal = Terminal::run(&words);
    let text = terminal.ends(0);
    assert!(!terminal.written().contains("\x1b[?1049h"));
    assert!(terminal.written().contains("measuring wake  every 1 ms"), "{text}");
    let mut terminal = Terminal::run_with(&words[..3], &[("TERM", "dumb")]);
    terminal.ends(0);
    assert!(!terminal.written().contains("\x1b[?1049h"));
}

#[test]
fn without_a_terminal_there_are_lines_or_nothing() {
    let ran = run(&["wake", "--duration", "300ms"]);
    assert!(ran.err.starts_with("measuring wake  every 1 ms"), "{}", ran.err);
    assert!(!ran.err.contains('\x1b'), "{}", ran.err);
    ran.done();
    let ran = run(&["wake", "--duration", "300ms", "--quiet"]);
    assert_eq!(ran.err, "");
    ran.done();
    let refused = crate::support::end(&mut latscope(["wake", "--live", "--duration", "300ms"])).refused();
    assert!(refused.contains("needs a terminal on stderr"), "{refused}");
}
