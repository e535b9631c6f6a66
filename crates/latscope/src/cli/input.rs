//! Reads files that others may have written: plain files of a limited size, packed by gzip or not, without what a
//! terminal would obey.

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use flate2::read::MultiGzDecoder;
use latscope_core::units::format_size;
use latscope_judge::imports::decode_text;
use latscope_process::clean::is_command;
use latscope_process::files::{Looked, is_descriptor};
use rustix::fs::{FileType, OFlags};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes that are read of a file, and that what it unpacks to may have.
const LIMIT: u64 = 1 << 30;

/// Set once, by an option, before anything is read.
static UNLIMITED: AtomicBool = AtomicBool::new(false);

/// Options of commands that read results.
#[derive(Debug, Args)]
pub struct InputArguments {
    /// Read results of more than 1 GiB, too
    #[arg(long)]
    any_size: bool,
    /// Leave out what says whose machine it is: host, machine id, command line of the kernel, labels, paths, commands,
    /// processes
    #[arg(long)]
    redact: bool,
}

impl InputArguments {
    /// Sets for the whole process what may be read.
    pub fn set_size_limit(&self) {
        UNLIMITED.store(self.any_size, Ordering::Relaxed);
    }
}

/// Returns true if a path stands for standard input or output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name of a file in messages.
pub fn input_name(path: &Path) -> String {
    if is_stdout(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Checks that standard input is read once at most; `instead` are the files to choose.
///
/// # Errors
/// `-` is among the paths twice.
pub fn check_once<'a>(paths: impl IntoIterator<Item = &'a PathBuf>, instead: &str) -> Result<()> {
    let inputs = paths.into_iter().filter(|path| is_stdout(path)).count();
    ensure!(inputs < 2, "standard input can be read once: choose {instead}");
    Ok(())
}

/// Reads a result, `-` from standard input. Characters that a terminal would obey are replaced.
///
/// # Errors
/// The file cannot be read, is no plain file, or is too large; the text names it.
pub fn result(path: &Path) -> Result<Vec<u8>> {
    read_bytes(path, result_limit()).map(decode_text).map(without_commands)
}

/// Reads a result that a directory lists, as [`result`] does. A link is not followed: another user may have put it
/// where a plain file was.
///
/// # Errors
/// As of [`result`].
pub fn listed_result(path: &Path) -> Result<Vec<u8>> {
    let looked = Looked::at_name(path).with_context(|| format!("cannot read {}", input_name(path)))?;
    bytes_of(&looked, path, result_limit()).map(decode_text).map(without_commands)
}

/// The most bytes that a result may have.
fn result_limit() -> u64 {
    if UNLIMITED.load(Ordering::Relaxed) { u64::MAX } else { LIMIT }
}

/// Reads a text of the same kinds of files.
///
/// # Errors
/// As of [`result`], or it is no text.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_bytes(path, LIMIT)?)
        .with_context(|| format!("cannot read {}: it is no text", input_name(path)))
}

/// Reads a file up to a limit, and unpacks what begins as gzip does, whatever its name. It is looked at before it is
/// opened: opening some devices acts, and opening a pipe waits.
fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>> {
    if is_stdout(path) {
        return unpack_gzip(limited(std::io::stdin().lock(), 0, path, limit)?, path, limit);
    }
    let looked = Looked::at_target(path).with_context(|| format!("cannot read {}", input_name(path)))?;
    bytes_of(&looked, path, limit)
}

/// Reads the file that was looked at.
fn bytes_of(looked: &Looked, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let cannot = || format!("cannot read {}", input_name(path));
    let is_file = looked.kind() == FileType::RegularFile;
    ensure!(looked.kind() != FileType::Directory, "{}: it is a directory, choose files in it", cannot());
    // `<(…)` of a shell is a pipe that another process writes to.
    ensure!(
        is_file || is_descriptor(path) || path == Path::new("/dev/stdin"),
        "{}: it is no plain file: give what it has on standard input, as -",
        cannot()
    );
    ensure!(!is_file || looked.length_bytes() <= limit, "{}", too_large(path));
    // Another user may hold a lease of his file, which an open that waits would wait for.
    let flags = if is_file { OFlags::RDONLY | OFlags::NONBLOCK } else { OFlags::RDONLY };
    let file = looked.open(flags).with_context(cannot)?;
    unpack_gzip(limited(file, if is_file { looked.length_bytes() } else { 0 }, path, limit)?, path, limit)
}

