//! Sentences that were false, as the reports that led to them, each on every way
//! that could lead there again.

use super::super::level_rows;
use super::*;
use latscope_core::plan::{MeasurementPoint, PlanStep, Stop};
use latscope_core::report::Contention;
use latscope_core::testing::load;

const KIB: u64 = 1 << 10;

/// Eight points an octave from 2 KiB to 128 MiB, as a survey has them.
fn survey_sizes() -> Vec<u64> {
    let octaves =
        (11..27).flat_map(|octave| (0..8).map(move |eighth| (1u64 << octave) + (eighth << (octave - 3))));
    octaves.chain([128 * MIB]).collect()
}

/// A chase whose caches have these capacities in each round.
fn chase_of(sizes: &[u64], rounds: &[[u64; 3]]) -> Vec<Measurement> {
    let point = |size: &u64| {
        let parameters =
            params([("size", (*size).into()), ("order", "random".into()), ("pages", "2MiB".into())]);
        let medians: Vec<f64> = rounds.iter().map(|capacities| load(*size, *capacities)).collect();
        let mut m = operation("memory.latency", parameters, medians[0]);
        m.row = false;
        in_rounds(m, &medians)
    };
    sizes.iter().map(point).collect()
}

fn guest(mut report: Report) -> Report {
    report.machine.hypervisor = Some("KVM".to_owned());
    report
}

fn busy(mut report: Report) -> Report {
    report.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.97, ..Account::default() });
    report
}

/// Asserts that no claim in these reports contradicts a declared size, that no row of the table does, and that no
/// sentence advises to rely on something.
fn no_cache_is_contradicted(reports: &[Report]) {
    const CONTRADICT: [&str; 5] =
        ["effective-cache", "declared-cache", "exclusive-cache", "unseen-cache", "undeclared-cache"];
    for report in reports {
        for found in findings(report) {
            let claimed = found.certainty == Certainty::Claim;
            assert!(!(claimed && CONTRADICT.contains(&found.id.as_str())), "{}", found.text);
            for word in ["ount on", "wrong", "tail", "547", "only 21"] {
                assert!(!found.text.contains(word), "{word} in {}", found.text);
            }
        }
        assert!(level_rows(report).iter().all(|row| !row.name.contains("tail") && row.name != "step"));
    }
}

#[test]
fn l1_of_32_kib_is_not_21_kib_beside_other_work() {
    let smaller = |rounds: usize| report(chase_of(&survey_sizes(), &vec![[17 * KIB, MIB, 32 * MIB]; rounds]));
    let mut single = quiet(smaller(1));
    single.measurements.iter_mut().for_each(|m| *m = once(m.clone()));
    // Beside other work; where nothing is known of other work; in few rounds; in a guest.
    let all = [busy(smaller(8)), smaller(8), quiet(smaller(2)), single, guest(quiet(smaller(8)))];
    no_cache_is_contradicted(&all);
    let doubt = only(&all[0], "effective-cache");
    assert_eq!(
        doubt.in_words(),
        "L1 is declared as 32 KiB; the latency was seen to rise between 18 KiB and 20 KiB. (doubtful: the size is \
         uncertain: other processes used 97 % of the CPUs and a part of the caches)"
    );
    // The same rounds on a machine of which it is known that it was quiet.
    assert_eq!(only(&quiet(smaller(8)), "effective-cache").certainty, Certainty::Claim);
}

/// L2 and L3 capacities that eight idle surveys showed.
const IDLE: [[u64; 3]; 8] = [
    [32 * KIB, 334 * KIB, 3 * MIB / 2],
    [32 * KIB, 384 * KIB, 8 * MIB],
    [32 * KIB, 780 * KIB, 5 * MIB],
    [32 * KIB, MIB, 3 * MIB],
    [32 * KIB, MIB, 6 * MIB],
    [32 * KIB, MIB, 4 * MIB],
    [32 * KIB, MIB, 7 * MIB],
    [32 * KIB, 27 * MIB / 10, 6 * MIB],
];

