//! A project: a directory with an `aec-bench.toml`, its settings and its environment.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Decoded, Document, Family, Syntax};
use crate::env::Env;
use crate::problem::Problem;
use crate::secret::Reference;
use crate::settings::{Backend, Candidate, Dollars, Origin, SETTINGS, Setting, SettingPath, Settings};
use crate::user::UserConfig;

/// The file that makes a directory a project.
pub const PROJECT_FILE: &str = "aec-bench.toml";

/// Ids of the project file's problems begin with `C`.
pub const FAMILY: Family = Family('C');

/// `aec-bench.toml`: paths and defaults of a project. Every key is optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectFile {
    /// What the project is.
    pub project: ProjectTable,
    /// Where things are, relative to the project root.
    pub paths: PathsTable,
    /// How trials run.
    pub compute: ComputeTable,
    /// Limits on what models may cost; all are optional.
    pub budget: BudgetTable,
}

/// `[project]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectTable {
    /// Display name; the directory's name when absent.
    pub name: Option<String>,
}

/// `[paths]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathsTable {
    /// Task catalogue (default `tasks`).
    pub tasks: Option<SettingPath>,
    /// The project's own templates (default `templates`).
    pub templates: Option<SettingPath>,
    /// Seed notes that may become tasks (default `seeds`).
    pub seeds: Option<SettingPath>,
    /// Trial records (default `artefacts/ledger`).
    pub ledger: Option<SettingPath>,
    /// Reviews, annotations and evolution artefacts (default `artefacts/feedback`).
    pub feedback: Option<SettingPath>,
    /// Dataset manifests (default `artefacts/datasets`).
    pub datasets: Option<SettingPath>,
    /// Raw trial outputs (default `jobs`).
    pub jobs: Option<SettingPath>,
    /// Evolution workspaces (default `workspaces`).
    pub workspaces: Option<SettingPath>,
    /// Generated environment packages and their results (default `prime-rl`).
    pub prime: Option<SettingPath>,
    /// Addresses at which models answer (default `configs/endpoints.toml`).
    pub endpoints: Option<SettingPath>,
    /// The project's own prices of models (default `configs/prices.toml`).
    pub prices: Option<SettingPath>,
    /// Model calls kept by `--cache` (default `artefacts/cache/models`).
    pub model_cache: Option<SettingPath>,
    /// What models cost, by day (default `artefacts/spend`).
    pub spend: Option<SettingPath>,
}

/// `[budget]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetTable {
    /// Most dollars that one trial may cost.
    pub trial_usd: Option<Dollars>,
    /// Most tokens that one trial may take.
    pub trial_tokens: Option<u64>,
    /// Most dollars that one run may cost.
    pub experiment_usd: Option<Dollars>,
    /// Most tokens that one run may take.
    pub experiment_tokens: Option<u64>,
    /// Most dollars that a day (UTC) may cost.
    pub day_usd: Option<Dollars>,
    /// Most tokens that a day (UTC) may take.
    pub day_tokens: Option<u64>,
}

/// `[compute]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ComputeTable {
    /// Where trials run (default `local`).
    pub backend: Option<Backend>,
    /// What rooms on this machine show.
    pub local: LocalTable,
    /// How the `docker` backend works.
    pub docker: DockerTable,
    /// How the `harbor` backend works.
    pub harbor: HarborTable,
    /// How this project signs in to Modal, and what Modal charges.
    pub modal: ModalTable,
}

/// `[compute.local]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LocalTable {
    /// Files and directories of this machine that its rooms show, besides its programs and their data: such as
    /// `/usr/local`, `/opt/TOOL`, or a package that is installed for Python.
    pub show: Vec<PathBuf>,
}

/// `[compute.harbor]`, also of experiments.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HarborTable {
    /// What trials run in (default `docker`): a type of Harbor's, or `module:Class`.
    pub environment: Option<String>,
    /// Address of the service, as `$NAME`.
    pub endpoint: Option<Reference>,
    /// Token of the service, as `$NAME`.
    pub token: Option<Reference>,
}

