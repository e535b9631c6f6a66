//! Parts of the tests that run in a process of their own, next to other steps: they wait, or nobody looks at their
//! time.

use super::{TestDeadline, TestTally, check_binary, check_packages};
use crate::{dist, guest, image, python, setup, shell, vm};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// Part of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TestPart {
    /// Installs what the tests need.
    Setup,
    /// The static binaries for this machine and ARM64, and their wheels.
    Wheel,
    /// The static binaries for other architectures, and the packages of all.
    Delivery,
    /// The image for QEMU, the virtual machines and the ARM guest.
    Machines,
}

/// Part that runs in a process of its own.
pub struct TestPartProcess {
    part: TestPart,
    child: Child,
    limit: TestDeadline,
}

impl TestPart {
    /// Starts this part in a process group of its own. Its output goes to a file.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start_process(self, limit: TestDeadline) -> Result<TestPartProcess> {
        fs::create_dir_all(self.path("log").parent().context("the path has no directory")?)?;
        // A sum of an earlier run is not that of this one.
        let _ = fs::remove_file(self.path("json"));
        let log = File::create(self.path("log"))?;
        let program = std::env::current_exe()?;
        // Steps next to it, whose tests wait for each other, come first.
        let mut command = match self {
            TestPart::Wheel | TestPart::Delivery => nice(19),
            TestPart::Setup => nice(0),
            // An emulator that lacks CPU time starves the programs in it. Without the right to it, it runs all the
            // same.
            TestPart::Machines => nice(-5),
        };
        command.arg(program).args([
            "test",
            "--part",
            self.name(),
            "--minutes",
            &limit.minutes_left().to_string(),
        ]);
        let child = command
            .process_group(0)
            .stdin(std::process::Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log)
            .spawn()?;
        eprintln!(
            "xtask: {} runs at the same time; it writes to {}",
            self.name(),
            self.path("log").display()
        );
        Ok(TestPartProcess { part: self, child, limit })
    }

    /// Runs this part in this process, and leaves its counts in a file, after each of its checks.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn run_in_process(self, limit: TestDeadline) -> Result<bool> {
        let mut tally = TestTally::with_deadline(limit).kept_in(self.path("json"));
        match self {
            TestPart::Setup => {
                tally.run_step("setup", |tally| tally.count_check("setup", setup::install_missing()))
            }
            TestPart::Wheel => wheel(&mut tally),
            TestPart::Delivery => deliver(&mut tally),
            TestPart::Machines => run_machines_part(&mut tally),
        }
        tally.save_counts()?;
        Ok(true)
    }

    fn name(self) -> &'static str {
        match self {
            TestPart::Setup => "setup",
            TestPart::Wheel => "wheel",
            TestPart::Delivery => "delivery",
            TestPart::Machines => "machines",
        }
    }

    fn path(self, extension: &str) -> PathBuf {
        shell::target().join("parts").join(self.name()).with_extension(extension)
    }
}

impl TestPartProcess {
    /// Waits for the end of the part, prints what it wrote, and adds its counts. A part that has no time left ends.
    pub fn join(mut self, tally: &mut TestTally) {
        let ended = self.wait_for_exit(tally);
        println!("{}", fs::read_to_string(self.part.path("log")).unwrap_or_default());
        let sum = fs::read(self.part.path("json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
        match sum {
            Some(sum) => tally.add_part(sum),
            None => tally.count_check(self.part.name(), Err(anyhow::anyhow!("it left no counts: {ended:?}"))),
        }
    }

    fn wait_for_exit(&mut self, tally: &mut TestTally) -> Result<ExitStatus> {
        loop {
            if let Some(ended) = self.child.try_wait()? {
                return Ok(ended);
            }
            if self.limit.is_over() {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        // Its last step may be at its end, too.
        tally.skip(Some(format!("the rest of {}: its time was over", self.part.name())));
        let group = Pid::from_child(&self.child);
        kill_process_group(group, Signal::KILL)?;
        Ok(self.child.wait()?)
    }
}

/// Command that runs another one with a nice value.
fn nice(value: i32) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", &value.to_string()]);
    nice
}

fn wheel(tally: &mut TestTally) {
    tally.run_step("static binaries", |tally| check_binaries(tally, dist::of_rustup(dist::EMULATED)));
    tally.run_step("wheel", |tally| {
        let wheels = python::wheel(dist::EMULATED);
        tally.count_check(
            "the wheel measures and reads",
            wheels.and_then(|wheels| python::check_wheel(&wheels)),
        );
    });
}

fn deliver(tally: &mut TestTally) {
    tally.run_step("static binaries for others", |tally| {
        check_binaries(tally, dist::of_debian(dist::EMULATED))
    });
    tally.run_step("packages", |tally| match dist::build_binaries(dist::EMULATED) {
        Ok(binaries) => check_packages(tally, &binaries),
        Err(error) => tally.count_check("packages", Err(error)),
    });
}

fn check_binaries(tally: &mut TestTally, built: Result<Vec<PathBuf>>) {
    match built {
        Ok(binaries) => binaries.iter().for_each(|binary| check_binary(tally, binary)),
        Err(error) => tally.count_check("static binaries", Err(error)),
    }
}

fn run_machines_part(tally: &mut TestTally) {
    tally.run_step("image for QEMU", |tally| {
        let ran = image::run_all(|name, outcome| tally.count_check(name, outcome));
        tally.skip(ran.err());
    });
    tally.run_step("virtual machine", |tally| {
        let ran = vm::checks::run_all(|name, outcome| tally.count_check(name, outcome));
        tally.skip(ran.err());
    });
    tally.run_step("ARM guest", |tally| {
        let ran = guest::run_all(|name, outcome| tally.count_check(name, outcome));
        tally.skip(ran.err());
    });
}
