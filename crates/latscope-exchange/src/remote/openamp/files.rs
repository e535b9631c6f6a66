//! Files with names known to other programs: which of them this process made, and which may be taken over.

use anyhow::{Context, Result, anyhow, bail};
use latscope_os::window::MemoryWindow as Memory;
use latscope_process::files::HeldDirectory;
use latscope_process::made_name::MadeName;
use latscope_rpmsg::table::ResourceTable;
use latscope_rpmsg::{RpmsgMemory as _, RpmsgWindow};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, ftruncate, openat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Maps the memory that the other side made, of any size.
///
/// # Errors
/// There is no such memory, or it belongs to another user.
pub(super) fn existing(path: &Path) -> Result<Memory> {
    map_file(open_existing(path)?, path, 1)
}

/// The file of such memory.
///
/// # Errors
/// The errors of [`existing`].
pub(in crate::remote) fn open_existing(path: &Path) -> Result<OwnedFd> {
    open_memory(path, OFlags::empty())
}

/// New memory, which stays.
///
/// # Errors
/// Something is there already, or there is no room.
pub(super) fn new(path: &Path, size: usize) -> Result<Memory> {
    if path.symlink_metadata().is_ok() {
        bail!("{} exists: remove it, if no process uses it", path.display());
    }
    let file = open_memory(path, OFlags::CREATE | OFlags::EXCL)?;
    enlarge(&file, path, size)?;
    map_file(file, path, size)
}

/// Memory of the device, and its name if that is to be removed at the end.
type DeviceMemory = (Memory, Option<MadeName>);

/// Makes the memory, or takes it over: what an earlier run left goes at the end, as that run would have removed it, and
/// zeros that were prepared stay.
///
/// # Errors
/// What is there is of another size, has other content, or is another user's.
pub(super) fn create_or_reuse(path: &Path, layout: &RpmsgWindow) -> Result<DeviceMemory> {
    let create = OFlags::CREATE | OFlags::EXCL;
    match MadeName::make(path, |held| Ok(openat(CWD, held.path_to(path), create | FLAGS, PRIVATE)?)) {
        Ok((file, name)) => {
            enlarge(&file, path, layout.size)?;
            Ok((map_file(file, path, layout.size)?, Some(name)))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => reuse_leftover(path, layout),
        Err(error) => Err(open_error(path, &error)),
    }
}

/// Memory that is there already, which nothing but this is for.
fn reuse_leftover(path: &Path, layout: &RpmsgWindow) -> Result<DeviceMemory> {
    let file = open_existing(path)?;
    let found = fstat(&file)?.st_size;
    if found != layout.size as i64 {
        bail!("{} has {found} bytes and not {}: {REMEDY}", path.display(), layout.size);
    }
    // Read and not mapped: a file that is not ours stays as it is.
    let mut file = File::from(file);
    let mut content = vec![0; layout.size];
    file.read_exact(&mut content).with_context(|| format!("cannot read {}", path.display()))?;
    let copy = Memory::create_zeroed(layout.size)?;
    copy.write_bytes(0, &content[..ResourceTable::SIZE])?;
    let is_earlier = ResourceTable::parse(&copy) == Ok(layout.table);
    if !is_earlier && content.iter().any(|byte| *byte != 0) {
        bail!("{} has other content than the memory of an earlier run: {REMEDY}", path.display());
    }
    let file = OwnedFd::from(file);
    let about = fstat(&file)?;
    let name = MadeName::take_over(path, |looked| is_earlier && looked.is_file(&about))?;
    Ok((map_file(file, path, layout.size)?, name))
}

/// Remedy for a file that is not taken over.
const REMEDY: &str = "remove it, if nothing needs it, or give another --openamp-shm";

fn enlarge(file: &OwnedFd, path: &Path, size: usize) -> Result<()> {
    ftruncate(file, size as u64).with_context(|| format!("{}: no room for {size} bytes", path.display()))
}

/// Flags of all memory. A link could lead to a file of ours that is no memory.
const FLAGS: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// Permissions of memory that is made: this user's alone.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

fn open_memory(path: &Path, how: OFlags) -> Result<OwnedFd> {
    let held = HeldDirectory::of_file(path);
    let file = held
        .and_then(|held| Ok(openat(CWD, held.path_to(path), FLAGS | how, PRIVATE)?))
        .map_err(|error| open_error(path, &error))?;
    let found = fstat(&file)?;
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink == 1;
    if !regular || found.st_uid != geteuid().as_raw() {
        bail!("{} is not a regular file of this user with one name: give another one", path.display());
    }
    Ok(file)
}

/// Error of memory that cannot be opened.
fn open_error(path: &Path, error: &io::Error) -> anyhow::Error {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let why = if is_link && error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        "it is a link, which is not followed: give the path of the file itself".to_owned()
    } else {
        error.to_string()
    };
    anyhow!("cannot open the shared memory {}: {why}", path.display())
}

fn map_file(file: OwnedFd, path: &Path, size: usize) -> Result<Memory> {
    let found = fstat(&file)?.st_size;
    if found < size as i64 {
        bail!("{} has {found} bytes and not {size}: remove it, if no process uses it", path.display());
    }
    Memory::map_file(file).with_context(|| format!("cannot map {}", path.display()))
}
