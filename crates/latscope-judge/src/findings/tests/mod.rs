use super::*;
use crate::levels::Agreement;
use latscope_core::plan::{Params, params};
use latscope_core::quality::{QualityLevel, Reason};
use latscope_core::report::{Account, Agreeing, Certainty, Measurement, Semantics, disturbed_reason};
use latscope_core::testing::{chase, in_rounds, once, point, report, with_bytes, with_value};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

mod seen;

const MIB: u64 = 1 << 20;

/// Findings with the facts on the probes of this version.
fn findings(report: &Report) -> Vec<Finding> {
    static CATALOGUE: LazyLock<ProbeCatalogue> = LazyLock::new(latscope_probes::catalogue);
    super::collect_findings(report, &CATALOGUE)
}

/// The one finding of this id.
fn only(report: &Report, id: &str) -> Finding {
    let all = findings(report);
    let mut of_id = all.iter().filter(|finding| finding.id == id);
    let found = of_id.next().unwrap_or_else(|| panic!("no {id} in {all:#?}"));
    assert_eq!(of_id.next(), None);
    found.clone()
}

fn none(report: &Report, id: &str) {
    assert_eq!(findings(report).iter().find(|finding| finding.id == id), None);
}

/// The report of a machine on which nothing else ran.
fn quiet(mut report: Report) -> Report {
    report.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.01, ..Account::default() });
    report
}

#[test]
fn the_place_of_the_buffer_is_told_where_it_doubles_a_read() {
    let read = |buffer: Option<u64>, ns: f64| {
        let size = ("size".to_owned(), 4096.into());
        let buffer = buffer.map(|offset| ("buffer".to_owned(), offset.into()));
        in_rounds(operation("file.read", [size].into_iter().chain(buffer).collect(), ns), &[ns; 3])
    };
    let found = only(&report(vec![read(None, 1730.0), read(Some(0), 404.0)]), "user-buffer");
    assert!(
        found.text.starts_with("A read of 4 KiB from the page cache takes 340 to 480 ns into a buffer at "),
        "{}",
        found.text
    );
    assert!(found.text.ends_with("128 KiB and more: align large buffers."), "{}", found.text);
    let other_way = only(&report(vec![read(None, 404.0), read(Some(0), 1730.0)]), "user-buffer");
    assert!(other_way.text.ends_with(": align no buffers to a page."), "{}", other_way.text);
    for (usual, other) in [(700.0, Some(0)), (1730.0, Some(64))] {
        none(&report(vec![read(None, usual), read(other, 404.0)]), "user-buffer");
    }
}

#[test]
fn two_modes_by_address_are_told_where_the_rounds_show_them() {
    let row = |probe: &str, fast: f64, slow: f64, shares: &[f64]| {
        let mut m = in_rounds(operation(probe, Params::new(), fast), &vec![fast; shares.len()]);
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        for (name, value) in [("fastest-address", fast), ("slowest-address", slow), ("slow-addresses", mean)]
        {
            m = with_value(m, name, value);
        }
        for (round, share) in m.rounds.iter_mut().zip(shares) {
            round.values.insert("slow-addresses".to_owned(), *share);
        }
        m.title = probe.to_owned();
        m
    };
    let two = row("syscall.getppid", 131.0, 249.0, &[25.0, 50.0, 0.0]);
    let found = only(
        &report(vec![two.clone(), row("syscall.read", 150.0, 160.0, &[0.0; 3])]),
        "two-modes-by-address",
    );
    assert_eq!(
        found.text,
        "The address of the same loop decides the time of syscall.getppid (131 ns or 249 ns; slow at 25 % of the \
         addresses). Another build of a program can change by this factor."
    );
    assert_eq!((found.values["rows"], found.values["slow_ns"]), (1.0, 249.0));
    // One round of three is an accident.
    none(&report(vec![row("syscall.getppid", 131.0, 249.0, &[25.0, 0.0, 0.0])]), "two-modes-by-address");
    // Nor are batches that other processes disturbed, and rows against which something speaks.
    let mut busy = two.clone();
    busy.account = Some(Account { wall_ns: 1, cpus: 2, others: 0.92, ..Account::default() });
    none(&report(vec![busy]), "two-modes-by-address");
    let unstable = lowered(two.clone(), QualityLevel::Unstable, "rounds-scatter");
    none(&report(vec![unstable]), "two-modes-by-address");
    let many = [
        two,
        row("a.b", 1.0, 4.0, &[50.0; 3]),
        row("c.d", 1.0, 3.0, &[50.0; 3]),
        row("e.f", 1.0, 2.0, &[50.0; 3]),
    ];
    let text = only(&report(many.to_vec()), "two-modes-by-address").text;
    assert!(text.contains("a.b (") && text.contains("and 1 more row. Another"), "{text}");
}

