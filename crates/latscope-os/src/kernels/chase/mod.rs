//! Chains of pointers through memory, for the latency of loads.
//!
//! A [`ChaseMap`] writes a single cycle of pointers into memory that the caller chose (page size, NUMA node);
//! a walk is then nothing but loads, each from the address that the load before returned. Writing the map
//! touches every page and leaves the caches in a state that depends on the size, so walk once around (or, for a
//! large region, a few milliseconds) before timing.

pub mod growing;
pub mod shared;

use super::random::ShuffleGenerator;

/// A walk is rounded up to a multiple of this many steps.
pub const UNROLL: u64 = 64;

/// The most chains that can be walked at once.
pub const MAX_CHAINS: usize = 32;

/// The most chains that [`Chains::walk_all`] keeps in registers.
///
/// Beyond, each step also takes its cursor from the stack and puts it back. This store and load adds some five
/// cycles to a step, which the other chains hide, but makes each step three operations in place of one: right
/// where the latency is that of L2 or further away; in L1 the count of load ports makes 12 chains enough.
pub const REGISTER_CHAINS: usize = if cfg!(target_arch = "aarch64") { 24 } else { 12 };

const WORD: usize = size_of::<usize>();

/// Loads per chain in one turn of a loop over many chains.
const ROUNDS: u64 = 8;

/// A single cycle of pointers through a region of memory.
///
/// The region is borrowed for as long as the map or one of its cursors lives, so nothing can change the
/// pointers. Align the region to 64 bytes at least (better to pages): an element is a pointer at a multiple of
/// the element size from its start.
#[derive(Clone, Copy, Debug)]
pub struct ChaseMap<'a> {
    memory: &'a [usize],
    start: usize,
    length: usize,
    bytes: usize,
}

/// A place on the cycle of a map.
#[derive(Clone, Copy, Debug)]
pub struct ChaseCursor<'a>(&'a usize);

impl<'a> ChaseMap<'a> {
    /// Writes one pointer in each `line` bytes, in a single random cycle over the whole region (Sattolo's algorithm).
    ///
    /// Shows caches and TLB together.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, or the region is smaller than one line.
    pub fn random(memory: &'a mut [usize], line: usize, seed: u64) -> Self {
        let step = bytes_to_words(line);
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one line of {line} bytes");
        let base = start_address(memory);
        for element in 0..length {
            memory[element * step] = base + element * line;
        }
        let mut random = ShuffleGenerator::new(seed);
        for element in (1..length).rev() {
            let other = random.below(element as u64) as usize;
            memory.swap(element * step, other * step);
        }
        Self::new(memory, 0, length, length * line)
    }

    /// Writes one pointer in each `line` bytes, at random inside each window of `window_bytes`, the windows in random
    /// order. The cycle leaves a window only after all of it was visited, and the whole is a single cycle.
    ///
    /// With windows that the TLB covers (256 KiB are 64 pages), this order shows caches without the TLB.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, when `window_bytes` is not a positive multiple
    /// of `line`, or the region is smaller than one line.
    pub fn window(memory: &'a mut [usize], line: usize, window_bytes: usize, seed: u64) -> Self {
        let step = bytes_to_words(line);
        assert!(
            window_bytes > 0 && window_bytes.is_multiple_of(line),
            "a window of {window_bytes} bytes is not made of lines of {line} bytes"
        );
        let per_window = window_bytes / line;
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one line of {line} bytes");
        let mut random = ShuffleGenerator::new(seed);
        let mut windows: Vec<usize> = (0..length.div_ceil(per_window)).collect();
        random.shuffle(&mut windows);
        let order = windows.into_iter().flat_map(|window| {
            let first = window * per_window;
            let mut inside: Vec<usize> = (first..length.min(first + per_window)).collect();
            random.shuffle(&mut inside);
            inside.into_iter().map(|element| element * step)
        });
        let start = write_cycle(memory, order);
        Self::new(memory, start, length, length * line)
    }

