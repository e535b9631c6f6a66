//! The HTML page in a browser, as users and as Jenkins show it.

use crate::result::survey;
use crate::skipped::has_program;
use crate::support::{Place, json, run};
use crate::{compare, history, trial};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::{fs, thread};

/// Header that Jenkins sends with a file of a build, which forbids script and style within the page.
const JENKINS: &str = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'";

/// Opens an address in a browser without a window, which writes the page as it has understood it.
fn chromium(place: &Place, address: &str) -> Output {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", place.at("profile")))
        .args(["--dump-dom", address])
        .output();
    output.expect("chromium can be started")
}

/// Writes the survey as a page. Returns its path and its text.
fn page(place: &Place) -> (String, String) {
    let path = place.at("page.html");
    run(&["show", &survey().path, "--quiet", "--html", &path]).done();
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Arguments of short runs whose pages are of other kinds than a survey's.
const RUNS: [&[&str]; 3] = [
    &["wake", "--count", "200", "--interval", "200us"],
    &["ipc", "--transport", "pipe", "--count", "200"],
    &["remote", "--count", "200", "--wait", "futex"],
];

/// Writes a page of each kind: a survey, single events, a comparison, a history, a trial, a plan.
fn pages(place: &Place) -> Vec<(String, String)> {
    let mut paths = vec![page(place).0];
    for words in RUNS {
        let path = place.at(&format!("{}.html", words[0]));
        run(&[words, &["--quiet", "--html", &path]].concat()).done();
        paths.push(path);
    }
    let sides = [("a", 1.0), ("b", 1.2)].map(|(name, factor)| compare::side(place, name, 4, factor));
    let directory = history::stepped(place);
    for (name, of) in [("compare", &sides[..]), ("history", &[directory][..])] {
        let path = place.at(&format!("{name}.html"));
        let words = [name, "--html", &path].map(str::to_owned);
        run(&words.iter().chain(of).map(String::as_str).collect::<Vec<_>>()).done();
        paths.push(path);
    }
    paths.extend([trial::page(place), trial::page_of_plan(place)]);
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Numbers of the elements that a page shows: tables, rows, pictures and their contents.
fn contents(page: &str) -> Vec<usize> {
    ["<table", "<tr", "<svg", "<path", "<circle", "<text", "<li", "<details"]
        .map(|element| page.matches(element).count())
        .to_vec()
}

#[test]
fn a_browser_shows_all_of_it_without_a_complaint() {
    if !has_program("a_browser_shows_all_of_it_without_a_complaint", "chromium") {
        return;
    }
    let place = Place::new();
    for (path, text) in pages(&place) {
        let output = chromium(&place, &format!("file://{path}"));
        let (shown, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(contents(&shown), contents(&text), "{path}");
        assert!(
            shown.contains("<button") && !text.contains("<button"),
            "{path}: the script makes all controls"
        );
        assert!(!said.contains("CONSOLE"), "{path}: {said}");
    }
}

#[test]
fn where_script_and_style_are_forbidden_nothing_is_missing() {
    if !has_program("where_script_and_style_are_forbidden_nothing_is_missing", "chromium") {
        return;
    }
    let place = Place::new();
    let (_, text) = page(&place);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/page.html", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: {JENKINS}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    // Ends with the process of the tests.
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _asked = stream.read(&mut [0; 4096]);
            let _gone = stream.write_all(answer.as_bytes());
        }
    });
    let output = chromium(&place, &address);
    assert_eq!(contents(&String::from_utf8_lossy(&output.stdout)), contents(&text));
}

/// Writes the pictures of the survey into a directory. Returns the lines on stderr, one for each picture.
fn all_pictures(place: &Place) -> Vec<String> {
    let directory = place.at("of/pictures/");
    let ran = run(&["show", &survey().path, "--svg", &directory]);
    let files: Vec<String> = ran.err.lines().map(str::to_owned).collect();
    ran.done();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), files.len(), "{files:?}");
    files
}

