//! One table of a file as a layer of options, and how layers become an evaluation.

use aec_base::document::Shared;
use aec_base::problem::Problem;
use serde_json::{Map, Value, json};

use crate::config::options::EvalOptions;
use crate::config::{Environment, FAMILY, check};

/// Sampling parameters that chat templates also take.
const TEMPLATE_KEYS: [&str; 2] = ["reasoning_effort", "enable_thinking"];

/// What one table says.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) options: EvalOptions,
    /// The tables `taskset` and `harness`, which go into the argument `config` when all layers are known.
    pub(super) sections: Map<String, Value>,
}

impl Layer {
    /// This layer laid over another.
    pub(super) fn over(self, base: Self) -> Self {
        let mut sections = base.sections;
        sections.extend(self.sections);
        Self { options: self.options.over(base.options), sections }
    }

    /// Roughly how many bytes its maps hold.
    pub(super) fn weight(&self) -> usize {
        let options = &self.options;
        let maps = [&options.env_args, &options.extra_env_kwargs, &options.sampling_args];
        let maps = maps.into_iter().flatten().chain([&self.sections]);
        let headers = options.headers.iter().chain(&options.headers_from_state).flatten();
        maps.map(|map| json!(map).to_string().len()).sum::<usize>()
            + headers.map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }

    /// The options of an evaluation. Without an `env_id` the taskset's id names the environment.
    pub(super) fn finished(self) -> Result<EvalOptions, Problem> {
        let mut options = self.options;
        if !self.sections.is_empty() {
            let arguments = options.env_args.get_or_insert_default();
            let Value::Object(config) = arguments.entry("config").or_insert_with(|| json!({})) else {
                let what =
                    "the argument `config` is no table, so `taskset` and `harness` have no place in it";
                return Err(check::conflict(what.to_owned(), "remove one of them"));
            };
            for (name, section) in self.sections {
                if config.insert(name.clone(), section).is_some() {
                    let what = format!("`{name}` and the argument `config.{name}` say the same thing");
                    return Err(check::conflict(what, &format!("keep `{name}`")));
                }
            }
        }
        if options.env_id.is_none() {
            let taskset = options.env_args.as_ref().and_then(|map| map.get("config")?.get("taskset"));
            let id = taskset.and_then(|taskset| taskset.get("id").or_else(|| taskset.get("taskset_id")));
            let Some(id) = id.and_then(Value::as_str) else {
                let problem = Problem::error("`env_id` is missing").id(FAMILY.id(Shared::MissingKey));
                return Err(problem.fix("name the environment, such as env_id = \"my-env\""));
            };
            Environment::parse(id)?;
            options.env_id = Some(id.to_owned());
        }
        Ok(options)
    }
}

/// The parameters of a `sampling` table. Those that chat templates take are sent to them as well.
pub(super) fn mirrored(key: &str, mut sampling: Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    let template: Vec<(&str, Value)> =
        TEMPLATE_KEYS.iter().filter_map(|key| Some((*key, sampling.get(*key)?.clone()))).collect();
    if template.is_empty() {
        return Ok(sampling);
    }
    let no_table = |name: &str| {
        Problem::error(format!("`{key}.{name}` must be a table"))
            .id(FAMILY.id(Shared::WrongType))
            .fix("write a table there")
    };
    let Value::Object(body) = sampling.entry("extra_body").or_insert_with(|| json!({})) else {
        return Err(no_table("extra_body"));
    };
    let Value::Object(arguments) = body.entry("chat_template_kwargs").or_insert_with(|| json!({})) else {
        return Err(no_table("extra_body.chat_template_kwargs"));
    };
    for (key, value) in template {
        arguments.insert(key.to_owned(), value);
    }
    Ok(sampling)
}

/// Sampling parameters laid over others; `extra_body` and its template arguments merge instead of being replaced.
pub(super) fn merged_sampling(
    upper: Map<String, Value>,
    mut lower: Map<String, Value>,
) -> Map<String, Value> {
    for (key, value) in upper {
        let merges = matches!(key.as_str(), "extra_body" | "chat_template_kwargs");
        match (lower.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) if merges => {
                *below = merged_sampling(above, std::mem::take(below));
            }
            (_, value) => {
                lower.insert(key, value);
            }
        }
    }
    lower
}
