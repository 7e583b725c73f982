//! Layered settings: flag, then experiment, then project file, then user file, then built-in default.
//!
//! One table names every setting, its key in each file and its default; resolution, `config view`, the
//! reference page and the error messages all read that table.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// Display name of the project.
    ProjectName,
    Tasks,
    /// The project's own templates.
    Templates,
    /// Directory of seed notes that may become tasks.
    Seeds,
    /// Trial records.
    Ledger,
    /// Reviews, annotations and evolution artefacts.
    Feedback,
    /// Dataset manifests.
    Datasets,
    /// Raw trial outputs.
    Jobs,
    /// Evolution workspaces.
    Workspaces,
    /// Generated environment packages.
    Prime,
    /// Where trials run.
    Backend,
    /// Images that are built at once.
    DockerBuilds,
    /// Containers that run at once.
    DockerContainers,
    /// What Harbor runs trials in.
    HarborEnvironment,
    /// What Modal charges for a core of a sandbox.
    ModalCpuRate,
    /// What Modal charges for memory of a sandbox.
    ModalMemoryRate,
    /// Addresses at which models answer.
    Endpoints,
    /// The project's own prices.
    Prices,
    /// Model calls kept by `--cache`.
    ModelCache,
    /// What the project spends on models, by day.
    Spend,
    /// Most dollars that one trial may cost.
    TrialDollars,
    /// Most tokens that one trial may take.
    TrialTokens,
    /// Most dollars that one experiment may cost.
    ExperimentDollars,
    /// Most tokens that one experiment may take.
    ExperimentTokens,
    /// Most dollars that a day may cost.
    DayDollars,
    /// Most tokens that a day may take.
    DayTokens,
}

/// A row of the table of settings.
#[derive(Clone, Copy, Debug)]
pub struct SettingSpec {
    pub setting: Setting,
    /// Its name in all places: the dotted key in `aec-bench.toml`.
    pub key: &'static str,
    /// Key in the user file, if the user file can set it.
    pub user_key: Option<&'static str>,
    /// Key in an experiment file, if an experiment can set it.
    pub experiment_key: Option<&'static str>,
    /// Command-line flag, if there is one.
    pub flag: Option<&'static str>,
    /// Built-in default; an empty one means the name of the project directory.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// Every setting, in display order.
pub const SETTINGS: [SettingSpec; 26] = [
    spec(Setting::ProjectName, "project.name", "", "display name of the project"),
    spec(Setting::Tasks, "paths.tasks", "tasks", "task catalogue").user("tasks_root").flag("--tasks-root"),
    spec(Setting::Templates, "paths.templates", "templates", "the project's own templates"),
    spec(Setting::Seeds, "paths.seeds", "seeds", "seed notes that may become tasks"),
    spec(Setting::Ledger, "paths.ledger", "artefacts/ledger", "trial records")
        .user("ledger_root")
        .flag("--ledger-root"),
    spec(
        Setting::Feedback,
        "paths.feedback",
        "artefacts/feedback",
        "reviews, annotations, evolution artefacts",
    )
    .user("feedback_root"),
    spec(Setting::Datasets, "paths.datasets", "artefacts/datasets", "dataset manifests")
        .user("datasets_root"),
    spec(Setting::Jobs, "paths.jobs", "jobs", "raw trial outputs").user("jobs_root"),
    spec(Setting::Workspaces, "paths.workspaces", "workspaces", "evolution workspaces"),
    spec(Setting::Prime, "paths.prime", "prime-rl", "generated environment packages and their results"),
    spec(Setting::Endpoints, "paths.endpoints", "configs/endpoints.toml", "addresses at which models answer")
        .flag("--endpoints"),
    spec(Setting::Prices, "paths.prices", "configs/prices.toml", "the project's own prices of models"),
    spec(Setting::ModelCache, "paths.model_cache", "artefacts/cache/models", "model calls kept by `--cache`"),
    spec(Setting::Spend, "paths.spend", "artefacts/spend", "what models cost, by day"),
    spec(Setting::Backend, "compute.backend", "local", "where trials run")
        .flag("--backend")
        .experiment("compute.backend"),
    spec(Setting::DockerBuilds, "compute.docker.builds", "2", "images that are built at once"),
    spec(Setting::DockerContainers, "compute.docker.containers", "64", "containers that run at once"),
    spec(Setting::HarborEnvironment, "compute.harbor.environment", "docker", "what Harbor runs trials in")
        .flag("--harbor-environment")
        .experiment("compute.harbor.environment"),
    spec(
        Setting::ModalCpuRate,
        "compute.modal.cpu_core_hour_usd",
        UNKNOWN,
        "dollars per hour for a sandbox's core, if Modal does not report it",
    ),
    spec(
        Setting::ModalMemoryRate,
        "compute.modal.memory_gib_hour_usd",
        UNKNOWN,
        "dollars per hour for a GiB of a sandbox's memory, likewise",
    ),
    spec(Setting::TrialDollars, "budget.trial_usd", NO_LIMIT, "most dollars that one trial may cost"),
    spec(Setting::TrialTokens, "budget.trial_tokens", NO_LIMIT, "most tokens that one trial may take"),
    spec(Setting::ExperimentDollars, "budget.experiment_usd", NO_LIMIT, "most dollars that one run may cost")
        .flag("--max-cost"),
    spec(
        Setting::ExperimentTokens,
        "budget.experiment_tokens",
        NO_LIMIT,
        "most tokens that one run may take",
    )
    .flag("--max-total-tokens"),
    spec(Setting::DayDollars, "budget.day_usd", NO_LIMIT, "most dollars that a day (UTC) may cost"),
    spec(Setting::DayTokens, "budget.day_tokens", NO_LIMIT, "most tokens that a day (UTC) may take"),
];

/// The value of a limit that is not set.
pub const NO_LIMIT: &str = "none";
/// The value of a rate that is not set.
pub const UNKNOWN: &str = "unknown";

const fn spec(setting: Setting, key: &'static str, default: &'static str, help: &'static str) -> SettingSpec {
    SettingSpec { setting, key, user_key: None, experiment_key: None, flag: None, default, help }
}

impl SettingSpec {
    const fn user(mut self, key: &'static str) -> Self {
        self.user_key = Some(key);
        self
    }

