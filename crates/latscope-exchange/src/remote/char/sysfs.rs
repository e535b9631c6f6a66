//! Information on RPMsg that the kernel gives in sysfs, and writes to it.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The tree: `/sys`, or one of a test.
#[derive(Debug, Clone)]
pub(super) struct Sysfs(pub PathBuf);

/// A channel that a remote announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announced {
    /// Device of the channel: `virtio0.rpc-ping.-1.1024`.
    pub device: String,
    /// Address at the remote.
    pub address: u32,
}

impl Sysfs {
    fn read_text(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(fs::read_to_string(self.0.join(path)).ok()?.trim().to_owned())
    }

    fn write_value(&self, path: impl AsRef<Path>, value: &str) -> Result<()> {
        let path = self.0.join(path);
        fs::write(&path, value).with_context(|| format!("cannot write {value:?} to {}", path.display()))
    }

    fn entries(&self, path: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Returns the channel of this name; if an address is given, the channel with that address.
    pub(super) fn find_channel(&self, name: &str, address: Option<u32>) -> Option<Announced> {
        self.entries("bus/rpmsg/devices").into_iter().find_map(|device| {
            let place = Path::new("bus/rpmsg/devices").join(&device);
            let announced = self.read_text(place.join("name"))?;
            let remote = parse_address(&self.read_text(place.join("dst"))?)?;
            let matches = announced == name && address.is_none_or(|address| address == remote);
            matches.then_some(Announced { device, address: remote })
        })
    }

    /// The devices of endpoints with this name and this address of the remote.
    pub(super) fn endpoints(&self, name: &str, address: u32) -> BTreeSet<String> {
        let endpoints = self.entries("class/rpmsg").into_iter().filter(|endpoint| {
            let place = Path::new("class/rpmsg").join(endpoint);
            let remote = self.read_text(place.join("dst")).and_then(|text| parse_address(&text));
            self.read_text(place.join("name")).as_deref() == Some(name) && remote == Some(address)
        });
        endpoints.collect()
    }

    /// Binds a channel to the driver that makes a device of it.
    ///
    /// # Errors
    /// The channel has another driver, or this driver does not exist.
    pub(super) fn bind(&self, device: &str) -> Result<()> {
        ensure!(
            !self.0.join("bus/rpmsg/devices").join(device).join("driver").exists(),
            "{device} has a driver already: use its device, or --via ioctl"
        );
        self.write_value(override_of(device), DRIVER)?;
        self.write_value(format!("bus/rpmsg/drivers/{DRIVER}/bind"), device)
            .context("is the module rpmsg_char loaded?")
    }

    /// Unbinds a channel from the driver.
    ///
    /// # Errors
    /// The channel no longer exists.
    pub(super) fn unbind(&self, device: &str) -> Result<()> {
        self.write_value(format!("bus/rpmsg/drivers/{DRIVER}/unbind"), device)?;
        self.write_value(override_of(device), "\n")
    }

    /// Starts a remote processor with a firmware of `/lib/firmware`, unless it
    /// runs; whether it was started.
    ///
    /// # Errors
    /// There is no such processor, or it does not start.
    pub(super) fn start_processor(&self, processor: &str, firmware: &str) -> Result<bool> {
        let place = format!("class/remoteproc/remoteproc{processor}");
        let state = self.read_text(format!("{place}/state"));
        let state =
            state.with_context(|| format!("there is no remote processor {processor} (/sys/{place})"))?;
        if state == "running" || state == "attached" {
            let loaded = self.read_text(format!("{place}/firmware")).unwrap_or_default();
            ensure!(
                firmware.is_empty() || firmware == loaded,
                "remote processor {processor} runs {loaded:?} already: stop it first"
            );
            return Ok(false);
        }
        if !firmware.is_empty() {
            self.write_value(format!("{place}/firmware"), firmware)?;
        }
        self.write_value(format!("{place}/state"), "start").map(|()| true)
    }

    /// Stops a remote processor.
    ///
    /// # Errors
    /// The processor does not stop.
    pub(super) fn stop_processor(&self, processor: &str) -> Result<()> {
        self.write_value(format!("class/remoteproc/remoteproc{processor}/state"), "stop")
    }

    /// Returns true if an endpoint's device still exists.
    pub(super) fn has_endpoint(&self, endpoint: &str) -> bool {
        !matches!(fs::symlink_metadata(self.0.join("class/rpmsg").join(endpoint)), Err(error) if error.kind() == ErrorKind::NotFound)
    }
}

const DRIVER: &str = "rpmsg_chrdev";

fn override_of(device: &str) -> String {
    format!("bus/rpmsg/devices/{device}/driver_override")
}

/// An address as sysfs shows it: any is -1 there. Also as a user writes it: 0x400.
pub(super) fn parse_address(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse::<u32>().ok().or_else(|| text.parse::<i32>().ok().map(|number| number as u32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a tree that Linux 6.1 shows for a remote with three announced channels, of which one has a device.
    fn tree() -> (tempfile::TempDir, Sysfs) {
        let place = tempfile::tempdir().unwrap();
        let files = [
            ("bus/rpmsg/devices/virtio0.rpc-ping.-1.1024/name", "rpc-ping\n"),
            ("bus/rpmsg/devices/virtio0.rpc-ping.-1.1024/dst", "0x400\n"),
            ("bus/rpmsg/devices/virtio0.rpc-ping.-1.1024/driver_override", "(null)\n"),
            ("bus/rpmsg/devices/virtio0.rpmsg-raw.-1.1029/name", "rpmsg-raw\n"),
            ("bus/rpmsg/devices/virtio0.rpmsg-raw.-1.1029/dst", "0x405\n"),
            ("bus/rpmsg/devices/virtio0.rpmsg-raw.-1.1029/driver/module", ""),
            ("bus/rpmsg/devices/virtio0.rpmsg_ctrl.0.0/name", "rpmsg_ctrl\n"),
            ("bus/rpmsg/devices/virtio0.rpmsg_ctrl.0.0/dst", "0x0\n"),
            ("bus/rpmsg/drivers/rpmsg_chrdev/bind", ""),
            ("bus/rpmsg/drivers/rpmsg_chrdev/unbind", ""),
            ("class/rpmsg/rpmsg0/name", "rpmsg-raw\n"),
            ("class/rpmsg/rpmsg0/dst", "1029\n"),
            ("class/rpmsg/rpmsg_ctrl0/dev", "250:0\n"),
            ("class/remoteproc/remoteproc0/state", "offline\n"),
            ("class/remoteproc/remoteproc0/firmware", "old.elf\n"),
        ];
        for (path, text) in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let sysfs = Sysfs(place.path().to_owned());
        (place, sysfs)
    }

    #[test]
    fn a_channel_is_found_by_name_and_by_address() {
        let (_place, sysfs) = tree();
        let found = Announced { device: "virtio0.rpc-ping.-1.1024".into(), address: 1024 };
        assert_eq!(sysfs.find_channel("rpc-ping", None), Some(found.clone()));
        assert_eq!(sysfs.find_channel("rpc-ping", Some(1024)), Some(found));
        assert_eq!(sysfs.find_channel("rpc-ping", Some(7)), None);
        assert_eq!(sysfs.find_channel("pty-ping", None), None);
    }

    #[test]
    fn an_endpoint_is_found_by_both_and_not_by_its_number() {
        let (_place, sysfs) = tree();
        assert_eq!(sysfs.endpoints("rpmsg-raw", 1029), BTreeSet::from(["rpmsg0".to_owned()]));
        assert!(
            sysfs.endpoints("rpmsg-raw", 1024).is_empty() && sysfs.endpoints("rpc-ping", 1029).is_empty()
        );
        assert!(sysfs.has_endpoint("rpmsg0") && !sysfs.has_endpoint("rpmsg1"));
    }

    #[test]
    fn a_channel_is_bound_and_unbound() {
        let (_place, sysfs) = tree();
        let device = "virtio0.rpc-ping.-1.1024";
        sysfs.bind(device).unwrap();
        assert_eq!(sysfs.read_text(override_of(device)).as_deref(), Some("rpmsg_chrdev"));
        assert_eq!(sysfs.read_text("bus/rpmsg/drivers/rpmsg_chrdev/bind").as_deref(), Some(device));
        sysfs.unbind(device).unwrap();
        assert_eq!(sysfs.read_text(override_of(device)).as_deref(), Some(""));
        let taken = sysfs.bind("virtio0.rpmsg-raw.-1.1029").unwrap_err();
        assert!(taken.to_string().contains("driver already"), "{taken}");
    }

    #[test]
    fn a_processor_is_started_with_its_firmware_and_one_that_runs_is_left() {
        let (_place, sysfs) = tree();
        assert!(sysfs.start_processor("0", "new.elf").unwrap());
        assert_eq!(sysfs.read_text("class/remoteproc/remoteproc0/firmware").as_deref(), Some("new.elf"));
        assert_eq!(sysfs.read_text("class/remoteproc/remoteproc0/state").as_deref(), Some("start"));
        sysfs.write_value("class/remoteproc/remoteproc0/state", "running\n").unwrap();
        assert!(!sysfs.start_processor("0", "new.elf").unwrap() && !sysfs.start_processor("0", "").unwrap());
        assert!(sysfs.start_processor("0", "other.elf").unwrap_err().to_string().contains("stop it first"));
        sysfs.stop_processor("0").unwrap();
        assert_eq!(sysfs.read_text("class/remoteproc/remoteproc0/state").as_deref(), Some("stop"));
        assert!(sysfs.start_processor("3", "").unwrap_err().to_string().contains("no remote processor 3"));
    }

    #[test]
    fn addresses_are_read_as_sysfs_and_users_write_them() {
        let read = ["1024", "0x400", "-1", "4294967295"].map(parse_address);
        assert_eq!(read, [Some(1024), Some(1024), Some(u32::MAX), Some(u32::MAX)]);
        assert_eq!(["", "rpc-ping", "0x"].map(parse_address), [None; 3]);
    }
}
