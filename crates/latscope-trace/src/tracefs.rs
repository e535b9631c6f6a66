//! Instances of the kernel's trace for latscope alone.
//!
//! tracefs gives every directory made in `instances/` buffers, events and options of its own
//! (Documentation/trace/ftrace.rst, "Instances"). So no trace of another process is touched, and removing the
//! directory undoes everything.

pub use latscope_process::guardian::write_kernel_file;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::fs::{self};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Reason for which there can be no trace instance, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {remedy}")]
pub struct TraceInstanceError {
    /// Thing that is missing or refused.
    pub reason: String,
    /// Command or step that fixes the problem.
    pub remedy: &'static str,
}

/// Trace instance of latscope. It is removed when dropped.
#[derive(Debug)]
pub struct TracefsInstance {
    directory: PathBuf,
}

impl TracefsInstance {
    /// Makes the instance `latscope-PID`. `journal` is called with the directory
    /// before it is made, so that it can be removed even if this process is
    /// killed.
    ///
    /// # Errors
    /// tracefs is not mounted, the kernel or the permissions do not allow an
    /// instance, or `journal` fails; then nothing was changed.
    pub fn create_with_journal(
        journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
    ) -> Result<TracefsInstance, TraceInstanceError> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let tracefs = mount_point(&mounts).ok_or_else(|| TraceInstanceError {
            reason: "tracefs is not mounted".to_owned(),
            remedy: "run `mount -t tracefs nodev /sys/kernel/tracing` as root (docker: --privileged -v /sys/kernel/tracing:/sys/kernel/tracing)",
        })?;
        TracefsInstance::create_in(&tracefs, journal)
    }

    fn create_in(
        tracefs: &Path,
        journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
    ) -> Result<TracefsInstance, TraceInstanceError> {
        let directory = free_name(&tracefs.join("instances"))?;
        journal(&directory).map_err(|error| TraceInstanceError {
            reason: format!("{error:#}"),
            remedy: "run again; no trace is recorded that could not be cleared up",
        })?;
        fs::create_dir(&directory).map_err(|error| file_refusal(&directory, &error))?;
        Ok(TracefsInstance { directory })
    }

    /// Writes a file of the instance.
    ///
    /// # Errors
    /// The kernel refuses; the text names the file.
    pub fn write_file(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.directory.join(file);
        write_kernel_file(&path, value).map_err(|error| error_with_path(&path, &error))
    }

    /// Writes several files of the instance.
    ///
    /// # Errors
    /// The kernel refuses one of them.
    pub(crate) fn set_all(&self, settings: &[(&str, &str)]) -> Result<(), TraceInstanceError> {
        settings
            .iter()
            .try_for_each(|(file, value)| self.write_file(file, value))
            .map_err(|error| self.setting_refusal(&error))
    }

    /// Gives each CPU a buffer with its share of `sum`, at least 64 if `most` allows it and at most `most`, KiB.
    /// Returns the size, KiB.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn set_buffers(&self, sum: usize, most: usize) -> Result<usize, TraceInstanceError> {
        let size = (sum / self.cpu_count().max(1)).clamp(64.min(most), most);
        self.write_file("buffer_size_kb", &size.to_string()).map_err(|error| self.setting_refusal(&error))?;
        Ok(size)
    }

    /// Returns the number of CPUs with a buffer.
    pub fn cpu_count(&self) -> usize {
        fs::read_dir(self.directory.join("per_cpu")).map_or(1, Iterator::count)
    }

    /// Enables an event, as `sched/sched_switch`, or all of a system.
    ///
    /// # Errors
    /// The kernel has no such event.
    pub fn enable(&self, event: &str) -> io::Result<()> {
        self.write_file(&format!("events/{event}/enable"), "1")
    }

    /// Reads a file of the instance.
    ///
    /// # Errors
    /// The kernel refuses; the text names the file.
    pub fn read_file(&self, file: &str) -> io::Result<String> {
        let path = self.directory.join(file);
        let bytes = read_in_parts(&path).map_err(|error| error_with_path(&path, &error))?;
        // Names of threads can be any bytes.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the directory of the instance.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file that remarks are written to.
    pub fn marker_path(&self) -> PathBuf {
        self.directory.join("trace_marker")
    }

    /// Returns the error for a setting that the kernel refuses, with its remedy.
    pub fn setting_refusal(&self, error: &io::Error) -> TraceInstanceError {
        TraceInstanceError { reason: error.to_string(), remedy: remedy(error) }
    }
}

impl Drop for TracefsInstance {
    fn drop(&mut self) {
        // Busy as long as a worker holds its marker; then the journal's keeper
        // removes it, who has the patience.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Directory on which latscope mounts tracefs, if it is not mounted.
const USUAL: &str = "/sys/kernel/tracing";

/// Mounts tracefs for this process and its future children, if it is not mounted: in a mount namespace of its
/// own, so that the rest of the machine does not change. Without the permission for it nothing is changed, and
/// the error of [`TracefsInstance::create_with_journal`] names the problem. The process must have only one thread.
pub fn provide() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let kinds = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let root = rustix::process::geteuid().is_root();
    if !root || mount_point(&mounts).is_some() || !kinds.contains("\ttracefs\n") {
        return;
    }
    if latscope_os::sched::own_mounts().is_ok() {
        // Further mounts of others come in, this one does not go out.
        let inwards = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        if mount_change("/", inwards).is_ok() {
            let _ = mount("nodev", USUAL, "tracefs", MountFlags::empty(), None);
        }
    }
}

/// Returns the mount point of tracefs by the content of `/proc/mounts`: a mount of its own, or a part of
/// debugfs, in which older kernels mount it.
pub(crate) fn mount_point(mounts: &str) -> Option<PathBuf> {
    let [tracefs, debugfs] = ["tracefs", "debugfs"].map(|kind| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let place = fields.nth(1)?;
            (fields.next()? == kind).then(|| PathBuf::from(place))
        })
    });
    tracefs.or(debugfs.map(|debugfs| debugfs.join("tracing")))
}

