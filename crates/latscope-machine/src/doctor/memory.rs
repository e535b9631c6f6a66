//! Checks of settings that change the cost of memory: page sizes, swap, pages that move.

use super::{DoctorContext, DoctorFinding, bad, good, note_finding, unknown_finding};
use crate::{snapshot::kibibytes, topology};
use latscope_core::catalogue::Condition;
use latscope_core::units::{format_amount, format_size, format_time};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// Checks transparent huge pages (Documentation/admin-guide/mm/transhuge.rst).
pub(super) fn transparent_huge_pages(context: &DoctorContext) -> DoctorFinding {
    let root = context.root;
    let enabled = format!("{THP}/enabled");
    let Some(mut mode) = root.choice(&enabled) else {
        if root.exists("/sys/kernel/mm") {
            return note_finding(
                "not in this kernel: points with pages=2MiB need reserved huge pages",
                Condition::PageSize,
            );
        }
        return unknown_finding("/sys/kernel/mm cannot be read");
    };
    // Newer kernels have a switch for each page size on top.
    let size: u64 = root.read_number(&format!("{THP}/hpage_pmd_size")).unwrap_or(2 << 20);
    let by_size = format!("{THP}/hugepages-{}kB/enabled", size >> 10);
    let mut file = enabled;
    if let Some(own) = root.choice(&by_size).filter(|own| own != "inherit") {
        mode = own;
        file = by_size;
    }
    let defrag = root.choice(&format!("{THP}/defrag")).unwrap_or_default();
    let found = format!("{mode}, defrag {defrag}");
    if mode == "never" {
        let found = found + ": points with pages=2MiB get small pages unless huge ones are reserved";
        return bad(found, Condition::PageSize).with_remedy(context.command_to_write("madvise", &file));
    }
    match (mode.as_str(), defrag.as_str()) {
        (_, "never") => {
            let found = found + ": huge pages only while unbroken ones are free";
            note_finding(found, Condition::PageSize)
                .with_remedy(context.command_to_write("madvise", &format!("{THP}/defrag")))
        }
        ("always", _) | (_, "always") => {
            let found = found + ": any page fault may wait for memory to be compacted";
            let file = if mode == "always" { file } else { format!("{THP}/defrag") };
            note_finding(found, Condition::UnaskedHugePages)
                .with_remedy(context.command_to_write("madvise", &file))
        }
        _ => good(found),
    }
}

/// Checks reserved huge pages (Documentation/admin-guide/mm/hugetlbpage.rst).
pub(super) fn huge_pages(context: &DoctorContext) -> DoctorFinding {
    let pages = ["HugePages_Total", "HugePages_Free"]
        .map(|name| context.root.field("/proc/meminfo", name)?.parse::<u64>().ok());
    let [Some(total), Some(free)] = pages else {
        return context.missing_knob("/proc/meminfo", "not in this kernel");
    };
    let size = kibibytes(context.root, "Hugepagesize").map(format_size).unwrap_or_default();
    if total > 0 {
        return good(format!("{total} of {size} reserved, {free} free"));
    }
    let transparent = context.root.choice(&format!("{THP}/enabled")).is_some_and(|mode| mode != "never");
    if transparent {
        return good(format!("none of {size} reserved; transparent ones serve"));
    }
    // Enough for the survey's largest buffer.
    let remedy = context.command_to_write("256", "/proc/sys/vm/nr_hugepages");
    note_finding(format!("none of {size} reserved, and no transparent ones"), Condition::PageSize)
        .with_remedy(remedy)
}

pub(super) fn swap(context: &DoctorContext) -> DoctorFinding {
    let [Some(total), Some(free)] = ["SwapTotal", "SwapFree"].map(|name| kibibytes(context.root, name))
    else {
        return context.missing_knob("/proc/meminfo", "not in this kernel");
    };
    let zswap = context.root.read_text("/sys/module/zswap/parameters/enabled").as_deref() == Some("Y");
    let used = total.saturating_sub(free);
    let behind = if zswap { ", compressed in memory first (zswap)" } else { "" };
    match (total, used) {
        (0, _) => good("none"),
        (_, 0) => good(format!("{} there, none of it in use{behind}", format_amount(total))),
        _ => {
            let found = format!("{} of {} in use{behind}", format_amount(used), format_amount(total));
            note_finding(found, Condition::Swap).with_remedy(context.root_command("swapoff -a"))
        }
    }
}

/// Checks `kernel.numa_balancing`: 1 moves pages to their users, 2 between tiers.
pub(super) fn numa_balancing(context: &DoctorContext) -> DoctorFinding {
    let file = "/proc/sys/kernel/numa_balancing";
    let nodes = topology::nodes(context.root).len();
    match context.root.read_number::<u32>(file) {
        None => context.missing_knob("/proc/sys/kernel", "not in this kernel"),
        Some(0) => good("off"),
        Some(_) if nodes < 2 => good("on, but there is one node"),
        Some(_) => {
            let found =
                format!("on, over {nodes} nodes: pages are unmapped and moved while they are measured");
            bad(found, Condition::MovedPages).with_remedy(context.command_to_write("0", file))
        }
    }
}

/// Checks kernel same-page merging (Documentation/admin-guide/mm/ksm.rst).
pub(super) fn same_page_merging(context: &DoctorContext) -> DoctorFinding {
    let file = "/sys/kernel/mm/ksm/run";
    match context.root.read_number::<u32>(file) {
        None => context.missing_knob("/sys/kernel/mm", "not in this kernel"),
        Some(1) => {
            let found = "on: a kernel thread scans memory and drops it from the caches";
            note_finding(found, Condition::MovedPages).with_remedy(context.command_to_write("0", file))
        }
        Some(_) => good("off"),
    }
}

/// Checks data access monitoring (Documentation/admin-guide/mm/damon).
pub(super) fn access_monitoring(context: &DoctorContext) -> DoctorFinding {
    let root = context.root;
    let threads = "/sys/kernel/mm/damon/admin/kdamonds";
    let mut running = Vec::new();
    for (_, path) in root.numbered(threads, "") {
        let file = format!("{path}/state");
        // Only root may read it.
        let Some(state) = root.read_text(&file) else {
            return unknown_finding(format!("{file} cannot be read"));
        };
        if state == "on" {
            running.push(path);
        }
    }
    let modules = ["damon_reclaim", "damon_lru_sort", "damon_stat"]
        .map(|module| format!("/sys/module/{module}/parameters/enabled"));
    let module = modules.into_iter().find(|file| root.read_text(file).as_deref() == Some("Y"));
    let remedy = match (running.first(), &module) {
        (Some(path), _) => context.command_to_write("off", &format!("{path}/state")),
        (None, Some(file)) => context.command_to_write("N", file),
        (None, None) => return context.missing_knob("/sys/kernel/mm", "off"),
    };
    let interval = running.iter().find_map(|path| {
        root.read_number::<u64>(&format!("{path}/contexts/0/monitoring_attrs/intervals/sample_us"))
    });
    let each = interval.map_or_else(String::new, |us| format!(" each {}", format_time(us as f64 * 1e3)));
    let found = format!("a kernel thread marks pages{each} to see which are used (DAMON)");
    note_finding(found, Condition::MovedPages).with_remedy(remedy)
}
