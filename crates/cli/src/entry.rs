//! From the raw arguments to an exit code: parsing, dispatch, printing, and catching panics.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::groups::group_help;
use crate::output::{Format, LogWriter, Outcome, Printer};

/// Runs the command that the arguments name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let started = Instant::now();
    let exit = match parse(arguments) {
        Ok((parsed, name)) => dispatch(parsed, &name, started),
        Err(error) => usage(&error, arguments, started),
    };
    ExitCode::from(exit as u8)
}

/// The whole command tree, with its help in groups.
pub(crate) fn command_tree() -> clap::Command {
    group_help(Arguments::command())
}

/// The parsed arguments, and the full name of the command.
fn parse(arguments: &[OsString]) -> Result<(Arguments, String), clap::Error> {
    let mut tree = command_tree();
    let matches = tree.try_get_matches_from_mut(arguments)?;
    let parsed = Arguments::from_arg_matches(&matches)?;
    if parsed.global.json && parsed.global.text {
        let message = "--json and --text cannot be used together";
        return Err(tree.error(ErrorKind::ArgumentConflict, message));
    }
    let mut names = Vec::new();
    let mut at = &matches;
    while let Some((name, further)) = at.subcommand() {
        names.push(name);
        at = further;
    }
    // `run-local` is an alias of `run`.
    let name = if names == ["run-local"] { "run".to_owned() } else { names.join(" ") };
    Ok((parsed, name))
}

fn dispatch(arguments: Arguments, name: &str, started: Instant) -> Exit {
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
    let result = guarded(|| command.execute(&context));
    printer.redactor = context.redactor();
    tracing::debug!(seconds = started.elapsed().as_secs_f64(), peak_memory = peak_memory(), "done");
    let mut outcome = match result {
        Ok(outcome) => outcome,
        Err(failure) => return printer.failure(name, &failure),
    };
    let exit = printer.outcome(name, &outcome);
    let Some(service) = outcome.take_service().filter(|_| exit != Exit::Environment) else { return exit };
    match guarded(service) {
        Ok(()) => exit,
        // The only envelope of this command has already been printed.
        Err(failure) => {
            printer.complain(&failure);
            failure.exit
        }
    }
}

/// A panic is a bug of aec-bench; it still ends with an envelope and its own exit code.
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

/// Prints the parser's message: help and version on request, otherwise a usage error.
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
    printer.help(text)
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

/// The commands that the parser recognised before the mistake.
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

/// The peak memory of this process, as the kernel reports it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}

fn start_log(no_color: bool) {
    let color = !no_color && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(|| LogWriter)
        .with_ansi(color && std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(false)
        .init();
}
