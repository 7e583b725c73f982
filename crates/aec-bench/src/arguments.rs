//! The command line: every command, argument and flag. What they mean is in `commands`.

mod agent_entry;
mod author;
mod engine;
mod model;
mod run;

use std::path::PathBuf;

pub(crate) use agent_entry::*;
pub(crate) use author::*;
pub(crate) use engine::*;
pub(crate) use model::*;
pub(crate) use run::*;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

mod dataset;
mod dev;
mod eval;
mod evolve;
mod export;
mod import;
mod ledger;
mod prime;
mod report;
mod runs;
mod web;

pub(crate) use dataset::*;
pub(crate) use dev::*;
pub(crate) use eval::*;
pub(crate) use evolve::*;
pub(crate) use export::*;
pub(crate) use import::*;
pub(crate) use ledger::*;
pub(crate) use prime::*;
pub(crate) use report::*;
pub(crate) use runs::*;
pub(crate) use web::*;

/// Engineering tasks with executable verifiers: write them, run agents on them, trust the score.
#[derive(Debug, Parser)]
#[command(
    name = "aec-bench",
    version,
    propagate_version = false,
    disable_help_subcommand = false,
    subcommand_required = false,
    after_help = "Begin with `aec-bench quickstart`. Exit codes and the JSON envelope are described in docs/cli.md."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: GlobalArguments,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options that every command takes, before or after its name.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArguments {
    /// Print one JSON envelope on stdout and nothing else
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
    /// Print text, which is the default
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) text: bool,
    /// Print data and errors only
    #[arg(long, short, global = true, help_heading = "Global options", conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say on stderr what is read and how long it takes
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
    /// Work in this project instead of the one around the current directory
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options", value_hint = ValueHint::DirPath)]
    pub(crate) project: Option<PathBuf>,
    /// No colours; `NO_COLOR` does the same
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_color: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See the whole loop on this machine, offline, in seconds
    Quickstart(QuickstartArguments),
    /// Create a project in a directory
    Init(InitArguments),
    /// Say what this machine can do and how to fix what is missing
    Doctor,
    /// Show and change settings, and check every configuration file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List, show, check and create tasks
    #[command(subcommand)]
    Task(TaskCommand),
    /// Freeze tasks into datasets; check, compare, split and move them
    #[command(subcommand)]
    Dataset(DatasetCommand),
    /// Find tasks and templates by words, best match first
    Search(SearchArguments),
    /// Make tasks from templates
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Create templates
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Export the catalogue of templates
    #[command(subcommand)]
    Library(LibraryCommand),
    /// Judge a submission, or the golden answers of tasks
    Verify(VerifyArguments),
    /// Find out whether a task's verdicts can be trusted
    Audit(AuditArguments),
    /// Show which trials a run would have, and lock them in a file
    Plan(Box<PlanCommandArguments>),
    /// Run agents on tasks, judge what they leave, and keep every trial
    Run(Box<RunArguments>),
    /// The same as `run --backend local`
    #[command(hide = true)]
    RunLocal(Box<RunArguments>),
    /// Watch, stop, clean up and pack runs
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Find out what models would be called, and whether they answer
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Serve models to programs that must not see keys
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// List, show, check, export and annotate the records of trials
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Bring results of other programs into the ledger
    Import(ImportArguments),
    /// Bring the samples of a hosted evaluation into the ledger
    ImportPrimeEval(ImportPrimeEvalArguments),
    /// Say what an experiment shows: means with intervals, by everything that tells trials apart
    Evaluate(EvaluateArguments),
    /// Rank, compare and explain: leaderboard, traces, behaviour, fields
    #[command(subcommand)]
    Report(ReportCommand),
    /// Show experiments, traces, tasks and datasets in a browser, and runs as they go on
    Web(WebArguments),
    /// Write data to train on, from what agents did
    #[command(subcommand)]
    Export(ExportCommand),
    /// Train on tasks: environment packages, hosted evaluations, training runs
    #[command(subcommand)]
    Prime(PrimeCommand),
    /// Let models work on environments: rollouts, rewards, metrics
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Install environments; the same as `eval install`
    #[command(subcommand, hide = true)]
    Env(EnvCommand),
    /// Improve prompts and skills by measured selection
    #[command(subcommand)]
    Evolve(EvolveCommand),
    /// Improve prompts and skills with many agents at once
    #[command(subcommand)]
    Swarm(SwarmCommand),
    /// Print the JSON Schema of a file format
    Schema(SchemaArguments),
    /// Try set-ups out without a provider
    #[command(subcommand)]
    Dev(DevCommand),
    /// Work on the task that the AGENT_ variables name, here: the runtime of agents inside a container or room
    #[command(hide = true)]
    AgentEntry(AgentEntryArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Print the manual page, or write one page per command
    Man(ManArguments),
}

