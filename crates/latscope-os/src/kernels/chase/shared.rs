//! A cycle of pointers through lines that threads on several CPUs write, read and walk: for the latency of lines that
//! another core has.

use super::{ChaseMap, UNROLL, WORD, latscope_kernel_chase};
use crate::page::flush_line;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicUsize, fence};

/// A single cycle through one line of each page, in random order. Beside the pointer a line has a word that may change.
#[derive(Debug)]
pub struct SharedCycle<'a> {
    memory: &'a [AtomicUsize],
    /// Index of the pointer of each line, in the order of a walk.
    pointers: Vec<usize>,
}

impl<'a> SharedCycle<'a> {
    /// Writes a cycle as [`ChaseMap::page_order`] does.
    ///
    /// # Panics
    /// If a line has no room for a second word, or the number of pages is not a multiple of [`UNROLL`].
    pub fn page_order(memory: &'a mut [usize], page_bytes: usize, line: usize, seed: u64) -> Self {
        assert!(line >= 2 * WORD, "a line of {line} bytes has a pointer only");
        let map = ChaseMap::page_order(memory, page_bytes, line, seed);
        let pointers: Vec<usize> = map.offsets().map(|offset| offset / WORD).collect();
        assert!((pointers.len() as u64).is_multiple_of(UNROLL), "{} pages", pointers.len());
        // SAFETY: the memory is borrowed mutably for 'a; an atomic integer has the size, alignment and values of a
        // plain one.
        let memory: &'a [AtomicUsize] = unsafe { &*(std::ptr::from_mut(memory) as *const [AtomicUsize]) };
        // The assembly follows addresses, not references.
        memory.as_ptr().expose_provenance();
        Self { memory, pointers }
    }

    /// Returns the number of lines.
    #[expect(clippy::len_without_is_empty, reason = "a cycle has at least one element")]
    pub fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Writes to each line: the core has them then, and no other does.
    pub fn write_lines(&self) {
        for pointer in &self.pointers {
            let word = &self.memory[pointer + 1];
            word.store(word.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }

    /// Loads a word of each line.
    pub fn read_lines(&self) {
        for pointer in &self.pointers {
            black_box(self.memory[*pointer].load(Relaxed));
        }
    }

    /// Takes each line out of all caches of all CPUs. Returns true if this architecture lets a program do so.
    pub fn flush(&self) -> bool {
        let flushed = self.pointers.iter().all(|pointer| {
            // SAFETY: a word of the memory, which is mapped and readable for as long as this lives.
            unsafe { flush_line(std::ptr::from_ref(&self.memory[*pointer]).cast()) }
        });
        fence(SeqCst);
        flushed
    }

    /// Loads the pointer of each line once, each load from the address that the one before returned.
    pub fn walk_lines(&self) {
        let start = std::ptr::from_ref(&self.memory[self.pointers[0]]).expose_provenance();
        // SAFETY: the cycle is inside of the memory that is borrowed for 'a, and nothing stores to its pointers.
        let reached = unsafe { latscope_kernel_chase(start, self.pointers.len() as u64 / UNROLL) };
        debug_assert_eq!(reached, start, "a walk of all lines ends where it began");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_comes_back_while_another_thread_writes() {
        let mut memory = vec![0; 64 * 512];
        let cycle = SharedCycle::page_order(&mut memory, 4096, 64, 3);
        assert_eq!(cycle.len(), 64);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100).for_each(|_| cycle.write_lines()));
            // In a test it panics where it does not come back.
            (0..100).for_each(|_| cycle.walk_lines());
        });
        cycle.read_lines();
        assert_eq!(cycle.flush(), cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
        cycle.walk_lines();
        let written: usize = cycle.pointers.iter().map(|at| cycle.memory[at + 1].load(Relaxed)).sum();
        assert_eq!(written, 64 * 100);
    }

    #[test]
    #[should_panic(expected = "65 pages")]
    fn a_walk_of_part_of_a_turn_is_refused() {
        SharedCycle::page_order(&mut vec![0; 65 * 512], 4096, 64, 3);
    }
}
