//! Converts the agents of a plan to agents of Harbor, or reports why that is impossible.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aec_base::problem::Problem;
use aec_base::text;
use aec_judge::settle::order::AnswerOrder;
use aec_model::endpoint::{Credential, Format};
use aec_model::routing::{Routes, Target};
use aec_run::experiment::Harness;
use aec_run::parameters::Parameters;
use aec_run::plan::{Plan, PlannedAgent};
use aec_task::task::Task;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::program::Environment;
use crate::{FAMILY, runtime};

/// Harnesses that have a counterpart.
const WORKING: [&str; 3] = ["oracle", "nop", "tool_loop"];
/// Parameters that reach the agent, and the variables that carry them.
const CARRIED: [(&str, &str); 3] = [
    ("max_tokens", "AGENT_MAX_TOKENS"),
    ("max_turns", "AGENT_MAX_TURNS"),
    ("command_timeout", "AGENT_COMMAND_TIMEOUT"),
];
/// Harbor itself enforces the time limit.
const TIMEOUT: &str = "timeout_sec";
/// Where the program is in environments.
const PLACE: &str = "/opt/aec-bench";

/// An agent in a job.
#[derive(Clone, Debug, PartialEq)]
pub struct HarborAgent {
    /// Its entry in the job's configuration.
    pub entry: Map<String, Value>,
    pub harness: Harness,
    /// The model that it shares with others, for limits on concurrent trials.
    pub model: Option<String>,
}

/// The small program beside this one ([`aec_sandbox::agent_program`]), to be copied into environments.
#[derive(Clone, Debug)]
pub struct Carried {
    pub program: PathBuf,
    /// The shared objects that it was linked with.
    pub objects: Vec<PathBuf>,
    pub version: String,
}

impl Carried {
    /// The program, with the shared objects in the memory of this process, which was linked with the same ones: an image
    /// may have others, or none.
    pub fn find(version: &str) -> std::io::Result<Self> {
        let maps = fs_err::read_to_string("/proc/self/maps")?;
        Ok(Self {
            program: aec_sandbox::agent_program()?,
            objects: mapped(&maps),
            version: version.to_owned(),
        })
    }

    fn files(&self) -> BTreeMap<String, String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let objects =
            self.objects.iter().map(|path| (format!("lib/{}", name(path)), path.display().to_string()));
        std::iter::once(("aec-bench".to_owned(), self.program.display().to_string())).chain(objects).collect()
    }

    fn command(&self) -> Vec<String> {
        let names = self.objects.iter().filter_map(|path| path.file_name()?.to_str());
        let program = format!("{PLACE}/aec-bench");
        match names.into_iter().find(|name| name.starts_with("ld-")) {
            Some(loader) => {
                vec![
                    format!("{PLACE}/lib/{loader}"),
                    "--library-path".to_owned(),
                    format!("{PLACE}/lib"),
                    program,
                ]
            }
            None => vec![program],
        }
    }
}

/// The shared objects of a list of mappings.
fn mapped(maps: &str) -> Vec<PathBuf> {
    let is_object = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.")
    };
    let paths: std::collections::BTreeSet<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(is_object)
        .map(PathBuf::from)
        .collect();
    paths.into_iter().collect()
}

/// The agents of a plan, or all problems that prevent them from working.
pub fn prepare(
    plan: &Plan,
    tasks: &[Task],
    environment: &Environment,
    routes: &Routes,
    carried: &Carried,
) -> Result<Vec<HarborAgent>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut agents = Vec::new();
    for agent in &plan.agents {
        match entry(agent, plan.conditions.answer_order, environment, routes, carried) {
            Ok(entry) => {
                agents.push(HarborAgent { entry, harness: agent.harness, model: agent.model.clone() });
            }
            Err(found) => problems.extend(found),
        }
    }
    let closed: Vec<&str> =
        tasks.iter().filter(|task| !task.environment.allow_internet).map(|task| task.id.as_str()).collect();
    let asking: Vec<&str> = plan
        .agents
        .iter()
        .filter(|agent| agent.harness == Harness::ToolLoop)
        .map(|agent| agent.name.as_str())
        .collect();
    if !closed.is_empty() && !asking.is_empty() {
        let what = format!(
            "{} cannot reach a model in {}",
            text::one_of(&asking),
            text::count(closed.len(), "task")
        );
        let shown: Vec<&str> = closed.iter().take(5).copied().collect();
        let why = format!(
            "under Harbor the loop works inside the environment, and these tasks have no network: {}",
            shown.join(", ")
        );
        let fix = "use --backend local or docker, where the loop stays outside, or leave these tasks out";
        problems.push(Problem::error(what).id(FAMILY.number(24)).why(why).fix(fix));
    }
    if problems.is_empty() { Ok(agents) } else { Err(problems) }
}

