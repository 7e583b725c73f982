//! Options that every command takes, and groups of arguments that commands of several nouns share.

use std::path::PathBuf;

use aec_run::plan::SandboxChoice;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, ValueEnum, ValueHint};

use crate::commands::Command;

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
    /// Print text; this is the default
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) text: bool,
    /// Print only data and errors
    #[arg(long, short, global = true, help_heading = "Global options", conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Report on stderr what is read and how long it takes
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub(crate) verbose: bool,
    /// Use the project in this directory instead of the one that contains the current directory
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options", value_hint = ValueHint::DirPath)]
    pub(crate) project: Option<PathBuf>,
    /// Print no colours; setting `NO_COLOR` does the same
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_color: bool,
}

/// `--tasks-root`, which overrides the setting `paths.tasks`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TasksRootArgument {
    /// Use this task catalogue instead of the configured one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) tasks_root: Option<String>,
}

/// Filters on tasks. A task must pass all of them.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SelectionArguments {
    /// Only tasks of this dataset
    #[arg(long, value_name = "NAME@VERSION")]
    pub(crate) dataset: Option<String>,
    /// Leave out tasks that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Only tasks of this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) domain: Vec<String>,
    /// Only tasks of this difficulty
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Difficulty::NAMES))]
    pub(crate) difficulty: Vec<String>,
    /// Only tasks at this lifecycle stage; `any` for all [default: active]
    #[arg(long, value_name = "STAGE", value_parser = ["proposed", "active", "deprecated", "retired", "any"])]
    pub(crate) lifecycle: Vec<String>,
    /// Only tasks with this visibility
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(aec_task::file::Visibility::NAMES))]
    pub(crate) visibility: Vec<String>,
    /// Only tasks with this tag; if repeated, tasks must have all the tags
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only tasks whose field has this value, such as category=reasoning or visibility=unknown
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
}

/// How commands are isolated from this machine.
#[derive(Clone, Debug, Args)]
pub(crate) struct SandboxArgument {
    /// How verifiers and engines are isolated from this machine; `none` runs them without isolation
    #[arg(long, value_name = "LEVEL", default_value = "namespaces")]
    pub(crate) sandbox: SandboxLevel,
    /// Open sandboxes even if their limits hold less than they usually do on this machine; this is recorded
    #[arg(long)]
    pub(crate) allow_weaker_limits: bool,
}

impl SandboxArgument {
    /// The choice, as plans record it.
    pub(crate) fn choice(&self) -> SandboxChoice {
        match (self.sandbox, self.allow_weaker_limits) {
            (SandboxLevel::None, _) => SandboxChoice::None,
            (SandboxLevel::Namespaces, true) => SandboxChoice::WeakerLimits,
            (SandboxLevel::Namespaces, false) => SandboxChoice::Namespaces,
        }
    }
}

impl From<SandboxChoice> for SandboxArgument {
    fn from(choice: SandboxChoice) -> Self {
        let (sandbox, allow_weaker_limits) = match choice {
            SandboxChoice::Namespaces => (SandboxLevel::Namespaces, false),
            SandboxChoice::WeakerLimits => (SandboxLevel::Namespaces, true),
            SandboxChoice::None => (SandboxLevel::None, false),
        };
        Self { sandbox, allow_weaker_limits }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxLevel {
    Namespaces,
    None,
}

/// `--ledger-root`, which overrides the setting `paths.ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerRootArgument {
    /// Use this ledger instead of the configured one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) ledger_root: Option<String>,
}

/// `--jobs-root`, which overrides the setting `paths.jobs`.
#[derive(Debug, Args)]
pub(crate) struct JobsRootArgument {
    /// Use this directory for raw trial outputs instead of the configured one
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) jobs_root: Option<String>,
}
