//! The examples of a native environment: which tasks, in which order, under which limits.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aec_base::content::ContentStore;
use aec_base::problem::Problem;
use aec_base::secret::Redactor;
use aec_base::text::printable;
use aec_container::Purpose;
use aec_judge::judge::{Isolation, JudgeLimits};
use aec_judge::probe::References;
use aec_judge::scorer::{self, Answers};
use aec_judge::verifier::VerifierFiles;
use aec_package::interaction::{HarnessMode, Interaction};
use aec_package::manifest::{PackagedFile, PackagedTask};
use aec_package::select::{SMALLEST_SPLIT, place, select};
use aec_run::workspace::WORKSPACE;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::LazyJudge;
use super::arguments::{Arguments, Confinement};
use super::driven::{Driver, Keeping};
use super::source::PackageSource;
use super::tools::{EnvironmentTools, Offered};
use super::verdict::{LoadedVerifier, RolloutJudge, Terms};
use super::workspace::{GivenFile, WorkspaceSetup};
use crate::FAMILY;

pub struct NativeSetup<'a> {
    pub source: PackageSource,
    /// The arguments of `load_environment`.
    pub env_args: &'a Map<String, Value>,
    pub extra_env_kwargs: &'a Map<String, Value>,
    /// The default split: `train` for packages, as in Python.
    pub split: &'static str,
    pub num_examples: Option<usize>,
    /// The seed for shuffling the examples.
    pub shuffle: Option<i64>,
    /// Judges tasks whose verifier has no native equivalent.
    pub judge: LazyJudge,
    /// Where submissions are kept while a verifier in a room judges them.
    pub contents: ContentStore,
    pub redactor: Arc<Redactor>,
    /// Whether commands run in rooms. If not, the arguments cannot turn rooms on.
    pub isolation: Isolation,
    /// Seconds that a rollout may take; absent for the tasks' own limits.
    pub timeout: Option<f64>,
    /// Whether to keep the verifier's details about the parts of an answer.
    pub details: bool,
}

pub struct NativeEnvironment {
    pub name: String,
    pub version: String,
    /// How the model works on all of its tasks: in one turn, or with tools.
    pub lane: Interaction,
    pub examples: Vec<Arc<Example>>,
    /// Whether the splits train and eval share tasks.
    pub overlap: bool,
    /// A reward of at least this counts as a success.
    pub pass_threshold: f64,
    /// Digest of everything that determines what is asked and how it is judged.
    pub digest: aec_base::digest::Digest,
    pub(super) bench: RolloutJudge,
    /// A harness that drives rollouts in place of the environment's own tools.
    pub(super) driver: Option<Driver>,
    pub(super) metrics: Vec<Arc<str>>,
    pub(super) tools: EnvironmentTools,
    source: PackageSource,
    contents: Mutex<HashMap<String, Arc<[u8]>>>,
}

pub struct Example {
    /// Its index in the package, the same under every filter.
    pub example_id: u64,
    pub task: PackagedTask,
    /// Its id, which is the answer in rows.
    pub(super) answer: Arc<str>,
    pub(super) system_prompt: String,
    /// The conversation at the start, as rows have it.
    pub prompt: Arc<RawValue>,
    /// Recorded with every rollout.
    pub info: Arc<RawValue>,
    pub(super) lane: Interaction,
    pub(super) tools: Arc<Offered>,
    pub(super) max_turns: u32,
    pub(super) max_total_tokens: Option<u64>,
    pub(super) timeout: Duration,
    pub(super) isolation: Isolation,
    command_timeout: Duration,
    ready: OnceLock<Result<Ready, String>>,
}

impl std::fmt::Debug for NativeEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeEnvironment").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Example {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Example").field("task_id", &self.task.task_id).finish_non_exhaustive()
    }
}

/// Read when a rollout first needs it.
#[derive(Clone)]
pub(super) struct Ready {
    pub(super) terms: Arc<Terms>,
    pub(super) workspace: Arc<WorkspaceSetup>,
}

#[derive(Default)]
struct Replaced {
    max_turns: Option<u32>,
    system_prompt: Option<String>,
    timeout: Option<f64>,
    pass_threshold: Option<f64>,
}