type Entry = Result<Map<String, Value>, Vec<Problem>>;

fn entry(
    agent: &PlannedAgent,
    order: AnswerOrder,
    environment: &Environment,
    routes: &Routes,
    carried: &Carried,
) -> Entry {
    let mut problems = unknown_parameters(agent);
    let mut entry = Map::new();
    let mut kwargs = Map::from_iter([("aec_agent".to_owned(), Value::from(agent.name.as_str()))]);
    match agent.harness {
        Harness::Oracle | Harness::Nop => drop(entry.insert("name".to_owned(), agent.harness.name().into())),
        Harness::ToolLoop => {
            entry.insert("import_path".to_owned(), runtime::AGENT.into());
            match connection(agent, environment, routes) {
                Ok((mut settings, env)) => {
                    settings.insert("AGENT_ANSWER_ORDER".to_owned(), order.name().into());
                    kwargs.extend(loop_arguments(agent, settings, carried));
                    entry.insert("env".to_owned(), Value::Object(env));
                }
                Err(problem) => problems.push(*problem),
            }
        }
        other => {
            let what =
                format!("agent `{}`: the harness `{}` does not work under Harbor", agent.name, other.name());
            let fix = format!("use {}, or another backend", text::one_of(&WORKING));
            problems.push(Problem::error(what).id(FAMILY.number(22)).about(agent.name.as_str()).fix(fix));
        }
    }
    if let Some(seconds) = agent.parameters.get(TIMEOUT).and_then(Value::as_u64) {
        // The smaller of the two limits holds, as everywhere.
        entry.insert("max_timeout_sec".to_owned(), seconds.into());
    }
    entry.insert("kwargs".to_owned(), Value::Object(kwargs));
    if problems.is_empty() { Ok(entry) } else { Err(problems) }
}

fn loop_arguments(
    agent: &PlannedAgent,
    settings: Map<String, Value>,
    carried: &Carried,
) -> Map<String, Value> {
    let mut arguments = Map::from_iter([
        ("version".to_owned(), Value::from(carried.version.as_str())),
        ("files".to_owned(), json!(carried.files())),
        ("command".to_owned(), json!(carried.command())),
        ("settings".to_owned(), Value::Object(settings)),
    ]);
    if let Some(prompt) = &agent.system_prompt {
        arguments.insert("system_prompt".to_owned(), prompt.as_str().into());
    }
    arguments
}

/// Parameters with other than default values that cannot be passed to an environment.
fn unknown_parameters(agent: &PlannedAgent) -> Vec<Problem> {
    if !WORKING.contains(&agent.harness.name()) {
        return Vec::new();
    }
    let defaults = Parameters::read(agent.name.as_str(), agent.harness, &IndexMap::new())
        .map(|parameters| parameters.effective(agent.harness))
        .unwrap_or_default();
    let carried = |key: &str| key == TIMEOUT || CARRIED.iter().any(|(name, _)| *name == key);
    let lost: Vec<&str> = agent
        .parameters
        .iter()
        .filter(|(key, value)| !carried(key) && defaults.get(*key) != Some(*value))
        .map(|(key, _)| key.as_str())
        .collect();
    if lost.is_empty() {
        return Vec::new();
    }
    let what = format!("agent `{}`: Harbor has no way to pass on {}", agent.name, lost.join(", "));
    let problem = Problem::error(what).id(FAMILY.number(25)).about(agent.name.as_str());
    vec![problem.fix("leave them out, or use another backend")]
}

