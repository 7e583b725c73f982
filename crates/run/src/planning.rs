//! Makes a plan from an experiment, and checks whether a plan still fits the project.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::{Links, open_regular, read_text};
use aec_base::name::Name;
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::settings::Backend;
use aec_base::text;
use aec_ledger::layout::Ledger;
use aec_task::catalogue::Catalogue;
use aec_task::dataset::reference::DatasetRef;
use aec_task::dataset::store::Store;
use aec_task::dataset::tree::{self, Memory};
use aec_task::dataset::verify::verify;
use aec_task::id::TaskId;
use aec_task::selection::Selection;
use aec_task::task::Task;

use crate::experiment::{Agent, Experiment, FAMILY, Harness};
use crate::forecast::unplannable;
use crate::harness::{AgentFile, scripted};
use crate::images::{not_given, unbuildable, unservable};
use crate::leaks::leaks;
use crate::parameters::Parameters;
use crate::plan::{
    Conditions, Credentials, PLAN_VERSION, Plan, PlannedAgent, PlannedDataset, PlannedFile, PlannedTask,
};
use crate::session::current_plan;
use crate::sight::{programless, seen_under};

/// Bytes; a prompt is text for a reader.
const PROMPT_LIMIT: u64 = 1024 * 1024;
/// Bytes; a file of an agent is a program or its data.
pub(crate) const AGENT_FILE_LIMIT: u64 = 64 * 1024 * 1024;
const MOST_AGENT_FILES: usize = 1000;
/// Number of tasks that one thread takes at a time.
const CHUNK: usize = 8;

/// The directories from which a plan is made.
#[derive(Clone, Debug)]
pub struct Places {
    pub root: PathBuf,
    pub tasks: PathBuf,
    pub datasets: PathBuf,
    pub ledger: PathBuf,
}

/// What a plan is made of.
pub struct Request {
    pub experiment: Experiment,
    /// The id that the user gave, instead of the experiment's.
    pub id: Option<Name>,
    pub conditions: Conditions,
    /// Narrows the experiment's selection of tasks.
    pub wanted: Box<dyn Fn(&Task) -> bool>,
}

/// A plan and its loaded tasks.
#[derive(Debug)]
pub struct Made {
    pub plan: Plan,
    /// Its tasks, in its order.
    pub tasks: Vec<Task>,
    /// Warnings and notes.
    pub problems: Vec<Problem>,
}

