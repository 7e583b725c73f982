//! From the raw arguments to an exit code: parsing, dispatch, printing, and the last resort for bugs.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::arguments::{
    Arguments, Command, ConfigCommand, DatasetCommand, DevCommand, EnvCommand, EvalCommand, EvolveCommand,
    ExportCommand, GatewayCommand, GenerateCommand, LedgerCommand, LibraryCommand, ModelsCommand,
    PrimeCommand, ReportCommand, RunsCommand, SwarmCommand, TaskCommand, TemplateCommand,
};
use crate::commands;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::groups::group_help;
use crate::output::{Format, Outcome, Printer};

pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let started = Instant::now();
    let exit = match parse(arguments) {
        Ok(parsed) => dispatch(parsed, started),
        Err(error) => usage(&error, arguments, started),
    };
    ExitCode::from(exit as u8)
}

/// The whole command tree, with its help in groups.
pub(crate) fn command_tree() -> clap::Command {
    group_help(Arguments::command())
}

fn parse(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut tree = command_tree();
    let matches = tree.try_get_matches_from_mut(arguments)?;
    let parsed = Arguments::from_arg_matches(&matches)?;
    if parsed.global.json && parsed.global.text {
        let message = "--json and --text cannot be used together";
        return Err(tree.error(ErrorKind::ArgumentConflict, message));
    }
    Ok(parsed)
}

fn dispatch(arguments: Arguments, started: Instant) -> Exit {
    let global = arguments.global;
    let format = if global.json { Format::Json } else { Format::Text };
    let mut printer = Printer {
        format,
        quiet: global.quiet,
        color: !global.no_color,
        started,
        redactor: Redactor::default(),
    };
    let Some(command) = arguments.command else {
        return help(&printer, &command_tree().render_help().ansi().to_string());
    };
    if global.verbose {
        start_log(global.no_color);
    }
    let context = Context::new(&global, format);
    let name = command_name(&command);
    let result = guarded(|| execute(&context, command));
    printer.redactor = context.redactor();
    tracing::debug!(seconds = started.elapsed().as_secs_f64(), peak_memory = peak_memory(), "done");
    let mut outcome = match result {
        Ok(outcome) => outcome,
        Err(failure) => return printer.failure(name, &failure),
    };
    let exit = printer.outcome(name, &outcome);
    let Some(service) = outcome.take_service() else { return exit };
    match guarded(service) {
        Ok(()) => exit,
        // The one envelope of this command has been printed.
        Err(failure) => {
            printer.complain(&failure);
            failure.exit
        }
    }
}

