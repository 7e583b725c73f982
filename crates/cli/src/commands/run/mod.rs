//! `aec-bench run`.

mod limits;
mod problems;
pub(crate) mod submit;
pub(crate) mod wait;
pub(crate) mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Backend, Setting};
use aec_base::text;
use aec_container::Containers;
use aec_harbor::run::{Harbor, HarborRun};
use aec_judge::judge::{Judge, Surface};
use aec_judge::pool::Pool;
use aec_ledger::layout::Ledger;
use aec_model::client::Client;
use aec_model::gateway::Gateway;
use aec_model::meter::{Account, Amount, Meter};
use aec_model::retry::RetryPolicy;
use aec_run::affordable::unaffordable;
use aec_run::agents;
use aec_run::campaign::{self, Campaign, InProcess, Options, Work};
use aec_run::control::Control;
use aec_run::demand::demand;
use aec_run::event::{RunEnded, RunEvent, StopReason};
use aec_run::harness::PreparedAgent;
use aec_run::plan::{Plan, PlannedTrial};
use aec_run::planning::{Made, load, make};
use aec_run::resume::{Past, Rerun};
use aec_run::session::{Beginning, Shard, current_plan};
use aec_run::terms::{Terms, going_on, over};
use aec_run::trial::Shared;
use aec_sandbox::python;
use aec_task::task::Task;
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;

use crate::arguments::{JobsRootArgument, LedgerRootArgument};
use crate::commands::ledger::find_experiment;
use crate::commands::models::TapeArguments;
use crate::commands::plan::{PlanArguments, Preview, variables_remark};
use crate::commands::planning::{self, Asked, VERSION};
use crate::commands::run::problems::found;
use crate::commands::run::worker::Worker;
use crate::commands::verify::isolation_of;
use crate::commands::{containers, harbor, modal, models};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::Outcome;
use crate::progress::events::{EventLog, EventsArguments};
use crate::progress::painter::{Display, Mode, Painter};
use crate::progress::run::{RunShow, summary_text};
use crate::signals::Signals;

/// What carries out a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    // This process. A doc comment on each variant would make the help twice as long.
    #[default]
    Local,
    // Workers in a Slurm array job.
    Slurm,
    // Workers in an indexed Kubernetes job.
    K8s,
}

/// Flags of engines. All but `--engine` need an engine other than `local`.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Clusters")]
pub(crate) struct EngineArguments {
    /// What carries out the plan: this process, a Slurm array job, or an indexed Kubernetes job
    #[arg(long, value_enum, value_name = "NAME", default_value_t)]
    pub(crate) engine: EngineChoice,
    /// Number of parts that the plan is divided into; each part is one worker, which runs many trials at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) shards: Option<u32>,
    /// Write the files for the cluster and submit nothing
    #[arg(long, conflicts_with_all = ["detach", "dry_run"])]
    pub(crate) render: bool,
    /// Submit, and do not wait for the end
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) detach: bool,
    /// Partition (Slurm)
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Time limit of each worker, such as 04:00:00 (Slurm)
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Account (Slurm)
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Quality of service (Slurm)
    #[arg(long, value_name = "NAME")]
    pub(crate) qos: Option<String>,
    /// Further sbatch option for the workers, such as --sbatch=--gres=gpu:1 (Slurm)
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    /// Processors for each worker
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus_per_shard: Option<u32>,
    /// Memory for each worker, such as 16G (Slurm) or 16Gi (Kubernetes)
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_per_shard: Option<String>,
    /// Image that contains aec-bench, bash and Python (Kubernetes)
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Claim of the volume that all pods share (Kubernetes)
    #[arg(long, value_name = "NAME")]
    pub(crate) volume_claim: Option<String>,
    /// Mount path of the volume, here and in pods [default: the directory above project, ledger and jobs] (Kubernetes)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) mount_path: Option<String>,
    /// Secret with the variables that workers need (Kubernetes)
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Option<String>,
    /// Namespace (Kubernetes)
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Folder with the contract of a worker; set by engines
    #[arg(
        long,
        value_name = "DIR",
        hide = true,
        requires = "locked",
        requires = "shard",
        conflicts_with = "engine"
    )]
    pub(crate) contract: Option<PathBuf>,
}

