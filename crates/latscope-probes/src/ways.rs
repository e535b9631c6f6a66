//! Two ways to call the kernel, of which a probe may have both.

use latscope_core::catalogue::SyscallInvocation;

/// Returns a way as a parameter has it: without the bare instruction, so that a point is that of earlier versions.
pub(crate) fn other_than_bare(by: SyscallInvocation) -> Option<SyscallInvocation> {
    Some(by).filter(|by| *by != SyscallInvocation::Instruction)
}

/// Returns the title of a point with the way of its calls, unless that is the bare instruction.
pub(crate) fn by_title(title: &str, by: SyscallInvocation) -> String {
    match by {
        SyscallInvocation::Instruction => title.to_owned(),
        SyscallInvocation::Libc => format!("{title}, by libc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_instruction_is_neither_a_parameter_nor_in_a_title() {
        assert_eq!(
            [SyscallInvocation::Instruction, SyscallInvocation::Libc].map(other_than_bare),
            [None, Some(SyscallInvocation::Libc)]
        );
        assert_eq!(
            [SyscallInvocation::Instruction, SyscallInvocation::Libc].map(|by| by_title("read", by)),
            ["read", "read, by libc"]
        );
    }
}