fn execute(context: &Context, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Quickstart(arguments) => commands::quickstart::quickstart(context, &arguments),
        Command::Init(arguments) => commands::init::init(context, &arguments),
        Command::Doctor => commands::doctor::doctor(context),
        Command::Config(ConfigCommand::View(arguments)) => commands::config::view(context, &arguments),
        Command::Config(ConfigCommand::Set(arguments)) => commands::config::set(context, &arguments),
        Command::Config(ConfigCommand::Reset(arguments)) => commands::config::reset(context, &arguments),
        Command::Config(ConfigCommand::Check(arguments)) => {
            commands::config_check::check(context, &arguments)
        }
        Command::Task(TaskCommand::List(arguments)) => commands::task_list::list(context, &arguments),
        Command::Task(TaskCommand::Show(arguments)) => commands::task_show::show(context, &arguments),
        Command::Task(TaskCommand::Validate(arguments)) => {
            commands::task_validate::validate(context, &arguments)
        }
        Command::Task(TaskCommand::New(arguments)) => commands::task_new::new(context, &arguments),
        Command::Task(TaskCommand::Export(arguments)) => commands::task_exchange::export(context, &arguments),
        Command::Task(TaskCommand::Import(arguments)) => commands::task_exchange::import(context, &arguments),
        Command::Dataset(DatasetCommand::Create(arguments)) => {
            commands::dataset_create::create(context, &arguments)
        }
        Command::Dataset(DatasetCommand::List) => commands::dataset_list::list(context),
        Command::Dataset(DatasetCommand::Show(arguments)) => {
            commands::dataset_show::show(context, &arguments)
        }
        Command::Dataset(DatasetCommand::Verify(arguments)) => {
            commands::dataset_verify::verify(context, &arguments)
        }
        Command::Dataset(DatasetCommand::Diff(arguments)) => {
            commands::dataset_diff::diff(context, &arguments)
        }
        Command::Dataset(DatasetCommand::Split(arguments)) => {
            commands::dataset_split::split(context, &arguments)
        }
        Command::Dataset(DatasetCommand::Export(arguments)) => {
            commands::dataset_export::export(context, &arguments)
        }
        Command::Dataset(DatasetCommand::Import(arguments)) => {
            commands::dataset_import::import(context, &arguments)
        }
        Command::Search(arguments) => commands::search::search(context, &arguments),
        Command::Generate(GenerateCommand::Task(arguments)) => {
            commands::generate_task::task(context, &arguments)
        }
        Command::Generate(GenerateCommand::Suite(arguments)) => {
            commands::generate_suite::suite(context, &arguments)
        }
        Command::Generate(GenerateCommand::ListTemplates(arguments)) => {
            commands::list_templates::list(context, &arguments)
        }
        Command::Generate(GenerateCommand::ValidateTemplate(arguments)) => {
            commands::validate_template::validate(context, &arguments)
        }
        Command::Generate(GenerateCommand::Replay(arguments)) => {
            commands::generate_replay::replay(context, &arguments)
        }
        Command::Template(TemplateCommand::New(arguments)) => {
            commands::template_new::new(context, &arguments)
        }
        Command::Library(LibraryCommand::Export(arguments)) => {
            commands::library_export::export(context, &arguments)
        }
        Command::Verify(arguments) => commands::verify::verify(context, &arguments),
        Command::Audit(arguments) => commands::audit::audit(context, &arguments),
        Command::Plan(arguments) => commands::plan::plan(context, &arguments),
        Command::Run(arguments) => commands::run::run(context, &arguments),
        Command::RunLocal(mut arguments) => {
            arguments.plan.backend.get_or_insert_with(|| "local".to_owned());
            commands::run::run(context, &arguments)
        }
        Command::Runs(command) => runs(context, command),
        Command::Models(ModelsCommand::Check(arguments)) => {
            commands::models_check::check(context, &arguments)
        }
        Command::Gateway(GatewayCommand::Serve(arguments)) => {
            commands::gateway_serve::serve(context, &arguments)
        }
        Command::Ledger(command) => ledger(context, command),
        Command::Import(arguments) => commands::import::import(context, &arguments),
        Command::ImportPrimeEval(arguments) => commands::import_prime_eval::import(context, &arguments),
        Command::Evaluate(arguments) => commands::evaluate::evaluate(context, &arguments),
        Command::Report(command) => report(context, command),
        Command::Web(arguments) => commands::web::web(context, &arguments),
        Command::Eval(command) => eval(context, command),
        Command::Env(EnvCommand::Install(arguments)) => commands::eval_install::install(context, &arguments),
        Command::Prime(command) => prime(context, command),
        Command::Export(ExportCommand::Sft(arguments)) => commands::export::sft(context, &arguments),
        Command::Export(ExportCommand::Preferences(arguments)) => {
            commands::export::preferences(context, &arguments)
        }
        Command::Evolve(command) => evolve(context, command),
        Command::Swarm(command) => swarm(context, command),
        Command::Schema(arguments) => commands::schema::schema(context, &arguments),
        Command::Dev(DevCommand::ServeModel(arguments)) => {
            commands::dev_serve_model::serve_model(context, &arguments)
        }
        Command::AgentEntry(arguments) => commands::agent_entry::agent_entry(context, &arguments),
        Command::Completions(arguments) => commands::shell::completions(context, &arguments),
        Command::Man(arguments) => commands::shell::man(context, &arguments),
    }
}

