//! Costs of using files, in given directories.

mod direct;
pub mod directory;
mod durable;
mod figures;
mod lifecycle;
mod name;
mod read;
mod scratch;
mod uring;

use super::{Condition, Family, FamilyFacts, PlanInput, PointSettings, Probe, ScratchDirectory, settings};
use latscope_core::plan::MeasurementPoint;

/// The family of operations on files.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "file",
        about: "Files: read, create, write, remove, make durable; in a given directory",
        sensitive_to: &[
            Condition::Speed,
            Condition::Virtualisation,
            Condition::CallFilter,
            Condition::Mitigations,
            Condition::Swap,
        ],
        served: true,
        curves: figures::CURVES,
        in_directories: true,
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &read::READ,
    &read::READ_MMAP,
    &direct::READ_DIRECT,
    &uring::READ_URING,
    &lifecycle::CREATE,
    &lifecycle::WRITE,
    &lifecycle::CLOSE,
    &lifecycle::UNLINK,
    &name::RENAME,
    &name::STAT,
    &name::OPEN_CLOSE,
    &durable::FSYNC,
    &durable::FDATASYNC,
];

settings! {
    /// The directory of a point.
    struct FileProbeDirectory {
        /// Where the files are made
        directory: String;
        /// File system of the directory
        filesystem: String;
        /// What the file system is mounted from
        device: String;
    }
}

