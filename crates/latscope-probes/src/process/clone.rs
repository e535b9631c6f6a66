//! Children in namespaces of their own, or in another control group.

use crate::prelude::*;
use latscope_os::process_probe::{fork_exit_in, fork_exit_into, keep_children};
use latscope_process::guardian::{Guardian, UndoAction};
use rustix::fs::{Mode as FileMode, open};
use rustix::thread::UnshareFlags;
use std::fs;

static CLONE: Experiment = Experiment::new("process.clone", Cpus::One, run_clones).setup_per_point(0.02);

settings! {
    /// Place of a child.
    struct CloneChildSettings, requested as CloneChildRequest {
        /// Kind of the namespace that the child gets, beside none (`plain`) and another control group
        mode: CloneIsolationKind;
    }
}

words! {
    /// What a child does not share with its parent.
    enum CloneIsolationKind {
        /// Nothing: as fork.
        Plain = "plain",
        /// The control group: a new one of version 2.
        ControlGroup = "control-group",
        /// The namespace of host names (UTS).
        Uts = "uts",
        /// The namespace of System V IPC and POSIX message queues.
        Ipc = "ipc",
        /// The namespace of network devices.
        Net = "net",
        /// The namespace of mounts.
        Mount = "mount",
        /// The namespace of process ids.
        Pid = "pid",
        /// The namespace of users.
        User = "user",
    }
}

probes! {
    CLONE, CloneChildSettings, plan_clones;
    CHILD "process.clone", "clone, exit, wait", "clone(2), clone3(2), namespaces(7), cgroups(7)",
        "clone with a copy of the memory, a child that exits at once, and the wait for it, on one CPU. Mode \
        plain: as fork. Mode control-group: into a new group of version 2 (CLONE_INTO_CGROUP). The other modes: \
        into a new namespace of that kind."
            { by_name_only: true, };
}

fn plan_clones(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let mut points = Vec::new();
    for mode in CloneChildRequest::of(input).mode.or(CloneIsolationKind::ALL) {
        let title = match mode {
            CloneIsolationKind::Plain => format!("{}, nothing new", probe.title),
            CloneIsolationKind::ControlGroup => format!("{}, into a control group", probe.title),
            mode => format!("{}, new {} namespace", probe.title, mode.word()),
        };
        points.push(probe.make_point(CloneChildSettings { mode }, title, true));
    }
    points
}

impl CloneIsolationKind {
    fn namespaces(self) -> UnshareFlags {
        match self {
            CloneIsolationKind::Plain | CloneIsolationKind::ControlGroup => UnshareFlags::empty(),
            CloneIsolationKind::Uts => UnshareFlags::NEWUTS,
            CloneIsolationKind::Ipc => UnshareFlags::NEWIPC,
            CloneIsolationKind::Net => UnshareFlags::NEWNET,
            CloneIsolationKind::Mount => UnshareFlags::NEWNS,
            CloneIsolationKind::Pid => UnshareFlags::NEWPID,
            CloneIsolationKind::User => UnshareFlags::NEWUSER,
        }
    }
}

fn run_clones(bench: &mut Bench) -> Result<()> {
    keep_children();
    for (index, CloneChildSettings { mode }) in
        bench.settings::<CloneChildSettings>()?.into_iter().enumerate()
    {
        if mode != CloneIsolationKind::ControlGroup {
            time_clone(bench, index, mode, || fork_exit_in(mode.namespaces()));
            continue;
        }
        // It removes the group if this process is killed.
        let guardian = Guardian::default();
        let journal = |path: &Path| guardian.journal(UndoAction::RemoveInstance(path.to_owned())).map(drop);
        match ChildControlGroup::create(journal) {
            Ok(group) => time_clone(bench, index, mode, || fork_exit_into(&group.descriptor)),
            Err(error) => bench.unsupported(
                index,
                format!("no control group of version 2: {error:#}"),
                "run as root where a cgroup2 file system is mounted and may be written",
            ),
        }
    }
    Ok(())
}

/// Most children of a point. Network namespaces are freed by workers of the kernel, which are slower than the makers.
const MOST: u64 = 500;

fn time_clone(
    bench: &mut Bench,
    index: usize,
    mode: CloneIsolationKind,
    child: impl Fn() -> rustix::io::Result<()>,
) {
    if let Err(error) = child() {
        let (reason, remedy) = explain_refusal(mode, error);
        bench.unsupported(index, reason, remedy);
        return;
    }
    let stop = bench.stop();
    bench.set_stop(Stop { events: stop.events.min(MOST), ..stop });
    time_each(bench, index, SampleGate::Open, "clone", child);
    bench.set_stop(stop);
}

