//! The page of a report.

use super::{published, section, summary};
use crate::head;
use crate::markup::element;
use crate::page::html_document;
use latscope_core::catalogue::ProbeCatalogue;
use latscope_core::report::Report;
use latscope_judge::references::Reference;

/// Returns a report as an HTML page: the machine, how far its figures can be trusted, ten numbers, verdicts and
/// findings, its place among `references`, then a section for each family. The figures and what was timed are those of
/// `catalogue`.
pub fn report_page(report: &Report, references: &[Reference], catalogue: &ProbeCatalogue) -> String {
    let (what, processor) = head::report_title(report);
    let name = &report.machine.name;
    let of = [what.as_str(), name, &report.started].into_iter().filter(|part| !part.is_empty());
    let title = of.collect::<Vec<_>>().join(" · ");
    let heading = if processor.is_empty() { what.clone() } else { format!("{what}: {processor}") };
    let header = element("header")
        .child(element("h1").with_text(heading))
        .children(crate::page::list(name_first(report)).map(|list| list.with_attr("class", "facts")));
    let families = families(report);
    let main = element("main")
        .children(summary::summary(report, catalogue))
        .children(published::section(report, references))
        .children(navigation(report, &families))
        .children(section::column_legend(report, catalogue))
        .children(families.iter().map(|family| section::section(report, family, catalogue)));
    html_document(&title, [header, main, footer(report)])
}

/// Returns the known facts on machine and run, with the machine's name first.
fn name_first(report: &Report) -> Vec<String> {
    let mut facts = head::fact_lines(report);
    if let Some(first) = facts.first_mut().filter(|_| report.imported.is_none()) {
        let name = Some(report.machine.name.as_str()).filter(|name| !name.is_empty());
        *first = name.into_iter().chain([first.as_str()]).collect::<Vec<_>>().join(" · ");
    }
    facts
}

/// Returns the families in the order measured, for a run that ended early also the families that it did not
/// reach.
fn families(report: &Report) -> Vec<&str> {
    let planned = report.plan.steps.iter().flat_map(|step| &step.points).map(|point| &point.probe);
    let planned = planned.filter(|_| report.is_unfinished());
    crate::headline::families(report.measurements.iter().map(|m| &m.probe).chain(planned))
}

/// Returns links to the sections, if there are several, each with its number of doubtful rows.
fn navigation(report: &Report, families: &[&str]) -> Option<crate::markup::Element> {
    let mut links = element("ul");
    for family in families {
        let link = element("a").with_attr("href", format!("#{}", section::anchor(family))).with_text(*family);
        let doubtful = section::doubtful(report, family);
        let doubtful = doubtful.map(|text| element("span").with_attr("class", "doubt").with_text(text));
        links = links.child(element("li").child(link).children(doubtful));
    }
    (families.len() > 1).then(|| element("nav").child(links))
}

fn footer(report: &Report) -> crate::markup::Element {
    let tool = &report.tool;
    let commit = if tool.commit.is_empty() { String::new() } else { format!(" ({})", tool.commit) };
    let run = if report.run_id.is_empty() { String::new() } else { format!(" · run {}", report.run_id) };
    element("footer").child(element("p").with_text(format!("{} {}{commit}{run}", tool.name, tool.version)))
}
