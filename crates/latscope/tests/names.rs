//! One noun, one thing: the name of a type is defined once in the workspace, and says more than one word. Types that a
//! macro defines, such as those of `words!`, are not seen.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Largest share of types whose name is one word, in percent. It may only fall.
const MOST_SHORT: usize = 36;

/// Lines of a file in which everybody sees all of what a private name is.
const SMALL: usize = 150;

/// A type of the workspace.
struct Definition {
    name: String,
    file: PathBuf,
    /// True if a reader of another file, or of a long one, can take it for another type.
    is_known: bool,
}

/// Finds the types of a file, without those of its tests.
struct Finder<'a> {
    file: &'a Path,
    is_small: bool,
    types: &'a mut Vec<Definition>,
}

impl Finder<'_> {
    fn add(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
        let is_private = matches!(visibility, syn::Visibility::Inherited);
        let is_known = !(is_private && self.is_small);
        self.types.push(Definition { name: name.to_string(), file: self.file.to_owned(), is_known });
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(module) if module.attrs.iter().any(is_for_tests) => return,
            syn::Item::Struct(item) => self.add(&item.ident, &item.vis),
            syn::Item::Enum(item) => self.add(&item.ident, &item.vis),
            syn::Item::Union(item) => self.add(&item.ident, &item.vis),
            syn::Item::Trait(item) => self.add(&item.ident, &item.vis),
            syn::Item::Type(item) => self.add(&item.ident, &item.vis),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    attribute.path().is_ident("cfg") && list.tokens.to_string() == "test"
}

/// Rust files under a folder, without those of tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, rust): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_code = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs")
    };
    let below = folders.iter().filter(|folder| !folder.ends_with("tests")).flat_map(|folder| files(folder));
    rust.into_iter().filter(is_code).chain(below).collect()
}

fn types() -> Vec<Definition> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut types = Vec::new();
    for file in crates.chain([root.join("xtask")]).flat_map(|package| files(&package.join("src"))) {
        let text = fs::read_to_string(&file).unwrap();
        let is_small = text.lines().count() < SMALL;
        let parsed = syn::parse_file(&text).unwrap();
        Finder { file: &file, is_small, types: &mut types }.visit_file(&parsed);
    }
    assert!(types.len() > 1_000, "the types are found");
    types
}

#[test]
fn a_name_of_a_type_means_one_thing() {
    let types = types();
    let mut known: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for one in types.iter().filter(|one| one.is_known) {
        known.entry(&one.name).or_default().push(&one.file);
    }
    // Two architectures may have a form each of a type, in one file.
    known.values_mut().for_each(|files| files.dedup());
    known.retain(|_, files| files.len() > 1);
    assert!(known.is_empty(), "these names mean several types: {known:#?}");
}

#[test]
fn a_name_of_a_type_says_more_than_one_word() {
    let types = types();
    let is_short = |name: &str| name.chars().filter(|letter| letter.is_uppercase()).count() < 2;
    let short = types.iter().filter(|one| is_short(&one.name)).count();
    assert!(short * 100 <= types.len() * MOST_SHORT, "{short} of {} are one word", types.len());
}
