//! The pure part of latscope.
#![forbid(unsafe_code)]
