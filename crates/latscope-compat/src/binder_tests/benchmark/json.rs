//! JSON that Google Benchmark writes, made by pure functions.

use super::context::BenchmarkContext;
use super::runs::{BinderBenchmarkRow, BinderBenchmarkRowKind};
use crate::binder_tests::number::scientific;
use crate::binder_tests::words::AndroidOutputVersion;
use crate::rt::json::quote_json;

/// Version of Google Benchmark whose form the JSON has.
const VERSION: &str = "v1.9.1";

/// Returns the JSON file of the given runs.
pub fn format_json(
    layout: AndroidOutputVersion,
    context: &BenchmarkContext,
    runs: &[&BinderBenchmarkRow],
) -> String {
    let context = match layout {
        AndroidOutputVersion::Current => format_members(&current(context), 4),
        AndroidOutputVersion::Oreo => format_members(&oreo(context), 4),
    };
    let rows = runs.iter().filter(|run| layout == AndroidOutputVersion::Current || !run.is_ratio());
    let rows: Vec<String> = rows
        .map(|run| match layout {
            AndroidOutputVersion::Current => row_members(run),
            AndroidOutputVersion::Oreo => old_row(run),
        })
        .map(|pairs| format!("    {{\n{}\n    }}", format_members(&pairs, 6)))
        .collect();
    format!("{{\n  \"context\": {{\n{context}\n  }},\n  \"benchmarks\": [\n{}\n  ]\n}}\n", rows.join(",\n"))
}

/// Key and its value, as JSON text.
type BenchmarkJsonMember = (&'static str, String);

fn format_members(pairs: &[BenchmarkJsonMember], indent: usize) -> String {
    let pairs = pairs.iter().map(|(key, value)| format!("{:indent$}\"{key}\": {value}", ""));
    pairs.collect::<Vec<_>>().join(",\n")
}

fn oreo(context: &BenchmarkContext) -> Vec<BenchmarkJsonMember> {
    vec![
        ("date", quote_json(&context.date_of(AndroidOutputVersion::Oreo))),
        ("num_cpus", context.cpus.to_string()),
        ("mhz_per_cpu", context.megahertz.to_string()),
        ("cpu_scaling_enabled", context.scaling.to_string()),
        ("library_build_type", quote_json("release")),
    ]
}

fn current(context: &BenchmarkContext) -> Vec<BenchmarkJsonMember> {
    let caches: Vec<String> = context.caches.iter().map(cache).collect();
    vec![
        ("date", quote_json(&context.date)),
        ("host_name", quote_json(&context.host)),
        ("executable", quote_json(&context.executable)),
        ("num_cpus", context.cpus.to_string()),
        ("mhz_per_cpu", context.megahertz.to_string()),
        ("cpu_scaling_enabled", context.scaling.to_string()),
        ("caches", format!("[\n{}\n    ]", caches.join(",\n"))),
        ("load_avg", format!("[{}]", context.loads())),
        ("library_version", quote_json(VERSION)),
        ("library_build_type", quote_json("release")),
        ("json_schema_version", "1".to_owned()),
    ]
}

fn cache((kind, level, size, shared): &(String, u32, u64, usize)) -> String {
    let pairs = [
        ("type", quote_json(kind)),
        ("level", level.to_string()),
        ("size", size.to_string()),
        ("num_sharing", shared.to_string()),
    ];
    format!("      {{\n{}\n      }}", format_members(&pairs, 8))
}

fn old_row(run: &BinderBenchmarkRow) -> Vec<BenchmarkJsonMember> {
    let whole = |ns: f64| format!("{ns:.0}");
    let mut pairs = vec![("name", quote_json(&run.full_name()))];
    pairs.extend(error_members(run));
    pairs.extend([
        ("iterations", run.iterations.to_string()),
        ("real_time", whole(run.real)),
        ("cpu_time", whole(run.cpu)),
        ("time_unit", quote_json("ns")),
    ]);
    pairs
}

fn row_members(run: &BinderBenchmarkRow) -> Vec<BenchmarkJsonMember> {
    let mut pairs = vec![
        ("name", quote_json(&run.full_name())),
        ("family_index", "0".to_owned()),
        ("per_family_instance_index", run.index.to_string()),
        ("run_name", quote_json(&run.name)),
    ];
    let number = |number: u64| number.to_string();
    match run.kind {
        BinderBenchmarkRowKind::Repetition(repetition) => pairs.extend([
            ("run_type", quote_json("iteration")),
            ("repetitions", number(run.repetitions)),
            ("repetition_index", number(repetition)),
            ("threads", number(1)),
        ]),
        BinderBenchmarkRowKind::Aggregate(statistic) => pairs.extend([
            ("run_type", quote_json("aggregate")),
            ("repetitions", number(run.repetitions)),
            ("threads", number(1)),
            ("aggregate_name", quote_json(statistic.name())),
            ("aggregate_unit", quote_json(if run.is_ratio() { "percentage" } else { "time" })),
        ]),
    }
    pairs.extend(error_members(run));
    pairs.extend([
        ("iterations", number(run.iterations)),
        ("real_time", scientific(run.real)),
        ("cpu_time", scientific(run.cpu)),
        ("time_unit", quote_json("ns")),
    ]);
    pairs
}

fn error_members(run: &BinderBenchmarkRow) -> Vec<BenchmarkJsonMember> {
    let Some(error) = &run.error else { return Vec::new() };
    vec![("error_occurred", "true".to_owned()), ("error_message", quote_json(error))]
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::runs::{self, BinderBenchmarkSample};
    use super::*;

    /// Two repetitions of a benchmark with their statistics, and one that failed.
    pub fn runs() -> Vec<BinderBenchmarkRow> {
        let sample = |iterations, real, cpu| BinderBenchmarkSample { iterations, real, cpu, error: None };
        let failed = BinderBenchmarkSample {
            error: Some("no \"room\"".to_owned()),
            ..BinderBenchmarkSample::default()
        };
        let chosen = [("BM_sendVec_binder/4".to_owned(), 4), ("BM_sendVec_binder/8".to_owned(), 8)];
        let measured = vec![sample(34_466, 45_959.4, 20_288.0), sample(34_000, 47_959.4, 20_300.0)];
        runs::all_rows(&chosen, &[measured, vec![failed]])
    }

    fn context() -> BenchmarkContext {
        BenchmarkContext {
            date: "2017-05-17T08:32:47+00:00".to_owned(),
            host: "board".to_owned(),
            executable: "libbinder_benchmark".to_owned(),
            cpus: 4,
            megahertz: 19,
            scaling: true,
            caches: vec![("Data".to_owned(), 1, 32_768, 1), ("Unified".to_owned(), 2, 1 << 20, 4)],
            load: vec![0.5, 0.25, 1.0],
        }
    }

    #[test]
    fn current_versions_print_this() {
        let runs = runs();
        let text = format_json(AndroidOutputVersion::Current, &context(), &runs.iter().collect::<Vec<_>>());
        assert_eq!(text, include_str!("current.json"));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["benchmarks"][0]["real_time"], 45_959.4);
    }

    #[test]
    fn android_8_printed_this() {
        let chosen = [("BM_sendVec_binderize/4".to_owned(), 4)];
        let sample = BinderBenchmarkSample { iterations: 32_342, real: 47_809.0, cpu: 21_906.0, error: None };
        let runs = runs::all_rows(&chosen, &[vec![sample]]);
        assert_eq!(
            format_json(AndroidOutputVersion::Oreo, &context(), &[&runs[0]]),
            include_str!("oreo.json")
        );
    }
}
