//! Disassembles this very program, and checks that each timed loop is what it is said to be: the chain is there,
//! as long as told, and nothing but it.
//!
//! Needs `objdump` of GNU binutils (or the program that the variable `OBJDUMP` names).
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use latscope_core::word::KeywordEnum;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use latscope_os::kernels::{
    arith::{self, ArithmeticKernel, Number, Op},
    atomics::{self, Atomic},
    bandwidth::{self, BandwidthStride, Operation, Width},
    branch, call,
    chase::{Chains, ChaseMap, MAX_CHAINS, REGISTER_CHAINS},
    cycle, empty, forward,
    stream::{self, StreamKernel},
};

const X86: bool = cfg!(target_arch = "x86_64");

/// An instruction: its address, its name, and its operands as text.
#[derive(Clone, Debug)]
struct Instruction {
    address: u64,
    name: String,
    operands: String,
}

impl Instruction {
    /// The operands, without what is inside brackets torn apart.
    fn list(&self) -> Vec<&str> {
        let mut depth = 0;
        self.operands
            .split(|c: char| {
                match c {
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth -= 1,
                    _ => {}
                }
                c == ',' && depth == 0
            })
            .map(str::trim)
            .collect()
    }

    /// The register where the result goes: the last operand on x86-64 (in AT&T's order), the first on AArch64.
    fn result(&self) -> &str {
        let list = self.list();
        if X86 { list[list.len() - 1] } else { list[0] }
    }

    /// Whether this loads a register from where it points to, with no offset.
    fn follows(&self) -> bool {
        let list = self.list();
        list.len() == 2
            && if X86 {
                // The encoding of some base registers always has an offset, here of zero.
                self.name == "mov" && list[0].trim_start_matches("0x0") == format!("({})", list[1])
            } else {
                self.name == "ldr" && list[1] == format!("[{}]", list[0])
            }
    }
}

type Functions = BTreeMap<String, Vec<Instruction>>;

/// The functions whose names tell that they are kernels. Kernels are also used here, since the linker leaves out
/// what is not used.
fn functions() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        use_kernels();
        let objdump = std::env::var("OBJDUMP").unwrap_or_else(|_| "objdump".to_owned());
        let output = Command::new(&objdump)
            .args(["-d", "--no-show-raw-insn"])
            .arg(std::env::current_exe().expect("this program has a path"))
            .env("LC_ALL", "C")
            .output()
            .unwrap_or_else(|e| {
                panic!("cannot run {objdump}: {e}; this test needs GNU binutils (package binutils)")
            });
        assert!(
            output.status.success(),
            "{objdump} failed, {}: {}; this test needs GNU binutils for this architecture, or the path of its \
             objdump in OBJDUMP",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let functions = parse(&String::from_utf8_lossy(&output.stdout));
        assert!(!functions.is_empty(), "{objdump} shows no kernel: is this program stripped?");
        functions
    })
}

fn parse(text: &str) -> Functions {
    let mut functions = Functions::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            current = name.1.contains("latscope_kernel_").then(|| name.1.to_owned());
        } else if let (Some(name), Some((address, instruction))) = (&current, line.split_once(":\t")) {
            let address = u64::from_str_radix(address.trim(), 16).expect("an address is hexadecimal");
            let instruction = instruction.split(['#', '<']).next().unwrap_or_default().trim();
            // Immediates of AArch64 begin with '#', and so would be cut off.
            let instruction = if X86 { instruction } else { line.split_once(":\t").unwrap().1.trim() };
            let (name_of, operands) =
                instruction.split_once(char::is_whitespace).unwrap_or((instruction, ""));
            let (name_of, operands) = match name_of {
                "lock" => {
                    let operands = operands.trim();
                    let (name, operands) = operands.split_once(char::is_whitespace).unwrap_or((operands, ""));
                    (format!("lock {name}"), operands)
                }
                _ => (name_of.to_owned(), operands),
            };
            functions.entry(name.clone()).or_default().push(Instruction {
                address,
                name: name_of,
                operands: operands.trim().to_owned(),
            });
        }
    }
    functions
}