#[derive(Debug, Args)]
pub(crate) struct QuickstartArguments {
    /// Directory of the project; created if it does not exist
    #[arg(default_value = "aec-bench-quickstart", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Directory of the project; created if it does not exist
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Write the project's files anew where they exist (never .env)
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave out the example task
    #[arg(long)]
    pub(crate) no_example: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting and where its value comes from
    View(ConfigViewArguments),
    /// Set a path default in the user file
    Set(ConfigSetArguments),
    /// Forget one path default of the user file, or all of them
    Reset(ConfigResetArguments),
    /// Read every configuration file and report all problems at once
    Check(ConfigCheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigViewArguments {
    /// Resolve as for this experiment
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Resolve as if this backend were given to `run`
    #[arg(long, value_name = "NAME", value_parser = aec_base::settings::Backend::NAMES)]
    pub(crate) backend: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

/// The flag rung of `paths.tasks`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TasksRootArgument {
    /// Task catalogue to use instead of the configured one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) tasks_root: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigSetArguments {
    /// Setting, such as `tasks_root` or `paths.tasks`
    pub(crate) key: String,
    /// Path, relative to the project root of each project
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigResetArguments {
    /// Setting to forget; all of them when absent
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArguments {
    /// Files to check; every configuration file of the project when absent
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// List tasks
    List(TaskListArguments),
    /// Show everything about one task
    Show(TaskShowArguments),
    /// Check tasks without running them
    Validate(TaskValidateArguments),
    /// Create a task to be filled in
    New(TaskNewArguments),
    /// Write tasks as another program takes them
    Export(TaskExportArguments),
    /// Take tasks of another program
    Import(TaskImportArguments),
}

/// Whose tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskFormat {
    /// Harbor's directories
    Harbor,
}

#[derive(Debug, Args)]
pub(crate) struct TaskExportArguments {
    /// Task ids, or directories of ids
    #[arg(value_name = "ID", required = true)]
    pub(crate) tasks: Vec<String>,
    /// Whose tasks to write
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: TaskFormat,
    /// Directory to write into: one directory for each task
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct TaskImportArguments {
    /// A task's directory, or a directory of them
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Whose tasks they are
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: TaskFormat,
    /// Id of the task here, when there is one of them
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// What ids begin with whose tasks do not say
    #[arg(long, value_name = "SEGMENT", default_value = "harbor", conflicts_with = "id")]
    pub(crate) below: String,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct TaskListArguments {
    /// Only these tasks: ids, directories of ids, or patterns such as electrical/*
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Only tasks that this experiment selects
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

/// Filters that intersect.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SelectionArguments {
    /// Only tasks of this dataset
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
    /// Only this stage of life; `any` for all [default: active]
    #[arg(long, value_name = "STAGE", value_parser = ["proposed", "active", "deprecated", "retired", "any"])]
    pub(crate) lifecycle: Vec<String>,
    /// Only this visibility
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Visibility::NAMES))]
    pub(crate) visibility: Vec<String>,
    /// Only tasks with this tag; several must all be there
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only tasks whose field has this value, such as category=reasoning or visibility=unknown
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskShowArguments {
    /// Task id, in either form, or a beginning that fits only one
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct TaskValidateArguments {
    /// Task ids, directories of ids, or paths of task directories
    #[arg(value_name = "ID|PATH", value_hint = ValueHint::DirPath)]
    pub(crate) tasks: Vec<String>,
    /// Check every task
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Check the tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION", conflicts_with_all = ["tasks", "all"])]
    pub(crate) dataset: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct TaskNewArguments {
    /// Id of the new task, such as civil/culvert-capacity; the seed's when absent
    #[arg(required_unless_present = "from_seed")]
    pub(crate) id: Option<String>,
    /// Take title, description, givens and answers from this note: a file, or its name in paths.seeds
    #[arg(long, value_name = "SEED", value_hint = ValueHint::FilePath)]
    pub(crate) from_seed: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Words that must all occur
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// Only this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Option<String>,
    /// Only tasks or only templates
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<SearchKind>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchKind {
    Task,
    Template,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Task ids, or directories of ids
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,
    /// Judge this: a file taken as the primary output, or a directory taken as the workspace
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, conflicts_with = "all")]
    pub(crate) submission: Option<PathBuf>,
    /// Judge the golden answers of every task
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Judge the golden answers of the tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION", conflicts_with_all = ["tasks", "all", "submission"])]
    pub(crate) dataset: Option<String>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Task ids, or directories of ids
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,
    /// Audit every task
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Audit the tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION", conflicts_with_all = ["tasks", "all"])]
    pub(crate) dataset: Option<String>,
    /// Let the built-in cheaters loose as well
    #[arg(long)]
    pub(crate) cheat: bool,
    /// Write a page with all results
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

/// How commands are kept apart from this machine.
#[derive(Clone, Debug, Args)]
pub(crate) struct SandboxArgument {
    /// How verifiers and engines are kept apart from this machine; `none` runs them on it
    #[arg(long, value_name = "LEVEL", default_value = "namespaces")]
    pub(crate) sandbox: SandboxLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxLevel {
    Namespaces,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// File format; all of them are listed when absent
    pub(crate) noun: Option<String>,
    /// Write every schema into this directory
    #[arg(long, short, value_name = "DIR", conflicts_with = "noun", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write one page per command into this directory
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}
