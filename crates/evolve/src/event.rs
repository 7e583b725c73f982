//! The events of a run, as its log stores them. The state of a run is the sum of its events; nothing else is stored.

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::timestamp::Timestamp;
use aec_judge::verdict::Outcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::division::Division;
use crate::edit::{Dropped, Edit, Scope};
use crate::gate::{Bar, Rejection, Standing};

pub const LOG_VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The number of the line, from 0.
    pub sequence: u64,
    /// Informative only: nothing depends on it.
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    RunStarted(Box<RunStarted>),
    /// A later session continues the run.
    Resumed {
        tool_version: String,
    },
    /// The user gave the run another budget when resuming it.
    BudgetChanged(BudgetChanged),
    /// A cycle begins: from which candidate, in which way, with which tasks to learn from.
    CycleStarted(CycleStarted),
    Measured(Measured),
    /// A model is about to be asked, at this cost at most.
    Asked {
        /// The agent that asks.
        agent: String,
        cycle: u32,
        role: Role,
        model: String,
        /// Absent if the model has no price.
        at_most_usd: Option<f64>,
        at_most_tokens: u64,
    },
    /// The model answered or failed.
    Answered {
        /// The agent that asked.
        agent: String,
        cycle: u32,
        role: Role,
        /// Absent if the model has no price.
        cost_usd: Option<f64>,
        #[serde(default)]
        unpriced_calls: u64,
        tokens: u64,
    },
    Proposed(Proposed),
    /// No new candidate was made.
    NotProposed {
        agent: String,
        cycle: u32,
        reason: String,
        /// Proposed changes that were not made.
        dropped: Vec<Dropped>,
    },
    /// A test begins; its requirements are fixed now.
    TestStarted {
        agent: String,
        cycle: u32,
        candidate: Digest,
        /// The candidate that it challenges.
        against: Digest,
        bar: Bar,
    },
    /// The decision about a candidate.
    Decided(Decided),
    /// The search is widened, because nothing was accepted for a long time.
    Widened {
        agent: String,
        /// The first cycle of the widened search.
        cycle: u32,
    },
    /// An agent of a swarm changes its way of working.
    Pivoted {
        agent: String,
        /// The last cycle before the change.
        cycle: u32,
        way: Way,
        /// The candidate to continue from.
        parent: Digest,
    },
    /// The budget of a swarm reaches another phase.
    PhaseChanged {
        phase: Phase,
    },
    /// An agent of a swarm failed and starts again.
    AgentFailed {
        agent: String,
        error: String,
        /// How often in a row.
        failures: u32,
    },
    /// An agent of a swarm stops working, at least until the swarm is resumed.
    AgentRetired {
        agent: String,
        reason: String,
        /// Whether it gets another try when the swarm is resumed.
        #[serde(default)]
        retired_for: RetiredFor,
    },
    /// The holdout was used, which happens once.
    HoldoutMeasured {
        /// The candidate with which the run began.
        baseline: Digest,
        best: Digest,
        /// Tasks that count.
        pairs: usize,
        left_out: usize,
        baseline_mean: Option<f64>,
        best_mean: Option<f64>,
        difference: Option<f64>,
        /// Lower end of the difference's interval.
        low: Option<f64>,
        high: Option<f64>,
    },
    /// The run stops before its end; it can be resumed.
    Stopped {
        reason: String,
        /// What trials cost until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<Taken>,
    },
    /// The run has ended.
    Ended {
        reason: Ending,
        /// What trials cost until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<Taken>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub schema_version: u32,
    pub run: Name,
    pub kind: Kind,
    /// The experiment that records its trials.
    pub experiment: Name,
    /// The directories from which it reads tasks and to which it records; absent in older logs.
    #[serde(default)]
    pub roots: Option<Roots>,
    /// Relative to the project root if it is below it.
    pub workspace: String,
    pub workspace_name: Name,
    /// The candidate with which it begins.
    pub baseline: Digest,
    /// Letters of the system prompt.
    pub prompt_letters: usize,
    pub agents: Vec<String>,
    /// Most tests of the run.
    pub horizon: u32,
    /// The settings, frozen.
    pub settings: Value,
    /// The division of the selected tasks, frozen. Absent in logs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
    pub tool_version: String,
}

/// The budget of a run, from now on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetChanged {
    pub max_cost_usd: Option<f64>,
    pub eval_budget_usd: Option<f64>,
    pub max_tokens: Option<u64>,
}

/// Directories that all sessions of a run use, relative to the project root if they are below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roots {
    pub tasks: String,
    pub ledger: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Evolution,
    Swarm,
}

impl Kind {
    /// The name in files, and of the directory of its runs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evolution => "evolve",
            Self::Swarm => "swarm",
        }
    }
}

/// How a new candidate is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A model changes the parent.
    #[default]
    Mutation,
    /// The parent gets skills of another candidate.
    Crossover,
    /// A model repairs a candidate that failed.
    Rescue,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutation => "mutation",
            Self::Crossover => "crossover",
            Self::Rescue => "rescue",
        }
    }

    /// The next way of working for an agent that makes no progress.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Mutation => Self::Crossover,
            Self::Crossover => Self::Rescue,
            Self::Rescue => Self::Mutation,
        }
    }
}

/// The task of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Evolver,
    /// Classifies turns.
    Classifier,
}

