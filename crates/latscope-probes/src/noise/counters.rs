//! Counters of the kernel for each CPU: interrupts, softirqs, time that the hypervisor kept
//! (proc_interrupts(5), proc_stat(5)).

use std::collections::BTreeMap;
use std::fs;

/// The counters of all CPUs at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuKernelCounters {
    interrupts: ProcCounterTable,
    softirqs: ProcCounterTable,
    /// Ticks that the hypervisor kept, by CPU; a tick is 10 ms.
    stolen: BTreeMap<u32, u64>,
}

/// Counts of one CPU between two moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuCounterDelta {
    /// Interrupts by source, most first.
    pub interrupts: Vec<(String, u64)>,
    /// Softirqs by kind, most first.
    pub softirqs: Vec<(String, u64)>,
    /// Time that the hypervisor kept, as it reports it, ms.
    pub stolen_ms: u64,
}

impl CpuKernelCounters {
    /// Reads the current counters. Counters that cannot be read are missing.
    pub fn read_current() -> CpuKernelCounters {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        CpuKernelCounters::parse_tables(
            &text("/proc/interrupts"),
            &text("/proc/softirqs"),
            &text("/proc/stat"),
        )
    }

    fn parse_tables(interrupts: &str, softirqs: &str, stat: &str) -> CpuKernelCounters {
        CpuKernelCounters {
            interrupts: ProcCounterTable::parse(interrupts),
            softirqs: ProcCounterTable::parse(softirqs),
            stolen: stat.lines().filter_map(stolen).collect(),
        }
    }

    /// Returns the counts of `cpu` since `before`.
    pub fn since(&self, before: &CpuKernelCounters, cpu: u32) -> CpuCounterDelta {
        let stolen = |counters: &CpuKernelCounters| counters.stolen.get(&cpu).copied().unwrap_or(0);
        CpuCounterDelta {
            interrupts: self.interrupts.since(&before.interrupts, cpu),
            softirqs: self.softirqs.since(&before.softirqs, cpu),
            stolen_ms: stolen(self).saturating_sub(stolen(before)) * 10,
        }
    }
}

impl CpuCounterDelta {
    /// Number of interrupts from all sources.
    pub(crate) fn interrupt_count(&self) -> u64 {
        self.interrupts.iter().map(|(_, count)| count).sum()
    }

    /// Number of interrupts of a source.
    pub(crate) fn interrupts_from(&self, source: &str) -> u64 {
        self.interrupts.iter().find(|(name, _)| name == source).map_or(0, |(_, count)| *count)
    }

    /// Number of softirqs of all kinds.
    pub(crate) fn softirq_count(&self) -> u64 {
        self.softirqs.iter().map(|(_, count)| count).sum()
    }
}

/// Rows of counts, a column for each CPU that is online.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProcCounterTable {
    cpus: Vec<u32>,
    /// Name and counts of a row, by its first word, which is unique.
    rows: BTreeMap<String, (String, Vec<u64>)>,
}

impl ProcCounterTable {
    fn parse(text: &str) -> ProcCounterTable {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default().split_whitespace();
        let cpus: Vec<u32> = header.filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
        let rows = lines.filter_map(|line| parse_row(line, cpus.len())).collect();
        ProcCounterTable { cpus, rows }
    }

    fn lookup_count(&self, row: &str, cpu: u32) -> u64 {
        let column = self.cpus.iter().position(|known| *known == cpu);
        column.and_then(|column| self.rows.get(row)?.1.get(column).copied()).unwrap_or(0)
    }

    fn since(&self, before: &ProcCounterTable, cpu: u32) -> Vec<(String, u64)> {
        let counted = self.rows.iter().map(|(key, (name, _))| {
            (name.clone(), self.lookup_count(key, cpu).saturating_sub(before.lookup_count(key, cpu)))
        });
        let mut counted: Vec<(String, u64)> = counted.filter(|(_, count)| *count > 0).collect();
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counted
    }
}

/// A row's first word, its name, and a count for each CPU; rows that have
/// fewer, such as ERR, belong to no CPU.
fn parse_row(line: &str, cpus: usize) -> Option<(String, (String, Vec<u64>))> {
    let (key, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let counts: Vec<u64> = words.by_ref().take(cpus).map_while(|word| word.parse().ok()).collect();
    let key = key.trim();
    // A numbered interrupt is known by its device, which comes last.
    let numbered = key.bytes().all(|byte| byte.is_ascii_digit());
    let name = words.last().filter(|_| numbered).unwrap_or(key);
    (counts.len() == cpus && cpus > 0).then(|| (key.to_owned(), (name.to_owned(), counts)))
}

/// CPU and stolen ticks of a line `cpuN user nice system idle iowait irq softirq steal …`.
fn stolen(line: &str) -> Option<(u32, u64)> {
    let mut words = line.strip_prefix("cpu")?.split_whitespace();
    let cpu = words.next()?.parse().ok().filter(|_| !line.starts_with("cpu "))?;
    Some((cpu, words.nth(7)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0    2366114 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:    2433915    2722459   Local timer interrupts
RES:    1926078    1853137   Rescheduling interrupts
ERR:          0
";
    const SOFTIRQS: &str = "                    CPU0       CPU2
          HI:          0          0
       TIMER:     236327     285696
";
    const STAT: &str = "cpu  1043502 26711 164460 1233186 11340 0 1877 2008 0 0
cpu0 486739 12519 61093 677206 2297 0 389 1019 0 0
cpu2 556763 14191 103367 555979 9043 0 1488 989 0 0
intr 14844211 0 0
";

    fn advanced(text: &str, from: &str, to: &str) -> String {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        changed
    }

    #[test]
    fn what_a_cpu_saw_is_listed_by_name_most_first() {
        let before = CpuKernelCounters::parse_tables(INTERRUPTS, SOFTIRQS, STAT);
        let later = advanced(INTERRUPTS, "2722459", "2722709");
        let later = advanced(&later, "2366114", "2366117");
        let after = CpuKernelCounters::parse_tables(
            &later,
            &advanced(SOFTIRQS, "285696", "285700"),
            &advanced(STAT, "1488 989", "1488 992"),
        );
        let seen = after.since(&before, 2);
        assert_eq!(seen.interrupts, [("LOC".to_owned(), 250), ("virtio1-req.0".to_owned(), 3)]);
        assert_eq!(seen.softirqs, [("TIMER".to_owned(), 4)]);
        assert_eq!((seen.interrupt_count(), seen.softirq_count(), seen.stolen_ms), (253, 4, 30));
        assert_eq!((seen.interrupts_from("LOC"), seen.interrupts_from("TLB")), (250, 0));
        assert_eq!(after.since(&before, 0), CpuCounterDelta::default());
        assert_eq!(after.since(&before, 7), CpuCounterDelta::default());
    }

    #[test]
    fn counters_that_are_not_there_are_none() {
        let none = CpuKernelCounters::parse_tables("", "", "");
        assert_eq!(none.since(&none, 0), CpuCounterDelta::default());
        let odd =
            CpuKernelCounters::parse_tables("CPU0 CPU1\nLOC: 1\nnonsense\n: : :\n", "\n", "cpu\ncpux 1 2\n");
        assert_eq!(odd.since(&none, 0), CpuCounterDelta::default());
    }

    #[test]
    fn this_kernel_counts_interrupts() {
        let before = CpuKernelCounters::read_current();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (after, cpus) = (CpuKernelCounters::read_current(), latscope_os::sched::allowed_cpus().unwrap());
        assert!(cpus.iter().any(|cpu| after.since(&before, *cpu).interrupt_count() > 0));
    }
}
