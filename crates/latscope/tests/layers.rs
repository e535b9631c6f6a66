//! Checks of the layers in ARCHITECTURE.md: crates use what its table allows, files of a crate do not import each other
//! in circles, no crate is too large to be known, and what is known of a probe stands with the probe.
#![forbid(unsafe_code)]

use latscope_core::catalogue::{self, ParamValueKind, families, ids};
use latscope_core::param;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest number of lines of code in a crate, without tests and comments.
/// The probes need the most: each is a file that knows nothing of the others.
const LARGEST: usize = 18_000;

type Uses = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Crates of the workspace that each crate uses, from cargo's metadata, without dependencies of tests.
fn metadata() -> Uses {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let uses = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap().iter();
        let normal = all.filter(|one| one["kind"].is_null()).filter_map(|one| one["name"].as_str());
        normal.filter(|name| name.starts_with("latscope")).map(str::to_owned).collect()
    };
    packages.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), uses(one))).collect()
}

/// Crates that each crate may use, from the table of ARCHITECTURE.md.
fn table() -> Uses {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let part = page.split("## The crates").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let names = cells[2].trim_matches([' ', '|']).split(", ").filter(|name| *name != "–");
        let uses = names.map(|name| format!("latscope-{name}")).collect();
        (cells[0].trim_matches([' ', '`']).to_owned(), uses)
    };
    rows.map(row).collect()
}

#[test]
fn crates_use_what_the_table_of_the_architecture_says() {
    assert_eq!(table(), metadata());
}

/// Text of all Rust files under a folder, including tests.
fn sources(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };
    let text = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false if path.extension().is_some_and(|extension| extension == "rs") => {
            fs::read_to_string(path).unwrap()
        }
        false => String::new(),
    };
    entries.map(|entry| text(entry.unwrap().path())).collect()
}

/// Dependencies that no file under `src` names.
fn unused(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
    let cargo: toml::Table = toml::from_str(&text).unwrap();
    let code = sources(&manifest.join("src"));
    let names = cargo.get("dependencies").and_then(toml::Value::as_table).into_iter().flatten();
    let named = |name: &str| {
        let name = name.replace('-', "_");
        code.contains(&format!("{name}::")) || code.contains(&format!("use {name}"))
    };
    names.map(|(name, _)| name.clone()).filter(|name| !named(name)).collect()
}

#[test]
fn every_declared_dependency_is_used() {
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        assert_eq!(unused(&folder), Vec::<String>::new(), "{}", folder.display());
    }
    assert_eq!(unused(&root().join("xtask")), Vec::<String>::new(), "xtask");
}

#[test]
fn a_dependency_that_nothing_names_is_found() {
    let crate_of_one = tempfile::tempdir().unwrap();
    fs::create_dir(crate_of_one.path().join("src")).unwrap();
    let manifest = "[dependencies]\nserde-json = \"1\"\ncsv = \"1\"\n";
    fs::write(crate_of_one.path().join("Cargo.toml"), manifest).unwrap();
    fs::write(crate_of_one.path().join("src/lib.rs"), "fn f() { serde_json::to_string(&1); }\n").unwrap();
    assert_eq!(unused(crate_of_one.path()), ["csv"]);
}

/// Code of a file before its tests, without comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Names of files that only tests use.
const FOR_TESTS: [&str; 6] = ["tests", "testing", "conformance", "golden", "fixture", "harness"];

/// Collects the modules of a crate: their path within it, and their code.
fn modules(source: &Path, at: &[String], found: &mut BTreeMap<Vec<String>, String>) {
    for entry in fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if FOR_TESTS.contains(&name.as_str()) {
            continue;
        }
        let inner = || at.iter().cloned().chain([name.clone()]).collect::<Vec<_>>();
        if path.is_dir() {
            modules(&path, &inner(), found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let module = if ["mod", "lib", "main"].contains(&name.as_str()) { at.to_vec() } else { inner() };
            found.entry(module).or_default().push_str(&code(&path));
        }
    }
}