/// Makes the plan of an experiment.
pub fn make(places: &Places, request: Request, tool_version: &str) -> Result<Made, Vec<Problem>> {
    let Request { experiment, id, conditions, wanted } = request;
    let (tasks, dataset) = select(places, &experiment, &*wanted)?;
    let mut problems = Vec::new();
    let mut agents = Vec::new();
    for agent in &experiment.agents {
        match plan_agent(places, agent) {
            Ok(agent) => agents.push(agent),
            Err(found) => problems.extend(found),
        }
    }
    problems.extend(unworkable(&tasks, &agents, &conditions));
    let (in_sight, hidden) = seen_under(&conditions);
    problems.extend(in_sight);
    let planned = plan_tasks(places, &tasks).unwrap_or_else(|found| {
        problems.extend(found);
        Vec::new()
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut noticed = leaks(&places.root, &tasks, &agents, &conditions);
    if !noticed.is_empty() && !conditions.allow_leaks {
        return Err(noticed);
    }
    noticed.extend(not_given(&tasks, &conditions));
    noticed.extend(hidden);
    let mut plan = Plan {
        schema_version: PLAN_VERSION,
        // Replaced below by an id derived from everything else.
        experiment_id: id.or(experiment.experiment_id).unwrap_or_else(placeholder),
        name: experiment.name,
        description: experiment.description,
        dataset,
        tasks: planned,
        agents,
        repetitions: experiment.repetitions,
        conditions,
        credentials: experiment.credentials,
        tool_version: tool_version.to_owned(),
        digest: Digest::of(b""),
    };
    if let Some(problem) = plan.too_many() {
        return Err(vec![problem]);
    }
    plan.digest = plan.compute_digest();
    if plan.experiment_id == placeholder() {
        let id = format!("exp-{}", &plan.digest.hex()[..10]);
        plan.experiment_id = Name::parse(&id).unwrap_or_else(|_| placeholder());
        plan.digest = plan.compute_digest();
    }
    keep_order(places, &mut plan);
    Ok(Made { plan, tasks, problems: noticed })
}

/// An experiment keeps the order of answers with which it began.
fn keep_order(places: &Places, plan: &mut Plan) {
    let ledger = Ledger::new(places.ledger.clone());
    // An unreadable plan is reported when the session begins.
    if let Ok(Some(before)) = current_plan(&ledger.experiment(&plan.experiment_id)) {
        plan.conditions.answer_order = before.conditions.answer_order;
        plan.digest = plan.compute_digest();
    }
}

/// Problems that prevent agents from working on tasks under the conditions.
fn unworkable(tasks: &[Task], agents: &[PlannedAgent], conditions: &Conditions) -> Vec<Problem> {
    let mut problems = unfit(tasks, agents);
    problems.extend(unplannable(tasks, agents, conditions));
    problems.extend(programless(agents));
    if matches!(conditions.backend, Backend::Docker | Backend::Modal) {
        problems.extend(tasks.iter().flat_map(unbuildable));
    }
    problems.extend(tasks.iter().flat_map(|task| unservable(task, conditions.backend)));
    problems
}

/// The common part of the plans of an experiment whose trials are not known in advance.
#[derive(Clone, Debug)]
pub struct Frame {
    pub experiment_id: Name,
    pub name: Option<String>,
    pub conditions: Conditions,
    pub tool_version: String,
}

impl Frame {
    /// The experiment's own plan, without tasks: those are in its steps.
    pub fn opening(&self, agents: Vec<PlannedAgent>) -> Plan {
        self.plan(Vec::new(), agents, 1)
    }

    /// The plan of a step over tasks with known revisions. `repetitions` is the highest of its trials.
    pub fn step(
        &self,
        tasks: &[Task],
        planned: Vec<PlannedTask>,
        agents: Vec<PlannedAgent>,
        repetitions: u32,
    ) -> Result<Plan, Vec<Problem>> {
        let mut problems = unworkable(tasks, &agents, &self.conditions);
        if self.conditions.backend == Backend::Harbor {
            let problem = Problem::error("trials that follow from one another cannot be a job of Harbor");
            problems.push(problem.id(FAMILY.number(23)).fix("pass --backend local or docker"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(self.plan(planned, agents, repetitions))
    }

    fn plan(&self, tasks: Vec<PlannedTask>, agents: Vec<PlannedAgent>, repetitions: u32) -> Plan {
        let mut plan = Plan {
            schema_version: PLAN_VERSION,
            experiment_id: self.experiment_id.clone(),
            name: self.name.clone(),
            description: None,
            dataset: None,
            tasks,
            agents,
            repetitions,
            conditions: self.conditions.clone(),
            credentials: Credentials::default(),
            tool_version: self.tool_version.clone(),
            digest: Digest::of(b""),
        };
        plan.digest = plan.compute_digest();
        plan
    }
}

/// An agent with another name and a system prompt that is not in a file.
pub fn plan_prompted(
    places: &Places,
    agent: &Agent,
    name: Name,
    system_prompt: String,
) -> Result<PlannedAgent, Vec<Problem>> {
    let mut planned = plan_agent(places, agent)?;
    planned.name = name;
    planned.system_prompt = Some(system_prompt);
    planned.digest = planned.compute_digest();
    Ok(planned)
}

fn placeholder() -> Name {
    const NAME: &str = "exp";
    // `NAME` is a valid name.
    Name::parse(NAME).unwrap_or_else(|_| unreachable!("{NAME} is a name"))
}

/// The tasks of an experiment, sorted by id. A dataset that has changed is refused.
fn select(
    places: &Places,
    experiment: &Experiment,
    wanted: &dyn Fn(&Task) -> bool,
) -> Result<(Vec<Task>, Option<PlannedDataset>), Vec<Problem>> {
    let selection = Selection::prepare(&experiment.tasks, &places.datasets)?;
    let Catalogue { tasks, problems } = Catalogue::load(&places.tasks);
    let concerned = |problem: &Problem| {
        problem
            .about
            .as_deref()
            .and_then(|id| TaskId::parse(id).ok())
            .is_some_and(|id| selection.may_take(&id))
    };
    let mut broken: Vec<Problem> =
        problems.into_iter().filter(|problem| problem.counts() && concerned(problem)).collect();
    for id in selection.missing_from(&tasks) {
        let what = format!("the dataset names `{}`, which is not here", text::printable(id));
        broken.push(
            Problem::error(what).id(FAMILY.number(24)).fix("restore the task, or select without the dataset"),
        );
    }
    let mut dataset = None;
    if let Some(reference) = &experiment.tasks.dataset {
        let manifest = Store::new(&places.datasets)
            .read(&DatasetRef::parse(reference).map_err(|problem| vec![problem])?)?;
        let verification = verify(&places.root, &manifest);
        broken.extend(verification.problems.into_iter().filter(Problem::counts));
        dataset = Some(PlannedDataset { id: manifest.reference(), content_hash: manifest.content_hash });
    }
    if !broken.is_empty() {
        return Err(broken);
    }
    let (mut tasks, others): (Vec<Task>, Vec<Task>) =
        tasks.into_iter().partition(|task| selection.takes(task) && wanted(task));
    tasks.sort_by(|a, b| a.id.cmp(&b.id));
    if tasks.is_empty() {
        let problem = Problem::error("no task is selected").id(FAMILY.number(25));
        let inactive: Vec<&Task> =
            others.iter().filter(|task| selection.takes_at_any_stage(task) && wanted(task)).collect();
        let Some(first) = inactive.first() else {
            let fix = "see `aec-bench task list` for what there is, and loosen the filters";
            return Err(vec![problem.fix(fix)]);
        };
        let more =
            if inactive.len() > 1 { format!(" and {} more", inactive.len() - 1) } else { String::new() };
        let why = format!("{}{more} would fit, but is {}, not active", first.id, first.lifecycle.name());
        let fix = "set `lifecycle = \"active\"` in the task.toml, or pass --lifecycle any";
        return Err(vec![problem.why(why).fix(fix)]);
    }
    Ok((tasks, dataset))
}

fn plan_tasks(places: &Places, tasks: &[Task]) -> Result<Vec<PlannedTask>, Vec<Problem>> {
    let memory = Memory::default();
    let mut planned = Vec::with_capacity(tasks.len());
    let mut problems = Vec::new();
    for (task, hashed) in
        tasks.iter().zip(parallel::map(tasks, CHUNK, |task| tree::hash(&task.path, &memory)))
    {
        match hashed {
            Ok(revision) => planned.push(PlannedTask {
                task_id: task.id.as_str().to_owned(),
                task_path: shown(&places.root, &task.path),
                revision,
            }),
            Err(found) => problems.extend(found.into_iter().map(|problem| problem.about(task.id.as_str()))),
        }
    }
    if problems.is_empty() { Ok(planned) } else { Err(problems) }
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn plan_agent(places: &Places, agent: &Agent) -> Result<PlannedAgent, Vec<Problem>> {
    let name = agent.name.as_str();
    let parameters = Parameters::read(name, agent.harness, &agent.parameters)?;
    let mut problems = Vec::new();
    let system_prompt = match &agent.system_prompt_file {
        Some(file) => match read_text(&places.root.join(file), PROMPT_LIMIT, Links::Refuse) {
            Ok(text) => Some(text),
            Err(error) => {
                let what = format!("the system prompt of agent `{name}` cannot be read: {error}");
                let problem = Problem::error(what).id(FAMILY.number(27)).about(name).fix(error.fix());
                problems.push(problem.in_file(places.root.join(file)));
                None
            }
        },
        None => None,
    };
    let files = match read_agent_files(&places.root, name, &parameters) {
        Ok(files) => files,
        Err(problem) => {
            problems.push(*problem);
            Vec::new()
        }
    };
    if agent.harness == Harness::Scripted
        && let Some(script) = files.first()
    {
        problems.extend(
            scripted::check(&script.content, &places.root.join(&script.path)).err().unwrap_or_default(),
        );
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let files = files.into_iter().map(|file| PlannedFile {
        digest: Digest::of(&file.content),
        path: file.path,
        executable: file.executable,
    });
    let mut planned = PlannedAgent {
        name: agent.name.clone(),
        harness: agent.harness,
        model: agent.model.clone(),
        client: agent.client.clone(),
        parameters: parameters.effective(agent.harness),
        system_prompt_file: agent.system_prompt_file.clone(),
        system_prompt,
        files: files.collect(),
        digest: Digest::of(b""),
    };
    planned.digest = planned.compute_digest();
    Ok(planned)
}

/// The files that an agent's parameters name, including those in directories.
pub(crate) fn read_agent_files(
    root: &Path,
    agent: &str,
    parameters: &Parameters,
) -> Result<Vec<AgentFile>, Box<Problem>> {
    let mut files = Vec::new();
    for path in parameters.script.iter().chain(&parameters.files) {
        collect(root, path, &mut files).map_err(|error| {
            let what =
                format!("the file `{}` of agent `{agent}` cannot be read: {error}", text::printable(path));
            Box::new(
                Problem::error(what).id(FAMILY.number(28)).about(agent).fix("correct the path or the file"),
            )
        })?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

fn collect(root: &Path, path: &str, files: &mut Vec<AgentFile>) -> std::io::Result<()> {
    if files.len() >= MOST_AGENT_FILES {
        return Err(std::io::Error::other(format!("an agent may have {MOST_AGENT_FILES} files")));
    }
    let place = root.join(path);
    if place.symlink_metadata()?.is_dir() {
        let mut names: Vec<_> =
            fs_err::read_dir(&place)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>()?;
        names.sort();
        for name in names {
            let name = name.to_str().ok_or_else(|| std::io::Error::other("a file name is not text"))?;
            if !name.starts_with('.') && name != "__pycache__" {
                collect(root, &format!("{path}/{name}"), files)?;
            }
        }
        return Ok(());
    }
    let (file, metadata) = open_regular(&place, AGENT_FILE_LIMIT, Links::Refuse)
        .map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, AGENT_FILE_LIMIT), &mut content)?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    files.push(AgentFile { path: path.to_owned(), content: content.into(), executable });
    Ok(())
}

/// Tasks on which a harness cannot work.
fn unfit(tasks: &[Task], agents: &[PlannedAgent]) -> Vec<Problem> {
    let needing: Vec<&str> = agents
        .iter()
        .filter(|agent| matches!(agent.harness, Harness::Oracle | Harness::Sim))
        .map(|agent| agent.name.as_str())
        .collect();
    if needing.is_empty() {
        return Vec::new();
    }
    let has = |task: &Task| {
        ["solve.sh", "solve.py"].iter().any(|file| task.path.join("solution").join(file).is_file())
    };
    let without: Vec<&str> = tasks.iter().filter(|task| !has(task)).map(|task| task.id.as_str()).collect();
    if without.is_empty() {
        return Vec::new();
    }
    let (agents, tasks) = (text::one_of(&needing), text::count(without.len(), "task"));
    let first: Vec<&str> = without.iter().take(5).copied().collect();
    let problem = Problem::error(format!("{agents} cannot do {tasks} without a reference solution"))
        .id(FAMILY.number(29))
        .why(format!("there is no solution/solve.sh in {}", first.join(", ")))
        .fix("add solutions, leave these tasks out, or leave the agent out");
    vec![problem]
}

/// Loads the tasks of a locked plan and refuses any that have changed.
pub fn load(places: &Places, plan: &Plan) -> Result<Vec<Task>, Vec<Problem>> {
    let memory = Memory::default();
    let states = parallel::map(&plan.tasks, CHUNK, |planned| {
        let path = places.root.join(&planned.task_path);
        let id = TaskId::parse(&planned.task_id).map_err(|error| vec![Problem::error(error.to_string())])?;
        let task = Task::load(id, &path)?.task;
        Ok::<_, Vec<Problem>>((tree::hash(&path, &memory)?, task))
    });
    let mut tasks = Vec::with_capacity(plan.tasks.len());
    let mut problems = Vec::new();
    for (planned, state) in plan.tasks.iter().zip(states) {
        match state {
            Ok((revision, task)) if revision == planned.revision => tasks.push(task),
            Ok(_) => problems
                .push(drift(format!("the task `{}` has changed since the plan was made", planned.task_id))),
            Err(found) => {
                problems.push(drift(format!("the task `{}` of the plan cannot be read", planned.task_id)));
                problems.extend(found);
            }
        }
    }
    for agent in &plan.agents {
        problems.extend(agent_drift(places, agent));
    }
    if problems.is_empty() { Ok(tasks) } else { Err(problems) }
}

fn agent_drift(places: &Places, agent: &PlannedAgent) -> Vec<Problem> {
    let changed =
        |file: &str| drift(format!("`{file}` of agent `{}` has changed since the plan was made", agent.name));
    let mut problems = Vec::new();
    if let Some(file) = &agent.system_prompt_file {
        let found = read_text(&places.root.join(file), PROMPT_LIMIT, Links::Refuse).ok();
        if found != agent.system_prompt {
            problems.push(changed(file));
        }
    }
    match Parameters::read(agent.name.as_str(), agent.harness, &agent.parameters) {
        Ok(parameters) => match read_agent_files(&places.root, agent.name.as_str(), &parameters) {
            Ok(files) => {
                let found: Vec<PlannedFile> = files
                    .iter()
                    .map(|file| PlannedFile {
                        path: file.path.clone(),
                        digest: Digest::of(&file.content),
                        executable: file.executable,
                    })
                    .collect();
                let differs = |file: &&PlannedFile| !agent.files.contains(file);
                problems.extend(found.iter().filter(differs).map(|file| changed(&file.path)));
                let gone = |file: &&PlannedFile| !found.iter().any(|other| other.path == file.path);
                problems.extend(agent.files.iter().filter(gone).map(|file| changed(&file.path)));
            }
            Err(problem) => problems.push(*problem),
        },
        Err(found) => problems.extend(found),
    }
    problems
}

fn drift(what: String) -> Problem {
    Problem::error(what)
        .id(FAMILY.number(33))
        .why("a locked plan is executed unchanged or not at all")
        .fix("restore it, or make a new plan with `aec-bench plan --lock FILE`")
}
