//! Reads job directories of Harbor: finished, interrupted, crashed, or written by others. Nothing in them is trusted:
//! sizes are limited, links are not followed, names are only shown, and a key of the wrong type counts as absent.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use aec_base::file::{Links, ReadError, open_regular};
use aec_base::timestamp::Timestamp;
use serde_json::{Map, Value};

/// The file with the result of a job or a trial.
pub const RESULT: &str = "result.json";
const CONFIG: &str = "config.json";
const LOCK: &str = "lock.json";
/// Even a result with token lists of whole rollouts is smaller.
const RESULT_LIMIT: u64 = 64 * 1024 * 1024;
/// Most entries of a job directory that are read.
const MOST_TRIALS: usize = 200_000;

#[derive(Clone, Debug)]
pub struct Job {
    pub path: PathBuf,
    /// Harbor's id of the job.
    pub id: Option<String>,
    /// The version of Harbor.
    pub version: Option<String>,
    /// Trials that the job should have.
    pub planned: Option<u64>,
    pub is_finished: bool,
    /// Directories of trials, sorted.
    pub trials: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Trial {
    pub path: PathBuf,
    /// The result as it was written.
    pub raw: Vec<u8>,
    /// Harbor's id.
    pub id: Option<String>,
    /// Its name, which is that of its directory.
    pub name: String,
    pub task_name: Option<String>,
    pub task_path: Option<String>,
    /// Digest of the task's directory.
    pub checksum: Option<String>,
    /// Digest of the task's files of the contract.
    pub contract: Option<String>,
    /// Free text of the job's configuration.
    pub source: Option<String>,
    pub agent: AgentInfo,
    /// `docker`, or the class of a user's own environment.
    pub environment: String,
    pub job_id: Option<String>,
    pub work: Work,
    /// The verifier's rewards, by name.
    pub rewards: BTreeMap<String, f64>,
    /// The reward: the one named `reward`, else the only one. Absent if there is none; an error if it is not a number.
    pub reward: Option<Result<f64, String>>,
    pub exception: Option<Exception>,
    pub times: Times,
    pub has_steps: bool,
}

#[derive(Clone, Debug, Default)]
pub struct AgentInfo {
    pub name: Option<String>,
    pub version: Option<String>,
    pub model: Option<String>,
    /// Its class, if it is not one of Harbor's own.
    pub import_path: Option<String>,
    pub kwargs: Map<String, Value>,
}

/// The agent's report of its work.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Includes cached tokens.
    pub tokens_in: Option<u64>,
    /// Input tokens from caches.
    pub cached: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cost_usd: Option<f64>,
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    pub kind: String,
    pub message: String,
}

#[derive(Clone, Debug, Default)]
pub struct Times {
    pub started: Option<Timestamp>,
    pub finished: Option<Timestamp>,
    /// Seconds for preparing the environment and the agent.
    pub setup: Option<f64>,
    pub agent: Option<f64>,
    pub verifier: Option<f64>,
    /// Whether the agent began to work.
    pub agent_began: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("it has no {RESULT}: it did not finish")]
    Missing,
    #[error("its {RESULT} cannot be read: {0}")]
    Unreadable(String),
}

pub fn is_job(path: &Path) -> bool {
    let has = |name: &str| path.join(name).symlink_metadata().is_ok_and(|found| found.is_file());
    let job = read_object(&path.join(RESULT)).is_ok_and(|result| result.contains_key("n_total_trials"));
    job || has(CONFIG) && has(LOCK) && !has("results.jsonl")
}