/// The point, lowered as this and for this reason.
fn lowered(mut m: Measurement, level: QualityLevel, reason: &str) -> Measurement {
    m.lower(Reason::new(level, reason, reason, ""));
    m
}

fn operation(probe: &str, parameters: Params, ns: f64) -> Measurement {
    point(probe, parameters, Semantics::Operation, ns)
}

fn hand_off(probe: &str, placement: &str, ns: f64) -> Measurement {
    point(probe, params([("placement", placement.into())]), Semantics::RoundTrip, ns)
}

#[test]
fn an_empty_report_has_no_findings() {
    assert_eq!(findings(&report(Vec::new())), []);
    assert_eq!(level_rows(&report(Vec::new())), []);
}

#[test]
fn levels_are_told_with_capacity_time_and_cycles() {
    let report = report(chase("random", "2MiB", 8, 32 * MIB, 0.0));
    let found = only(&report, "cache-levels");
    assert!(
        found.text.starts_with(
            "A random chase on 2 MiB pages: L1 (32 KiB) 0.93 to 1.1 ns (3.7 to 4.3 cycles), L2 (1 MiB) 3.7 to 4.3 ns"
        ),
        "{}",
        found.text
    );
    assert!(found.text.ends_with("memory 93 to 110 ns (370 to 430 cycles)."), "{}", found.text);
    assert_eq!(found.values["l3_capacity"], (32 * MIB) as f64, "no number that was not measured or declared");
    assert_eq!(found.values["memory_cycles"], 400.0);
    assert_eq!((found.certainty, found.rounds), (Certainty::Claim, Some(Agreeing { agree: 8, of: 8 })));
    assert!(
        found.evidence.iter().all(|e| e.probe == "memory.latency" && e.rounds == 8 && e.interval.is_some())
    );
    let findings = findings(&report);
    assert!(findings.iter().all(|f| f.id != "effective-cache"), "{findings:#?}");
}

#[test]
fn no_level_is_memory_where_a_declared_cache_has_room_for_it() {
    let title = |largest: u64, declared: u64| {
        let mut points = chase("random", "2MiB", 8, 32 * MIB, 0.0);
        points.retain(|m| m.numeric_param("size").is_some_and(|size| size <= largest));
        let mut report = report(points);
        report.machine.caches[2].size = declared;
        level_rows(&report).pop().unwrap().read_title()
    };
    assert_eq!(title(512 * MIB, 32 * MIB), "memory read");
    assert_eq!(title(512 * MIB, 480 * MIB), "L3 or memory read");
    assert_eq!(title(16 * 1024, 480 * MIB), "L1 or beyond read");
}

#[test]
fn what_ends_in_a_rise_far_beyond_the_second_cache_is_not_called_the_third() {
    let mut points = chase("random", "2MiB", 8, 32 * MIB, 0.0);
    // The curve rises once more and ends there: memory was not reached.
    points.retain(|m| m.numeric_param("size").is_some_and(|size| size <= 40 * MIB));
    let report = report(points);
    let rows = level_rows(&report);
    let last = rows.last().expect("a level");
    assert_eq!((last.name.as_str(), last.read_title().as_str()), ("L3", "L3 or memory read"), "{rows:?}");
    assert!(last.sizes.1 <= 24 * MIB, "at most three quarters of the cache: {:?}", last.sizes);
}

#[test]
fn level_rows_carry_spread_and_declared_size() {
    let rows = level_rows(&report(chase("random", "2MiB", 8, 32 * MIB, 0.0)));
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["L1", "L2", "L3", "memory"]);
    assert_eq!(rows[1].declared, Some(MIB));
    assert_eq!((rows[3].declared, rows[3].capacity()), (None, None));
    // What agrees with the declaration is called by it.
    assert_eq!(rows[2].capacity(), Some(32 * MIB));
    let edge = rows[2].edge.unwrap();
    assert!(edge.from < 40 * MIB && 32 * MIB < edge.to, "{edge:?}");
    for row in &rows {
        assert!(row.p10.unwrap() < row.ns && row.ns < row.p90.unwrap(), "{row:?}");
        assert!((row.cycles.unwrap() / row.ns - 4.0).abs() < 0.01, "{row:?}");
    }
}

