//! CSV that Google Benchmark writes, made by pure functions. It is the same in all versions.

use super::runs::BinderBenchmarkRow;
use crate::binder_tests::number::general;
use std::fmt::Write;

/// Column names. Of the last five columns only those about errors are ever filled.
const HEAD: &str = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,error_occurred,error_message";

/// Returns the CSV file of the given runs.
pub fn format_csv(runs: &[&BinderBenchmarkRow]) -> String {
    let mut text = format!("{HEAD}\n");
    for run in runs {
        let name = quote_field(&run.full_name());
        let _ = match &run.error {
            Some(error) => writeln!(text, "{name},,,,,,,,true,{}", quote_field(error)),
            None => {
                let [real, cpu] = [run.real, run.cpu].map(|value| general(value, 6));
                writeln!(text, "{name},{},{real},{cpu},ns,,,,,", run.iterations)
            }
        };
    }
    text
}

fn quote_field(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_all_columns() {
        let runs = super::super::json::tests::runs();
        let text = format_csv(&runs.iter().collect::<Vec<_>>());
        assert!(text.contains("\n\"BM_sendVec_binder/4\",34466,45959.4,20288,ns,,,,,\n"), "{text}");
        assert!(text.contains("\n\"BM_sendVec_binder/8\",,,,,,,,true,\"no \"\"room\"\"\"\n"), "{text}");
        assert!(text.lines().all(|line| line.matches(',').count() == 9), "{text}");
    }
}
