//! Records what each thread of the workers did, step by step, into one file.

use crate::saver::Draft;
use anyhow::{Context, Result};
use latscope_bench::bench::signpost;
use latscope_core::report::Measurement;
use latscope_process::guardian::{Guardian, Ticket, UndoAction};
use latscope_process::leftover::Leftover;
use latscope_trace::instance::ThreadTraceInstance;
use latscope_trace::timeline::{self, Export, Timeline, TimelineFileFormat};
use latscope_trace::tracefs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The warning that a time line is not complete.
pub(crate) const LOST: &str = "timeline-lost";

/// Mounts tracefs for this process and those that it starts, if it is not mounted: see [`tracefs::provide`].
pub fn provide_tracefs() {
    tracefs::provide();
}

/// A trace instance of our own and the file that grows with each step.
pub(crate) struct Recorder {
    trace: ThreadTraceInstance,
    tickets: Vec<Ticket>,
    export: Export,
    draft: Draft,
    path: PathBuf,
}

impl Recorder {
    /// Makes the instance and the file.
    ///
    /// # Errors
    /// There is no tracing here (the text says what to do), or the file
    /// cannot be made.
    pub fn prepare_recording(path: &Path, guardian: &Guardian) -> Result<Recorder> {
        let mut tickets = Vec::new();
        let trace = ThreadTraceInstance::create_with_journal(&mut |directory| {
            tickets.push(guardian.journal(UndoAction::RemoveInstance(directory.to_owned()))?);
            Ok(())
        })
        .context("no time line can be recorded")?;
        let mut draft = Draft::create_draft(path)?;
        if let Some(unfinished) = draft.unfinished() {
            tickets.push(guardian.journal(UndoAction::Remove(Leftover::File(unfinished)))?);
        }
        let export = Export::new(TimelineFileFormat::for_path(path));
        let cannot = || format!("cannot write {}", path.display());
        draft.write_all(export.file_header().as_bytes()).with_context(cannot)?;
        Ok(Recorder { trace, tickets, export, draft, path: path.to_owned() })
    }

    /// Path that a worker writes its signposts to.
    pub fn marker_path(&self) -> PathBuf {
        self.trace.marker_path()
    }

    /// Records from here on what process `pid` does, and its children.
    ///
    /// # Errors
    /// The process is gone, or the kernel refuses.
    pub fn follow_process(&mut self, pid: u32) -> Result<()> {
        self.trace.follow_process(pid)?;
        Ok(self.trace.start_recording()?)
    }

    /// Ends the recording of a step and writes it.
    ///
    /// # Errors
    /// The trace cannot be read, or the file not written.
    pub fn write_step(&mut self) -> Result<Timeline> {
        let recording = self.trace.take_recording()?;
        let timeline = Timeline::from_recording(&recording);
        let text = self.export.format_step(&recording, &timeline);
        self.draft
            .write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(timeline)
    }

    /// Ends the file and removes the instance.
    ///
    /// # Errors
    /// The file cannot be written, or the guardian is gone.
    pub fn finish_recording(mut self, guardian: &Guardian) -> Result<()> {
        let written = self.draft.write_all(self.export.file_footer().as_bytes());
        drop(self.trace);
        let written = written.with_context(|| format!("cannot write {}", self.path.display()));
        let saved = written.and_then(|()| self.draft.commit_file());
        self.tickets.into_iter().try_for_each(|ticket| guardian.undo(ticket))?;
        saved
    }
}

/// Adds to a measurement what its threads did while it was taken: the share of
/// each state, and switches.
pub(crate) fn add_shares(measurement: &mut Measurement, timeline: &Timeline) {
    let name = signpost(&measurement.probe, &measurement.title);
    if let Some((_, post)) = timeline.signposts().find(|(_, post)| post.name == name) {
        measurement.values.extend(timeline::values(timeline, post.from..post.until));
    }
}
