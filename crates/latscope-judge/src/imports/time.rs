//! Dates in the outputs of other programs.

use std::time::{Duration, SystemTime};

/// Reads a date of an output. It is not known where there is none, or where it has no time zone.
///
/// # Errors
/// The text is no date.
pub(super) fn read_date(date: Option<&str>) -> Result<Option<String>, String> {
    let Some(date) = date.map(str::trim).filter(|date| !date.is_empty()) else { return Ok(None) };
    match utc(date) {
        Some(time) => Ok(Some(time)),
        None if humantime::parse_rfc3339_weak(date).is_ok() => Ok(None),
        None => Err(format!("its date {date:?} does not exist: it is damaged")),
    }
}

/// Earliest plausible time of a run: clocks that were never set are at 1970, and none of the programs is older.
const EARLIEST: &str = "2000-01-01T00:00:00Z";

/// Returns why the times of a run are hardly right, in words; `None` if nothing speaks against them.
pub(super) fn find_doubt(
    (started, finished): (&str, Option<&str>),
    kernel_version: &str,
    now: SystemTime,
) -> Option<String> {
    // A day of tolerance, for clocks that are set to the local time.
    let latest = humantime::format_rfc3339_seconds(now + Duration::from_secs(24 * 3600)).to_string();
    let times = [started, finished.unwrap_or_default()];
    for time in times.into_iter().filter(|time| !time.is_empty()) {
        if humantime::parse_rfc3339(time).is_err() {
            return Some(format!("its date, {time}, does not exist"));
        }
        if time < EARLIEST {
            return Some(format!("its date, {time}, is hardly right: was the clock set?"));
        }
        if *time > *latest {
            return Some(format!("its date, {time}, is in the future"));
        }
    }
    if let Some(built) = build(kernel_version).filter(|_| !started.is_empty()) {
        // The same tolerance.
        let date = |time| humantime::format_rfc3339_seconds(time).to_string();
        let earliest = built.checked_sub(Duration::from_secs(24 * 3600)).map(date);
        if earliest.is_some_and(|earliest| *started < *earliest) {
            return Some(format!("its date, {started}, is before its kernel was built, {}", date(built)));
        }
    }
    let ended_first = finished.is_some_and(|finished| finished < started);
    ended_first.then(|| format!("it ended at {}, before it began at {started}", times[1]))
}

/// Returns when a kernel was built: `#3 SMP Thu Jun  4 09:00:00 UTC 2026`.
fn build(kernel_version: &str) -> Option<SystemTime> {
    let words: Vec<&str> = kernel_version.split_whitespace().collect();
    words.windows(5).find_map(|five| {
        let [month, day, time, _, year] = five else { return None };
        let month = 1 + MONTHS.iter().position(|name| name == month)?;
        humantime::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T{time}Z")).ok()
    })
}

