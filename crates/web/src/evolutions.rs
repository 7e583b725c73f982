//! Runs of evolution and swarms: finds them, and reads each log once for each of its states. Differences of candidates
//! come from their workspace, which is opened only if that writes nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aec_base::digest::Digest;
use aec_base::file::{Links, open_regular};
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::timestamp::Timestamp;
use aec_evolve::event::Kind;
use aec_evolve::log::{self, LOG_FILE};
use aec_evolve::run::RunDirectory;
use aec_evolve::view::{CandidateView, RunState, View};
use aec_evolve::workspace::Workspace;
use aec_evolve::workspace::candidate::Candidate;
use aec_evolve::workspace::diff::diff;
use serde::{Deserialize, Serialize};

use crate::respond::Trouble;
use crate::site::Site;
use crate::words;

pub(crate) const KINDS: [Kind; 2] = [Kind::Evolution, Kind::Swarm];

/// A longer log takes too long for a page.
const LOG_LIMIT: u64 = 64 * 1024 * 1024;

/// The first line of a log contains the settings of the run.
const FIRST_LINE: u64 = 1024 * 1024;

/// How long a page may spend on new differences; the remaining ones come with the next load.
const PATIENCE: Duration = Duration::from_millis(1500);

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) state: RunState,
    pub(crate) cycles: usize,
    pub(crate) candidates: usize,
    pub(crate) accepted: usize,
    pub(crate) best: Name,
    pub(crate) best_mean: Option<f64>,
    /// Dollars, and what they leave out, in words.
    pub(crate) cost: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Progress {
    pub(crate) state: &'static str,
    pub(crate) cycles: usize,
    pub(crate) candidates: usize,
    pub(crate) accepted: usize,
    pub(crate) tests: u32,
    pub(crate) horizon: u32,
    pub(crate) best: Name,
    pub(crate) best_mean: Option<f64>,
    pub(crate) cost_usd: f64,
    /// Trials and calls without a known price, which the dollars leave out.
    pub(crate) unpriced: u64,
    pub(crate) tokens: u64,
    /// The same in words.
    pub(crate) counts: String,
    pub(crate) agents: Vec<Searcher>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Searcher {
    pub(crate) name: String,
    pub(crate) cycle: u32,
    pub(crate) doing: String,
}

/// Why changes of candidates are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// All are shown.
    Nothing,
    /// The workspace does not exist or is not versioned, or there is no git.
    Workspace,
    /// They were not made in time.
    Late,
}

pub(crate) fn best(view: &View) -> Option<&CandidateView> {
    view.candidates.iter().find(|candidate| candidate.name == view.best)
}

/// Candidates that a run made: all except the first one.
pub(crate) fn made(view: &View) -> usize {
    view.candidates.len().saturating_sub(1)
}

impl Progress {
    pub(crate) fn of(view: &View) -> Self {
        let best_mean = best(view).and_then(|best| best.mean);
        Self {
            state: view.state.name(),
            cycles: view.cycles.len(),
            candidates: made(view),
            accepted: view.accepted,
            tests: view.tests,
            horizon: view.horizon,
            best: view.best.clone(),
            best_mean,
            cost_usd: view.cost.total_usd,
            unpriced: view.cost.unpriced_trials + view.cost.unpriced_calls,
            tokens: view.cost.tokens,
            counts: format!(
                "{} over · {} of {} accepted · {} of at most {} · best {} with {} · {} · {} tokens",
                aec_base::text::count(view.cycles.len(), "cycle"),
                words::count(view.accepted),
                aec_base::text::count(made(view), "candidate"),
                aec_base::text::count(view.tests as usize, "test"),
                words::count(view.horizon as usize),
                view.best,
                words::share(best_mean),
                view.cost.total(),
                words::maybe(Some(view.cost.tokens)),
            ),
            agents: view
                .agents
                .iter()
                .take(crate::pages::ROWS)
                .map(|agent| Searcher {
                    name: agent.name.clone(),
                    cycle: agent.cycle,
                    doing: agent.doing.clone(),
                })
                .collect(),
        }
    }
}

/// The beginning of a log, as far as a list needs it.
#[derive(Deserialize)]
struct First {
    at: Timestamp,
}

impl Site {
    pub(crate) fn evolution_runs(&self) -> io::Result<Vec<RunDirectory>> {
        let mut runs = Vec::new();
        for kind in KINDS {
            runs.extend(RunDirectory::all(&self.places.feedback, kind)?);
        }
        Ok(runs)
    }

    /// The run that an address names. It is searched among the existing ones; the name never becomes a path.
    pub(crate) fn evolution_run(&self, kind: &str, run: &str) -> Result<RunDirectory, Trouble> {
        let runs = self.evolution_runs().map_err(|error| {
            Trouble::internal(
                format!("the runs cannot be read: {error}"),
                "check the permissions of `feedback`",
            )
        })?;
        let found = runs.into_iter().find(|known| known.kind.name() == kind && known.run.as_str() == run);
        found.ok_or_else(|| {
            let shown = aec_base::text::printable(run);
            Trouble::missing(
                format!("there is no run `{shown}` of this kind"),
                "the page Evolution lists them, and `aec-bench evolve history` too",
            )
        })
    }