    const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    const fn experiment(mut self, key: &'static str) -> Self {
        self.experiment_key = Some(key);
        self
    }
}

impl Setting {
    /// Every setting that is a path.
    pub fn paths() -> impl Iterator<Item = Self> {
        SETTINGS.iter().filter(|row| row.key.starts_with("paths.")).map(|row| row.setting)
    }

    pub fn spec(self) -> &'static SettingSpec {
        let row = SETTINGS.iter().find(|row| row.setting == self);
        row.unwrap_or(&SETTINGS[0])
    }

    /// Finds a setting by its dotted key or by its key in the user file; `-` counts as `_`.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        SETTINGS.iter().find(|row| row.key == name || row.user_key == Some(&name)).map(|row| row.setting)
    }
}

/// Where trials can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Linux namespaces on this machine.
    Local,
    /// Containers through the Docker API (Docker or Podman).
    Docker,
    /// A Harbor job.
    Harbor,
    /// Modal sandboxes.
    Modal,
}

impl Backend {
    const ALL: [Self; 4] = [Self::Local, Self::Docker, Self::Harbor, Self::Modal];

    /// The names of all backends.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The name as written in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Harbor => "harbor",
            Self::Modal => "modal",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }
}

/// A path in a settings file: relative to the project root, or absolute. Never empty, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("minLength" = 1))]
pub struct SettingPath(String);

impl SettingPath {
    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SettingPath {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.trim().is_empty() {
            return Err("is empty; a path is needed");
        }
        if text.chars().any(char::is_control) {
            return Err("contains a control character");
        }
        Ok(Self(text))
    }
}

impl From<SettingPath> for String {
    fn from(path: SettingPath) -> Self {
        path.0
    }
}

/// An amount of dollars in a settings file: finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 0))]
pub struct Dollars(f64);

