//! LMbench's programs for memory: `lat_mem_rd`, `bw_mem`, `stream`, `par_mem`, `tlb`.

use super::job::{LmbenchJob, LmbenchJobReport, PointQuery};
use super::options::{LmbenchCall, parse_leading_digits, refuse, usage_refusal};
use super::page::{LmbenchPage, NotMeasured, bandwidth, megabytes_per_second, nanoseconds};
use crate::getopt::{CommandLineRefusal, parse_size};
use latscope_core::param::{self, OPERATION, ORDER, PAGES, SIZE, STEP, STRIDE, THREADS};

const MIB: u64 = 1 << 20;
/// Size of pages, in bytes. LMbench uses whatever pages malloc(3) gives; latscope always uses this size.
const PAGE: u64 = 4096;

/// `lat_mem_rd [-t] MB [stride...]`: latency by size, for each stride.
///
/// # Errors
/// The size in MiB is missing, a stride is invalid, or `-P` is above 1.
pub fn lat_mem_rd(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    call.options.one_caller("memory.latency")?;
    let (length, strides) = call.operands.split_first().ok_or_else(usage_refusal)?;
    let length = parse_leading_digits(length).filter(|mib| *mib > 0).ok_or_else(usage_refusal)?;
    let length = length.checked_mul(MIB).ok_or_else(usage_refusal)?;
    let mut strides: Vec<u64> = strides
        .iter()
        .map(|text| {
            parse_size(text).filter(|stride| *stride >= 8 && stride % 8 == 0).ok_or_else(usage_refusal)
        })
        .collect::<Result<_, _>>()?;
    // The original ends a list with an empty line only where the strides are given.
    let end = if strides.is_empty() { "" } else { "\n" };
    if strides.is_empty() {
        strides.push(64);
    }
    let random = call.options.flag('t');
    let query = move |size: u64, stride: u64| {
        let order = if random { "random" } else { "stride" };
        let params = [(SIZE, size.into()), (ORDER, order.into()), (PAGES, "4KiB".into())];
        let mut query = PointQuery::new("memory.latency", params);
        query.params.extend((!random).then(|| (STRIDE.to_owned(), stride.into())));
        query
    };
    let sizes = move |stride: u64| latency_sizes(length).into_iter().filter(move |size| *size >= stride);
    let mut queries = Vec::new();
    for point in strides.iter().flat_map(|stride| sizes(*stride).map(|size| query(size, *stride))) {
        if !queries.contains(&point) {
            queries.push(point);
        }
    }
    Ok(LmbenchJob::new(&call.options, queries, move |figures, page| {
        for stride in &strides {
            page.add_text(&format!("\"stride={stride}\n"));
            for size in sizes(*stride) {
                let ns = figures.median_ns(&query(size, *stride));
                page.add_line(ns.map(|ns| format!("{:.5} {ns:.3}", size as f64 / MIB as f64)));
            }
            page.add_text(end);
        }
    }))
}

/// Sizes of `lat_mem_rd`: 512, 1K, 2K, 3K, 4K, steps of 2 KiB to 32 KiB, then eight an octave.
pub(crate) fn latency_sizes(length: u64) -> Vec<u64> {
    std::iter::successors(Some(512), next_latency_size).take_while(|size| *size <= length).collect()
}

fn next_latency_size(size: &u64) -> Option<u64> {
    Some(match *size {
        size if size < 1024 => size * 2,
        size if size < 4096 => size + 1024,
        size if size < 32 << 10 => size + 2048,
        size => size + (1 << size.ilog2()) / 8,
    })
}

/// Kind of transfer of `bw_mem`, in the terms of latscope's probe.
struct LmbenchTransfer {
    name: &'static str,
    operation: &'static str,
    step: &'static str,
}

static TRANSFERS: &[LmbenchTransfer] = &[
    LmbenchTransfer { name: "rd", operation: "read", step: "fourth" },
    LmbenchTransfer { name: "wr", operation: "write", step: "fourth" },
    LmbenchTransfer { name: "rdwr", operation: "modify", step: "fourth" },
    LmbenchTransfer { name: "cp", operation: "copy", step: "fourth" },
    LmbenchTransfer { name: "frd", operation: "read", step: "integer" },
    LmbenchTransfer { name: "fwr", operation: "write", step: "every" },
    LmbenchTransfer { name: "fcp", operation: "copy", step: "integer" },
    LmbenchTransfer { name: "bzero", operation: "write", step: "every" },
    LmbenchTransfer { name: "bcopy", operation: "copy", step: "every" },
];

