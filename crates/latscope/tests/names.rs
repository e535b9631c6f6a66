//! One noun, one thing: the name of a type is defined once in the workspace, and most names of types and functions say
//! more than one word.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Largest share of types whose name is one word, in percent. It may only fall.
const MOST_SHORT: usize = 36;

/// Largest share of functions whose name is one word, in percent, without accessors of fields and [`USUAL`] names. It
/// may only fall.
const MOST_SHORT_FUNCTIONS: usize = 30;

/// Names of functions that say in one word what everybody knows.
const USUAL: [&str; 5] = ["new", "len", "is_empty", "default", "main"];

/// Macros that define types, by the name and the fields in their tokens.
const DEFINING: [&str; 2] = ["words", "settings"];

/// Lines of a file in which everybody sees all of what a private name is.
const SMALL: usize = 150;

/// A type of the workspace.
struct Definition {
    name: String,
    file: PathBuf,
    /// True if a reader of another file, or of a long one, can take it for another type.
    is_known: bool,
}

/// Names of the workspace, without those of tests.
#[derive(Default)]
struct Names {
    types: Vec<Definition>,
    functions: Vec<String>,
}

/// Finds the names of a file.
struct Finder<'a> {
    file: &'a Path,
    is_small: bool,
    names: &'a mut Names,
    fields: BTreeSet<String>,
    functions: Vec<String>,
}

impl Finder<'_> {
    fn add(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
        let is_private = matches!(visibility, syn::Visibility::Inherited);
        let is_known = !(is_private && self.is_small);
        self.names.types.push(Definition { name: name.to_string(), file: self.file.to_owned(), is_known });
    }

    /// Adds the types that the tokens of a macro define: `struct Name`, `enum Name`.
    fn add_defined(&mut self, tokens: &impl ToString) {
        let text = tokens.to_string();
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| ["struct", "enum"].contains(&pair[0])) {
            let name = syn::parse_str(pair[1].trim_end_matches(',')).expect("a name follows");
            self.add(&name, &syn::Visibility::Inherited);
        }
    }

    /// Adds the functions, but for those that return a field of the same name.
    fn add_functions(self) {
        let Finder { fields, functions, names, .. } = self;
        let is_named = |name: &String| !fields.contains(name) && !USUAL.contains(&name.as_str());
        names.functions.extend(functions.into_iter().filter(is_named));
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
            syn::Item::Macro(item) if DEFINING.iter().any(|name| item.mac.path.is_ident(name)) => {
                self.add_defined(&item.mac.tokens);
            }
            // The trait has the names of these functions.
            syn::Item::Impl(item) if item.trait_.is_some() => return,
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.functions.push(signature.ident.to_string());
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.fields.extend(field.ident.as_ref().map(ToString::to_string));
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

fn names() -> Names {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut names = Names::default();
    for file in crates.chain([root.join("xtask")]).flat_map(|package| files(&package.join("src"))) {
        let text = fs::read_to_string(&file).unwrap();
        let is_small = text.lines().count() < SMALL;
        let parsed = syn::parse_file(&text).unwrap();
        let (fields, functions) = (BTreeSet::new(), Vec::new());
        let mut finder = Finder { file: &file, is_small, names: &mut names, fields, functions };
        finder.visit_file(&parsed);
        finder.add_functions();
    }
    assert!(names.types.len() > 1_000 && names.functions.len() > 5_000, "the names are found");
    names
}

#[test]
fn a_name_of_a_type_means_one_thing() {
    let types = names().types;
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
    let types = names().types;
    let is_short = |name: &str| name.chars().filter(|letter| letter.is_uppercase()).count() < 2;
    let short = types.iter().filter(|one| is_short(&one.name)).count();
    assert!(short * 100 <= types.len() * MOST_SHORT, "{short} of {} are one word", types.len());
}

#[test]
fn a_name_of_a_function_says_more_than_one_word() {
    let functions = names().functions;
    let short = functions.iter().filter(|name| !name.contains('_')).count();
    assert!(
        short * 100 <= functions.len() * MOST_SHORT_FUNCTIONS,
        "{short} of {} are one word",
        functions.len()
    );
}
