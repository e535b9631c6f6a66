//! Runs a command in a terminal for some seconds, and writes what its screen shows then as SVG: how the picture of the
//! live screen in the documentation is made.
//!
//! ```text
//! cargo run --example screen_picture -- docs/pictures/live.svg 40 target/release/latscope wake --duration 60s
//! ```
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{self, Winsize};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::num::NonZero;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use vt100::{Color, Screen};

const COLUMNS: u16 = 88;
const ROWS: u16 = 26;

/// Size of a cell, in units of the picture.
const WIDTH: f64 = 8.0;
const HEIGHT: f64 = 17.0;
/// Space around the cells.
const MARGIN: f64 = 12.0;

/// Colours by their numbers in a terminal: the eight usual ones, on a dark ground.
const COLORS: [&str; 8] =
    ["#6b7280", "#f87171", "#86efac", "#fde047", "#93c5fd", "#f0abfc", "#67e8f9", "#e5e7eb"];
const GROUND: &str = "#111827";
const TEXT: &str = "#e5e7eb";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, seconds, command @ ..] = &words[..] else {
        anyhow::bail!("usage: screen_picture FILE.svg SECONDS COMMAND…");
    };
    ensure!(!command.is_empty(), "there is no command to run");
    let seconds: f64 = seconds.parse().context("the seconds are no number")?;
    let (mut master, inside) = terminal()?;
    let mut child = start(command, inside)?;
    let output = output(master.try_clone()?);
    let screen = watch(&output, Duration::from_secs_f64(seconds))?;
    fs::write(file, svg(screen.screen(), &command.join(" ")))?;
    end(&mut master, &mut child)
}

fn terminal() -> Result<(File, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let inside = ioctl_tiocgptpeer(&master, flags)?;
    termios::tcsetwinsize(&master, Winsize { ws_col: COLUMNS, ws_row: ROWS, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((File::from(master), inside))
}

fn start(command: &[String], inside: OwnedFd) -> Result<Child> {
    let mut setsid = Command::new("setsid");
    setsid.arg("--ctty").args(command).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    setsid.stdin(inside.try_clone()?).stdout(inside.try_clone()?).stderr(inside);
    setsid.spawn().context("setsid of util-linux is not there")
}

/// What the terminal writes, part by part, until its last process ends.
fn output(mut master: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = master.read(&mut bytes) {
            if sender.send(bytes[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

fn watch(output: &Receiver<Vec<u8>>, time: Duration) -> Result<vt100::Parser> {
    let some = |size| NonZero::new(size).expect("not 0");
    let mut screen = vt100::Parser::new(some(ROWS), some(COLUMNS), 0);
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        if let Ok(bytes) = output.recv_timeout(left) {
            screen.process(&bytes);
        }
    }
    ensure!(screen.screen().alternate_screen(), "the command shows no screen");
    Ok(screen)
}

/// Types the key that ends a live screen, and waits.
fn end(master: &mut File, child: &mut Child) -> Result<()> {
    master.write_all(b"q")?;
    child.wait()?;
    Ok(())
}

/// A run of cells of the same style.
#[derive(Default)]
struct Part {
    column: u16,
    text: String,
    fill: String,
    bold: bool,
    ground: Option<String>,
}

fn svg(screen: &Screen, command: &str) -> String {
    let (width, height) =
        (f64::from(COLUMNS) * WIDTH + 2.0 * MARGIN, f64::from(ROWS) * HEIGHT + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>The live screen of {}</title>\n<desc>{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n",
        escaped(command),
        escaped(screen.contents().trim_end())
    );
    for row in 0..ROWS {
        for part in parts(screen, row) {
            out += &drawn(&part, row);
        }
    }
    out + "</svg>\n"
}

fn parts(screen: &Screen, row: u16) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents() || cell.inverse()) else {
            continue;
        };
        let (mut fill, mut ground) = (color(cell.fgcolor()), None);
        if cell.inverse() {
            (ground, fill) = (Some(fill), GROUND.to_owned());
        } else if cell.dim() {
            COLORS[0].clone_into(&mut fill);
        }
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match all.last_mut() {
            Some(last) if last.continues(column, &fill, cell.bold(), ground.as_ref()) => last.text += text,
            _ => all.push(Part { column, text: text.to_owned(), fill, bold: cell.bold(), ground }),
        }
    }
    all.retain(|part| part.ground.is_some() || !part.text.trim().is_empty());
    all
}

impl Part {
    fn continues(&self, column: u16, fill: &str, bold: bool, ground: Option<&String>) -> bool {
        let end = usize::from(self.column) + self.text.chars().count();
        end == usize::from(column) && self.fill == fill && self.bold == bold && self.ground.as_ref() == ground
    }
}

fn color(color: Color) -> String {
    match color {
        Color::Idx(number) => COLORS[usize::from(number % 8)].to_owned(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        Color::Default => TEXT.to_owned(),
    }
}

fn drawn(part: &Part, row: u16) -> String {
    let (x, y) = (MARGIN + f64::from(part.column) * WIDTH, MARGIN + f64::from(row) * HEIGHT);
    let width = part.text.chars().count() as f64 * WIDTH;
    let mut out = String::new();
    if let Some(ground) = &part.ground {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{ground}\"/>"
        );
    }
    let weight = if part.bold { " font-weight=\"bold\"" } else { "" };
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{}\" fill=\"{}\"{weight} textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\">{}</text>",
        y + HEIGHT * 0.76,
        part.fill,
        escaped(&part.text)
    );
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
