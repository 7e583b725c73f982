//! `aec-bench dataset create`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::name::Name;
use aec_base::problem::Problem;
use aec_base::project::Project;
use aec_base::settings::Setting;
use aec_base::text;
use aec_task::catalogue::Catalogue;
use aec_task::dataset::freeze::{Draft, freeze};
use aec_task::dataset::manifest::{Manifest, Source};
use aec_task::dataset::reference::parse_version;
use aec_task::dataset::store::{Store, already_there};
use aec_task::dataset::{FAMILY, suite_output};
use aec_task::id::TaskId;
use aec_task::suite::SuiteFile;
use aec_task::task::Task;
use clap::{Args, ValueHint};
use indexmap::IndexMap;
use semver::Version;
use serde::Serialize;

use crate::arguments::{SelectionArguments, TasksRootArgument};
use crate::commands::selection::{NamedTasks, refuse_broken};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Outcome;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        aec-bench dataset create --name cables --version 1.0.0 --task electrical/cables\n  \
                        aec-bench dataset create --name easy --version 1.0.0 --difficulty easy")]
pub(crate) struct DatasetCreateArguments {
    /// Name of the dataset
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// Semantic version, such as 1.0.0; a version is written once and never changed
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: String,
    /// Include these tasks: ids, or directories that contain ids
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) task: Vec<String>,
    /// Include tasks whose ids match this pattern, such as electrical/*
    #[arg(long, short, value_name = "PATTERN")]
    pub(crate) pattern: Vec<String>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Include the tasks that this suite generated, and record the suite
    #[arg(long, short, value_name = "SUITE.toml", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["SelectionArguments", "task", "pattern", "from_suite_output"])]
    pub(crate) config: Option<PathBuf>,
    /// Include the tasks listed in this manifest of a generated suite, and record the manifest
    #[arg(long, value_name = "MANIFEST", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["SelectionArguments", "task", "pattern"])]
    pub(crate) from_suite_output: Option<PathBuf>,
    /// One-line description
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// What the dataset is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
    #[command(flatten)]
    pub(crate) tasks_root: TasksRootArgument,
}

#[derive(Serialize)]
pub(crate) struct Written<'a> {
    pub(crate) dataset: String,
    pub(crate) path: PathBuf,
    pub(crate) content_hash: Digest,
    pub(crate) task_count: usize,
    pub(crate) domains: &'a [String],
    pub(crate) difficulty_distribution: &'a IndexMap<String, usize>,
}

impl<'a> Written<'a> {
    pub(crate) fn of(project: &Project, manifest: &'a Manifest, path: &Path) -> Self {
        Self {
            dataset: manifest.reference(),
            path: project.shown(path).to_path_buf(),
            content_hash: manifest.content_hash,
            task_count: manifest.tasks.len(),
            domains: &manifest.description.domains,
            difficulty_distribution: &manifest.description.difficulty_distribution,
        }
    }

    pub(crate) fn line(&self) -> String {
        format!("{}  {}  {}\n", self.dataset, text::count(self.task_count, "task"), self.content_hash)
    }
}

pub(crate) fn create(context: &Context, arguments: &DatasetCreateArguments) -> Result<Outcome, Failure> {
    let name = parse_name(&arguments.name)?;
    let version = version(&arguments.version)?;
    let project = context.project(arguments.tasks_root.overrides(context)?)?;
    let store = Store::new(project.settings.path(Setting::Datasets));
    let catalogue = Catalogue::load(&project.settings.path(Setting::Tasks));
    let chosen = choose(context, &project, arguments, &catalogue)?;
    if chosen.tasks.is_empty() {
        return Err(nothing(&catalogue).into());
    }
    let draft = Draft {
        name,
        version,
        created_at: context.created_at()?,
        summary: arguments.summary.clone(),
        purpose: arguments.purpose.clone(),
        source: chosen.source,
    };
    if store.has(&draft.name, &draft.version) {
        let place = store.place(&draft.name, &draft.version);
        return Err(already_there(&draft.name, &draft.version, &place).into());
    }
    let manifest = freeze(&project.root, &chosen.tasks, draft)?;
    let path = store.publish(&manifest)?;
    let data = Written::of(&project, &manifest, &path);
    let outcome = Outcome::new(context.format, &data, || data.line())?
        .remark(format!("Wrote {}. It is never changed from now on.", data.path.display()));
    Ok(outcome.problems(chosen.warnings))
}

