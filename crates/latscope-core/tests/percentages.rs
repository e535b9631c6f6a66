//! A percentage that is rounded to 0 or 100 says something else than was
//! measured. One function writes them: `latscope_core::units::format_percent`.

use std::fs;
use std::path::{Path, PathBuf};

/// These print what another program prints, or a limit of a budget, digit by digit, or positions on an axis.
const EXCEPTIONS: [&str; 4] = [
    "latscope-compat/src/",
    "latscope-core/src/units.rs",
    "latscope-judge/src/gate/budget.rs",
    "latscope-views/src/figure/ticks.rs",
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether a line puts a percent sign behind something that it formats.
fn formats(line: &str) -> bool {
    !line.trim_start().starts_with("//") && ["} %", "}%"].iter().any(|sign| line.contains(sign))
}

#[test]
fn no_view_formats_a_percentage_by_itself() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for one in fs::read_dir(crates).unwrap() {
        sources(&one.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 100);
    for file in files {
        let name = file.strip_prefix(crates).unwrap().display().to_string();
        if EXCEPTIONS.iter().any(|exception| name.starts_with(exception)) {
            continue;
        }
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            assert!(!formats(line), "{name}:{}: use format_percent or format_share: {line}", number + 1);
        }
    }
}

#[test]
fn a_line_that_formats_one_is_seen() {
    for line in ["format!(\"{share:.0} %\")", "format!(\"{:.1}%\", x)"] {
        assert!(formats(line), "{line}");
    }
    assert!(!formats("/// `{share} %`") && !formats("let text = format_percent(share);"));
}