fn runs(context: &Context, command: RunsCommand) -> Result<Outcome, Failure> {
    match command {
        RunsCommand::List(arguments) => commands::runs::list(context, &arguments),
        RunsCommand::Status(arguments) => commands::runs::status(context, &arguments),
        RunsCommand::Stop(arguments) => commands::runs::stop(context, &arguments),
        RunsCommand::Merge(arguments) => commands::runs_merge::merge(context, &arguments),
        RunsCommand::Clean(arguments) => commands::runs::clean(context, &arguments),
        RunsCommand::Export(arguments) => commands::runs_export::export(context, &arguments),
        RunsCommand::Import(arguments) => commands::runs_import::import(context, &arguments),
        RunsCommand::Keygen(arguments) => commands::runs_keygen::keygen(context, &arguments),
    }
}

fn evolve(context: &Context, command: EvolveCommand) -> Result<Outcome, Failure> {
    match command {
        EvolveCommand::Init(arguments) => commands::evolve_workspace::init(context, &arguments),
        EvolveCommand::Run(arguments) => commands::evolve_run::evolve(context, &arguments),
        EvolveCommand::Resume(arguments) => commands::evolve_run::resume_evolution(context, &arguments),
        EvolveCommand::Stop(arguments) => commands::evolve_runs::stop(context, &arguments),
        EvolveCommand::History(arguments) => commands::evolve_runs::history(context, &arguments),
        EvolveCommand::Show(arguments) => commands::evolve_workspace::show(context, &arguments),
        EvolveCommand::Diff(arguments) => commands::evolve_workspace::diff(context, &arguments),
        EvolveCommand::Rollback(arguments) => commands::evolve_workspace::rollback(context, &arguments),
        EvolveCommand::Export(arguments) => commands::evolve_workspace::export(context, &arguments),
        EvolveCommand::Report(arguments) => commands::evolve_report::report(context, &arguments),
    }
}

fn swarm(context: &Context, command: SwarmCommand) -> Result<Outcome, Failure> {
    match command {
        SwarmCommand::Run(arguments) => commands::evolve_run::swarm(context, &arguments),
        SwarmCommand::Resume(arguments) => commands::evolve_run::resume_swarm(context, &arguments),
        SwarmCommand::Stop(arguments) => commands::evolve_runs::stop_swarm(context, &arguments),
        SwarmCommand::Status(arguments) => commands::evolve_report::status(context, &arguments),
        SwarmCommand::History(arguments) => commands::evolve_runs::swarm_history(context, &arguments),
        SwarmCommand::Best(arguments) => commands::evolve_report::best(context, &arguments),
    }
}

fn eval(context: &Context, command: EvalCommand) -> Result<Outcome, Failure> {
    match command {
        EvalCommand::Run(arguments) => commands::eval_run::run(context, &arguments),
        EvalCommand::List(arguments) => commands::eval_list::list(context, &arguments),
        EvalCommand::Show(arguments) => commands::eval_show::show(context, &arguments),
        EvalCommand::Compare(arguments) => commands::eval_compare::compare(context, &arguments),
        EvalCommand::Push(arguments) => commands::eval_push::push(context, &arguments),
        EvalCommand::Install(arguments) => commands::eval_install::install(context, &arguments),
    }
}

fn prime(context: &Context, command: PrimeCommand) -> Result<Outcome, Failure> {
    match command {
        PrimeCommand::Doctor(arguments) => commands::prime_doctor::doctor(context, &arguments),
        PrimeCommand::Export(arguments) => commands::prime_export::export(context, &arguments),
        PrimeCommand::Smoke(arguments) => commands::prime_smoke::smoke(context, &arguments),
        PrimeCommand::Push(arguments) => commands::prime_push::push(context, &arguments),
        PrimeCommand::Eval(arguments) => commands::prime_eval::eval(context, &arguments),
        PrimeCommand::Adapters => commands::prime_adapters::list(context),
        PrimeCommand::TrainConfig(arguments) => {
            commands::prime_train_config::train_config(context, &arguments)
        }
        PrimeCommand::Train(arguments) => commands::prime_train::train(context, &arguments),
    }
}

