//! Columns as CSV, for spreadsheets and scripts, with all digits. Control characters, which names of hosts, files and
//! threads can hold, are written as `\x1b`.

use crate::column::{CSV, TableColumn};
use latscope_core::log_commands;

/// Returns the columns that have a name in CSV, with a header line. A missing value is an empty field.
pub(crate) fn columns_csv(columns: &[TableColumn]) -> Vec<u8> {
    let columns: Vec<&TableColumn> = columns.iter().filter(|column| column.forms.has_form(CSV)).collect();
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let row = |row: usize| columns.iter().map(|column| column.cells[row].field()).collect();
    let heading = columns.iter().map(|column| column.field.to_owned()).collect();
    records_csv(std::iter::once(heading).chain((0..rows).map(row)))
}

/// Returns records as CSV.
pub(crate) fn records_csv(records: impl Iterator<Item = Vec<String>>) -> Vec<u8> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for record in records {
        let record = record.iter().map(|field| clean_field(field));
        writer.write_record(record).expect("memory takes any record of the same length");
    }
    writer.into_inner().expect("memory can be flushed")
}

/// Returns a text without control characters, which a terminal would obey and a line would end at, and without commands
/// to a service that keeps a log. A text that a spreadsheet would take for a formula begins with a quote; a number does
/// not.
fn clean_field(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\x{:02x}", c as u32) } else { c.to_string() };
    let formula = text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err();
    let shown = formula.then_some("'".to_owned()).into_iter().chain(text.chars().map(escaped)).collect();
    if log_commands::may_be_in(text) { log_commands::break_commands(shown) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay_numbers() {
        let cells = ["=HYPERLINK(\"x\")", "+1+cmd|' /C'!A0", "-2+3", "@SUM(A1)", "-5.25", "+3", "a=b", ""];
        let written =
            ["'=HYPERLINK(\"x\")", "'+1+cmd|' /C'!A0", "'-2+3", "'@SUM(A1)", "-5.25", "+3", "a=b", ""];
        assert_eq!(cells.map(clean_field), written);
        let commands = ["::stop-commands::x", "a ##vso[task.setvariable variable=b]", "rcu::callback"];
        let broken = [": :stop-commands::x", "a # #vso[task.setvariable variable=b]", "rcu::callback"];
        assert_eq!(commands.map(clean_field), broken);
    }
}
