//! Two ways to call the kernel, of which a probe may have both.

use latscope_core::catalogue::By;

/// Returns a way as a parameter has it: without the bare instruction, so that a point is that of earlier versions.
pub(crate) fn other_than_bare(by: By) -> Option<By> {
    Some(by).filter(|by| *by != By::Instruction)
}

/// Returns the title of a point with the way of its calls, unless that is the bare instruction.
pub(crate) fn by_title(title: &str, by: By) -> String {
    match by {
        By::Instruction => title.to_owned(),
        By::Libc => format!("{title}, by libc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_instruction_is_neither_a_parameter_nor_in_a_title() {
        assert_eq!([By::Instruction, By::Libc].map(other_than_bare), [None, Some(By::Libc)]);
        assert_eq!([By::Instruction, By::Libc].map(|by| by_title("read", by)), ["read", "read, by libc"]);
    }
}
