//! Sets of CPUs as rt-tests takes them: libnuma's syntax.

use crate::getopt::CommandLineRefusal;
use latscope_core::machine::Machine;
use latscope_core::units::CpuList;

/// Returns true if a word that follows an option looks like a set of CPUs.
pub fn is_set(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || "!+a".contains(c))
}

/// The CPUs of `0-3,5`, of `all`, of `!2` (those that the process may use,
/// without CPU 2) and of `+0-1` (the first and second of those), in ascending order.
///
/// # Errors
/// The text is no such list, or names a CPU that does not exist.
pub fn parse_cpu_set(text: &str, machine: &Machine) -> Result<Vec<u32>, CommandLineRefusal> {
    let allowed = &machine.allowed.0;
    let list = |text: &str| {
        text.parse::<CpuList>().map(|list| list.0).map_err(|_| {
            CommandLineRefusal::Usage(format!("{text:?} is no set of CPUs: as in 0-3,5, all, !2 or +0-1"))
        })
    };
    let cpus = match (text, text.strip_prefix('!'), text.strip_prefix('+')) {
        ("all", ..) => machine.online.0.clone(),
        (_, Some(without), _) => {
            let without = list(without)?;
            allowed.iter().copied().filter(|cpu| !without.contains(cpu)).collect()
        }
        (_, _, Some(places)) => {
            let place = |place: &u32| {
                allowed.get(*place as usize).copied().ok_or_else(|| out_of_range(*place, machine))
            };
            list(places)?.iter().map(place).collect::<Result<Vec<u32>, CommandLineRefusal>>()?
        }
        _ => list(text)?,
    };
    if let Some(cpu) = cpus.iter().find(|cpu| !machine.online.0.contains(cpu)) {
        return Err(out_of_range(*cpu, machine));
    }
    if cpus.is_empty() {
        return Err(CommandLineRefusal::Usage(format!("the set of CPUs {text:?} is empty")));
    }
    Ok(cpus)
}

fn out_of_range(cpu: u32, machine: &Machine) -> CommandLineRefusal {
    CommandLineRefusal::Usage(format!(
        "cpu argument {cpu} is out of range: online are {}, this process may use {}",
        machine.online, machine.allowed
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> Result<Vec<u32>, CommandLineRefusal> {
        let list = |text: &str| text.parse::<CpuList>().unwrap();
        parse_cpu_set(text, &Machine { online: list("0-5"), allowed: list("1-4"), ..Machine::default() })
    }

    #[test]
    fn sets_are_lists_complements_and_places() {
        assert_eq!(cpus("3-5,0").unwrap(), [0, 3, 4, 5]);
        assert_eq!(cpus("all").unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(cpus("!2").unwrap(), [1, 3, 4]);
        assert_eq!(cpus("+0,3").unwrap(), [1, 4]);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for wrong in ["9", "+4", "x", "", "!0-5", "1-"] {
            let refused = cpus(wrong).unwrap_err().to_string();
            assert!(!refused.contains('\n') && refused.contains(['"', ':']), "{wrong}: {refused}");
        }
    }

    #[test]
    fn a_set_is_known_by_its_first_letter() {
        assert!(is_set("0-3") && is_set("!1") && is_set("+1") && is_set("all"));
        assert!(!is_set("-m") && !is_set("x") && !is_set(""));
    }
}
