//! System management interrupts, counted by a register of Intel's processors. The register is read when the status is
//! drawn, not in each cycle.

use crate::getopt::CommandLineRefusal;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of the register MSR_SMI_COUNT.
const REGISTER: u64 = 0x34;

/// Registers of the CPUs of the threads.
#[derive(Debug)]
pub(crate) struct Smi {
    registers: Vec<(File, u32)>,
}

impl Smi {
    /// Opens the registers of these CPUs below `/dev/cpu`.
    ///
    /// # Errors
    /// There is no such device, or no such register.
    pub fn open_registers(
        devices: &Path,
        cpus: impl Iterator<Item = u32>,
    ) -> Result<Smi, CommandLineRefusal> {
        let registers = cpus.map(|cpu| register(devices, cpu));
        Ok(Smi { registers: registers.collect::<Result<_, _>>()? })
    }

    /// Number of interrupts on each CPU since the registers were opened.
    pub fn interrupt_counts(&self) -> Vec<u64> {
        let count =
            |(file, from): &(File, u32)| read_register(file).map_or(0, |now| now.wrapping_sub(*from).into());
        self.registers.iter().map(count).collect()
    }
}

/// Opens the register of a CPU. Returns it with its count.
fn register(devices: &Path, cpu: u32) -> Result<(File, u32), CommandLineRefusal> {
    let path = devices.join(format!("{cpu}/msr"));
    File::open(&path)
        .and_then(|file| {
            let count = read_register(&file)?;
            Ok((file, count))
        })
        .map_err(|error| {
            CommandLineRefusal::Fatal(format!(
                "FATAL: SMI counter is not supported here: {}: {error} (as root, on Intel: `modprobe msr`)",
                path.display()
            ))
        })
}

fn read_register(file: &File) -> std::io::Result<u32> {
    let mut register = [0; 8];
    file.read_exact_at(&mut register, REGISTER)?;
    Ok(u64::from_ne_bytes(register) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_since_the_start_is_counted_also_past_32_bits() {
        let devices = tempfile::tempdir().unwrap();
        let file = devices.path().join("3/msr");
        std::fs::create_dir(devices.path().join("3")).unwrap();
        let content = |count: u64| [vec![0; REGISTER as usize], count.to_ne_bytes().into()].concat();
        std::fs::write(&file, content(0xffff_fffe)).unwrap();
        let smi = Smi::open_registers(devices.path(), [3].into_iter()).unwrap();
        assert_eq!(smi.interrupt_counts(), [0]);
        std::fs::write(&file, content(5)).unwrap();
        assert_eq!(smi.interrupt_counts(), [7]);
    }

    #[test]
    fn without_the_device_it_says_so_in_a_line() {
        let devices = tempfile::tempdir().unwrap();
        let text = Smi::open_registers(devices.path(), [0].into_iter()).unwrap_err().to_string();
        assert!(text.contains("0/msr") && !text.contains('\n'), "{text}");
    }
}
