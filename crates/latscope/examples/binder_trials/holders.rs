//! Who may use a device, and who has it.

use anyhow::{Context, Result, ensure};
use latscope_exchange::binder::service::BinderPinger;
use latscope_exchange::binder::{BinderDevice, Manager};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes the context manager, or says why not.
pub fn claim(path: &str) -> Result<()> {
    let device = BinderDevice::from_path(path).context("no such device")?;
    match Manager::claim(device) {
        Ok(_) => println!("claimed"),
        Err(refused) => println!("{refused} [{}]", refused.remedy),
    }
    Ok(())
}

/// What another process says that wants to be the context manager.
fn another(path: &str, prepare: impl FnOnce(&mut Command)) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["__claim", path]);
    prepare(&mut command);
    let output = command.output()?;
    Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

fn own(path: &str) -> Result<Manager> {
    Ok(Manager::claim(BinderDevice::from_path(path).context("no such device")?)?)
}

/// A second context manager reports the first one; without debugfs too.
pub fn taken() -> Result<()> {
    let manager = own("/dev/binder")?;
    let said = another("/dev/binder", |_| {})?;
    print!("{said}");
    let holder = format!("has a context manager: binder_trials (process {})", std::process::id());
    ensure!(said.contains(&holder), "not named");
    ensure!(another("/dev/hwbinder", |_| {})?.starts_with("claimed"), "devices are apart");
    drop(manager);
    ensure!(another("/dev/binder", |_| {})?.starts_with("claimed"), "it is free again");
    Ok(())
}

/// Another user has no permission; with it, the driver still knows the first one.
pub fn other_user() -> Result<()> {
    const DEVICE: &str = "/dev/vndbinder";
    drop(own(DEVICE)?);
    let mode = |mode| fs::set_permissions(DEVICE, fs::Permissions::from_mode(mode));
    mode(0o600)?;
    let said = another(DEVICE, |command| _ = command.uid(1000).gid(1000))?;
    print!("{said}");
    ensure!(said.starts_with("no permission to open /dev/vndbinder (user 0, group 0, mode 600)"));
    mode(0o666)?;
    let said = another(DEVICE, |command| _ = command.uid(1000).gid(1000))?;
    print!("{said}");
    mode(0o600)?;
    ensure!(said.contains("of another user"));
    Ok(())
}

/// A process that may not map anything more.
pub fn no_memory() -> Result<()> {
    let limited = "ulimit -v $1; exec /bin/binder_trials __claim /dev/binder";
    // Enough for the program itself, not for the buffer.
    for kib in (512..16384).step_by(256) {
        let output = Command::new("sh").args(["-c", limited, "sh", &kib.to_string()]).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        if said.contains("of /dev/binder cannot be mapped") {
            print!("{said}");
            ensure!(said.contains("ulimit -v"));
            return Ok(());
        }
    }
    anyhow::bail!("it was mapped, or the program did not start")
}

/// The context manager of others can be pinged; where there is none, that is said.
pub fn service() -> Result<()> {
    let none = BinderPinger::find_service("binder", Some("/dev/binder"), None)
        .err()
        .context("no context manager should answer")?;
    println!("{none} [{}]", none.remedy);
    ensure!(none.reason == "/dev/binder has no context manager, so nothing is registered");
    let mut child = Command::new(std::env::current_exe()?).arg("taken").spawn()?;
    // It is the manager for a while: find it.
    let found = (0..2000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        BinderPinger::find_service("binder", Some("/dev/binder"), None).ok()
    });
    let mut pinger = found.context("the manager does not answer")?;
    pinger.ping()?;
    ensure!(child.wait()?.success());
    let gone = pinger.ping();
    println!("{gone:?}");
    ensure!(gone.is_err());
    Ok(())
}