#[test]
fn levels_fall_back_to_small_pages() {
    let mut huge = chase("random", "2MiB", 8, 32 * MIB, 0.0);
    huge.iter_mut().for_each(|m| m.lower(Reason::new(QualityLevel::Unsupported, "refused", "a test", "")));
    let small = chase("random", "4KiB", 8, 32 * MIB, 0.0);
    let report = report([huge, small].concat());
    assert_eq!(level_rows(&report).len(), 4);
    assert!(only(&report, "cache-levels").text.contains("4 KiB pages"));
}

#[test]
fn a_cache_smaller_than_declared_is_claimed_by_rounds_that_agree_on_a_quiet_machine() {
    let mut report = quiet(report(chase("random", "2MiB", 8, 5 * MIB, 0.0)));
    let found = only(&report, "effective-cache");
    assert_eq!(
        found.text,
        "L3 is declared as 32 MiB; in 8 of 8 rounds the latency rose between 5.19 MiB and 5.66 MiB already: so much of \
         it served this program."
    );
    assert_eq!((found.certainty, found.rounds), (Certainty::Claim, Some(Agreeing { agree: 8, of: 8 })));
    assert_eq!(found.values["declared"], (32 * MIB) as f64);
    assert!(found.values["effective_low"] < found.values["effective_high"]);
    assert_eq!(found.evidence.len(), 2, "the two sizes of the edge");
    report.machine.hypervisor = Some("KVM".to_owned());
    let guest = only(&report, "effective-cache");
    assert_eq!(guest.certainty, Certainty::Doubt);
    assert!(guest.in_words().contains("virtual machine"), "{}", guest.in_words());
}

#[test]
fn a_declared_cache_beyond_the_curve_is_not_called_unseen() {
    let mut report = report(chase("random", "2MiB", 8, 32 * MIB, 0.0));
    report.measurements.retain(|m| m.numeric_param("size") <= Some(16 * MIB));
    none(&report, "unseen-cache");
    report.measurements = chase("random", "2MiB", 8, MIB + 1, 0.0);
    assert!(only(&report, "unseen-cache").text.starts_with("L3 is declared as 32 MiB"));
}

#[test]
fn a_curve_that_ends_early_says_that_memory_was_not_reached() {
    let mut report = report(chase("random", "2MiB", 8, 32 * MIB, 0.0));
    report.measurements.retain(|m| m.numeric_param("size") <= Some(1450 << 10));
    let text = only(&report, "cache-levels").text;
    assert!(text.contains("memory itself was not reached"), "{text}");
}

#[test]
fn page_walks_are_the_difference_of_page_sizes() {
    let both =
        [chase("random", "4KiB", 2, 32 * MIB, 80.0), chase("random", "2MiB", 8, 32 * MIB, 0.0)].concat();
    let found = only(&report(both.clone()), "page-walk");
    assert!(
        found.text.starts_with("At 512 MiB a random load takes 160 to 200 ns on 4 KiB pages"),
        "{}",
        found.text
    );
    assert_eq!(found.values["page_walk_ns"], 80.0);
    assert!(found.text.contains("60 to 100 ns of it is address translation"), "{}", found.text);

    let window = chase("window", "4KiB", 2, 32 * MIB, 5.0);
    let with_window = only(&report([both, window.clone()].concat()), "page-walk");
    assert!(with_window.text.contains("window by window take 98 to 120 ns"), "{}", with_window.text);

    let small = chase("random", "4KiB", 2, 32 * MIB, 80.0);
    let by_window = only(&report([small, window].concat()), "page-walk");
    assert!(by_window.text.contains("in windows that the TLB covers: "), "{}", by_window.text);
}

#[test]
fn no_page_walk_is_claimed_without_a_difference_or_with_refused_pages() {
    let small = chase("random", "4KiB", 2, 32 * MIB, 0.0);
    let mut huge = chase("random", "2MiB", 8, 32 * MIB, 0.0);
    let same = only(&report([small.clone(), huge.clone()].concat()), "page-walk");
    assert!(same.text.ends_with("address translation costs little here."), "{}", same.text);
    huge.iter_mut().for_each(|m| m.lower(Reason::new(QualityLevel::Degraded, "refused", "a test", "")));
    none(&report([small, huge].concat()), "page-walk");
}

