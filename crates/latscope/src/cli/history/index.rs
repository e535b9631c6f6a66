//! Index of a directory of results, kept between calls in the user's cache, where no other user can plant one. The
//! index is never necessary: results that are stale, damaged or of another version in it are read again.

use crate::cli::redact;
use crate::cli::results::{self, read_each};
use anyhow::{Context, Result, bail, ensure};
use latscope_engine::saver;
use latscope_judge::history::{Archive, ArchiveRun, ArchiveWriter};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Begin of the file. The number is raised when what is kept, or what it means, changes.
const MAGIC: &[u8; 8] = b"lsindex9";

/// Contents of a directory.
#[derive(Debug, Default)]
pub struct ResultDirectory {
    /// The texts that runs share.
    pub archive: Archive,
    /// Runs by the name of their file within the directory.
    pub runs: Vec<(String, ArchiveRun)>,
    /// Remarks: files that are no results with the reason, and problems in writing the index.
    pub remarks: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    archive: Archive,
    /// By name within the directory.
    files: BTreeMap<String, IndexFileRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct IndexFileRecord {
    size: u64,
    /// Time of the last change, also of its attributes, ns: no program can set it back.
    changed: i128,
    found: IndexFileContent,
}

#[derive(Debug, Serialize, Deserialize)]
enum IndexFileContent {
    Run(ArchiveRun),
    /// File that is no result, with a remark if it needs one.
    Other(Option<String>),
}

/// Reads a directory and those in it: only files that are new or changed since the last time.
///
/// # Errors
/// The path is no directory, or cannot be read.
pub fn read_directory(directory: &Path) -> Result<ResultDirectory> {
    // The index has the names that are to be left out.
    let cache = if redact::applies() { None } else { cache() };
    let mut read = read_with(directory, cache.as_deref())?;
    if redact::applies() {
        read.remarks.clear();
        read.runs.iter_mut().for_each(|(name, _)| *name = redact::redact_file_name(std::mem::take(name)));
    }
    Ok(read)
}

fn read_with(directory: &Path, cache: Option<&Path>) -> Result<ResultDirectory> {
    ensure!(directory.is_dir(), no_directory(directory));
    let mut remarks = Vec::new();
    let mut there = Vec::new();
    find_files(directory, directory, &mut there, &mut remarks)?;
    let place = cache.map(|cache| index_path(directory, cache));
    let kept = place.as_deref().map(load_index).unwrap_or_default();
    let (index, changed) = refresh(kept, directory, there);
    if changed && let Err(error) = store_index(&index, cache, place.as_deref()) {
        remarks.push(format!("no index is kept, so that each call reads all results: {error:#}"));
    }
    let mut runs = Vec::new();
    for (name, file) in index.files {
        match file.found {
            IndexFileContent::Run(entry) => runs.push((name, entry)),
            IndexFileContent::Other(said) => remarks.extend(said),
        }
    }
    Ok(ResultDirectory { archive: index.archive, runs, remarks })
}

/// Message for a file, or a missing path, where a directory is expected.
fn no_directory(path: &Path) -> String {
    let shown = path.display();
    if !path.exists() {
        return format!("there is no directory {shown} (choose one with results that --json wrote)");
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    format!(
        "{shown} is no directory: a history is of all results in one, such as `latscope history {}`; \
         `latscope show {shown}` shows this one",
        parent.display()
    )
}

/// A file that is there: its name within the directory, size and time of change.
type There = (String, u64, i128);

/// Finds the plain files of a directory and those in it. Names that begin with a dot are nothing to read.
fn find_files(top: &Path, at: &Path, found: &mut Vec<There>, remarks: &mut Vec<String>) -> Result<()> {
    let cannot = || format!("cannot read {}", at.display());
    for entry in fs::read_dir(at).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // A link to a directory could lead back to here.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if let Err(error) = find_files(top, &path, found, remarks) {
                remarks.push(format!("skipped: {error:#}"));
            }
            continue;
        }
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_file() => {
                let changed = i128::from(about.ctime()) * 1_000_000_000 + i128::from(about.ctime_nsec());
                found.push((name_within(top, &path), about.len(), changed));
            }
            Ok(_) => remarks.push(format!("skipped: {} is no plain file", path.display())),
            Err(error) => remarks.push(format!("skipped: cannot read {}: {error}", path.display())),
        }
    }
    Ok(())
}

