//! The live screen as an observer.

use super::ansi;
use super::draw::draw;
use super::model::Model;
use super::theme::Theme;
use super::view::{Key, View, keys};
use latscope_engine::observers::{Event, Live, Observer};
use latscope_process::guardian::Undo;
use latscope_process::terminal::Terminal;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use rustix::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Ten screens a second.
const PERIOD: Duration = Duration::from_millis(100);

/// Draws on a terminal and listens to its keys.
pub(super) struct Screen {
    terminal: Terminal,
    /// True as long as keys can arrive.
    listening: bool,
    model: Model,
    /// Model shown while the screen is paused.
    frozen: Option<Model>,
    view: View,
    theme: Theme,
    /// Contents of the terminal.
    shown: Buffer,
    drawn: Option<Instant>,
}

impl Screen {
    pub fn new(terminal: Terminal, color: bool) -> Screen {
        Screen {
            terminal,
            listening: true,
            model: Model::default(),
            frozen: None,
            view: View::default(),
            theme: Theme { color, epoch: 0 },
            shown: Buffer::empty(Rect::ZERO),
            drawn: None,
        }
    }

    fn take(&mut self, live: &Live) {
        if self.theme.epoch == 0 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.theme.epoch = (now.as_nanos() as u64).saturating_sub(live.at);
        }
        self.model.take(live);
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD * 9 / 10) {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let Some((width, height)) = self.terminal.size() else { return };
        self.drawn = Some(Instant::now());
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(self.frozen.as_ref().unwrap_or(&self.model), &self.view, self.theme, &mut buffer);
        let changes = ansi::changes(&self.shown, &buffer);
        match self.terminal.write(changes.as_bytes()) {
            Ok(true) => self.shown = buffer,
            // A slow terminal is not waited for: the next screen makes up for it.
            Ok(false) => {}
            Err(_) => self.terminal.leave(),
        }
    }

    fn listen(&mut self) {
        let Ok(typed) = self.terminal.keys() else {
            self.listening = false;
            return;
        };
        for key in keys(&typed) {
            self.view.press(key, self.model.choices());
            match key {
                Key::Pause => self.frozen = self.view.paused.then(|| self.model.clone()),
                Key::Redraw => self.shown = Buffer::empty(Rect::ZERO),
                _ => {}
            }
        }
    }
}

impl Observer for Screen {
    fn observe(&mut self, event: &Event) {
        match event {
            Event::Started(plan) => {
                self.model.start(plan);
                match self.terminal.take() {
                    Ok(()) => self.draw(),
                    Err(_) => self.terminal.leave(),
                }
            }
            Event::Point { point, .. } => self.model.begin_point(point),
            Event::Closed(_) => self.model.closed(),
            Event::Snapshot(live) => self.take(live),
            Event::Outlier(outlier) => self.model.outlier(outlier),
            Event::Standings(standings) => self.model.standings = standings.to_vec(),
            Event::Warning(warning) => self.model.warn(warning),
            Event::Input => self.listen(),
            Event::Finished(_) => self.terminal.leave(),
            _ => {}
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        (self.listening && self.terminal.is_taken()).then(|| self.terminal.as_fd())
    }

    fn undo(&self) -> Option<Undo> {
        Some(Undo::RestoreTerminal(self.terminal.before()))
    }

    fn wants_end(&self) -> Option<&'static str> {
        self.view.ending.then_some("key q")
    }
}