/// Flattens `a::{b, c::d}` to `a::b` and `a::c::d`.
fn flat(before: &str, tree: &str, paths: &mut Vec<String>) {
    let (mut depth, mut begin) = (0, 0);
    let ends = tree.char_indices().chain([(tree.len(), ',')]);
    for (at, character) in ends {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = tree[begin..at].trim();
                match part.split_once('{') {
                    Some((path, rest)) => flat(&format!("{before}{path}"), rest.trim_end_matches('}'), paths),
                    None if !part.is_empty() => paths.push(format!("{before}{part}")),
                    None => {}
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// Paths of two names or more in a file: those it imports, and those within its code.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let code: String = code.replace('\n', " ");
    let mut rest = code.as_str();
    while let Some(at) = rest.find("::") {
        let begin =
            rest[..at].rfind(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').map_or(0, |i| i + 1);
        let path = &rest[begin..];
        let end = match path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            Some(end) if path[..end].ends_with("::") && path[end..].starts_with('{') => closing(path, end),
            Some(end) => end,
            None => path.len(),
        };
        flat("", &path[..end], &mut paths);
        rest = &path[end..];
    }
    paths
}

/// Position behind the brace that closes the brace at `open`.
fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, character) in text[open..].char_indices() {
        depth += i32::from(character == '{') - i32::from(character == '}');
        if depth == 0 {
            return open + at + 1;
        }
    }
    text.len()
}

/// Imports of each module: the names that it brings in, with their paths. Modules below it, and with `pub use` all
/// others, take these names from it.
type Imports<'a> = BTreeMap<&'a Vec<String>, BTreeMap<String, String>>;

/// Names that a file imports, with their paths.
fn imports(code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let begins = rest[..at].rsplit('\n').next().unwrap_or_default();
        rest = &rest[at + "use ".len()..];
        if !begins.is_empty() && !begins.starts_with("pub") {
            continue;
        }
        let mut paths = Vec::new();
        flat("", &rest[..rest.find(';').unwrap_or(0)].replace('\n', " "), &mut paths);
        for path in paths {
            let (path, renamed) =
                path.split_once(" as ").map_or((&*path, None), |(path, name)| (path, Some(name)));
            let name = renamed.or(path.trim_end_matches("::self").rsplit("::").next()).unwrap_or(path);
            found.insert(name.to_owned(), path.to_owned());
        }
    }
    found
}

/// Modules of the crate that a path names: the one in which it ends, and those that this one imports the name from;
/// none if it leaves the crate.
fn resolved<'a>(
    path: &str,
    within: &[String],
    modules: &'a BTreeMap<Vec<String>, String>,
    imports: &Imports<'a>,
) -> Vec<&'a Vec<String>> {
    let mut found: Vec<&Vec<String>> = Vec::new();
    let mut next = Some((path.to_owned(), within.to_vec()));
    while let Some((path, within)) = next.take() {
        let Some((module, rest)) =
            ends(&path, &within, modules).filter(|(module, _)| !found.contains(module))
        else {
            break;
        };
        found.push(module);
        let source = rest.and_then(|name| imports.get(module)?.get(&name));
        next = source.map(|path| (path.clone(), module.clone()));
    }
    found
}

/// Module of the crate in which a path ends, and the name in it; `None` if the path leaves the crate.
fn ends<'a>(
    path: &str,
    within: &[String],
    modules: &'a BTreeMap<Vec<String>, String>,
) -> Option<(&'a Vec<String>, Option<String>)> {
    let mut names = path.split("::").map(str::trim).peekable();
    let mut at = match *names.peek()? {
        "crate" => Vec::new(),
        "self" => within.to_vec(),
        "super" => within[..within.len().checked_sub(1)?].to_vec(),
        child => {
            let child: Vec<String> = within.iter().cloned().chain([child.to_owned()]).collect();
            return modules.contains_key(&child).then(|| descend(child, names.skip(1), modules));
        }
    };
    names.next();
    while names.next_if_eq(&"super").is_some() {
        at.pop();
    }
    Some(descend(at, names, modules))
}

