//! Saves the report as results come in, at most once a second, and every now and
//! then while a step lasts, so that a crash loses little. The
//! finished report is saved where it is shown.

use crate::observers::{Observer, RunEvent};
use anyhow::{Context, Result, anyhow, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use latscope_core::redact::Redactor;
use latscope_core::report::Report;
use latscope_os::signal::{self, TERMINATION};
use latscope_process::files::{self, Destination, HeldDirectory, Looked, directory_of, inspect_destination};
use latscope_process::output::BlockingOutput;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
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
        check_writable(path)?;
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
            Some(Redactor::default().redact_report(report).context("cannot redact the result")?)
        } else {
            None
        };
        let report = redacted.as_ref().unwrap_or(report);
        let lean = self.without_blocks.then(|| report.without_blocks());
        // Packed in little time: the measurement goes on.
        save_at(&self.path, lean.as_ref().unwrap_or(report), Compression::fast())
    }

    fn save_or_warn(&mut self, report: &Report, tell: bool) {
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
    fn observe(&mut self, event: &RunEvent) {
        let (report, due) = match event {
            RunEvent::Closed(report) | RunEvent::Checkpoint(report) => {
                let keeps = self.is_replacing && !report.has_figures();
                (report, !keeps && self.saved.is_none_or(|saved| saved.elapsed() >= LEAST))
            }
            // What a verdict rests on is not lost, whatever becomes of the run.
            RunEvent::Exceeded(report) => (report, true),
            _ => return,
        };
        if due && !is_special(&self.path) {
            // What lasts only as long as a point is said at the end.
            self.save_or_warn(report, !matches!(event, RunEvent::Closed(_)));
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
pub fn check_writable(path: &Path) -> Result<()> {
    match inspect_destination(path) {
        Ok(Destination::Directory) => {
            bail!("cannot write {}: it is a directory, choose a file", path.display())
        }
        Ok(Destination::Special(looked)) => return write_nothing(&looked).with_context(|| unwritable(path)),
        // The directory says what is wrong.
        _ => {}
    }
    let refused = |error| refusal_error(path, &error);
    let held = HeldDirectory::of_file(path).map_err(refused)?;
    let file = tempfile::Builder::new().prefix(".latscope-").tempfile_in(held.path()).map_err(refused)?;
    if is_of_another(&held.path_to(path), file.as_file()).unwrap_or(false) {
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
    match inspect_destination(path)? {
        Destination::Free => {
            let held = HeldDirectory::of_file(path)?;
            File::options().write(true).create_new(true).open(held.path_to(path))?;
            fs::remove_file(held.path_to(path))
        }
        Destination::File(looked) if looked.is_hard_link() => Err(hard_link()),
        Destination::File(looked) | Destination::Special(looked) => write_nothing(&looked),
        Destination::Directory => Err(Errno::ISDIR.into()),
        Destination::Foreign => Err(foreign()),
    }
}

fn foreign() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "it is a link of another user: choose another name")
}

fn hard_link() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "it is a hard link, which can lead to any file: remove it")
}

/// A device says whether it can be opened, and /dev/full that it is full.
fn write_nothing(looked: &Looked) -> io::Result<()> {
    if looked.kind() == FileType::Fifo {
        return Ok(());
    }
    looked.open(OFlags::WRONLY | OFlags::NONBLOCK)?.write(&[]).map(|_| ())
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
fn refusal_error(path: &Path, error: &io::Error) -> anyhow::Error {
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
        ErrorKind::Other => files::FOREIGN,
        ErrorKind::QuotaExceeded => "the quota of its file system is used up",
        _ => "its directory refuses new files",
    }
}

/// Remedy for a directory that does not allow the file.
const ELSEWHERE: &str = "choose a file in a directory that can be written to";

