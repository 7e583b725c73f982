//! Prepares the agents of a plan: reads parameters and files, finds models.

use std::path::Path;
use std::sync::Arc;

use aec_base::digest::Digest;
use aec_base::problem::Problem;
use aec_model::client::Client;
use aec_model::routing::AZURE_API_VERSION;

use crate::experiment::FAMILY;
use crate::harness::PreparedAgent;
use crate::parameters::Parameters;
use crate::plan::{Plan, PlannedAgent};
use crate::planning::read_agent_files;

/// Prepares the agents of a plan. Every problem is reported.
pub fn prepare(plan: &Plan, root: &Path, client: &Client) -> Result<Vec<Arc<PreparedAgent>>, Vec<Problem>> {
    let mut agents = Vec::with_capacity(plan.agents.len());
    let mut problems = Vec::new();
    for planned in &plan.agents {
        match prepare_one(planned, root, client) {
            Ok(agent) => agents.push(Arc::new(agent)),
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(agents) } else { Err(problems) }
}

fn prepare_one(planned: &PlannedAgent, root: &Path, client: &Client) -> Result<PreparedAgent, Vec<Problem>> {
    let name = planned.name.as_str();
    let parameters = Parameters::read(name, planned.harness, &planned.parameters)?;
    let model = match &planned.model {
        None => None,
        Some(model) => Some(client.model(model, planned.client.as_ref()).map_err(|error| {
            vec![Problem::error(error.what).id(FAMILY.number(37)).about(name).fix(error.fix)]
        })?),
    };
    let files = read_agent_files(root, name, &parameters).map_err(|problem| vec![*problem])?;
    let same = files.len() == planned.files.len()
        && files.iter().zip(&planned.files).all(|(found, planned)| {
            found.path == planned.path && Digest::of(&found.content) == planned.digest
        });
    if !same {
        let problem = Problem::error(format!("files of agent `{name}` changed while the run was prepared"));
        return Err(vec![problem.id(FAMILY.number(33)).about(name).fix("run it again")]);
    }
    Ok(PreparedAgent {
        name: name.to_owned(),
        harness: planned.harness,
        model,
        parameters,
        system_prompt: planned.system_prompt.clone(),
        api_version: client.routes().env.get("AGENT_API_VERSION").unwrap_or(AZURE_API_VERSION).to_owned(),
        files,
    })
}
