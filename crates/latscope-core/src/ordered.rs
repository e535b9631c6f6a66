//! Items in the order in which they came first, and pairs in that of their keys.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Returns the value of a key; a new key comes last, with the default. It is for few keys: [`group_by_key`] is for
/// many.
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

/// Returns the place of an item among those that are known; a new item comes last. It is for few items.
///
/// ```
/// # use latscope_core::ordered::index_or_push;
/// let mut known = vec!["b"];
/// assert_eq!([index_or_push(&mut known, "a"), index_or_push(&mut known, "b")], [1, 0]);
/// ```
pub fn index_or_push<T: PartialEq>(known: &mut Vec<T>, item: T) -> usize {
    let at = known.iter().position(|other| *other == item).unwrap_or(known.len());
    if at == known.len() {
        known.push(item);
    }
    at
}

/// Returns each item once. Lists of any length take time in proportion to it.
///
/// ```
/// # use latscope_core::ordered::unique_items;
/// assert_eq!(unique_items("bab".chars()), ['b', 'a']);
/// ```
pub fn unique_items<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    items.into_iter().filter(|item| known.insert(item.clone())).collect()
}

/// Returns the values of each key. Lists of any length take time in proportion to it.
///
/// ```
/// # use latscope_core::ordered::group_by_key;
/// assert_eq!(group_by_key([('b', 1), ('a', 2), ('b', 3)]), [('b', vec![1, 3]), ('a', vec![2])]);
/// ```
pub fn group_by_key<K: Clone + Eq + Hash, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut places = HashMap::new();
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        let place = *places.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(value);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::hash::Hasher;

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// Item that counts how often it is compared.
    #[derive(Clone)]
    struct Counted(usize);

    impl PartialEq for Counted {
        fn eq(&self, other: &Counted) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted {}

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    /// Number of comparisons of a function that gets so many different items, each of them twice.
    fn compared(length: usize, function: impl FnOnce(Vec<Counted>)) -> usize {
        let before = COMPARED.get();
        function((0..2 * length).map(|at| Counted(at % length)).collect());
        COMPARED.get() - before
    }

    #[test]
    fn comparisons_grow_with_the_length_of_a_list() {
        for length in [1000, 2000, 4000] {
            let group = |items: Vec<Counted>| drop(group_by_key(items.into_iter().map(|item| (item, ()))));
            let all = [compared(length, |items| drop(unique_items(items))), compared(length, group)];
            assert!(all.iter().all(|count| (length..2 * length).contains(count)), "{length}: {all:?}");
            // A vector without a table is for few keys: it is searched for each item.
            let mut pairs: Vec<(Counted, ())> = Vec::new();
            let few = |items: Vec<Counted>| {
                items.into_iter().for_each(|item| *entry(&mut pairs, Counted(item.0 % 4)) = ());
            };
            assert!(compared(length, few) <= 4 * 2 * length);
        }
    }
}
