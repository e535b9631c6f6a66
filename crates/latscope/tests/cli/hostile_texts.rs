//! Results whose every text is hostile, through the views, the judging commands and the forms of both: nothing that is
//! printed makes a terminal, a workflow, a spreadsheet, a browser or a shell act.

use crate::support::{Place, Ran, end, latscope};
use latscope_core::redact::planted::planted_report;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Texts that something obeys.
const TEXTS: [&str; 14] = [
    "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{9b}31m\u{1b}P+q544e\u{1b}\\\u{1b}_Ga=d\u{1b}\\",
    "\u{202e}txt.exe\u{2066}\u{2028}\u{2029}\u{200f}\u{7f}\u{feff}\u{301}\u{e0041}",
    "::stop-commands::x",
    "\r\n::add-mask::x\n ::set-output name=a::b",
    "##vso[task.setvariable variable=a]b##[error]x##teamcity[buildStop comment='x']<LAVA_SIGNAL_TESTCASE a>",
    "<script>alert(1)</script><img src=x onerror='alert(2)'>\"><svg onload=alert(3)>&lt;x]]><x/><![CDATA[",
    "=HYPERLINK(\"http://x\")",
    "+1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "-2+3",
    "\t=1+1",
    "\"\"\"\n[[limit]]\nmax = '1h'\n",
    "x\"} 1 2\nother{a=\"",
    "../../../../etc/passwd $(id > FILE)`id`;id|id&id {{7*7}}${{x}} %s %n [x](javascript:alert(1)) | a ![](http://x)",
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
    "gate --learn FILE OTHER",
    "history DIRECTORY --all",
    "history DIRECTORY --json=-",
    "history DIRECTORY --html=-",
    "merge FILE OTHER --json MERGED",
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
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((files, call)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = end(&mut latscope(files.words(call)));
                    ran.no_panic();
                    if let Some(obeyed) = obeyed(&ran, call) {
                        wrong.lock().unwrap().push(format!("{call}, {:?}: {obeyed}", files.text));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
}

/// Line of a call's output that something would obey, or the error of the call; `None` without any.
fn obeyed(ran: &Ran, call: &str) -> Option<String> {
    // 2 and 3 are verdicts.
    if !matches!(ran.code, Some(0 | 2 | 3)) {
        return Some(format!("{:?} {}", ran.code, ran.err));
    }
    ran.out.lines().chain(ran.err.lines()).find(|line| is_obeyed(line, call)).map(|line| format!("{line:?}"))
}

fn is_obeyed(line: &str, call: &str) -> bool {
    let commands = ["##vso[", "##[", "##teamcity[", "<LAVA_SIGNAL"];
    let scripts = ["<script>alert", "<svg onload", "<img src=x"];
    let is_markup = ["--html", "--svg", "--junit", "--markdown"].iter().any(|view| call.contains(view));
    let ours = |start: &str| call.contains("--lava") && line.starts_with(start);
    let is_formula = |cell: &str| {
        let cell = cell.trim_start_matches('"');
        cell.starts_with(['=', '+', '-', '@', '\t']) && cell.parse::<f64>().is_err()
    };
    line.chars().any(is_obeyed_by_terminals)
        || commands.iter().any(|command| line.contains(command) && !ours(command))
        || is_markup && scripts.iter().any(|script| line.contains(script))
        || line.trim_start().starts_with("::") && !line.starts_with("::error title=")
        || call.contains("--csv") && line.split(',').any(is_formula)
}

/// Returns true for what moves a cursor, changes a title or the direction of a text.
fn is_obeyed_by_terminals(c: char) -> bool {
    c.is_control() && c != '\t'
        || ('\u{200e}'..='\u{200f}').contains(&c)
        || ('\u{2028}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}
