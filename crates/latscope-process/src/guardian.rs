//! Guardian: a small process that undoes changes of a run which would outlast their holder. A change is journalled to
//! it before it is made. The guardian undoes it on request, and undoes all remaining changes when its pipe closes. The
//! normal end, a panic, a signal and SIGKILL of the coordinator all take this one path.

use super::{not_restored, process_group};
use crate::files::{self, HeldDirectory};
use crate::halted::{Standstill, is_halted, resume};
use crate::leftover::Leftover;
use crate::role::{self, MessageSocket, ProcessRole};
pub use crate::undo::UndoAction;
use anyhow::{Context, Result};
use latscope_os::signal::{self, TERMINATION};
use latscope_os::worker::{self, Lifetime};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

#[derive(Serialize, Deserialize)]
enum GuardianMessage {
    Journal(u64, UndoAction),
    Undo(u64),
    Forget(u64),
}

/// The coordinator's end of the pipe to the guardian, a process that starts with the first change: most runs change
/// nothing.
#[derive(Debug, Default)]
pub struct Guardian(RefCell<Option<GuardianProcess>>);

#[derive(Debug)]
struct GuardianProcess {
    child: Child,
    messages: Option<MessageSocket>,
    next: u64,
}

/// A change in the journal, for [`Guardian::undo`].
#[derive(Debug)]
#[must_use = "what is not undone stays until the run ends"]
pub struct Ticket {
    id: u64,
    undo: UndoAction,
}

impl Guardian {
    /// Journals how to undo a change that is about to be made. The guardian has the entry when this returns.
    ///
    /// # Errors
    /// The guardian does not start, or has ended; then the change must not be made.
    pub fn journal(&self, undo: UndoAction) -> Result<Ticket> {
        let mut process = self.0.borrow_mut();
        let process = match &mut *process {
            Some(process) => process,
            none => none.insert(GuardianProcess::start_process()?),
        };
        process.next += 1;
        process.send_and_wait(&GuardianMessage::Journal(process.next, undo.clone()))?;
        Ok(Ticket { id: process.next, undo })
    }

    /// Journals a leftover, which is removed when this is dropped.
    ///
    /// # Errors
    /// The guardian does not start, or has ended; then the leftover must not be made.
    pub fn journal_leftover(&self, leftover: &Leftover) -> Result<()> {
        let _: Ticket = self.journal(UndoAction::Remove(leftover.clone()))?;
        Ok(())
    }

    /// Undoes a change now; returns when it is done.
    ///
    /// # Errors
    /// The guardian has ended. The change is undone nevertheless.
    pub fn undo(&self, ticket: Ticket) -> Result<()> {
        let said = self.send_to_guardian(&GuardianMessage::Undo(ticket.id));
        if said.is_err() {
            revert(&ticket.undo);
        }
        said
    }

    /// Takes a change out of the journal: it is undone already, or must stay.
    ///
    /// # Errors
    /// The guardian has ended.
    pub fn forget(&self, ticket: Ticket) -> Result<()> {
        self.send_to_guardian(&GuardianMessage::Forget(ticket.id))
    }

    /// Makes a fresh directory in `parent` that is removed at the end of the run. In place of the directory for
    /// temporary files one in memory does.
    ///
    /// # Errors
    /// The directory cannot be made; the text names it.
    pub fn scratch_directory(&self, parent: &Path) -> Result<(PathBuf, Ticket)> {
        let error = match self.directory_in(parent) {
            Err(error) if parent == std::env::temp_dir() => error,
            made => return made,
        };
        self.directory_in(Path::new("/dev/shm")).map_err(|_| {
            error.context(
                "no directory for temporary files can be written: set TMPDIR (docker: --tmpfs /tmp:exec)",
            )
        })
    }

    fn directory_in(&self, parent: &Path) -> Result<(PathBuf, Ticket)> {
        let path = parent.join(format!(".latscope-{:016x}", random()));
        let ticket = self.journal(UndoAction::RemoveDirectory(path.clone()))?;
        if let Err(error) = DirBuilder::new().mode(0o700).create(&path) {
            // Not made by us: it must not be removed either.
            self.forget(ticket)?;
            return Err(error).with_context(|| format!("cannot make a directory in {}", parent.display()));
        }
        Ok((path, ticket))
    }

    fn send_to_guardian(&self, entry: &GuardianMessage) -> Result<()> {
        self.0.borrow_mut().as_mut().context("nothing was journalled")?.send_and_wait(entry)
    }
}

impl GuardianProcess {
    fn start_process() -> Result<GuardianProcess> {
        let (child, messages) = role::start_process(&[ROLE.name], &[], Lifetime::OnItsOwn)
            .context("the guardian process does not start")?;
        Ok(GuardianProcess { child, messages: Some(messages), next: 0 })
    }

    fn send_and_wait(&mut self, entry: &GuardianMessage) -> Result<()> {
        let messages = self.messages.as_mut().context("the guardian has ended")?;
        let sent = messages.send_message(entry).is_ok();
        let guardian = &mut self.child;
        let answers = sent && wait_until_done(guardian.id(), || messages.is_ready(LOOK).unwrap_or(true));
        let done = if answers { messages.receive_answer(None)? } else { None };
        done.context("the guardian process is gone: changes could not be undone after a crash")
    }
}

