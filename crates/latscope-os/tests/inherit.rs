//! In a process of its own, whose lowest descriptors are free.

use latscope_os::worker::accompany;
use rustix::event::{EventfdFlags, eventfd};
use std::process::Command;

#[test]
fn a_program_that_is_not_there_is_told_whatever_descriptors_are_given() {
    let mut descriptors: Vec<_> = (0..8).map(|_| eventfd(0, EventfdFlags::CLOEXEC).unwrap()).collect();
    // What is given stands behind the places where it is to be, which are free.
    descriptors.drain(..4);
    let given: Vec<_> = descriptors.iter().collect();
    assert!(accompany(Command::new("/nonexistent/program"), &given).is_err());
}
