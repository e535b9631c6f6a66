//! Builds for architectures whose standard library Debian has.
//!
//! The compiler is Debian's, whose standard libraries for all architectures have exactly the same version. The linker
//! comes with Rust, and links Debian's C library.

use crate::debian::CACHE;
use crate::debian::sid::DebianRoot;
use crate::shell::quote_word;
use crate::{setup, shell};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Architecture to build for.
pub struct Architecture {
    /// Name of the architecture, with which the name of a binary ends.
    pub name: &'static str,
    triple: &'static str,
    /// Name of the architecture in the names of Debian's packages.
    debian: &'static str,
    /// Directory of the architecture's libraries.
    libraries: &'static str,
}

/// Architectures with such a library here.
const ARCHITECTURES: [Architecture; 3] = [
    Architecture {
        name: "armv7",
        triple: "armv7-unknown-linux-gnueabihf",
        debian: "armhf",
        libraries: "arm-linux-gnueabihf",
    },
    Architecture {
        name: "riscv64",
        triple: "riscv64gc-unknown-linux-gnu",
        debian: "riscv64",
        libraries: "riscv64-linux-gnu",
    },
    Architecture {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        libraries: "aarch64-linux-gnu",
    },
];

/// Compiler flags for lld, which keeps a single copy of functions with the same code.
const LLD: &str = "-Clinker-flavor=ld.lld -Clink-arg=--icf=all";

/// Package of the standard library, which depends on the library that the compiler is linked to.
const LIBRARY: &str = "libstd-rust-dev";
/// Beginning of the name of the library that the compiler is linked to.
const RUNTIME: &str = "libstd-rust-1";

/// Builds the static latscope for these architectures, and returns the paths of the programs in the same order.
///
/// # Errors
/// A package cannot be fetched, or the build fails.
pub fn latscope(architectures: &[&Architecture], profile: &str) -> Result<Vec<PathBuf>> {
    let compiler = compiler()?;
    let wrapper = wrapper(&compiler)?;
    let target = shell::target().join("debian");
    let mut cargo = super::build(profile);
    cargo.arg("--target-dir").arg(&target).env("RUSTC", std::path::absolute(wrapper)?);
    for architecture in architectures {
        let triple = architecture.triple;
        cargo.args(["--target", triple]);
        cargo.env(super::variable(triple, "LINKER"), linker(architecture, &compiler)?);
        cargo.env(super::variable(triple, "RUSTFLAGS"), format!("{} {LLD}", super::STATIC));
    }
    ["CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN"].iter().for_each(|name| {
        cargo.env_remove(name);
    });
    shell::run_command(&mut cargo)?;
    let programs = architectures.iter().map(|architecture| target.join(architecture.triple));
    Ok(programs.map(|place| place.join(profile).join("latscope")).collect())
}

/// Architectures for which the standard library of rustup is not installed.
pub fn architectures() -> Vec<&'static Architecture> {
    let of_rustup = |name| {
        super::TARGETS
            .iter()
            .any(|target| target.architecture() == name && super::is_available(target.triple))
    };
    ARCHITECTURES.iter().filter(|architecture| !of_rustup(architecture.name)).collect()
}

/// Compiler with the standard libraries and the C libraries of all these architectures.
fn compiler() -> Result<DebianRoot> {
    let names: Vec<&str> = architectures().iter().map(|architecture| architecture.debian).collect();
    DebianRoot::unpack_once(&format!("rust-{}", names.join("-")), &names, |suite| {
        let mut packages = suite.with_dependencies(&suite.dependency(LIBRARY, RUNTIME)?)?;
        // The start-up files and the unwinder come with the version of gcc that all of the suite is built by.
        let gcc = packages.iter().find_map(|name| name.strip_prefix("gcc-")?.strip_suffix("-base"));
        let gcc = format!("libgcc-{}-dev", gcc.context("the compiler depends on no gcc-N-base")?);
        packages.extend(["rustc", LIBRARY].map(str::to_owned));
        for name in names.iter() {
            packages.extend([&gcc, LIBRARY, "libc6-dev"].map(|package| format!("{package}:{name}")));
        }
        Ok(packages)
    })
}

/// Writes a program that cargo takes for the compiler.
fn wrapper(compiler: &DebianRoot) -> Result<PathBuf> {
    let words: Vec<String> =
        compiler.program_words("usr/bin/rustc").iter().map(|word| quote_word(word)).collect();
    let root = quote_word(&compiler.path("usr").display().to_string());
    let path = Path::new(CACHE).join("rustc-debian");
    let script = format!("#!/bin/sh\nexec {} --sysroot {root} \"$@\"\n", words.join(" "));
    // Cargo builds all anew when its compiler is newer than before.
    if fs::read_to_string(&path).is_ok_and(|before| before == script) {
        return Ok(path);
    }
    shell::write_script(&path, &script)?;
    Ok(path)
}

/// Path of the linker that comes with Rust. It links for any machine.
fn lld() -> Result<PathBuf> {
    setup::check_program("rustc", "rustc")?;
    let root = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let path = Path::new(root.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld");
    ensure!(path.exists(), "no rust-lld at {}: it comes with the Rust of rustup", path.display());
    Ok(path)
}

/// Writes a program that cargo takes for the linker: it adds the files that gcc would pass for a static program, in
/// their order. Flags of the compiler would all come after the C library, which has a second copy of a function in
/// `crt1.o`.
fn linker(architecture: &Architecture, compiler: &DebianRoot) -> Result<PathBuf> {
    let libraries = compiler.path(&format!("usr/lib/{}", architecture.libraries));
    let gcc = compiler.only(&format!("usr/lib/gcc/{}", architecture.libraries))?;
    let quoted = |path: PathBuf| quote_word(&path.display().to_string());
    let [crt1, crti, crtn] = ["crt1.o", "crti.o", "crtn.o"].map(|name| quoted(libraries.join(name)));
    let [begin, end] = ["crtbeginT.o", "crtend.o"].map(|name| quoted(gcc.join(name)));
    let [lld, libraries, gcc, root] = [lld()?, libraries, gcc, compiler.path("")].map(quoted);
    // The compiler's first words are `-flavor gnu`. `libm.a` is a script with absolute paths on some architectures.
    let script = format!(
        "#!/bin/sh\nshift 2\nexec {lld} -flavor gnu --sysroot={root} {crt1} {crti} {begin} -L{libraries} -L{gcc} \"$@\" {end} {crtn}\n"
    );
    let path = Path::new(CACHE).join(format!("ld-{}", architecture.name));
    shell::write_script(&path, &script)?;
    Ok(std::path::absolute(path)?)
}
