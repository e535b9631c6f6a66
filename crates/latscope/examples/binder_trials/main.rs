//! Trials of the binder driver, one for each word: what the tests in the VM
//! (`cargo xtask vm test binder`) run where there is a driver. Each prints what
//! it found, and fails if it is not what must be.
//!
//! ```text
//! cargo xtask vm --kernel std --modules binder_linux --programs FILE -- binder_trials echo
//! ```
//!
//! This process opens the endpoint pair and so is the context manager; server and
//! client are processes of their own.
#![forbid(unsafe_code)]

mod clients;
mod driver;
mod faults;
mod holders;
mod priority;
mod services;
mod stage;

use anyhow::{Context, Result, bail};

/// A word, and what it tries.
type Trial = (&'static str, fn() -> Result<()>);

const TRIALS: &[Trial] = &[
    ("echo", stage::echo),
    ("one-way", stage::one_way),
    ("pairs", stage::pairs),
    ("threads", stage::threads),
    ("steady-binder", stage::steady_binder),
    ("steady-hwbinder", stage::steady_hwbinder),
    ("system-calls", stage::system_calls),
    ("references", stage::references),
    ("storm", faults::storm),
    ("server-killed", faults::server_killed),
    ("client-killed", faults::client_killed),
    ("server-died-early", faults::server_died_early),
    ("frozen", faults::frozen),
    ("queue-full", faults::queue_full),
    ("too-long", faults::too_long),
    ("exhausted", driver::exhausted),
    ("over-the-buffer", driver::over_the_buffer),
    ("protocol", driver::protocol),
    ("taken", holders::taken),
    ("other-user", holders::other_user),
    ("no-memory", holders::no_memory),
    ("service", holders::service),
    ("inheritance", priority::inheritance),
];

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["__server", transport, kind, payload, ref handle @ ..] => {
            services::main(transport, kind, payload.parse()?, handle)
        }
        ["__client", transport, kind, payload, ref handle @ ..] => {
            clients::main(transport, kind, payload.parse()?, handle)
        }
        ["__raw", kind] => driver::main(kind),
        ["__claim", path] => holders::claim(path),
        [word] => {
            let trial = TRIALS.iter().find(|(name, _)| *name == word);
            let (_, run) = trial.with_context(|| format!("no trial {word}"))?;
            run()?;
            println!("done: {word}");
            Ok(())
        }
        _ => bail!("one of: {}", TRIALS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")),
    }
}
