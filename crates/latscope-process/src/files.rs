//! Files that another user may have placed. Each is held by a descriptor, looked at, and only then opened, so that what
//! was looked at is what is opened: neither a device nor a pipe is opened to find out what it is, and no exchange of a
//! name comes in between.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// File that was looked at, but not opened: its descriptor can neither be read nor written.
#[derive(Debug)]
pub struct Looked {
    descriptor: OwnedFd,
    about: Stat,
    path: PathBuf,
    follows: OFlags,
}

impl Looked {
    /// Looks at what a path leads to.
    ///
    /// # Errors
    /// Nothing is there, or a directory of the path must not be entered.
    pub fn at_target(path: &Path) -> io::Result<Looked> {
        Looked::open_path(path, OFlags::empty())
    }

    /// Looks at what has this name, also if that is a link.
    ///
    /// # Errors
    /// The errors of [`at_target`](Looked::at_target).
    pub fn at_name(path: &Path) -> io::Result<Looked> {
        Looked::open_path(path, OFlags::NOFOLLOW)
    }

    fn open_path(path: &Path, follows: OFlags) -> io::Result<Looked> {
        let descriptor = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | follows, Mode::empty())?;
        let about = rustix::fs::fstat(&descriptor)?;
        Ok(Looked { descriptor, about, path: path.to_owned(), follows })
    }

    /// Kind of the file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.about.st_mode)
    }

    /// Bits of the permissions.
    pub fn mode(&self) -> Mode {
        Mode::from_raw_mode(self.about.st_mode) & Mode::from_raw_mode(0o777)
    }

    /// Returns true if root must not write to the file in its place: it has a second name, by which another user can
    /// have planted it.
    pub fn is_hard_link(&self) -> bool {
        self.about.st_nlink > 1
            && self.kind() == FileType::RegularFile
            && rustix::process::geteuid().is_root()
    }

    /// Length of the file, in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.about.st_size.cast_unsigned()
    }

    /// Returns true if both are the same file.
    pub fn is(&self, other: &Looked) -> bool {
        self.is_file(&other.about)
    }

    /// Returns true if this is the file of which another descriptor says so.
    pub fn is_file(&self, about: &Stat) -> bool {
        (self.about.st_dev, self.about.st_ino) == (about.st_dev, about.st_ino)
    }

    /// Path for this process of exactly this file, whatever has its name. Without `/proc` it is the name.
    pub fn exact_path(&self) -> PathBuf {
        let own = PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()));
        if own.symlink_metadata().is_ok() { own } else { self.path.clone() }
    }

    /// Opens exactly this file. The flags get `O_NOCTTY`: a terminal does not become that of this process.
    ///
    /// # Errors
    /// The kernel refuses it; without `/proc` also if another file has its name by now.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
        let own = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        match rustix::fs::open(own, flags, Mode::empty()) {
            Err(Errno::NOENT) => self.open_by_name(flags),
            opened => Ok(File::from(opened?)),
        }
    }

    /// Opens the file by its name where there is no `/proc`.
    fn open_by_name(&self, flags: OFlags) -> io::Result<File> {
        let kept = flags.difference(OFlags::TRUNC) | self.follows;
        let file = File::from(rustix::fs::open(&self.path, kept, Mode::empty())?);
        let about = rustix::fs::fstat(&file)?;
        if !self.is_file(&about) {
            return Err(io::Error::other("another file took its name meanwhile"));
        }
        if flags.contains(OFlags::TRUNC) {
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Returns true if root owns the file.
    pub fn is_of_root(&self) -> bool {
        self.about.st_uid == 0
    }

    /// Returns true if root, or the user of this process, owns the file.
    pub fn is_ours(&self) -> bool {
        is_ours(&self.about)
    }

    /// Path that this link has, which was at `path`.
    fn target(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(directory_of(path).join(text_of_link(&self.descriptor)?))
    }
}

/// Text of a link that is open as a path.
fn text_of_link(link: &OwnedFd) -> io::Result<PathBuf> {
    let text = rustix::fs::readlinkat(link, "", Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// Returns true if root, or the user of this process, owns a file.
fn is_ours(about: &Stat) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&about.st_uid)
}

/// Directory that is held open, so that its name can be given to another one without effect. Root enters no link of
/// another user on the way to it.
#[derive(Debug)]
pub struct HeldDirectory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl HeldDirectory {
    /// Holds a directory.
    ///
    /// # Errors
    /// It is not there or must not be entered; for root also if a link of another user leads to it, which is an error
    /// of the kind [`ErrorKind::Other`].
    pub fn open(path: &Path) -> io::Result<HeldDirectory> {
        let start = if path.is_absolute() { "/" } else { "." };
        let start = open_component(CWD, OsStr::new(start), OFlags::DIRECTORY)?;
        let descriptor = if rustix::process::geteuid().is_root() {
            walk_path(start, path, &mut { LINKS })?
        } else {
            open_component(CWD, path.as_os_str(), OFlags::DIRECTORY)?
        };
        Ok(HeldDirectory { descriptor, path: path.to_owned() })
    }

    /// Holds the directory of a file.
    ///
    /// # Errors
    /// The errors of [`open`](HeldDirectory::open).
    pub fn of_file(path: &Path) -> io::Result<HeldDirectory> {
        HeldDirectory::open(directory_of(path))
    }

    /// Path for this process, of the directory itself whatever has its name. Without `/proc` it is the name.
    pub fn path(&self) -> PathBuf {
        let own = PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()));
        if own.exists() { own } else { self.path.clone() }
    }

    /// Path for this process of the file with the name of `path` in the directory.
    pub fn path_to(&self, path: &Path) -> PathBuf {
        path.file_name().map_or_else(|| path.to_owned(), |name| self.path().join(name))
    }

    /// Path like [`path_to`](HeldDirectory::path_to), which leads other processes there, too, while this one runs: what
    /// a socket is bound to, since the kernel shows that to all.
    pub fn shared_path(&self, path: &Path) -> PathBuf {
        // The number that this `/proc` has for the process, which a container may know by another one.
        let own = std::fs::read_link("/proc/self").ok();
        let fd = self.descriptor.as_raw_fd();
        let own = own.map(|number| Path::new("/proc").join(number).join(format!("fd/{fd}")));
        own.zip(path.file_name()).map_or_else(|| self.path_to(path), |(own, name)| own.join(name))
    }

    /// Returns true if a path leads to this directory.
    ///
    /// # Errors
    /// The path cannot be looked at.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        let [ours, theirs] = [rustix::fs::fstat(&self.descriptor)?, rustix::fs::stat(path)?];
        Ok((ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino))
    }
}