    /// The run whose trials an experiment contains.
    pub(crate) fn evolution_of(&self, experiment: &Name) -> Option<RunDirectory> {
        self.evolution_runs().ok()?.into_iter().find(|run| run.experiment() == *experiment)
    }

    /// A run without differences.
    pub(crate) fn evolution(&self, directory: &RunDirectory) -> Result<Arc<View>, Vec<Problem>> {
        let Looked { state, running } = look(directory)?;
        self.evolutions.get(&key(directory), state, || {
            let entries = log::entries(directory.path())?;
            let none = || vec![Problem::error("the run has no beginning").in_file(directory.path())];
            View::of(&entries, running).ok_or_else(none)
        })
    }

    pub(crate) fn evolution_line(&self, directory: &RunDirectory) -> Result<Arc<Line>, Vec<Problem>> {
        let state = look(directory)?.state;
        self.evolution_lines.get(&key(directory), state, || {
            let view = self.evolution(directory)?;
            Ok(Line {
                state: view.state,
                cycles: view.cycles.len(),
                candidates: made(&view),
                accepted: view.accepted,
                best: view.best.clone(),
                best_mean: best(&view).and_then(|best| best.mean),
                cost: view.cost.total(),
            })
        })
    }

    /// The same, if it is in the cache.
    pub(crate) fn known_evolution_line(&self, directory: &RunDirectory) -> Option<Arc<Line>> {
        self.evolution_lines.known(&key(directory), look(directory).ok()?.state)
    }

    /// Adds the differences of some candidates to their first parents.
    pub(crate) fn add_differences(&self, view: &mut View, wanted: &[Name]) -> Missing {
        let ids: HashMap<Name, Digest> =
            view.candidates.iter().map(|known| (known.name.clone(), known.candidate)).collect();
        let until = Instant::now() + PATIENCE;
        let mut workspace = None;
        let mut loaded: HashMap<Digest, Option<Candidate>> = HashMap::new();
        let mut missing = Missing::Nothing;
        for candidate in view.candidates.iter_mut().filter(|candidate| wanted.contains(&candidate.name)) {
            let Some(parent) = candidate.parents.first().and_then(|parent| ids.get(parent)) else { continue };
            let (parent, child) = (*parent, candidate.candidate);
            // Both are named by their content, so their difference never changes.
            let key = format!("{} {parent} {child}", view.workspace);
            let late = Instant::now() >= until;
            let made = self.differences.get(&key, 0, || {
                if late {
                    return Err(Missing::Late);
                }
                let workspace = workspace.get_or_insert_with(|| self.workspace(&view.workspace));
                let workspace = workspace.as_ref().ok_or(Missing::Workspace)?;
                for id in [parent, child] {
                    loaded.entry(id).or_insert_with(|| workspace.load(id).ok());
                }
                match (loaded.get(&parent), loaded.get(&child)) {
                    (Some(Some(parent)), Some(Some(child))) => Ok(diff(parent, child)),
                    _ => Err(Missing::Workspace),
                }
            });
            match made {
                Ok(made) => candidate.diff = Some((*made).clone()),
                Err(why) => missing = why,
            }
        }
        missing
    }

    /// A workspace to read. One that is not versioned is not opened, because that would start to version it.
    fn workspace(&self, path: &str) -> Option<Workspace> {
        let git = self.places.git.clone()?;
        let path = self.places.root.join(path);
        path.join(".git").symlink_metadata().ok()?;
        Workspace::open(git, &path).ok()
    }
}

fn key(directory: &RunDirectory) -> String {
    format!("{} {}", directory.kind.name(), directory.run)
}

/// When a run began, from the first line of its log.
pub(crate) fn started(directory: &RunDirectory) -> Option<Timestamp> {
    let (file, _) = open_regular(&directory.path().join(LOG_FILE), u64::MAX, Links::Refuse).ok()?;
    let mut line = String::new();
    BufReader::new(file).take(FIRST_LINE).read_line(&mut line).ok()?;
    aec_base::json::from_str::<First>(&line).ok().map(|first| first.at)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    /// Changes when the log does, or when a process starts or stops carrying the run out.
    pub(crate) state: u64,
    /// Whether a process is carrying it out.
    running: bool,
}

/// Gets the state of a run without reading its log.
pub(crate) fn look(directory: &RunDirectory) -> Result<Looked, Vec<Problem>> {
    let path = directory.path().join(LOG_FILE);
    let found = std::fs::symlink_metadata(&path).map_err(|error| {
        vec![Problem::error(format!("the log of the run cannot be read: {error}")).in_file(&path)]
    })?;
    if found.len() > LOG_LIMIT {
        let what = format!("its log has {}, which takes too long for a page", words::bytes(found.len()));
        let fix =
            format!("run `aec-bench evolve report {}/{} --html FILE`", directory.kind.name(), directory.run);
        return Err(vec![Problem::error(what).fix(fix).in_file(&path)]);
    }
    let mut hasher = DefaultHasher::new();
    (found.mtime(), found.mtime_nsec(), found.len(), found.ino()).hash(&mut hasher);
    let running = is_carried_out(directory);
    running.hash(&mut hasher);
    Ok(Looked { state: hasher.finish(), running })
}

/// Whether a process is carrying a run out. Checking holds the run's lock for a moment, so two threads must not check
/// at once: each would mistake the other for such a process.
fn is_carried_out(directory: &RunDirectory) -> bool {
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    directory.is_carried_out()
}
