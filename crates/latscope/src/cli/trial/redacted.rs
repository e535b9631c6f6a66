//! `--redact` of a plan and its outcome: names that the user chose, commands, and what was said of a run.

use super::super::redact;
use super::outcome::{Ordered, TrialOutcome};
use super::plan_file::{PlanFile, TrialCommandLine};
use latscope_core::plan::BackgroundLoad;

/// Names of arms that `latscope trial` gives.
const ARMS: [&str; 5] = ["a", "b", "with", "without", "as-is"];

/// Returns the plan with names that the user did not choose, without title and labels, if this process redacts. It can
/// be carried out.
pub fn redact_names(mut plan: PlanFile) -> PlanFile {
    if !redact::applies() {
        return plan;
    }
    plan.title.clear();
    for (at, one) in plan.measurements.iter_mut().enumerate() {
        let is_command = one.run.0.first().is_some_and(|word| *word == one.name);
        one.name = if is_command { one.name.clone() } else { format!("measurement-{}", at + 1) };
    }
    for (at, arm) in plan.arms.iter_mut().enumerate() {
        arm.name =
            if ARMS.contains(&arm.name.as_str()) { arm.name.clone() } else { format!("arm-{}", at + 1) };
        arm.labels.clear();
    }
    for (at, load) in plan.loads.iter_mut().enumerate() {
        // A load without a value is named by it.
        let value = load.load.get_or_insert_with(|| load.name.clone());
        let is_known = *value == load.name && is_own_load(value);
        load.name = if is_known { load.name.clone() } else { format!("load-{}", at + 1) };
    }
    unique(&mut plan);
    plan
}

/// Numbers measurements of the same command.
fn unique(plan: &mut PlanFile) {
    let names: Vec<String> = plan.measurements.iter().map(|one| one.name.clone()).collect();
    for (at, one) in plan.measurements.iter_mut().enumerate() {
        if names[..at].contains(&one.name) {
            one.name = format!("measurement-{}", at + 1);
        }
    }
}

/// Returns true if a load is one of latscope's.
fn is_own_load(load: &str) -> bool {
    BackgroundLoad::built_in(load).is_some() || load == "none"
}

/// Returns the plan as it may be shown and written: also without commands, if this process redacts.
pub fn redact_plan(plan: &PlanFile) -> PlanFile {
    let mut plan = redact_names(plan.clone());
    if !redact::applies() {
        return plan;
    }
    hide(&mut plan.restore);
    for one in &mut plan.measurements {
        one.run = TrialCommandLine(redact::redact_words(&one.run.0));
        hide(&mut one.needs);
        hide(&mut one.otherwise);
    }
    for arm in &mut plan.arms {
        for command in [&mut arm.before, &mut arm.needs, &mut arm.otherwise] {
            hide(command);
        }
        hide_load(&mut arm.load);
        if !arm.prefix.0.is_empty() {
            arm.prefix = TrialCommandLine(vec![redact::redact_command(&arm.prefix.to_string())]);
        }
        arm.set = std::mem::take(&mut arm.set)
            .into_iter()
            .map(|(file, value)| (redact::message(&file), value))
            .collect();
    }
    for load in &mut plan.loads {
        hide_load(&mut load.load);
        hide(&mut load.needs);
        hide(&mut load.otherwise);
    }
    plan
}

fn hide(command: &mut Option<String>) {
    if let Some(command) = command {
        *command = redact::redact_command(command);
    }
}

fn hide_load(load: &mut Option<String>) {
    if load.as_ref().is_some_and(|load| !is_own_load(load)) {
        hide(load);
    }
}

impl TrialOutcome {
    /// Takes out of the outcome what its sentences say of the machine and its user, if this process redacts.
    pub fn redact(&mut self) {
        if !redact::applies() {
            return;
        }
        for text in self.skipped.iter_mut().map(|one| &mut one.why).chain(self.failed.iter_mut()) {
            *text = redact::message(text);
        }
        for cell in &mut self.table {
            cell.why = cell.why.as_deref().map(redact::message);
        }
        for run in &mut self.runs {
            run.why = run.why.as_deref().map(redact::message);
            for warning in &mut run.warnings {
                warning.text = redact::message(&warning.text);
                warning.remedy = warning.remedy.as_deref().map(redact::message);
            }
        }
    }

    /// Gives the parts of an outcome that was read the names of the [shown] plan, but not yet its files.
    pub fn rename(&mut self) {
        if !redact::applies() {
            return;
        }
        let new = redact_plan(&self.plan);
        let old = std::mem::replace(&mut self.plan, new);
        for one in &mut self.skipped {
            let at = old.names_of(&one.kind).iter().position(|name| **name == one.name);
            one.name = at.map_or_else(String::new, |at| self.plan.names_of(&one.kind)[at].clone());
        }
        for one in self.order.iter_mut().chain(self.runs.iter_mut().map(|run| &mut run.planned)) {
            let names = one.cell_index(&old).map(|place| self.plan.part_names(place)).unwrap_or_default();
            (one.measurement, one.load, one.arm) = names;
        }
    }

    /// Names the files of the runs as a trial with `--redact` does.
    pub fn rename_files(&mut self) {
        if !redact::applies() {
            return;
        }
        let files: Vec<(String, String)> = self
            .order
            .iter()
            .enumerate()
            .map(|(at, one)| (one.file.clone(), result_file_name(at, one)))
            .collect();
        for (known, one) in files.iter().zip(&mut self.order) {
            one.file.clone_from(&known.1);
        }
        for cell in self.acceptance.iter_mut().flat_map(|record| &mut record.cells) {
            // A packed file has the name with `.gz` behind it.
            let known = files.iter().find(|(before, _)| cell.file.name.starts_with(before.as_str()));
            cell.file.name = known.map_or_else(String::new, |(_, after)| after.clone());
        }
        for (at, run) in self.runs.iter_mut().enumerate() {
            let known = files.iter().find(|(before, _)| *before == run.planned.file);
            run.planned.file =
                known.map_or_else(|| result_file_name(at, &run.planned), |(_, after)| after.clone());
        }
    }
}

fn result_file_name(at: usize, run: &Ordered) -> String {
    let load = run.load.as_ref().map(|load| format!("-{load}")).unwrap_or_default();
    format!("{:03}-{}-{}{load}.json", at + 1, run.arm, run.measurement)
}