/// `[compute.modal]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModalTable {
    /// Id of the token, as `$NAME`.
    pub token_id: Option<Reference>,
    /// The token's secret, as `$NAME`.
    pub token_secret: Option<Reference>,
    /// Dollars per hour for one physical core of a sandbox, used if Modal does not report its price.
    pub cpu_core_hour_usd: Option<Dollars>,
    /// Dollars per hour for one GiB of a sandbox's memory, used if Modal does not report its price.
    pub memory_gib_hour_usd: Option<Dollars>,
}

/// `compute.modal` of an experiment, which cannot set Modal's prices.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModalTokenTable {
    /// Id of the token, as `$NAME`.
    pub token_id: Option<Reference>,
    /// The token's secret, as `$NAME`.
    pub token_secret: Option<Reference>,
}

/// `[compute.docker]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DockerTable {
    /// Images that are built at once (default 2).
    pub builds: Option<std::num::NonZeroU32>,
    /// Containers that run at once (default 64).
    pub containers: Option<std::num::NonZeroU32>,
}

impl ProjectFile {
    fn value(&self, setting: Setting) -> Option<String> {
        let (paths, budget) = (&self.paths, &self.budget);
        let dollars = |amount: Option<Dollars>| amount.map(|amount| amount.get().to_string());
        let count = |count: Option<std::num::NonZeroU32>| count.map(|count| count.to_string());
        let tokens = |count: Option<u64>| count.map(|count| count.to_string());
        let path = match setting {
            Setting::ProjectName => return self.project.name.clone(),
            Setting::Backend => return self.compute.backend.map(|backend| backend.name().to_owned()),
            Setting::DockerBuilds => return count(self.compute.docker.builds),
            Setting::DockerContainers => return count(self.compute.docker.containers),
            Setting::HarborEnvironment => return self.compute.harbor.environment.clone(),
            Setting::ModalCpuRate => return dollars(self.compute.modal.cpu_core_hour_usd),
            Setting::ModalMemoryRate => return dollars(self.compute.modal.memory_gib_hour_usd),
            Setting::TrialDollars => return dollars(budget.trial_usd),
            Setting::TrialTokens => return tokens(budget.trial_tokens),
            Setting::ExperimentDollars => return dollars(budget.experiment_usd),
            Setting::ExperimentTokens => return tokens(budget.experiment_tokens),
            Setting::DayDollars => return dollars(budget.day_usd),
            Setting::DayTokens => return tokens(budget.day_tokens),
            Setting::Tasks => &paths.tasks,
            Setting::Templates => &paths.templates,
            Setting::Seeds => &paths.seeds,
            Setting::Ledger => &paths.ledger,
            Setting::Feedback => &paths.feedback,
            Setting::Datasets => &paths.datasets,
            Setting::Jobs => &paths.jobs,
            Setting::Workspaces => &paths.workspaces,
            Setting::Prime => &paths.prime,
            Setting::Endpoints => &paths.endpoints,
            Setting::Prices => &paths.prices,
            Setting::ModelCache => &paths.model_cache,
            Setting::Spend => &paths.spend,
        };
        path.as_ref().map(|path| path.as_str().to_owned())
    }

    /// Reads and checks a project file.
    pub fn read(path: &Path) -> Result<(Self, Document), Vec<Problem>> {
        let document = Document::read(path, Syntax::Toml, FAMILY)?;
        let Decoded { value, problems, .. } = document.decode::<Self>();
        match value {
            Some(file) if problems.is_empty() => Ok((file, document)),
            _ => Err(problems),
        }
    }
}

