//! Results whose every text is hostile, through the views, the judging commands and the forms of both: nothing that is
//! printed makes a terminal, a workflow, a spreadsheet, a browser or a shell act.

use crate::support::{Place, Ran, end, latscope};
use latscope_core::redact::planted::planted_report;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Texts that something obeys.
const TEXTS: [&str; 24] = [
    "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{9b}31m",
    "\u{1b}P+q544e\u{1b}\\\u{1b}_Ga=d\u{1b}\\",
    "\u{202e}txt.exe\u{2066}\u{2028}\u{2029}\u{200f}",
    "::stop-commands::x",
    "\r\n::add-mask::x\n ::set-output name=a::b",
    "##vso[task.setvariable variable=a]b",
    "##[error]x",
    "##teamcity[buildStop comment='x']",
    "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=a RESULT=pass>",
    "<script>alert(1)</script><img src=x onerror='alert(2)'>",
    "\"><svg onload=alert(3)>&lt;x",
    "]]><x/><![CDATA[",
    "=HYPERLINK(\"http://x\")",
    "+1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "-2+3",
    "\t=1+1",
    "\"\"\"\n[[limit]]\nmax = '1h'\n",
    "x\"} 1 2\nother{a=\"",
    "../../../../etc/passwd",
    "$(id > FILE)`id`;id|id&id",
    "{{7*7}}${{x}} %s %n",
    "[x](javascript:alert(1)) | a | `b` ![](http://x)",
    "\u{7f}\u{feff}\u{301}\u{e0041}",
];

/// Commands on two results, FILE and OTHER, with a budget that they exceed and one that they learn.
const CALLS: &[&str] = &[
    "show FILE",
    "show FILE --table",
    "show FILE --all",
    "show FILE --all --redact",
    "show FILE --json=-",
    "show FILE --csv=-",
    "show FILE --csv-long=-",
    "show FILE --csv-histogram=-",
    "show FILE --openmetrics=-",
    "show FILE --lava=-",
    "show FILE --markdown=-",
    "show FILE --html=-",
    "show FILE --contribute=-",
    "show FILE --svg=-",
    "show FILE --svg-percentiles=-",
    "show FILE --max 1ns",
    "show FILE --beside OTHER",
    "compare FILE OTHER --all",
    "compare FILE OTHER --json=-",
    "compare FILE OTHER --html=-",
    "compare FILE OTHER --markdown=-",
    "gate FILE --budget BUDGET --all",
    "gate FILE --budget BUDGET --github",
    "gate FILE --budget BUDGET --junit=-",
    "gate FILE --budget BUDGET --json=-",
    "gate --learn FILE OTHER --budget LEARNT",
    "history DIRECTORY --all",
    "history DIRECTORY --json=-",
    "history DIRECTORY --html=-",
    "merge FILE OTHER --json MERGED",
    "import FILE --json IMPORTED",
];

/// Files of one text.
struct HostileFiles {
    place: Place,
    text: &'static str,
}

impl HostileFiles {
    fn new(text: &'static str) -> HostileFiles {
        let place = Place::new();
        place.directory("all");
        for (name, run_id) in [("file", "01"), ("other", "02")] {
            let mut report = planted_report(text);
            report.run_id = run_id.repeat(16);
            std::fs::write(place.at(&format!("all/{name}.json")), report.to_json()).unwrap();
        }
        place.file("budget", "[[limit]]\nprobe = 'wake.timer'\nmax = '1ns'");
        HostileFiles { place, text }
    }

    fn words(&self, call: &str) -> Vec<String> {
        let names = [
            ("FILE", "all/file.json"),
            ("OTHER", "all/other.json"),
            ("BUDGET", "budget"),
            ("LEARNT", "learnt"),
            ("DIRECTORY", "all"),
            ("MERGED", "merged.json"),
            ("IMPORTED", "imported.json"),
        ];
        let path = |word: &str| match names.iter().find(|(name, _)| *name == word) {
            Some((_, path)) => self.place.at(path),
            None => word.to_owned(),
        };
        call.split(' ').map(path).collect()
    }
}

#[test]
fn no_text_of_a_result_makes_a_reader_act() {
    let files: Vec<HostileFiles> = TEXTS.into_iter().map(HostileFiles::new).collect();
    let pairs: Vec<(&HostileFiles, &str)> =
        files.iter().flat_map(|files| CALLS.iter().map(move |call| (files, *call))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((files, call)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = end(&mut latscope(files.words(call)));
                    obeys_nothing(&ran, call, files.text);
                }
            });
        }
    });
    println!("{} texts x {} calls", TEXTS.len(), CALLS.len());
}

#[track_caller]
fn obeys_nothing(ran: &Ran, call: &str, text: &str) {
    ran.no_panic();
    let context = || format!("{call}, {text:?}: {ran:#?}");
    // 2 and 3 are verdicts.
    assert!(matches!(ran.code, Some(0 | 2 | 3)), "{}", context());
    assert!(!ran.out.is_empty() || !ran.err.is_empty() || call.contains(" --json "), "{}", context());
    for printed in [&ran.out, &ran.err] {
        assert!(!printed.chars().any(is_obeyed_by_terminals), "{}", context());
        for start in ["##vso[", "##[", "##teamcity[", "<script>alert", "<svg onload", "<img src=x"] {
            assert!(!printed.contains(start), "{start}: {}", context());
        }
        for line in printed.lines().map(str::trim_start) {
            assert!(!line.starts_with("::") || line.starts_with("::error title="), "{}", context());
        }
    }
    if !call.contains("--lava") {
        assert!(!ran.out.contains("<LAVA_SIGNAL"), "{}", context());
    }
    if call.contains("--csv") {
        for cell in ran.out.lines().flat_map(|line| line.split(',')) {
            let cell = cell.trim_start_matches('"');
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t']) && cell.parse::<f64>().is_err();
            assert!(!is_formula, "{cell}: {}", context());
        }
    }
}

/// Returns true for what moves a cursor, changes a title or the direction of a text.
fn is_obeyed_by_terminals(c: char) -> bool {
    c.is_control() && !"\n\t".contains(c)
        || ('\u{200e}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}
