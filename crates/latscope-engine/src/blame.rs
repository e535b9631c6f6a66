//! Explains outliers of a step by a trace of its own.

use crate::saver;
use anyhow::Result;
use latscope_core::machine::Machine;
use latscope_core::report::Cause;
use latscope_core::units::CpuList;
use latscope_host::guardian::{Guardian, Ticket, Undo};
use latscope_host::machine::Steal;
use latscope_trace::blame::{Setting, Window, causes};
use latscope_trace::tracefs::Unavailable;
use latscope_trace::tracer::Tracer;
use std::io;
use std::path::{Path, PathBuf};

/// Longest time between two ticks of a busy CPU, ns: no kernel is built with
/// fewer than 100 in a second.
const TICK: u64 = 10_000_000;

/// A trace, and what is known of the machine beside it.
pub struct Blame {
    tracer: Tracer,
    ticket: Ticket,
    virtual_machine: bool,
    /// CPUs whose ticks may stop while a thread runs.
    tickless: CpuList,
    steal: Steal,
}

impl Blame {
    /// Begins to record.
    ///
    /// # Errors
    /// There is no tracing here; the text says what to do.
    pub fn start(machine: &Machine, guardian: &mut Guardian) -> Result<Blame, Unavailable> {
        let mut ticket = None;
        let tracer = Tracer::start(&mut |directory| {
            ticket = Some(guardian.journal(Undo::RemoveInstance(directory.to_owned()))?);
            Ok(())
        })?;
        let ticket = ticket.expect("an instance is journalled before it is made");
        let tickless = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
        Ok(Blame {
            tracer,
            ticket,
            virtual_machine: machine.hypervisor.is_some(),
            // "(null)" where there are none.
            tickless: tickless.trim().parse().unwrap_or_default(),
            steal: Steal::watch(),
        })
    }

    /// Whether it should be called once a second ([`Blame::look`]).
    pub(crate) fn is_watching(&self) -> bool {
        self.virtual_machine
    }

    /// Keeps "recent" recent.
    pub fn look(&mut self) {
        if self.virtual_machine {
            self.steal.look();
        }
    }

    /// The file for a worker to write remarks to.
    pub fn marker(&self) -> PathBuf {
        self.tracer.marker()
    }

    /// The file for a worker to stop the recording with.
    pub fn switch(&self) -> PathBuf {
        self.tracer.switch()
    }

    /// What this kernel cannot trace, in words.
    pub fn shortfalls(&self) -> &[String] {
        self.tracer.shortfalls()
    }

    /// Reads what was recorded up to now.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&mut self) -> io::Result<()> {
        self.tracer.read()
    }

    /// Who took the time of a window, as far as it was read.
    pub fn explain(&self, window: &Window) -> Vec<Cause> {
        let setting = Setting {
            virtual_machine: self.virtual_machine,
            tick: (!self.tickless.0.contains(&window.cpu)).then_some(TICK),
            stolen: if self.virtual_machine { self.steal.recent(window.cpu) } else { 0 },
        };
        causes(&self.tracer.around(window.from, window.until), window, &setting)
    }

    /// Saves what was read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        saver::replace(path, &self.tracer.content(path)?)
    }

    /// Ends the recording and removes the instance.
    ///
    /// # Errors
    /// The guardian is gone.
    pub fn finish(self, guardian: &mut Guardian) -> Result<()> {
        drop(self.tracer);
        guardian.undo(self.ticket)
    }
}
