//! Hashes that prove that a file is the one which a record is about.

use hmac_sha256::Hash;
use latscope_judge::acceptance::HashedFile;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Returns the name of a file with its SHA-256, which is empty if the file cannot be read.
pub fn hash_file(file: &Path) -> HashedFile {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    HashedFile { name, sha256: sha256(file).unwrap_or_default() }
}

/// Returns this program with its SHA-256.
pub fn own_program() -> HashedFile {
    HashedFile { name: "latscope".to_owned(), ..hash_file(Path::new("/proc/self/exe")) }
}

fn sha256(file: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut part) = (File::open(file)?, Hash::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut part)? {
            0 => break,
            read => hash.update(&part[..read]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_hash_of_its_bytes_and_one_that_is_gone_has_none() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("001.json");
        std::fs::write(&file, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_file(&file), HashedFile { name: "001.json".to_owned(), sha256: abc.to_owned() });
        assert_eq!(hash_file(&place.path().join("none.json")).sha256, "");
        assert_eq!(own_program().sha256.len(), 64);
    }
}
