//! The `AGENT_*` variables: they bypass the ladder of settings, so their values become part of the plan.

use aec_base::env::Env;
use aec_base::problem::Problem;
use serde_json::Value;

use crate::experiment::{Experiment, FAMILY, Harness};
use crate::parameters::known;
use crate::plan::{Conditions, PlannedTool};

/// Parameters that have a variable.
const PARAMETERS: [(&str, &str); 3] = [
    ("AGENT_MAX_TOKENS", "max_tokens"),
    ("AGENT_MAX_TURNS", "max_turns"),
    ("AGENT_COMMAND_TIMEOUT", "command_timeout"),
];

/// Applies the variables that are set, and returns their names.
pub fn apply(
    env: &Env,
    experiment: &mut Experiment,
    conditions: &mut Conditions,
) -> Result<Vec<&'static str>, Vec<Problem>> {
    let mut applied = Vec::new();
    let mut problems = Vec::new();
    let get = |name: &'static str| env.get(name).filter(|value| !value.trim().is_empty());
    if let Some(model) = get("AGENT_MODEL") {
        let calls = |harness: Harness| harness.needs_model() || harness == Harness::Command;
        for agent in experiment.agents.iter_mut().filter(|agent| calls(agent.harness)) {
            agent.model = Some(model.to_owned());
        }
        applied.push("AGENT_MODEL");
    }
    for (name, key) in PARAMETERS {
        let Some(value) = get(name) else { continue };
        match value.trim().parse::<u32>() {
            Ok(number @ 1..) => {
                for agent in experiment.agents.iter_mut().filter(|agent| known(agent.harness).contains(&key))
                {
                    agent.parameters.insert(key.to_owned(), number.into());
                }
                applied.push(name);
            }
            _ => problems.push(wrong(name, "is not a whole number above 0")),
        }
    }
    if let Some(instruction) = get("AGENT_INSTRUCTION") {
        conditions.instruction = Some(instruction.to_owned());
        applied.push("AGENT_INSTRUCTION");
    }
    if let Some(text) = get("AGENT_TOOLS_JSON") {
        match aec_base::json::from_str::<Vec<PlannedTool>>(text) {
            Ok(tools) => {
                conditions.tools = Some(tools);
                applied.push("AGENT_TOOLS_JSON");
            }
            Err(_) => {
                let what = match aec_base::json::from_str::<Value>(text) {
                    Ok(_) => "is not a list of tools with name, source, description and returns_image",
                    Err(_) => "is not JSON",
                };
                problems.push(wrong("AGENT_TOOLS_JSON", what));
            }
        }
    }
    if get("AGENT_API_VERSION").is_some() {
        // The model client reads this variable itself.
        applied.push("AGENT_API_VERSION");
    }
    if problems.is_empty() { Ok(applied) } else { Err(problems) }
}

fn wrong(name: &str, what: &str) -> Problem {
    Problem::error(format!("{name} {what}")).id(FAMILY.number(38)).fix("correct the variable, or unset it")
}
