//! The plans that come with latscope.

use super::super::output::terminal_width;
use super::super::usage::did_you_mean;
use super::plan_file::PlanFile;
use latscope_views::DisplayOptions;
use latscope_views::trial::paragraph;

const PLANS: [(&str, &str); 6] = [
    ("rt-acceptance", include_str!("../../../plans/rt-acceptance.toml")),
    ("rt-acceptance-1khz", include_str!("../../../plans/rt-acceptance-1khz.toml")),
    ("android-ipc", include_str!("../../../plans/android-ipc.toml")),
    ("amp", include_str!("../../../plans/amp.toml")),
    ("ci-quick", include_str!("../../../plans/ci-quick.toml")),
    ("knobs", include_str!("../../../plans/knobs.toml")),
];

/// The text of the plan of this name.
pub fn plan_text(name: &str) -> Option<&'static str> {
    PLANS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names, and what each plan answers.
pub fn list() -> String {
    let title = |text: &str| PlanFile::parse(text).map(|plan| plan.title).unwrap_or_default();
    let options = DisplayOptions { width: terminal_width(), ..DisplayOptions::default() };
    let line = |(name, text): &(&str, &str)| paragraph(&format!("{name:<18}  "), &title(text), &options);
    PLANS.iter().map(line).collect()
}

/// Message for a name of neither a file nor a plan.
pub fn unknown_plan_message(name: &str) -> String {
    let near = did_you_mean(name, PLANS.iter().map(|(known, _)| *known));
    let near = if near.is_empty() { ": `latscope run --list` lists the plans".to_owned() } else { near };
    format!("{name} is neither a file nor a plan of latscope{near}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_is_sound_and_says_what_it_answers() {
        for (name, text) in PLANS {
            let plan = PlanFile::parse(text).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(!plan.title.is_empty(), "{name}");
        }
        assert!(list().contains("rt-acceptance"));
        assert!(unknown_plan_message("rt-aceptance").contains("did you mean rt-acceptance?"));
        assert!(unknown_plan_message("x.toml").contains("--list"));
    }
}
