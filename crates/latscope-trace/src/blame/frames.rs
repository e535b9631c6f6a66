//! Interrupts that are being handled on a CPU.

use crate::events::{KernelTraceEventKind, TraceName};

/// An interrupt that is being handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Irq(u32, TraceName),
    Vector(TraceName),
    Softirq(u32),
}

/// Returns the interrupt that an event ends.
pub(super) fn ended_frame(kind: &KernelTraceEventKind) -> Option<Frame> {
    match kind {
        KernelTraceEventKind::IrqExit { irq } => Some(Frame::Irq(*irq, format!("number {irq}").into())),
        KernelTraceEventKind::VectorExit { name, .. } => Some(Frame::Vector(name.clone())),
        KernelTraceEventKind::SoftirqExit { vector } => Some(Frame::Softirq(*vector)),
        _ => None,
    }
}

/// Returns true if two are the same interrupt, whatever its name.
pub(super) fn same(one: &Frame, other: &Frame) -> bool {
    match (one, other) {
        (Frame::Irq(one, _), Frame::Irq(other, _)) => one == other,
        _ => one == other,
    }
}