impl EngineArguments {
    /// The flags that the user gave, each with the engine that alone understands it.
    pub(crate) fn given(&self) -> Vec<(&'static str, Option<EngineChoice>)> {
        let slurm = Some(EngineChoice::Slurm);
        let k8s = Some(EngineChoice::K8s);
        [
            ("--shards", None, self.shards.is_some()),
            ("--render", None, self.render),
            ("--detach", slurm, self.detach),
            ("--partition", slurm, self.partition.is_some()),
            ("--time", slurm, self.time.is_some()),
            ("--account", slurm, self.account.is_some()),
            ("--qos", slurm, self.qos.is_some()),
            ("--sbatch", slurm, !self.sbatch.is_empty()),
            ("--cpus-per-shard", None, self.cpus_per_shard.is_some()),
            ("--memory-per-shard", None, self.memory_per_shard.is_some()),
            ("--image", k8s, self.image.is_some()),
            ("--volume-claim", k8s, self.volume_claim.is_some()),
            ("--mount-path", k8s, self.mount_path.is_some()),
            ("--secret", k8s, self.secret.is_some()),
            ("--namespace", k8s, self.namespace.is_some()),
        ]
        .into_iter()
        .filter(|(_, _, given)| *given)
        .map(|(flag, engine, _)| (flag, engine))
        .collect()
    }
}

/// Flags that shape a plan. They conflict with `--plan` and `--resume`, whose plan exists already.
const PLANNING: [&str; 25] = [
    "tasks",
    "config",
    "more_tasks",
    "dataset",
    "exclude",
    "domain",
    "difficulty",
    "lifecycle",
    "visibility",
    "tag",
    "filter",
    "model",
    "harness",
    "parameter",
    "system_prompt_file",
    "repetitions",
    "backend",
    "harbor_environment",
    "timeout",
    "memory_mb",
    "no_verify",
    "allow_leaks",
    "experiment_id",
    "sandbox",
    "tasks_root",
];

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench run --config experiment.yaml\n  \
                        aec-bench run electrical --model gpt-4.1-mini -n 3 --max-cost 2 --dry-run\n  \
                        aec-bench run --resume pilot")]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    /// Carry out exactly this locked plan
    #[arg(long = "plan", value_name = "FILE", conflicts_with_all = PLANNING, value_hint = ValueHint::FilePath)]
    pub(crate) locked: Option<PathBuf>,
    /// Continue this experiment: run what is missing of its plan
    #[arg(long, value_name = "EXP", conflicts_with_all = PLANNING, conflicts_with = "locked")]
    pub(crate) resume: Option<String>,
    /// Rerun trials: `infra` or `failed` (faults that are not the agent's), or the id of a trial
    #[arg(long, value_name = "WHICH")]
    pub(crate) rerun: Vec<String>,
    /// Allow this plan to differ from the experiment's earlier plan, and add its trials
    #[arg(long)]
    pub(crate) extend: bool,
    /// Show the plan, its maximum cost and what is already done; run nothing
    #[arg(long, conflicts_with = "events")]
    pub(crate) dry_run: bool,
    /// Carry out part INDEX of COUNT, counted from 0
    #[arg(long, value_name = "INDEX/COUNT")]
    pub(crate) shard: Option<String>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Show the run on the full screen, with the trace of each trial
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) events: EventsArguments,
    #[command(flatten)]
    pub(crate) tape: TapeArguments,
    #[command(flatten)]
    pub(crate) ledger_root: LedgerRootArgument,
    #[command(flatten)]
    pub(crate) jobs_root: JobsRootArgument,
    #[command(flatten)]
    pub(crate) engine: EngineArguments,
}

/// What a run is made from, whatever the source of its plan.
pub(crate) struct PreparedRun {
    pub(crate) project: Project,
    pub(crate) plan: Plan,
    pub(crate) tasks: Vec<Task>,
    pub(crate) variables: Vec<&'static str>,
    pub(crate) problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    ended: &'a RunEnded,
    plan: aec_base::digest::Digest,
    session: String,
    duration_seconds: f64,
    jobs: PathBuf,
    ledger: PathBuf,
}