fn name_within(top: &Path, path: &Path) -> String {
    path.strip_prefix(top).unwrap_or(path).to_string_lossy().into_owned()
}

/// The index of what is there, from that of what was; whether they differ.
fn refresh(kept: Index, directory: &Path, there: Vec<There>) -> (Index, bool) {
    let Index { archive, files: mut before } = kept;
    let (mut files, mut new) = (BTreeMap::new(), Vec::new());
    for (name, size, changed) in there {
        match before.remove(&name).filter(|file| (file.size, file.changed) == (size, changed)) {
            Some(file) => drop(files.insert(name, file)),
            None => new.push((name, size, changed)),
        }
    }
    // What is gone leaves its texts: without any run they are dropped.
    let archive = if files.is_empty() { Archive::default() } else { archive };
    let changed = !new.is_empty() || !before.is_empty();
    let writer = Mutex::new(ArchiveWriter::new(archive));
    let paths: Vec<PathBuf> = new.iter().map(|(name, ..)| directory.join(name)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let found = read_each(&paths, |path, run| match run {
        Ok(run) => IndexFileContent::Run(writer.lock().expect("adding does not panic").encode_run(&run)),
        Err(error) => IndexFileContent::Other(results::skipped(path, &error)),
    });
    for ((name, size, changed), found) in new.into_iter().zip(found) {
        files.insert(name, IndexFileRecord { size, changed, found });
    }
    let archive = writer.into_inner().expect("adding does not panic").into_archive();
    (Index { archive, files }, changed)
}

/// The most bytes that an index may have.
const LIMIT: u64 = 1 << 30;

/// The user's directory for what is never needed, if the environment names one.
fn cache() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("XDG_CACHE_HOME")
        .or_else(|| Some(named("HOME")?.join(".cache")))
        .map(|cache| cache.join("latscope"))
}

/// The file of the index of a directory.
fn index_path(directory: &Path, cache: &Path) -> PathBuf {
    let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    cache.join(format!("{:016x}.index", checksum(whole.as_os_str().as_encoded_bytes())))
}

/// Reads the index of a directory. The result is empty if there is no usable index: a user who can write the index
/// decides what a history shows.
fn load_index(place: &Path) -> Index {
    read_own_file(place).and_then(|text| decode(&text)).unwrap_or_default()
}

/// Returns the contents of a plain file that belongs to this user; `None` for any other file.
fn read_own_file(path: &Path) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    let usable = about.is_file() && is_own(&about) && about.len() <= LIMIT;
    let mut text = Vec::new();
    file.take(LIMIT).read_to_end(&mut text).ok().filter(|_| usable)?;
    Some(text)
}

fn is_own(about: &Metadata) -> bool {
    about.uid() == rustix::process::geteuid().as_raw()
}

/// Writes the index into a directory that is this user's, and is made if it is not there.
fn store_index(index: &Index, cache: Option<&Path>, place: Option<&Path>) -> Result<()> {
    let (Some(cache), Some(place)) = (cache, place) else {
        bail!("the environment has neither XDG_CACHE_HOME nor HOME");
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(cache)
        .with_context(|| format!("cannot make the directory {}", cache.display()))?;
    let about = fs::symlink_metadata(cache).with_context(|| format!("cannot use {}", cache.display()))?;
    ensure!(
        about.is_dir() && is_own(&about) && about.mode() & 0o022 == 0,
        "{} is no directory that only this user can write to",
        cache.display()
    );
    saver::replace_name(place, &encode(index)?)
}

fn encode(index: &Index) -> Result<Vec<u8>> {
    let content = postcard::to_stdvec(index)?;
    Ok([&MAGIC[..], &checksum(&content).to_le_bytes(), &content].concat())
}

/// `None` where it is damaged or of another version.
fn decode(text: &[u8]) -> Option<Index> {
    let (sum, content) = text.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == checksum(content)).then(|| postcard::from_bytes(content).ok()).flatten()
}

