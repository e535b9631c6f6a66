//! Places in a text at which something that identifies may stand: words, paths, names of processes.

/// Places that are alike on all machines; what lies below them is kept, too.
const COMMON: [&str; 4] = ["/proc", "/sys/devices/system", "/sys/kernel", "/sys/module"];

/// Paths that are alike on all machines.
const COMMON_FILES: [&str; 9] = [
    "/tmp", "/var/tmp", "/run/lock", "/sys", "/sys/fs/cgroup", "/bin/sh", "/etc/machine-id", "/etc/sysctl.d",
    "/dev",
];

/// Files in `/dev` that are alike on all machines.
const COMMON_DEVICES: [&str; 15] = [
    "shm", "null", "zero", "full", "tty", "stdin", "stdout", "stderr", "random", "urandom", "kvm", "vsock",
    "binder", "hwbinder", "cpu_dma_latency",
];

/// Beginnings of the names of threads of the kernel.
const KERNEL_THREADS: [&str; 28] = [
    "kworker", "ksoftirqd", "migration", "rcu_preempt", "rcu_sched", "rcu_tasks_kthread", "rcu_tasks_trace",
    "rcu_exp_gp_kthread", "rcuc", "rcuog", "rcuop", "cpuhp", "idle_inject", "irq_work", "irq", "ktimers",
    "napi", "watchdogd", "kswapd", "kcompactd", "khugepaged", "ksmd", "kthreadd", "kauditd", "khungtaskd",
    "oom_reaper", "swapper", "jbd2",
];

/// Names of a thread that are latscope's own or words.
const OWN: [&str; 4] = ["latscope", "idle", "itself", ""];

/// Words of latscope's between which the name of a process stands.
const AROUND_NAMES: [(&str, &str); 3] =
    [("while ", " ran"), ("interrupts off in ", ", or firmware"), ("", " (pid ")];

/// Returns true if all machines have a path.
pub fn is_common(path: &str) -> bool {
    let below = |place: &&str| path.strip_prefix(*place).is_some_and(|rest| rest.starts_with('/'));
    path.is_empty()
        || COMMON_FILES.contains(&path)
        || path.strip_prefix("/dev/").is_some_and(|device| COMMON_DEVICES.contains(&device))
        || COMMON.iter().any(|place| path == *place || below(place))
}

/// Returns the name of a thread that identifies nobody: one of latscope's, or of the kernel with its CPU but without a
/// device. Returns `None` for any other.
pub fn common_thread(name: &str) -> Option<&str> {
    if OWN.contains(&name) {
        return Some(name);
    }
    let begins = |known: &&&str| {
        let rest = name.strip_prefix(**known);
        rest.is_some_and(|rest| rest.chars().next().is_none_or(|c| c == '/' || c.is_ascii_digit()))
    };
    let known = KERNEL_THREADS.iter().find(begins)?;
    let of_cpu = |c: char| c.is_ascii_digit() || "/uH:".contains(c);
    let end = name[known.len()..].find(|c| !of_cpu(c)).map_or(name.len(), |end| known.len() + end);
    Some(name[..end].trim_end_matches(['/', ':']))
}

/// Returns the names of processes that stand between words of latscope's in a text.
pub fn names_in(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (before, after) in AROUND_NAMES {
        for (end, _) in text.match_indices(after) {
            let head = &text[..end];
            let start = if before.is_empty() {
                start_of_name(head)
            } else {
                head.rfind(before).map(|at| at + before.len())
            };
            found.extend(
                start
                    .map(|start| &head[start..])
                    .filter(|name| !name.is_empty() && *name != "another latscope"),
            );
        }
    }
    found
}

/// The place where a name begins that a text ends with: after a comma, a colon or a bracket. The kernel has no longer
/// names than 15 bytes.
fn start_of_name(text: &str) -> Option<usize> {
    let separated =
        [", ", ": ", "(", "by ", "; "].iter().filter_map(|word| Some(text.rfind(word)? + word.len())).max();
    let start = separated.unwrap_or(0);
    if text.len() - start <= 15 { Some(start) } else { text.rfind(' ').map(|at| at + 1) }
}

/// Returns the text with `to` in place of a word.
pub fn with_word_replaced(text: &str, word: &str, to: &str) -> String {
    if word.is_empty() || !text.contains(word) {
        return text.to_owned();
    }
    let part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = &from[word.len()..];
        let inside = before.chars().next_back().or(out.chars().next_back().filter(|_| before.is_empty()));
        let whole = !inside.is_some_and(part) && !after.chars().next().is_some_and(part);
        out.push_str(before);
        out.push_str(if whole { to } else { word });
        rest = after;
    }
    out + rest
}

/// Returns the text with `to` in place of a path that stands alone. Longer paths that begin with it are added to a list
/// and stay.
pub fn with_path_replaced(text: &str, path: &str, to: &str, mut below: Vec<String>) -> (String, Vec<String>) {
    let deeper = format!("{path}/");
    let mut hidden = text.to_owned();
    while let Some(at) = hidden.find(&deeper) {
        let rest = &hidden[at..];
        let end = rest.find(ends_path).unwrap_or(rest.len());
        let longer = rest[..end].trim_end_matches(['.', ':', '!', '?']).to_owned();
        // What was found is marked, so that the search goes on behind it.
        hidden = hidden.replacen(&longer, &format!("\u{1}{}\u{1}", below.len()), 1);
        below.push(longer);
    }
    let mut out = with_word_replaced(&hidden, path, to);
    for (at, longer) in below.iter().enumerate() {
        out = out.replace(&format!("\u{1}{at}\u{1}"), longer);
    }
    (out, below)
}

/// The first place in a text where a path begins: a slash, or the dots before it, that no word ends in.
pub fn start_of_path(text: &str) -> Option<usize> {
    let slashes = text.match_indices('/').map(|(at, _)| at);
    slashes.map(|at| (at, text[..at].trim_end_matches(['.', '~']).len())).find_map(|(at, start)| {
        let follows = |c: char| c.is_alphanumeric() || "/._-)]%".contains(c);
        let inside = text[..start].chars().next_back().is_some_and(follows);
        let named = text[at + 1..].chars().next().is_some_and(|c| c.is_alphanumeric() || "._-".contains(c));
        (!inside && named).then_some(start)
    })
}

/// Returns true if a character ends a path in a sentence.
pub fn ends_path(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`,;()<>|[]{}".contains(c)
}

/// Returns true if a value of an event of the kernel is a number or a state: `7`, `0x1f`, `S`, `R+`.
pub fn is_plain_value(key: &str, value: &str) -> bool {
    let of_number = |c: char| c.is_ascii_hexdigit() || "-:.,".contains(c);
    value.len() <= 2
        || WORDY.contains(&key)
        || value.strip_prefix("0x").unwrap_or(value).chars().all(of_number)
}

/// Fields of events that hold a word of the kernel's.
const WORDY: [&str; 3] = ["[action", "ret", "reason"];

/// Words of events that stand without a key.
const WORDS_OF_EVENTS: [&str; 8] =
    ["==>", "context", "timer_latency", "ns", "us", "delta_ns:", "lost", "irq"];

/// Returns true if a word of an event is the kernel's.
pub fn is_word_of_events(word: &str) -> bool {
    WORDS_OF_EVENTS.contains(&word)
        || word.is_empty()
        || word.starts_with('#') && word[1..].chars().all(|c| c.is_ascii_digit())
}
