//! Results packed by gzip, in every place where a plain result may stand, and results of which a part is left out.

use crate::compare::side;
use crate::support::{Place, end, eventually, latscope, parsed, run, start, wait};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use latscope_core::fixture;
use latscope_core::report::Report;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text).unwrap();
    packer.finish().unwrap()
}

#[track_caller]
fn unpacked(path: impl AsRef<Path>) -> String {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Packs every file of a directory under a name that ends with `.gz`.
fn pack(directory: &str) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        fs::write(format!("{}.gz", path.display()), packed(&fs::read(&path).unwrap())).unwrap();
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_packed_result_is_read_wherever_a_plain_one_is() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 9, 1.0), side(&place, "b", 9, 1.2));
    let budget = place.file("budget.toml", "[[limit]]\nprobe = 'cpu.add'\nmax = '1s'\n");
    let one = format!("{a}/0.json");
    let calls: [&[&str]; 5] = [
        &["compare", &a, &b, "--json", "-"],
        &["gate", &a, "--budget", &budget, "--json", "-"],
        &["history", &a],
        &["show", &one, "--all"],
        &["show", &one, "--csv", "-"],
    ];
    let without_names = |text: String| text.replace(".json.gz", ".json");
    let plain: Vec<_> = calls.iter().map(|words| run(words)).collect();
    [&a, &b].into_iter().for_each(|directory| pack(directory));
    for (words, before) in calls.iter().zip(plain) {
        let words: Vec<String> = words.iter().map(|word| word.replace("0.json", "0.json.gz")).collect();
        let after = end(&mut latscope(&words));
        assert_eq!((after.code, without_names(after.out)), (before.code, before.out), "{words:?}");
    }
    // Neither a name nor a file is needed.
    let text = packed(fixture::wake().to_json().as_bytes());
    let misnamed = place.file("wake.json", &text);
    assert!(run(&["show", &misnamed]).done().contains("wake"));
    let mut child = start(latscope(["show", "-", "--quiet", "--json", "-"]).stdin(Stdio::piped()));
    child.stdin.take().unwrap().write_all(&text).unwrap();
    assert_eq!(parsed(&wait(child).done())["plan"]["job"], "wake");
}

#[test]
fn what_is_written_to_a_name_in_gz_is_packed() {
    let place = Place::new();
    let plain = place.file("r.json", fixture::wake().to_json());
    let (json, csv, html) = (place.at("s.json.gz"), place.at("s.csv.gz"), place.at("s.html.gz"));
    run(&["show", &plain, "--quiet", "--json", &json, "--csv", &csv, "--html", &html]).done();
    let on_stdout = run(&["show", &plain, "--quiet", "--json", "-"]).done();
    assert!(unpacked(&json) == on_stdout, "both forms have the same text");
    assert!(unpacked(&csv).starts_with("probe,") && unpacked(&html).starts_with("<!DOCTYPE html>"));
    let fio = concat!(env!("CARGO_MANIFEST_DIR"), "/../latscope-judge/tests/imports/hyperfine.json");
    let given = place.file("given.json.gz", packed(&fs::read(fio).unwrap()));
    let to = place.at("imported.json.gz");
    run(&["import", &given, "--json", &to]).done();
    assert!(parsed(&unpacked(&to))["imported"].is_object());
    let (a, b) = (side(&place, "a", 2, 1.0), side(&place, "b", 2, 1.2));
    let found = place.at("c.json.gz");
    run(&["compare", &a, &b, "--json", &found]).done();
    let text = unpacked(&found);
    assert!(parsed(&text)["schema"] == "latscope-compare/1" && text.lines().count() == 1, "{text}");
}

