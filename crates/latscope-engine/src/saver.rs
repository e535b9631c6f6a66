//! Saves the report as results come in, at most once a second, and every now and
//! then while a step lasts, so that a crash loses little. The
//! finished report is saved where it is shown.

use crate::observers::{Event, Observer};
use anyhow::{Context, Result, anyhow, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use latscope_core::redact::Redactor;
use latscope_core::report::Report;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least time between two times that the file is written.
const LEAST: Duration = Duration::from_secs(1);

/// Keeps a file equal to the report so far.
#[derive(Debug, Default)]
pub struct Saver {
    path: PathBuf,
    every: Duration,
    saved: Option<Instant>,
    without_blocks: bool,
    /// True if the file was there before the run. It is kept until there is a figure to replace it.
    is_replacing: bool,
    /// True if a failure to save was reported.
    told: bool,
    /// True if what says whose machine it is is left out.
    redacts: bool,
}

impl Saver {
    /// A saver for `path`, which saves a step that lasts longer so often. Whether
    /// it can be written is tried at once, so that no run measures for a minute to
    /// learn it then.
    ///
    /// # Errors
    /// The directory does not exist or must not be written to.
    pub fn new(path: &Path, every: Duration) -> Result<Saver> {
        check(path)?;
        let (path, every) = (path.to_owned(), every.max(LEAST));
        let is_replacing = path.is_file();
        Ok(Saver { path, every, is_replacing, ..Saver::default() })
    }

    /// Returns the saver, which leaves out the samples in order of time if `leave_out` is true.
    #[must_use]
    pub fn without_blocks(self, leave_out: bool) -> Saver {
        Saver { without_blocks: leave_out, ..self }
    }

    /// Returns the saver, which leaves out what says whose machine it is if `redacts` is true.
    #[must_use]
    pub fn redacting(self, redacts: bool) -> Saver {
        Saver { redacts, ..self }
    }

    fn write(&self, report: &Report) -> Result<()> {
        let redacted = if self.redacts {
            Some(Redactor::default().report(report).context("cannot redact the result")?)
        } else {
            None
        };
        let report = redacted.as_ref().unwrap_or(report);
        let lean = self.without_blocks.then(|| report.without_blocks());
        // Packed in little time: the measurement goes on.
        save_at(&self.path, lean.as_ref().unwrap_or(report), Compression::fast())
    }

    fn save(&mut self, report: &Report, tell: bool) {
        // It is tried again, in the end with an error; a crash until then would lose what was measured.
        if let Err(error) = self.write(report)
            && tell
            && !std::mem::replace(&mut self.told, true)
        {
            latscope_process::eprintln!("latscope: {error:#}; measuring goes on, and saving is tried again");
        }
        self.saved = Some(Instant::now());
    }
}

impl Observer for Saver {
    fn observe(&mut self, event: &Event) {
        let (report, due) = match event {
            Event::Closed(report) | Event::Checkpoint(report) => {
                let keeps = self.is_replacing && !report.has_figures();
                (report, !keeps && self.saved.is_none_or(|saved| saved.elapsed() >= LEAST))
            }
            // What a verdict rests on is not lost, whatever becomes of the run.
            Event::Exceeded(report) => (report, true),
            _ => return,
        };
        if due && !is_special(&self.path) {
            // What lasts only as long as a point is said at the end.
            self.save(report, !matches!(event, Event::Closed(_)));
        }
    }

    fn checkpoints(&self) -> Option<Duration> {
        (!is_special(&self.path)).then_some(self.every)
    }
}

/// Tries whether [`replace`] could write a file, and leaves nothing. A disk that is full by then cannot be foreseen,
/// nor what becomes of a pipe: opening it would end its reader.
///
/// # Errors
/// The file is a directory, in a directory that does not exist or must not be written to, another user's in a
/// directory where only owners may replace files, or a device that takes nothing.
pub fn check(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("cannot write {}: it is a directory, choose a file", path.display());
    }
    if is_special(path) {
        return if is_pipe(path) { Ok(()) } else { write_nothing(path).with_context(|| unwritable(path)) };
    }
    let file = tempfile::Builder::new()
        .prefix(".latscope-")
        .tempfile_in(directory_of(path))
        .map_err(|error| refused(path, &error))?;
    if is_of_another(path, file.as_file()).unwrap_or(false) {
        bail!(
            "{}: it is another user's, in a directory where only owners replace files: {ELSEWHERE}",
            unwritable(path)
        );
    }
    Ok(())
}

/// Tries whether a file could be written in its place, and leaves nothing. What becomes of a pipe cannot be foreseen:
/// opening it would end its reader.
///
/// # Errors
/// The file cannot be made, or not be opened for writing.
pub fn check_in_place(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(_) if is_pipe(path) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            File::options().write(true).create_new(true).open(path)?;
            fs::remove_file(path)
        }
        _ => write_nothing(path),
    }
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// A device says whether it can be opened, and /dev/full that it is full.
fn write_nothing(path: &Path) -> io::Result<()> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    File::options().write(true).custom_flags(flags).open(path)?.write(&[]).map(|_| ())
}

/// Returns true if a file of latscope must not replace the file at `path`: its directory is sticky, and both belong to
/// other users.
fn is_of_another(path: &Path, ours: &File) -> io::Result<bool> {
    let (file, directory) = (fs::symlink_metadata(path)?, fs::metadata(directory_of(path))?);
    let us = ours.metadata()?.uid();
    let others = ![file.uid(), directory.uid()].contains(&us);
    Ok(directory.mode() & Mode::SVTX.bits() != 0 && us != 0 && others)
}

