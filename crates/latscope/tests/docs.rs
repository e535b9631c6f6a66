//! Checks of the documentation: its table of probes is the registry's, its links lead somewhere, and its commands are
//! understood.
#![forbid(unsafe_code)]

use latscope_core::quality::QualityLevel;
use latscope_probes::Probe;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn latscope(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_latscope")).args(words).output().unwrap()
}

/// Every page of the documentation, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let top = [
        "README.md",
        "ARCHITECTURE.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "RELEASE-CHECKLIST.md",
        "SECURITY.md",
    ]
    .map(|name| root().join(name));
    let pages = docs.chain(top).filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// CI and newcomers run what the README says.
#[test]
fn the_readme_names_the_commands_of_the_tests() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo xtask setup", "cargo xtask test"] {
        assert!(readme.contains(&format!("`{command}`")), "{command}");
    }
}

#[test]
fn the_table_of_probes_is_that_of_the_registry() {
    let made = latscope(&["generate", "probes"]).stdout;
    let page = root().join("docs/probes.md");
    if std::env::var_os("LATSCOPE_RECORD").is_some() {
        fs::write(&page, &made).unwrap();
    }
    assert!(
        made == fs::read(page).unwrap(),
        "docs/probes.md is not what the registry says: `LATSCOPE_RECORD=1 cargo test -p latscope --test docs` \
         records it again"
    );
}

#[test]
fn every_probe_is_on_the_page_of_its_family() {
    // Probes of ipc are its transports, told together.
    let told_alone = |probe: &&Probe| probe.family() != "ipc";
    for probe in latscope_probes::all_probes().filter(told_alone) {
        let page = format!("docs/{}.md", probe.family());
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let (_, name) = probe.id.split_once('.').unwrap();
        let told = text.contains(probe.id) || text.contains(&format!("`{name}`"));
        assert!(told, "{page} does not tell of {}", probe.id);
    }
}

/// Messages must not name pages, since the binary is used where the repository is not.
#[test]
fn messages_name_no_page_of_the_repository() {
    let man = String::from_utf8(latscope(&["generate", "man"]).stdout).unwrap();
    assert!(!man.contains("docs/"), "the man page names a page of docs/");
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_of_tests = path.ends_with("tests") || path.ends_with("target");
            match path.extension() {
                None if path.is_dir() && !is_of_tests => folders.push(path),
                Some(extension) if extension == "rs" => {
                    let text = fs::read_to_string(&path).unwrap();
                    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                    // The recorded schemas are parts of the program.
                    let named = code.filter(|line| line.replace("docs/schema", "").contains("docs/"));
                    let named: Vec<&str> = named.collect();
                    assert!(named.is_empty(), "{}: {named:?}", path.display());
                }
                _ => {}
            }
        }
    }
}

/// Name by which a link finds a heading, as on the usual hosts.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut found = 0;
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            found += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            if !place.is_empty() {
                let headings = fs::read_to_string(&target).unwrap();
                let there = headings.lines().any(|line| line.starts_with('#') && anchor(line) == place);
                assert!(there, "{}: {link}: no such heading", page.display());
            }
        }
    }
    assert!(found > 10, "only {found} links: the test does not see them");
}

/// Words of code spans that look like a path within the repository.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = spans.flat_map(str::split_whitespace);
    let folders = ["crates/", "docs/", "xtask/", "responders/", "tests/", "src/", ".ci/", ".github/"];
    words.filter(move |word| {
        folders.iter().any(|folder| word.starts_with(folder)) && !word.contains(['<', '*', '{', '…'])
    })
}

#[test]
fn paths_in_code_spans_exist() {
    let mut found = 0;
    for (page, text) in pages() {
        for path in paths(&text) {
            found += 1;
            assert!(root().join(path).exists(), "{}: `{path}` does not exist", page.display());
        }
    }
    assert!(found > 10, "only {found} paths: the test does not see them");
    assert_eq!(paths("see `cat docs/a.md` and `crates/<family>/x.rs`").collect::<Vec<_>>(), ["docs/a.md"]);
}

