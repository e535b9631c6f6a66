//! Checks for measuring transactions through Android's binder.

use super::{DoctorContext, DoctorFinding, good, note_finding, unknown_finding};
use crate::binder_presence::{self as presence, BinderModuleState, Holder};
use latscope_core::catalogue::Condition;

const STATE: &str = "/sys/kernel/debug/binder/state";

/// Checks the driver, its devices and binderfs.
pub(super) fn driver(context: &DoctorContext) -> DoctorFinding {
    if !context.root.exists("/proc/filesystems") && !context.root.exists("/proc/modules") {
        return unknown_finding("/proc cannot be read");
    }
    let root = context.root.path("/");
    let (module, devices) = (presence::module(&root), presence::devices(&root));
    let driver = match module {
        BinderModuleState::Loaded => "the module is loaded",
        BinderModuleState::BuiltIn => "part of the kernel",
        BinderModuleState::Loadable => "the module is not loaded",
        BinderModuleState::Absent => {
            return note_finding(
                "not in this kernel: binder and hwbinder cannot be measured",
                Condition::Transports,
            );
        }
    };
    let file_system = if presence::binderfs(&root) { "binderfs" } else { "no binderfs" };
    if devices.is_empty() && !presence::binderfs(&root) {
        let found = format!("{driver}, {file_system}, no devices");
        return note_finding(found, Condition::Transports)
            .with_remedy(context.root_command(&strip_sudo(&module.remedy())));
    }
    let devices = if devices.is_empty() { "no devices".to_owned() } else { devices.join(", ") };
    good(format!("{driver}, {file_system}, {devices}"))
}

/// The command without the `sudo` that [`DoctorContext::command`] adds if necessary.
fn strip_sudo(remedy: &str) -> String {
    remedy.trim_start_matches("sudo ").to_owned()
}

/// Checks the context managers of the devices: latscope needs a device without one, or a binderfs to make its own
/// device in.
pub(super) fn context_manager(context: &DoctorContext) -> DoctorFinding {
    let root = context.root.path("/");
    let devices = presence::devices(&root);
    if devices.is_empty() {
        return context.missing_knob("/dev", "no binder device");
    }
    let held: Vec<(String, Holder)> = devices
        .iter()
        .map(|device| (device.clone(), presence::manager_of(&root, device)))
        .filter(|(_, holder)| *holder != Holder::Unknown)
        .collect();
    if held.is_empty() {
        if context.root.exists(STATE) {
            return good("every binder device is free");
        }
        return unknown_finding(format!("{STATE} does not exist, or only root may read it"));
    }
    let words: Vec<String> = held.iter().map(|(device, holder)| format!("{device}: {holder}")).collect();
    let found = words.join("; ");
    if held.len() < devices.len() || presence::binderfs(&root) {
        return good(format!("{found}; latscope takes a device of its own"));
    }
    note_finding(format!("{found}; only what is registered there can be called"), Condition::Transports)
}