#[test]
fn an_l2_and_an_l3_that_change_from_survey_to_survey_are_not_contradicted() {
    let alone = IDLE.map(|capacities| guest(quiet(report(chase_of(&survey_sizes(), &[capacities; 8])))));
    no_cache_is_contradicted(&alone);
    let mixed = |report| {
        chase_of(&survey_sizes(), &IDLE).into_iter().fold(report, |mut report: Report, m| {
            report.measurements.push(m);
            report
        })
    };
    // The same within one survey: also on a quiet machine of its own.
    let mixed = quiet(mixed(report(Vec::new())));
    no_cache_is_contradicted(std::slice::from_ref(&mixed));
    let doubt = findings(&mixed).into_iter().find(|found| found.text.starts_with("L3")).unwrap();
    assert!(doubt.text.contains("was seen to rise anywhere from 1.62 MiB to"), "{}", doubt.text);
    assert!(doubt.in_words().contains("the rounds do not agree"), "{}", doubt.in_words());
    let row = level_rows(&mixed).into_iter().find(|row| row.name == "L3").unwrap();
    assert_eq!((row.quality.level, row.capacity()), (QualityLevel::Unstable, None));
}

#[test]
fn levels_that_move_are_left_out_of_the_levels_that_are_claimed() {
    let claimed = |capacities: [u64; 3]| {
        only(&guest(quiet(report(chase_of(&survey_sizes(), &[capacities; 8])))), "cache-levels").values
    };
    let first = claimed(IDLE[3]);
    for found in IDLE.map(claimed) {
        for (name, value) in &found {
            let range = |of: &BTreeMap<String, f64>| {
                Some((*of.get(&format!("{name}_low"))?, of[&format!("{name}_high")]))
            };
            match (range(&found), range(&first)) {
                (Some(a), Some(b)) => assert!(a.0 <= b.1 && b.0 <= a.1, "{name}: {a:?} and {b:?}"),
                _ if name.ends_with("_low") || name.ends_with("_high") || !first.contains_key(name) => {}
                _ => assert_eq!(*value, first[name], "{name}"),
            }
        }
    }
}

#[test]
fn a_second_step_of_l2_is_no_tail() {
    // Half of the loads beyond 300 KiB take longer: a step in the middle of L2.
    let stepped = |rounds: usize| {
        let mut points = chase_of(&survey_sizes(), &vec![[32 * KIB, MIB, 32 * MIB]; rounds]);
        for m in &mut points {
            let size = m.numeric_param("size").unwrap();
            let slower = if (300 * KIB..MIB).contains(&size) { 2.0 } else { 1.0 };
            let medians: Vec<f64> = m.rounds.iter().filter_map(|round| Some(round.p50? * slower)).collect();
            *m = in_rounds(m.clone(), &medians);
        }
        report(points)
    };
    no_cache_is_contradicted(&[busy(stepped(8)), stepped(8), quiet(stepped(2)), guest(quiet(stepped(8)))]);
    let claimed = only(&quiet(stepped(8)), "undeclared-cache");
    assert_eq!(
        claimed.text,
        "8 of 8 rounds show a step between 288 KiB and 320 KiB, which no declared cache accounts for."
    );
}

#[test]
fn a_cache_that_seems_larger_than_declared_is_no_wrong_declaration() {
    let larger =
        |rounds: usize| report(chase_of(&survey_sizes(), &vec![[32 * KIB, 27 * MIB / 10, 32 * MIB]; rounds]));
    no_cache_is_contradicted(&[busy(larger(8)), larger(8), quiet(larger(2)), guest(quiet(larger(8)))]);
    let claimed = only(&quiet(larger(8)), "declared-cache").text;
    assert!(
        claimed.contains("in 8 of 8 rounds the latency rose between 3 MiB and 3.25 MiB only"),
        "{claimed}"
    );
}

