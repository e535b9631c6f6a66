//! Mask over everything that differs from run to run: numbers, names, and the number of frames. Widths stay where they
//! are part of the format.

/// Text without the parts that differ.
pub fn masked(text: &str) -> String {
    let mut json = false;
    let mut lines = Vec::new();
    for line in text.replace('\x1b', "^[").lines() {
        json = (json || line == "{") && line != "}";
        if json {
            lines.extend(json_line(line));
        } else {
            lines.push(text_line(line));
        }
    }
    sort_introductions(&mut lines);
    let end = if text.ends_with('\n') { "\n" } else { "" };
    without_frames_between(&(lines.join("\n") + end))
}

/// Sorts the lines by which cyclicdeadline's threads introduce themselves, since their order is random.
fn sort_introductions(lines: &mut [String]) {
    let introduces = |line: &String| {
        ["deadline thread", "main thread", "thread["].iter().any(|start| line.starts_with(start))
    };
    let from = lines.iter().position(introduces).unwrap_or(lines.len());
    let count = lines[from..].iter().take_while(|line| introduces(line)).count();
    lines[from..from + count].sort();
}

fn text_line(line: &str) -> String {
    let varying = [
        "Max CPUs", "Online CPUs", "# Thread Ids", "# Break", "Pre-heat", "Total runtime", "Global bias",
        "interval:", "  Tested at", "deadline thread", "main thread", "thread[",
    ];
    if let Some((policy, load)) = line.split_once("loadavg: ") {
        let blanks = load.len() - load.trim_end().len();
        return format!("{}loadavg: ~{}", numbers(policy, false), " ".repeat(blanks));
    }
    if let Some(masked) = pairs_line(line).or_else(|| load_line(line)) {
        return masked;
    }
    // Before its first sample.
    let line = &line.replace("Max:-1000000", "Max:       0");
    if let Some(cycles) = line.strip_prefix("# Thread ").and_then(|rest| rest.split_once(": "))
        && cycles.0.parse::<u32>().is_ok()
    {
        return "# Thread #:".to_owned();
    }
    // oslat's lines have one number for each core after a TAB.
    if varying.iter().any(|start| line.starts_with(start)) || line.contains(":\t") {
        return numbers(line, false);
    }
    // A thread id may need more room than its field.
    match (line.find('('), line.find(')')) {
        (Some(from), Some(to)) if line.starts_with("T:") || line.starts_with("^[") => {
            let width = (to - from - 1).min(5);
            let around =
                [line[..=from].to_owned(), format!("T:{}", &line[to..])].map(|part| numbers(&part, true));
            let after = &around[1][2..];
            format!("{}{}{}", around[0], "#".repeat(width), after)
        }
        _ if line.starts_with("# Thread ") => numbers(line, false),
        _ => numbers(line, true),
    }
}