/// What the caller must know before it opens a project.
#[derive(Debug)]
pub struct Surroundings {
    /// The user's current directory.
    pub directory: PathBuf,
    /// `--project DIR`, if given.
    pub project: Option<PathBuf>,
    /// Where the user file is, existing or not; absent when there is no home directory.
    pub user_file: Option<PathBuf>,
    /// The process environment.
    pub env: Env,
}

/// An opened project, or the current directory when there is none.
#[derive(Debug)]
pub struct Project {
    /// The root that relative paths refer to.
    pub root: PathBuf,
    /// The project file; absent outside any project.
    pub file: Option<PathBuf>,
    /// The user file, when it exists.
    pub user_file: Option<PathBuf>,
    /// The project's `.env`, when it exists.
    pub dotenv: Option<PathBuf>,
    pub settings: Settings,
    /// The shell's variables with those of `.env`.
    pub env: Env,
    /// `[compute.local]` of the project file.
    pub local: LocalTable,
    /// `[compute.harbor]` of the project file.
    pub harbor: HarborTable,
    /// `[compute.modal]` of the project file.
    pub modal: ModalTable,
}

impl Project {
    /// Opens the project that contains a directory. `overrides` are values from flags and an experiment file, highest
    /// precedence first. Problems of all files are reported together.
    pub fn open(surroundings: &Surroundings, overrides: Vec<Candidate>) -> Result<Self, Vec<Problem>> {
        let root = find_root(surroundings)?;
        let mut problems = Vec::new();
        let mut candidates = overrides;
        let (mut harbor, mut modal) = (HarborTable::default(), ModalTable::default());
        let mut local = LocalTable::default();

        let (root, file) = match root {
            Some(root) => {
                let file = root.join(PROJECT_FILE);
                (root, Some(file))
            }
            None => (surroundings.directory.clone(), None),
        };
        if let Some(path) = &file {
            match ProjectFile::read(path) {
                Ok((content, document)) => {
                    candidates.extend(SETTINGS.iter().filter_map(|spec| {
                        let value = content.value(spec.setting)?;
                        let origin = Origin::Project(document.place(spec.key));
                        Some(Candidate { setting: spec.setting, value, origin })
                    }));
                    (harbor, modal) = (content.compute.harbor, content.compute.modal);
                    local = content.compute.local;
                }
                Err(found) => problems.extend(found),
            }
        }
        let mut user_file = None;
        if let Some(path) = &surroundings.user_file {
            match UserConfig::read(path) {
                Ok(mut config) => candidates.extend(config.candidates()),
                Err(found) => problems.extend(found),
            }
            user_file = path.exists().then(|| path.clone());
        }
        let mut env = surroundings.env.clone();
        let mut dotenv = None;
        if file.is_some() {
            match env.load_dotenv(&root) {
                Ok(path) => dotenv = path,
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        tracing::debug!(root = %root.display(), project = file.is_some(), "project opened");
        let settings = Settings::resolve(&root, &candidates);
        Ok(Self { root, file, user_file, dotenv, settings, env, local, harbor, modal })
    }

    /// A path for display: relative to the root if it is below it.
    pub fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// The nearest ancestor directory that has a project file, or the directory given with `--project`.
pub fn find_root(surroundings: &Surroundings) -> Result<Option<PathBuf>, Vec<Problem>> {
    if let Some(asked) = &surroundings.project {
        let root = surroundings.directory.join(asked);
        if root.join(PROJECT_FILE).symlink_metadata().is_err() {
            return Err(vec![
                Problem::error(format!("there is no project in {}", asked.display()))
                    .why(format!("a project is a directory with an {PROJECT_FILE}"))
                    .fix(format!("run `aec-bench init {}`, or name another directory", asked.display()))
                    .in_file(root),
            ]);
        }
        return Ok(Some(root));
    }
    let found =
        surroundings.directory.ancestors().find(|dir| dir.join(PROJECT_FILE).symlink_metadata().is_ok());
    Ok(found.map(Path::to_path_buf))
}
