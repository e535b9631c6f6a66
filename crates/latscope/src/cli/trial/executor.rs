//! Runs commands of the shell and runs of latscope one after the other, so that all that was changed is put back
//! whatever ends the trial: a failing command, a signal, or SIGKILL, after which the guardian does it.

use super::super::live::RunsScreen;
use super::plan_file::PlanFile;
use super::settings::ArmSettings;
use anyhow::{Context, Result, bail, ensure};
use latscope_core::plan::Plan;
use latscope_os::signal::{self, SignalFd};
use latscope_os::worker;
use latscope_process::guardian::{Guardian, Ticket, UndoAction};
use latscope_process::halted::{Standstill, is_halted, resume};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Executor of the commands of a trial.
pub struct Executor {
    guardian: Guardian,
    signals: SignalFd,
    settings: ArmSettings,
    /// Terminal that keys come from. `screen` is the ticket that restores it.
    keys: Option<OwnedFd>,
    screen: Option<Ticket>,
    restore: Option<(String, Ticket)>,
    /// Longest time of a command of the shell.
    limit: Duration,
    /// True if a command of an arm ran. The restoring command is excepted: when only it ran, there is nothing to
    /// restore.
    changed: bool,
    /// Signals that arrived, and the first of them.
    arrived: u32,
    stopped: Option<i32>,
}

/// Time in which a command of the shell ends after a signal.
const HOOK_GRACE: Duration = Duration::from_secs(2);

/// Effect of a signal on the process that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnSignal {
    /// The signal is handed on: the run ends and saves what it has. The third signal kills it.
    HandOn,
    /// The process may end within seconds; the second one kills it.
    Wait,
    /// Nothing: what was changed has to be put back.
    Ignore,
}

impl Executor {
    /// Starts the guardian and hands it how to put back what the plan changes.
    ///
    /// # Errors
    /// There is no guardian, or signals cannot be waited for.
    pub fn start_executor(plan: &PlanFile, settings: ArmSettings, limit: Duration) -> Result<Executor> {
        let signals = SignalFd::block(&signal::TERMINATION).context("cannot wait for signals")?;
        let guardian = Guardian::default();
        let restore = match plan.restore() {
            Some(command) => {
                Some((command.to_owned(), guardian.journal(UndoAction::Shell(command.to_owned()))?))
            }
            None => None,
        };
        Ok(Executor {
            guardian,
            signals,
            settings,
            keys: None,
            screen: None,
            restore,
            limit,
            changed: false,
            arrived: 0,
            stopped: None,
        })
    }