/// A sum that a damaged file does not have; it is no protection against what was made on purpose.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;

    fn names(directory: &ResultDirectory) -> Vec<&str> {
        directory.runs.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn what_changed_is_read_again_and_the_rest_comes_from_the_index() {
        let (results, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, cache) = (results.path(), kept.path().join("latscope"));
        let read = |at: &Path| read_with(at, Some(&cache));
        let index_of = index_path(at, &cache);
        fs::create_dir(at.join("deep")).unwrap();
        fs::write(at.join("deep/1.json"), fixture::wake().to_json()).unwrap();
        fs::write(at.join("notes.txt"), "quiet").unwrap();
        let first = read(at).unwrap();
        assert_eq!((names(&first), first.remarks.len()), (vec!["deep/1.json"], 1));
        // What the index has is not looked for in the file: it says that the file has not changed.
        let mut index = decode(&fs::read(&index_of).unwrap()).unwrap();
        let IndexFileContent::Run(entry) = &mut index.files.get_mut("deep/1.json").unwrap().found else {
            panic!()
        };
        entry.host = "from the index".to_owned();
        fs::write(&index_of, encode(&index).unwrap()).unwrap();
        assert_eq!(read(at).unwrap().runs[0].1.host, "from the index");
        fs::write(at.join("deep/1.json"), fixture::report().to_json()).unwrap();
        fs::write(at.join("2.json"), fixture::wake().to_json()).unwrap();
        let second = read(at).unwrap();
        assert_eq!(names(&second), ["2.json", "deep/1.json"]);
        assert_eq!(
            (&second.runs[0].1, &second.runs[1].1.host),
            (&first.runs[0].1, &fixture::report().machine.name)
        );
        fs::remove_file(at.join("2.json")).unwrap();
        assert_eq!(names(&read(at).unwrap()), ["deep/1.json"]);
    }

    #[test]
    fn a_damaged_index_or_one_of_another_version_is_made_anew() {
        let (results, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, cache) = (results.path(), kept.path().join("latscope"));
        let read = |at: &Path| read_with(at, Some(&cache));
        let index_of = index_path(at, &cache);
        fs::write(at.join("1.json"), fixture::wake().to_json()).unwrap();
        let whole = read(at).unwrap();
        let text = fs::read(&index_of).unwrap();
        let mut cases = vec![Vec::new(), text[..text.len() / 2].to_vec(), [&text[..], b"x"].concat()];
        for at in (0..text.len()).step_by(97) {
            let mut damaged = text.clone();
            damaged[at] ^= 0x10;
            cases.push(damaged);
        }
        for case in cases {
            assert!(decode(&case).is_none());
            fs::write(&index_of, case).unwrap();
            assert_eq!(read(at).unwrap().runs, whole.runs);
            assert_eq!(fs::read(&index_of).unwrap(), text);
        }
    }

    #[test]
    fn an_index_that_another_may_have_planted_is_neither_read_nor_followed() {
        let (results, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (at, cache) = (results.path(), kept.path().join("latscope"));
        fs::write(at.join("1.json"), fixture::wake().to_json()).unwrap();
        let whole = read_with(at, Some(&cache)).unwrap();
        let (file, other) = (index_path(at, &cache), kept.path().join("other"));
        let forged = || {
            let mut index = decode(&fs::read(&other).unwrap()).unwrap();
            let IndexFileContent::Run(entry) = &mut index.files.get_mut("1.json").unwrap().found else {
                panic!()
            };
            entry.host = "forged".to_owned();
            fs::write(&other, encode(&index).unwrap()).unwrap();
        };
        fs::rename(&file, &other).unwrap();
        forged();
        std::os::unix::fs::symlink(&other, &file).unwrap();
        let before = fs::read(&other).unwrap();
        assert_eq!(read_with(at, Some(&cache)).unwrap().runs, whole.runs);
        assert_eq!(fs::read(&other).unwrap(), before, "what the link led to is not written");
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
        // A pipe is not waited for, and replaced.
        fs::remove_file(&file).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, mode).unwrap();
        assert_eq!(read_with(at, Some(&cache)).unwrap().runs, whole.runs);
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
        // Nor is a directory used that a link leads to, or that others can write to.
        let link = kept.path().join("link");
        std::os::unix::fs::symlink(&cache, &link).unwrap();
        let remarks = read_with(at, Some(&link)).unwrap().remarks;
        assert!(remarks.is_empty(), "nothing was to be written: {remarks:?}");
        fs::write(at.join("2.json"), fixture::report().to_json()).unwrap();
        for cache in [Some(link.as_path()), None] {
            let remarks = read_with(at, cache).unwrap().remarks;
            assert!(remarks.iter().any(|text| text.contains("no index is kept")), "{remarks:?}");
        }
    }
}
