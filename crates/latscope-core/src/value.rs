//! A quantity that is no duration, with its unit and which direction is better.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named quantity that is no duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredQuantity {
    /// Number in units of `unit`.
    pub value: f64,
    /// Unit of the number: `%`, `GB/s`, `count`, `cycles`, `ns`, `ratio`, …
    pub unit: String,
    /// Direction in which the value is better.
    pub better: Better,
}

/// Direction in which a quantity is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A lower value is better.
    Less,
    /// A higher value is better.
    More,
    /// Neither direction is better.
    Neither,
}