fn unwritable(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Returns the absolute place of a file, however its directory is written. A link is replaced itself.
pub fn absolute_path(path: &Path) -> PathBuf {
    let directory = directory_of(path);
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    path.file_name().map_or(directory.clone(), |name| directory.join(name))
}

/// A device or pipe is written to; replacing it would destroy it.
pub fn is_special(path: &Path) -> bool {
    matches!(inspect_destination(path), Ok(Destination::Special(_) | Destination::Directory))
}

/// Saves a report atomically: readers see the old file or the new one. The file is packed by gzip if its name ends with
/// `.gz`, as are those of [`replace`].
///
/// # Errors
/// The directory cannot be written to, or the disk is full; then the old file
/// is still there and nothing else is.
pub fn save_report(path: &Path, report: &Report) -> Result<()> {
    save_at(path, report, Compression::default())
}

fn save_at(path: &Path, report: &Report, level: Compression) -> Result<()> {
    replace_with(path, |file| packed(path, file, level, |to| report.write_json(to)))
}

/// Writes to a file, through gzip if its name asks for that.
fn packed(
    path: &Path,
    file: &mut dyn Write,
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
/// As of [`save_report`].
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    replace_with(path, |file| packed(path, file, Compression::default(), |to| to.write_all(text)))
}

/// Replaces whatever has this name, which is not the user's, by a file: what a link leads to is not
/// touched, nor is a device or pipe written to.
///
/// # Errors
/// As of [`save_report`].
pub fn replace_name(path: &Path, text: &[u8]) -> Result<()> {
    let mut draft = Draft::of_name(path)?;
    draft.write_all(text).with_context(|| unwritable(path))?;
    draft.commit_file()
}

/// Writes to a device or pipe, which the user named, or replaces a file.
fn replace_with(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut draft = Draft::create_draft(path)?;
    write(&mut draft).with_context(|| unwritable(path))?;
    draft.commit_file()
}

/// File that gets its name once it is complete; until then the old file has it. A device or pipe is written to at once.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    New(tempfile::NamedTempFile, HeldDirectory),
    Special(BlockingOutput<File>),
}

impl Draft {
    /// Begins what the user wants at `path`.
    ///
    /// # Errors
    /// The directory cannot be written to, or no process reads the pipe.
    pub fn create_draft(path: &Path) -> Result<Draft> {
        match inspect_destination(path) {
            Ok(Destination::Special(looked)) => {
                let to =
                    To::Special(BlockingOutput(open_special(&looked).with_context(|| unwritable(path))?));
                Ok(Draft { path: path.to_owned(), to })
            }
            // Permissions that another user chose are not those of root's file.
            Ok(Destination::File(looked)) if looked.is_ours() || !geteuid().is_root() => {
                Draft::new(path, Some(looked.mode()))
            }
            // Making the file says what is wrong.
            _ => Draft::of_name(path),
        }
    }

    /// Begins a file that will replace whatever has this name.
    fn of_name(path: &Path) -> Result<Draft> {
        Draft::new(path, None)
    }

    /// Begins a file with these permissions, or with those of new files.
    fn new(path: &Path, mode: Option<Mode>) -> Result<Draft> {
        let held = HeldDirectory::of_file(path).map_err(|error| refusal_error(path, &error))?;
        let file = tempfile::Builder::new()
            .prefix(".latscope-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(held.path())
            .map_err(|error| refusal_error(path, &error))?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(file.as_file(), mode).with_context(|| unwritable(path))?;
        }
        Ok(Draft { path: path.to_owned(), to: To::New(file, held) })
    }

