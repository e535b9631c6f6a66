//! Output printed while the threads run.

use super::options::CyclictestOptions;
use super::places::{CyclictestStatusFile, Fifo};
use super::samples::CyclictestSamples;
use super::smi::Smi;
use super::status::{self, Fixed};
use crate::rt::row::RtThreadRow;
use latscope_engine::observers::{Observer, RunEvent};
use latscope_os::sched;
use latscope_process::stderr::Stderr;
use std::io::Write;
use std::time::{Duration, Instant};

/// Signal that asks for the status on stderr.
const SIGUSR1: i32 = 10;
/// Signal that asks for the status in shared memory.
const SIGUSR2: i32 = 12;

/// Interval between two frames. cyclictest draws a hundred frames a second.
const FRAME: Duration = Duration::from_millis(100);

/// Interval of snapshots if nothing is drawn: then only signals ask for figures.
const SELDOM: Duration = Duration::from_secs(3600);

/// Observer that draws frames, prints samples and answers signals.
pub struct CyclictestScreen<'a, W> {
    options: &'a CyclictestOptions,
    fixed: &'a [Fixed],
    out: W,
    /// CPUs of the thread that prints; taken when it has moved there.
    main: Option<Vec<u32>>,
    fifo: Option<Fifo>,
    board: Option<CyclictestStatusFile>,
    smi: Option<Smi>,
    /// Figures of the threads so far.
    pub rows: Vec<RtThreadRow>,
    /// Samples of the threads so far.
    pub samples: CyclictestSamples,
    asked: Vec<i32>,
    drawn: Option<Instant>,
    maxima: Vec<u64>,
    gone: bool,
}

/// Outputs and settings of a screen beside the standard streams.
#[derive(Default)]
pub struct CyclictestOutputs {
    /// CPUs of the thread that prints.
    pub main: Option<Vec<u32>>,
    /// FIFO that `-F` asks for.
    pub fifo: Option<Fifo>,
    /// Board that SIGUSR2 writes to.
    pub board: Option<CyclictestStatusFile>,
    /// Interrupt counters that `--smi` asks for.
    pub smi: Option<Smi>,
}

impl<'a, W: Write> CyclictestScreen<'a, W> {
    /// Returns a screen for these threads.
    pub fn new(
        options: &'a CyclictestOptions,
        fixed: &'a [Fixed],
        places: CyclictestOutputs,
        out: W,
    ) -> CyclictestScreen<'a, W> {
        let CyclictestOutputs { main, fifo, board, smi } = places;
        CyclictestScreen {
            options,
            fixed,
            out,
            main,
            fifo,
            board,
            smi,
            rows: vec![RtThreadRow::default(); fixed.len()],
            samples: CyclictestSamples::new(options, fixed.len()),
            asked: Vec::new(),
            drawn: None,
            maxima: Vec::new(),
            gone: false,
        }
    }

    /// Returns true if frames are drawn at all.
    fn draws(&self) -> bool {
        !self.options.common.quiet && !self.options.verbose
    }

    /// Counts of `--smi`, one for each thread.
    pub fn smi(&self) -> Option<Vec<u64>> {
        self.smi.as_ref().map(Smi::interrupt_counts)
    }

    fn status_lines(&self) -> String {
        status::format_thread_lines(self.options.unit, self.fixed, &self.rows, self.smi().as_deref())
    }

    /// Prints a text. The run ends if the reader of stdout is gone.
    fn print_text(&mut self, text: &str) {
        let printed = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.gone |= printed.is_err();
    }

    fn draw_frame(&mut self) {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let up = if self.drawn.is_some() { status::up(self.fixed.len()) } else { String::new() };
        let frame = up + &status::header(self.options, &load) + &self.status_lines();
        self.print_text(&frame);
        self.drawn = Some(Instant::now());
        self.maxima = self.rows.iter().map(|row| row.max).collect();
    }

    /// Returns true if a frame is due. The last frame always is, except with `-M` if no maximum has grown.
    fn due(&self, last: bool) -> bool {
        let Some(drawn) = self.drawn else { return true };
        let grown = || self.rows.iter().zip(&self.maxima).any(|(row, max)| row.max > *max);
        (last || drawn.elapsed() >= FRAME) && (!self.options.refresh_on_max || grown())
    }

    /// Draws the last frame.
    pub fn draw_last_frame(&mut self) {
        if !self.draws() {
            return;
        }
        if self.due(true) {
            self.draw_frame();
        }
        if self.options.refresh_on_max {
            let threads = self.fixed.len();
            self.print_text(&(status::up(threads) + &status::down(threads)));
        }
    }

    fn answer_signals(&mut self) {
        for signal in std::mem::take(&mut self.asked) {
            let text = status::frame_status(&self.status_lines());
            match (signal, &self.board) {
                (SIGUSR2, Some(board)) => board.write_status(&text),
                (SIGUSR2, None) => {}
                _ => {
                    let _ = Stderr.write_all(text.as_bytes());
                }
            }
        }
    }

    fn snapshot(&mut self) {
        // The coordinator has chosen its place by now; this is asked for.
        if let Some(cpus) = self.main.take() {
            let _ = sched::pin(&cpus);
        }
        self.answer_signals();
        let lines = self.fifo.is_some().then(|| self.status_lines());
        if let (Some(fifo), Some(lines)) = (&mut self.fifo, lines) {
            fifo.write_to_reader(&lines);
        }
        if self.draws() && self.due(false) {
            self.draw_frame();
        }
    }
}

