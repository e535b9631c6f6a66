//! Outputs that are recognised and not read: a refusal names them, and the option that gives what is read.

/// An output that is not read.
struct UnreadOutput {
    /// The program, and its option.
    name: &'static str,
    /// Start of a line by which it is recognised.
    start: &'static str,
    instead: &'static str,
}

const fn output(name: &'static str, start: &'static str, instead: &'static str) -> UnreadOutput {
    UnreadOutput { name, start, instead }
}

const NOTHING: &str = "no output of it is read";
const RT_TESTS: &str = "of rt-tests only cyclictest is read";
const GOOGLE: &str = "use --benchmark_format=json";

const OUTPUTS: &[UnreadOutput] = &[
    output("rtla timerlat top", "Timer Latency", "use rtla timerlat hist"),
    output("rtla osnoise top", "Operating System Noise", "use rtla osnoise hist"),
    output("hyperfine --export-csv", "command,mean,stddev,", "use --export-json"),
    output("Google Benchmark as CSV", "name,iterations,real_time,cpu_time,", GOOGLE),
    output("Google Benchmark on a console", "Benchmark  ", GOOGLE),
    output("cyclictest -v", "Max CPUs = ", "run cyclictest with -h 1000 and without -v"),
    output("oslat", "oslat V ", RT_TESTS),
    output("hackbench", "Running in process mode with ", RT_TESTS),
    output("hackbench", "Running in threaded mode with ", RT_TESTS),
    output("ptsematest or a relative", "#0: ID", RT_TESTS),
    output("perf bench", "# Running '", NOTHING),
    output("schbench", "Wakeup Latencies percentiles", NOTHING),
    output("stress-ng", "stress-ng: ", NOTHING),
    output("binderThroughputTest", "iterations per sec:", NOTHING),
    output("sysjitter", "core_i:", NOTHING),
];

/// Number of lines at the begin of a text that are looked at.
const HEAD: usize = 40;

/// Returns what a text looks like, and what to do instead; `None` if it looks like nothing that is known.
pub(super) fn recognise_unread(text: &str) -> Option<String> {
    if text.trim_matches(|c: char| c.is_whitespace() || c == '\0').is_empty() {
        return Some("it is empty: it is damaged, or the program that writes it has not ended".to_owned());
    }
    let is_of =
        |of: &&UnreadOutput| text.lines().take(HEAD).any(|line| line.trim_start().starts_with(of.start));
    OUTPUTS.iter().find(is_of).map(|of| format!("it is the output of {}: {}", of.name, of.instead))
}