impl AsFd for HeldDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl From<HeldDirectory> for OwnedFd {
    fn from(held: HeldDirectory) -> OwnedFd {
        held.descriptor
    }
}

fn open_component(from: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(from, name, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())?)
}

/// Walks along a path, directory by directory.
fn walk_path(mut at: OwnedFd, path: &Path, links: &mut usize) -> io::Result<OwnedFd> {
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::ParentDir => OsStr::new(".."),
            _ => continue,
        };
        let next = open_component(&at, name, OFlags::NOFOLLOW)?;
        let about = rustix::fs::fstat(&next)?;
        at = match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => next,
            FileType::Symlink if !is_ours(&about) => {
                return Err(io::Error::other(FOREIGN));
            }
            FileType::Symlink => {
                *links = links.checked_sub(1).ok_or(Errno::LOOP)?;
                let target = text_of_link(&next)?;
                let from = if target.is_absolute() {
                    open_component(CWD, OsStr::new("/"), OFlags::DIRECTORY)?
                } else {
                    at
                };
                walk_path(from, &target, links)?
            }
            _ => return Err(Errno::NOTDIR.into()),
        };
    }
    Ok(at)
}

/// Reason why root does not take a way.
pub const FOREIGN: &str = "a part of its path is a link of another user, which root does not follow";

