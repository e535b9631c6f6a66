//! Live screen of many runs: the progress of each measurement, the present run, the messages.

use super::theme::{Theme, draw_text};
use super::view::{LiveKey, LiveViewState, keys};
use super::{ansi, words};
use latscope_process::guardian::UndoAction;
use latscope_process::terminal::InteractiveTerminal;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;

/// A measurement, in an arm and under a load.
#[derive(Debug, Clone, Default)]
pub struct RunsScreenCell {
    /// Name of the cell.
    pub name: String,
    /// Runs that are planned, that count, and that do not.
    pub planned: usize,
    pub counted: usize,
    pub lost: usize,
    /// Time of the last run, with the commands before it.
    pub last: Option<Duration>,
}

/// All that is shown.
#[derive(Debug, Clone, Default)]
pub struct RunsScreenModel {
    /// Title of the screen: `latscope trial`.
    pub title: String,
    /// In the order of the plan.
    pub cells: Vec<RunsScreenCell>,
    /// The cell that is run now, and since when.
    pub now: usize,
    pub since: Duration,
    /// Remaining time of the whole, in words.
    pub left: Option<String>,
    /// Messages, the oldest first.
    pub said: Vec<String>,
}

const KEYS: [&str; 3] = [
    "p             stop drawing, not measuring; again: go on",
    "q, Ctrl-C     end now, with the summary of the runs until then",
    "h             back to the messages",
];

impl RunsScreenModel {
    /// Draws all of it on an empty buffer: the head, a row for each measurement, the messages, the keys.
    fn draw_runs(&self, view: &LiveViewState, theme: Theme, buffer: &mut Buffer) {
        let area = buffer.area;
        let sum = |of: fn(&RunsScreenCell) -> usize| self.cells.iter().map(of).sum::<usize>();
        let (planned, counted, lost) =
            (sum(|cell| cell.planned), sum(|cell| cell.counted), sum(|cell| cell.lost));
        let left = self.left.as_ref().map(|left| format!(", {left}")).unwrap_or_default();
        draw_text(buffer, area, 0, &format!("{}{}{left}", view.drawing_state(), self.title), theme.strong());
        let done = (counted + lost) * 20 / planned.max(1);
        let bar = format!("{}{}", "━".repeat(done.min(20)), "─".repeat(20 - done.min(20)));
        let not = if lost > 0 { format!("  not counted: {lost}") } else { String::new() };
        let runs = format!("{bar}  {} of {planned} runs{not}", counted + lost);
        draw_text(buffer, area, 1, &runs, Style::new());
        let rest = area.height.saturating_sub(3);
        let listed = if view.help { KEYS.len() as u16 } else { (self.said.len() as u16).min(rest / 3) };
        let rows = rest.saturating_sub(listed);
        self.draw_table(theme, Rect { y: area.y + 2.min(area.height), height: rows, ..area }, buffer);
        let below = Rect { y: area.y + (2 + rows).min(area.height), height: listed.min(rest), ..area };
        for (row, line) in
            (0..).zip(if view.help { KEYS.map(str::to_owned).to_vec() } else { self.last(listed) })
        {
            draw_text(buffer, below, row, &line, theme.faint());
        }
        let keys = format!("q end with the summary  {}  h help", view.pause_key());
        draw_text(buffer, area, area.height.saturating_sub(1), &keys, theme.faint());
    }

    /// Returns the last `count` messages.
    fn last(&self, count: u16) -> Vec<String> {
        self.said[self.said.len().saturating_sub(count.into())..].to_vec()
    }

    /// Draws as many rows as there is room for, the present row among them.
    fn draw_table(&self, theme: Theme, area: Rect, buffer: &mut Buffer) {
        let longest = self.cells.iter().map(|cell| cell.name.chars().count()).max().unwrap_or(0).max(11);
        let width = longest.min(usize::from(area.width).saturating_sub(28).max(8));
        let heading = format!("  {:<width$}  runs      last    now", "measurement");
        draw_text(buffer, area, 0, &heading, theme.faint());
        let room = usize::from(area.height.saturating_sub(1));
        let skipped = (self.now + 1).saturating_sub(room);
        for (line, (at, cell)) in (1..area.height).zip(self.cells.iter().enumerate().skip(skipped)) {
            let now = at == self.now;
            let name: String = match cell.name.chars().count() > width {
                true => cell.name.chars().take(width - 1).chain(['…']).collect(),
                false => cell.name.clone(),
            };
            let span = |time: Duration| words::format_clock(time.as_nanos() as u64);
            let text = format!(
                "{} {name:<width$}  {:<8}{:>6}{}",
                if now { '▸' } else { ' ' },
                format!("{}/{}", cell.counted, cell.planned),
                cell.last.map(span).unwrap_or_default(),
                if now { format!("{:>7}", span(self.since)) } else { String::new() },
            );
            let style = match (cell.lost > 0, now) {
                (true, _) => theme.warning(),
                (_, true) => theme.strong(),
                _ => Style::new(),
            };
            draw_text(buffer, area, line, &text, style);
        }
    }
}

