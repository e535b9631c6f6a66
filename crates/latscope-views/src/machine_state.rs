//! Sentence on the machine while it was measured: quiet, or busy, with the share of the CPUs, the processes,
//! and the rows that are doubtful for this reason.

use latscope_core::merged::is_merged;
use latscope_core::quality::{QualityLevel, SHARED_CACHE, THROTTLED, WAITED_FOR_A_CPU};
use latscope_core::report::{Account, Consumer, MORE_TIME, Measurement, QUIET, Report};
use latscope_core::units::{count_with_noun, format_count, format_share};
use latscope_judge::findings::level_rows;

/// Maximum number of names listed, of processes and of rows.
const LISTED: usize = 5;

/// Returns the sentence; `None` if the report has no account. A quota that stopped the run comes first: it
/// explains what otherwise looks like the work of others.
pub(super) fn sentence(report: &Report) -> Option<String> {
    let account = report.activity.as_ref()?;
    let mut text = match account.throttled() {
        Some(quota) => format!("The run was {}", quota.format_throttling()),
        None => format!("The machine was {}", describe_state(account)),
    };
    if account.throttled().is_some() && !account.is_quiet() {
        text += &format!("; beside that, {}", describe_others(account));
    }
    text += &of_the_run(account).map_or(String::new(), |known| format!("; {known}"));
    let by = consumers(account);
    let is_named = !account.is_quiet() || account.top.iter().any(|process| process.latscope.is_some());
    if !by.is_empty() && is_named {
        // What a process used is known of all CPUs together only.
        let all = report.machine.online.0.len();
        text += &match account.cpus as usize == all {
            true => format!(": {by}"),
            false => format!("; on all {all} CPUs of the machine: {by}"),
        };
    }
    let disturbed = account.is_disturbed();
    if disturbed && account.throttled().is_none() {
        text += "; the figures are those of a machine as busy as that";
    }
    let (doubtful, further) = doubtful(report);
    if !disturbed && account.throttled().is_none() && !doubtful.is_empty() {
        text += " on the whole, more at times";
    }
    let points = format!("{} beside the rows", count_with_noun(further as u64, "point"));
    text += &match (doubtful.len(), further) {
        (0, 0) => ".".to_owned(),
        (0, 1) => format!(". {points} is doubtful for this reason."),
        (0, _) => format!(". {points} are doubtful for this reason."),
        (1, 0) => format!(". A row is doubtful for this reason: {}.", doubtful[0]),
        (n, 0) => format!(". {n} rows are doubtful for this reason: {}.", join_names(&doubtful)),
        (n, _) => format!(
            ". {} and {points} are doubtful for this reason: {}.",
            count_with_noun(n as u64, "row"),
            join_names(&doubtful)
        ),
    };
    if account.throttled().is_some() {
        text += &format!(" To measure without it, {MORE_TIME}.");
    }
    Some(text)
}

/// Returns the number of rows by quality: `Of 139 rows 97 are ok, 30 unstable (…), 12 degraded (…).`; `None`
/// without a row.
pub(super) fn format_quality_counts(report: &Report) -> Option<String> {
    let rows = levels(report);
    let of = |level: QualityLevel| rows.iter().filter(|known| **known == level).count();
    let levels = [
        (QualityLevel::Ok, "ok"),
        (QualityLevel::Unstable, "unstable (the rounds of this run disagree)"),
        (QualityLevel::Degraded, "degraded (measured under conditions that distort it)"),
        (QualityLevel::Unsupported, "not measured"),
    ];
    let parts: Vec<String> = levels
        .into_iter()
        .filter(|(level, _)| of(*level) > 0)
        .map(|(level, word)| format!("{} {word}", format_count(of(level) as u64)))
        .collect();
    (!rows.is_empty())
        .then(|| format!("Of {}: {}.", count_with_noun(rows.len() as u64, "row"), parts.join(", ")))
}

