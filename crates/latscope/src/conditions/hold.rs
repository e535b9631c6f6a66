//! Conditions that a worker holds while it measures, and that end with it.

use latscope_core::plan::Conditions;
use rustix::mm::{MlockAllFlags, mlockall};
use std::fs::{File, OpenOptions};
use std::io::Write;

/// A condition that could not be had: why, and what to do.
pub type Shortfall = (String, &'static str);

/// What is held until it is dropped.
#[derive(Debug, Default)]
pub struct Held {
    /// The kernel keeps to the latency written to it as long as it is open.
    _cpu_dma_latency: Option<File>,
}

/// Locks memory and holds `/dev/cpu_dma_latency`, as asked.
pub fn hold(conditions: &Conditions) -> (Held, Vec<Shortfall>) {
    let mut shortfalls = Vec::new();
    if conditions.lock_memory
        && let Err(error) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
    {
        shortfalls.push((format!("memory is not locked: {error}"), "run as root, or raise `ulimit -l`"));
    }
    let latency = conditions.cpu_dma_latency.map(|us| dma_latency("/dev/cpu_dma_latency", us));
    let held = match latency.transpose() {
        Ok(file) => file,
        Err(error) => {
            let reason = format!("CPUs may sleep deeply: /dev/cpu_dma_latency: {error}");
            shortfalls.push((reason, "run as root, or give write access to /dev/cpu_dma_latency (udev)"));
            None
        }
    };
    (Held { _cpu_dma_latency: held }, shortfalls)
}

/// The interface takes a binary 32-bit number of µs; as text it would mean
/// something else (Documentation/power/pm_qos_interface.rst).
fn dma_latency(path: &str, us: i32) -> std::io::Result<File> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(&us.to_ne_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_is_written_in_binary() {
        let file = tempfile::NamedTempFile::new().unwrap();
        drop(dma_latency(file.path().to_str().unwrap(), 258).unwrap());
        assert_eq!(std::fs::read(file.path()).unwrap(), 258i32.to_ne_bytes());
        assert!(dma_latency("/nonexistent/file", 0).is_err());
    }

    #[test]
    fn nothing_asked_is_nothing_held() {
        let (held, shortfalls) = hold(&Conditions::default());
        assert!(held._cpu_dma_latency.is_none() && shortfalls.is_empty());
    }
}