fn report(context: &Context, command: ReportCommand) -> Result<Outcome, Failure> {
    match command {
        ReportCommand::Summary(arguments) => commands::report_summary::summary(context, &arguments),
        ReportCommand::Leaderboard(arguments) => {
            commands::report_leaderboard::leaderboard(context, &arguments)
        }
        ReportCommand::Traces(arguments) => commands::report_traces::traces(context, &arguments),
        ReportCommand::Behavioral(arguments) => commands::report_behavioral::behavioral(context, &arguments),
        ReportCommand::Compare(arguments) => commands::report_compare::compare(context, &arguments),
        ReportCommand::Fields(arguments) => commands::report_fields::fields(context, &arguments),
    }
}

fn ledger(context: &Context, command: LedgerCommand) -> Result<Outcome, Failure> {
    match command {
        LedgerCommand::List(arguments) => commands::ledger_list::list(context, &arguments),
        LedgerCommand::Show(arguments) => commands::ledger_show::show(context, &arguments),
        LedgerCommand::Export(arguments) => commands::ledger_export::export(context, &arguments),
        LedgerCommand::Verify(arguments) => commands::ledger_verify::verify(context, &arguments),
        LedgerCommand::Repair(arguments) => commands::ledger_repair::repair(context, &arguments),
        LedgerCommand::Reindex(arguments) => commands::ledger_reindex::reindex(context, &arguments),
        LedgerCommand::Annotate(arguments) => commands::ledger_annotate::annotate(context, &arguments),
    }
}

