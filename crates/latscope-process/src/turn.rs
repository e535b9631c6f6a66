//! Turns of runs on one host: an advisory lock on a file that all users share. A run holds it shared, so that it never
//! waits for another one unasked; one that waits for its turn takes it alone for an instant, and then shared, too.

use crate::files::Looked;
use anyhow::{Result, anyhow, bail};
use latscope_core::units::{first_words, format_span};
use latscope_os::signal::{self, TERMINATION};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use std::fs::read_to_string;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Name of the file.
const NAME: &str = "latscope.lock";

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Time for which a run that does not wait tries to be seen by those that do.
const MOMENT: Duration = Duration::from_millis(200);

/// Turn of a run. Other runs can wait until it is dropped, or its process has ended.
#[derive(Debug)]
pub struct RunLock(Option<OwnedFd>);

impl Drop for RunLock {
    fn drop(&mut self) {
        // A child that another thread forks just now has the file open until it executes its program.
        if let Some(file) = &self.0 {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// The directories in which the file can lie, the first that can be used; the user can name the only one.
fn places() -> Vec<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    match named("LATSCOPE_LOCK_DIR") {
        Some(only) => vec![only],
        None => {
            let own = named("XDG_RUNTIME_DIR");
            [Some("/run/lock".into()), own, Some("/tmp".into())].into_iter().flatten().collect()
        }
    }
}

/// Begins a run without waiting. A run that asks for its turn later waits for it.
pub fn begin_run() -> RunLock {
    begin_in(&places())
}

fn begin_in(places: &[PathBuf]) -> RunLock {
    let Ok(file) = open_first(places) else { return RunLock(None) };
    let began = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        if began.elapsed() >= MOMENT {
            return RunLock(None);
        }
        sleep(PAUSE);
    }
    RunLock(Some(file))
}

/// Waits for the end of all other runs, at most for `limit`. `waiting` is called once, with the run that is waited for:
/// its process and its command line if `names` is true.
///
/// # Errors
/// There is no place for the lock, or another run lasts longer.
pub fn wait_for_others(limit: Duration, names: bool, waiting: impl FnMut(&str)) -> Result<RunLock> {
    wait_in(&places(), limit, names, waiting)
}

fn wait_in(
    places: &[PathBuf],
    limit: Duration,
    names: bool,
    mut waiting: impl FnMut(&str),
) -> Result<RunLock> {
    let file = open_first(places)
        .map_err(|why| anyhow!("there is no place for the lock by which runs wait for each other ({why})"))?;
    let began = Instant::now();
    let holder = || if names { holder(&file) } else { "another latscope".to_owned() };
    let mut announced = false;
    loop {
        // From the exclusive to the shared lock another one can come between: then it was its turn.
        let alone = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if alone.and_then(|()| flock(&file, FlockOperation::NonBlockingLockShared)).is_ok() {
            return Ok(RunLock(Some(file)));
        }
        if began.elapsed() >= limit {
            bail!("{} still runs", holder());
        }
        // The signals of a run are blocked until it listens to them.
        if let Some(signal) = signal::pending(&TERMINATION) {
            bail!("interrupted by {} while {} ran", signal::signal_name(signal), holder());
        }
        if !std::mem::replace(&mut announced, true) {
            waiting(&holder());
        }
        sleep(PAUSE.min(limit.saturating_sub(began.elapsed())));
    }
}

/// Opens the file in the first of the places that lets this process, else says why not.
fn open_first(places: &[PathBuf]) -> std::result::Result<OwnedFd, String> {
    let mut reasons = Vec::new();
    for place in places {
        match opened_in(place) {
            Ok(file) => return Ok(file),
            Err(error) => reasons.push(format!("{}: {error}", place.join(NAME).display())),
        }
    }
    Err(reasons.join("; "))
}

/// Opens the file, and makes it if it is not there. Nothing is ever written to it. What any user of the directory could
/// put in its place is neither followed nor opened.
fn opened_in(place: &Path) -> io::Result<OwnedFd> {
    let path = place.join(NAME);
    let made = OFlags::RDONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let looked = match Looked::at_name(&path) {
        // What exists is never created anew: the kernel may refuse that for another user's file (protected_regular).
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match open(&path, made, Mode::from_raw_mode(0o444)) {
                Err(Errno::EXIST) => Looked::at_name(&path)?,
                made => return Ok(made?),
            }
        }
        looked => looked?,
    };
    if looked.kind() == FileType::RegularFile {
        return Ok(looked.open(OFlags::RDONLY)?.into());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
}

/// The process that holds the lock, in words, as /proc/locks has it.
fn holder(file: &OwnedFd) -> String {
    let inode = fstat(file).map_or(0, |about| about.st_ino);
    let locks = read_to_string("/proc/locks").unwrap_or_default();
    let own = std::process::id();
    let holders = locks.lines().filter_map(|line| holding(line, inode)).filter(|pid| *pid != own && *pid > 0);
    match holders.map(|pid| (pid, command_suffix(pid))).next() {
        Some((pid, command)) => {
            let age = age(pid).map_or_else(String::new, |age| {
                format!(", running for {}", format_span(age.as_nanos() as f64))
            });
            format!("another latscope (pid {pid}{age}{command})")
        }
        None => "another latscope".to_owned(),
    }
}

/// The holder in a line `1: FLOCK ADVISORY READ 4711 00:1a:77 0 EOF`, if it is of this file.
fn holding(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, file, ..] = words[..] else { return None };
    (file.rsplit(':').next()?.parse() == Ok(inode)).then(|| pid.parse().ok()).flatten()
}