/// Commands in fenced blocks, without a prompt, a comment or what follows a pipe.
fn commands(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```").skip(1).step_by(2);
    let lines =
        blocks.flat_map(|block| block.lines().skip(1)).map(|line| line.trim().trim_start_matches("$ "));
    lines
        .filter_map(|line| line.strip_prefix("latscope "))
        .map(|line| own_words(line).trim_end())
        // Two spaces: the title of a screen, not a command.
        .filter(|line| !line.contains("  "))
        .filter_map(shlex::split)
        .collect()
}

/// Part of a line before a comment, a pipe or another command, where these are not in quotes.
fn own_words(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '#' | '|' | '>' | '&' | ';') => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Arguments with which a command is parsed but not carried out. A command that measures shows its plan. Any other
/// prints its help, which it does once all words before `--help` are understood. `None` for the personalities, whose
/// arguments are not latscope's.
fn harmless(words: &[String]) -> Option<Vec<&str>> {
    let measures = [
        "trial", "run", "survey", "cpu", "memory", "mem", "sync", "thread", "syscall", "process", "file",
        "wake", "noise", "ipc",
    ];
    let first = words.first().map(String::as_str).unwrap_or_default();
    // Results to show beside, or to load, exist with the reader only.
    let plans =
        (measures.contains(&first) || first.starts_with("--")) && !words.iter().any(|w| w == "--beside");
    let last = if plans { "--dry-run" } else { "--help" };
    // What is behind -- belongs to another command, or to the other side.
    let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut all: Vec<&str> = words.iter().map(String::as_str).collect();
    all.insert(own, last);
    (first != "as").then_some(all)
}

#[test]
fn commands_are_understood() {
    let mut tried = std::collections::BTreeSet::new();
    for (page, text) in pages() {
        for words in commands(&text) {
            let Some(words) = harmless(&words) else { continue };
            let output = latscope(&words);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: latscope {}: {errors}", page.display(), words.join(" "));
            tried.insert(words.first().map_or(String::new(), |word| (*word).to_owned()));
        }
    }
    let expected = [
        "survey", "cpu", "memory", "sync", "thread", "syscall", "process", "file", "wake", "noise", "ipc",
        "show", "doctor", "compare",
    ];
    for command in expected {
        assert!(
            tried.contains(command),
            "no page has an example of `latscope {command}`, or the test misses it"
        );
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for (page, _) in pages() {
        let name = page.file_name().unwrap().to_string_lossy();
        assert!(index.contains(&format!("({name}")) || index.contains(&format!("(../{name}")), "{name}");
    }
}

#[test]
fn published_figures_are_all_told() {
    let page = fs::read_to_string(root().join("docs/wake.md")).unwrap();
    for published in latscope_views::published::WAKE_UPS.iter() {
        let row = format!("| {} | {} | {} |", published.name, published.figure, published.conditions);
        assert!(page.contains(&row), "{row}");
    }
}

/// Every file of Rust under a directory.
fn sources(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // Tests make up ids of their own.
        if path.file_stem().is_some_and(|stem| ["tests", "testing"].iter().any(|test| stem == *test)) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// Ids of the reasons in a program text: the first quoted word of each call. Tests are left out, since they make up
/// their own ids.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let calls = [".degrade(", "Reason::new("].into_iter().flat_map(move |call| code.split(call).skip(1));
    let is_id = |word: &&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
    calls.filter_map(|rest| rest.split(';').next()?.split('"').nth(1)).filter(is_id)
}

#[test]
fn every_reason_is_on_the_page() {
    let crates = root().join("crates");
    let mut texts = Vec::new();
    // Levels of memory have a reason of their own, which is in no result.
    let paths = fs::read_dir(crates).unwrap().map(|one| one.unwrap().path());
    for path in paths.filter(|path| !path.ends_with("latscope-judge")) {
        sources(&path.join("src"), &mut texts);
    }
    let given: std::collections::BTreeSet<&str> = texts.iter().flat_map(|text| ids(text)).collect();
    assert!(given.len() > 15, "the test does not see them: {given:?}");
    let page = fs::read_to_string(root().join("docs/result-schema.md")).unwrap();
    let table = page.split("| id | level | meaning |\n|---|---|---|\n").nth(1).unwrap();
    let rows: Vec<[&str; 3]> = table.lines().map_while(columns).collect();
    assert!(rows.len() > 15, "the test does not see them: {rows:?}");
    for id in &given {
        assert!(rows.iter().any(|[known, ..]| known == id), "docs/result-schema.md has no row for {id}");
    }
    for [id, level, meaning] in rows {
        serde_json::from_value::<QualityLevel>(level.into()).unwrap();
        assert!(!meaning.is_empty(), "{id} has no meaning");
        let quoted = format!("\"{id}\"");
        assert!(texts.iter().any(|text| text.contains(&quoted)), "nothing gives the reason {id} any more");
    }
}

/// The id, the level and the meaning in a row of the page; `None` of a line that is no row.
fn columns(row: &str) -> Option<[&str; 3]> {
    let mut columns = row.strip_prefix("| `")?.strip_suffix(" |")?.splitn(3, " | ");
    Some([columns.next()?.strip_suffix('`')?, columns.next()?, columns.next()?])
}
