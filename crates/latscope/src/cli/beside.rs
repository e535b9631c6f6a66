//! Published figures that `--beside` and `--references` ask for.

use super::input::{self, is_stdout};
use super::options::ReferencesArgument;
use anyhow::{Context, Result, bail, ensure};
use latscope_core::report::Report;
use latscope_judge::references::{self, Reference, ReferenceRowGroup};
use latscope_views::DisplayOptions;
use latscope_views::references as views;
use std::fs;
use std::path::{Path, PathBuf};

/// Reads the figures: those of latscope, then those of directories.
///
/// # Errors
/// A directory has no file of references, or a file is none; the text names file and entry.
pub fn load_references(asked: &ReferencesArgument) -> Result<Vec<Reference>> {
    let mut all = references::built_in().to_vec();
    for directory in &asked.references {
        let entries = fs::read_dir(directory)
            .with_context(|| format!("cannot read the directory {} of --references", directory.display()))?;
        let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        // A link of another user could lead to a file of root.
        let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|about| about.is_file());
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml") && is_file(path));
        ensure!(
            !files.is_empty(),
            "--references {}: it has no file *.toml (--contribute writes one)",
            directory.display()
        );
        files.sort();
        for file in files {
            all.extend(references::parse_references(&file.display().to_string(), &input::read_text(&file)?)?);
        }
    }
    Ok(all)
}

/// Word that stands for the machines next to this one.
const PUBLISHED: &str = "published";

/// Published figures, and those that shall stand beside a result.
pub struct References {
    /// Figures of latscope and of directories; `None` if no directory was given.
    all: Option<Vec<Reference>>,
    /// Words of the names of machines that were asked for.
    names: Vec<String>,
    /// True if the figures next to this machine's are wanted.
    nearest: bool,
}

impl References {
    /// Reads the figures, and divides what shall stand beside a result into machines and files of results. A file comes
    /// before a machine of its name.
    ///
    /// # Errors
    /// A file of references cannot be read, or a word is neither a file nor a machine.
    pub fn from_arguments<'a>(
        asked: &ReferencesArgument,
        beside: &'a [PathBuf],
    ) -> Result<(References, Vec<&'a Path>)> {
        let all = if asked.references.is_empty() { None } else { Some(load_references(asked)?) };
        let mut references = References { all, names: Vec::new(), nearest: false };
        let mut results = Vec::new();
        for path in beside {
            let word = path.to_str().filter(|word| !is_stdout(path) && !word.contains('/') && !path.exists());
            match word {
                Some(PUBLISHED) => references.nearest = true,
                Some(word) if references.all().iter().any(|one| one.is_of(word)) => {
                    references.names.push(word.to_owned());
                }
                Some(word) if path.extension().is_none() => bail!(
                    "--beside {word}: it is no file, and no published machine has these words in its name (see \
                     `latscope references`)"
                ),
                _ => results.push(path.as_path()),
            }
        }
        Ok((references, results))
    }

    /// Returns all figures. Those of latscope are read when they are asked for first: most runs show none.
    pub fn all(&self) -> &[Reference] {
        self.all.as_deref().unwrap_or_else(|| references::built_in())
    }

    /// Returns the machine's place among those published, a sentence for each of its figures that many have.
    pub fn standing_sentences(&self, report: &Report) -> Vec<String> {
        references::standings(&ReferenceRowGroup::for_report(report, self.all()))
    }

    /// Returns the figures that shall stand beside a result; `None` if none was asked for.
    fn selected_groups(&self, report: &Report) -> Option<Vec<ReferenceRowGroup<'_>>> {
        if !self.nearest && self.names.is_empty() {
            return None;
        }
        let is_named = |one: &Reference| self.names.iter().any(|name| one.is_of(name));
        let mut groups = Vec::new();
        for mut group in ReferenceRowGroup::for_report(report, self.all()) {
            let nearest = if self.nearest { group.clone().nearest().all } else { Vec::new() };
            group.all.retain(|one| is_named(one.reference) || nearest.contains(one));
            groups.extend(Some(group).filter(|group| !group.all.is_empty()));
        }
        Some(groups)
    }

    /// Returns the figures that shall stand beside a result, for a terminal; empty if none was asked for.
    pub fn render_text(&self, report: &Report, options: &DisplayOptions) -> String {
        self.selected_groups(report)
            .map_or(String::new(), |groups| views::format_comparison(&groups, options))
    }

    /// Returns the figures that shall stand beside a result, as Markdown; empty if none was asked for.
    pub fn render_markdown(&self, report: &Report) -> String {
        self.selected_groups(report).map_or(String::new(), |groups| views::beside_markdown(&groups))
    }
}
