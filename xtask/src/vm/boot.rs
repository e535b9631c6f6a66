//! Emulated machine, from its start until it switches itself off.

use super::initramfs::Contents;
use super::{VmKernel, absolute};
use crate::debian::{self, AVAILABLE};
use crate::{dist, setup, shell};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use latscope_core::units::{parse_duration, parse_size};
use rustix::io::FdFlags;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Ports by which the machine hands out text and files, in the order of `init.sh`. They do not mix with the kernel's
/// messages on its console.
const PORTS: [&str; 3] = ["stdout", "stderr", "result"];

/// Modules for the ports.
pub const PORT_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];

/// Arguments of the kernel. The emulator counts the ticks of all CPUs by the single counter of its host, so they agree.
/// The
/// kernel cannot know that, and would fall back to a slow clock.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 tsc=reliable clocksource=tsc";

/// Name of the file with the kernel's messages.
pub const CONSOLE: &str = "console";

/// Text in the error of a machine that stands still.
const SILENT: &str = "nothing on its console";

/// Number of boots of a machine whose kernel the emulator brings down.
const BOOTS: u32 = 3;

/// The machine to boot.
#[derive(Args, Clone)]
pub struct VirtualMachine {
    /// The kernel
    #[arg(long, value_enum, default_value = "rt")]
    pub kernel: VmKernel,
    /// Memory of the machine
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    pub memory: u64,
    /// CPUs of the machine
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub cpus: u32,
    /// Longest time that it may take
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Longest time without a line on its console; default: no limit
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub silence: Option<Duration>,
    /// More arguments for the kernel, such as idle=poll where figures between CPUs matter
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    pub append: String,
    /// Kernel modules to load, such as binder_linux
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub modules: Vec<String>,
    /// Programs of this machine to take along, with their libraries
    #[arg(long, value_name = "PROGRAM,…", value_delimiter = ',')]
    pub programs: Vec<String>,
    /// Lays what is in DIR over the root of the VM
    #[arg(long, value_name = "DIR", value_parser = absolute)]
    pub overlay: Option<PathBuf>,
    /// Profile with which cargo builds latscope; `release` and `dev` build faster
    #[arg(long, default_value = dist::PROFILE)]
    pub profile: String,
    /// Arguments of the emulator for packages and nodes, after which it has the machine's CPUs and memory
    #[arg(skip)]
    pub topology: Vec<String>,
}

/// Outcome of a machine that has ended.
pub struct VmOutcome {
    /// Exit status of the job.
    pub status: u8,
    scratch: TempDir,
}

impl VmOutcome {
    /// Directory of the files that the job left in /out.
    pub fn out(&self) -> PathBuf {
        self.scratch.path().join("out")
    }
}

impl VirtualMachine {
    /// Boots, runs a shell script with its output on that of this process, and waits for the end.
    ///
    /// # Errors
    /// A program is missing, the kernel does not come up, or the time is over.
    pub fn run_job(&self, job: &str) -> Result<VmOutcome> {
        ensure!(AVAILABLE, "the VM is an x86-64 machine, and runs what is built for this one");
        setup::check_program("qemu-system-x86_64", "qemu-system-x86")?;
        setup::check_program("setpriv", "util-linux")?;
        let latscope = dist::for_this_machine(&self.profile)?;
        let kernel = self.kernel.unpack_once()?;
        let modules: Vec<String> =
            PORT_MODULES.iter().map(|name| (*name).to_owned()).chain(self.modules.clone()).collect();
        let modules = kernel.load_order(&modules)?;
        let overlay = self.overlay.as_deref();
        let busybox = debian::busybox()?;
        let contents = Contents {
            busybox: &busybox,
            latscope: &latscope,
            modules: &modules,
            programs: &self.programs,
            overlay,
            job,
        };
        let scratch = tempfile::tempdir()?;
        contents.write_archive(&scratch.path().join("root"), &scratch.path().join("initramfs"))?;
        let emulator = self.emulator(&kernel.image_path(), scratch.path());
        let timeouts = Timeouts { timeout: self.timeout, silence: self.silence };
        boot_machine(emulator, timeouts, scratch, &kernel.release)
    }

