//! Counts of allocations, by which tests see how work grows with its input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocator of the system, which counts the calls and bytes of each thread. A test makes it the global one.
#[derive(Debug, Clone, Copy)]
pub struct CountingAllocator;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

fn count_allocation(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    BYTES.set(BYTES.get() + bytes as u64);
}

// SAFETY: each call is passed on to the allocator of the system unchanged. The counts allocate nothing, and have no
// destructor.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_allocation(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the calls and bytes that a function allocates on this thread, where [`CountingAllocator`] is the global one;
/// otherwise zeros.
pub fn measure_allocations<T>(function: impl FnOnce() -> T) -> (u64, u64) {
    let before = (CALLS.get(), BYTES.get());
    drop(function());
    (CALLS.get() - before.0, BYTES.get() - before.1)
}