/// A date with the offset of its time zone, as RFC 3339 in UTC: `Mon, 23 Nov 2026 00:05:43 +0100` (RFC 2822) or
/// `2026-11-23T00:05:43+01:00`. `None` where it is neither.
fn utc(date: &str) -> Option<String> {
    let (local, offset) = match date.split_whitespace().collect::<Vec<&str>>()[..] {
        [_, day, month, year, time, offset] => {
            let month = 1 + MONTHS.iter().position(|name| *name == month)?;
            (format!("{year}-{month:02}-{day:0>2}T{time}Z"), offset.to_owned())
        }
        [date] if date.len() == 25 => (format!("{}Z", date.get(..19)?), date.get(19..)?.replace(':', "")),
        [date] if date.len() == 20 => (date.to_owned(), "+0000".to_owned()),
        _ => return None,
    };
    let ahead = match offset.get(..1)? {
        "+" => true,
        "-" => false,
        _ => return None,
    };
    let (hours, minutes) = (offset.get(1..3)?.parse::<u64>().ok()?, offset.get(3..5)?.parse::<u64>().ok()?);
    let apart = Duration::from_secs(3600 * hours + 60 * minutes);
    let time = humantime::parse_rfc3339(&local).ok()?;
    let time = if ahead { time.checked_sub(apart)? } else { time.checked_add(apart)? };
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

/// Returns what is wrong with the day of the week of a date in the form of RFC 2822; `None` if nothing is.
pub(super) fn weekday_doubt(date: &str) -> Option<String> {
    let words: Vec<&str> = date.split_whitespace().collect();
    let [weekday, day, month, year, ..] = words[..] else { return None };
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    let noon = humantime::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T12:00:00Z")).ok()?;
    let days = noon.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs() / 86_400;
    // The first day of 1970 was a Thursday.
    let is = WEEKDAYS[(days % 7) as usize];
    let weekday = weekday.trim_end_matches(',');
    (WEEKDAYS.contains(&weekday) && weekday != is)
        .then(|| format!("its date, {date}, is not right: that day is a {is}"))
}

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Reads what date(1) prints: `Mon Nov  2 10:00:00 UTC 2026`. It is not known in another time zone, of which there is
/// only an abbreviation. `None` if the text has another form.
///
/// # Errors
/// The date does not exist.
pub(super) fn of_command(text: &str) -> Option<Result<Option<String>, String>> {
    let [_, month, day, time, zone, year] = text.split_whitespace().collect::<Vec<&str>>()[..] else {
        return None;
    };
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    let is_time = time.len() == 8 && time.matches(':').count() == 2;
    if !is_time || [day, year].iter().any(|word| word.parse::<u16>().is_err()) {
        return None;
    }
    let date = format!("{year}-{month:02}-{day:0>2}T{time}Z");
    Some(match humantime::parse_rfc3339(&date) {
        Err(_) => Err(format!("its date {text:?} does not exist: it is damaged")),
        Ok(_) => Ok(Some(date).filter(|_| ["UTC", "GMT"].contains(&zone))),
    })
}

/// Milliseconds since 1970, as RFC 3339 in UTC. `None` beyond the year 9999.
pub(super) fn of_epoch(milliseconds: u64) -> Option<String> {
    const YEAR_10000: u64 = 253_402_300_800_000;
    let time =
        std::time::UNIX_EPOCH + Duration::from_millis(Some(milliseconds).filter(|ms| *ms < YEAR_10000)?);
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_utc() {
        let dates = [
            ("Mon, 23 Nov 2026 00:05:43 +0000", "2026-11-23T00:05:43Z"),
            ("Mon, 23 Nov 2026 00:05:43 +0130", "2026-11-22T22:35:43Z"),
            ("Mon,  3 Nov 2026 00:05:43 -0500", "2026-11-03T05:05:43Z"),
            ("2026-11-23T00:16:37+00:00", "2026-11-23T00:16:37Z"),
            ("2026-11-23T00:16:37-08:00", "2026-11-23T08:16:37Z"),
            ("2026-11-23T00:16:37Z", "2026-11-23T00:16:37Z"),
        ];
        for (date, expected) in dates {
            assert_eq!(utc(date).as_deref(), Some(expected), "{date}");
        }
        assert_eq!(of_epoch(1_795_392_994_884).as_deref(), Some("2026-11-23T00:16:34Z"));
        assert_eq!(of_epoch(u64::MAX), None);
    }

    #[test]
    fn a_date_that_does_not_exist_is_refused_and_an_implausible_one_is_doubted() {
        assert_eq!(read_date(None), Ok(None));
        assert_eq!(read_date(Some("2026-11-23 00:16:37")), Ok(None), "no time zone");
        for date in
            ["2026-13-01T00:00:00Z", "Mon, 30 Feb 2026 00:05:43 +0000", "2026-11-23 25:16:37", "yesterday"]
        {
            assert!(read_date(Some(date)).unwrap_err().contains("does not exist"), "{date}");
        }
        let now = humantime::parse_rfc3339("2026-11-27T00:00:00Z").unwrap();
        let of = |started: &str, finished: &str| {
            find_doubt((started, Some(finished)), "#1 SMP", now).unwrap_or_default()
        };
        assert_eq!(of("2026-11-23T00:00:00Z", "2026-11-23T00:00:02Z"), "");
        assert_eq!(of("", "2026-11-23T00:00:02Z"), "");
        assert!(of("1970-01-01T00:00:05Z", "1970-01-01T00:00:07Z").contains("was the clock set"));
        assert!(of("2099-01-01T00:00:00Z", "2099-01-01T00:00:02Z").contains("in the future"));
        assert!(of("2026-11-23T00:00:09Z", "2026-11-23T00:00:02Z").contains("before it began"));
    }

    #[test]
    fn dates_of_a_shell_are_known_in_utc() {
        assert_eq!(
            of_command("Mon Nov  2 10:00:00 UTC 2026").unwrap().unwrap().unwrap(),
            "2026-11-02T10:00:00Z"
        );
        assert_eq!(of_command("Mon Nov  2 10:00:00 CEST 2026"), Some(Ok(None)));
        for damaged in ["Mon Feb 30 10:00:00 UTC 2026", "Mon Nov  2 10:99:00 CEST 2026"] {
            assert!(of_command(damaged).unwrap().unwrap_err().contains("does not exist"), "{damaged}");
        }
        for other in ["MHZ: 2000 MHz, 0.5000 nanosec clock", "a Nov b c d e", "Mon Nov 2 10:00 UTC 2026", ""]
        {
            assert_eq!(of_command(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "yesterday",
            "Mon, 23 Foo 2026 00:05:43 +0000",
            "2026-11-23 00:16:37",
            "2026-99-23T00:16:37+00:00",
            "Mon, 23 Nov 2026 00:05:43 é0000",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }
}
