//! The Python package in `python/`: its wheels, and its tests.

use crate::{dist, shell};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Description of the package.
const PROJECT: &str = "python/pyproject.toml";

/// Platforms of a wheel with a static binary, which takes neither library: the oldest that installers know. The first
/// is of targets for glibc.
const PLATFORMS: [&str; 2] = ["manylinux_2_17", "musllinux_1_2"];

/// Package that adds a platform to a wheel: Maturin names one only.
const TAGGER: &str = "wheel>=0.40";

/// Builds a wheel in dist/ for each target whose standard library is installed. `others` is the profile of those for
/// other architectures than that of this machine. Returns the paths of all wheels.
///
/// # Errors
/// Maturin cannot be installed, or a build fails.
pub fn wheel(others: &str) -> Result<Vec<PathBuf>> {
    let venv = Venv::create_at(
        "python",
        &[requirements(Path::new(PROJECT), &[])?, vec![TAGGER.to_owned()]].concat(),
    )?;
    for old in wheels()? {
        fs::remove_file(old)?;
    }
    for target in dist::available() {
        let [mut own, mut other] = PLATFORMS;
        if target.triple.ends_with("musl") {
            (own, other) = (other, own);
        }
        let mut maturin = venv.program_command("maturin");
        let profile = target.profile(others);
        maturin.args(["build", "--locked", "--profile", profile, "--target", target.triple]);
        maturin.args(["--compatibility", own, "--out", "../dist"]).current_dir("python");
        dist::configure(&mut maturin, &[target], profile);
        shell::run_command(&mut maturin)?;
        let architecture = target.triple.split('-').next().unwrap_or_default();
        let other = format!("+{other}_{architecture}");
        let built =
            wheels()?.into_iter().find(|path| is_for(path, architecture)).context("no wheel was built")?;
        let tags = ["-m", "wheel", "tags", "--remove", "--platform-tag", &other];
        shell::run_command(venv.program_command("python").args(tags).arg(built))?;
    }
    wheels()
}

/// Returns true if a wheel is for an architecture.
fn is_for(wheel: &Path, architecture: &str) -> bool {
    wheel.to_string_lossy().ends_with(&format!("{architecture}.whl"))
}

/// Returns the paths of the wheels in dist/.
fn wheels() -> Result<Vec<PathBuf>> {
    fs::create_dir_all("dist")?;
    let paths = fs::read_dir("dist")?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|name| name == "whl")).collect())
}

/// Installs a wheel of this machine's architecture in a new environment, and checks that its command measures a survey
/// which its reader reads.
///
/// # Errors
/// No wheel is for this architecture, or a program fails.
pub fn check_wheel(wheels: &[PathBuf]) -> Result<()> {
    let wheel = wheels
        .iter()
        .find(|path| is_for(path, env::consts::ARCH))
        .context("no wheel is for this architecture")?;
    let _ = fs::remove_dir_all(shell::target().join("wheel"));
    let venv =
        Venv::create_at("wheel", &[format!("{}[fleet,pandas]", std::path::absolute(wheel)?.display())])?;
    let directory = tempfile::tempdir()?;
    let result = directory.path().join("survey.json");
    shell::run_command(venv.program_command("latscope").arg("--version"))?;
    shell::run_command(venv.program_command("latscope-fleet").arg("--help"))?;
    shell::run_command(
        venv.program_command("latscope").args(["survey", "--quick", "--quiet", "--json"]).arg(&result),
    )?;
    let read = "import latscope, sys; print(len(latscope.read(sys.argv[1]).points()), latscope.binary())";
    let read = shell::output(venv.program_command("python").args(["-c", read]).arg(&result))?;
    let expected = venv.0.join("bin/latscope").display().to_string();
    match read.trim().split_once(' ') {
        Some((points, binary)) if points != "0" && binary == expected => Ok(()),
        _ => bail!("expected points of the survey and {expected}, found {read}"),
    }
}