fn sums(per_line: [f64; 3]) -> Vec<Measurement> {
    let sizes = [50_000u64, 500_000, 5_000_000];
    let row = |(size, line): (u64, f64)| {
        let parameters = params([("size", size.into()), ("mode", "sum".into())]);
        with_bytes(operation("memory.sequential-sum", parameters, line * size as f64 / 64.0), size)
    };
    sizes.into_iter().zip(per_line).map(row).collect()
}

#[test]
fn sequential_sums_show_no_steps_because_of_prefetch() {
    let curve = chase("random", "2MiB", 8, 32 * MIB, 0.0);
    let found = only(&report([sums([2.0, 2.0, 2.2]), curve.clone()].concat()), "sequential-sum");
    let named = found.evidence.iter().filter(|one| one.probe == "memory.sequential-sum");
    assert_eq!(named.count(), 3, "every size that it quotes");
    assert!(
        found.text.contains("costs 1.8 to 2.2 ns, 1.8 to 2.2 ns and 2 to 2.4 ns for each 64-byte line"),
        "{}",
        found.text
    );
    assert!(found.text.contains("shows no cache steps, because"), "{}", found.text);
    let stepped = only(&report([sums([2.0, 8.0, 20.0]), curve].concat()), "sequential-sum");
    assert!(stepped.text.contains("show even in sequential order"), "{}", stepped.text);
    none(&report(sums([2.0, 2.0, 2.2])), "sequential-sum");
}

#[test]
fn a_mutex_is_no_blocking_hand_off() {
    let mutex = operation("sync.mutex", Params::new(), 7.0);
    let fast = with_value(hand_off("sync.semaphore", "same-core", 1100.0), "blocked", 3.0);
    let slept = with_value(hand_off("sync.futex", "same-core", 2400.0), "blocked", 99.0);
    let found = only(&report(vec![mutex.clone(), fast, slept]), "mutex-and-hand-off");
    assert!(found.text.starts_with("An uncontended mutex takes 6.5 to 7.5 ns"), "{}", found.text);
    assert!(
        found.text.contains("by futex on one core 1.1 to 1.3 µs one way (at least ×120)"),
        "{}",
        found.text
    );
    assert_eq!(found.values["blocked_percent"], 99.0);
    none(&report(vec![mutex]), "mutex-and-hand-off");
}

#[test]
fn pools_exist_where_threads_cost_more_than_hand_offs() {
    let total = |ns| operation("thread.total", params([("mode", "warm".into())]), ns);
    let handed = hand_off("sync.semaphore", "same-core", 2000.0);
    let found = only(&report(vec![total(24_000.0), handed.clone()]), "thread-pools");
    assert!(found.text.contains("a new thread takes at least ×10 as long"), "{}", found.text);
    let found = only(&report(vec![total(2100.0), handed]), "thread-pools");
    assert!(found.text.contains("saves little"), "{}", found.text);
}

#[test]
fn leaving_the_idle_state_is_the_difference_to_awake() {
    let pair = |idle: f64, awake: f64| {
        report(vec![
            hand_off("sync.semaphore", "two-cores", idle),
            hand_off("sync.semaphore", "two-cores-awake", awake),
        ])
    };
    let found = only(&pair(10_600.0, 2_700.0), "idle-exit");
    assert!(found.text.contains("6.9 to 8.9 µs of it is the sleeping core"), "{}", found.text);
    assert_eq!(found.values["idle_exit_ns"], 7900.0);
    assert!(only(&pair(2_700.0, 2_690.0), "idle-exit").text.contains("nothing measurable"));
    none(&pair(2_000.0, 2_700.0), "idle-exit");
}

