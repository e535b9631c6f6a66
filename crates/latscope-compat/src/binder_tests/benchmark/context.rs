//! Description of the machine in the output of Google Benchmark.

use crate::binder_tests::number::general;
use crate::binder_tests::words::AndroidOutputVersion;
use latscope_core::machine::Machine;
use std::fmt::Write;
use std::fs::read_to_string;
use std::time::SystemTime;

/// Description of the machine and of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BenchmarkContext {
    /// Date of the run, as `2026-11-21T09:00:00+00:00`.
    pub date: String,
    /// Name of the host.
    pub host: String,
    /// Name of the program, as printed.
    pub executable: String,
    /// Number of CPUs that are online.
    pub cpus: usize,
    /// Clock of the CPUs, in MHz.
    pub megahertz: u64,
    /// True if a governor may change the clock.
    pub scaling: bool,
    /// Caches: kind, level, size in bytes, number of CPUs that share it.
    pub caches: Vec<(String, u32, u64, usize)>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Vec<f64>,
}

impl BenchmarkContext {
    /// Returns the description of this machine, as it is now.
    pub fn of_this_machine(executable: &str, machine: &Machine) -> BenchmarkContext {
        let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let governed = |cpu: &u32| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            read_to_string(path).is_ok_and(|governor| governor.trim() != "performance")
        };
        let most = read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").ok();
        let most: Option<u64> = most.and_then(|khz| khz.trim().parse().ok());
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        BenchmarkContext {
            date: date.trim_end_matches('Z').to_owned() + "+00:00",
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            executable: executable.to_owned(),
            cpus: machine.online.0.len(),
            megahertz: most.map_or((machine.clock.frequency_hz / 1e6).round() as u64, |khz| khz / 1000),
            scaling: machine.online.0.iter().any(governed),
            caches: caches(machine),
            load: load.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect(),
        }
    }

    /// Text of the description, as the console has it.
    pub fn format_console(&self, layout: AndroidOutputVersion) -> String {
        let run = format!("Run on ({} X {} MHz CPU s)\n", self.cpus, self.megahertz);
        let mut text = match layout {
            AndroidOutputVersion::Oreo => run + &self.date_of(layout) + "\n",
            AndroidOutputVersion::Current => format!("{}\nRunning {}\n{run}", self.date, self.executable),
        };
        if layout == AndroidOutputVersion::Current {
            self.caches_and_load(&mut text);
        }
        if self.scaling {
            text += "***WARNING*** CPU scaling is enabled, the benchmark real time measurements may be noisy and will \
                     incur extra overhead.\n";
        }
        text
    }

    fn caches_and_load(&self, text: &mut String) {
        if !self.caches.is_empty() {
            text.push_str("CPU Caches:\n");
        }
        for (kind, level, bytes, shared) in &self.caches {
            let _ = writeln!(text, "  L{level} {kind} {} KiB (x{})", bytes >> 10, self.cpus / shared.max(&1));
        }
        if !self.load.is_empty() {
            let load: Vec<String> = self.load.iter().map(|load| format!("{load:.2}")).collect();
            let _ = writeln!(text, "Load Average: {}", load.join(", "));
        }
    }

    /// Date in the form of a version.
    pub(crate) fn date_of(&self, layout: AndroidOutputVersion) -> String {
        match layout {
            AndroidOutputVersion::Current => self.date.clone(),
            AndroidOutputVersion::Oreo => self.date.chars().take(19).collect::<String>().replace('T', " "),
        }
    }

    /// Load averages in the form that JSON has.
    pub fn loads(&self) -> String {
        self.load.iter().map(|load| general(*load, 6)).collect::<Vec<_>>().join(",")
    }
}

fn caches(machine: &Machine) -> Vec<(String, u32, u64, usize)> {
    let one = |cache: &latscope_core::machine::CpuCache| {
        (cache.kind.clone(), cache.level, cache.size, cache.shared.0.len())
    };
    machine.caches.iter().map(one).collect()
}
