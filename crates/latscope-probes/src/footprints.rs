//! Tests of what probes state of the memory that they come back to, and of the sizes that they plan.

use super::*;
use latscope_core::catalogue::Footprint;
use latscope_core::plan::{ParamValue, params};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Probes whose parameter `size` is no memory that decides the figure by its place in the caches: messages, files,
/// mappings, or a stack of programs around them.
const OTHER_SIZES: &[&str] = &[
    "file.close",
    "file.create",
    "file.read",
    "file.read-direct",
    "file.read-mmap",
    "file.unlink",
    "file.write",
    "process.fork",
    "sync.pipe-bandwidth",
    "sync.ring",
    "sync.tcp-bandwidth",
    "sync.unix-bandwidth",
    "syscall.getrandom",
    "syscall.mmap",
    "syscall.mprotect",
    "syscall.munmap",
    "syscall.page-fault",
    "thread.overhead",
    "thread.pool",
];

#[test]
fn what_walks_through_memory_says_how_much_of_the_caches_it_takes() {
    let machine = latscope_engine::harness::machine();
    let input =
        PlanInput { profile: SurveyProfile::Normal, survey: true, ..latscope_engine::harness::input() };
    for probe in all_probes() {
        let sized = probe.params.iter().any(|param| param.name == "size");
        let other = OTHER_SIZES.contains(&probe.id);
        assert!(sized || !other, "{}", probe.id);
        for point in probe.plan(&input, &machine) {
            let known = (find_probe(&point.probe).unwrap().footprint)(&point.params);
            assert_eq!(known.is_some(), sized && !other, "{}: {point:?}", probe.id);
        }
    }
}

#[test]
fn lines_that_are_touched_count_and_not_what_lies_between_them() {
    let of = |probe: &str, texts: &[(&str, &str)], numbers: &[(&str, u64)]| {
        let texts = texts.iter().map(|(name, text)| (*name, ParamValue::from(*text)));
        let numbers = numbers.iter().map(|(name, number)| (*name, ParamValue::from(*number)));
        let all: Vec<_> = texts.chain(numbers).collect();
        let mut map = params([]);
        map.extend(all.into_iter().map(|(name, value)| (name.to_owned(), value)));
        (find_probe(probe).unwrap().footprint)(&map).unwrap()
    };
    let one = Footprint::from_bytes;
    let huge = ("pages", "2MiB");
    let size = ("size", 256 * MIB);
    assert_eq!(of("memory.tlb", &[huge], &[size]), one(8 * KIB));
    assert_eq!(of("memory.tlb", &[("pages", "4KiB")], &[size]), one(4 * MIB));
    assert_eq!(of("memory.latency", &[huge, ("order", "page")], &[size]), one(8 * KIB));
    assert_eq!(of("memory.latency", &[huge, ("order", "random")], &[size]), one(256 * MIB));
    assert_eq!(of("memory.latency", &[huge, ("order", "window")], &[size]), one(256 * MIB));
    let strides = |stride| of("memory.latency", &[huge, ("order", "stride")], &[size, ("stride", stride)]);
    assert_eq!([strides(256), strides(8)], [one(64 * MIB), one(256 * MIB)]);
    assert_eq!(of("memory.single-load", &[huge, ("order", "random")], &[size]), one(256 * MIB));
    assert_eq!(of("memory.parallelism", &[huge], &[size, ("chains", 8)]), one(256 * MIB));
    assert_eq!(of("memory.loaded", &[], &[size, ("threads", 1), ("delay", 0)]), one(256 * MIB));
    let read = [("operation", "read"), ("step", "every")];
    let four = Footprint { bytes: 256 * MIB, of_one_cpu: 64 * MIB };
    assert_eq!(of("memory.bandwidth", &read, &[size, ("threads", 4)]), four);
    let stream =
        |operation| of("memory.stream", &[("operation", operation)], &[("size", MIB), ("threads", 1)]);
    assert_eq!([stream("triad"), stream("copy")], [one(3 * MIB), one(2 * MIB)]);
    assert_eq!(of("memory.sequential-sum", &[("mode", "sum")], &[size]), one(256 * MIB));
    let jumps = |stride| of("cpu.jump", &[], &[("size", MIB), ("stride", stride)]);
    assert_eq!([jumps(16), jumps(256)], [one(MIB), one(256 * KIB)]);
}

/// What is measured in the place of a value is less, so that a note can tell it from another that was asked for.
#[test]
fn no_plan_has_more_of_a_size_than_was_asked_for() {
    let machine = latscope_engine::harness::machine();
    let directory = ScratchDirectory {
        path: "/data".into(),
        filesystem: "ext4".to_owned(),
        device: "/dev/vda".to_owned(),
        free: 1 << 40,
    };
    for probe in all_probes() {
        for param in probe.params.iter().filter(|param| param.kind == ParamValueKind::Size) {
            for asked in [1, 7, 100, 1000, 5_000, 70_000, 3 * MIB + 1] {
                let mut input = latscope_engine::harness::input();
                (input.survey, input.directories) = (false, vec![directory.clone()]);
                input.values.insert(param.name.to_owned(), vec![asked.into()]);
                for point in probe.plan(&input, &machine) {
                    let planned = point.params.get(param.name).and_then(ParamValue::as_number).unwrap_or(0);
                    assert!(planned <= asked, "{}: --{} {asked}: {planned}", probe.id, param.name);
                }
            }
        }
    }
}
