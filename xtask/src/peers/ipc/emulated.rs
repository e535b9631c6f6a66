//! Comparison of binder with rsbinder, on the driver of the VM's kernel. The times of both are those of an emulator;
//! their
//! ratio is meaningful.

use super::{ContestLimit, ContestOutcome};
use crate::dist;
use crate::peers::tools::{self, PeerTool};
use crate::vm::boot::VirtualMachine;
use crate::vm::kernel::VmKernel;
use anyhow::{Context, Result};
use latscope_core::param;
use latscope_core::report::Report;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// rsbinder 0.12.0, which the program in the package uses.
pub static RSBINDER: PeerTool = PeerTool::Package("rsbinder-ping");

/// Number of calls of a side in a turn, for each payload.
const CALLS: u32 = 1000;

/// Payloads in bytes, and the limit for each.
const PAYLOADS: [(u64, ContestLimit); 2] = [
    (4, ContestLimit { name: "4 B, p50", most: 0.85 }),
    (65536, ContestLimit { name: "64 KiB, p50", most: 0.6 }),
];

/// Largest number of system calls that each side may make for a transaction. A server makes two, and exceeds its limit:
/// the driver confirms a reply before it lets its sender wait.
const SYSTEM_CALLS: [(&str, u64); 2] = [("client", 1), ("server", 1)];

/// Placement of both processes in the VM.
pub struct VmPlacement {
    /// Name on the command line.
    pub name: &'static str,
    /// Meaning of the comparison.
    pub what: &'static str,
    /// Command line of the kernel.
    append: &'static str,
    /// Placement options of latscope.
    options: &'static str,
    /// Masks of CPUs for the peer's client and server.
    masks: [u32; 2],
}

/// All placements in the VM.
pub static PLACES: &[VmPlacement] = &[
    VmPlacement {
        name: "binder-same-core",
        what: "round trip over /dev/binder, echoed and verified, both processes on one CPU of the VM",
        append: "",
        options: "--placement same-core --cpus 1",
        masks: [2, 2],
    },
    VmPlacement {
        name: "binder-two-cores",
        what: "the same on two CPUs of the VM that do not sleep (idle=poll)",
        append: "idle=poll",
        options: "--placement two-cores --cpus 0,1",
        masks: [1, 2],
    },
];

/// Prints the reason why there are no figures, and returns false.
pub fn not_run(why: &str) -> bool {
    println!("  NOT RUN: {why}");
    false
}

impl VmPlacement {
    /// Runs both sides in turns, and prints the outcome. Returns true if each limit holds.
    pub fn take_turns(&self, pairs: usize) -> bool {
        eprint!("\r{} ", self.name);
        let measured = self.run_in_vm(pairs);
        eprint!("\r{:40}\r", "");
        let (outcome, calls) = match measured {
            Ok(measured) => measured,
            Err(error) => return not_run(&format!("{error:#}")),
        };
        let mut holds = outcome.print_results(PAYLOADS.iter().map(|(_, limit)| limit));
        for (side, most) in SYSTEM_CALLS {
            match per_transaction(&calls, side) {
                Some(found) => {
                    let word = if found <= most as f64 { "holds" } else { "EXCEEDED" };
                    println!(
                        "  system calls of the {side}: {found:.2} a transaction   at most {most}: {word}"
                    );
                    holds &= found <= most as f64;
                }
                None => holds = not_run(&format!("system calls of the {side}: {}", calls.trim())),
            }
        }
        println!(
            "  differs: theirs copies the bytes out of and into parcels; it sends a length of 4 bytes, and nothing else of its own"
        );
        holds
    }

    /// Boots once. Returns the turns, and the output of the trial of system calls.
    fn run_in_vm(&self, pairs: usize) -> Result<(ContestOutcome, String)> {
        let program = tools::peers_dir().join("bin").join(RSBINDER.program());
        let trials = dist::example("binder_trials", "release")?;
        let programs = [program, trials].map(|path| path.to_string_lossy().into_owned());
        let machine = VirtualMachine {
            kernel: VmKernel::Std,
            memory: 512 << 20,
            cpus: 2,
            timeout: Duration::from_secs(180 + 60 * pairs as u64),
            // A turn takes some seconds.
            silence: Some(Duration::from_secs(180)),
            append: self.append.to_owned(),
            modules: vec!["binder_linux".to_owned()],
            programs: programs.into(),
            overlay: None,
            profile: "release".to_owned(),
            topology: Vec::new(),
        };
        let ended = machine.run_patiently(&self.job(pairs))?;
        let mut outcome = ContestOutcome::default();
        for turn in 1..=pairs {
            match read_turn(&ended.out(), turn) {
                Ok(turn) => outcome.turns.push(turn),
                Err(error) => outcome.failures.push(format!("{error:#}")),
            }
        }
        Ok((outcome, fs::read_to_string(ended.out().join("calls"))?))
    }

