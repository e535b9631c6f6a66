//! Destination of notes: what a personality says that the original program would not print.

use anyhow::{Context as _, Result};
use latscope_engine::saver;
use latscope_process::clean::{Sequences, clean};
use latscope_process::{eprintln, stdout};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Variable of the environment that names the destination.
pub(crate) const VARIABLE: &str = "LATSCOPE_NOTES";

/// Standard stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardStream {
    Stdout,
    Stderr,
}

/// Destination of notes. By default they go to the standard stream that carries no figures, so that a script which
/// reads the figures gets nothing else.
#[derive(Debug, Clone, Default)]
pub enum NotesDestination {
    /// The standard stream without figures.
    #[default]
    Apart,
    /// Standard error, whatever else goes there.
    Stderr,
    /// A file, which grows.
    File(Arc<File>),
    /// Notes are dropped.
    Nowhere,
}

impl NotesDestination {
    /// Reads the value of [`VARIABLE`]: `stderr`, `none`, or the path of a file, to which notes are appended.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn from_variable(value: Option<OsString>) -> Result<NotesDestination> {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(NotesDestination::Apart) };
        match value.to_str() {
            Some("stderr") => Ok(NotesDestination::Stderr),
            Some("none") => Ok(NotesDestination::Nowhere),
            _ => {
                let file = saver::append(Path::new(&value));
                let file = file.with_context(|| format!("{VARIABLE}={}", value.display()))?;
                Ok(NotesDestination::File(Arc::new(file)))
            }
        }
    }

    /// Writes a line. `figures` is the stream that carries the figures of the program.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_line(&self, line: &str, figures: StandardStream) -> Result<()> {
        match (self, figures) {
            (NotesDestination::Nowhere, _) => {}
            (NotesDestination::File(file), _) => writeln!(&**file, "{}", clean(line, Sequences::None))?,
            (NotesDestination::Apart, StandardStream::Stderr) => stdout::print_text(&format!("{line}\n")),
            (NotesDestination::Apart, StandardStream::Stdout) | (NotesDestination::Stderr, _) => {
                eprintln!("{line}");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_appended_to_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes");
        for line in ["first", "second"] {
            let destination = NotesDestination::from_variable(Some(path.clone().into())).unwrap();
            destination.write_line(line, StandardStream::Stderr).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "first\nsecond\n");
        let error = NotesDestination::from_variable(Some(directory.path().into())).unwrap_err();
        assert!(error.to_string().starts_with("LATSCOPE_NOTES="), "{error}");
    }

    #[test]
    fn without_a_value_notes_stay_apart_from_figures() {
        let read = |value: &str| NotesDestination::from_variable(Some(value.into())).unwrap();
        assert!(matches!(NotesDestination::from_variable(None).unwrap(), NotesDestination::Apart));
        assert!(matches!(read(""), NotesDestination::Apart));
        assert!(matches!(read("stderr"), NotesDestination::Stderr));
        assert!(matches!(read("none"), NotesDestination::Nowhere));
    }
}
