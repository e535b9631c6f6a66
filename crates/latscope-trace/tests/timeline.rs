//! The time line of traces recorded with `examples/record_timeline.rs` of the
//! command, and of damaged ones.
#![forbid(unsafe_code)]

use latscope_trace::timeline::{
    Export, SyscallSpan, ThreadStateInterval, ThreadTimeline, Timeline, TimelineFileFormat,
    TimelineThreadState, TraceRecording, Why, chrome_json, finding, ftrace_text, values,
};
use proptest::prelude::*;
use std::path::Path;

const CREATE: &str = include_str!("traces/create.txt");
const HANDOVER: &str = include_str!("traces/handover.txt");
const POOL: &str = include_str!("traces/pool.txt");

/// The recording with its main thread followed.
fn recording(text: &str) -> TraceRecording {
    let tid =
        text.lines().find_map(|line| line.trim_start().strip_prefix("record_timeline-")?.split(' ').next());
    TraceRecording {
        text: text.to_owned(),
        followed: vec![tid.unwrap_or("1").parse().unwrap()],
        architecture: "x86_64".to_owned(),
        ..TraceRecording::default()
    }
}

/// The time line with one of its threads alone.
fn alone(timeline: &Timeline, at: usize) -> Timeline {
    Timeline { threads: vec![timeline.threads[at].clone()], ..timeline.clone() }
}

fn timeline(text: &str) -> Timeline {
    let timeline = Timeline::from_recording(&recording(text));
    assert_eq!(timeline.damaged, 0);
    timeline
}

/// States and reasons in order.
fn states(thread: &ThreadTimeline) -> Vec<(TimelineThreadState, Why)> {
    thread.intervals.iter().map(|interval| (interval.state, interval.why)).collect()
}

/// Time in a state, ns.
fn time_in(thread: &ThreadTimeline, state: TimelineThreadState) -> u64 {
    let of_state = thread.intervals.iter().filter(|interval| interval.state == state);
    of_state.map(|interval| interval.until - interval.from).sum()
}

const FUTEX: Option<u32> = Some(202);

#[test]
fn create_and_join_are_seen_from_both_sides() {
    let timeline = timeline(CREATE);
    let [main, first, second] = &timeline.threads[..] else { panic!("{:#?}", timeline.threads) };
    let expected = [
        (TimelineThreadState::Running, Why::Scheduled),
        (TimelineThreadState::Preempted, Why::Preempted { by: 24671 }),
        (TimelineThreadState::Running, Why::Scheduled),
        (TimelineThreadState::Blocked, Why::Slept { kind: 'S', call: FUTEX }),
        (TimelineThreadState::Runnable, Why::Woken { by: 24672 }),
        (TimelineThreadState::Running, Why::Scheduled),
    ];
    assert_eq!(states(main), expected);
    assert!(main.is_main() && !main.ended);
    let wait = ThreadStateInterval {
        from: 2_447_077_757_810,
        until: 2_447_077_783_228,
        state: TimelineThreadState::Blocked,
        why: Why::Slept { kind: 'S', call: FUTEX },
        cpu: 0,
    };
    assert_eq!(main.intervals[3], wait);
    for (thread, tid, queued) in [(first, 24671, 3_415), (second, 24672, 9_043)] {
        assert_eq!(
            (thread.tid, thread.process, thread.name.as_str(), thread.ended),
            (tid, 24670, "created", true)
        );
        assert_eq!(
            states(thread),
            [
                (TimelineThreadState::Runnable, Why::Created { by: 24670 }),
                (TimelineThreadState::Running, Why::Scheduled)
            ]
        );
        assert_eq!(time_in(thread, TimelineThreadState::Runnable), queued);
    }
}

#[test]
fn signposts_nest_and_their_own_writes_are_no_calls() {
    let timeline = timeline(CREATE);
    let names: Vec<_> = timeline.signposts().map(|(_, signpost)| signpost.name.as_str()).collect();
    assert_eq!(names, ["create", "join", "create", "join", "create"]);
    let main = &timeline.threads[0];
    assert!(main.signposts.iter().all(|signpost| signpost.closed));
    // The last line of the recording is the write that stops it, still open.
    let stop = SyscallSpan { from: 2_447_077_805_471, until: 2_447_077_805_471, number: 1, result: None };
    assert_eq!(main.calls.last(), Some(&stop));
    assert_eq!(main.calls.iter().filter(|call| call.number == 1).count(), 1);
    let join = main.calls.iter().find(|call| Some(call.number) == FUTEX).unwrap();
    let expected =
        SyscallSpan { from: 2_447_077_754_325, until: 2_447_077_792_402, number: 202, result: Some(0) };
    assert_eq!(join, &expected);
}

