//! A history as Markdown, for issues and step summaries.

use super::words;
use crate::comparison::figures::{interval, quantity, ratio};
use crate::markdown::escape;
use latscope_judge::history::{Change, History};

/// Maximum number of figures of a change, unless all are asked for.
const MOST: usize = 20;

/// Each machine with its changes; with `all` every figure of them.
pub fn markdown(history: &History, all: bool) -> String {
    let mut out = "## latscope history\n\n".to_owned();
    history.remarks.iter().for_each(|line| out += &format!("- note: {}\n", escape(line)));
    for machine in &history.machines {
        out += &format!("\n### {}\n\n", escape(&words::machine(machine)));
        words::changes(history, machine).iter().for_each(|line| out += &format!("- {}\n", escape(line)));
        for change in &machine.changes {
            let place = words::place(machine, change);
            out += &format!("\n**change {}**: {}\n\n", escape(&change.id), escape(&place));
            let with = words::with(change);
            with.iter().for_each(|line| out += &format!("- differs: {}\n", escape(line)));
            if with.is_empty() {
                out += &format!("- {}\n", words::NOTHING_KNOWN);
            }
            out += &table(change, all);
        }
    }
    out
}

fn table(change: &Change, all: bool) -> String {
    let mut out =
        "\n| point | figure | before | after | ratio | 95 % |\n|---|---|--:|--:|--:|---|\n".to_owned();
    let kept = if all { change.moved.len() } else { change.moved.len().min(MOST) };
    for moved in &change.moved[..kept] {
        let [before, after] =
            [moved.size.a, moved.size.b].map(|value| quantity(Some(value), words::unit(moved.figure)));
        out += &format!(
            "| {} | {} | {before} | {after} | {} | {} |\n",
            escape(&moved.title),
            escape(&words::figure(moved)),
            ratio(Some(&moved.size)),
            interval(Some(&moved.size))
        );
    }
    if kept < change.moved.len() {
        out += &format!("\n… and {} more\n", change.moved.len() - kept);
    }
    out
}