impl Dollars {
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Dollars {
    type Error = &'static str;

    fn try_from(amount: f64) -> Result<Self, Self::Error> {
        // A larger amount is a typing error, and sums of it could overflow in micro-dollars.
        if (0.0..=1e9).contains(&amount) {
            Ok(Self(amount))
        } else {
            Err("is not an amount between 0 and 10^9 dollars")
        }
    }
}

impl From<Dollars> for f64 {
    fn from(amount: Dollars) -> Self {
        amount.0
    }
}

/// The layer that decided a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "rung", rename_all = "lowercase")]
pub enum Origin {
    /// A command-line flag.
    Flag {
        flag: &'static str,
    },
    Experiment(Place),
    Project(Place),
    User(Place),
    Default,
}

/// A value that is not resolved yet, with its layer.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub setting: Setting,
    /// The value as written.
    pub value: String,
    /// Where it was written.
    pub origin: Origin,
}

#[derive(Clone, Debug)]
pub struct Resolved {
    pub spec: &'static SettingSpec,
    /// The value as written.
    pub value: String,
    /// The layer that set it.
    pub origin: Origin,
}

/// Every setting with the layer that decided it.
#[derive(Clone, Debug)]
pub struct Settings {
    root: PathBuf,
    resolved: Vec<Resolved>,
}

impl Settings {
    /// Resolves every setting; `candidates` must be sorted by precedence, highest first.
    pub fn resolve(root: &Path, candidates: &[Candidate]) -> Self {
        let resolved = SETTINGS
            .iter()
            .map(|spec| match candidates.iter().find(|candidate| candidate.setting == spec.setting) {
                Some(found) => Resolved { spec, value: found.value.clone(), origin: found.origin.clone() },
                None => Resolved { spec, value: default_value(spec, root), origin: Origin::Default },
            })
            .collect();
        Self { root: root.to_path_buf(), resolved }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Resolved> {
        self.resolved.iter()
    }

    pub fn get(&self, setting: Setting) -> &Resolved {
        let found = self.resolved.iter().find(|resolved| resolved.spec.setting == setting);
        found.unwrap_or(&self.resolved[0])
    }

    /// A path setting, as an absolute path.
    pub fn path(&self, setting: Setting) -> PathBuf {
        self.root.join(&self.get(setting).value)
    }
}

impl Settings {
    /// An amount of dollars, if there is one.
    pub fn dollars(&self, setting: Setting) -> Option<f64> {
        self.get(setting).value.parse().ok()
    }

    /// A count; at least one.
    pub fn count(&self, setting: Setting) -> usize {
        self.get(setting).value.parse().unwrap_or(1).max(1)
    }

    /// A limit in tokens, if there is one.
    pub fn tokens(&self, setting: Setting) -> Option<u64> {
        self.get(setting).value.parse().ok()
    }
}

fn default_value(spec: &SettingSpec, root: &Path) -> String {
    if spec.setting == Setting::ProjectName {
        return root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    }
    spec.default.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        for row in &SETTINGS {
            assert_eq!(row.setting.spec().key, row.key);
            assert_eq!(Setting::by_name(row.key), Some(row.setting));
            assert!(row.user_key.is_none_or(|key| Setting::by_name(key) == Some(row.setting)));
        }
        assert_eq!(Setting::by_name("tasks-root"), Some(Setting::Tasks));
        assert_eq!(Setting::by_name("nothing"), None);
        let names: Vec<_> = SETTINGS.iter().filter_map(|row| row.user_key).collect();
        assert_eq!(names, ["tasks_root", "ledger_root", "feedback_root", "datasets_root", "jobs_root"]);
    }

    #[test]
    fn the_first_candidate_wins() {
        let candidate =
            |value: &str, origin| Candidate { setting: Setting::Backend, value: value.to_owned(), origin };
        let place = Place { file: "f".into(), line: 1, column: 1 };
        let settings = Settings::resolve(
            Path::new("/p/demo"),
            &[
                candidate("docker", Origin::Flag { flag: "--backend" }),
                candidate("modal", Origin::Project(place)),
            ],
        );
        assert_eq!(settings.get(Setting::Backend).value, "docker");
        assert_eq!(settings.get(Setting::ProjectName).value, "demo");
        assert_eq!(settings.path(Setting::Ledger), Path::new("/p/demo/artefacts/ledger"));
    }
}