#[test]
fn a_directory_gets_every_picture_of_the_page() {
    let place = Place::new();
    let (page, files) = (page(&place).1, all_pictures(&place));
    let is_more = |file: &&String| {
        let name = file.rsplit('/').next().unwrap();
        let of_page = ["wake-", "noise-", "ipc-", "remote-"].iter().any(|family| name.starts_with(family));
        name.ends_with("-distribution.svg") && !of_page
    };
    assert_eq!(page.matches("<figure").count(), files.iter().filter(|file| !is_more(file)).count());
    for name in
        ["memory-latency", "memory-bandwidth-1-thread", "file-by-size-tmpfs", "ipc-unix-stream-percentiles"]
    {
        assert!(files.iter().any(|file| file.ends_with(&format!("/{name}.svg"))), "{name}: {files:?}");
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let drawn = ["<path", "<rect", "<circle"].iter().any(|shape| text.contains(shape));
        assert!(drawn && text.contains(concat!("latscope ", env!("CARGO_PKG_VERSION"))), "{file}:\n{text}");
    }
}

#[test]
fn a_run_without_pictures_counts_and_says_so() {
    let place = Place::new();
    let (pictures, result) = (format!("{}/", place.at("pictures")), place.at("r.json"));
    let words = ["syscall", "getppid", "--quick", "--svg", &pictures, "--json", &result, "--quiet"];
    let ran = run(&words);
    assert!(ran.code == Some(0) && ran.err.contains("no picture for"), "{ran:?}");
    assert!(fs::exists(result).unwrap());
}

#[test]
fn a_directory_is_refused_only_if_nothing_of_the_plan_has_a_picture() {
    let place = Place::new();
    let pictures = format!("{}/", place.at("pictures"));
    run(&["cpu", "add", "--quick", "--svg", &pictures]).refused();
    assert!(!fs::exists(&pictures).unwrap());
    // No other operation of the processor has single events.
    let ran = run(&["cpu", "idle-exit", "--quick", "--svg", &pictures]);
    assert!(!ran.err.contains("nothing to write to"), "{ran:?}");
    assert!(fs::exists(&pictures).unwrap());
}

/// Page of the survey with an added third CPU, since two CPUs have no map.
fn page_with_map(place: &Place) -> String {
    let mut result = json(&survey().path);
    let measured = result["measurements"].as_array_mut().unwrap();
    let pairs = measured.iter().filter(|m| m["probe"] == "sync.core-to-core").cloned();
    let more: Vec<Value> = pairs.flat_map(|m| ["0-2", "1-2"].map(|pair| with_pair(&m, pair))).collect();
    measured.extend(more);
    let path = place.at("mapped.html");
    let file = place.file("mapped.json", result.to_string());
    run(&["show", &file, "--quiet", "--html", &path]).done();
    fs::read_to_string(path).unwrap()
}

fn with_pair(m: &Value, pair: &str) -> Value {
    let mut m = m.clone();
    m["params"]["pair"] = pair.into();
    m
}

