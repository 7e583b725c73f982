//! One folder for each noun, one file for each command: its arguments, and the function that resolves them, calls a
//! library and renders the result.

pub(crate) mod agent_entry;
pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod containers;
pub(crate) mod dataset;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod eval;
pub(crate) mod evaluate;
pub(crate) mod evolve;
pub(crate) mod export;
pub(crate) mod gateway;
pub(crate) mod generate;
pub(crate) mod harbor;
pub(crate) mod import;
pub(crate) mod import_prime_eval;
pub(crate) mod init;
pub(crate) mod ledger;
pub(crate) mod library;
pub(crate) mod man;
pub(crate) mod modal;
pub(crate) mod models;
pub(crate) mod plan;
pub(crate) mod planning;
pub(crate) mod prime;
pub(crate) mod quickstart;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod swarm;
pub(crate) mod task;
pub(crate) mod template;
pub(crate) mod verify;
pub(crate) mod web;

use clap::Subcommand;

use self::agent_entry::AgentEntryArguments;
use self::audit::AuditArguments;
use self::completions::CompletionsArguments;
use self::config::ConfigCommand;
use self::dataset::DatasetCommand;
use self::dev::DevCommand;
use self::doctor::DoctorArguments;
use self::env::EnvCommand;
use self::eval::EvalCommand;
use self::evaluate::EvaluateArguments;
use self::evolve::EvolveCommand;
use self::export::ExportCommand;
use self::gateway::GatewayCommand;
use self::generate::GenerateCommand;
use self::import::ImportArguments;
use self::import_prime_eval::ImportPrimeEvalArguments;
use self::init::InitArguments;
use self::ledger::LedgerCommand;
use self::library::LibraryCommand;
use self::man::ManArguments;
use self::models::ModelsCommand;
use self::plan::PlanCommandArguments;
use self::prime::PrimeCommand;
use self::quickstart::QuickstartArguments;
use self::report::ReportCommand;
use self::run::RunArguments;
use self::runs::RunsCommand;
use self::schema::SchemaArguments;
use self::search::SearchArguments;
use self::swarm::SwarmCommand;
use self::task::TaskCommand;
use self::template::TemplateCommand;
use self::verify::VerifyArguments;
use self::web::WebArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

/// Every command. The hundreds of `display_order` are the groups of the top-level help, in the order of `GROUPS`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try the whole loop on this machine, offline, in seconds
    #[command(display_order = 101)]
    Quickstart(QuickstartArguments),
    /// Create a project in a directory
    #[command(display_order = 102)]
    Init(InitArguments),
    /// Report what this machine can do and how to fix what is missing
    #[command(display_order = 103)]
    Doctor(DoctorArguments),
    /// Show and change settings, and check every configuration file
    #[command(display_order = 104, subcommand)]
    Config(ConfigCommand),
    /// List, show, check and create tasks
    #[command(display_order = 201, subcommand)]
    Task(TaskCommand),
    /// Freeze tasks into datasets; check, compare, split and move them
    #[command(display_order = 204, subcommand)]
    Dataset(DatasetCommand),
    /// Find tasks and templates by words, best match first
    #[command(display_order = 206)]
    Search(SearchArguments),
    /// Generate tasks from templates
    #[command(display_order = 202, subcommand)]
    Generate(GenerateCommand),
    /// Create templates
    #[command(display_order = 203, subcommand)]
    Template(TemplateCommand),
    /// Export the catalogue of templates
    #[command(display_order = 205, subcommand)]
    Library(LibraryCommand),
    /// Judge a submission, or the golden answers of tasks
    #[command(display_order = 301)]
    Verify(VerifyArguments),
    /// Check whether a task's verdicts can be trusted
    #[command(display_order = 302)]
    Audit(AuditArguments),
    /// Show which trials a run would have, and lock them in a file
    #[command(display_order = 401)]
    Plan(Box<PlanCommandArguments>),
    /// Run agents on tasks, judge their submissions, and record every trial
    #[command(display_order = 402)]
    Run(Box<RunArguments>),
    /// The same as `run --backend local`
    #[command(hide = true)]
    RunLocal(Box<RunArguments>),
    /// Watch, stop, clean up and pack runs
    #[command(display_order = 403, subcommand)]
    Runs(RunsCommand),
    /// Show which endpoints models would be called at, and whether they answer
    #[command(display_order = 405, subcommand)]
    Models(ModelsCommand),
    /// Serve models to programs that must not see keys
    #[command(display_order = 406, subcommand)]
    Gateway(GatewayCommand),
    /// List, show, check, export and annotate the records of trials
    #[command(display_order = 501, subcommand)]
    Ledger(LedgerCommand),
    /// Import results of other programs into the ledger
    #[command(display_order = 502)]
    Import(ImportArguments),
    /// Import the samples of a hosted evaluation into the ledger
    #[command(display_order = 503)]
    ImportPrimeEval(ImportPrimeEvalArguments),
    /// Evaluate an experiment: means with intervals, for every group of trials
    #[command(display_order = 601)]
    Evaluate(EvaluateArguments),
    /// Rank, compare and explain: leaderboard, traces, behaviour, fields
    #[command(display_order = 602, subcommand)]
    Report(ReportCommand),
    /// Show experiments, traces, tasks and datasets in a browser, and runs live
    #[command(display_order = 603)]
    Web(WebArguments),
    /// Write training data from what agents did
    #[command(display_order = 702, subcommand)]
    Export(ExportCommand),
    /// Train on tasks: environment packages, hosted evaluations, training runs
    #[command(display_order = 701, subcommand)]
    Prime(PrimeCommand),
    /// Run models on environments: rollouts, rewards, metrics
    #[command(display_order = 404, subcommand)]
    Eval(EvalCommand),
    /// Install environments; the same as `eval install`
    #[command(subcommand, hide = true)]
    Env(EnvCommand),
    /// Improve prompts and skills by measured selection
    #[command(display_order = 801, subcommand)]
    Evolve(EvolveCommand),
    /// Improve prompts and skills with many agents at once
    #[command(display_order = 802, subcommand)]
    Swarm(SwarmCommand),
    /// Print the JSON Schema of a file format
    #[command(display_order = 901)]
    Schema(SchemaArguments),
    /// Try set-ups without a provider
    #[command(display_order = 1001, subcommand)]
    Dev(DevCommand),
    /// Work on the task that the AGENT_ variables name; the runtime of agents inside a container or room
    #[command(hide = true)]
    AgentEntry(AgentEntryArguments),
    /// Print a completion script for a shell
    #[command(display_order = 1101)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write one page per command
    #[command(display_order = 1102)]
    Man(ManArguments),
}

