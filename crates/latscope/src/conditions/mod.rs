//! What has to be true of the machine while a step runs, and how it is undone.

pub mod activity;
pub mod crowd;
pub mod guardian;
pub mod hold;
pub mod kernel_tracer;
pub mod load;
pub mod terminal;
pub mod thief;
pub mod trace;
pub mod tracefs;
pub mod tracer;
