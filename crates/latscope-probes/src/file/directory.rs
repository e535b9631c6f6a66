//! The directories in which files are made: their descriptions, and the defaults.

use crate::ScratchDirectory;
use crate::prelude::*;
use rustix::fs::{statfs, statvfs};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;

/// Returns the description of a directory, after a test that files can be made in it.
///
/// # Errors
/// The path does not exist, is no directory, or files cannot be made in it. The message is one line that states
/// the directory and the remedy.
pub fn resolve(path: &Path) -> Result<ScratchDirectory> {
    let shown = path.display();
    let advice = "choose a directory that exists and can be written";
    let path = path.canonicalize().with_context(|| format!("cannot use the directory {shown} ({advice})"))?;
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let (filesystem, device) =
        mount_of(&mounts, &path).unwrap_or_else(|| (by_magic(&path), "unknown".to_owned()));
    // The file has no name, or loses it at once.
    match tempfile::tempfile_in(&path) {
        // The directory is there; what is missing is the operation.
        Err(error) if [ErrorKind::NotFound, ErrorKind::Unsupported].contains(&error.kind()) => {
            bail!("cannot make files in {shown} ({advice}): {filesystem} has no files of users")
        }
        made => made.with_context(|| format!("cannot make files in {shown} ({advice})"))?,
    };
    let space = statvfs(&path).with_context(|| format!("cannot read the free space of {shown}"))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    Ok(ScratchDirectory { path, filesystem, device, free })
}

/// The directories used if none is given.
#[derive(Debug, Default)]
pub struct Defaults {
    /// The current directory, if files can be made in it, and one on a tmpfs.
    pub directories: Vec<ScratchDirectory>,
    /// Differences from that choice, with the reasons.
    pub notes: Vec<String>,
}

/// Returns the current directory (or the first usable one of `$HOME`, /var/tmp and the directory for temporary
/// files), and a directory on a tmpfs.
pub fn defaults() -> Defaults {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let disk =
        [Some(PathBuf::from(".")), variable("HOME"), Some("/var/tmp".into()), Some(std::env::temp_dir())];
    let memory = [Some(PathBuf::from("/dev/shm")), variable("XDG_RUNTIME_DIR"), Some("/tmp".into())];
    choose(&disk.map(Option::unwrap_or_default), &memory.map(Option::unwrap_or_default), resolve)
}

/// The first usable candidate for the disk, and the first one on a tmpfs.
fn choose(
    disk: &[PathBuf],
    memory: &[PathBuf],
    resolve: impl Fn(&Path) -> Result<ScratchDirectory>,
) -> Defaults {
    let given = |path: &&PathBuf| !path.as_os_str().is_empty();
    let mut chosen = Defaults::default();
    let mut refused = Vec::new();
    for path in disk.iter().filter(given) {
        match resolve(path) {
            Ok(directory) => {
                chosen.directories.push(directory);
                break;
            }
            Err(error) => refused.push(error),
        }
    }
    let instead = match chosen.directories.first() {
        Some(directory) => format!("{} is used", directory.path.display()),
        None => "no disk is measured".to_owned(),
    };
    chosen.notes.extend(refused.iter().map(|error| format!("file: {error:#}; {instead}")));
    if chosen.directories.iter().any(|directory| directory.filesystem == "tmpfs") {
        chosen
            .notes
            .push("file: the directory used is on a tmpfs, so no disk is measured (--dir)".to_owned());
        return chosen;
    }
    let tmpfs =
        memory.iter().filter(given).filter_map(|path| resolve(path).ok()).find(|d| d.filesystem == "tmpfs");
    match tmpfs {
        Some(directory) => chosen.directories.push(directory),
        None => {
            chosen.notes.push("file: no tmpfs that can be written was found, so none is measured".to_owned())
        }
    }
    chosen
}

/// Type and source of the mount on which a path lies, from a mountinfo file (proc_pid_mountinfo(5)): of the
/// mounts with the longest mount point, the last one.
fn mount_of(mountinfo: &[u8], path: &Path) -> Option<(String, String)> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(parse_mount).filter(|mount| path.starts_with(&mount.point));
    let mount = mounts.max_by_key(|mount| mount.point.as_os_str().len())?;
    Some((mount.filesystem, mount.device))
}

struct Mount {
    point: PathBuf,
    filesystem: String,
    device: String,
}

/// Parses a line `id parent major:minor root point options [tags] - type source …`.
fn parse_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = PathBuf::from(OsString::from_vec(unescape(fields.nth(4)?)));
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let mut text = || Some(String::from_utf8_lossy(&unescape(fields.next()?)).into_owned());
    Some(Mount { point, filesystem: text()?, device: text()? })
}

/// Decodes `\040` and similar sequences, which stand for blanks, tabs and backslashes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = (*first == b'\\').then(|| tail.get(..3)).flatten();
        let byte = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        text.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    text
}