impl Job {
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut trials = Vec::new();
        for entry in fs_err::read_dir(path)?.take(MOST_TRIALS) {
            let entry = entry?;
            // A link would lead out of the job.
            if !entry.file_type()?.is_dir() {
                continue;
            }
            let directory = entry.path();
            let known =
                [RESULT, CONFIG, LOCK].iter().any(|name| directory.join(name).symlink_metadata().is_ok());
            if known {
                trials.push(directory);
            }
        }
        trials.sort();
        let result = read_object(&path.join(RESULT)).unwrap_or_default();
        let lock = read_object(&path.join(LOCK)).unwrap_or_default();
        Ok(Self {
            path: path.to_path_buf(),
            id: text(&result, "id"),
            version: lock.get("harbor").and_then(|harbor| harbor.get("version")?.as_str().map(str::to_owned)),
            planned: result.get("n_total_trials").and_then(Value::as_u64),
            is_finished: result.get("finished_at").is_some_and(Value::is_string),
            trials,
        })
    }

    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Trial {
    pub fn read(path: &Path) -> Result<Self, TrialError> {
        let unreadable = |error: String| TrialError::Unreadable(error);
        let raw = match read_bytes(&path.join(RESULT)) {
            Ok(raw) => raw,
            Err(ReadError::Missing) => return Err(TrialError::Missing),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let value: Value = aec_base::json::from_slice(&raw).map_err(|error| unreadable(error.to_string()))?;
        let Value::Object(result) = value else { return Err(unreadable("it is not an object".to_owned())) };
        if !result.contains_key("trial_name") && !result.contains_key("task_name") {
            return Err(unreadable("it has neither a task nor a name".to_owned()));
        }
        let config = object(&result, "config");
        let task = object(&config, "task");
        let lock = read_object(&path.join(LOCK)).unwrap_or_default();
        let told = object(&object(&result, "verifier_result"), "rewards");
        Ok(Self {
            id: text(&result, "id"),
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            task_name: text(&result, "task_name"),
            task_path: text(&task, "path").or_else(|| text(&task, "name")),
            checksum: text(&result, "task_checksum"),
            contract: text(&object(&lock, "task"), "digest"),
            source: text(&task, "source").or_else(|| text(&result, "source")),
            agent: agent(&result, &config),
            environment: environment(&config),
            job_id: text(&config, "job_id"),
            work: work(&object(&result, "agent_result")),
            reward: reward(&told),
            rewards: numbers(told),
            exception: exception(&object(&result, "exception_info")),
            times: times(&result),
            has_steps: result.get("step_results").is_some_and(|steps| !steps.is_null()),
            path: path.to_path_buf(),
            raw,
        })
    }

    pub fn reward(&self) -> Option<f64> {
        self.reward.as_ref()?.as_ref().ok().copied()
    }

    /// The agent's `/workspace`, if Harbor copied it back.
    pub fn workspace(&self) -> Option<PathBuf> {
        let manifest = read_bytes(&self.path.join("artifacts/manifest.json")).ok();
        let manifest: Option<Vec<Value>> = manifest.and_then(|bytes| aec_base::json::from_slice(&bytes).ok());
        let place = match manifest {
            None => PathBuf::from("artifacts/workspace"),
            Some(entries) => {
                let is_it = |entry: &&Value| {
                    let text = |key: &str| entry.get(key).and_then(Value::as_str);
                    text("source").map(|source| source.trim_end_matches('/')) == Some("/workspace")
                        && matches!(text("status"), Some("ok" | "empty"))
                };
                PathBuf::from(entries.iter().find(is_it)?.get("destination")?.as_str()?)
            }
        };
        self.inside(&place)
    }

    /// A directory of the trial, if it is not a link.
    fn inside(&self, place: &Path) -> Option<PathBuf> {
        let mut path = self.path.clone();
        for part in place.components() {
            let Component::Normal(name) = part else { return None };
            path.push(name);
            if !path.symlink_metadata().ok()?.is_dir() {
                return None;
            }
        }
        (path != self.path).then_some(path)
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let (file, _) = open_regular(path, RESULT_LIMIT, Links::Refuse)?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, RESULT_LIMIT), &mut bytes)?;
    Ok(bytes)
}

