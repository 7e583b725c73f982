//! `aec-bench run --engine`: freezes the plan in the experiment's folder for workers on a cluster to carry out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aec_base::file::write_atomic;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::{Backend, Setting};
use aec_base::text;
use aec_base::timestamp::Timestamp;
use aec_cluster::contract::{Again, CONTRACT_VERSION, Contract, Engine, Folder, Jobs, Spent};
use aec_cluster::kubernetes::{self, Pods};
use aec_cluster::overview::latest;
use aec_cluster::sbatch::{self, Resources};
use aec_cluster::slurm::{Slurm, Which};
use aec_cluster::{FAMILY, environment};
use aec_ledger::layout::{ExperimentDirectory, Ledger};
use aec_model::meter::{Amount, Budget};
use aec_model::retry::RetryPolicy;
use aec_run::affordable::unaffordable;
use aec_run::agents;
use aec_run::campaign::Waiting;
use aec_run::demand::demand;
use aec_run::plan::{Plan, PlannedTrial};
use aec_run::resume::{Past, Rerun, to_do};
use aec_run::session::{Beginning, prepare};
use aec_run::terms::{self, Terms};
use aec_task::task::Task;
use serde::Serialize;

use crate::commands::models::TapeArguments;
use crate::commands::plan::{Preview, variables_remark};
use crate::commands::planning::{self, VERSION};
use crate::commands::run::wait::{self, Submission};
use crate::commands::run::{EngineArguments, EngineChoice, PreparedRun, RunArguments};
use crate::commands::{modal, models};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

/// What was submitted, or would be.
#[derive(Serialize)]
struct Rendered {
    experiment_id: String,
    engine: &'static str,
    shards: usize,
    trials: usize,
    to_run: usize,
    folder: PathBuf,
    files: Vec<PathBuf>,
    variables: Vec<String>,
}

/// Refuses combinations of flags that make no sense.
pub(crate) fn check(arguments: &RunArguments) -> Result<(), Failure> {
    let engine = &arguments.engine;
    let name = match engine.engine {
        EngineChoice::Local => "local",
        EngineChoice::Slurm => "slurm",
        EngineChoice::K8s => "k8s",
    };
    for (flag, only) in engine.given() {
        let other = match only {
            _ if engine.engine == EngineChoice::Local => Some("slurm or k8s"),
            Some(only) if only != engine.engine => {
                Some(if only == EngineChoice::Slurm { "slurm" } else { "k8s" })
            }
            _ => None,
        };
        if let Some(other) = other {
            let what = format!("`{flag}` has no meaning for `--engine {name}`");
            return Err(usage(&what, &format!("leave it out, or pass --engine {other}")));
        }
    }
    if engine.engine == EngineChoice::Local {
        return Ok(());
    }
    let never = [
        ("--shard", arguments.shard.is_some(), "the cluster gives each worker its shard; pass --shards N"),
        ("--tui", arguments.tui, "watch it with `aec-bench runs status` or `aec-bench web`"),
    ];
    for (flag, given, fix) in never {
        if given {
            return Err(usage(&format!("`{flag}` and `--engine {name}` cannot be used together"), fix));
        }
    }
    if engine.shards.is_none() {
        return Err(usage(
            &format!("`--engine {name}` needs --shards"),
            "pass --shards N: one worker for each node, say",
        ));
    }
    if engine.engine == EngineChoice::K8s {
        if !engine.render && !arguments.dry_run {
            return Err(usage(
                "`--engine k8s` submits nothing itself",
                "pass --render, then `kubectl apply -f` what it writes",
            ));
        }
        for (flag, given) in
            [("--image", engine.image.is_some()), ("--volume-claim", engine.volume_claim.is_some())]
        {
            if !given {
                return Err(usage(&format!("`--engine k8s` needs {flag}"), "see docs/scale-out.md"));
            }
        }
    }
    if engine.engine == EngineChoice::Slurm {
        resources(engine).check_amounts().map_err(Failure::usage)?;
    }
    resources(engine).check().map_err(Failure::usage)
}

fn usage(what: &str, fix: &str) -> Failure {
    Failure::usage(Problem::error(what).id(FAMILY.number(21)).fix(fix))
}