pub(crate) fn run(context: &Context, arguments: &RunArguments) -> Result<Outcome, Failure> {
    let shard = arguments.shard.as_deref().map(parse_shard).transpose()?;
    submit::check(arguments)?;
    let worker = match (&arguments.engine.contract, shard) {
        (Some(folder), Some(shard)) => Some(Worker::open(context, folder, shard)?),
        _ => None,
    };
    let mut prepared = prepare(context, arguments)?;
    let said = Terms { caps: arguments.plan.budget.clone(), ..arguments.terms.clone() };
    let ledger = Ledger::new(prepared.project.settings.path(Setting::Ledger));
    let earlier = Terms::kept(&ledger.experiment(&prepared.plan.experiment_id))?;
    prepared.problems.extend(going_on(&said, &earlier));
    let terms = over(&said, &earlier);
    let trials = trials_of(&prepared.plan, shard);
    let rerun = rerun(&arguments.rerun, &trials)?;
    if let Some(worker) = &worker {
        worker.check(&prepared.plan)?;
        prepared.problems.extend(worker.problems());
    }
    if arguments.engine.engine != EngineChoice::Local {
        if arguments.events.events.is_some() {
            let problem =
                Problem::error("--events reports trials on this machine, and these run on a cluster");
            return Err(Failure::usage(problem.fix("leave it out, and ask `runs status --json`")));
        }
        return submit::submit(context, arguments, prepared, &trials, &rerun, &terms);
    }
    if arguments.dry_run {
        let PreparedRun { project, plan, tasks, variables, problems } = &prepared;
        let mut preview = Preview::new(context, project, plan, tasks, &trials, &rerun, &terms.caps)?;
        if plan.conditions.backend == Backend::Harbor {
            preview.harbor_jobs = harbor::preview(context, project, plan, tasks, &trials, &rerun, &terms)?;
        }
        if plan.conditions.backend == Backend::Modal {
            let wanted = preview.to_run(&trials);
            preview.modal =
                Some(modal::preview(context, project, &plan.credentials, &demand(plan, tasks, &wanted)?));
        }
        let outcome = preview.outcome(context)?.problems(problems.clone());
        return Ok(variables_remark(outcome, variables));
    }
    let display = Display {
        mode: Mode::of(context, arguments.tui, false),
        events: EventLog::open(context, &arguments.events, "run")?,
    };
    let options = Options { terms, rerun, traces: false, cluster: worker.as_ref().map(Worker::options) };
    let how = How { tape: &arguments.tape, shard, extend: arguments.extend, worker: worker.as_ref() };
    carry_out(context, prepared, trials, &how, options, display)
}

struct How<'a> {
    tape: &'a TapeArguments,
    shard: Option<Shard>,
    /// Whether the plan may differ from the experiment's plan.
    extend: bool,
    /// Present if this process is a worker on a cluster.
    worker: Option<&'a Worker>,
}

/// The plan: made from an experiment or flags, read from a locked file, or continued from the ledger.
fn prepare(context: &Context, arguments: &RunArguments) -> Result<PreparedRun, Failure> {
    let roots = [
        (Setting::Ledger, arguments.ledger_root.ledger_root.as_deref(), "--ledger-root"),
        (Setting::Jobs, arguments.jobs_root.jobs_root.as_deref(), "--jobs-root"),
    ];
    if arguments.locked.is_none() && arguments.resume.is_none() {
        let Asked { project, request, variables } = planning::read(context, &arguments.plan, &roots)?;
        let Made { plan, tasks, problems } = make(&planning::places(&project), request, VERSION)?;
        harbor::refuse(context, &project, &plan, &tasks)?;
        return Ok(PreparedRun { project, plan, tasks, variables, problems });
    }
    let project = planning::open(context, &arguments.plan, &roots, None)?;
    let plan = match (&arguments.locked, &arguments.resume) {
        (Some(file), _) => Plan::read(&context.absolute(file)?)?,
        (None, Some(id)) => plan_under_way(&Ledger::new(project.settings.path(Setting::Ledger)), id)?,
        (None, None) => return Err(Failure::usage(Problem::error("no plan was named"))),
    };
    let mut problems = Vec::new();
    if plan.tool_version != VERSION {
        let what = format!("the plan was made by version {}, this is {VERSION}", plan.tool_version);
        problems.push(Problem::warning(what).fix("make a new plan if the difference matters"));
    }
    let tasks = load(&planning::places(&project), &plan)?;
    harbor::refuse(context, &project, &plan, &tasks)?;
    Ok(PreparedRun { project, plan, tasks, variables: Vec::new(), problems })
}

