//! The page in a browser, as users and as Jenkins show it.

use crate::result::survey;
use crate::skipped::has_program;
use crate::support::{Place, run};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread;

/// What Jenkins sends with a file of a build: no script, no style within the page.
const JENKINS: &str = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'";

/// A browser that opens an address without a window, and writes the page as it has understood it.
fn chromium(place: &Place, address: &str) -> Output {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", place.at("profile")))
        .args(["--dump-dom", address])
        .output();
    output.expect("chromium can be started")
}

/// The survey as a page.
fn page(place: &Place) -> (String, String) {
    let path = place.at("page.html");
    run(&["show", &survey().path, "--quiet", "--html", &path]).done();
    let text = fs::read_to_string(&path).unwrap();
    (path, text)
}

/// How much of what a page shows there is: tables, rows, pictures and what is in them.
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
    let (path, text) = page(&place);
    let output = chromium(&place, &format!("file://{path}"));
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(contents(&shown), contents(&text));
    assert!(!said.contains("CONSOLE"), "{said}");
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

#[test]
fn the_page_and_its_pictures_are_well_formed() {
    if !has_program("the_page_and_its_pictures_are_well_formed", "xmllint") {
        return;
    }
    let place = Place::new();
    let (page, picture) = (page(&place).0, place.at("memory.svg"));
    run(&["show", &survey().path, "--quiet", "--svg", &picture]).done();
    for file in [page, picture] {
        let output = Command::new("xmllint").args(["--noout", &file]).output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
