//! Compresses the recorded JSON Schemas, which the binary prints: as text they would be a fiftieth of it.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let recorded = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../docs/schema");
    let compressed = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", recorded.display());
    for entry in fs::read_dir(&recorded)? {
        let entry = entry?;
        let mut name = entry.file_name();
        if !name.to_string_lossy().ends_with(".schema.json") {
            continue;
        }
        name.push(".gz");
        let mut file = GzEncoder::new(File::create(compressed.join(name))?, Compression::best());
        file.write_all(&fs::read(entry.path())?)?;
        file.finish()?;
    }
    Ok(())
}