#[test]
fn no_size_is_made_up_between_two_that_were_measured() {
    let quarters: Vec<u64> = (6..14).map(|at| 1u64 << (2 * at)).collect(); // 4 KiB, 16 KiB, … 64 MiB
    let coarse = |l2: u64| {
        let mut report = quiet(report(chase_of(&quarters, &[[32 * KIB, 400 * KIB, 32 * MIB]; 8])));
        report.machine.caches[1].size = l2;
        report
    };
    // What is declared lies between two sizes: nothing contradicts it.
    no_cache_is_contradicted(&[coarse(512 * KIB), coarse(MIB), coarse(256 * KIB)]);
    let contradicted = only(&coarse(2 * MIB), "effective-cache");
    assert!(contradicted.text.contains("between 256 KiB and 1 MiB already"), "{}", contradicted.text);
    let measured = |value: &f64| quarters.contains(&(*value as u64)) || *value == (2 * MIB) as f64;
    assert!(contradicted.values.values().all(measured), "{:?}", contradicted.values);
    for row in level_rows(&coarse(2 * MIB)) {
        assert!(
            row.capacity().is_none_or(|size| measured(&(size as f64)) || row.agreement == Agreement::Agrees)
        );
    }
}

#[test]
fn a_few_sizes_are_no_curve() {
    for sizes in [&[16 * KIB, MIB, 64 * MIB][..], &[16 * KIB, 32 * KIB, 64 * MIB], &[16 * KIB, 128 * KIB]] {
        let report = quiet(report(chase_of(sizes, &[[32 * KIB, 2 * MIB, 32 * MIB]; 8])));
        assert_eq!(level_rows(&report), []);
        assert!(findings(&report).iter().all(|finding| !finding.text.contains("chase")), "{sizes:?}");
    }
}

fn pool(threads: u64, slowdowns: [f64; 8]) -> Measurement {
    let parameters = params([("threads", threads.into()), ("size", (10 * MIB).into())]);
    let mut m = with_value(operation("thread.pool", parameters, 1e6), "slowdown", slowdowns[0]);
    let value = m.values.get_mut("slowdown").unwrap();
    (value.unit, value.value) = ("ratio".to_owned(), latscope_core::statistics::median(&slowdowns).unwrap());
    for (round, slowdown) in m.rounds.iter_mut().zip(slowdowns) {
        round.values.insert("slowdown".to_owned(), slowdown);
    }
    m.derive_results();
    m
}

#[test]
fn no_pool_beats_the_ideal_and_nothing_is_lost_against_one_that_did() {
    let steady = |at: f64| [1.0, 0.99, 1.005, 1.0, 1.01, 0.995, 1.0, 1.0].map(|factor| at * factor);
    // "a pool of 2 needs 0.74 times … 45 % is lost": the smaller pool is impossible.
    let found = only(&report(vec![pool(2, steady(0.74)), pool(16, steady(1.35))]), "oversubscription");
    assert!(!found.text.contains("0.7") && !found.text.contains("as long"), "{}", found.text);
    none(&report(vec![pool(2, steady(1.3)), pool(16, steady(0.74))]), "oversubscription");
    // Possible in the median, but the rounds are too far apart to say that much is lost.
    let wide = [0.9, 1.5, 1.0, 1.4, 1.2, 0.95, 1.3, 1.1];
    let found =
        only(&report(vec![pool(2, wide), pool(16, wide.map(|slowdown| slowdown * 1.3))]), "oversubscription");
    assert!(!found.text.contains("as long") && !found.text.contains("nothing"), "{}", found.text);
}

#[test]
fn an_idle_state_does_not_cost_nothing_where_being_kept_awake_took_48_ms() {
    let awake = |medians: [f64; 8]| {
        let point = hand_off("sync.semaphore", "two-cores-awake", medians[0]);
        vec![hand_off("sync.semaphore", "two-cores", 36_000.0), in_rounds(point, &medians)]
    };
    // Slower than from idle, steadily; in some rounds only; far apart.
    for medians in [[48.1e6; 8], [48.1e6, 48.1e6, 48.1e6, 2.2e4, 2.2e4, 2.2e4, 2.2e4, 2.2e4]] {
        none(&report(awake(medians)), "idle-exit");
    }
    none(&report(awake([1e4, 48.1e6, 2e4, 9e4, 4e5, 3e4, 5e4, 2e6])), "idle-exit");
    let starved = lowered(awake([48.1e6; 8])[1].clone(), QualityLevel::Degraded, "waited");
    none(&report(vec![awake([36_000.0; 8])[0].clone(), starved]), "idle-exit");
}