#[test]
fn blocks_are_left_out_of_the_file_alone() {
    let place = Place::new();
    let plain = place.file("r.json", fixture::wake().to_json());
    let [json, whole, lean] = ["s.json", "whole.html", "lean.html"].map(|name| place.at(name));
    run(&["show", &plain, "--quiet", "--without", "blocks", "--json", &json, "--html", &whole]).done();
    let read = |text: &[u8]| Report::from_json(text).unwrap();
    let shown = run(&["show", &plain, "--quiet", "--json", "-"]).done();
    let (mut expected, found) = (read(shown.as_bytes()), read(&fs::read(&json).unwrap()));
    assert!(expected.measurements.iter().any(|m| !m.blocks.is_empty()));
    expected.measurements.iter_mut().for_each(|m| m.blocks.clear());
    assert!(found == expected, "all else is the same");
    run(&["show", &json, "--quiet", "--html", &lean]).done();
    let [whole, lean] = [whole, lean].map(|page| fs::read_to_string(page).unwrap());
    let over_time = "maximum and median over time";
    assert!(whole.contains(over_time) && !lean.contains(over_time));
    let measured = place.at("m.json.gz");
    let words = ["wake", "--cpus", "0", "--duration", "50ms", "--policy", "other", "--quiet"];
    run(&[&words[..], &["--json", &measured, "--without", "blocks"]].concat()).done();
    assert!(!unpacked(&measured).contains("blocks\":"));
    let refused = run(&["show", &plain, "--without", "blocks"]).refused();
    assert!(refused.contains("--json"), "{refused}");
}

#[test]
fn a_run_that_is_killed_leaves_a_packed_result_that_is_whole() {
    let place = Place::new();
    let path = place.at("r.json.gz");
    let words = ["wake", "--cpus", "0", "--policy", "other", "--duration", "60s", "--quiet"];
    let mut child = start(&mut latscope(words.iter().chain(&["--save-every", "1s", "--json", &path])));
    eventually("it is saved", || Path::new(&path).exists().then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let found = parsed(&unpacked(&path));
    assert!(found["finished"].is_null() && found["measurements"][0]["incomplete"] == true);
    run(&["show", &path]).no_panic();
}

#[test]
fn a_damaged_result_in_a_directory_is_named_with_the_reason() {
    let place = Place::new();
    let text = fixture::wake().to_json();
    let (directory, good) = (place.directory("d"), place.file("good.json", &text));
    let (cut, gz) = (format!("{directory}/cut.json"), format!("{directory}/gz.json.gz"));
    fs::write(&cut, &text[..text.len() / 2]).unwrap();
    let whole = packed(text.as_bytes());
    fs::write(&gz, &whole[..whole.len() / 2]).unwrap();
    fs::write(format!("{directory}/empty.json"), "").unwrap();
    fs::write(format!("{directory}/notes.txt"), "quiet").unwrap();
    let budget = place.file("budget.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1s'\n");
    let calls: [&[&str]; 3] = [
        &["compare", &good, &directory],
        &["gate", &directory, "--budget", &budget],
        &["history", &directory],
    ];
    for words in calls {
        let line = run(words).refused();
        let named = |file: &str, why: &str| {
            let after = line.split_once(file).unwrap_or_else(|| panic!("{file} is not in {line}")).1;
            assert!(after.starts_with(": ") && after.contains(why), "{line}");
        };
        named("cut.json", "damaged or cut off");
        named("gz.json.gz", "damaged or cut off");
        assert!(line.contains("empty.json") && line.contains("there is no result in "), "{line}");
    }
}

#[test]
fn blocks_are_read_for_the_views_that_have_them_alone() {
    let place = Place::new();
    let plain = place.file("plain.json", fixture::wake().to_json());
    let good = run(&["show", &plain, "--quiet", "--json", "-"]).done();
    let odd = good.replace("\"blocks\":[{\"from\":", "\"blocks\":[{\"from\":-");
    assert_ne!(odd, good);
    let (good, odd) = (place.file("good.json", good), place.file("odd.json.gz", packed(odd.as_bytes())));
    let without: [&[&str]; 11] = [
        &[],
        &["--table"],
        &["--all"],
        &["--beside", &odd],
        &["--csv", "-"],
        &["--csv-long", "-"],
        &["--csv-histogram", "-"],
        &["--openmetrics", "-"],
        &["--markdown", "-"],
        &["--svg-percentiles", "-"],
        &["--json", "-", "--without", "blocks"],
    ];
    for view in without {
        let [expected, shown] = [&good, &odd].map(|file| run(&[&["show", file.as_str()], view].concat()));
        assert_eq!(
            (shown.code, shown.out, shown.err),
            (expected.code, expected.out, expected.err),
            "{view:?}"
        );
        assert_eq!(shown.code, Some(0), "{view:?}");
    }
    let pictures = place.at("pictures/");
    let with: [&[&str]; 3] = [&["--json", "-"], &["--html", "-"], &["--svg", &pictures]];
    for view in with {
        assert!(run(&[&["show", odd.as_str()], view].concat()).refused().contains("damaged"), "{view:?}");
    }
}
