//! Files that another user planted under the names that commands take or make, while root runs them. Each plant meets
//! each command: what it leads to stays as it was, nothing is printed of it, and no command hangs.

use crate::import::real;
use crate::process::signal;
use crate::support::{
    NOBODY, Place, Ran, end, eventually, json, latscope, names, program, root, start, wait,
};
use latscope_core::fixture;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Content of root's file, which no command may change or show.
const SECRET: &str = "PRIVATE-CONTENT";

/// Kind of a planted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    /// Link to root's file.
    Link,
    /// Link to a device.
    LinkToDevice,
    /// Second name of root's file.
    HardLink,
    /// Pipe that nothing reads or writes.
    Fifo,
    /// Pipe that becomes a link to root's file while it is waited for.
    SwappedFifo,
    /// Device that takes nothing.
    Device,
    /// Link to a directory of root in place of the file's directory, which has a file of that name.
    Directory,
    /// The same, where root's directory has no such file.
    DirectoryOfNone,
    /// Directory that becomes a link to one of root.
    SwappedDirectory,
}

const PLANTS: [Plant; 9] = [
    Plant::Link,
    Plant::LinkToDevice,
    Plant::HardLink,
    Plant::Fifo,
    Plant::SwappedFifo,
    Plant::Device,
    Plant::Directory,
    Plant::DirectoryOfNone,
    Plant::SwappedDirectory,
];

/// Places of a trial: root's directory with a file that the plants lead to, and a directory of another user.
struct Field {
    place: Place,
    name: String,
    content: Vec<u8>,
    /// Path that a command gets.
    path: String,
}

impl Field {
    /// A field whose files have this name. Root's is a result if the name is that of one, so that it could be read.
    fn new(name: &str) -> Field {
        let place = Place::new();
        let (roots, theirs) = (place.directory("roots"), place.directory("theirs"));
        let mut report = fixture::wake();
        report.measurements.iter_mut().for_each(|m| m.title = SECRET.to_owned());
        let content = if name.ends_with(".json") { report.to_json().into_bytes() } else { SECRET.into() };
        fs::write(format!("{roots}/{name}"), &content).unwrap();
        fs::set_permissions(format!("{roots}/{name}"), fs::Permissions::from_mode(0o600)).unwrap();
        chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
        let path = format!("{theirs}/{name}");
        Field { place, name: name.to_owned(), content, path }
    }

    fn secret(&self) -> String {
        self.place.at(&format!("roots/{}", self.name))
    }

    /// Directory that a command gets.
    fn directory(&self) -> &str {
        self.path.rsplit_once('/').expect("it is absolute").0
    }

    /// Plants under the path, and swaps it later if that is its kind.
    fn plant(&mut self, plant: Plant) -> Option<std::thread::JoinHandle<()>> {
        let (path, secret) = (self.path.clone(), self.secret());
        let link = |to: &str, at: &str| {
            symlink(to, at).unwrap();
            lchown(at, Some(NOBODY), Some(NOBODY)).unwrap();
        };
        let fifo = || assert!(program(["mkfifo", &path]).status().unwrap().success());
        match plant {
            Plant::Link => link(&secret, &path),
            Plant::LinkToDevice => link("/dev/full", &path),
            Plant::HardLink => fs::hard_link(&secret, &path).unwrap(),
            Plant::Fifo => fifo(),
            Plant::Device => {
                assert!(program(["mknod", &path, "c", "1", "7"]).status().unwrap().success());
            }
            Plant::SwappedFifo => {
                fifo();
                let aside = self.place.at("theirs/aside");
                link(&secret, &aside);
                return Some(later(move || fs::rename(&aside, &path).unwrap()));
            }
            Plant::Directory | Plant::DirectoryOfNone | Plant::SwappedDirectory => {
                let (inner, aside) = (self.place.at("theirs/inner"), self.place.at("theirs/aside"));
                link(&self.place.at("roots"), &aside);
                self.path =
                    format!("{inner}/{}", if plant == Plant::DirectoryOfNone { "new" } else { &self.name });
                if plant != Plant::SwappedDirectory {
                    fs::rename(&aside, &inner).unwrap();
                } else {
                    fs::create_dir(&inner).unwrap();
                    chown(&inner, Some(NOBODY), Some(NOBODY)).unwrap();
                    return Some(later(move || {
                        // A command that makes directories may make this one again in between.
                        eventually("the directory is swapped", || {
                            let _ = fs::remove_dir_all(&inner);
                            fs::rename(&aside, &inner).ok()
                        });
                    }));
                }
            }
        }
        None
    }