fn command_name(command: &Command) -> &'static str {
    match command {
        Command::Quickstart(_) => "quickstart",
        Command::Init(_) => "init",
        Command::Doctor => "doctor",
        Command::Config(ConfigCommand::View(_)) => "config view",
        Command::Config(ConfigCommand::Set(_)) => "config set",
        Command::Config(ConfigCommand::Reset(_)) => "config reset",
        Command::Config(ConfigCommand::Check(_)) => "config check",
        Command::Task(TaskCommand::List(_)) => "task list",
        Command::Task(TaskCommand::Show(_)) => "task show",
        Command::Task(TaskCommand::Validate(_)) => "task validate",
        Command::Task(TaskCommand::New(_)) => "task new",
        Command::Task(TaskCommand::Export(_)) => "task export",
        Command::Task(TaskCommand::Import(_)) => "task import",
        Command::Dataset(DatasetCommand::Create(_)) => "dataset create",
        Command::Dataset(DatasetCommand::List) => "dataset list",
        Command::Dataset(DatasetCommand::Show(_)) => "dataset show",
        Command::Dataset(DatasetCommand::Verify(_)) => "dataset verify",
        Command::Dataset(DatasetCommand::Diff(_)) => "dataset diff",
        Command::Dataset(DatasetCommand::Split(_)) => "dataset split",
        Command::Dataset(DatasetCommand::Export(_)) => "dataset export",
        Command::Dataset(DatasetCommand::Import(_)) => "dataset import",
        Command::Search(_) => "search",
        Command::Generate(GenerateCommand::Task(_)) => "generate task",
        Command::Generate(GenerateCommand::Suite(_)) => "generate suite",
        Command::Generate(GenerateCommand::ListTemplates(_)) => "generate list-templates",
        Command::Generate(GenerateCommand::ValidateTemplate(_)) => "generate validate-template",
        Command::Generate(GenerateCommand::Replay(_)) => "generate replay",
        Command::Template(TemplateCommand::New(_)) => "template new",
        Command::Library(LibraryCommand::Export(_)) => "library export",
        Command::Verify(_) => "verify",
        Command::Audit(_) => "audit",
        Command::Plan(_) => "plan",
        Command::Run(_) | Command::RunLocal(_) => "run",
        Command::Runs(RunsCommand::List(_)) => "runs list",
        Command::Runs(RunsCommand::Status(_)) => "runs status",
        Command::Runs(RunsCommand::Stop(_)) => "runs stop",
        Command::Runs(RunsCommand::Merge(_)) => "runs merge",
        Command::Runs(RunsCommand::Clean(_)) => "runs clean",
        Command::Runs(RunsCommand::Export(_)) => "runs export",
        Command::Runs(RunsCommand::Import(_)) => "runs import",
        Command::Runs(RunsCommand::Keygen(_)) => "runs keygen",
        Command::Models(ModelsCommand::Check(_)) => "models check",
        Command::Gateway(GatewayCommand::Serve(_)) => "gateway serve",
        Command::Import(_) => "import",
        Command::ImportPrimeEval(_) => "import-prime-eval",
        Command::Evaluate(_) => "evaluate",
        Command::Report(ReportCommand::Summary(_)) => "report summary",
        Command::Report(ReportCommand::Leaderboard(_)) => "report leaderboard",
        Command::Report(ReportCommand::Traces(_)) => "report traces",
        Command::Report(ReportCommand::Behavioral(_)) => "report behavioral",
        Command::Report(ReportCommand::Compare(_)) => "report compare",
        Command::Report(ReportCommand::Fields(_)) => "report fields",
        Command::Web(_) => "web",
        Command::Export(ExportCommand::Sft(_)) => "export sft",
        Command::Export(ExportCommand::Preferences(_)) => "export preferences",
        Command::Eval(EvalCommand::Run(_)) => "eval run",
        Command::Eval(EvalCommand::List(_)) => "eval list",
        Command::Eval(EvalCommand::Show(_)) => "eval show",
        Command::Eval(EvalCommand::Compare(_)) => "eval compare",
        Command::Eval(EvalCommand::Push(_)) => "eval push",
        Command::Eval(EvalCommand::Install(_)) => "eval install",
        Command::Env(EnvCommand::Install(_)) => "env install",
        Command::Prime(PrimeCommand::Doctor(_)) => "prime doctor",
        Command::Prime(PrimeCommand::Export(_)) => "prime export",
        Command::Prime(PrimeCommand::Smoke(_)) => "prime smoke",
        Command::Prime(PrimeCommand::Push(_)) => "prime push",
        Command::Prime(PrimeCommand::Eval(_)) => "prime eval",
        Command::Prime(PrimeCommand::Adapters) => "prime adapters",
        Command::Prime(PrimeCommand::TrainConfig(_)) => "prime train-config",
        Command::Prime(PrimeCommand::Train(_)) => "prime train",
        Command::Ledger(LedgerCommand::List(_)) => "ledger list",
        Command::Ledger(LedgerCommand::Show(_)) => "ledger show",
        Command::Ledger(LedgerCommand::Export(_)) => "ledger export",
        Command::Ledger(LedgerCommand::Verify(_)) => "ledger verify",
        Command::Ledger(LedgerCommand::Repair(_)) => "ledger repair",
        Command::Ledger(LedgerCommand::Reindex(_)) => "ledger reindex",
        Command::Ledger(LedgerCommand::Annotate(_)) => "ledger annotate",
        Command::Evolve(EvolveCommand::Init(_)) => "evolve init",
        Command::Evolve(EvolveCommand::Run(_)) => "evolve run",
        Command::Evolve(EvolveCommand::Resume(_)) => "evolve resume",
        Command::Evolve(EvolveCommand::Stop(_)) => "evolve stop",
        Command::Evolve(EvolveCommand::History(_)) => "evolve history",
        Command::Evolve(EvolveCommand::Show(_)) => "evolve show",
        Command::Evolve(EvolveCommand::Diff(_)) => "evolve diff",
        Command::Evolve(EvolveCommand::Rollback(_)) => "evolve rollback",
        Command::Evolve(EvolveCommand::Export(_)) => "evolve export",
        Command::Evolve(EvolveCommand::Report(_)) => "evolve report",
        Command::Swarm(SwarmCommand::Run(_)) => "swarm run",
        Command::Swarm(SwarmCommand::Resume(_)) => "swarm resume",
        Command::Swarm(SwarmCommand::Stop(_)) => "swarm stop",
        Command::Swarm(SwarmCommand::Status(_)) => "swarm status",
        Command::Swarm(SwarmCommand::History(_)) => "swarm history",
        Command::Swarm(SwarmCommand::Best(_)) => "swarm best",
        Command::Schema(_) => "schema",
        Command::Dev(DevCommand::ServeModel(_)) => "dev serve-model",
        Command::AgentEntry(_) => "agent-entry",
        Command::Completions(_) => "completions",
        Command::Man(_) => "man",
    }
}

