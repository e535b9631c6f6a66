//! Names of kernel functions by address (`/proc/kallsyms`).

/// The functions of the running kernel.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Addresses and names, in order of the addresses.
    functions: Vec<(u64, Box<str>)>,
}

/// Maximum length of a function, bytes: an address beyond it belongs to something unknown.
const LONGEST: u64 = 1 << 20;

impl Symbols {
    /// Reads the functions of this kernel; empty if it shows no addresses.
    pub fn of_kernel() -> Symbols {
        Symbols::parse(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn parse(text: &str) -> Symbols {
        let functions = text.lines().filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let address = u64::from_str_radix(fields.next()?, 16).ok()?;
            let text = matches!(fields.next()?, "t" | "T" | "w" | "W");
            let name = fields.next()?;
            (text && address != 0).then(|| (address, name.into()))
        });
        let mut functions: Vec<(u64, Box<str>)> = functions.collect();
        functions.sort_by_key(|(address, _)| *address);
        Symbols { functions }
    }

    /// Returns a text with the names of functions in place of their addresses of 16 digits, as far as they are known.
    pub fn resolve(&self, text: &str) -> String {
        let mut resolved = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("0x") {
            let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
            let (before, behind) = rest.split_at(at + 2 + digits);
            let address = u64::from_str_radix(&before[at + 2..], 16).ok().filter(|_| digits == 16);
            resolved += &before[..at];
            resolved +=
                &address.map_or_else(|| before[at..].to_owned(), |address| self.function_name(address));
            rest = behind;
        }
        resolved + rest
    }

    /// Returns the function that an address lies in; the address itself if the function is not known.
    pub fn function_name(&self, address: u64) -> String {
        let behind = self.functions.partition_point(|(begin, _)| *begin <= address);
        match self.functions[..behind].last() {
            Some((begin, name)) if address - begin < LONGEST => name.to_string(),
            _ => format!("{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_function_before_it() {
        let text = "ffff0100 T second\nffff0000 t first\t[module]\nffff0080 D data\n0 T hidden\nbad\n";
        let symbols = Symbols::parse(text);
        assert_eq!(symbols.function_name(0xffff_0090), "first");
        assert_eq!(symbols.function_name(0xffff_0100), "second");
        assert_eq!(symbols.function_name(0x10), "0x10");
        assert_eq!(symbols.function_name(0xffff_ffff_0000), "0xffffffff0000");
        assert_eq!(Symbols::default().function_name(1), "0x1");
        let symbols = Symbols::parse("ffffffff81000000 T first\n");
        let text = "at 0xffffffff81000010 (0xffffffff8100001), 0x, fun=0xffff888000000000 0xffffffff81000000";
        let expected = "at first (0xffffffff8100001), 0x, fun=0xffff888000000000 first";
        assert_eq!(symbols.resolve(text), expected);
    }
}
