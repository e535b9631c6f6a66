//! Runs beside a real-time loop that leaves them time, or a CPU.

use crate::support::{BINARY, Place, end, json, latscope, of_probe, parsed, run, skipped_in_part};
use crate::{Hog, prepared, skipped::traceable};
use hmac_sha256::Hash;
use latscope_os::sched::{self, ThreadSchedPolicy};
use serde_json::Value;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

#[test]
fn a_real_time_loop_on_another_cpu_has_not_stopped_the_measuring_threads() {
    let name = "beside::a_real_time_loop_on_another_cpu_has_not_stopped_the_measuring_threads";
    let Some((busy, _one)) = prepared(name) else { return };
    let measured = sched::allowed_cpus().unwrap()[0].to_string();
    let hog = Hog::of(10, busy);
    let words = ["wake", "--cpus", &measured, "--interval", "1ms", "--duration", "1500ms", "--json", "-"];
    let found = parsed(&run(&words).done());
    drop(hog);
    let top = found["activity"]["top"].as_array().unwrap();
    let is_loop = |process: &Value| process["policy"] == "SCHED_FIFO 10" && process["cpu"] == busy;
    assert!(top.iter().any(is_loop), "{top:#?}");
    let warnings = found["warnings"].to_string();
    assert!(
        found["activity"]["real_time"].is_null() && !warnings.contains("real-time-throttled"),
        "{warnings}"
    );
}

/// The kernel holds back a thread of SCHED_FIFO that never sleeps, and with it all others of its class.
#[test]
fn real_time_throttling_is_named_with_the_thread_that_it_is_against() {
    let name = "beside::real_time_throttling_is_named_with_the_thread_that_it_is_against";
    let Some((cpu, _one)) = prepared(name).filter(|_| traceable(name)) else { return };
    let place = Place::new();
    let (result, cpu_word) = (place.at("result.json"), cpu.to_string());
    let hog = Hog::of(10, cpu);
    let words = ["wake", "--cpus", &cpu_word, "--duration", "4s", "--threshold", "20ms", "--quiet", "--json"];
    let ran = end(latscope(words).arg(&result));
    drop(hog);
    ran.no_panic();
    let found = json(&result);
    let outliers: Vec<&Value> = of_probe(&found, "wake.timer")
        .into_iter()
        .flat_map(|m| m["outliers"].as_array().into_iter().flatten())
        .collect();
    if outliers.is_empty() {
        return skipped_in_part(name, "this kernel held no real-time thread back for 20 ms");
    }
    let throttled = outliers.iter().flat_map(|outlier| outlier["cause"].as_array().unwrap());
    let throttled: Vec<&Value> = throttled.filter(|cause| cause["kind"] == "throttling").collect();
    assert!(!throttled.is_empty(), "{outliers:#?}");
    let is_loop =
        |cause: &&&Value| cause["name"].as_str().unwrap().starts_with("hog (real-time priority 10)");
    assert!(throttled.iter().any(|cause| is_loop(&cause)), "{throttled:#?}");
    let warnings = found["warnings"].as_array().unwrap().iter();
    let warnings: Vec<_> = warnings.filter(|warning| warning["id"] == "rt-throttling").collect();
    let [warning] = warnings[..] else { panic!("{:#}", found["warnings"]) };
    assert!(warning.to_string().contains("sched_rt_runtime_us"), "{warning}");
}

/// Keeps a CPU from all other threads for a moment, again and again, until the stop request.
fn stall(cpu: u32, stop: &AtomicBool) {
    sched::pin(&[cpu]).unwrap();
    sched::set_policy(ThreadSchedPolicy::Fifo(99)).unwrap();
    // A machine may take long until the run begins. Each stall ends by its own clock.
    for _ in 0..200 {
        let until = Instant::now() + Duration::from_millis(100);
        while Instant::now() < until {}
        if stop.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(Duration::from_millis(250));
    }
}

fn sha256(path: &str) -> String {
    let hash = Hash::hash(&fs::read(path).unwrap());
    hash.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn a_stall_is_in_every_figure_of_a_record_and_its_cause_beside_it() {
    let name = "beside::a_stall_is_in_every_figure_of_a_record_and_its_cause_beside_it";
    let Some((cpu, _one)) = prepared(name).filter(|_| traceable(name)) else { return };
    let place = Place::new();
    let run = format!("wake --cpus {cpu} --interval 1ms --duration 1500ms --max 20ms");
    let plan = place.file("plan.toml", format!("[[measurement]]\nname = \"wake\"\nrun = \"{run}\"\n"));
    let stop = AtomicBool::new(false);
    let ran = thread::scope(|scope| {
        thread::Builder::new().name("hog".to_owned()).spawn_scoped(scope, || stall(cpu, &stop)).unwrap();
        let arguments = ["run", &plan, "--dir", "results", "--markdown", "record.md"];
        let ran = end(latscope(arguments).current_dir(place.path()));
        stop.store(true, Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.code, Some(2), "{ran:#?}");

    let outcome = json(place.at("results/trial.json"));
    let record = &outcome["acceptance"];
    let row = &record["cells"][0];
    let (limit, number) = (20e6, |value: &serde_json::Value| value.as_f64().unwrap());
    let [above, of] = [0, 1].map(|at| number(&row["above"][at]));
    assert!(number(&row["missed"]) > 0.0 && number(&row["events"]) == of, "{row:#}");
    assert!(number(&row["max"]) > limit && above > 0.0 && row["status"] == "exceeded", "{row:#}");
    for (quantile, rest) in row["quantiles"].as_array().unwrap().iter().zip([0.5, 0.01, 0.001, 0.0001]) {
        let agrees = quantile.as_f64().is_none_or(|quantile| quantile <= limit || above / of >= rest);
        assert!(agrees, "{row:#}");
    }
    // The table that the screen shows has the same figures.
    let shown = &outcome["table"][0]["rows"][0];
    assert_eq!((&shown["p50"], &shown["p99"]), (&row["quantiles"][0], &row["quantiles"][1]));
    assert!(ran.out.contains("also those that were missed"), "{}", ran.out);

    let causes = row["stalls"].to_string();
    assert!(causes.contains("thread hog (pid "), "{causes}");
    let file = row["file"]["name"].as_str().unwrap();
    assert_eq!(row["file"]["sha256"], sha256(&place.at(&format!("results/{file}"))));
    assert_eq!(outcome["binary"]["sha256"], sha256(BINARY));
    assert_eq!((&row["interval_ns"], &row["cpus"]), (&1_000_000.into(), &cpu.to_string().into()));

    let markdown = fs::read_to_string(place.at("record.md")).unwrap();
    assert!(markdown.trim_end().ends_with("Signature: ...................."), "{markdown}");
    assert!(markdown.contains(&format!("{}  {file}", row["file"]["sha256"].as_str().unwrap())), "{markdown}");
}