impl LmbenchTransfer {
    /// Bytes that the probe counts as touched for each byte of a buffer. It counts those of one pass, whether they are
    /// read,
    /// written or both.
    fn touched(&self) -> f64 {
        if self.step == "fourth" { 0.25 } else { 1.0 }
    }

    /// Number of buffers of the named size: LMbench copies from one to another.
    fn buffers(&self) -> u64 {
        if self.operation == "copy" { 2 } else { 1 }
    }
}

/// `bw_mem size what [conflict]`: bandwidth of one kind of transfer. Every byte of the buffer counts once, even if it
/// is
/// stepped over.
///
/// # Errors
/// The size is missing or below 512 bytes, the kind is unknown, or `conflict` is given.
pub fn bw_mem(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let (size, what) = match call.operands.as_slice() {
        [size, what] => (size, what),
        [_, _, _] => {
            return refuse(
                "`conflict` is not covered: the buffers of memory.bandwidth lie where mmap(2) puts them",
            );
        }
        _ => return Err(usage_refusal()),
    };
    let size = parse_size(size).filter(|size| *size >= 512).ok_or_else(usage_refusal)?;
    let transfer = TRANSFERS.iter().find(|transfer| transfer.name == what).ok_or_else(usage_refusal)?;
    let query = PointQuery::new(
        "memory.bandwidth",
        [
            // Each process of LMbench has buffers of that size; ours is that of all threads and buffers.
            (SIZE, (size * transfer.buffers() * call.options.parallelism).into()),
            (OPERATION, transfer.operation.into()),
            (STEP, transfer.step.into()),
            (THREADS, call.options.parallelism.into()),
        ],
    );
    Ok(LmbenchJob::new(&call.options, vec![query.clone()], move |figures, page| {
        let rate = figures.bytes_per_second(&query);
        page.add_line(rate.map(|rate| bandwidth(size, rate / transfer.touched())));
    }))
}

/// `stream [-v 1] [-M len]`: copy, scale, add and triad, ns for an element and MB/s.
///
/// # Errors
/// `-v 2` is given, or the size is less than one element for each array.
pub fn stream(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    match call.options.option_value('v').map_or(Some(1), parse_leading_digits) {
        Some(1) => {}
        Some(2) => {
            return refuse(
                "-v 2 (fill, copy, daxpy, sum) is not covered: memory.stream measures copy, scale, add and triad; give -v 1",
            );
        }
        _ => return Err(usage_refusal()),
    }
    // Three arrays of doubles share the length.
    let size = call.options.size_bytes('M', 3 * 8 * 1_000_000)? / 24 * 8;
    if size == 0 || !call.operands.is_empty() {
        return Err(usage_refusal());
    }
    let threads = call.options.parallelism;
    let kernels = [("copy", 2.0), ("scale", 2.0), ("add", 3.0), ("triad", 3.0)];
    let query = move |operation: &str| {
        PointQuery::new(
            "memory.stream",
            [(OPERATION, operation.into()), (SIZE, (size * threads).into()), (THREADS, threads.into())],
        )
    };
    let queries = kernels.iter().map(|(operation, _)| query(operation)).collect();
    Ok(LmbenchJob::new(&call.options, queries, move |figures, page| {
        for (operation, arrays) in kernels {
            let rate = figures.bytes_per_second(&query(operation));
            page.add_line(rate.map(|rate| {
                // Each process of LMbench times its own elements.
                let element = arrays * 8.0 * threads as f64 / rate * 1e9;
                let latency = nanoseconds(&format!("STREAM {operation} latency"), element);
                let bandwidth = megabytes_per_second(&format!("STREAM {operation} bandwidth"), rate);
                format!("{latency}\n{bandwidth}")
            }));
        }
    }))
}

/// Numbers of chains that `par_mem` measures.
const CHAINS: [u64; 5] = [1, 2, 4, 8, 16];