#[test]
fn oversubscription_is_judged_beyond_the_number_of_cpus() {
    let pool = |threads: u64, slowdown| {
        let parameters = params([("threads", threads.into()), ("size", (10 * MIB).into())]);
        with_value(operation("thread.pool", parameters, 1e6), "slowdown", slowdown)
    };
    let found = only(&report(vec![pool(2, 1.3), pool(16, 1.33)]), "oversubscription");
    assert!(
        found.text.starts_with("A pool of 16 threads on 2 CPUs needs 1.2 to 1.5 times"),
        "{}",
        found.text
    );
    assert!(found.text.ends_with("more threads than CPUs as such slow nothing down."), "{}", found.text);
    let waiting = with_value(with_value(pool(16, 2.2), "wait_p50", 8e6), "wait_p99", 2e7);
    let found = only(&report(vec![pool(2, 1.3), waiting]), "oversubscription");
    assert!(found.text.contains("more threads than CPUs take at least ×1.2 as long"), "{}", found.text);
    assert!(
        found.text.contains("wait 7.5 to 8.6 ms or more for their turn, one in a hundred "),
        "{}",
        found.text
    );
    none(&report(vec![pool(2, 1.5)]), "oversubscription");
}

#[test]
fn cached_reads_are_set_apart_from_the_device() {
    let at = |probe: &str, filesystem: &str, ns| {
        let parameters = params([
            ("size", 4096u64.into()),
            ("filesystem", filesystem.into()),
            ("directory", "/data".into()),
        ]);
        operation(probe, parameters, ns)
    };
    let all = vec![
        at("file.read", "tmpfs", 100.0),
        at("file.read", "ext4", 230.0),
        at("file.read-direct", "ext4", 29_800.0),
        at("file.write", "ext4", 1_200.0),
        at("file.fsync", "ext4", 990_000.0),
    ];
    let report = report(all);
    let read = only(&report, "page-cache");
    assert!(
        read.text.starts_with("Reading 4 KiB on ext4 takes 210 to 250 ns from the page cache"),
        "{}",
        read.text
    );
    assert!(read.text.contains("27 to 32 µs") && read.text.contains("at least ×100"), "{}", read.text);
    let write = only(&report, "durable-write");
    assert!(
        write.text.contains("returns after 1.1 to 1.3 µs, but only fsync makes it durable"),
        "{}",
        write.text
    );
    assert!(write.text.contains("920 µs to 1.1 ms"), "{}", write.text);
}

#[test]
fn memory_file_systems_have_nothing_to_make_durable() {
    let at = |probe: &str, ns| {
        operation(probe, params([("size", 4096u64.into()), ("filesystem", "tmpfs".into())]), ns)
    };
    let report = report(vec![at("file.write", 900.0), at("file.fsync", 90_000.0)]);
    none(&report, "durable-write");
}

/// Rows of a cycle each; the clock of row and round in GHz.
fn clocked(ghz: impl Fn(usize, usize) -> f64) -> Report {
    let row = |row: usize| {
        let mut m = operation("cpu.add", Params::new(), 0.3);
        for (round, of) in m.rounds.iter_mut().enumerate() {
            (of.p50, of.cycles) = (Some(1.0 / ghz(row, round)), Some(1.0));
        }
        m
    };
    report((0..20).map(row).collect())
}

#[test]
fn a_clock_that_changes_from_round_to_round_shows_in_cycles() {
    let found = only(&clocked(|_, round| if round < 3 { 2.6 } else { 3.5 }), "clock-drift");
    assert!(found.text.contains("between 2.60 and 3.50 GHz"), "{}", found.text);
    assert_eq!(found.certainty, Certainty::Doubt, "the next run has a clock of its own");
    none(&clocked(|_, _| 3.0), "clock-drift");
}

#[test]
fn rejected_samples_tell_of_a_busy_machine() {
    let row = |probe: &str, rejected| {
        let mut m = operation(probe, Params::new(), 5.0);
        m.summary.rejected = rejected;
        m
    };
    let found = only(&report(vec![row("cpu.add", 200), row("memory.tlb", 50)]), "busy-machine");
    assert!(found.text.contains("In this run 35 % of the samples of a point on average"), "{}", found.text);
    assert!(found.text.contains("cpu.add 50 % and memory.tlb 20 %"), "{}", found.text);
    none(&report(vec![row("cpu.add", 3), row("memory.tlb", 0)]), "busy-machine");
}

