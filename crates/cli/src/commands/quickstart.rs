//! `aec-bench quickstart`: the whole loop, offline, in a new project: tasks, a frozen dataset, agents, verdicts,
//! records and a leaderboard.

use std::path::PathBuf;

use aec_author::library::Library;
use aec_author::produce::Destination;
use aec_author::suite as author_suite;
use aec_base::file::write_atomic;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::{PROJECT_FILE, Project};
use aec_base::settings::Setting;
use aec_ledger::index::{Filter, Index};
use aec_ledger::layout::Ledger;
use aec_report::group::Unit;
use aec_report::leaderboard::{Row, leaderboard};
use aec_report::selection::Selection;
use aec_run::experiment::{Agent, Experiment, Harness, ResourceLimitsTable};
use aec_run::plan::{Conditions, Credentials, SandboxChoice};
use aec_run::planning::{Made, Request, make};
use aec_task::catalogue::Catalogue;
use aec_task::dataset::freeze::{Draft, freeze};
use aec_task::dataset::manifest::Source;
use aec_task::dataset::store::Store;
use aec_task::selection::SelectionTable;
use aec_task::suite::SuiteFile;
use aec_task::validate;
use clap::{Args, ValueHint};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::json;

use crate::arguments::SandboxArgument;
use crate::commands::generate::task::engines;
use crate::commands::init;
use crate::commands::ledger::{index_failure, number};
use crate::commands::planning::{VERSION, places};
use crate::commands::report::span;
use crate::commands::run::{self, PreparedRun};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Outcome, STRONG};
use crate::table::Table;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench quickstart\n  \
                        aec-bench quickstart try-out --json")]
