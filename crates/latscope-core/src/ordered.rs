//! Pairs of keys and values in the order in which their keys came first.

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
