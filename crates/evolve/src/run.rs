//! What a run was told, frozen when it begins, and the directory in which it keeps what it knows.
//!
//! A run lies in `paths.feedback`, below `evolve/` or `swarm/`: its log, the archive as a file for others to read, a
//! lock, tasks that it made, and trees of agents. Nothing of it lies in the workspace.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::settings::Backend;
use aec_base::text;
use aec_judge::settle::order::AnswerOrder;
use aec_run::control::Wish;
use aec_run::experiment::{Agent, Harness};
use aec_run::plan::{Conditions, SandboxChoice};
use aec_task::selection::SelectionTable;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::FAMILY;
use crate::config::{Acceptance, Evolution, Generate, Strategy, Swarm, Voice};
use crate::event::{BudgetChanged, Kind};
use crate::log::LOG_FILE;
use crate::workspace::manifest::Manifest;

pub const ARCHIVE_FILE: &str = "archive.json";
/// Held by whoever carries the run out.
const LOCK_FILE: &str = "lock";
/// Says that the run is to stop.
const STOP_FILE: &str = "stop";
/// The name of the one agent of an evolution.
pub const EVOLVER: &str = "evolve";

/// What a run was told. It is kept in the log, so that whoever resumes the run needs nothing else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The agent whose prompt is improved.
    pub solver: Agent,
    /// Tasks that are made on the fly.
    pub generate: Option<Generate>,
    /// Tasks of the project.
    pub tasks: Option<SelectionTable>,
    /// Where trials run.
    pub backend: Backend,
    /// Whether commands run in rooms.
    pub sandbox: SandboxChoice,
    /// Seconds that the agent may take, instead of the tasks' own.
    pub timeout_override: Option<u32>,
    /// Memory in MiB, instead of the tasks' own.
    pub memory_mb: Option<u32>,
    /// Which of several answers of an agent counts.
    #[serde(default = "AnswerOrder::unnamed", skip_serializing_if = "AnswerOrder::is_unnamed")]
    pub answer_order: AnswerOrder,
    /// Tasks of a batch.
    pub batch_size: u32,
    /// Candidates that each agent tries at most.
    pub max_cycles: u32,
    /// Cycles without an acceptance before an evolution changes its ways, and before it ends.
    pub stagnation_window: Option<u32>,
    /// Cycles without progress before an agent of a swarm changes its ways.
    pub pivot_after: Option<u32>,
    /// How parents are chosen.
    pub strategy: Strategy,
    /// When a candidate is accepted.
    pub acceptance: Acceptance,
    /// Tasks that are kept for the end; absent: as many as make sense.
    pub holdout: Option<u32>,
    /// Dollars in all.
    pub max_cost_usd: Option<f64>,
    /// Dollars for trials.
    pub eval_budget_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    /// Share of the dollars after which only the best is worked on.
    pub wind_down_threshold: f64,
    /// Share of the dollars after which nothing new is begun.
    pub final_threshold: f64,
    /// Failures in a row after which an agent is retired.
    pub max_restarts: u32,
    /// Trials at once.
    pub concurrency: u32,
    /// Who proposes changes, agent by agent.
    pub evolvers: Vec<Voice>,
    /// A word to each agent.
    pub nudges: Vec<Option<String>>,
    /// Says what kind turns are.
    pub classifier: Option<Voice>,
}

impl Settings {
    /// What an evolution is told. `backend` is the project's, for a file that names none.
    pub fn of_evolution(
        told: &Evolution,
        manifest: &Manifest,
        backend: Backend,
        sandbox: SandboxChoice,
    ) -> Self {
        let limits = &told.limits;
        Self {
            solver: told.solver.clone().unwrap_or_else(|| usual_solver(manifest, told.evolver.model.clone())),
            generate: told.generate.clone(),
            tasks: told.tasks.clone(),
            backend: told.backend.unwrap_or(backend),
            sandbox,
            timeout_override: limits.timeout_override.map(|limit| whole_seconds(limit.get())),
            memory_mb: limits.memory_mb.map(aec_task::file::Quantity::get),
            answer_order: AnswerOrder::PRESENT,
            batch_size: told.batch_size,
            max_cycles: told.max_cycles,
            stagnation_window: Some(told.stagnation_window),
            pivot_after: None,
            strategy: told.strategy,
            acceptance: told.acceptance,
            holdout: told.holdout,
            max_cost_usd: told.max_cost_usd,
            eval_budget_usd: None,
            max_tokens: told.max_tokens,
            wind_down_threshold: 1.0,
            final_threshold: 1.0,
            max_restarts: 0,
            concurrency: told.concurrency,
            evolvers: vec![told.evolver.clone()],
            nudges: vec![None],
            classifier: told.classifier.clone(),
        }
    }