/// Runs each kernel once.
fn use_kernels() {
    cycle::dependent_adds(1);
    empty::empty(1);
    for kernel in kernels() {
        kernel.run(1);
    }
    let mut memory = vec![0; 4_096];
    let map = ChaseMap::random(&mut memory, 64, 1);
    map.walk_from(map.start(), 1);
    let all = Chains::random(&mut memory, 64, 1);
    for chains in 1..=MAX_CHAINS {
        all.select_chains(chains).walk_all(1);
    }
    branch::mispredict(&[1]);
    call::direct(1);
    call::indirect(1);
    for (narrow, late) in [(false, false), (false, true), (true, false), (true, true)] {
        forward::store_and_load(&mut [0], 0, forward::Store { narrow, late }, 1);
    }
    for &kind in Atomic::ALL {
        atomics::run_operations(kind, &AtomicU64::new(0), 1);
    }
    let (mut to, from) = (vec![0; 128], vec![0; 128]);
    for &operation in Operation::ALL {
        for &step in BandwidthStride::ALL {
            for width in Width::ALL {
                bandwidth::run_passes(operation, step, width, &mut to, &from, 1);
            }
        }
    }
    bandwidth::sequential_sum(&from);
    bandwidth::sequential_xor(&from);
    let (mut to, from) = (vec![0.0; 64], vec![1.0; 64]);
    for &kind in StreamKernel::ALL {
        stream::run_pass(kind, &mut to, &from, &from, 2.0);
    }
}

fn kernels() -> Vec<ArithmeticKernel> {
    let mut all = Vec::new();
    for &op in Op::ALL {
        for &number in Number::ALL {
            all.extend(arith::latency(op, number));
            all.extend(arith::throughput_kernel(op, number));
        }
    }
    all
}

fn function(name: &str) -> &'static [Instruction] {
    functions().get(name).unwrap_or_else(|| panic!("{name} is not in this program"))
}

/// The longest run of instructions that all pass, and what stands behind it.
fn longest(
    code: &[Instruction],
    test: impl Fn(&Instruction) -> bool,
) -> (Vec<Instruction>, Vec<Instruction>) {
    let mut best = (0, 0);
    let mut first = 0;
    for i in 0..=code.len() {
        if i == code.len() || !test(&code[i]) {
            if i - first > best.1 - best.0 {
                best = (first, i);
            }
            first = i + 1;
        }
    }
    (code[best.0..best.1].to_vec(), code[best.1..].to_vec())
}

/// Checks that a loop ends here: a counter goes down, and a jump goes back.
fn assert_loop_ends(name: &str, behind: &[Instruction]) {
    let names: Vec<&str> = behind.iter().take(2).map(|i| i.name.as_str()).collect();
    if X86 {
        assert_eq!(names, ["sub", "jne"], "{name}: not the end of a loop: {behind:.4?}");
    } else {
        assert_eq!(names, ["subs", "b.ne"], "{name}: not the end of a loop: {behind:.4?}");
    }
}

fn count(code: &[Instruction], name: &str) -> usize {
    code.iter().filter(|instruction| instruction.name == name).count()
}

#[test]
fn adds_are_one_chain_of_registers() {
    let name = "latscope_kernel_adds";
    let code = function(name);
    let (run, behind) =
        longest(code, |i| i.name == "add" && i.list().iter().all(|o| !o.contains(['$', '#'])));
    assert_eq!(run.len() as u64, cycle::ADDS_PER_ITERATION);
    assert!(run.iter().all(|i| i.operands == run[0].operands), "the additions are not all the same");
    let list = run[0].list();
    if X86 {
        assert_ne!(list[0], list[1]);
    } else {
        assert_eq!(list[0], list[1]);
        assert_ne!(list[1], list[2]);
    }
    assert_loop_ends(name, &behind);
}

#[test]
fn a_chase_is_nothing_but_loads() {
    let name = "latscope_kernel_chase";
    let (run, behind) = longest(function(name), Instruction::follows);
    assert_eq!(run.len(), 64);
    assert!(run.iter().all(|i| i.operands == run[0].operands), "the loads are not all the same");
    assert_loop_ends(name, &behind);
}

#[test]
fn many_chains_take_turns_in_registers() {
    let mut chains_seen = BTreeSet::new();
    let mut on_stack = BTreeSet::new();
    for (name, code) in functions().iter().filter(|(name, _)| name.contains("latscope_kernel_chase_many")) {
        let (run, behind) = longest(code, Instruction::follows);
        if run.len() >= 8 {
            let chains = run.iter().map(|i| i.result().to_owned()).collect::<BTreeSet<_>>().len();
            assert_eq!(run.len(), 8 * chains, "{name}");
            for (turn, load) in run.iter().enumerate() {
                assert_eq!(
                    load.operands,
                    run[turn % chains].operands,
                    "{name}: the chains do not take turns"
                );
            }
            assert_loop_ends(name, &behind);
            chains_seen.insert(chains);
        } else {
            let loads = code.iter().filter(|i| i.follows()).count();
            assert_eq!(loads % 8, 0, "{name}");
            on_stack.insert(loads / 8);
        }
    }
    assert_eq!(chains_seen, (1..=REGISTER_CHAINS).collect());
    assert_eq!(on_stack, (REGISTER_CHAINS + 1..=MAX_CHAINS).collect());
}