/// Time since the start of a process, in whole seconds.
fn age(pid: u32) -> Option<Duration> {
    let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    age_of(&stat, &read_to_string("/proc/uptime").ok()?, clock_ticks_per_second())
}

/// Age of a process by its `stat`, the uptime of the host and the ticks of a second.
fn age_of(stat: &str, uptime: &str, ticks: u64) -> Option<Duration> {
    // The name of the program, which may have blanks, ends at the last bracket; the 22nd field is the start in ticks.
    let started: u64 = stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()?;
    let up: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_secs((up as u64).saturating_sub(started / ticks.max(1))))
}

fn command_suffix(pid: u32) -> String {
    let words = read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = first_words(words.split('\0'));
    if words.is_empty() { words } else { format!(", `{words}`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_run_that_waits_comes_after_those_that_do_not() {
        let place = tempfile::tempdir().unwrap();
        let places = [place.path().to_owned()];
        let (first, second) = (begin_in(&places), begin_in(&places));
        assert!(first.0.is_some() && second.0.is_some(), "runs that do not wait go on side by side");
        drop(first);
        let mut heard = Vec::new();
        let taken = wait_in(&places, Duration::from_millis(1), true, |who| heard.push(who.to_owned()));
        assert!(taken.unwrap_err().to_string().starts_with("another latscope"));
        assert!(heard.len() <= 1, "{heard:?}");
        drop(second);
        let third = wait_in(&places, Duration::ZERO, true, |_| ()).unwrap();
        assert!(wait_in(&places, Duration::ZERO, true, |_| ()).is_err(), "the third has its turn");
        assert!(begin_in(&places).0.is_some());
        // A child that was forked meanwhile has such a copy.
        let _inherited = third.0.as_ref().unwrap().try_clone().unwrap();
        drop(third);
        assert!(wait_in(&places, Duration::ZERO, true, |_| ()).is_ok());
    }

    #[test]
    fn the_age_of_a_process_is_that_since_its_start() {
        let stat = "4711 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 30000 20 21";
        assert_eq!(age_of(stat, "425.18 800.0\n", 100), Some(Duration::from_secs(125)));
        assert_eq!(age_of("4711 (a", "425.18 800.0\n", 100), None);
        assert!(age(std::process::id()).is_some_and(|age| age < Duration::from_secs(86_400)));
    }

    #[test]
    fn links_and_pipes_in_the_place_of_the_file_are_not_used() {
        let place = tempfile::tempdir().unwrap();
        let (link, pipe) = (place.path().join("a"), place.path().join("b"));
        let target = place.path().join("target");
        [&link, &pipe].iter().for_each(|path| std::fs::create_dir(path).unwrap());
        symlink(&target, link.join(NAME)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(pipe.join(NAME)).status().unwrap();
        assert!(made.success());
        let planted = [link.clone(), pipe, place.path().join("c")];
        let reasons = wait_in(&planted, Duration::ZERO, true, |_| ()).unwrap_err().to_string();
        assert!(!target.exists(), "the link was followed");
        assert!(
            reasons.contains("no plain file") && reasons.matches("latscope.lock").count() == 3,
            "{reasons}"
        );
        let used = wait_in(&[link, place.path().to_owned()], Duration::ZERO, true, |_| ()).unwrap();
        assert!(used.0.is_some() && place.path().join(NAME).exists());
    }

    #[test]
    fn holders_are_read_from_the_list_of_locks() {
        let line = "3: FLOCK  ADVISORY  READ 4711 00:1a:77 0 EOF";
        assert_eq!((holding(line, 77), holding(line, 7)), (Some(4711), None));
        assert_eq!(holding("1: POSIX  ADVISORY  WRITE 1 00:1a:77 0 EOF", 77), None);
        assert_eq!(holding("", 77), None);
    }
}