#[test]
fn points_that_were_disturbed_are_no_change_of_the_clock() {
    // 3.69 GHz all the time; a few points read otherwise, in any round.
    let found = clocked(|row, round| match (row + round) % 9 {
        0 => 2.14,
        1 => 3.71,
        _ => 3.69,
    });
    none(&found, "clock-drift");
    // One round with many such points, but no round apart from the others.
    none(
        &clocked(|row, round| if round == 2 && row < 11 { 2.14 + 0.15 * row as f64 } else { 3.69 }),
        "clock-drift",
    );
}

#[test]
fn nothing_is_650_times_cheaper_than_a_thread_that_waited_for_a_cpu() {
    let total = |medians: &[f64]| in_rounds(operation("thread.total", Params::new(), medians[0]), medians);
    let handed = hand_off("sync.semaphore", "same-core", 6_100.0);
    let mut waited = total(&[3.96e6; 8]);
    waited.contention =
        Some(Contention { wall_ns: 100, run_delay_ns: Some(60), distorts: true, ..Contention::default() });
    waited.account = Some(Account { wall_ns: 100, others: 0.97, ..Account::default() });
    waited.derive_results();
    let jumps = total(&[4.1e4, 3.9e6, 4.0e4, 4.0e6, 3.9e6, 4.2e4, 4.1e6, 4.0e4]);
    let two_rounds = total(&[3.96e6, 3.97e6]);
    let single = once(total(&[3.96e6]));
    for disturbed in [waited, jumps, two_rounds, single] {
        none(&report(vec![disturbed, handed.clone()]), "thread-pools");
    }
    // Of what is claimed, the least that the rounds allow: 30 to 50 µs against 6.1.
    let scattered = total(&[3.0e4, 5.0e4, 4.0e4, 3.5e4, 4.5e4, 3.2e4, 4.8e4, 4.0e4]);
    let found = only(&report(vec![scattered, handed]), "thread-pools");
    assert!(
        found.text.contains("at least ×3 as long") || found.text.contains("at least ×5 as long"),
        "{}",
        found.text
    );
}

#[test]
fn a_transfer_is_no_operation_in_a_frame() {
    let transfers = ["memory.bandwidth", "sync.pipe-bandwidth", "remote.bandwidth", "memory.stream"];
    let mut all: Vec<Measurement> =
        transfers.map(|probe| operation(probe, Params::new(), 155_000.0)).to_vec();
    all.push(operation("remote.bandwidth", Params::new(), 12e6));
    none(&report(all.clone()), "frame");
    all.push(operation("process.shell", Params::new(), 3e6));
    let found = only(&report(all), "frame");
    assert!(!found.text.contains("bandwidth"), "{}", found.text);
    assert!(found.evidence.iter().all(|e| e.probe == "process.shell"), "{:?}", found.evidence);
}

/// A report that supports every finding on figures.
fn everything() -> Report {
    let at = |probe: &str, ns| {
        let parameters =
            params([("size", 4096u64.into()), ("filesystem", "ext4".into()), ("directory", "/data".into())]);
        operation(probe, parameters, ns)
    };
    let steady = [1.0, 0.99, 1.005, 1.0, 1.01, 0.995, 1.0, 1.0];
    let mut all =
        [chase("random", "2MiB", 8, 32 * MIB, 0.0), chase("random", "4KiB", 2, 32 * MIB, 80.0)].concat();
    all.extend(sums([2.0, 2.0, 2.2]));
    all.extend([
        operation("sync.mutex", Params::new(), 7.0),
        with_value(hand_off("sync.semaphore", "same-core", 6_000.0), "blocked", 98.0),
        hand_off("sync.semaphore", "two-cores", 36_000.0),
        hand_off("sync.semaphore", "two-cores-awake", 20_000.0),
        operation("thread.total", params([("mode", "warm".into())]), 40_000.0),
        pool(2, steady.map(|factor| 1.3 * factor)),
        pool(16, steady.map(|factor| 2.2 * factor)),
        at("file.read", 230.0),
        at("file.read-direct", 29_800.0),
        at("file.write", 1_200.0),
        at("file.fsync", 990_000.0),
    ]);
    all.extend((1..=5).map(|at| operation("syscall.getppid", params([("at", at.into())]), 100.0)));
    quiet(report(all))
}