    /// What a swarm is told. `tasks` are those of its task path.
    pub fn of_swarm(
        told: &Swarm,
        manifest: &Manifest,
        tasks: Option<SelectionTable>,
        backend: Backend,
        sandbox: SandboxChoice,
    ) -> Self {
        let voice = |model: &String| Voice {
            model: model.clone(),
            temperature: crate::config::DEFAULT_EVOLVER_TEMPERATURE,
            max_tokens: crate::config::DEFAULT_EVOLVER_TOKENS,
        };
        let first = told.models.first().cloned().unwrap_or_default();
        Self {
            solver: told.solver.clone().unwrap_or_else(|| usual_solver(manifest, first)),
            generate: told.generate.clone(),
            tasks,
            backend: told.backend.unwrap_or(backend),
            sandbox,
            timeout_override: told.timeout.map(|limit| whole_seconds(limit.get())),
            memory_mb: None,
            answer_order: AnswerOrder::PRESENT,
            batch_size: told.batch_size,
            max_cycles: told.max_cycles,
            stagnation_window: None,
            pivot_after: Some(told.pivot_after),
            strategy: Strategy::Qd,
            acceptance: told.acceptance,
            holdout: told.holdout,
            max_cost_usd: Some(told.max_cost_usd),
            eval_budget_usd: told.eval_budget_usd,
            max_tokens: told.max_tokens,
            wind_down_threshold: told.wind_down_threshold,
            final_threshold: told.final_threshold,
            max_restarts: told.max_restarts,
            concurrency: told.concurrency,
            evolvers: told.models.iter().map(voice).collect(),
            nudges: told.nudges.clone(),
            classifier: None,
        }
    }

    /// What the run may take.
    pub fn budget(&self) -> BudgetChanged {
        BudgetChanged {
            max_cost_usd: self.max_cost_usd,
            eval_budget_usd: self.eval_budget_usd,
            max_tokens: self.max_tokens,
        }
    }

    /// The same with the budget that a later session was given, if one was.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<BudgetChanged>) -> Self {
        if let Some(budget) = budget {
            self.max_cost_usd = budget.max_cost_usd;
            self.eval_budget_usd = budget.eval_budget_usd;
            self.max_tokens = budget.max_tokens;
        }
        self
    }

    /// Conditions of every trial.
    pub fn conditions(&self) -> Conditions {
        Conditions {
            backend: self.backend,
            sandbox: self.sandbox,
            timeout_override: self.timeout_override,
            memory_mb: self.memory_mb,
            answer_order: self.answer_order,
            ..Conditions::default()
        }
    }

    /// Agents, in order.
    pub fn agents(&self, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Evolution => vec![EVOLVER.to_owned()],
            Kind::Swarm => (0..self.evolvers.len()).map(|seat| format!("agent-{seat}")).collect(),
        }
    }

    /// Tests of the whole run at most.
    pub fn horizon(&self) -> u32 {
        let agents = u32::try_from(self.evolvers.len()).unwrap_or(u32::MAX);
        self.max_cycles.saturating_mul(agents)
    }
}

