//! Chains of pointers through memory, for the latency of loads.
//!
//! A [`ChaseMap`] writes a single cycle of pointers into memory that the caller chose (page size, NUMA node);
//! a walk is then nothing but loads, each from the address that the load before returned. Writing the map
//! touches every page and leaves the caches in a state that depends on the size, so walk once around (or, for a
//! large region, a few milliseconds) before timing.

pub mod growing;

use super::random::Random;

/// A walk is rounded up to a multiple of this many steps.
pub const UNROLL: u64 = 64;

/// The most chains that can be walked at once.
pub const MAX_CHAINS: usize = 32;

/// The most chains that [`Chains::walk`] keeps in registers.
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
pub struct Cursor<'a>(&'a usize);

impl<'a> ChaseMap<'a> {
    /// One pointer in each `line` bytes, in a single random cycle over the whole region (Sattolo's algorithm).
    ///
    /// Shows caches and TLB together.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, or the region is smaller than one line.
    pub fn random(memory: &'a mut [usize], line: usize, seed: u64) -> Self {
        let step = words(line);
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one line of {line} bytes");
        let base = address(memory);
        for element in 0..length {
            memory[element * step] = base + element * line;
        }
        let mut random = Random::new(seed);
        for element in (1..length).rev() {
            let other = random.below(element as u64) as usize;
            memory.swap(element * step, other * step);
        }
        Self::new(memory, 0, length, length * line)
    }

    /// One pointer in each `line` bytes, at random inside each window of `window_bytes`, the windows in random
    /// order; a window is left only when all of it was visited, and the whole is a single cycle.
    ///
    /// With windows that the TLB covers (256 KiB are 64 pages) shows caches without the TLB.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, when `window_bytes` is not a positive multiple
    /// of `line`, or the region is smaller than one line.
    pub fn window(memory: &'a mut [usize], line: usize, window_bytes: usize, seed: u64) -> Self {
        let step = words(line);
        assert!(
            window_bytes > 0 && window_bytes.is_multiple_of(line),
            "a window of {window_bytes} bytes is not made of lines of {line} bytes"
        );
        let per_window = window_bytes / line;
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one line of {line} bytes");
        let mut random = Random::new(seed);
        let mut windows: Vec<usize> = (0..length.div_ceil(per_window)).collect();
        random.shuffle(&mut windows);
        let mut inside: Vec<usize> = Vec::with_capacity(per_window.min(length));
        let mut path = Path::new(memory);
        for window in windows {
            let first = window * per_window;
            inside.clear();
            inside.extend(first..length.min(first + per_window));
            random.shuffle(&mut inside);
            for &element in &inside {
                path.visit(element * step);
            }
        }
        let start = path.close();
        Self::new(memory, start, length, length * line)
    }

    /// One pointer in each page of `page_bytes`, the pages in random order; from page to page the pointer moves
    /// on by one `line`, so that the sets of the caches are used evenly.
    ///
    /// With few lines in the caches and many pages shows the TLB without the caches.
    ///
    /// # Panics
    ///
    /// When `line` is not a positive multiple of the pointer size, when `page_bytes` is not a positive multiple of
    /// `line`, or the region is smaller than one page.
    pub fn page(memory: &'a mut [usize], page_bytes: usize, line: usize, seed: u64) -> Self {
        let step = words(line);
        assert!(
            page_bytes > 0 && page_bytes.is_multiple_of(line),
            "a page of {page_bytes} bytes is not made of lines of {line} bytes"
        );
        let (per_page, lines) = (words(page_bytes), page_bytes / line);
        let length = memory.len() / per_page;
        assert!(length > 0, "the region is smaller than one page of {page_bytes} bytes");
        let mut pages: Vec<usize> = (0..length).collect();
        Random::new(seed).shuffle(&mut pages);
        let mut path = Path::new(memory);
        for page in pages {
            path.visit(page * per_page + page % lines * step);
        }
        let start = path.close();
        Self::new(memory, start, length, length * page_bytes)
    }

