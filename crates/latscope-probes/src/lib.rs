//! The probes: the measurements that latscope offers. One constant registry holds all of them; `list`, help,
//! man page, completions and documentation are made from it.
#![forbid(unsafe_code)]

/// Probes that share their experiment, the type of their points and the function that plans these: name, id, title,
/// where the semantics come from, and what is timed; in braces further facts of that one.
macro_rules! probes {
    ($experiment:ident, $settings:ty, $plan:expr; $($probe:tt)+) => {
        probes! { $experiment, $settings, $plan, ..$crate::ProbeFacts::DEFAULT; $($probe)+ }
    };
    ($experiment:ident, $settings:ty, $plan:expr, ..$facts:expr;
     $($name:ident $id:expr, $title:literal, $source:expr, $timed:tt $({ $($more:tt)+ })?;)+) => {
        $(#[doc = $title]
        pub static $name: $crate::Probe = $crate::Probe {
            facts: $crate::ProbeFacts {
                id: $id,
                title: $title,
                timed: $timed,
                source: $source,
                params: <$settings as $crate::PointSettings>::LIST,
                $($($more)+)?
                ..$facts
            },
            check: <$settings as $crate::PointSettings>::check,
            experiment: &$experiment,
            plan: $plan,
        };)+
    };
}

pub mod activity;
mod apart;
mod available;
mod buffer;
mod classes;
pub mod cpu;
pub mod failure;
pub mod file;
pub mod ipc;
pub mod matrices;
pub mod memory;
pub mod noise;
mod prelude;
pub mod process;
pub mod remote;
pub mod scheduled;
pub mod selftest;
mod siblings;
pub mod sync;
pub mod syscall;
pub mod thread;
mod values;
pub mod wake;
mod ways;

pub use latscope_bench::probe::{
    Cpus, Experiment, Family, Param, ParamValueKind, PlanInput, Probe, ProbeFacts, Registry,
    ScratchDirectory, SurveyProfile,
};
pub use latscope_bench::settings::{KeywordEnum, PointSettings};
pub use latscope_bench::{settings, words};
use latscope_core::catalogue::ProbeCatalogue;
pub(crate) use latscope_core::catalogue::{Condition, FamilyFacts, ProbeHeadline, ProbeSampleKind, Subject};
use latscope_core::machine::Machine;
use latscope_core::plan::MeasurementPoint;
pub use values::VALUES;

/// All families, in the order in which a survey measures them.
pub static FAMILIES: &[&Family] = &[
    &cpu::FAMILY,
    &memory::FAMILY,
    &sync::FAMILY,
    &thread::FAMILY,
    &syscall::FAMILY,
    &process::FAMILY,
    &file::FAMILY,
    &wake::FAMILY,
    &noise::FAMILY,
    &ipc::FAMILY,
    &remote::FAMILY,
];

/// Returns the time that a step of so many points takes in addition to their budgets, s, by its name; 0 for an unknown
/// one.
pub fn setup_s(step: &str, points: usize) -> f64 {
    REGISTRY.setup_s(step, points)
}

/// The only point of a probe without parameters.
fn only_point(probe: &Probe, _: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    vec![probe.make_point((), probe.title, true)]
}

/// The roles of processes that this crate starts.
pub const ROLES: &[latscope_process::role::ProcessRole] = &[ipc::ROLE];

/// Registry of all measurements of latscope.
pub static REGISTRY: Registry = Registry { families: FAMILIES, hidden: selftest::PROBES };

/// Returns the facts on all families and probes, for the crates that cannot see the registry.
pub fn catalogue() -> ProbeCatalogue {
    REGISTRY.catalogue()
}

/// All probes of the registry.
pub fn all_probes() -> impl Iterator<Item = &'static Probe> {
    REGISTRY.all_probes()
}

/// The probe with this id.
pub fn find_probe(id: &str) -> Option<&'static Probe> {
    REGISTRY.find_probe(id)
}

#[cfg(test)]
mod footprints;

