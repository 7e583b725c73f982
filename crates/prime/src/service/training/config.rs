//! Reads a training configuration file and determines its generation.
//!
//! Prime trained adapters on shared machines from files with `[[env]]`; now it runs prime-rl on dedicated machines from
//! prime-rl's own files. The two have no shape in common, so the content tells which one a file is.

use std::path::{Path, PathBuf};

use aec_base::document::toml_table;
use serde_json::{Map, Value, json};
use toml::Table;

use super::lora;
use crate::service::secrets::Secrets;

/// Longest configuration that is read.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// Keys of a prime-rl file that are for the launcher and not for prime-rl.
const LAUNCH_KEYS: [&str; 8] =
    ["env_file", "env_files", "image_tag", "gpu_type", "volume", "volume_size", "source_ref", "type"];

/// Secrets that a dedicated run accepts.
const DEDICATED_SECRETS: [&str; 2] = ["WANDB_API_KEY", "HF_TOKEN"];

#[derive(Debug, thiserror::Error)]
pub enum TrainConfigError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is longer than {LONGEST_FILE} bytes; it is not a training configuration", path.display())]
    TooLong { path: PathBuf },
    #[error("{}: {reason}", path.display())]
    NotToml { path: PathBuf, reason: String },
    #[error(
        "{} is not a training configuration: neither `model = \"…\"` with [[env]] (shared LoRA) nor [trainer], \
         [orchestrator] or [data] (prime-rl)",
        path.display()
    )]
    Unknown { path: PathBuf },
    #[error("{}: {reason}", path.display())]
    Setting { path: PathBuf, reason: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Adapters on shared machines; `POST /rft/runs`.
    SharedLora,
    /// prime-rl on dedicated machines; `POST /training/runs`.
    Dedicated,
}

#[derive(Clone, Debug)]
pub struct TrainConfig {
    pub generation: Generation,
    /// What was changed while reading, for the user to see.
    pub warnings: Vec<String>,
    path: PathBuf,
    table: Table,
}

/// The request that starts a run.
#[derive(Clone, PartialEq)]
pub(super) struct Launch {
    pub(super) path: &'static [&'static str],
    pub(super) body: Value,
    /// Hub environments as `owner/name`.
    pub(super) environments: Vec<String>,
}

