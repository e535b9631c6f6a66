//! The four kernels of STREAM on `f64`.
//!
//! With three arrays `a`, `b` and `c`: copy is `c = a`, scale is `b = s·c`, add is `c = a + b`, triad is
//! `a = b + s·c`. In vectors of the widest form, with ordinary stores, in assembly, so that no compiler makes a
//! `memcpy` of the copy.

use std::fmt;

use super::bandwidth::Width;

/// Elements left over from blocks of this many are not touched.
pub const BLOCK: usize = 64;

/// A kernel of STREAM.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Stream {
    /// `to = x`.
    Copy,
    /// `to = scalar · x`.
    Scale,
    /// `to = x + y`.
    Add,
    /// `to = x + scalar · y`, the product rounded before the sum.
    Triad,
}

impl Stream {
    /// All kernels, in the order in which STREAM runs them.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];

    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }

    /// Returns the kernel with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

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

    /// Returns the floating-point operations per element.
    pub const fn flops_per_element(self) -> u64 {
        match self {
            Self::Copy => 0,
            Self::Scale | Self::Add => 1,
            Self::Triad => 2,
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Makes one pass of a kernel over as many elements as the arrays it uses all have, in blocks of [`BLOCK`], and
/// returns how many elements those are. Copy and scale do not use `y`, copy and add not `scalar`.
///
/// Align the arrays to 64 bytes, as vectors across two cache lines are slow.
pub fn run(kind: Stream, to: &mut [f64], x: &[f64], y: &[f64], scalar: f64) -> usize {
    pass(kind, Width::widest(), to, x, y, scalar)
}

fn pass(kind: Stream, width: Width, to: &mut [f64], x: &[f64], y: &[f64], scalar: f64) -> usize {
    let elements = match kind {
        Stream::Copy | Stream::Scale => to.len().min(x.len()),
        Stream::Add | Stream::Triad => to.len().min(x.len()).min(y.len()),
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
type Kernel = unsafe fn(to: *mut f64, x: *const f64, y: *const f64, scalar: f64, blocks: u64);

#[cfg(target_arch = "x86_64")]
mod machine {
    use core::arch::asm;

    use super::{Kernel, Stream};
    use crate::kernels::bandwidth::Width;

    /// Defines a pass. The scalar is in all lanes of the vector register 15, from `setup` on.
    macro_rules! kernel {
        ($name:ident, [$($setup:literal),*], [$($body:literal),+], [$($finish:literal),*]) => {
            #[unsafe(no_mangle)]
            #[inline(never)]
            unsafe fn $name(to: *mut f64, x: *const f64, y: *const f64, scalar: f64, blocks: u64) {
                // SAFETY: the caller vouches for the arrays, for blocks > 0, and for the instructions; besides,
                // only the declared registers and the flags change.
                unsafe {
                    asm!(
                        $($setup,)*
                        ".p2align 6",
                        "2:",
                        $($body,)+
                        "add {to}, 512",
                        "add {x}, 512",
                        "add {y}, 512",
                        "sub {n}, 1",
                        "jnz 2b",
                        $($finish,)*
                        to = inout(reg) to => _,
                        x = inout(reg) x => _,
                        y = inout(reg) y => _,
                        n = inout(reg) blocks => _,
                        inout("xmm15") scalar => _,
                        out("xmm0") _,
                        out("xmm1") _,
                        out("xmm2") _,
                        out("xmm3") _,
                        out("xmm4") _,
                        out("xmm5") _,
                        out("xmm6") _,
                        out("xmm7") _,
                        out("xmm8") _,
                        out("xmm9") _,
                        out("xmm10") _,
                        out("xmm11") _,
                        out("xmm12") _,
                        out("xmm13") _,
                        out("xmm14") _,
                        options(nostack),
                    );
                }
            }
        };
    }

    kernel!(
        latscope_kernel_stream_copy_sse2,
        ["unpcklpd xmm15, xmm15"],
        [
            ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
            "movupd xmm0, [{x} + \\o]",
            "movupd [{to} + \\o], xmm0",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_scale_sse2,
        ["unpcklpd xmm15, xmm15"],
        [
            ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
            "movupd xmm0, [{x} + \\o]",
            "mulpd xmm0, xmm15",
            "movupd [{to} + \\o], xmm0",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_add_sse2,
        ["unpcklpd xmm15, xmm15"],
        [
            ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
            "movupd xmm0, [{x} + \\o]",
            "movupd xmm1, [{y} + \\o]",
            "addpd xmm0, xmm1",
            "movupd [{to} + \\o], xmm0",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_triad_sse2,
        ["unpcklpd xmm15, xmm15"],
        [
            ".irp o, 0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 400, 416, 432, 448, 464, 480, 496",
            "movupd xmm0, [{y} + \\o]",
            "mulpd xmm0, xmm15",
            "movupd xmm1, [{x} + \\o]",
            "addpd xmm0, xmm1",
            "movupd [{to} + \\o], xmm0",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_copy_avx2,
        ["vbroadcastsd ymm15, xmm15"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "vmovupd ymm0, [{x} + \\o]",
            "vmovupd [{to} + \\o], ymm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_scale_avx2,
        ["vbroadcastsd ymm15, xmm15"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "vmovupd ymm0, [{x} + \\o]",
            "vmulpd ymm0, ymm0, ymm15",
            "vmovupd [{to} + \\o], ymm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_add_avx2,
        ["vbroadcastsd ymm15, xmm15"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "vmovupd ymm0, [{x} + \\o]",
            "vaddpd ymm0, ymm0, [{y} + \\o]",
            "vmovupd [{to} + \\o], ymm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_triad_avx2,
        ["vbroadcastsd ymm15, xmm15"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "vmovupd ymm0, [{y} + \\o]",
            "vmulpd ymm0, ymm0, ymm15",
            "vaddpd ymm0, ymm0, [{x} + \\o]",
            "vmovupd [{to} + \\o], ymm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_copy_avx512,
        ["vbroadcastsd zmm15, xmm15"],
        [
            ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
            "vmovupd zmm0, [{x} + \\o]",
            "vmovupd [{to} + \\o], zmm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_scale_avx512,
        ["vbroadcastsd zmm15, xmm15"],
        [
            ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
            "vmovupd zmm0, [{x} + \\o]",
            "vmulpd zmm0, zmm0, zmm15",
            "vmovupd [{to} + \\o], zmm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_add_avx512,
        ["vbroadcastsd zmm15, xmm15"],
        [
            ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
            "vmovupd zmm0, [{x} + \\o]",
            "vaddpd zmm0, zmm0, [{y} + \\o]",
            "vmovupd [{to} + \\o], zmm0",
            ".endr"
        ],
        ["vzeroupper"]
    );
    kernel!(
        latscope_kernel_stream_triad_avx512,
        ["vbroadcastsd zmm15, xmm15"],
        [
            ".irp o, 0, 64, 128, 192, 256, 320, 384, 448",
            "vmovupd zmm0, [{y} + \\o]",
            "vmulpd zmm0, zmm0, zmm15",
            "vaddpd zmm0, zmm0, [{x} + \\o]",
            "vmovupd [{to} + \\o], zmm0",
            ".endr"
        ],
        ["vzeroupper"]
    );

    pub(super) fn kernel(kind: Stream, width: Width) -> Kernel {
        match (width, kind) {
            (Width::Scalar | Width::Bits128, Stream::Copy) => latscope_kernel_stream_copy_sse2,
            (Width::Scalar | Width::Bits128, Stream::Scale) => latscope_kernel_stream_scale_sse2,
            (Width::Scalar | Width::Bits128, Stream::Add) => latscope_kernel_stream_add_sse2,
            (Width::Scalar | Width::Bits128, Stream::Triad) => latscope_kernel_stream_triad_sse2,
            (Width::Bits256, Stream::Copy) => latscope_kernel_stream_copy_avx2,
            (Width::Bits256, Stream::Scale) => latscope_kernel_stream_scale_avx2,
            (Width::Bits256, Stream::Add) => latscope_kernel_stream_add_avx2,
            (Width::Bits256, Stream::Triad) => latscope_kernel_stream_triad_avx2,
            (Width::Bits512, Stream::Copy) => latscope_kernel_stream_copy_avx512,
            (Width::Bits512, Stream::Scale) => latscope_kernel_stream_scale_avx512,
            (Width::Bits512, Stream::Add) => latscope_kernel_stream_add_avx512,
            (Width::Bits512, Stream::Triad) => latscope_kernel_stream_triad_avx512,
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use core::arch::asm;

    use super::{Kernel, Stream};
    use crate::kernels::bandwidth::Width;

    /// Defines a pass. The scalar is in all lanes of the vector register 7, from `setup` on.
    macro_rules! kernel {
        ($name:ident, [$($setup:literal),*], [$($body:literal),+], [$($finish:literal),*]) => {
            #[unsafe(no_mangle)]
            #[inline(never)]
            unsafe fn $name(to: *mut f64, x: *const f64, y: *const f64, scalar: f64, blocks: u64) {
                // SAFETY: the caller vouches for the arrays, for blocks > 0, and for the instructions; besides,
                // only the declared registers and the flags change.
                unsafe {
                    asm!(
                        $($setup,)*
                        ".p2align 6",
                        "2:",
                        $($body,)+
                        "add {to}, {to}, #512",
                        "add {x}, {x}, #512",
                        "add {y}, {y}, #512",
                        "subs {n}, {n}, #1",
                        "b.ne 2b",
                        $($finish,)*
                        to = inout(reg) to => _,
                        x = inout(reg) x => _,
                        y = inout(reg) y => _,
                        n = inout(reg) blocks => _,
                        inout("v7") scalar => _,
                        out("v0") _,
                        out("v1") _,
                        out("v2") _,
                        out("v3") _,
                        out("v4") _,
                        out("v5") _,
                        out("v6") _,
                        options(nostack),
                    );
                }
            }
        };
    }

    kernel!(
        latscope_kernel_stream_copy_neon,
        ["dup v7.2d, v7.d[0]"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "ldp q0, q1, [{x}, #\\o]",
            "stp q0, q1, [{to}, #\\o]",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_scale_neon,
        ["dup v7.2d, v7.d[0]"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "ldp q0, q1, [{x}, #\\o]",
            "fmul v0.2d, v0.2d, v7.2d",
            "fmul v1.2d, v1.2d, v7.2d",
            "stp q0, q1, [{to}, #\\o]",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_add_neon,
        ["dup v7.2d, v7.d[0]"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "ldp q0, q1, [{x}, #\\o]",
            "ldp q2, q3, [{y}, #\\o]",
            "fadd v0.2d, v0.2d, v2.2d",
            "fadd v1.2d, v1.2d, v3.2d",
            "stp q0, q1, [{to}, #\\o]",
            ".endr"
        ],
        []
    );
    kernel!(
        latscope_kernel_stream_triad_neon,
        ["dup v7.2d, v7.d[0]"],
        [
            ".irp o, 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
            "ldp q0, q1, [{x}, #\\o]",
            "ldp q2, q3, [{y}, #\\o]",
            "fmul v2.2d, v2.2d, v7.2d",
            "fmul v3.2d, v3.2d, v7.2d",
            "fadd v0.2d, v0.2d, v2.2d",
            "fadd v1.2d, v1.2d, v3.2d",
            "stp q0, q1, [{to}, #\\o]",
            ".endr"
        ],
        []
    );

    pub(super) fn kernel(kind: Stream, _width: Width) -> Kernel {
        match kind {
            Stream::Copy => latscope_kernel_stream_copy_neon,
            Stream::Scale => latscope_kernel_stream_scale_neon,
            Stream::Add => latscope_kernel_stream_add_neon,
            Stream::Triad => latscope_kernel_stream_triad_neon,
        }
    }
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable {
    use super::{BLOCK, Kernel, Stream};

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

    pub(super) fn kernel(kind: Stream) -> Kernel {
        match kind {
            Stream::Copy => copy,
            Stream::Scale => scale,
            Stream::Add => add,
            Stream::Triad => triad,
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    use super::{Kernel, Stream};
    use crate::kernels::bandwidth::Width;

    pub(super) fn kernel(kind: Stream, _width: Width) -> Kernel {
        super::portable::kernel(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_computes_what_it_says_and_no_more() {
        for kind in Stream::ALL {
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
                            Stream::Copy => x[i],
                            Stream::Scale => 3.1 * x[i],
                            Stream::Add => x[i] + y[i],
                            Stream::Triad => x[i] + 3.1 * y[i],
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
        assert_eq!(run(Stream::Scale, &mut to, &x, &y, 2.0), 192);
        assert_eq!(run(Stream::Triad, &mut to, &x, &y, 2.0), 64);
        assert_eq!(run(Stream::Copy, &mut to, &x, &[], 2.0), 192);
    }

    #[test]
    fn bytes_are_counted_both_ways() {
        assert_eq!(Stream::ALL.map(Stream::bytes_per_element), [16, 16, 24, 24]);
        assert_eq!(Stream::ALL.map(Stream::bytes_per_element_moved), [24, 24, 32, 32]);
        for kind in Stream::ALL {
            assert_eq!(Stream::from_name(kind.name()), Some(kind));
        }
    }
}