    /// Asserts that root's directory is as it was, and that nothing of its file was printed.
    #[track_caller]
    fn check(&self, ran: &Ran, what: &str) {
        ran.no_panic();
        // The last two are those of bisect-check.
        assert!(matches!(ran.code, Some(0..=3 | 125 | 128)), "{what}: {ran:#?}");
        let roots: Vec<_> =
            fs::read_dir(self.place.at("roots")).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(roots, [self.name.as_str()], "{what}");
        let about = fs::metadata(self.secret()).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o7777), (0, 0o600), "{what}");
        assert!(fs::read(self.secret()).unwrap() == self.content, "{what}: {ran:#?}");
    }

    /// Asserts that nothing of root's file was printed.
    #[track_caller]
    fn check_printed(ran: &Ran, what: &str) {
        assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET), "{what}: {ran:#?}");
    }
}

fn later(swap: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        swap();
    })
}

/// Calls with the planted path as `{}`, and the files of the test in braces: results `{a}` and `{b}`, a budget, a plan.
fn calls(table: &[&str], files: &Files) -> Vec<Vec<String>> {
    let word = |word: &str| {
        [
            ("{a}", &files.result),
            ("{import}", &files.import),
            ("{other}", &files.other),
            ("{budget}", &files.budget),
            ("{plan}", &files.plan),
        ]
        .iter()
        .fold(word.to_owned(), |word, (name, file)| word.replace(name, file))
    };
    table.iter().map(|line| line.split(' ').map(word).collect()).collect()
}

struct Files {
    result: String,
    import: String,
    other: String,
    budget: String,
    plan: String,
}

impl Files {
    fn new(place: &Place) -> Files {
        let plan = "[[measurement]]\nname = \"cycle\"\nrun = \"cpu cycle --rounds 2 --count 4\"\n";
        Files {
            result: place.file("wake.json", fixture::wake().to_json()),
            import: real("hyperfine.json"),
            other: real("jitterdebugger.json"),
            budget: place.file("b.toml", "[[limit]]\nprobe = 'wake.timer'\nmax = '1h'"),
            plan: place.file("plan.toml", plan),
        }
    }
}

/// What a call begins with that does not end by itself: it gets the signal of Ctrl-C once the plants are swapped.
const INTERRUPTED: &str = "interrupted";

/// What a call begins with that writes to its working directory, which is that of the planted file.
const INSIDE: &str = "inside";

/// Number of calls that run at once: most of them wait for a pipe.
const AT_ONCE: usize = 6;

/// Runs each call on each plant, and returns how many there were.
fn run_all(table: &[&str]) -> usize {
    let place = Place::new();
    let calls = calls(table, &Files::new(&place));
    let pairs: Vec<(&Vec<String>, Plant)> =
        calls.iter().flat_map(|call| PLANTS.map(|plant| (call, plant))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((call, plant)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run_on(call, *plant);
                }
            });
        }
    });
    pairs.len()
}

/// Runs a call on a plant. The first word of a call can be `@NAME`, the name of the planted file.
fn run_on(call: &[String], plant: Plant) {
    let is_inside = call.iter().any(|word| word == INSIDE);
    let named = call[0].strip_prefix('@');
    let mut field = Field::new(named.unwrap_or("view"));
    let swap = field.plant(plant);
    let word = |word: &String| word.replace("{}", &field.path).replace("{dir}", field.directory());
    let words: Vec<String> = call.iter().skip(usize::from(named.is_some())).map(word).collect();
    let mut command = with_environment(&words);
    let here = if is_inside { field.place.at("theirs") } else { field.place.at("") };
    let child = start(command.current_dir(here));
    let mut swap = swap;
    if call[0] == INTERRUPTED {
        swap.take().into_iter().for_each(|swap| swap.join().unwrap());
        eventually("it has ended, or waits for signals", || takes_signals(child.id()).then_some(()));
        signal(&child, Signal::INT);
    }
    let mut ran = wait(child);
    if call[0] == INTERRUPTED && ran.code.is_none() {
        // The signal came between a refusal and its line.
        ran.code = Some(1);
    }
    swap.into_iter().for_each(|swap| swap.join().unwrap());
    let what = format!("{plant:?}: {words:?}");
    field.check(&ran, &what);
    // Only the kernel knows who gave a file its second name, and a directory that the user names is read.
    let is_named =
        [Plant::HardLink, Plant::Directory, Plant::DirectoryOfNone, Plant::SwappedDirectory].contains(&plant);
    if named.is_none() || !is_named {
        Field::check_printed(&ran, &what);
    }
}

