//! The description of an evaluation that goes into its metadata, and its sampling settings.

use aec_base::problem::Problem;
use aec_model::endpoint::Endpoint;
use aec_model::message::Sampling;
use serde_json::{Map, Value, json};

use crate::FAMILY;
use crate::config::{EvalSettings, Limit, ModelChoice};
use crate::evaluation::now;
use crate::native::NativeEnvironment;
use crate::results::metadata::{Description, VersionInfo};
use crate::results::till::Till;
use crate::worker::Loaded;

/// Facts about an environment, known once it is loaded.
#[derive(Clone, Debug)]
pub struct EnvironmentFacts {
    /// How it is run: `native` or `python`.
    pub lane: &'static str,
    pub num_examples: u64,
    /// A reward of at least this counts as a success.
    pub pass_threshold: f64,
    pub version_info: VersionInfo,
    /// The tools of all its examples.
    pub tools: Option<Value>,
    /// Its own sampling arguments; those of the evaluation take precedence.
    pub sampling_args: Map<String, Value>,
    pub notes: Vec<Problem>,
}

impl EnvironmentFacts {
    pub fn native(environment: &NativeEnvironment) -> Self {
        Self {
            lane: "native",
            num_examples: environment.examples.len() as u64,
            pass_threshold: environment.pass_threshold,
            version_info: VersionInfo {
                env_version: Some(environment.version.clone()),
                ..VersionInfo::default()
            },
            tools: environment.tool_definitions(),
            sampling_args: Map::new(),
            notes: environment.warnings(),
        }
    }

    pub fn python(loaded: &Loaded) -> Self {
        let versions = loaded.version_info.clone();
        Self {
            lane: "python",
            num_examples: loaded.example_ids.len() as u64,
            pass_threshold: loaded.pass_threshold,
            version_info: VersionInfo {
                vf_version: versions.vf_version,
                vf_commit: versions.vf_commit,
                env_version: versions.env_version,
                env_commit: versions.env_commit,
            },
            tools: (!loaded.tools.is_empty()).then(|| serde_json::to_value(&loaded.tools).ok()).flatten(),
            sampling_args: loaded.sampling_args.clone(),
            notes: loaded
                .warnings
                .iter()
                .map(|warning| Problem::note(warning.clone()).id(FAMILY.number(111)))
                .collect(),
        }
    }
}

pub fn describe(
    settings: &EvalSettings,
    environment: EnvironmentFacts,
    endpoints: &[Endpoint],
    name: &str,
) -> Description {
    let model = model_of(settings, endpoints);
    let urls: Vec<String> =
        endpoints.iter().map(|endpoint| endpoint.shown_url().trim_end_matches('/').to_owned()).collect();
    let mut sampling = Map::from_iter([("n".to_owned(), json!(1)), ("extra_body".to_owned(), json!({}))]);
    sampling.insert("max_tokens".to_owned(), Value::Null);
    sampling.extend(environment.sampling_args);
    sampling.extend(settings.sampling_args.clone());
    let num_examples = match settings.num_examples {
        Limit::AtMost(most) => json!(most),
        Limit::Unlimited => json!(-1),
    };
    let configuration = json!({
        "env_id": settings.env_id,
        "env_args": settings.env_args,
        "extra_env_kwargs": settings.extra_env_kwargs,
        "environment_version": environment.version_info.env_version,
        "verifiers_version": environment.version_info.vf_version,
        "lane": environment.lane,
        "model": model,
        "endpoint": name,
        "base_url": urls.join(","),
        "sampling_args": sampling,
        "num_examples": num_examples,
        "rollouts_per_example": settings.rollouts_per_example,
        "shuffle": settings.shuffle.is_some(),
        "shuffle_seed": settings.shuffle,
        "seed": settings.said.seed,
        "timeout": settings.timeout.map(|timeout| timeout.as_secs_f64()),
        "independent_scoring": settings.said.independent_scoring.is_on(),
        "state_columns": settings.state_columns,
        "headers": settings.headers.keys().collect::<Vec<_>>(),
    });
    Description {
        env_id: settings.env_id.clone(),
        env_args: settings.env_args.clone(),
        model,
        base_url: urls.join(","),
        num_examples: environment.num_examples,
        rollouts_per_example: settings.rollouts_per_example,
        sampling_args: sampling,
        pass_threshold: environment.pass_threshold,
        version_info: environment.version_info,
        state_columns: settings.state_columns.clone(),
        tools: environment.tools,
        name: settings.said.name.clone(),
        shuffle: settings.shuffle.is_some(),
        shuffle_seed: settings.shuffle,
        till: Till::default(),
        date: now(),
        configuration: configuration.as_object().cloned().unwrap_or_default(),
    }
}

/// The models behind the endpoints, because another model behind the same name gives other results. A model inside this
/// program has no endpoint, and its name is enough.
fn model_of(settings: &EvalSettings, endpoints: &[Endpoint]) -> String {
    let (ModelChoice::Model(name) | ModelChoice::Endpoint(name)) = &settings.model;
    let mut models: Vec<&str> = Vec::new();
    for endpoint in endpoints {
        if !models.contains(&endpoint.model.as_str()) {
            models.push(&endpoint.model);
        }
    }
    if models.is_empty() { name.clone() } else { models.join(",") }
}

/// Reads the sampling settings that the user wrote.
pub fn sampling(given: &Map<String, Value>) -> Result<Sampling, Problem> {
    let mut known = Map::new();
    let mut extra = Map::new();
    for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let (to, key, value) = match (key.as_str(), value) {
            ("n", value) if value == 1 => continue,
            ("n", _) => {
                let problem = Problem::error("a rollout is one answer: `n` can only be 1");
                return Err(problem.id(FAMILY.number(98)).fix("ask for more rollouts with -r"));
            }
            ("extra_body", Value::Object(body)) => {
                extra.extend(body.clone());
                continue;
            }
            ("max_tokens" | "max_completion_tokens", value) => (&mut known, "max_tokens", value.clone()),
            ("stop", Value::String(text)) => (&mut known, "stop", json!([text])),
            (key @ ("temperature" | "top_p" | "seed" | "reasoning_effort" | "stop"), value) => {
                (&mut known, key, value.clone())
            }
            (key, value) => (&mut extra, key, value.clone()),
        };
        to.insert(key.to_owned(), value);
    }
    known.insert("extra".to_owned(), Value::Object(extra));
    serde_json::from_value(Value::Object(known)).map_err(|error| {
        let problem = Problem::error(format!("the sampling arguments cannot be used: {error}"));
        problem.id(FAMILY.number(98)).fix("correct -S, -t or -T")
    })
}
