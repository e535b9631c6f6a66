//! The table of operations.

/// Calls `$define!` with the table: an operation, its name, its step in the assembly of x86-64, in that of AArch64,
/// and in Rust.
///
/// In assembly a step may span lines. It uses these placeholders:
///
/// | numbers | x86-64 and AArch64 |
/// |---|---|
/// | integer | `\c` the chain, `\o` the other operand, `\v` a free vector register (AArch64) |
/// | division | `\l` the large addend, `\d` the divisor; on x86-64 `\a` the dividend, which `idiv` by `\d` follows; on AArch64 `\c` the chain, `\q` free |
/// | float | `\c` the chain, `\f` in turn the first and the second operand, which are `\a` and `\b`; on x86-64 `\p` the precision |
macro_rules! operations {
    ($define:ident) => {
        $define! {
            // Both operands are registers, or one is a constant.
            integer {
                Add "add" "add \\c, \\o" "add \\c, \\c, \\o" |v, o| v.wrapping_add(o);
                Sub "sub" "sub \\c, \\o" "sub \\c, \\c, \\o" |v, o| v.wrapping_sub(o);
                Mul "mul" "imul \\c, \\o" "mul \\c, \\c, \\o" |v, o| v.wrapping_mul(o);
                And "and" "and \\c, \\o" "and \\c, \\c, \\o" |v, o| v & o;
                Or "or" "or \\c, \\o" "orr \\c, \\c, \\o" |v, o| v | o;
                Xor "xor" "xor \\c, \\o" "eor \\c, \\c, \\o" |v, o| v ^ o;
                Shift "shift" "shl \\c, 3" "lsl \\c, \\c, #3" |v, _| v << 3;
                Rotate "rotate" "ror \\c, 5" "ror \\c, \\c, #5" |v, _| v.rotate_right(5);
                PopCount "popcount" "popcnt \\c, \\c"
                    "fmov \\v, \\c\ncnt v0.8b, v0.8b\naddv b0, v0.8b\nfmov \\c, \\v" |v, _| v.count_ones().into();
            }
            // For latency the dividend is one addition away from the result before, for throughput it is always
            // the same.
            division {
                Div "div" quotient ("add \\a, \\l", "mov \\a, \\l")
                    ("add \\c, \\c, \\l\nsdiv \\c, \\c, \\d", "sdiv \\c, \\l, \\d") |v, l, d| (v + l) / d;
                Mod "mod" remainder ("lea \\a, [rdx + {large:r}]", "mov \\a, \\l")
                    ("add \\c, \\c, \\l\nsdiv \\q, \\c, \\d\nmsub \\c, \\q, \\d, \\c",
                     "sdiv \\c, \\l, \\d\nmsub \\c, \\c, \\d, \\l") |v, l, d| (v + l) % d;
            }
            // With the start of a chain, and the first and the second operand: the second can undo the first.
            float {
                Add "add" [SUM_START, ADDEND, ADDEND] "adds\\p \\c, \\f" "fadd \\c, \\c, \\f" |v, f, _, _| v + f;
                Sub "sub" [-SUM_START, ADDEND, ADDEND] "subs\\p \\c, \\f" "fsub \\c, \\c, \\f" |v, f, _, _| v - f;
                Mul "mul" [FLOAT_START, FACTOR, INVERSE] "muls\\p \\c, \\f" "fmul \\c, \\c, \\f" |v, f, _, _| v * f;
                Div "div" [FLOAT_START, FACTOR, INVERSE] "divs\\p \\c, \\f" "fdiv \\c, \\c, \\f" |v, f, _, _| v / f;
                Fma "fma" [FLOAT_START, FUSED_FACTOR, FUSED_ADDEND]
                    "vfmadd213s\\p \\c, \\a, \\b" "fmadd \\c, \\c, \\a, \\b" |v, _, a, b| v.mul_add(a, b);
            }
        }
    };
}
