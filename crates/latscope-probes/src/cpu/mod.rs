//! Operations of the core itself, which take nanoseconds: a cycle, arithmetic, branches, calls, readings of a
//! clock; and what a core takes to wake up.

mod arithmetic;
mod branch;
mod call;
mod clock;
mod cycle;
mod forward;
mod idle_exit;
mod indirect;
mod jump;
mod ramp;
mod returns;
mod vm_exit;

use super::{Condition, Family, FamilyFacts, Probe};
use latscope_core::plan::PlanStep;

/// The family of operations of the core.
pub static FAMILY: Family = Family {
    facts: FamilyFacts {
        name: "cpu",
        about: "The core: cycle, arithmetic, branches, calls, reading a clock, waking up",
        sensitive_to: &[Condition::Speed, Condition::ClockRate, Condition::SharedCore],
        ..FamilyFacts::DEFAULT
    },
    probes: PROBES,
};

/// The probes of the family.
pub static PROBES: &[&Probe] = &[
    &cycle::CYCLE,
    &arithmetic::ADD,
    &arithmetic::SUB,
    &arithmetic::MUL,
    &arithmetic::DIV,
    &arithmetic::MOD,
    &arithmetic::AND,
    &arithmetic::OR,
    &arithmetic::XOR,
    &arithmetic::SHIFT,
    &arithmetic::ROTATE,
    &arithmetic::POPCOUNT,
    &arithmetic::FMA,
    &branch::BRANCH,
    &call::CALL,
    &forward::FORWARD,
    &jump::JUMP,
    &indirect::INDIRECT,
    &returns::RETURNS,
    &clock::RDTSC,
    &clock::VDSO,
    &clock::SYSCALL,
    &vm_exit::VM_EXIT,
    &ramp::RAMP,
    &idle_exit::IDLE_EXIT,
];

/// Gives a step whose samples contain long sleeps `times` as much time and at most `events` samples, unless a time or a
/// count was asked for.
fn sleepy(step: &mut PlanStep, times: u64, events: u64) {
    let planned = &mut step.stop;
    if planned.budget_ns != u64::MAX && planned.limit_ns != planned.budget_ns {
        planned.budget_ns *= times;
        planned.limit_ns *= times;
        planned.events = planned.events.min(events);
    }
}