type Connection = Result<(Map<String, Value>, Map<String, Value>), Box<Problem>>;

/// The connection of the loop to its model: settings, and variables by reference.
fn connection(agent: &PlannedAgent, environment: &Environment, routes: &Routes) -> Connection {
    let model = agent.model.as_deref().unwrap_or_default();
    let refuse = |what: String, fix: &str| {
        let problem = Problem::error(format!("agent `{}`: {what}", agent.name)).id(FAMILY.number(24));
        Box::new(problem.about(agent.name.as_str()).fix(fix))
    };
    let target =
        routes.resolve(model, agent.client.as_ref()).map_err(|error| refuse(error.what, &error.fix))?;
    let endpoints = match target {
        Target::Endpoints(endpoints) => endpoints,
        Target::Offline(_) => {
            let what = format!("the offline model `{}` lives in this process", text::printable(model));
            return Err(refuse(what, "use --backend local, or a model that answers at an address"));
        }
    };
    let [endpoint] = endpoints.as_slice() else {
        let what =
            format!("`{}` has several replicas, of which an environment knows one", text::printable(model));
        return Err(refuse(what, "name one endpoint, or use another backend"));
    };
    // A user's own environment may well be on this machine.
    if endpoint.is_loopback() && matches!(environment, Environment::Type(_)) {
        let what = format!("`{}` answers on this machine only", text::printable(model));
        return Err(refuse(what, "use a model that environments can reach, or --backend local or docker"));
    }
    let (address, key) = match endpoint.format {
        Format::OpenAiChat => ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        Format::AnthropicMessages => ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        _ => {
            let what = format!(
                "environments speak to models by the formats of OpenAI and Anthropic, not {}",
                endpoint.format.name()
            );
            return Err(refuse(what, "use another endpoint, or another backend"));
        }
    };
    if !endpoint.headers.is_empty() || endpoint.path.is_some() {
        let what =
            "its endpoint has its own headers or path, which cannot be passed to environments".to_owned();
        return Err(refuse(what, "use an endpoint without them, or another backend"));
    }
    let mut env = Map::from_iter([(address.to_owned(), Value::from(endpoint.base_url.as_str()))]);
    match &endpoint.credential {
        Credential::None => {}
        Credential::Key { variable, .. } => {
            // Harbor stores the reference and resolves it only for the environment.
            env.insert(key.to_owned(), format!("${{{variable}}}").into());
        }
        Credential::Missing { variables } => {
            let what = format!("no key for `{}`", text::printable(model));
            return Err(refuse(what, &format!("set {}", variables.join(" or "))));
        }
        Credential::Aws { .. } => {
            return Err(refuse(
                "signed requests cannot be made in environments".to_owned(),
                "use another endpoint",
            ));
        }
    }
    let mut settings = Map::from_iter([("AGENT_MODEL".to_owned(), Value::from(endpoint.model.as_str()))]);
    for (parameter, variable) in CARRIED {
        if let Some(value) = agent.parameters.get(parameter) {
            settings.insert(variable.to_owned(), value.to_string().into());
        }
    }
    Ok((settings, env))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_started_by_the_loader_that_it_was_linked_with() {
        let carried = |objects: &[&str]| Carried {
            program: "/x/aec-bench".into(),
            objects: objects.iter().map(PathBuf::from).collect(),
            version: "1".to_owned(),
        };
        assert_eq!(carried(&[]).command(), ["/opt/aec-bench/aec-bench"]);
        let linked = carried(&["/lib/ld-linux-x86-64.so.2", "/lib/libc.so.6"]);
        assert_eq!(linked.command()[0], "/opt/aec-bench/lib/ld-linux-x86-64.so.2");
        assert_eq!(linked.files()["lib/libc.so.6"], "/lib/libc.so.6");
    }

    #[test]
    fn objects_are_those_of_the_process() {
        let maps = "1-2 r-xp 0 fe:00 1  /usr/lib/libc.so.6\n1-2 r-xp 0 fe:00 1  /opt/aec-bench\n3-4 rw-p 0 0:0 0 [heap]\n";
        assert_eq!(mapped(maps), [PathBuf::from("/usr/lib/libc.so.6")]);
    }
}
