//! Outputs for the status during a run: a FIFO, and a file in shared memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// FIFO whose readers get the status lines.
#[derive(Debug)]
pub struct Fifo {
    path: PathBuf,
    tried: Option<Instant>,
}

/// Interval between two attempts to find a reader.
const PAUSE: Duration = Duration::from_millis(500);

impl Fifo {
    /// Creates the FIFO at a path.
    ///
    /// # Errors
    /// The path exists already, or the FIFO cannot be created.
    pub fn create(path: &Path) -> io::Result<Fifo> {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0)?;
        Ok(Fifo { path: path.to_owned(), tried: None })
    }

    /// Writes the lines to a reader, if one waits. Looks for a reader at most twice a second.
    pub fn offer(&mut self, lines: &str) {
        use std::os::unix::fs::OpenOptionsExt;
        if self.tried.is_some_and(|tried| tried.elapsed() < PAUSE) {
            return;
        }
        self.tried = Some(Instant::now());
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        // Without a reader it cannot be opened; one that goes away at once is none.
        if let Ok(mut pipe) = OpenOptions::new().write(true).custom_flags(flags).open(&self.path) {
            let _ = pipe.write_all(lines.as_bytes());
        }
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// File in /dev/shm that holds the status as of the last SIGUSR2.
#[derive(Debug)]
pub struct Board {
    path: PathBuf,
}

impl Board {
    /// Path of this process's board in a directory.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(format!("cyclictest{}", std::process::id()))
    }

    /// Creates a board at a path.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: PathBuf) -> io::Result<Board> {
        // One of a process long dead that had this id; no link is followed.
        let _ = std::fs::remove_file(&path);
        File::create_new(&path)?;
        Ok(Board { path })
    }

    /// Writes a text to the board.
    pub fn put(&self, text: &str) {
        // A reader sees that it is old.
        let _ = std::fs::write(&self.path, text);
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_the_fifo_gets_the_lines_and_the_fifo_goes_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        let mut fifo = Fifo::create(&path).unwrap();
        assert!(Fifo::create(&path).is_err());
        fifo.offer("unread\n");
        fifo.tried = None;
        let mut reader = rustix::fs::open(&path, rustix::fs::OFlags::NONBLOCK, rustix::fs::Mode::empty())
            .map(File::from)
            .unwrap();
        fifo.offer("T: 0\n");
        fifo.offer("too soon\n");
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "T: 0\n");
        drop(fifo);
        assert!(!path.exists());
    }

    #[test]
    fn a_board_replaces_a_stale_one_and_goes_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = Board::path(directory.path());
        std::fs::write(&path, "stale").unwrap();
        let board = Board::create(path.clone()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        board.put("status");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "status");
        drop(board);
        assert!(!path.exists());
    }
}
