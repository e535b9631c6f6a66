//! The snapshot of a machine.

use super::facts::MachineFacts;
use super::root::{SystemRoot, field, fields};
use super::{identity, topology};
use latscope_core::machine::{CpuCache, Machine};

/// Describes a machine: CPUs, caches, memory, kernel. Facts without a source stay empty. The clock and the checks are
/// left to the engine.
pub fn snapshot(root: &SystemRoot) -> Machine {
    describe_machine(root, &MachineFacts::of_root(root))
}

/// Describes a machine like [`snapshot`], with given answers of system calls and of the processor.
pub fn describe_machine(root: &SystemRoot, facts: &MachineFacts) -> Machine {
    let mut online = topology::online(root);
    if online.0.is_empty() {
        online = facts.allowed.clone();
    }
    let mut allowed = facts.allowed.clone();
    if allowed.0.is_empty() {
        allowed = online.clone();
    }
    let first = allowed.0.first().copied().unwrap_or(0);
    let (caches, caches_from) = caches(root, facts, first);
    Machine {
        id: identity::machine_id(root),
        name: facts.name.clone(),
        kernel: facts.kernel.clone(),
        kernel_version: facts.kernel_version.clone(),
        command_line: command_line(root),
        architecture: facts.architecture.clone(),
        cpu_model: cpu_model(root),
        microcode: root.field("/proc/cpuinfo", "microcode"),
        cpus: topology::read_cpus(root, &online),
        last_caches: topology::last_caches(root, &online),
        nodes: topology::described_nodes(root),
        kinds: topology::kinds(root),
        online,
        allowed,
        caches,
        caches_from: caches_from.to_owned(),
        memory: kibibytes(root, "MemTotal").unwrap_or(0),
        memory_available: kibibytes(root, "MemAvailable").unwrap_or(0),
        hypervisor: hypervisor(root, facts),
        root: facts.root,
        load_average: load_average(root).unwrap_or(0.0),
        scheduler: scheduler(root),
        ..Machine::default()
    }
}

/// Value of [`Machine::scheduler`] if no other scheduler is loaded.
pub(super) const KERNEL_SCHEDULER: &str = "kernel";

/// The scheduler of ordinary threads (Documentation/scheduler/sched-ext.rst).
fn scheduler(root: &SystemRoot) -> Option<String> {
    let directory = "/sys/kernel/sched_ext";
    if root.read_text(&format!("{directory}/state")).is_some_and(|state| state != "disabled") {
        let name = root.read_text(&format!("{directory}/root/ops")).filter(|name| !name.is_empty());
        return Some(name.unwrap_or_else(|| "unnamed".to_owned()));
    }
    root.exists("/sys/kernel").then(|| KERNEL_SCHEDULER.to_owned())
}

fn caches(root: &SystemRoot, facts: &MachineFacts, cpu: u32) -> (Vec<CpuCache>, &'static str) {
    let from_sysfs = topology::caches(root, cpu);
    if !from_sysfs.is_empty() {
        (from_sysfs, "sysfs")
    } else if !facts.caches.is_empty() {
        (facts.caches.clone(), "cpuid")
    } else {
        (Vec::new(), "unknown")
    }
}