impl Command {
    pub(crate) fn execute(self, context: &Context) -> Result<Outcome, Failure> {
        match self {
            Self::Quickstart(arguments) => quickstart::quickstart(context, &arguments),
            Self::Init(arguments) => init::init(context, &arguments),
            Self::Doctor(arguments) => doctor::doctor(context, &arguments),
            Self::Config(command) => command.execute(context),
            Self::Task(command) => command.execute(context),
            Self::Dataset(command) => command.execute(context),
            Self::Search(arguments) => search::search(context, &arguments),
            Self::Generate(command) => command.execute(context),
            Self::Template(command) => command.execute(context),
            Self::Library(command) => command.execute(context),
            Self::Verify(arguments) => verify::verify(context, &arguments),
            Self::Audit(arguments) => audit::audit(context, &arguments),
            Self::Plan(arguments) => plan::plan(context, &arguments),
            Self::Run(arguments) => run::run(context, &arguments),
            Self::RunLocal(mut arguments) => {
                arguments.plan.backend.get_or_insert_with(|| "local".to_owned());
                run::run(context, &arguments)
            }
            Self::Runs(command) => command.execute(context),
            Self::Models(command) => command.execute(context),
            Self::Gateway(command) => command.execute(context),
            Self::Ledger(command) => command.execute(context),
            Self::Import(arguments) => import::import(context, &arguments),
            Self::ImportPrimeEval(arguments) => import_prime_eval::import(context, &arguments),
            Self::Evaluate(arguments) => evaluate::evaluate(context, &arguments),
            Self::Report(command) => command.execute(context),
            Self::Web(arguments) => web::web(context, &arguments),
            Self::Export(command) => command.execute(context),
            Self::Prime(command) => command.execute(context),
            Self::Eval(command) => command.execute(context),
            Self::Env(command) => command.execute(context),
            Self::Evolve(command) => command.execute(context),
            Self::Swarm(command) => command.execute(context),
            Self::Schema(arguments) => schema::schema(context, &arguments),
            Self::Dev(command) => command.execute(context),
            Self::AgentEntry(arguments) => agent_entry::agent_entry(context, &arguments),
            Self::Completions(arguments) => completions::completions(context, &arguments),
            Self::Man(arguments) => man::man(context, &arguments),
        }
    }
}
