//! A trace instance for explaining late wake-ups: it records the scheduler and
//! the interrupts of all CPUs into the kernel's own buffers, which are read only
//! when there is something to explain.

use super::tracefs::{Instance, Unavailable, named};
use crate::events::{self, Catalogue, Decoder, Event, Kind, Name, page_length};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel's buffer of a CPU, KiB: some 50 000 events. When it is full the
/// newest events replace the oldest.
const BUFFER_KIB: usize = 2048;

/// Memory for the buffers of all CPUs together, KiB.
const ALL_BUFFERS_KIB: usize = 64 * 1024;

/// Events kept in memory, of all CPUs together and of one.
const ALL_EVENTS: usize = 160 * 1024;
const EVENTS: usize = 48 * 1024;

/// Without these nothing can be explained.
const NEEDED: [&str; 4] =
    ["sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup", "sched/sched_wakeup_new"];

/// What will be missing where a kernel lacks the events behind it.
const WANTED: [(&str, &[&str]); 5] = [
    ("interrupts of devices are not seen", &["irq/irq_handler_entry", "irq/irq_handler_exit"]),
    ("soft interrupts are not seen", &["irq/softirq_entry", "irq/softirq_exit"]),
    ("expiries of timers are not seen", &["timer/hrtimer_expire_entry", "timer/hrtimer_expire_exit"]),
    ("sleep states of the CPU are not seen", &["power/cpu_idle"]),
    ("non-maskable interrupts are not seen", &["nmi/nmi_handler"]),
];

/// Only where binder is; a kernel without it misses nothing.
const TRANSACTIONS: [&str; 4] = [
    "binder/binder_transaction",
    "binder/binder_transaction_received",
    "binder/binder_wait_for_work",
    "binder/binder_return",
];

/// The CPU's own interrupts: events by pairs, which ones depends on the kernel.
const VECTORS: &str = "irq_vectors";

const SETTINGS: [(&str, &str); 3] = [("tracing_on", "0"), ("trace_clock", CLOCK), ("options/overwrite", "1")];

/// That of the stamps: `CLOCK_MONOTONIC`.
const CLOCK: &str = "mono";

/// Records what all CPUs do. The instance is removed when dropped.
#[derive(Debug)]
pub struct Tracer {
    /// Closed before the instance is removed, which they keep busy.
    cpus: Vec<Cpu>,
    instance: Instance,
    catalogue: Catalogue,
    decoder: Decoder,
    /// One page as it comes from the kernel.
    page: Vec<u8>,
    shortfalls: Vec<String>,
}

/// What was read of one CPU, the newest.
#[derive(Debug)]
struct Cpu {
    id: u32,
    pipe: OwnedFd,
    events: VecDeque<Event>,
    pages: VecDeque<Box<[u8]>>,
    /// Whether older events were dropped.
    dropped: bool,
    most_events: usize,
    most_pages: usize,
}

impl Tracer {
    /// Makes an instance and begins to record. `journal` is called as by
    /// [`Instance::create`].
    ///
    /// # Errors
    /// As [`Instance::create`], or the kernel lacks the scheduler's events.
    pub fn start(journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>) -> Result<Tracer, Unavailable> {
        if cfg!(target_endian = "big") {
            return Err(Unavailable {
                reason: "traces of big-endian machines are not understood".to_owned(),
                remedy: "use trace-cmd here",
            });
        }
        let instance = Instance::create(journal)?;
        instance.set_all(&SETTINGS)?;
        let kib = instance.set_buffers(ALL_BUFFERS_KIB, BUFFER_KIB)?;
        let (events, shortfalls) = enable(&instance)?;
        let catalogue = catalogue(&instance, &events).map_err(|error| instance.refused(&error))?;
        let page_size = catalogue.page_size().ok_or_else(|| Unavailable {
            reason: format!("{}: a layout of pages that is not understood", instance.directory().display()),
            remedy: "report it, with the file events/header_page",
        })?;
        let cpus = open(&instance, kib * 1024 / page_size).map_err(|error| instance.refused(&error))?;
        instance.set("tracing_on", "1").map_err(|error| instance.refused(&error))?;
        let decoder = Decoder::new(&catalogue);
        Ok(Tracer { cpus, instance, catalogue, decoder, page: vec![0; page_size], shortfalls })
    }

    /// The instance's directory.
    pub fn directory(&self) -> &Path {
        self.instance.directory()
    }

    /// The file for a worker to write remarks to.
    pub fn marker(&self) -> PathBuf {
        self.instance.marker()
    }

    /// The file for a worker to stop the recording with, by a `0`.
    pub fn switch(&self) -> PathBuf {
        self.instance.directory().join("tracing_on")
    }

    /// What this kernel cannot trace, in words.
    pub fn shortfalls(&self) -> &[String] {
        &self.shortfalls
    }

