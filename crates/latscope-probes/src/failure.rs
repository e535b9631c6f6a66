//! Operations that fail while they are measured.

use latscope_bench::bench::Bench;
use latscope_bench::gate::SampleGate;
use latscope_core::units::count_with_noun;
use rustix::io::{Errno, Result};
use std::io;

/// First error of an operation that is repeated in a timed loop, kept until it can be reported.
#[derive(Debug, Default)]
pub(crate) struct FirstError(Option<Errno>);

impl FirstError {
    /// Returns the value on success; keeps the error if it is the first.
    #[inline(always)]
    pub fn check_result<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }

    /// Returns true if there was an error.
    #[inline(always)]
    pub fn has_error(&self) -> bool {
        self.0.is_some()
    }

    /// Closes `points` without numbers if there was an error, since their times partly include failures.
    /// Returns true if there was none.
    pub fn ok_or_close(self, bench: &mut Bench, points: &[usize], operation: &str) -> bool {
        if let Some(error) = self.0 {
            points.iter().for_each(|point| refuse(bench, *point, operation, error));
        }
        self.0.is_none()
    }
}

/// Measures single calls, and closes the point without numbers if one of them fails.
pub fn time_each<T>(
    bench: &mut Bench,
    point: usize,
    gate: SampleGate,
    operation: &str,
    mut call: impl FnMut() -> Result<T>,
) {
    let mut first = FirstError::default();
    bench.each(point, gate, || {
        first.check_result(call());
    });
    first.ok_or_close(bench, &[point], operation);
}

/// Closes a point whose operation the machine refuses.
pub fn refuse(bench: &mut Bench, point: usize, operation: &str, error: impl Into<io::Error>) {
    let error = Errno::from_io_error(&error.into()).unwrap_or(Errno::IO);
    let (reason, remedy) = explain(operation, error);
    let remedy = with_option(remedy, &bench.points()[point].probe);
    bench.unsupported(point, reason, remedy);
}

/// Adds the option that chooses the directory, which only probes of files have.
fn with_option(remedy: &str, probe: &str) -> String {
    let is_of_directory = remedy.ends_with("directory") && probe.starts_with("file.");
    if is_of_directory { format!("{remedy} (--dir)") } else { remedy.to_owned() }
}

/// Returns what an operation returned; closes the point if the machine refuses it.
pub fn ok_or_refuse<T, E: Into<io::Error>>(
    bench: &mut Bench,
    point: usize,
    operation: &str,
    result: std::result::Result<T, E>,
) -> Option<T> {
    result.map_err(|error| refuse(bench, point, operation, error)).ok()
}

/// Closes points whose measurement failed, with the error as the reason.
pub fn close_failed(bench: &mut Bench, points: &[usize], measured: anyhow::Result<()>, remedy: &str) {
    if let Err(error) = measured {
        points.iter().for_each(|point| bench.unsupported(*point, format!("{error:#}"), remedy));
    }
}

/// Closes points with more threads beside the caller than there are CPUs for; returns true if there are enough.
pub fn enough_cpus(bench: &mut Bench, points: &[usize], threads: u64) -> bool {
    let others = bench.cpus().len() as u64 - 1;
    if threads > others {
        let reason = too_few_cpus(threads, "thread", others, "left beside the caller");
        let remedy = "give more CPUs (--cpus) or fewer --threads";
        points.iter().for_each(|point| bench.unsupported(*point, reason.as_str(), remedy));
    }
    threads <= others
}

/// Returns the reason of the failure, and the remedy, which is empty if nothing can be done.
pub fn explain(operation: &str, error: Errno) -> (String, &'static str) {
    let remedy = match error {
        Errno::PERM | Errno::NOSYS => {
            "allow the system call (docker: --security-opt seccomp=FILE or unconfined), or run outside of the container"
        }
        Errno::BUSY | Errno::TXTBSY => "wait until its present user is done (`fuser`), or end it",
        Errno::ACCESS => "use a directory that may be written and is not mounted noexec (TMPDIR)",
        Errno::NOENT => "make or mount that file (docker: -v or --device)",
        Errno::ROFS => "choose another directory",
        Errno::NOSPC | Errno::DQUOT => "free some space, or choose another directory",
        Errno::MFILE | Errno::NFILE => "raise the limit on open files (`ulimit -n`, `ulimit -Hn` as root)",
        Errno::NOMEM | Errno::AGAIN => {
            "free memory, or raise the limits (`ulimit -v`, `ulimit -u`, the cgroup's)"
        }
        _ => "",
    };
    (format!("{operation}: {error}"), remedy)
}

/// Returns the reason why a point with so many threads is not measured where `left` CPUs are `place`: `2 threads need
/// a CPU each, and 1 is left beside the caller`.
pub fn too_few_cpus(threads: u64, what: &str, left: u64, place: &str) -> String {
    let need = if threads == 1 { "needs a CPU" } else { "need a CPU each" };
    let are = if left == 1 { "is" } else { "are" };
    format!("{} {need}, and {left} {are} {place}", count_with_noun(threads, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_on_missing_cpus_follow_their_number() {
        let words =
            |threads, left| too_few_cpus(threads, "copying thread", left, "left beside the measuring one");
        assert_eq!(words(1, 0), "1 copying thread needs a CPU, and 0 are left beside the measuring one");
        assert_eq!(words(2, 1), "2 copying threads need a CPU each, and 1 is left beside the measuring one");
    }

    #[test]
    fn the_first_error_is_the_one_kept() {
        let mut first = FirstError::default();
        assert_eq!(first.check_result(Ok(7)), Some(7));
        assert!(!first.has_error());
        assert_eq!(first.check_result::<()>(Err(Errno::NOSPC)), None);
        first.check_result::<()>(Err(Errno::IO));
        assert_eq!(first.0, Some(Errno::NOSPC));
    }

    #[test]
    fn only_probes_of_files_are_pointed_to_the_option_of_directories() {
        let (_, remedy) = explain("write", Errno::NOSPC);
        assert_eq!(with_option(remedy, "file.fsync"), "free some space, or choose another directory (--dir)");
        assert_eq!(with_option(remedy, "process.exec"), remedy);
        assert_eq!(with_option("raise the limit", "file.fsync"), "raise the limit");
    }

    #[test]
    fn what_can_be_fixed_has_a_remedy() {
        for error in [
            Errno::PERM,
            Errno::NOSYS,
            Errno::NOSPC,
            Errno::ROFS,
            Errno::ACCESS,
            Errno::MFILE,
            Errno::NOMEM,
            Errno::BUSY,
        ] {
            let (reason, remedy) = explain("open a file", error);
            assert!(reason.starts_with("open a file: ") && !remedy.is_empty(), "{reason}");
            // Docker's options apart, no option is one of every family.
            assert!(remedy.contains("docker: ") || !remedy.contains("--"), "{remedy}");
        }
    }
}