fn resources(engine: &EngineArguments) -> Resources {
    Resources {
        partition: engine.partition.clone(),
        time: engine.time.clone(),
        account: engine.account.clone(),
        qos: engine.qos.clone(),
        cpus: engine.cpus_per_shard,
        memory: engine.memory_per_shard.clone(),
        options: engine.sbatch.clone(),
    }
}

/// Freezes the plan, writes the folder and submits it, or only shows what would be submitted.
pub(crate) fn submit(
    context: &Context,
    arguments: &RunArguments,
    prepared: PreparedRun,
    trials: &[PlannedTrial],
    rerun: &Rerun,
    terms: &Terms,
) -> Result<Outcome, Failure> {
    let PreparedRun { project, plan, tasks, variables, mut problems } = prepared;
    if plan.conditions.backend == Backend::Harbor {
        let fix = "let Harbor spread the trials by its environment, or use another backend";
        return Err(usage("`--backend harbor` runs from one machine, not from workers of a cluster", fix));
    }
    let shards = arguments.engine.shards.unwrap_or(1) as usize;
    if arguments.dry_run {
        let mut preview = Preview::new(context, &project, &plan, &tasks, trials, rerun, &terms.caps)?;
        if plan.conditions.backend == Backend::Modal {
            let demand = demand(&plan, &tasks, &preview.to_run(trials))?;
            preview.modal = Some(modal::preview(context, &project, &plan.credentials, &demand));
        }
        let outcome = preview.outcome(context)?.problems(problems);
        let each = trials.len().div_ceil(shards);
        let outcome = outcome.remark(format!(
            "Would be submitted as {} with at most {} each.",
            text::count(shards, "shard"),
            text::count(each, "trial"),
        ));
        return Ok(variables_remark(outcome, &variables));
    }
    let submits = arguments.engine.engine == EngineChoice::Slurm && !arguments.engine.render;
    // Everything that can fail is checked before anything is written.
    let slurm = if submits { Some(find_slurm(context, shards)?) } else { None };
    needs(context, arguments, &project, (&plan, &tasks), terms)?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let directory = ledger.experiment(&plan.experiment_id);
    if let Some(slurm) = &slurm {
        nobody_works(slurm, &directory)?;
    }
    let made = write(context, arguments, &project, &plan, (trials, rerun), terms)?;
    let Made { folder, contract, text } = made;
    problems.extend(remarks(&contract));
    if let Some(slurm) = slurm {
        let jobs = send(&slurm, &folder)?;
        let submission =
            Submission { folder, contract, jobs, ledger, jobs_root: project.settings.path(Setting::Jobs) };
        let detach = arguments.engine.detach;
        let outcome = wait::wait(context, &slurm, &submission, detach, problems)?;
        return Ok(variables_remark(outcome, &variables));
    }
    rendered(context, &project, &folder, &contract, text, problems)
}

fn find_slurm(context: &Context, shards: usize) -> Result<Slurm, Failure> {
    let slurm = context.slurm().map_err(Failure::environment)?;
    slurm.check_shards(shards).map_err(Failure::environment)?;
    Ok(slurm)
}

/// Opens models and agents as a worker will, so that a missing key is found here and not on every node.
fn needs(
    context: &Context,
    arguments: &RunArguments,
    project: &Project,
    (plan, tasks): (&Plan, &[Task]),
    terms: &Terms,
) -> Result<(), Failure> {
    // Opening a recording would start it.
    let tape = TapeArguments { replay: arguments.tape.replay.clone(), ..TapeArguments::default() };
    let opened = models::open(context, project, &tape, RetryPolicy::default(), terms.caps.unpriced())?;
    let agents = agents::prepare(plan, &project.root, &opened.client)?;
    opened.run.limit(terms.caps.budget(models::experiment_budget(project)), Amount::default());
    let trial = planning::trial_budget(project);
    let unaffordable = unaffordable(tasks, &plan.conditions, &agents, &opened.run, trial);
    if unaffordable.is_empty() { Ok(()) } else { Err(unaffordable.into()) }
}

