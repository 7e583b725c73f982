//! The arguments of `aec-bench prime`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};

use super::{EndpointsArgument, SandboxArgument, SelectionArguments, TasksRootArgument};

#[derive(Debug, Subcommand)]
pub(crate) enum PrimeCommand {
    /// Say whether this machine and this account are ready for Prime
    Doctor(PrimeDoctorArguments),
    /// Write tasks and their verifiers as a package that `verifiers` loads
    Export(Box<PrimeExportArguments>),
    /// Load a package with the real `verifiers` library and play the reference solution and nothing through it
    Smoke(Box<PrimeSmokeArguments>),
    /// Export a package and publish it on the hub
    Push(Box<PrimePushArguments>),
    /// Run a hosted evaluation of a published environment
    Eval(Box<PrimeEvalArguments>),
    /// List the adapters of hosted training runs, and which of them answer
    Adapters,
    /// Write the configuration of a training run
    TrainConfig(Box<PrimeTrainConfigArguments>),
    /// Start a training run from a configuration
    Train(PrimeTrainArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PrimeDoctorArguments {
    /// Also ask for the list of models
    #[arg(long)]
    pub(crate) check_inference: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct PackageArguments {
    /// Name of the environment, such as aec-voltage-drop
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Take these tasks: ids, or directories of ids
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) task: Vec<String>,
    /// Take tasks whose ids match this pattern, such as electrical/*
    #[arg(long, short, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    /// Only tasks of this dataset, as they were frozen
    #[arg(long, value_name = "NAME@VERSION")]
    pub(crate) dataset: Option<String>,
    /// No task that matches this pattern
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Only this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Vec<String>,
    /// Only this difficulty
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Difficulty::NAMES))]
    pub(crate) difficulty: Vec<String>,
    /// Only tasks with this tag; several must all be there
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only this stage of life; `any` for all [default: active, and all of a dataset]
    #[arg(long, value_name = "STAGE", value_parser = ["proposed", "active", "deprecated", "retired", "any"])]
    pub(crate) lifecycle: Vec<String>,
    /// Whether tasks are one question each or work in a workspace
    /// [default: auto]
    #[arg(long, value_name = "MODE",
          value_parser = PossibleValuesParser::new(["auto", "single-turn", "stateful"]))]
    pub(crate) harness_mode: Option<String>,
    /// Version of the package [default: 0.1.0]
    #[arg(long = "version", value_name = "VERSION")]
    pub(crate) package_version: Option<String>,
    /// Directory of packages [default: environments below paths.prime]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

impl PackageArguments {
    /// The flags that choose tasks. Whether tasks are public is no choice here: others are refused.
    pub(crate) fn selection(&self) -> SelectionArguments {
        // A dataset is exported as it was frozen, whatever became of its tasks.
        let all = self.dataset.is_some() && self.lifecycle.is_empty();
        SelectionArguments {
            lifecycle: if all { vec!["any".to_owned()] } else { self.lifecycle.clone() },
            dataset: self.dataset.clone(),
            exclude: self.exclude.clone(),
            domain: self.domain.clone(),
            difficulty: self.difficulty.clone(),
            tag: self.tag.clone(),
            ..SelectionArguments::default()
        }
    }

    /// Whether it is said which tasks are meant.
    pub(crate) fn selects(&self) -> bool {
        let lists = [
            &self.task,
            &self.pattern,
            &self.exclude,
            &self.domain,
            &self.difficulty,
            &self.tag,
            &self.lifecycle,
        ];
        self.dataset.is_some() || lists.iter().any(|list| !list.is_empty())
    }
}

#[derive(Debug, Args)]
pub(crate) struct PrimeExportArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PrimeSmokeArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
    /// Version of `verifiers` to load the package with
    #[arg(long, value_name = "VERSION", default_value = aec_prime::smoke::DEFAULT_VERIFIERS)]
    pub(crate) verifiers: String,
    /// Also run one example with this model; its endpoint is found as in `aec-bench run`
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Most tokens of an answer of the model
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_tokens: u32,
    /// Tasks that are tried
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) num_examples: usize,
    #[command(flatten)]
    pub(crate) endpoints: EndpointsArgument,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

#[derive(Debug, Args)]
pub(crate) struct PrimePushArguments {
    #[command(flatten)]
    pub(crate) package: PackageArguments,
    /// Who can see the environment; PRIVATE until its rewards are known to be right
    #[arg(long, value_name = "WHO", default_value = "PRIVATE", ignore_case = true,
          value_parser = PossibleValuesParser::new(["PRIVATE", "PUBLIC"]))]
    pub(crate) visibility: String,
    /// User or team that owns the environment
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Team that owns the environment
    #[arg(long, value_name = "TEAM", conflicts_with = "owner")]
    pub(crate) team: Option<String>,
    /// API of `verifiers` that the hub is told [default: v0, which hosted evaluations take]
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(["v0", "v1"]))]
    pub(crate) runtime: Option<String>,
}

