//! Facts that the processor reports by the CPUID instruction (Intel SDM volume 2A, AMD APM volume 3 appendix E).
//!
//! Everywhere but on x86-64 there is no such instruction, and every function
//! here answers "unknown". Under a hypervisor each CPUID is a trip to the host
//! (tens of µs at worst): ask once, not in a loop.

/// The four registers that CPUID fills.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Registers {
    eax: u32,
    ebx: u32,
    ecx: u32,
    edx: u32,
}

/// A cache as CPUID describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuidCache {
    /// 1, 2, 3, …
    pub level: u32,
    /// Contents: data, instructions, or both.
    pub kind: CacheKind,
    /// Size of the cache, bytes.
    pub size: u64,
    /// Bytes in a line.
    pub line: u64,
    /// Associativity, ways per set.
    pub ways: u32,
    /// Largest number of logical CPUs that share it (identifiers, not CPUs present).
    pub sharing: u32,
}

/// Contents of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// A cache of data only.
    Data,
    /// A cache of instructions only.
    Instruction,
    /// A cache of data and instructions.
    Unified,
}

/// Family and model with the extended fields added in, as `/proc/cpuinfo`
/// shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuidSignature {
    /// Family (`cpu family` in `/proc/cpuinfo`).
    pub family: u32,
    /// Model (`model` in `/proc/cpuinfo`).
    pub model: u32,
    /// Stepping (`stepping` in `/proc/cpuinfo`).
    pub stepping: u32,
}

/// The caches of the CPU this thread runs on: leaf 4 (Intel) or 8000001Dh
/// (AMD); empty where neither exists.
pub fn caches() -> Vec<CpuidCache> {
    caches_of(&leaf)
}

/// The hypervisor's name, if there is one: `KVM`, `Xen`, `VMware`, `Hyper-V`,
/// `TCG (emulated)`, …; a signature that is not known is given as it is.
pub fn hypervisor_vendor() -> Option<String> {
    hypervisor_of(&leaf)
}

/// Returns true if the time stamp counter ticks at one rate in all power states: leaf 80000007h, EDX bit 8.
#[cfg(any(target_arch = "x86_64", test))]
pub(crate) fn invariant_tsc() -> bool {
    leaf(0x8000_0007, 0).is_some_and(|r| r.edx & 1 << 8 != 0)
}

/// Returns true if the processor has RDTSCP: leaf 80000001h, EDX bit 27.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_rdtscp() -> bool {
    leaf(0x8000_0001, 0).is_some_and(|r| r.edx & 1 << 27 != 0)
}

/// The processor's maker: `GenuineIntel`, `AuthenticAMD`, …
pub fn vendor() -> Option<String> {
    let r = leaf(0, 0)?;
    Some(decode_text(&[r.ebx, r.edx, r.ecx]))
}

/// Family, model and stepping: leaf 1.
pub fn model() -> Option<CpuidSignature> {
    leaf(1, 0).map(|r| model_of(r.eax))
}

/// True on the architecture that has the instruction.
pub const EXISTS: bool = cfg!(target_arch = "x86_64");

/// Executes CPUID of leaf 0, which waits for all instructions before it and, in a virtual machine, leaves the guest.
/// Returns the last leaf of the range; 0 on other architectures.
#[inline]
pub fn serialise() -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has CPUID; it writes the registers of the result and nothing else.
    #[allow(unused_unsafe)]
    return unsafe { core::arch::x86_64::__cpuid(0) }.eax;
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Returns a leaf of this processor; `None` for a leaf beyond the last of its range.
#[cfg(target_arch = "x86_64")]
fn leaf(number: u32, sub: u32) -> Option<Registers> {
    // SAFETY: every x86-64 processor has CPUID; it writes the four registers
    // of the result and nothing else. (Newer toolchains call it safe.)
    #[allow(unused_unsafe)]
    let raw = |number, sub| unsafe { core::arch::x86_64::__cpuid_count(number, sub) };
    // The first leaf of a range names its last one; hypervisors may have
    // several ranges, 100h apart.
    if raw(number & 0xFFFF_FF00, 0).eax < number {
        return None;
    }
    let r = raw(number, sub);
    Some(Registers { eax: r.eax, ebx: r.ebx, ecx: r.ecx, edx: r.edx })
}

/// Returns `None`: this architecture has no CPUID.
#[cfg(not(target_arch = "x86_64"))]
fn leaf(_number: u32, _sub: u32) -> Option<Registers> {
    None
}

