//! The four kernels of STREAM on `f64`.
//!
//! With three arrays `a`, `b` and `c`: copy is `c = a`, scale is `b = s·c`, add is `c = a + b`, triad is
//! `a = b + s·c`. In vectors of the widest form, with ordinary stores, in assembly, so that no compiler makes a
//! `memcpy` of the copy.

use super::bandwidth::Width;

/// Elements left over from blocks of this many are not touched.
pub const BLOCK: usize = 64;

latscope_core::words! {
    /// A kernel of STREAM; they are in the order in which it runs them.
    pub enum StreamKernel {
        /// Copies: `to = x`.
        Copy = "copy",
        /// Scales: `to = scalar · x`.
        Scale = "scale",
        /// Adds: `to = x + y`.
        Add = "add",
        /// `to = x + scalar · y`, the product rounded before the sum.
        Triad = "triad",
    }
}

impl StreamKernel {
    /// Returns the bytes per element as STREAM counts them: each array that is read or written once.
    pub const fn bytes_per_element(self) -> u64 {
        match self {
            Self::Copy | Self::Scale => 16,
            Self::Add | Self::Triad => 24,
        }
    }

    /// Returns the bytes per element with the lines that a cache fetches before they are written.
    pub const fn bytes_per_element_moved(self) -> u64 {
        self.bytes_per_element() + 8
    }
}

/// Makes one pass of a kernel over as many elements as the arrays it uses all have, in blocks of [`BLOCK`], and
/// returns how many elements those are. Copy and scale do not use `y`, copy and add not `scalar`.
///
/// Align the arrays to 64 bytes, as vectors across two cache lines are slow.
pub fn run_pass(kind: StreamKernel, to: &mut [f64], x: &[f64], y: &[f64], scalar: f64) -> usize {
    pass(kind, Width::widest(), to, x, y, scalar)
}

fn pass(kind: StreamKernel, width: Width, to: &mut [f64], x: &[f64], y: &[f64], scalar: f64) -> usize {
    let elements = match kind {
        StreamKernel::Copy | StreamKernel::Scale => to.len().min(x.len()),
        StreamKernel::Add | StreamKernel::Triad => to.len().min(x.len()).min(y.len()),
    };
    let blocks = elements / BLOCK;
    if blocks > 0 {
        let kernel = machine::kernel(kind, width);
        // SAFETY: the arrays in use have so many blocks, and the width is one that the processor has.
        unsafe { kernel(to.as_mut_ptr(), x.as_ptr(), y.as_ptr(), scalar, blocks as u64) };
    }
    blocks * BLOCK
}

