use super::*;
use latscope_core::fixture;
use latscope_core::report::{Report, Semantics};
use std::collections::BTreeSet;

#[test]
fn every_file_is_read_and_has_its_source() {
    let machines: BTreeSet<&str> = built_in().iter().map(|one| one.machine.as_str()).collect();
    assert!(machines.len() >= 50, "{}", machines.len());
    assert!(built_in().iter().all(|one| !one.title.is_empty() && !one.at.is_empty()));
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../references");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, FILES.map(|(name, _)| name.to_owned()).into());
}

#[test]
fn a_figure_of_another_definition_says_how_it_differs() {
    for one in built_in() {
        let definition = &one.definition;
        let typical =
            [ReferenceStatistic::Median, ReferenceStatistic::NotStated].contains(&definition.statistic);
        let over = [ALL_PAIRS, PAIRS_OF_A_CORE].contains(&definition.over.as_str());
        assert!(typical || over || !definition.differs.is_empty(), "{one:?}");
    }
}

const WHOLE: &str = r#"
title = "t"
at = "a"
[[figure]]
name = "mutex"
unit = "ns"
times = "operation"
statistic = "median"
load = "none"
tool = "x"
version = "1"
date = "2026"
row = { probe = "sync.mutex" }
machines = { "M 1" = 14 }
"#;

#[test]
fn what_is_wrong_is_named_with_file_and_key() {
    assert_eq!(parse_references("f.toml", WHOLE).unwrap()[0].ns, 14.0);
    let wrong =
        |from: &str, to: &str| parse_references("f.toml", &WHOLE.replace(from, to)).unwrap_err().to_string();
    for (from, to, named) in [
        ("title = \"t\"", "", "missing field `title`"),
        ("title = \"t\"", "title = ", "f.toml, line 2"),
        ("\"ns\"", "\"ps\"", "figure 1 (mutex): unknown variant `ps`"),
        ("load = \"none\"", "", "missing field `load`"),
        ("load = \"none\"", "load = \" \"", "figure 1 (mutex), load: "),
        ("date", "dated", "unknown field `dated`"),
        ("\"operation\"", "\"half the round trip\"", "figure 1 (mutex), factor: "),
        ("= 14", "= 0", "figure 1 (mutex), machines: "),
        ("= 14", "= nan", "figure 1 (mutex), machines: "),
        ("probe = \"sync.mutex\"", "", "figure 1 (mutex), row: "),
        ("load =", "over = \"some\"\nload =", "figure 1 (mutex), over: "),
        ("at = \"a\"", "at = \"a\"\ncolumn = { \"M 2\" = \"2\" }", "\"M 2\""),
    ] {
        let text = wrong(from, to);
        assert!(text.starts_with("f.toml") && text.contains(named), "{to}: {text}");
    }
}

fn likeness(report: &Report, change: impl Fn(&str) -> String) -> Likeness {
    let references = parse_references("f.toml", &change(WHOLE)).unwrap();
    ReferenceRowGroup::for_report(report, &references)[0].all[0].likeness.clone()
}

#[test]
fn only_one_definition_is_exact() {
    let report = fixture::report();
    assert_eq!(likeness(&report, str::to_owned), Likeness::Exact);
    assert_eq!(likeness(&report, |text| text.replace("\"median\"", "\"not stated\"")), Likeness::Stated);
    let other = |from: &'static str, to: &'static str| likeness(&report, |text| text.replace(from, to));
    for (from, to) in [
        ("\"operation\"", "\"one way\""),
        ("\"median\"", "\"maximum\""),
        ("load = \"none\"", "load = \"hackbench\""),
        ("machines", "differs = \"another lock\"\nmachines"),
    ] {
        assert!(matches!(other(from, to), Likeness::Differs(_)), "{to}");
    }
}

#[test]
fn half_a_round_trip_is_compared_with_half_of_ours() {
    let mut report = fixture::report();
    let groups = ReferenceRowGroup::for_report(&report, built_in());
    let group = groups.iter().find(|group| group.row == "core to core").unwrap();
    let [first, last] = [group.all.first().unwrap(), group.all.last().unwrap()];
    assert!(first.ratio() < 1.0 && last.ratio() > 1.0 && first.here > 70.0 && first.here < 80.0, "{first:?}");
    assert_eq!((first.sign(), first.pairs), ("½", Some((6, 1))));
    let said = standings(&groups).join("\n");
    assert!(said.starts_with("core to core 7") && said.contains("of 34 published machines"), "{said}");
    let nearest = group.clone().nearest();
    assert_eq!(nearest.all.len(), 6);
    assert_eq!(nearest.all.iter().filter(|one| one.ratio() < 1.0).count(), 3);
    for m in report.measurements.iter_mut().filter(|m| m.probe == "sync.core-to-core") {
        m.times = Semantics::OneWay;
    }
    assert!(standings(&ReferenceRowGroup::for_report(&report, built_in())).is_empty());
}

#[test]
fn a_contribution_is_a_file_of_references_without_the_name_of_the_machine() {
    let report = fixture::report();
    let text = contribution(&report);
    assert!(!report.machine.name.is_empty() && !text.contains(&report.machine.name), "{text}");
    let own = parse_references("own.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(own.len() > 20);
    let groups = ReferenceRowGroup::for_report(&report, &own);
    for one in groups.iter().flat_map(|group| &group.all) {
        assert!((one.ratio() - 1.0).abs() < 0.001, "{one:?}");
        assert!(one.likeness == Likeness::Exact, "{one:?}");
    }
}

#[test]
fn machines_are_found_by_words_of_their_names() {
    let found = |name: &str| built_in().iter().filter(|one| one.is_of(name)).count();
    assert!(found("7950x") > 0 && found("ryzen 9 5950x") > 0 && found("iPhone X") > 0);
    assert_eq!((found(""), found("yzen"), found("thinker")), (0, 0, 0));
}
