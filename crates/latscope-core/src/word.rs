//! Enums whose values have words.

/// A word and its meaning, for a reader of the help.
pub type Meaning = (&'static str, &'static str);

/// An enum whose values have words: in parameters, in results, and on the command line.
pub trait KeywordEnum: Copy + PartialEq + 'static {
    /// All values, in the order of definition, in which they are planned.
    const ALL: &'static [Self];
    /// Words of all values, in the order of `ALL`.
    const WORDS: &'static [&'static str];
    /// Words of all values with the comments of these, in the order of `ALL`.
    const MEANINGS: &'static [Meaning];

    /// Returns the word as it stands in results and on the command line.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.word() == word)
    }
}

/// Defines an enum that is a [`KeywordEnum`]: its values and their words in one place. The comment of a value
/// is its help; a value without one does not compile.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visibility:vis enum $name:ident {
        $($(#[doc = $help:literal])+ $value:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $visibility enum $name {
            $($(#[doc = $help])+ $value),+
        }

        impl $crate::word::KeywordEnum for $name {
            const ALL: &'static [$name] = &[$($name::$value),+];
            const WORDS: &'static [&'static str] = &[$($word),+];
            const MEANINGS: &'static [$crate::word::Meaning] =
                &[$(($word, concat!($($help),+).trim_ascii_start())),+];

            fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::word::KeywordEnum::word(*self))
            }
        }
    };
}