#[test]
fn a_handover_is_blocked_then_runnable_then_running() {
    let timeline = timeline(HANDOVER);
    let [main, echo] = &timeline.threads[..] else { panic!("{:#?}", timeline.threads) };
    let round = [
        (TimelineThreadState::Blocked, Why::Slept { kind: 'S', call: FUTEX }),
        (TimelineThreadState::Runnable, Why::Woken { by: 24675 }),
        (TimelineThreadState::Running, Why::Scheduled),
    ];
    assert_eq!(states(main)[3..], round.repeat(5));
    // On one CPU the woken thread takes the waker's place at once.
    let preempted = states(echo).into_iter().filter(|(_, why)| *why == Why::Preempted { by: 24674 });
    assert_eq!(preempted.count(), 4);
    assert_eq!((main.tid, main.until() - main.from()), (24674, 285_704));
    assert_eq!((echo.tid, echo.until() - echo.from()), (24675, 169_922));
    let [of_main, of_echo] = [0, 1].map(|at| finding(&alone(&timeline, at), "round trips").unwrap());
    assert_eq!((of_main.values["switches"], of_echo.values["switches"]), (6.0, 6.0));
    let blocked = time_in(main, TimelineThreadState::Blocked);
    assert_eq!(blocked, 2_313 + 1_813 + 1_763 + 1_713 + 32_097);
    assert_eq!(of_main.values["blocked"], blocked as f64 / 285_704.0 * 100.0);
    assert!(of_main.text.contains("round trips: 1 thread for 286 µs in all"), "{}", of_main.text);
    assert!(of_main.text.contains("; most time in futex (9x, "), "{}", of_main.text);
}

#[test]
fn busy_threads_on_one_cpu_preempt_each_other() {
    let timeline = timeline(POOL);
    let of = |tid: u32| timeline.threads.iter().find(|thread| thread.tid == tid).unwrap();
    assert_eq!(timeline.threads.len(), 4);
    assert_eq!(time_in(of(24678), TimelineThreadState::Preempted), 7_989_893 + 7_061_223);
    assert_eq!(time_in(of(24680), TimelineThreadState::Runnable), 3_929_274);
    assert_eq!(time_in(of(24677), TimelineThreadState::Blocked), 18_993_389);
    for tid in [24678, 24679, 24680] {
        assert_eq!(time_in(of(tid), TimelineThreadState::Blocked), 0);
    }
    // What took the CPU and is not of ours keeps its name.
    assert!(timeline.others.contains_key(&14), "{:?}", timeline.others);
    // On one CPU no two run at a time.
    let mut running: Vec<_> = timeline.threads.iter().flat_map(|thread| &thread.intervals).collect();
    running.retain(|interval| interval.state == TimelineThreadState::Running);
    running.sort_by_key(|interval| interval.from);
    assert!(running.windows(2).all(|pair| pair[0].until <= pair[1].from));
}

#[test]
fn shares_of_a_window_are_those_within_it() {
    let timeline = timeline(HANDOVER);
    let (_, trip) = timeline.signposts().find(|(_, signpost)| signpost.name == "round trip").unwrap();
    assert_eq!(trip.until - trip.from, 15_312);
    let numbers = values(&timeline, trip.from..trip.until);
    let running = |at| values(&alone(&timeline, at), trip.from..trip.until)["timeline-running"].value;
    // Both were there all the time.
    assert!((numbers["timeline-running"].value - running(0).midpoint(running(1))).abs() < 1e-9);
    let percent: f64 =
        TimelineThreadState::ALL.iter().map(|s| numbers[&format!("timeline-{}", s.name())].value).sum();
    assert!((percent - 100.0).abs() < 1e-9, "{numbers:?}");
    assert_eq!(numbers["timeline-switches"].value, 2.0);
    assert!(values(&timeline, 0..1).is_empty());
}

#[test]
fn a_finding_is_about_all_threads() {
    let created = timeline(CREATE);
    let of = |timeline: Timeline| finding(&timeline, "thread.create").unwrap();
    let main = of(alone(&created, 0));
    let shares = "54.9 % running, 2.6 % runnable, 34.2 % preempted, 8.2 % blocked; ";
    assert!(
        main.text.starts_with(&format!("thread.create: 1 thread for 310 µs in all: {shares}")),
        "{main:?}"
    );
    let others = of(Timeline { threads: created.threads[1..].to_vec(), ..created.clone() });
    let shares = "91.8 % running, 8.2 % runnable, 0 % preempted, 0 % blocked; ";
    assert!(others.text.contains(&format!("2 threads for 152 µs in all: {shares}")), "{others:?}");
    let finding = of(created);
    assert_eq!(finding.id, "timeline");
    assert!(
        finding.text.starts_with("thread.create: 3 threads for 462 µs in all: 67.1 % running"),
        "{finding:?}"
    );
    assert_eq!(finding.values["threads"], 3.0);
}