/// A panic is a bug of ours; it still ends with an envelope and a code of its own.
fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let place = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&place);
    std::panic::set_hook(Box::new(move |panic| {
        if let Ok(mut seen) = seen.lock() {
            *seen = panic.to_string().replace('\n', " ");
        }
    }));
    let result = catch_unwind(AssertUnwindSafe(work));
    drop(std::panic::take_hook());
    result.unwrap_or_else(|_| {
        let seen = place.lock().map(|seen| seen.clone()).unwrap_or_default();
        Err(Failure::internal(
            Problem::error(format!("internal error: {seen}"))
                .why("this is a bug in aec-bench, not in your files")
                .fix("report it with this message and the command line"),
        ))
    })
}

/// What the argument parser has to say: help and version on request, otherwise a usage error.
fn usage(error: &clap::Error, arguments: &[OsString], started: Instant) -> Exit {
    let flag = |name: &str| {
        arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == name)
    };
    let format = if flag("--json") && !flag("--text") { Format::Json } else { Format::Text };
    let printer =
        Printer { format, quiet: false, color: !flag("--no-color"), started, redactor: Redactor::default() };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            help(&printer, &error.render().ansi().to_string())
        }
        _ if format == Format::Json => {
            printer.failure(&typed_command(arguments), &Failure::usage(usage_problem(error)))
        }
        _ => {
            printer.stderr(&error.render().ansi().to_string());
            Exit::Usage
        }
    }
}

fn help(printer: &Printer, text: &str) -> Exit {
    if printer.format == Format::Json {
        let plain = anstream::adapter::strip_str(text).to_string();
        return match Outcome::new(Format::Json, &serde_json::json!({ "text": plain }), String::new) {
            Ok(outcome) => printer.outcome("help", &outcome),
            Err(failure) => printer.failure("help", &failure),
        };
    }
    printer.stdout(text);
    Exit::Success
}

fn usage_problem(error: &clap::Error) -> Problem {
    let rendered = error.render().to_string();
    let first = rendered.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let what = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    let suggestion =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| match error.get(kind) {
                Some(ContextValue::String(near)) => Some(near.clone()),
                Some(ContextValue::Strings(near)) => near.first().cloned(),
                _ => None,
            });
    let fix = match suggestion {
        Some(near) => format!("did you mean `{near}`?"),
        None => "see the command's --help".to_owned(),
    };
    Problem::error(what).fix(fix)
}

/// The commands that were recognised before the mistake.
fn typed_command(arguments: &[OsString]) -> String {
    let tree = command_tree();
    let mut at = &tree;
    let mut names = Vec::new();
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        if let Some(sub) = at.find_subcommand(argument) {
            names.push(sub.get_name().to_owned());
            at = sub;
        }
    }
    names.join(" ")
}

/// The most memory this process has held, as the kernel says.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}

fn start_log(no_color: bool) {
    let color = !no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(std::io::stderr)
        .with_ansi(color && std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(false)
        .init();
}
