//! Emulated machine, and the process that is its remote processor.

use crate::debian::sid::Emulator;
use crate::debian::{CACHE, DebianSuite, create_dir_once};
use crate::shell::FEATURES;
use crate::vm::boot::{self, CONSOLE, PORT_MODULES, Timeouts, VmOutcome};
use crate::vm::initramfs::Contents;
use crate::vm::kernel::{self, Unpacked};
use crate::{dist, setup, shell};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Drivers of RPMsg. The driver for announcements precedes that of the bus, because it would miss the announcements
/// otherwise.
const MODULES: [&str; 5] = ["rpmsg_ns", "virtio_rpmsg_bus", "rpmsg_char", "rpmsg_ctrl", "rpmsg_tty"];

/// Text that the guest writes on its console when its remote processor is to be killed.
pub const KILL: &str = "kill the remote processor";

const MEMORY: &str = "256M";

/// Programs and files that are needed to boot.
pub struct GuestMachine {
    emulator: Emulator,
    kernel: Unpacked,
    busybox: PathBuf,
    /// Path of the latscope that runs in the guest.
    latscope: PathBuf,
    /// Path of the latscope that is the remote processor.
    remote: PathBuf,
}

impl GuestMachine {
    /// Fetches and builds everything that is needed, unless it is left from before.
    ///
    /// # Errors
    /// The error names what cannot be fetched or built.
    pub fn prepare_machine() -> Result<GuestMachine> {
        setup::check_program("setpriv", "util-linux")?;
        let emulator = Emulator::fetch_once().context("QEMU for ARM")?;
        let bookworm = || DebianSuite::for_architectures("bookworm", &["amd64", "armhf"]);
        let kernel = kernel::fetch_kernel("armmp", bookworm, "linux-image-armmp:armhf")
            .context("the kernel for ARM")?;
        let dir = Path::new(CACHE).join("busybox-armhf");
        create_dir_once(&dir, |dir| bookworm()?.unpack("busybox-static:armhf", dir))?;
        let programs = [dir.join("bin/busybox"), dir.join("usr/bin/busybox")];
        let busybox = programs.into_iter().find(|program| program.exists()).context("no busybox for ARM")?;
        let latscope = dist::for_arm().context("latscope for ARM")?;
        // The features are those of the tests, so that nothing is compiled twice.
        let build = format!("build --workspace --bin latscope {FEATURES} --locked");
        shell::run_command(&mut shell::cargo(&build))?;
        let remote = Path::new(CACHE).join("latscope-vhost-user");
        shell::copy_program(&shell::target().join("debug/latscope"), &remote)?;
        Ok(GuestMachine { emulator, kernel, busybox, latscope, remote: std::path::absolute(remote)? })
    }

    /// Boots with a remote processor, runs a job, and waits for the end. Returns the outcome, and the output of the
    /// remote.
    ///
    /// # Errors
    /// The guest does not come up or to its end, or the remote leaves its socket.
    pub fn run_job(&self, job: &str, timeout: Duration) -> Result<(VmOutcome, String)> {
        let modules: Vec<String> = PORT_MODULES.iter().chain(&MODULES).map(|&name| name.to_owned()).collect();
        let modules = self.kernel.load_order(&modules)?;
        let contents = Contents {
            busybox: &self.busybox,
            latscope: &self.latscope,
            modules: &modules,
            programs: &[],
            overlay: None,
            job,
        };
        let scratch = tempfile::tempdir()?;
        contents.write_archive(&scratch.path().join("root"), &scratch.path().join("initramfs"))?;
        let sockets = tempfile::tempdir()?;
        let socket = sockets.path().join("rpmsg");
        let mut remote =
            GuestRemoteProcessor::start_process(&self.remote, &socket, &sockets.path().join("said"))?;
        let emulator = self.qemu_command(&socket, scratch.path());
        let console = scratch.path().join(CONSOLE);
        let over = AtomicBool::new(false);
        let timeouts = Timeouts { timeout, silence: None };
        let ended = thread::scope(|scope| {
            scope.spawn(|| remote.kill_when_told(&console, &over));
            let ended = boot::boot_machine(emulator, timeouts, scratch, &self.kernel.release);
            over.store(true, Relaxed);
            ended
        })?;
        let said = remote.wait_for_output()?;
        ensure!(!socket.exists(), "the remote left its socket");
        Ok((ended, said))
    }

    fn qemu_command(&self, socket: &Path, scratch: &Path) -> Command {
        let mut command = self.emulator.command();
        command.args(["-M", "virt,highmem=off,memory-backend=memory", "-cpu", "cortex-a15", "-smp", "2"]);
        command.args(["-accel", "tcg,thread=multi", "-m", MEMORY]);
        // Its memory is the remote's, too.
        command.arg("-object").arg(format!("memory-backend-memfd,id=memory,size={MEMORY},share=on"));
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
        command.arg("-serial").arg(format!("file:{}", scratch.join(CONSOLE).display()));
        command.arg("-kernel").arg(self.kernel.image_path()).arg("-initrd").arg(scratch.join("initramfs"));
        command.args(["-append", "console=ttyAMA0 quiet panic=-1"]);
        // The first device: the ports are named by its number.
        command.args(["-device", "virtio-serial-pci"]).stdin(Stdio::null());
        command.arg("-chardev").arg(format!("socket,id=rpmsg,path={}", socket.display()));
        command
            .args(["-device", "vhost-user-test-device-pci,chardev=rpmsg,virtio-id=7,num_vqs=2,vq_size=256"]);
        command
    }
}

/// Process that is the remote processor.
struct GuestRemoteProcessor {
    process: Child,
    said: PathBuf,
}

impl GuestRemoteProcessor {
    /// Starts the process, and waits until a monitor can connect.
    fn start_process(program: &Path, socket: &Path, said: &Path) -> Result<GuestRemoteProcessor> {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL"])
            .arg(program)
            .args(["remote", "serve", "--vhost-user"])
            .arg(socket);
        let process = command.stderr(fs::File::create(said)?).spawn().context("the remote does not start")?;
        let mut remote = GuestRemoteProcessor { process, said: said.to_owned() };
        let start = Instant::now();
        while !socket.exists() {
            let over = remote.process.try_wait()?.is_some() || start.elapsed() > Duration::from_secs(60);
            ensure!(!over, "the remote does not listen: {}", fs::read_to_string(said)?);
            thread::sleep(Duration::from_millis(10));
        }
        Ok(remote)
    }

    /// Kills the process in the middle of its work when the guest writes [`KILL`].
    fn kill_when_told(&mut self, console: &Path, over: &AtomicBool) {
        while !over.load(Relaxed) {
            let said = fs::read(console).unwrap_or_default();
            if said.windows(KILL.len()).any(|words| words == KILL.as_bytes()) {
                let _ = self.process.kill();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the process ends, as it does with its monitor. Returns its output.
    fn wait_for_output(mut self) -> Result<String> {
        let start = Instant::now();
        while self.process.try_wait()?.is_none() {
            ensure!(start.elapsed() < Duration::from_secs(60), "the remote outlives the machine");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(fs::read_to_string(&self.said)?)
    }
}

impl Drop for GuestRemoteProcessor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