#[test]
fn what_is_not_whole_is_left_out_and_said() {
    let whole_from = Some(2_447_077_730_000);
    let timeline = Timeline::from_recording(&TraceRecording { lost: 12, whole_from, ..recording(CREATE) });
    assert_eq!(timeline.from, 2_447_077_730_169);
    assert_eq!(timeline.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>(), [24670, 24672]);
    let text = finding(&timeline, "x").unwrap().text;
    assert!(text.contains("12 earlier events did not fit"), "{text}");
    let written = ftrace_text(&[(&recording(CREATE), &timeline)]);
    assert!(!written.contains("2447.077729969") && written.contains("2447.077730169"));
}

#[test]
fn nothing_followed_is_an_empty_time_line() {
    let timeline = Timeline::from_recording(&TraceRecording { followed: vec![], ..recording(CREATE) });
    assert_eq!(timeline.threads, []);
    assert_eq!(finding(&timeline, "x"), None);
    assert_eq!(Timeline::from_recording(&TraceRecording::default()), Timeline::default());
}

#[test]
fn a_yield_is_the_threads_own_wish_and_an_end_ends() {
    let text = "\
 a-5 (5) [001] 1.000001: sys_enter: NR 24 (0, 0, 0, 0, 0, 0)
 a-5 (5) [001] 1.000002: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=b next_pid=9 next_prio=120
 b-9 (9) [001] 1.000004: sched_switch: prev_comm=b prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=a next_pid=5 next_prio=120
 a-5 (5) [001] 1.000005: sys_exit: NR 24 = 0
 a-5 (5) [001] 1.000006: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=b next_pid=9 next_prio=120
 b-9 (9) [000] 1.000007: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=5 next_prio=120
 a-5 (5) [000] 1.000009: sched_switch: prev_comm=a prev_pid=5 prev_prio=120 prev_state=Z ==> next_comm=b next_pid=9 next_prio=120
 b-9 (9) [000] 1.000020: sched_waking: comm=c pid=10 prio=120 target_cpu=000
";
    let recording = TraceRecording {
        text: text.into(),
        followed: vec![5],
        architecture: "x86_64".into(),
        ..TraceRecording::default()
    };
    let timeline = Timeline::from_recording(&recording);
    let states: Vec<_> =
        timeline.threads[0].intervals.iter().map(|i| (i.state, i.until - i.from, i.cpu)).collect();
    let expected = [
        (TimelineThreadState::Running, 1000, 1),
        (TimelineThreadState::Runnable, 2000, 1),
        (TimelineThreadState::Running, 2000, 1),
        (TimelineThreadState::Preempted, 1000, 1),
        (TimelineThreadState::Running, 2000, 0),
    ];
    assert_eq!(states, expected);
    assert!(timeline.threads[0].ended);
    assert_eq!((timeline.until, timeline.threads[0].until()), (1_000_020_000, 1_000_009_000));
}

#[test]
fn a_file_written_in_steps_is_the_whole_file() {
    let steps = [recording(CREATE), TraceRecording::default(), recording(POOL)];
    let timelines: Vec<Timeline> = steps.iter().map(Timeline::from_recording).collect();
    let pairs: Vec<_> = steps.iter().zip(&timelines).collect();
    for (file, whole) in [("a.txt", ftrace_text(&pairs)), ("a.JSON", chrome_json(&pairs))] {
        let mut export = Export::new(TimelineFileFormat::for_path(Path::new(file)));
        let mut text = export.file_header().to_owned();
        pairs.iter().for_each(|(recording, timeline)| text += &export.format_step(recording, timeline));
        assert_eq!(text + export.file_footer(), whole);
    }
    let json: serde_json::Value = serde_json::from_str(&chrome_json(&pairs)).unwrap();
    let of_kind =
        |kind: &str| json["traceEvents"].as_array().unwrap().iter().filter(|e| e["cat"] == kind).count();
    let threads = || timelines.iter().flat_map(|timeline| &timeline.threads);
    assert_eq!(of_kind("state"), threads().map(|thread| thread.intervals.len()).sum::<usize>());
    assert_eq!(of_kind("syscall"), threads().map(|thread| thread.calls.len()).sum::<usize>());
    assert_eq!(of_kind("signpost"), 6);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&chrome_json(&[])).unwrap()["traceEvents"],
        serde_json::json!([])
    );
}