/// How far the budget of a swarm is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Agents try everything.
    #[default]
    Exploring,
    /// Agents only work on the best candidate.
    WindingDown,
    /// No new cycle starts.
    Final,
    Exhausted,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exploring => "exploring",
            Self::WindingDown => "winding_down",
            Self::Final => "final",
            Self::Exhausted => "exhausted",
        }
    }
}

/// Why an agent of a swarm retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetiredFor {
    /// The user stopped it: it stays retired.
    #[default]
    Wish,
    /// It failed too often: resuming the swarm gives it another try, because the cause may be gone.
    Failures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Finished,
    Stagnated,
    Budget,
    Retired,
}

impl Ending {
    pub fn words(self) -> &'static str {
        match self {
            Self::Finished => "all cycles were used",
            Self::Stagnated => "nothing was accepted for too long",
            Self::Budget => "the budget is used up",
            Self::Retired => "every agent was retired",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CycleStarted {
    pub agent: String,
    /// Counted from 1.
    pub cycle: u32,
    /// How the new candidate is made.
    pub way: Way,
    /// The candidate to continue from.
    pub parent: Digest,
    /// The candidate that gives its skills, or the failed one to repair.
    pub partner: Option<Digest>,
    pub scope: Scope,
    /// The tasks to learn from.
    pub tasks: Vec<TaskRef>,
}

/// A task, and how often it was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    /// The task's id.
    pub task_id: String,
    /// The task's directory below the project root.
    pub task_path: String,
    /// Digest of the task's files.
    pub revision: Digest,
    /// The number of the repetition, from 1.
    pub repetition: u32,
}

/// Why candidates were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The parent, to learn from its failures.
    Learn,
    /// The new candidate, on the tasks of its parent.
    Screen,
    /// Both sides of a test, on tasks that are new to it.
    Accept,
    /// The first and the best candidate, on the holdout.
    Holdout,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub agent: String,
    pub cycle: u32,
    pub purpose: Purpose,
    pub tasks: Vec<TaskRef>,
    /// The candidates, each with what was seen on each task.
    pub arms: Vec<Arm>,
    /// What trials cost until then. Absent in logs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// The cost of all attempts at trials of a run so far, as its budget counts them: over all sessions, including
/// cancelled and repeated ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
    pub tokens: u64,
}

/// The trials of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    pub candidate: Digest,
    /// One entry per task.
    pub seen: Vec<Seen>,
}

/// The facts of a trial that the log keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub trial: Name,
    pub outcome: Outcome,
    /// The reward that counts; absent if the trial says nothing about the agent.
    pub reward: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongField>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<Sign>,
    pub turns: usize,
    pub calls: usize,
    /// Turns in which the agent checks its own work.
    pub checks: usize,
    pub tokens: u64,
    /// Absent if a model without a price took part.
    pub cost_usd: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WrongField {
    pub name: String,
    /// How it was wrong. The values are left out, because an evolver could copy them into a prompt.
    pub how: Miss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    Missing,
    WrongSign,
    /// It is off by a power of ten, as after a mistake with units.
    OffByPowerOfTen,
    FarTooHigh,
    FarTooLow,
    TooHigh,
    TooLow,
    /// Close, but outside the tolerance.
    Close,
    /// It should be 0, or is another text or truth value.
    Different,
}

impl Miss {
    pub fn words(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::WrongSign => "wrong sign",
            Self::OffByPowerOfTen => "off by a power of ten",
            Self::FarTooHigh => "far too high",
            Self::FarTooLow => "far too low",
            Self::TooHigh => "too high",
            Self::TooLow => "too low",
            Self::Close => "close but outside the tolerance",
            Self::Different => "a different value",
        }
    }
}

/// What an agent did or failed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    NoAnswer,
    UnreadableAnswer,
    /// A limit ended the trial.
    LimitReached,
    UnreadInputs,
    UnusedTools,
    /// It ignored errors of its tools.
    ErrorsLeft,
    /// It repeated calls without effect.
    Loops,
    /// It never checked its work.
    NoCheck,
    /// It answered without any action.
    NothingDone,
}

impl Sign {
    pub fn words(self) -> &'static str {
        match self {
            Self::NoAnswer => "left no answer",
            Self::UnreadableAnswer => "left an answer that cannot be read",
            Self::LimitReached => "was ended by a limit (turns, tokens or time)",
            Self::UnreadInputs => "did not read files that it was given",
            Self::UnusedTools => "did not use tools that it was given",
            Self::ErrorsLeft => "left errors of its tools as they were",
            Self::Loops => "repeated calls in vain",
            Self::NoCheck => "never looked back at its work",
            Self::NothingDone => "answered without acting at all",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposed {
    pub agent: String,
    pub cycle: u32,
    pub candidate: Digest,
    pub parents: Vec<Digest>,
    pub edits: Vec<Edit>,
    /// Proposed changes that were not made.
    pub dropped: Vec<Dropped>,
    /// The model's reasoning.
    pub reasoning: String,
    /// The model's note to other agents.
    pub note: Option<String>,
    /// Letters of the system prompt.
    pub prompt_letters: usize,
}

/// The decision about a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    pub agent: String,
    pub cycle: u32,
    pub candidate: Digest,
    /// The candidate that it challenged, or its parent if it was not tested.
    pub against: Digest,
    /// Absent if it was accepted.
    pub rejection: Option<Rejection>,
    /// The state of its test, or of the comparison with its parent.
    pub standing: Standing,
}
