//! Access to a terminal: which of them are refused, and the other programs that have it open.

use super::CLOSED;
use anyhow::{Result, anyhow, bail, ensure};
use latscope_os::terminal::is_exclusive;
use latscope_process::files::Looked;
use latscope_process::{modes, openers};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Stat, fstat, major, minor, stat};
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// Major number of the masters of BSD's pseudo terminals, which have no index.
const BSD_MASTERS: u32 = 2;

/// Opens a terminal without waiting for anything. A path that is not of a character device is not opened.
///
/// # Errors
/// The path is not of a terminal that can be opened, it is a master, or another program has it for itself.
pub(super) fn open_terminal(path: &Path, name: &str) -> Result<OwnedFd> {
    let failed = |error: io::Error| anyhow!("{name}: {error}");
    let looked = Looked::at_target(path).map_err(failed)?;
    ensure!(looked.kind() == FileType::CharacterDevice, "{name} is not a terminal");
    let terminal = match looked.open(modes::OPEN) {
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            bail!(
                "{}",
                describe_exclusive(name, stat(path).ok().and_then(|found| openers::describe_openers(&found)))
            )
        }
        opened => OwnedFd::from(opened.map_err(failed)?),
    };
    ensure!(
        !is_master(&terminal),
        "{name} is the master of a pseudo terminal: give the terminal itself, /dev/pts/N"
    );
    // The mark of a program that was killed stays. It counts as long as a process has the terminal open.
    let holders = openers(&terminal).filter(|_| is_exclusive(&terminal));
    ensure!(holders.is_none(), "{}", describe_exclusive(name, holders));
    Ok(terminal)
}

/// Returns true for a master, which has the index of its terminal (`TIOCGPTN`).
fn is_master(terminal: &OwnedFd) -> bool {
    rustix::pty::ptsname(terminal, []).is_ok()
        || fstat(terminal).is_ok_and(|found| major(found.st_rdev) == BSD_MASTERS)
}

/// Refuses a terminal in which somebody works: messages would fill the screen, and its keys would count as replies.
/// `forced` allows any but the terminal of latscope itself.
pub(super) fn check_is_free(terminal: &OwnedFd, name: &str, forced: bool) -> Result<()> {
    ensure!(!is_ours(terminal), "{name} is the terminal that latscope runs in: choose another one");
    match openers::sessions(terminal) {
        Some(session) if !forced => bail!(
            "{name} is the terminal of {session}, whose screen would get the messages and whose keys would be \
             replies: choose another one, or add --force"
        ),
        _ => Ok(()),
    }
}

/// Other programs that have a terminal open, as far as this user can see them.
pub(super) fn openers(terminal: &OwnedFd) -> Option<String> {
    openers::describe_openers(&fstat(terminal).ok()?)
}

fn describe_exclusive(name: &str, holders: Option<String>) -> String {
    let holders = holders.unwrap_or_else(|| "a program that this user cannot see".to_owned());
    format!("{name} is in exclusive use (TIOCEXCL) by {holders}: end it, or choose another terminal")
}

/// Sentence on programs that have the terminal open.
pub(super) fn also_open(openers: &str, name: &str) -> String {
    format!("{name} is also open in {openers}, which can take replies or change its modes")
}

/// Sentence on modes that another program changed.
pub(super) fn describe_mode_change(name: &str, openers: Option<&str>) -> String {
    let open = openers.map(|openers| format!(", which is also open in {openers}")).unwrap_or_default();
    format!("another program changed the modes of {name}{open}")
}

pub(super) fn not_a_terminal(name: &str, error: &io::Error) -> anyhow::Error {
    match Errno::from_io_error(error) {
        Some(Errno::NOTTY) => anyhow!("{name} is not a terminal"),
        Some(Errno::IO) => anyhow!("{name}: {CLOSED}"),
        _ => anyhow!("{name}: {error}"),
    }
}

/// Returns true if it is the terminal where latscope was started: in raw mode, Ctrl-C would have no effect there.
fn is_ours(terminal: &OwnedFd) -> bool {
    let Ok(device) = fstat(terminal).map(|found| found.st_rdev) else { return false };
    let same =
        |file: &dyn Fn() -> rustix::io::Result<Stat>| file().is_ok_and(|found| found.st_rdev == device);
    // 5:0 is whatever terminal controls us, by its general name.
    (major(device), minor(device)) == (5, 0)
        || same(&|| fstat(rustix::stdio::stdin()))
        || same(&|| fstat(rustix::stdio::stderr()))
}