/// Returns the text that is packed into registers, without its padding.
fn decode_text(registers: &[u32]) -> String {
    let bytes: Vec<u8> = registers.iter().flat_map(|r| r.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned()
}

fn caches_of(leaf: &dyn Fn(u32, u32) -> Option<Registers>) -> Vec<CpuidCache> {
    // AMD leaves leaf 4 empty and declares 8000001Dh by "topology extensions".
    let topology_extensions = leaf(0x8000_0001, 0).is_some_and(|r| r.ecx & 1 << 22 != 0);
    let number = if topology_extensions { 0x8000_001D } else { 4 };
    // A hypervisor may never send the closing empty entry: 16 are plenty.
    (0..16).map_while(|sub| leaf(number, sub).and_then(cache_of)).collect()
}

/// Leaf 4 and leaf 8000001Dh have one layout.
fn cache_of(r: Registers) -> Option<CpuidCache> {
    let kind = match r.eax & 0x1F {
        1 => CacheKind::Data,
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let line = u64::from(r.ebx & 0xFFF) + 1;
    let partitions = u64::from(r.ebx >> 12 & 0x3FF) + 1;
    let ways = (r.ebx >> 22) + 1;
    let sets = u64::from(r.ecx) + 1;
    Some(CpuidCache {
        level: r.eax >> 5 & 7,
        kind,
        size: line * partitions * u64::from(ways) * sets,
        line,
        ways,
        sharing: (r.eax >> 14 & 0xFFF) + 1,
    })
}

const HYPERVISORS: [(&str, &str); 11] = [
    ("KVMKVMKVM", "KVM"),
    ("Linux KVM Hv", "KVM"),
    ("XenVMMXenVMM", "Xen"),
    ("VMwareVMware", "VMware"),
    ("Microsoft Hv", "Hyper-V"),
    ("TCGTCGTCGTCG", "TCG (emulated)"),
    ("VBoxVBoxVBox", "VirtualBox"),
    ("bhyve bhyve", "bhyve"),
    ("ACRNACRNACRN", "ACRN"),
    ("Jailhouse", "Jailhouse"),
    ("lrpepyh  vr", "Parallels"),
];

fn hypervisor_of(leaf: &dyn Fn(u32, u32) -> Option<Registers>) -> Option<String> {
    let present = leaf(1, 0)?.ecx & 1 << 31 != 0;
    if !present {
        return None;
    }
    let name_at = |base| leaf(base, 0).map(|r| decode_text(&[r.ebx, r.ecx, r.edx])).unwrap_or_default();
    let mut signature = name_at(0x4000_0000);
    // KVM and Xen can pose as Hyper-V for the sake of Windows; their own
    // leaves then follow one page further on.
    if signature == "Microsoft Hv" {
        let real = name_at(0x4000_0100);
        if HYPERVISORS.iter().any(|(known, _)| *known == real) {
            signature = real;
        }
    }
    let known = HYPERVISORS.iter().find(|(known, _)| *known == signature);
    Some(match known {
        Some((_, name)) => (*name).to_owned(),
        None if signature.is_empty() => "unknown".to_owned(),
        None => signature,
    })
}

fn model_of(eax: u32) -> CpuidSignature {
    let (family, model) = (eax >> 8 & 0xF, eax >> 4 & 0xF);
    CpuidSignature {
        family: if family == 0xF { family + (eax >> 20 & 0xFF) } else { family },
        model: if family == 6 || family == 0xF { model + (eax >> 12 & 0xF0) } else { model },
        stepping: eax & 0xF,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaf, sub-leaf, and the registers they answer with.
    type Row = (u32, u32, [u32; 4]);

    /// A processor played back from recorded leaves.
    fn scripted(rows: &[Row]) -> impl Fn(u32, u32) -> Option<Registers> {
        let rows = rows.to_vec();
        move |number, sub| {
            let row = rows.iter().find(|row| (row.0, row.1) == (number, sub))?;
            let [eax, ebx, ecx, edx] = row.2;
            Some(Registers { eax, ebx, ecx, edx })
        }
    }

    #[test]
    fn amd_caches_are_read_from_the_extended_leaf() {
        let epyc = scripted(&[
            (4, 0, [0, 0, 0, 0]),
            (0x8000_0001, 0, [0xa10f11, 0x4000_0000, 0x40_03f3, 0x2fd3_fbff]),
            (0x8000_001d, 0, [0x121, 0x1c0_003f, 0x3f, 0]),
            (0x8000_001d, 1, [0x122, 0x1c0_003f, 0x3f, 0]),
            (0x8000_001d, 2, [0x143, 0x1c0_003f, 0x7ff, 2]),
            (0x8000_001d, 3, [0x4163, 0x3c0_003f, 0x7fff, 1]),
            (0x8000_001d, 4, [0, 0, 0, 0]),
        ]);
        let cache =
            |level, kind, size, ways, sharing| CpuidCache { level, kind, size, line: 64, ways, sharing };
        let expected = [
            cache(1, CacheKind::Data, 32 << 10, 8, 1),
            cache(1, CacheKind::Instruction, 32 << 10, 8, 1),
            cache(2, CacheKind::Unified, 1 << 20, 8, 1),
            cache(3, CacheKind::Unified, 32 << 20, 16, 2),
        ];
        assert_eq!(caches_of(&epyc), expected);
    }

    #[test]
    fn intel_caches_are_read_from_leaf_four() {
        // 48 KiB, 12 ways, 64 B, 64 sets; shared by two logical CPUs.
        let intel = scripted(&[
            (0x8000_0001, 0, [0, 0, 0, 0]),
            (4, 0, [0x4000 | 0x21, 11 << 22 | 63, 63, 0]),
            (4, 1, [0, 0, 0, 0]),
        ]);
        let expected =
            CpuidCache { level: 1, kind: CacheKind::Data, size: 48 << 10, line: 64, ways: 12, sharing: 2 };
        assert_eq!(caches_of(&intel), [expected]);
    }

    #[test]
    fn endless_cache_lists_end() {
        let broken = |_, _| Some(Registers { eax: 0x21, ebx: 63, ecx: 63, edx: 0 });
        assert_eq!(caches_of(&broken).len(), 16);
        assert!(caches_of(&|_, _| None).is_empty());
    }

    fn signature(number: u32, name: &[u8; 12]) -> Row {
        let word = |i: usize| u32::from_le_bytes(name[i..i + 4].try_into().unwrap());
        (number, 0, [number + 1, word(0), word(4), word(8)])
    }

    #[test]
    fn hypervisors_are_named() {
        let present = (1, 0, [0, 0, 1 << 31, 0]);
        let name = |rows: &[_]| hypervisor_of(&scripted(rows));
        let base = 0x4000_0000;
        assert_eq!(name(&[(1, 0, [0, 0, 0, 0])]), None, "bare metal");
        assert_eq!(name(&[]), None, "no CPUID");
        assert_eq!(name(&[present]).as_deref(), Some("unknown"));
        let cases: [(&[u8; 12], &str); 6] = [
            (b"KVMKVMKVM\0\0\0", "KVM"),
            (b"XenVMMXenVMM", "Xen"),
            (b"VMwareVMware", "VMware"),
            (b"Microsoft Hv", "Hyper-V"),
            (b"TCGTCGTCGTCG", "TCG (emulated)"),
            (b"NewVisor 1.0", "NewVisor 1.0"),
        ];
        for (text, expected) in cases {
            assert_eq!(name(&[present, signature(base, text)]).as_deref(), Some(expected));
        }
        let posing = [present, signature(base, b"Microsoft Hv"), signature(base + 0x100, b"KVMKVMKVM\0\0\0")];
        assert_eq!(name(&posing).as_deref(), Some("KVM"));
    }

    #[test]
    fn extended_family_and_model_are_added_in() {
        // Zen 4 "Genoa": family 25, model 17, stepping 1; Skylake-X: 6, 85, 4.
        assert_eq!(model_of(0x00a1_0f11), CpuidSignature { family: 25, model: 17, stepping: 1 });
        assert_eq!(model_of(0x0005_0654), CpuidSignature { family: 6, model: 85, stepping: 4 });
    }

    #[test]
    fn this_processor_answers_soundly() {
        for cache in caches() {
            assert!((1..=4).contains(&cache.level) && cache.line.is_power_of_two(), "{cache:?}");
        }
        assert_eq!(vendor().is_some(), cfg!(target_arch = "x86_64"));
        assert_eq!(model().is_some(), vendor().is_some());
        // Both are only to be had where there is CPUID at all.
        assert!(vendor().is_some() || (hypervisor_vendor().is_none() && !invariant_tsc()));
    }
}
