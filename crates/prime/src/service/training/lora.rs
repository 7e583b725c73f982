//! Makes the request of a shared `LoRA` run from its configuration. Keys that the service does not know are errors
//! here, as they are there.

use serde_json::{Map, Value, json};
use toml::Table;

use super::config::{Launch, to_json};
use crate::service::secrets::Secrets;

/// The type of a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Number,
    Flag,
    Text,
    List,
    Table,
}

use Kind::{Flag, List, Number, Text, Whole};

type Keys = &'static [(&'static str, Kind)];

const TOP: Keys = &[
    ("name", Text),
    ("max_steps", Whole),
    ("batch_size", Whole),
    ("rollouts_per_example", Whole),
    ("learning_rate", Number),
    ("lora_alpha", Whole),
    ("oversampling_factor", Number),
    ("max_async_level", Whole),
    ("max_inflight_rollouts", Whole),
    ("checkpoint_id", Text),
    ("cluster_name", Text),
    ("loss", Text),
    ("teacher", Kind::Table),
    ("run_config", Kind::Table),
    ("pre_batch_filters", List),
    ("post_batch_filters", List),
];

/// Tables and settings of the top level that need special treatment.
const SECTIONS: [&str; 12] = [
    "model",
    "env",
    "sampling",
    "eval",
    "val",
    "buffer",
    "wandb",
    "checkpoints",
    "adapters",
    "infrastructure",
    "env_file",
    "env_files",
];

const ENVIRONMENT: Keys = &[
    ("id", Text),
    ("name", Text),
    ("args", Kind::Table),
    ("version", Text),
    ("taskset", Kind::Table),
    ("harness", Kind::Table),
    ("pool", Kind::Table),
    ("timeout", Kind::Table),
    ("retries", Kind::Table),
    ("sampling", Kind::Table),
    ("ratio", Number),
    ("group_size", Whole),
    ("max_turns", Whole),
    ("max_input_tokens", Whole),
    ("max_output_tokens", Whole),
    ("max_total_tokens", Whole),
    ("multiplex", Whole),
    ("max_retries", Whole),
];

const EVAL_ENVIRONMENT: Keys = &[
    ("id", Text),
    ("name", Text),
    ("args", Kind::Table),
    ("num_examples", Whole),
    ("rollouts_per_example", Whole),
    ("version", Text),
];

const SAMPLING: Keys = &[
    ("max_tokens", Whole),
    ("temperature", Number),
    ("repetition_penalty", Number),
    ("min_tokens", Whole),
    ("seed", Whole),
    ("temp_scheduler", Kind::Table),
    ("extra_body", Kind::Table),
    ("enable_thinking", Flag),
    ("reasoning_effort", Text),
];

const EVAL: Keys = &[
    ("interval", Whole),
    ("num_examples", Whole),
    ("rollouts_per_example", Whole),
    ("eval_base_model", Flag),
    ("skip_first_step", Flag),
];

const VAL: Keys = &[("num_examples", Whole), ("rollouts_per_example", Whole), ("interval", Whole)];

const BUFFER: Keys = &[
    ("easy_threshold", Number),
    ("hard_threshold", Number),
    ("easy_fraction", Number),
    ("hard_fraction", Number),
    ("online_difficulty_filtering", Flag),
    ("env_ratios", List),
    ("skip_verification", Flag),
    ("seed", Whole),
];

const WANDB: Keys = &[("entity", Text), ("project", Text), ("name", Text)];
const CHECKPOINTS: Keys = &[("interval", Whole), ("keep_cloud", Whole)];
const ADAPTERS: Keys = &[("interval", Whole), ("keep_last", Whole)];
const INFRASTRUCTURE: Keys = &[("compute_size", Text)];

/// Prime's own defaults for steps, batch size and rollouts.
const DEFAULTS: [(&str, i64); 3] = [("max_steps", 100), ("batch_size", 128), ("rollouts_per_example", 8)];

pub(super) fn launch(table: &Table, secrets: &Secrets, team_id: Option<&str>) -> Result<Launch, String> {
    let model = match table.get("model") {
        Some(toml::Value::String(model)) if !model.trim().is_empty() => model,
        Some(_) => return Err("`model` must be the name of a model".to_owned()),
        None => return Err("`model` is missing".to_owned()),
    };
    let environments = environments(table)?;
    let mut body = json!({"model": {"name": model}, "environments": environments});
    for (key, default) in DEFAULTS {
        body[key] = json!(default);
    }
    let pairs = secrets.iter().map(|(key, value)| json!({"key": key, "value": value}));
    body["secrets"] = pairs.collect();
    if let Some(team) = team_id {
        body["team_id"] = json!(team);
    }
    let own = table.iter().filter(|(key, _)| !SECTIONS.contains(&key.as_str()));
    let own: Table = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    merge(&mut body, checked(&own, "", TOP)?);
    merge(&mut body, sampling(table)?);
    if let Some(eval) = evaluation(table)? {
        body["eval"] = eval;
    }
    for (name, keys) in
        [("val", VAL), ("buffer", BUFFER), ("checkpoints", CHECKPOINTS), ("adapters", ADAPTERS)]
    {
        let section = section(table, name, keys)?;
        if !section.is_empty() {
            body[name] = Value::Object(section);
        }
    }
    merge(&mut body, section(table, "infrastructure", INFRASTRUCTURE)?);
    let wandb = section(table, "wandb", WANDB)?;
    if !wandb.is_empty() {
        if secrets.get("WANDB_API_KEY").is_none() {
            return Err("[wandb] needs the secret WANDB_API_KEY: give --env-var WANDB_API_KEY".to_owned());
        }
        body["monitoring"] = json!({"wandb": wandb});
    }
    let ids = environments.iter().filter_map(|environment| environment.get("id")?.as_str());
    let environments = ids.filter(|id| id.contains('/')).map(str::to_owned).collect();
    Ok(Launch { path: &["rft", "runs"], body, environments })
}