impl NativeEnvironment {
    /// Selects the tasks and fixes their limits; refuses now whatever could only fail later.
    pub fn load(setup: NativeSetup<'_>) -> Result<Self, Vec<Problem>> {
        let arguments = Arguments::read(setup.env_args, setup.split)?;
        let replaced = replaced(setup.extra_env_kwargs)?;
        let manifest = &setup.source.manifest;
        let slice = select(manifest, &arguments.ask());
        let name = manifest.name.clone();
        if slice.tasks.is_empty() {
            let problem = Problem::error(format!("no task of {name} is selected")).id(FAMILY.number(62));
            return Err(vec![problem.fix("ask for another split or difficulty")]);
        }
        let driver = Driver::load(&arguments, &slice.tasks, &setup.source.tasks)?;
        let lane = choose_lane(arguments.harness.unwrap_or(manifest.harness), &slice.tasks)?;
        let positions: HashMap<&str, u64> =
            manifest.tasks.iter().zip(0..).map(|(task, at)| (task.task_id.as_str(), at)).collect();
        let mut tasks = slice.tasks.clone();
        if let Some(seed) = setup.shuffle {
            tasks.sort_by_cached_key(|task| place(seed, &task.task_id));
        }
        if let Some(most) = setup.num_examples {
            tasks.truncate(most);
        }
        let tools = EnvironmentTools::of(slice.tasks.iter().copied());
        let terms = ExampleTerms {
            tools: &tools,
            arguments: &arguments,
            replaced: &replaced,
            lane,
            harness: driver.as_ref().map_or_else(|| lane.name(), Driver::name),
            overlap: slice.overlap,
            timeout: setup.timeout,
            isolation: setup.isolation,
            source: &setup.source,
        };
        let examples: Vec<Arc<Example>> = tasks
            .iter()
            .map(|task| {
                let at = positions.get(task.task_id.as_str()).copied().unwrap_or_default();
                Arc::new(terms.example(task, at))
            })
            .collect();
        let mut hasher = aec_base::digest::Hasher::default();
        for example in &examples {
            hasher.part(example.task.task_id.as_bytes());
            hasher.part(example.task.task_revision.hex().as_bytes());
            hasher.part(example.prompt.get().as_bytes());
            hasher.part(example.info.get().as_bytes());
        }
        Ok(Self {
            name,
            version: manifest.version.clone(),
            lane,
            overlap: slice.overlap,
            pass_threshold: replaced.pass_threshold.unwrap_or(0.5),
            digest: hasher.finish(),
            bench: RolloutJudge {
                judge: setup.judge,
                contents: setup.contents,
                redactor: setup.redactor,
                details: setup.details,
            },
            examples,
            metrics: super::rollout::metric_names(&tools, lane, driver.is_some()),
            tools,
            driver,
            source: setup.source,
            contents: Mutex::default(),
        })
    }

    /// Whether the native scorer judges everything. A rollout that ran commands must be frozen first, but few do.
    pub fn scores_at_once(&self) -> bool {
        self.examples.iter().all(|example| is_native(&example.task))
    }

    /// The tools of its examples as metadata has them, if all examples have the same.
    pub fn tool_definitions(&self) -> Option<Value> {
        let has_tools = self.lane == Interaction::Stateful && self.driver.is_none();
        let first = self.examples.first().filter(|_| has_tools)?;
        let same = self.examples.iter().all(|example| Arc::ptr_eq(&example.tools, &first.tools));
        serde_json::to_value(first.tools.set.offers()).ok().filter(|_| same)
    }

    pub fn warnings(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.overlap {
            let what = format!(
                "{} has fewer than {SMALLEST_SPLIT} tasks here, or all of them are on one side, so every split has all of them",
                self.name
            );
            let problem = Problem::note(what).id(FAMILY.number(63));
            problems.push(problem.fix("do not train on one split and report another"));
        }
        problems
    }

    pub(super) fn keeping(&self) -> Keeping {
        Keeping {
            order: self.source.manifest.answer_order,
            contents: self.bench.contents.clone(),
            redactor: Arc::clone(&self.bench.redactor),
        }
    }

    /// What a rollout of an example needs, read at the first request.
    pub(super) fn ready(&self, example: &Example) -> Result<Ready, String> {
        example.ready.get_or_init(|| self.read(example).map_err(|error| error.to_string())).clone()
    }