/// The workspace's harness with a model.
fn usual_solver(manifest: &Manifest, model: String) -> Agent {
    Agent {
        name: Name::nearest("solver"),
        harness: manifest.harness,
        model: Some(model).filter(|_| manifest.harness.needs_model() || manifest.harness == Harness::Command),
        client: None,
        parameters: IndexMap::new(),
        system_prompt_file: None,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a week")]
fn whole_seconds(seconds: f64) -> u32 {
    seconds.ceil().max(1.0) as u32
}

/// How often a run is tried to be taken, and the pause after each try.
const CARRY_TRIES: u32 = 5;
const CARRY_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    /// Its id.
    pub run: Name,
    /// An evolution or a swarm.
    pub kind: Kind,
    path: PathBuf,
}

/// Held by whoever carries a run out.
#[derive(Debug)]
pub struct Carried {
    _lock: File,
}

impl RunDirectory {
    /// Makes the directory of the next run over a workspace: `NAME-1`, `NAME-2` and so on. A run whose directory was
    /// removed may have left labels and records, so whoever knows of these says which experiments there were.
    pub fn create(
        feedback: &Path,
        kind: Kind,
        workspace: &Name,
        is_known: impl Fn(&Name) -> bool,
    ) -> io::Result<Self> {
        const MOST: u32 = 1_000_000;
        let root = feedback.join(kind.name());
        fs_err::create_dir_all(&root)?;
        let taken: Vec<u32> = numbers(&root, workspace)?;
        let mut number = taken.into_iter().max().unwrap_or(0) + 1;
        loop {
            let run = Name::nearest(&format!("{workspace}-{number}"));
            let directory = Self { path: root.join(run.as_str()), run, kind };
            if is_known(&directory.experiment()) && number < MOST {
                number += 1;
                continue;
            }
            match std::fs::create_dir(&directory.path) {
                Ok(()) => return Ok(directory),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The run that a word stands for: its id or a beginning that fits only one.
    pub fn find(feedback: &Path, kind: Kind, word: &str) -> Result<Self, Problem> {
        let runs = Self::all(feedback, kind).map_err(|error| Problem::error(error.to_string()))?;
        if let Some(exact) = runs.iter().find(|run| run.run.as_str() == word) {
            return Ok(exact.clone());
        }
        let fitting: Vec<&Self> =
            runs.iter().filter(|run| !word.is_empty() && run.run.as_str().starts_with(word)).collect();
        if let [only] = fitting.as_slice() {
            return Ok((*only).clone());
        }
        let what = if fitting.is_empty() { "is no run" } else { "fits several runs" };
        let problem = Problem::error(format!("`{}` {what}", text::printable(word))).id(FAMILY.number(34));
        Err(problem.fix(format!("see `aec-bench {} history`", kind.name())))
    }

    /// Every run, sorted by name.
    pub fn all(feedback: &Path, kind: Kind) -> io::Result<Vec<Self>> {
        let root = feedback.join(kind.name());
        let entries = match fs_err::read_dir(&root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().and_then(|name| Name::parse(&name).ok());
            if let Some(run) = name
                && entry.path().join(LOG_FILE).is_file()
            {
                runs.push(Self { run, kind, path: entry.path() });
            }
        }
        runs.sort_by_key(|directory| natural(directory.run.as_str()));
        Ok(runs)
    }

    /// Every run of both kinds.
    pub fn of_both_kinds(feedback: &Path) -> io::Result<Vec<Self>> {
        let mut runs = Self::all(feedback, Kind::Evolution)?;
        runs.extend(Self::all(feedback, Kind::Swarm)?);
        Ok(runs)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where tasks are that it made.
    pub fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    /// Where an agent's own tree is.
    pub fn tree(&self, agent: &str) -> PathBuf {
        self.path.join("agents").join(agent)
    }

    /// The experiment that its trials are recorded in.
    pub fn experiment(&self) -> Name {
        Name::nearest(&format!("{}-{}", self.kind.name(), self.run))
    }

    /// Keeps others from carrying it out. A wish to stop from before is forgotten.
    pub fn carry(&self) -> Result<Carried, Vec<Problem>> {
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path.join(LOCK_FILE))
            .map_err(|error| vec![Problem::error(error.to_string()).in_file(&self.path)])?;
        // Whoever only asks whether it is carried out holds the lock for a moment.
        let is_held = (0..CARRY_TRIES).all(|_| {
            let refused = lock.try_lock().is_err();
            if refused {
                std::thread::sleep(CARRY_PAUSE);
            }
            refused
        });
        if is_held {
            let problem = Problem::error(format!("{} is being carried out", self.run)).id(FAMILY.number(35));
            return Err(vec![problem.fix("wait for it, or stop it with `stop`")]);
        }
        std::fs::remove_file(self.path.join(STOP_FILE)).ok();
        Ok(Carried { _lock: lock })
    }

    /// Whether somebody carries it out.
    pub fn is_carried_out(&self) -> bool {
        File::open(self.path.join(LOCK_FILE)).is_ok_and(|lock| lock.try_lock_shared().is_err())
    }

    /// Asks whoever carries it out to stop. `agent` stops one agent of a swarm alone.
    pub fn ask_to_stop(&self, wish: Wish, agent: Option<&str>) -> io::Result<()> {
        let word = if wish == Wish::GiveUp { "give up" } else { "finish" };
        let file = match agent {
            Some(agent) => self.path.join(format!("{STOP_FILE}-{agent}")),
            None => self.path.join(STOP_FILE),
        };
        write_atomic(&file, format!("{word}\n").as_bytes())
    }

    /// What somebody asked for.
    pub fn wish(&self) -> Wish {
        match fs_err::read_to_string(self.path.join(STOP_FILE)).as_deref().map(str::trim) {
            Ok("finish") => Wish::Finish,
            Ok("give up") => Wish::GiveUp,
            _ => Wish::GoOn,
        }
    }

    /// Whether somebody asked that one agent stops; asking is over once it is heard.
    pub fn hear_stop_of(&self, agent: &str) -> bool {
        std::fs::remove_file(self.path.join(format!("{STOP_FILE}-{agent}"))).is_ok()
    }
}

fn numbers(root: &Path, workspace: &Name) -> io::Result<Vec<u32>> {
    let prefix = format!("{workspace}-");
    let mut numbers = Vec::new();
    for entry in fs_err::read_dir(root)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// A name with its last number as a number, so that 10 comes after 9.
fn natural(name: &str) -> (String, u64) {
    let (stem, number) = name.rsplit_once('-').unwrap_or((name, ""));
    (stem.to_owned(), number.parse().unwrap_or(0))
}