pub(crate) fn parse_name(text: &str) -> Result<Name, Failure> {
    Name::parse(text).map_err(|error| {
        let what = format!("`{}` is not a name for a dataset: it {error}", text::printable(text));
        Failure::usage(Problem::error(what).id(FAMILY.number(17)).fix("write a name such as electrical-v1"))
    })
}

fn version(text: &str) -> Result<Version, Failure> {
    parse_version(text).map_err(|why| {
        let what = format!("`{}` is not a version for a dataset", text::printable(text));
        let problem = Problem::error(what).id(FAMILY.number(17)).why(why);
        Failure::usage(problem.fix("write MAJOR.MINOR.PATCH, such as 1.0.0, or 1.1.0-rc.1 for a trial"))
    })
}

/// The tasks of a dataset to be created, and how they were chosen.
struct Chosen<'a> {
    tasks: Vec<&'a Task>,
    source: Source,
    /// Problems of the catalogue that may have hidden tasks.
    warnings: Vec<Problem>,
}

fn choose<'a>(
    context: &Context,
    project: &Project,
    arguments: &DatasetCreateArguments,
    catalogue: &'a Catalogue,
) -> Result<Chosen<'a>, Failure> {
    if let Some(file) = &arguments.config {
        return of_suite(project, &SuiteFile::read(&context.absolute(file)?)?, file, catalogue);
    }
    if let Some(file) = &arguments.from_suite_output {
        return of_suite_output(project, &context.absolute(file)?, catalogue);
    }
    let named =
        NamedTasks::choose(project, (&arguments.task, &arguments.pattern), &arguments.selection, catalogue)?;
    Ok(Chosen { tasks: named.tasks, source: Source::manual(), warnings: named.warnings })
}

fn of_suite<'a>(
    project: &Project,
    suite: &SuiteFile,
    file: &Path,
    catalogue: &'a Catalogue,
) -> Result<Chosen<'a>, Failure> {
    let Some(directory) = &suite.output.dir else {
        return Err(Problem::error("the suite does not say where its tasks are")
            .id(FAMILY.number(36))
            .fix("set output.dir, or use --from-suite-output with the manifest that the suite wrote")
            .in_file(file)
            .into());
    };
    let directory: PathBuf = project.root.join(directory).components().collect();
    let root = project.settings.path(Setting::Tasks);
    let inside = |id: &TaskId| root.join(id.relative_path()).starts_with(&directory);
    let warnings = refuse_broken(catalogue, inside)?;
    let tasks = catalogue.tasks.iter().filter(|task| inside(&task.id)).collect();
    Ok(Chosen { tasks, source: suite_output::source_of(suite), warnings })
}

fn of_suite_output<'a>(
    project: &Project,
    file: &Path,
    catalogue: &'a Catalogue,
) -> Result<Chosen<'a>, Failure> {
    let output = suite_output::read(file)?;
    let root = project.settings.path(Setting::Tasks);
    let known: HashMap<&TaskId, &Task> = catalogue.tasks.iter().map(|task| (&task.id, task)).collect();
    let (mut tasks, mut problems, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut wanted = HashSet::new();
    for place in &output.tasks {
        let id = place.strip_prefix(&root).ok().and_then(|path| TaskId::from_relative_path(path).ok());
        let task = id.as_ref().and_then(|id| known.get(id));
        let shown = project.shown(place).display().to_string();
        match task {
            Some(task) if seen.insert(&task.id) => tasks.push(*task),
            Some(task) => problems.push(
                Problem::error(format!("the suite lists `{}` twice", task.id))
                    .id(FAMILY.number(36))
                    .fix("generate the suite anew")
                    .in_file(file),
            ),
            None => problems.push(
                Problem::error(format!("the suite lists {}, which is not a task", text::printable(&shown)))
                    .id(FAMILY.number(36))
                    .why(format!("tasks must be below {}", project.shown(&root).display()))
                    .fix("generate the suite anew, or name the manifest inside the tasks root")
                    .in_file(file),
            ),
        }
        wanted.extend(id);
    }
    let warnings = refuse_broken(catalogue, |id| wanted.contains(id))?;
    if !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(Chosen { tasks, source: output.source, warnings })
}

fn nothing(catalogue: &Catalogue) -> Problem {
    let problem = Problem::error("no task is selected").id(FAMILY.number(32));
    if catalogue.tasks.is_empty() {
        return problem.why("there are no tasks").fix("`aec-bench task new DISCIPLINE/NAME` begins one");
    }
    problem
        .why(format!("none of {} passes all filters", text::count(catalogue.tasks.len(), "task")))
        .fix("try the same filters with `aec-bench task list`")
}
