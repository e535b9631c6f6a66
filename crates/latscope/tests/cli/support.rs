//! Functions that start the command and check its outcome.

use crate::programs::copy_program;
use crate::schema::assert_as_named;
pub use crate::skipped::{has_program, is_installed, needs, root, skipped, skipped_in_part, traceable};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Longest wait for a command, far above the time of any test. Only a command that hangs reaches it.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Directory of the commands' cache, so that the user's own is left alone.
pub const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");

pub const BINARY: &str = env!("CARGO_BIN_EXE_latscope");

/// Outcome of a command: its exit code (`None`: by a signal) and output.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Asserts success, and returns stdout.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self.no_panic();
        self.out
    }

    /// Asserts that the command failed with one line on stderr, beside those about progress. Returns that line.
    #[track_caller]
    pub fn refused(&self) -> String {
        assert_eq!(self.code, Some(1), "{self:#?}");
        let lines: Vec<&str> = self.err.lines().filter(|line| !line.starts_with("measuring ")).collect();
        let [line] = lines[..] else { panic!("not one line: {self:#?}") };
        assert!(line.starts_with("latscope: "), "{line}");
        line.to_owned()
    }

    #[track_caller]
    pub fn no_panic(&self) {
        assert!(!self.err.contains("panicked") && !self.err.contains("stack backtrace"), "{}", self.err);
    }
}

/// Command with an environment that does not colour its output.
pub fn latscope<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments);
    plain(&mut command);
    command
}

/// Another program that starts the command in the end.
pub fn program<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().expect("a program has a name"));
    command.args(words);
    plain(&mut command);
    command
}

fn plain(command: &mut Command) {
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LATSCOPE_RUNNER"] {
        command.env_remove(name);
    }
    command.env("XDG_CACHE_HOME", CACHE).stdin(Stdio::null());
}

/// Runs `latscope` with these words to its end.
pub fn run(words: &[&str]) -> Ran {
    end(&mut latscope(words))
}

/// Runs a command to its end.
#[track_caller]
pub fn end(command: &mut Command) -> Ran {
    let child = start(command);
    wait(child)
}

/// Starts a command whose output is kept.
#[track_caller]
pub fn start(command: &mut Command) -> Child {
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    started.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits for the end of a command that was started.
#[track_caller]
pub fn wait(mut child: Child) -> Ran {
    let out = reader(child.stdout.take());
    let err = reader(child.stderr.take());
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if began.elapsed() > TIMEOUT {
            let _ = child.kill();
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(2));
    };
    let text = |reader: thread::JoinHandle<String>| reader.join().expect("a reader does not panic");
    Ran { code: status.code(), out: text(out), err: text(err) }
}

fn reader(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).expect("a pipe can be read");
        }
        String::from_utf8(bytes).expect("output is UTF-8")
    })
}

/// Waits until something holds.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(began.elapsed() < TIMEOUT, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Directory that every user may enter, removed when dropped.
#[derive(Debug)]
pub struct Place(tempfile::TempDir);

/// Beginning of the names of places. The id of the process that made the place follows.
const PLACE: &str = "latscope-cli-";

/// Removes the places of tests that were killed.
fn clean() {
    for name in names(std::env::temp_dir()) {
        let maker = name.strip_prefix(PLACE).and_then(|rest| rest.split('-').next());
        let is_alive = |pid: &str| Path::new("/proc").join(pid).exists();
        if maker.is_some_and(|pid| !is_alive(pid)) {
            let _ = fs::remove_dir_all(std::env::temp_dir().join(name));
        }
    }
}

impl Place {
    pub fn new() -> Place {
        static CLEANED: Once = Once::new();
        CLEANED.call_once(clean);
        let prefix = format!("{PLACE}{}-", std::process::id());
        let place = tempfile::Builder::new().prefix(&prefix).tempdir().expect("a temporary directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        Place(place)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Path in the place, as an argument.
    pub fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("temporary paths are UTF-8").to_owned()
    }

    /// Creates a directory in the place.
    pub fn directory(&self, name: &str) -> String {
        let path = self.at(name);
        fs::create_dir(&path).expect("a fresh name");
        path
    }

    /// Creates a file in the place.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.at(name);
        fs::write(&path, text).expect("a file can be written");
        path
    }
}