impl Drop for GuardianProcess {
    fn drop(&mut self) {
        // The closed socket is the order to undo the rest; then wait until that is done.
        self.messages = None;
        let child = &mut self.child;
        wait_until_done(child.id(), || {
            let ended = !matches!(child.try_wait(), Ok(None));
            if !ended {
                std::thread::sleep(Duration::from_millis(1));
            }
            ended
        });
    }
}

/// Time for which a guardian is waited for once the run is to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two looks at a guardian that does not answer.
const LOOK: Duration = Duration::from_millis(100);

/// Waits for a guardian until it is `done`. One that a signal stopped goes on: what it does must be done. Returns false
/// if it does not come to that although the run is to end.
fn wait_until_done(guardian: u32, mut done: impl FnMut() -> bool) -> bool {
    let (began, mut standstill) = (Instant::now(), Standstill::default());
    while !done() {
        if began.elapsed() >= PATIENCE && signal::pending(&TERMINATION).is_some() {
            return false;
        }
        if standstill.note_look(is_halted(guardian)) {
            resume(guardian);
        }
    }
    true
}

/// The guardian process: keeps the journal and undoes it.
pub(crate) const ROLE: ProcessRole = ProcessRole { name: "__guardian", terminates: false, main };

fn main(_: &[String]) -> Result<()> {
    // From the background, too, a terminal can be put in order.
    latscope_os::signal::ignore(SIGTTOU);
    let mut messages = MessageSocket::inherited()
        .context("a guardian is started by latscope itself: run `latscope survey`")?;
    let mut journal: Vec<(u64, JournalChange)> = Vec::new();
    loop {
        let entry = match messages.receive_message() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(error) => {
                crate::eprintln!("latscope: the guardian undoes what it knows of: {error:#}");
                break;
            }
        };
        if messages.send_answer(&apply_message(entry, &mut journal)).is_err() {
            break;
        }
    }
    journal.iter().rev().for_each(|(_, change)| change.revert());
    Ok(())
}

/// Does what a message asks for.
///
/// # Errors
/// The change could not be undone: it must not be made.
fn apply_message(entry: GuardianMessage, journal: &mut Vec<(u64, JournalChange)>) -> Result<()> {
    match entry {
        GuardianMessage::Journal(id, undo) => {
            let cannot = format!("it is not made, since this could not be undone later: {undo}");
            journal.push((id, JournalChange::new(undo).context(cannot)?));
        }
        GuardianMessage::Undo(id) => {
            journal.extract_if(.., |(entry, _)| *entry == id).for_each(|(_, change)| change.revert());
        }
        GuardianMessage::Forget(id) => journal.retain(|(entry, _)| *entry != id),
    }
    Ok(())
}

/// Change in the journal, and what can not be opened any more once it is made.
struct JournalChange(UndoAction, Option<OwnedFd>);

impl JournalChange {
    fn new(undo: UndoAction) -> io::Result<JournalChange> {
        let held = if let UndoAction::Remove(leftover) = &undo { leftover.open_handle()? } else { None };
        Ok(JournalChange(undo, held))
    }

    fn revert(&self) {
        let (UndoAction::Remove(leftover), Some(held)) = (&self.0, &self.1) else { return revert(&self.0) };
        leftover.release_terminal(held);
        revert_by(&self.0, || leftover.remove_held(held));
    }
}

/// A random number for a name that no process can have taken before, not even on purpose.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

const SIGTTOU: i32 = 22;

fn undo(change: &UndoAction) -> io::Result<()> {
    match change {
        UndoAction::RemoveDirectory(path) => {
            HeldDirectory::of_file(path).and_then(|held| fs::remove_dir_all(held.path_to(path)))
        }
        UndoAction::RemoveInstance(path) => fs::remove_dir(path),
        UndoAction::RestoreTerminal(modes) => {
            modes.leave_screen(io::stderr());
            Ok(())
        }
        UndoAction::Remove(leftover) => leftover.remove(),
        UndoAction::Write(path, text) => write_kernel_file(path, text),
        // One try: a group that is not there has ended.
        UndoAction::EndGroup(group) => process_group::kill(*group).or(Ok(())),
        UndoAction::Shell(command) => {
            let status = worker::shell(command, []).and_then(|mut child| child.wait())?;
            if status.success() { Ok(()) } else { Err(io::Error::other(format!("it failed ({status})"))) }
        }
    }
}

/// Undoes one change by its own way.
fn revert(change: &UndoAction) {
    revert_by(change, || undo(change));
}

/// Undoes one change by this way. A failure is tried again for a while, as a worker that is being killed may still add
/// a file or hold the trace instance.
fn revert_by(change: &UndoAction, undo: impl Fn() -> io::Result<()>) {
    for tries in 1.. {
        match undo() {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error)
                if tries == TRIES || matches!(change, UndoAction::Shell(_)) || files::is_foreign(&error) =>
            {
                return not_restored::report_failure(change, &error);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Number of attempts to undo a change, 10 ms apart.
const TRIES: u32 = 200;

/// Writes to an existing file of the kernel; never creates a file.
///
/// # Errors
/// The file does not exist, or the kernel refuses.
pub fn write_kernel_file(path: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}
