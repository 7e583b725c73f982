//! The parameters of an agent: its harness applies each of them, or planning rejects it.

use std::collections::BTreeMap;

use aec_base::problem::Problem;
use aec_base::text;
use aec_model::message::{DEFAULT_MAX_TOKENS, Sampling};
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::experiment::{FAMILY, Harness};
use crate::harness::rlm::prompt::Surface;

pub const DEFAULT_MAX_TURNS: u32 = 10;
/// Seconds of one command by default.
pub const DEFAULT_COMMAND_TIMEOUT: u32 = 120;
/// Bytes of a tool's output that a model sees, half from the beginning and half from the end.
pub const DEFAULT_TOOL_OUTPUT: u32 = 50_000;
/// The same for a cell of `rlm`, whose texts belong in variables.
pub const DEFAULT_CELL_OUTPUT: u32 = 8_000;

/// An agent's parameters, with defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// How answers are sampled.
    pub sampling: Sampling,
    /// Most model calls.
    pub max_turns: u32,
    /// The value of `max_turns`, if the experiment sets it.
    pub given_turns: Option<u32>,
    pub max_tool_calls: Option<u32>,
    /// Most tokens that the model may read, over all turns.
    pub max_input_tokens: Option<u64>,
    /// Most tokens, read and written, over all turns.
    pub max_total_tokens: Option<u64>,
    /// Seconds of one command.
    pub command_timeout: u32,
    /// Seconds of the whole attempt, if fewer than the task allows.
    pub timeout_sec: Option<u32>,
    /// Bytes of a tool's output that the model sees.
    pub tool_output: u32,
    /// Whether to take a snapshot of the workspace after each step.
    pub snapshots: bool,
    /// `rlm`, `lambda_rlm`: most tokens over all calls, if fewer than the task allows.
    pub token_budget: Option<u64>,
    /// `rlm`: tokens of the conversation, if fewer than the task allows.
    pub context_budget_tokens: Option<u64>,
    /// `rlm`, `lambda_rlm`: most dollars, if fewer than the task allows.
    pub max_cost_usd: Option<f64>,
    /// `rlm`: how the model passes code.
    pub surface: Surface,
    /// `scripted`: the file of actions, below the project root.
    pub script: Option<String>,
    /// `sim`: how often it is right, from 0 to 1.
    pub skill: f64,
    /// `sim`: seed of its random choices, in addition to the trial.
    pub seed: i64,
    /// `sim`: texts that change its skill when the system prompt has them, each with its gain, from -1 to 1. Sorted,
    /// because their order has no meaning.
    pub lessons: BTreeMap<String, f64>,
    /// `command`: the program and its arguments.
    pub command: Vec<String>,
    /// `command`: files and directories of the project that the program sees under `/agent`.
    pub files: Vec<String>,
    /// `command`: further variables.
    pub env: Vec<(String, String)>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            sampling: Sampling { max_tokens: Some(DEFAULT_MAX_TOKENS), ..Sampling::default() },
            max_turns: DEFAULT_MAX_TURNS,
            given_turns: None,
            max_tool_calls: None,
            max_input_tokens: None,
            max_total_tokens: None,
            command_timeout: DEFAULT_COMMAND_TIMEOUT,
            timeout_sec: None,
            tool_output: DEFAULT_TOOL_OUTPUT,
            snapshots: false,
            token_budget: None,
            context_budget_tokens: None,
            max_cost_usd: None,
            surface: Surface::Tool,
            script: None,
            skill: 1.0,
            seed: 0,
            lessons: BTreeMap::new(),
            command: Vec::new(),
            files: Vec::new(),
            env: Vec::new(),
        }
    }
}

const SAMPLING: [&str; 8] =
    ["max_tokens", "temperature", "top_p", "stop", "seed", "reasoning_effort", "thinking_tokens", "extra"];
const LOOP: [&str; 7] = [
    "max_turns",
    "max_tool_calls",
    "max_input_tokens",
    "max_total_tokens",
    "command_timeout",
    "tool_output",
    "snapshots",
];