/// The file system by its magic number (statfs(2)), where there is no /proc.
fn by_magic(path: &Path) -> String {
    let names = [
        (0xef53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0xf2f5_2010, "f2fs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58f6, "ramfs"),
        (0x794c_7630, "overlay"),
        (0x6969, "nfs"),
        (0x6573_5546, "fuse"),
    ];
    let Ok(found) = statfs(path) else { return "unknown".to_owned() };
    let magic = found.f_type as u32;
    names
        .iter()
        .find(|(number, _)| *number == magic)
        .map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned())
}

/// Returns true if operations on the file system wait for another machine or another process, so that they
/// include the time of a blocked thread.
pub(crate) fn waits_for_others(filesystem: &str) -> bool {
    let kind = filesystem.split('.').next().unwrap_or(filesystem);
    ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "fuse", "fuseblk", "virtiofs"].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOUNTS: &[u8] = b"22 27 0:21 / /proc rw - proc proc rw\n\
        27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        28 27 0:30 / /mnt/two\\040words rw - xfs /dev/odd\\134name rw\n\
        30 25 0:27 / /dev/shm rw,relatime - tmpfs tmpfs rw\n\
        31 27 0:28 / /mnt rw - btrfs /dev/first rw\n\
        32 27 0:29 / /mnt rw master:2 propagate_from:3 - ext4 /dev/over rw\n\
        damaged line\n";

    #[test]
    fn a_path_belongs_to_the_longest_and_latest_mount() {
        let mount = |path: &str| mount_of(MOUNTS, Path::new(path)).unwrap();
        let named = |filesystem: &str, device: &str| (filesystem.to_owned(), device.to_owned());
        assert_eq!(mount("/home/x"), named("ext4", "/dev/vda"));
        assert_eq!(mount("/dev/shm/y"), named("tmpfs", "tmpfs"));
        assert_eq!(mount("/dev/shmem"), named("ext4", "/dev/vda"));
        assert_eq!(mount("/mnt/two words/z"), named("xfs", "/dev/odd\\name"));
        assert_eq!(mount("/mnt/other"), named("ext4", "/dev/over"));
        assert_eq!(mount_of(b"", Path::new("/")), None);
    }

    #[test]
    fn unusable_directories_have_a_clear_error() {
        let missing = resolve(Path::new("/nonexistent/directory")).unwrap_err();
        assert!(format!("{missing:#}").starts_with("cannot use the directory /nonexistent/directory"));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(resolve(file.path()).is_err());
        assert!(resolve(Path::new("/proc")).is_err());
    }

    #[test]
    fn resolving_a_directory_leaves_nothing_in_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = resolve(place.path()).unwrap();
        assert_eq!(directory.path, place.path().canonicalize().unwrap());
        assert!(!directory.filesystem.is_empty() && !directory.device.is_empty());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    fn known(path: &Path) -> Result<ScratchDirectory> {
        let filesystem = match path.to_str() {
            Some("/disk") => "ext4",
            Some("/memory") => "tmpfs",
            _ => anyhow::bail!("no {}", path.display()),
        };
        Ok(ScratchDirectory {
            path: path.to_owned(),
            filesystem: filesystem.to_owned(),
            device: "d".to_owned(),
            free: 1,
        })
    }

    #[test]
    fn a_file_system_without_files_of_users_is_named() {
        let error = format!("{:#}", resolve(Path::new("/proc")).unwrap_err());
        assert!(error.starts_with("cannot make files in /proc (choose"), "{error}");
        assert!(error.ends_with(": proc has no files of users"), "{error}");
    }

    #[test]
    fn the_first_usable_candidates_are_chosen_and_others_noted() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let chosen = |disk: &[&str], memory: &[&str]| {
            let chosen = choose(&paths(disk), &paths(memory), known);
            let found: Vec<_> = chosen.directories.into_iter().map(|d| d.filesystem).collect();
            (found, chosen.notes.len())
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(&["/disk", "/other"], &["/none", "/memory"]), (names(&["ext4", "tmpfs"]), 0));
        assert_eq!(chosen(&["/ro", "", "/disk"], &["/memory"]), (names(&["ext4", "tmpfs"]), 1));
        let notes = choose(&paths(&["/ro", "/disk"]), &paths(&["/memory"]), known).notes;
        assert_eq!(notes, ["file: no /ro; /disk is used"]);
        assert_eq!(chosen(&["/memory"], &["/memory"]), (names(&["tmpfs"]), 1));
        assert_eq!(chosen(&["/ro"], &["/disk"]), (names(&[]), 2));
    }

    #[test]
    fn remote_file_systems_are_known_with_their_subtypes() {
        assert!(waits_for_others("nfs4") && waits_for_others("fuse.sshfs"));
        assert!(!waits_for_others("ext4") && !waits_for_others("tmpfs"));
    }

    proptest! {
        #[test]
        fn any_mountinfo_is_survived(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = mount_of(&text, Path::new("/a"));
            prop_assert!(unescape(&text).len() <= text.len());
        }
    }
}
