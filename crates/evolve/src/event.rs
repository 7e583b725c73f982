//! What happens in a run, as its log keeps it. What a run knows is what these add up to; nothing else is kept.

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

/// The version of the format.
pub const LOG_VERSION: u32 = 1;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Which line, from 0.
    pub sequence: u64,
    /// When. Nothing depends on it.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    RunStarted(Box<RunStarted>),
    /// Somebody goes on with it.
    Resumed {
        /// The program's version.
        tool_version: String,
    },
    /// Whoever goes on with it gives it another budget.
    BudgetChanged(BudgetChanged),
    /// A cycle begins: from which candidate, in which way, with which tasks to learn from.
    CycleStarted(CycleStarted),
    /// Candidates were measured.
    Measured(Measured),
    /// A model is about to be asked, which may take so much.
    Asked {
        /// Who asks.
        agent: String,
        cycle: u32,
        role: Role,
        model: String,
        /// Dollars at most; absent when it has no price.
        at_most_usd: Option<f64>,
        at_most_tokens: u64,
    },
    /// It answered, or failed.
    Answered {
        /// Who asked.
        agent: String,
        cycle: u32,
        role: Role,
        /// Dollars; absent when it has no price.
        cost_usd: Option<f64>,
        /// Calls that have no price.
        #[serde(default)]
        unpriced_calls: u64,
        tokens: u64,
    },
    /// A new candidate is there.
    Proposed(Proposed),
    /// There is none.
    NotProposed {
        /// Who tried.
        agent: String,
        cycle: u32,
        /// Why there is none.
        reason: String,
        /// What was proposed and not taken.
        dropped: Vec<Dropped>,
    },
    /// A test begins: what it needs is decided now.
    TestStarted {
        /// Whose candidate.
        agent: String,
        cycle: u32,
        candidate: Digest,
        /// The one that it challenges.
        against: Digest,
        /// What it needs.
        bar: Bar,
    },
    /// What became of a candidate.
    Decided(Decided),
    /// Nothing was accepted for so long that the search is widened.
    Widened {
        /// Who searches.
        agent: String,
        /// From which cycle on.
        cycle: u32,
    },
    /// An agent of a swarm changes its ways.
    Pivoted {
        agent: String,
        /// After which cycle.
        cycle: u32,
        /// How it works now.
        way: Way,
        /// Where it goes on from.
        parent: Digest,
    },
    /// The money of a swarm reaches another phase.
    PhaseChanged { phase: Phase },
    /// An agent of a swarm failed and begins anew.
    AgentFailed {
        agent: String,
        /// Why.
        error: String,
        /// How often in a row.
        failures: u32,
    },
    /// An agent of a swarm works no more, at least until the swarm is resumed.
    AgentRetired {
        agent: String,
        /// Why.
        reason: String,
        /// Whether it gets another try when the swarm is resumed.
        #[serde(default)]
        retired_for: RetiredFor,
    },
    /// The tasks that were kept for the end were used, once.
    HoldoutMeasured {
        /// The candidate that the run began with.
        baseline: Digest,
        best: Digest,
        /// Tasks that count.
        pairs: usize,
        /// Tasks left out.
        left_out: usize,
        /// Mean reward of the first.
        baseline_mean: Option<f64>,
        /// Mean reward of the best.
        best_mean: Option<f64>,
        /// Their difference.
        difference: Option<f64>,
        /// Lower end of its interval.
        low: Option<f64>,
        /// Upper end.
        high: Option<f64>,
    },
    /// The run stops before its end; it can go on.
    Stopped {
        /// Why.
        reason: String,
        /// What trials took until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<Taken>,
    },
    /// The run is over.
    Ended {
        /// Why.
        reason: Ending,
        /// What trials took until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        taken: Option<Taken>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Version of this format.
    pub schema_version: u32,
    /// Its id.
    pub run: Name,
    /// An evolution or a swarm.
    pub kind: Kind,
    /// Where its trials are recorded.
    pub experiment: Name,
    /// The directories that it reads tasks from and records in; absent in logs from before they were kept.
    #[serde(default)]
    pub roots: Option<Roots>,
    /// The workspace, below the project root where it is there.
    pub workspace: String,
    pub workspace_name: Name,
    /// The candidate that it begins with.
    pub baseline: Digest,
    /// Letters that an agent is told.
    pub prompt_letters: usize,
    /// Who searches.
    pub agents: Vec<String>,
    /// Tests at most.
    pub horizon: u32,
    /// What it was told, frozen.
    pub settings: Value,
    /// How the selected tasks are divided, frozen. Logs of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub division: Option<Division>,
    /// Version of the program.
    pub tool_version: String,
}

/// What a run may take in all, from now on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetChanged {
    /// Dollars.
    pub max_cost_usd: Option<f64>,
    /// Dollars for trials.
    pub eval_budget_usd: Option<f64>,
    pub max_tokens: Option<u64>,
}

/// Directories that a run keeps to in all its sessions, below the project root where they are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roots {
    pub tasks: String,
    pub ledger: String,
}

/// An evolution or a swarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One search.
    Evolution,
    /// Many at once.
    Swarm,
}

impl Kind {
    /// The name as written, and of the directory of its runs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evolution => "evolve",
            Self::Swarm => "swarm",
        }
    }
}

/// How a new candidate comes to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A model changes its parent.
    #[default]
    Mutation,
    /// It gets skills of another candidate.
    Crossover,
    /// A model makes something of a candidate that failed.
    Rescue,
}

