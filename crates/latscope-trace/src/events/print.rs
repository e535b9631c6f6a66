//! Text that the kernel would print of an event (`print fmt` of its format file), for events that only a reader
//! uses.

use super::{Field, TraceEventFormat};
use std::fmt::Write;

/// Format of an event as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printer(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Decimal(Field),
    Hexadecimal(Field),
    /// Address with its 16 digits, by which it is found again to name it.
    Address(Field),
    Text(Field),
}

impl Printer {
    /// Returns the kernel's own format if it consists of plain fields, otherwise each field behind its name.
    pub fn for_format(format: &TraceEventFormat) -> Printer {
        Printer::of_kernel(format).unwrap_or_else(|| Printer::of_fields(format))
    }

    /// Parses a format such as `"cpu=%d name=%s", REC->cpu, __get_str(name)`.
    fn of_kernel(format: &TraceEventFormat) -> Option<Printer> {
        let (pattern, arguments) = format.print.strip_prefix('"')?.split_once('"')?;
        let mut arguments = arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some((literal, after)) = rest.split_once('%') {
            pieces.push(Piece::Literal(literal.to_owned()));
            let after = after.trim_start_matches(['l', 'h', 'z']);
            let conversion = after.chars().next()?;
            rest = &after[conversion.len_utf8()..];
            if conversion == '%' {
                pieces.push(Piece::Literal("%".to_owned()));
                continue;
            }
            let field = argument(format, arguments.next()?)?.clone();
            pieces.push(match conversion {
                'd' | 'i' | 'u' => Piece::Decimal(field),
                'x' => Piece::Hexadecimal(field),
                's' => Piece::Text(field),
                _ => return None,
            });
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        arguments.next().is_none().then_some(Printer(pieces))
    }

    fn of_fields(format: &TraceEventFormat) -> Printer {
        let own = format.fields.iter().filter(|field| !field.name.starts_with("common_"));
        let pieces = own.enumerate().flat_map(|(at, field)| {
            let space = if at > 0 { " " } else { "" };
            let name = Piece::Literal(format!("{space}{}=", field.name));
            let value = match (field.text, field.pointer) {
                (true, _) => Piece::Text(field.clone()),
                (_, true) => Piece::Address(field.clone()),
                _ => Piece::Decimal(field.clone()),
            };
            [name, value]
        });
        Printer(pieces.collect())
    }

    /// Returns the text of an event; a part that does not fit the format is a question mark.
    pub fn format_event(&self, event: &[u8]) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            let written = match piece {
                Piece::Literal(text) => out.write_str(text).ok(),
                Piece::Text(field) => {
                    field.text(event).map(|text| out += String::from_utf8_lossy(text).as_ref())
                }
                Piece::Decimal(field) if field.signed => {
                    field.number(event).and_then(|number| write!(out, "{}", number as i64).ok())
                }
                Piece::Decimal(field) => field.number(event).and_then(|number| write!(out, "{number}").ok()),
                Piece::Address(field) => {
                    field.number(event).and_then(|number| write!(out, "{number:#018x}").ok())
                }
                Piece::Hexadecimal(field) => field.number(event).and_then(|number| {
                    let unused = 64 - 8 * field.size.clamp(1, 8) as u32;
                    write!(out, "{:x}", number << unused >> unused).ok()
                }),
            };
            if written.is_none() {
                out.push('?');
            }
        }
        out
    }
}

/// Returns the field that an argument stands for: `REC->field`, perhaps behind a cast, or `__get_str(field)`.
fn argument<'a>(format: &'a TraceEventFormat, text: &str) -> Option<&'a Field> {
    let text = text.trim_start_matches("(unsigned long)").trim_start_matches("(unsigned long long)");
    let string = || text.strip_prefix("__get_str(")?.strip_suffix(')');
    format.field(text.strip_prefix("REC->").or_else(string)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(print: &str) -> TraceEventFormat {
        let field = |name: &str, offset, size, signed| {
            format!("\tfield:{name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
        };
        let fields = [
            field("unsigned short common_type", 0, 2, 0),
            field("int node", 8, 4, 1),
            field("unsigned int flags", 12, 4, 0),
            field("int code", 16, 4, 1),
            field("char name[8]", 20, 8, 0),
        ];
        let text = format!("name: a\nID: 1\nformat:\n{}\nprint fmt: {print}\n", fields.concat());
        TraceEventFormat::parse(&text).unwrap()
    }

    fn event() -> Vec<u8> {
        let mut event = vec![0; 8];
        event.extend((-5i32).to_le_bytes());
        event.extend(0x11u32.to_le_bytes());
        event.extend((-1i32).to_le_bytes());
        event.extend(b"echo\0\0\0\0");
        event
    }

    #[test]
    fn plain_fields_are_printed_as_the_kernel_does() {
        let print = "\"node=%d flags=0x%x code=0x%lx 100%% %s\", REC->node, REC->flags, (unsigned long)REC->code, \
                     REC->name";
        let printer = Printer::for_format(&format(print));
        assert_eq!(printer.format_event(&event()), "node=-5 flags=0x11 code=0xffffffff 100% echo");
        assert_eq!(printer.format_event(&event()[..14]), "node=-5 flags=0x? code=0x? 100% ?");
    }

    #[test]
    fn addresses_have_all_their_digits() {
        let line = "\tfield:void * fun;\toffset:0;\tsize:8;\tsigned:0;\n";
        let text = format!("name: a\nID: 1\nformat:\n{line}\nprint fmt: \"%ps\", REC->fun\n");
        let printer = Printer::for_format(&TraceEventFormat::parse(&text).unwrap());
        assert_eq!(printer.format_event(&0xffff_ffff_8100_0010_u64.to_le_bytes()), "fun=0xffffffff81000010");
    }

    #[test]
    fn others_have_each_field_behind_its_name() {
        let computed = "\"cmd=0x%x %s\", REC->code, REC->code < 3 ? names[REC->code] : \"unknown\"";
        for print in [computed, "", "\"%08d\", REC->node", "\"%d\"", "\"%d\", REC->node, REC->code"] {
            let text = Printer::for_format(&format(print)).format_event(&event());
            assert_eq!(text, "node=-5 flags=17 code=-1 name=echo", "{print}");
        }
    }
}