const RLM: [&str; 7] = [
    "max_turns",
    "token_budget",
    "context_budget_tokens",
    "max_cost_usd",
    "surface",
    "command_timeout",
    "tool_output",
];

pub fn known(harness: Harness) -> Vec<&'static str> {
    let own: &[&str] = match harness {
        Harness::ToolLoop => &LOOP,
        Harness::Rlm => &RLM,
        Harness::LambdaRlm => &["max_turns", "token_budget", "max_cost_usd"],
        Harness::Direct | Harness::Oracle | Harness::Nop => &[],
        Harness::Scripted => &["script", "command_timeout", "tool_output", "snapshots"],
        Harness::Sim => &["skill", "seed", "lessons"],
        Harness::Command => &["command", "files", "env", "max_tokens", "max_turns", "command_timeout"],
    };
    let sampling: &[&str] = if harness.needs_model() { &SAMPLING } else { &[] };
    sampling.iter().chain(own).copied().chain(["timeout_sec"]).collect()
}

impl Parameters {
    /// Reads the parameters of an agent; reports everything wrong, with the agent's name.
    pub fn read(
        agent: &str,
        harness: Harness,
        given: &IndexMap<String, Value>,
    ) -> Result<Self, Vec<Problem>> {
        let known = known(harness);
        let mut parameters = Self::default();
        if harness == Harness::Rlm {
            parameters.tool_output = DEFAULT_CELL_OUTPUT;
        }
        let mut problems = Vec::new();
        for (key, value) in given {
            if !known.contains(&key.as_str()) {
                let what =
                    format!("the harness `{}` has no parameter `{}`", harness.name(), text::printable(key));
                let problem = Problem::error(what)
                    .id(FAMILY.number(20))
                    .why(format!("its parameters are {}", known.join(", ")))
                    .about(agent);
                problems.push(match text::nearest(key, &known) {
                    Some(near) => problem.fix(format!("did you mean `{near}`?")),
                    None => problem.fix("remove it"),
                });
            } else if let Err(expected) = parameters.set(harness, key, value) {
                let what = format!("the parameter `{key}` of agent `{agent}` is not {expected}");
                let problem = Problem::error(what).id(FAMILY.number(21)).about(agent);
                problems.push(problem.fix(format!("write {expected}")));
            }
        }
        if harness == Harness::Scripted && parameters.script.is_none() {
            problems.push(missing(agent, "script", "a file of actions below the project root"));
        }
        if harness == Harness::Command && parameters.command.is_empty() && problems.is_empty() {
            problems.push(missing(agent, "command", "the program to run and its arguments"));
        }
        if problems.is_empty() { Ok(parameters) } else { Err(problems) }
    }

