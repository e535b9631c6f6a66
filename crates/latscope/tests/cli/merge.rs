//! `latscope merge`, from the files to what is shown.

use crate::compare::side;
use crate::support::{Place, measurements, parsed, run};
use std::fs;

#[test]
fn runs_are_merged_shown_and_never_counted_twice() {
    let place = Place::new();
    let (a, b) = (side(&place, "a", 3, 1.0), side(&place, "b", 2, 1.2));
    let (all, more) = (format!("{a}/all.json.gz"), place.at("more.json"));
    let said = run(&["merge", &a, "--json", &all]).done();
    assert!(said.contains("merged from 3 runs"), "{said}");
    assert!(run(&["show", &all]).done().contains("merged from 3 runs"));
    run(&["merge", &b, &all, "--json", &more]).done();
    let whole = parsed(&fs::read_to_string(&more).unwrap());
    assert_eq!(whole["merged"]["runs"].as_array().unwrap().len(), 5);
    let one = parsed(&fs::read_to_string(format!("{a}/0.json")).unwrap());
    let count = |result: &serde_json::Value| measurements(result)[0]["summary"]["count"].as_u64().unwrap();
    assert_eq!(count(&whole), 5 * count(&one));
    assert_eq!(measurements(&whole)[0]["rounds"].as_array().unwrap().len(), 5);
    // The merged result beside its runs is none of them.
    assert!(run(&["compare", &a, &b, "--json", "-"]).done().contains("latscope-compare/1"));
    let refused = run(&["merge", &all, &format!("{a}/1.json"), "--json", &more]).refused();
    assert!(["all.json.gz", "1.json", "a-1"].iter().all(|word| refused.contains(word)), "{refused}");
    for words in [&["compare", &all, &b][..], &["history", &more], &["merge", &a]] {
        run(words).refused();
    }
}
