//! A quantity that is no duration, with its unit and which direction is better.

use serde::{Deserialize, Serialize};

/// A named quantity that is no duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its unit: `%`, `GB/s`, `count`, `cycles`, `ns`, `ratio`, …
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
}

/// Which direction of a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less.
    Less,
    /// More.
    More,
    /// Neither.
    Neither,
}