    /// One pointer in each `stride_bytes`, to the next one, and the last to the first.
    ///
    /// Prefetchers see through this order: it shows what sequential access costs, not the caches.
    ///
    /// # Panics
    ///
    /// When `stride_bytes` is not a positive multiple of the pointer size, or the region is smaller than one
    /// stride.
    pub fn stride(memory: &'a mut [usize], stride_bytes: usize) -> Self {
        let step = words(stride_bytes);
        let length = memory.len() / step;
        assert!(length > 0, "the region is smaller than one stride of {stride_bytes} bytes");
        let mut path = Path::new(memory);
        for element in 0..length {
            path.visit(element * step);
        }
        let start = path.close();
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
    pub fn start(&self) -> Cursor<'a> {
        Cursor(&self.memory[self.start])
    }

    /// Returns the offset in bytes of a place from the start of the region.
    pub fn offset(&self, cursor: Cursor<'a>) -> usize {
        std::ptr::from_ref(cursor.0).addr().wrapping_sub(self.memory.as_ptr().addr())
    }

    /// Returns the offsets in bytes of all elements, in the order of one walk around.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + use<'a> {
        let (memory, base) = (self.memory, address(self.memory));
        std::iter::successors(Some(self.start * WORD), move |offset| Some(memory[offset / WORD] - base))
            .take(self.length)
    }

    /// Follows the pointers from `start` for `steps` steps, rounded up to a multiple of [`UNROLL`], and returns
    /// the place reached.
    ///
    /// The loop is [`UNROLL`] loads and nothing but a counter beside them, with no address arithmetic.
    pub fn walk(&self, start: Cursor<'a>, steps: u64) -> Cursor<'a> {
        let rounds = steps.div_ceil(UNROLL);
        if rounds == 0 {
            return start;
        }
        let address = std::ptr::from_ref(start.0).expose_provenance();
        // SAFETY: the cursor is on the cycle of a map, which is borrowed for 'a.
        let reached = unsafe { latscope_kernel_chase(address, rounds) };
        // SAFETY: the pointers of a map lead to elements of this map only.
        Cursor(unsafe { &*std::ptr::with_exposed_provenance::<usize>(reached) })
    }

    /// Returns `chains` places at equal distances along the cycle, to be walked at once; the number is brought
    /// into `1..=`[`MAX_CHAINS`].
    ///
    /// Walks around the whole cycle to find them: more than a second for a gigabyte of memory.
    ///
    /// A chain that goes further than the distance, `len() / chains` steps, finds lines that the next chain has
    /// left in a cache.
    pub fn spread(&self, chains: usize) -> Chains<'a> {
        let count = chains.clamp(1, MAX_CHAINS);
        let base = address(self.memory);
        let mut cursors = [base + self.start * WORD; MAX_CHAINS];
        let (mut word, mut place) = (self.start, 0);
        for (chain, cursor) in cursors[..count].iter_mut().enumerate() {
            let target = (chain as u128 * self.length as u128 / count as u128) as usize;
            while place < target {
                word = (self.memory[word] - base) / WORD;
                place += 1;
            }
            *cursor = base + word * WORD;
        }
        Chains { cursors, count, map: *self }
    }
}

/// Several places on the cycle of one map, walked at once, for the parallelism of memory.
#[derive(Clone, Debug)]
pub struct Chains<'a> {
    cursors: [usize; MAX_CHAINS],
    count: usize,
    map: ChaseMap<'a>,
}

impl Chains<'_> {
    /// Returns how many chains there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the offsets in bytes of the places from the start of the region.
    pub fn offsets(&self) -> impl Iterator<Item = usize> {
        let base = address(self.map.memory);
        self.cursors[..self.count].iter().map(move |cursor| cursor - base)
    }

    /// Moves each chain on by `steps` steps, rounded up to a multiple of [`UNROLL`]; returns the steps of all
    /// chains together.
    ///
    /// One loop has a load of each chain in turn. See [`REGISTER_CHAINS`] for how the cursors are kept.
    pub fn walk(&mut self, steps: u64) -> u64 {
        let rounds = steps.div_ceil(UNROLL) * (UNROLL / ROUNDS);
        if rounds == 0 {
            return 0;
        }
        // SAFETY: all cursors are on the cycle of a map that is borrowed for as long as this lives.
        unsafe { walk_many(self.count)(&mut self.cursors, rounds) };
        rounds * ROUNDS * self.count as u64
    }
}