    fn read(&self, example: &Example) -> std::io::Result<Ready> {
        let task = &example.task;
        let given = task.workspace.iter().map(|file| {
            let content = self.content(file)?;
            Ok(GivenFile { path: file.path.clone(), content })
        });
        let given: Arc<[GivenFile]> = given.collect::<std::io::Result<Vec<_>>>()?.into();
        let mut files = BTreeMap::new();
        for file in &task.verifier.files {
            files.insert(file.path.clone(), (self.content(file)?.to_vec(), file.executable));
        }
        let files = VerifierFiles::from_files(files);
        if files.digest != task.verifier.digest {
            return Err(std::io::Error::other("the files of its verifier are not those of the manifest"));
        }
        let verifier = if files.is_standard() {
            let answers = Answers::parse(files.get("answers.json").unwrap_or_default());
            LoadedVerifier::Standard(
                answers.map_err(|error| std::io::Error::other(format!("answers.json: {error}")))?,
            )
        } else {
            LoadedVerifier::Own(files)
        };
        let limits = &task.limits;
        // Packages have no golden answers: whoever installs one could read them.
        let copies = given.iter().map(|file| (file.path.clone(), Arc::clone(&file.content)));
        let references = match &verifier {
            LoadedVerifier::Standard(_) => References::default(),
            LoadedVerifier::Own(_) => References::minimal(copies, &task.output_path),
        };
        Ok(Ready {
            terms: Arc::new(Terms {
                verifier,
                limits: JudgeLimits {
                    timeout_sec: limits.verifier_timeout_sec,
                    cpus: limits.cpus,
                    memory_mb: limits.memory_mb,
                    storage_mb: limits.storage_mb,
                    image: None,
                    purpose: Purpose::default(),
                },
                order: self.source.manifest.answer_order,
                output_path: task.output_path.clone(),
                outputs: task.outputs.clone().unwrap_or_default(),
                given: Arc::clone(&given),
                references,
            }),
            workspace: Arc::new(WorkspaceSetup {
                given,
                cpus: limits.cpus,
                memory_mb: limits.memory_mb,
                storage_mb: limits.storage_mb,
                command_timeout: example.command_timeout,
                isolation: example.isolation,
                judge: LazyJudge::clone(&self.bench.judge),
            }),
        })
    }

    /// Tasks share most files of their verifiers; each is kept once.
    fn content(&self, file: &PackagedFile) -> std::io::Result<Arc<[u8]>> {
        let known = |contents: &HashMap<String, Arc<[u8]>>| contents.get(&file.sha256).cloned();
        if let Some(content) = known(&self.contents.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(content);
        }
        let content = self.source.content(file)?;
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.insert(file.sha256.clone(), Arc::clone(&content));
        Ok(content)
    }
}

/// Whether the native scorer judges the task. A package may carry the standard verifier of an earlier revision, which
/// runs in a room.
fn is_native(task: &PackagedTask) -> bool {
    let script = task.verifier.files.iter().find(|file| file.path == "verify.py");
    task.verifier.standard && script.is_some_and(|file| file.sha256 == scorer::standard_digest().hex())
}

struct ExampleTerms<'a> {
    tools: &'a EnvironmentTools,
    arguments: &'a Arguments,
    replaced: &'a Replaced,
    lane: Interaction,
    harness: &'static str,
    overlap: bool,
    timeout: Option<f64>,
    isolation: Isolation,
    source: &'a PackageSource,
}