#[test]
fn what_remains_is_called_undisturbed_only_as_far_as_the_rows_are() {
    let row = |probe: &str, disturbed| {
        let mut m = operation(probe, Params::new(), 5.0);
        m.summary.rejected = m.summary.count;
        if disturbed > 0 {
            m.lower(disturbed_reason(disturbed, m.summary.count));
        }
        m
    };
    let all = row("cpu.add", 0).summary.count;
    let said = |rows| only(&report(rows), "busy-machine").text;
    assert!(said(vec![row("cpu.add", 0), row("cpu.mul", 0)]).contains("What remains is undisturbed; rows"));
    let text = said(vec![row("cpu.add", 0), row("cpu.mul", all), row("cpu.div", 1)]);
    assert!(
        text.contains("undisturbed, but for 2 points of which disturbed samples are shown; rows"),
        "{text}"
    );
    let text = said(vec![row("cpu.mul", all)]);
    assert!(text.contains("100 % of") && text.contains("Only disturbed samples remain"), "{text}");
}

#[test]
fn what_takes_a_part_of_a_frame_is_named() {
    let mut all = chase("random", "2MiB", 8, 32 * MIB, 0.0);
    all.extend((1..=5).map(|at| operation("syscall.getppid", Params::new(), 100.0 * f64::from(at))));
    all.push(operation("process.shell", Params::new(), 3e6));
    let report = report(all);
    let found = only(&report, "frame");
    let text = "A frame of a 60 fps screen lasts 16.7 ms. What takes a tenth of it or more: process.shell of a test (2.8 \
                to 3.3 ms).";
    assert_eq!(found.text, text);
    assert!(
        found.evidence.iter().all(|one| one.probe == "process.shell"),
        "what it does not name is no evidence"
    );
    let mut busy = report;
    busy.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.84, ..Account::default() });
    let doubt = only(&busy, "frame").doubt;
    assert_eq!(doubt.as_deref(), Some("other processes used 84 % of the CPUs"));
}

#[test]
fn a_frame_alone_is_no_finding() {
    let rows = (1..=6).map(|at| operation("file.read", Params::new(), 100.0 * f64::from(at)));
    none(&report(rows.collect()), "frame");
}

#[test]
fn counts_are_written_in_few_digits() {
    let cases =
        [(1.24, "1.2"), (170.4, "170"), (999.7, "1,000"), (15_432.0, "15,000"), (2.04e6, "2.0 million")];
    for (count, text) in cases {
        assert_eq!(select::format_large_count(count), text);
    }
}

proptest! {
    /// Whatever parts of a survey there are, and whatever their numbers.
    #[test]
    fn findings_never_panic_and_have_finite_numbers(seed in proptest::collection::vec((0usize..18, 0.001f64..1e9, 0u64..32), 0..40)) {
        const PROBES: [&str; 18] = [
            "memory.latency", "memory.latency", "memory.latency", "memory.sequential-sum", "sync.mutex",
            "sync.semaphore", "sync.pipe", "thread.total", "thread.pool", "file.read", "file.read-direct",
            "file.write", "file.fsync", "syscall.getppid", "cpu.add", "memory.latency", "sync.futex", "wake.timer",
        ];
        let choice = |names: [&'static str; 3], at: u64| names[at as usize % 3].into();
        let measurements = seed.iter().map(|(probe, ns, at)| {
            let parameters = params([
                ("size", (1u64 << at).into()),
                ("order", choice(["random", "window", "random"], *at)),
                ("pages", choice(["2MiB", "4KiB", "2MiB"], *at / 3)),
                ("placement", choice(["same-core", "two-cores", "two-cores-awake"], *at)),
                ("mode", choice(["warm", "cold", "sum"], *at)),
                ("threads", (*at).into()),
            ]);
            with_value(with_bytes(operation(PROBES[*probe], parameters, *ns), *at), "slowdown", *ns / 100.0)
        });
        let report = report(measurements.collect());
        for finding in findings(&report) {
            prop_assert!(!finding.text.is_empty() && !finding.values.is_empty());
            prop_assert!(finding.values.values().all(|value| value.is_finite()), "{:?}", finding);
            // A finding has a figure that was measured: the length of a frame is none.
            prop_assert!(finding.values.keys().any(|name| name != "frame_ns"), "{:?}", finding);
            // What is doubtful says why, what is claimed rests on something.
            prop_assert!((finding.certainty == Certainty::Doubt) == finding.doubt.is_some(), "{:?}", finding);
            prop_assert!(finding.certainty == Certainty::Doubt || !finding.evidence.is_empty(), "{:?}", finding);
        }
    }
}