/// Innermost module that the names lead to from a module, and the first name that is no module.
fn descend<'a, 'n>(
    mut at: Vec<String>,
    names: impl Iterator<Item = &'n str>,
    modules: &'a BTreeMap<Vec<String>, String>,
) -> (&'a Vec<String>, Option<String>) {
    let mut rest = None;
    for name in names {
        at.push(name.to_owned());
        if !modules.contains_key(&at) {
            rest = at.pop();
            break;
        }
    }
    (modules.get_key_value(&at).expect("a module of the crate").0, rest)
}

/// Circles between the modules of one folder, each with what is within it. To find them, modules that use none of the
/// rest, or that none of the rest uses, are removed until none is left to remove. What a module and its own children
/// use of each other is no circle: the parent holds the table of what its children are.
fn circles(modules: &BTreeMap<Vec<String>, String>) -> BTreeSet<String> {
    let imports: Imports = modules.iter().map(|(module, code)| (module, imports(code))).collect();
    let edges = modules.iter().flat_map(|(module, code)| {
        let paths = paths(code).into_iter();
        let targets = paths.flat_map(|path| resolved(&path, module, modules, &imports));
        targets.filter_map(|target| siblings(module, target)).collect::<Vec<_>>()
    });
    let mut edges: BTreeSet<_> = edges.collect();
    loop {
        let uses: BTreeSet<_> = edges.iter().map(|(from, _)| *from).collect();
        let is_used: BTreeSet<_> = edges.iter().map(|(_, to)| *to).collect();
        let before = edges.len();
        edges.retain(|(from, to)| is_used.contains(from) && uses.contains(to));
        if edges.len() == before {
            return edges
                .iter()
                .map(|(from, to)| format!("{} -> {}", from.join("::"), to.join("::")))
                .collect();
        }
    }
}

/// The two modules of one folder within which two modules lie; `None` where one of them is above the other.
fn siblings<'a>(from: &'a [String], to: &'a [String]) -> Option<(&'a [String], &'a [String])> {
    let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let is_apart = from.len() > common && to.len() > common;
    is_apart.then(|| (&from[..=common], &to[..=common]))
}

#[test]
fn files_import_each_other_in_no_circle_and_no_crate_is_too_large() {
    let mut all = BTreeSet::new();
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|one| one.unwrap().path());
    for folder in crates.chain([root().join("xtask")]) {
        let source = folder.join("src");
        let mut found = BTreeMap::new();
        modules(&source, &[], &mut found);
        let name = source.parent().unwrap().file_name().unwrap().display();
        all.extend(circles(&found).iter().map(|circle| format!("{name}: {circle}")));
        let lines: usize = found.values().map(|code| code.lines().count()).sum();
        assert!((100..LARGEST).contains(&lines), "{}: {lines} lines of code", source.display());
    }
    assert_eq!(all, BTreeSet::new());
}

/// Crates that may name probes in their code: the probes themselves, and older tools in terms of them.
const NAME_PROBES: [&str; 2] = ["latscope-probes", "latscope-compat"];

/// Ids of probes that stand as text in the code of modules, and comparisons with the begin of the ids of a family.
fn ids_in(modules: &BTreeMap<Vec<String>, String>) -> Vec<String> {
    let ids = || latscope_probes::REGISTRY.known_probes().map(|probe| format!("\"{}\"", probe.id));
    let families = || latscope_probes::FAMILIES.iter().map(|family| format!("(\"{}.\")", family.name));
    let named = |code: &str| ids().chain(families()).filter(|text| code.contains(text)).collect::<Vec<_>>();
    let of_module = |(module, code): (&Vec<String>, &String)| {
        let found = named(code).into_iter();
        found.map(|text| format!("{}: {text}", module.join("::"))).collect::<Vec<_>>()
    };
    modules.iter().flat_map(of_module).collect()
}

