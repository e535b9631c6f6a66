//! LMbench's programs for which there is no probe, with the alternatives.

/// Program that latscope does not replace.
pub struct Refused {
    /// Name of the program.
    pub name: &'static str,
    /// Text on the alternative.
    pub instead: &'static str,
}

const NETWORK: &str = "it is not measured; the nearest are lat_tcp, lat_udp and bw_tcp, over loopback";
const HARNESS: &str =
    "it belongs to LMbench's harness; `latscope cpu` shows what our clock resolves and costs";
const DISK: &str = "raw disks are not measured; see `latscope file` (file.read-direct, file.fsync)";
const MEMORY: &str = "see `latscope memory`, whose findings name the cache levels with size and latency";

/// All programs that latscope does not replace, by name.
pub static REFUSED: &[Refused] = &[
    Refused { name: "bw_udp", instead: NETWORK },
    Refused { name: "cache", instead: MEMORY },
    Refused { name: "disk", instead: DISK },
    Refused { name: "enough", instead: HARNESS },
    Refused { name: "flushdisk", instead: DISK },
    Refused { name: "lat_cmd", instead: "commands are not timed; the nearest is lat_proc exec" },
    Refused { name: "lat_connect", instead: NETWORK },
    Refused { name: "lat_dram_page", instead: MEMORY },
    Refused {
        name: "lat_fcntl",
        instead: "record locks are not measured; the nearest hand-overs are lat_sem and lat_pipe",
    },
    Refused { name: "lat_http", instead: NETWORK },
    Refused { name: "lat_pmake", instead: "job mixes are not measured; see `latscope thread` (thread.pool)" },
    Refused {
        name: "lat_rand",
        instead: "library calls are not measured; see `latscope cpu` (cpu.call, cpu.mul)",
    },
    Refused { name: "lat_rpc", instead: NETWORK },
    Refused { name: "lat_unix_connect", instead: NETWORK },
    Refused {
        name: "lat_usleep",
        instead: "sleeps are measured as wake-ups, with their distribution: `latscope wake`",
    },
    Refused {
        name: "line",
        instead: "the line size is not measured; `latscope doctor` shows what the machine declares",
    },
    Refused { name: "lmdd", instead: DISK },
    Refused { name: "lmhttp", instead: NETWORK },
    Refused { name: "loop_o", instead: HARNESS },
    Refused { name: "memsize", instead: "see `free -b`: the kernel says what memory can be had" },
    Refused { name: "msleep", instead: HARNESS },
    Refused { name: "par_list", instead: "see par_mem" },
    Refused { name: "seek", instead: DISK },
    Refused { name: "timing_o", instead: HARNESS },
];