    /// Path of what is not complete yet, which is to be removed if this process is killed. A device or pipe has none.
    pub fn unfinished(&self) -> Option<PathBuf> {
        match &self.to {
            To::New(file, _) => Some(directory_of(&self.path).join(file.path().file_name()?)),
            To::Special(_) => None,
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// The disk is full, or the name cannot be given.
    pub fn commit_file(self) -> Result<()> {
        let To::New(file, held) = self.to else { return Ok(()) };
        let cannot = || unwritable(&self.path);
        file.as_file().sync_data().with_context(cannot)?;
        file.persist(held.path_to(&self.path)).map_err(|error| error.error).with_context(cannot)?;
        sync_directory(&held.path());
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::New(file, _) => file.write(bytes),
            To::Special(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a file in its place, from its beginning: it stays the same file. A pipe is waited for as of [`save_report`].
///
/// # Errors
/// The file cannot be opened or written, or no process reads the pipe.
pub fn write_in_place(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = match inspect_destination(path)? {
        Destination::Special(looked) => return BlockingOutput(open_special(&looked)?).write_all(text),
        Destination::File(looked) if looked.is_hard_link() => return Err(hard_link()),
        Destination::File(looked) => looked.open(OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK)?,
        Destination::Free => File::create_new(HeldDirectory::of_file(path)?.path_to(path))?,
        Destination::Directory => return Err(Errno::ISDIR.into()),
        Destination::Foreign => return Err(foreign()),
    };
    file.write_all(text)
}

/// Opens a file to append to it, and makes it if nothing has its name. A pipe is waited for as of [`save_report`].
///
/// # Errors
/// The file cannot be opened, or no process reads the pipe.
pub fn append(path: &Path) -> io::Result<File> {
    match inspect_destination(path)? {
        Destination::Special(looked) => open_special(&looked),
        Destination::File(looked) if looked.is_hard_link() => Err(hard_link()),
        Destination::File(looked) => looked.open(OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK),
        Destination::Free => {
            File::options().append(true).create_new(true).open(HeldDirectory::of_file(path)?.path_to(path))
        }
        Destination::Directory => Err(Errno::ISDIR.into()),
        Destination::Foreign => Err(foreign()),
    }
}

/// Time for which all pipes together are waited on that no process reads, and the least time for each of them.
const READER_TIMEOUT: Duration = Duration::from_secs(2);
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

/// Part of this time that is over.
static WAITED: Mutex<Duration> = Mutex::new(Duration::ZERO);

/// Time between two tries to open a pipe.
const PAUSE: Duration = Duration::from_millis(20);

/// Opens a device or pipe for writing. Opening a pipe that no process reads would last until one does, and no signal
/// ends it while the signals are those of a run.
fn open_special(looked: &Looked) -> io::Result<File> {
    let began = Instant::now();
    let mut waited = WAITED.lock().unwrap_or_else(PoisonError::into_inner);
    let file = loop {
        match looked.open(OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK) {
            Err(error)
                if error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
                    && looked.kind() == FileType::Fifo =>
            {
                let is_over = *waited >= READER_TIMEOUT && began.elapsed() >= LEAST_TIMEOUT;
                if is_over || signal::pending(&TERMINATION).is_some() {
                    return Err(io::Error::new(ErrorKind::TimedOut, "no process reads this pipe"));
                }
                std::thread::sleep(PAUSE);
                *waited += PAUSE;
            }
            opened => break opened?,
        }
    };
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
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
        let reader = std::thread::spawn({
            let path = path.clone();
            move || std::fs::read_to_string(path).unwrap()
        });
        replace(&path, b"text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        // The second error takes a moment only.
        for _ in 0..2 {
            let error = replace(&path, b"text").unwrap_err();
            assert!(format!("{error:#}").contains("no process reads this pipe"), "{error:#}");
        }
        assert!(is_special(&path));
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
    fn a_file_that_is_replaced_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result.json");
        for mode in [0o600, 0o640] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let before = fs::metadata(&path).unwrap().ino();
            replace(&path, b"new").unwrap();
            let about = fs::metadata(&path).unwrap();
            assert_eq!(about.mode() & 0o7777, mode);
            assert!(about.ino() != before && fs::read(&path).unwrap() == b"new");
        }
    }

    #[test]
    fn a_name_that_is_not_the_users_is_replaced_whatever_has_it() {
        let place = tempfile::tempdir().unwrap();
        let (link, target) = (place.path().join("link"), place.path().join("target"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &target, Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace_name(&link, b"text").unwrap();
        assert!(is_special(&target) && fs::symlink_metadata(&link).unwrap().is_file());
        replace_name(&target, b"text").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"text");
    }

    #[test]
    fn a_full_device_is_an_error_and_stays_a_device() {
        let error = replace(Path::new("/dev/full"), &[b'x'; 1 << 16]).unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
        let error = check_writable(Path::new("/dev/full")).unwrap_err();
        assert!(format!("{error:#}").contains("No space left"), "{error:#}");
        check_writable(Path::new("/dev/null")).unwrap();
        assert!(is_special(Path::new("/dev/full")));
    }
}