/// Checks of the sources of the package, each with its name.
///
/// # Errors
/// The requirements of the checks cannot be installed.
pub fn checks() -> Result<[(&'static str, Command); 3]> {
    let venv = checking()?;
    let checks = [
        ("ruff check", "ruff", ["check", "."].as_slice()),
        ("ruff format", "ruff", &["format", "--check", "."]),
        ("mypy", "mypy", &[]),
    ];
    Ok(checks.map(|(name, program, words)| {
        let mut command = venv.program_command(program);
        command.args(words).current_dir("python");
        (name, command)
    }))
}

/// Command for the tests of the package, or for those with these names. They print their sum as `cargo test` does, and
/// call the latscope that [`check_wheel`] installed.
///
/// # Errors
/// The requirements of the tests cannot be installed.
pub fn test_command(names: &[String]) -> Result<Command> {
    let mut pytest = checking()?.program_command("pytest");
    pytest.env("PATH", path_with(&shell::target().join("wheel/bin"))?);
    pytest.args(["--quiet", "--spark"]).args(names).current_dir("python");
    Ok(pytest)
}

/// Environment with what the checks and the tests need.
fn checking() -> Result<Venv> {
    Venv::create_at(
        "python",
        &requirements(Path::new(PROJECT), &["dev", "pandas", "arrow", "fleet", "spark"])?,
    )
}

/// Search path of programs that begins with a directory.
fn path_with(directory: &Path) -> Result<OsString> {
    let before = env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(std::path::absolute(directory)?).chain(env::split_paths(&before));
    Ok(env::join_paths(all)?)
}

/// Requirements of the package's build, and of some of its extras. The package itself is not among them, since its
/// installation would build the command.
fn requirements(project: &Path, extras: &[&str]) -> Result<Vec<String>> {
    let project: toml::Table = fs::read_to_string(project)?.parse()?;
    let field = |path: &[&str]| -> Result<Vec<String>> {
        let first = project.get(path[0]);
        let value = path[1..].iter().fold(first, |value, name| value?.get(name));
        Ok(value.with_context(|| format!("no {} in pyproject.toml", path.join(".")))?.clone().try_into()?)
    };
    let mut all = field(&["build-system", "requires"])?;
    for extra in extras {
        all.extend(field(&["project", "optional-dependencies", extra])?);
    }
    Ok(all)
}

/// Environment of Python with packages of its own.
struct Venv(PathBuf);

impl Venv {
    /// Makes the environment in the build directory if it is not there, and installs the missing ones of
    /// `requirements`.
    fn create_at(name: &str, requirements: &[String]) -> Result<Venv> {
        let path = shell::target().join(name);
        if !path.join("bin/python").exists() {
            let made = Command::new("python3").args(["-m", "venv"]).arg(&path).status()?;
            ensure!(
                made.success(),
                "no environment for Python (python3-venv): `cargo xtask setup` installs it"
            );
        }
        let venv = Venv(path.canonicalize()?);
        shell::run_command(
            venv.program_command("python").args(["-m", "pip", "install", "--quiet"]).args(requirements),
        )?;
        Ok(venv)
    }

    /// Program of the environment.
    fn program_command(&self, name: &str) -> Command {
        Command::new(self.0.join("bin").join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_those_of_the_project() {
        let project = shell::workspace().join("python/pyproject.toml");
        let required = |extras: &[&str]| requirements(&project, extras).unwrap();
        assert!(required(&[]).iter().all(|package| package.starts_with("maturin")));
        assert!(
            ["pytest", "pandas"]
                .iter()
                .all(|name| required(&["dev", "pandas"]).iter().any(|one| one.starts_with(name)))
        );
        assert!(requirements(&project, &["none"]).is_err());
    }

    #[test]
    fn a_wheel_is_for_one_architecture() {
        let wheel = Path::new("dist/latscope-1-py3-none-manylinux_2_17_x86_64.musllinux_1_2_x86_64.whl");
        assert!(is_for(wheel, "x86_64") && !is_for(wheel, "aarch64"));
    }
}
