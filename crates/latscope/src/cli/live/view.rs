//! Choices made with the keys: pure.

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiveKey {
    Quit,
    Next,
    Previous,
    Help,
    Pause,
    Redraw,
}

/// The keys in what a terminal sent; what means nothing is passed over.
pub(super) fn keys(mut bytes: &[u8]) -> Vec<LiveKey> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        let (key, rest) = match (first, rest) {
            (0x1b, [b'[' | b'O', rest @ ..]) => sequence(rest),
            (b'q' | b'Q', _) => (Some(LiveKey::Quit), rest),
            (b'\t', _) => (Some(LiveKey::Next), rest),
            (b'h' | b'H' | b'?', _) => (Some(LiveKey::Help), rest),
            (b'p' | b'P' | b' ', _) => (Some(LiveKey::Pause), rest),
            (0x0c, _) => (Some(LiveKey::Redraw), rest),
            _ => (None, rest),
        };
        keys.extend(key);
        bytes = rest;
    }
    keys
}

/// Parses the bytes behind a control sequence introducer: parameters, then a final byte.
fn sequence(bytes: &[u8]) -> (Option<LiveKey>, &[u8]) {
    let parameters = bytes.iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
    let (last, rest) = match &bytes[parameters..] {
        [last, rest @ ..] => (*last, rest),
        [] => (0, &[][..]),
    };
    let key = match last {
        b'B' | b'C' => Some(LiveKey::Next),
        b'A' | b'D' | b'Z' => Some(LiveKey::Previous),
        _ => None,
    };
    (key, rest)
}

/// Part of a model that is shown, and options of its display.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LiveViewState {
    /// Number of the row whose distribution is shown; 0 is all.
    pub selected: usize,
    /// True if the help is shown in the place of the outliers.
    pub help: bool,
    /// True if the screen is paused.
    pub paused: bool,
    /// True if the user wants the run to end.
    pub ending: bool,
}

impl LiveViewState {
    /// Returns what the head says of the drawing: nothing, as long as it goes on.
    pub fn drawing_state(&self) -> &'static str {
        match (self.ending, self.paused) {
            (true, _) => "ending … ",
            (_, true) => "PAUSED, still measuring  ",
            _ => "",
        }
    }

    /// Returns what the key p does.
    pub fn pause_key(&self) -> &'static str {
        if self.paused { "p go on" } else { "p pause" }
    }

    /// A key was pressed while there were so many rows to choose from.
    pub fn press(&mut self, key: LiveKey, choices: usize) {
        let choices = choices.max(1);
        match key {
            LiveKey::Quit => self.ending = true,
            LiveKey::Next => self.selected = (self.selected + 1) % choices,
            LiveKey::Previous => self.selected = (self.selected + choices - 1) % choices,
            LiveKey::Help => self.help = !self.help,
            LiveKey::Pause => self.paused = !self.paused,
            LiveKey::Redraw => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_noise() {
        use LiveKey::*;
        assert_eq!(keys(b"q\thp\x0c"), [Quit, Next, Help, Pause, Redraw]);
        assert_eq!(keys(b"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[Z"), [Previous, Next, Next, Previous, Previous]);
        assert_eq!(keys(b"\x1bOA\x1bOB"), [Previous, Next]);
        // With modifiers; a function key; a lone escape; a sequence cut off.
        assert_eq!(keys(b"\x1b[1;5C"), [Next]);
        assert_eq!(keys(b"\x1b[15~xyz\xc3\xa9\x1b"), []);
        assert_eq!(keys(b"\x1b["), []);
    }

    #[test]
    fn the_choice_goes_round() {
        let mut view = LiveViewState::default();
        let mut press = |key| {
            view.press(key, 3);
            view.selected
        };
        assert_eq!(
            [LiveKey::Next, LiveKey::Next, LiveKey::Next, LiveKey::Previous].map(&mut press),
            [1, 2, 0, 2]
        );
        view.press(LiveKey::Next, 1);
        assert_eq!(view.selected, 0);
        view.press(LiveKey::Pause, 1);
        view.press(LiveKey::Quit, 1);
        assert!(view.paused && view.ending && !view.help);
    }
}
