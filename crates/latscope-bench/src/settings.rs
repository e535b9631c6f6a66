//! The parameters of a point as one type: planned, sent to the worker and read there.

use anyhow::{Context, Result, ensure};
use latscope_core::plan::{Params, Point};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The parameters of a point. A struct of numbers and [`words!`](crate::words), whose fields are
/// named as the parameters in results.
pub trait Settings: Serialize + DeserializeOwned {
    /// As they are planned and stand in the result.
    ///
    /// # Panics
    /// A field is neither a number nor a word.
    fn params(&self) -> Params {
        let value = serde_json::to_value(self).expect("numbers and words have a JSON form");
        serde_json::from_value(value).expect("a parameter is a number or a word")
    }

    /// As the worker reads them: what was read is all that was sent.
    ///
    /// # Errors
    /// A parameter is missing, unknown, or has another value than it may have.
    fn read(point: &Point) -> Result<Self> {
        let invalid =
            || format!("the parameters of a point of {} are invalid: {:?}", point.probe, point.params);
        let value = serde_json::to_value(&point.params).with_context(invalid)?;
        let settings: Self = serde_json::from_value(value).with_context(invalid)?;
        ensure!(settings.params() == point.params, invalid());
        Ok(settings)
    }
}

impl<T: Serialize + DeserializeOwned> Settings for T {}

/// A value of a parameter that is one of some words.
pub trait Word: Copy + PartialEq + 'static {
    /// All values, in the order in which they are planned.
    const ALL: &'static [Self];

    /// As it stands in results and on the command line.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.word() == word)
    }
}

/// An enum of the words of a parameter: its values, their words, and how they are serialised,
/// in one place.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visibility:vis enum $name:ident {
        $($(#[$what:meta])* $value:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        $visibility enum $name {
            $($(#[$what])* #[serde(rename = $word)] $value),+
        }

        impl $name {
            /// The words of all values.
            $visibility const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::settings::Word for $name {
            const ALL: &'static [$name] = &[$($name::$value),+];

            fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;
    use serde::Deserialize;

    crate::words! {
        /// An order of accesses.
        enum Order {
            /// One after the other.
            Forward = "forward",
            /// As a permutation has them.
            RandomWalk = "random-walk",
        }
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Walk {
        size: u64,
        order: Order,
        #[serde(skip_serializing_if = "Option::is_none")]
        threads: Option<u64>,
    }

    fn point(params: Params) -> Point {
        Point { probe: "memory.walk".to_owned(), revision: 1, params, title: String::new(), row: false }
    }

    #[test]
    fn what_is_planned_is_read() {
        let walk = Walk { size: 4096, order: Order::RandomWalk, threads: None };
        assert_eq!(walk.params(), params([("size", 4096.into()), ("order", "random-walk".into())]));
        assert_eq!(Walk::read(&point(walk.params())).unwrap(), walk);
        assert_eq!(Order::WORDS, ["forward", "random-walk"]);
        assert_eq!((Order::named("forward"), Order::named("back")), (Some(Order::Forward), None));
    }

    #[test]
    fn what_is_missing_unknown_or_of_another_kind_is_an_error() {
        for wrong in [
            params([("size", 4096.into())]),
            params([("size", 4096.into()), ("order", "backward".into())]),
            params([("size", "4096".into()), ("order", "forward".into())]),
            params([("size", 4096.into()), ("order", "forward".into()), ("pages", 3.into())]),
        ] {
            let error = Walk::read(&point(wrong)).unwrap_err().to_string();
            assert!(error.starts_with("the parameters of a point of memory.walk are invalid: {"), "{error}");
        }
    }
}