fn claims(report: &Report) -> Vec<Finding> {
    findings(report).into_iter().filter(|found| found.certainty == Certainty::Claim).collect()
}

#[test]
fn a_chase_that_was_interrupted_has_no_levels() {
    let mut report = everything();
    let chases: Vec<MeasurementPoint> = report.of_probe("memory.latency").map(planned).collect();
    let stop = Stop { samples: 1, events: 1, batch_ns: 0, budget_ns: 0, limit_ns: 1 };
    report.plan.steps = vec![PlanStep::new("memory.latency", chases, vec![0], stop)];
    report.finished = None;
    assert!(!level_rows(&report).is_empty(), "each size was measured");
    let beyond = |m: &Measurement| m.probe == "memory.latency" && m.numeric_param("size") > Some(512 << 10);
    report.measurements.retain(|m| !beyond(m));
    assert!(level_rows(&report).is_empty());
    assert!(findings(&report).iter().all(|found| found.id != "cache-levels"));
}

/// The point of which a measurement is.
fn planned(m: &Measurement) -> MeasurementPoint {
    MeasurementPoint {
        probe: m.probe.clone(),
        revision: m.revision,
        params: m.params.clone(),
        title: m.title.clone(),
        row: m.row,
    }
}

#[test]
fn a_point_that_is_doubtful_supports_no_claim() {
    let whole = everything();
    let all = claims(&whole);
    let ids: Vec<&str> = all.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "cache-levels", "page-walk", "sequential-sum", "mutex-and-hand-off", "thread-pools", "idle-exit",
            "oversubscription", "page-cache", "durable-write"
        ]
    );
    let damages: [fn(&mut Measurement); 5] = [
        |m| m.lower(Reason::new(QualityLevel::Degraded, "a", "a", "")),
        |m| m.lower(Reason::new(QualityLevel::Unsupported, "b", "b", "")),
        |m| m.incomplete = true,
        |m| *m = once(m.clone()),
        |m| *m = in_rounds(m.clone(), &[m.summary.p50.unwrap(), 1.01 * m.summary.p50.unwrap()]),
    ];
    let jumps: fn(&mut Measurement) = |m| m.lower(Reason::new(QualityLevel::Unstable, "c", "c", ""));
    for evidence in all.iter().flat_map(|found| found.evidence.iter().step_by(29)) {
        let same = |probe: &str, of: &Params| probe == evidence.probe && *of == evidence.params;
        // That a point of a chase jumps is judged by the levels of the rounds.
        let chase = evidence.probe == "memory.latency";
        for damage in damages.iter().chain((!chase).then_some(&jumps)) {
            let mut report = whole.clone();
            report.measurements.iter_mut().filter(|m| same(&m.probe, &m.params)).for_each(damage);
            for found in claims(&report) {
                let rests = found.evidence.iter().any(|e| same(&e.probe, &e.params));
                assert!(!rests, "{} rests on a damaged {evidence:?}: {}", found.id, found.text);
            }
        }
    }
}

#[test]
fn ranges_are_rounded_outwards() {
    use evidence::time_range;
    let cases = [
        ((5.143, 7.26), "5.1 to 7.3 ns"),
        ((940.0, 1_190.0), "940 ns to 1.2 µs"),
        ((5_000.0, 5_000.0), "5 µs"),
        ((99.5, 100.4), "99 to 110 ns"),
        ((0.271, 0.2745), "0.27 to 0.28 ns"),
        ((4.0, 4.0), "4 ns"),
    ];
    for ((low, high), text) in cases {
        assert_eq!(time_range(low, high), text);
    }
}