/// Returns true if the kernel has an event `SYSTEM:NAME`; `None` if that cannot be seen.
pub fn has_event(event: &str) -> Option<bool> {
    let events = mount_point(&fs::read_to_string("/proc/mounts").ok()?)?.join("events");
    fs::read_dir(&events).ok()?;
    Some(events.join(event.replacen(':', "/", 1)).join("format").exists())
}

/// Returns the id of an event, as `raw_syscalls/sys_enter`, for perf_event_open(2).
///
/// # Errors
/// tracefs is not mounted or cannot be read, or the kernel has no such event; the text names the file.
pub fn event_id(event: &str) -> io::Result<u64> {
    let tracefs = mount_point(&fs::read_to_string("/proc/mounts")?).unwrap_or_else(|| USUAL.into());
    let path = tracefs.join("events").join(event).join("id");
    let text = fs::read_to_string(&path).map_err(|error| error_with_path(&path, &error))?;
    text.trim().parse().map_err(|_| error_with_path(&path, &ErrorKind::InvalidData.into()))
}

/// Number of instances that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Returns a free name: `latscope-PID`, with a number behind it for a second instance, or if an earlier process
/// of this id has left one.
pub(super) fn free_name(instances: &Path) -> Result<PathBuf, TraceInstanceError> {
    let pid = std::process::id();
    let first = MADE.fetch_add(1, Ordering::Relaxed);
    (first..first.saturating_add(100))
        .map(
            |number| if number == 0 { format!("latscope-{pid}") } else { format!("latscope-{pid}-{number}") },
        )
        .map(|name| instances.join(name))
        .find(|path| matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound))
        .ok_or_else(|| match instances.read_dir() {
            Err(error) => file_refusal(instances, &error),
            Ok(_) => TraceInstanceError {
                reason: format!("{} holds too many instances of latscope", instances.display()),
                remedy: "remove those of processes that are gone: `rmdir latscope-*` there, as root",
            },
        })
}

pub(super) fn file_refusal(path: &Path, error: &io::Error) -> TraceInstanceError {
    TraceInstanceError { reason: error_with_path(path, error).to_string(), remedy: remedy(error) }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "run as root",
        ErrorKind::NotFound => "use a kernel with CONFIG_TRACING and CONFIG_FTRACE, and mounted tracefs",
        ErrorKind::ResourceBusy => "wait until its present user is done (`fuser`, rtla)",
        ErrorKind::OutOfMemory => "free some memory: the buffers take up to 64 MiB",
        _ => "see whether tracing is locked down: `cat /sys/kernel/security/lockdown`",
    }
}

/// Reads a file in large parts, since some of the files there answer only one read.
fn read_in_parts(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let (mut bytes, mut part) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(bytes),
            length => bytes.extend_from_slice(&part[..length]),
        }
    }
}

/// Returns the error with the file's name before it.
pub fn error_with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Helpers for tests of instances.
#[cfg(test)]
pub mod testing {
    use super::*;

    /// Returns the settings that all processes on the machine share.
    pub(crate) fn shared_settings() -> Vec<String> {
        let files =
            ["tracing_on", "current_tracer", "set_event", "trace_clock", "set_event_pid", "trace_options"];
        let root = mount_point(&fs::read_to_string("/proc/mounts").unwrap()).unwrap();
        files.iter().map(|file| fs::read_to_string(root.join(file)).unwrap()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_found_on_its_own_or_in_debugfs() {
        let debugfs = "proc /proc proc rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n";
        assert_eq!(mount_point(debugfs), Some("/sys/kernel/debug/tracing".into()));
        let both = format!("{debugfs}nodev /sys/kernel/tracing tracefs rw 0 0\n");
        assert_eq!(mount_point(&both), Some("/sys/kernel/tracing".into()));
        assert_eq!(mount_point("tracefs /tmp ext4 rw 0 0"), None);
    }

    #[test]
    fn a_directory_that_is_no_tracefs_is_refused_with_a_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let mut journalled = 0;
        let mut journal = |_: &Path| {
            journalled += 1;
            Ok(())
        };
        let refusal = TracefsInstance::create_in(directory.path(), &mut journal).unwrap_err();
        assert!(refusal.reason.contains("instances"), "{refusal}");
        assert_eq!(journalled, 1);
        fs::create_dir(directory.path().join("instances")).unwrap();
        let refusal =
            TracefsInstance::create_in(directory.path(), &mut |_| anyhow::bail!("full")).unwrap_err();
        assert_eq!(refusal.reason, "full");
        assert_eq!(fs::read_dir(directory.path().join("instances")).unwrap().count(), 0);
    }
}
