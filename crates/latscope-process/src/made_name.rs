//! Names that this process gives to files, sockets and links for as long as it runs.

use crate::files::{HeldDirectory, Looked};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Name that was made here, in a directory that is held. It is removed there with this value, whatever has the name of
/// the directory by then, unless another file has the name itself.
#[derive(Debug)]
pub struct MadeName {
    held: HeldDirectory,
    path: PathBuf,
    /// Held as well, so that no other file gets its number.
    looked: Looked,
}

impl MadeName {
    /// Makes a file of any kind. Returns what `make` returned, which gets the directory.
    ///
    /// # Errors
    /// The errors of [`HeldDirectory::of_file`] and of `make`.
    pub fn make<T>(
        path: &Path,
        make: impl FnOnce(&HeldDirectory) -> io::Result<T>,
    ) -> io::Result<(T, MadeName)> {
        let held = HeldDirectory::of_file(path)?;
        let made = make(&held)?;
        let looked = Looked::at_name(&held.path_to(path))?;
        Ok((made, MadeName { held, path: path.to_owned(), looked }))
    }

    /// Listens at a path that nothing has.
    ///
    /// # Errors
    /// The errors of [`make`](MadeName::make); the path is taken.
    pub fn listen_at(path: &Path) -> io::Result<(UnixListener, MadeName)> {
        MadeName::make(path, |held| UnixListener::bind(held.shared_path(path)))
    }

    /// Takes over what an earlier process made, if `is_left` says so of the file. `None` if it does not.
    ///
    /// # Errors
    /// The errors of [`HeldDirectory::of_file`]; nothing is there.
    pub fn take_over(path: &Path, is_left: impl FnOnce(&Looked) -> bool) -> io::Result<Option<MadeName>> {
        let held = HeldDirectory::of_file(path)?;
        let looked = Looked::at_name(&held.path_to(path))?;
        Ok(is_left(&looked).then(|| MadeName { held, path: path.to_owned(), looked }))
    }
}

impl Drop for MadeName {
    fn drop(&mut self) {
        let at = self.held.path_to(&self.path);
        if Looked::at_name(&at).is_ok_and(|found| found.is(&self.looked)) {
            let _ = std::fs::remove_file(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn a_name_is_removed_where_it_was_made_unless_another_file_has_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/sock"), "precious").unwrap();
        let (_listener, name) = MadeName::listen_at(&at("inner/sock")).unwrap();
        fs::rename(at("inner"), at("away")).unwrap();
        symlink("other", at("inner")).unwrap();
        assert!(at("away/sock").exists());
        drop(name);
        assert!(!at("away/sock").exists(), "it is removed where it was made");
        assert_eq!(fs::read_to_string(at("inner/sock")).unwrap(), "precious");
        let made = MadeName::make(&at("away/file"), |held| File::create_new(held.path_to(&at("away/file"))));
        fs::rename(at("other/sock"), at("away/file")).unwrap();
        drop(made);
        assert_eq!(fs::read_to_string(at("away/file")).unwrap(), "precious");
        assert!(MadeName::take_over(&at("away/file"), |_| false).unwrap().is_none());
        assert!(at("away/file").exists());
        drop(MadeName::take_over(&at("away/file"), |_| true).unwrap());
        assert!(!at("away/file").exists() && MadeName::take_over(&at("away/file"), |_| true).is_err());
    }

    #[test]
    fn root_makes_nothing_behind_a_link_of_another_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("roots")).unwrap();
        symlink("roots", at("link")).unwrap();
        lchown(at("link"), Some(65534), None).unwrap();
        assert!(crate::files::is_foreign(&MadeName::listen_at(&at("link/sock")).unwrap_err()));
        assert_eq!(fs::read_dir(at("roots")).unwrap().count(), 0);
    }

    #[test]
    fn an_address_leads_to_the_directory_while_it_is_held() {
        let place = tempfile::tempdir().unwrap();
        let held = HeldDirectory::open(place.path()).unwrap();
        let address = held.shared_path(Path::new("elsewhere/sock"));
        assert!(address.ends_with("sock") && held.is_at(address.parent().unwrap()).unwrap());
        assert!(!held.is_at(Path::new("/")).unwrap() && held.is_at(&place.path().join("none")).is_err());
    }
}