/// Returns advice on the figures of a page: `Use the rows marked ok. 15 of 140 rows are doubtful: …`; `None` if
/// no row is doubtful.
pub(super) fn to_use(report: &Report) -> Option<String> {
    let rows = levels(report);
    let doubtful = rows.iter().filter(|level| level.is_doubtful()).count();
    let of = count_with_noun(rows.len() as u64, "row");
    (doubtful > 0).then(|| {
        format!(
            "Use the rows marked ok. {doubtful} of {of} are doubtful: marked ! or with the reason beside."
        )
    })
}

/// The levels of all rows, those of the caches first.
fn levels(report: &Report) -> Vec<QualityLevel> {
    let levels = level_rows(report).into_iter().map(|level| level.quality.level);
    levels.chain(table_measurements(report).map(|m| m.quality.level)).collect()
}

/// Returns the measurements that have rows in a table: those with a row of their own; without such measurements
/// the sums, otherwise all.
pub(crate) fn table_measurements(report: &Report) -> impl Iterator<Item = &Measurement> {
    let all = || report.measurements.iter();
    let (wanted, merged) = (all().any(|m| m.row), all().any(is_merged));
    all().filter(move |m| if wanted { m.row } else { !merged || is_merged(m) })
}

/// Returns the state in words: `busy: other processes used 97 % of 2 CPUs`.
pub(super) fn describe_state(account: &Account) -> String {
    if account.known_others().is_none() {
        return format!("not known to be quiet: {}", account.too_short());
    }
    let state = match (account.is_quiet(), account.is_slowed_by_host()) {
        (true, false) if account.is_surely_quiet() => "quiet",
        (true, false) => "not known to be quiet",
        (true, true) => "slowed by its host",
        (false, _) => "busy",
    };
    format!("{state}: {}", describe_others(account))
}

fn describe_others(account: &Account) -> String {
    let cpus = if account.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", account.cpus) };
    let share = account.others_words().unwrap_or_else(|| format_share(account.others));
    // What is rounded to the limit is above it where the machine is busy.
    let over = !account.is_quiet() && share == format_share(QUIET);
    let share = if over { format!("just over {share}") } else { share };
    format!("other processes used {share} of {cpus}")
}

