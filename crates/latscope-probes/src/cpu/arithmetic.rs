//! Arithmetic: the time of one operation when the next one waits for it, and the rate of operations that do not
//! wait.

use crate::prelude::*;
use latscope_os::kernels::arith::{self, ArithmeticKernel, Number, Op};

settings! {
    /// Operands of a calculation, and its mode.
    struct ArithmeticSettings, requested as ArithmeticRequest {
        /// What the operands are.
        number("type"): Number;
        /// `latency`: each operation waits for the one before; `throughput`: none waits.
        mode: OperationDependence;
    }
}

words! {
    /// Dependence of an operation on the one before it.
    enum OperationDependence {
        /// Each operation waits for the one before.
        Latency = "latency",
        /// No operation waits for another.
        Throughput = "throughput",
    }
}

/// All arithmetic is measured in one worker.
static EXPERIMENT: Experiment = Experiment::new("cpu.arithmetic", Cpus::One, run_arithmetic);

const SOURCE: &str = "the instruction tables of the processor's maker; the kernels are assembly";

probes! {
    EXPERIMENT, ArithmeticSettings, plan_arithmetic, ..ProbeFacts::LOOPS;
    ADD "cpu.add", "add", SOURCE, "One addition of two registers.";
    SUB "cpu.sub", "subtract", SOURCE, "One subtraction of two registers.";
    MUL "cpu.mul", "multiply", SOURCE, "One multiplication of two registers.";
    DIV "cpu.div", "divide", SOURCE,
        "One division of large operands; the latency of integers contains one addition.";
    MOD "cpu.mod", "remainder", SOURCE,
        "One remainder of a division of large operands; the latency contains one addition.";
    AND "cpu.and", "and", SOURCE, "One bitwise and of two registers.";
    OR "cpu.or", "or", SOURCE, "One bitwise or of two registers.";
    XOR "cpu.xor", "xor", SOURCE, "One bitwise exclusive or of two registers.";
    SHIFT "cpu.shift", "shift", SOURCE, "One shift of a register by a constant.";
    ROTATE "cpu.rotate", "rotate", SOURCE, "One rotation of a register by a constant.";
    POPCOUNT "cpu.popcount", "popcount", SOURCE, "The number of set bits of one register.";
    FMA "cpu.fma", "multiply-add", SOURCE,
        "One multiplication and addition with one rounding, the chain leading through a factor.";
}

/// Returns the operation that a probe times.
fn operation(probe: &str) -> Option<Op> {
    Op::from_word(probe.trim_start_matches("cpu."))
}

fn plan_arithmetic(probe: &Probe, input: &PlanInput, _: &Machine) -> Vec<MeasurementPoint> {
    let mut points = Vec::new();
    let Some(op) = operation(probe.id) else { return points };
    let asked = ArithmeticRequest::of(input);
    for number in asked.number.or(Number::ALL).into_iter().filter(|number| op.applies_to(*number)) {
        for mode in asked.mode.or(OperationDependence::ALL) {
            let latency = mode == OperationDependence::Latency;
            let addition = if latency && with_addition(op, number) { " + add" } else { "" };
            let title = format!("{number} {}{addition}, {}", probe.title, mode.word());
            let row = latency && is_row(op, number);
            points.push(probe.make_point(ArithmeticSettings { number, mode }, title, row));
        }
    }
    points
}

/// Returns true if an addition keeps the operands of a latency kernel large.
fn with_addition(op: Op, number: Number) -> bool {
    matches!(op, Op::Div | Op::Mod) && !number.is_float()
}

/// Returns true if the survey has a row for the latency of this operation.
fn is_row(op: Op, number: Number) -> bool {
    match number {
        Number::I64 => matches!(op, Op::Add | Op::Mul | Op::Div | Op::PopCount),
        Number::F64 => matches!(op, Op::Add | Op::Mul | Op::Div | Op::Fma),
        _ => false,
    }
}

fn kernel(probe: &str, ArithmeticSettings { number, mode }: &ArithmeticSettings) -> Option<ArithmeticKernel> {
    let op = operation(probe)?;
    match mode {
        OperationDependence::Latency => arith::latency(op, *number),
        OperationDependence::Throughput => arith::throughput_kernel(op, *number),
    }
}

fn run_arithmetic(bench: &mut Bench) -> Result<()> {
    for (index, point) in bench.points().iter().enumerate() {
        let calculation = ArithmeticSettings::read(point)?;
        let Some(kernel) = kernel(&point.probe, &calculation) else {
            let reason =
                format!("this processor has no instruction for {} on {}", point.probe, calculation.number);
            bench.unsupported(index, reason, "");
            continue;
        };
        let batch = Batch { ops: kernel.ops, cycles: true, ..Batch::default() };
        bench.batch(index, batch, |n| kernel.run(n));
        if kernel.chains > 1 {
            bench.add_value(index, "chains", kernel.chains as f64, "count", Better::Neither);
        }
        if kernel.extra_adds_per_op > 0.0 {
            let additions = kernel.extra_adds_per_op;
            bench.add_value(index, "additions", additions, "cycles", Better::Neither);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::PROBES;
    use latscope_core::plan::ParamValue;
    use latscope_core::quality::QualityLevel;
    use latscope_engine::harness;

    fn all_points() -> Vec<MeasurementPoint> {
        let ours = PROBES.iter().filter(|probe| std::ptr::eq(probe.experiment, &EXPERIMENT));
        ours.flat_map(|probe| harness::points(probe)).collect()
    }

    #[test]
    fn every_operation_is_planned_for_every_type_it_has() {
        let points = all_points();
        // 11 operations on two types of integers and 5 on two types of floats, in two modes.
        assert_eq!(points.len(), 2 * (11 * 2 + 5 * 2));
        let rows: Vec<&str> = points.iter().filter(|p| p.row).map(|p| p.title.as_str()).collect();
        let expected = [
            "i64 add", "f64 add", "i64 multiply", "f64 multiply", "i64 divide + add", "f64 divide",
            "i64 popcount", "f64 multiply-add",
        ];
        assert_eq!(rows, expected.map(|title| format!("{title}, latency")));
    }

    #[test]
    fn a_type_without_the_operation_has_no_point() {
        let mut input = harness::input();
        input.values.insert("type".into(), vec![ParamValue::Text("f64".into())]);
        assert_eq!(XOR.plan(&input, &harness::machine()), []);
        assert_eq!(FMA.plan(&input, &harness::machine()).len(), 2);
    }

    #[test]
    fn what_the_plan_says_of_additions_is_what_the_kernels_do() {
        for point in all_points() {
            if let Some(kernel) = kernel(&point.probe, &ArithmeticSettings::read(&point).unwrap()) {
                let said = point.title.contains("+ add,");
                assert_eq!(kernel.extra_adds_per_op > 0.0, said, "{}", point.title);
            }
        }
    }

    #[test]
    fn all_of_it_is_measured() {
        let measured = harness::measure(&EXPERIMENT, all_points());
        measured.iter().for_each(harness::check);
        let known = |m: &&latscope_core::report::Measurement| m.quality.level != QualityLevel::Unsupported;
        assert!(measured.iter().filter(known).all(|m| m.summary.cycles.is_some()));
        assert!(measured.iter().filter(known).count() >= 2 * (10 * 2 + 4 * 2));
    }
}
