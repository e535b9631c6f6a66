//! Tests of the built command, end to end, as scripts and users see it.
//!
//! No test here judges a time. Tests that need root print `SKIPPED` on stdout without root.
#![forbid(unsafe_code)]

mod account;
mod bad_input;
mod bad_machines;
mod binder_tests;
mod blame;
mod compare;
mod container;
mod exit_codes;
mod full_disk;
mod gate;
mod generated;
mod history;
mod hostile;
mod hostile_texts;
mod import;
mod ipc;
mod judged;
mod live;
mod many_cpus;
mod merge;
mod moved;
mod older_tools;
mod openmetrics;
mod packed;
mod page;
mod planted;
mod process;
#[path = "../programs/mod.rs"]
mod programs;
mod record;
mod redact;
mod refused_calls;
mod remote;
mod remote_ivshmem;
mod remote_openamp;
mod remote_tty;
mod result;
#[path = "../schema/mod.rs"]
mod schema;
mod schemas;
mod signals;
#[path = "../skipped/mod.rs"]
mod skipped;
mod support;
mod terminal;
mod trial;
mod turns;
mod views;
mod wake;
