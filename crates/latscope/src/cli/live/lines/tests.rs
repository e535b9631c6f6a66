use super::super::testing::{SECOND, snapshot, test_outlier, test_plan, test_step, test_step_snapshot};
use super::*;
use latscope_core::report::Warning;

#[test]
fn a_run_in_lines() {
    let step = test_step(&[0, 1]);
    let mut out = Vec::new();
    let mut lines = LiveLineWriter::new(&mut out);
    lines.observe(&RunEvent::Started(&test_plan(&step)));
    let text = "/dev/cpu_dma_latency cannot be opened".to_owned();
    lines.observe(&RunEvent::Warning(&Warning { id: String::new(), text, remedy: None }));
    for second in 1..=25 {
        let count = second as usize * 1000;
        let points = vec![snapshot(&[(6100, count)], 0, 0), snapshot(&[(6000, count), (412_000, 1)], 2, 0)];
        lines.observe(&RunEvent::Snapshot(&test_step_snapshot(&step, second * SECOND, points)));
        if second == 12 {
            (0..8)
                .for_each(|n| lines.observe(&RunEvent::Outlier(&test_outlier(12 * SECOND + n, 1, 412_000))));
        }
    }
    lines.observe(&RunEvent::Outlier(&test_outlier(25 * SECOND, 0, 101_000)));
    let shown = "outlier at 0:12  CPU 1     412 µs  83 % thread stress-ng (4711), 12 % irq timer";
    let expected = [
        "measuring wake  every 1 ms, fifo 95, nanosleep, monotonic, CPUs 0-1",
        "latscope: /dev/cpu_dma_latency cannot be opened",
        "measuring 0:09 of 1:00  n 20001  max 412 µs on CPU 1  p99 6.10 µs  missed 2  0 above 100 µs",
        shown,
        shown,
        shown,
        shown,
        shown,
        "measuring 0:19 of 1:00  n 40001  max 412 µs on CPU 1  p99 6.10 µs  missed 2  8 above 100 µs",
        "outlier at 0:25  CPU 0     101 µs  83 % thread stress-ng (4711), 12 % irq timer  (and 3 before it)",
    ];
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
}