    /// Runs a script like [`VirtualMachine::run_job`], and boots again if the emulator has brought the kernel down
    /// while the kernel patched its own code, or to a standstill. Nothing else causes another boot. A job that causes
    /// such an end is repeated, too.
    ///
    /// # Errors
    /// The errors are those of [`VirtualMachine::run_job`] in the last boot.
    pub fn run_patiently(&self, job: &str) -> Result<VmOutcome> {
        for _ in 1..BOOTS {
            match self.run_job(job) {
                Err(error) if brought_down(&format!("{error:#}")) => {
                    eprintln!("VM {}: booted once more: {error:#}", self.kernel);
                }
                ended => return ended,
            }
        }
        self.run_job(job)
    }

    fn emulator(&self, image: &Path, scratch: &Path) -> Command {
        // The emulator must not outlive us, however we end.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        command.args(["-accel", "tcg,thread=multi", "-cpu", "max"]);
        match self.topology.as_slice() {
            [] => command.args(["-smp", &self.cpus.to_string()]),
            topology => command.args(topology),
        };
        command.args(["-m", &format!("{}M", self.memory >> 20)]);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        command.arg("-serial").arg(format!("file:{}", scratch.join(CONSOLE).display()));
        command.arg("-kernel").arg(image).arg("-initrd").arg(scratch.join("initramfs"));
        command.arg("-append").arg(format!("{KERNEL_ARGUMENTS} {}", self.append));
        command.args(["-device", "virtio-serial-pci"]).stdin(Stdio::null());
        command
    }
}

fn brought_down(error: &str) -> bool {
    ["Kernel panic", SILENT].iter().any(|words| error.contains(words))
}

/// Times after which a machine is given up.
#[derive(Clone, Copy)]
pub struct Timeouts {
    /// Time after its start.
    pub timeout: Duration,
    /// Time after the last line that the job wrote on the console. The kernel's messages do not count, because a kernel
    /// that
    /// stands still prints complaints without end.
    pub silence: Option<Duration>,
}

/// Boots what the arguments of an emulator name, passes on what its job prints, and waits for the end. The console goes
/// to
/// [`CONSOLE`] in the scratch directory. The arguments must name a virtio-serial device.
///
/// # Errors
/// The kernel of this release does not come up, or the time is over.
pub fn boot_machine(
    emulator: Command,
    timeouts: Timeouts,
    scratch: TempDir,
    release: &str,
) -> Result<VmOutcome> {
    match to_its_end(emulator, timeouts, scratch.path()) {
        Ok(status) => Ok(VmOutcome { status, scratch }),
        Err(error) => bail!("Linux {release}: {error:#}{}", console(scratch.path())),
    }
}

/// Runs the emulator, and returns the exit status of the job. The files of the job are in the scratch directory.
fn to_its_end(mut emulator: Command, timeouts: Timeouts, scratch: &Path) -> Result<u8> {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for (port, name) in (1..).zip(PORTS) {
        let (our, their) = UnixStream::pair()?;
        rustix::io::fcntl_setfd(&their, FdFlags::empty())?;
        emulator.arg("-chardev").arg(format!("socket,id={name},fd={}", their.as_raw_fd()));
        emulator.arg("-device").arg(format!("virtserialport,nr={port},chardev={name},name={name}"));
        ours.push(our);
        theirs.push(their);
    }
    let mut child = emulator.spawn().context("cannot start the emulator")?;
    drop(theirs);
    let archive = scratch.join("result");
    let sinks: [File; 3] =
        [unbuffered_file(&io::stdout())?, unbuffered_file(&io::stderr())?, File::create(&archive)?];
    let unread = AtomicBool::new(false);
    thread::scope(|scope| {
        for (mut from, mut to) in ours.into_iter().zip(sinks) {
            let unread = &unread;
            scope.spawn(move || {
                if hand_on(&mut from, &mut to).is_err() {
                    unread.store(true, Relaxed);
                }
            });
        }
        timeouts.wait_for_emulator(&mut child, &scratch.join(CONSOLE), &unread)
    })?;
    unpack(&archive, scratch)
}