/// Returns the CPU shares of the run's load, its peers and the hypervisor. Small shares of the last two are
/// left out.
pub(super) fn of_the_run(account: &Account) -> Option<String> {
    let matters = |share: &f64| *share >= WORTH_A_WORD;
    let load = account.load.map(|share| format!("the load that was asked for used {}", format_share(share)));
    let peer = account.peer.filter(matters);
    let peer = peer.map(|share| format!("the other end of the messages used {}", format_share(share)));
    let stolen = account.stolen.filter(matters);
    let stolen = stolen.map(|share| format!("the hypervisor took {}", format_share(share)));
    let all: Vec<String> = [load, peer, stolen].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Smallest share of the CPUs that is mentioned.
const WORTH_A_WORD: f64 = 0.01;

fn consumers(account: &Account) -> String {
    let shown = account.top.iter().take(LISTED);
    let shown = shown.filter(|process| !account.is_quiet() || process.latscope.is_some());
    let mut parts: Vec<String> = shown.map(Consumer::format_consumer).collect();
    let named: f64 = account.top.iter().map(|process| process.share).sum();
    if account.others * f64::from(account.cpus) - named > 0.1 {
        parts.push("processes that have ended since, and the kernel".to_owned());
    }
    parts.join(", ")
}

/// Returns the titles of the rows that the quota or others explain, and the number of such points that have no row.
fn doubtful(report: &Report) -> (Vec<&str>, usize) {
    let rows = table_measurements(report).filter(|m| is_explained(m)).map(|m| m.title.as_str()).collect();
    let has_rows = report.measurements.iter().any(|m| m.row);
    let further =
        report.measurements.iter().filter(|m| has_rows && !m.row && !is_merged(m) && is_explained(m));
    (rows, further.count())
}

/// Returns true if the quota, or other work on the CPUs, is a reason for doubt.
fn is_explained(m: &Measurement) -> bool {
    let reasons = [WAITED_FOR_A_CPU, THROTTLED, SHARED_CACHE];
    m.quality.reasons.iter().any(|reason| reasons.contains(&&*reason.id))
}

fn join_names(names: &[&str]) -> String {
    let shown = names.iter().take(LISTED).copied().collect::<Vec<_>>().join("; ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::fixture;
    use latscope_core::report::{Contention, QuotaThrottling};

    fn busy() -> Report {
        let mut report = fixture::report();
        let name = "stress-ng-cpu".to_owned();
        let top = vec![Consumer { name, pid: 77, share: 0.98, ..Consumer::default() }];
        report.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.49, top, ..Account::default() });
        report
    }

    #[test]
    fn a_quiet_machine_is_called_quiet_and_an_unknown_one_nothing() {
        let mut report = busy();
        report.activity = None;
        assert_eq!(sentence(&report), None);
        report.activity = Some(Account { wall_ns: 1, cpus: 2, others: 0.012, ..Account::default() });
        assert_eq!(
            sentence(&report).unwrap(),
            "The machine was quiet: other processes used 1.2 % of 2 CPUs."
        );
    }

    #[test]
    fn a_machine_that_its_host_slowed_is_not_called_quiet() {
        let mut report = busy();
        let account = report.activity.as_mut().unwrap();
        (account.others, account.stolen, account.top) = (0.01, Some(0.2), Vec::new());
        assert_eq!(
            sentence(&report).unwrap(),
            "The machine was slowed by its host: other processes used 1 % of 2 CPUs; the hypervisor took 20 %; the \
             figures are those of a machine as busy as that."
        );
    }

    #[test]
    fn of_a_run_too_short_for_the_ticks_no_state_is_known() {
        let mut report = busy();
        let account = report.activity.as_mut().unwrap();
        (account.wall_ns, account.others, account.unseen, account.top) = (14_000_000, 0.0, 0.7, Vec::new());
        assert_eq!(
            sentence(&report).unwrap(),
            "The machine was not known to be quiet: 14.0 ms are too short for the kernel's ticks of 10 ms."
        );
        for (unseen, state) in [(0.1, "not known to be quiet"), (0.04, "quiet")] {
            report.activity.as_mut().unwrap().unseen = unseen;
            let most = format_share(unseen);
            let expected = format!("The machine was {state}: other processes used 0 % to {most} of 2 CPUs.");
            assert_eq!(sentence(&report).unwrap(), expected);
        }
    }

    #[test]
    fn what_rounds_to_the_limit_is_said_to_be_over_it() {
        let mut activity = busy().activity.unwrap();
        activity.others = 0.0502;
        assert!(describe_state(&activity).starts_with("busy: other processes used just over 5 % of"));
        activity.others = 0.052;
        assert!(
            describe_state(&activity).starts_with("busy: other processes used 5.2 % of"),
            "{}",
            describe_state(&activity)
        );
    }

    #[test]
    fn a_busy_machine_names_who_and_the_rows_that_are_doubtful() {
        let mut report = busy();
        let text = sentence(&report).unwrap();
        assert!(
            text.contains("busy: other processes used 49 % of 2 CPUs: stress-ng-cpu (pid 77) 98 %"),
            "{text}"
        );
        report.activity.as_mut().unwrap().cpus = 1;
        let text = sentence(&report).unwrap();
        assert!(text.contains("49 % of 1 CPU; on all 2 CPUs of the machine: stress-ng-cpu"), "{text}");
        report = busy();
        assert!(!text.contains("doubtful"), "{text}");
        let m = report.measurements.iter_mut().find(|m| m.row).unwrap();
        m.contention = Some(Contention {
            wall_ns: 100,
            run_delay_ns: Some(74),
            distorts: true,
            ..Contention::default()
        });
        m.account = Some(Account { wall_ns: 100, others: 0.49, ..Account::default() });
        m.derive_results();
        let (title, contention, account) = (m.title.clone(), m.contention.clone(), m.account.clone());
        assert!(
            m.joined_reasons()
                .as_deref()
                .unwrap()
                .contains("waited for a CPU for 74 % of the time in which it was measured"),
            "{:?}",
            m.joined_reasons()
        );
        let text = sentence(&report).unwrap();
        assert!(text.ends_with(&format!("A row is doubtful for this reason: {title}.")), "{text}");
        // Points of a matrix have no row.
        for m in report.measurements.iter_mut().filter(|m| !m.row).take(2) {
            (m.contention, m.account) = (contention.clone(), account.clone());
            m.derive_results();
        }
        let text = sentence(&report).unwrap();
        let end = format!("1 row and 2 points beside the rows are doubtful for this reason: {title}.");
        assert!(text.ends_with(&end), "{text}");
        // Without a row of their own, all are rows.
        report.measurements.retain(|m| !is_merged(m));
        report.measurements.iter_mut().for_each(|m| m.row = false);
        assert!(sentence(&report).unwrap().contains("3 rows are doubtful"), "{}", sentence(&report).unwrap());
    }

    #[test]
    fn a_quota_is_said_before_all_others_and_calls_no_machine_quiet() {
        let mut report = busy();
        let account = report.activity.as_mut().unwrap();
        (account.others, account.top) = (0.012, Vec::new());
        account.quota =
            Some(QuotaThrottling { cpus: 0.5, periods: 230, throttled: 225, ..QuotaThrottling::default() });
        let m = report.measurements.iter_mut().find(|m| m.row).unwrap();
        let quota = QuotaThrottling { throttled_ns: 50, ..account.quota.clone().unwrap() };
        m.account = Some(Account { wall_ns: 100, quota: Some(quota), ..Account::default() });
        m.derive_results();
        assert_eq!((m.quality.reasons[0].id.as_str(), m.quality.level), (THROTTLED, QualityLevel::Degraded));
        let title = m.title.clone();
        let text = sentence(&report).unwrap();
        let start =
            "The run was limited to 0.50 CPU by its control group; throttled in 225 of 230 periods. A row is";
        assert!(text.starts_with(start) && text.contains(&title), "{text}");
        for wrong in ["quiet", "other processes"] {
            assert!(!text.contains(wrong), "{wrong:?} in {text}");
        }
        report.activity.as_mut().unwrap().others = 0.4;
        let text = sentence(&report).unwrap();
        assert!(text.contains("230 periods; beside that, other processes used 40 % of 2 CPUs"), "{text}");
    }

    #[test]
    fn load_and_peer_are_no_others_and_another_latscope_is_named_on_a_quiet_machine() {
        let mut report = busy();
        let account = report.activity.as_mut().unwrap();
        (account.others, account.load, account.peer) = (0.02, Some(0.93), Some(0.37));
        account.top[0].share = 0.02;
        account.top[0].latscope = Some("latscope survey".to_owned());
        assert_eq!(
            sentence(&report).unwrap(),
            "The machine was quiet: other processes used 2 % of 2 CPUs; the load that was asked for used 93 %; the \
             other end of the messages used 37 %: another latscope (pid 77, `latscope survey`) 2 % of one."
        );
    }

    #[test]
    fn waiting_that_is_measured_or_thrown_away_lowers_nothing() {
        let mut report = busy();
        let m = report.measurements.iter_mut().find(|m| m.row).unwrap();
        for (distorts, others) in [(false, Some(0.49)), (true, Some(0.01)), (true, None)] {
            m.contention =
                Some(Contention { wall_ns: 100, run_delay_ns: Some(74), distorts, ..Contention::default() });
            m.account = others.map(|others| Account { wall_ns: 100, others, ..Account::default() });
            m.derive_results();
            assert_eq!(m.quality.level, latscope_core::quality::QualityLevel::Ok);
        }
    }
}