    fn set(&mut self, harness: Harness, key: &str, value: &Value) -> Result<(), &'static str> {
        match key {
            "max_tokens" => self.sampling.max_tokens = Some(count(value)?),
            "temperature" => self.sampling.temperature = Some(number(value, 0.0, 10.0)?),
            "top_p" => self.sampling.top_p = Some(number(value, 0.0, 1.0)?),
            "stop" => self.sampling.stop = words(value)?,
            "seed" if harness != Harness::Sim => {
                self.sampling.seed = Some(value.as_i64().ok_or("a whole number")?);
            }
            "seed" => self.seed = value.as_i64().ok_or("a whole number")?,
            "reasoning_effort" => {
                self.sampling.reasoning_effort =
                    Some(value.as_str().ok_or("a word such as `high`")?.to_owned());
            }
            "thinking_tokens" => self.sampling.thinking_tokens = Some(count(value)?),
            "extra" => {
                self.sampling.extra = value.as_object().cloned().ok_or("a map of further request keys")?;
            }
            "max_turns" => {
                self.max_turns = count(value)?;
                self.given_turns = Some(self.max_turns);
            }
            "token_budget" => self.token_budget = Some(count(value)?.into()),
            "context_budget_tokens" => self.context_budget_tokens = Some(count(value)?.into()),
            "max_cost_usd" => self.max_cost_usd = Some(number(value, 0.0, f64::MAX)?),
            "surface" => {
                self.surface = match value.as_str() {
                    Some("tool") => Surface::Tool,
                    Some("text") => Surface::Text,
                    _ => return Err("`tool` or `text`"),
                };
            }
            "max_tool_calls" => self.max_tool_calls = Some(count(value)?),
            "max_input_tokens" => self.max_input_tokens = Some(count(value)?.into()),
            "max_total_tokens" => self.max_total_tokens = Some(count(value)?.into()),
            "command_timeout" => self.command_timeout = count(value)?,
            "timeout_sec" => self.timeout_sec = Some(count(value)?),
            "tool_output" => self.tool_output = count(value)?,
            "snapshots" => self.snapshots = value.as_bool().ok_or("true or false")?,
            "script" => self.script = Some(inside(value.as_str().ok_or(INSIDE)?)?),
            "skill" => self.skill = number(value, 0.0, 1.0)?,
            "lessons" => self.lessons = lessons(value)?,
            "command" => self.command = command(value)?,
            "files" => {
                self.files = words(value)?.iter().map(|file| inside(file)).collect::<Result<_, _>>()?;
            }
            "env" => self.env = variables(value)?,
            // `known` and this list name the same keys; a test compares them.
            _ => return Err("a parameter of this harness"),
        }
        Ok(())
    }

    /// All parameters of a harness, including defaults, in the form of records.
    pub fn effective(&self, harness: Harness) -> IndexMap<String, Value> {
        let sampling = serde_json::to_value(&self.sampling).unwrap_or_default();
        let sampling = sampling.as_object().cloned().unwrap_or_default();
        let value = |key: &str| -> Option<Value> {
            Some(match key {
                "max_turns" if matches!(harness, Harness::Rlm | Harness::LambdaRlm) => {
                    self.given_turns?.into()
                }
                "max_turns" => self.max_turns.into(),
                "token_budget" => self.token_budget?.into(),
                "context_budget_tokens" => self.context_budget_tokens?.into(),
                "max_cost_usd" => self.max_cost_usd?.into(),
                "surface" => self.surface.name().into(),
                "max_tool_calls" => self.max_tool_calls?.into(),
                "max_input_tokens" => self.max_input_tokens?.into(),
                "max_total_tokens" => self.max_total_tokens?.into(),
                "command_timeout" => self.command_timeout.into(),
                "timeout_sec" => self.timeout_sec?.into(),
                "tool_output" => self.tool_output.into(),
                "snapshots" => self.snapshots.into(),
                "script" => self.script.clone()?.into(),
                "skill" => self.skill.into(),
                "seed" if harness == Harness::Sim => self.seed.into(),
                // Absent lessons are not written, so that older plans keep their digests.
                "lessons" if self.lessons.is_empty() => return None,
                "lessons" => {
                    let pairs = self.lessons.iter().map(|(text, gain)| (text.clone(), Value::from(*gain)));
                    Value::Object(pairs.collect())
                }
                "command" => self.command.clone().into(),
                "files" => self.files.clone().into(),
                "env" => {
                    let pairs =
                        self.env.iter().map(|(name, value)| (name.clone(), Value::from(value.clone())));
                    Value::Object(pairs.collect::<Map<_, _>>())
                }
                other => sampling.get(other)?.clone(),
            })
        };
        known(harness).into_iter().filter_map(|key| Some((key.to_owned(), value(key)?))).collect()
    }
}

const INSIDE: &str = "a path below the project root";

fn missing(agent: &str, key: &str, what: &str) -> Problem {
    Problem::error(format!("the agent `{agent}` needs the parameter `{key}`: {what}"))
        .id(FAMILY.number(22))
        .about(agent)
        .fix(format!("add `{key}` to its parameters"))
}

fn count(value: &Value) -> Result<u32, &'static str> {
    value
        .as_u64()
        .and_then(|value| u32::try_from(value).ok())
        .filter(|value| *value > 0)
        .ok_or("a whole number above 0")
}