fn merge(body: &mut Value, more: Map<String, Value>) {
    for (key, value) in more {
        body[key] = value;
    }
}

fn environments(table: &Table) -> Result<Vec<Value>, String> {
    let list = tables(table.get("env"), "[[env]]")?;
    if list.is_empty() {
        return Err("there is no [[env]]".to_owned());
    }
    list.into_iter().map(|entry| environment(entry, "env", ENVIRONMENT)).collect()
}

fn evaluation(table: &Table) -> Result<Option<Value>, String> {
    let Some(eval) = subtable(table, "eval")? else { return Ok(None) };
    let entries = tables(eval.get("env"), "[[eval.env]]")?;
    let mut settings = eval.clone();
    settings.remove("env");
    let mut body = checked(&settings, "eval.", EVAL)?;
    if entries.is_empty() {
        // Prime's own program silently drops the block.
        return Err("[eval] has no [[eval.env]], without which the service evaluates nothing; add one, or remove [eval]".to_owned());
    }
    let environments: Vec<Value> = entries
        .into_iter()
        .map(|entry| environment(entry, "eval.env", EVAL_ENVIRONMENT))
        .collect::<Result<_, _>>()?;
    body.insert("environments".to_owned(), Value::Array(environments));
    Ok(Some(Value::Object(body)))
}

fn environment(entry: &Table, place: &str, keys: Keys) -> Result<Value, String> {
    let mut body = checked(entry, &format!("{place}."), keys)?;
    let id = match body.get("id").and_then(Value::as_str) {
        Some(id) if !id.trim().is_empty() => id.to_owned(),
        _ => return Err(format!("[[{place}]] needs `id`")),
    };
    if let Some((name, version)) = id.rsplit_once('@') {
        body.insert("id".to_owned(), json!(name));
        if !version.is_empty() && !body.contains_key("version") {
            body.insert("version".to_owned(), json!(version));
        }
    }
    Ok(Value::Object(body))
}

fn sampling(table: &Table) -> Result<Map<String, Value>, String> {
    let sampling = section(table, "sampling", SAMPLING)?;
    if sampling.contains_key("enable_thinking") && sampling.contains_key("reasoning_effort") {
        return Err(
            "`sampling.enable_thinking` and `sampling.reasoning_effort` exclude each other".to_owned()
        );
    }
    Ok(sampling)
}

fn section(table: &Table, name: &str, keys: Keys) -> Result<Map<String, Value>, String> {
    match subtable(table, name)? {
        Some(section) => checked(section, &format!("{name}."), keys),
        None => Ok(Map::new()),
    }
}

fn subtable<'a>(table: &'a Table, name: &str) -> Result<Option<&'a Table>, String> {
    match table.get(name) {
        None => Ok(None),
        Some(toml::Value::Table(table)) => Ok(Some(table)),
        Some(_) => Err(format!("`{name}` must be a table")),
    }
}

fn tables<'a>(value: Option<&'a toml::Value>, place: &str) -> Result<Vec<&'a Table>, String> {
    let wrong = || format!("{place} must be a list of tables");
    match value {
        None => Ok(Vec::new()),
        Some(toml::Value::Array(list)) => {
            list.iter().map(|entry| entry.as_table().ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Settings with their types checked, as JSON. Empty tables and lists count as absent.
fn checked(table: &Table, prefix: &str, keys: Keys) -> Result<Map<String, Value>, String> {
    let mut body = Map::new();
    for (key, value) in table {
        let Some((_, kind)) = keys.iter().find(|(known, _)| known == key) else {
            let known = keys.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
            return Err(format!("`{prefix}{key}` is not a setting of a shared LoRA run; there are: {known}"));
        };
        if let Some(expected) = kind.mismatch(value) {
            return Err(format!("`{prefix}{key}` must be {expected}"));
        }
        let value = to_json(value).map_err(|reason| format!("`{prefix}{key}`: {reason}"))?;
        let absent = matches!(&value, Value::Object(map) if map.is_empty());
        if !absent {
            body.insert(key.clone(), value);
        }
    }
    Ok(body)
}

impl Kind {
    fn mismatch(self, value: &toml::Value) -> Option<&'static str> {
        let (fits, expected) = match self {
            Whole => (value.is_integer(), "a whole number"),
            Number => (value.is_integer() || value.is_float(), "a number"),
            Flag => (value.is_bool(), "true or false"),
            Text => (value.is_str(), "a string"),
            List => (value.is_array(), "a list"),
            Self::Table => (value.is_table(), "a table"),
        };
        (!fits).then_some(expected)
    }
}