fn read_object(path: &Path) -> Result<Map<String, Value>, String> {
    let bytes = read_bytes(path).map_err(|error| error.to_string())?;
    aec_base::json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn object(map: &Map<String, Value>, key: &str) -> Map<String, Value> {
    map.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn text(map: &Map<String, Value>, key: &str) -> Option<String> {
    const LONGEST: usize = 10_000;
    map.get(key)?.as_str().map(|text| text.chars().take(LONGEST).collect())
}

fn agent(result: &Map<String, Value>, config: &Map<String, Value>) -> AgentInfo {
    let info = object(result, "agent_info");
    let told = object(config, "agent");
    let model = object(&info, "model_info");
    let provider = text(&model, "provider");
    let model = text(&model, "name").map(|name| match provider {
        Some(provider) => format!("{provider}/{name}"),
        None => name,
    });
    AgentInfo {
        name: text(&info, "name").or_else(|| text(&told, "name")),
        version: text(&info, "version").filter(|version| version != "unknown"),
        model: text(&told, "model_name").or(model),
        import_path: text(&told, "import_path"),
        kwargs: object(&told, "kwargs"),
    }
}

fn environment(config: &Map<String, Value>) -> String {
    let environment = object(config, "environment");
    text(&environment, "type")
        .or_else(|| text(&environment, "import_path"))
        .unwrap_or_else(|| "docker".to_owned())
}

fn work(result: &Map<String, Value>) -> Work {
    let count = |key: &str| result.get(key).and_then(Value::as_u64);
    Work {
        tokens_in: count("n_input_tokens"),
        cached: count("n_cache_tokens"),
        tokens_out: count("n_output_tokens"),
        cost_usd: result
            .get("cost_usd")
            .and_then(Value::as_f64)
            .filter(|cost| cost.is_finite() && *cost >= 0.0),
        metadata: object(result, "metadata"),
    }
}

fn numbers(rewards: Map<String, Value>) -> BTreeMap<String, f64> {
    rewards.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).take(1000).collect()
}

/// Only a number is a reward; nothing else replaces it.
fn reward(rewards: &Map<String, Value>) -> Option<Result<f64, String>> {
    let only = || rewards.values().next().filter(|_| rewards.len() == 1);
    let told = rewards.get("reward").or_else(only)?;
    Some(told.as_f64().ok_or_else(|| "its reward is not a number".to_owned()))
}

fn exception(info: &Map<String, Value>) -> Option<Exception> {
    let kind = text(info, "exception_type")?;
    Some(Exception { kind, message: text(info, "exception_message").unwrap_or_default() })
}

fn moment(map: &Map<String, Value>, key: &str) -> Option<Timestamp> {
    // Records do not store microseconds.
    let text = text(map, key)?;
    let cut = match text.split_once('.') {
        Some((head, tail)) => {
            let digits: String = tail.chars().take_while(char::is_ascii_digit).take(3).collect();
            format!("{head}.{digits:0<3}Z")
        }
        None => format!("{}Z", text.trim_end_matches('Z').trim_end_matches("+00:00")),
    };
    Timestamp::try_from(cut).ok()
}

fn times(result: &Map<String, Value>) -> Times {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of one trial fit")]
    let seconds = |key: &str| {
        let phase = object(result, key);
        let span = moment(&phase, "finished_at")?.to_milliseconds()
            - moment(&phase, "started_at")?.to_milliseconds();
        (span >= 0).then_some(span as f64 / 1000.0)
    };
    let setup = [seconds("environment_setup"), seconds("agent_setup")];
    Times {
        started: moment(result, "started_at"),
        finished: moment(result, "finished_at"),
        setup: setup[0].map(|first| first + setup[1].unwrap_or(0.0)),
        agent: seconds("agent_execution"),
        verifier: seconds("verifier"),
        agent_began: object(result, "agent_execution").contains_key("started_at"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(text: &str) -> Result<Trial, TrialError> {
        let directory = tempfile::tempdir().unwrap();
        fs_err::write(directory.path().join(RESULT), text).unwrap();
        Trial::read(directory.path())
    }

    #[test]
    fn wrong_types_are_absent_and_broken_results_are_told() {
        let odd = trial(
            r#"{"trial_name": 5, "task_name": ["x"], "config": "x", "agent_info": null, "agent_result": [1],
                "verifier_result": {"rewards": {"a": "one", "b": true, "reward": 0.5}}, "exception_info": {"exception_type": 1},
                "started_at": "yesterday", "step_results": null}"#,
        )
        .unwrap();
        assert_eq!((odd.reward(), odd.exception, odd.task_name), (Some(0.5), None, None));
        assert_eq!(odd.environment, "docker");
        for broken in ["", "{", "[]", "null", "{\"a\": 1}", "{\"trial_name\": \"x\""] {
            assert!(matches!(trial(broken), Err(TrialError::Unreadable(_))), "{broken}");
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Trial::read(empty.path()), Err(TrialError::Missing)));
    }

    #[test]
    fn results_behind_links_and_of_any_size_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs_err::write(directory.path().join("real"), "{\"trial_name\": \"x\"}").unwrap();
        std::os::unix::fs::symlink("real", directory.path().join(RESULT)).unwrap();
        assert!(matches!(Trial::read(directory.path()), Err(TrialError::Unreadable(_))));
        fs_err::remove_file(directory.path().join(RESULT)).unwrap();
        let huge = std::fs::File::create(directory.path().join(RESULT)).unwrap();
        huge.set_len(RESULT_LIMIT + 1).unwrap();
        assert!(matches!(Trial::read(directory.path()), Err(TrialError::Unreadable(_))));
    }

    #[test]
    fn workspaces_lie_in_the_trial() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let at = |name: &str| path.join(name);
        fs_err::create_dir_all(at("artifacts/workspace")).unwrap();
        fs_err::create_dir_all(directory.path().join("outside")).unwrap();
        fs_err::write(at(RESULT), "{\"trial_name\": \"t\"}").unwrap();
        let found = || Trial::read(&path).unwrap().workspace();
        assert_eq!(found(), Some(at("artifacts/workspace")));
        let manifest = |destination: &str, status: &str| {
            let entry =
                serde_json::json!([{"source": "/workspace", "destination": destination, "status": status}]);
            fs_err::write(at("artifacts/manifest.json"), entry.to_string()).unwrap();
        };
        manifest("artifacts/workspace", "ok");
        assert_eq!(found(), Some(at("artifacts/workspace")));
        manifest("artifacts/workspace", "failed");
        assert_eq!(found(), None);
        for hostile in ["../outside", "/etc", "artifacts/../../outside", "", ".", "artifacts/link"] {
            std::os::unix::fs::symlink("../../outside", at("artifacts/link")).ok();
            manifest(hostile, "ok");
            assert_eq!(found(), None, "{hostile}");
        }
    }

    #[test]
    fn moments_lose_what_records_do_not_keep() {
        let of = |text: &str| {
            moment(Value::from_iter([("a", text)]).as_object().unwrap(), "a").map(|m| m.as_str().to_owned())
        };
        assert_eq!(of("2026-11-17T12:37:47.534627Z").as_deref(), Some("2026-11-17T12:37:47.534Z"));
        assert_eq!(of("2026-11-17T12:37:47").as_deref(), Some("2026-11-17T12:37:47Z"));
        assert_eq!(of("2026-11-17T12:37:47.5").as_deref(), Some("2026-11-17T12:37:47.500Z"));
        assert_eq!(of("nonsense"), None);
    }
}
