//! Judgements on a report: findings, levels of memory, verdicts on criteria, tails. All are pure functions of results;
//! no other part of latscope judges.
#![forbid(unsafe_code)]

pub mod acceptance;
pub mod binomial;
pub mod causes;
pub mod compare;
pub mod extremes;
pub mod findings;
pub mod gate;
mod halves;
pub mod history;
pub mod imports;
pub mod levels;
pub mod merge;
pub mod patterns;
pub mod references;
pub mod repeatability;
pub mod runs;
mod titles;
pub mod transactions;
pub mod trial;
pub mod verdict;