/// `par_mem [-L line] [-M len]`: number of loads that are under way at once, by size.
///
/// # Errors
/// There are operands, a size is invalid, or `-P` is given.
pub fn par_mem(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    let line = call.options.size_bytes('L', 64)?;
    let longest = call.options.size_bytes('M', 64 * MIB)?;
    let sizes: Vec<u64> = std::iter::successors(Some(line * 16), |size| size.checked_mul(2))
        .take_while(|size| *size <= longest)
        .collect();
    let query = |size: u64, chains: u64| {
        PointQuery::new(
            "memory.parallelism",
            [(param::CHAINS, chains.into()), (SIZE, size.into()), (PAGES, "4KiB".into())],
        )
    };
    let queries = sizes.iter().flat_map(|size| CHAINS.map(|chains| query(*size, chains))).collect();
    Ok(LmbenchJob::new(&call.options, queries, move |figures, page| {
        for size in &sizes {
            let parallelism = parallelism(figures, |chains| query(*size, chains));
            page.add_line(parallelism.map(|factor| format!("{:.6} {factor:.2}", *size as f64 / 1e6)));
        }
    }))
}

/// Time of a load with one chain, divided by that with the best number of chains.
fn parallelism(
    figures: &LmbenchJobReport<'_>,
    query: impl Fn(u64) -> PointQuery,
) -> Result<f64, NotMeasured> {
    let alone = figures.median_ns(&query(1))?;
    // Small sizes have no room for many chains; what was measured counts, if it is more than one chain.
    let two = figures.median_ns(&query(CHAINS[1]))?;
    let others = CHAINS[2..].iter().filter_map(|chains| figures.median_ns(&query(*chains)).ok());
    Ok(others.map(|ns| alone / ns).fold(f64::max(1.0, alone / two), f64::max))
}

/// Ratio that shows a page walk: the time for a word in each page, divided by the time for as many lines packed
/// together.
const TLB_RATIO: f64 = 1.15;

/// `tlb [-c] [-M len]`: number of pages that can be visited without a page walk; with `-c` also the cost of a walk, at
/// twice as many
/// pages.
///
/// # Errors
/// There are operands, a size is invalid, or the line size is not 64.
pub fn tlb(call: LmbenchCall) -> Result<LmbenchJob, CommandLineRefusal> {
    let [] = call.exactly()?;
    if call.options.size_bytes('L', 64)? != 64 {
        return refuse("-L is not covered: memory.tlb visits one 64-byte line of each page");
    }
    let longest = call.options.size_bytes('M', 64 * MIB)? / PAGE;
    let pages: Vec<u64> = std::iter::successors(Some(16_u64), |pages| Some(pages + (1 << pages.ilog2()) / 4))
        .take_while(|pages| *pages <= longest)
        .collect();
    let spread =
        |pages: u64| PointQuery::new("memory.tlb", [(SIZE, (pages * PAGE).into()), (PAGES, "4KiB".into())]);
    let packed = |pages: u64| {
        PointQuery::new(
            "memory.latency",
            [(SIZE, (pages * 64).into()), (ORDER, "random".into()), (PAGES, "4KiB".into())],
        )
    };
    let queries = pages.iter().flat_map(|pages| [spread(*pages), packed(*pages)]).collect();
    let with_cost = call.options.flag('c');
    Ok(LmbenchJob::new(&call.options, queries, move |figures, page| {
        let curve: Result<Vec<Visit>, NotMeasured> = pages
            .iter()
            .map(|pages| {
                Ok(Visit {
                    pages: *pages,
                    spread: figures.median_ns(&spread(*pages))?,
                    packed: figures.median_ns(&packed(*pages))?,
                })
            })
            .collect();
        match curve {
            Ok(curve) => print_tlb(&curve, with_cost, page),
            Err(missing) => page.add_line(Err(missing)),
        }
    }))
}

/// Time of a load in ns: with one line in each of so many pages, and with as many lines packed together.
struct Visit {
    pages: u64,
    spread: f64,
    packed: f64,
}