impl Way {
    /// The name as written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutation => "mutation",
            Self::Crossover => "crossover",
            Self::Rescue => "rescue",
        }
    }

    /// The one that an agent takes up when this one leads nowhere.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Mutation => Self::Crossover,
            Self::Crossover => Self::Rescue,
            Self::Rescue => Self::Mutation,
        }
    }
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// To propose a change.
    Evolver,
    /// To say what kind turns are.
    Classifier,
}

/// Where the money of a swarm stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Everything is tried.
    #[default]
    Exploring,
    /// Only the best is worked on.
    WindingDown,
    /// Nothing new is begun.
    Final,
    /// Nothing is left.
    Exhausted,
}

impl Phase {
    /// The name as written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exploring => "exploring",
            Self::WindingDown => "winding_down",
            Self::Final => "final",
            Self::Exhausted => "exhausted",
        }
    }
}

/// What made an agent of a swarm retire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetiredFor {
    /// Somebody stopped it: it stays so.
    #[default]
    Wish,
    /// It failed too often: what was wrong may have passed when the swarm is resumed.
    Failures,
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All cycles were used.
    Finished,
    /// Nothing was accepted for too long.
    Stagnated,
    /// The budget is used up.
    Budget,
    /// Every agent of a swarm was retired.
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

/// A cycle begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CycleStarted {
    /// Whose.
    pub agent: String,
    /// Which, from 1.
    pub cycle: u32,
    /// How the new candidate comes to be.
    pub way: Way,
    /// Where it goes on from.
    pub parent: Digest,
    /// Whose skills are taken over, or which failure is looked at again.
    pub partner: Option<Digest>,
    /// How much may be changed.
    pub scope: Scope,
    /// The tasks to learn from.
    pub tasks: Vec<TaskRef>,
}

/// A task, and how often it was used before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    /// Its id.
    pub task_id: String,
    /// Its directory below the project root.
    pub task_path: String,
    /// Digest of its files.
    pub revision: Digest,
    /// Which repetition, from 1.
    pub repetition: u32,
}

/// What candidates were measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The parent, to learn from its failures.
    Learn,
    /// The new candidate, on the tasks of its parent.
    Screen,
    /// Both sides of a test, on tasks that it has not had.
    Accept,
    /// The first and the best, on tasks kept for the end.
    Holdout,
}

/// Candidates were measured on the same tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Whose cycle.
    pub agent: String,
    pub cycle: u32,
    pub purpose: Purpose,
    pub tasks: Vec<TaskRef>,
    /// The candidates, each with what was seen on each task.
    pub arms: Vec<Arm>,
    /// What trials took until then. Logs of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// What all attempts at trials of a run took so far, as its budget counts them: over all sessions, with those that were
/// cancelled or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// Dollars, as far as prices are known.
    pub cost_usd: f64,
    pub tokens: u64,
}

/// A candidate at work on tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    pub candidate: Digest,
    /// What was seen, task by task.
    pub seen: Vec<Seen>,
}

/// What was seen of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub trial: Name,
    /// What became of it.
    pub outcome: Outcome,
    /// The reward that counts; absent when the trial says nothing about the agent.
    pub reward: Option<f64>,
    /// Parts of the answer that were wrong, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongField>,
    /// What the agent did or left undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<Sign>,
    pub turns: usize,
    /// Calls of tools.
    pub calls: usize,
    /// Turns that look back at one's own work.
    pub checks: usize,
    pub tokens: u64,
    /// Dollars; absent when a model without a price took part.
    pub cost_usd: Option<f64>,
}

/// A part of an answer that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WrongField {
    pub name: String,
    /// How it was wrong. Values are not told: whoever proposes changes could write them down.
    pub how: Miss,
}

/// How a part of an answer was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// It is not there.
    Missing,
    WrongSign,
    /// It is off by a power of ten, as after a slip with units.
    OffByPowerOfTen,
    FarTooHigh,
    FarTooLow,
    /// Somewhat too high.
    TooHigh,
    /// Somewhat too low.
    TooLow,
    /// Close, and outside the tolerance.
    Close,
    /// It should be 0, or another text or truth.
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

/// What an agent did or left undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// It left no answer.
    NoAnswer,
    /// Its answer could not be read.
    UnreadableAnswer,
    /// A limit ended its work.
    LimitReached,
    /// It did not read files that it was given.
    UnreadInputs,
    /// It did not use tools that it was given.
    UnusedTools,
    /// It left errors of its tools as they were.
    ErrorsLeft,
    /// It repeated calls in vain.
    Loops,
    /// It never looked back at its work.
    NoCheck,
    /// It answered without acting at all.
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

/// A new candidate is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proposed {
    /// Who made it.
    pub agent: String,
    pub cycle: u32,
    pub candidate: Digest,
    /// What it was made from.
    pub parents: Vec<Digest>,
    /// What was changed.
    pub edits: Vec<Edit>,
    /// What was proposed and not taken.
    pub dropped: Vec<Dropped>,
    /// Why, as the model says.
    pub reasoning: String,
    /// What the model wants others to know.
    pub note: Option<String>,
    /// Letters that an agent is told.
    pub prompt_letters: usize,
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Whose.
    pub agent: String,
    pub cycle: u32,
    pub candidate: Digest,
    /// The one that it challenged: its parent where it came to no test.
    pub against: Digest,
    /// Why it is not accepted; absent when it is.
    pub rejection: Option<Rejection>,
    /// How far its test came, or how it stood against its parent.
    pub standing: Standing,
}