impl ExampleTerms<'_> {
    fn example(&self, task: &PackagedTask, example_id: u64) -> Example {
        let (arguments, limits) = (self.arguments, &task.limits);
        let max_turns = match self.lane {
            Interaction::SingleTurn => 1,
            Interaction::Stateful => {
                self.replaced.max_turns.or(arguments.max_turns).unwrap_or(limits.max_turns)
            }
        };
        let max_total_tokens = arguments.max_total_tokens.or(limits.max_total_tokens);
        let command_timeout = arguments.command_timeout_sec.unwrap_or(limits.command_timeout_sec);
        let tools = self.tools.of_task(task);
        // The running program describes the tools, because it provides them; the package may be of another version.
        let system_prompt = self.replaced.system_prompt.clone().unwrap_or_else(|| match self.lane {
            Interaction::SingleTurn => task.prompts.single_turn.clone(),
            Interaction::Stateful => {
                tools.set.system_prompt(None, &format!("{WORKSPACE}/{}", task.output_path))
            }
        });
        let needs_room = self.lane == Interaction::Stateful || !is_native(task);
        let isolation = match arguments.confinement {
            _ if self.isolation == Isolation::None => "none",
            Confinement::None => "none",
            _ if needs_room => "namespaces",
            _ => "unneeded",
        };
        let manifest = &self.source.manifest;
        let info = json!({
            "task_id": task.task_id,
            "task_revision": task.task_revision,
            "family": task.family,
            "difficulty": task.difficulty,
            "discipline": task.discipline,
            "visibility": task.visibility,
            "instruction": task.instruction,
            "split": arguments.split,
            "overlap": self.overlap,
            "seed": arguments.seed,
            "harness": self.harness,
            "lane": task.lane,
            "max_turns": max_turns,
            "max_total_tokens": max_total_tokens,
            "command_timeout_sec": command_timeout,
            "isolation": isolation,
            "verifier_digest": task.verifier.digest,
            "dataset": manifest.dataset,
            "package": manifest.name,
            "package_version": manifest.version,
            "tool_version": manifest.tool_version,
        });
        let prompt = json!([
            {"role": "system", "content": system_prompt},
            {"role": "user", "content": task.instruction},
        ]);
        let timeout = self.timeout.or(self.replaced.timeout).unwrap_or(limits.agent_timeout_sec);
        Example {
            example_id,
            answer: task.task_id.as_str().into(),
            task: task.clone(),
            system_prompt,
            prompt: raw(&prompt),
            info: raw(&info),
            lane: self.lane,
            tools,
            max_turns,
            max_total_tokens,
            timeout: seconds(timeout),
            isolation: match self.isolation {
                Isolation::Room => arguments.confinement.isolation(),
                Isolation::None => Isolation::None,
            },
            command_timeout: seconds(command_timeout),
            ready: OnceLock::new(),
        }
    }
}

/// Seconds in a file as a duration, cut off at a very long time.
fn seconds(seconds: f64) -> Duration {
    const LONGEST: f64 = 1e9;
    Duration::from_secs_f64(seconds.clamp(0.0, LONGEST))
}

fn raw(value: &Value) -> Arc<RawValue> {
    RawValue::from_string(value.to_string()).unwrap_or_default().into()
}

/// The whole environment interacts in one way: with tools if any task needs them.
fn choose_lane(harness: HarnessMode, tasks: &[&PackagedTask]) -> Result<Interaction, Vec<Problem>> {
    let needs = tasks.iter().find(|task| task.lane == Interaction::Stateful);
    match (harness, needs) {
        (HarnessMode::SingleTurn, Some(task)) => {
            let what = format!(
                "harness `single-turn` cannot do the task {}, which needs a workspace ({})",
                task.task_id, task.lane_reason
            );
            let problem = Problem::error(what).id(FAMILY.number(64)).about(task.task_id.clone());
            Err(vec![problem.fix("use harness `auto` or `stateful`, or filter the task out")])
        }
        (HarnessMode::Stateful, _) | (HarnessMode::Auto, Some(_)) => Ok(Interaction::Stateful),
        (HarnessMode::SingleTurn | HarnessMode::Auto, None) => Ok(Interaction::SingleTurn),
    }
}

fn replaced(given: &Map<String, Value>) -> Result<Replaced, Vec<Problem>> {
    let mut replaced = Replaced::default();
    let mut problems = Vec::new();
    for (name, value) in given {
        let fits = match name.as_str() {
            "max_turns" => {
                let turns = value.as_u64().and_then(|turns| u32::try_from(turns).ok());
                replaced.max_turns = turns.filter(|turns| *turns > 0);
                replaced.max_turns.is_some()
            }
            "system_prompt" => {
                replaced.system_prompt = value.as_str().map(ToOwned::to_owned);
                replaced.system_prompt.is_some()
            }
            "timeout_seconds" => {
                replaced.timeout = value.as_f64().filter(|seconds| *seconds > 0.0);
                replaced.timeout.is_some()
            }
            "pass_threshold" => {
                replaced.pass_threshold = value.as_f64().filter(|threshold| (0.0..=1.0).contains(threshold));
                replaced.pass_threshold.is_some()
            }
            _ => {
                let what =
                    format!("`{}` cannot be replaced in an environment of our own tasks", printable(name));
                let fix = "it has max_turns, system_prompt, timeout_seconds and pass_threshold; with --python it is \
                           loaded by verifiers, which takes more";
                problems.push(Problem::error(what).id(FAMILY.number(65)).fix(fix));
                continue;
            }
        };
        if !fits {
            let what = format!("`{name}` cannot be {}", printable(&value.to_string()));
            problems.push(Problem::error(what).id(FAMILY.number(65)).fix("give it a fitting value"));
        }
    }
    if problems.is_empty() { Ok(replaced) } else { Err(problems) }
}
