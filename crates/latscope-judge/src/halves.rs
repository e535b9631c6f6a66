//! Work on many items that two threads share.

/// Results of `work` for all items, in their order. `work` gets the place of the first item and the items. From `least`
/// items on a second thread does half of them.
pub(crate) fn in_halves<T: Sync, R: Send>(
    items: &[T],
    least: usize,
    work: impl Fn(usize, &[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    if items.len() < least {
        return work(0, items);
    }
    let half = items.len() / 2;
    std::thread::scope(|scope| {
        let second = scope.spawn(|| work(half, &items[half..]));
        let mut all = work(0, &items[..half]);
        all.extend(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    })
}
