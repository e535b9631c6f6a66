//! The stack of a thread that gave way, in words.

/// Functions of a stack that are kept.
const KEPT: usize = 8;

/// Begins of the names of the functions on the way into the kernel, out of it, and into a switch: they are a part of
/// every stack, and so explain nothing.
const PATHS: [&str; 24] = [
    "schedule",
    "__schedule",
    "preempt_schedule",
    "__trace",
    "trace_event_",
    "do_trace",
    "exit_to_user_mode",
    "syscall_exit_to_user_mode",
    "irqentry_exit",
    "raw_irqentry_exit",
    "do_notify_resume",
    "do_syscall_64",
    "do_int80",
    "do_fast_syscall_32",
    "x64_sys_call",
    "entry_",
    "asm_",
    "el0",
    "do_el0",
    "el1",
    "invoke_syscall",
    "arm64_preempt_schedule_irq",
    "ret_from_fork",
    "ret_to_user",
];

/// Begins of the names of functions that make a system call, before its name.
const CALLS: [&str; 9] = [
    "__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__riscv_sys_", "__se_sys_", "__do_sys_", "__sys_", "ksys_",
    "do_sys_",
];

/// Returns the functions of a stack that explain something, innermost first, and behind them the system call in which
/// they ran: from the stack, or from the trace (`traced`). A thread that was on its way out of the kernel has none:
/// then this way is named.
pub fn summarize_stack(functions: Vec<String>, traced: Option<String>) -> Vec<String> {
    let has = |begin: &str| functions.iter().any(|name| name.starts_with(begin));
    let in_call = has("do_syscall_64") || has("el0_svc") || has("do_int80") || has("do_fast_syscall_32");
    let call = functions.iter().find_map(|name| system_call_name(name)).map(str::to_owned);
    let call = call.or(traced.filter(|_| in_call));
    let is_path = |name: &String| {
        PATHS.iter().any(|begin| name.starts_with(begin)) || name.contains("schedule_notrace")
    };
    let of_call = |name: &&String| self::system_call_name(name).is_none();
    let mut told: Vec<String> =
        functions.iter().take_while(of_call).filter(|name| !is_path(name)).take(KEPT).cloned().collect();
    let within = match call {
        Some(call) if told.is_empty() => Some(format!("the end of system call {call}")),
        Some(call) => Some(format!("system call {call}")),
        None if !told.is_empty() || functions.is_empty() => None,
        None if in_call => Some("the end of a system call".to_owned()),
        None if has("asm_exc_page_fault") => Some("the end of a page fault".to_owned()),
        None if has("irqentry_exit_to_user_mode") || has("el0t_64_irq") => Some("user mode".to_owned()),
        None => None,
    };
    told.extend(within);
    told
}

/// Returns the name of the system call that a function makes.
fn system_call_name(function: &str) -> Option<&str> {
    CALLS.iter().find_map(|begin| function.strip_prefix(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stack: &str, traced: Option<&str>) -> String {
        let functions = stack.split_whitespace().map(str::to_owned).collect();
        summarize_stack(functions, traced.map(str::to_owned)).join(" ← ")
    }

    #[test]
    fn ways_into_the_kernel_and_out_of_it_are_left_out_and_the_system_call_is_named() {
        let read = "__schedule schedule unix_stream_read_generic vfs_read ksys_read do_syscall_64 \
            entry_SYSCALL_64_after_hwframe";
        assert_eq!(of(read, None), "unix_stream_read_generic ← vfs_read ← system call read");
        let leaving =
            "__schedule schedule exit_to_user_mode_loop do_syscall_64 entry_SYSCALL_64_after_hwframe";
        assert_eq!(of(leaving, None), "the end of a system call");
        assert_eq!(of(leaving, Some("write")), "the end of system call write");
        let computing = "__schedule irqentry_exit_to_user_mode asm_sysvec_apic_timer_interrupt";
        assert_eq!(of(computing, Some("write")), "user mode");
        assert_eq!(
            of("schedule irqentry_exit_to_user_mode asm_exc_page_fault", None),
            "the end of a page fault"
        );
        let worker = "__schedule preempt_schedule_common _cond_resched shrink_slab kthread ret_from_fork_asm";
        assert_eq!(of(worker, None), "_cond_resched ← shrink_slab ← kthread");
        let many =
            (0..20).map(|depth| format!("f{depth} ")).collect::<String>() + "__arm64_sys_futex el0_svc";
        assert_eq!(of(&many, None).split(" ← ").count(), KEPT + 1);
        assert_eq!(of("", None), "");
    }
}
