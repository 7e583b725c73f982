//! Arguments of the commands that make tasks: `generate`, `template`, `library`.

use std::path::PathBuf;

use aec_author::params::ToolMode;
use aec_task::file::Visibility;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};

use super::{SandboxArgument, TasksRootArgument};

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    /// Make instances of one template
    Task(GenerateTaskArguments),
    /// Make the suite that a suite.toml describes
    Suite(GenerateSuiteArguments),
    /// List the templates at hand
    ListTemplates(ListTemplatesArguments),
    /// Try a template out: engine, examples, tiers, prompts, calculator
    ValidateTemplate(ValidateTemplateArguments),
    /// Make again what a manifest says and compare every byte
    Replay(ReplayArguments),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateTaskArguments {
    /// Template by name, such as voltage-drop or electrical/voltage-drop
    #[arg(required_unless_present = "template", conflicts_with = "template")]
    pub(crate) name: Option<String>,
    /// Template by directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) template: Option<PathBuf>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) instances: u32,
    /// Tiers, which take turns; all of the template's when absent
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) difficulty: Vec<String>,
    /// Seed of every draw
    #[arg(long, value_name = "N", default_value_t = 42, allow_negative_numbers = true)]
    pub(crate) seed: i64,
    /// Index of the first draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) start_index: u32,
    /// Directory that gets DISCIPLINE/CATEGORY/TEMPLATE/…; the task catalogue when absent
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// With or without the calculator; as the template says when absent
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(ToolMode::NAMES))]
    pub(crate) tool_mode: Option<String>,
    /// Who may see the tasks
    #[arg(long, value_name = "NAME", default_value = "public", value_parser = PossibleValuesParser::new(Visibility::NAMES))]
    pub(crate) visibility: String,
    /// Replace tasks that are there already and differ
    #[arg(long)]
    pub(crate) replace: bool,
    /// Say what would be made, without making it
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) templates: TemplatesArgument,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

/// Where templates come from besides the library and `paths.templates`.
#[derive(Debug, Args)]
pub(crate) struct TemplatesArgument {
    /// Directory with more templates
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) user_dir: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateSuiteArguments {
    /// The suite's file
    #[arg(long, short, value_name = "FILE", default_value = "suite.toml", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
    /// Seed instead of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<i64>,
    /// Directory instead of the file's
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace a suite that is there already and differs
    #[arg(long)]
    pub(crate) replace: bool,
    /// Count what would be made, without making it
    #[arg(long, conflicts_with = "validate_only")]
    pub(crate) dry_run: bool,
    /// Only check the file and the templates that it selects
    #[arg(long)]
    pub(crate) validate_only: bool,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Debug, Args)]
pub(crate) struct ListTemplatesArguments {
    /// Only this discipline
    #[arg(long, value_name = "NAME")]
    pub(crate) discipline: Vec<String>,
    /// Only templates whose field has this value, such as category=cables
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) filter: Vec<String>,
    /// At most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) templates: TemplatesArgument,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateTemplateArguments {
    /// Directories of templates, or names of known ones
    #[arg(value_name = "DIR|NAME", value_hint = ValueHint::DirPath, required_unless_present = "all")]
    pub(crate) templates: Vec<String>,
    /// Every template at hand
    #[arg(long, conflicts_with = "templates")]
    pub(crate) all: bool,
    /// Instances of each tier to make
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) instances: u32,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// generation-manifest.json
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) manifest: PathBuf,
    /// Write the result into this directory, which must not exist
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgument,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// Create a template to be filled in
    New(TemplateNewArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TemplateNewArguments {
    /// DISCIPLINE/NAME, such as civil/culvert-flow
    pub(crate) id: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryCommand {
    /// Write the catalogue of templates and seeds as JSON
    Export(LibraryExportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct LibraryExportArguments {
    /// File to write; stdout when absent
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// With line breaks and indentation
    #[arg(long)]
    pub(crate) pretty: bool,
    #[command(flatten)]
    pub(crate) templates: TemplatesArgument,
}