/// Refuses to submit an experiment whose jobs are still in the queue.
fn nobody_works(slurm: &Slurm, directory: &ExperimentDirectory) -> Result<(), Failure> {
    let Some((_, contract, jobs)) = latest(directory) else { return Ok(()) };
    // If the queue cannot be read, the submission goes on: workers refuse shards that other workers hold.
    let Ok(queue) = slurm.queue(&jobs.ids(), contract.shards) else { return Ok(()) };
    let Some(entry) = queue.iter().find(|entry| !entry.is_over()) else { return Ok(()) };
    let what = format!("job {} still works on `{}`", entry.job, contract.experiment_id);
    let problem =
        Problem::error(what).id(FAMILY.number(16)).why("two runs of one experiment would do the same trials");
    Err(Failure::input(vec![problem.fix(format!(
        "wait for it, or stop it with `aec-bench runs stop {} --force`",
        contract.experiment_id
    ))]))
}

struct Made {
    folder: Folder,
    contract: Contract,
    /// The job file for the cluster.
    text: String,
}

/// Writes the folder of the submission, and holds the experiment meanwhile so that no other process runs it.
fn write(
    context: &Context,
    arguments: &RunArguments,
    project: &Project,
    plan: &Plan,
    (trials, rerun): (&[PlannedTrial], &Rerun),
    terms: &Terms,
) -> Result<Made, Failure> {
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let jobs = project.settings.path(Setting::Jobs);
    let beginning = Beginning {
        ledger: &ledger,
        jobs: &jobs,
        plan,
        shard: None,
        extend: arguments.extend,
        models: arguments.tape.name(),
        terms,
        named: &rerun.trials,
        own: None,
    };
    let engine = if arguments.engine.engine == EngineChoice::K8s { Engine::K8s } else { Engine::Slurm };
    let roots = [spelled(&project.root)?, spelled(ledger.root())?, spelled(&jobs)?];
    if engine == Engine::K8s {
        let roots = [roots[0].as_str(), &roots[1], &roots[2]];
        pods(&arguments.engine, roots).check(roots).map_err(Failure::usage)?;
    }
    let (_held, past) = prepare(&beginning)?;
    ask_for_backend(project, plan)?;
    // Kubernetes has its own secrets, so no values are written here.
    let asked = project.env.asked_of_shell();
    let variables: BTreeMap<String, String> =
        asked.into_iter().filter(|(name, _)| name != "HOME" && name != "PATH").collect();
    let contract = Contract {
        schema_version: CONTRACT_VERSION,
        engine,
        experiment_id: plan.experiment_id.clone(),
        plan: plan.digest,
        shards: arguments.engine.shards.unwrap_or(1) as usize,
        trials: trials.len(),
        to_run: to_do(trials, &past, rerun).len(),
        created_at: Timestamp::now_in_milliseconds(),
        tool_version: VERSION.to_owned(),
        program: program(engine)?,
        project: roots[0].clone(),
        ledger: roots[1].clone(),
        jobs: roots[2].clone(),
        flags: flags(context, arguments, project, terms)?,
        rerun: again(trials, &past, rerun),
        spent_before: (terms.caps.budget(models::experiment_budget(project)) != Budget::UNLIMITED)
            .then(|| Spent { usd: past.spent.money.dollars(), tokens: past.spent.tokens }),
        variables: variables.keys().cloned().collect(),
    };
    let directory = ledger.experiment(&plan.experiment_id);
    let folder = Folder::create(&directory).map_err(|error| {
        let problem = Problem::error(format!("the folder of the run cannot be written: {error}"));
        Failure::environment(
            problem.id(FAMILY.number(19)).fix("make the ledger writable").in_file(directory.run()),
        )
    })?;
    match fill(context, arguments, &folder, &contract, plan, &variables) {
        Ok(text) => Ok(Made { folder, contract, text }),
        Err(failure) => {
            // A folder that is only partly written would be taken for a submission.
            folder.remove().ok();
            Err(failure)
        }
    }
}

