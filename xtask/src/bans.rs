//! Check of `deny.toml`'s rule that no C code is in the default dependency tree. It does not need cargo-deny, which
//! also reads that file where it is installed.

use crate::shell;
use anyhow::{Result, bail};

/// Fails when a banned crate is in the dependency tree of the command.
///
/// # Errors
/// The error names the crate and the crates that need it.
pub fn check_dependency_tree() -> Result<()> {
    let rules: toml::Table = std::fs::read_to_string("deny.toml")?.parse()?;
    let banned: Vec<&str> = rules["bans"]["deny"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get("crate").or(entry.get("name"))?.as_str())
        .collect();
    if banned.is_empty() {
        bail!("deny.toml bans nothing: the rule against C code is lost");
    }
    let tree = shell::output(&mut shell::cargo(
        "tree --package latscope --edges normal,build --prefix none --format {p} --locked",
    ))?;
    for line in tree.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if banned.contains(&name)
            || name.ends_with("-sys") && name != "latscope-os" && name != "linux-raw-sys"
        {
            bail!("{name} is in the default dependency tree: `cargo tree --invert {name}` says who needs it");
        }
    }
    Ok(())
}