/// Returns true if a process has ended, or reads the signal of Ctrl-C where it would end it otherwise.
fn takes_signals(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return true };
    let of = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let blocked = u64::from_str_radix(of("SigBlk:"), 16).unwrap_or(0);
    of("State:").starts_with('Z') || blocked >> (Signal::INT.as_raw() - 1) & 1 == 1
}

/// Command of a call, whose first words may set variables, or say how it runs.
fn with_environment(words: &[String]) -> Command {
    match words[0].as_str() {
        INSIDE => return with_environment(&words[1..]),
        INTERRUPTED => return with_environment(&words[1..]),
        _ => {}
    }
    let is_variable = |word: &&String| word.contains('=') && !word.starts_with('-');
    let variables: Vec<&String> = words.iter().take_while(is_variable).collect();
    let mut command = latscope(&words[variables.len()..]);
    for (name, value) in variables.iter().filter_map(|word| word.split_once('=')) {
        command.env(name, value);
    }
    command
}

/// Calls that write to the path, or make it.
const WRITTEN: &[&str] = &[
    "show {a} --json {}",
    "show {a} --json {}.gz",
    "show {a} --csv {}",
    "show {a} --csv-long {}",
    "show {a} --csv-histogram {}",
    "show {a} --markdown {}",
    "show {a} --html {}",
    "show {a} --svg {}",
    "show {a} --svg {}/",
    "show {a} --svg-percentiles {}",
    "show {a} --openmetrics {}",
    "show {a} --lava={}",
    "show {import} --contribute {}",
    "import {import} --json {}",
    "merge {a} {a} --json {}",
    "compare {a} {a} --json {}",
    "compare {a} {a} --csv {}",
    "compare {a} {a} --markdown {}",
    "compare {a} {a} --html {}",
    "gate {a} --budget {budget} --json {}",
    "gate {a} --budget {budget} --junit {}",
    "gate {a} --budget {budget} --markdown {}",
    "references --json {}",
    "cpu cycle --rounds 1 --count 4 --quiet --json {}",
    "wake --count 20 --policy other --quiet --json {}",
    "wake --count 20 --policy other --quiet --timeline {}",
    "run {plan} --dir {} --quiet",
    "remote window --create {}",
    "interrupted remote serve --vhost-user {}",
    "interrupted remote serve --pty --echo --link {}",
    "interrupted remote serve --openamp --openamp-shm {} --openamp-socket socket",
    "interrupted remote serve --openamp --openamp-shm shm --openamp-socket {}",
    "import {import} {other} --json {}/",
    "wake --count 20 --policy other --quiet --threshold 1ns --trace {}",
    "as cyclictest -q -l 20 -i 500 --json={}",
    "as cyclictest -q -l 20 -i 500 -h 100 --histfile={}",
    "as cyclictest -q -l 20 -i 500 --result={}",
    "as cyclictest -l 1500 -i 1000 -F {}",
    "LATSCOPE_NOTES={} as lat_syscall null",
    "bisect-check --budget {budget} -- wake --count 20 --policy other --quiet --csv {}",
];

/// Calls that read the path.
const READ: &[&str] = &[
    "show {}",
    "show {a} --beside {}",
    "import {}",
    "compare {a} {}",
    "compare {} {a}",
    "gate {} --budget {budget}",
    "gate {a} --budget {}",
    "gate {a} --baseline {}",
    "merge {} {a} --json -",
    "history {}",
    "run {} --dry-run",
    "trial --plan {} --dry-run",
    "references --references {}",
    "file --dir {} stat --rounds 1 --count 4",
    "remote ping --transport tty --path {} --count 1",
    "remote ping --transport rptun --path {} --count 1",
    "remote ping --transport mcs --mcs-device {} --mcs-cpu 0 --mcs-image {} --count 1",
    "remote ping --transport char --ctrl {} --count 1",
    "remote ping --transport ivshmem --qemu /bin/false --image {} --count 1",
    "remote ping --transport openamp --openamp-shm {} --count 1",
    "as pty_test {}",
    "bisect-check --budget {} -- cpu cycle --rounds 1 --count 4 --quiet",
];