    /// Writes one pointer in each page of `page_bytes`, the pages in random order. From page to page the pointer moves
    /// on by one `line`, so that the sets of the caches are used evenly.
    ///
    /// With few lines in the caches and many pages, this order shows the TLB without the caches.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, when `page_bytes` is not a positive multiple of
    /// `line`, or the region is smaller than one page.
    pub fn page_order(memory: &'a mut [usize], page_bytes: usize, line: usize, seed: u64) -> Self {
        let step = bytes_to_words(line);
        assert!(
            page_bytes > 0 && page_bytes.is_multiple_of(line),
            "a page of {page_bytes} bytes is not made of lines of {line} bytes"
        );
        let (per_page, lines) = (bytes_to_words(page_bytes), page_bytes / line);
        let length = memory.len() / per_page;
        assert!(length > 0, "the region is smaller than one page of {page_bytes} bytes");
        let mut pages: Vec<usize> = (0..length).collect();
        ShuffleGenerator::new(seed).shuffle(&mut pages);
        let start = write_cycle(memory, pages.into_iter().map(|page| page * per_page + page % lines * step));
        Self::new(memory, start, length, length * page_bytes)
    }

    /// Writes one pointer in each `stride_bytes`, to the next pointer, and from the last to the first.
    ///
    /// Prefetchers see through this order: it shows what sequential access costs, not the caches.
    ///
    /// # Panics
    ///
    /// When `stride_bytes` is not a positive multiple of the pointer size, or the region is smaller than one
    /// stride.
    pub fn stride(memory: &'a mut [usize], stride_bytes: usize) -> Self {
        let step = bytes_to_words(stride_bytes);
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one stride of {stride_bytes} bytes");
        let start = write_cycle(memory, (0..length).map(|element| element * step));
        Self::new(memory, start, length, length * stride_bytes)
    }

    fn new(memory: &'a mut [usize], start: usize, length: usize, bytes: usize) -> Self {
        let memory: &'a [usize] = memory;
        // The assembly follows addresses, not references.
        memory.as_ptr().expose_provenance();
        Self { memory, start, length, bytes }
    }

    /// Returns how many elements the cycle has.
    #[expect(clippy::len_without_is_empty, reason = "a cycle has at least one element")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns how many bytes of memory the cycle spans, the gaps between its elements included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the place where the order begins.
    pub fn start(&self) -> ChaseCursor<'a> {
        ChaseCursor(&self.memory[self.start])
    }

    /// Returns the offset in bytes of a place from the start of the region.
    pub fn offset(&self, cursor: ChaseCursor<'a>) -> usize {
        std::ptr::from_ref(cursor.0).addr().wrapping_sub(self.memory.as_ptr().addr())
    }

    /// Returns the offsets in bytes of all elements, in the order of one walk around.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + use<'a> {
        let (memory, base) = (self.memory, start_address(self.memory));
        std::iter::successors(Some(self.start * WORD), move |offset| Some(memory[offset / WORD] - base))
            .take(self.length)
    }

    /// Follows the pointers from `start` for `steps` steps, rounded up to a multiple of [`UNROLL`], and returns
    /// the place reached.
    ///
    /// The loop is [`UNROLL`] loads and nothing but a counter beside them, with no address arithmetic.
    pub fn walk_from(&self, start: ChaseCursor<'a>, steps: u64) -> ChaseCursor<'a> {
        let rounds = steps.div_ceil(UNROLL);
        if rounds == 0 {
            return start;
        }
        let address = std::ptr::from_ref(start.0).expose_provenance();
        // SAFETY: the cursor is on the cycle of a map, which is borrowed for 'a.
        let reached = unsafe { latscope_kernel_chase(address, rounds) };
        // SAFETY: the pointers of a map lead to elements of this map only.
        ChaseCursor(unsafe { &*std::ptr::with_exposed_provenance::<usize>(reached) })
    }

    /// Follows one pointer: a single load.
    #[inline(always)]
    pub fn step_from(&self, from: ChaseCursor<'a>) -> ChaseCursor<'a> {
        // SAFETY: the cursor is on the cycle of a map, which is borrowed for 'a; its pointers lead to elements of the
        // map.
        unsafe {
            let next = std::ptr::from_ref(from.0).read_volatile();
            ChaseCursor(&*std::ptr::with_exposed_provenance::<usize>(next))
        }
    }
}

/// Several places on the cycle of one map, walked at once, for the parallelism of memory.
#[derive(Clone, Debug)]
pub struct Chains<'a> {
    cursors: [usize; MAX_CHAINS],
    count: usize,
    map: ChaseMap<'a>,
}