/// Draws many runs on a terminal, and listens to its keys.
pub struct RunsScreen {
    terminal: InteractiveTerminal,
    pub runs: RunsScreenModel,
    view: LiveViewState,
    theme: Theme,
    shown: Buffer,
}

impl RunsScreen {
    pub fn new(terminal: InteractiveTerminal, color: bool) -> RunsScreen {
        let theme = Theme { color, epoch: 0 };
        let shown = Buffer::empty(Rect::ZERO);
        RunsScreen {
            terminal,
            runs: RunsScreenModel::default(),
            view: LiveViewState::default(),
            theme,
            shown,
        }
    }

    /// Undoes the changes of [`take`](Self::take), as a task for the guardian.
    pub fn undo(&self) -> UndoAction {
        UndoAction::RestoreTerminal(self.terminal.before())
    }

    /// Takes the terminal over.
    pub fn take_terminal(&mut self) {
        match self.terminal.take_over() {
            Ok(()) => self.draw_screen(),
            Err(_) => self.terminal.restore_terminal(),
        }
    }

    /// Leaves the terminal as it was.
    pub fn leave_terminal(&self) {
        self.terminal.restore_terminal();
    }

    /// Descriptor that keys come from, as long as there is a screen.
    pub fn input(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    /// Looks at the keys, and draws what changed. `false` if the terminal is gone.
    pub fn handle_keys_and_draw(&mut self) -> bool {
        let typed = self.terminal.keys();
        let gone = typed.is_err();
        for key in keys(&typed.unwrap_or_default()) {
            let ending = self.view.ending;
            self.view.press(key, 1);
            if key == LiveKey::Redraw {
                self.shown = Buffer::empty(Rect::ZERO);
            }
            // As Ctrl-C: the run ends and saves what it has.
            if self.view.ending && !ending {
                let _ = kill_process(getpid(), Signal::INT);
            }
            self.draw_screen();
        }
        if !self.view.paused {
            self.draw_screen();
        }
        !gone
    }

    fn draw_screen(&mut self) {
        let Some((width, height)) = self.terminal.window_size() else { return };
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        self.runs.draw_runs(&self.view, self.theme, &mut buffer);
        match self.terminal.write_bytes(ansi::changes(&self.shown, &buffer).as_bytes()) {
            Ok(true) => self.shown = buffer,
            // A slow terminal is not waited for: the next screen makes up for it.
            Ok(false) => {}
            Err(_) => self.terminal.restore_terminal(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> RunsScreenModel {
        let cell = |name: &str, counted, lost| RunsScreenCell {
            name: name.to_owned(),
            planned: 9,
            counted,
            lost,
            last: (counted > 0).then(|| Duration::from_secs(64)),
        };
        RunsScreenModel {
            title: "latscope trial  does it help?".to_owned(),
            cells: vec![cell("wake-without", 2, 0), cell("wake-with-a-rather-long-name-of-an-arm", 1, 1)],
            now: 1,
            since: Duration::from_secs(7),
            left: Some("about 3m left".to_owned()),
            said: vec!["results: r/: 18 runs".to_owned(), "run 3 of 18 does not count: it failed".to_owned()],
        }
    }

    fn text(view: &LiveViewState, width: u16, height: u16) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        runs().draw_runs(view, Theme::default(), &mut buffer);
        let line = |cells: &[ratatui_core::buffer::Cell]| {
            let line: String = cells.iter().map(|cell| cell.symbol()).collect();
            line.trim_end().to_owned()
        };
        buffer.content.chunks(usize::from(width)).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_screen_has_the_runs_and_the_messages() {
        let shown = text(&LiveViewState::default(), 80, 9);
        assert_eq!(
            shown,
            "latscope trial  does it help?, about 3m left\n\
             ━━━━────────────────  4 of 18 runs  not counted: 1\n\
             \u{20} measurement                             runs      last    now\n\
             \u{20} wake-without                            2/9       1:04\n\
             ▸ wake-with-a-rather-long-name-of-an-arm  1/9       1:04   0:07\n\n\
             results: r/: 18 runs\n\
             run 3 of 18 does not count: it failed\n\
             q end with the summary  p pause  h help"
        );
        let help = text(&LiveViewState { help: true, paused: true, ..LiveViewState::default() }, 80, 12);
        assert!(
            help.starts_with("PAUSED, still measuring  latscope") && help.contains("stop drawing"),
            "{help}"
        );
    }

    #[test]
    fn any_size_is_drawn() {
        for (width, height) in [(1, 1), (8, 2), (20, 5), (40, 12), (300, 100)] {
            text(&LiveViewState::default(), width, height);
            text(&LiveViewState { help: true, ..LiveViewState::default() }, width, height);
        }
        assert!(text(&LiveViewState::default(), 40, 5).contains("▸ wake-with-a…"));
    }
}