impl<W: Write> Observer for CyclictestScreen<'_, W> {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Snapshot(live) => {
                self.rows =
                    live.points.iter().take(self.fixed.len()).map(RtThreadRow::from_snapshot).collect();
                self.snapshot();
            }
            RunEvent::Samples { point, samples, lost } => {
                let lines = self.samples.process_samples(*point, samples, *lost);
                if !lines.is_empty() {
                    self.print_text(&lines);
                }
            }
            RunEvent::Signal(signal) => self.asked.push(*signal),
            _ => {}
        }
    }

    fn period(&self) -> Option<Duration> {
        let streams = self.options.verbose || self.options.spike.is_some();
        Some(if self.draws() || streams || self.fifo.is_some() { FRAME } else { SELDOM })
    }

    fn signals(&self) -> &[i32] {
        &[SIGUSR1, SIGUSR2]
    }

    fn wants_end(&self) -> Option<&'static str> {
        self.gone.then_some("stdout cannot be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::options::RtTestsCommonOptions;
    use latscope_bench::recorder::{HistogramSlotLayout, Slots};
    use latscope_core::plan::PlanStep;
    use latscope_core::report::Sampling;
    use latscope_engine::observers::{StepRound, StepSnapshot};

    fn step(threads: usize) -> PlanStep {
        let options = CyclictestOptions { threads: Some(threads as u64), ..CyclictestOptions::default() };
        super::super::setup::step_setup(&options, &Default::default()).unwrap().plan_step()
    }

    /// Frames of a screen that sees these values, with one value for each snapshot.
    fn shown(options: &CyclictestOptions, values: &[u64]) -> String {
        let step = step(1);
        let layout = HistogramSlotLayout::of_step(&step);
        let slots = Slots::map_memfd(Slots::create_memfd(&layout).unwrap(), layout).unwrap();
        let mut writer = slots.writer(0, Sampling::Event);
        let fixed = [Fixed { priority: 5, interval: 1000, cpu: None }];
        let mut out = Vec::new();
        let mut screen = CyclictestScreen::new(options, &fixed, CyclictestOutputs::default(), &mut out);
        for value in values {
            writer.record_value(*value, 0);
            let round = StepRound::of(&step, 0);
            let live = StepSnapshot { step: &step, points: vec![slots.snapshot(0)], round, began: 0, at: 0 };
            screen.drawn = screen.drawn.map(|drawn| drawn - FRAME);
            screen.observe(&RunEvent::Snapshot(&live));
        }
        screen.draw_last_frame();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_frame_goes_up_to_the_one_before_and_the_last_is_final() {
        let text = shown(&CyclictestOptions::default(), &[7000, 9000]);
        let frames: Vec<&str> = text.split("\x1b[3A").collect();
        assert_eq!(frames.len(), 3);
        assert!(frames.iter().all(|frame| frame.starts_with("policy: other/other: loadavg: ")), "{text}");
        assert!(frames[2].ends_with("C:      2 Min:      7 Act:    9 Avg:    8 Max:       9\n"), "{text}");
    }

    #[test]
    fn with_refresh_on_max_only_a_new_maximum_is_drawn() {
        let options = CyclictestOptions { refresh_on_max: true, ..CyclictestOptions::default() };
        let text = shown(&options, &[7000, 6000, 5000, 9000, 1]);
        assert_eq!(text.matches("policy:").count(), 2);
        assert!(text.ends_with("Max:       9\n\x1b[3A\x1b[3B"), "{text:?}");
    }

    #[test]
    fn the_quiet_draw_nothing_and_sleep() {
        let options = CyclictestOptions {
            common: RtTestsCommonOptions { quiet: true, ..RtTestsCommonOptions::default() },
            ..CyclictestOptions::default()
        };
        assert_eq!(shown(&options, &[7000]), "");
        let screen = CyclictestScreen::new(&options, &[], CyclictestOutputs::default(), Vec::new());
        assert_eq!(screen.period(), Some(SELDOM));
        let spike = CyclictestOptions { spike: Some(1), ..options.clone() };
        assert_eq!(
            CyclictestScreen::new(&spike, &[], CyclictestOutputs::default(), Vec::new()).period(),
            Some(FRAME)
        );
    }

    #[test]
    fn a_reader_that_went_away_ends_the_run() {
        use std::io;
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let options = CyclictestOptions::default();
        let mut screen = CyclictestScreen::new(&options, &[], CyclictestOutputs::default(), Gone);
        assert_eq!(screen.wants_end(), None);
        screen.draw_last_frame();
        assert!(screen.wants_end().is_some());
    }

    #[test]
    fn the_status_goes_to_the_board_when_it_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let options = CyclictestOptions {
            common: RtTestsCommonOptions { quiet: true, ..RtTestsCommonOptions::default() },
            ..CyclictestOptions::default()
        };
        let fixed = [Fixed { priority: 5, interval: 1000, cpu: None }];
        let places = CyclictestOutputs {
            board: CyclictestStatusFile::create(CyclictestStatusFile::path(directory.path())).ok(),
            ..CyclictestOutputs::default()
        };
        let mut screen = CyclictestScreen::new(&options, &fixed, places, Vec::new());
        screen.observe(&RunEvent::Signal(SIGUSR2));
        screen.snapshot();
        let file = directory.path().join(format!("cyclictest{}", std::process::id()));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            text.starts_with("#---------------------------\n# cyclictest current status:\nT: 0 ("),
            "{text}"
        );
    }
}
