//! Output of oslat, made by pure functions.

use super::options::OslatOptions;
use crate::rt::json::format_counts;
use std::fmt::Write;

/// Figures of one CPU. The time of a turn counts as the next larger whole number of µs: a turn of 60 ns as 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Core {
    /// Number of the CPU.
    pub cpu: u32,
    /// Turns by time, from 1 µs. The last bucket also counts all longer turns.
    pub counts: Vec<u64>,
    /// Least time of a turn, in µs.
    pub min: u64,
    /// Largest time of a turn, in µs.
    pub max: u64,
    /// Mean of the upper edges of the buckets, in µs.
    pub mean: f64,
    /// Measured time, in s.
    pub seconds: f64,
}

/// Text printed before the run. `cpus` is the number of measured CPUs.
pub fn format_preamble(options: &OslatOptions, cpus: usize) -> String {
    if options.common.quiet {
        return String::new();
    }
    let priority = options.priority.map_or("default".to_owned(), |priority| format!("SCHED_FIFO:{priority}"));
    format!(
        "Total runtime: \t\t{} seconds\nThread priority: \t{priority}\nCPU list: \t\t{}\nCPU for main thread: \t{}\n\
         Workload: \t\tno\nWorkload mem: \t\t{} (KiB)\nPreheat cores: \t\t{}\n\nPre-heat for 0 seconds...\n",
        options.common.duration.unwrap_or_default() / 1_000_000_000,
        options.cpus.as_deref().unwrap_or("all"),
        options.main_cpu,
        0,
        if options.single_preheat { 1 } else { cpus },
    )
}

/// Line about `-B`. The least time of the loop is known only after the run.
fn bias_line(options: &OslatOptions, bias: u64) -> String {
    if options.bias { format!("Global bias set to {bias} (us)\n") } else { String::new() }
}

/// Least time of a turn on any CPU in µs, if `-B` adds it to the labels; else 0.
fn bias(options: &OslatOptions, cores: &[Core]) -> u64 {
    cores.iter().map(|core| core.min).min().filter(|_| options.bias).unwrap_or(0)
}

/// Text printed after the run.
pub fn format_results(options: &OslatOptions, megahertz: u64, cores: &[Core]) -> String {
    let bias = bias(options, cores);
    let mut text = bias_line(options, bias);
    if !options.common.quiet {
        text += "Test starts...\nTest completed.\n\n";
    }
    let mut line = |label: &str, cells: &dyn Fn(&Core) -> String, unit: &str| {
        let cells: Vec<String> = cores.iter().map(cells).collect();
        let _ = writeln!(text, "{label:>12}:\t {}{unit}", cells.join(" "));
    };
    line("Core", &|core| core.cpu.to_string(), "");
    line("Counter Freq", &|_| megahertz.to_string(), " (Mhz)");
    for bucket in 0..options.buckets as usize {
        let last = bucket + 1 == options.buckets as usize;
        let count = |core: &Core| core.counts.get(bucket).copied().unwrap_or(0);
        if options.zero_omit && cores.iter().all(|core| count(core) == 0) {
            continue;
        }
        let label = format!("    {:03} (us)", bucket as u64 + 1 + bias);
        line(&label, &|core| count(core).to_string(), if last { " (including overflows)" } else { "" });
    }
    line("Minimum", &|core| core.min.to_string(), " (us)");
    line("Average", &|core| format!("{:.3}", core.mean + bias as f64), " (us)");
    line("Maximum", &|core| core.max.to_string(), " (us)");
    line("Max-Min", &|core| (core.max - core.min).to_string(), " (us)");
    line("Duration", &|core| format!("{:.3}", core.seconds), " (sec)");
    text + "\n"
}

/// Part of the JSON after the common head.
pub fn format_json(options: &OslatOptions, megahertz: u64, cores: &[Core]) -> String {
    let bias = bias(options, cores);
    let threads: Vec<String> =
        cores.iter().enumerate().map(|(index, core)| core_json(index, core, megahertz, bias)).collect();
    format!("  \"num_threads\": {},\n  \"thread\": {{\n{}\n  }}\n", cores.len(), threads.join(",\n"))
}

fn core_json(index: usize, core: &Core, megahertz: u64, bias: u64) -> String {
    let labelled = (1 + bias..).zip(core.counts.iter().copied());
    format!(
        "    \"{index}\": {{\n      \"cpu\": {},\n      \"freq\": {megahertz},\n      \"min\": {},\n      \"avg\": {:.6},\n      \
         \"max\": {},\n      \"duration\": {:.3},\n      \"histogram\": {}\n    }}",
        core.cpu,
        core.min,
        core.mean + bias as f64,
        core.max,
        core.seconds,
        format_counts(labelled)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::options::RtTestsCommonOptions;

    fn quiet() -> RtTestsCommonOptions {
        RtTestsCommonOptions { quiet: true, ..RtTestsCommonOptions::default() }
    }

    fn core() -> Core {
        Core { cpu: 3, counts: vec![1000, 0, 2, 7], min: 1, max: 812, mean: 1.0604, seconds: 0.9996 }
    }

    #[test]
    fn columns_are_cores() {
        let options = OslatOptions { buckets: 4, common: quiet(), ..OslatOptions::default() };
        assert_eq!(
            format_results(&options, 2597, &[core(), Core { cpu: 4, ..core() }]),
            "        Core:\t 3 4\nCounter Freq:\t 2597 2597 (Mhz)\n    001 (us):\t 1000 1000\n    002 (us):\t 0 0\n    \
             003 (us):\t 2 2\n    004 (us):\t 7 7 (including overflows)\n     Minimum:\t 1 1 (us)\n     \
             Average:\t 1.060 1.060 (us)\n     Maximum:\t 812 812 (us)\n     Max-Min:\t 811 811 (us)\n    \
             Duration:\t 1.000 1.000 (sec)\n\n"
        );
    }

    #[test]
    fn zeros_are_left_out_and_a_bias_is_added_to_labels() {
        let options = OslatOptions {
            buckets: 4,
            common: quiet(),
            zero_omit: true,
            bias: true,
            ..OslatOptions::default()
        };
        let text = format_results(&options, 2597, &[core()]);
        assert!(text.starts_with("Global bias set to 1 (us)\n"), "{text}");
        assert!(
            text.contains("    002 (us):\t 1000\n    004 (us):\t 2\n    005 (us):\t 7 (including"),
            "{text}"
        );
        assert!(text.contains("Average:\t 2.060 (us)"), "{text}");
    }

    #[test]
    fn the_json_names_the_same_buckets() {
        let options = OslatOptions { buckets: 4, ..OslatOptions::default() };
        let json: serde_json::Value =
            serde_json::from_str(&format!("{{{}}}", format_json(&options, 2597, &[core()]))).unwrap();
        let one = &json["thread"]["0"];
        assert_eq!(
            (&one["cpu"], &one["histogram"]["4"], &one["avg"]),
            (&3.into(), &7.into(), &1.0604.into())
        );
        assert!(one["histogram"].get("2").is_none());
    }
}
