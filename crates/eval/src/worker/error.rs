//! Why a worker, a job or a pool failed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aec_base::problem::Problem;

use crate::worker::FAMILY;

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It ended itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signal(i32),
    /// It said something that is no message; this is how it starts.
    Malformed(String),
    /// It did not give up a job in time, so it was ended.
    Stuck,
    /// Nobody knows.
    Unknown,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(9) => f.write_str("was killed (signal 9), perhaps because memory ran out"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Malformed(line) => write!(f, "said something that is no message: {line}"),
            Self::Stuck => f.write_str("was stuck in the environment's code and had to be ended"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

/// The end of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Which worker, counted from 0.
    pub worker: usize,
    /// Why.
    pub cause: Cause,
    /// The last lines of its output.
    pub last_lines: Vec<String>,
    /// Where the rest of its output is.
    pub log: PathBuf,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} {}", self.worker, self.cause)
    }
}

/// Why an environment was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFailure {
    /// The environment.
    pub env_id: String,
    /// The exception's class.
    pub error: String,
    /// Its text.
    pub message: String,
    /// Where it was raised.
    pub traceback: String,
}

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Generating a job.
    Generation,
    /// Scoring a job.
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

/// Why something could not be done with workers.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("cannot start {}: {reason}", python.display())]
    Start {
        /// The interpreter.
        python: PathBuf,
        /// What the system said.
        reason: String,
    },
    #[error("the worker speaks protocol {found} instead of {expected}")]
    Protocol {
        /// What it speaks.
        found: u32,
        /// What this side speaks.
        expected: u32,
    },
    #[error("cannot load `{}`: {}: {}", .0.env_id, .0.error, .0.message)]
    Load(Box<LoadFailure>),
    #[error("loading `{env_id}` took longer than {} s", limit.as_secs())]
    LoadTimeout {
        /// The environment.
        env_id: String,
        limit: Duration,
        /// Where the worker's output is.
        log: PathBuf,
    },
    #[error("{0}")]
    Died(Arc<Death>),
    #[error("the environment failed: {error}: {message}")]
    Job {
        /// The exception's class.
        error: String,
        /// Its text.
        message: String,
        /// Where it was raised.
        traceback: String,
    },
    #[error("{stage} took longer than {} s", limit.as_secs_f64())]
    TimedOut {
        /// What took too long.
        stage: Stage,
        limit: Duration,
    },
    #[error("no worker is left after {restarts} restarts{}", last.as_ref().map_or_else(String::new, |death| format!("; {death}")))]
    NoWorkers {
        /// How often workers were started again.
        restarts: u32,
        /// The last end of a worker.
        last: Option<Arc<Death>>,
    },
    #[error("the workers were shut down")]
    Closed,
    #[error("there is no example {example}: {count} were loaded")]
    NoSuchExample {
        /// The index.
        example: usize,
        /// How many there are.
        count: usize,
    },
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
}

impl WorkerError {
    /// The error as a person reads it.
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
            Self::Write { .. } => problem(56).fix("make room, or allow writing there"),
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