/// Calls that read all files of the planted one's directory.
const READ_IN_DIRECTORY: &[&str] = &[
    "@view.json history {dir} --all",
    "@view.json compare {a} {dir} --all",
    "@view.json merge {dir} --json -",
    "@view.json gate {a} --baseline {dir} --all",
    "@view.json gate {dir} --budget {budget} --all",
    "@view.toml references --references {dir}",
    "@view.toml show {a} --beside published --references {dir}",
];

#[test]
fn what_lies_in_a_directory_is_not_followed() {
    if root("what_lies_in_a_directory_is_not_followed") {
        assert_eq!(run_all(READ_IN_DIRECTORY), 63);
    }
}

#[test]
fn what_is_written_never_goes_where_a_plant_leads() {
    if root("what_is_written_never_goes_where_a_plant_leads") {
        assert_eq!(run_all(WRITTEN), 360);
    }
}

/// Calls that write to their working directory a file whose name is not given.
const WRITTEN_INSIDE: &[&str] = &[
    "@latscope-trace.dat inside wake --count 20 --policy other --quiet --threshold 1ns --on-threshold save-trace",
];

#[test]
fn a_file_of_a_usual_name_never_goes_where_a_plant_leads() {
    if root("a_file_of_a_usual_name_never_goes_where_a_plant_leads") {
        assert_eq!(run_all(WRITTEN_INSIDE), 9);
    }
}

#[test]
fn what_is_made_in_a_directory_that_is_swapped_is_removed_from_it() {
    if !root("what_is_made_in_a_directory_that_is_swapped_is_removed_from_it") {
        return;
    }
    let place = Place::new();
    let records = place.directory("records");
    let at = |name: &str| place.at(name);
    for name in ["roots", "inner"] {
        place.directory(name);
        fs::write(at(&format!("{name}/precious")), SECRET).unwrap();
    }
    let link = at("inner/link");
    // The link is removed by its process at the end, or by the guardian, with the directory that it was made in.
    for how in [Signal::INT, Signal::KILL] {
        let words = ["remote", "serve", "--pty", "--echo", "--link", &link];
        let served = start(latscope(words).env("XDG_RUNTIME_DIR", &records));
        eventually("the link is there", || fs::symlink_metadata(&link).ok());
        fs::rename(at("inner"), at("away")).unwrap();
        symlink("roots", at("inner")).unwrap();
        lchown(at("inner"), Some(NOBODY), Some(NOBODY)).unwrap();
        signal(&served, how);
        let ran = wait(served);
        assert!(!ran.err.contains("not put back"), "{ran:#?}");
        eventually("the link is removed", || (names(at("away")) == ["precious"]).then_some(()));
        assert_eq!(names(at("roots")), ["precious"]);
        fs::remove_file(at("inner")).unwrap();
        fs::rename(at("away"), at("inner")).unwrap();
    }
    assert_eq!(names(&records), [""; 0], "a record would be a line of each later run");
}

#[test]
fn what_is_read_shows_nothing_of_where_a_plant_leads() {
    if root("what_is_read_shows_nothing_of_where_a_plant_leads") {
        assert_eq!(run_all(READ), 198);
    }
}

#[test]
fn sudo_does_not_make_its_caller_root() {
    if !root("sudo_does_not_make_its_caller_root") {
        return;
    }
    // By sudo root works in the home of the user who called it, which he may change at any time.
    let field = Field::new("view");
    let (home, plan) = (field.place.at("theirs"), Files::new(&field.place).plan);
    let by_sudo = |words: &[&str]| {
        let mut command = latscope(words);
        command
            .current_dir(&home)
            .env("SUDO_UID", NOBODY.to_string())
            .env("SUDO_USER", "nobody")
            .env("HOME", &home);
        end(&mut command)
    };
    let refused = by_sudo(&["run", &plan]).refused();
    assert!(
        refused.contains("another user can replace what is in .") && refused.contains("--dir"),
        "{refused}"
    );
    // The remedy works, and a view in his home is no link of his.
    let results = field.place.at("results");
    by_sudo(&["run", &plan, "--dir", &results, "--quiet"]).done();
    assert!(json(format!("{results}/trial.json"))["order"].is_array());
    symlink(field.secret(), format!("{home}/view")).unwrap();
    lchown(format!("{home}/view"), Some(NOBODY), Some(NOBODY)).unwrap();
    let ran = by_sudo(&["show", &real("hyperfine.json"), "--json", "view"]);
    field.check(&ran, "a link in his home");
    assert!(fs::symlink_metadata(format!("{home}/view")).unwrap().is_file(), "the link is replaced");
}