impl<'a> Chains<'a> {
    /// Writes one pointer in each `line` bytes, in a single random cycle over the whole region, and returns
    /// [`MAX_CHAINS`] places at equal distances along it. Takes 8 bytes for each line until it returns.
    ///
    /// A chain that goes further than the distance finds lines that the next chain has left in a cache.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, or the region is smaller than one line.
    pub fn random(memory: &'a mut [usize], line: usize, seed: u64) -> Self {
        let step = bytes_to_words(line);
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one line of {line} bytes");
        // The order has the places: a walk to find them would take the latency of each load.
        let mut order: Vec<usize> = (0..length).collect();
        ShuffleGenerator::new(seed).shuffle(&mut order);
        let start = write_cycle(memory, order.iter().map(|element| element * step));
        let map = ChaseMap::new(memory, start, length, length * line);
        let place = |chain: usize| order[(chain as u128 * length as u128 / MAX_CHAINS as u128) as usize];
        let cursors = std::array::from_fn(|chain| start_address(map.memory) + place(chain) * line);
        Chains { cursors, count: MAX_CHAINS, map }
    }

    /// Returns `chains` of these chains, spread as evenly as they can be; the number is brought into
    /// `1..=count()`.
    pub fn select_chains(&self, chains: usize) -> Chains<'a> {
        let count = chains.clamp(1, self.count);
        let mut cursors = [self.cursors[0]; MAX_CHAINS];
        for (chain, cursor) in cursors[..count].iter_mut().enumerate() {
            *cursor = self.cursors[chain * self.count / count];
        }
        Chains { cursors, count, map: self.map }
    }

    /// Returns the map of the cycle.
    pub fn map(&self) -> &ChaseMap<'a> {
        &self.map
    }

    /// Returns how many chains there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the offsets in bytes of the places from the start of the region.
    pub fn offsets(&self) -> impl Iterator<Item = usize> {
        let base = start_address(self.map.memory);
        self.cursors[..self.count].iter().map(move |cursor| cursor - base)
    }

    /// Moves each chain on by `steps` steps, rounded up to a multiple of [`UNROLL`]; returns the steps of all
    /// chains together.
    ///
    /// One loop has a load of each chain in turn. See [`REGISTER_CHAINS`] for how the cursors are kept.
    pub fn walk_all(&mut self, steps: u64) -> u64 {
        let rounds = steps.div_ceil(UNROLL) * (UNROLL / ROUNDS);
        if rounds == 0 {
            return 0;
        }
        // SAFETY: all cursors are on the cycle of a map that is borrowed for as long as this lives.
        unsafe { walk_many(self.count)(&mut self.cursors, rounds) };
        rounds * ROUNDS * self.count as u64
    }

    /// Moves each chain on to about where the next one is, so that together they visit every line.
    ///
    /// The lines ahead of each chain are then those whose last visit is longest ago, whatever was walked before.
    pub fn walk_around(&mut self) {
        self.walk_all((self.map.length / self.count) as u64);
    }
}

/// Writes a cycle through these words in their order, and returns the first of them.
fn write_cycle(memory: &mut [usize], order: impl IntoIterator<Item = usize>) -> usize {
    let base = start_address(memory);
    let mut order = order.into_iter();
    let first = order.next().unwrap_or(0);
    let mut last = first;
    for word in order {
        memory[last] = base + word * WORD;
        last = word;
    }
    memory[last] = base + first * WORD;
    first
}

fn start_address(memory: &[usize]) -> usize {
    memory.as_ptr().addr()
}

/// Returns `bytes` in words.
fn bytes_to_words(bytes: usize) -> usize {
    assert!(
        bytes > 0 && bytes.is_multiple_of(WORD),
        "{bytes} bytes are not a positive multiple of the pointer size, {WORD}"
    );
    bytes / WORD
}

