//! The settings of a run, frozen when it begins, and the directory in which it keeps its state.
//!
//! A run's directory is in `paths.feedback`, below `evolve/` or `swarm/`: its log, the archive as a file for other
//! readers, a lock, generated tasks, and trees of agents. None of it is in the workspace.

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
/// Held by the process that carries the run out.
const LOCK_FILE: &str = "lock";
/// Asks the run to stop.
const STOP_FILE: &str = "stop";
/// The name of the only agent of an evolution.
pub const EVOLVER: &str = "evolve";

/// The settings of a run. They are in the log, so that resuming the run needs nothing else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The agent whose prompt is improved.
    pub solver: Agent,
    /// Tasks that are generated during the run.
    pub generate: Option<Generate>,
    pub tasks: Option<SelectionTable>,
    pub backend: Backend,
    pub sandbox: SandboxChoice,
    /// Seconds that the agent may take, in place of the tasks' own limit.
    pub timeout_override: Option<u32>,
    /// In MiB, in place of the tasks' own limit.
    pub memory_mb: Option<u32>,
    /// Which of several answers of an agent counts.
    #[serde(default = "AnswerOrder::unnamed", skip_serializing_if = "AnswerOrder::is_unnamed")]
    pub answer_order: AnswerOrder,
    pub batch_size: u32,
    pub max_cycles: u32,
    /// Cycles without an acceptance before an evolution widens its search, and again before it ends.
    pub stagnation_window: Option<u32>,
    /// Cycles without progress before an agent of a swarm changes its way of working.
    pub pivot_after: Option<u32>,
    pub strategy: Strategy,
    pub acceptance: Acceptance,
    /// Tasks that are reserved for the end; a sensible number if absent.
    pub holdout: Option<u32>,
    pub max_cost_usd: Option<f64>,
    pub eval_budget_usd: Option<f64>,
    pub max_tokens: Option<u64>,
    /// Share of the dollars after which agents only work on the best candidate.
    pub wind_down_threshold: f64,
    /// Share of the dollars after which no new cycle starts.
    pub final_threshold: f64,
    /// Failures in a row after which an agent is retired.
    pub max_restarts: u32,
    pub concurrency: u32,
    /// The model that proposes changes, for each agent.
    pub evolvers: Vec<Voice>,
    /// The user's hint to each agent.
    pub nudges: Vec<Option<String>>,
    pub classifier: Option<Voice>,
}

impl Settings {
    /// The settings of an evolution. `backend` is the project's, for a file that names none.
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

    /// The settings of a swarm. `tasks` are those of its task path.
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

    pub fn budget(&self) -> BudgetChanged {
        BudgetChanged {
            max_cost_usd: self.max_cost_usd,
            eval_budget_usd: self.eval_budget_usd,
            max_tokens: self.max_tokens,
        }
    }

    /// The settings with the budget of a later session, if one changed it.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<BudgetChanged>) -> Self {
        if let Some(budget) = budget {
            self.max_cost_usd = budget.max_cost_usd;
            self.eval_budget_usd = budget.eval_budget_usd;
            self.max_tokens = budget.max_tokens;
        }
        self
    }

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

    pub fn agents(&self, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Evolution => vec![EVOLVER.to_owned()],
            Kind::Swarm => (0..self.evolvers.len()).map(|seat| format!("agent-{seat}")).collect(),
        }
    }

    /// Most tests of the whole run.
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

/// How often to try to take a run's lock, and the pause after each try.
const CARRY_TRIES: u32 = 5;
const CARRY_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    pub run: Name,
    pub kind: Kind,
    path: PathBuf,
}

/// The lock of a run, held by the process that carries it out.
#[derive(Debug)]
pub struct Carried {
    _lock: File,
}

impl RunDirectory {
    /// Creates the directory of the next run over a workspace: `NAME-1`, `NAME-2` and so on. A run whose directory was
    /// removed may have left labels and records, so the caller passes the names of known experiments.
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

    /// Finds a run by its id or a unique prefix.
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

    pub fn of_both_kinds(feedback: &Path) -> io::Result<Vec<Self>> {
        let mut runs = Self::all(feedback, Kind::Evolution)?;
        runs.extend(Self::all(feedback, Kind::Swarm)?);
        Ok(runs)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of generated tasks.
    pub fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    /// The directory of an agent's own tree.
    pub fn tree(&self, agent: &str) -> PathBuf {
        self.path.join("agents").join(agent)
    }

    /// The experiment that records its trials.
    pub fn experiment(&self) -> Name {
        Name::nearest(&format!("{}-{}", self.kind.name(), self.run))
    }

    /// Takes the lock, so that no other process carries the run out. An old request to stop is forgotten.
    pub fn carry(&self) -> Result<Carried, Vec<Problem>> {
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path.join(LOCK_FILE))
            .map_err(|error| vec![Problem::error(error.to_string()).in_file(&self.path)])?;
        // A process that only checks the lock holds it for a moment.
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

    /// Whether a process is carrying it out.
    pub fn is_carried_out(&self) -> bool {
        File::open(self.path.join(LOCK_FILE)).is_ok_and(|lock| lock.try_lock_shared().is_err())
    }

    /// Asks the process that carries it out to stop. `agent` stops only one agent of a swarm.
    pub fn ask_to_stop(&self, wish: Wish, agent: Option<&str>) -> io::Result<()> {
        let word = if wish == Wish::GiveUp { "give up" } else { "finish" };
        let file = match agent {
            Some(agent) => self.path.join(format!("{STOP_FILE}-{agent}")),
            None => self.path.join(STOP_FILE),
        };
        write_atomic(&file, format!("{word}\n").as_bytes())
    }

    /// The user's request.
    pub fn wish(&self) -> Wish {
        match fs_err::read_to_string(self.path.join(STOP_FILE)).as_deref().map(str::trim) {
            Ok("finish") => Wish::Finish,
            Ok("give up") => Wish::GiveUp,
            _ => Wish::GoOn,
        }
    }

    /// Whether the user asked to stop one agent; the request is deleted.
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