fn number(value: &Value, from: f64, to: f64) -> Result<f64, &'static str> {
    let expected = if to > 1.0 { "a number of at least 0" } else { "a number from 0 to 1" };
    value.as_f64().filter(|value| (from..=to).contains(value)).ok_or(expected)
}

fn lessons(value: &Value) -> Result<BTreeMap<String, f64>, &'static str> {
    let expected = "a map from texts that are not empty to numbers from -1 to 1";
    // Every prompt contains the empty text.
    let pair = |(text, gain): (&String, &Value)| {
        let gain = gain.as_f64().filter(|gain| (-1.0..=1.0).contains(gain))?;
        (!text.trim().is_empty()).then(|| (text.clone(), gain))
    };
    value.as_object().and_then(|map| map.iter().map(pair).collect()).ok_or(expected)
}

fn words(value: &Value) -> Result<Vec<String>, &'static str> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let list = value.as_array().and_then(|items| items.iter().map(word).collect());
    list.or_else(|| word(value).map(|one| vec![one])).ok_or("a text or a list of texts")
}

/// A text is a line for the shell, a list is a program and its arguments.
fn command(value: &Value) -> Result<Vec<String>, &'static str> {
    let expected = "a shell command, or a list of a program and its arguments";
    match value {
        Value::String(line) if !line.trim().is_empty() => Ok(vec!["bash".into(), "-c".into(), line.clone()]),
        Value::Array(_) => words(value).ok().filter(|words| !words.is_empty()).ok_or(expected),
        _ => Err(expected),
    }
}

fn inside(path: &str) -> Result<String, &'static str> {
    let parts = std::path::Path::new(path).components();
    let normal =
        !path.is_empty() && parts.into_iter().all(|part| matches!(part, std::path::Component::Normal(_)));
    if normal { Ok(path.to_owned()) } else { Err(INSIDE) }
}

/// The experiment cannot set these variables, which this program sets for agents.
fn is_reserved(name: &str) -> bool {
    const GATEWAY: [&str; 4] =
        ["OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"];
    name.starts_with("AGENT_") || GATEWAY.contains(&name)
}

