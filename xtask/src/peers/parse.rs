//! Extraction of figures in ns from the output of other tools, by pure functions.

use serde_json::Value;

/// Place of a figure in an output.
#[derive(Debug, Clone, Copy)]
pub enum ToolFigureLocator {
    /// Number before the last occurrence of these words.
    Before(&'static str, ToolFigureUnit),
    /// Number after the first occurrence of these words.
    After(&'static str, ToolFigureUnit),
    /// Number at this place of a JSON text, in ns.
    Json(&'static str),
}

/// Unit of a number.
#[derive(Debug, Clone, Copy)]
pub enum ToolFigureUnit {
    /// Time, as the number of nanoseconds in the unit.
    Time(f64),
    /// Rate, as the bytes a second in the unit, and the bytes whose time is the figure.
    Rate(f64, f64),
}

impl ToolFigureLocator {
    /// Returns the figure in ns; `None` if the output does not have it.
    pub fn parse_figure(self, output: &str) -> Option<f64> {
        let (word, unit) = match self {
            ToolFigureLocator::Before(mark, unit) => {
                (output.rsplit_once(mark)?.0.split_whitespace().next_back()?, unit)
            }
            ToolFigureLocator::After(mark, unit) => {
                (output.split_once(mark)?.1.split_whitespace().next()?, unit)
            }
            ToolFigureLocator::Json(pointer) => return first_json_value(output)?.pointer(pointer)?.as_f64(),
        };
        let number: f64 = word.trim_matches(['(', ')', 's', ',']).parse().ok()?;
        let ns = match unit {
            ToolFigureUnit::Time(scale) => number * scale,
            ToolFigureUnit::Rate(scale, bytes) => bytes * 1e9 / (number * scale),
        };
        (ns.is_finite() && ns > 0.0).then_some(ns)
    }
}

/// First JSON value in a text with other words around it.
fn first_json_value(output: &str) -> Option<Value> {
    let start = output.find('{')?;
    serde_json::Deserializer::from_str(&output[start..]).into_iter().next()?.ok()
}

/// Tests with outputs recorded from the versions in Debian 12, shortened.
#[cfg(test)]
mod tests {
    use super::super::table::TABLE;

    const PIPE: &str = "# Running 'sched/pipe' benchmark:\n# Executed 10000 pipe operations between two processes\n\n     \
        Total time: 0.052 [sec]\n\n       5.288100 usecs/op\n         189103 ops/sec\n";
    const MEMCPY: &str = "# function 'default' (Default memcpy() provided by glibc)\n46769669937.555756\n";
    const VDSO: &str = "stress-ng: metrc: [1] stressor       bogo ops real time\n\
        stress-ng: metrc: [1] vdso             22.21 nanosecs per call (excluding test overhead) (geometic mean)\n\
        stress-ng: metrc: [1] vdso              2.93 nanosecs for test overhead (geometic mean of 1 instances)\n";
    const SWITCH: &str =
        "stress-ng: metrc: [7] switch         9064.44 nanosecs per context switch (pipe method)\n";
    const PTHREAD: &str =
        "stress-ng: metrc: [9] pthread     392152.01 nanosecs to start a pthread (geometic mean)\n";
    const MEMORY: &str =
        "Total operations: 23361 (23253.06 per second)\n\n23361.00 MiB transferred (23253.06 MiB/sec)\n";
    const MUTEX: &str = "General statistics:\n    total time:                          0.0993s\n    total number of events:  1\n";
    const MBW: &str = "0\tMethod: MEMCPY\tElapsed: 0.02710\tMiB: 128.00000\tCopy: 4723.422 MiB/s\n\
        AVG\tMethod: MEMCPY\tElapsed: 0.03059\tMiB: 128.00000\tCopy: 4184.648 MiB/s\n";
    const LIKWID: &str = "MFlops/s:\t\t0.00\nData volume (Byte):\t16384000000\nMByte/s:\t\t9140.05\nCycles per update:\t2.27\n";
    const FIO: &str = "note: both iodepth >= 1\n{\"jobs\": [{\"read\": {\"clat_ns\": {\"percentile\": {\"50.000000\": 42240}}}, \
        \"sync\": {\"lat_ns\": {\"percentile\": {\"50.000000\": 3981312}}}}]}\nfio: done\n";

    #[test]
    fn recorded_outputs_give_their_figures() {
        let recorded = [
            (
                "getppid",
                "# Executed 100000 getppid() calls\n     Total time: 0.017 [sec]\n\n       0.170220 usecs/op\n",
                170.22,
            ),
            ("clock", VDSO, 22.21),
            ("mutex", MUTEX, 19.86),
            ("pipe", PIPE, 5288.1),
            ("context-switch", SWITCH, 4532.22),
            ("core-to-core-cas", ",\n3706.9960299999993,\n", 7413.992),
            ("core-to-core-two-lines", ",\n66.5,\n", 133.0),
            ("thread-start", PTHREAD, 392_152.01),
            ("read-l1", LIKWID, 7.00215),
            ("read-memory", LIKWID, 7.00215),
            ("read-1mib", MEMORY, 2.62482),
            ("copy-l2", MEMCPY, 1.36841),
            ("copy-memory", MBW, 14.5855),
            ("triad", LIKWID, 2.62581),
            ("direct-read", FIO, 42240.0),
            ("fsync", FIO, 3_981_312.0),
            ("fdatasync", FIO, 3_981_312.0),
        ];
        assert_eq!(recorded.len(), TABLE.len());
        for ((name, output, ns), comparison) in recorded.into_iter().zip(TABLE) {
            assert_eq!(name, comparison.name);
            let found = comparison.figure.parse_figure(output).expect(name);
            assert!((found / ns - 1.0).abs() < 1e-4, "{name}: {found} is not {ns}");
        }
    }

    #[test]
    fn what_is_not_there_is_no_figure() {
        let outputs = [
            "",
            "{",
            ",\n,\n",
            "Permission denied\n",
            "MByte/s: nan",
            "total time:",
            "0.0 usecs/op nanosecs per call",
        ];
        for (comparison, output) in
            TABLE.iter().flat_map(|comparison| outputs.map(|output| (comparison, output)))
        {
            assert_eq!(comparison.figure.parse_figure(output), None, "{}: {output:?}", comparison.name);
        }
    }
}