pub(crate) struct QuickstartArguments {
    /// Directory of the project; created if it does not exist
    #[arg(default_value = "aec-bench-quickstart", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

/// The generated suite has two tasks of each discipline.
const SUITE: &str = include_str!("../../quickstart/suite.toml");
const SUITE_FILE: &str = "quickstart-suite.toml";
const DATASET: &str = "quickstart";
const EXPERIMENT: &str = "quickstart";
const REPETITIONS: u32 = 2;

#[derive(Serialize)]
struct Data {
    root: PathBuf,
    created: bool,
    tasks: usize,
    dataset: String,
    experiment_id: Name,
    trials_planned: usize,
    trials_executed: usize,
    trials_run_now: usize,
    leaderboard: Vec<Row>,
    head: Option<aec_base::digest::Digest>,
    next: Vec<String>,
}

pub(crate) fn quickstart(context: &Context, arguments: &QuickstartArguments) -> Result<Outcome, Failure> {
    let root = context.absolute(&arguments.directory)?;
    let created = !root.join(PROJECT_FILE).exists();
    if created {
        init::scaffold(&root, false, true)?;
    }
    let project = context.project_in(&root)?;
    let tasks = generate(context, &project)?;
    let report = validate::check_all(&project.settings.path(Setting::Tasks));
    let mut problems = report.problems;
    problems.extend(report.tasks.into_iter().flat_map(|task| task.problems));
    problems.retain(Problem::counts);
    let dataset = freeze_dataset(context, &project)?;
    let ledger = Ledger::new(project.settings.path(Setting::Ledger));
    let prepared = prepare(project, &dataset)?;
    let experiment_id = prepared.plan.experiment_id.clone();
    let (ended, noticed) = run::offline(context, prepared)?;
    problems.extend(noticed);
    let shown = arguments.directory.display();
    let filter = Filter { experiments: vec![experiment_id.to_string()], ..Filter::default() };
    let (selection, _) =
        Index::ask(&ledger, |index| Selection::read(index, &filter)).map_err(index_failure)?;
    let data = Data {
        root,
        created,
        tasks,
        dataset,
        trials_planned: ended.all.planned,
        trials_executed: ended.all.executed,
        trials_run_now: ended.recorded,
        leaderboard: leaderboard(&selection, Unit::Task).rows,
        head: ended.head,
        next: vec![
            format!("cd {shown}"),
            format!("aec-bench evaluate -e {experiment_id} --report report.html"),
            format!("aec-bench ledger list -e {experiment_id}"),
            "aec-bench ledger show TRIAL".to_owned(),
            "aec-bench models check --no-call gpt-4.1".to_owned(),
            format!("aec-bench run --dataset {DATASET} --harness tool_loop --model gpt-4.1 --max-cost 1.00"),
        ],
        experiment_id,
    };
    Ok(Outcome::new(context.format, &data, || text(&data, &shown.to_string()))?.problems(problems))
}

/// Generates a suite from the library, unless it exists.
fn generate(context: &Context, project: &Project) -> Result<usize, Failure> {
    let path = project.root.join(SUITE_FILE);
    if !path.exists() {
        write_atomic(&path, SUITE.as_bytes())?;
    }
    let suite = SuiteFile::read(&path)?;
    let name = suite.name.as_ref().map(ToString::to_string).unwrap_or_default();
    let directory = project.settings.path(Setting::Tasks).join("generated").join(name);
    if !directory.exists() {
        let library = Library::load(&[]);
        let plan = author_suite::plan(&suite, &path, &library.templates)?;
        let sandbox = SandboxArgument::from(SandboxChoice::Namespaces);
        let destination = Destination { directory, extend: false, replace: false };
        author_suite::make(&engines(context, &sandbox), &suite, &plan, &destination, &|| ())?;
    }
    Ok(Catalogue::load(&project.settings.path(Setting::Tasks)).tasks.len())
}

/// Freezes the tasks as a dataset, which never changes. If no task changed, the dataset stays the same.
fn freeze_dataset(context: &Context, project: &Project) -> Result<String, Failure> {
    let store = Store::new(project.settings.path(Setting::Datasets));
    let catalogue = Catalogue::load(&project.settings.path(Setting::Tasks));
    let broken: Vec<Problem> =
        catalogue.problems.iter().filter(|problem| problem.counts()).cloned().collect();
    if !broken.is_empty() {
        return Err(broken.into());
    }
    let tasks: Vec<_> = catalogue.tasks.iter().collect();
    let name = Name::parse(DATASET).map_err(|error| Problem::error(error.to_string()))?;
    let draft = |version| Draft {
        name: name.clone(),
        version,
        created_at: aec_base::timestamp::Timestamp::from_seconds(0),
        summary: Some("A small suite of every discipline".to_owned()),
        purpose: Some("To see the whole loop work".to_owned()),
        source: Source::manual(),
    };
    let newest = store.versions(&name).into_iter().max();
    let version = newest.clone().unwrap_or_else(|| semver::Version::new(1, 0, 0));
    let mut manifest = freeze(&project.root, &tasks, draft(version))?;
    manifest.created_at = context.created_at()?;
    if let Some(newest) = newest {
        let reference = aec_task::dataset::reference::DatasetRef::parse(&format!("{DATASET}@{newest}"))?;
        if store.read(&reference)?.content_hash == manifest.content_hash {
            return Ok(format!("{DATASET}@{newest}"));
        }
        let next = semver::Version::new(newest.major, newest.minor + 1, 0);
        manifest = freeze(&project.root, &tasks, draft(next))?;
        manifest.created_at = context.created_at()?;
    }
    store.publish(&manifest)?;
    Ok(manifest.reference())
}

/// Prepares four agents that need no model: the reference solution, two that make mistakes, and one that does nothing.
fn prepare(project: Project, dataset: &str) -> Result<PreparedRun, Failure> {
    let agent = |name: &str, harness: Harness, parameters: serde_json::Value| -> Result<Agent, Failure> {
        let parameters: IndexMap<String, serde_json::Value> =
            parameters.as_object().cloned().unwrap_or_default().into_iter().collect();
        let name = Name::parse(name).map_err(|error| Problem::error(error.to_string()))?;
        Ok(Agent { name, harness, model: None, client: None, parameters, system_prompt_file: None })
    };
    let experiment = Experiment {
        experiment_id: None,
        name: Some("Quickstart".to_owned()),
        description: Some("Agents that need no model, on a small suite".to_owned()),
        tasks: SelectionTable { dataset: Some(dataset.to_owned()), ..SelectionTable::default() },
        agents: vec![
            agent("oracle", Harness::Oracle, json!({}))?,
            agent("sim-skilled", Harness::Sim, json!({ "skill": 0.9 }))?,
            agent("sim-novice", Harness::Sim, json!({ "skill": 0.4 }))?,
            agent("nop", Harness::Nop, json!({}))?,
        ],
        resource_limits: ResourceLimitsTable::default(),
        repetitions: REPETITIONS,
        disable_verification: false,
        backend: None,
        harbor_environment: None,
        credentials: Credentials::default(),
    };
    // Another dataset makes another experiment.
    let version = dataset.rsplit('@').next().unwrap_or_default();
    let id =
        Name::parse(&format!("{EXPERIMENT}-{version}")).map_err(|error| Problem::error(error.to_string()))?;
    let request =
        Request { experiment, id: Some(id), conditions: Conditions::default(), wanted: Box::new(|_| true) };
    let Made { plan, tasks, problems } = make(&places(&project), request, VERSION)?;
    Ok(PreparedRun { project, plan, tasks, variables: Vec::new(), problems })
}

/// Agents by their mean reward.
fn text(data: &Data, shown: &str) -> String {
    let made = if data.created { "Created a project" } else { "Using the project" };
    let tasks = aec_base::text::count(data.tasks, "task");
    let mut text = format!(
        "{made} in {shown}\nFroze {tasks} as {}\nRan {} of {} in rooms, judged and recorded each\n\n",
        data.dataset,
        data.trials_executed,
        aec_base::text::count(data.trials_planned, "trial"),
    );
    let mut table = Table::new(["AGENT", "HARNESS", "MEAN REWARD", "95 % INTERVAL", "COUNTED"])
        .spare(["HARNESS"])
        .cut(["AGENT"]);
    for row in &data.leaderboard {
        table.row([
            row.agent.clone(),
            row.harness.clone(),
            number(row.group.mean_reward, 3),
            span(row.group.interval),
            format!("{} of {}", row.group.counted, row.group.trials),
        ]);
    }
    text.push_str(&table.render());
    text.push_str(&format!("\n{STRONG}Next{STRONG:#}\n"));
    for command in &data.next {
        text.push_str(&format!("  {command}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_one_that_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(SUITE_FILE);
        std::fs::write(&path, SUITE).unwrap();
        SuiteFile::read(&path).unwrap();
    }
}