/// Returns the reason why there is no such child, and the remedy.
fn explain_refusal(mode: CloneIsolationKind, error: Errno) -> (String, &'static str) {
    let operation = format!("clone ({})", mode.word());
    match error {
        Errno::PERM | Errno::ACCESS if mode == CloneIsolationKind::User => {
            let sysctl = "allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)";
            (explain(&operation, error).0, sysctl)
        }
        Errno::PERM | Errno::ACCESS if mode != CloneIsolationKind::Plain => {
            (explain(&operation, error).0, "run as root or with CAP_SYS_ADMIN")
        }
        Errno::INVAL => (format!("{operation}: {error}: the kernel has none of this kind"), ""),
        Errno::NOSPC | Errno::USERS => {
            (explain(&operation, error).0, "raise the limit on namespaces (/proc/sys/user/max_*_namespaces)")
        }
        _ => explain(&operation, error),
    }
}

/// A new control group below that of this process, removed when dropped.
struct ChildControlGroup {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl ChildControlGroup {
    /// Makes the group, whose path is journalled before that.
    fn create(journal: impl FnOnce(&Path) -> Result<()>) -> Result<ChildControlGroup> {
        let own = own_group(&fs::read_to_string("/proc/mounts")?, &fs::read_to_string("/proc/self/cgroup")?);
        let own = own.context("no cgroup2 file system is mounted")?;
        // Two threads may each have one.
        let path = own.join(format!("latscope-{}", rustix::thread::gettid().as_raw_nonzero()));
        journal(&path)?;
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open(&path, flags, FileMode::empty()) {
            Ok(descriptor) => Ok(ChildControlGroup { path, descriptor }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error).with_context(|| path.display().to_string())
            }
        }
    }
}

impl Drop for ChildControlGroup {
    fn drop(&mut self) {
        // All of its processes have been waited for.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Directory of the group of this process, by the texts of `/proc/mounts` and `/proc/self/cgroup`.
fn own_group(mounts: &str, groups: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then_some(place)
    })?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(Path::new(mount).join(group.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skipped::skipped;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness::{check, measure, points};

    #[test]
    fn children_of_every_kind_are_made_or_say_what_is_missing() {
        let all = measure(&CLONE, points(&CHILD));
        assert_eq!(all.len(), 8);
        all.iter().for_each(check);
        assert_ne!(all[0].quality.level, QualityLevel::Unsupported, "{:?}", all[0].joined_reasons());
    }

    #[test]
    fn the_group_of_a_process_is_below_the_mount() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let path = |groups| own_group(mounts, groups);
        assert_eq!(path("4:memory:/x\n0::/a/b\n"), Some("/sys/fs/cgroup/unified/a/b".into()));
        assert_eq!(path("0::/\n"), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(path("4:memory:/x\n"), None);
        assert_eq!(own_group("cgroup /c cgroup rw 0 0\n", "0::/\n"), None);
    }

    #[test]
    fn a_group_is_made_and_removed() {
        let mut journalled = None;
        let journal = |path: &Path| {
            assert!(!path.exists(), "it is journalled first");
            journalled = Some(path.to_owned());
            Ok(())
        };
        let group = match ChildControlGroup::create(journal) {
            Ok(group) => group,
            Err(refused) => return skipped("a_group_is_made_and_removed", &format!("{refused:#}")),
        };
        let path = group.path.clone();
        assert_eq!(journalled.as_ref(), Some(&path));
        assert_eq!(fork_exit_into(&group.descriptor), Ok(()));
        drop(group);
        assert!(!path.exists());
        // What is no control group is refused.
        let elsewhere = open("/", OFlags::RDONLY | OFlags::DIRECTORY, FileMode::empty()).unwrap();
        assert_eq!(fork_exit_into(&elsewhere), Err(Errno::BADF));
    }

    #[test]
    fn a_group_that_cannot_be_journalled_is_not_made() {
        let mut path = None;
        let refused = |place: &Path| {
            path = Some(place.to_owned());
            anyhow::bail!("no guardian")
        };
        assert!(ChildControlGroup::create(refused).is_err());
        assert!(path.is_none_or(|path| !path.exists()));
    }

    #[test]
    fn a_missing_right_is_named() {
        assert!(explain_refusal(CloneIsolationKind::Net, Errno::PERM).1.contains("CAP_SYS_ADMIN"));
        assert!(explain_refusal(CloneIsolationKind::User, Errno::PERM).1.contains("user namespaces"));
    }
}