/// Looks up the variables that workers need to reach the plan's backend, so that they are given them.
fn ask_for_backend(project: &Project, plan: &Plan) -> Result<(), Failure> {
    match plan.conditions.backend {
        Backend::Docker => {
            project.env.get("DOCKER_HOST");
        }
        Backend::Modal => modal::ask(project, &plan.credentials)?,
        Backend::Local | Backend::Harbor => {}
    }
    Ok(())
}

fn fill(
    context: &Context,
    arguments: &RunArguments,
    folder: &Folder,
    contract: &Contract,
    plan: &Plan,
    variables: &BTreeMap<String, String>,
) -> Result<String, Failure> {
    write_atomic(&folder.plan(), plan.to_json().as_bytes())?;
    let text = match contract.engine {
        Engine::Slurm => {
            if !variables.is_empty() {
                environment::write(&folder.environment(), variables)?;
            }
            let (resources, around) = (resources(&arguments.engine), context.worker_surroundings());
            let merge = sbatch::merge(contract, folder, &resources, &around);
            write_atomic(&folder.merge_script(), merge.as_bytes())?;
            let shards = sbatch::shards(contract, folder, &resources, &around);
            write_atomic(&folder.shards_script(), shards.as_bytes())?;
            shards
        }
        Engine::K8s => {
            let roots = [contract.project.as_str(), &contract.ledger, &contract.jobs];
            let job = kubernetes::job(contract, folder, &pods(&arguments.engine, roots));
            let mut text = serde_json::to_string_pretty(&job).unwrap_or_default();
            text.push('\n');
            write_atomic(&folder.manifest(), text.as_bytes())?;
            text
        }
    };
    // The contract is written last: a folder with a contract is complete.
    folder.write_contract(contract)?;
    Ok(text)
}

fn pods(engine: &EngineArguments, roots: [&str; 3]) -> Pods {
    let common = roots.into_iter().map(PathBuf::from).reduce(|common, path| {
        common
            .ancestors()
            .find(|ancestor| path.starts_with(ancestor))
            .unwrap_or_else(|| Path::new("/"))
            .to_path_buf()
    });
    Pods {
        image: engine.image.clone().unwrap_or_default(),
        claim: engine.volume_claim.clone().unwrap_or_default(),
        mount: engine
            .mount_path
            .clone()
            .unwrap_or_else(|| common.unwrap_or_default().to_string_lossy().into_owned()),
        secret: engine.secret.clone(),
        namespace: engine.namespace.clone(),
        cpus: engine.cpus_per_shard,
        memory: engine.memory_per_shard.clone(),
    }
}

/// The program that workers run: this one, or in a pod the one in the image.
fn program(engine: Engine) -> Result<String, Failure> {
    match engine {
        Engine::K8s => Ok("aec-bench".to_owned()),
        Engine::Slurm => spelled(&std::env::current_exe()?.canonicalize()?),
    }
}

fn spelled(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let problem =
            Problem::error("a path that workers need is not text").id(FAMILY.number(19)).in_file(path);
        problem.fix("rename it: plans and scripts are UTF-8").into()
    })
}

/// The flags that make workers do what this process would do. The plan says which trials there are.
fn flags(
    context: &Context,
    arguments: &RunArguments,
    project: &Project,
    terms: &Terms,
) -> Result<Vec<String>, Failure> {
    let mut flags = terms::flags(terms);
    let mut add = |flag: &str, value: Option<String>| {
        flags.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    };
    let path = |path: &Path| -> Result<String, Failure> { spelled(&context.absolute(path)?) };
    let tape = &arguments.tape;
    add("--endpoints", arguments.plan.endpoints.endpoints.as_deref().map(path).transpose()?);
    add("--record", tape.record.as_deref().map(path).transpose()?);
    add("--replay", tape.replay.as_deref().map(path).transpose()?);
    let switches = [("--cache", tape.cache), ("--extend", arguments.extend)];
    flags.extend(switches.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_owned()));
    // Flags are not secret, but the user may have put a key into one.
    let redactor = aec_base::secret::Redactor::from_env(&project.env);
    if flags.iter().any(|flag| redactor.finds(flag)) {
        let problem = Problem::error("a flag holds the value of a secret variable").id(FAMILY.number(24));
        return Err(problem.why("everybody on the cluster can see the flags of workers").into());
    }
    Ok(flags)
}

