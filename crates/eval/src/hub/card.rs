//! The page of a dataset: what was evaluated, how it went, and where the rows are.

use aec_base::decimal::rounded;
use serde_json::{Map, Value};

use super::name::Repository;

pub(super) const ROWS_PATH: &str = "data/results.jsonl";

/// Most rows of a table; the metadata has all metrics, even if there are hundreds.
const MOST_FIGURES: usize = 60;

/// The part of an evaluation's metadata that the page shows.
#[derive(Clone, Debug)]
pub struct EvaluationFacts {
    pub env_id: String,
    pub model: String,
    /// -1 means all.
    pub examples: i64,
    pub rollouts_per_example: i64,
    /// Names and values of aggregates, in order.
    pub figures: Vec<(String, f64)>,
    pub env_version: Option<String>,
}

impl EvaluationFacts {
    /// Reads the metadata of an evaluation. Only the keys that identify it are required; the rest may be of any
    /// version.
    pub fn of_metadata(text: &str) -> Result<Self, String> {
        let value: Value = aec_base::json::from_str(text)
            .map_err(|error| format!("not valid JSON (line {}, column {})", error.line(), error.column()))?;
        let Value::Object(metadata) = value else { return Err("expected a JSON object".to_owned()) };
        let name = |key: &str| match metadata.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            Some(_) => Err(format!("`{key}` must be a text that is not empty")),
            None => Err(format!("`{key}` is missing")),
        };
        let number = |key: &str| match metadata.get(key) {
            Some(value) => value.as_i64().ok_or_else(|| format!("`{key}` must be a whole number")),
            None => Err(format!("`{key}` is missing")),
        };
        let env_version = metadata.get("version_info").and_then(|versions| versions.get("env_version"));
        Ok(Self {
            env_id: name("env_id")?,
            model: name("model")?,
            examples: number("num_examples")?,
            rollouts_per_example: number("rollouts_per_example")?,
            figures: figures(&metadata),
            env_version: env_version.and_then(Value::as_str).map(ToOwned::to_owned),
        })
    }
}

fn figures(metadata: &Map<String, Value>) -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    let mut add = |name: String, value: Option<&Value>| {
        if let Some(value) = value.and_then(Value::as_f64) {
            figures.push((name, value));
        }
    };
    add("reward".to_owned(), metadata.get("avg_reward"));
    let table = |key: &str| metadata.get(key).and_then(Value::as_object).into_iter().flatten();
    for (name, value) in table("avg_metrics") {
        add(name.clone(), Some(value));
    }
    for (k, value) in table("pass_at_k") {
        add(format!("pass@{k}"), Some(value));
    }
    for (k, value) in table("pass_all_k") {
        add(format!("pass^{k}"), Some(value));
    }
    add("errors per rollout".to_owned(), metadata.get("avg_error"));
    add(
        "input tokens per rollout".to_owned(),
        metadata.get("usage").and_then(|usage| usage.get("input_tokens")),
    );
    add(
        "output tokens per rollout".to_owned(),
        metadata.get("usage").and_then(|usage| usage.get("output_tokens")),
    );
    figures
}

/// The page as Markdown with a YAML head.
pub fn dataset_card(facts: &EvaluationFacts, repository: &Repository, rows: u64) -> String {
    let title = format!("{} with {}", facts.env_id, facts.model);
    let mut card = String::from("---\n");
    card += &format!("pretty_name: {}\n", yaml(&title));
    card += "tags:\n- aec-bench\n- evaluation\n- rollouts\n- verifiers\n";
    card += &format!(
        "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {ROWS_PATH}\n"
    );
    card += "evaluation:\n";
    card += &format!("  env_id: {}\n  model: {}\n", yaml(&facts.env_id), yaml(&facts.model));
    card += &format!("  num_examples: {}\n", facts.examples);
    card += &format!("  rollouts_per_example: {}\n", facts.rollouts_per_example);
    card += &format!("  rollouts: {rows}\n");
    let shown = facts.figures.iter().take(MOST_FIGURES);
    if !facts.figures.is_empty() {
        card += "  figures:\n";
        for (name, value) in shown.clone() {
            card += &format!("  - name: {}\n    value: {}\n", yaml(name), figure(*value));
        }
    }
    card += "---\n\n";
    card += &format!("# {}\n\n", markdown(&title));
    card += &format!(
        "Rollouts of an evaluation made with aec-bench. Each line of `{ROWS_PATH}` is one rollout; `metadata.json` \
         holds the settings and the aggregates.\n\n"
    );
    card += "| | |\n|---|---|\n";
    let environment = match &facts.env_version {
        Some(version) => format!("{} {version}", facts.env_id),
        None => facts.env_id.clone(),
    };
    card += &format!("| environment | {} |\n", markdown(&environment));
    card += &format!("| model | {} |\n", markdown(&facts.model));
    let examples = if facts.examples < 0 { "all".to_owned() } else { facts.examples.to_string() };
    card += &format!("| examples | {examples} |\n");
    card += &format!("| rollouts per example | {} |\n", facts.rollouts_per_example);
    card += &format!("| rollouts | {rows} |\n");
    if !facts.figures.is_empty() {
        card += "\n## Figures\n\n| figure | value |\n|---|---:|\n";
        for (name, value) in shown {
            card += &format!("| {} | {} |\n", markdown(name), figure(*value));
        }
        if facts.figures.len() > MOST_FIGURES {
            card += &format!("\n{} more are in `metadata.json`.\n", facts.figures.len() - MOST_FIGURES);
        }
    }
    card += "\n## Use\n\n```python\nfrom datasets import load_dataset\n\n";
    card += &format!("rollouts = load_dataset(\"{repository}\", split=\"train\")\n```\n");
    card
}

/// A number with at most four decimals. Very large and very small ones get an exponent, written with a point and a sign
/// so that every YAML reader takes it for a number.
fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 0.001) {
        let text = format!("{value:.4e}");
        return match text.split_once('e') {
            Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
            _ => text,
        };
    }
    let text = rounded(value, 4);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A text as a YAML string in double quotes. Line breaks and invisible characters are escaped.
fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            ' ' => quoted.push(' '),
            c if c.is_alphanumeric() || c.is_ascii_graphic() => quoted.push(c),
            c if u32::from(c) > 0xffff => quoted += &format!("\\U{:08x}", u32::from(c)),
            c => quoted += &format!("\\u{:04x}", u32::from(c)),
        }
    }
    quoted.push('"');
    quoted
}

/// A text escaped for Markdown, also inside a table.
fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~' | '$' => safe.extend(['\\', c]),
            c if c.is_control() || c.is_whitespace() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