#[test]
fn an_id_and_the_begin_of_ids_are_seen() {
    let found = |code: &str| ids_in(&BTreeMap::from([(vec!["one".to_owned()], code.to_owned())]));
    assert_eq!(found("m.probe == \"sync.mutex\""), ["one: \"sync.mutex\""]);
    assert_eq!(found("m.probe.starts_with(\"cpu.\")"), ["one: (\"cpu.\")"]);
    assert_eq!(found("families::of(&m.probe) == families::IPC"), [""; 0]);
}

#[test]
fn what_is_known_of_a_probe_stands_with_the_probe() {
    for one in fs::read_dir(root().join("crates")).unwrap() {
        let folder = one.unwrap().path();
        let mut found = BTreeMap::new();
        modules(&folder.join("src"), &[], &mut found);
        found.remove(["catalogue", "ids"].map(str::to_owned).as_slice());
        if !NAME_PROBES.iter().any(|name| folder.ends_with(name)) {
            assert_eq!(ids_in(&found), [""; 0], "{}: use catalogue::ids, or facts", folder.display());
        }
    }
}

/// Beginnings of calls that read or write a parameter, before its name.
const LOOK_UP: [&str; 8] = [
    "params.get(",
    "params.contains_key(",
    "params.insert(",
    "params.remove(",
    "values.contains_key(",
    ".number(",
    ".text(",
    ".is(",
];

/// Names of parameters that stand as text where the code of modules looks one up.
fn parameters_in(modules: &BTreeMap<Vec<String>, String>) -> Vec<String> {
    let known = latscope_probes::REGISTRY.all_probes().flat_map(|probe| probe.params);
    let names: BTreeSet<&str> = known.map(|param| param.name).collect();
    let mut found = Vec::new();
    for (module, code) in modules {
        for (name, call) in names.iter().flat_map(|name| LOOK_UP.map(|call| (name, call))) {
            if code.contains(&format!("{call}\"{name}\"")) {
                found.push(format!("{}: {call}{name}", module.join("::")));
            }
        }
    }
    found
}

#[test]
fn a_parameter_is_looked_up_by_a_name_that_the_compiler_knows() {
    for one in fs::read_dir(root().join("crates")).unwrap() {
        let folder = one.unwrap().path();
        let mut found = BTreeMap::new();
        modules(&folder.join("src"), &[], &mut found);
        if !folder.ends_with("latscope-probes") {
            assert_eq!(parameters_in(&found), [""; 0], "{}: use latscope_core::param", folder.display());
        }
    }
}

#[test]
fn a_name_that_stands_as_text_is_seen() {
    let code = |code: &str| BTreeMap::from([(vec!["one".to_owned()], code.to_owned())]);
    assert_eq!(parameters_in(&code("m.number(\"size\")")), ["one: .number(size"]);
    assert_eq!(parameters_in(&code("m.number(param::SIZE)")), [""; 0]);
}

