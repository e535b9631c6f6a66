//! Enums whose values have words.

/// An enum whose values have words: in parameters, in results, and on the command line.
pub trait Word: Copy + PartialEq + 'static {
    /// All values, in the order of definition, in which they are planned.
    const ALL: &'static [Self];
    /// Words of all values, in the order of `ALL`.
    const WORDS: &'static [&'static str];

    /// Returns the word as it stands in results and on the command line.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.word() == word)
    }
}

/// Defines an enum that is a [`Word`](crate::word::Word): its values and their words in one place.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visibility:vis enum $name:ident {
        $($(#[$what:meta])* $value:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $visibility enum $name {
            $($(#[$what])* $value),+
        }

        impl $crate::word::Word for $name {
            const ALL: &'static [$name] = &[$($name::$value),+];
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad($crate::word::Word::word(*self))
            }
        }
    };
}
