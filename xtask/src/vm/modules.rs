//! Kernel modules to load, and their order.

use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Returns the files to load for these modules, each after those it needs, given the text of `modules.dep` and
/// `modules.builtin` (modules.dep(5)).
///
/// # Errors
/// There is no such module.
pub fn load_order<'a>(separate: &'a str, built_in: &str, names: &[String]) -> Result<Vec<&'a str>> {
    let needs: BTreeMap<&str, &str> = separate.lines().filter_map(|line| line.split_once(':')).collect();
    let mut order = Vec::new();
    for wanted in names.iter().map(|name| name.replace('-', "_")) {
        match needs.keys().find(|file| module_name(file) == wanted) {
            Some(file) => add_after_needs(file, &needs, &mut order),
            None => built_in
                .lines()
                .find(|file| module_name(file) == wanted)
                .map(drop)
                .with_context(|| format!("no module {wanted}"))?,
        }
    }
    Ok(order)
}

/// Adds a module's file behind the files it needs.
fn add_after_needs<'a>(file: &'a str, needs: &BTreeMap<&'a str, &'a str>, order: &mut Vec<&'a str>) {
    for needed in needs.get(file).into_iter().flat_map(|files| files.split_whitespace()) {
        add_after_needs(needed, needs, order);
    }
    if !order.contains(&file) {
        order.push(file);
    }
}

/// Name under which the kernel knows a module's file.
pub fn module_name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or_default();
    file.split('.').next().unwrap_or_default().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATE: &str = "\
kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio-pci.ko.xz: kernel/drivers/virtio/virtio.ko
";

    fn order(names: &[&str]) -> Result<Vec<&'static str>> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        load_order(SEPARATE, "kernel/drivers/char/virtio_console.ko\n", &names)
    }

    #[test]
    fn a_module_comes_once_and_after_those_it_needs() {
        let expected = [
            "kernel/drivers/virtio/virtio_ring.ko",
            "kernel/drivers/virtio/virtio.ko",
            "kernel/drivers/virtio/virtio-pci.ko.xz",
        ];
        assert_eq!(order(&["virtio_pci", "virtio"]).unwrap(), expected);
        assert_eq!(order(&["virtio-pci"]).unwrap(), expected);
    }

    #[test]
    fn what_is_built_in_needs_no_file_and_what_is_nowhere_is_named() {
        assert!(order(&["virtio_console"]).unwrap().is_empty());
        assert_eq!(order(&["binder"]).unwrap_err().to_string(), "no module binder");
    }
}
