//! The few facts that aggregates need from a row.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aec_base::json::{Limits, repaired};
use aec_base::problem::Problem;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::results::number::countable;
use crate::results::problems;
use crate::results::row::RolloutRow;
use crate::results::timing::Seconds;
use crate::results::value::{AnyNumber, AnyText, Key, Numbers};

/// Longer chains of errors are cut here.
const LONGEST_CHAIN: usize = 300;

/// Why a rollout has no proper result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorFacts {
    /// Classes of the error and of its causes, joined by ` -> `; the error's text if its classes are unknown.
    pub chain: String,
    pub class: String,
}

/// Tokens of a rollout. Before 0.1.11 verifiers wrote only the first two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageFacts {
    pub input_tokens: f64,
    pub output_tokens: f64,
    /// Tokens of the conversation at its end that the model did not write.
    pub final_input_tokens: Option<f64>,
    /// Tokens of the conversation at its end that the model wrote.
    pub final_output_tokens: Option<f64>,
}

/// The facts that aggregates need from a row. Statistics can process all of its numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFacts {
    pub example_id: i64,
    /// Which rollout of its example it is; absent in rows of verifiers.
    pub rollout_number: Option<u32>,
    /// 1, or more if the rollout was run again.
    pub attempt: u32,
    /// Absent if it is missing, NaN or infinite.
    pub reward: Option<f64>,
    /// Metrics that are numbers.
    pub metrics: Vec<(Arc<str>, f64)>,
    pub error: Option<ErrorFacts>,
    /// Whether a limit cut the model off.
    pub is_truncated: bool,
    pub stop_condition: Option<Arc<str>>,
    pub usage: Option<UsageFacts>,
    pub seconds: Option<Seconds>,
    pub tools: Arc<[Box<str>]>,
}

/// A row that was read, and its text as JSON.
pub(crate) struct Read<'a> {
    pub(crate) facts: RowFacts,
    pub(crate) text: Cow<'a, str>,
}

impl RowFacts {
    pub fn of(row: &RolloutRow) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "no rollout has 2^53 tokens")]
        let usage = row.token_usage.map(|usage| UsageFacts {
            input_tokens: usage.input_tokens as f64,
            output_tokens: usage.output_tokens as f64,
            final_input_tokens: Some(usage.final_input_tokens as f64),
            final_output_tokens: Some(usage.final_output_tokens as f64),
        });
        let metric = |name: &Arc<str>, value: f64| Some((Arc::clone(name), countable(value)?));
        Self {
            example_id: row.example_id,
            rollout_number: Some(row.rollout_number),
            attempt: row.attempt.max(1),
            reward: countable(row.reward.get()),
            metrics: row.metrics.iter().filter_map(|(name, value)| metric(name, value.get())).collect(),
            error: row
                .error
                .as_ref()
                .map(|error| ErrorFacts { chain: cut(&error.classes), class: error.class.clone() }),
            is_truncated: row.is_truncated,
            stop_condition: row.stop_condition.clone(),
            usage,
            seconds: countable_seconds(row.timing.seconds()),
            tools: Arc::clone(row.tool_defs.names()),
        }
    }

    /// The facts of a line of `results.jsonl`, whichever program wrote it. The caller adds the place to the problem.
    pub fn parse(line: &[u8]) -> Result<Self, Problem> {
        read(line).map(|read| read.facts)
    }
}

/// Reads a row. Values that Python writes but JSON does not allow are corrected only if the row is not valid JSON.
pub(crate) fn read(line: &[u8]) -> Result<Read<'_>, Problem> {
    let text = std::str::from_utf8(line)
        .map_err(|error| malformed(&format!("byte {} is not UTF-8", error.valid_up_to() + 1)))?;
    let error = match aec_base::json::from_str_within::<Line<'_>>(text, Limits::TYPED) {
        Ok(line) => return Ok(Read { facts: line.facts(), text: Cow::Borrowed(text) }),
        Err(error) if error.is_data() => return Err(wrong(&error)),
        Err(error) => error,
    };
    let Cow::Owned(json) = repaired(text).text else { return Err(malformed(&error.to_string())) };
    let facts = match aec_base::json::from_str_within::<Line<'_>>(&json, Limits::TYPED) {
        Ok(line) => line.facts(),
        Err(error) if error.is_data() => return Err(wrong(&error)),
        Err(error) => return Err(malformed(&error.to_string())),
    };
    Ok(Read { facts, text: Cow::Owned(json) })
}