/// The points of a probe in all directories. `in_one` returns those of a directory, each with its title and
/// row.
fn in_each_directory<S: PointSettings>(
    probe: &Probe,
    input: &PlanInput,
    in_one: impl Fn(FileProbeDirectory) -> Vec<(S, String, bool)>,
) -> Vec<MeasurementPoint> {
    let points = input.directories.iter().flat_map(|directory| {
        let ScratchDirectory { path, filesystem, device, .. } = directory.clone();
        let place = FileProbeDirectory { directory: path.to_string_lossy().into(), filesystem, device };
        let point = |(settings, title, row)| {
            probe.make_point(settings, format!("{title}, {}", directory.filesystem), row)
        };
        in_one(place).into_iter().map(point).collect::<Vec<_>>()
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpus, Experiment, find_probe};
    use latscope_bench::bench::Bench;
    use latscope_core::plan::ParamValue;
    use latscope_core::quality::QualityLevel;
    use latscope_core::report::Sampling;
    use latscope_engine::harness::{self, check, measure};
    use std::collections::BTreeSet;

    fn directory(path: &str, filesystem: &str) -> ScratchDirectory {
        let (filesystem, device) = (filesystem.to_owned(), format!("{filesystem}-device"));
        ScratchDirectory { path: path.into(), filesystem, device, free: 1 << 30 }
    }

    fn input() -> PlanInput {
        PlanInput {
            directories: vec![directory("/disk", "ext4"), directory("/memory", "tmpfs")],
            ..harness::input()
        }
    }

    fn plan(input: &PlanInput) -> Vec<MeasurementPoint> {
        PROBES.iter().flat_map(|probe| probe.plan(input, &harness::machine())).collect()
    }

    /// Runs the experiment of the first point, and sees that it leaves nothing.
    static TIDY: Experiment = Experiment::new("tidy", Cpus::One, tidy).in_scratch();

    fn tidy(bench: &mut Bench) -> anyhow::Result<()> {
        let probe = find_probe(&bench.points()[0].probe).unwrap();
        (probe.experiment.run)(bench)?;
        assert_eq!(std::fs::read_dir(bench.scratch()?)?.count(), 0, "{} leaves files", probe.id);
        Ok(())
    }

    #[test]
    fn every_point_is_measured_and_no_file_is_left() {
        let names: BTreeSet<_> = PROBES.iter().map(|probe| probe.experiment.name).collect();
        for name in names {
            let mine = |point: &MeasurementPoint| find_probe(&point.probe).unwrap().experiment.name == name;
            let planned =
                plan(&input()).into_iter().filter(mine).filter(|p| p.text_param("filesystem") == "ext4");
            for m in measure(&TIDY, planned.collect()) {
                check(&m);
                // Not every file system has direct reads.
                let must = !["file.read-direct", "file.read-uring"].contains(&m.probe.as_str());
                assert!(
                    !must || m.quality.level != QualityLevel::Unsupported,
                    "{}: {:?}",
                    m.probe,
                    m.joined_reasons()
                );
            }
        }
    }

    /// A mean of several waits for the device would contain the turns of other threads.
    #[test]
    fn each_operation_that_waits_for_the_device_is_a_sample() {
        for id in ["file.read-direct", "file.read-uring", "file.fsync"] {
            let mine =
                plan(&input()).into_iter().filter(|p| p.probe == id && p.text_param("filesystem") == "ext4");
            for m in measure(&TIDY, mine.collect()) {
                assert_eq!(m.sampling, Sampling::Event, "{m:?}");
            }
        }
    }

    #[test]
    fn direct_reads_from_memory_are_refused_with_a_reason() {
        let planned = plan(&input()).into_iter().filter(|p| p.probe == "file.read-direct");
        let measured = measure(&TIDY, planned.filter(|p| p.text_param("filesystem") == "tmpfs").collect());
        check(&measured[0]);
        assert_eq!(measured[0].quality.level, QualityLevel::Unsupported);
    }

    #[test]
    fn a_file_larger_than_what_may_be_filled_has_a_reason_and_the_others_are_measured() {
        let mut input = input();
        input.values.insert("size".to_owned(), vec![4096.into(), (1u64 << 60).into()]);
        for id in ["file.read", "file.write"] {
            let mine =
                plan(&input).into_iter().filter(|p| p.probe == id && p.text_param("filesystem") == "ext4");
            for m in measure(&TIDY, mine.collect()) {
                check(&m);
                assert_eq!(
                    m.quality.level == QualityLevel::Unsupported,
                    m.numeric_param("size") != Some(4096),
                    "{:?}",
                    m.joined_reasons()
                );
            }
        }
    }

    #[test]
    fn rates_follow_from_the_bytes_of_an_operation() {
        let planned =
            plan(&input()).into_iter().filter(|p| p.probe == "file.read" && p.numeric_param("size") == 4096);
        for m in measure(&TIDY, planned.collect()) {
            assert_eq!(m.work.unwrap().bytes_touched, 4096);
            assert!(m.rate_touched().unwrap() > 0.0);
        }
    }

    #[test]
    fn every_directory_has_the_same_points_and_says_what_it_is() {
        let points = plan(&input());
        let of = |filesystem: &str| -> Vec<(String, Option<ParamValue>, Option<ParamValue>)> {
            let mine = points.iter().filter(|p| p.text_param("filesystem") == filesystem);
            let key = |name: &str, p: &MeasurementPoint| p.params.get(name).cloned();
            mine.map(|p| (p.probe.clone(), key("size", p), key("mode", p))).collect()
        };
        assert_eq!(of("ext4"), of("tmpfs"));
        assert_eq!(of("ext4").len() * 2, points.len());
        assert!(points.iter().all(|p| p.title.ends_with(p.text_param("filesystem"))));
        assert!(points.iter().all(|p| p.params.contains_key("directory") && p.params.contains_key("device")));
        let different: BTreeSet<_> = points.iter().map(|p| (&p.probe, &p.params)).collect();
        assert_eq!(different.len(), points.len());
    }

    #[test]
    fn what_was_asked_for_is_planned_and_nothing_that_makes_no_sense() {
        let mut input = input();
        input.values.insert("size".to_owned(), vec![0.into(), 100.into()]);
        input.values.insert("mode".to_owned(), vec!["append".into()]);
        let points = plan(&input);
        let sizes = |probe: &str| -> Vec<u64> {
            points
                .iter()
                .filter(|p| p.probe == probe && p.text_param("filesystem") == "ext4")
                .map(|p| p.numeric_param("size"))
                .collect()
        };
        assert_eq!(sizes("file.create"), [0, 100]);
        assert_eq!(sizes("file.write"), [100]);
        assert_eq!(sizes("file.read-mmap"), [100]);
        assert!(sizes("file.read").is_empty() && sizes("file.read-direct").is_empty());
        assert!(points.iter().filter(|p| p.probe == "file.fsync").all(|p| p.text_param("mode") == "append"));
    }

    #[test]
    fn without_directories_there_are_no_points() {
        assert!(plan(&harness::input()).is_empty());
    }
}