#[test]
fn every_name_of_a_parameter_is_that_of_a_probe() {
    let known = latscope_probes::REGISTRY.all_probes().flat_map(|probe| probe.params);
    let known: BTreeSet<&str> = known.map(|param| param.name).collect();
    assert_eq!(param::all().filter(|name| !known.contains(name)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn every_id_of_the_catalogue_is_that_of_a_probe() {
    let known = latscope_probes::catalogue();
    let unknown = ids::all().filter(|id| known.find_probe(id).is_none());
    let unknown = unknown.chain(families::all().filter(|name| known.family(name).is_none()));
    assert_eq!(unknown.collect::<Vec<_>>(), [""; 0]);
}

/// Names of the constants of `catalogue::ids` and `catalogue::families`, behind the name of their module.
fn constants() -> Vec<String> {
    let of = |module: &str| {
        let path = root().join(format!("crates/latscope-core/src/catalogue/{module}.rs"));
        let text = fs::read_to_string(path).unwrap();
        let names =
            text.lines().filter(|line| line.ends_with("\";")).filter_map(|line| line.split_once(" = \""));
        names.map(|(name, _)| format!("{module}::{}", name.trim())).collect::<Vec<_>>()
    };
    ["ids", "families"].map(of).concat()
}

#[test]
fn every_id_of_the_catalogue_is_used() {
    let constants = constants();
    assert_eq!(constants.len(), ids::all().chain(families::all()).count());
    let mut used = BTreeSet::new();
    for one in fs::read_dir(root().join("crates")).unwrap() {
        for path in paths(&sources(&one.unwrap().path().join("src"))) {
            let path = path.split(" as ").next().unwrap_or_default().to_owned();
            used.extend(constants.iter().filter(|name| path.ends_with(name.as_str())).cloned());
        }
    }
    assert_eq!(constants.iter().filter(|name| !used.contains(*name)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_unit_of_a_parameter_is_that_of_every_probe() {
    let has_unit = |kind: &ParamValueKind| matches!(kind, ParamValueKind::Time | ParamValueKind::Size);
    let params = || latscope_probes::REGISTRY.all_probes().flat_map(|probe| probe.params);
    for param in params().filter(|param| param.kind != ParamValueKind::Stated) {
        let kind = Some(param.kind).filter(has_unit);
        assert_eq!(catalogue::kind_of(param.name), kind, "{}", param.name);
    }
    let known: BTreeSet<&str> = params().map(|param| param.name).collect();
    let with_unit = param::all().filter(|name| catalogue::kind_of(name).is_some());
    assert_eq!(with_unit.filter(|name| !known.contains(name)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_circle_is_seen() {
    let module = |name: &str| vec![name.to_owned()];
    let of = |first: &str| {
        let second = "use crate::{one::One, three};\n".to_owned();
        let codes = [("one", first.to_owned()), ("two", second), ("three", String::new())];
        codes.map(|(name, code)| (module(name), code)).into_iter().collect()
    };
    for path in ["use super::two::{Two, Three};", "use crate::{three, two::Two};", "f(crate::two::Two);"] {
        assert_eq!(circles(&of(&format!("{path}\n"))).len(), 2, "{path}");
    }
    assert_eq!(circles(&of("use super::three::Three;\n")), BTreeSet::new());
}

#[test]
fn a_circle_through_the_files_of_a_folder_is_seen_and_a_parent_with_its_children_is_none() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let of = |codes: &[(&str, &str)]| {
        let all = codes.iter().map(|(path, code)| (module(path), (*code).to_owned()));
        all.chain([(Vec::new(), String::new())]).collect::<BTreeMap<_, _>>()
    };
    let through = [("a", "use b::B;"), ("a::b", "use crate::c::C;"), ("c", "use crate::a::A;")];
    assert_eq!(circles(&of(&through)), ["a -> c", "c -> a"].map(str::to_owned).into());
    let parent = [("a", "use b::B; use a::b;"), ("a::b", "use super::A;")];
    assert_eq!(circles(&of(&parent)), BTreeSet::new());
}

#[test]
fn a_circle_through_a_name_that_the_parent_imports_is_seen() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    for parent in
        ["pub use all::{Named, pictures};", "use self::all::Named;", "pub(crate) use all::Other as Named;"]
    {
        let codes =
            [("figure", parent), ("figure::all", "use super::bars;"), ("figure::bars", "use super::Named;")];
        let codes = codes.map(|(path, code)| (module(path), format!("{code}\n")));
        let found = circles(&codes.into_iter().chain([(Vec::new(), String::new())]).collect());
        let both = ["figure::all -> figure::bars", "figure::bars -> figure::all"];
        assert_eq!(found, both.map(str::to_owned).into(), "{parent}");
    }
}

#[test]
fn loops_under_a_real_time_policy_run_in_a_test_binary_of_their_own() {
    let tests = root().join("crates/latscope/tests");
    let folders = fs::read_dir(tests).unwrap().map(|entry| entry.unwrap().path());
    let sets_policy = |folder: &PathBuf| sources(folder).contains("Policy::Fifo(");
    let found: Vec<PathBuf> = folders.filter(|path| path.is_dir()).filter(sets_policy).collect();
    assert!(matches!(&found[..], [one] if one.ends_with("starved")), "they starve other tests: {found:?}");
}