/// The error without the name of a temporary file, which says nothing to the user.
fn refused(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("{}: {}: {ELSEWHERE}", unwritable(path), of_directory(error.kind()))
}

/// Text for an error of a directory of which only the kind is known.
fn of_directory(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "no such directory",
        ErrorKind::NotADirectory => "a part of its path is no directory",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::ReadOnlyFilesystem => "its file system is read-only",
        ErrorKind::StorageFull => "no space left on its file system",
        ErrorKind::QuotaExceeded => "the quota of its file system is used up",
        _ => "its directory refuses new files",
    }
}

/// Remedy for a directory that does not allow the file.
const ELSEWHERE: &str = "choose a file in a directory that can be written to";

fn unwritable(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the absolute place of a file, however its directory is written. A link is replaced itself.
pub fn place(path: &Path) -> PathBuf {
    let directory = directory_of(path);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    path.file_name().map_or(directory.clone(), |name| directory.join(name))
}

/// A device or pipe is written to; replacing it would destroy it.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Saves a report atomically: readers see the old file or the new one. The file is packed by gzip if its name ends with
/// `.gz`, as are those of [`replace`].
///
/// # Errors
/// The directory cannot be written to, or the disk is full; then the old file
/// is still there and nothing else is.
pub fn save(path: &Path, report: &Report) -> Result<()> {
    save_at(path, report, Compression::default())
}

fn save_at(path: &Path, report: &Report, level: Compression) -> Result<()> {
    replace_with(path, |file| packed(path, file, level, |to| report.write_json(to)))
}

/// Writes to a file, through gzip if its name asks for that.
fn packed(
    path: &Path,
    file: &mut File,
    level: Compression,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        let mut buffer = BufWriter::new(file);
        write(&mut buffer)?;
        return buffer.flush();
    }
    // JSON comes in small pieces, each of which would be a call of the packer.
    let mut buffer = BufWriter::with_capacity(1 << 16, GzEncoder::new(file, level));
    write(&mut buffer)?;
    buffer.into_inner().map_err(io::IntoInnerError::into_error)?.finish().map(drop)
}

/// Replaces a file that the user named by a text in the same way.
///
/// # Errors
/// As of [`save`].
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    replace_with(path, |file| packed(path, file, Compression::default(), |to| to.write_all(text)))
}

/// Replaces whatever has this name, which is not the user's, by a file: what a link leads to is not
/// touched, nor is a device or pipe written to.
///
/// # Errors
/// As of [`save`].
pub fn replace_name(path: &Path, text: &[u8]) -> Result<()> {
    replace_file(path, |file| file.write_all(text))
}

/// Writes to a device or pipe, which the user named, or replaces a file.
fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    if is_special(path) {
        let mut file = open_special(path).with_context(|| unwritable(path))?;
        return write(&mut file).with_context(|| unwritable(path));
    }
    replace_file(path, write)
}

/// Time for which a pipe is waited on that no process reads.
const READER_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a device or pipe for writing. Opening a pipe that no process reads would last until one does, and no signal
/// ends it while the signals are those of a run.
fn open_special(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let end = Instant::now() + READER_TIMEOUT;
    let file = loop {
        match File::options().write(true).custom_flags(flags).open(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe(path) => {
                if Instant::now() > end {
                    return Err(io::Error::new(ErrorKind::TimedOut, "no process reads this pipe"));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => break opened?,
        }
    };
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

fn replace_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(".latscope-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(directory_of(path))
        .map_err(|error| refused(path, &error))?;
    write(file.as_file_mut()).and_then(|()| file.as_file().sync_data()).with_context(|| unwritable(path))?;
    file.persist(path).map_err(|error| error.error).with_context(|| unwritable(path))?;
    sync_directory(directory_of(path));
    Ok(())
}

/// Makes a new name last, so that a power cut does not bring the old file back. Not every file system can;
/// the file itself is written by then.
fn sync_directory(path: &Path) {
    let _ = File::open(path).and_then(|directory| directory.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_file_can_be_written_in_its_place_is_known_before_and_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        check_in_place(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "old").unwrap();
        check_in_place(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let beyond = directory.path().join("none/file");
        for refused in [directory.path(), &beyond, Path::new("/dev/full")] {
            assert!(check_in_place(refused).is_err(), "{}", refused.display());
        }
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error_and_one_with_a_reader_gets_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        let error = replace(&path, b"text").unwrap_err();
        assert!(format!("{error:#}").contains("no process reads this pipe"), "{error:#}");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read_to_string(path).unwrap()
        });
        replace(&path, b"text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(is_pipe(&path));
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        replace(&path, b"old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        let nowhere = directory.path().join("missing/result.json");
        let error = replace(&nowhere, b"x").unwrap_err();
        assert!(error.to_string().contains("missing/result.json"), "{error}");
    }

    #[test]
    fn a_name_that_is_not_the_users_is_replaced_whatever_has_it() {
        let place = tempfile::tempdir().unwrap();
        let (link, target) = (place.path().join("link"), place.path().join("target"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &target, Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace_name(&link, b"text").unwrap();
        assert!(is_pipe(&target) && fs::symlink_metadata(&link).unwrap().is_file());
        replace_name(&target, b"text").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"text");
    }

    #[test]
    fn a_full_device_is_an_error_and_stays_a_device() {
        let error = replace(Path::new("/dev/full"), &[b'x'; 1 << 16]).unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
        let error = check(Path::new("/dev/full")).unwrap_err();
        assert!(format!("{error:#}").contains("No space left"), "{error:#}");
        check(Path::new("/dev/null")).unwrap();
        assert!(is_special(Path::new("/dev/full")));
    }
}