/// The instruction that is measured.
fn instruction(op: Op, number: Number) -> String {
    let float = number.is_float();
    if X86 {
        let suffix = if number == Number::F32 { "ss" } else { "sd" };
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Div if float => format!("{op}{suffix}"),
            Op::Fma => format!("vfmadd213{suffix}"),
            Op::Mul => "imul".into(),
            Op::Div | Op::Mod => "idiv".into(),
            Op::Shift => "shl".into(),
            Op::Rotate => "ror".into(),
            Op::PopCount => "popcnt".into(),
            _ => op.word().into(),
        }
    } else {
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Div if float => format!("f{op}"),
            Op::Fma => "fmadd".into(),
            Op::Div | Op::Mod => "sdiv".into(),
            Op::Shift => "lsl".into(),
            Op::Rotate => "ror".into(),
            Op::Or => "orr".into(),
            Op::Xor => "eor".into(),
            Op::PopCount => "cnt".into(),
            _ => op.word().into(),
        }
    }
}

/// Whether a register has the width of the numbers.
fn fits(number: Number, register: &str) -> bool {
    if X86 {
        let register = register.trim_start_matches('%');
        match number {
            // %eax and %r8d against %rax and %r8.
            Number::I32 => {
                register.starts_with('e') || (register.starts_with('r') && register.ends_with('d'))
            }
            Number::I64 => register.starts_with('r') && !register.ends_with('d'),
            Number::F32 | Number::F64 => register.starts_with("xmm"),
        }
    } else {
        let letter = match number {
            Number::I32 => 'w',
            Number::I64 => 'x',
            Number::F32 => 's',
            Number::F64 => 'd',
        };
        register.starts_with(letter)
    }
}

#[test]
fn arithmetic_is_the_operation_as_often_as_told() {
    for kernel in kernels() {
        let (op, number, name) = (kernel.op, kernel.number, instruction(kernel.op, kernel.number));
        let symbol = format!(
            "latscope_kernel_{}_{op}_{number}",
            if kernel.chains == 1 { "latency" } else { "throughput" }
        );
        let code = function(&symbol);
        let vector = op == Op::PopCount && !X86;
        if matches!(op, Op::Div | Op::Mod) && !number.is_float() || vector {
            // Others stand between; only those with this name count.
            assert_eq!(count(code, &name) as u64, kernel.ops, "{symbol}: {name}");
            if !vector {
                assert!(code.iter().filter(|i| i.name == name).all(|i| fits(number, i.result())), "{symbol}");
            }
            continue;
        }
        // `sub $0x1` is the counter of the loop.
        let counter = |i: &Instruction| X86 && i.operands.starts_with("$0x1,");
        let (run, behind) = longest(code, |i| i.name == name && fits(number, i.result()) && !counter(i));
        assert_eq!(run.len() as u64, kernel.ops, "{symbol}: {name}");
        let chains: BTreeSet<&str> = run.iter().map(|i| i.result()).collect();
        assert_eq!(chains.len() as u64, kernel.chains, "{symbol}: {chains:?}");
        assert_loop_ends(&symbol, &behind);
    }
}

#[test]
fn a_data_dependent_branch_is_a_jump() {
    let code = function("latscope_kernel_branch");
    assert_eq!(count(code, if X86 { "jae" } else { "tbz" }), 64);
    assert_eq!(count(code, if X86 { "shr" } else { "lsr" }), 64);
    assert!(!code.iter().any(|i| i.name.starts_with("cmov") || i.name.starts_with("csel")));
}

#[test]
fn calls_are_calls() {
    let (direct, indirect) = if X86 { ("call", "call") } else { ("bl", "blr") };
    for (symbol, name) in
        [("latscope_kernel_call_direct", direct), ("latscope_kernel_call_indirect", indirect)]
    {
        let pads = |i: &Instruction| {
            X86 && ["nop", "nopw", "nopl", "xchg", "cs", "data16"].contains(&i.name.as_str())
        };
        let (mut run, behind) = longest(function(symbol), |i| i.name == name || pads(i));
        assert_loop_ends(symbol, &behind);
        run.retain(|i| i.name == name);
        assert_eq!(run.len() as u64, call::CALLS_PER_ITERATION, "{symbol}");
        assert_eq!(run[0].operands.starts_with('*'), X86 && symbol.ends_with("indirect"));
        // Closer ones are mispredicted on some cores.
        let apart = if X86 { call::BYTES_APART } else { 4 };
        assert!(run.windows(2).all(|two| two[1].address - two[0].address == apart), "{symbol}: {run:?}");
    }
}