/// Follows `rounds` × [`UNROLL`] pointers.
///
/// # Safety
///
/// `cursor` is an element of a cycle of pointers that can be read and does not change; `rounds` is not zero.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe fn latscope_kernel_chase(cursor: usize, rounds: u64) -> usize {
    let mut cursor = cursor;
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers and the flags.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2:",
            ".rept 64",
            either!("mov {cursor}, [{cursor}]", "ldr {cursor}, [{cursor}]"),
            ".endr",
            again!(),
            n = inout(reg) rounds => _,
            cursor = inout(reg) cursor,
            options(nostack),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..rounds * UNROLL {
        // SAFETY: the caller vouches for the cycle.
        cursor = unsafe { std::ptr::with_exposed_provenance::<usize>(cursor).read_volatile() };
    }
    cursor
}

/// A walk of some chains: moves each by `rounds` × [`ROUNDS`].
///
/// # Safety
///
/// Each of the cursors in use is as for [`latscope_kernel_chase`]; `rounds` is not zero.
type ChaseWalkFn = unsafe fn(cursors: &mut [usize; MAX_CHAINS], rounds: u64);

/// Returns the loop for a number of chains, at most [`MAX_CHAINS`].
fn walk_many(chains: usize) -> ChaseWalkFn {
    macro_rules! walks {
        ($($chains:literal)+) => { [$(latscope_kernel_chase_many::<$chains>),+] };
    }
    const WALKS: [ChaseWalkFn; MAX_CHAINS] =
        walks!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    WALKS[chains - 1]
}

#[inline(never)]
unsafe fn latscope_kernel_chase_many<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if CHAINS <= REGISTER_CHAINS {
        // SAFETY: handed on to the caller.
        unsafe { walk_in_registers::<CHAINS>(cursors, rounds) }
    } else {
        // SAFETY: handed on to the caller.
        unsafe { walk_on_stack::<CHAINS>(cursors, rounds) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..rounds * ROUNDS {
        for cursor in &mut cursors[..CHAINS] {
            // SAFETY: the caller vouches for the cycle.
            *cursor = unsafe { std::ptr::with_exposed_provenance::<usize>(*cursor).read_volatile() };
        }
    }
}

/// The loop with its cursors in the registers named, each with its place in the array.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! in_registers {
    ($cursors:ident, $rounds:ident, $($c:ident $i:literal)+) => {
        core::arch::asm!(
            concat!("/*" $(, " {", stringify!($c), "}")+, " */"),
            ".p2align 6",
            "2:",
            ".rept 8",
            $(concat!(
                ".if {chains} > ", $i, "\n",
                either!("mov", "ldr"), " {", stringify!($c), "}, [{", stringify!($c), "}]\n.endif"
            ),)+
            ".endr",
            again!(),
            chains = const CHAINS,
            n = inout(reg) $rounds => _,
            $($c = inout(reg) $cursors[$i],)+
            options(nostack),
        )
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn walk_in_registers<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers and the flags.
    unsafe {
        in_registers!(cursors, rounds, c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11)
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        in_registers!(cursors, rounds, c0 0 c1 1 c2 2 c3 3 c4 4 c5 5 c6 6 c7 7 c8 8 c9 9 c10 10 c11 11
            c12 12 c13 13 c14 14 c15 15 c16 16 c17 17 c18 18 c19 19 c20 20 c21 21 c22 22 c23 23)
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn walk_on_stack<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
    // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers, the flags
    // and the array.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2:",
            ".rept 8",
            ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
            ".if \\i < {chains}",
            either!("mov {cursor}, [{cursors} + 8*\\i]", "ldr {cursor}, [{cursors}, #(8*\\i)]"),
            either!("mov {cursor}, [{cursor}]", "ldr {cursor}, [{cursor}]"),
            either!("mov [{cursors} + 8*\\i], {cursor}", "str {cursor}, [{cursors}, #(8*\\i)]"),
            ".endif",
            ".endr",
            ".endr",
            again!(),
            chains = const CHAINS,
            n = inout(reg) rounds => _,
            cursors = in(reg) cursors.as_mut_ptr(),
            cursor = out(reg) _,
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests;