impl TrainConfig {
    pub fn read(path: &Path) -> Result<Self, TrainConfigError> {
        let unreadable = |source| TrainConfigError::Unreadable { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(unreadable)?.len() > LONGEST_FILE {
            return Err(TrainConfigError::TooLong { path: path.to_owned() });
        }
        let text = std::fs::read(path).map_err(unreadable)?;
        let not_toml = |reason: String| TrainConfigError::NotToml { path: path.to_owned(), reason };
        let text = String::from_utf8(text).map_err(|_| not_toml("it is not UTF-8 text".to_owned()))?;
        Self::parse(&text, path)
    }

    /// Reads text; `path` names it in errors.
    pub fn parse(text: &str, path: &Path) -> Result<Self, TrainConfigError> {
        let not_toml = |error: toml::de::Error| TrainConfigError::NotToml {
            path: path.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        };
        let mut table: Table = toml_table(text).map_err(not_toml)?;
        let is_lora = table.get("model").is_some_and(toml::Value::is_str)
            || table.get("env").is_some_and(toml::Value::is_array);
        let is_prime_rl = ["trainer", "orchestrator", "data"].iter().any(|key| table.contains_key(*key));
        let generation = match (is_lora, is_prime_rl) {
            (true, _) => Generation::SharedLora,
            (false, true) => Generation::Dedicated,
            (false, false) => return Err(TrainConfigError::Unknown { path: path.to_owned() }),
        };
        let warnings = match generation {
            Generation::SharedLora => Vec::new(),
            Generation::Dedicated => replace_old_keys(&mut table),
        };
        Ok(Self { generation, warnings, path: path.to_owned(), table })
    }

    /// Files of secrets that the configuration names, relative to itself.
    pub fn secret_files(&self) -> Result<Vec<PathBuf>, TrainConfigError> {
        let directory = self.path.parent().unwrap_or_else(|| Path::new(""));
        let mut files = Vec::new();
        // `env_file` is the older name; `env_files` comes later and overrides it.
        for key in ["env_file", "env_files"] {
            match self.table.get(key) {
                None => {}
                Some(toml::Value::String(file)) => files.push(directory.join(file)),
                Some(toml::Value::Array(list)) if list.iter().all(toml::Value::is_str) => {
                    files
                        .extend(list.iter().filter_map(toml::Value::as_str).map(|file| directory.join(file)));
                }
                Some(_) => return Err(self.wrong(format!("`{key}` must be a list of strings"))),
            }
        }
        Ok(files)
    }

    pub(super) fn launch(
        &self,
        secrets: &Secrets,
        team_id: Option<&str>,
    ) -> Result<Launch, TrainConfigError> {
        match self.generation {
            Generation::SharedLora => {
                lora::launch(&self.table, secrets, team_id).map_err(|reason| self.wrong(reason))
            }
            Generation::Dedicated => self.dedicated(secrets, team_id),
        }
    }

    /// Sends the whole file to the service, which checks it against the version of prime-rl that will run it.
    fn dedicated(&self, secrets: &Secrets, team_id: Option<&str>) -> Result<Launch, TrainConfigError> {
        let unknown: Vec<&str> = secrets.names().filter(|name| !DEDICATED_SECRETS.contains(name)).collect();
        if !unknown.is_empty() {
            let known = DEDICATED_SECRETS.join(" and ");
            return Err(self.wrong(format!("dedicated runs take only {known}, not {}", unknown.join(", "))));
        }
        if self.table.contains_key("volume_size") {
            let reason =
                "`volume_size` would create a volume; create it with `prime volumes`, and give only `volume`";
            return Err(self.wrong(reason.to_owned()));
        }
        let mut config = Map::new();
        for (key, value) in &self.table {
            if !LAUNCH_KEYS.contains(&key.as_str()) {
                config.insert(
                    key.clone(),
                    to_json(value).map_err(|reason| self.wrong(format!("`{key}`: {reason}")))?,
                );
            }
        }
        let is_supervised = self.table.contains_key("data")
            && !self.table.contains_key("trainer")
            && !self.table.contains_key("orchestrator");
        let mut body = json!({"config": config});
        if is_supervised {
            body["mode"] = json!("sft");
        }
        let texts = [
            ("name", "name"),
            ("image_tag", "imageTag"),
            ("gpu_type", "gpuType"),
            ("volume", "volume"),
            ("source_ref", "sourceRef"),
        ];
        for (key, sent) in texts {
            match self.table.get(key) {
                None => {}
                Some(toml::Value::String(text)) => body[sent] = json!(text),
                Some(_) => return Err(self.wrong(format!("`{key}` must be a string"))),
            }
        }
        for (name, sent) in [("WANDB_API_KEY", "wandbApiKey"), ("HF_TOKEN", "hfToken")] {
            if let Some(value) = secrets.get(name) {
                body[sent] = json!(value);
            }
        }
        if let Some(team) = team_id {
            body["teamId"] = json!(team);
        }
        Ok(Launch { path: &["training", "runs"], body, environments: Vec::new() })
    }

    fn wrong(&self, reason: String) -> TrainConfigError {
        TrainConfigError::Setting { path: self.path.clone(), reason }
    }
}

/// Replaces settings that prime-rl no longer has, which the service would refuse.
fn replace_old_keys(table: &mut Table) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(toml::Value::Table(orchestrator)) = table.get_mut("orchestrator") else { return warnings };
    for key in ["trajectory_strategy", "buffer"] {
        if orchestrator.remove(key).is_some() {
            warnings.push(format!("`orchestrator.{key}` was removed from prime-rl and is left out"));
        }
    }
    if let Some(toml::Value::Table(eval)) = orchestrator.get_mut("eval")
        && let Some(toml::Value::Boolean(first)) = eval.remove("eval_base_model")
    {
        if !eval.contains_key("skip_first_step") {
            eval.insert("skip_first_step".to_owned(), toml::Value::Boolean(!first));
        }
        let renamed =
            "`orchestrator.eval.eval_base_model` is now `skip_first_step`, with the opposite meaning";
        warnings.push(renamed.to_owned());
    }
    warnings
}

/// TOML as JSON. Numbers that JSON does not have are refused; dates become text.
pub(super) fn to_json(value: &toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        toml::Value::Float(number) if number.is_finite() => json!(number),
        toml::Value::Float(number) => return Err(format!("{number} cannot be sent")),
        toml::Value::Boolean(flag) => json!(flag),
        toml::Value::Datetime(time) => json!(time.to_string()),
        toml::Value::Array(list) => Value::Array(list.iter().map(to_json).collect::<Result<_, _>>()?),
        toml::Value::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, value)| Ok((key.clone(), to_json(value)?)))
                .collect::<Result<_, String>>()?,
        ),
    })
}
