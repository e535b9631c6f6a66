//! Live screen of `latscope wake` in a real terminal, and the output without a terminal.

use crate::support::{Place, eventually, latscope, run};
use crate::terminal::Terminal;
use rustix::process::Signal;

/// Arguments of a run that lasts longer than any test.
const LONG: [&str; 5] = ["wake", "--duration", "600s", "--interval", "2ms"];

/// Waits until the screen exists and shows figures.
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
            let last = lines.last().is_some_and(|line| line.starts_with("q end"));
            (last && lines[0].starts_with("latscope wake")).then_some(())
        };
        eventually("it is drawn anew", keys);
    }
    terminal.resize(80, 24);
    terminal.type_in("q");
    terminal.ends(1);
}

#[test]
fn a_progress_line_follows_the_size_of_the_terminal() {
    let mut terminal = Terminal::run(&["survey", "--full"]);
    let drawn = |least: usize| {
        let written = terminal.written();
        let last = written.rsplit("\r\x1b[K").next().map_or(0, |line| line.chars().count());
        (last >= least).then_some(last)
    };
    eventually("a long line is drawn", || drawn(50));
    terminal.resize(30, 24);
    eventually("a line is drawn that fits", || drawn(29).filter(|width| *width == 29));
    terminal.signal(Signal::INT);
    terminal.ends(1);
}

/// A dumb terminal gets text only, whatever other variables of the environment are set, such as those of CI.
#[test]
fn a_dumb_terminal_gets_text_only() {
    for words in [&["cpu", "cycle", "--count", "4"] as &[&str], &["--help"]] {
        for name in ["CI", "COLORTERM", "CLICOLOR"] {
            let mut dumb = Terminal::run_with(words, &[("TERM", "dumb"), (name, "1")]);
            dumb.ends(0);
            assert!(!dumb.written().contains('\x1b'), "{name}: {}", dumb.written());
            let mut forced =
                Terminal::run_with(words, &[("TERM", "dumb"), (name, "1"), ("CLICOLOR_FORCE", "1")]);
            forced.ends(0);
            assert!(forced.written().contains('\x1b'), "{name}: {}", forced.written());
        }
    }
}

/// Arguments for every family of single events, for longer than a test lasts.
const FAMILIES: [&[&str]; 4] = [
    &["noise", "--duration", "600s"],
    &["ipc", "--transport", "pipe", "--duration", "600s"],
    &["ipc", "--transport", "pipe", "--throughput", "--duration", "600s"],
    &["remote", "ping", "--duration", "600s"],
];

#[test]
fn every_family_of_single_events_has_the_screen() {
    for words in FAMILIES {
        let mut terminal = Terminal::run(words);
        terminal.wait_for(&format!("latscope {}", words[0]));
        terminal.wait_for("p99.9");
        for (columns, rows) in [(40, 12), (20, 5), (80, 24)] {
            terminal.resize(columns, rows);
            eventually("it is drawn anew", || {
                let lines = terminal.look(|screen| screen.rows(0, columns).collect::<Vec<_>>());
                let last = lines.last().is_some_and(|line| line.starts_with("q end"));
                (last && lines[0].starts_with("lat")).then_some(())
            });
        }
        terminal.type_in("\t");
        terminal.type_in("h");
        terminal.wait_for("stop drawing, not measuring");
        terminal.signal(Signal::INT);
        let text = terminal.ends(1);
        assert!(!terminal.is_taken() && !text.contains("q end with the summary"), "{words:?}: {text}");
    }
}

#[test]
fn what_is_measured_one_after_the_other_is_named_and_has_an_end() {
    let mut terminal = Terminal::run(&["remote", "ping", "--wait", "spin,futex", "--duration", "300s"]);
    for said in ["latscope remote", "now", "spin", "futex", " left"] {
        terminal.wait_for(said);
    }
    terminal.type_in("q");
    terminal.ends(1);
}

/// Starts a trial whose runs last longer than a test.
fn trial(results: &str) -> Terminal {
    let mut terminal =
        Terminal::run(&["trial", "--runs", "2", "--dir", results, "--", "noise", "--duration", "600s"]);
    for said in ["latscope trial", "0 of 4 runs", "a-noise", "b-noise", "results: ", "about ", " left"] {
        terminal.wait_for(said);
    }
    let (alternate, hidden) = terminal.look(|screen| (screen.alternate_screen(), screen.hide_cursor()));
    assert!(alternate && hidden && terminal.is_taken());
    for (columns, rows) in [(40, 12), (20, 5), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.type_in("\x0c");
        eventually("it is drawn anew", || {
            let lines = terminal.look(|screen| screen.rows(0, columns).collect::<Vec<_>>());
            let last = lines.last().is_some_and(|line| line.starts_with("q end"));
            (last && lines[0].starts_with("latscope trial")).then_some(())
        });
    }
    terminal
}

#[test]
fn a_trial_has_a_screen_and_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    for (at, ending) in ["q", "\x03"].into_iter().enumerate() {
        let mut terminal = trial(&place.at(&format!("typed-{at}")));
        terminal.type_in("p");
        terminal.wait_for("PAUSED, still measuring");
        terminal.type_in("p");
        terminal.type_in("h");
        terminal.wait_for("back to the messages");
        terminal.type_in(ending);
        let text = terminal.ends(1);
        assert!(!terminal.is_taken() && text.contains("results: "), "{text}");
        assert!(!text.contains("q end with the summary"), "{text}");
    }
    let mut terminal = trial(&place.at("signal"));
    terminal.signal(Signal::TERM);
    terminal.ends(1);
    let terminal = trial(&place.at("killed"));
    is_usable_after_a_kill(terminal);
}

#[test]
fn a_plan_that_ends_by_itself_shows_its_table_on_the_normal_screen() {
    let place = Place::new();
    let plan = place.file("p.toml", "[[measurement]]\nname = \"cycle\"\nrun = \"cpu cycle --count 4\"\n");
    let mut terminal = Terminal::run(&["run", &plan, "--runs", "2", "--dir", &place.at("r")]);
    let text = terminal.ends(0);
    assert!(terminal.written().contains("\x1b[?1049h"), "{}", terminal.written());
    assert!(text.contains("core cycle") && !terminal.is_taken(), "{text}");
    let mut terminal = Terminal::run(&["run", &plan, "--no-live", "--dir", &place.at("lines")]);
    terminal.ends(0);
    assert!(!terminal.written().contains("\x1b[?1049h"));
    let refused = run(&["run", &plan, "--dry-run", "--no-live"]).refused();
    assert!(refused.contains("--no-live"), "{refused}");
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

fn is_usable_after_a_kill(mut terminal: Terminal) {
    terminal.signal(Signal::KILL);
    eventually("the guardian restores it", || (!terminal.is_taken()).then_some(()));
    eventually("and the screen", || {
        terminal.look(|screen| !screen.alternate_screen() && !screen.hide_cursor()).then_some(())
    });
    terminal.ends(137);
}

#[test]
fn after_a_kill_the_terminal_is_usable() {
    let terminal = Terminal::run(&LONG);
    begun(&terminal);
    is_usable_after_a_kill(terminal);
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
