//! What was read of a directory of results, kept between calls: a file in it, or in the user's cache where it cannot
//! be written to. It is never needed: what is stale, damaged or of another version is read again.

use crate::cli::results::{self, INDEX, read_each};
use anyhow::{Context, Result, ensure};
use latscope_engine::saver;
use latscope_judge::history::{Archive, Entry, Writer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Begin of the file. The number is raised when what is kept, or what it means, changes.
const MAGIC: &[u8; 8] = b"lsindex6";

/// What a directory has.
#[derive(Debug, Default)]
pub struct Directory {
    /// The texts that runs share.
    pub archive: Archive,
    /// Runs by the name of their file within the directory.
    pub runs: Vec<(String, Entry)>,
    /// What is no result, and why; what keeps the index from being written.
    pub remarks: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    archive: Archive,
    /// By name within the directory.
    files: BTreeMap<String, File>,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    size: u64,
    /// Time of the last change, ns.
    changed: i128,
    found: Found,
}

#[derive(Debug, Serialize, Deserialize)]
enum Found {
    Run(Entry),
    /// No result, and what is said of it.
    Other(Option<String>),
}

/// Reads a directory and those in it: only files that are new or changed since the last time.
///
/// # Errors
/// It is no directory, or cannot be read.
pub fn read(directory: &Path) -> Result<Directory> {
    ensure!(directory.is_dir(), no_directory(directory));
    let mut remarks = Vec::new();
    let mut there = Vec::new();
    walk(directory, directory, &mut there, &mut remarks)?;
    let (kept, place) = load(directory);
    let (index, changed) = refresh(kept, directory, there);
    if changed && let Err(error) = store(&index, directory, place) {
        remarks.push(format!("no index is kept, so that each call reads all results: {error:#}"));
    }
    let mut runs = Vec::new();
    for (name, file) in index.files {
        match file.found {
            Found::Run(entry) => runs.push((name, entry)),
            Found::Other(said) => remarks.extend(said),
        }
    }
    Ok(Directory { archive: index.archive, runs, remarks })
}

/// What to give instead of a file, or of what is not there.
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
fn walk(top: &Path, at: &Path, found: &mut Vec<There>, remarks: &mut Vec<String>) -> Result<()> {
    let cannot = || format!("cannot read {}", at.display());
    for entry in fs::read_dir(at).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // A link to a directory could lead back to here.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if let Err(error) = walk(top, &path, found, remarks) {
                remarks.push(format!("skipped: {error:#}"));
            }
            continue;
        }
        match fs::metadata(&path) {
            Ok(about) if about.is_file() => {
                let changed = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
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
    let writer = Mutex::new(Writer::new(archive));
    let paths: Vec<PathBuf> = new.iter().map(|(name, ..)| directory.join(name)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let found = read_each(&paths, |path, run| match run {
        Ok(run) => Found::Run(writer.lock().expect("adding does not panic").add(&run)),
        Err(error) => Found::Other(results::skipped(path, &error)),
    });
    for ((name, size, changed), found) in new.into_iter().zip(found) {
        files.insert(name, File { size, changed, found });
    }
    let archive = writer.into_inner().expect("adding does not panic").done();
    (Index { archive, files }, changed)
}

/// Where the index of a directory may be: in it, and in the user's cache.
fn places(directory: &Path) -> Vec<PathBuf> {
    let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    let name = format!("{:016x}.index", checksum(whole.as_os_str().as_encoded_bytes()));
    [Some(directory.join(INDEX)), cache.map(|cache| cache.join("latscope").join(name))]
        .into_iter()
        .flatten()
        .collect()
}

/// The index of a directory, and where it is; an empty one where there is none that can be used.
fn load(directory: &Path) -> (Index, Option<PathBuf>) {
    let usable = |place: PathBuf| Some((decode(&fs::read(&place).ok()?)?, Some(place)));
    places(directory).into_iter().find_map(usable).unwrap_or_default()
}

/// Writes the index where it is, or at the first place that can be written to.
fn store(index: &Index, directory: &Path, place: Option<PathBuf>) -> Result<()> {
    let text = encode(index)?;
    let mut all = places(directory);
    all.sort_by_key(|one| Some(one) != place.as_ref());
    let mut first = Ok(());
    for place in all {
        if !place.starts_with(directory)
            && let Some(cache) = place.parent()
        {
            let _ = fs::create_dir_all(cache);
        }
        match saver::replace(&place, &text) {
            Ok(()) => return Ok(()),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
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

    fn names(directory: &Directory) -> Vec<&str> {
        directory.runs.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn what_changed_is_read_again_and_the_rest_comes_from_the_index() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        fs::create_dir(at.join("deep")).unwrap();
        fs::write(at.join("deep/1.json"), fixture::wake().to_json()).unwrap();
        fs::write(at.join("notes.txt"), "quiet").unwrap();
        let first = read(at).unwrap();
        assert_eq!((names(&first), first.remarks.len()), (vec!["deep/1.json"], 1));
        // What the index has is not looked for in the file: it says that the file has not changed.
        let mut index = decode(&fs::read(at.join(INDEX)).unwrap()).unwrap();
        let Found::Run(entry) = &mut index.files.get_mut("deep/1.json").unwrap().found else { panic!() };
        entry.host = "from the index".to_owned();
        fs::write(at.join(INDEX), encode(&index).unwrap()).unwrap();
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
        let place = tempfile::tempdir().unwrap();
        let at = place.path();
        fs::write(at.join("1.json"), fixture::wake().to_json()).unwrap();
        let whole = read(at).unwrap();
        let text = fs::read(at.join(INDEX)).unwrap();
        let mut cases = vec![Vec::new(), text[..text.len() / 2].to_vec(), [&text[..], b"x"].concat()];
        for at in (0..text.len()).step_by(97) {
            let mut damaged = text.clone();
            damaged[at] ^= 0x10;
            cases.push(damaged);
        }
        for case in cases {
            assert!(decode(&case).is_none());
            fs::write(at.join(INDEX), case).unwrap();
            assert_eq!(read(at).unwrap().runs, whole.runs);
            assert_eq!(fs::read(at.join(INDEX)).unwrap(), text);
        }
    }
}
