//! Part of cyclictest's JSON after the common head. A member `latscope` says which program measured, and what
//! cyclictest does not count.

use super::status::Fixed;
use crate::rt::json::format_counts;
use crate::rt::options::Release;
use crate::rt::row::{RtFigureUnit, RtThreadRow};
use latscope_core::machine::Machine;
use latscope_core::report::LinearRecord;

/// JSON of all threads, each with the number of activations that it `missed`. `records` is empty without `-h`.
pub fn format_threads(
    (release, unit): (Release, RtFigureUnit),
    machine: &Machine,
    (fixed, rows, missed): (&[Fixed], &[RtThreadRow], &[u64]),
    records: &[LinearRecord],
) -> String {
    let mut all = Vec::new();
    for (index, (fixed, row)) in fixed.iter().zip(rows).enumerate() {
        let histogram = match (records.get(index), release) {
            (None, Release::V2_10) => String::new(),
            (record, _) => {
                let values = record.map_or(&[][..], |record| &record.counts);
                format!("      \"histogram\": {},\n", format_counts((0..).zip(values.iter().copied())))
            }
        };
        all.push(format!(
            "    \"{index}\": {{\n{histogram}      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n      \
             \"avg\": {:.2},\n      \"cpu\": {},\n      \"node\": {}\n    }}",
            row.cycles,
            row.min_in(unit),
            unit.whole_units(row.max),
            row.mean / unit.size_ns() as f64,
            fixed.cpu.map_or(-1, i64::from),
            node(fixed.cpu, machine),
        ));
    }
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "  \"latscope\": {{ \"version\": \"{version}\", \"missed\": {missed:?} }},\n  \"num_threads\": {},\n  \"resolution_in_ns\": {},\n  \"thread\": {{\n{}\n  }}\n",
        rows.len(),
        u8::from(unit == RtFigureUnit::Ns),
        all.join(",\n")
    )
}

/// The NUMA node of a CPU; -1 for a thread that runs anywhere.
fn node(cpu: Option<u32>, machine: &Machine) -> i64 {
    cpu.map_or(-1, |cpu| {
        machine.cpus.iter().find(|known| known.id == cpu).map_or(0, |known| i64::from(known.node))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(release: Release, records: &[LinearRecord]) -> serde_json::Value {
        let fixed = Fixed { priority: 1, interval: 1000, cpu: Some(1) };
        let row = RtThreadRow {
            cycles: 20,
            min: Some(12_900),
            mean: 15_104.0,
            max: 29_999,
            ..RtThreadRow::default()
        };
        let anywhere = Fixed { cpu: None, ..fixed };
        let machine = Machine {
            cpus: vec![latscope_core::machine::CpuTopology { id: 1, node: 3, ..Default::default() }],
            ..Machine::default()
        };
        let text = format_threads(
            (release, RtFigureUnit::Us),
            &machine,
            (&[fixed, anywhere], &[row; 2], &[0, 3]),
            records,
        );
        serde_json::from_str(&format!("{{\n{text}}}")).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_text_and_the_mean_has_two_decimals() {
        let json = made(Release::V2_4, &[]);
        let first = &json["thread"]["0"];
        assert_eq!((&first["min"], &first["max"], &first["avg"]), (&12.into(), &29.into(), &15.10.into()));
        assert_eq!((&first["cpu"], &first["node"]), (&1.into(), &3.into()));
        assert_eq!(json["thread"]["1"]["cpu"], -1);
        assert_eq!((&json["num_threads"], &json["resolution_in_ns"]), (&2.into(), &0.into()));
        assert_eq!(json["latscope"]["missed"], serde_json::json!([0, 3]));
        assert!(first["histogram"].as_object().unwrap().is_empty());
        assert!(made(Release::V2_10, &[])["thread"]["0"].get("histogram").is_none());
    }

    #[test]
    fn a_histogram_names_the_values_that_occurred() {
        let record = LinearRecord { counts: vec![0, 0, 5], ..LinearRecord::default() };
        assert_eq!(made(Release::V2_10, &[record])["thread"]["0"]["histogram"]["2"], 5);
    }
}