/// Returns true if an error has that reason.
pub fn is_foreign(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Other && error.to_string() == FOREIGN
}

/// Makes a directory and those above it that are missing. Root enters no link of another user.
///
/// # Errors
/// A directory cannot be made, or the errors of [`HeldDirectory::open`].
pub fn create_directories(path: &Path) -> io::Result<()> {
    match HeldDirectory::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && path.file_name().is_some() => {
            create_directories(directory_of(path))?;
            match std::fs::create_dir(HeldDirectory::of_file(path)?.path_to(path)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                made => made,
            }
        }
        opened => opened.map(drop),
    }
}

/// Kind of the file at a path that is written to.
#[derive(Debug)]
pub enum Destination {
    /// Nothing has this name.
    Free,
    /// A regular file. A link to it counts as the file.
    File(Looked),
    /// A device, pipe or socket, or whatever a descriptor of this process is open for.
    Special(Looked),
    /// A directory, which nothing is written to.
    Directory,
    /// A link of another user. It is not followed.
    Foreign,
}

/// The most links that are followed, as many as the kernel follows.
const LINKS: usize = 40;

/// Looks at a place to write to. A link is followed if it belongs to root or to the user of this process, as the kernel
/// does in `/tmp` with `fs.protected_symlinks`.
///
/// # Errors
/// A directory of the path must not be entered, or links lead in a circle; the errors of [`HeldDirectory::open`].
pub fn inspect_destination(path: &Path) -> io::Result<Destination> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if is_descriptor(&path) {
            return Looked::at_target(&path).map(Destination::Special);
        }
        let looked = HeldDirectory::of_file(&path).and_then(|held| Looked::at_name(&held.path_to(&path)));
        let looked = match looked {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Destination::Free),
            looked => looked?,
        };
        match looked.kind() {
            FileType::RegularFile => return Ok(Destination::File(looked)),
            FileType::Directory => return Ok(Destination::Directory),
            FileType::Symlink if !looked.is_ours() => return Ok(Destination::Foreign),
            FileType::Symlink => path = looked.target(&path)?,
            _ => return Ok(Destination::Special(looked)),
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns true if a path is that of a descriptor of this process. Its link has no text that is a path.
pub fn is_descriptor(path: &Path) -> bool {
    let number =
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u32>().is_ok());
    let own = format!("/proc/{}/fd", std::process::id());
    let places = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd", &own];
    number && path.parent().is_some_and(|parent| places.iter().any(|place| parent == Path::new(place)))
}

/// Opens a regular file to read it; a pipe would be waited for, and a device may act on being opened.
///
/// # Errors
/// It is not there, cannot be read, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let looked = Looked::at_target(path)?;
    if looked.kind() != FileType::RegularFile {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    looked.open(OFlags::RDONLY | OFlags::NONBLOCK)
}

/// Directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns true if a user other than root and that of this process can rename what is in a directory: he owns it, or
/// may write to it while it is not sticky.
///
/// # Errors
/// The directory cannot be looked at.
pub fn is_of_others(directory: &Path) -> io::Result<bool> {
    let about = rustix::fs::statat(CWD, directory, AtFlags::empty())?;
    let mode = Mode::from_raw_mode(about.st_mode);
    let written = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    Ok(written || ![0, rustix::process::geteuid().as_raw()].contains(&about.st_uid))
}