/// The bytes by which gzip is recognised.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Number of bytes at the begin of what gzip packed that show whether it is JSON.
const HEAD: u64 = 4096;

/// The most bytes that anything but JSON may unpack to: outputs of other programs are smaller, and a few kilobytes may
/// unpack to gigabytes.
const OTHER_LIMIT: u64 = 16 << 20;

/// Returns the text that gzip packed; any other text as it is.
fn unpack_gzip(text: Vec<u8>, path: &Path, limit: u64) -> Result<Vec<u8>> {
    if !text.starts_with(&GZIP) {
        return Ok(text);
    }
    let mut packed = MultiGzDecoder::new(text.as_slice());
    let mut out = Vec::new();
    unpack(&mut packed, HEAD, &mut out, path)?;
    let first = out.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = first.is_some_and(|byte| b"{[".contains(byte));
    let most = if is_json || limit == u64::MAX { limit } else { limit.min(OTHER_LIMIT) };
    out.reserve(text.len().saturating_mul(4).min(1 << 26));
    let left = most.saturating_add(1).saturating_sub(out.len() as u64);
    unpack(&mut packed, left, &mut out, path)?;
    match out.len() as u64 {
        length if length <= most => Ok(out),
        _ if most == limit => bail!("{}", too_large(path)),
        _ => bail!(
            "{} has no JSON, and unpacks to more than {}: add --any-size to read it all the same",
            input_name(path),
            format_size(OTHER_LIMIT)
        ),
    }
}

/// Unpacks up to `most` further bytes.
fn unpack(packed: &mut impl Read, most: u64, out: &mut Vec<u8>, path: &Path) -> Result<()> {
    packed
        .take(most)
        .read_to_end(out)
        .map_err(|_| anyhow!("what gzip packed there is damaged or cut off (measure it again)"))
        .with_context(|| format!("cannot use {}", input_name(path)))?;
    Ok(())
}

/// Reads up to `limit` bytes, of which about so many are expected.
fn limited(from: impl Read, expected: u64, path: &Path, limit: u64) -> Result<Vec<u8>> {
    // There is room for the byte that shows the end.
    let mut text = Vec::with_capacity(expected.min(limit).min(1 << 26) as usize + 1);
    from.take(limit.saturating_add(1))
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read {}", input_name(path)))?;
    ensure!(text.len() as u64 <= limit, too_large(path));
    Ok(text)
}

fn too_large(path: &Path) -> String {
    format!(
        "{} has more than {}: add --any-size to read it all the same",
        input_name(path),
        format_size(LIMIT)
    )
}

/// Returns true if a number is of a character that is replaced. In JSON it may be written as an escape.
fn is_forbidden(number: u32) -> bool {
    char::from_u32(number).is_some_and(|c| is_command(c) && c != '\r')
}

/// Returns true for the bytes of printable ASCII, and of the breaks that a result may have.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r')
}

/// Returns true if a text has a character that is replaced. The few beyond plain ASCII are looked at.
fn has_forbidden(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        let mut chars = rest[at..].chars();
        if chars.next().is_some_and(|c| is_forbidden(c.into())) {
            return true;
        }
        rest = chars.as_str();
    }
    false
}

