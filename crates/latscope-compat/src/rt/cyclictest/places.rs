//! Outputs for the status during a run: a FIFO, and a file in shared memory.

use latscope_process::files::{HeldDirectory, Looked};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// FIFO whose readers get the status lines.
#[derive(Debug)]
pub struct Fifo {
    path: PathBuf,
    directory: HeldDirectory,
    /// The FIFO itself, whatever has its name by now.
    looked: Looked,
    /// True if it was made here, and goes away with this value.
    made: bool,
    tried: Option<Instant>,
}

/// Interval between two attempts to find a reader.
const PAUSE: Duration = Duration::from_millis(500);

impl Fifo {
    /// Creates the FIFO at a path, or uses the one that is there, for which a reader may wait already.
    ///
    /// # Errors
    /// Something other than a FIFO is there, or the FIFO cannot be created.
    pub fn create_or_reuse(path: &Path) -> io::Result<Fifo> {
        let held = HeldDirectory::of_file(path)?;
        let look = || Looked::at_name(&held.path_to(path));
        let there = look().is_ok_and(|looked| looked.kind() == FileType::Fifo);
        if !there {
            mknodat(CWD, held.path_to(path), FileType::Fifo, Mode::from_raw_mode(0o644), 0)?;
        }
        let looked = look()?;
        if looked.kind() != FileType::Fifo {
            return Err(io::Error::other("another file took the name of the FIFO"));
        }
        Ok(Fifo { path: path.to_owned(), directory: held, looked, made: !there, tried: None })
    }

    /// Returns true if the FIFO was not there before.
    pub fn is_made_here(&self) -> bool {
        self.made
    }

    /// Writes the lines to a reader, if one waits. Looks for a reader at most twice a second.
    pub fn write_to_reader(&mut self, lines: &str) {
        if self.tried.is_some_and(|tried| tried.elapsed() < PAUSE) {
            return;
        }
        self.tried = Some(Instant::now());
        // Without a reader it cannot be opened; one that goes away at once is none.
        if let Ok(mut pipe) = self.looked.open(OFlags::WRONLY | OFlags::NONBLOCK) {
            let _ = pipe.write_all(lines.as_bytes());
        }
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        if self.made {
            let _ = std::fs::remove_file(self.directory.path_to(&self.path));
        }
    }
}

/// File in /dev/shm that holds the status as of the last SIGUSR2.
#[derive(Debug)]
pub struct CyclictestStatusFile {
    path: PathBuf,
    file: File,
}

impl CyclictestStatusFile {
    /// Path of this process's board in a directory.
    pub fn path(directory: &Path) -> PathBuf {
        directory.join(format!("cyclictest{}", std::process::id()))
    }

    /// Creates a board at a path.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: PathBuf) -> io::Result<CyclictestStatusFile> {
        // One of a process long dead that had this id; no link is followed.
        let _ = std::fs::remove_file(&path);
        let file = File::create_new(&path)?;
        Ok(CyclictestStatusFile { path, file })
    }

    /// Writes a text to the board.
    pub fn write_status(&self, text: &str) {
        // A reader sees that it is old.
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(text.as_bytes(), 0));
    }
}

impl Drop for CyclictestStatusFile {
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
        let mut fifo = Fifo::create_or_reuse(&path).unwrap();
        // Another's is used, and stays.
        drop(Fifo::create_or_reuse(&path).unwrap());
        assert!(path.exists());
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Fifo::create_or_reuse(&file).is_err());
        fifo.write_to_reader("unread\n");
        fifo.tried = None;
        let mut reader = rustix::fs::open(&path, rustix::fs::OFlags::NONBLOCK, rustix::fs::Mode::empty())
            .map(File::from)
            .unwrap();
        fifo.write_to_reader("T: 0\n");
        fifo.write_to_reader("too soon\n");
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).unwrap();
        assert_eq!(text, "T: 0\n");
        drop(fifo);
        assert!(!path.exists());
    }

    #[test]
    fn a_board_replaces_a_stale_one_and_goes_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = CyclictestStatusFile::path(directory.path());
        std::fs::write(&path, "stale").unwrap();
        let board = CyclictestStatusFile::create(path.clone()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        board.write_status("status");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "status");
        drop(board);
        assert!(!path.exists());
    }
}