/// The id of the problem for a line that is not JSON, as opposed to one that is not a row.
pub(crate) const MALFORMED: u32 = 20;

fn malformed(reason: &str) -> Problem {
    problems::error(MALFORMED, format!("the line is not JSON: {reason}"))
        .fix("restore the line from a copy of the file, or remove it: its rollout is then run again")
}

fn wrong(error: &serde_json::Error) -> Problem {
    problems::error(21, format!("the line is JSON but not a rollout: {error}"))
        .fix("each line is an object with at least `example_id`; remove all other lines")
}

/// The fields that are read from a line. Fields that may have any shape are kept as raw JSON and examined later, so
/// that an unknown shape costs only that fact, not the row.
#[derive(Default)]
struct Line<'a> {
    example_id: i64,
    rollout_number: Option<u32>,
    attempt: Option<u32>,
    reward: AnyNumber,
    metrics: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    error_chain: AnyText<'a>,
    is_truncated: bool,
    stop_condition: AnyText<'a>,
    token_usage: Option<&'a RawValue>,
    timing: Option<&'a RawValue>,
    tool_defs: Option<&'a RawValue>,
    /// Numbers under other keys, which are metrics in rows of 0.1.9.
    others: Numbers<'a>,
}

impl<'de> Deserialize<'de> for Line<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Line<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a rollout as an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut line = Line::default();
                let mut example_id = None;
                while let Some(Key(key)) = access.next_key()? {
                    match &*key {
                        "example_id" => example_id = Some(access.next_value()?),
                        "rollout_number" => line.rollout_number = access.next_value()?,
                        "attempt" => line.attempt = access.next_value()?,
                        "reward" => line.reward = access.next_value()?,
                        "metrics" => line.metrics = Some(access.next_value()?),
                        "error" => line.error = Some(access.next_value()?),
                        "long_error_chain" => line.error_chain = access.next_value()?,
                        "is_truncated" => {
                            line.is_truncated = access.next_value::<Option<bool>>()?.unwrap_or_default();
                        }
                        "stop_condition" => line.stop_condition = access.next_value()?,
                        "token_usage" => line.token_usage = Some(access.next_value()?),
                        "timing" => line.timing = Some(access.next_value()?),
                        "tool_defs" | "oai_tools" => line.tool_defs = Some(access.next_value()?),
                        "prompt" | "completion" | "info" | "answer" | "trajectory" => {
                            access.next_value::<IgnoredAny>()?;
                        }
                        _ if line.metrics.is_some() => {
                            access.next_value::<IgnoredAny>()?;
                        }
                        _ => {
                            let value: AnyNumber = access.next_value()?;
                            line.others.set(key, value.0);
                        }
                    }
                }
                line.example_id = example_id.ok_or_else(|| A::Error::custom("`example_id` is missing"))?;
                Ok(line)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl Line<'_> {
    fn facts(&self) -> RowFacts {
        let inner = self.metrics.and_then(|raw| aec_base::json::from_str::<Numbers<'_>>(raw.get()).ok());
        let metrics = inner.as_ref().unwrap_or(&self.others);
        // In 0.1.9, durations are next to the metrics.
        let is_metric = |name: &str| !matches!(name, "generation_ms" | "scoring_ms" | "total_ms");
        RowFacts {
            example_id: self.example_id,
            rollout_number: self.rollout_number,
            attempt: self.attempt.unwrap_or(1).max(1),
            reward: self.reward.0.and_then(countable),
            metrics: (metrics.0.iter())
                .filter(|(name, _)| is_metric(name))
                .filter_map(|(name, value)| Some((Arc::from(&**name), countable(*value)?)))
                .collect(),
            error: self.error.and_then(|raw| error_facts(raw, self.error_chain.0.as_deref())),
            is_truncated: self.is_truncated,
            stop_condition: self.stop_condition.0.as_deref().map(Into::into),
            usage: self.token_usage.and_then(usage_facts),
            seconds: self.timing.and_then(seconds_of).or_else(|| old_seconds(&self.others)),
            tools: self.tool_defs.map(tool_names).unwrap_or_default().into(),
        }
    }
}

