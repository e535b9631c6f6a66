//! Trace instance for explaining late wake-ups. It records the scheduler and the interrupts of all CPUs into
//! the kernel's own buffers, which are read only if there is a late wake-up to explain.

mod buffer;
mod enable;
mod pages;

use super::tracefs::{TraceInstanceError, TracefsInstance, error_with_path};
use crate::events::{self, Decoder, KernelTraceEvent, TraceFormatCatalogue, TraceName};
use crate::symbols::Symbols;
use buffer::TraceBufferStats;
pub use buffer::check_size as check_buffer;
use latscope_core::plan::Traced;
use pages::CpuTracePages;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

const SETTINGS: [(&str, &str); 3] = [("tracing_on", "0"), ("trace_clock", CLOCK), ("options/overwrite", "1")];

/// Clock of the stamps: `CLOCK_MONOTONIC`.
const CLOCK: &str = "mono";

/// Interval at which the rate of events is checked.
const SECOND: Duration = Duration::from_secs(1);

/// Records what all CPUs do. The instance is removed when dropped.
#[derive(Debug)]
pub struct LateWakeTracer {
    /// CPUs with their pipes, which keep the instance busy. They are closed before it is removed.
    cpus: Vec<CpuTracePages>,
    instance: TracefsInstance,
    catalogue: TraceFormatCatalogue,
    decoder: Decoder,
    /// Buffer for one page, as it comes from the kernel.
    page: Vec<u8>,
    shortfalls: Vec<String>,
    symbols: Option<Symbols>,
    sizes: Sizes,
}

/// Size of each CPU's buffer, and the counts that it follows.
#[derive(Debug)]
struct Sizes {
    kib: u64,
    /// True if the rate of events may change the size.
    follows: bool,
    counted: Vec<TraceBufferStats>,
    at: Instant,
}

impl LateWakeTracer {
    /// Makes an instance and begins to record. `journal` is used as by [`TracefsInstance::create_with_journal`].
    ///
    /// # Errors
    /// [`TracefsInstance::create_with_journal`] fails, or the kernel lacks the scheduler's events.
    pub fn start_tracing(
        traced: &Traced,
        journal: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
    ) -> Result<LateWakeTracer, TraceInstanceError> {
        if cfg!(target_endian = "big") {
            return Err(TraceInstanceError {
                reason: "traces of big-endian machines are not understood".to_owned(),
                remedy: "use trace-cmd here",
            });
        }
        let instance = TracefsInstance::create_with_journal(journal)?;
        instance.set_all(&SETTINGS)?;
        let kib = match traced.buffer {
            None => instance.set_buffers(buffer::ALL_KIB, buffer::initial_size_kib())?,
            Some(bytes) => {
                let kib = (bytes / 1024).max(buffer::LEAST_KIB) as usize;
                instance.set_buffers(usize::MAX, kib)?
            }
        };
        let (events, shortfalls) = enable::enable(&instance, traced)?;
        let catalogue =
            enable::catalogue(&instance, &events).map_err(|error| instance.setting_refusal(&error))?;
        let page_size = catalogue.page_size().ok_or_else(|| TraceInstanceError {
            reason: format!("{}: a layout of pages that is not understood", instance.directory().display()),
            remedy: "report it, with the file events/header_page",
        })?;
        let cpus = open_pipes(&instance, kept(kib)).map_err(|error| instance.setting_refusal(&error))?;
        instance.write_file("tracing_on", "1").map_err(|error| instance.setting_refusal(&error))?;
        let decoder = Decoder::new(&catalogue);
        let sizes = Sizes {
            kib: kib as u64,
            follows: traced.buffer.is_none(),
            counted: vec![TraceBufferStats::default(); cpus.len()],
            at: Instant::now(),
        };
        let (page, symbols) = (vec![0; page_size], None);
        Ok(LateWakeTracer { cpus, instance, catalogue, decoder, page, shortfalls, symbols, sizes })
    }

    /// Returns the directory of the instance.
    pub fn directory(&self) -> &Path {
        self.instance.directory()
    }

    /// The file for a worker to write remarks to.
    pub fn marker_path(&self) -> PathBuf {
        self.instance.marker_path()
    }

    /// The file for a worker to stop the recording with, by a `0`.
    pub fn switch_path(&self) -> PathBuf {
        self.instance.directory().join("tracing_on")
    }

    /// Returns descriptions of the activities that this kernel cannot trace.
    pub fn shortfalls(&self) -> &[String] {
        &self.shortfalls
    }

    /// Size of each CPU's buffer, bytes.
    pub fn buffer(&self) -> u64 {
        self.sizes.kib * 1024
    }

    /// Checks the rate of events about once a second, and enlarges the buffers if the events of two seconds do
    /// not fit.
    pub fn adapt_buffers(&mut self) {
        let seconds = self.sizes.at.elapsed();
        if !self.sizes.follows || seconds < SECOND {
            return;
        }
        let counted = buffer::read_stats(self.instance.directory(), self.cpus.iter().map(|cpu| cpu.id));
        let limits = (self.sizes.kib, buffer::available(), self.cpus.len() as u64);
        let wanted = buffer::required_size_kib(&self.sizes.counted, &counted, seconds.as_secs_f64(), limits);
        (self.sizes.counted, self.sizes.at) = (counted, Instant::now());
        if let Some(kib) = wanted {
            buffer::enlarge(self.instance.directory(), kib);
            self.sizes.kib = kib;
            for cpu in &mut self.cpus {
                cpu.most_bytes = kept(kib as usize);
            }
        }
    }

