//! The text of a `trace` file, line by line (Documentation/trace/ftrace.rst,
//! "Output format").

/// Line with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FtraceLine<'a> {
    /// Name of the thread that was on the CPU; `<...>` where unknown.
    pub task: &'a str,
    /// Id of the thread that was on the CPU.
    pub tid: u32,
    /// Process of the thread, if the line has it.
    pub process: Option<u32>,
    pub cpu: u32,
    /// Time of the event, ns of the trace clock.
    pub at: u64,
    /// Name of the event: `sched_switch`.
    pub name: &'a str,
    /// Everything after the name.
    pub fields: &'a str,
}

/// Event of a kind from which a time line is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FtraceEvent<'a> {
    /// A CPU went from one thread to another.
    Switch { from: u32, from_name: &'a str, state: &'a str, to: u32, to_name: &'a str },
    /// A thread was woken: `sched_waking` at the call, `sched_wakeup` when it
    /// is queued.
    Wake { tid: u32, name: &'a str },
    /// A new thread was queued.
    WakeNew { tid: u32, name: &'a str },
    /// The thread on the CPU created another.
    Fork { child: u32, name: &'a str },
    /// The thread on the CPU entered a system call.
    Enter { number: u32 },
    /// The thread on the CPU returned from a system call.
    Exit { number: u32, result: i64 },
    /// The thread on the CPU wrote to `trace_marker`.
    Mark { text: &'a str },
    /// Event of another kind.
    Other,
}

/// Reads a line; `None` if it is no event.
///
/// The form is `TASK-PID (TGID) [CPU] FLAGS SECONDS.FRACTION: NAME: FIELDS`, where TGID and FLAGS can be
/// missing. A task's name may hold any character, so the first place where the rest fits decides.
pub fn parse_line(text: &str) -> Option<FtraceLine<'_>> {
    text.match_indices('[').find_map(|(bracket, _)| line_at(text, bracket))
}

fn line_at(text: &str, bracket: usize) -> Option<FtraceLine<'_>> {
    let (before, after) = (text[..bracket].trim_end(), &text[bracket + 1..]);
    let (cpu, after) = after.split_once(']')?;
    let (before, process) = match before.strip_suffix(')') {
        Some(open) => {
            let (before, process) = open.rsplit_once('(')?;
            (before.trim_end(), process.trim().parse().ok())
        }
        None => (before, None),
    };
    let (task, tid) = before.rsplit_once('-')?;
    let (stamp, rest) = after.split_once(": ")?;
    let at = parse_timestamp(stamp.split_ascii_whitespace().next_back()?)?;
    let (name, fields) = rest.trim_start().split_once(':')?;
    if name.contains(char::is_whitespace) {
        return None;
    }
    Some(FtraceLine {
        task: task.trim_start(),
        tid: parse_digits(tid)?,
        process,
        cpu: parse_digits(cpu)?,
        at,
        name,
        fields: fields.strip_prefix(' ').unwrap_or(fields),
    })
}

/// Digits only: unlike `parse`, takes no sign.
fn parse_digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns the ns of a time such as `1695.803821` or `1695.803821495`.
fn parse_timestamp(stamp: &str) -> Option<u64> {
    let (seconds, fraction) = stamp.split_once('.')?;
    let are_digits = [seconds, fraction]
        .iter()
        .all(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    if !are_digits || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let fraction = fraction.parse::<u64>().ok()? * scale;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

impl<'a> FtraceLine<'a> {
    /// Returns the event of the line; `None` if the fields do not fit the event's name.
    pub fn parse_event(&self) -> Option<FtraceEvent<'a>> {
        let fields = self.fields;
        Some(match self.name {
            "sched_switch" => {
                let (from, to) = fields.split_once(" ==> ")?;
                let (from_name, from) = from.strip_prefix("prev_comm=")?.rsplit_once(" prev_pid=")?;
                let (to_name, to) = to.strip_prefix("next_comm=")?.rsplit_once(" next_pid=")?;
                let state = from.split_once(" prev_state=")?.1.trim_end();
                FtraceEvent::Switch {
                    from: parse_leading_number(from)?,
                    from_name,
                    state,
                    to: parse_leading_number(to)?,
                    to_name,
                }
            }
            "sched_waking" | "sched_wakeup" => {
                let (name, tid) = parse_name_and_tid(fields)?;
                FtraceEvent::Wake { tid, name }
            }
            "sched_wakeup_new" => {
                let (name, tid) = parse_name_and_tid(fields)?;
                FtraceEvent::WakeNew { tid, name }
            }
            "sched_process_fork" => {
                let (_, child) = fields.split_once(" child_comm=")?;
                let (name, child) = child.rsplit_once(" child_pid=")?;
                FtraceEvent::Fork { child: parse_leading_number(child)?, name }
            }
            "sys_enter" => FtraceEvent::Enter { number: parse_leading_number(fields.strip_prefix("NR ")?)? },
            "sys_exit" => {
                let (number, result) = fields.strip_prefix("NR ")?.split_once(" = ")?;
                // rt_sigreturn returns to where the signal came: its number is -1.
                match number.parse() {
                    Ok(number) => FtraceEvent::Exit { number, result: result.trim_end().parse().ok()? },
                    Err(_) => FtraceEvent::Other,
                }
            }
            "tracing_mark_write" => FtraceEvent::Mark { text: fields.trim_end() },
            _ => FtraceEvent::Other,
        })
    }
}

/// Reads name and id from `comm=NAME pid=TID …`.
fn parse_name_and_tid(fields: &str) -> Option<(&str, u32)> {
    let (name, tid) = fields.strip_prefix("comm=")?.rsplit_once(" pid=")?;
    Some((name, parse_leading_number(tid)?))
}

/// The number a text begins with.
fn parse_leading_number(text: &str) -> Option<u32> {
    parse_digits(text.split_ascii_whitespace().next()?)
}

/// Gives each event of a `trace` file its exact time.
///
/// A `trace` file has microseconds only. Read again with the option `raw`, it
/// has the same events in the same order as `TID CPU NANOSECONDS …`. Where the
/// two do not agree, the text comes back as it is.
pub fn with_nanoseconds(text: &str, raw: &str) -> String {
    exact(text, raw).unwrap_or_else(|| text.to_owned())
}

fn exact(text: &str, raw: &str) -> Option<String> {
    let mut stamps = raw.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    for row in text.lines() {
        match parse_line(row) {
            None => out += row,
            Some(event) => {
                let mut stamp = stamps.next()?.split_ascii_whitespace();
                let (tid, cpu) = (stamp.next()?.parse::<u32>().ok()?, stamp.next()?.parse::<u32>().ok()?);
                let at: u64 = stamp.next()?.parse().ok()?;
                if (tid, cpu) != (event.tid, event.cpu) || at.abs_diff(event.at) > 1000 {
                    return None;
                }
                let (before, after) = row.split_at(row.find(&short_stamp(event.at))?);
                out += before;
                out += &stamp_text(at);
                out += &after[short_stamp(event.at).len()..];
            }
        }
        out.push('\n');
    }
    stamps.next().is_none().then_some(out)
}

fn short_stamp(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// A time as a `trace` file would write it, with all nine digits.
pub(crate) fn stamp_text(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_with_and_without_process_and_flags() {
        let forms = [
            "  my task-17   (     12) [001] d..2.  1695.803821: sched_waking: comm=a b pid=18 prio=120",
            "  my task-17   (     12) [001]   1695.803821000: sched_waking: comm=a b pid=18 prio=120",
            "  my task-17   (     12) [001] .... 1695.803821: sched_waking: comm=a b pid=18 prio=120",
        ];
        for form in forms {
            let line = parse_line(form).unwrap();
            assert_eq!((line.task, line.tid, line.process, line.cpu), ("my task", 17, Some(12), 1));
            assert_eq!((line.at, line.name), (1_695_803_821_000, "sched_waking"));
            assert_eq!(line.parse_event(), Some(FtraceEvent::Wake { tid: 18, name: "a b" }));
        }
        let none = parse_line("<idle>-0  (-------) [000]   1.000001: power:").unwrap();
        assert_eq!((none.task, none.tid, none.process, none.at), ("<idle>", 0, None, 1_000_001_000));
        assert_eq!(
            parse_line("bash-3 [000] 1.0: x: y").map(|line| (line.tid, line.process)),
            Some((3, None))
        );
    }

    #[test]
    fn names_may_hold_anything() {
        let line = parse_line("a [b]-c-9 (  9) [000] 2.5: sched_switch: prev_comm=x prev_pid=1 prev_pid=9 prev_prio=1 prev_state=D|K ==> next_comm=k/0:1 next_pid=4 next_prio=120").unwrap();
        assert_eq!(line.task, "a [b]-c");
        let switch =
            FtraceEvent::Switch { from: 9, from_name: "x prev_pid=1", state: "D|K", to: 4, to_name: "k/0:1" };
        assert_eq!(line.parse_event(), Some(switch));
    }

    #[test]
    fn what_is_no_event_is_none() {
        for wrong in ["", "# tracer: nop", "CPU:1 [LOST 23 EVENTS]", "a-1 [0] 5: x: y", "a-1 [+0] 5.0: x: y"]
        {
            assert_eq!(parse_line(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn exact_times_replace_rounded_ones_or_nothing_is_changed() {
        let text = "# head\n a-1 (1) [000]   1.000002: x: 1\n a-1 (1) [000]   1.000002: x: 2\n";
        let raw = "# head\n1 0 1000001600 type: 1\n1 0 1000002400 # 0 x\n";
        let exact = "# head\n a-1 (1) [000]   1.000001600: x: 1\n a-1 (1) [000]   1.000002400: x: 2\n";
        assert_eq!(with_nanoseconds(text, raw), exact);
        for wrong in ["", "1 0 1000001600 t\n", "1 0 1000001600 t\n1 1 1000002400 t\n", "1 0 9 t\n1 0 9 t\n"]
        {
            assert_eq!(with_nanoseconds(text, wrong), text);
        }
        assert_eq!(with_nanoseconds(text, &format!("{raw}1 0 1000002400 type: 1\n")), text);
    }
}