/// An error is an object, or its text in older rows.
fn error_facts(raw: &RawValue, chain: Option<&str>) -> Option<ErrorFacts> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object<'a> {
        #[serde(borrow)]
        error: AnyText<'a>,
        #[serde(borrow)]
        error_chain_str: AnyText<'a>,
    }
    let text = raw.get();
    if text == "null" || text == "\"\"" || text == "false" {
        return None;
    }
    if text.starts_with('{') {
        let object = aec_base::json::from_str::<Object<'_>>(text).unwrap_or_default();
        let class = object.error.0.as_deref().unwrap_or("unknown error");
        let chain = object.error_chain_str.0.as_deref().or(chain).unwrap_or(class);
        return Some(ErrorFacts { chain: cut(chain), class: cut(class) });
    }
    let said = aec_base::json::from_str::<AnyText<'_>>(text).ok().and_then(|text| text.0);
    let said = said.as_deref().unwrap_or(text);
    // `ValueError('no')`, as Python writes an exception.
    let class = said.split(['(', ':']).next().unwrap_or(said).trim();
    Some(ErrorFacts { chain: cut(chain.unwrap_or(said)), class: cut(class) })
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_CHAIN).collect()
}

fn usage_facts(raw: &RawValue) -> Option<UsageFacts> {
    let numbers: Numbers<'_> = aec_base::json::from_str(raw.get()).ok()?;
    let get = |key| numbers.get(key).and_then(countable);
    Some(UsageFacts {
        input_tokens: get("input_tokens")?,
        output_tokens: get("output_tokens")?,
        final_input_tokens: get("final_input_tokens"),
        final_output_tokens: get("final_output_tokens"),
    })
}

fn seconds_of(raw: &RawValue) -> Option<Seconds> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Part {
        duration: AnyNumber,
    }
    #[derive(Deserialize)]
    struct Parts {
        setup: Part,
        generation: Part,
        scoring: Part,
        model: Part,
        env: Part,
        total: AnyNumber,
        overhead: AnyNumber,
    }
    let get = |number: AnyNumber| number.0.unwrap_or_default();
    match aec_base::json::from_str::<Parts>(raw.get()) {
        Ok(parts) => countable_seconds(Seconds {
            total: get(parts.total),
            setup: get(parts.setup.duration),
            generation: get(parts.generation.duration),
            model: get(parts.model.duration),
            env: get(parts.env.duration),
            scoring: get(parts.scoring.duration),
            overhead: get(parts.overhead),
        }),
        Err(_) => old_seconds(&aec_base::json::from_str(raw.get()).ok()?),
    }
}

/// Before 0.1.14 there were three durations in milliseconds.
fn old_seconds(numbers: &Numbers<'_>) -> Option<Seconds> {
    let get = |key| numbers.get(key).map(|milliseconds| milliseconds / 1000.0);
    let (generation, scoring) = (get("generation_ms")?, get("scoring_ms").unwrap_or_default());
    let total = get("total_ms").unwrap_or(generation + scoring);
    countable_seconds(Seconds { total, generation, scoring, ..Seconds::default() })
}

fn countable_seconds(seconds: Seconds) -> Option<Seconds> {
    Some(Seconds {
        total: countable(seconds.total)?,
        setup: countable(seconds.setup)?,
        generation: countable(seconds.generation)?,
        model: countable(seconds.model)?,
        env: countable(seconds.env)?,
        scoring: countable(seconds.scoring)?,
        overhead: countable(seconds.overhead)?,
    })
}

/// Names of tools: `name` beside the description, or inside `function` as in requests.
pub(crate) fn tool_names(raw: &RawValue) -> Vec<Box<str>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Tool<'a> {
        #[serde(borrow)]
        name: AnyText<'a>,
        #[serde(borrow)]
        function: Option<Function<'a>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Function<'a> {
        #[serde(borrow)]
        name: AnyText<'a>,
    }
    if raw.get() == "[]" {
        return Vec::new();
    }
    let tools: Vec<Tool<'_>> = aec_base::json::from_str(raw.get()).unwrap_or_default();
    let name = |tool: Tool<'_>| tool.name.0.or_else(|| tool.function?.name.0).map(|name| Box::from(&*name));
    tools.into_iter().filter_map(name).collect()
}

/// A digest of a line's prompt that does not depend on how the JSON is formatted. Valid only within this process.
pub(crate) fn prompt_digest(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Prompt<'a> {
        #[serde(borrow)]
        prompt: &'a RawValue,
    }
    let text = std::str::from_utf8(line).ok()?;
    let of = |text: &str| {
        aec_base::json::from_str::<Prompt<'_>>(text)
            .ok()
            .and_then(|it| crate::results::value::digest(it.prompt.get()))
    };
    of(text).or_else(|| of(&repaired(text).text))
}
