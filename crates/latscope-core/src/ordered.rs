//! Items in the order in which they came first, and pairs in that of their keys.

/// Returns the value of a key; a new key comes last, with the default.
///
/// ```
/// # use latscope_core::ordered::entry;
/// let mut counts: Vec<(char, u32)> = Vec::new();
/// "bab".chars().for_each(|letter| *entry(&mut counts, letter) += 1);
/// assert_eq!(counts, [('b', 2), ('a', 1)]);
/// ```
pub fn entry<K: PartialEq, V: Default>(pairs: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = pairs.iter().position(|(known, _)| *known == key).unwrap_or(pairs.len());
    if at == pairs.len() {
        pairs.push((key, V::default()));
    }
    &mut pairs[at].1
}

/// Returns the place of an item among those that are known; a new item comes last.
///
/// ```
/// # use latscope_core::ordered::place;
/// let mut known = vec!["b"];
/// assert_eq!([place(&mut known, "a"), place(&mut known, "b")], [1, 0]);
/// ```
pub fn place<T: PartialEq>(known: &mut Vec<T>, item: T) -> usize {
    let at = known.iter().position(|other| *other == item).unwrap_or(known.len());
    if at == known.len() {
        known.push(item);
    }
    at
}

/// Returns each item once.
///
/// ```
/// # use latscope_core::ordered::once;
/// assert_eq!(once("bab".chars()), ['b', 'a']);
/// ```
pub fn once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for item in items {
        place(&mut known, item);
    }
    known
}
