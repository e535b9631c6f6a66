//! The documentation says what is: its table of probes is the registry's, its
//! links lead somewhere, and its commands are understood.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn latscope(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_latscope")).args(words).output().unwrap()
}

/// Every page, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    let pages = docs.chain(top).filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn the_table_of_probes_is_that_of_the_registry() {
    let made = latscope(&["generate", "probes"]).stdout;
    let kept = fs::read(root().join("docs/probes.md")).unwrap();
    assert!(made == kept, "write it anew: `latscope generate probes > docs/probes.md`");
}

#[test]
fn links_lead_somewhere() {
    let mut found = 0;
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if link.starts_with("http") || file.is_empty() {
                continue;
            }
            found += 1;
            assert!(page.parent().unwrap().join(file).exists(), "{}: {link} leads nowhere", page.display());
        }
    }
    assert!(found > 10, "only {found} links: the test does not see them");
}

/// Commands in fenced blocks, without a prompt, a comment or what follows a pipe.
fn commands(text: &str) -> Vec<Vec<String>> {
    let blocks = text.split("```").skip(1).step_by(2);
    let lines =
        blocks.flat_map(|block| block.lines().skip(1)).map(|line| line.trim().trim_start_matches("$ "));
    lines
        .filter_map(|line| line.strip_prefix("latscope "))
        .map(|line| line.split(['#', '|', '>', '&', ';']).next().unwrap_or_default().trim_end())
        // Two spaces: the title of a screen, not a command.
        .filter(|line| !line.contains("  "))
        .map(|line| line.split_whitespace().map(|word| word.trim_matches(['\'', '"']).to_owned()).collect())
        .collect()
}

#[test]
fn commands_are_understood() {
    let measures = ["survey", "cpu", "memory", "mem", "sync", "thread", "syscall", "process", "file", "wake"];
    let mut tried = 0;
    for (page, text) in pages() {
        for words in commands(&text) {
            let first = words.first().map(String::as_str).unwrap_or_default();
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            // Results to show beside exist with the reader only.
            if !(measures.contains(&first) || first.starts_with("--")) || words.contains(&"--beside") {
                continue;
            }
            words.push("--dry-run");
            let output = latscope(&words);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: latscope {}: {errors}", page.display(), words.join(" "));
            tried += 1;
        }
    }
    assert!(tried > 5, "only {tried} commands: the test does not see them");
}