/// Names in a directory, sorted.
pub fn names(directory: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Reads a JSON file.
#[track_caller]
pub fn json(path: impl AsRef<Path>) -> Value {
    let text = fs::read(path.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()));
    parsed(std::str::from_utf8(&text).expect("the result is UTF-8"))
}

/// Parses JSON that the command wrote. Asserts that `jq` can carry each of its numbers, and that it has the form of its
/// schema.
#[track_caller]
pub fn parsed(text: &str) -> Value {
    fn check(value: &Value) {
        match value {
            Value::Number(number) => {
                let size = number.as_f64().expect("a number").abs();
                assert!(size <= latscope_core::json::LARGEST as f64, "{number} is beyond 2^53");
            }
            Value::Array(all) => all.iter().for_each(check),
            Value::Object(all) => all.values().for_each(check),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON: {error}: {text}"));
    check(&value);
    assert_as_named(&value);
    value
}

/// Measurements of a result.
pub fn measurements(result: &Value) -> &[Value] {
    result["measurements"].as_array().expect("a result has measurements")
}

/// Returns true if nothing distorts a measurement, or only other programs that took its CPU. The latter concern the
/// machine that runs the tests, not the tested code.
pub fn is_ok(m: &Value) -> bool {
    let reasons = m["quality"]["reasons"].as_array().expect("a measurement has reasons");
    reasons.iter().all(|reason| reason["id"] == "waited-for-a-cpu")
}

/// Texts of the reasons against a measurement; empty without any.
pub fn reason(m: &Value) -> String {
    joined(m, "text")
}

/// Remedies of the reasons against a measurement; empty without any.
pub fn remedy(m: &Value) -> String {
    joined(m, "remedy")
}

fn joined(m: &Value, name: &str) -> String {
    let reasons = m["quality"]["reasons"].as_array().into_iter().flatten();
    reasons.filter_map(|reason| reason[name].as_str()).collect::<Vec<_>>().join("; ")
}

/// Measurements of a probe.
pub fn of_probe<'a>(result: &'a Value, probe: &'a str) -> Vec<&'a Value> {
    measurements(result).iter().filter(|m| m["probe"] == probe).collect()
}

/// Asserts that every point of a probe was measured.
#[track_caller]
pub fn measured(result: &Value, probe: &str) {
    let points = of_probe(result, probe);
    assert!(!points.is_empty(), "{probe} is not there");
    for m in points {
        assert!(m["summary"]["count"].as_u64() > Some(0), "{m:#}");
        assert_ne!(m["quality"]["level"], "unsupported", "{m:#}");
    }
}

/// Asserts that every point of a probe has this support, and a reason that contains this word.
#[track_caller]
pub fn has_reason(points: &[&Value], support: &str, word: &str) {
    assert!(!points.is_empty(), "no such points");
    for m in points {
        assert_eq!(m["quality"]["level"], support, "{m:#}");
        assert!(reason(m).contains(word), "{m:#}");
    }
}

/// User id and group id of the user nobody.
pub const NOBODY: u32 = 65534;

/// Copies the binary to where every user can execute it, as long as the place is kept.
pub fn public_binary() -> (Place, PathBuf) {
    let place = Place::new();
    let path = place.path().join("latscope");
    copy_program(BINARY, &path);
    (place, path)
}

/// Command that runs a shell script in a mount namespace of its own. `$1` is the binary, further arguments follow.
pub fn with_mounts(script: &str, arguments: &[&str]) -> Command {
    let words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", BINARY];
    program(words.iter().chain(arguments))
}

/// Command with these words and a file on a full disk, which only this command sees.
pub fn on_a_full_disk(words: &[&str], place: &Place) -> Command {
    let disk = place.directory("disk");
    let script = "
        mount -t tmpfs -o size=64k none \"$2\"
        head -c 1M /dev/zero > \"$2/filler\" 2>/dev/null || true
        binary=$1 file=$2/file
        shift 2
        exec \"$binary\" \"$@\" \"$file\"";
    with_mounts(script, &[&[&*disk], words].concat())
}