    /// Also waits for keys of a screen, whose terminal the guardian is to restore.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn watch_screen(&mut self, screen: &RunsScreen) -> Result<()> {
        self.screen = Some(self.guardian.journal(screen.undo())?);
        self.keys = rustix::io::dup(screen.input()).ok();
        Ok(())
    }

    /// The terminal is as it was: to restore it once more would move the cursor back over what is printed now.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn release_screen(&mut self) -> Result<()> {
        self.keys = None;
        self.screen.take().map_or(Ok(()), |ticket| self.guardian.forget(ticket))
    }

    /// Tries what the arms set; of an arm whose values are refused, why.
    ///
    /// # Errors
    /// As [`ArmSettings::guard`].
    pub fn try_settings(&mut self) -> Result<Vec<Option<String>>> {
        self.settings.guard(&self.guardian)
    }

    /// Writes what an arm sets.
    ///
    /// # Errors
    /// As [`ArmSettings::apply`].
    pub fn apply_arm(&self, arm: usize) -> Result<()> {
        self.settings.apply_arm(arm)
    }

    /// The name of the signal that is to end the trial.
    pub fn stopped(&mut self) -> Result<Option<String>> {
        self.take_signals(None, OnSignal::Wait)?;
        Ok(self.stopped.map(signal::signal_name))
    }

    /// Runs a command of the shell that changes something; its output goes to the log.
    ///
    /// # Errors
    /// The command fails; the text has its last lines.
    pub fn shell(&mut self, command: &str, log: &Path) -> Result<()> {
        self.changed |= self.restore.as_ref().is_some_and(|(restore, _)| restore != command);
        self.change(command, log, OnSignal::Wait)
    }

    /// Returns true if a command may have changed something that [`Executor::restore`] restores.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    fn change(&mut self, command: &str, log: &Path, on: OnSignal) -> Result<()> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        let (mut child, ticket) = self.spawn(shell, log)?;
        let deadline = Instant::now() + self.limit;
        if !self.wait_for_end(&child, on, Some(deadline), &mut || {})? {
            self.guardian.undo(ticket)?;
            child.wait()?;
            if let Some(signal) = self.stopped {
                bail!("{command:?} was ended, since {} came{}", signal::signal_name(signal), last_lines(log));
            }
            let limit = humantime::format_duration(self.limit);
            bail!("{command:?} took longer than {limit} and was ended (--hook-timeout){}", last_lines(log));
        }
        // What it started in the background is to stay.
        self.guardian.forget(ticket)?;
        let status = child.wait()?;
        ensure!(status.success(), "{command:?} failed ({status}){}", last_lines(log));
        Ok(())
    }

    /// Runs latscope with these words to its end, or until a signal: its exit code, `None` if a signal killed it.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn run_latscope(
        &mut self,
        prefix: &[String],
        words: &[String],
        log: &Path,
        tick: &mut dyn FnMut(),
    ) -> Result<Option<i32>> {
        let mut command = worker::own_binary_behind(prefix)?;
        command.args(words);
        let (mut child, ticket) = self.spawn(command, log)?;
        self.wait_for_end(&child, OnSignal::HandOn, None, tick)?;
        // Also what it left behind. Its number is free only when it was waited for.
        self.guardian.undo(ticket)?;
        Ok(child.wait()?.code())
    }

    fn spawn(&mut self, mut command: Command, log: &Path) -> Result<(Child, Ticket)> {
        let file = log_file(log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = worker::accompany(command, &[]).with_context(|| format!("cannot run {name}"))?;
        let ticket = self.guardian.journal(UndoAction::EndGroup(child.id()))?;
        Ok((child, ticket))
    }

    /// Waits until a process has ended, which can still be waited for then. One that was stopped goes on. Returns false
    /// if the deadline came first; then its group is killed.
    fn wait_for_end(
        &mut self,
        child: &Child,
        on: OnSignal,
        deadline: Option<Instant>,
        tick: &mut dyn FnMut(),
    ) -> Result<bool> {
        let process = Pid::from_child(child);
        // Kernels before 5.3 have none.
        let ended = pidfd_open(process, PidfdFlags::empty()).ok();
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let often = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let (mut deadline, mut standstill) = (deadline, Standstill::default());
        loop {
            self.take_signals(Some(process), on)?;
            if on == OnSignal::Wait && self.stopped.is_some() {
                let soon = Instant::now() + HOOK_GRACE;
                deadline = Some(deadline.map_or(soon, |deadline| deadline.min(soon)));
            }
            if standstill.note_look(is_halted(child.id())) {
                resume(child.id());
            }
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if waitid(WaitId::Pid(process), options)?.is_some() {
                return Ok(true);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let _ = kill_process_group(process, Signal::KILL);
                return Ok(false);
            }
            tick();
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN)));
            // Only a run of latscope looks at them.
            let keys = self.keys.as_ref().filter(|_| on == OnSignal::HandOn);
            fds.extend(keys.map(|keys| PollFd::new(keys, PollFlags::IN)));
            match poll(&mut fds, Some(if ended.is_some() { &second } else { &often })) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for a process"),
            }
            let keys = keys.and_then(|_| fds.last()).map(PollFd::revents);
            // A terminal that is gone can always be read.
            if keys.is_some_and(|keys| keys.intersects(PollFlags::HUP | PollFlags::ERR)) {
                self.keys = None;
            }
        }
    }

    fn take_signals(&mut self, process: Option<Pid>, on: OnSignal) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            self.arrived += 1;
            self.stopped.get_or_insert(signal);
            let what = match (on, self.arrived) {
                (OnSignal::Ignore, _) | (OnSignal::Wait, ..2) => None,
                (OnSignal::HandOn, ..3) => Signal::from_named_raw(signal),
                (OnSignal::HandOn | OnSignal::Wait, _) => Some(Signal::KILL),
            };
            if let (Some(process), Some(what)) = (process, what) {
                let _ = kill_process_group(process, what);
                // A process that was stopped takes no signal before it goes on.
                let _ = kill_process_group(process, Signal::CONT);
            }
        }
        Ok(())
    }

    /// Restores what the trial changed.
    ///
    /// # Errors
    /// A change cannot be restored; the text says what to do.
    pub fn restore(&mut self, log: &Path) -> Result<()> {
        let settings = self.settings.restore().context("a file of the kernel is not restored");
        if settings.is_ok() {
            self.settings.forget(&self.guardian)?;
        }
        let Some((command, ticket)) = self.restore.take() else { return settings };
        let shell = if self.changed { self.change(&command, log, OnSignal::Ignore) } else { Ok(()) };
        // Once is enough, also if it fails: then the user has to look.
        self.guardian.forget(ticket)?;
        shell.context("what the trial changed is not restored: do it by hand").and(settings)
    }
}