/// A pass over `blocks` > 0 blocks.
///
/// # Safety
///
/// `to` and what the kernel uses of `x` and `y` are valid for so many blocks, and the processor has the
/// instructions.
type StreamPassFn = unsafe fn(to: *mut f64, x: *const f64, y: *const f64, scalar: f64, blocks: u64);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod machine {
    use super::{StreamKernel, StreamPassFn};
    use crate::kernels::bandwidth::Width;

    /// A pass: what comes before the loop, the lines for each offset `\o` of so many bytes apart, what comes behind
    /// the loop. The scalar is in all lanes of the named register, the others are free.
    macro_rules! kernel {
        ($name:literal [$scalar:tt $($vector:tt)+] $before:literal $apart:tt $lines:literal $behind:literal) => {{
            #[unsafe(export_name = concat!("latscope_kernel_stream_", $name))]
            #[inline(never)]
            unsafe fn kernel(to: *mut f64, x: *const f64, y: *const f64, scalar: f64, blocks: u64) {
                // SAFETY: the caller vouches for the arrays, for blocks > 0, and for the instructions; besides,
                // only the declared registers and the flags change.
                unsafe {
                    core::arch::asm!(
                        $before,
                        ".p2align 6",
                        "2:",
                        offsets!($apart),
                        $lines,
                        ".endr",
                        either!(
                            "add {to}, 512\nadd {x}, 512\nadd {y}, 512",
                            "add {to}, {to}, #512\nadd {x}, {x}, #512\nadd {y}, {y}, #512"
                        ),
                        again!(),
                        $behind,
                        to = inout(reg) to => _,
                        x = inout(reg) x => _,
                        y = inout(reg) y => _,
                        n = inout(reg) blocks => _,
                        inout($scalar) scalar => _,
                        $(out($vector) _,)+
                        options(nostack),
                    );
                }
            }
            kernel
        }};
    }

    /// Defines which pass is for what: by width what comes before and behind, and the distance; the lines by kernel.
    macro_rules! kernels {
        ($vectors:tt $($width:pat, $before:literal $apart:tt $behind:literal
            { $($kind:ident $name:literal $lines:literal;)+ })+
        ) => {
            pub(super) fn kernel(kind: StreamKernel, width: Width) -> StreamPassFn {
                use StreamKernel::*;
                #[allow(unused_imports)] // Only x86 has several.
                use Width::*;
                match (width, kind) {
                    $($(($width, $kind) => kernel!($name $vectors $before $apart $lines $behind),)+)+
                }
            }
        };
    }

    #[cfg(target_arch = "x86_64")]
    kernels! {
        ["xmm15" "xmm0" "xmm1" "xmm2" "xmm3" "xmm4" "xmm5" "xmm6"
         "xmm7" "xmm8" "xmm9" "xmm10" "xmm11" "xmm12" "xmm13" "xmm14"]
        Scalar | Bits128, "unpcklpd xmm15, xmm15" 16 "" {
            Copy "copy_sse2" "movupd xmm0, [{x} + \\o]\nmovupd [{to} + \\o], xmm0";
            Scale "scale_sse2" "movupd xmm0, [{x} + \\o]\nmulpd xmm0, xmm15\nmovupd [{to} + \\o], xmm0";
            Add "add_sse2"
                "movupd xmm0, [{x} + \\o]\nmovupd xmm1, [{y} + \\o]\naddpd xmm0, xmm1\nmovupd [{to} + \\o], xmm0";
            Triad "triad_sse2"
                "movupd xmm0, [{y} + \\o]\nmulpd xmm0, xmm15
                 movupd xmm1, [{x} + \\o]\naddpd xmm0, xmm1\nmovupd [{to} + \\o], xmm0";
        }
        Bits256, "vbroadcastsd ymm15, xmm15" 32 "vzeroupper" {
            Copy "copy_avx2" "vmovupd ymm0, [{x} + \\o]\nvmovupd [{to} + \\o], ymm0";
            Scale "scale_avx2" "vmovupd ymm0, [{x} + \\o]\nvmulpd ymm0, ymm0, ymm15\nvmovupd [{to} + \\o], ymm0";
            Add "add_avx2" "vmovupd ymm0, [{x} + \\o]\nvaddpd ymm0, ymm0, [{y} + \\o]\nvmovupd [{to} + \\o], ymm0";
            Triad "triad_avx2"
                "vmovupd ymm0, [{y} + \\o]\nvmulpd ymm0, ymm0, ymm15
                 vaddpd ymm0, ymm0, [{x} + \\o]\nvmovupd [{to} + \\o], ymm0";
        }
        Bits512, "vbroadcastsd zmm15, xmm15" 64 "vzeroupper" {
            Copy "copy_avx512" "vmovupd zmm0, [{x} + \\o]\nvmovupd [{to} + \\o], zmm0";
            Scale "scale_avx512" "vmovupd zmm0, [{x} + \\o]\nvmulpd zmm0, zmm0, zmm15\nvmovupd [{to} + \\o], zmm0";
            Add "add_avx512" "vmovupd zmm0, [{x} + \\o]\nvaddpd zmm0, zmm0, [{y} + \\o]\nvmovupd [{to} + \\o], zmm0";
            Triad "triad_avx512"
                "vmovupd zmm0, [{y} + \\o]\nvmulpd zmm0, zmm0, zmm15
                 vaddpd zmm0, zmm0, [{x} + \\o]\nvmovupd [{to} + \\o], zmm0";
        }
    }

    #[cfg(target_arch = "aarch64")]
    kernels! {
        ["v7" "v0" "v1" "v2" "v3" "v4" "v5" "v6"]
        _, "dup v7.2d, v7.d[0]" 32 "" {
            Copy "copy_neon" "ldp q0, q1, [{x}, #\\o]\nstp q0, q1, [{to}, #\\o]";
            Scale "scale_neon"
                "ldp q0, q1, [{x}, #\\o]\nfmul v0.2d, v0.2d, v7.2d\nfmul v1.2d, v1.2d, v7.2d\nstp q0, q1, [{to}, #\\o]";
            Add "add_neon"
                "ldp q0, q1, [{x}, #\\o]\nldp q2, q3, [{y}, #\\o]
                 fadd v0.2d, v0.2d, v2.2d\nfadd v1.2d, v1.2d, v3.2d\nstp q0, q1, [{to}, #\\o]";
            Triad "triad_neon"
                "ldp q0, q1, [{x}, #\\o]\nldp q2, q3, [{y}, #\\o]\nfmul v2.2d, v2.2d, v7.2d\nfmul v3.2d, v3.2d, v7.2d
                 fadd v0.2d, v0.2d, v2.2d\nfadd v1.2d, v1.2d, v3.2d\nstp q0, q1, [{to}, #\\o]";
        }
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable {
    use super::{BLOCK, StreamKernel, StreamPassFn};

    macro_rules! kernel {
        ($name:ident, $both:literal, $element:expr) => {
            unsafe fn $name(to: *mut f64, x: *const f64, y: *const f64, scalar: f64, blocks: u64) {
                let element: fn(f64, f64, f64) -> f64 = $element;
                for i in 0..blocks as usize * BLOCK {
                    // SAFETY: inside the blocks that the caller vouches for; y is read only where it is used.
                    unsafe {
                        let second = if $both { y.add(i).read_volatile() } else { 0.0 };
                        to.add(i).write_volatile(element(x.add(i).read_volatile(), second, scalar));
                    }
                }
            }
        };
    }

    kernel!(copy, false, |x, _, _| x);
    kernel!(scale, false, |x, _, scalar| scalar * x);
    kernel!(add, true, |x, y, _| x + y);
    kernel!(triad, true, |x, y, scalar| x + scalar * y);

    pub(super) fn kernel(kind: StreamKernel) -> StreamPassFn {
        match kind {
            StreamKernel::Copy => copy,
            StreamKernel::Scale => scale,
            StreamKernel::Add => add,
            StreamKernel::Triad => triad,
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    use super::{StreamKernel, StreamPassFn};
    use crate::kernels::bandwidth::Width;

    pub(super) fn kernel(kind: StreamKernel, _width: Width) -> StreamPassFn {
        super::portable::kernel(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::word::KeywordEnum;

    #[test]
    fn each_kernel_computes_what_it_says_and_no_more() {
        for &kind in StreamKernel::ALL {
            for width in Width::ALL.into_iter().filter(|width| width.is_available()) {
                for (elements, done) in [(0, 0), (63, 0), (64, 64), (1_000, 960)] {
                    let x: Vec<f64> = (0..elements).map(|i| f64::from(i) / 3.0).collect();
                    let y: Vec<f64> = (0..elements).map(|i| f64::from(i) * 1.7 - 50.0).collect();
                    let mut to = vec![-1.0; elements as usize];
                    let mut plain = to.clone();
                    assert_eq!(pass(kind, width, &mut to, &x, &y, 3.1), done);
                    for (i, value) in to.iter().enumerate() {
                        let expected = match kind {
                            _ if i >= done => -1.0,
                            StreamKernel::Copy => x[i],
                            StreamKernel::Scale => 3.1 * x[i],
                            StreamKernel::Add => x[i] + y[i],
                            StreamKernel::Triad => x[i] + 3.1 * y[i],
                        };
                        assert_eq!(*value, expected, "{kind} {width} element {i}");
                    }
                    // SAFETY: the arrays have so many blocks.
                    unsafe {
                        portable::kernel(kind)(
                            plain.as_mut_ptr(),
                            x.as_ptr(),
                            y.as_ptr(),
                            3.1,
                            (done / BLOCK) as u64,
                        );
                    }
                    assert_eq!(plain, to);
                }
            }
        }
    }

    #[test]
    fn the_shortest_array_in_use_ends_the_pass() {
        let (mut to, x, y) = (vec![0.0; 300], vec![1.0; 200], vec![1.0; 100]);
        assert_eq!(run_pass(StreamKernel::Scale, &mut to, &x, &y, 2.0), 192);
        assert_eq!(run_pass(StreamKernel::Triad, &mut to, &x, &y, 2.0), 64);
        assert_eq!(run_pass(StreamKernel::Copy, &mut to, &x, &[], 2.0), 192);
    }

    #[test]
    fn bytes_are_counted_both_ways() {
        let bytes = |kind: &StreamKernel| (kind.bytes_per_element(), kind.bytes_per_element_moved());
        let all: Vec<(u64, u64)> = StreamKernel::ALL.iter().map(bytes).collect();
        assert_eq!(all, [(16, 24), (16, 24), (24, 32), (24, 32)]);
        for &kind in StreamKernel::ALL {
            assert_eq!(StreamKernel::from_word(kind.word()), Some(kind));
        }
    }
}