/// Prints the result. If there is no limit, nothing is printed, as by LMbench.
fn print_tlb(curve: &[Visit], with_cost: bool, page: &mut LmbenchPage) {
    let Some(first_slow) = curve.iter().position(|visit| visit.spread > visit.packed * TLB_RATIO) else {
        return;
    };
    let entries =
        first_slow.checked_sub(1).map_or(curve[first_slow].pages, |last_fast| curve[last_fast].pages);
    let twice = curve.iter().find(|visit| visit.pages >= 2 * entries).or(curve.last());
    match twice.filter(|_| with_cost) {
        Some(visit) => {
            page.add_text(&format!("tlb: {entries} pages {:.5} nanoseconds\n", visit.spread - visit.packed))
        }
        None => page.add_text(&format!("tlb: {entries} pages\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::find_program;
    use super::*;
    use crate::context::PersonalityContext;
    use latscope_core::word::KeywordEnum;
    use latscope_os::kernels::bandwidth::{self, BandwidthStride, Operation};

    #[test]
    fn latency_sizes_are_lmbenchs() {
        let sizes = latency_sizes(MIB);
        assert_eq!(sizes[..7], [512, 1024, 2048, 3072, 4096, 6144, 8192]);
        let octave: Vec<u64> =
            sizes.iter().copied().filter(|size| (32 << 10..64 << 10).contains(size)).collect();
        assert_eq!(octave, [32, 36, 40, 44, 48, 52, 56, 60].map(|kib| kib << 10));
        assert_eq!(sizes.last(), Some(&MIB));
        // The coarser grid of release 3.0-a9 is part of it.
        for coarse in [12, 24, 48, 96, 192, 384, 768] {
            assert!(sizes.contains(&(coarse << 10)), "{coarse}K");
        }
    }

    #[test]
    fn every_size_is_measured_once_for_all_strides_of_a_random_order() {
        let job = find_program("lat_mem_rd")
            .unwrap()
            .read_call(&PersonalityContext::new(["-t", "1", "64", "128"]))
            .unwrap();
        assert_eq!(job.queries.len(), latency_sizes(MIB).len());
        let strided = find_program("lat_mem_rd")
            .unwrap()
            .read_call(&PersonalityContext::new(["1", "64", "1024"]))
            .unwrap();
        assert_eq!(strided.queries.len(), 2 * latency_sizes(MIB).len() - 1);
    }

    #[test]
    fn lists_have_a_heading_and_end_with_a_line_only_if_their_strides_are_given() {
        for (words, text) in [
            (&["1"][..], "\"stride=64\n"),
            (&["1", "64", "1024"], "\"stride=64\n\n\"stride=1024\n\n"),
            (&["1", "2097152"], "\"stride=2097152\n\n"),
        ] {
            let context = PersonalityContext::new(words.iter().copied());
            let job = find_program("lat_mem_rd").unwrap().read_call(&context).unwrap();
            assert_eq!(job.page_without_figures().stderr, text, "{words:?}");
        }
    }

    #[test]
    fn transfers_count_every_byte_of_the_buffer_once() {
        for transfer in TRANSFERS {
            let operation = Operation::from_word(transfer.operation).unwrap();
            let step = BandwidthStride::from_word(transfer.step).unwrap();
            // What the kernel of the probe says it touches in a pass over such a buffer.
            let touched = bandwidth::bytes_touched(operation, step, 1 << 20) as f64;
            assert_eq!(transfer.touched() * f64::from(1 << 20), touched, "{}", transfer.name);
        }
        let two: Vec<&str> = TRANSFERS.iter().filter(|t| t.buffers() == 2).map(|t| t.name).collect();
        assert_eq!(two, ["cp", "fcp", "bcopy"]);
    }

    #[test]
    fn the_tlb_ends_where_spread_pages_cost_more_than_packed_lines() {
        let visit = |pages, spread| Visit { pages, spread, packed: 2.0 };
        let curve = [visit(64, 2.0), visit(80, 2.1), visit(96, 4.0), visit(128, 5.0), visit(160, 5.5)];
        let mut page = LmbenchPage::default();
        print_tlb(&curve, true, &mut page);
        assert_eq!(page.stderr, "tlb: 80 pages 3.50000 nanoseconds\n");
        let mut flat = LmbenchPage::default();
        print_tlb(&[visit(64, 2.0), visit(128, 2.0)], false, &mut flat);
        assert_eq!(flat.stderr, "");
    }
}
