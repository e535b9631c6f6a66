//! Plain English: how doc comments begin, how many are too short to say something, words to avoid in them, in messages
//! and in the documentation, habits by which the documentation reads as translated, and long lines of Markdown.
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

/// Most doc comments of three words or fewer, which say little more than the name below them: help texts among them.
const MOST_SHORT: usize = 62;

/// Words that are no field's term, in doc comments, in messages and in the documentation.
const AVOIDED: &[&str] = &[
    "whoever", "for ever", "is told", "are told", "cannot be told", "would tell", "mend", "mends", "mended",
];

/// Columns of a line of Markdown, tables and code apart.
const COLUMNS: usize = 120;

/// A habit by which English reads as translated, counted in the documentation.
struct Habit {
    name: &'static str,
    /// Most per 1,000 words: the rates that are reached. They only fall.
    most: f64,
    /// Returns true if the word at a place of a text is one.
    is_at: fn(&[&str], usize) -> bool,
}

/// Most words of `docs/`, code and the generated page apart. A new page replaces words elsewhere.
const MOST_WORDS: usize = 40_800;

const HABITS: &[Habit] = &[
    Habit { name: "others, as a noun", most: 0.0, is_at: |words, at| bare(words, at) == "others" },
    Habit { name: "beside", most: 0.03, is_at: |words, at| bare(words, at) == "beside" },
    Habit { name: ", too", most: 0.0, is_at: is_too_at_the_end },
    Habit { name: "else, for otherwise", most: 0.0, is_at: is_else_for_otherwise },
    Habit { name: "is no NOUN", most: 0.0, is_at: is_no_noun },
    Habit { name: "from … on", most: 0.0, is_at: is_from_on },
    Habit { name: "begin, as a noun", most: 0.0, is_at: is_begin_as_a_noun },
    Habit { name: "semicolons", most: 0.03, is_at: |words, at| words[at].contains(';') },
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        let is_made = ["golden", "target", "dist"].contains(&name.as_str());
        if entry.is_dir() && !is_made && (!name.starts_with('.') || name == ".github") {
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
    for (place, line) in crates().iter().flat_map(|(_, sources)| sources).flat_map(|path| messages(path)) {
        wrong.extend(avoided(&line).into_iter().map(|word| format!("{place}: {word:?}: {line}")));
    }
    for (path, at, line) in markdown() {
        wrong.extend(avoided(&line).into_iter().map(|word| format!("{path}:{at}: {word:?}")));
    }
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

/// Lines of a source that hold a text, with their places, before its tests. A message on several lines has several.
fn messages(path: &Path) -> Vec<(String, String)> {
    let source = fs::read_to_string(path).unwrap();
    let name = path.strip_prefix(root()).unwrap().display().to_string();
    let is_of_tests =
        ["tests.rs", "testing.rs"].iter().any(|end| name.ends_with(end)) || name.contains("/tests/");
    let before = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = before.lines().enumerate().filter(|(_, line)| !is_of_tests && is_text(line));
    lines.map(|(at, line)| (format!("{name}:{}", at + 1), line.trim().to_owned())).collect()
}

/// Returns true if a line of a source has a part of a text: a quotation mark, or the sign of a text that goes on.
fn is_text(line: &str) -> bool {
    !line.trim_start().starts_with("//") && (line.contains('"') || line.ends_with('\\'))
}

#[test]
fn doc_comments_say_more_than_three_words() {
    let all = crates().into_iter().flat_map(|(_, sources)| sources).flat_map(|path| docs(&path));
    let short: Vec<String> = all
        .filter(|doc| doc.text.split_whitespace().count() <= 3)
        .map(|doc| format!("{}: {}", doc.place, doc.text))
        .collect();
    // A comment written anew lowers the budget.
    assert_eq!(short.len(), MOST_SHORT, "{}", short.join("\n"));
}

#[test]
fn words_of_messages_are_seen() {
    let place = tempfile::tempdir_in(root().join("target")).unwrap();
    let path = place.path().join("one.rs");
    let code = "// cannot be told\nfn f() -> &'static str {\n    \"it cannot be told\"\n}\n";
    fs::write(&path, format!("{code}\n#[cfg(test)]\nmod tests {{\n    // \"would tell\"\n}}\n")).unwrap();
    let found: Vec<_> = messages(&path).iter().flat_map(|(_, line)| avoided(line)).collect();
    assert_eq!(found, ["cannot be told"]);
}

/// Lines of all Markdown of the repository that are prose, with their places.
fn markdown() -> Vec<(String, usize, String)> {
    let mut paths = Vec::new();
    files(&root(), "md", &mut paths);
    // Made of the registry.
    paths.retain(|path| !path.ends_with("docs/probes.md"));
    for known in ["CHANGELOG.md", ".github/pull_request_template.md", "crates/latscope-rpmsg/README.md"] {
        assert!(paths.contains(&root().join(known)), "{known} is read");
    }
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

/// Returns the word at a place in lower case, without the signs around it; empty behind the last.
fn bare(words: &[&str], at: usize) -> String {
    let word = words.get(at).copied().unwrap_or_default();
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Returns true if a sign follows the word at a place, or the cell of a table ends there.
fn ends_a_clause(words: &[&str], at: usize) -> bool {
    words[at].ends_with(['.', ',', ';', ':', ')', '?']) || words.get(at + 1).is_none_or(|next| *next == "|")
}

fn is_too_at_the_end(words: &[&str], at: usize) -> bool {
    bare(words, at) == "too" && at > 0 && words[at - 1].ends_with(',') && ends_a_clause(words, at)
}

fn is_else_for_otherwise(words: &[&str], at: usize) -> bool {
    let pronouns = ["anything", "everything", "nothing", "something", "what", "whatever"];
    bare(words, at) == "else" && !(at > 0 && pronouns.contains(&bare(words, at - 1).as_str()))
}

fn is_no_noun(words: &[&str], at: usize) -> bool {
    let is_there = at > 1 && bare(words, at - 2) == "there";
    let is_verb = at > 0 && ["is", "are", "was", "were"].contains(&bare(words, at - 1).as_str());
    bare(words, at) == "no"
        && is_verb
        && !is_there
        && !["longer", "more"].contains(&bare(words, at + 1).as_str())
}

fn is_from_on(words: &[&str], at: usize) -> bool {
    let before =
        (at.saturating_sub(8)..at).rev().take_while(|before| !words[*before].ends_with(['.', ';', ':', '|']));
    bare(words, at) == "on"
        && ends_a_clause(words, at)
        && before.into_iter().any(|place| bare(words, place) == "from")
}

fn is_begin_as_a_noun(words: &[&str], at: usize) -> bool {
    let articles = ["the", "a", "its", "their", "at", "each", "every"];
    ["begin", "begins"].contains(&bare(words, at).as_str())
        && at > 0
        && articles.contains(&bare(words, at - 1).as_str())
}

/// Text of a page of Markdown without its code and the targets of its links.
fn prose(page: &str) -> String {
    let outside = page.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for (at, part) in outside.split('`').enumerate() {
        text += if at % 2 == 0 { part } else { "x" };
    }
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "]" + part.split_once(')').map_or("", |(_, rest)| rest))
}

/// Returns the words of a text: what has a letter or a digit.
fn count_words(words: &[&str]) -> usize {
    words.iter().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Pages of the documentation and of the root, with their prose. The generated page is left out.
fn pages() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    files(&root().join("docs"), "md", &mut paths);
    paths.retain(|path| !path.ends_with("docs/probes.md"));
    paths.extend(["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|name| root().join(name)));
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        (name, prose(&fs::read_to_string(path).unwrap()))
    };
    paths.into_iter().map(read).collect()
}

/// Places of a habit in texts, each with the words around it.
fn places(habit: &Habit, texts: &[(&str, Vec<&str>)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, words) in texts {
        for at in (0..words.len()).filter(|at| (habit.is_at)(words, *at)) {
            let around = &words[at.saturating_sub(4)..(at + 3).min(words.len())];
            found.push(format!("{name}: {}", around.join(" ")));
        }
    }
    found
}

#[test]
fn habits_of_translated_english_become_rarer() {
    let pages = pages();
    let texts = pages.iter().map(|(name, text)| (name.as_str(), text.split_whitespace().collect::<Vec<_>>()));
    let texts: Vec<_> = texts.collect();
    let words: usize = texts.iter().map(|(_, words)| count_words(words)).sum();
    let mut wrong = Vec::new();
    for habit in HABITS {
        let places = places(habit, &texts);
        let (rate, most) = (places.len() as f64 / words as f64 * 1000.0, habit.most);
        if rate > most {
            wrong.push(format!("{}: {rate:.3}, at most {most}:\n  {}", habit.name, places.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_documentation_grows_no_longer() {
    let pages = pages();
    let docs = pages.iter().filter(|(name, _)| name.starts_with("docs/"));
    let words: usize = docs.map(|(_, text)| count_words(&text.split_whitespace().collect::<Vec<_>>())).sum();
    assert!(words <= MOST_WORDS, "{words} words, at most {MOST_WORDS}: delete what is said twice");
}

#[test]
fn habits_are_seen() {
    let page = "Others wait, too. It is no file `beside; no` [x](from;on), else it fails; there is no file. What else?\n\
                ```\nbeside;\n```\nFrom 6.5 on, the begin lies beside it. | also, too | to ten from 6.5 on. On it goes.";
    let text = prose(page);
    let words: Vec<&str> = text.split_whitespace().collect();
    let count = |habit: &Habit| (0..words.len()).filter(|at| (habit.is_at)(&words, *at)).count();
    assert_eq!(HABITS.iter().map(count).collect::<Vec<_>>(), [1, 1, 2, 1, 1, 2, 1, 1]);
}

#[test]
fn lines_of_markdown_fit_a_window() {
    let long = markdown().into_iter().filter(|(.., line)| line.chars().count() > COLUMNS);
    let long: Vec<String> = long.map(|(path, at, _)| format!("{path}:{at}")).collect();
    assert!(long.is_empty(), "longer than {COLUMNS} columns: {}", long.join(", "));
}