fn plan_under_way(ledger: &Ledger, id: &str) -> Result<Plan, Failure> {
    let experiment = find_experiment(ledger, id)?;
    current_plan(&ledger.experiment(&experiment))?.ok_or_else(|| {
        let problem = Problem::error(format!("the experiment `{experiment}` has no plan in this ledger"));
        problem.fix("run it with --config or with flags").into()
    })
}

/// The trials that this process carries out.
pub(crate) fn trials_of(plan: &Plan, shard: Option<Shard>) -> Vec<PlannedTrial> {
    let trials = plan.trials();
    match shard {
        None => trials,
        Some(Shard { index, count }) => trials
            .into_iter()
            .enumerate()
            .filter(|(at, _)| at % count == index)
            .map(|(_, trial)| trial)
            .collect(),
    }
}

/// A run that is about to begin: the experiment is locked, and models and agents are ready.
struct Begun {
    runtime: tokio::runtime::Runtime,
    signals: Signals,
    campaign: Campaign,
    past: Past,
    progress: Painter<RunShow>,
    shared: Arc<Shared>,
    control: Control,
    client: Client,
    problems: Vec<Problem>,
}

/// Locks the experiment and prepares everything.
fn begin(
    context: &Context,
    project: &Project,
    (plan, tasks): (&Plan, &[Task]),
    trials: &[PlannedTrial],
    how: &How<'_>,
    options: &Options,
    display: Display,
) -> Result<Begun, Failure> {
    let How { tape, shard, extend, worker } = *how;
    let (terms, named) = (&options.terms, &options.rerun.trials);
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let jobs = project.settings.path(Setting::Jobs);
    let runtime = models::runtime()?;
    let signals = Signals::catch_in(&runtime)?;
    // Failing to clean up after killed runs must not stop this one.
    aec_base::staging::sweep(&std::env::temp_dir(), false).ok();
    let limits = limits::check(plan)?;
    let opened = models::open(context, project, tape, RetryPolicy::default(), terms.caps.unpriced())?;
    let problems = opened.problems.iter().cloned().chain(limits).collect();
    let agents = agents::prepare(plan, &project.root, &opened.client)?;
    let budget = terms.caps.budget(models::experiment_budget(project));
    if tape.replay.is_none() {
        opened.run.limit(budget, Amount::default());
        let trial = planning::trial_budget(project);
        let unaffordable = unaffordable(tasks, &plan.conditions, &agents, &opened.run, trial);
        if !unaffordable.is_empty() {
            return Err(unaffordable.into());
        }
    }
    let judge = judge(context, project, plan)?;
    let models = tape.name();
    let own = worker.map(|_| trials);
    let beginning =
        Beginning { ledger: &ledger, jobs: &jobs, plan, shard, extend, models, terms, named, own };
    let (campaign, past) = Campaign::begin(&beginning)?;
    let account = match worker {
        Some(worker) => worker.account(budget, &opened)?,
        None => {
            // The budget is for all sessions, so what earlier sessions spent is subtracted.
            opened.run.limit(budget, past.spent);
            opened.run.clone()
        }
    };
    let control = Control::default();
    let progress = RunShow::begin(display, context.color, context.redactor(), control.clone())?;
    let (client, meter) = (opened.client, opened.meter);
    let who = (judge, agents);
    let shared = Arc::new(shared_with(context, project, plan, (meter, account), who, control.clone()));
    Ok(Begun { runtime, signals, campaign, past, progress, shared, control, client, problems })
}