/// Masks `#0: ID812, P80, …` and `#1 -> #0, Min    7, …`, whose numbers are at least four characters wide.
fn pairs_line(line: &str) -> Option<String> {
    let first = line.strip_prefix("^[[").map_or(line, |rest| rest.split_once('A').map_or(rest, |up| up.1));
    if !first.starts_with('#') || !first[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let field = |field: &str| match field.split_at_checked(4) {
        Some((name @ (" Min" | " Cur" | " Avg" | " Max"), number)) if number.len() >= 5 => {
            format!("{name} ####")
        }
        _ => numbers(field, false),
    };
    Some(line.split(',').map(field).collect::<Vec<_>>().join(","))
}

/// Masks `3.15 5.13 5.70 3/100 17330          `, a line as in /proc/loadavg.
fn load_line(line: &str) -> Option<String> {
    let rest = line.strip_prefix("^[[3A").unwrap_or(line);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let load =
        words.len() == 5 && words[3].contains('/') && words[..3].iter().all(|w| w.parse::<f64>().is_ok());
    let blanks = " ".repeat(line.len() - line.trim_end().len());
    load.then(|| format!("{}~{blanks}", numbers(&line[..line.len() - rest.len()], false)))
}

/// Masks a line of JSON. Of the values of a histogram, only the last is kept.
fn json_line(line: &str) -> Option<String> {
    let named = ["cmdline:", "start_time", "end_time", "nodename", "release", "version", "machine"];
    if let Some((key, value)) = line.trim_start().split_once("\": ") {
        let key = key.trim_start_matches('"');
        // Our own: cyclictest has no such member.
        if key == "latscope" {
            return None;
        }
        if named.contains(&key) {
            let comma = if value.ends_with(',') { "," } else { "" };
            return Some(format!("{}\"{key}\": ~{comma}", &line[..line.len() - line.trim_start().len()]));
        }
        if key.parse::<u64>().is_ok()
            && value.ends_with(',')
            && value.trim_end_matches(',').parse::<u64>().is_ok()
        {
            return None;
        }
    }
    Some(numbers(line, false))
}

/// Replaces numbers and the blanks that pad them by `#`, as wide or as a single sign.
fn numbers(text: &str, wide: bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.find(|c: char| c.is_ascii_digit()) {
        let blanks = first - rest[..first].trim_end_matches(' ').len();
        let digits = rest[first..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - first);
        // One blank parts words, more of them pad a number; so does one in a status line.
        let status =
            (text.starts_with("T:") || text.starts_with("  ")) && rest[..first - blanks].ends_with([':']);
        let padding = if wide && (blanks > 1 || status) { blanks } else { 0 };
        out += &rest[..first - padding];
        let width = if wide { within(text, &rest[..first - blanks], padding + digits) } else { 1 };
        out += &"#".repeat(width);
        rest = &rest[first + digits..];
    }
    out + rest
}

/// Width of a field, for a number that may need more room than the field has.
fn within(line: &str, before: &str, width: usize) -> usize {
    let most = match before.rsplit(' ').next() {
        _ if line.starts_with("# Total") => 9,
        _ if line.starts_with("# ") => 5,
        Some("P:") => 2,
        Some("C:" | "Min:") => 7,
        Some("Act:" | "Avg:") if width < 8 => 5,
        Some("Act:" | "Avg:" | "Max:") => 8,
        _ => width,
    };
    width.min(most)
}

/// Removes the frames between the first and the last, whose number is arbitrary.
fn without_frames_between(text: &str) -> String {
    let Some(up) = text.find("^[[").map(|at| &text[at..]).and_then(|rest| rest.get(..5)) else {
        return text.to_owned();
    };
    let parts: Vec<&str> = text.split(up).collect();
    format!("{}{up}{}", parts[0], parts[parts.len() - 1])
}

#[test]
fn widths_stay_and_numbers_go() {
    assert_eq!(
        masked("T: 0 ( 1234) P:95 I:1000 C:      8 Min:      6 Act:   14 Avg:   11 Max:      23\n"),
        "T:## (#####) P:## I:#### C:####### Min:####### Act:##### Avg:##### Max:########\n"
    );
    assert_eq!(masked("000001 000004\t000005\n"), "###### ######\t######\n");
    assert_eq!(masked("# Max Latencies: 00001 00019\n"), "# Max Latencies: ##### #####\n");
    assert_ne!(masked("T: 0 (1) Act:   14"), masked("T: 0 (1) Act:  14"));
    assert_eq!(masked("# Avg Latencies: 1234567"), masked("# Avg Latencies: 00001"));
    assert_eq!(masked("T: 0 (    1) Act:123456"), masked("T: 0 (1234567) Act:    1"));
}

#[test]
fn lines_of_pairs_and_of_the_load_have_their_own_form() {
    let pair = masked("^[[2A#0: ID9, P8, CPU0, I1000; #1: ID10, P80, CPU-1, TO 0, Cycles 7\n");
    assert_eq!(pair, "^[[#A#: ID#, P#, CPU#, I#; #: ID#, P#, CPU-#, TO #, Cycles #\n".replace("#:", "##:"));
    assert_eq!(masked("#1 -> #0, Min    7, Cur 1234\n"), masked("#1 -> #0, Min   17, Cur   34\n"));
    assert_ne!(masked("#1 -> #0, Min    7\n"), masked("#1 -> #0, Min   7\n"));
    assert_eq!(masked("3.15 5.13 15.70 3/100 17330   \n\nx"), "~   \n\nx");
}

#[test]
fn frames_between_the_first_and_the_last_go() {
    let frame = |cycles: u32| {
        format!("policy: fifo: loadavg: 0.{cycles} 1/2          \n\nT: 0 (    0) C:{cycles:7}\n")
    };
    let some = format!("{}\x1b[3A{}\x1b[3A{}", frame(1), frame(2), frame(3));
    let few = format!("{}\x1b[3A{}", frame(4), frame(5));
    assert_eq!(masked(&some), masked(&few));
    assert!(masked(&few).contains("^[[#Apolicy: fifo: loadavg: ~          \n\n"), "{}", masked(&few));
}

#[test]
fn a_histogram_in_json_is_as_long_as_one_entry() {
    let json = |entries: &str| {
        format!("{{\n  \"cmdline:\": \"x 1\",\n      \"histogram\": {{\n{entries}      }},\n}}\n")
    };
    let one = masked(&json("        \"1\": 2\n"));
    assert_eq!(masked(&json("        \"1\": 2,\n        \"17\": 3\n")), one);
    assert!(one.contains("  \"cmdline:\": ~,\n") && one.contains("        \"#\": #\n"), "{one}");
}