/// Which tasks of an environment, and how they are worked on.
#[derive(Debug, Args)]
pub(crate) struct SliceArguments {
    /// The side of the split: train, eval or all
    #[arg(long, value_name = "SIDE", value_parser = PossibleValuesParser::new(["train", "eval", "all"]))]
    pub(crate) split: Option<String>,
    /// Only this difficulty; several are taken together
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Difficulty::NAMES))]
    pub(crate) difficulty: Vec<String>,
    /// Whether tasks are one question each or work in a workspace
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["auto", "single-turn", "stateful"]))]
    pub(crate) harness: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PrimeEvalArguments {
    /// The published environment, as owner/name
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) remote_env: String,
    /// Run it on Prime's machines
    #[arg(long)]
    pub(crate) hosted: bool,
    /// The model
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: String,
    /// A deployed adapter of the model
    #[arg(long, value_name = "ID", conflicts_with = "adapter_from_run")]
    pub(crate) adapter_id: Option<String>,
    /// The adapter that this training run deployed
    #[arg(long, value_name = "RUN")]
    pub(crate) adapter_from_run: Option<String>,
    /// Step of the training run: a number, or latest
    #[arg(long, value_name = "STEP", default_value = "latest", requires = "adapter_from_run")]
    pub(crate) adapter_step: String,
    #[command(flatten)]
    pub(crate) slice: SliceArguments,
    /// Tasks that the environment loads
    #[arg(long, value_name = "N")]
    pub(crate) env_num_examples: Option<i64>,
    /// Draws the order of the tasks
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<i64>,
    /// Another argument of the environment; values are JSON where they can be
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) env_arg: Vec<String>,
    /// Examples that are evaluated; -1 for all
    #[arg(long, short, value_name = "N", allow_negative_numbers = true)]
    pub(crate) num_examples: Option<i64>,
    /// Rollouts of each example
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    pub(crate) rollouts_per_example: u32,
    /// Most tokens of an answer
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u32>,
    /// Temperature of sampling
    #[arg(long, value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// Rollouts at a time
    #[arg(long, value_name = "N")]
    pub(crate) max_concurrent: Option<u32>,
    /// Name of the evaluation
    #[arg(long, value_name = "NAME")]
    pub(crate) eval_name: Option<String>,
    /// Minutes after which the service breaks off
    #[arg(long, value_name = "N", default_value_t = 120)]
    pub(crate) timeout_minutes: u32,
    /// Say what happens until it ends
    #[arg(long, visible_alias = "follow")]
    pub(crate) watch: bool,
    /// Seconds between questions while watching
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) poll_interval: f64,
}

#[derive(Debug, Args)]
pub(crate) struct PrimeTrainConfigArguments {
    /// The published environment, as owner/name
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) environment: String,
    /// File to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The model
    #[arg(long, short, value_name = "MODEL", default_value = "Qwen/Qwen3.5-0.8B")]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) slice: SliceArguments,
    /// A view of one difficulty and its share, such as easy=0.45; several make a suite
    #[arg(long, value_name = "DIFFICULTY=RATIO", conflicts_with = "difficulty")]
    pub(crate) difficulty_ratio: Vec<String>,
    /// Tasks of each view
    #[arg(long, value_name = "N")]
    pub(crate) num_examples: Option<u32>,
    /// Training steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) max_steps: u32,
    /// Rollouts of a step
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) batch_size: u32,
    /// Rollouts of an example
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) rollouts_per_example: u32,
    /// Most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) max_tokens: u32,
    /// Steps between evaluations
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) eval_interval: u32,
    /// Examples of an evaluation
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) eval_num_examples: u32,
    /// Rollouts of each of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) eval_rollouts_per_example: u32,
    /// Do not evaluate the model before training
    #[arg(long)]
    pub(crate) no_eval_base_model: bool,
    /// Keep examples that are neither solved nor hopeless
    #[arg(long)]
    pub(crate) online_difficulty_filtering: bool,
    /// Mean reward from which an example is easy
    #[arg(long, value_name = "REWARD", default_value_t = 0.8, requires = "online_difficulty_filtering")]
    pub(crate) easy_threshold: f64,
    /// Mean reward up to which an example is hard
    #[arg(long, value_name = "REWARD", default_value_t = 0.2, requires = "online_difficulty_filtering")]
    pub(crate) hard_threshold: f64,
    /// Share of easy examples that stay
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "online_difficulty_filtering")]
    pub(crate) easy_fraction: f64,
    /// Share of hard examples that stay
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "online_difficulty_filtering")]
    pub(crate) hard_fraction: f64,
    /// Adapters that are kept
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) adapters_keep_last: u32,
    /// Which trainer the file is for
    #[arg(long, value_name = "TARGET", default_value = "shared-lora",
          value_parser = PossibleValuesParser::new(["shared-lora", "prime-rl"]))]
    pub(crate) target: String,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PrimeTrainArguments {
    /// The configuration
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Start without asking; training costs money
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// A secret of the run: KEY=VALUE, or KEY for the value that it has here
    #[arg(long, short = 'E', value_name = "KEY[=VALUE]")]
    pub(crate) env_var: Vec<String>,
    /// A file of such lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) env_file: Vec<PathBuf>,
    /// Start although the hub's check of an environment failed
    #[arg(long)]
    pub(crate) skip_action_check: bool,
    /// Say what happens until it ends
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between questions while watching
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) poll_interval: f64,
}