/// A line of `/proc/meminfo`, in bytes.
pub(super) fn kibibytes(root: &SystemRoot, name: &str) -> Option<u64> {
    let value = root.field("/proc/meminfo", name)?;
    value.trim_end_matches("kB").trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// The one-minute load average.
pub(super) fn load_average(root: &SystemRoot) -> Option<f64> {
    root.read_text("/proc/loadavg")?.split_whitespace().next()?.parse().ok()
}

/// Parameters of the kernel that name files and devices: they differ between machines with the same setup.
const PLACES: [&str; 4] = ["root=", "BOOT_IMAGE=", "initrd=", "resume="];

/// The kernel's command line without places.
fn command_line(root: &SystemRoot) -> Option<String> {
    let line = root.read_text("/proc/cmdline")?;
    let words = line.split_whitespace().filter(|word| !PLACES.iter().any(|place| word.starts_with(place)));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// The processor's own name, followed by the board's name from a device tree; empty without a source.
fn cpu_model(root: &SystemRoot) -> String {
    let text = root.read_text("/proc/cpuinfo").unwrap_or_default();
    let named = |name| field(&text, name).filter(|value| !value.is_empty()).map(str::to_owned);
    // 32-bit ARM has a "model name" too, one that names no model.
    let processor =
        arm_cores(&text).or_else(|| NAMES.into_iter().find_map(named)).or_else(|| numbered_processor(&text));
    let board = root.read_text("/proc/device-tree/model").filter(|board| !board.is_empty());
    match (processor, board) {
        (Some(processor), Some(board)) => format!("{processor} ({board})"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

/// Fields with the name of a processor: `Model Name` on LoongArch, `CPU` on m68k.
const NAMES: [&str; 7] = ["model name", "Model Name", "cpu model", "uarch", "cpu", "CPU", "Hardware"];

/// The processor in a field with its number: `processor 0` has the machine type on s390, `processor [0]` the name on
/// ARC.
fn numbered_processor(cpuinfo: &str) -> Option<String> {
    fields(cpuinfo).find_map(|(name, value)| {
        if name.starts_with("processor [") {
            let begin = if value.starts_with("ARC") { "" } else { "ARC " };
            return Some(format!("{begin}{value}"));
        }
        let (_, machine) = value.split_once("machine = ").filter(|_| name.starts_with("processor "))?;
        let known = IBM_Z.iter().find(|(number, _)| *number == machine);
        Some(format!("IBM {} ({machine})", known.map_or("Z", |(_, name)| name)))
    })
}

/// Machine types of IBM Z, which are all that names the processor on s390.
const IBM_Z: [(&str, &str); 13] = [
    ("2817", "z196"),
    ("2818", "z114"),
    ("2827", "zEC12"),
    ("2828", "zBC12"),
    ("2964", "z13"),
    ("2965", "z13s"),
    ("3906", "z14"),
    ("3907", "z14 ZR1"),
    ("8561", "z15"),
    ("8562", "z15 T02"),
    ("3931", "z16"),
    ("3932", "z16 A02"),
    ("9175", "z17"),
];

/// The kinds of ARM cores in `/proc/cpuinfo`, by implementer and part number:
/// `Cortex-A55 + Cortex-A76`.
fn arm_cores(cpuinfo: &str) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut implementer = 0;
    for (name, value) in fields(cpuinfo) {
        let number = value.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match (name, number) {
            ("CPU implementer", Some(number)) => implementer = number,
            ("CPU part", Some(part)) => {
                let name = arm_core(implementer, part);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
    (!names.is_empty()).then(|| names.join(" + "))
}

/// Part numbers of MIDR_EL1, from the makers' reference manuals.
const ARM_CORES: [(u32, u32, &str); 38] = [
    (0x41, 0xc07, "Cortex-A7"),
    (0x41, 0xc08, "Cortex-A8"),
    (0x41, 0xc09, "Cortex-A9"),
    (0x41, 0xc0f, "Cortex-A15"),
    (0x41, 0xd01, "Cortex-A32"),
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd04, "Cortex-A35"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd0e, "Cortex-A76AE"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd42, "Cortex-A78AE"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4a, "Neoverse-E1"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x43, 0x0af, "ThunderX2"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "Kunpeng-920"),
    (0x4e, 0x004, "Carmel"),
    (0x61, 0x022, "Apple M1 Icestorm"),
    (0x61, 0x023, "Apple M1 Firestorm"),
    (0xc0, 0xac3, "Ampere-1"),
];

fn arm_core(implementer: u32, part: u32) -> String {
    let known = ARM_CORES.iter().find(|row| (row.0, row.1) == (implementer, part));
    known.map_or_else(
        || format!("ARM implementer {implementer:#04x} part {part:#05x}"),
        |row| row.2.to_owned(),
    )
}

/// The hypervisor: by CPUID, else by its traces in sysfs, the device tree, the firmware's tables or the CPU flags.
fn hypervisor(root: &SystemRoot, facts: &MachineFacts) -> Option<String> {
    facts
        .hypervisor
        .clone()
        .or_else(|| root.read_text("/sys/hypervisor/type").map(|kind| proper_name(&kind)))
        .or_else(|| by_device_tree(root))
        .or_else(|| by_firmware(root))
        .or_else(|| by_cpuinfo(root))
}

fn proper_name(kind: &str) -> String {
    let known = [("kvm", "KVM"), ("xen", "Xen"), ("vmware", "VMware")];
    let found = known.iter().find(|(word, _)| kind.contains(word));
    found.map_or_else(|| kind.to_owned(), |(_, name)| (*name).to_owned())
}

fn by_device_tree(root: &SystemRoot) -> Option<String> {
    if let Some(compatible) = root.read_text("/proc/device-tree/hypervisor/compatible") {
        return Some(proper_name(&compatible));
    }
    let board = root.read_text("/proc/device-tree/compatible")?;
    let emulated = root.field("/proc/cpuinfo", "CPU part").is_some_and(|part| part == CORTEX_A15);
    let name = if emulated { "TCG (emulated)" } else { "QEMU" };
    board.contains("linux,dummy-virt").then(|| name.to_owned())
}

/// A 32-bit processor that QEMU emulates: no Linux since 5.7 virtualises one.
const CORTEX_A15: &str = "0xc0f";

/// Makers and products that firmware tables (DMI) name in virtual machines.
const VIRTUAL_FIRMWARE: [(&str, &str); 10] = [
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("Firecracker", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("Xen", "Xen"),
    ("Virtual Machine", "Hyper-V"),
    ("Google Compute Engine", "KVM"),
    ("Parallels", "Parallels"),
    ("OpenStack", "KVM"),
];

fn by_firmware(root: &SystemRoot) -> Option<String> {
    ["product_name", "sys_vendor", "bios_vendor"].iter().find_map(|file| {
        let text = root.read_text(&format!("/sys/class/dmi/id/{file}"))?;
        let found = VIRTUAL_FIRMWARE.iter().find(|(word, _)| text.contains(word))?;
        Some(found.1.to_owned())
    })
}

fn by_cpuinfo(root: &SystemRoot) -> Option<String> {
    let text = root.read_text("/proc/cpuinfo")?;
    if field(&text, "vendor_id") == Some("User Mode Linux") {
        return Some("User Mode Linux".to_owned());
    }
    let virtual_cpu = field(&text, "flags")?.split_whitespace().any(|flag| flag == "hypervisor");
    virtual_cpu.then(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::root::tree;
    use super::*;

    #[test]
    fn arm_cores_are_named_once_each() {
        let core = |implementer: u32, part: u32| {
            format!("CPU implementer\t: {implementer:#x}\nCPU part\t: {part:#x}\n\n")
        };
        let text = core(0x41, 0xd05) + &core(0x41, 0xd05) + &core(0x41, 0xd0b) + &core(0x99, 0x123);
        let expected = "Cortex-A55 + Cortex-A76 + ARM implementer 0x99 part 0x123";
        assert_eq!(arm_cores(&text).as_deref(), Some(expected));
        assert_eq!(arm_cores("model name : X\n"), None);
    }

    #[test]
    fn a_32_bit_processor_in_qemu_is_an_emulated_one() {
        let board = ("/proc/device-tree/compatible", "linux,dummy-virt\0");
        for (part, expected) in [("0xc0f", "TCG (emulated)"), ("0xd0c", "QEMU")] {
            let (_directory, root) = tree(&[board, ("/proc/cpuinfo", &format!("CPU part\t: {part}\n"))]);
            assert_eq!(snapshot(&root).hypervisor.as_deref(), Some(expected), "{part}");
        }
    }

    #[test]
    fn hypervisors_leave_traces_in_files() {
        let named = |files: &[(&str, &str)]| {
            let (_directory, root) = tree(files);
            snapshot(&root).hypervisor
        };
        let cases = [
            ("/sys/hypervisor/type", "xen\n", Some("Xen")),
            ("/proc/device-tree/hypervisor/compatible", "linux,kvm\0", Some("KVM")),
            ("/proc/device-tree/compatible", "linux,dummy-virt\0", Some("QEMU")),
            ("/proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711\0", None),
            ("/sys/class/dmi/id/product_name", "VMware Virtual Platform", Some("VMware")),
            ("/sys/class/dmi/id/product_name", "Virtual Machine", Some("Hyper-V")),
            ("/sys/class/dmi/id/sys_vendor", "QEMU", Some("QEMU")),
            ("/sys/class/dmi/id/sys_vendor", "Dell Inc.", None),
            ("/proc/cpuinfo", "flags\t: fpu hypervisor sse", Some("unknown")),
            ("/proc/cpuinfo", "vendor_id\t: User Mode Linux\nflags : fpu", Some("User Mode Linux")),
            ("/proc/cpuinfo", "flags\t: fpu sse", None),
        ];
        for (path, text, expected) in cases {
            assert_eq!(named(&[(path, text)]).as_deref(), expected, "{path}: {text:?}");
        }
    }

    #[test]
    fn processors_are_named_by_what_there_is() {
        let named = |files: &[(&str, &str)]| {
            let (_directory, root) = tree(files);
            snapshot(&root).cpu_model
        };
        let arm = "model name : ARMv7 Processor rev 3 (v7l)\nCPU implementer : 0x41\nCPU part : 0xd08\n";
        assert_eq!(named(&[("/proc/cpuinfo", arm)]), "Cortex-A72");
        assert_eq!(
            named(&[("/proc/cpuinfo", "cpu : POWER9, altivec supported")]),
            "POWER9, altivec supported"
        );
        for (text, expected) in [
            (
                "system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\npackage\t\t\t: 0\n\
                 CPU Family\t\t: Loongson-64bit\nModel Name\t\t: Loongson-3A5000\nCPU Revision\t\t: 0x10\n",
                "Loongson-3A5000",
            ),
            (
                "vendor_id       : IBM/S390\n# processors    : 2\nbogomips per cpu: 3241.00\n\
                 processor 0: version = 00,  identification = 0133E8,  machine = 8561\n\
                 processor 1: version = 00,  identification = 0133E8,  machine = 8561\n\
                 \ncpu number      : 0\ncpu MHz dynamic : 5200\n",
                "IBM z15 (8561)",
            ),
            ("vendor_id : IBM/S390\nprocessor 0: version = FF,  machine = 1234\n", "IBM Z (1234)"),
            ("CPU:\t\t68040\nMMU:\t\t68040\nFPU:\t\t68040\nClocking:\t24.8MHz\n", "68040"),
            (
                "IDENTITY\t: ARCVER [0x54] ARCNUM [0x0] CHIPID [0x0]\n\
                 processor [0]\t: HS38 R3.0 (ARCv2 ISA)\nTimers\t\t: Timer0 Timer1\n",
                "ARC HS38 R3.0 (ARCv2 ISA)",
            ),
            ("processor [0]\t: ARC 770 rev 3 (ARCompact ISA)\n", "ARC 770 rev 3 (ARCompact ISA)"),
            ("processor\t: 0\nmodel name\t: X\n", "X"),
        ] {
            assert_eq!(named(&[("/proc/cpuinfo", text)]), expected, "{text}");
        }
        assert_eq!(named(&[("/proc/device-tree/model", "VisionFive 2\0")]), "VisionFive 2");
        assert_eq!(named(&[]), "");
    }

    #[test]
    fn the_command_line_and_the_microcode_are_kept_without_places() {
        let files = [
            ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1 ro isolcpus=1 initrd=/i\n"),
            ("/proc/cpuinfo", "model name\t: X\nmicrocode\t: 0x2b\n"),
        ];
        let (_directory, root) = tree(&files);
        let machine = snapshot(&root);
        assert_eq!(machine.command_line.as_deref(), Some("ro isolcpus=1"));
        assert_eq!(machine.microcode.as_deref(), Some("0x2b"));
    }
}
