//! Use of the caches that the CPUs of a step share with others.

use latscope_core::report::Account;
use latscope_core::units::CpuList;
use latscope_machine::account::Accountant;

/// CPUs on which other work may use the caches of a step.
#[derive(Debug, PartialEq)]
enum Beside {
    /// These, which the step does not have.
    Cpus(Vec<u32>),
    /// Those of the step itself, which has all CPUs of its caches.
    Own,
    /// None: its CPU has all caches to itself.
    None,
}

impl Beside {
    /// Returns those of a step on these CPUs, by the groups of CPUs that share a last-level cache.
    fn for_cpus(caches: &[CpuList], cpus: &[u32]) -> Beside {
        let own = |cpu: &u32| cpus.contains(cpu);
        let used = caches.iter().filter(|cache| cache.0.iter().any(own));
        let beside: Vec<u32> =
            used.clone().flat_map(|cache| &cache.0).copied().filter(|cpu| !own(cpu)).collect();
        match beside.is_empty() {
            false => Beside::Cpus(beside),
            true if used.clone().any(|cache| cache.0.len() > 1) => Beside::Own,
            true => Beside::None,
        }
    }
}

/// Returns the account since the last call, with what others used beside the threads of a step on these CPUs.
pub(super) fn take_account(accountant: &mut Accountant, caches: &[CpuList], cpus: &[u32]) -> Option<Account> {
    match Beside::for_cpus(caches, cpus) {
        Beside::Cpus(beside) => accountant.since_last(&beside),
        Beside::Own => {
            let account = accountant.since_last(&[])?;
            Some(Account { beside: Some(account.others), ..account })
        }
        Beside::None => accountant.since_last(&[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_on_all_cpus_shares_its_cache_as_one_on_some_of_them_does() {
        let caches: Vec<CpuList> = ["0-1", "2-3", "4"].map(|cpus| cpus.parse().unwrap()).to_vec();
        assert_eq!(Beside::for_cpus(&caches, &[1]), Beside::Cpus(vec![0]));
        assert_eq!(Beside::for_cpus(&caches, &[1, 0]), Beside::Own);
        assert_eq!(Beside::for_cpus(&caches, &[0, 1, 2]), Beside::Cpus(vec![3]));
        assert_eq!(Beside::for_cpus(&caches, &[4]), Beside::None);
        assert_eq!(Beside::for_cpus(&[], &[0, 1]), Beside::None);
        let cpus: Vec<u32> = latscope_os::sched::allowed_cpus().unwrap();
        let all = [CpuList(cpus.clone())];
        let account = take_account(&mut Accountant::watch_cpus(&cpus), &all, &cpus).unwrap();
        assert_eq!(account.beside, (cpus.len() > 1).then_some(account.others));
    }
}
