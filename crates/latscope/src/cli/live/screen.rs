//! The live screen as an observer.

use super::ansi;
use super::draw::draw_model;
use super::model::LiveModel;
use super::theme::Theme;
use super::view::{LiveKey, LiveViewState, keys};
use latscope_engine::observers::{Observer, RunEvent, StepSnapshot};
use latscope_process::guardian::UndoAction;
use latscope_process::terminal::InteractiveTerminal;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use rustix::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Ten screens a second.
const PERIOD: Duration = Duration::from_millis(100);

/// Draws on a terminal and listens to its keys.
pub(super) struct LiveScreen {
    terminal: InteractiveTerminal,
    /// True as long as keys can arrive.
    listening: bool,
    model: LiveModel,
    /// Model shown while the screen is paused.
    frozen: Option<LiveModel>,
    view: LiveViewState,
    theme: Theme,
    /// Contents of the terminal.
    shown: Buffer,
    drawn: Option<Instant>,
}

impl LiveScreen {
    pub fn new(terminal: InteractiveTerminal, color: bool) -> LiveScreen {
        LiveScreen {
            terminal,
            listening: true,
            model: LiveModel::default(),
            frozen: None,
            view: LiveViewState::default(),
            theme: Theme { color, epoch: 0 },
            shown: Buffer::empty(Rect::ZERO),
            drawn: None,
        }
    }

    fn update_model(&mut self, live: &StepSnapshot) {
        if self.theme.epoch == 0 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.theme.epoch = (now.as_nanos() as u64).saturating_sub(live.at);
        }
        self.model.apply_step_snapshot(live);
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PERIOD * 9 / 10) {
            self.draw_screen();
        }
    }

    fn draw_screen(&mut self) {
        let Some((width, height)) = self.terminal.window_size() else { return };
        self.drawn = Some(Instant::now());
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw_model(self.frozen.as_ref().unwrap_or(&self.model), &self.view, self.theme, &mut buffer);
        let changes = ansi::changes(&self.shown, &buffer);
        match self.terminal.write_bytes(changes.as_bytes()) {
            Ok(true) => self.shown = buffer,
            // A slow terminal is not waited for: the next screen makes up for it.
            Ok(false) => {}
            Err(_) => self.terminal.restore_terminal(),
        }
    }

    fn handle_keys(&mut self) {
        let Ok(typed) = self.terminal.keys() else {
            self.listening = false;
            return;
        };
        for key in keys(&typed) {
            self.view.press(key, self.model.choices());
            match key {
                LiveKey::Pause => self.frozen = self.view.paused.then(|| self.model.clone()),
                LiveKey::Redraw => self.shown = Buffer::empty(Rect::ZERO),
                _ => {}
            }
        }
    }
}

impl Observer for LiveScreen {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started(plan) => {
                self.model.start_run(plan);
                match self.terminal.take_over() {
                    Ok(()) => self.draw_screen(),
                    Err(_) => self.terminal.restore_terminal(),
                }
            }
            RunEvent::Point { point, .. } => self.model.begin_point(point),
            RunEvent::Closed(_) => self.model.finish_step(),
            RunEvent::Snapshot(live) => self.update_model(live),
            RunEvent::Outlier(outlier) => self.model.add_outlier(outlier),
            RunEvent::Standings(standings) => self.model.standings = standings.to_vec(),
            RunEvent::Warning(warning) => self.model.add_warning(warning),
            RunEvent::Input => self.handle_keys(),
            RunEvent::Finished(_) => self.terminal.restore_terminal(),
            _ => {}
        }
    }

    fn period(&self) -> Option<Duration> {
        Some(PERIOD)
    }

    fn input(&self) -> Option<BorrowedFd<'_>> {
        (self.listening && self.terminal.is_taken()).then(|| self.terminal.as_fd())
    }

    fn undo(&self) -> Option<UndoAction> {
        Some(UndoAction::RestoreTerminal(self.terminal.before()))
    }

    fn wants_end(&self) -> Option<&'static str> {
        self.view.ending.then_some("key q")
    }
}