/// Writes a cycle in the order of visits.
struct Path<'m> {
    memory: &'m mut [usize],
    base: usize,
    first: Option<usize>,
    last: usize,
}

impl<'m> Path<'m> {
    fn new(memory: &'m mut [usize]) -> Self {
        let base = address(memory);
        Self { memory, base, first: None, last: 0 }
    }

    fn visit(&mut self, word: usize) {
        if self.first.is_none() {
            self.first = Some(word);
        } else {
            self.memory[self.last] = self.base + word * WORD;
        }
        self.last = word;
    }

    /// Leads back to the first visit, and returns it.
    fn close(self) -> usize {
        let first = self.first.unwrap_or(0);
        self.memory[self.last] = self.base + first * WORD;
        first
    }
}

fn address(memory: &[usize]) -> usize {
    memory.as_ptr().addr()
}

/// Returns `bytes` in words.
fn words(bytes: usize) -> usize {
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
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers and the flags.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2:",
            ".rept 64",
            "mov {cursor}, [{cursor}]",
            ".endr",
            "sub {n}, 1",
            "jnz 2b",
            n = inout(reg) rounds => _,
            cursor = inout(reg) cursor,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers and the flags.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2:",
            ".rept 64",
            "ldr {cursor}, [{cursor}]",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
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
type Walk = unsafe fn(cursors: &mut [usize; MAX_CHAINS], rounds: u64);

/// Returns the loop for a number of chains.
fn walk_many(chains: usize) -> Walk {
    match chains {
        1 => latscope_kernel_chase_many::<1>,
        2 => latscope_kernel_chase_many::<2>,
        3 => latscope_kernel_chase_many::<3>,
        4 => latscope_kernel_chase_many::<4>,
        5 => latscope_kernel_chase_many::<5>,
        6 => latscope_kernel_chase_many::<6>,
        7 => latscope_kernel_chase_many::<7>,
        8 => latscope_kernel_chase_many::<8>,
        9 => latscope_kernel_chase_many::<9>,
        10 => latscope_kernel_chase_many::<10>,
        11 => latscope_kernel_chase_many::<11>,
        12 => latscope_kernel_chase_many::<12>,
        13 => latscope_kernel_chase_many::<13>,
        14 => latscope_kernel_chase_many::<14>,
        15 => latscope_kernel_chase_many::<15>,
        16 => latscope_kernel_chase_many::<16>,
        17 => latscope_kernel_chase_many::<17>,
        18 => latscope_kernel_chase_many::<18>,
        19 => latscope_kernel_chase_many::<19>,
        20 => latscope_kernel_chase_many::<20>,
        21 => latscope_kernel_chase_many::<21>,
        22 => latscope_kernel_chase_many::<22>,
        23 => latscope_kernel_chase_many::<23>,
        24 => latscope_kernel_chase_many::<24>,
        25 => latscope_kernel_chase_many::<25>,
        26 => latscope_kernel_chase_many::<26>,
        27 => latscope_kernel_chase_many::<27>,
        28 => latscope_kernel_chase_many::<28>,
        29 => latscope_kernel_chase_many::<29>,
        30 => latscope_kernel_chase_many::<30>,
        31 => latscope_kernel_chase_many::<31>,
        _ => latscope_kernel_chase_many::<32>,
    }
}

#[inline(never)]
unsafe fn latscope_kernel_chase_many<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if CHAINS <= REGISTER_CHAINS {
        // SAFETY: handed on to the caller.
        unsafe { machine::registers::<CHAINS>(cursors, rounds) }
    } else {
        // SAFETY: handed on to the caller.
        unsafe { machine::stack::<CHAINS>(cursors, rounds) }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    for _ in 0..rounds * ROUNDS {
        for cursor in &mut cursors[..CHAINS] {
            // SAFETY: the caller vouches for the cycle.
            *cursor = unsafe { std::ptr::with_exposed_provenance::<usize>(*cursor).read_volatile() };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use core::arch::asm;

    use super::MAX_CHAINS;

    #[inline(always)]
    pub(super) unsafe fn registers<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
        // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers and the
        // flags.
        unsafe {
            asm!(
            "/* {c0} {c1} {c2} {c3} {c4} {c5} {c6} {c7} {c8} {c9} {c10} {c11} */",
            ".p2align 6",
            "2:",
            ".rept 8",
            ".if {chains} > 0",
            "mov {c0}, [{c0}]",
            ".endif",
            ".if {chains} > 1",
            "mov {c1}, [{c1}]",
            ".endif",
            ".if {chains} > 2",
            "mov {c2}, [{c2}]",
            ".endif",
            ".if {chains} > 3",
            "mov {c3}, [{c3}]",
            ".endif",
            ".if {chains} > 4",
            "mov {c4}, [{c4}]",
            ".endif",
            ".if {chains} > 5",
            "mov {c5}, [{c5}]",
            ".endif",
            ".if {chains} > 6",
            "mov {c6}, [{c6}]",
            ".endif",
            ".if {chains} > 7",
            "mov {c7}, [{c7}]",
            ".endif",
            ".if {chains} > 8",
            "mov {c8}, [{c8}]",
            ".endif",
            ".if {chains} > 9",
            "mov {c9}, [{c9}]",
            ".endif",
            ".if {chains} > 10",
            "mov {c10}, [{c10}]",
            ".endif",
            ".if {chains} > 11",
            "mov {c11}, [{c11}]",
            ".endif",
            ".endr",
            "sub {n}, 1",
            "jnz 2b",
            chains = const CHAINS,
            n = inout(reg) rounds => _,
            c0 = inout(reg) cursors[0],
            c1 = inout(reg) cursors[1],
            c2 = inout(reg) cursors[2],
            c3 = inout(reg) cursors[3],
            c4 = inout(reg) cursors[4],
            c5 = inout(reg) cursors[5],
            c6 = inout(reg) cursors[6],
            c7 = inout(reg) cursors[7],
            c8 = inout(reg) cursors[8],
            c9 = inout(reg) cursors[9],
            c10 = inout(reg) cursors[10],
            c11 = inout(reg) cursors[11],
            options(nostack),
            );
        }
    }

    #[inline(always)]
    pub(super) unsafe fn stack<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
        // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers, the flags
        // and the array.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                ".rept 8",
                ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                ".if \\i < {chains}",
                "mov {cursor}, [{cursors} + 8*\\i]",
                "mov {cursor}, [{cursor}]",
                "mov [{cursors} + 8*\\i], {cursor}",
                ".endif",
                ".endr",
                ".endr",
                "sub {n}, 1",
                "jnz 2b",
                chains = const CHAINS,
                n = inout(reg) rounds => _,
                cursors = in(reg) cursors.as_mut_ptr(),
                cursor = out(reg) _,
                options(nostack),
            );
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use core::arch::asm;

    use super::MAX_CHAINS;

    #[inline(always)]
    pub(super) unsafe fn registers<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
        // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers and the
        // flags.
        unsafe {
            asm!(
            "/* {c0} {c1} {c2} {c3} {c4} {c5} {c6} {c7} {c8} {c9} {c10} {c11} {c12} {c13} {c14} {c15} {c16} {c17} {c18} {c19} {c20} {c21} {c22} {c23} */",
            ".p2align 6",
            "2:",
            ".rept 8",
            ".if {chains} > 0",
            "ldr {c0}, [{c0}]",
            ".endif",
            ".if {chains} > 1",
            "ldr {c1}, [{c1}]",
            ".endif",
            ".if {chains} > 2",
            "ldr {c2}, [{c2}]",
            ".endif",
            ".if {chains} > 3",
            "ldr {c3}, [{c3}]",
            ".endif",
            ".if {chains} > 4",
            "ldr {c4}, [{c4}]",
            ".endif",
            ".if {chains} > 5",
            "ldr {c5}, [{c5}]",
            ".endif",
            ".if {chains} > 6",
            "ldr {c6}, [{c6}]",
            ".endif",
            ".if {chains} > 7",
            "ldr {c7}, [{c7}]",
            ".endif",
            ".if {chains} > 8",
            "ldr {c8}, [{c8}]",
            ".endif",
            ".if {chains} > 9",
            "ldr {c9}, [{c9}]",
            ".endif",
            ".if {chains} > 10",
            "ldr {c10}, [{c10}]",
            ".endif",
            ".if {chains} > 11",
            "ldr {c11}, [{c11}]",
            ".endif",
            ".if {chains} > 12",
            "ldr {c12}, [{c12}]",
            ".endif",
            ".if {chains} > 13",
            "ldr {c13}, [{c13}]",
            ".endif",
            ".if {chains} > 14",
            "ldr {c14}, [{c14}]",
            ".endif",
            ".if {chains} > 15",
            "ldr {c15}, [{c15}]",
            ".endif",
            ".if {chains} > 16",
            "ldr {c16}, [{c16}]",
            ".endif",
            ".if {chains} > 17",
            "ldr {c17}, [{c17}]",
            ".endif",
            ".if {chains} > 18",
            "ldr {c18}, [{c18}]",
            ".endif",
            ".if {chains} > 19",
            "ldr {c19}, [{c19}]",
            ".endif",
            ".if {chains} > 20",
            "ldr {c20}, [{c20}]",
            ".endif",
            ".if {chains} > 21",
            "ldr {c21}, [{c21}]",
            ".endif",
            ".if {chains} > 22",
            "ldr {c22}, [{c22}]",
            ".endif",
            ".if {chains} > 23",
            "ldr {c23}, [{c23}]",
            ".endif",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            chains = const CHAINS,
            n = inout(reg) rounds => _,
            c0 = inout(reg) cursors[0],
            c1 = inout(reg) cursors[1],
            c2 = inout(reg) cursors[2],
            c3 = inout(reg) cursors[3],
            c4 = inout(reg) cursors[4],
            c5 = inout(reg) cursors[5],
            c6 = inout(reg) cursors[6],
            c7 = inout(reg) cursors[7],
            c8 = inout(reg) cursors[8],
            c9 = inout(reg) cursors[9],
            c10 = inout(reg) cursors[10],
            c11 = inout(reg) cursors[11],
            c12 = inout(reg) cursors[12],
            c13 = inout(reg) cursors[13],
            c14 = inout(reg) cursors[14],
            c15 = inout(reg) cursors[15],
            c16 = inout(reg) cursors[16],
            c17 = inout(reg) cursors[17],
            c18 = inout(reg) cursors[18],
            c19 = inout(reg) cursors[19],
            c20 = inout(reg) cursors[20],
            c21 = inout(reg) cursors[21],
            c22 = inout(reg) cursors[22],
            c23 = inout(reg) cursors[23],
            options(nostack),
            );
        }
    }

    #[inline(always)]
    pub(super) unsafe fn stack<const CHAINS: usize>(cursors: &mut [usize; MAX_CHAINS], rounds: u64) {
        // SAFETY: reads the cycle that the caller vouches for, writes only the declared registers, the flags
        // and the array.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                ".rept 8",
                ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
                ".if \\i < {chains}",
                "ldr {cursor}, [{cursors}, #(8*\\i)]",
                "ldr {cursor}, [{cursor}]",
                "str {cursor}, [{cursors}, #(8*\\i)]",
                ".endif",
                ".endr",
                ".endr",
                "subs {n}, {n}, #1",
                "b.ne 2b",
                chains = const CHAINS,
                n = inout(reg) rounds => _,
                cursors = in(reg) cursors.as_mut_ptr(),
                cursor = out(reg) _,
                options(nostack),
            );
        }
    }
}

#[cfg(test)]
mod tests;