#[test]
fn every_line_of_the_text_file_is_an_event_with_all_columns() {
    let recording = recording(HANDOVER);
    let timeline = Timeline::from_recording(&recording);
    let file = ftrace_text(&[(&recording, &timeline)]);
    let again = Timeline::from_recording(&TraceRecording { text: file.clone(), ..recording.clone() });
    // What is added for Perfetto changes no state and no call of ours.
    assert_eq!(again.damaged, 0);
    for (ours, theirs) in timeline.threads.iter().zip(&again.threads) {
        assert_eq!(ours.intervals[..ours.intervals.len() - 1], theirs.intervals[..ours.intervals.len() - 1]);
    }
    assert!(file.lines().skip(4).all(|line| line.contains("] .... ")), "{file}");
    assert_eq!(file.matches("|futex").count(), 14);
}

/// A recording with lines cut, dropped, doubled, exchanged or overwritten.
fn damaged() -> impl Strategy<Value = String> {
    let change = (0usize..200, 0usize..160, any::<u8>(), 0u8..5);
    (0usize..3, proptest::collection::vec(change, 0..12)).prop_map(|(which, changes)| {
        let mut lines: Vec<Vec<u8>> =
            [CREATE, HANDOVER, POOL][which].lines().map(|line| line.as_bytes().to_vec()).collect();
        for (line, column, byte, kind) in changes {
            let at = line % lines.len();
            match kind {
                0 => lines[at].truncate(column),
                1 => drop(lines.remove(at)),
                2 => lines.insert(at, lines[at].clone()),
                3 => lines.swap(0, at),
                _ => lines[at].iter_mut().skip(column).take(3).for_each(|old| *old = byte),
            }
        }
        String::from_utf8_lossy(&lines.join(&b'\n')).into_owned()
    })
}

/// Whatever was read, the intervals of a thread follow each other.
fn check(recording: &TraceRecording) -> Result<(), TestCaseError> {
    let timeline = Timeline::from_recording(recording);
    for thread in &timeline.threads {
        prop_assert!(thread.intervals.iter().all(|interval| interval.from <= interval.until));
    }
    for at in 0..timeline.threads.len() {
        let values = values(&alone(&timeline, at), 0..u64::MAX);
        let sum: f64 =
            TimelineThreadState::ALL.iter().map(|s| values[&format!("timeline-{}", s.name())].value).sum();
        prop_assert!(sum == 0.0 || (sum - 100.0).abs() < 1e-9);
    }
    let json: serde_json::Value = serde_json::from_str(&chrome_json(&[(recording, &timeline)])).unwrap();
    prop_assert!(json["traceEvents"].is_array());
    prop_assert!(ftrace_text(&[(recording, &timeline)]).starts_with("# tracer: nop\n"));
    prop_assert_eq!(finding(&timeline, "x").is_some(), !timeline.threads.is_empty());
    Ok(())
}

proptest! {
    #[test]
    fn damaged_recordings_never_panic(text in damaged(), whole_from in proptest::option::of(any::<u64>())) {
        let followed = vec![24670, 24674, 24677];
        let architecture = "x86_64".to_owned();
        check(&TraceRecording { text, followed, lost: 3, whole_from, architecture })?;
    }

    #[test]
    fn any_text_never_panics(text in ".{0,400}", tid in any::<u32>()) {
        check(&TraceRecording { text, followed: vec![tid], ..TraceRecording::default() })?;
    }

    #[test]
    fn any_event_never_panics(
        head in "[ -~]{0,20}", tid in any::<u32>(), at in "[0-9]{1,25}[.][0-9]{0,12}",
        name in "sched_switch|sched_waking|sched_wakeup_new|sched_process_fork|sys_enter|sys_exit|tracing_mark_write",
        fields in "((NR|B[|]|E[|]|comm=|prev_comm=|next_comm=| pid=| prev_pid=| next_pid=| ==> | prev_state=| child_comm=| child_pid=| = |[0-9]{0,12}|[a-zA-Z+|]) ?){0,9}",
    ) {
        let text = format!("{head}-{tid} ({tid}) [001] {at}: {name}: {fields}");
        check(&TraceRecording { text, followed: vec![tid, 1, 2], ..TraceRecording::default() })?;
    }
}
