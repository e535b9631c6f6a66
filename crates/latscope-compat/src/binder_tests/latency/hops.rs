//! Processes and threads that took part in each call, as `-v` prints them. All functions but that of [`Main`] are pure.

use super::Test;
use crate::binder_tests::words::AndroidOutputVersion;
use latscope_core::report::TransactionHop;
use latscope_os::sched;

/// Hops of a pair: those of its SCHED_FIFO caller, with the two processes before them, and those of its normal caller.
pub type CallerHopPair<'a> = (&'a [TransactionHop], &'a [TransactionHop]);

/// State of the main thread of this process, as a hop.
pub struct Main(pub TransactionHop);

impl Main {
    /// Returns the present state of this thread.
    pub fn of_this_thread() -> Main {
        let state = sched::sched_state(0).unwrap_or_default();
        Main(TransactionHop {
            role: "main".to_owned(),
            pid: std::process::id(),
            tid: std::process::id(),
            cpu: rustix::thread::sched_getcpu() as u32,
            policy: state.policy,
            priority: state.priority,
            nice: state.nice,
        })
    }
}

/// Returns the whole text: the processes at their begin, then each call of each pair.
pub fn format_hops(
    test: &Test,
    layout: AndroidOutputVersion,
    main: &Main,
    pairs: &[CallerHopPair],
) -> String {
    let began = |role: &'static str| {
        pairs.iter().flat_map(move |(fifo, _)| fifo.iter().filter(move |hop| hop.role == role))
    };
    let servers: String = began("service").map(|hop| format_hop(test.server, hop, layout)).collect();
    let mut main = format_hop("main", &main.0, layout);
    if layout == AndroidOutputVersion::Oreo {
        // There a dump of the main process ends before its policy.
        main.truncate(main.trim_end().rfind('\n').map_or(0, |at| at + 1));
    }
    let mut text = if test.fuller { servers + &main } else { main + &servers };
    began("client").for_each(|hop| text += &format_hop("client", hop, layout));
    for (fifo, other) in pairs {
        let (fifo, other) = (split_calls(fifo), split_calls(other));
        for turn in 0..fifo.len().max(other.len()) {
            for call in [fifo.get(turn), other.get(turn)].into_iter().flatten() {
                text += &call_text(test, layout, call);
            }
        }
    }
    text
}

/// Hops of each call: its caller, and the serving thread that reported its own state.
fn split_calls(hops: &[TransactionHop]) -> Vec<&[TransactionHop]> {
    let from = hops.iter().position(|hop| hop.role.ends_with("-caller")).unwrap_or(hops.len());
    let calls = &hops[from..];
    let begins: Vec<usize> = (0..calls.len()).filter(|at| calls[*at].role.ends_with("-caller")).collect();
    let ends = begins.iter().skip(1).copied().chain([calls.len()]);
    begins.iter().zip(ends).map(|(begin, end)| &calls[*begin..end]).collect()
}

fn call_text(test: &Test, layout: AndroidOutputVersion, call: &[TransactionHop]) -> String {
    let [caller, servers @ ..] = call else { return String::new() };
    let mut text = format_hop(&caller.role, caller, layout);
    for server in servers {
        text += &format_hop(test.transport, server, layout);
        if server.priority != caller.priority {
            text += &format!("err priority_caller:{}, priority:{}\n", caller.priority, server.priority);
        }
    }
    text
}

fn format_hop(name: &str, hop: &TransactionHop, layout: AndroidOutputVersion) -> String {
    let TransactionHop { pid, tid, cpu, priority, .. } = hop;
    let policy = match hop.policy {
        0 => "SCHED_OTHER",
        // There the driver's mark on an inherited policy was not known.
        _ if layout == AndroidOutputVersion::Oreo && hop.role == "server" => "???",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        _ => "???",
    };
    format!(
        "--------------------------------------------------\n{name:<12} pid: {pid} tid: {tid} cpu: {cpu}\n\
         {policy:<12}{priority}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::{BINDER, HWBINDER};
    use super::*;

    fn hop(role: &str, pid: u32, tid: u32, cpu: u32, (policy, priority): (u32, u32)) -> TransactionHop {
        TransactionHop { role: role.to_owned(), pid, tid, cpu, policy, priority, nice: 0 }
    }

    const OTHER: (u32, u32) = (0, 0);
    const FIFO: (u32, u32) = (1, 99);

    /// Threads of the sample on the page about Android 8.0's tests.
    fn sample(server: (u32, u32)) -> (Main, Vec<TransactionHop>, Vec<TransactionHop>) {
        let fifo = vec![
            hop("service", 8674, 8674, 1, OTHER),
            hop("client", 8677, 8677, 0, OTHER),
            hop("fifo-caller", 8677, 8678, 0, FIFO),
            hop("server", 8674, 8676, 0, server),
        ];
        let other = vec![hop("other-caller", 8677, 8677, 0, OTHER), hop("server", 8674, 8676, 0, OTHER)];
        (Main(hop("main", 8673, 8673, 1, OTHER)), fifo, other)
    }

    #[test]
    fn android_8_told_it_so() {
        let (main, fifo, other) = sample(FIFO);
        let text = format_hops(&HWBINDER, AndroidOutputVersion::Oreo, &main, &[(&fifo, &other)]);
        assert_eq!(text, include_str!("oreo-verbose.txt"));
    }

    #[test]
    fn a_priority_that_was_not_inherited_is_told() {
        let (main, fifo, other) = sample(OTHER);
        let text = format_hops(&BINDER, AndroidOutputVersion::Current, &main, &[(&fifo, &other)]);
        assert!(text.contains(
            "binder       pid: 8674 tid: 8676 cpu: 0\nSCHED_OTHER 0\nerr priority_caller:99, priority:0\n"
        ));
        assert_eq!(text.matches("err ").count(), 1);
        assert!(text.find("main ") < text.find("server "), "{text}");
    }

    #[test]
    fn a_known_policy_has_its_name() {
        let (main, fifo, other) = sample(FIFO);
        let text = format_hops(&HWBINDER, AndroidOutputVersion::Current, &main, &[(&fifo, &other)]);
        assert!(!text.contains("???") && text.contains("SCHED_FIFO  99"), "{text}");
    }
}