impl Timeouts {
    /// Waits for the emulator to end. Ends it when the time is over or its output has no reader.
    fn wait_for_emulator(&self, child: &mut Child, console: &Path, unread: &AtomicBool) -> Result<()> {
        let start = Instant::now();
        let mut heard = (start, 0);
        let gone = loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the emulator failed ({status})"),
                None => thread::sleep(Duration::from_millis(20)),
            }
            let lines = said_by_the_job(console);
            if lines != heard.1 {
                heard = (Instant::now(), lines);
            }
            if unread.load(Relaxed) {
                break "what it prints cannot be written".to_owned();
            } else if start.elapsed() > self.timeout {
                break format!("still running after {:?}: it hangs, or needs more --timeout", self.timeout);
            } else if self.silence.is_some_and(|silence| heard.0.elapsed() > silence) {
                break format!("{SILENT} for {:?}: it hangs, or needs more --silence", heard.0.elapsed());
            }
        };
        child.kill()?;
        child.wait()?;
        bail!(gone)
    }
}

/// Number of lines on the console that do not begin with the kernel's stamp, `[    1.234567]`.
fn said_by_the_job(console: &Path) -> usize {
    let said = fs::read(console).unwrap_or_default();
    said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"[")).count()
}

/// Copies to the end. `io::copy` is unsuitable: it asks the kernel to splice, and while it waits for the socket, it
/// locks
/// the pipe that the output may be. Then no other process can write to the pipe or read from it.
fn hand_on(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => to.write_all(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns a stream of this process without its buffer.
fn unbuffered_file(stream: &impl AsFd) -> Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// Unpacks the files that the job left. Returns the exit status of the job.
fn unpack(archive: &Path, to: &Path) -> Result<u8> {
    ensure!(fs::metadata(archive)?.len() > 0, "it ended before the command did");
    let mut tar = Command::new("tar");
    shell::output(tar.args(["--no-same-owner", "-xf"]).arg(archive).arg("-C").arg(to))?;
    let status = fs::read_to_string(to.join("status"))?;
    status.trim().parse().with_context(|| format!("exit status {status:?}"))
}

/// Last lines that the kernel wrote, or an empty text.
fn console(scratch: &Path) -> String {
    let text = fs::read(scratch.join(CONSOLE)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(15)..];
    if last.is_empty() { String::new() } else { format!("; last on its console:\n{}", last.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_complains_for_ever_is_no_sign_of_life() {
        let place = tempfile::tempdir().unwrap();
        let console = place.path().join(CONSOLE);
        assert_eq!(said_by_the_job(&console), 0);
        fs::write(&console, "a test\n[   72.79] rcu: INFO: stall\n").unwrap();
        let before = said_by_the_job(&console);
        fs::write(&console, "a test\n[   72.79] rcu: INFO: stall\n[  100.59] watchdog: BUG\n").unwrap();
        assert_eq!(said_by_the_job(&console), before);
        fs::write(&console, "a test\n[   72.79] rcu: INFO: stall\nanother\n").unwrap();
        assert!(said_by_the_job(&console) > before);
    }

    #[test]
    fn a_machine_that_stands_still_is_told_from_one_that_fails() {
        let timeouts =
            Timeouts { timeout: Duration::from_secs(60), silence: Some(Duration::from_millis(100)) };
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let error = timeouts
            .wait_for_emulator(&mut child, Path::new("/nowhere"), &AtomicBool::new(false))
            .unwrap_err();
        assert!(brought_down(&error.to_string()), "{error}");
        let mut child = Command::new("false").spawn().unwrap();
        let error = timeouts
            .wait_for_emulator(&mut child, Path::new("/nowhere"), &AtomicBool::new(false))
            .unwrap_err();
        assert!(!brought_down(&error.to_string()), "{error}");
    }
}
