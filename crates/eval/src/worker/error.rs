//! Why a worker, a job or a pool failed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::problem::Problem;

use crate::worker::FAMILY;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    Exited(i32),
    Signal(i32),
    /// It sent something that is not a message; this is the beginning of it.
    Malformed(String),
    /// It did not cancel a job in time, so it was killed.
    Stuck,
    Unknown,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(9) => f.write_str("was killed (signal 9), perhaps because memory ran out"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Malformed(line) => write!(f, "sent something that is not a message: {line}"),
            Self::Stuck => f.write_str("was stuck in the environment's code and had to be ended"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Counted from 0.
    pub worker: usize,
    pub cause: Cause,
    /// The last lines of its output.
    pub last_lines: Vec<String>,
    /// The file with the rest of its output.
    pub log: PathBuf,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} {}", self.worker, self.cause)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFailure {
    pub env_id: String,
    pub error: String,
    pub message: String,
    pub traceback: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Generation,
    Scoring,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Generation => "generating",
            Self::Scoring => "scoring",
        })
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("cannot start {}: {reason}", python.display())]
    Start {
        python: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
    #[error("the worker speaks protocol {found} instead of {expected}")]
    Protocol {
        /// The worker's version.
        found: u32,
        /// This side's version.
        expected: u32,
    },
    #[error("cannot load `{}`: {}: {}", .0.env_id, .0.error, .0.message)]
    Load(Box<LoadFailure>),
    #[error("loading `{env_id}` took longer than {} s", limit.as_secs())]
    LoadTimeout { env_id: String, limit: Duration, log: PathBuf },
    #[error("{0}")]
    Died(Arc<Death>),
    #[error("the environment failed: {error}: {message}")]
    Job { error: String, message: String, traceback: String },
    #[error("{stage} took longer than {} s", limit.as_secs_f64())]
    TimedOut { stage: Stage, limit: Duration },
    #[error("no worker is left after {restarts} restarts{}", last.as_ref().map_or_else(String::new, |death| format!("; {death}")))]
    NoWorkers {
        /// How often workers were restarted.
        restarts: u32,
        last: Option<Arc<Death>>,
    },
    #[error("the workers were shut down")]
    Closed,
    #[error("there is no example {example}: {count} were loaded")]
    NoSuchExample { example: usize, count: usize },
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
}

impl WorkerError {
    pub fn problem(&self) -> Problem {
        let problem = |number: u32| Problem::error(self.to_string()).id(FAMILY.number(number));
        match self {
            Self::Start { .. } => problem(40).fix("name an interpreter that exists with --python"),
            Self::Protocol { .. } => problem(53).fix("install aec-bench again"),
            Self::Load(failure) => {
                problem(43).why(last_lines(&failure.traceback, 6)).fix(load_remedy(&failure.error))
            }
            Self::LoadTimeout { log, .. } => {
                problem(44).fix(format!("look at {} for what it waits for", log.display()))
            }
            Self::Died(death) => death_problem(problem(45), death),
            Self::Job { traceback, .. } => {
                problem(46).why(last_lines(traceback, 6)).fix("correct the environment, or tell its author")
            }
            Self::TimedOut { .. } => {
                problem(47).fix("allow more time, or look at what the environment waits for")
            }
            Self::NoWorkers { last, .. } => match last {
                Some(death) => death_problem(problem(48), death),
                None => problem(48),
            },
            Self::Closed => problem(55),
            Self::NoSuchExample { .. } => problem(54).fix("ask for fewer examples"),
            Self::Write { .. } => problem(56).fix("free some disk space, or allow writing there"),
        }
    }
}

fn death_problem(problem: Problem, death: &Death) -> Problem {
    let problem = problem.fix(format!("its output is in {}", death.log.display()));
    if death.last_lines.is_empty() { problem } else { problem.why(death.last_lines.join("\n")) }
}

fn load_remedy(error: &str) -> &'static str {
    match error {
        "MissingKeyError" => "give the variables it names to the environment",
        "ModuleNotFoundError" | "ImportError" => {
            "install the package it misses into the interpreter of --python"
        }
        _ => "correct its arguments (--env-args), or the environment itself",
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