    fn job(&self, pairs: usize) -> String {
        let VmPlacement { options, masks: [client, server], .. } = self;
        let payloads: Vec<String> = PAYLOADS.iter().map(|(bytes, _)| bytes.to_string()).collect();
        let (list, words) = (payloads.join(","), payloads.join(" "));
        format!(
            "for turn in $(seq {pairs}); do\n\
             echo $turn >/dev/console\n\
             latscope ipc -t binder --throughput --caller other {options} --payload {list} --count {CALLS} --quiet \
             --json /out/$turn.json >/dev/null 2>/out/$turn.said\n\
             taskset {server} rsbinder-ping serve /dev/hwbinder 2>>/out/$turn.said & server=$!\n\
             for bytes in {words}; do\n\
             taskset {client} timeout 60 rsbinder-ping /dev/hwbinder $bytes {CALLS} >/out/$turn.$bytes 2>>/out/$turn.said\n\
             done\n\
             kill $server; wait $server 2>/dev/null\n\
             done 2>/dev/null\n\
             echo system calls >/dev/console\n\
             timeout 60 binder_trials system-calls >/out/calls 2>&1\n\
             true\n"
        )
    }
}

/// Figures of both sides in a turn, in the order of the payloads.
fn read_turn(out: &Path, turn: usize) -> Result<Vec<(f64, f64)>> {
    let said = || fs::read_to_string(out.join(format!("{turn}.said"))).unwrap_or_default();
    let report = fs::read(out.join(format!("{turn}.json"))).with_context(said)?;
    let report = Report::from_json(&report)?;
    let of_payload = |bytes: u64| {
        let theirs = fs::read_to_string(out.join(format!("{turn}.{bytes}")))?;
        let ours = latscope_median(&report, bytes).context("latscope has no figure").with_context(said)?;
        Ok((ours, p50(&theirs).with_context(said)?))
    };
    PAYLOADS.iter().map(|(bytes, _)| of_payload(*bytes)).collect()
}

fn latscope_median(report: &Report, bytes: u64) -> Option<f64> {
    report.of_probe("ipc.binder").find(|m| m.numeric_param(param::PAYLOAD) == Some(bytes))?.summary.p50
}

/// Median that rsbinder-ping prints.
fn p50(said: &str) -> Option<f64> {
    said.split_once(" p50 ")?.1.split_whitespace().next()?.parse().ok()
}

/// Number of ioctl calls for a transaction over `binder`, from the output of the trial.
fn per_transaction(said: &str, side: &str) -> Option<f64> {
    let rest = said.lines().find_map(|line| line.strip_prefix(&format!("binder {side}: ")))?;
    let numbers: Vec<f64> = rest.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [calls, _, transactions] = numbers[..] else { return None };
    Some(calls / transactions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_print_is_read() {
        assert_eq!(p50("min 148872 p50 160089 mean 211000 ns\n"), Some(160_089.0));
        assert_eq!(p50("Error: NoEnt\n"), None);
        let said = "binder client: 1000 ioctl, 2 others, 1000 transactions\nbinder server: 1999 ioctl, 0 others, 1000 transactions\n";
        assert_eq!(
            (per_transaction(said, "client"), per_transaction(said, "server")),
            (Some(1.0), Some(1.999))
        );
        assert_eq!(per_transaction("hwbinder client: 1000 ioctl", "client"), None);
    }

    #[test]
    fn the_job_is_sound_for_the_shell() {
        for place in PLACES {
            let job = place.job(3);
            let checked = std::process::Command::new("sh").args(["-n", "-c", &job]).status().unwrap();
            assert!(checked.success() && job.contains(place.options), "{job}");
        }
    }
}