/// Trials to run again, each with the number of the attempt that does not count.
fn again(trials: &[PlannedTrial], past: &Past, rerun: &Rerun) -> Vec<Again> {
    let wanted = to_do(trials, past, rerun);
    let chosen = wanted.into_iter().filter_map(|Waiting { trial, attempt }| {
        let id = &trials[trial].id;
        let cancelled = past.trials.get(id).is_some_and(|past| !past.outcome.is_settled());
        (attempt > 1 && !cancelled).then(|| Again { trial: id.clone(), attempt: attempt - 1 })
    });
    chosen.collect()
}

/// Submits both jobs, or neither.
fn send(slurm: &Slurm, folder: &Folder) -> Result<Jobs, Failure> {
    let give_up = |problem: Problem, array: Option<u64>| {
        if let Some(array) = array {
            slurm.cancel(array, Which::All).ok();
        }
        folder.clone().remove().ok();
        Failure::environment(problem)
    };
    let array = slurm.submit(&folder.shards_script(), &[]).map_err(|problem| give_up(problem, None))?;
    // Only one merge of an experiment may run at a time.
    let options = [format!("--dependency=afterany:{array},singleton")];
    let merge =
        slurm.submit(&folder.merge_script(), &options).map_err(|problem| give_up(problem, Some(array)))?;
    let jobs = Jobs { array: Some(array), merge: Some(merge) };
    folder.write_jobs(&jobs)?;
    Ok(jobs)
}

/// Notes about a submission.
fn remarks(contract: &Contract) -> Vec<Problem> {
    let mut notes = Vec::new();
    if contract.shards > contract.to_run {
        let what = format!(
            "{} for {}: some workers have nothing to do",
            text::count(contract.shards, "shard"),
            text::count(contract.to_run, "trial")
        );
        notes.push(Problem::note(what).id(FAMILY.number(25)));
    }
    let local = |path: &&String| {
        ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/"].iter().any(|root| path.starts_with(root))
    };
    let roots = [&contract.project, &contract.ledger, &contract.jobs];
    if let Some(path) = roots.iter().find(|path| local(path)) {
        let what = format!("{path} is usually a directory of one machine");
        let note = Problem::note(what).id(FAMILY.number(26)).why("workers on other nodes do not see it");
        notes.push(note.fix("keep project, ledger and jobs on a file system that all nodes share"));
    }
    notes
}

fn rendered(
    context: &Context,
    project: &Project,
    folder: &Folder,
    contract: &Contract,
    text: String,
    problems: Vec<Problem>,
) -> Result<Outcome, Failure> {
    let files = match contract.engine {
        Engine::Slurm => vec![folder.shards_script(), folder.merge_script()],
        Engine::K8s => vec![folder.manifest()],
    };
    let shown = |path: &Path| project.shown(path).to_path_buf();
    let data = Rendered {
        experiment_id: contract.experiment_id.to_string(),
        engine: contract.engine.name(),
        shards: contract.shards,
        trials: contract.trials,
        to_run: contract.to_run,
        folder: shown(folder.path()),
        files: files.iter().map(|file| shown(file)).collect(),
        variables: contract.variables.clone(),
    };
    let outcome = Outcome::new(context.format, &data, || text)?.problems(problems);
    let place = data.folder.display();
    let experiment = &contract.experiment_id;
    Ok(match contract.engine {
        Engine::Slurm => outcome.remark(format!(
            "Written to {place}. Submit with `sbatch {place}/shards.sbatch`, then \
             `sbatch --dependency=afterany:JOB {place}/merge.sbatch`."
        )),
        Engine::K8s => {
            let outcome = outcome.remark(format!(
                "Written to {place}. Submit with `kubectl apply -f {place}/job.json`; when it has completed, run \
                 `aec-bench runs merge {experiment}`."
            ));
            if contract.variables.is_empty() {
                outcome
            } else {
                // Their values are written nowhere, and may differ in the cluster.
                outcome.remark(format!(
                    "The pods need {}: the secret that --secret names must hold them.",
                    contract.variables.join(", ")
                ))
            }
        }
    })
}
