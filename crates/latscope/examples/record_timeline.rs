//! Records the time line of something small, as root, and prints it: how a
//! trace instance is used, and how the traces in
//! `crates/latscope-core/tests/traces` were made.
//!
//! ```text
//! cargo run --example record_timeline -- create|handover|pool [FILE[.json]]
//! ```
#![forbid(unsafe_code)]

use anyhow::{Context, bail};
use latscope::conditions::trace::{Instance, Marker};
use latscope_core::timeline::{Timeline, chrome_json, ftrace_text, text};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().context("what: create, handover or pool")?;
    let activity = match what.as_str() {
        "create" => create,
        "handover" => handover,
        "pool" => pool,
        other => bail!("{other}: is none of create, handover, pool"),
    };
    let mut instance = Instance::create(&mut |_| Ok(()))?;
    let marker = Marker::open(&instance.marker())?;
    // On one CPU what happens is nearly the same each time.
    latscope_sys::sched::pin(&[0])?;
    instance.follow(std::process::id())?;
    instance.start()?;
    marker.begin(&what);
    activity(&marker);
    marker.end();
    let recording = instance.take()?;
    let timeline = Timeline::of(&recording);
    print!("{}", text(&timeline));
    if let Some(file) = arguments.next() {
        let content = match file.ends_with(".json") {
            true => chrome_json(&[(&recording, &timeline)]),
            false => ftrace_text(&[(&recording, &timeline)]),
        };
        std::fs::write(&file, content)?;
        std::fs::write(file + ".recording", recording.text)?;
    }
    Ok(())
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new().name(name.to_owned()).spawn(body).expect("a thread can be created")
}

/// Two threads, one after the other: created, ended, joined.
fn create(marker: &Marker) {
    for _ in 0..2 {
        marker.begin("create");
        let thread = spawn("created", || {});
        marker.end();
        marker.begin("join");
        thread.join().expect("it does not panic");
        marker.end();
    }
}

#[derive(Default)]
struct Semaphore {
    count: Mutex<u32>,
    raised: Condvar,
}

impl Semaphore {
    fn post(&self) {
        *self.count.lock().expect("nobody panics") += 1;
        self.raised.notify_one();
    }

    fn wait(&self) {
        let count = self.count.lock().expect("nobody panics");
        *self.raised.wait_while(count, |count| *count == 0).expect("nobody panics") -= 1;
    }
}

/// Two threads that wake each other by turns.
fn handover(marker: &Marker) {
    let pair = Arc::new((Semaphore::default(), Semaphore::default()));
    let other = Arc::clone(&pair);
    let echo = spawn("echo", move || {
        for _ in 0..4 {
            other.0.wait();
            other.1.post();
        }
    });
    for _ in 0..4 {
        marker.begin("round trip");
        pair.0.post();
        pair.1.wait();
        marker.end();
    }
    echo.join().expect("it does not panic");
}

/// More busy threads than CPUs.
fn pool(_: &Marker) {
    let busy = |index: usize| {
        spawn(&format!("busy-{index}"), || {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(15) {
                std::hint::spin_loop();
            }
        })
    };
    let threads: Vec<_> = (0..3).map(busy).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
}
