//! Socket for the kicks: any byte is a kick, and the end of the socket is the end of the other side.

use super::super::RemoteAbsent;
use super::super::rings::Far;
use crate::notify::{Notifier, readable};
use anyhow::{Context, Result, bail};
use latscope_process::files::{self, HeldDirectory};
use latscope_process::made_name::MadeName;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Endpoint of a connection.
#[derive(Debug)]
pub(super) struct OpenampKickSocket(UnixStream);

impl OpenampKickSocket {
    /// Makes an endpoint of a connected stream.
    pub(super) fn new(stream: UnixStream) -> io::Result<OpenampKickSocket> {
        stream.set_nonblocking(true)?;
        Ok(OpenampKickSocket(stream))
    }
}

impl Notifier for OpenampKickSocket {
    fn notify(&mut self) -> io::Result<()> {
        match send(&self.0, &[1], SendFlags::NOSIGNAL) {
            // A full socket has kicks enough.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn wait_for_peer(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        if !readable(&self.0, timeout)? {
            return Ok(false);
        }
        let mut kicks = [0; 64];
        match recv(&self.0, &mut kicks, RecvFlags::empty()) {
            Ok((_, 0)) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, CLOSED)),
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

const CLOSED: &str = "the other side closed the socket";

impl Far for OpenampKickSocket {
    fn describe_end(&mut self) -> Option<String> {
        match recv(&self.0, &mut [0], RecvFlags::PEEK) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Some(CLOSED.into()),
            _ => None,
        }
    }
}

/// Error for a socket on which no process listens.
fn absence_error(path: &Path) -> RemoteAbsent {
    RemoteAbsent(format!("no process listens at {}: start one, {}", path.display(), serve_command(path)))
}

/// Returns the command that starts the side that a driver connects to.
fn serve_command(socket: &Path) -> String {
    let at = if socket == Path::new(super::SOCKET.default) {
        String::new()
    } else {
        format!(" --openamp-socket {}", socket.display())
    };
    format!("`latscope remote serve --openamp{at}` or process 0 of OpenAMP")
}

/// Time before the first report of a wait.
const SILENCE: Duration = Duration::from_secs(1);

/// Connects to the process that listens, or will in time. What a wait of more than a second is for is printed.
///
/// # Errors
/// [`RemoteAbsent`]: none does. It may not be talked to, or is no socket.
pub(super) fn connect(path: &Path, time: Duration, waiting: &dyn Fn(&str)) -> Result<UnixStream> {
    let start = Instant::now();
    let mut told = false;
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(error) if !is_absence(&error) => {
                return Err(error).with_context(|| format!("cannot connect to {}", path.display()));
            }
            // No process will ever listen to it.
            Err(_) if path.metadata().is_ok_and(|found| !found.file_type().is_socket()) => {
                bail!("{}", no_socket(path));
            }
            Err(_) if start.elapsed() >= time => return Err(absence_error(path).into()),
            Err(_) if !told && start.elapsed() >= SILENCE => {
                let left = time.saturating_sub(start.elapsed()).as_secs_f64().round();
                waiting(&format!(
                    "waiting for a process that listens at {}, at most {left} s more: start {}",
                    path.display(),
                    serve_command(path)
                ));
                told = true;
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Listens at the path; replaces the socket of an earlier run, if nothing else is there.
///
/// # Errors
/// The path belongs to another user, or a process listens there.
pub(super) fn listen(path: &Path) -> Result<(UnixListener, MadeName)> {
    unused(path)?;
    let cannot = || format!("cannot listen at {}", path.display());
    match MadeName::take_over(path, |looked| looked.kind() == FileType::Socket) {
        // It is removed there.
        Ok(Some(left)) => drop(left),
        Ok(None) => bail!("{}", no_socket(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(cannot),
    }
    MadeName::listen_at(path).with_context(cannot)
}

fn no_socket(path: &Path) -> String {
    format!("{} is no socket: give another --openamp-socket", path.display())
}

/// Checks that no process has a socket of this path. A connection would show it too, but OpenAMP listens for one
/// connection only, and would take this one for its driver.
///
/// # Errors
/// Another process has a socket of this path, or the directory cannot be entered.
pub(super) fn unused(path: &Path) -> Result<()> {
    let held =
        HeldDirectory::of_file(path).with_context(|| format!("cannot listen at {}", path.display()))?;
    let table = std::fs::read_to_string("/proc/net/unix").context("cannot see who listens where")?;
    let name = path.to_string_lossy();
    let is_here = |address: &str| address == name || is_in(&held, path, address);
    if table.lines().filter_map(path_of).any(is_here) {
        bail!("another process uses {name}: end it, or give another --openamp-socket");
    }
    Ok(())
}

/// Returns true if an address is [that](HeldDirectory::address) of a process that holds the directory for a socket of
/// this name, or could be.
fn is_in(held: &HeldDirectory, path: &Path, address: &str) -> bool {
    let address = Path::new(address);
    let words: Vec<&str> = address.iter().filter_map(OsStr::to_str).collect();
    let is_number = |word: &str| word.parse::<u32>().is_ok();
    match words[..] {
        ["/", "proc", process, "fd", number, _] if is_number(process) && is_number(number) => {
            let directory = files::directory_of(address);
            // Of a process that ended there is no directory. One that must not be looked into could be this one.
            let is_there = held.is_at(directory);
            let may_be =
                |error: io::Error| error.kind() != io::ErrorKind::NotFound && held.path_to(path).exists();
            let is_there = is_there.unwrap_or_else(may_be);
            address.file_name() == path.file_name() && is_there
        }
        _ => false,
    }
}

/// Returns the path in a line of the kernel's table of sockets: the text that follows the seventh word.
fn path_of(line: &str) -> Option<&str> {
    let mut rest = line;
    for _ in 0..7 {
        rest = rest.trim_start();
        rest = &rest[rest.find(' ')?..];
    }
    rest.strip_prefix(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_have_a_path_or_none() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 1234 /tmp/a b";
        assert_eq!(path_of(line), Some("/tmp/a b"));
        assert_eq!(path_of("0000000000000000: 00000003 00000000 00000000 0001 03 12345"), None);
        assert_eq!(path_of(""), None);
    }

    #[test]
    fn a_socket_is_found_by_its_directory_whatever_path_it_was_given() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let (_listener, _name) = listen(&path).unwrap();
        std::os::unix::fs::symlink(".", place.path().join("link")).unwrap();
        for path in [path.clone(), place.path().join("link/socket"), place.path().join("./socket")] {
            let line = listen(&path).unwrap_err().to_string();
            assert!(line.contains("another process uses"), "{line}");
        }
        unused(&place.path().join("other")).unwrap();
        let held = HeldDirectory::of_file(&path).unwrap();
        for address in ["/proc/self/fd/0/socket", "/proc/0/fd/0/socket", "/proc/1/fd/socket", "socket", ""] {
            assert!(!is_in(&held, &path, address), "{address}");
        }
    }
}
