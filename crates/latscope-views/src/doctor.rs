//! Output of `latscope doctor`: the checks of a [`Machine`] as text.

use crate::DisplayOptions;
use latscope_core::catalogue::{Condition, ProbeCatalogue};
use latscope_core::machine::{CheckState, DoctorCheck, Machine};
use latscope_core::units::format_size;

/// Returns the machine in a few words, then a row for each check, worst first, then the number of checks of
/// each kind. Lines are broken at the width of `options`. Remedies are not broken: they are commands, to be copied
/// whole.
pub fn format_checks(machine: &Machine, options: &DisplayOptions) -> String {
    let mut out = head(machine, options.width);
    let order = [CheckState::Bad, CheckState::Note, CheckState::Unknown, CheckState::Good];
    let column = machine.checks.iter().map(|check| check.id.chars().count()).max().unwrap_or(0);
    for state in order {
        for check in machine.checks.iter().filter(|check| check.state == state) {
            out += &format_row(check, column, options);
        }
    }
    out.push('\n');
    let count = |state| machine.checks.iter().filter(|check| check.state == state).count();
    let counts =
        order.map(|state| format!("{} {}", count(state), paint(state, state.state_name(), options.color)));
    out + &counts.join(", ") + "\n"
}

fn head(machine: &Machine, width: usize) -> String {
    let unnamed = |text: &str, otherwise: &str| {
        if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
    };
    let mut parts = vec![unnamed(&machine.cpu_model, "unknown processor")];
    let (online, allowed) = (machine.online.0.len(), machine.allowed.0.len());
    match allowed == online {
        true => parts.push(format!("{online} {}", if online == 1 { "CPU" } else { "CPUs" })),
        false => parts.push(format!("{allowed} of {online} CPUs")),
    }
    if !machine.caches.is_empty() {
        parts.push(format!("caches {}", caches(machine)));
    }
    if machine.memory > 0 {
        parts.push(format!("memory {:.1} GiB", machine.memory as f64 / (1u64 << 30) as f64));
    }
    parts.push(format!("Linux {} {}", machine.kernel, machine.architecture).trim_end().to_owned());
    if let Some(name) = &machine.hypervisor {
        parts.push(format!("under {name}"));
    }
    let line = format!("{}: {}", unnamed(&machine.name, "this machine"), parts.join(", "));
    wrap(&line, width.max(20)).join("\n") + "\n\n"
}

/// Data and unified caches by level: `32 KiB / 1 MiB / 32 MiB`.
fn caches(machine: &Machine) -> String {
    let data = machine.caches.iter().filter(|cache| cache.kind != "Instruction");
    data.map(|cache| format_size(cache.size)).collect::<Vec<_>>().join(" / ")
}

fn format_row(check: &DoctorCheck, column: usize, options: &DisplayOptions) -> String {
    let DisplayOptions { width, color, catalogue, .. } = *options;
    // State, id, and two spaces behind each.
    let indent = 7 + 2 + column + 2;
    let room = width.saturating_sub(indent).max(20);
    let mut lines = wrap(&check.found, room);
    if !check.affects.is_empty() {
        lines.extend(wrap(&format!("affects {}", affected_probes(&check.affects, catalogue)), room));
    }
    let state = check.state.state_name();
    let gap = " ".repeat(7 - state.len());
    let mut out = format!("{}{gap}  {:column$}  ", paint(check.state, state, color), check.id);
    out += &lines.join(&format!("\n{}", " ".repeat(indent)));
    out.push('\n');
    if let Some(remedy) = &check.remedy {
        let fix = format!("fix: {remedy}");
        // Where the column is too narrow, the whole width.
        let indent = if fix.chars().count() > room { 2 } else { indent };
        out += &format!("{}{fix}\n", " ".repeat(indent));
    }
    out
}

fn affected_probes(affects: &[String], catalogue: &ProbeCatalogue) -> String {
    let every = catalogue.affected_by(Condition::Speed);
    let everything = !every.is_empty() && every.iter().all(|family| affects.contains(family));
    if everything { "all probes".to_owned() } else { affects.join(", ") }
}