fn carry_out(
    context: &Context,
    prepared: PreparedRun,
    trials: Vec<PlannedTrial>,
    how: &How<'_>,
    options: Options,
    display: Display,
) -> Result<Outcome, Failure> {
    let PreparedRun { project, plan, variables, .. } = &prepared;
    let (plan_digest, variables) = (plan.digest, variables.clone());
    let jobs = project.shown(&project.settings.path(Setting::Jobs)).to_path_buf();
    let ledger = project.shown(&project.settings.path(Setting::Ledger)).to_path_buf();
    let Performed { ended, session, problems } = perform(context, prepared, trials, how, options, display)?;
    let data = Data {
        plan: plan_digest,
        session,
        duration_seconds: ended.duration.as_secs_f64(),
        jobs,
        ledger,
        ended: &ended,
    };
    let outcome = Outcome::new(context.format, &data, || summary_text(&ended))?.problems(problems);
    let outcome = variables_remark(outcome, &variables);
    if let Some(worker) = how.worker {
        return Ok(outcome.exit(worker.exit().unwrap_or_else(|| worker_exit(&ended))));
    }
    Ok(match ended.stopped {
        Some(StopReason::Asked | StopReason::Insisted) => outcome.exit(Exit::Interrupted),
        _ => outcome,
    })
}

struct Performed {
    ended: RunEnded,
    session: String,
    problems: Vec<Problem>,
}

fn perform(
    context: &Context,
    prepared: PreparedRun,
    trials: Vec<PlannedTrial>,
    how: &How<'_>,
    mut options: Options,
    display: Display,
) -> Result<Performed, Failure> {
    let PreparedRun { project, plan, tasks, mut problems, .. } = prepared;
    let harbor = match plan.conditions.backend {
        Backend::Harbor => Some(harbor::open(context, &project, &plan, &tasks, how.tape)?),
        Backend::Local | Backend::Docker | Backend::Modal => None,
    };
    let begun = begin(context, &project, (&plan, &tasks), &trials, how, &options, display)?;
    let Begun { runtime, signals, campaign, past, mut progress, shared, control, client, problems: noticed } =
        begun;
    problems.extend(noticed);
    options.traces = progress.mode() == Mode::Screen;
    let mut teller = None;
    if let Some(worker) = how.worker {
        options.rerun.trials = worker.again(&past);
        teller = Some(worker.teller(control.clone())?);
    }
    let directory = campaign.directory().clone();
    let session = campaign.session().to_owned();
    let work = Work { shared, tasks, trials, options };
    let ended = runtime.block_on(async {
        match how.worker {
            Some(worker) => {
                tokio::spawn(Worker::listen(signals, control, worker.terminated()));
                worker.divide(&client, directory).await;
            }
            None => drop(tokio::spawn(listen(signals, control))),
        }
        let mut observe = |event: &RunEvent| {
            progress.on(event);
            if let Some(teller) = &mut teller {
                teller.on(event);
            }
        };
        execute(campaign, &past, work, harbor, &mut observe).await
    });
    drop(teller);
    progress.finish();
    // The program does not wait for a judge whose result is no longer needed.
    runtime.shutdown_background();
    let (ended, more) = ended.map_err(|problems| Failure { exit: Exit::Environment, problems })?;
    problems.extend(more);
    problems.extend(found(&ended));
    Ok(Performed { ended, session, problems })
}

/// Carries out a plan: Harbor makes the attempts, or this process does.
async fn execute(
    campaign: Campaign,
    past: &Past,
    work: Work,
    harbor: Option<Harbor>,
    observe: &mut (dyn FnMut(&RunEvent) + Send),
) -> Result<(RunEnded, Vec<Problem>), Vec<Problem>> {
    match harbor {
        Some(harbor) => campaign::execute(campaign, past, work, HarborRun::new(harbor), observe).await,
        None => {
            let executor = InProcess::new(&work.options);
            campaign::execute(campaign, past, work, executor, observe).await
        }
    }
}

/// A worker succeeds if every trial of its shard has a result, whatever the result is: the merge reports the results.
fn worker_exit(ended: &RunEnded) -> Exit {
    match ended.stopped {
        None => Exit::Success,
        Some(StopReason::Asked | StopReason::Insisted) => Exit::Interrupted,
        Some(_) => Exit::Found,
    }
}