/// A log to append to: a new file, or one that was made before, not what another user put there.
fn log_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let file = options.open(path)?;
    let about = file.metadata()?;
    let own = about.uid() == rustix::process::geteuid().as_raw() && about.nlink() == 1;
    if about.is_file() && own {
        Ok(file)
    } else {
        Err(io::Error::other("it is no file that was made for this"))
    }
}

/// Returns true if a command of the shell succeeds.
///
/// # Errors
/// There is no shell, or it takes longer than the limit.
pub fn succeeds(command: &str, limit: Duration) -> Result<bool> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = worker::accompany(shell, &[]).context("cannot run sh")?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if Instant::now() >= deadline {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait()?;
            bail!("{command:?} took longer than {} (--hook-timeout)", humantime::format_duration(limit));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The first of the options that each run is given, of which one shows its plan.
const OURS: [&str; 3] = ["--quiet", "--label", "--dry-run"];

/// Options that a run is given, and cannot have twice.
const GIVEN: [&str; 2] = ["--json", "--dry-run"];

/// The plan of a run: what latscope would measure with these words.
///
/// # Errors
/// latscope refuses the words, or the command does not measure; the text is that of latscope.
pub fn plan_of(prefix: &[String], words: &[String]) -> Result<Plan> {
    let is = |word: &String, option: &str| word.split('=').next() == Some(option);
    if let Some(option) = GIVEN.iter().find(|option| words.iter().any(|word| is(word, option))) {
        bail!("{option} is for the trial, which saves each run in its directory: leave it out here");
    }
    let mut command = worker::own_binary_behind(prefix)?;
    let command = command.args(words).args(["--dry-run", "--json", "-"]).stdin(Stdio::null());
    let shown = command
        .output()
        .with_context(|| format!("cannot run {}", prefix.first().map_or("latscope", String::as_str)))?;
    let said = String::from_utf8_lossy(&shown.stderr);
    let said = said.trim();
    // What measures has these options.
    if OURS.iter().any(|option| said.contains(&format!("unexpected argument '{option}'"))) {
        let command = words.first().map_or("", String::as_str);
        bail!("{command} does not measure: choose a command such as wake, ipc or survey");
    }
    if !shown.status.success() {
        bail!(
            "{}",
            said.strip_prefix("latscope: ").unwrap_or(if said.is_empty() { "it fails" } else { said })
        );
    }
    serde_json::from_slice(&shown.stdout).context("it measures nothing")
}

/// The lines of a log that a message ends with.
const LINES: usize = 20;

/// The end of a log, on lines of its own; nothing if it is empty.
fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[lines.len().saturating_sub(LINES)..];
    if kept.is_empty() { ", and printed nothing".to_owned() } else { format!(":\n{}", kept.join("\n")) }
}

/// Error message of latscope in the log of a failed run: its last line.
pub fn complaint(log: &Path) -> Option<String> {
    let text = File::open(log).and_then(io::read_to_string).ok()?;
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.strip_prefix("latscope: ").unwrap_or(line).to_owned())
}
