//! Plain English: how doc comments begin, words to avoid, and long lines of Markdown.
//!
//! The rules are those of CONTRIBUTING.md. Help texts, which doc comments of arguments are, have a test of their own in
//! `cli/arguments.rs`.

use std::fs;
use std::path::{Path, PathBuf};

/// First words of a doc comment that is not understood without its neighbours.
const OPENINGS: &[&str] = &[
    "Its", "Their", "Those", "These", "That", "What", "Whether", "As", "Of", "Who", "Whom", "Whose", "Which",
    "Where", "How", "Why", "When", "Ours", "Theirs", "They", "It", "One", "Such", "And", "Or", "But", "So",
];

/// Share of the doc comments of a crate that may begin so, in %: help texts among them.
const MOST: f64 = 3.0;

/// Words that are no field's term, in doc comments and in the documentation.
const AVOIDED: &[&str] = &["whoever", "for ever", "is told", "are told", "mend", "mends", "mended"];

/// Columns of a line of Markdown, tables and code apart.
const COLUMNS: usize = 120;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() && !["golden", "target"].contains(&name.as_str()) {
            files(&entry, extension, found);
        } else if entry.extension().is_some_and(|found| found == extension) {
            found.push(entry);
        }
    }
}

/// Sources of all crates, by crate.
fn crates() -> Vec<(String, Vec<PathBuf>)> {
    let names = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<PathBuf> = names.collect();
    directories.push(root().join("xtask"));
    directories.sort();
    let sources = |directory: PathBuf| {
        let mut found = Vec::new();
        files(&directory.join("src"), "rs", &mut found);
        (directory.file_name().unwrap().to_string_lossy().into_owned(), found)
    };
    directories.into_iter().map(sources).collect()
}

/// A doc comment: where it begins, and its text without the signs.
struct Doc {
    place: String,
    text: String,
}

fn docs(path: &Path) -> Vec<Doc> {
    let mut found: Vec<(usize, &str, Doc)> = Vec::new();
    let source = fs::read_to_string(path).unwrap();
    for (at, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let Some(sign) = ["///", "//!"].into_iter().find(|sign| line.starts_with(sign)) else { continue };
        let text = line[3..].trim();
        match found.last_mut() {
            Some((last, of, doc)) if *last + 1 == at && *of == sign => {
                *last = at;
                doc.text += &format!(" {text}");
            }
            _ => {
                let place = format!("{}:{}", path.strip_prefix(root()).unwrap().display(), at + 1);
                found.push((at, sign, Doc { place, text: text.to_owned() }));
            }
        }
    }
    found.into_iter().map(|(_, _, doc)| doc).collect()
}

/// Returns the words of `AVOIDED` that a text has, as whole words.
fn avoided(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    let is_whole = |at: usize, word: &str| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        [before, after].iter().all(|next| next.is_none_or(|next| !next.is_alphanumeric()))
    };
    AVOIDED
        .iter()
        .copied()
        .filter(|word| text.match_indices(word).any(|(at, _)| is_whole(at, word)))
        .collect()
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut wrong = Vec::new();
    for (name, sources) in crates() {
        let all: Vec<Doc> = sources.iter().flat_map(|path| docs(path)).collect();
        let begins = |doc: &&Doc| {
            let first = doc.text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            OPENINGS.contains(&first)
        };
        let bad: Vec<&Doc> = all.iter().filter(begins).collect();
        if bad.len() as f64 > MOST / 100.0 * all.len() as f64 {
            let list: Vec<String> = bad.iter().map(|doc| format!("{}: {}", doc.place, doc.text)).collect();
            wrong.push(format!("{name}: {} of {}:\n{}", bad.len(), all.len(), list.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_are_those_of_the_field() {
    let mut wrong = Vec::new();
    for doc in crates().iter().flat_map(|(_, sources)| sources).flat_map(|path| docs(path)) {
        wrong.extend(
            avoided(&doc.text).into_iter().map(|word| format!("{}: {word:?}: {}", doc.place, doc.text)),
        );
    }
    for (path, at, line) in markdown() {
        wrong.extend(avoided(&line).into_iter().map(|word| format!("{path}:{at}: {word:?}")));
    }
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

/// Lines of the documentation that are prose, with their places.
fn markdown() -> Vec<(String, usize, String)> {
    let mut paths = Vec::new();
    files(&root().join("docs"), "md", &mut paths);
    // Made of the registry.
    paths.retain(|path| !path.ends_with("probes.md"));
    paths.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)),
    );
    let mut lines = Vec::new();
    for path in paths {
        let place = path.strip_prefix(root()).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_table = ["|", "#", "[", "!["].iter().any(|sign| line.trim_start().starts_with(sign));
            if !is_code && !is_table && !line.starts_with("    ") {
                lines.push((place.clone(), at + 1, line.to_owned()));
            }
        }
    }
    lines
}

#[test]
fn lines_of_markdown_fit_a_window() {
    let long = markdown().into_iter().filter(|(.., line)| line.chars().count() > COLUMNS);
    let long: Vec<String> = long.map(|(path, at, _)| format!("{path}:{at}")).collect();
    assert!(long.is_empty(), "longer than {COLUMNS} columns: {}", long.join(", "));
}