/// Replaces what a terminal would obey by U+FFFD, also where JSON has it as `\u001b`.
fn without_commands(text: Vec<u8>) -> Vec<u8> {
    // As good as every result; each byte is then looked at once.
    if text.iter().all(|byte| is_plain(*byte) && *byte != b'\\') {
        return text;
    }
    let mut out = match String::from_utf8(text) {
        Ok(text) if has_forbidden(&text) => text
            .chars()
            .map(|c| if is_forbidden(c.into()) { '\u{fffd}' } else { c })
            .collect::<String>()
            .into(),
        Ok(text) => text.into_bytes(),
        // What is no text is not shown.
        Err(error) => return error.into_bytes(),
    };
    let mut at = 0;
    while let Some(found) = out[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        if out.get(at + 1) == Some(&b'u')
            && let Some(escape) = out.get_mut(at + 2..at + 6)
            && let Some(number) =
                std::str::from_utf8(escape).ok().and_then(|hex| u32::from_str_radix(hex, 16).ok())
            && is_forbidden(number)
        {
            escape.copy_from_slice(b"fffd");
        }
        at += 2;
        if at >= out.len() {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_terminals_are_replaced_however_they_are_written() {
        let json = br#"{"a":"x\u001b]0;P\u0007\u202E\\u001b\n","b":"\""}"#.to_vec();
        let cleaned = br#"{"a":"x\ufffd]0;P\ufffd\ufffd\\u001b\n","b":"\""}"#;
        assert_eq!(String::from_utf8_lossy(&without_commands(json)), String::from_utf8_lossy(cleaned));
        assert_eq!(without_commands("a\x1b[2Jb\r\n\u{9b}".into()), "a\u{fffd}[2Jb\r\n\u{fffd}".as_bytes());
        assert_eq!(without_commands(vec![0xff, 0x1b, b'\\']), [0xff, 0x1b, b'\\']);
        assert_eq!(without_commands(br"\u00".to_vec()), br"\u00");
        assert_eq!(without_commands(br"\".to_vec()), br"\");
    }

    #[test]
    fn utf_16_is_decoded_before_characters_are_replaced() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("r.txt");
        let text = "# Histogram\n\u{1b}[3A\n";
        for to in [u16::to_le_bytes, u16::to_be_bytes] {
            std::fs::write(&file, text.encode_utf16().flat_map(to).collect::<Vec<u8>>()).unwrap();
            for read in [result, listed_result] {
                assert_eq!(read(&file).unwrap(), "# Histogram\n\u{fffd}[3A\n".as_bytes());
            }
        }
    }

    #[test]
    fn only_so_much_is_read_and_only_of_plain_files() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("r.json");
        std::fs::write(&file, [b'x'; 100]).unwrap();
        assert_eq!(read_bytes(&file, 100).unwrap().len(), 100);
        assert!(read_bytes(&file, 99).unwrap_err().to_string().contains("--any-size"));
        let pipe = place.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for special in [pipe.as_path(), Path::new("/dev/zero")] {
            assert!(read_bytes(special, 99).unwrap_err().to_string().contains("no plain file"));
        }
        assert!(limited(std::io::repeat(1), 0, Path::new("-"), 50).is_err());
    }

    #[test]
    fn a_link_that_took_the_name_of_a_listed_file_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (file, link) = (place.path().join("a.json"), place.path().join("b.json"));
        std::fs::write(&file, "{}").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(listed_result(&file).unwrap(), b"{}");
        assert!(listed_result(&link).unwrap_err().to_string().contains("no plain file"));
        assert_eq!(result(&link).unwrap(), b"{}", "a link that is named is followed");
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, text).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn what_is_no_json_unpacks_to_little() {
        let most = OTHER_LIMIT as usize;
        let unpack = |text: &[u8]| unpack_gzip(packed(text), Path::new("a.gz"), LIMIT);
        for byte in [0, b' ', b'x'] {
            let text = vec![byte; most + 1];
            assert_eq!(unpack(&text[1..]).unwrap().len(), most);
            let error = unpack(&text).unwrap_err().to_string();
            assert!(error.starts_with("a.gz has no JSON, and unpacks to more than 16 MiB"), "{error}");
            assert_eq!(unpack_gzip(packed(&text), Path::new("a.gz"), u64::MAX).unwrap().len(), most + 1);
        }
        let json = [b"\n {".as_slice(), &vec![b' '; most]].concat();
        assert_eq!(unpack(&json).unwrap(), json);
        assert!(
            unpack_gzip(packed(b"abc"), Path::new("a.gz"), 2).unwrap_err().to_string().contains("--any-size")
        );
    }

    #[test]
    fn gzip_is_unpacked_whatever_the_name_and_never_to_more_than_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("r.json");
        let text = vec![b'x'; 1 << 20];
        let whole = packed(&text);
        assert!(whole.len() < 2000);
        let read = |content: &[u8], limit| {
            std::fs::write(&file, content).unwrap();
            read_bytes(&file, limit).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(read(&whole, 1 << 20).unwrap(), text);
        assert!(read(&whole, (1 << 20) - 1).unwrap_err().contains("--any-size"));
        assert_eq!(read(&[packed(b"a"), packed(b"b")].concat(), 99).unwrap(), b"ab");
        let mut wrong = whole.clone();
        wrong[whole.len() / 2] ^= 1;
        for damaged in [&whole[..2], &whole[..whole.len() / 2], &whole[..whole.len() - 1], &wrong] {
            let error = read(damaged, 1 << 20).unwrap_err();
            assert!(error.contains("r.json: what gzip packed there is damaged"), "{error}");
        }
    }
}
