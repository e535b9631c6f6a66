//! Changes of a run that its guardian could not undo, stored for the next run.

use crate::files;
use crate::undo::UndoAction;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A change that is not undone.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    undo: UndoAction,
    /// Reason, as the kernel reports it.
    error: String,
}

/// Largest number of bytes of a record that are read.
const LIMIT: u64 = 1 << 20;

/// The directory of records, which a boot removes like most changes; `None` if this user has none.
fn directory() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = runtime.filter(|path| fs::metadata(path).is_ok_and(|about| is_own(&about)));
    let root = rustix::process::geteuid().is_root().then(|| PathBuf::from("/run"));
    own.or(root).map(|runtime| runtime.join("latscope"))
}

fn is_own(about: &fs::Metadata) -> bool {
    about.uid() == rustix::process::geteuid().as_raw()
}

/// Reports on stderr and in the system's log that a change is not undone, and stores it for the next run.
pub(crate) fn report_failure(undo: &UndoAction, error: &io::Error) {
    let text = format!("not put back: {undo}: {error}");
    crate::eprintln!("latscope: {text}");
    // User-level message, an error: syslog(3). A machine without a log has none of this.
    let line = format!("<11>latscope[{}]: {text}", std::process::id());
    let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(line.as_bytes(), "/dev/log"));
    // Who put a link there could keep later runs from beginning.
    if files::is_foreign(error) {
        return;
    }
    let record = Record { undo: undo.clone(), error: error.to_string() };
    if let Some(directory) = directory() {
        let _ = store_record(&directory, &record);
    }
}

fn store_record(directory: &Path, record: &Record) -> io::Result<()> {
    let _ = DirBuilder::new().mode(0o700).create(directory);
    let about = fs::symlink_metadata(directory)?;
    if !about.is_dir() || !is_own(&about) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut paths = (0..1000).map(|number| directory.join(format!("{}-{number}.json", std::process::id())));
    let mut file = paths.find_map(|path| options.open(path).ok()).ok_or(io::ErrorKind::AlreadyExists)?;
    file.write_all(serde_json::to_string(record)?.as_bytes())
}

/// Looks for changes that earlier runs of this user could not undo, and deletes the records of those that are undone by
/// now. Returns a line on each remaining change, with the remedy.
pub fn find_remaining() -> Vec<String> {
    directory().map(|directory| found_in(&directory)).unwrap_or_default()
}

fn found_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut records: Vec<(PathBuf, Record)> = entries
        .filter_map(|entry| {
            let path = entry.path();
            Some((path.clone(), read_record(&path)?))
        })
        .collect();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    records.retain(|(path, record)| is_left(&record.undo) || fs::remove_file(path).is_err());
    let lines = records.into_iter().map(|(path, Record { undo, error })| {
        format!(
            "an earlier run did not put this back: {undo} ({error}); put it back, then remove {}",
            path.display()
        )
    });
    lines.collect()
}

fn read_record(path: &Path) -> Option<Record> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let usable = file.metadata().is_ok_and(|about| about.is_file() && is_own(&about));
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text).ok().filter(|_| usable)?;
    serde_json::from_str(&text).ok()
}

/// Returns true if a change still exists, as far as that is visible.
fn is_left(undo: &UndoAction) -> bool {
    match undo {
        UndoAction::RemoveDirectory(path) | UndoAction::RemoveInstance(path) => path.exists(),
        UndoAction::Remove(leftover) => leftover.remove().is_err(),
        // A file of the kernel may show the value among those that it could have.
        UndoAction::Write(path, text) => fs::read_to_string(path)
            .is_ok_and(|now| now.trim() != text.trim() && !now.contains(&format!("[{}]", text.trim()))),
        UndoAction::RestoreTerminal(_) | UndoAction::EndGroup(_) => false,
        UndoAction::Shell(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found_until_it_is_undone() {
        let place = tempfile::tempdir().unwrap();
        let (records, left) = (place.path().join("latscope"), place.path().join("instance"));
        let knob = place.path().join("knob");
        fs::create_dir(&left).unwrap();
        fs::write(&knob, "always [madvise] never\n").unwrap();
        let undos = [
            UndoAction::RemoveInstance(left.clone()),
            UndoAction::Write(knob.clone(), "never".to_owned()),
            UndoAction::Shell("restore".to_owned()),
        ];
        for undo in undos {
            store_record(&records, &Record { undo, error: "busy".to_owned() }).unwrap();
        }
        let all = found_in(&records);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all[0].contains("instance") && all[0].contains("(busy)"), "{all:?}");
        fs::remove_dir(&left).unwrap();
        fs::write(&knob, "always madvise [never]\n").unwrap();
        let rest = found_in(&records);
        assert!(rest.len() == 1 && rest[0].contains("`restore`"), "{rest:?}");
        assert_eq!(fs::read_dir(&records).unwrap().count(), 1);
        // What another user could have put there is not read.
        let link = records.join("link.json");
        std::os::unix::fs::symlink(fs::read_dir(&records).unwrap().next().unwrap().unwrap().path(), &link)
            .unwrap();
        assert_eq!(found_in(&records).len(), 1);
    }
}
