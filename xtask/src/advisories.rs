//! Check of all `Cargo.lock` against the advisories of RustSec, where their database can be had. It does not need
//! cargo-deny or cargo-audit, whose clones of the database it reads where they are.

use anyhow::{Context, Result, bail};
use semver::{Version, VersionReq};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of dependencies: those of the workspace, and of what is outside of it.
const LOCKS: [&str; 4] = [
    "Cargo.lock",
    "xtask/peers/rsbinder-ping/Cargo.lock",
    "crates/latscope-rpmsg/fuzz/Cargo.lock",
    "responders/image/Cargo.lock",
];

/// Variable that names a clone of the database.
const VARIABLE: &str = "LATSCOPE_ADVISORIES";

const SOURCE: &str = "https://github.com/rustsec/advisory-db";

/// Returns the directory of the database: a clone that is there, or a new one.
///
/// # Errors
/// There is none, and it cannot be cloned.
pub fn database() -> Result<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let clones = home.iter().flat_map(|home| {
        let of_deny = fs::read_dir(home.join("advisory-dbs")).into_iter().flatten().flatten();
        of_deny.map(|entry| entry.path()).chain([home.join("advisory-db")])
    });
    let own = PathBuf::from("target/advisory-db");
    let known =
        named.into_iter().chain(clones).chain([own.clone()]).find(|path| path.join("crates").is_dir());
    if let Some(known) = known {
        return Ok(known);
    }
    let mut clone = Command::new("timeout");
    clone.args(["120", "git", "clone", "--quiet", "--depth", "1", SOURCE]).arg(&own);
    let status = clone.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) {
        return Ok(own);
    }
    bail!("the database of advisories cannot be cloned here: {VARIABLE}=DIR names a clone of {SOURCE}")
}

#[derive(Deserialize)]
struct CargoLockFile {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Version,
    /// `None` for a package of this repository.
    source: Option<String>,
}

#[derive(Deserialize)]
struct AdvisoryEntry {
    advisory: Advisory,
    #[serde(default)]
    versions: Versions,
}

#[derive(Deserialize)]
struct Advisory {
    id: String,
    withdrawn: Option<String>,
}

#[derive(Default, Deserialize)]
struct Versions {
    #[serde(default)]
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

impl AdvisoryEntry {
    /// Reads an advisory, whose facts are a block of TOML at the beginning of its Markdown.
    fn parse_advisory(text: &str) -> Result<AdvisoryEntry> {
        let block = text.split_once("```toml").and_then(|(_, rest)| rest.split_once("```"));
        Ok(toml::from_str(block.context("it has no block of TOML")?.0)?)
    }

    fn affects(&self, version: &Version) -> bool {
        let mut sound = self.versions.patched.iter().chain(&self.versions.unaffected);
        self.advisory.withdrawn.is_none() && !sound.any(|versions| versions.matches(version))
    }
}

/// Fails when a dependency has an advisory that `deny.toml` does not ignore.
///
/// # Errors
/// The error names the crates with their advisories.
pub fn check_lock_files(database: &Path) -> Result<()> {
    let rules: toml::Table = fs::read_to_string("deny.toml")?.parse()?;
    let ignored: Vec<&str> =
        rules["advisories"]["ignore"].as_array().into_iter().flatten().filter_map(|id| id.as_str()).collect();
    let mut found = Vec::new();
    for lock in LOCKS {
        let text = fs::read_to_string(lock).with_context(|| lock.to_owned())?;
        found.extend(advisories(&text, database).with_context(|| lock.to_owned())?);
    }
    found.retain(|line| !ignored.iter().any(|id| line.ends_with(id)));
    found.sort();
    found.dedup();
    if !found.is_empty() {
        bail!("advisories: {}", found.join("; "));
    }
    Ok(())
}

/// Returns the packages of a lock file that have an advisory, as `time 0.1.43: RUSTSEC-2020-0071`.
fn advisories(lock: &str, database: &Path) -> Result<Vec<String>> {
    let lock: CargoLockFile = toml::from_str(lock)?;
    let mut found = Vec::new();
    for package in lock.package.iter().filter(|package| package.source.is_some()) {
        let entries = fs::read_dir(database.join("crates").join(&package.name)).into_iter().flatten();
        for entry in entries {
            let path = entry?.path();
            let entry = AdvisoryEntry::parse_advisory(&fs::read_to_string(&path)?)
                .with_context(|| path.display().to_string())?;
            if entry.affects(&package.version) {
                found.push(format!("{} {}: {}", package.name, package.version, entry.advisory.id));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVISORY: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2020-0071\"\npackage = \"time\"\n\
        [versions]\npatched = [\">= 0.2.23\"]\nunaffected = [\"=0.2.0\"]\n```\n\n# Title\n";

    fn lock(version: &str) -> String {
        format!(
            "version = 4\n[[package]]\nname = \"time\"\nversion = \"{version}\"\nsource = \"registry\"\n\
             [[package]]\nname = \"latscope\"\nversion = \"0.1.0\"\n"
        )
    }

    #[test]
    fn a_version_that_is_not_patched_is_found() {
        let database = tempfile::tempdir().unwrap();
        let directory = database.path().join("crates/time");
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("RUSTSEC-2020-0071.md");
        fs::write(&file, ADVISORY).unwrap();
        let found = |version: &str| advisories(&lock(version), database.path()).unwrap();
        assert_eq!(found("0.1.43"), ["time 0.1.43: RUSTSEC-2020-0071"]);
        assert_eq!(found("0.2.22"), ["time 0.2.22: RUSTSEC-2020-0071"]);
        for sound in ["0.2.0", "0.2.23", "1.0.0"] {
            assert!(found(sound).is_empty(), "{sound}");
        }
        fs::write(&file, ADVISORY.replace("[versions]", "withdrawn = \"2021-01-01\"\n[versions]")).unwrap();
        assert!(found("0.1.43").is_empty());
        fs::write(&file, "# no facts").unwrap();
        assert!(advisories(&lock("0.1.43"), database.path()).is_err());
    }
}