    /// Reads what was recorded since the last time, without waiting, and keeps only the newest pages.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read_recorded(&mut self) -> io::Result<()> {
        // While it is read more comes: no more than the buffer could hold, twice.
        self.read_pages(2 * self.sizes.kib as usize * 1024 / self.page.len())
    }

    /// Ends the recording, so that nothing displaces its end any more, and reads it to the end.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read_last(&mut self) -> io::Result<()> {
        self.instance.write_file("tracing_on", "0")?;
        self.read_pages(usize::MAX)
    }

    /// Reads up to `most` pages of each CPU.
    fn read_pages(&mut self, most: usize) -> io::Result<()> {
        for cpu in &mut self.cpus {
            for _ in 0..most {
                match rustix::io::read(&cpu.pipe, &mut self.page[..]) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    Ok(length) => cpu.store_page(&self.catalogue, &self.page[..length]),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error_with_path(self.instance.directory(), &error.into())),
                }
            }
        }
        Ok(())
    }

    /// Returns the events read of all CPUs from an instant to another, in order of time. Before them are as
    /// many events as needed to know which thread was on each CPU, and what `thread` did last.
    pub fn events_between(&mut self, from: u64, until: u64, thread: Option<u32>) -> Vec<KernelTraceEvent> {
        let (cpus, decoder) = (&self.cpus, &mut self.decoder);
        let each = cpus.iter().map(|cpu| cpu.decode_between(decoder, from, until, thread));
        let mut events: Vec<KernelTraceEvent> = each.flatten().collect();
        events.sort_by_key(|event| event.at);
        events
    }

    /// Returns the names of kernel functions at addresses, as far as the kernel gives them.
    pub fn functions(&mut self, addresses: &[u64]) -> Vec<String> {
        let symbols = self.symbols.get_or_insert_with(Symbols::of_kernel);
        addresses.iter().map(|address| symbols.function_name(*address)).collect()
    }

    /// Returns a text with the names of kernel functions in place of their addresses.
    pub fn resolve(&mut self, text: &str) -> String {
        if !text.contains("0xffff") {
            return text.to_owned();
        }
        self.symbols.get_or_insert_with(Symbols::of_kernel).resolve(text)
    }

    /// Returns the content for a file of this name, from all that was read and is still in memory: for
    /// trace-cmd if the name ends in `.dat`, otherwise ftrace text.
    ///
    /// # Errors
    /// The kernel's layout of pages is not understood.
    pub fn content(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let mut events: Vec<KernelTraceEvent> =
            self.cpus.iter().flat_map(|cpu| cpu.decode_all(&mut self.decoder)).collect();
        events.sort_by_key(|event| event.at);
        let names = events::last_thread_names(&events);
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("dat") => self.dat(&names),
            _ => Ok(self.resolve(&events::format_events(&events, &names)).into_bytes()),
        }
    }

    fn dat(&self, names: &BTreeMap<u32, TraceName>) -> io::Result<Vec<u8>> {
        let cpus = self.cpus.iter().map(|cpu| cpu.id + 1).max().unwrap_or(0);
        let pages: Vec<Vec<&[u8]>> = (0..cpus).map(|cpu| self.pages(cpu)).collect();
        events::dat(&self.catalogue, CLOCK, names, &pages)
            .ok_or_else(|| io::Error::other("the kernel's layout of pages is not understood"))
    }

    /// The raw pages read of a CPU and still in memory.
    pub fn pages(&self, cpu: u32) -> Vec<&[u8]> {
        let cpu = self.cpus.iter().find(|known| known.id == cpu);
        cpu.map_or(Vec::new(), |cpu| cpu.pages().collect())
    }

    /// Returns the kernel's descriptions that are needed to read the pages.
    pub fn catalogue(&self) -> &TraceFormatCatalogue {
        &self.catalogue
    }
}

/// Returns the memory for the pages of a CPU, bytes: pages that arrive while a full buffer is read must not
/// displace its content.
fn kept(kib: usize) -> usize {
    buffer::KEPT as usize * kib * 1024
}

/// The pipes of raw pages, one for each CPU.
fn open_pipes(instance: &TracefsInstance, most_bytes: usize) -> io::Result<Vec<CpuTracePages>> {
    let directory = instance.directory().join("per_cpu");
    let mut cpus = Vec::new();
    for entry in fs::read_dir(&directory).map_err(|error| error_with_path(&directory, &error))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(id) = name.and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else { continue };
        let pipe = path.join("trace_pipe_raw");
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&pipe, flags, Mode::empty());
        cpus.push(CpuTracePages::new(
            id,
            opened.map_err(|error| error_with_path(&pipe, &error.into()))?,
            most_bytes,
        ));
    }
    cpus.sort_by_key(|cpu| cpu.id);
    Ok(cpus)
}

#[cfg(test)]
mod tests;