#[test]
fn a_load_of_the_chain_follows_every_store() {
    let kernels = [("", "str"), ("_narrow", "strb"), ("_late", "str"), ("_narrow_late", "strb")];
    for (ending, store) in kernels {
        let symbol = &format!("latscope_kernel_store{ending}");
        let moves = |i: &Instruction| if X86 { i.name == "mov" } else { [store, "ldr"].contains(&&*i.name) };
        let (run, behind) = longest(function(symbol), moves);
        // On x86-64 the moves before the loop have the same name.
        let pairs = &run[run.len() - 2 * forward::PAIRS_PER_ITERATION as usize..];
        for pair in pairs.chunks(2) {
            let (stored, loaded) = (&pair[0].operands, &pair[1].operands);
            let meet = if X86 {
                stored.ends_with(')') && loaded.ends_with(loaded[1..].split([',', ')']).nth(1).unwrap())
            } else {
                stored.split(',').next().map(|register| &register[1..])
                    == loaded.split(',').next().map(|register| &register[1..])
            };
            assert!(meet, "{symbol}: {pair:?}");
            // The address of a store that is known late has the register of the load before in it.
            let address = stored.split_once(if X86 { '(' } else { '[' }).unwrap().1;
            assert_eq!(address.contains(','), symbol.ends_with("_late"), "{symbol}: {stored}");
        }
        assert_loop_ends(symbol, &behind);
    }
}

#[test]
fn atomics_are_as_many_as_told() {
    let expected = if X86 {
        [
            ("fetch_add", "lock xadd"),
            ("compare_exchange", "lock cmpxchg"),
            ("swap", "xchg"),
            ("store", "xchg"),
            ("fence", "mfence"),
        ]
    } else {
        [
            ("fetch_add", "ldaddal"),
            ("compare_exchange", "casal"),
            ("swap", "swpal"),
            ("store", "stlr"),
            ("fence", "dmb"),
        ]
    };
    for (kernel, name) in expected {
        let code = function(&format!("latscope_kernel_atomic_{kernel}"));
        let memory = |i: &&Instruction| i.name == name && (i.name != "xchg" || i.operands.contains('('));
        let found = code.iter().filter(memory).count() as u64;
        // On AArch64 the loop for processors without these instructions may have one of its own.
        let most = atomics::UNROLL + u64::from(!X86);
        assert!((atomics::UNROLL..=most).contains(&found), "{kernel}: {found}");
    }
}

#[test]
fn passes_store_by_the_width_told() {
    let stores = |symbol: &str, name: &str, register: &str| {
        let (run, behind) = longest(function(symbol), |i| {
            i.name == name && i.list()[0].trim_start_matches('%').starts_with(register)
        });
        assert_eq!(behind[0].name, "add", "{symbol}: the address does not move on");
        run.len()
    };
    let passes: &[(&str, &str, &str, usize)] = if X86 {
        &[
            ("write_sse2", "movdqa", "xmm", 32),
            ("nontemporal_sse2", "movntdq", "xmm", 32),
            ("nontemporal_avx2", "vmovntdq", "ymm", 16),
            ("nontemporal_avx512", "vmovntdq", "zmm", 8),
            ("write_avx2", "vmovdqa", "ymm", 16),
            ("write_avx512", "vmovdqa64", "zmm", 8),
            ("nontemporal_fourth", "movnti", "", 32),
        ]
    } else {
        &[
            ("write_neon", "stp", "q", 16),
            ("nontemporal_neon", "stnp", "q", 16),
            ("nontemporal_scalar", "stnp", "x", 32),
        ]
    };
    for (pass, name, register, expected) in passes {
        let symbol = format!("latscope_kernel_bandwidth_{pass}");
        assert_eq!(stores(&symbol, name, register), *expected, "{symbol}");
    }
}

#[test]
fn sequences_are_one_chain() {
    for (symbol, x86, arm) in
        [("latscope_kernel_sequential_sum", "add", "add"), ("latscope_kernel_sequential_xor", "xor", "eor")]
    {
        let code = function(symbol);
        let fold = |i: &&Instruction| {
            if X86 {
                i.name == x86 && i.operands.contains('(')
            } else {
                i.name == arm
                    && i.list().len() == 3
                    && i.list()[0] == i.list()[1]
                    && !i.operands.contains('#')
            }
        };
        let results: BTreeSet<&str> = code.iter().filter(fold).map(Instruction::result).collect();
        assert_eq!(results.len(), 1, "{symbol}: {results:?}");
        assert!(code.iter().filter(fold).count() >= 64, "{symbol}");
    }
}

#[test]
fn the_empty_loop_is_a_counter() {
    let symbol = "latscope_kernel_empty";
    let code = function(symbol);
    let end = if X86 { "jne" } else { "b.ne" };
    let jump = code.iter().position(|i| i.name == end).expect("the loop has an end");
    assert_loop_ends(symbol, &code[jump - 1..]);
}