fn variables(value: &Value) -> Result<Vec<(String, String)>, &'static str> {
    let expected =
        "a map of variables and their texts, none of them AGENT_… or an address or key of the gateway";
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let object = value.as_object().ok_or(expected)?;
    object
        .iter()
        .map(|(name, value)| {
            let text = value.as_str().filter(|text| !text.contains('\0'))?;
            (is_name(name) && !is_reserved(name)).then(|| (name.clone(), text.to_owned()))
        })
        .collect::<Option<_>>()
        .ok_or(expected)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(harness: Harness, given: &Value) -> Result<Parameters, Vec<Problem>> {
        let given =
            given.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Parameters::read("a", harness, &given)
    }

    #[test]
    fn every_known_parameter_can_be_set_and_is_recorded() {
        for harness in Harness::ALL {
            for key in known(harness) {
                let samples = [
                    json!(1),
                    json!("x"),
                    json!(true),
                    json!({ "k": "v" }),
                    json!({ "k": 0.5 }),
                    json!(["x"]),
                    json!("text"),
                ];
                let set = samples.iter().find(|value| Parameters::default().set(harness, key, value).is_ok());
                let mut parameters = Parameters::default();
                parameters.set(harness, key, set.unwrap_or_else(|| panic!("{key}"))).unwrap();
                assert!(parameters.effective(harness).contains_key(key), "{harness:?} {key}");
            }
        }
    }

    #[test]
    fn lessons_are_part_of_the_plan_and_their_order_is_not() {
        let effective = |given: Value| {
            let effective = read(Harness::Sim, &given).unwrap().effective(Harness::Sim);
            serde_json::to_string(&effective).unwrap()
        };
        // Byte for byte as before lessons existed: digests of plans depend on it.
        let without = r#"{"skill":0.5,"seed":0}"#;
        assert_eq!(effective(json!({ "skill": 0.5 })), without);
        assert_eq!(effective(json!({ "skill": 0.5, "lessons": {} })), without);
        let with =
            r#"{"skill":0.5,"seed":0,"lessons":{"Check  units":1.0,"round early":-0.1},"timeout_sec":9}"#;
        let lessons = json!({ "round early": -0.1, "Check  units": 1 });
        assert_eq!(effective(json!({ "lessons": lessons, "timeout_sec": 9, "skill": 0.5 })), with);
        assert_eq!(effective(serde_json::from_str(with).unwrap()), with, "a plan is read as it was written");
    }

    #[test]
    fn lessons_that_make_no_sense_are_rejected() {
        for lessons in [
            json!(["check the units"]),
            json!("check the units"),
            json!(0.3),
            json!(null),
            json!({ "": 0.3 }),
            json!({ " \n": 0.3 }),
            json!({ "a": 1.01 }),
            json!({ "a": -1.01 }),
            json!({ "a": "0.3" }),
            json!({ "a": true }),
            // JSON turns NaN into null.
            json!({ "a": f64::NAN }),
            json!({ "a": 0.3, "b": f64::INFINITY }),
        ] {
            let problems = read(Harness::Sim, &json!({ "lessons": lessons })).unwrap_err();
            assert_eq!((problems.len(), problems[0].id.as_deref()), (1, Some("E021")), "{lessons}");
            assert_eq!(
                problems[0].what,
                "the parameter `lessons` of agent `a` is not a map from texts that are not empty to numbers from -1 to 1"
            );
        }
        let elsewhere = read(Harness::Oracle, &json!({ "lessons": { "a": 0.1 } })).unwrap_err();
        assert_eq!(elsewhere[0].id.as_deref(), Some("E020"));
    }

    #[test]
    fn defaults_are_those_of_the_document() {
        let parameters = read(Harness::ToolLoop, &json!({})).unwrap();
        assert_eq!(parameters.sampling.max_tokens, Some(16_384));
        assert_eq!((parameters.max_turns, parameters.command_timeout), (10, 120));
    }

    #[test]
    fn what_a_harness_does_not_know_is_rejected() {
        let what = |harness, given: Value| read(harness, &given).unwrap_err()[0].clone();
        let problem = what(Harness::ToolLoop, json!({ "max_turn": 3 }));
        assert!(problem.fix.unwrap().contains("max_turns"));
        assert!(what(Harness::Direct, json!({ "max_turns": 3 })).what.contains("no parameter"));
        for (harness, given) in [
            (Harness::ToolLoop, json!({ "max_turns": 0 })),
            (Harness::ToolLoop, json!({ "max_turns": -1 })),
            (Harness::ToolLoop, json!({ "max_turns": "3" })),
            (Harness::ToolLoop, json!({ "max_turns": true })),
            (Harness::ToolLoop, json!({ "max_tokens": 1e30 })),
            (Harness::Sim, json!({ "skill": 1.5 })),
            (Harness::Scripted, json!({ "script": "../x" })),
            (Harness::Scripted, json!({ "script": "/etc/passwd" })),
            (Harness::Command, json!({ "command": [] })),
            (Harness::Command, json!({ "command": "" })),
            (Harness::Command, json!({ "command": "x", "env": ["a"] })),
            (Harness::Command, json!({ "command": "x", "env": { "AGENT_MODEL": "b" } })),
            (Harness::Command, json!({ "command": "x", "env": { "OPENAI_API_KEY": "b" } })),
            (Harness::Command, json!({ "command": "x", "env": { "A=B": "b" } })),
            (Harness::Command, json!({ "command": "x", "env": { "A": 1 } })),
        ] {
            assert_eq!(what(harness, given.clone()).id.as_deref(), Some("E021"), "{given}");
        }
        assert_eq!(what(Harness::Scripted, json!({})).id.as_deref(), Some("E022"));
        assert_eq!(what(Harness::Command, json!({})).id.as_deref(), Some("E022"));
        assert_eq!(
            read(Harness::Command, &json!({ "command": "run me" })).unwrap().command,
            ["bash", "-c", "run me"]
        );
    }
}
