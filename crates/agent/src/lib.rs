//! `aec-bench-agent`: the program that goes into rooms and containers, where it is called `aec-bench`.
//!
//! It is the first process of a container, and `agent-entry`, the loop of an agent. Whoever works in a room can read and
//! run it, so it has no templates, no engines and no generator, with which a task could be made again together with its
//! answer. `crates/xtest/tests/tidy.rs` checks what it is made of.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aec_base::env::Env;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_run::agent_entry::{self, EntryReport, Place, Settings};
use aec_sandbox::wire::CONTAINED_ARGUMENT;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const USAGE: &str = "usage: aec-bench agent-entry [--workspace DIR]\n\
    the loop of an agent; variables say what to do (docs/harnesses.md)";
/// The exit codes of `aec-bench`: what was asked for is done, it was done with problems, it cannot be done as asked.
const DONE: u8 = 0;
const FOUND: u8 = 1;
const WRONG: u8 = 2;

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Contained,
    Entry { workspace: PathBuf },
    Version,
    Help,
    Unknown(String),
}

/// Does what the arguments ask for. Returns the exit code.
pub fn run(arguments: &[OsString]) -> u8 {
    match asked(arguments) {
        Asked::Contained => u8::try_from(aec_sandbox::run_contained()).unwrap_or(FOUND),
        Asked::Entry { workspace } => enter(&workspace),
        Asked::Version => say(&format!("aec-bench {VERSION}"), DONE),
        Asked::Help => say(USAGE, DONE),
        Asked::Unknown(word) => complain(
            &[Problem::error(format!("`{word}` is not known here"))
                .why("this is the small program of rooms and containers")
                .fix("use `agent-entry [--workspace DIR]`")],
            WRONG,
        ),
    }
}

fn asked(arguments: &[OsString]) -> Asked {
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or("?")).collect();
    match words.as_slice() {
        [CONTAINED_ARGUMENT, ..] => Asked::Contained,
        ["--version" | "-V"] => Asked::Version,
        [] | ["--help" | "-h", ..] | ["agent-entry", "--help" | "-h"] => Asked::Help,
        ["agent-entry"] => Asked::Entry { workspace: "/workspace".into() },
        ["agent-entry", "--workspace", directory] => Asked::Entry { workspace: directory.into() },
        ["agent-entry", one] if one.starts_with("--workspace=") => {
            Asked::Entry { workspace: one.trim_start_matches("--workspace=").into() }
        }
        ["agent-entry", rest @ ..] => Asked::Unknown(rest.join(" ")),
        [word, ..] => Asked::Unknown((*word).to_owned()),
    }
}

fn enter(workspace: &Path) -> u8 {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env = Env::from_shell(variables);
    match work(&env, workspace) {
        Ok(report) => {
            let done = if report.error.is_none() { DONE } else { FOUND };
            let redactor = Redactor::from_env(&env);
            if let Some(error) = &report.error {
                let error = redactor.scrub(error.clone());
                complain(&[Problem::error(error).fix("see trajectory.jsonl for the calls")], done);
            }
            say(&report.line(), done)
        }
        Err(problems) => complain(&problems, WRONG),
    }
}

fn work(env: &Env, workspace: &Path) -> Result<EntryReport, Vec<Problem>> {
    let settings = Settings::read(env)?;
    let workspace = absolute(workspace)?;
    let redactor = Arc::new(Redactor::from_env(env));
    let model = agent_entry::model(&settings, env).map_err(|problem| vec![problem])?;
    aec_model::transport::allow_many_connections();
    let failed = |error: std::io::Error| vec![Problem::error(format!("the loop cannot work: {error}"))];
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let home = env.get("HOME").unwrap_or("/tmp").to_owned();
    runtime.block_on(agent_entry::run(settings, model, &Place { workspace, home }, redactor)).map_err(failed)
}

fn absolute(directory: &Path) -> Result<PathBuf, Vec<Problem>> {
    let place = std::env::current_dir().unwrap_or_default().join(directory);
    if place.is_dir() {
        return Ok(place);
    }
    let problem = Problem::error(format!("{} is not a directory", directory.display()));
    Err(vec![problem.fix("name the directory to work in with --workspace")])
}

/// Tells the caller something. It may have closed the stream.
fn say(text: &str, exit: u8) -> u8 {
    writeln!(std::io::stdout(), "{text}").ok();
    exit
}

fn complain(problems: &[Problem], exit: u8) -> u8 {
    for problem in problems {
        writeln!(std::io::stderr(), "error: {problem}").ok();
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Asked {
        asked(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn it_does_little_else_than_the_loop() {
        let entry = |workspace: &str| Asked::Entry { workspace: workspace.into() };
        assert_eq!(of("aec-bench agent-entry"), entry("/workspace"));
        assert_eq!(of("aec-bench agent-entry --workspace w"), entry("w"));
        assert_eq!(of("aec-bench agent-entry --workspace=/x/y"), entry("/x/y"));
        assert_eq!((of("aec-bench --version"), of("aec-bench")), (Asked::Version, Asked::Help));
        assert_eq!(of("aec-bench __contained"), Asked::Contained);
        for line in ["aec-bench generate task voltage-drop", "aec-bench __exec", "aec-bench agent-entry -x"] {
            assert!(matches!(of(line), Asked::Unknown(_)), "{line}");
        }
    }
}
