//! Ids of the probes that findings, pictures and published figures are about.
//!
//! A test of the command compares them with the registry. Results keep them: an id that is changed here is that of a
//! new probe.

macro_rules! ids {
    ($($name:ident = $id:literal;)+) => {
        $(
            #[doc = concat!("Id of the probe `", $id, "`.")]
            pub const $name: &str = $id;
        )+

        /// Returns every id of this module.
        pub fn all() -> impl Iterator<Item = &'static str> {
            [$($id),+].into_iter()
        }
    };
}

ids! {
    MEMORY_LATENCY = "memory.latency";
    SEQUENTIAL_SUM = "memory.sequential-sum";
    COPY = "memory.copy";
    CALL = "cpu.call";
    MUTEX = "sync.mutex";
    CORE_TO_CORE = "sync.core-to-core";
    SEMAPHORE = "sync.semaphore";
    FUTEX = "sync.futex";
    CONDVAR = "sync.condvar";
    EVENTFD = "sync.eventfd";
    PIPE = "sync.pipe";
    UNIX_STREAM = "sync.unix-stream";
    THREAD_TOTAL = "thread.total";
    THREAD_POOL = "thread.pool";
    VM_EXIT = "cpu.vm-exit";
    TIMER_SET = "syscall.timer-set";
    FILE_READ = "file.read";
    FILE_READ_DIRECT = "file.read-direct";
    FILE_WRITE = "file.write";
    FSYNC = "file.fsync";
    FDATASYNC = "file.fdatasync";
    WAKE_RESPONSE = "wake.response";
    WAKE_TIMER = "wake.timer";
    WAKE_TIMERLAT = "wake.timerlat";
    NOISE_BUSY = "noise.busy";
    NOISE_OSNOISE = "noise.osnoise";
    INVERSION = "ipc.inversion";
}