    /// Reads what was recorded since the last time. Does not wait, and keeps
    /// only the newest.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&mut self) -> io::Result<()> {
        for cpu in &mut self.cpus {
            // While it is read more comes: no more than the buffer could hold.
            for _ in 0..2 * cpu.most_pages {
                match rustix::io::read(&cpu.pipe, &mut self.page[..]) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    Ok(length) => cpu.take(&mut self.decoder, &self.catalogue, &self.page[..length]),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(named(self.instance.directory(), &error.into())),
                }
            }
        }
        Ok(())
    }

    /// The events read of all CPUs from an instant to another, in order of time,
    /// with as many before them as it takes to know who was on each CPU.
    pub fn around(&self, from: u64, until: u64) -> Vec<Event> {
        let mut events: Vec<Event> = self.cpus.iter().flat_map(|cpu| cpu.around(from, until)).collect();
        events.sort_by_key(|event| event.at);
        events
    }

    /// What a file of this name is to hold of all that was read and is still in
    /// memory: for trace-cmd if it ends in `.dat`, else ftrace text.
    ///
    /// # Errors
    /// The kernel's layout of pages is not understood.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let names = events::names(self.cpus.iter().flat_map(|cpu| &cpu.events));
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("dat") => self.dat(&names),
            _ => Ok(events::text(&self.around(0, u64::MAX), &names).into_bytes()),
        }
    }

    fn dat(&self, names: &BTreeMap<u32, Name>) -> io::Result<Vec<u8>> {
        let cpus = self.cpus.iter().map(|cpu| cpu.id + 1).max().unwrap_or(0);
        let pages: Vec<Vec<&[u8]>> = (0..cpus).map(|cpu| self.pages(cpu)).collect();
        events::dat(&self.catalogue, CLOCK, names, &pages)
            .ok_or_else(|| io::Error::other("the kernel's layout of pages is not understood"))
    }

    /// The raw pages read of a CPU and still in memory.
    pub fn pages(&self, cpu: u32) -> Vec<&[u8]> {
        let cpu = self.cpus.iter().find(|known| known.id == cpu);
        cpu.map_or(Vec::new(), |cpu| cpu.pages.iter().map(|page| &**page).collect())
    }

    /// What it takes to read the pages.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}

impl Cpu {
    fn take(&mut self, decoder: &mut Decoder, catalogue: &Catalogue, page: &[u8]) {
        let Some(length) = page_length(catalogue, page) else { return };
        let events = &mut self.events;
        decoder.page(self.id, page, |event| events.push_back(event));
        if let Some(surplus) = events.len().checked_sub(self.most_events) {
            events.drain(..surplus);
            self.dropped |= surplus > 0;
        }
        if self.pages.len() == self.most_pages {
            self.pages.pop_front();
        }
        self.pages.push_back(page[..length].into());
    }

    fn around(&self, from: u64, until: u64) -> Vec<Event> {
        let begin = self.events.partition_point(|event| event.at <= from);
        let switch = |event: &Event| matches!(event.kind, Kind::Switch { .. } | Kind::Lost { .. });
        let known = self.events.range(..begin).rposition(switch);
        // The first event behind tells who was there until then.
        let end = self.events.partition_point(|event| event.at <= until) + 1;
        let end = end.clamp(known.unwrap_or(0), self.events.len());
        let mut events: Vec<Event> = self.events.range(known.unwrap_or(0)..end).cloned().collect();
        if let (None, true, Some(oldest)) = (known, self.dropped, self.events.front()) {
            let lost = Kind::Lost { events: None };
            events.insert(0, Event { at: oldest.at, cpu: self.id, thread: oldest.thread, kind: lost });
        }
        events
    }
}

/// Enables all events there are; returns them, and what is missing.
fn enable(instance: &Instance) -> Result<(Vec<String>, Vec<String>), Unavailable> {
    let (mut enabled, mut shortfalls) = (vec!["ftrace/print".to_owned()], Vec::new());
    for event in NEEDED {
        instance.enable(event).map_err(|error| instance.refused(&error))?;
        enabled.push(event.to_owned());
    }
    let mut want = |what: &str, events: &[String]| {
        let there = events.iter().filter(|event| instance.enable(event).is_ok());
        let before = enabled.len();
        enabled.extend(there.cloned());
        if events.is_empty() || enabled.len() - before < events.len() {
            shortfalls.push(what.to_owned());
        }
    };
    for (what, events) in WANTED {
        want(what, &events.iter().map(|event| (*event).to_owned()).collect::<Vec<_>>());
    }
    want("the CPU's own interrupts are not seen", &vectors(instance));
    let there = TRANSACTIONS.into_iter().filter(|event| instance.enable(event).is_ok());
    enabled.extend(there.map(str::to_owned));
    Ok((enabled, shortfalls))
}

fn vectors(instance: &Instance) -> Vec<String> {
    let directory = instance.directory().join("events").join(VECTORS);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let edges = names.filter(|name| name.ends_with("_entry") || name.ends_with("_exit"));
    edges.map(|name| format!("{VECTORS}/{name}")).collect()
}

fn catalogue(instance: &Instance, events: &[String]) -> io::Result<Catalogue> {
    let format = |event: &String| -> io::Result<(String, String)> {
        let system = event.split('/').next().unwrap_or_default().to_owned();
        Ok((system, instance.get(&format!("events/{event}/format"))?))
    };
    Ok(Catalogue {
        header_page: instance.get("events/header_page")?,
        header_event: instance.get("events/header_event")?,
        events: events.iter().map(format).collect::<io::Result<_>>()?,
    })
}

/// The pipes of raw pages, one for each CPU.
fn open(instance: &Instance, most_pages: usize) -> io::Result<Vec<Cpu>> {
    let directory = instance.directory().join("per_cpu");
    let most_events = (ALL_EVENTS / instance.cpus().max(1)).clamp(1024, EVENTS);
    let mut cpus = Vec::new();
    for entry in fs::read_dir(&directory).map_err(|error| named(&directory, &error))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(id) = name.and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else { continue };
        let pipe = path.join("trace_pipe_raw");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&pipe, flags, Mode::empty());
        cpus.push(Cpu {
            id,
            pipe: opened.map_err(|error| named(&pipe, &error.into()))?,
            events: VecDeque::new(),
            pages: VecDeque::new(),
            dropped: false,
            most_events,
            most_pages: most_pages.max(1),
        });
    }
    cpus.sort_by_key(|cpu| cpu.id);
    Ok(cpus)
}

#[cfg(test)]
mod tests;