/// SGR codes: red, yellow, faint, green.
fn paint(state: CheckState, word: &str, color: bool) -> String {
    let code = match state {
        CheckState::Bad => "31;1",
        CheckState::Note => "33",
        CheckState::Unknown => "2",
        CheckState::Good => "32",
    };
    if color { format!("\x1b[{code}m{word}\x1b[0m") } else { word.to_owned() }
}

/// Breaks a text at spaces into lines of at most `width` characters; a longer
/// word has a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::catalogue;
    use latscope_core::machine::CpuCache;
    use latscope_core::units::CpuList;
    use proptest::prelude::*;

    fn check(
        id: &str,
        state: CheckState,
        found: &str,
        affects: &[&str],
        remedy: Option<&str>,
    ) -> DoctorCheck {
        DoctorCheck {
            id: id.to_owned(),
            state,
            found: found.to_owned(),
            affects: affects.iter().map(|probe| (*probe).to_owned()).collect(),
            remedy: remedy.map(str::to_owned),
        }
    }

    fn options(width: usize, color: bool) -> DisplayOptions<'static> {
        DisplayOptions { width, color, catalogue: catalogue(), ..DisplayOptions::default() }
    }

    fn machine() -> Machine {
        let every = catalogue().affected_by(Condition::Speed);
        let every: Vec<&str> = every.iter().map(String::as_str).collect();
        let cache =
            |level, kind: &str, size| CpuCache { level, kind: kind.to_owned(), size, ..CpuCache::default() };
        Machine {
            name: "board".to_owned(),
            kernel: "6.12.1".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu_model: "AMD EPYC".to_owned(),
            online: CpuList(vec![0, 1]),
            allowed: CpuList(vec![0, 1]),
            caches: vec![
                cache(1, "Data", 32 << 10),
                cache(1, "Instruction", 32 << 10),
                cache(2, "Unified", 1 << 20),
            ],
            memory: 3 << 29,
            hypervisor: Some("KVM".to_owned()),
            checks: vec![
                check("load", CheckState::Good, "load average 0.00 on 2 CPUs", &[], None),
                check("steal", CheckState::Note, "0.20 % went to others", &every, None),
                check(
                    "governor",
                    CheckState::Bad,
                    "powersave on CPUs 0-1: the clock follows the load",
                    &["cpu.*", "memory.*"],
                    Some(
                        "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
                    ),
                ),
            ],
            ..Machine::default()
        }
    }

    #[test]
    fn the_worst_comes_first_and_commands_stay_whole() {
        let expected = "\
board: AMD EPYC, 2 CPUs, caches 32 KiB / 1 MiB, memory 1.5
GiB, Linux 6.12.1 x86_64, under KVM

bad      governor  powersave on CPUs 0-1: the clock follows
                   the load
                   affects cpu.*, memory.*
  fix: echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor
note     steal     0.20 % went to others
                   affects all probes
good     load      load average 0.00 on 2 CPUs

1 bad, 1 note, 0 unknown, 1 good
";
        assert_eq!(format_checks(&machine(), &options(60, false)), expected);
    }

    #[test]
    fn color_changes_nothing_but_color() {
        let colored = format_checks(&machine(), &options(60, true));
        assert!(colored.contains("\x1b[31;1mbad\x1b[0m"));
        let mut plain = colored;
        for code in ["\x1b[31;1m", "\x1b[33m", "\x1b[2m", "\x1b[32m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, format_checks(&machine(), &options(60, false)));
    }

    #[test]
    fn an_unknown_machine_has_a_text_too() {
        let expected =
            "this machine: unknown processor, 0 CPUs, Linux\n\n\n0 bad, 0 note, 0 unknown, 0 good\n";
        assert_eq!(format_checks(&Machine::default(), &options(80, false)), expected);
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit_and_lose_nothing(words in proptest::collection::vec("[a-zµ]{1,9}", 0..30), width in 9usize..40) {
            let text = words.join(" ");
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            prop_assert_eq!(lines.join(" "), text);
        }
    }
}
