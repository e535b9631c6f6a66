//! What a measuring thread does about an event above the threshold.

use crate::recorder::HistogramSlotWriter;
use latscope_core::report::Exceedance;
use latscope_os::trace_marker::Marker;
use rustix::fd::OwnedFd;
use std::fmt::Arguments;
use std::fs::{File, OpenOptions};
use std::path::Path;

/// Descriptors, opened before, to which a measuring thread writes at an exceedance, and only then.
#[derive(Debug, Default)]
pub struct ExceedanceAlarm {
    /// Descriptor that wakes the coordinator.
    bell: Option<OwnedFd>,
    /// Marker that writes into the trace.
    marker: Option<Marker>,
    /// File that switches the trace off.
    switch: Option<File>,
}

impl ExceedanceAlarm {
    /// Opens the marker of a trace and its switch, where there are such.
    pub fn new(bell: Option<OwnedFd>, marker: Option<&Path>, switch: Option<&Path>) -> ExceedanceAlarm {
        ExceedanceAlarm {
            bell,
            marker: marker.and_then(|path| Marker::open(path).ok()),
            switch: switch.and_then(|path| OpenOptions::new().write(true).open(path).ok()),
        }
    }

    /// Marks the event in the trace, ends the trace if the event `stops` the run, and calls the coordinator.
    #[cold]
    pub fn raise(&self, writer: &HistogramSlotWriter, sample: Exceedance, stops: bool, remark: Arguments) {
        if let Some(marker) = &self.marker {
            marker.write_note(remark);
        }
        if let Some(switch) = self.switch.as_ref().filter(|_| stops) {
            let _ = rustix::io::write(switch, b"0");
        }
        self.notify_coordinator(writer, sample);
    }

    /// Notes the event for the coordinator, and calls it.
    pub fn notify_coordinator(&self, writer: &HistogramSlotWriter, sample: Exceedance) {
        writer.exceed(sample);
        if let Some(bell) = &self.bell {
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }
}
