//! Nodes as values of options, and the check that this machine has them.

use anyhow::{Result, bail};
use latscope_core::machine::Machine;
use latscope_core::param;
use latscope_core::plan::ParamValue;
use latscope_engine::planner::RunRequest;

/// Reads the number of a node, or `all`.
pub(super) fn parse_node(text: &str) -> Result<ParamValue, String> {
    match text {
        "all" => Ok(text.into()),
        number => number
            .parse()
            .map(ParamValue::Number)
            .map_err(|_| format!("{text:?} is no node: give numbers, or all")),
    }
}

/// Returns the machine as a request uses it: between nodes only the requested CPUs measure.
///
/// # Errors
/// The machine lacks a node that was asked for, or the node has no memory or no CPU that the run may use.
pub(super) fn machine_for_request(request: &RunRequest, machine: &Machine) -> Result<Machine> {
    let mut machine = machine.clone();
    let asked = |name| request.input.values.get(name).into_iter().flatten();
    if asked(param::NODES).chain(asked(param::CPU_NODES)).next().is_none() {
        return Ok(machine);
    }
    if !request.cpus.is_empty() {
        machine.allowed.0.retain(|cpu| request.cpus.contains(cpu));
    }
    let nodes = latscope_probes::memory::nodes(&machine);
    let numbers: Vec<String> = nodes.iter().map(|node| node.id.to_string()).collect();
    for (name, lacks) in [(param::NODES, "memory"), (param::CPU_NODES, "CPU that this run may use")] {
        for value in asked(name) {
            let ParamValue::Number(number) = value else { continue };
            match nodes.iter().find(|node| u64::from(node.id) == *number) {
                None => bail!(
                    "--{name} {number}: this machine has no such node: choose of {}",
                    numbers.join(", ")
                ),
                Some(node)
                    if name == param::NODES && node.memory == 0
                        || name != param::NODES && node.cpus.0.is_empty() =>
                {
                    bail!("--{name} {number}: this node has no {lacks}")
                }
                Some(_) => {}
            }
        }
    }
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::machine::NumaNode;
    use latscope_probes::PlanInput;

    fn error(name: &str, value: u64) -> Option<String> {
        let node = |id, cpus: &str, memory| NumaNode {
            id,
            cpus: cpus.parse().unwrap(),
            memory,
            ..NumaNode::default()
        };
        let nodes = vec![node(0, "0-1", 1), node(1, "2", 0), node(5, "", 1)];
        let machine = Machine { allowed: "0-2".parse().unwrap(), nodes, ..Machine::default() };
        let mut input = PlanInput::default();
        input.values.insert(name.to_owned(), vec![value.into()]);
        machine_for_request(&RunRequest::new("memory", input), &machine).err().map(|error| error.to_string())
    }

    #[test]
    fn a_node_is_there_with_what_is_used_of_it() {
        assert_eq!(error("nodes", 5).or(error("cpu-nodes", 1)), None);
        assert!(error("nodes", 2).unwrap().ends_with("choose of 0, 1, 5"));
        assert_eq!(error("nodes", 1).unwrap(), "--nodes 1: this node has no memory");
        assert!(error("cpu-nodes", 5).unwrap().contains("no CPU"));
        assert_eq!((parse_node("3"), parse_node("all")), (Ok(3.into()), Ok("all".into())));
        assert!(parse_node("near").is_err());
    }
}