#[cfg(test)]
#[path = "../../latscope/tests/skipped/mod.rs"]
mod skipped;

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::catalogue::ExclusiveCpus;
    use latscope_core::machine::Machine;
    use latscope_core::param;
    use latscope_core::plan::{KIND, ParamValue, Plan, PlanStep};
    use latscope_engine::planner::{RunRequest, plan_probes};
    use std::collections::BTreeSet;

    fn survey() -> RunRequest {
        let input = PlanInput { profile: SurveyProfile::Normal, survey: true, ..PlanInput::default() };
        RunRequest::new("survey", input)
    }

    #[test]
    fn probes_of_an_experiment_share_a_step_and_the_last_cpu_comes_first() {
        let machine = Machine { allowed: "0-2".parse().unwrap(), ..Machine::default() };
        let probes: Vec<_> = all_probes().collect();
        let plan = plan_probes(&REGISTRY, &probes, &survey(), &machine);
        let names: Vec<_> = plan.steps.iter().map(|s| (&s.name, &s.conditions.scratch_in)).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(names.len(), unique.len());
        let wake = plan.steps.iter().find(|s| s.name == "wake.timer").unwrap();
        assert_eq!(wake.cpus, [2, 1, 0]);
        assert_eq!(wake.points.len(), 3);
    }

    #[test]
    fn the_same_request_gives_the_same_plan() {
        let machine = Machine { allowed: "0-1".parse().unwrap(), ..Machine::default() };
        let probes: Vec<_> = all_probes().collect();
        assert_eq!(
            plan_probes(&REGISTRY, &probes, &survey(), &machine),
            plan_probes(&REGISTRY, &probes, &survey(), &machine)
        );
    }

    #[test]
    fn a_survey_of_any_number_of_cpus_ends_in_time_by_its_own_estimate() {
        let probes: Vec<_> = all_probes().filter(|probe| !probe.by_name_only).collect();
        for machine in latscope_core::fixture::machines::all() {
            for (profile, rounds, limit) in
                [(SurveyProfile::Quick, 3, 10.0), (SurveyProfile::Normal, 8, 50.5)]
            {
                let input = PlanInput { profile, ..survey().input };
                let request = RunRequest { rounds, ..RunRequest::new("survey", input) };
                let plan = plan_probes(&REGISTRY, &probes, &request, &machine);
                let expected = latscope_engine::remaining::expected(&plan, setup_s).unwrap().as_secs_f64();
                assert!(expected <= limit, "{}, {profile:?}: {expected} s", machine.name);
            }
        }
    }

    /// The rows of a kind of core, which are all on this CPU, as their probes planned them.
    fn rows_of_kind(plan: &Plan, cpu: u32, kind: &str) -> Vec<MeasurementPoint> {
        let mut rows = Vec::new();
        for step in plan.steps.iter().filter(|step| step.points[0].params.contains_key(KIND)) {
            let own = step.points.iter().filter(|point| point.text_param(KIND) == kind);
            for point in own {
                assert_eq!(step.cpus, [cpu]);
                assert!(point.row && point.title.ends_with(&format!(", {kind} (CPU {cpu})")), "{point:?}");
                rows.push(point.without_kind());
            }
        }
        rows
    }

    #[test]
    fn a_survey_measures_rows_on_each_kind_of_core_where_there_are_several() {
        let probes: Vec<_> = all_probes().filter(|probe| !probe.by_name_only).collect();
        let hybrid = latscope_core::fixture::machines::hybrid();
        let alike = Machine { kinds: Vec::new(), ..hybrid.clone() };
        for profile in [SurveyProfile::Normal, SurveyProfile::Full] {
            let request = RunRequest {
                rounds: 8,
                ..RunRequest::new("survey", PlanInput { profile, ..survey().input })
            };
            let planned = plan_probes(&REGISTRY, &probes, &request, &hybrid);
            let without = plan_probes(&REGISTRY, &probes, &request, &alike);
            let is_usual = |step: &&PlanStep| !step.points[0].params.contains_key(KIND);
            let usual: Vec<&PlanStep> = planned.steps.iter().filter(is_usual).collect();
            assert_eq!(usual, without.steps.iter().collect::<Vec<_>>());
            assert_eq!(planned.notes, without.notes);
            let fast = rows_of_kind(&planned, 15, "performance cores");
            let slow = rows_of_kind(&planned, 31, "efficient cores");
            assert_eq!(fast.len(), slow.len());
            assert!(fast.iter().zip(&slow).all(|(a, b)| (&a.probe, &a.params) == (&b.probe, &b.params)));
            assert_eq!(slow.iter().filter(|point| point.probe == "memory.latency").count(), 3);
            let families: BTreeSet<&str> = slow.iter().filter_map(|p| p.probe.split('.').next()).collect();
            assert_eq!(families, BTreeSet::from(["cpu", "memory", "syscall"]));
            slow.iter().for_each(|point| (find_probe(&point.probe).unwrap().check)(point).unwrap());
        }
    }

    #[test]
    fn every_planned_point_passes_the_check_of_its_worker() {
        let machine = latscope_engine::harness::machine();
        let mut wrong = Vec::new();
        for profile in [SurveyProfile::Quick, SurveyProfile::Normal, SurveyProfile::Full] {
            for survey in [true, false] {
                let input = PlanInput { profile, survey, ..latscope_engine::harness::input() };
                for probe in REGISTRY.known_probes() {
                    let points = probe.plan(&input, &machine).into_iter();
                    wrong.extend(
                        points.filter_map(|point| (probe.check)(&point).err()).map(|e| e.to_string()),
                    );
                }
            }
        }
        wrong.sort();
        wrong.dedup();
        assert_eq!(wrong, [""; 0]);
        let rwlock = sync::PROBES[1];
        let point = rwlock.plan(&latscope_engine::harness::input(), &machine).remove(0);
        let check = |name: &str, value: ParamValue| {
            let mut point = point.clone();
            point.params.insert(name.to_owned(), value);
            (rwlock.check)(&point)
        };
        assert!(check("mode", "read".into()).is_ok() && check("other", 1.into()).is_err());
        assert!(check("mode", "reed".into()).is_err() && check("mode", 1.into()).is_err());
    }

    /// Value that no probe has room for.
    const HUGE: u64 = 1 << 40;

    #[test]
    fn a_number_that_plans_nothing_is_above_a_limit_that_the_probe_states() {
        let machine = latscope_engine::harness::machine();
        let mut unstated = Vec::new();
        for probe in all_probes() {
            for param in probe.params.iter().filter(|param| param.kind == ParamValueKind::Number) {
                let mut input = latscope_engine::harness::input();
                let planned = |input: &PlanInput| !probe.plan(input, &machine).is_empty();
                if !planned(&input) {
                    continue;
                }
                input.values.insert(param.name.to_owned(), vec![HUGE.into()]);
                let stated = probe.most.iter().find(|(name, _)| *name == param.name);
                // Threads with a CPU each are limited by the CPUs, and the command says so.
                let by_cpus = param.name == param::THREADS && probe.exclusive_cpus != ExclusiveCpus::None;
                if !planned(&input) && stated.is_none() && !by_cpus {
                    unstated.push(format!("{} {}", probe.id, param.name));
                }
                if let Some((_, most)) = stated {
                    input.values.insert(param.name.to_owned(), vec![(*most).into()]);
                    assert!(planned(&input), "{} {}", probe.id, param.name);
                }
            }
        }
        assert_eq!(unstated, [""; 0]);
    }

    #[test]
    fn a_word_of_one_probe_plans_no_point_that_another_of_its_family_refuses() {
        let machine = latscope_engine::harness::machine();
        let mut wrong = Vec::new();
        for family in FAMILIES {
            for param in family.probes.iter().flat_map(|probe| probe.params.iter()) {
                let ParamValueKind::Choice(words) = param.kind else { continue };
                for (word, _) in words {
                    let mut input = latscope_engine::harness::input();
                    input.values.insert(param.name.to_owned(), vec![(*word).into()]);
                    input.directories = vec![ScratchDirectory {
                        path: "/data".into(),
                        filesystem: "ext4".to_owned(),
                        device: "/dev/vda".to_owned(),
                        free: 1 << 40,
                    }];
                    let points = family.probes.iter().flat_map(|probe| probe.plan(&input, &machine));
                    let refused =
                        |point: MeasurementPoint| (REGISTRY.find_probe(&point.probe)?.check)(&point).err();
                    wrong.extend(points.filter_map(refused).map(|error| error.to_string()));
                }
            }
        }
        wrong.sort();
        wrong.dedup();
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn one_of_a_thing_is_in_the_singular() {
        let machine = latscope_engine::harness::machine();
        let things = ["threads", "CPUs", "chains", "processes", "descriptors", "pairs", "pages", "calls"];
        let mut wrong = Vec::new();
        for probe in all_probes() {
            let mut input = latscope_engine::harness::input();
            let numbers = probe.params.iter().filter(|param| param.kind == ParamValueKind::Number);
            input.values.extend(numbers.map(|param| (param.name.to_owned(), vec![ParamValue::Number(1)])));
            for point in probe.plan(&input, &machine) {
                let words: Vec<&str> = point.title.split([' ', ',']).collect();
                if words.windows(2).any(|pair| pair[0] == "1" && things.contains(&pair[1])) {
                    wrong.push(point.title);
                }
            }
        }
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn a_time_and_a_size_stand_with_their_unit_beside_other_parameters() {
        for param in all_probes().flat_map(|probe| probe.params.iter()) {
            let written = latscope_core::events::format_param(param.name, &1000.into(), &Default::default());
            let unit = match param.kind {
                ParamValueKind::Time => "µs",
                ParamValueKind::Size => "B",
                _ => continue,
            };
            assert!(written.ends_with(unit), "{written}");
        }
    }

    #[test]
    fn every_probe_is_documented_and_unique() {
        let mut ids = BTreeSet::new();
        for probe in all_probes() {
            assert!(ids.insert(probe.id), "{} stands twice in the registry", probe.id);
            assert!(probe.id.contains('.'), "{}", probe.id);
            assert!(FAMILIES.iter().any(|f| f.name == probe.family()), "{}", probe.id);
            assert!(probe.timed.ends_with('.') && probe.timed.len() > 20, "{}: timed", probe.id);
            assert!(!probe.source.is_empty() && !probe.title.is_empty(), "{}", probe.id);
            for param in probe.params.iter() {
                assert!(!param.help.is_empty(), "{}: {}", probe.id, param.name);
            }
        }
    }

    #[test]
    fn what_has_fewer_rounds_has_three_at_least_and_a_reason() {
        let experiments = REGISTRY.known_probes().map(|probe| probe.experiment);
        for experiment in experiments {
            let Some(rounds) = experiment.fewer_rounds else { continue };
            let fits = (3..8).contains(&rounds.usual) && !rounds.reason.is_empty();
            assert!(fits, "{}: {rounds:?}", experiment.name);
        }
    }

    #[test]
    fn an_experiment_name_means_one_experiment() {
        for probe in REGISTRY.known_probes() {
            let found = REGISTRY.experiment(probe.experiment.name).expect(probe.id);
            assert!(std::ptr::eq(found, probe.experiment), "{}: two experiments have its name", probe.id);
        }
    }
}