/// Returns true if another user can give the name of a directory to another one: he can rename it, or one above it.
///
/// # Errors
/// The directory cannot be looked at.
pub fn may_be_replaced(directory: &Path) -> io::Result<bool> {
    let whole = directory.canonicalize()?;
    // What is in the directory itself is not asked for.
    whole.ancestors().skip(1).try_fold(false, |found, above| Ok(found || is_of_others(above)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn a_link_is_followed_unless_another_user_placed_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("file"), "x").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        symlink("circle", at("circle")).unwrap();
        assert!(matches!(inspect_destination(&at("none")).unwrap(), Destination::Free));
        assert!(matches!(inspect_destination(place.path()).unwrap(), Destination::Directory));
        assert!(matches!(inspect_destination(&at("file")).unwrap(), Destination::File(_)));
        assert!(matches!(inspect_destination(&at("link")).unwrap(), Destination::File(_)));
        assert!(matches!(inspect_destination(&at("device")).unwrap(), Destination::Special(_)));
        assert!(inspect_destination(&at("circle")).is_err());
        if rustix::process::geteuid().is_root() {
            lchown(at("device"), Some(65534), None).unwrap();
            assert!(matches!(inspect_destination(&at("device")).unwrap(), Destination::Foreign));
        }
    }

    #[test]
    fn what_was_looked_at_is_opened_whatever_has_its_name_by_then() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "first").unwrap();
        let looked = Looked::at_target(&path).unwrap();
        std::fs::rename(&path, place.path().join("away")).unwrap();
        symlink("/dev/zero", &path).unwrap();
        let text = io::read_to_string(looked.open(OFlags::RDONLY).unwrap()).unwrap();
        assert_eq!((text.as_str(), looked.length_bytes()), ("first", 5));
        assert!(looked.open_by_name(OFlags::RDONLY).is_err());
        assert!(open_regular(&path).is_err() && open_regular(&place.path().join("away")).is_ok());
        assert!(!looked.is(&Looked::at_target(&path).unwrap()));
    }

    #[test]
    fn a_directory_below_one_of_another_user_may_be_replaced() {
        let place = tempfile::tempdir().unwrap();
        let theirs = place.path().join("theirs");
        let deep = theirs.join("ours/deep");
        std::fs::create_dir_all(&deep).unwrap();
        assert!(!may_be_replaced(&deep).unwrap());
        std::fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(may_be_replaced(&deep).unwrap() && !may_be_replaced(&theirs).unwrap());
        assert!(is_of_others(&theirs).unwrap());
    }

    #[test]
    fn a_directory_is_held_whatever_has_its_name_by_then() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        create_directories(&at("a/b/c")).unwrap();
        create_directories(&at("a/b/c")).unwrap();
        symlink("a/../a/b", at("own")).unwrap();
        let held = HeldDirectory::of_file(&at("own/c/file")).unwrap();
        std::fs::rename(at("a"), at("z")).unwrap();
        std::fs::create_dir_all(at("a/b/c")).unwrap();
        std::fs::write(held.path_to(&at("own/c/file")), "x").unwrap();
        assert_eq!(std::fs::read_to_string(at("z/b/c/file")).unwrap(), "x");
        symlink("circle", at("circle")).unwrap();
        assert!(HeldDirectory::open(&at("circle")).is_err());
        std::fs::write(at("plain"), "").unwrap();
        let error = HeldDirectory::of_file(&at("plain/file")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        assert_eq!(HeldDirectory::of_file(&at("none/file")).unwrap_err().kind(), ErrorKind::NotFound);
        if rustix::process::geteuid().is_root() {
            lchown(at("own"), Some(65534), None).unwrap();
            let error = HeldDirectory::of_file(&at("own/c/file")).unwrap_err();
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Other, FOREIGN));
            assert!(is_foreign(&error) && !is_foreign(&io::Error::other("another")));
            assert!(create_directories(&at("own/new")).is_err() && !at("a/b/new").exists());
            assert!(inspect_destination(&at("own/c/file")).is_err());
        }
    }

    #[test]
    fn paths_of_descriptors_are_known() {
        for path in ["/dev/fd/3", "/proc/self/fd/63"] {
            assert!(is_descriptor(Path::new(path)), "{path}");
        }
        for path in ["/dev/fd/../null", "/dev/fd", "/dev/fd/x", "/proc/1/fd/3", "3"] {
            assert!(!is_descriptor(Path::new(path)), "{path}");
        }
        // The link that a shell's users write leads to a descriptor.
        assert!(!matches!(
            inspect_destination(Path::new("/dev/stdout")).unwrap(),
            Destination::Free | Destination::Foreign
        ));
    }
}