/// Carries out a plan whose agents need no model, with the usual options.
pub(crate) fn offline(context: &Context, prepared: PreparedRun) -> Result<(RunEnded, Vec<Problem>), Failure> {
    let trials = prepared.plan.trials();
    let terms = Terms { concurrency: Some(4), max_faults: Some(10), ..Terms::default() };
    let options = Options { terms, rerun: Rerun::default(), traces: false, cluster: None };
    let tape = TapeArguments::default();
    let how = How { tape: &tape, shard: None, extend: false, worker: None };
    let Performed { ended, problems, .. } =
        perform(context, prepared, trials, &how, options, Display::quiet())?;
    Ok((ended, problems))
}

/// The first two signals each ask the run to stop; a third one ends the program at once.
pub(crate) async fn listen(mut signals: Signals, control: Control) {
    for _ in 0..2 {
        signals.next().await;
        control.ask();
    }
    signals.next().await;
    #[expect(clippy::exit, reason = "the user insists for the third time; what is recorded is safe")]
    std::process::exit(i32::from(Exit::Interrupted as u8));
}

/// The judge of a run. If trials run in containers, the container engine must answer.
pub(crate) fn judge(context: &Context, project: &Project, plan: &Plan) -> Result<Judge, Failure> {
    let containers = match plan.conditions.backend {
        Backend::Docker => Some(Containers::Engine(containers::engine(project)?)),
        Backend::Modal => Some(Containers::Modal(modal::open(context, project, &plan.credentials)?)),
        Backend::Local | Backend::Harbor => None,
    };
    Ok(Judge {
        isolation: isolation_of(plan.conditions.sandbox),
        python: python::find(context.search_path().as_deref()),
        surface: Surface::default(),
        pool: Some(Arc::new(Pool::default())),
        native: true,
        containers,
    })
}

/// What all attempts of a run share, given an open account.
pub(crate) fn shared_with(
    context: &Context,
    project: &Project,
    plan: &Plan,
    (meter, account): (Meter, Account),
    (judge, agents): (Judge, Vec<Arc<PreparedAgent>>),
    control: Control,
) -> Shared {
    let mut tool_versions = BTreeMap::from([("aec-bench".to_owned(), VERSION.to_owned())]);
    if let Some(python) = &judge.python {
        tool_versions.insert("python".to_owned(), python.version.clone());
    }
    tool_versions.extend(judge.containers.as_ref().map(Containers::version));
    Shared {
        plan: Arc::new(plan.clone()),
        agents,
        judge,
        gateway: Gateway::new(),
        meter,
        account,
        trial_budget: planning::trial_budget(project),
        contents: Ledger::new(project.settings.path(Setting::Ledger)).contents(),
        jobs: project.settings.path(Setting::Jobs).join(plan.experiment_id.as_str()),
        redactor: Arc::new(context.redactor()),
        tool_versions,
        control,
    }
}

fn rerun(which: &[String], trials: &[PlannedTrial]) -> Result<Rerun, Failure> {
    let mut rerun = Rerun::default();
    for word in which {
        match word.as_str() {
            "failed" | "infra" => rerun.infra = true,
            id => {
                let fitting: BTreeSet<&Name> = trials
                    .iter()
                    .map(|trial| &trial.id)
                    .filter(|name| name.as_str().starts_with(id))
                    .collect();
                let problem = |what: &str| Problem::error(format!("`{}` {what}", text::printable(id)));
                if fitting.len() != 1 {
                    let what =
                        if fitting.is_empty() { "is not a trial of the plan" } else { "fits several trials" };
                    return Err(Failure::usage(
                        problem(what).fix("write `failed`, `infra` or the id of a trial"),
                    ));
                }
                rerun.trials.extend(fitting.into_iter().cloned());
            }
        }
    }
    Ok(rerun)
}

fn parse_shard(text: &str) -> Result<Shard, Failure> {
    Shard::parse(text).ok_or_else(|| {
        let what = format!("`--shard {}` is not INDEX/COUNT", text::printable(text));
        Failure::usage(Problem::error(what).fix("write, say, 0/4 to 3/4"))
    })
}