/// Script that uses the controls of the page in turn, and writes the outcomes into the page as lines of text.
const DRIVER: &str = r#"<script>
addEventListener("load", () => {
  const svg = document.querySelector("[id=family-memory] figure > svg");
  const shown = () => svg.querySelectorAll("g.curve:not([display])").length;
  const key = svg.querySelector(".key");
  const before = shown();
  key.dispatchEvent(new MouseEvent("click"));
  const hidden = before - shown();
  key.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  const hint = document.querySelector(".hint").textContent;
  const place = (type, share) => {
    const [left, top, width] = svg.querySelector("g[data-plot]").dataset.plot.split(" ").map(Number);
    const at = new DOMPoint(left + share * width, top + 9).matrixTransform(svg.getScreenCTM());
    return new PointerEvent(type, { clientX: at.x, clientY: at.y, bubbles: true });
  };
  ["pointerdown", "pointermove", "pointerup"].forEach((type, at) => svg.dispatchEvent(place(type, 0.2 + 0.2 * at)));
  const zoomed = svg.querySelectorAll("text.zoomed").length;
  const file = standalone(svg);
  svg.dispatchEvent(new MouseEvent("dblclick"));
  const left = svg.querySelectorAll(".zoomed, .clip").length;
  document.querySelector("header + .tools button").click();
  const theme = document.documentElement.dataset.theme;
  const paper = getComputedStyle(svg.querySelector("rect")).fill;
  const tells = figure => {
    figure.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
    return document.querySelector(".hint").textContent;
  };
  const map = tells(document.querySelector("g[data-map]").closest("svg"));
  const bar = tells([...document.querySelectorAll("figure > svg")].find(svg => !svg.querySelector("[data-plot], [data-map]")));
  const table = csv(document.querySelector("table"));
  const lines = [hidden, before - shown(), hint, zoomed, left, theme, paper, map, bar, table];
  const pre = document.createElement("pre");
  pre.id = "driven";
  pre.textContent = lines.join("\n") + "FILE" + file;
  document.body.append(pre);
});
</script>"#;

#[test]
fn the_controls_of_the_page_do_what_they_say() {
    if !has_program("the_controls_of_the_page_do_what_they_say", "chromium") {
        return;
    }
    let place = Place::new();
    let text = page_with_map(&place);
    // The page lets no other script run than its own.
    let (before, policy) = text.split_once("script-src &#39;").unwrap();
    let (_, after) = policy.split_once("&#39;").unwrap();
    let open =
        format!("{before}script-src 'unsafe-inline'{after}").replace("</body>", &format!("{DRIVER}</body>"));
    let driven = place.at("driven.html");
    fs::write(&driven, open).unwrap();
    let output = chromium(&place, &format!("file://{driven}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("CONSOLE"), "{said}");
    let shown = String::from_utf8_lossy(&output.stdout);
    let result = shown.split_once("<pre id=\"driven\">").expect("the driver ended").1;
    let result = result.split_once("</pre>").unwrap().0;
    let result = result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let (lines, file) = result.split_once("FILE").unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let [hidden, again, hint, zoomed, left, theme, paper, map, bar, heading, ..] = lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!([hidden, again, zoomed, left, theme], ["1", "0", "5", "0", "dark"], "{lines:?}");
    assert!(hint.contains(" KiB, ") && hint.ends_with(" ns"), "{hint}");
    assert_eq!(paper, "rgb(22, 24, 27)", "figures are as dark as the page");
    assert!(map.starts_with("CPU ") && map.contains("s"), "{map}");
    assert!(bar.contains(", median: ") && bar.contains("s"), "{bar}");
    assert!(heading.contains(','), "{heading}");
    assert!(lines[9..].iter().all(|line| line.contains(',')), "{lines:?}");
    assert!(file.starts_with("<svg") && file.trim_end().ends_with("</svg>"), "{file}");
    let path = place.at("saved.svg");
    fs::write(&path, file).unwrap();
    if has_program("the_controls_of_the_page_do_what_they_say, the saved picture", "xmllint") {
        let output = Command::new("xmllint").args(["--noout", &path]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_page_and_its_pictures_are_well_formed() {
    if !has_program("the_page_and_its_pictures_are_well_formed", "xmllint") {
        return;
    }
    let place = Place::new();
    let picture = place.at("memory.svg");
    run(&["show", &survey().path, "--quiet", "--svg", &picture]).done();
    let pages = pages(&place).into_iter().map(|(path, _)| path);
    let files = pages.chain([picture]).chain(all_pictures(&place));
    let output = Command::new("xmllint").arg("--noout").args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_page_is_valid_html() {
    if !has_program("the_page_is_valid_html", "vnu") {
        return;
    }
    let place = Place::new();
    let paths = pages(&place).into_iter().map(|(path, _)| path);
    let output = Command::new("vnu").arg("--errors-only").args(paths).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
